"""The contract of a table: a data file that is read in blocks of rows."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from notsorandom.data.checks import format_names
from notsorandom.data.rows import Array, stack_blocks

# Bytes of a block: the overhead of a block doesn't show, and several of them fit into memory.
BLOCK_BYTES = 2**24
# Columns that a model needs: their names or their number; None for all.
Features = Sequence[str] | int | None
# Column names that pandas gives to an index without a name: none in CSV, its level in Parquet.
PANDAS_INDEX = re.compile(r"|__index_level_[0-9]+__")


class TableError(ValueError):
    """A file can't be read or written as a table; the message says where and what to do."""


@dataclass(frozen=True)
class Block:
    """Some consecutive rows of a table.

    Parameters
    ----------
    X : ndarray in C order, or sparse CSR array, of shape (n_rows, n_features)
        Finite numbers: float32 if the file has float32 only, else float64.
    y : ndarray of shape (n_rows,) or None
        The target: integers, floats, booleans or strings, of the same kind in all blocks.
    kept : dict of column names to arrays
        Other columns, as stored in the file.
    """

    X: Any
    y: Array | None = None
    kept: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return int(self.X.shape[0])


class Request(NamedTuple):
    """Arguments of :meth:`Table.blocks`."""

    features: Any
    target: str | None
    keep: Sequence[str]
    max_rows: int | None
    target_type: np.dtype[Any] | None


class Table(ABC):
    """A data file that is read in blocks of rows.

    Attributes
    ----------
    path : Path
    columns : tuple of str, or None
        Names of the columns, if the file has them.
    default_target : str or None
        The target, if the format has a place of its own for it.
    """

    path: Path
    columns: tuple[str, ...] | None = None
    default_target: str | None = None

    def blocks(
        self,
        features: Features = None,
        target: str | None = None,
        keep: Sequence[str] = (),
        max_rows: int | None = None,
        target_type: np.dtype[Any] | None = None,
    ) -> Iterator[Block]:
        """Iterate over all rows, in order.

        Wrong arguments raise at once, wrong cells when they are read.

        Parameters
        ----------
        features : sequence of str, or int, or None
            Names of the columns of `X`, in that order; other columns are ignored. Or the number of
            columns other than the target and those in `keep`. None takes all of these. In files
            without column names, only the number counts.
        target : str, optional
            Name of the target column, or its number in files without column names.
        keep : sequence of str
            Names of columns to return unchanged.
        max_rows : int, optional
            Most rows of a block. By default a block has about 16 MB.
        target_type : dtype, optional
            Type of the target, such as that of the classes of a model. By default that of the
            file; for text files, finding it takes an additional pass.
        """
        return self.read(Request(features, target, tuple(keep), max_rows, target_type))

    @abstractmethod
    def read(self, request: Request) -> Iterator[Block]:
        """Check the request and return an iterator over the blocks."""

    def resolve_target(self, target: str | None) -> str:
        """Return the given target, or else the default one of the file."""
        resolved = self.default_target if target is None else target
        if resolved is None:
            raise TableError(f"{self.path}: the target column is not given. {self.target_hint()}")
        return resolved

    def target_hint(self) -> str:
        """Say what can be given as a target."""
        return f"Give one of {format_names(self.columns or ())}."

    def check_no_keep(self, keep: Sequence[str]) -> None:
        """Raise if columns are to be kept, in a file without column names."""
        if keep:
            raise TableError(
                f"{self.path} has no column names, so {format_names(keep)} can't be kept: keep no "
                "columns."
            )


def rows_per_block(max_rows: int | None, row_bytes: int) -> int:
    """Return the number of rows of a block, by default those of about `BLOCK_BYTES`."""
    return max_rows or max(1, BLOCK_BYTES // max(1, row_bytes))


def check_width(path: Path, width: int, features: Features) -> None:
    """Raise unless a file has as many feature columns as the model needs."""
    wanted = width if features is None else features if isinstance(features, int) else len(features)
    if width != wanted:
        raise TableError(
            f"{path} has {width} feature column{'s' * (width != 1)}, but the model was fitted with "
            f"{wanted}: give a file with the same columns, and name the target if it is among them."
        )


def read_all(
    table: Table,
    features: Features = None,
    target: str | None = None,
    target_type: np.dtype[Any] | None = None,
) -> tuple[Any, Array, list[str] | None]:
    """Read samples, target, and the names of the features if the file has them.

    The parameters are those of :meth:`Table.blocks`; the default target is that of the file.
    """
    target = table.resolve_target(target)
    blocks = list(table.blocks(features, target, target_type=target_type))
    names = None
    if table.columns is not None:
        by_name = features is not None and not isinstance(features, int)
        names = list(features) if by_name else feature_names(table, target)  # type: ignore[arg-type]
    return stack_blocks([block.X for block in blocks]), stack_blocks([b.y for b in blocks]), names


def feature_names(table: Table, target: str) -> list[str]:
    """Return all columns but the target.

    Raises
    ------
    TableError
        If one is an index written by pandas: to learn from row numbers is likely a mistake.
    """
    columns = table.columns or ()
    for number, name in enumerate(columns, start=1):
        if name != target and PANDAS_INDEX.fullmatch(name):
            raise TableError(
                f"{table.path}: column {number} has the name {name!r}, so it looks like an index "
                "written by pandas. Write the file with index=False, rename the column, or say "
                "which columns to learn from."
            )
    return [name for name in columns if name != target]
