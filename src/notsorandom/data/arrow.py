"""Parquet files, and pyarrow data as blocks of samples. Importing this needs pyarrow."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from notsorandom.data.checks import TableError, check_columns, read_errors

# Bytes of numbers decoded at a time, which stay in cache until they are copied, but some rows.
BATCH_BYTES, MIN_ROWS = 2**20, 64
# Few bytes of a column are read at a time, however large the row groups of a Parquet file are.
READ_OPTIONS: dict[str, Any] = {"buffer_size": 2**16, "pre_buffer": False}
# Columns in which pandas stores an index without a name.
PANDAS_INDEX = re.compile("__index_level_[0-9]+__")


def open_parquet(path: Path) -> tuple[Any, list[str]]:
    """Return an open file, and its columns without an index that pandas stored."""
    file = pq.ParquetFile(path, **READ_OPTIONS)
    columns = [name for name in file.schema_arrow.names if not PANDAS_INDEX.fullmatch(name)]
    check_columns(path, columns, ())
    if file.metadata.num_rows == 0 or not columns:
        raise TableError(f"{path} has no rows or no columns: give a file with both.")
    return file, columns


def read_arrow(
    data: Any, target: str, weight: str | None = None
) -> tuple[list[str], Iterator[tuple[Any, ...]]]:
    """Return the feature names, and blocks (X, y) or (X, y, sample_weight) of data frames.

    `data` is a pyarrow dataset, table, scanner or reader, or an iterable of record batches. An
    index that pandas stored is left out. Wrong columns raise at once, wrong cells when read.
    """
    reader = open_reader(data)
    columns, others = reader.schema.names, [target] if weight is None else [target, weight]
    check_columns("X", columns, others)
    names = [name for name in columns if name not in others and not PANDAS_INDEX.fullmatch(name)]
    if not names or weight == target:
        raise TableError("X has no columns besides target and weights, or these are the same.")
    for name in (*names, *others[1:]):
        kind = reader.schema.field(name).type
        is_number = pa.types.is_primitive(kind) and not pa.types.is_temporal(kind)
        if not (is_number or pa.types.is_decimal(kind) or pa.types.is_null(kind)):
            raise TableError(
                f"X: column {name!r} has type {kind}, but must have numbers: leave it out, or give "
                "notsorandom.tabular_pipeline a data frame, which encodes text and dates."
            )

    def read_blocks() -> Iterator[tuple[Any, ...]]:
        done = 0
        with read_errors("X"):
            for batch in reader:
                if empty := [name for name in (*names, *others) if batch[name].null_count]:
                    row = done + batch[empty[0]].is_null().index(True).as_py() + 1
                    raise TableError(f"X, column {empty[0]!r}, row {row}: the cell is empty.")
                done += batch.num_rows
                frame = batch.to_pandas()
                yield frame[names], *(frame[name] for name in others)

    return names, read_blocks()


def open_reader(data: Any) -> Any:
    """Return pyarrow data as a RecordBatchReader."""
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pa.Table | ds.Dataset):
        n_rows = max(MIN_ROWS, BATCH_BYTES // (8 * max(1, len(data.schema.names))))
    if isinstance(data, pa.Table):
        return data.to_reader(n_rows)
    if isinstance(data, ds.Dataset):
        # With the defaults of pyarrow, a scan reads whole files ahead.
        options: dict[str, Any] = {"batch_readahead": 2, "fragment_readahead": 1}
        if isinstance(getattr(data, "format", None), ds.ParquetFileFormat):
            buffered = ds.ParquetFragmentScanOptions(use_buffered_stream=True, **READ_OPTIONS)
            options["fragment_scan_options"] = buffered
        data = data.scanner(batch_size=n_rows, use_threads=False, **options)
    if isinstance(data, ds.Scanner):
        return data.to_reader()
    if isinstance(data, pa.RecordBatchReader):
        return data
    batches = iter(data)
    first = next(batches, None)
    if not isinstance(first, pa.RecordBatch):
        raise TableError(
            f"The first block is a {type(first).__name__}, but y is a column name: give pyarrow "
            "record batches, or leave y out."
        )
    return pa.RecordBatchReader.from_batches(first.schema, chain([first], batches))
