"""LIBSVM text files: one label per line, and index:value for each value that is not zero."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_svmlight_file

from notsorandom.data.checks import shorten
from notsorandom.data.rows import Array
from notsorandom.data.tables.base import (
    BLOCK_BYTES,
    Block,
    Request,
    Table,
    TableError,
    rows_per_block,
)
from notsorandom.data.tables.targets import cast_target, parse_text

# Name of the target.
LABEL = "label"
# Most columns of a file: sparse arrays have indices of 32 bits.
MAX_COLUMNS = 2**31 - 1


class Summary(NamedTuple):
    """What only a pass over the file can find."""

    n_rows: int
    largest_index: int
    has_column_zero: bool
    has_integer_labels: bool


class LibsvmTable(Table):
    """A file in LIBSVM format; its blocks are sparse.

    Parameters
    ----------
    path : Path
    zero_based : bool, optional
        Whether column numbers start from 0; by default they do if the file has a column 0.
    read_bytes : int
        Bytes of text that are parsed at a time.
    """

    default_target = LABEL

    def __init__(
        self, path: Path, zero_based: bool | None = None, read_bytes: int = BLOCK_BYTES
    ) -> None:
        self.path = path
        self.read_bytes = read_bytes
        self.given_zero_based = zero_based

    @cached_property
    def zero_based(self) -> bool:
        """Whether column numbers start from 0."""
        given = self.given_zero_based
        return self.summary.has_column_zero if given is None else given

    @cached_property
    def summary(self) -> Summary:
        """Number of rows and columns, and the kind of the labels."""
        total = Summary(0, -1, False, True)
        for X, labels in self.parse(MAX_COLUMNS, zero_based=True):
            used = X.indices
            total = Summary(
                total.n_rows + len(labels),
                max(total.largest_index, int(used.max(initial=-1))),
                total.has_column_zero or bool((used == 0).any()),
                total.has_integer_labels and bool((labels == np.rint(labels)).all()),
            )
        return total

    def read(self, request: Request) -> Iterator[Block]:
        """See :meth:`Table.read`; columns without values are included."""
        features, target, keep, max_rows, target_type = request
        self.check_no_keep(keep)
        if target not in (None, LABEL):
            raise TableError(
                f"{self.path} has no column {target!r}: in LIBSVM format the target is the label "
                "at the start of each line; give no target."
            )
        n_rows = rows_per_block(max_rows, row_bytes=1)
        if features is None:
            n_features = self.summary.largest_index + int(self.zero_based)
        else:
            n_features = features if isinstance(features, int) else len(features)
        if n_features < 1 or self.summary.n_rows == 0:
            raise TableError(f"{self.path} has no rows with features: give a file with some.")
        if target is not None and target_type is None and self.summary.has_integer_labels:
            target_type = np.dtype(np.int64)
        return self.read_blocks(n_features, target is not None, n_rows, target_type)

    def read_blocks(
        self, n_features: int, with_target: bool, n_rows: int, dtype: np.dtype[Any] | None
    ) -> Iterator[Block]:
        """Iterate over blocks of at most `n_rows` rows."""
        done = 0
        for X, labels in self.parse(n_features, self.zero_based):
            y = cast_target(labels, dtype, f"{self.path}: the label") if with_target else None
            for start in range(0, len(labels), n_rows):
                rows = slice(start, start + n_rows)
                yield Block(X[rows], None if y is None else y[rows], {}, done + start)
            done += len(labels)

    def parse(self, n_features: int, zero_based: bool) -> Iterator[tuple[Any, Array]]:
        """Iterate over samples and labels, parsed from `read_bytes` of text at a time."""
        for offset in range(0, self.path.stat().st_size, self.read_bytes):
            try:
                X, labels = load_svmlight_file(
                    self.path,
                    n_features=n_features,
                    zero_based=zero_based,
                    offset=offset,
                    length=self.read_bytes,
                )
            except (ValueError, OverflowError) as error:
                self.raise_line_error(zero_based, n_features)
                raise TableError(f"{self.path} can't be read: {error}") from error
            if not (np.isfinite(X.data).all() and np.isfinite(labels).all()):
                self.raise_line_error(zero_based, n_features)
            if len(labels):
                yield X, labels

    def raise_line_error(self, zero_based: bool, n_features: int) -> None:
        """Raise an error for the first line that is wrong."""
        with self.path.open(encoding="utf-8", errors="replace") as file:
            for number, line in enumerate(file, start=1):
                words = line.partition("#")[0].split()
                fault = find_fault(words, zero_based, n_features) if words else None
                if fault is not None:
                    raise TableError(f"{self.path}, line {number}: {fault}")


def find_fault(words: list[str], zero_based: bool, n_features: int) -> str | None:
    """Return what is wrong with a line, or None."""
    label, *pairs = words
    if parse_text(label, "f") is None:
        return f"the label {shorten(label)} is not a finite number: start the line with one."
    if pairs and pairs[0].startswith("qid:"):
        pairs = pairs[1:]
    lowest = previous = -1 if zero_based else 0
    for pair in pairs:
        index, _, value = pair.partition(":")
        if re.fullmatch(r"[0-9]{1,18}", index) is None or parse_text(value, "f") is None:
            return f"{shorten(pair)} is not a column number and a finite value, such as 3:0.5."
        if int(index) <= lowest:
            return "there is a column 0, but column numbers of the training file start from 1."
        if int(index) <= previous:
            return f"column {index} follows column {previous}: sort the columns of each line."
        previous = int(index)
    if previous - lowest > n_features:
        return f"there is a column {previous}, but {n_features} columns are expected."
    return None
