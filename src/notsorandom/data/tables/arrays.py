"""Arrays of numbers, whose columns have no names; a ``.npy`` file, by memory map."""

from __future__ import annotations

import re
import zipfile
import zlib
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from notsorandom.data.rows import Array
from notsorandom.data.tables.table import (
    Block,
    Features,
    Table,
    TableError,
    check_rows_wanted,
    check_width,
    first_not_finite,
    with_type,
)

# What unpacking and parsing say of a damaged file.
DAMAGE = (ValueError, EOFError, OSError, zipfile.BadZipFile, zlib.error)


class NumberedTable(Table):
    """A table whose columns have numbers for names, counted from 0, or from the end by -1."""

    n_columns: int
    dtype: np.dtype[Any]

    def blocks(
        self,
        features: Features = None,
        target: str | None = None,
        keep: Sequence[str] = (),
        max_rows: int | None = None,
        target_type: np.dtype[Any] | None = None,
    ) -> Iterator[Block]:
        """See :meth:`Table.blocks`."""
        if keep:
            raise TableError(f"{self.path} has no names of columns, so none to keep: leave it out.")
        within = None if target is None or target == self.own_target else self.position(target)
        width = self.n_columns - (within is not None)
        check_width(self.path, width, features, beside="the target")
        n_rows = check_rows_wanted(max_rows, self.n_columns * self.dtype.itemsize)
        return self.read_blocks(target, within, n_rows, target_type)

    def position(self, target: str) -> int:
        """The number of the target's column."""
        if re.fullmatch(r"-?[0-9]+", target) is None:
            raise TableError(f"{self.path}: {target!r} is not a column. {self.choice()}")
        if not -self.n_columns <= int(target) < self.n_columns:
            raise TableError(f"{self.path} has no column {target}. {self.choice()}")
        return int(target)

    def choice(self) -> str:
        """Says what may be given for a target."""
        return f"Give a number from 0 to {self.n_columns - 1}, or -1 for the last column."

    def read_blocks(
        self, target: str | None, within: int | None, n_rows: int, dtype: np.dtype[Any] | None
    ) -> Iterator[Block]:
        """Blocks of `n_rows` rows, with the target in a column of theirs or beside them."""
        done = 0
        for part, beside in self.parts(n_rows, target is not None and within is None):
            rows = plain(part)
            self.check_finite(rows, done)
            y = beside if within is None else rows[:, within]
            X = rows if within is None else np.delete(rows, within, axis=1)
            if y is not None:
                y = plain(y.copy())
                self.check_finite(y, done)
                y = with_type(y, dtype, f"{self.path}, target {target!r}")
            yield Block(np.ascontiguousarray(X, dtype=float_type(X.dtype)), y, {}, done)
            done += len(rows)

    @abstractmethod
    def parts(self, n_rows: int, wants_target: bool) -> Iterator[tuple[Array, Array | None]]:
        """Samples, and their target if it is an array of its own, so many rows at a time."""

    def check_samples(self, shape: tuple[int, ...], dtype: np.dtype[Any], name: str) -> None:
        """Raise unless an array has a row of numbers for each sample."""
        if len(shape) != 2:
            raise TableError(
                f"{self.path}{name} has {len(shape)} dimensions, shape {shape}: it must have 2, "
                "a row for each sample; reshape it."
            )
        if dtype.kind not in "biuf":
            raise TableError(f"{self.path}{name} is of type {dtype}: it must be of numbers.")
        if 0 in shape:
            raise TableError(f"{self.path}{name} has shape {shape}: give a file with rows in it.")

    def check_finite(self, part: Array, done: int) -> None:
        """Raise if a number of some samples, or of their target, is none or infinite."""
        place = first_not_finite(part) if part.dtype.kind == "f" else None
        if place is None:
            return
        column = f"column {place[1]} (counted from 0)" if part.ndim == 2 else "target"
        raise TableError(
            f"{self.path}, {column}, row {done + place[0] + 1}: {part[place]} is not a finite "
            "number: fill one in, or leave the row out."
        )


class ArrayTable(NumberedTable):
    """One array in a ``.npy`` file.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as file:
            self.shape, _, self.dtype = read_header(file, str(path))
        self.check_samples(self.shape, self.dtype, name="")
        self.n_columns = self.shape[1]
        self.mapped()

    def mapped(self) -> Array:
        """The array, not read yet."""
        try:
            array: Array = np.load(self.path, mmap_mode="r", allow_pickle=False)
        except DAMAGE as error:
            raise damage(str(self.path), error) from error
        return array

    def parts(self, n_rows: int, wants_target: bool) -> Iterator[tuple[Array, Array | None]]:
        """See :meth:`NumberedTable.parts`."""
        for start in range(0, self.shape[0], n_rows):
            # a new map each time: pages of an old one would stay in memory
            yield np.array(self.mapped()[start : start + n_rows], order="C"), None


def read_header(file: IO[bytes], place: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape of an array in a file, whether it is stored by columns, and its type."""
    try:
        read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
        shape, by_columns, dtype = read[npy.read_magic(file)](file)
    except (*DAMAGE, KeyError) as error:
        raise damage(place, error) from error
    if dtype.hasobject:
        raise TableError(f"{place} is of Python objects, which are not read: make it of numbers.")
    return shape, by_columns, dtype


def float_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type that numbers of some type are computed in."""
    return np.dtype(np.float32 if dtype.kind == "f" and dtype.itemsize == 4 else np.float64)


def plain(part: Array) -> Array:
    """An array with the machine's order of bytes; floats of other than 32 bits have 64."""
    dtype = part.dtype.newbyteorder("=") if part.dtype.kind != "f" else float_type(part.dtype)
    with np.errstate(over="ignore"):  # what is too large is infinite, and found as such
        return part.astype(dtype, copy=False)


def damage(place: str, error: Exception) -> TableError:
    """Says that a file can't be read."""
    says = " ".join(str(error).split())
    return TableError(f"{place} is damaged, cut short, or not NumPy's ({says}): write it again.")
