"""Learn the windmill data: a table against random features, and a picture of the game.

For example: notsorandom demo -o windmill.png

All features get the same linear model. Takes less than a minute.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from notsorandom import FourierClassifier
from notsorandom.baselines import RandomFourierFeatures
from notsorandom.cli.arguments import add_output, add_seed
from notsorandom.datasets import make_windmill
from notsorandom.display import GameDisplay
from notsorandom.display.figures import save_figure
from notsorandom.display.inspection import scores_by_size

# Formats that every installation of matplotlib can write.
PICTURE_FORMATS = (".png", ".pdf", ".svg")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    text, default = "file of the picture (default: %(default)s)", "notsorandom-demo.png"
    add_output(parser, PICTURE_FORMATS, text, default=default)
    add_seed(parser)


def run(options: argparse.Namespace, parser: argparse.ArgumentParser) -> dict[str, Any]:
    """Run the demo."""
    return demo(options.output, options.seed)


def demo(
    picture: Path,
    seed: int = 0,
    *,
    sizes: Sequence[int] = (20, 100, 500),
    drawn_size: int = 100,
    n_train: int = 2000,
    n_test: int = 50_000,
    smoothing: Any = "auto",
) -> dict[str, Any]:
    """Return the accuracies by number of features; draw the game of one of the sizes."""
    train = make_windmill(n_train, random_state=seed)
    test = make_windmill(n_test, random_state=seed + 1)
    result: dict[str, Any] = {"data": "the windmill", "rows": n_train, "test rows": n_test}
    settings = {"smoothing": smoothing, "random_state": seed, "verbose": sys.stderr.isatty()}
    baselines = {"random": RandomFourierFeatures(random_state=seed)}
    models = {}
    for size in sizes:
        start = time.perf_counter()
        models[size] = model = FourierClassifier(size, **settings).fit(*train)
        seconds = round(time.perf_counter() - start, 2)
        _, scores = scores_by_size(model, *train, *test, [size], baselines)
        accuracies = {f"{name} accuracy": float(score) for name, (score,) in scores.items()}
        result[f"{size} features"] = {**accuracies, "seconds of learning": seconds}
    try:
        display = GameDisplay.from_estimator(models[drawn_size], *train)
    except ImportError as error:
        return {**result, "picture": str(error)}
    save_figure(display.figure_, picture)
    return {**result, "picture": str(picture.resolve())}
