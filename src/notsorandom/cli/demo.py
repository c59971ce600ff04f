"""The windmill: learned features against random ones, as a table and a picture."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from notsorandom.baselines import RandomFourierFeatures
from notsorandom.datasets import make_windmill
from notsorandom.display import GameDisplay, import_pyplot
from notsorandom.display.drawing import save_figure
from notsorandom.estimators import FourierClassifier
from notsorandom.game import LOSSES, Player
from notsorandom.game.scoring import signs
from notsorandom.linear.newton import solve_machine

SIZES = (20, 100, 500)
N_TRAIN, N_TEST = 2000, 50_000
# Size of the model whose game is drawn.
PICTURED = 100


def run_demo(picture: Path, say: Callable[[str], Any], seed: int = 0) -> None:
    """Print the table, then draw the picture."""
    X, y = make_windmill(N_TRAIN, random_state=seed)
    X_test, y_test = make_windmill(N_TEST, random_state=seed + 1)
    say(f"The windmill: {N_TRAIN} training samples, {N_TEST} test samples, two classes.\n")
    say(f"{'features':>8}  {'random (RBF)':>22}  {'learned':>22}")
    player = Player(LOSSES["hinge"](1.0), signs(y, 2, X.dtype))
    models = {}
    for size in SIZES:
        began = time.perf_counter()
        sampler = RandomFourierFeatures(size, random_state=seed).fit(X)
        machine = solve_machine(sampler.transform(X), player, tol=1e-3)
        random_seconds = time.perf_counter() - began
        scores = sampler.transform(X_test) @ machine.coef + machine.intercept
        random_score = np.mean((scores > 0) == y_test)
        began = time.perf_counter()
        models[size] = FourierClassifier(size, random_state=seed).fit(X, y)
        seconds = time.perf_counter() - began
        score = models[size].score(X_test, y_test)
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
    display = GameDisplay.from_estimator(models[PICTURED], X, y)
    save_figure(display.figure_, picture)
    say(f"\nThe game in pictures: {picture.resolve()}")
