"""``notsorandom evaluate``."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.metrics import confusion_matrix

from notsorandom.cli.arguments import add_model_and_data
from notsorandom.cli.loading import open_model_and_table
from notsorandom.data.rows import Array
from notsorandom.data.tables import Block
from notsorandom.display.calibration import log_loss
from notsorandom.estimators.classifier import log_probabilities
from notsorandom.game.dual import codes_from_scores

SUMMARY = "compute the accuracy or R^2 of a model on a data file of any size"
EXAMPLES = """\
examples:
  notsorandom evaluate model.safetensors test.csv
  notsorandom evaluate model.safetensors test.parquet --target label --json

Prints the accuracy, recall and precision per class, and the log loss if the model has
probabilities; or R^2, root mean squared error and mean absolute error. By default the target is the
column with the same name as in the training data."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_model_and_data(parser, "a data file with the target")
    parser.add_argument("--target", help="name of the target column")


def run(options: argparse.Namespace, parser: argparse.ArgumentParser) -> dict[str, Any]:
    """Check the arguments, then evaluate in one pass over the blocks of a table."""
    opened = open_model_and_table(options.model, options.data)
    model = opened.model
    if not hasattr(model, "predict"):
        parser.error(f"{options.model} is a {type(model).__name__}, which has no predictions")
    target = opened.resolve_target(options.target)
    blocks = opened.table.blocks(opened.features, target, target_type=opened.target_type)
    evaluate = evaluate_regressor if opened.is_regression else evaluate_classifier
    return evaluate(model, blocks)


def evaluate_classifier(model: Any, blocks: Iterable[Block]) -> dict[str, Any]:
    """Return the accuracy, the log loss, and recall and precision per class."""
    classes, n_rows, total_loss = model.classes_, 0, 0.0
    has_probabilities = hasattr(model, "predict_proba")
    counts = np.zeros((len(classes), len(classes)), dtype=int)  # (true, predicted)
    for block in blocks:
        check_classes(block.y, classes, n_rows)
        scores = model.decision_function(block.X).reshape(len(block), -1)
        counts += confusion_matrix(block.y, classes[codes_from_scores(scores)], labels=classes)
        if has_probabilities:
            logarithms = log_probabilities(scores, model.temperature_)
            total_loss += len(block) * log_loss(logarithms, block.y, classes)
        n_rows += len(block)
    correct, n_true, n_predicted = np.diag(counts), counts.sum(axis=1), counts.sum(axis=0)
    result: dict[str, Any] = {"rows": n_rows, "accuracy": float(correct.sum() / n_rows)}
    if has_probabilities:
        result["log loss"] = total_loss / n_rows
    for k, label in enumerate(classes.tolist()):
        result[f"class {label}"] = {
            "rows": int(n_true[k]),
            "recall": float(correct[k] / n_true[k]) if n_true[k] else None,
            "precision": float(correct[k] / n_predicted[k]) if n_predicted[k] else None,
        }
    return result


def check_classes(y: Any, classes: Array, first_row: int = 0) -> None:
    """Raise ValueError if a target is not one of the classes."""
    unknown = np.flatnonzero(~np.isin(y, classes))
    if len(unknown):
        known = ", ".join(map(repr, classes.tolist()))
        raise ValueError(
            f"the class in row {first_row + unknown[0] + 1} of the data is "
            f"{y[unknown[0]].item()!r}, but the classes of the model are {known[:200]}."
        )


def evaluate_regressor(model: Any, blocks: Iterable[Block]) -> dict[str, Any]:
    """Return R^2, root mean squared error and mean absolute error."""
    origin, n_rows = None, 0
    sums = np.zeros(4)  # of targets, squared targets, squared errors, absolute errors
    for block in blocks:
        y, predictions = np.asarray(block.y, dtype=np.float64), model.predict(block.X)
        if predictions.ndim != 1:
            raise ValueError(
                f"The model predicts {predictions.shape[1]} values per row, but a data file has "
                "one target: evaluate it in Python, with its method score."
            )
        # Targets are shifted: sums of large squares would lose precision.
        origin = y[0] if origin is None else origin
        errors, shifted = predictions - y, y - origin
        sums += [shifted.sum(), shifted @ shifted, errors @ errors, np.abs(errors).sum()]
        n_rows += len(block)
    total, squares, squared_errors, absolute_errors = sums
    variation = squares - total**2 / n_rows
    return {
        "rows": n_rows,
        "R^2": float(1 - squared_errors / variation) if variation > 0 else None,
        "root mean squared error": float(np.sqrt(squared_errors / n_rows)),
        "mean absolute error": float(absolute_errors / n_rows),
    }
