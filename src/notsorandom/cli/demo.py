"""Learn the windmill data: a table against random features, and a picture of the game.

For example: notsorandom demo -o windmill.png

All features get the same linear model. Takes less than a minute.
"""

from __future__ import annotations

import argparse
import sys
import time
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
# Numbers of features, the one whose game is drawn, and numbers of samples.
SIZES, DRAWN_SIZE, N_TRAIN, N_TEST = (20, 100, 500), 100, 2000, 50_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    text, default = "file of the picture (default: %(default)s)", "notsorandom-demo.png"
    add_output(parser, PICTURE_FORMATS, text, default=default)
    add_seed(parser)


def run(options: argparse.Namespace, parser: argparse.ArgumentParser) -> dict[str, Any]:
    """Return the accuracies by number of features; draw the game of one of the sizes."""
    seed = options.seed
    train = make_windmill(N_TRAIN, random_state=seed)
    test = make_windmill(N_TEST, random_state=seed + 1)
    result: dict[str, Any] = {"data": "the windmill", "rows": N_TRAIN, "test rows": N_TEST}
    baselines = {"random": RandomFourierFeatures(random_state=seed)}
    models = {}
    for size in SIZES:
        start = time.perf_counter()
        model = FourierClassifier(size, random_state=seed, verbose=sys.stderr.isatty()).fit(*train)
        seconds = round(time.perf_counter() - start, 2)
        _, scores = scores_by_size(model, *train, *test, [size], baselines)
        accuracies = {f"{name} accuracy": float(score) for name, (score,) in scores.items()}
        result[f"{size} features"] = {**accuracies, "seconds of learning": seconds}
        models[size] = model
    try:
        display = GameDisplay.from_estimator(models[DRAWN_SIZE], *train)
    except ImportError as error:
        return {**result, "picture": str(error)}
    save_figure(display.figure_, options.output)
    return {**result, "picture": str(options.output.resolve())}
