"""The windmill: learned features against random ones, as a table and a picture."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from notsorandom.datasets import make_windmill
from notsorandom.estimators import FourierClassifier
from notsorandom.experiments.baseline import random_features
from notsorandom.game import LOSSES, Round, play
from notsorandom.kernel import LearnedKernel
from notsorandom.learning import signs
from notsorandom.linear import solve_svm
from notsorandom.plots import GameDisplay, Moment, import_pyplot
from notsorandom.rows import Array, Rows
from notsorandom.search import Ascent
from notsorandom.spaces import Euclidean

SIZES = (20, 100, 500)
N_TRAIN, N_TEST = 2000, 50_000
# Numbers of frequencies at which the picture looks at the game.
MOMENTS = (1, 20, 100)


def run_demo(picture: Path, say: Callable[[str], Any], seed: int = 0) -> None:
    """Print the table, then draw the picture."""
    X, y = make_windmill(N_TRAIN, random_state=seed)
    X_test, y_test = make_windmill(N_TEST, random_state=seed + 1)
    say(f"The windmill: {N_TRAIN} training samples, {N_TEST} test samples, two classes.\n")
    say(f"{'features':>8}  {'random (RBF)':>22}  {'learned':>22}")
    loss = LOSSES["hinge"](1.0)
    for size in SIZES:
        began = time.perf_counter()
        sampler = random_features(X, size, seed)
        machine = solve_svm(sampler.transform(X), signs(y, 2, X.dtype)[:, 0], loss, tol=1e-3)
        random_seconds = time.perf_counter() - began
        scores = sampler.transform(X_test) @ machine.coef + machine.intercept
        random_score = np.mean((scores > 0) == y_test)
        began = time.perf_counter()
        model = FourierClassifier(size, random_state=seed).fit(X, y)
        seconds = time.perf_counter() - began
        score = model.score(X_test, y_test)
        say(
            f"{size:>8}  {random_score:>10.2%} in {random_seconds:>5.2f} s"
            f"   {score:>10.2%} in {seconds:>5.2f} s"
        )
    say("\nAccuracy on the test samples; both with the same linear hinge-loss SVM at C = 1.")
    try:
        import_pyplot()
    except ImportError as error:
        say(f"\n{error}")
        return
    GameDisplay(X, y, game_moments(X, y, seed)).plot().savefig(picture, dpi=110)
    say(f"\nThe game in pictures: {picture.resolve()}")


def game_moments(X: Array, y: Array, seed: int) -> list[Moment]:
    """Play one game of a frequency a round, and keep what the picture needs of three moments."""
    rows, labels = Rows(X), signs(y, 2, X.dtype)
    loss = LOSSES["hinge"](1.0)
    duals: dict[int, Array] = {}

    def watch(record: Round, dual: Array) -> None:
        duals[record.n_frequencies] = dual.copy()

    result = play(
        rows,
        labels,
        space=Euclidean(),
        search=Ascent(n_peaks=1),
        loss=loss,
        n_frequencies=max(MOMENTS),
        rng=np.random.default_rng(seed),
        watch=watch,
    )
    whole = LearnedKernel.from_game(result, result.weights, "aligned")
    return [moment_at(count, rows, labels, duals[count], whole, loss) for count in MOMENTS]


def moment_at(
    count: int, rows: Rows, labels: Array, dual: Array, whole: LearnedKernel, loss: Any
) -> Moment:
    """Return the state of the game when it had found `count` frequencies."""
    kernel = whole.head(count)
    machine = solve_svm(kernel.features(rows.array), labels[:, 0], loss, tol=1e-3)
    return Moment(
        title=f"round {count}",
        dual=dual[:, 0],
        frequencies=kernel.frequencies,
        potential=lambda places: kernel.space.potential(rows, dual * labels, places),
        decision=lambda places: kernel.features(places) @ machine.coef + machine.intercept,
    )
