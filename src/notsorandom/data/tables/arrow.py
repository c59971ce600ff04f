"""Typed columns: Parquet, Feather and Arrow files, and pyarrow objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from notsorandom.data.checks import first_non_finite
from notsorandom.data.rows import Array
from notsorandom.data.tables.base import Block, Selection, TableError
from notsorandom.data.tables.named import NamedTable, assemble_blocks, to_floats
from notsorandom.data.tables.read_all import feature_names
from notsorandom.data.tables.targets import cast_target

# Bytes of a column read at a time, however large the row groups of a Parquet file are.
BUFFER_BYTES = 2**16
# Bytes of numbers decoded at a time, which stay in cache until they are copied.
BATCH_BYTES = 2**20
# Batches that a scan reads ahead. The defaults of pyarrow need much memory.
READAHEAD = 2


class ArrowTable(NamedTable):
    """A pyarrow dataset, table, scanner or reader, or an iterable of its record batches.

    Parameters
    ----------
    data : pyarrow object, or iterable of RecordBatch
        A scanner, a reader or an iterator can be read only once.
    path : Path
        Name of the data in errors.
    batch_bytes : int
        Bytes of numbers decoded at a time.
    """

    def __init__(self, data: Any, path: Path = Path("X"), batch_bytes: int = BATCH_BYTES) -> None:
        self.path = path
        self.batch_bytes = batch_bytes
        if isinstance(data, pa.RecordBatch):
            data = pa.Table.from_batches([data])
        elif hasattr(data, "to_reader") and not isinstance(data, pa.Table):
            data = data.to_reader()  # a scanner, which selects columns and rows
        elif not hasattr(data, "schema"):
            data = read_batches(data)
        self.data = data
        self.schema = data.schema
        self.columns = tuple(self.schema.names)
        self.check_unique_names()

    @classmethod
    def open(cls, path: Path, file_format: str) -> ArrowTable:
        """Open a file of a format that :mod:`pyarrow.dataset` knows."""
        try:
            table = cls(ds.dataset(path, format=file_format), path)
            n_rows = table.data.count_rows()
        except (pa.ArrowException, OSError) as error:
            raise read_error(path, error) from error
        if n_rows == 0:
            raise TableError(f"{path} has columns but no rows: give a file with rows.")
        return table

    def read_blocks(self, selection: Selection) -> Iterator[Block]:
        """See :meth:`NamedTable.read_blocks`."""
        for name in selection.names:
            self.check_type(name, is_number(self.schema.field(name).type), "a feature has numbers")
        target = selection.target
        if target is not None:
            allowed = "a target has numbers, booleans or text"
            self.check_type(target, is_target(self.schema.field(target).type), allowed)
        read_target = partial(self.read_target, str(target), selection.target_type)
        batches = self.batches(selection.columns)
        return assemble_blocks(batches, selection, read_target, self.cell_error)

    def check_type(self, name: str, is_allowed: bool, allowed: str) -> None:
        """Raise unless the type of a column is allowed."""
        if not is_allowed:
            raise TableError(
                f"{self.path}: column {name!r} has type {self.schema.field(name).type}, but "
                f"{allowed}: convert the column, or leave it out."
            )

    def batches(self, names: list[str]) -> Iterator[Any]:
        """Iterate over some columns in small batches."""
        n_rows = max(1, self.batch_bytes // (8 * len(names)))
        try:
            for batch in self.scan(names, n_rows):
                for start in range(0, batch.num_rows, n_rows):  # slices are not copied
                    yield batch.slice(start, n_rows)
        except (pa.ArrowException, OSError) as error:
            raise read_error(self.path, error) from error

    def scan(self, names: list[str], n_rows: int) -> Iterable[Any]:
        """Iterate over some columns at least, in batches of any size."""
        if isinstance(self.data, pa.Table):
            return self.data.select(names).to_batches(max_chunksize=n_rows)
        return self.scan_dataset(names, n_rows) if hasattr(self.data, "to_batches") else self.data

    def scan_dataset(self, names: list[str], n_rows: int) -> Iterator[Any]:
        """Iterate over some columns of a dataset.

        A scan holds whole row groups, often of a million rows. So Parquet files whose columns have
        the types of the dataset are read in smaller pieces.
        """
        options = {"batch_size": n_rows, "batch_readahead": READAHEAD, "fragment_readahead": 1}
        # Only a scan applies the filter of a dataset. None if pyarrow renames this attribute.
        has_filter = getattr(self.data, "_scan_options", None) != {}
        if has_filter or not hasattr(self.data, "get_fragments"):
            yield from self.data.to_batches(columns=names, **options)
            return
        wanted = [self.schema.field(name) for name in names]
        for fragment in self.data.get_fragments():
            if is_plain_parquet(fragment, wanted):
                with fragment.filesystem.open_input_file(fragment.path) as file:
                    parquet = pq.ParquetFile(file, buffer_size=BUFFER_BYTES, pre_buffer=False)
                    groups = [group.id for group in fragment.row_groups]
                    yield from parquet.iter_batches(n_rows, groups, names, use_threads=False)
            else:
                yield from fragment.to_batches(self.schema, columns=names, **options)

    def read_target(
        self, name: str, target_type: np.dtype[Any] | None, column: Any, first_row: int
    ) -> Array:
        """Return a part of the target column, in the given type."""
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if pa.types.is_decimal(column.type) or pa.types.is_float16(column.type):
            column = column.cast(pa.float64())
        is_missing = column.is_null()
        if is_text(column.type):
            column = column.cast(pa.large_string())
            is_missing = pc.or_kleene(is_missing, pc.equal(pc.utf8_trim_whitespace(column), ""))
        missing = np.flatnonzero(is_missing.to_numpy(zero_copy_only=False))
        if len(missing):
            self.cell_error(name, first_row + int(missing[0]), np.nan)
        y: Array = column.to_numpy(zero_copy_only=False)
        place = first_non_finite(y) if y.dtype.kind == "f" else None
        if place is not None:
            self.cell_error(name, first_row + place[0], float(y[place]))
        y = y.astype(str) if y.dtype.kind == "O" else y
        return cast_target(y, target_type, f"{self.path}: column {name!r}")

    def cell_error(self, name: str, row: int, value: float) -> NoReturn:
        """Raise an error for a cell without a finite value."""
        what = "the cell is empty" if np.isnan(value) else f"{value} is not a finite number"
        place = f"{self.path}, column {name!r}, row {row + 1}"
        raise TableError(f"{place}: {what}: fill it in, or remove the row.")

    def feature_names(self, target: str, weight: str | None = None) -> list[str]:
        """Return the columns other than the target and the sample weights."""
        self.check_columns([target] if weight is None else [target, weight])
        if weight == target:
            raise TableError(
                f"{self.path}: column {target!r} is both target and sample_weight: choose one."
            )
        return [name for name in feature_names(self, target) if name != weight]

    def weighted_blocks(self, target: str, weight: str | None = None) -> Iterator[tuple[Any, ...]]:
        """Iterate over blocks (X, y), or (X, y, sample_weight) if a weight column is given."""
        names = self.feature_names(target, weight)
        keep = []
        if weight is not None:
            keep = [weight]
            self.check_type(
                weight, is_number(self.schema.field(weight).type), "weights are numbers"
            )
        for block in self.blocks(names, target, keep):
            yield block.X, block.y, *(to_floats(block.kept[name]) for name in keep)


def read_batches(batches: Iterable[Any]) -> Any:
    """Return a pyarrow reader of record batches that have the same schema."""
    remaining = iter(batches)
    first = next(remaining, None)
    if first is None:
        raise ValueError("The iterable has no record batches: give at least one.")
    schema = getattr(first, "schema", None)

    def check(batch: Any, number: int) -> Any:
        if not isinstance(batch, pa.RecordBatch) or batch.schema != schema:
            raise ValueError(
                f"Block {number} is a {type(batch).__name__}, but y is a column name, so all "
                "blocks must be pyarrow record batches with the schema of the first: give these, "
                "or leave y out."
            )
        return batch

    later = (check(batch, number) for number, batch in enumerate(remaining, start=2))
    return pa.RecordBatchReader.from_batches(schema, chain([check(first, 1)], later))


def read_error(path: Path, error: Exception) -> TableError:
    """Return an error for data that pyarrow can't read."""
    reason = " ".join(str(error).split())
    return TableError(f"{path} can't be read; it may be damaged ({reason}): write it again.")


def is_plain_parquet(fragment: Any, wanted: list[Any]) -> bool:
    """Whether a part of a dataset is a Parquet file that has the wanted columns and types."""
    if not all(hasattr(fragment, name) for name in ("row_groups", "path", "filesystem")):
        return False
    schema = fragment.physical_schema
    return bool(fragment.path) and all(
        schema.get_field_index(field.name) >= 0 and schema.field(field.name).type == field.type
        for field in wanted
    )


def is_number(arrow_type: Any) -> bool:
    """Whether a column of a type can be converted to floats."""
    types = pa.types
    checks = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    return any(check(arrow_type) for check in checks)


def is_target(arrow_type: Any) -> bool:
    """Whether a column of a type can be a target."""
    if pa.types.is_dictionary(arrow_type):
        return is_target(arrow_type.value_type)
    return is_text(arrow_type) or is_number(arrow_type)


def is_text(arrow_type: Any) -> bool:
    """Whether a column of a type has text."""
    return str(arrow_type) in ("string", "large_string", "string_view")  # views: from pyarrow 16
