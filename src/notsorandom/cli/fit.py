"""Fit a model to a data file, evaluate it on rows that were held out, and save it."""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from notsorandom import Checkpoint, FourierClassifier, FourierRegressor, Sphere
from notsorandom.cli.loading import (
    UNNAMED_TARGET,
    LoadedModel,
    compute_scores,
    digest_file,
    drop_unlabelled,
    steps_of,
    to_targets,
)
from notsorandom.data.checks import check_columns, format_names
from notsorandom.data.coerce import take_rows
from notsorandom.data.column_kinds import to_text
from notsorandom.data.files import DataFile, open_data_file
from notsorandom.data.rows import FLOATS, Array
from notsorandom.display import column_importances
from notsorandom.display.inspection import describe_spectrum
from notsorandom.display.results import find_caution
from notsorandom.estimators.config import configure
from notsorandom.game.losses import CLASSIFICATION_LOSSES, REGRESSION_LOSSES
from notsorandom.io import save
from notsorandom.tabular import tabular_pipeline

# A target with more distinct integers than this is taken as a regression target.
MAX_CLASSES = 20
# The values of --linear, as the estimators have them.
LINEAR = {"auto": "auto", "yes": True, "no": False}
# Columns whose importances are kept in the file.
N_IMPORTANCES = 20


def fit(options: argparse.Namespace) -> dict[str, Any]:
    """Fit a model to a data file and save it.

    For example:
      notsorandom fit train.csv --target label -o model.skops
      notsorandom fit house.parquet --target price --drop id,address -o price.skops
      notsorandom fit digits.npz --loss hinge --C 1 -o svm.skops     # with arrays X and y
      notsorandom fit embeddings.npz --space sphere -o model.skops
      notsorandom fit train.libsvm --holdout 0 --checkpoint game.npz -o model.skops

    Reads .csv, .tsv and .txt (also .gz), .parquet, .npz and .libsvm. Delimiter, decimal comma and
    encoding of text are found. Columns may hold numbers, categories, booleans and dates, with gaps;
    the result says what each was taken for. The columns of .npz and .libsvm files are numbers,
    which are scaled with --scale standard only.

    A fifth of the rows is held out to test the model. A target of integers is a classification
    target if it has at most 20 distinct values. A model of classes has probabilities, unless --loss
    is a hinge loss. C, smoothing and spectrum are chosen on held-out parts of the training rows.
    """
    start = time.perf_counter()
    is_regression = options.task == "regression" or options.loss in REGRESSION_LOSSES
    try:
        configure(make_estimator(options, options.task == "classification" or not is_regression))
    except ValueError as error:
        options.parser.error(str(error))
    file = open_data_file(options.data, max_bytes=options.max_bytes)
    data = read_training_table(file, options)
    train, test = split_rows(data, options.holdout, options.seed)
    X, y = data.take(train)
    model = make_model(options, data)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Columns left out")  # the result has them
        model.fit(X, y)
    scores = {"training": measure(model, X, y)}
    if len(test):
        scores["test"] = measure(model, *data.take(test))
    is_explained = hasattr(steps_of(model)[-1], "feature_importances_")  # not on the sphere
    shares = column_importances(model) if is_explained else {}
    record = {
        "target": data.target,
        "holdout": options.holdout,
        "seed": options.seed,
        "importances": dict(list(shares.items())[:N_IMPORTANCES]) or None,
        "zero_based": is_zero_based(options.data) if issparse(data.X) else "auto",
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
        **LoadedModel(model, record).describe(),
        "spectrum": describe_spectrum(steps_of(model)[-1].kernel_),
        **scores,
        "caution": caution_of(scores["test"], len(test))
        if len(test)
        else "no rows were held out: nothing is known about new rows",
        "saved as": str(path),
        "bytes": path.stat().st_size,
        "seconds in all": round(time.perf_counter() - start, 2),
    }


def caution_of(scores: Mapping[str, Any], n_rows: int) -> str | None:
    """Return why the scores of held-out rows should not be relied on, if so."""
    guess = scores.get("log loss of guessing the shares", 0.0)
    log_ratio = n_rows * (guess - scores.get("log loss", 0.0))
    score, error, guessed = list(scores.values())[:3]
    return find_caution(n_rows, score, error, guessed, log_ratio) or None


def make_estimator(options: argparse.Namespace, is_classification: bool) -> Any:
    """Return the estimator with the parameters of the command line."""
    parameters: dict[str, Any] = {
        **{name: getattr(options, name) for name in ("n_components", "C", "smoothing", "solver")},
        "linear": LINEAR[options.linear],
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
    scaler = StandardScaler(with_mean=not issparse(data.X))
    if not hasattr(data.X, "columns"):
        return make_pipeline(scaler, estimator) if options.scale == "standard" else estimator
    if options.scale == "auto" and options.space != "sphere":
        return tabular_pipeline(estimator, numbers=options.numbers)
    impute = SimpleImputer(strategy="median", add_indicator=True)
    numbers = make_pipeline(scaler, impute) if options.scale == "standard" else impute
    return tabular_pipeline(estimator, numbers="raw").set_params(encode__number=numbers)


def measure(model: Any, X: Any, y: Array) -> dict[str, float]:
    """Return the score of some rows, its standard error, the score of guessing, and others."""
    scores = compute_scores(model, [(X, y)])
    return {
        name: value
        for name, value in scores.items()
        if isinstance(value, float) and math.isfinite(value)
    }


def is_zero_based(path: Path) -> bool:
    """Return whether a LIBSVM file numbers its columns from 0."""
    with path.open("rb") as file:
        return any(b" 0:" in line for line in file)


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


# Training data.


@dataclass(frozen=True)
class TrainingTable:
    """Samples and target of a file, and the task that follows from the target."""

    X: Any  # data frame, ndarray or sparse array
    y: Array
    target: str
    is_classification: bool
    reason: str  # why it is a classification, or a regression
    n_unlabelled: int = 0  # rows without target, which are left out

    def take(self, rows: Array) -> tuple[Any, Array]:
        """Return samples and targets of some rows."""
        return take_rows(self.X, rows), self.y[rows]


def read_training_table(file: DataFile, options: argparse.Namespace) -> TrainingTable:
    """Read a file and find out which task it is for."""
    X, target, column = read_columns(file, options)
    n_given = len(column)
    X, column = drop_unlabelled(X, column)
    if not len(column):
        raise ValueError(f"{file.path}: the target {target!r} is empty: give another --target.")
    is_classification, reason = choose_task(column, options)
    if not is_classification:
        y = to_targets(column, None)
    elif column.dtype.kind not in "biuf":
        y = to_text(column).to_numpy().astype(str)
    elif not (column == column.round()).all():
        raise ValueError(
            f"The target {target!r} has fractions, which are no classes: give --task regression, "
            "and no --loss of classes."
        )
    else:  # integers with gaps are read as floats
        y = column.to_numpy(np.int64 if column.dtype.kind == "f" else column.dtype)
    return TrainingTable(X, y, target, is_classification, reason, n_given - len(column))


def read_columns(file: DataFile, options: argparse.Namespace) -> tuple[Any, str, Any]:
    """Return the samples, the name of the target, and its column."""
    if not file.is_frame:
        if options.drop or options.columns or options.target not in (None, UNNAMED_TARGET):
            raise ValueError(
                f"{file.path} has no column names, and its target is y: leave --target, --drop and "
                "--columns out."
            )
        X, y = file.read_matrix()
        if y is None:
            raise ValueError(f"{file.path} has no target: give an .npz file with X and y.")
        return X if X.dtype in FLOATS else X.astype(np.float64), UNNAMED_TARGET, y
    if options.target is None:
        raise ValueError(f"Give --target, one of {format_names(file.columns)}.")
    left_out = {options.target: None, **dict.fromkeys(options.drop)}
    check_columns(file.path, file.columns, [*left_out, *options.columns])
    wanted = dict.fromkeys(options.columns or file.columns)
    names = [name for name in wanted if name not in left_out]
    frame = file.read([*names, options.target])
    return frame[names], options.target, frame[options.target]


def choose_task(column: Any, options: argparse.Namespace) -> tuple[bool, str]:
    """Return whether the target is for classification, and why."""
    if options.task != "auto":
        return options.task == "classification", "given by --task"
    if options.loss is not None:
        return options.loss in CLASSIFICATION_LOSSES, "follows from --loss"
    if column.dtype.kind == "M":
        raise ValueError("The target holds dates: give a --target of classes or numbers.")
    n_values = column.nunique()
    if column.dtype.kind not in "iuf":
        return True, f"{n_values:,} distinct {'booleans' if column.dtype.kind == 'b' else 'texts'}"
    if not (column == column.round()).all():
        return False, "the target has fractions"
    return n_values <= MAX_CLASSES, f"{n_values:,} distinct integers"


def split_rows(data: TrainingTable, holdout: float, seed: int) -> tuple[Array, Array]:
    """Return rows to train on and rows to test on, stratified by class if possible.

    Every class has a training row.
    """
    rows = candidates = np.arange(len(data.y))
    n_test, stratify = round(holdout * len(rows)), None
    if not n_test:
        return rows, rows[:0]
    if data.is_classification:
        _, first, codes, counts = np.unique(data.y, True, True, True)
        candidates = rows[counts[codes] > 1]
        if (counts > 1).sum() <= min(n_test, len(candidates) - n_test):
            stratify = data.y[candidates]
        else:
            candidates = np.setdiff1d(rows, first)
    if n_test > len(candidates) - 2:
        raise ValueError(
            f"--holdout {holdout}: too few of {len(rows)} rows are left to train on. Give more "
            "rows, or --holdout 0."
        )
    _, test = train_test_split(candidates, test_size=n_test, random_state=seed, stratify=stratify)
    return np.setdiff1d(rows, test), np.sort(test)
