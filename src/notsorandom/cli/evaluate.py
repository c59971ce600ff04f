"""``notsorandom evaluate``."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import confusion_matrix

from notsorandom.cli.arguments import add_model_and_data
from notsorandom.cli.loading import (
    LoadedModel,
    counted_from,
    encode,
    is_training_file,
    to_labels,
    to_numbers,
)
from notsorandom.data.files import open_data_file
from notsorandom.display.calibration import log_loss

SUMMARY = "compute the accuracy or R^2 of a model on a data file of any size"
EXAMPLES = """\
examples:
  notsorandom evaluate model.skops test.csv
  notsorandom evaluate model.skops test.parquet --target label --json

Prints the accuracy with its standard error, that of guessing the largest class, recall and
precision per class, and the log loss if the model has probabilities; or R^2, root mean squared
error and mean absolute error. By default the target is the column of that name in the training
data."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_model_and_data(parser, "a data file with the target")
    parser.add_argument("--target", help="name of the target column")


def run(options: argparse.Namespace, parser: argparse.ArgumentParser) -> dict[str, Any]:
    """Evaluate in one pass over the blocks of a file."""
    loaded = LoadedModel.open(options.model)
    if not hasattr(loaded.model, "predict"):
        parser.error(f"{options.model} holds features, which have no predictions")
    file = open_data_file(options.data, max_bytes=options.max_bytes)
    evaluate = evaluate_classifier if is_classifier(loaded.model) else evaluate_regressor
    result = evaluate(loaded.model, loaded.labelled_blocks(file, options.target))
    if is_training_file(options.data, loaded.record):
        result["caution"] = (
            "the model was fitted to this file: these figures say little about new rows"
        )
    return result


def evaluate_classifier(model: Any, blocks: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
    """Return accuracy and log loss, and recall and precision per class."""
    classes, n_rows, total_loss = model.classes_, 0, 0.0
    has_probabilities = hasattr(model, "predict_proba")
    counts = np.zeros((len(classes), len(classes)), dtype=int)  # (true, predicted)
    for X, target in blocks:
        y = to_labels(target, classes, n_rows)
        with counted_from(n_rows):
            last, encoded = encode(model, X)
            counts += confusion_matrix(y, last.predict(encoded), labels=classes)
        if has_probabilities:
            total_loss += len(y) * log_loss(last.predict_log_proba(encoded), y, classes)
        n_rows += len(y)
    correct, n_true, n_predicted = np.diag(counts), counts.sum(axis=1), counts.sum(axis=0)
    accuracy = float(correct.sum() / n_rows)
    result: dict[str, Any] = {
        "rows": n_rows,
        "accuracy": accuracy,
        "standard error of accuracy": float(np.sqrt(accuracy * (1 - accuracy) / n_rows)),
        "accuracy of guessing the largest class": float(n_true.max() / n_rows),
    }
    if has_probabilities:
        result["log loss"] = float(total_loss / n_rows)
    for k, label in enumerate(classes.tolist()):
        result[f"class {label}"] = {
            "rows": int(n_true[k]),
            "recall": float(correct[k] / n_true[k]) if n_true[k] else None,
            "precision": float(correct[k] / n_predicted[k]) if n_predicted[k] else None,
        }
    return result


def evaluate_regressor(model: Any, blocks: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
    """Return R^2, root mean squared error and mean absolute error."""
    origin, n_rows = None, 0
    sums = np.zeros(4)  # of targets, squared targets, squared errors, absolute errors
    for X, target in blocks:
        y = to_numbers(target, n_rows)
        with counted_from(n_rows):
            predictions = model.predict(X)
        if predictions.ndim != 1:
            raise ValueError(
                f"The model predicts {predictions.shape[1]} values per row, but a data file has "
                "one target: evaluate it in Python, with its method score."
            )
        # Targets are shifted: sums of large squares would lose precision.
        origin = y[0] if origin is None else origin
        errors, shifted = predictions - y, y - origin
        sums += [shifted.sum(), shifted @ shifted, errors @ errors, np.abs(errors).sum()]
        n_rows += len(y)
    total, squares, squared_errors, absolute_errors = sums
    variation = squares - total**2 / n_rows
    return {
        "rows": n_rows,
        "R^2": float(1 - squared_errors / variation) if variation > 0 else None,
        "root mean squared error": float(np.sqrt(squared_errors / n_rows)),
        "mean absolute error": float(absolute_errors / n_rows),
    }
