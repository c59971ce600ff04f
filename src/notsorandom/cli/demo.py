"""``notsorandom demo``: the windmill, learned features against random ones."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from notsorandom.cli.arguments import Commands, check_output

# Formats that every installation of matplotlib can write.
PICTURE_FORMATS = (".png", ".pdf", ".svg")


def add_demo(commands: Commands) -> None:
    """Add ``notsorandom demo`` to the commands."""
    demo = commands.add_parser(
        "demo",
        help="learn the windmill data: a table against random features, and a picture of the game",
        description="Learn the windmill data, print the accuracy of 20, 100 and 500 learned and "
        "random features, and draw the game. Takes less than a minute.",
    )
    demo.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("notsorandom-demo.png"),
        help="file of the picture (default: %(default)s)",
    )
    demo.add_argument("--seed", type=int, default=0, help="random seed (default: %(default)s)")
    demo.set_defaults(run=run_demo)


def run_demo(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Check the arguments, then run the demo."""
    check_output(parser, options.output, PICTURE_FORMATS)
    if not 0 <= options.seed < 2**31:
        parser.error(f"--seed {options.seed}: it must be from 0 to {2**31 - 1}")
    demo(options.output, options.seed)
    return 0


def demo(
    picture: Path,
    seed: int = 0,
    *,
    sizes: Sequence[int] = (20, 100, 500),
    drawn_size: int = 100,
    n_train: int = 2000,
    n_test: int = 50_000,
    smoothing: Any = "auto",
    output: Callable[[str], Any] = print,
) -> None:
    """Print the table, then draw the picture.

    Parameters
    ----------
    picture : Path
    seed : int
    sizes : sequence of int
        Numbers of features.
    drawn_size : int
        The one of `sizes` whose game is drawn.
    n_train, n_test : int
    smoothing : float, "auto" or AutoSmoothing
    output : callable
        Receives the lines of text.
    """
    # Imported here, so that the other commands start without them.
    from notsorandom.baselines import RandomFourierFeatures
    from notsorandom.datasets import make_windmill
    from notsorandom.display import GameDisplay, import_pyplot
    from notsorandom.display.figures import save_figure
    from notsorandom.estimators import FourierClassifier
    from notsorandom.estimators.training import DUALITY_GAP
    from notsorandom.game import LOSSES, DualProblem
    from notsorandom.game.dual import signs_from_codes
    from notsorandom.linear.newton import solve_task

    X, y = make_windmill(n_train, random_state=seed)
    X_test, y_test = make_windmill(n_test, random_state=seed + 1)
    output(f"The windmill: {n_train} training samples, {n_test} test samples, two classes.\n")
    output(f"{'features':>8}  {'random (RBF)':>22}  {'learned':>22}")
    problem = DualProblem.from_arrays(LOSSES["hinge"](1.0), signs_from_codes(y, 2, X.dtype))
    models = {}
    for size in sizes:
        start = time.perf_counter()
        sampler = RandomFourierFeatures(size, random_state=seed).fit(X)
        svm = solve_task(sampler.transform(X), problem, DUALITY_GAP)
        random_seconds = time.perf_counter() - start
        scores = sampler.transform(X_test) @ svm.coef + svm.intercept
        random_accuracy = np.mean((scores > 0) == y_test)
        start = time.perf_counter()
        models[size] = FourierClassifier(size, smoothing=smoothing, random_state=seed).fit(X, y)
        seconds = time.perf_counter() - start
        accuracy = models[size].score(X_test, y_test)
        output(
            f"{size:>8}  {random_accuracy:>10.2%} in {random_seconds:>5.2f} s"
            f"   {accuracy:>10.2%} in {seconds:>5.2f} s"
        )
    output("\nAccuracy on the test samples; both with the same linear hinge-loss SVM at C = 1.")
    try:
        import_pyplot()
    except ImportError as error:
        output(f"\n{error}")
        return
    display = GameDisplay.from_estimator(models[drawn_size], X, y)
    save_figure(display.figure_, picture)
    output(f"\nPicture of the game: {picture.resolve()}")
