"""Compute the accuracy or R^2 of a model on a data file of any size.

For example:
  notsorandom evaluate model.skops test.csv
  notsorandom evaluate model.skops test.parquet --target label --json

Prints the accuracy or R^2 with its standard error, and that of guessing the largest class or the
mean; recall and precision per class, and the log loss if the model has probabilities; or root mean
squared error and mean absolute error. By default the target is the column of that name in the
training data.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import confusion_matrix

from notsorandom.cli.arguments import add_model_and_data
from notsorandom.cli.loading import LoadedModel, counted_from, encode, is_training_file
from notsorandom.data.files import open_data_file
from notsorandom.data.rows import Array
from notsorandom.display.calibration import log_loss


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
    result = evaluate(loaded.model, loaded.labelled_blocks(file, options.target))
    if is_training_file(options.data, loaded.record):
        result["caution"] = (
            "the model was fitted to this file: these figures say little about new rows"
        )
    return result


def evaluate(model: Any, blocks: Iterable[tuple[Any, Array]]) -> dict[str, Any]:
    """Return the scores of a model on blocks of samples and targets; see the module."""
    return (evaluate_classifier if is_classifier(model) else evaluate_regressor)(model, blocks)


def evaluate_classifier(model: Any, blocks: Iterable[tuple[Any, Array]]) -> dict[str, Any]:
    """Return accuracy and log loss, and recall and precision per class."""
    classes, n_rows, total_loss = model.classes_, 0, 0.0
    has_probabilities = hasattr(model, "predict_proba")
    counts = np.zeros((len(classes), len(classes)), dtype=int)  # (true, predicted)
    for X, y in blocks:
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


def evaluate_regressor(model: Any, blocks: Iterable[tuple[Any, Array]]) -> dict[str, Any]:
    """Return R^2 with its standard error, root mean squared error and mean absolute error."""
    n_rows, absolute_errors, origin, unit = 0, 0.0, None, 1.0
    moments = np.zeros((4, 4))  # sums of products of 1, y, y^2 and the squared error
    for X, y in blocks:
        with counted_from(n_rows):
            predictions = model.predict(X)
        if predictions.ndim != 1:
            raise ValueError("The model has several targets: evaluate it by its method score.")
        if origin is None:  # sums of powers of large numbers would lose precision
            origin, unit = y[0], np.abs(y - y[0]).max() or 1.0
        errors, shifted = (predictions - y) / unit, (y - origin) / unit
        terms = np.stack([np.ones(len(y)), shifted, shifted**2, errors**2])
        moments += terms @ terms.T
        absolute_errors += unit * np.abs(errors).sum()
        n_rows += len(y)
    moments /= n_rows
    _, mean, _, squared_error = moments[0]
    spread = np.array([mean**2, -2 * mean, 1, 0])  # (y - mean)^2, of these terms
    variance = moments[0] @ spread
    score = 1 - squared_error / variance if variance > 0 else 0.0
    # By the delta method, as the error of a ratio of means.
    difference = np.array([0, 0, 0, 1]) - (1 - score) * spread
    deviation = np.sqrt(max(difference @ moments @ difference, 0.0)) / (variance or 1.0)
    return {
        "rows": n_rows,
        "R^2": float(score),
        "standard error of R^2": float(deviation / np.sqrt(n_rows)),
        "R^2 of guessing the mean": 0.0,
        "root mean squared error": float(unit * np.sqrt(squared_error)),
        "mean absolute error": float(absolute_errors / n_rows),
    }
