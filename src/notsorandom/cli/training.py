"""What a model is fitted to: the rows of a file, and which of them are held out."""

from __future__ import annotations

import argparse
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.model_selection import train_test_split

from notsorandom.cli.arguments import listed_words
from notsorandom.cli.evaluate import check_known
from notsorandom.data.rows import FLOATS, Array
from notsorandom.data.tables import Table, open_table, read_whole
from notsorandom.data.tables.table import listed
from notsorandom.data.tables.whole import feature_names
from notsorandom.estimators.identity import digest

# A target of more different whole numbers than this is a quantity.
MOST_CLASSES = 20


class Training(NamedTuple):
    """What there is to learn from, and what kind of learning it is."""

    X: Any
    y: Array
    names: list[str] | None
    target: str
    of_classes: bool
    because: str


def read_training(table: Table, options: argparse.Namespace) -> Training:
    """Read a table, and tell what its target is."""
    target = table.chosen_target(options.target)
    X, y, names = read_whole(table, columns_of(table, target, listed_words(options.drop)), target)
    if X.dtype not in FLOATS:
        X = X.astype(np.float64)
    if options.task == "auto":
        of_classes, because = has_classes(y)
    else:
        of_classes, because = options.task == "classification", "as --task says"
    return Training(X, y, names, target, of_classes, because)


def columns_of(table: Table, target: str, dropped: list[str]) -> list[str] | None:
    """The columns to learn from; None if they have no names."""
    if table.columns is None:
        if dropped:
            raise ValueError(f"--drop: the columns of {table.path} have no names; leave it out.")
        return None
    if target not in table.columns:
        return None  # which is told with what there is
    columns = [name for name in feature_names(table, target) if name not in dropped]
    unknown = [name for name in dropped if name not in table.columns]
    if unknown:
        raise ValueError(
            f"--drop: there is no column {unknown[0]!r} in {table.path}, but "
            f"{listed(table.columns)}."
        )
    if not columns:
        raise ValueError(f"{table.path} has no column but the target to learn from.")
    return columns


def has_classes(y: Array) -> tuple[bool, str]:
    """Whether a target is of classes, and why."""
    if y.dtype.kind not in "iuf":
        return True, f"{len(np.unique(y))} different {'values' if y.dtype.kind == 'b' else 'words'}"
    different = np.unique(y)
    if not np.array_equal(different, np.rint(different)):
        return False, "numbers with fractions"
    return len(different) <= MOST_CLASSES, f"{len(different):,} different whole numbers"


def split(data: Training, holdout: float, seed: int) -> tuple[Array, Array]:
    """Rows to learn from and rows to measure on, of each class alike.

    The only row of a class is learned from.
    """
    rows = np.arange(len(data.y))
    n_held = round(holdout * len(rows))
    if not n_held:
        return rows, rows[:0]
    free = rows
    if data.of_classes:
        _, codes, counts = np.unique(data.y, return_inverse=True, return_counts=True)
        free = rows[counts[codes] > 1]
    n_classes = len(np.unique(data.y[free])) if data.of_classes else 0
    if n_held > len(free) - 2 or len(rows) - n_held < 2:
        raise ValueError(
            f"--holdout {holdout}: of {len(rows)} rows too few are left to learn from. Give more "
            "rows, or --holdout 0."
        )
    even = data.of_classes and n_classes <= min(n_held, len(free) - n_held)
    _, held = train_test_split(
        free, test_size=n_held, random_state=seed, stratify=data.y[free] if even else None
    )
    return np.setdiff1d(rows, held), np.sort(held)


def read_test(table: Table, data: Training, options: argparse.Namespace) -> tuple[str, Any, Array]:
    """The rows of another file, to measure on."""
    other = open_table(options.test, getattr(table, "zero_based", None))
    columns = data.X.shape[1] if data.names is None else data.names
    X, y, _ = read_whole(other, columns, data.target, data.y.dtype)
    if data.of_classes:
        check_known(y, np.unique(data.y))
    return "test", X, y


def digest_of(data: Training) -> str:
    """The same for the same data, whatever type their target is read as."""
    X, numbers = data.X, data.y.dtype.kind in "iuf"
    samples = (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,)
    return digest(*samples, data.y.astype(np.float64 if numbers else str))
