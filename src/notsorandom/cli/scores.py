"""Scores of a model, in one pass over blocks of rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import confusion_matrix

from notsorandom.cli.loading import counted_from, encode
from notsorandom.data.rows import Array
from notsorandom.display.calibration import log_loss
from notsorandom.display.results import accuracy_error


def compute_scores(model: Any, blocks: Iterable[tuple[Any, Array]]) -> dict[str, Any]:
    """Return the scores of a model on blocks of samples and targets, that of guessing third."""
    return (score_classifier if is_classifier(model) else score_regressor)(model, blocks)


def score_classifier(model: Any, blocks: Iterable[tuple[Any, Array]]) -> dict[str, Any]:
    """Return accuracy and log loss, and recall and precision per class."""
    classes, total_loss = model.classes_, 0.0
    has_probabilities = hasattr(model, "predict_proba")
    counts = np.zeros((len(classes), len(classes)), dtype=int)  # (true, predicted)
    for X, y in blocks:
        with counted_from(counts.sum()):
            last, encoded = encode(model, X)
            counts += confusion_matrix(y, last.predict(encoded), labels=classes)
        if has_probabilities:
            total_loss += len(y) * log_loss(last.predict_log_proba(encoded), y, classes)
    n_rows = int(counts.sum())
    accuracy = float(counts.trace() / n_rows)
    result: dict[str, Any] = {
        "rows": n_rows,
        "accuracy": accuracy,
        "standard error of accuracy": accuracy_error(accuracy, n_rows),
        "accuracy of guessing the largest class": float(counts.sum(axis=1).max() / n_rows),
    }
    if has_probabilities:
        result["log loss"] = float(total_loss / n_rows)
    for k, label in enumerate(classes.tolist()):
        n_true, n_predicted = int(counts[k].sum()), int(counts[:, k].sum())
        result[f"class {label}"] = {
            "rows": n_true,
            "recall": float(counts[k, k] / n_true) if n_true else None,
            "precision": float(counts[k, k] / n_predicted) if n_predicted else None,
        }
    return result


def score_regressor(model: Any, blocks: Iterable[tuple[Any, Array]]) -> dict[str, Any]:
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
