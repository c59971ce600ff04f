"""Tables whose columns have names: Arrow's columns made into rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
import pyarrow as pa

from notsorandom.data.rows import Array
from notsorandom.data.tables.table import (
    Block,
    Features,
    Table,
    TableError,
    check_rows_wanted,
    check_width,
    listed,
)


class NamedTable(Table):
    """A table whose columns have names and come as Arrow's batches."""

    columns: tuple[str, ...]

    def blocks(
        self,
        features: Features = None,
        target: str | None = None,
        keep: Sequence[str] = (),
        max_rows: int | None = None,
        target_type: np.dtype[Any] | None = None,
    ) -> Iterator[Block]:
        """See :meth:`Table.blocks`."""
        names = self.feature_columns(features, target, keep)
        self.check_columns([*names, *keep] if target is None else [*names, target, *keep])
        if target in names:
            raise TableError(f"{self.path}: column {target!r} is both target and feature.")
        n_rows = check_rows_wanted(max_rows, row_bytes=8 * len(names))
        return self.read_blocks(names, target, tuple(keep), n_rows, target_type)

    @abstractmethod
    def read_blocks(
        self,
        names: Sequence[str],
        target: str | None,
        keep: Sequence[str],
        n_rows: int,
        target_type: np.dtype[Any] | None,
    ) -> Iterator[Block]:
        """Blocks of `n_rows` rows and a last one; all columns named are there."""

    def feature_columns(
        self, features: Features, target: str | None, keep: Sequence[str]
    ) -> list[str]:
        """Names of the columns of `X`."""
        if features is not None and not isinstance(features, int):
            return list(features)
        names = [name for name in self.columns if name != target and name not in keep]
        check_width(self.path, len(names), features, beside="the target, or a column to keep,")
        if not names:
            raise TableError(f"{self.path} has no columns of features: it takes one at least.")
        return names

    def check_columns(self, names: Sequence[str]) -> None:
        """Raise unless the file has these columns."""
        there = set(self.columns)
        missing = [name for name in dict.fromkeys(names) if name not in there]
        if not missing:
            return
        close = get_close_matches(missing[0], self.columns, n=1)
        meant = f" Did you mean {close[0]!r}?" if close else ""
        raise TableError(
            f"{self.path} has no column{'s' * (len(missing) > 1)} {listed(missing)}.{meant} It "
            f"has {listed(self.columns)}."
        )


def check_names(path: Any, names: Sequence[str]) -> None:
    """Raise if two columns have the same name."""
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise TableError(
            f"{path} has more than one column {listed(twice)}: give each a name of its own."
        )


class Pieces:
    """Rows gathered from batches until they make a block.

    Numbers are copied as soon as a batch comes, while it is in cache.

    Parameters
    ----------
    names : sequence of str
        Columns that are features.
    others : sequence of str
        Columns that stay as they are.
    n_rows : int
        Rows of a block.
    """

    def __init__(self, names: Sequence[str], others: Sequence[str], n_rows: int) -> None:
        self.names = names
        self.others = others
        self.n_rows = n_rows
        self.X = np.empty((0, len(names)))
        self.columns: list[list[Any]] = []
        self.done = 0

    def add(self, batch: Any) -> None:
        """Take in as many rows of a batch as there is room for."""
        if self.done == 0:
            self.X = np.empty((self.n_rows, len(self.names)), dtype=self.float_type(batch.schema))
        part = self.X[self.done : self.done + batch.num_rows]
        # one turn of the whole is quicker than a strided copy of each column
        part[:] = np.array([numbers(batch.column(name)) for name in self.names]).T
        self.columns.append([batch.column(name) for name in self.others])
        self.done += batch.num_rows

    def float_type(self, schema: Any) -> type[np.floating[Any]]:
        """Single precision if all features have it."""
        types = {schema.field(name).type for name in self.names}
        return np.float32 if types == {pa.float32()} else np.float64

    def taken(self) -> tuple[Array, dict[str, Any]]:
        """The rows of the features, what is missing not a number, and the other columns."""
        others = [pa.concat_arrays(parts) for parts in zip(*self.columns, strict=True)]
        X, self.columns, self.done = self.X[: self.done], [], 0
        return X, dict(zip(self.others, others, strict=True))


def regrouped(
    batches: Iterable[Any], names: Sequence[str], others: Sequence[str], n_rows: int
) -> Iterator[tuple[Array, dict[str, Any]]]:
    """Batches of any size as blocks of `n_rows` rows, and what remains in a last one."""
    pieces = Pieces(names, others, n_rows)
    for batch in batches:
        start = 0
        while start < batch.num_rows:
            piece = batch.slice(start, n_rows - pieces.done)
            pieces.add(piece)
            start += piece.num_rows
            if pieces.done == n_rows:
                yield pieces.taken()
    if pieces.done:
        yield pieces.taken()


def numbers(column: Any) -> Array:
    """A column as floats."""
    if not pa.types.is_float32(column.type) and not pa.types.is_float64(column.type):
        column = column.cast(pa.float64(), safe=False)
    values: Array = column.to_numpy(zero_copy_only=False)
    return values
