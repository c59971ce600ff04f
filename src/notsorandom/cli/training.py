"""Read training data from a file, and hold out rows of it."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from notsorandom.cli.loading import UNNAMED_TARGET, drop_unlabelled, take_rows, to_targets
from notsorandom.data.checks import check_columns, format_names
from notsorandom.data.columns import to_text
from notsorandom.data.files import DataFile
from notsorandom.data.rows import FLOATS, Array
from notsorandom.game.losses import CLASSIFICATION_LOSSES

# A target with more distinct integers than this is taken as a regression target.
MAX_CLASSES = 20


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
