"""NumPy files: one array (``.npy``), or the arrays ``X`` and ``y`` (``.npz``)."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from notsorandom.data.checks import first_non_finite, float_dtype, to_native
from notsorandom.data.rows import Array
from notsorandom.data.tables.base import (
    Block,
    Request,
    Table,
    TableError,
    check_width,
    rows_per_block,
)
from notsorandom.data.tables.targets import cast_target

# Name of the target array in an archive.
TARGET = "y"
# Raised by NumPy and zipfile for damaged files.
READ_ERRORS = (ValueError, EOFError, OSError, zipfile.BadZipFile, zlib.error)


class ArrayTable(Table):
    """Arrays in a ``.npy`` file, by memory map, or in a ``.npz`` file, in memory.

    Columns have no names, only numbers, from 0, or from -1 backwards.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.X, self.y = self.load()
        place = str(path) if self.y is None else f"{path}, array X"
        if self.X.ndim != 2 or 0 in self.X.shape:
            raise TableError(
                f"{place} has shape {self.X.shape}: it must have two dimensions, with one row per "
                "sample and at least one column."
            )
        if self.X.dtype.kind not in "biuf":
            raise TableError(f"{place} has type {self.X.dtype}: it must have numbers.")
        if self.y is not None:
            self.default_target = TARGET
            self.check_target(self.y)
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

    def check_target(self, y: Array) -> None:
        """Raise unless there is one target per sample."""
        if y.dtype.kind not in "biufU":
            raise TableError(
                f"{self.path}, array y has type {y.dtype}: it must have numbers, booleans or text."
            )
        if y.shape != self.X.shape[:1]:
            raise TableError(
                f"{self.path}, array y has shape {y.shape}, but X has {len(self.X)} rows: y must "
                f"have shape ({len(self.X)},)."
            )

    def target_hint(self) -> str:
        """See :meth:`Table.target_hint`."""
        own = "" if self.default_target is None else f"{TARGET!r}, or "
        return f"Give {own}a column number from 0 to {self.n_columns - 1}, or -1 for the last one."

    def read(self, request: Request) -> Iterator[Block]:
        """See :meth:`Table.read`."""
        features, target, keep, max_rows, target_type = request
        self.check_no_keep(keep)
        column = None if target in (None, self.default_target) else self.column_number(str(target))
        check_width(self.path, self.n_columns - (column is not None), features)
        n_rows = rows_per_block(max_rows, self.n_columns * self.X.dtype.itemsize)
        y = self.X[:, column] if column is not None else None if target is None else self.y
        return self.read_blocks(y, column, n_rows, target_type)

    def column_number(self, target: str) -> int:
        """Return the number of the target column."""
        is_number = re.fullmatch(r"-?[0-9]+", target) is not None
        if not is_number or not -self.n_columns <= int(target) < self.n_columns:
            raise TableError(f"{self.path} has no column {target!r}. {self.target_hint()}")
        return int(target)

    def read_blocks(
        self, y: Array | None, column: int | None, n_rows: int, dtype: np.dtype[Any] | None
    ) -> Iterator[Block]:
        """Iterate over blocks of `n_rows` rows, without the target column."""
        for start in range(0, len(self.X), n_rows):
            rows = to_native(np.array(self.X[start : start + n_rows]))
            self.check_finite(rows, start)
            X = rows if column is None else np.delete(rows, column, axis=1)
            targets = None
            if y is not None:
                targets = to_native(np.array(y[start : start + n_rows]))
                self.check_finite(targets, start)
                targets = cast_target(targets, dtype, f"{self.path}: the target")
            yield Block(np.ascontiguousarray(X, dtype=float_dtype(X.dtype)), targets, {}, start)

    def check_finite(self, part: Array, start: int) -> None:
        """Raise if a number is NaN or infinite."""
        place = first_non_finite(part) if part.dtype.kind == "f" else None
        if place is None:
            return
        column = f"column {place[1]} (counted from 0)" if part.ndim == 2 else "target"
        raise TableError(
            f"{self.path}, {column}, row {start + place[0] + 1}: {part[place]} is not a finite "
            "number: replace it, or remove the row."
        )
