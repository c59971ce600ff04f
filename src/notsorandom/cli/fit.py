"""``notsorandom fit``."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from notsorandom import Checkpoint, FourierClassifier, FourierRegressor, Sphere
from notsorandom.cli.arguments import check_output, check_seed
from notsorandom.cli.scaling import fit_scaler, scale_model
from notsorandom.cli.training import (
    TrainingTable,
    digest_table,
    read_test_table,
    read_training_table,
    split_rows,
)
from notsorandom.data.rows import Array
from notsorandom.data.tables import open_table
from notsorandom.display.calibration import log_loss
from notsorandom.display.inspection import summarize_spectrum
from notsorandom.estimators.config import SOLVERS, configure
from notsorandom.game.losses import CLASSIFICATION_LOSSES, REGRESSION_LOSSES
from notsorandom.io import save

SUMMARY = "fit a model to a data file and save it"
EXAMPLES = """\
examples:
  notsorandom fit train.csv --target label -o model.safetensors
  notsorandom fit house.parquet --target price --n-components auto -o price.safetensors
  notsorandom fit digits.npz --loss hinge --C 1 -o svm.safetensors     # with arrays X and y
  notsorandom fit embeddings.npy --target -1 --space sphere -o model.safetensors
  notsorandom fit train.libsvm --holdout 0 --checkpoint game.npz -o model.safetensors

Reads .csv, .tsv (also .gz), .parquet, .npy, .npz and .libsvm. A fifth of the rows is held out to
evaluate the model, unless --test gives a test file. Named columns are scaled to unit variance for
the fit; the saved model takes them in their own units. A target of integers is a classification
target if it has at most 20 distinct values. A model of classes has probabilities, unless --loss is
that of an SVM. C, smoothing and spectrum are chosen on held-out parts of the training rows.

The result says how many frequencies the model has, their effective number (the exponential of the
entropy of their weights), and which columns drive them."""
# Numbers, or "auto" where the estimator allows it. The estimator checks them.
NUMBERS = {
    "n_components": "number of features, or auto",
    "max_components": "most features with auto",
    "C": "inverse regularisation, or auto: chosen on held-out training rows",
    "smoothing": "noise in units of the median distance of samples, or auto; higher is smoother",
    "checkpoint_every": "seconds between two writes of the checkpoint",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add, default = parser.add_argument, FourierClassifier()
    add("data", type=Path, help="the training data")
    add("--target", help="name of the target column, or its number in an .npy file")
    add("-o", "--output", type=Path, required=True, help="the .safetensors file to write")
    tasks = ["auto", "classification", "regression"]
    add("--task", choices=tasks, default="auto", help="auto decides by the target")
    text = "loss of the model; decides the task if --task doesn't"
    losses = [*CLASSIFICATION_LOSSES, *REGRESSION_LOSSES]
    add("--loss", choices=losses, help=f"{text} (default: {default.loss}, or squared)")
    add("--drop", default="", metavar="COLUMNS", help="comma-separated columns to ignore")
    for flag, text in NUMBERS.items():
        value = getattr(default, flag, 60.0)
        text = f"{text} (default: %(default)s)"
        name = f"--{flag.replace('_', '-')}"
        add(name, type=parse_number, default=value, metavar="NUMBER", help=text)
    add(
        "--solver",
        choices=list(SOLVERS),
        default="gradient",
        help="how the game is solved (default: gradient)",
    )
    text = "space of the samples; for the sphere they are scaled to norm one"
    add("--space", choices=["euclidean", "sphere"], default="euclidean", help=text)
    add("--class-weight", choices=["balanced"], help="give all classes the same total weight")
    add("--checkpoint", type=Path, help="file from which an interrupted fit continues")
    text = "scaling of the columns: auto is standard for named columns"
    add("--scale", choices=["auto", "standard", "none"], default="auto", help=text)
    text = "fraction of the rows to hold out; 0 trains on all rows (default: 0.2)"
    add("--holdout", type=float, default=0.2, help=text)
    add("--test", type=Path, help="data file to evaluate the model on")
    add("--seed", type=int, default=0, help="random seed (default: 0)")
    add("--quiet", action="store_true", help="show no progress bars")


def parse_number(text: str) -> int | float | str:
    """Return a number if the text is one, else the text, for the estimator's own checks."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def run(options: argparse.Namespace, parser: argparse.ArgumentParser) -> dict[str, Any]:
    """Check the arguments, then read, fit, evaluate and save."""
    check_arguments(options, parser)
    table = open_table(options.data)
    data = read_training_table(table, options)
    model = make_estimator(options, data.is_classification)
    test_data = read_test_table(table, data, options.test) if options.test else None
    holdout = 0.0 if options.test else options.holdout
    train, test = split_rows(data, holdout, options.seed)
    X, y = (data.X, data.y) if len(train) == len(data.y) else (data.X[train], data.y[train])
    scaler = fit_scaler(X)
    is_scaled = scales_columns(data, options)
    model = fit_scaled(model, X, y, scaler) if is_scaled else model.fit(X, y)
    metrics = measure(model, "training", X, y)
    if test_data is not None:
        metrics |= measure(model, "test", *test_data)
    elif len(test) > 1:
        metrics |= measure(model, "held-out", data.X[test], data.y[test])
    record = {
        "target": data.target,
        "rows": int(data.X.shape[0]),
        "holdout": float(holdout),
        "seed": options.seed,
        "scaled": is_scaled,
        "zero_based": getattr(table, "zero_based", None),
        "digest": digest_table(data),
        "spectrum": summarize_spectrum(model.kernel_, np.sqrt(scaler.var_), data.names),
    }
    if data.names is not None:
        model.feature_names_in_ = np.array(data.names, dtype=object)
    path = save_or_fall_back(model, options.output, metrics, {"fit": record})
    return {
        "data": str(options.data),
        "rows": record["rows"],
        "columns": int(data.X.shape[1]),
        "target": data.target,
        "task": "classification" if data.is_classification else "regression",
        "reason": data.reason,
        "columns scaled": is_scaled,
        "features": model.kernel_.n_components,
        "loss": model.loss,
        "C": model.C_,
        "smoothing": model.smoothing_,
        "search spectrum": model.spectrum_,
        "temperature": model.temperature_ if hasattr(model, "predict_proba") else None,
        "seconds of the game": round(float(model.history_["seconds"][-1]), 3),
        **metrics,
        "spectrum": record["spectrum"],
        "model": str(path),
        "bytes": path.stat().st_size,
    }


def check_arguments(options: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Exit with an error if an argument is wrong, before any data is read."""
    check_output(parser, options.output, (".safetensors",), options.data)
    check_seed(parser, options.seed)
    if not 0 <= options.holdout <= 0.9:
        parser.error(f"--holdout {options.holdout}: it must be from 0 to 0.9")
    if options.space == "sphere" and options.scale == "standard":
        parser.error("--scale standard is not possible with --space sphere: leave one out")
    if options.space == "euclidean" and options.solver == "equilibrium":
        parser.error("--solver equilibrium needs --space sphere: give that, or another solver")
    try:
        is_regression = options.task == "regression" or options.loss in REGRESSION_LOSSES
        configure(make_estimator(options, options.task == "classification" or not is_regression))
    except ValueError as error:
        parser.error(str(error))


def make_estimator(options: argparse.Namespace, is_classification: bool) -> Any:
    """Return the estimator with the parameters of the command line."""
    checkpoint = options.checkpoint and Checkpoint(options.checkpoint, options.checkpoint_every)
    parameters: dict[str, Any] = {
        "n_components": options.n_components,
        "max_components": options.max_components,
        "C": options.C,
        "smoothing": options.smoothing,
        "solver": options.solver,
        "space": Sphere(normalize=True) if options.space == "sphere" else "euclidean",
        "checkpoint": checkpoint,
        "random_state": options.seed,
        "verbose": 0 if options.quiet or not sys.stderr.isatty() else 1,
    }
    if options.loss is not None:
        parameters["loss"] = options.loss
    if is_classification:
        return FourierClassifier(class_weight=options.class_weight, **parameters)
    if options.class_weight:
        raise ValueError("--class-weight is not possible in a regression: leave it out.")
    return FourierRegressor(**parameters)


def measure(model: Any, name: str, X: Any, y: Array) -> dict[str, float]:
    """Return the accuracy and, if there are probabilities, the log loss of some rows; or R^2."""
    is_classifier = hasattr(model, "classes_")
    metrics = {f"{name} {'accuracy' if is_classifier else 'R^2'}": float(model.score(X, y))}
    if hasattr(model, "predict_proba"):
        loss = log_loss(model.predict_log_proba(X), y, model.classes_)
        metrics[f"{name} log loss"] = loss
    return metrics


def scales_columns(data: TrainingTable, options: argparse.Namespace) -> bool:
    """Return whether the columns are scaled to unit variance for the fit."""
    if options.space == "sphere" or options.scale == "none":
        return False
    return options.scale == "standard" or data.names is not None


def fit_scaled(model: Any, X: Any, y: Array, scaler: StandardScaler) -> Any:
    """Fit a model to scaled columns and return the model of the columns themselves."""
    return scale_model(model.fit(scaler.transform(X), y), scaler, inverse=True)


def save_or_fall_back(
    model: Any, path: Path, metrics: dict[str, float], description: dict[str, Any]
) -> Path:
    """Save a model; if that fails, save it in the folder of temporary files and raise."""
    try:
        return save(model, path, metrics, description)
    except OSError as error:
        fallback = Path(tempfile.gettempdir()) / f"notsorandom-{os.getpid()}.safetensors"
        try:
            save(model, fallback, metrics, description)
        except OSError:
            raise error from None
        raise OSError(f"{error}. The model is in {fallback} instead.") from error
