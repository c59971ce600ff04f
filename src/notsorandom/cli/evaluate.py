"""``notsorandom evaluate``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from notsorandom.cli.arguments import Commands
from notsorandom.cli.loading import open_both, target_of, target_type
from notsorandom.cli.output import tell
from notsorandom.data.rows import Array

EXAMPLES = """\
examples:
  notsorandom evaluate model.safetensors test.csv
  notsorandom evaluate model.safetensors test.parquet --target label --json

The target is by default the column that has the name it had at fit."""


def add_evaluate(commands: Commands) -> None:
    """Describe ``notsorandom evaluate``."""
    evaluate = commands.add_parser(
        "evaluate",
        help="measure a model on the rows of a file, of any size",
        description="Compare what a model predicts with a file's target: accuracy and the classes' "
        "recall\nand precision, or R^2 and the typical error.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    evaluate.add_argument("model", type=Path, help="a .safetensors file of a model")
    evaluate.add_argument("data", type=Path, help="rows with their target")
    evaluate.add_argument("--target", help="name of the target's column")
    evaluate.add_argument("--json", action="store_true", help="print it as JSON")
    evaluate.set_defaults(run=run_evaluate)


def run_evaluate(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Measure a model block by block."""
    served = open_both(options.model, options.data)
    model, table = served.model, served.table
    if not hasattr(model, "predict"):
        parser.error(f"{options.model} is a {type(model).__name__}, which predicts nothing")
    target = target_of(served, options.target)
    kind = target_type(model)
    blocks = table.blocks(served.features, target, target_type=kind or np.dtype(float))
    measured: Any = Residuals() if kind is None else Confusion(model.classes_)
    for block in blocks:
        assert block.y is not None, "a target was asked for"
        measured.add(block.y, model.predict(block.X), block.first_row)
    tell({"rows": measured.n_rows, **measured.summary()}, options.json)
    return 0


class Confusion:
    """How often each class was taken for each."""

    def __init__(self, classes: Array) -> None:
        self.classes = classes
        self.counts = np.zeros((len(classes), len(classes)), dtype=int)  # (true, predicted)

    @property
    def n_rows(self) -> int:
        """Rows seen so far."""
        return int(self.counts.sum())

    def add(self, true: Array, predicted: Array, first_row: int) -> None:
        """Take in a block."""
        check_known(true, self.classes, first_row)
        places = np.searchsorted(self.classes, true), np.searchsorted(self.classes, predicted)
        np.add.at(self.counts, places, 1)

    def summary(self) -> dict[str, Any]:
        """Accuracy, and what became of each class."""
        right = np.diag(self.counts)
        found: dict[str, Any] = {"accuracy": float(right.sum() / self.counts.sum())}
        true, predicted = self.counts.sum(axis=1), self.counts.sum(axis=0)
        for place, label in enumerate(self.classes.tolist()):
            found[f"class {label}"] = {
                "rows": int(true[place]),
                "recall": share(right[place], true[place]),
                "precision": share(right[place], predicted[place]),
            }
        return found


def check_known(true: Array, classes: Array, first_row: int = 0) -> None:
    """Raise ValueError if a target is of a class that the model doesn't know."""
    unknown = np.flatnonzero(~np.isin(true, classes))
    if len(unknown):
        known = ", ".join(map(repr, classes.tolist()))
        raise ValueError(
            f"row {first_row + unknown[0] + 1} of the data is of class "
            f"{true[unknown[0]].item()!r}, which the model doesn't know: it was fitted to "
            f"{known[:200]}."
        )


def share(part: Any, whole: Any) -> float | None:
    """A quotient, if there is one."""
    return float(part / whole) if whole else None


class Residuals:
    """Sums that tell how far predictions are from the truth."""

    def __init__(self) -> None:
        self.n_rows = 0
        self.origin: Any = None
        self.sums = np.zeros(4)  # of the truth, its square, squared and absolute errors

    def add(self, true: Array, predicted: Array, first_row: int) -> None:
        """Take in a block."""
        if predicted.ndim != 1:
            raise ValueError(
                f"The model predicts {predicted.shape[1]} numbers a row, but a file has one target."
            )
        if self.origin is None:
            self.origin = float(true[0])  # near which squares are small
        true = true.astype(np.float64)
        errors = predicted - true
        near = true - self.origin
        self.n_rows += len(true)
        self.sums += [near.sum(), near @ near, errors @ errors, np.abs(errors).sum()]

    def summary(self) -> dict[str, Any]:
        """R^2, and how large errors are."""
        total, squares, errors, sizes = self.sums
        spread = squares - total**2 / self.n_rows
        return {
            "R^2": float(1 - errors / spread) if spread > 0 else None,
            "root mean squared error": float(np.sqrt(errors / self.n_rows)),
            "mean absolute error": float(sizes / self.n_rows),
        }
