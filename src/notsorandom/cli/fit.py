"""``notsorandom fit``."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import is_classifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from notsorandom import Checkpoint, FourierClassifier, FourierRegressor, Sphere
from notsorandom.cli.arguments import add_limit, check_output, check_seed
from notsorandom.cli.evaluate import evaluate_classifier
from notsorandom.cli.loading import LoadedModel, digest_file, last_step
from notsorandom.cli.training import (
    TrainingTable,
    read_test_table,
    read_training_table,
    split_rows,
)
from notsorandom.data.files import open_data_file
from notsorandom.data.rows import Array
from notsorandom.display.inspection import summarize_spectrum
from notsorandom.estimators.config import SOLVERS, configure
from notsorandom.game.losses import CLASSIFICATION_LOSSES, REGRESSION_LOSSES
from notsorandom.io import save
from notsorandom.tabular import tabular_pipeline

SUMMARY = "fit a model to a data file and save it"
EXAMPLES = """\
examples:
  notsorandom fit train.csv --target label -o model.skops
  notsorandom fit house.parquet --target price --drop id,address -o price.skops
  notsorandom fit digits.npz --loss hinge --C 1 -o svm.skops     # with arrays X and y
  notsorandom fit embeddings.npz --space sphere -o model.skops
  notsorandom fit train.libsvm --holdout 0 --checkpoint game.npz -o model.skops

Reads .csv, .tsv and .txt (also .gz), .parquet, .npz and .libsvm. Delimiter, decimal comma and
encoding of text are found. Columns may hold numbers, categories, booleans and dates, with gaps; the
result says what each was taken for. The columns of .npz and .libsvm files are numbers, which are
scaled with --scale standard only.

A fifth of the rows is held out to evaluate the model, unless --test gives a test file. A target of
integers is a classification target if it has at most 20 distinct values. A model of classes has
probabilities, unless --loss is that of an SVM. C, smoothing and spectrum are chosen on held-out
parts of the training rows."""
# Numbers, or "auto" where the estimator allows it. The estimator checks them.
NUMBERS = {
    "n_components": "number of features, or auto",
    "C": "inverse regularisation, or auto: chosen on held-out training rows",
    "smoothing": "noise in units of the median distance of samples, or auto; higher is smoother",
}
# Held-out rows below which a score says little.
FEW_ROWS = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add, default = parser.add_argument, FourierClassifier()
    add("data", type=Path, help="the training data")
    add("--target", help="name of the target column")
    add("-o", "--output", type=Path, required=True, help="the .skops file to write")
    tasks = ["auto", "classification", "regression"]
    add("--task", choices=tasks, default="auto", help="auto decides by the target")
    text = "loss of the model; decides the task if --task doesn't"
    losses = [*CLASSIFICATION_LOSSES, *REGRESSION_LOSSES]
    add("--loss", choices=losses, help=f"{text} (default: {default.loss}, or squared)")
    add("--columns", default="", metavar="NAMES", help="comma-separated columns to learn from")
    add("--drop", default="", metavar="NAMES", help="comma-separated columns to ignore")
    for flag, text in NUMBERS.items():
        value = getattr(default, flag)
        name = f"--{flag.replace('_', '-')}"
        text = f"{text} (default: %(default)s)"
        add(name, type=parse_number, default=value, metavar="NUMBER", help=text)
    text = "how the game is solved (default: gradient)"
    add("--solver", choices=list(SOLVERS), default="gradient", help=text)
    text = "space of the samples; for the sphere they are scaled to norm one"
    add("--space", choices=["euclidean", "sphere"], default="euclidean", help=text)
    add("--class-weight", choices=["balanced"], help="give all classes the same total weight")
    add("--checkpoint", type=Path, help="file from which an interrupted fit continues")
    text = "scaling of numbers: auto scales those of tables, but not those of arrays"
    add("--scale", choices=["auto", "standard", "none"], default="auto", help=text)
    text = "fraction of the rows to hold out; 0 trains on all rows (default: 0.2)"
    add("--holdout", type=float, default=0.2, help=text)
    add("--test", type=Path, help="data file to evaluate the model on")
    add("--seed", type=int, default=0, help="random seed (default: 0)")
    add("--quiet", action="store_true", help="show no progress bars")
    add_limit(parser)


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
    start = time.perf_counter()
    check_arguments(options, parser)
    file = open_data_file(options.data, max_bytes=options.max_bytes)
    data = read_training_table(file, options)
    test_data = read_test_table(data, options.test, options.max_bytes) if options.test else None
    holdout = 0.0 if options.test else options.holdout
    train, test = split_rows(data, holdout, options.seed)
    X, y = data.take(train)
    model = make_model(options, data)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Columns left out")  # the result has them
        model.fit(X, y)
    scores = {"training": measure(model, X, y)}
    X_new, y_new = data.take(test) if test_data is None else test_data
    if len(y_new):
        scores["held-out" if test_data is None else "test"] = measure(model, X_new, y_new)
    record = {
        "target": data.target,
        "holdout": float(holdout),
        "seed": options.seed,
        "drop": options.drop,
        "columns": options.columns,
        "zero_based": is_zero_based(options.data) if issparse(data.X) else None,
        "digest": digest_file(options.data),
        "bytes": options.data.stat().st_size,
    }
    metrics = {f"{part} {name}": v for part, score in scores.items() for name, v in score.items()}
    path = save_or_fall_back(model, options.output, metrics, {"fit": record})
    return {
        "data": str(options.data),
        "file read as": file.dialect or None,
        "rows": len(data.y),
        "rows without target, left out": data.n_unlabelled or None,
        "reason": data.reason,
        **LoadedModel(model, {}, record).describe(),
        "spectrum": describe_spectrum(model, X),
        **scores,
        "caution": find_caution(list(scores.values()), len(y_new)),
        "saved as": str(path),
        "bytes": path.stat().st_size,
        "seconds in all": round(time.perf_counter() - start, 2),
    }


def check_arguments(options: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Exit with an error if an argument is wrong, before any data is read."""
    check_output(parser, options.output, (".skops",), options.data)
    check_seed(parser, options.seed)
    if not 0 <= options.holdout <= 0.9:
        parser.error(f"--holdout {options.holdout}: it must be from 0 to 0.9")
    if options.columns and options.drop:
        parser.error("--columns and --drop: give only one of them")
    if options.space == "sphere" and options.scale == "standard":
        parser.error("--scale standard is not possible with --space sphere: leave one out")
    try:
        is_regression = options.task == "regression" or options.loss in REGRESSION_LOSSES
        configure(make_estimator(options, options.task == "classification" or not is_regression))
    except ValueError as error:
        parser.error(str(error))


def make_estimator(options: argparse.Namespace, is_classification: bool) -> Any:
    """Return the estimator with the parameters of the command line."""
    parameters: dict[str, Any] = {
        "n_components": options.n_components,
        "C": options.C,
        "smoothing": options.smoothing,
        "solver": options.solver,
        "space": Sphere(normalize=True) if options.space == "sphere" else "euclidean",
        "checkpoint": options.checkpoint and Checkpoint(options.checkpoint),
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


def make_model(options: argparse.Namespace, data: TrainingTable) -> Any:
    """Return the model of a table, or of an array."""
    estimator = make_estimator(options, data.is_classification)
    if data.is_frame:
        model = tabular_pipeline(estimator)
        if options.scale == "standard":
            model.set_params(encode__number__scale=StandardScaler())
            model["encode"].set_output(transform="pandas")
        if options.scale == "none" or options.space == "sphere":
            model.set_params(encode__number__scale="passthrough")
        return model
    if options.scale != "standard":
        return estimator
    return make_pipeline(StandardScaler(with_mean=not issparse(data.X)), estimator)


def measure(model: Any, X: Any, y: Array) -> dict[str, float]:
    """Return the score of some rows, its standard error, that of guessing, and others."""
    if is_classifier(model):
        found = evaluate_classifier(model, [(X, y)])
        return {name: value for name, value in found.items() if isinstance(value, float)}
    squares, spread = (model.predict(X) - y) ** 2, (y - y.mean()) ** 2
    score = 1 - squares.mean() / spread.mean() if spread.any() else 0.0
    # By the delta method, as the error of a ratio of means.
    errors = (squares - (1 - score) * spread) / (spread.mean() or 1.0)
    return {
        "R^2": float(score),
        "standard error of R^2": float(errors.std() / np.sqrt(len(y))),
        "R^2 of guessing the mean": 0.0,
    }


def find_caution(scores: list[dict[str, float]], n_new: int) -> str | None:
    """Return why the score on new rows should not be relied on, if that is so."""
    if len(scores) == 1:
        return "no rows were held out: nothing is known about new rows"
    if n_new < FEW_ROWS:
        return f"{n_new} rows are too few to tell how good the model is"
    score, error, guess, *_ = scores[-1].values()
    return "the model is not clearly better than guessing" if score < guess + 2 * error else None


def is_zero_based(path: Path) -> bool:
    """Return whether a LIBSVM file numbers its columns from 0."""
    with path.open("rb") as file:
        return any(b" 0:" in line for line in file)


def describe_spectrum(model: Any, X: Any) -> dict[str, Any]:
    """Return a summary of the frequencies, with the encoded columns that drive them."""
    last = last_step(model)
    names = getattr(last, "feature_names_in_", None)
    if names is None:
        return summarize_spectrum(last.kernel_)
    columns = model[:-1].transform(X).to_numpy()
    return summarize_spectrum(last.kernel_, columns.std(axis=0), names)


def save_or_fall_back(
    model: Any, path: Path, metrics: dict[str, float], description: dict[str, Any]
) -> Path:
    """Save a model; if that fails, save it in a new folder of temporary files and raise."""
    try:
        return save(model, path, metrics, description)
    except OSError as error:
        try:
            fallback = Path(tempfile.mkdtemp(prefix="notsorandom-")) / "model.skops"
            save(model, fallback, metrics, description)
        except OSError:
            raise error from None
        raise OSError(f"{error}. The model is in {fallback} instead.") from error
