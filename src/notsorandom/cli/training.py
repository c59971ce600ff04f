"""Read training data from a file and hold out rows of it."""

from __future__ import annotations

import argparse
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.model_selection import train_test_split

from notsorandom.cli.arguments import split_names
from notsorandom.cli.evaluate import check_classes
from notsorandom.data.rows import FLOATS, Array
from notsorandom.data.tables import Table, feature_names, format_names, open_table, read_all
from notsorandom.estimators.resume import digest
from notsorandom.game.losses import CLASSIFICATION_LOSSES

# A target with more distinct integers than this is taken as a regression target.
MAX_CLASSES = 20


class TrainingTable(NamedTuple):
    """Samples and target of a file, and the task that follows from the target."""

    X: Any  # ndarray or sparse array
    y: Array
    names: list[str] | None  # of the columns of `X`, if the file has them
    target: str
    is_classification: bool
    reason: str  # why it is a classification, or a regression


def read_training_table(table: Table, options: argparse.Namespace) -> TrainingTable:
    """Read a table and find out which task it is for."""
    target = table.resolve_target(options.target)
    columns = select_features(table, target, split_names(options.drop))
    X, y, names = read_all(table, columns, target)
    if X.dtype not in FLOATS:
        X = X.astype(np.float64)
    if options.task != "auto":
        is_classification, reason = options.task == "classification", "given by --task"
    elif options.loss is not None:
        is_classification, reason = options.loss in CLASSIFICATION_LOSSES, "follows from --loss"
    else:
        is_classification, reason = infer_task(y)
    return TrainingTable(X, y, names, target, is_classification, reason)


def select_features(table: Table, target: str, dropped: list[str]) -> list[str] | None:
    """Return the columns to learn from, or None if they have no names."""
    if table.columns is None:
        if dropped:
            raise ValueError(f"--drop: {table.path} has no column names; leave it out.")
        return None
    if target not in table.columns:
        return None  # reading the table raises an error that lists the columns
    for name in dropped:
        if name not in table.columns:
            raise ValueError(
                f"--drop: {table.path} has no column {name!r}. Give one of "
                f"{format_names(table.columns)}."
            )
    columns = [name for name in feature_names(table, target) if name not in dropped]
    if not columns:
        raise ValueError(f"{table.path} has no columns besides the target: nothing to learn from.")
    return columns


def infer_task(y: Array) -> tuple[bool, str]:
    """Return whether the target is for classification, and why."""
    values = np.unique(y)
    if y.dtype.kind not in "iuf":
        return True, f"{len(values)} distinct {'booleans' if y.dtype.kind == 'b' else 'strings'}"
    if not np.array_equal(values, np.rint(values)):
        return False, "the target has fractions"
    return len(values) <= MAX_CLASSES, f"{len(values):,} distinct integers"


def split_rows(data: TrainingTable, holdout: float, seed: int) -> tuple[Array, Array]:
    """Return rows to train on and rows to test on, stratified by class if possible.

    The only row of a class is always a training row.
    """
    rows = np.arange(len(data.y))
    n_test = round(holdout * len(rows))
    if not n_test:
        return rows, rows[:0]
    candidates, stratify = rows, None
    if data.is_classification:
        _, codes, counts = np.unique(data.y, return_inverse=True, return_counts=True)
        candidates = rows[counts[codes] > 1]
        if (counts > 1).sum() <= min(n_test, len(candidates) - n_test):
            stratify = data.y[candidates]
    if n_test > len(candidates) - 2 or len(rows) - n_test < 2:
        raise ValueError(
            f"--holdout {holdout}: too few of {len(rows)} rows are left to train on. Give more "
            "rows, or --holdout 0."
        )
    _, test = train_test_split(candidates, test_size=n_test, random_state=seed, stratify=stratify)
    return np.setdiff1d(rows, test), np.sort(test)


def read_test_table(table: Table, data: TrainingTable, path: Any) -> tuple[Any, Array]:
    """Read samples and target of another file with the same columns."""
    other = open_table(path, getattr(table, "zero_based", None))
    columns = data.X.shape[1] if data.names is None else data.names
    X, y, _ = read_all(other, columns, data.target, data.y.dtype)
    if data.is_classification:
        check_classes(y, np.unique(data.y))
    return X, y


def digest_table(data: TrainingTable) -> str:
    """Return a digest that is equal for equal data, with any numeric type of the target."""
    X, is_numeric = data.X, data.y.dtype.kind in "iuf"
    samples = (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,)
    return digest(*samples, data.y.astype(np.float64 if is_numeric else str))
