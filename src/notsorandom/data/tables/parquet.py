"""Parquet, read through pyarrow."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from notsorandom.data.rows import Array
from notsorandom.data.tables.ahead import ahead
from notsorandom.data.tables.arrow import NamedTable, check_names, regrouped
from notsorandom.data.tables.table import Block, TableError, clipped, first_not_finite, with_type

# Bytes of a column read at a time, however large the file's groups of rows are.
BUFFER_BYTES = 2**16
# Bytes of numbers unpacked at a time, which stay in cache until they are copied.
BATCH_BYTES = 2**20


class ParquetTable(NamedTable):
    """A Parquet file.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with self.opened() as file:
            self.schema = file.schema_arrow
            n_rows = file.metadata.num_rows
        self.columns = tuple(self.schema.names)
        check_names(path, self.columns)
        if n_rows == 0:
            raise TableError(f"{path} has columns but no rows: give a file with rows in it.")

    def opened(self) -> Any:
        """The file, its footer read."""
        try:
            return pq.ParquetFile(self.path, buffer_size=BUFFER_BYTES, pre_buffer=False)
        except pa.ArrowException as error:
            raise self.damage(error) from error

    def damage(self, error: Exception) -> TableError:
        """Says that the file can't be read."""
        says = " ".join(str(error).split())
        return TableError(f"{self.path} is damaged, or not Parquet ({says}): write it again.")

    def read_blocks(
        self,
        names: Sequence[str],
        target: str | None,
        keep: Sequence[str],
        n_rows: int,
        target_type: np.dtype[Any] | None,
    ) -> Iterator[Block]:
        """See :meth:`NamedTable.read_blocks`."""
        self.check_types(names, target)
        others = list(dict.fromkeys(keep if target is None else [target, *keep]))
        wanted = list(dict.fromkeys([*names, *others]))
        done = 0
        with closing(self.coming(wanted)) as coming:
            for X, columns in regrouped(coming, names, others, n_rows):
                place = first_not_finite(X)
                if place is not None:
                    row, position = place
                    raise self.cell_error(names[position], done + row, X[row, position])
                y = None
                if target is not None:
                    y = self.target(target, columns[target], done, target_type)
                yield Block(X, y, {name: columns[name] for name in keep}, done)
                done += len(X)

    def coming(self, names: list[str]) -> Generator[Any, None, None]:
        """Some columns, in small batches, read ahead by a thread."""
        return ahead(self.batches(names))

    def batches(self, names: list[str]) -> Generator[Any, None, None]:
        """Some columns, in small batches."""
        n_rows = max(1, BATCH_BYTES // (8 * len(names)))
        with self.opened() as file:
            try:
                yield from file.iter_batches(batch_size=n_rows, columns=names, use_threads=False)
            except (pa.ArrowException, OSError) as error:
                raise self.damage(error) from error

    def check_types(self, names: Sequence[str], target: str | None) -> None:
        """Raise unless features are numbers, and the target numbers, booleans or text."""
        for name in names:
            if not is_number(self.schema.field(name).type):
                raise TableError(
                    f"{self.path}: column {name!r} is of type {self.schema.field(name).type}, not "
                    "of numbers: turn it into some, or leave the column out."
                )
        if target is not None and not is_target(self.schema.field(target).type):
            raise TableError(
                f"{self.path}: column {target!r} is of type {self.schema.field(target).type}: a "
                "target is of numbers, booleans or text."
            )

    def target(self, name: str, column: Any, done: int, target_type: np.dtype[Any] | None) -> Array:
        """A part of the target's column as it is, or as the type asked for."""
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if pa.types.is_decimal(column.type) or pa.types.is_float16(column.type):
            column = column.cast(pa.float64())
        is_missing = column.is_null()
        if is_text(column.type):
            column = column.cast(pa.large_string())
            is_missing = pc.or_kleene(is_missing, pc.equal(pc.utf8_trim_whitespace(column), ""))
        if pc.any(is_missing, min_count=0).as_py():
            row = is_missing.to_numpy(zero_copy_only=False).argmax()
            raise self.cell_error(name, done + int(row), None)
        y = column.to_numpy(zero_copy_only=False)
        if y.dtype.kind == "O":
            y = y.astype(str)
        if y.dtype.kind == "f" and not np.isfinite(y).all():
            row = np.isfinite(y).argmin()
            raise self.cell_error(name, done + int(row), y[row])
        return with_type(y, target_type, f"{self.path}, column {name!r}")

    def cell_error(self, name: str, row: int, value: Any) -> TableError:
        """Says that a cell has no finite number in it."""
        nothing = value is None or np.isnan(value)
        what = "the cell is empty" if nothing else f"{clipped(float(value))} is not finite"
        place = f"{self.path}, column {name!r}, row {row + 1}"
        return TableError(f"{place}: {what}: fill it in, or leave the row out.")


def is_number(arrow_type: Any) -> bool:
    """Whether a column of some type can be made floats."""
    types = pa.types
    kinds = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    return any(is_kind(arrow_type) for is_kind in kinds)


def is_target(arrow_type: Any) -> bool:
    """Whether a column of some type can be a target."""
    if pa.types.is_dictionary(arrow_type):
        return is_target(arrow_type.value_type)
    return is_text(arrow_type) or is_number(arrow_type)


def is_text(arrow_type: Any) -> bool:
    """Whether a column of some type is of text."""
    return str(arrow_type) in ("string", "large_string", "string_view")  # the last is pyarrow 16's
