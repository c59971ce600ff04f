"""``notsorandom fit``."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from notsorandom import FourierClassifier, FourierRegressor, Sphere
from notsorandom.cli.arguments import (
    Commands,
    check_file,
    check_range,
    number_or_auto,
)
from notsorandom.cli.output import tell
from notsorandom.cli.spectrum import spectrum_of
from notsorandom.cli.training import Training, digest_of, read_test, read_training, split
from notsorandom.data.rows import Array
from notsorandom.data.tables import open_table
from notsorandom.io import rescaled, save, scaler_of

EXAMPLES = """\
examples:
  notsorandom fit train.csv --target label -o model.safetensors
  notsorandom fit house.parquet --target price --features auto -o price.safetensors
  notsorandom fit digits.npz -o digits.safetensors            # with arrays X and y
  notsorandom fit embeddings.npy --target -1 --space sphere -o model.safetensors
  notsorandom fit train.libsvm --holdout 0 --checkpoint game.safetensors -o model.safetensors

A fifth of the rows is held out to measure the model on, unless --test gives others. Columns that
have names are scaled to unit variance, since each has a unit of its own; the model that is saved
takes them as they are in the file. A target of whole numbers is one of classes if there are at most
20 different ones.

Of the learned spectrum it prints how many frequencies there are; how many of equal weight would be
as even; by how many radians a typical sample turns them; and which columns turn them most."""


def add_fit(commands: Commands) -> None:
    """Describe ``notsorandom fit``."""
    fit = commands.add_parser(
        "fit",
        help="learn a classifier or a regressor from a file, and save it",
        description="Learn from a data file: .csv, .tsv (also .gz), .parquet, .npy, .npz, .libsvm.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    fit.add_argument("data", type=Path, help="the training data")
    fit.add_argument("--target", help="name of the target's column; its number in an .npy file")
    fit.add_argument(
        "-o", "--output", type=Path, required=True, help="the .safetensors file to write"
    )
    fit.add_argument(
        "--task",
        choices=["auto", "classification", "regression"],
        default="auto",
        help="by default told by the target",
    )
    fit.add_argument("--drop", default="", help="columns not to learn from, comma-separated")
    fit.add_argument("--features", default="100", help="how many to learn, or auto (default: 100)")
    fit.add_argument("--C", type=float, default=1.0, help="inverse regularisation (default: 1)")
    fit.add_argument(
        "--smoothing",
        default="auto",
        help="noise allowed for, 0 to 1 or so, or auto (default: auto)",
    )
    fit.add_argument(
        "--space",
        choices=["euclidean", "sphere"],
        default="euclidean",
        help="on the sphere samples are directions, scaled to length one",
    )
    fit.add_argument(
        "--scale",
        choices=["auto", "standard", "none"],
        default="auto",
        help="of the columns; auto is standard if they have names",
    )
    fit.add_argument("--balanced", action="store_true", help="give all classes the same weight")
    fit.add_argument(
        "--holdout",
        type=float,
        default=0.2,
        help="share of the rows to measure on; 0 learns from all (default: 0.2)",
    )
    fit.add_argument("--test", type=Path, help="another file to measure on")
    fit.add_argument(
        "--checkpoint", type=Path, help="file that a fit which was killed goes on from"
    )
    fit.add_argument("--checkpoint-every", type=float, default=60.0, help="seconds (default: 60)")
    fit.add_argument("--seed", type=int, default=0, help="random seed (default: 0)")
    fit.add_argument("--quiet", action="store_true", help="no progress bars")
    fit.add_argument("--json", action="store_true", help="print what came of it as JSON")
    fit.set_defaults(run=run_fit)


def run_fit(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Check the arguments, then learn, measure and save."""
    check_arguments(options, parser)
    table = open_table(options.data)
    data = read_training(table, options)
    measured = read_test(table, data, options) if options.test else None
    holdout = 0.0 if options.test else options.holdout
    train, held = split(data, holdout, options.seed)
    model, scaled = fitted(configured(options, data.of_classes), data, train, options)
    if measured is None and len(held) > 1:
        measured = "held-out", data.X[held], data.y[held]
    metrics = measure(model, data.of_classes, ("training", data.X[train], data.y[train]), measured)
    spread = np.sqrt(scaler_of(data.X[train]).var_)
    facts = {
        "target": data.target,
        "rows": int(data.X.shape[0]),
        "holdout": float(holdout),
        "seed": options.seed,
        "scaled": scaled,
        "zero_based": getattr(table, "zero_based", None),
        "digest": digest_of(data),
        "spectrum": spectrum_of(model, spread, data.names),
    }
    if data.names is not None:
        model.feature_names_in_ = np.array(data.names, dtype=object)
    path = saved(model, options.output, metrics, {"fit": facts})
    outcome = {
        "data": str(options.data),
        "rows": facts["rows"],
        "columns": int(data.X.shape[1]),
        "target": data.target,
        "task": "classification" if data.of_classes else "regression",
        "because": data.because,
        "columns scaled": scaled,
        "features": model.kernel_.n_components,
        "smoothing": model.smoothing_,
        "seconds of play": round(float(model.history_["seconds"][-1]), 3),
        **metrics,
        "spectrum": facts["spectrum"],
        "model": str(path),
        "bytes": path.stat().st_size,
    }
    tell(outcome, options.json)
    return 0


def check_arguments(options: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Refuse what can't be, before any data are read."""
    check_file(parser, options.output, (".safetensors",))
    check_range(parser, "--holdout", options.holdout, 0, 0.9)
    check_range(parser, "--seed", options.seed, 0, 2**31 - 1)
    check_range(parser, "--checkpoint-every", options.checkpoint_every, 0, float("inf"))
    if not 0 < options.C < float("inf"):
        parser.error(f"--C {options.C}: give a number above 0")
    options.features = number_or_auto(parser, "--features", options.features, int)
    options.smoothing = number_or_auto(parser, "--smoothing", options.smoothing, float)
    if options.features == 0:
        parser.error("--features 0: give at least 1, or auto")
    if options.space == "sphere" and options.scale == "standard":
        parser.error("--scale standard: on the sphere samples are scaled to length one instead")
    if options.checkpoint and not options.checkpoint.resolve().parent.is_dir():
        parser.error(f"--checkpoint {options.checkpoint}: its folder doesn't exist; make it first")


Part = tuple[str, Any, Array]


def measure(model: Any, of_classes: bool, *parts: Part | None) -> dict[str, float]:
    """Accuracy, or R^2, on some rows."""
    quality = "accuracy" if of_classes else "R^2"
    return {f"{part[0]} {quality}": float(model.score(part[1], part[2])) for part in parts if part}


def saved(model: Any, path: Path, metrics: dict[str, float], about: dict[str, Any]) -> Path:
    """Save a model; if it can't be where it should, then where temporary files are."""
    try:
        return save(model, path, metrics, about)
    except OSError as error:
        refuge = Path(tempfile.gettempdir()) / f"notsorandom-{os.getpid()}.safetensors"
        try:
            save(model, refuge, metrics, about)
        except OSError:
            raise error from None
        raise OSError(f"{error}. The model is in {refuge}.") from error


def configured(options: argparse.Namespace, of_classes: bool) -> Any:
    """The estimator that was asked for."""
    settings = {
        "n_components": options.features,
        "C": options.C,
        "smoothing": options.smoothing,
        "space": Sphere(normalize=True) if options.space == "sphere" else "euclidean",
        "checkpoint": options.checkpoint,
        "checkpoint_every": options.checkpoint_every,
        "random_state": options.seed,
        "verbose": 0 if options.quiet or not sys.stderr.isatty() else 1,
    }
    if of_classes:
        weight = "balanced" if options.balanced else None
        return FourierClassifier(class_weight=weight, **settings)
    if options.balanced:
        raise ValueError("--balanced is about classes, but this is a regression: leave it out.")
    return FourierRegressor(**settings)


def fitted(
    model: Any, data: Training, train: Array, options: argparse.Namespace
) -> tuple[Any, bool]:
    """The model of the columns as they are, and whether it learned from scaled ones."""
    wanted = options.scale == "standard" or (options.scale == "auto" and data.names is not None)
    X, y = data.X[train], data.y[train]
    if not wanted or options.space == "sphere":
        return model.fit(X, y), False
    scaler = scaler_of(X)
    return rescaled(model.fit(scaler.transform(X), y), scaler), True
