"""Tables with column names, which pyarrow reads as record batches."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa

from notsorandom.data.checks import first_non_finite, format_names
from notsorandom.data.rows import Array
from notsorandom.data.tables.base import (
    Block,
    Request,
    Table,
    TableError,
    check_width,
    rows_per_block,
)

# Bytes of numbers decoded at a time, which stay in cache until they are copied.
BATCH_BYTES = 2**20


class NamedTable(Table):
    """A table whose columns have names."""

    columns: tuple[str, ...]

    def read(self, request: Request) -> Iterator[Block]:
        """See :meth:`Table.read`."""
        features, target, keep, max_rows, target_type = request
        if features is None or isinstance(features, int):
            names = [name for name in self.columns if name != target and name not in keep]
            check_width(self.path, len(names), features)
        else:
            names = list(features)
        if not names:
            raise TableError(f"{self.path} has no feature columns: add at least one.")
        if target in names:
            raise TableError(
                f"{self.path}: column {target!r} is both target and feature: choose one."
            )
        others = keep if target is None else [target, *keep]
        self.check_columns([*names, *others])
        batches = self.batches(names, others)
        n_rows = rows_per_block(max_rows, row_bytes=8 * len(names))
        return self.assemble_blocks(batches, Request(names, target, keep, n_rows, target_type))

    @abstractmethod
    def batches(self, names: Sequence[str], others: Sequence[str]) -> Iterator[Any]:
        """Check the types of the columns, and iterate over record batches of any size."""

    @abstractmethod
    def read_target(
        self, name: str, target_type: np.dtype[Any] | None, column: Any, first_row: int
    ) -> Array:
        """Return a part of the target column, in the given type."""

    @abstractmethod
    def cell_error(self, name: str, row: int, value: Any) -> NoReturn:
        """Raise an error for a cell without a finite value."""

    def assemble_blocks(self, batches: Iterable[Any], request: Request) -> Iterator[Block]:
        """Assemble blocks of `max_rows` rows from record batches."""
        names, target, keep, n_rows, target_type = request
        done = 0
        for rows in regroup(batches, n_rows or 1):
            X = to_matrix(rows, names)
            place = first_non_finite(X)
            if place is not None:
                self.cell_error(names[place[1]], done + place[0], float(X[place]))
            y = None
            if target is not None:
                column = rows.column(target).combine_chunks()
                y = self.read_target(target, target_type, column, done)
            yield Block(X, y, {name: rows.column(name).combine_chunks() for name in keep})
            done += len(X)

    def check_columns(self, names: Sequence[str]) -> None:
        """Raise unless the file has these columns."""
        missing = [name for name in dict.fromkeys(names) if name not in set(self.columns)]
        if missing:
            close = get_close_matches(missing[0], self.columns, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise TableError(
                f"{self.path} has no column{'s' * (len(missing) > 1)} {format_names(missing)}."
                f"{hint} It has {format_names(self.columns)}."
            )

    def check_unique_names(self) -> None:
        """Raise if two columns have the same name."""
        twice = [name for name in dict.fromkeys(self.columns) if self.columns.count(name) > 1]
        if twice:
            raise TableError(
                f"{self.path} has more than one column {format_names(twice)}: rename them."
            )


def regroup(batches: Iterable[Any], n_rows: int) -> Iterator[Any]:
    """Regroup record batches into tables of `n_rows` rows; the last may be shorter."""
    waiting: list[Any] = []
    room = n_rows
    for batch in batches:
        while batch.num_rows:
            waiting.append(batch.slice(0, room))
            batch = batch.slice(waiting[-1].num_rows)
            room -= waiting[-1].num_rows
            if not room:
                yield pa.Table.from_batches(waiting)
                waiting, room = [], n_rows
    if waiting:
        yield pa.Table.from_batches(waiting)


def to_matrix(rows: Any, names: Sequence[str]) -> Array:
    """Return columns as a matrix, with NaN for missing values; float32 if all columns are."""
    is_single = {rows.schema.field(name).type for name in names} == {pa.float32()}
    X = np.empty((rows.num_rows, len(names)), dtype=np.float32 if is_single else np.float64)
    start = 0
    for batch in rows.to_batches(rows_per_batch(len(names))):
        part = X[start : start + batch.num_rows]
        part[:] = np.array([to_floats(batch.column(name)) for name in names]).T
        start += batch.num_rows
    return X


def rows_per_batch(n_columns: int) -> int:
    """Return the number of rows that are transposed in cache."""
    return max(1, BATCH_BYTES // (8 * n_columns))


def to_floats(column: Any) -> Array:
    """Return a column as floats."""
    if not pa.types.is_float32(column.type) and not pa.types.is_float64(column.type):
        column = column.cast(pa.float64(), safe=False)
    values: Array = column.to_numpy(zero_copy_only=False)
    return values
