"""What a table is, whatever file it is in."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from notsorandom.data.rows import Array

# Enough for the overhead of a block not to show, little enough to hold several of them.
BLOCK_BYTES = 2**24
# So many numbers are looked at together that what is found of them stays in cache.
CACHED = 2**17
# Numbers as text; Python itself takes more for one, such as 1_000.
NUMBER = re.compile(r"[ \t]*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[ \t]*")
WHOLE_NUMBER = re.compile(r"([+-]?[0-9]+)(\.0*)?")
BOOLEANS = {"true": True, "false": False}
# What a model wants: columns by name, or so many of them; None is all there are.
Features = Sequence[str] | int | None


class TableError(ValueError):
    """A file that can't be read, or written, as a table; the message says where and what to do."""


@dataclass(frozen=True)
class Block:
    """Some rows of a table, one below the other.

    Parameters
    ----------
    X : ndarray in C order, or sparse CSR array, of shape (n_rows, n_features)
        Finite numbers, float32 if those of the file are, else float64.
    y : ndarray of shape (n_rows,) or None
        The target: integers, floats, booleans or strings, the same for all blocks of a file.
    kept : dict of column names to arrays
        Other columns, as the file has them.
    first_row : int
        Rows of the table before these.
    """

    X: Any
    y: Array | None = None
    kept: dict[str, Any] = field(default_factory=dict)
    first_row: int = 0

    def __len__(self) -> int:
        return int(self.X.shape[0])


class Table(ABC):
    """A file of rows, read a block at a time.

    Attributes
    ----------
    path : Path
    columns : tuple of str, or None
        Names of the columns, in a file that has them.
    own_target : str or None
        The target, in a file that has a place of its own for it.
    """

    path: Path
    columns: tuple[str, ...] | None = None
    own_target: str | None = None

    @abstractmethod
    def blocks(
        self,
        features: Features = None,
        target: str | None = None,
        keep: Sequence[str] = (),
        max_rows: int | None = None,
        target_type: np.dtype[Any] | None = None,
    ) -> Iterator[Block]:
        """All rows, in order; wrong arguments raise at once, wrong cells when they are met.

        Parameters
        ----------
        features : sequence of str, or int, or None
            Names of the columns of `X`, in that order, whatever order and others the file has; or
            how many columns there must be beside the target and those kept. None takes them all.
            Where columns have no names, only how many there are counts.
        target : str, optional
            Name of the target's column, or its number where columns have no names.
        keep : sequence of str
            Names of columns to hand through.
        max_rows : int, optional
            Rows in a block; by default as many as take about 16 MB.
        target_type : dtype, optional
            Type of the target, such as that of a model's classes. By default that of the file,
            which for text takes a reading of its own to find.
        """

    def chosen_target(self, target: str | None) -> str:
        """The target that was asked for, else the file's own."""
        chosen = self.own_target if target is None else target
        if chosen is None:
            raise TableError(f"{self.path}: which column is the target? {self.choice()}")
        return chosen

    def choice(self) -> str:
        """Says what may be given for a target."""
        return f"Give one of {listed(self.columns or ())}."


def listed(names: Sequence[str], most: int = 8) -> str:
    """A few of the names, and how many more there are."""
    shown = ", ".join(repr(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def clipped(cell: object) -> str:
    """What is in a cell, short enough for a message of one line."""
    text = repr(cell)
    return text if len(text) <= 40 else f"{text[:36]}...{text[-1]}"


def check_rows_wanted(max_rows: int | None, row_bytes: int) -> int:
    """Rows in a block, of those asked for or of those that take about `BLOCK_BYTES`."""
    if max_rows is not None and max_rows < 1:
        raise ValueError(f"max_rows must be at least 1, got {max_rows}.")
    return max_rows or max(1, BLOCK_BYTES // max(1, row_bytes))


def check_width(path: Path, width: int, features: Features, beside: str) -> None:
    """Raise unless a file has as many columns as the model that they are for."""
    wanted = width if features is None else features if isinstance(features, int) else len(features)
    if width != wanted:
        hint = "is it the right file?" if width < wanted else f"{beside} may be among them."
        raise TableError(
            f"{path} has {width} column{'s' * (width != 1)} of features, but the model was "
            f"fitted to {wanted}: {hint}"
        )


def first_not_finite(rows: Array) -> tuple[int, ...] | None:
    """Where the first number is that is none or infinite."""
    step = max(1, CACHED // max(1, rows[:1].size))
    for start in range(0, len(rows), step):
        finite = np.isfinite(rows[start : start + step])
        if not finite.all():
            row, *column = np.argwhere(~finite)[0]
            return (start + int(row), *map(int, column))
    return None


def with_type(y: Array, target_type: np.dtype[Any] | None, place: str) -> Array:
    """A target as the type asked for, if nothing of it is lost by that."""
    kind = None if target_type is None else target_type.kind
    if kind is None or kind == y.dtype.kind:
        return y
    if kind in "UOT":
        return y.astype(str)
    name = {"b": "bool", "i": "int64", "u": "int64", "f": "float64"}[kind]
    if y.dtype.kind in "UOT":
        values, places = np.unique(y.astype(str), return_inverse=True)
        read = [text_value(text, name) for text in values.tolist()]
        good = np.array([value is not None for value in read])[places]
        converted = np.array([value or 0 for value in read], dtype=name)[places]
    else:
        with np.errstate(invalid="ignore"):  # what is too large for an integer is seen to be lost
            converted = y.astype(name)
        good = converted == y
    if not good.all():
        raise TableError(
            f"{place} is of type {y.dtype}, such as {clipped(y[good.argmin()].item())}, but the "
            f"model's is {target_type}: give the target that the model was fitted to."
        )
    return converted


def text_value(text: str, name: str) -> bool | int | float | None:
    """What a text says, read as a type with some name; None if it is nothing of that type."""
    text = text.strip()
    if name == "bool":
        return BOOLEANS.get(text.lower())  # any text but "" is true to NumPy
    if name == "float64":
        number = float(text) if NUMBER.fullmatch(text) else np.inf
        return number if np.isfinite(number) else None
    # longer ones are beyond 64 bits, or not even read by Python
    match = WHOLE_NUMBER.fullmatch(text) if len(text) < 1000 else None
    whole = 2**63 if match is None else int(match[1])
    return whole if -(2**63) <= whole < 2**63 else None
