"""Tables without column names: NumPy and LIBSVM files."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from notsorandom.data.checks import first_non_finite, float_dtype, shorten, to_native
from notsorandom.data.rows import Array
from notsorandom.data.tables.base import (
    Block,
    Request,
    Table,
    TableError,
    check_width,
    rows_per_block,
)
from notsorandom.data.tables.targets import cast_target, parse_text

# Names of the target: the array of an archive, and what starts a line of a LIBSVM file.
TARGET, LABEL = "y", "label"
# Most columns of a LIBSVM file: sparse arrays have indices of 32 bits.
MAX_COLUMNS = 2**31 - 1
# Raised by NumPy and zipfile for damaged files.
READ_ERRORS = (ValueError, EOFError, OSError, zipfile.BadZipFile, zlib.error)


class ArrayTable(Table):
    """Arrays in a ``.npy`` file, by memory map, or in a ``.npz`` file, in memory.

    Columns have no names, only numbers, from 0, or from -1 backwards.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.X, self.y = self.load()
        place = str(path) if self.y is None else f"{path}, array X"
        if self.X.ndim != 2 or 0 in self.X.shape or self.X.dtype.kind not in "biuf":
            raise TableError(
                f"{place} has shape {self.X.shape} and type {self.X.dtype}: it must have two "
                "dimensions, with one row per sample and at least one column, of numbers."
            )
        if self.y is not None:
            self.default_target = TARGET
            if self.y.dtype.kind not in "biufU" or self.y.shape != self.X.shape[:1]:
                raise TableError(
                    f"{path}, array y has shape {self.y.shape} and type {self.y.dtype}: it must "
                    f"have shape ({len(self.X)},) as X has, of numbers, booleans or text."
                )
        self.n_columns = self.X.shape[1]

    def load(self) -> tuple[Array, Array | None]:
        """Return the samples and the target, if it is an array of its own."""
        try:
            loaded = np.load(self.path, mmap_mode="r", allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return loaded, None
            with loaded:
                if "X" in loaded:
                    return loaded["X"], loaded.get(TARGET)
                found = ", ".join(loaded) or "none"
        except READ_ERRORS as error:
            reason = " ".join(str(error).split())
            raise TableError(
                f"{self.path} can't be read as NumPy data without Python objects ({reason}): write "
                "it again with np.save or np.savez."
            ) from error
        raise TableError(
            f"{self.path} has no array X (it has {found}): write it with np.savez(path, X=X, y=y)."
        )

    def target_hint(self) -> str:
        """See :meth:`Table.target_hint`."""
        own = "" if self.default_target is None else f"{TARGET!r}, or "
        return f"Give {own}a column number from 0 to {self.n_columns - 1}, or -1 for the last one."

    def read(self, request: Request) -> Iterator[Block]:
        """See :meth:`Table.read`."""
        features, target, keep, max_rows, target_type = request
        self.check_no_keep(keep)
        column, y = None, None if target is None else self.y
        if target is not None and target != self.default_target:
            is_number = re.fullmatch(r"-?[0-9]+", target) is not None
            if not is_number or not -self.n_columns <= int(target) < self.n_columns:
                raise TableError(f"{self.path} has no column {target!r}. {self.target_hint()}")
            column = int(target)
            y = self.X[:, column]
        check_width(self.path, self.n_columns - (column is not None), features)
        n_rows = rows_per_block(max_rows, self.n_columns * self.X.dtype.itemsize)
        return self.read_blocks(y, column, n_rows, target_type)

    def read_blocks(
        self, y: Array | None, column: int | None, n_rows: int, dtype: np.dtype[Any] | None
    ) -> Iterator[Block]:
        """Iterate over blocks of `n_rows` rows, without the target column."""
        for start in range(0, len(self.X), n_rows):
            X = self.read_part(self.X, start, n_rows)
            targets = None
            if y is not None:
                targets = self.read_part(y, start, n_rows)
                targets = cast_target(targets, dtype, f"{self.path}: the target")
            if column is not None:
                X = np.delete(X, column, axis=1)
            yield Block(np.ascontiguousarray(X, dtype=float_dtype(X.dtype)), targets)

    def read_part(self, array: Array, start: int, n_rows: int) -> Array:
        """Return some rows; raise if a number is NaN or infinite."""
        part = to_native(np.array(array[start : start + n_rows]))
        place = first_non_finite(part) if part.dtype.kind == "f" else None
        if place is not None:
            column = f"column {place[1]} (counted from 0)" if part.ndim == 2 else "target"
            raise TableError(
                f"{self.path}, {column}, row {start + place[0] + 1}: {part[place]} is not a finite "
                "number: replace it, or remove the row."
            )
        return part


class LibsvmTable(Table):
    """A LIBSVM file, in memory: a label per line, and index:value for each value but zeros.

    By default, column numbers start from 0 if the file has a column 0.
    """

    default_target = LABEL

    def __init__(self, path: Path, zero_based: bool | None = None) -> None:
        self.path = path
        try:
            self.X, self.y = load_svmlight_file(path, zero_based=True)
        except (ValueError, OverflowError) as error:
            self.raise_line_error(zero_based is not False)
            raise TableError(f"{path} can't be read: {error}") from error
        has_column_zero = bool((self.X.indices == 0).any())
        self.zero_based = has_column_zero if zero_based is None else zero_based
        is_finite = np.isfinite(self.X.data).all() and np.isfinite(self.y).all()
        if not is_finite or has_column_zero > self.zero_based:
            self.raise_line_error(self.zero_based)
        if not self.zero_based:
            self.X = self.X[:, 1:]

    def read(self, request: Request) -> Iterator[Block]:
        """See :meth:`Table.read`; columns without values are included."""
        features, target, keep, max_rows, target_type = request
        self.check_no_keep(keep)
        if target not in (None, LABEL):
            raise TableError(
                f"{self.path} has no column {target!r}: in LIBSVM format the target is the label "
                "at the start of each line; give no target."
            )
        n_rows, n_features = self.X.shape
        if features is not None:
            n_features = features if isinstance(features, int) else len(features)
        if n_rows == 0 or n_features == 0:
            raise TableError(f"{self.path} has no rows with features: give a file with some.")
        if n_features < self.X.shape[1]:
            self.raise_line_error(self.zero_based, n_features)
        parts = self.X.data, self.X.indices, self.X.indptr
        X, y = sparse.csr_matrix(parts, shape=(n_rows, n_features)), None
        if target is not None:
            if target_type is None and (self.y == np.rint(self.y)).all():
                target_type = np.dtype(np.int64)
            y = cast_target(self.y, target_type, f"{self.path}: the label")
        size = rows_per_block(max_rows, row_bytes=8 * self.X.nnz // n_rows)
        cuts = [slice(start, start + size) for start in range(0, n_rows, size)]
        return (Block(X[rows], None if y is None else y[rows]) for rows in cuts)

    def raise_line_error(self, zero_based: bool, n_features: int = MAX_COLUMNS) -> None:
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
