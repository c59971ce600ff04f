"""Fit a model to a data file, evaluate it on rows that were held out, and save it."""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

from scipy.sparse import issparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from notsorandom import Checkpoint, FourierClassifier, FourierRegressor, Sphere
from notsorandom.cli.loading import LoadedModel, digest_file, steps_of
from notsorandom.cli.scores import compute_scores
from notsorandom.cli.training import TrainingTable, read_training_table, split_rows
from notsorandom.data.files import open_data_file
from notsorandom.data.rows import Array
from notsorandom.display import column_importances
from notsorandom.display.inspection import describe_spectrum
from notsorandom.display.results import find_caution
from notsorandom.estimators.config import configure
from notsorandom.game.losses import REGRESSION_LOSSES
from notsorandom.io import save
from notsorandom.tabular import tabular_pipeline

# Columns whose importances are kept in the file, and rows that they are computed from.
N_IMPORTANCES, IMPORTANCE_ROWS = 20, 10_000


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
    is that of an SVM. C, smoothing and spectrum are chosen on held-out parts of the training rows.
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
    record = {
        "target": data.target,
        "holdout": options.holdout,
        "seed": options.seed,
        "importances": find_importances(model, X),
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
        "caution": find_caution(len(test), *list(scores["test"].values())[:3]) or None
        if len(test)
        else "no rows were held out: nothing is known about new rows",
        "saved as": str(path),
        "bytes": path.stat().st_size,
        "seconds in all": round(time.perf_counter() - start, 2),
    }


def make_estimator(options: argparse.Namespace, is_classification: bool) -> Any:
    """Return the estimator with the parameters of the command line."""
    parameters: dict[str, Any] = {
        **{name: getattr(options, name) for name in ("n_components", "C", "smoothing", "solver")},
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
    model = tabular_pipeline(estimator)
    if options.scale == "standard":
        model.set_params(encode__number__scale=scaler)
    elif options.scale == "none" or options.space == "sphere":
        model.set_params(encode__number__scale="passthrough")
    return model


def measure(model: Any, X: Any, y: Array) -> dict[str, float]:
    """Return the score of some rows, its standard error, that of guessing, and others."""
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


def find_importances(model: Any, X: Any) -> dict[str, float] | None:
    """Return the columns that matter most with their shares; None on the sphere."""
    last = steps_of(model)[-1]
    if not last.kernel_.space.is_vector_space:
        return None
    shares = column_importances(model, X[:IMPORTANCE_ROWS])
    return dict(list(shares.items())[:N_IMPORTANCES])


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
