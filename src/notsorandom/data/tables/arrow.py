"""Typed columns: Parquet, Feather and Arrow files, and pyarrow objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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
from notsorandom.data.tables.base import TableError, feature_names
from notsorandom.data.tables.named import NamedTable, rows_per_batch, to_floats
from notsorandom.data.tables.targets import cast_target

# Few bytes of a column are read at a time, however large the row groups of a Parquet file are.
READ_OPTIONS: dict[str, Any] = {"buffer_size": 2**16, "pre_buffer": False}


class ArrowTable(NamedTable):
    """A pyarrow dataset, table, scanner or reader, or an iterable of its record batches.

    A scanner, a reader or an iterator can be read only once. A scan of a dataset holds a few row
    groups of its files in memory, a ParquetFile only pages. The path is for errors.
    """

    def __init__(self, data: Any, path: Path = Path("X")) -> None:
        self.path = path
        if isinstance(data, pa.RecordBatch):
            data = pa.Table.from_batches([data])
        elif hasattr(data, "to_reader") and not isinstance(data, pa.Table):
            data = data.to_reader()  # a scanner, which selects columns and rows
        elif not hasattr(data, "schema"):
            data = read_batches(data)
        self.data = data
        self.schema = data.schema_arrow if isinstance(data, pq.ParquetFile) else data.schema
        self.columns = tuple(self.schema.names)
        self.check_unique_names()

    @classmethod
    def open(cls, path: Path, file_format: str) -> ArrowTable:
        """Open a file of a format that :mod:`pyarrow.dataset` knows."""
        try:
            if file_format == "parquet":
                data = pq.ParquetFile(path, **READ_OPTIONS)
                n_rows = data.metadata.num_rows
            else:
                data = ds.dataset(path, format=file_format)
                n_rows = data.count_rows()
        except (pa.ArrowException, OSError) as error:
            raise read_error(path, error) from error
        if n_rows == 0:
            raise TableError(f"{path} has columns but no rows: give a file with rows.")
        return cls(data, path)

    def check_type(self, name: str, is_allowed: bool, allowed: str) -> None:
        """Raise unless the type of a column is allowed."""
        if not is_allowed:
            raise TableError(
                f"{self.path}: column {name!r} has type {self.schema.field(name).type}, but "
                f"{allowed}: convert the column, or leave it out."
            )

    def batches(self, names: Sequence[str], others: Sequence[str]) -> Iterator[Any]:
        """See :meth:`NamedTable.batches`."""
        for name in names:
            self.check_type(name, is_number(self.schema.field(name).type), "a feature has numbers")
        return self.read_columns(list(dict.fromkeys([*names, *others])))

    def read_columns(self, names: list[str]) -> Iterator[Any]:
        """Iterate over some columns at least, in record batches."""
        try:
            yield from self.scan(names, rows_per_batch(len(names)))
        except (pa.ArrowException, OSError) as error:
            raise read_error(self.path, error) from error

    def scan(self, names: list[str], n_rows: int) -> Iterable[Any]:
        """Iterate over some columns at least, in batches of about `n_rows` rows."""
        data = self.data
        if isinstance(data, pq.ParquetFile):
            return data.iter_batches(n_rows, columns=names, use_threads=False)
        if isinstance(data, pa.Table):
            return data.select(names).to_batches(max_chunksize=n_rows)
        if isinstance(data, pa.RecordBatchReader):
            return data
        # With the defaults of pyarrow, a scan reads whole files ahead.
        options: dict[str, Any] = {"batch_readahead": 2, "fragment_readahead": 1}
        if isinstance(getattr(data, "format", None), ds.ParquetFileFormat):
            buffered = ds.ParquetFragmentScanOptions(use_buffered_stream=True, **READ_OPTIONS)
            options["fragment_scan_options"] = buffered
        return data.to_batches(columns=names, batch_size=n_rows, use_threads=False, **options)

    def read_target(
        self, name: str, target_type: np.dtype[Any] | None, column: Any, first_row: int
    ) -> Array:
        """See :meth:`NamedTable.read_target`."""
        self.check_type(name, is_target(column.type), "a target has numbers, booleans or text")
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

    def cell_error(self, name: str, row: int, value: Any) -> NoReturn:
        """See :meth:`NamedTable.cell_error`."""
        what = "the cell is empty" if np.isnan(value) else f"{value} is not a finite number"
        place = f"{self.path}, column {name!r}, row {row + 1}"
        raise TableError(f"{place}: {what}: fill it in, or remove the row.")

    def weighted_blocks(
        self, target: str, weight: str | None = None
    ) -> tuple[list[str], Iterator[tuple[Any, ...]]]:
        """Return the feature names, and blocks (X, y) or (X, y, sample_weight)."""
        keep = [] if weight is None else [weight]
        self.check_columns([target, *keep])
        if weight == target:
            raise TableError(
                f"{self.path}: column {target!r} is both target and sample_weight: choose one."
            )
        for name in keep:
            self.check_type(name, is_number(self.schema.field(name).type), "weights are numbers")
        names = [name for name in feature_names(self, target) if name != weight]
        blocks = self.blocks(names, target, keep)
        return names, ((b.X, b.y, *(to_floats(b.kept[name]) for name in keep)) for b in blocks)


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


def is_number(arrow_type: Any) -> bool:
    """Whether a column of a type can be converted to floats."""
    checks = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
    return any(check(arrow_type) for check in checks)


def is_target(arrow_type: Any) -> bool:
    """Whether a column of a type can be a target."""
    if pa.types.is_dictionary(arrow_type):
        return is_target(arrow_type.value_type)
    return is_text(arrow_type) or is_number(arrow_type)


def is_text(arrow_type: Any) -> bool:
    """Whether a column of a type has text."""
    return str(arrow_type) in ("string", "large_string", "string_view")  # views: from pyarrow 16
