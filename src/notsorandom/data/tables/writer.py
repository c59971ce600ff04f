"""Write predictions in blocks; the file appears when all of them are written."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import numpy as np

from notsorandom._utils.files import check_output_path, open_atomic
from notsorandom.data.rows import Array
from notsorandom.data.tables.base import TableError
from notsorandom.data.tables.open import require_pyarrow

# Takes NumPy or pyarrow arrays of equal length by name, with the same names in each call.
Write = Callable[[Mapping[str, Any]], None]


@contextmanager
def open_writer(path: str | Path | None) -> Iterator[Write]:
    """Yield a function that appends columns to a file.

    The file appears when the ``with`` block ends without an error. Until then an old file of that
    name is unchanged.

    Parameters
    ----------
    path : str, Path or None
        Ends in ``.csv``, ``.parquet`` or ``.npy``. None writes CSV to standard output.
    """
    if path is None:
        yield csv_writer(sys.stdout)
        sys.stdout.flush()
        return
    path = check_output_path(path, *FORMATS)
    if path.suffix.lower() == ".parquet":
        require_pyarrow("Writing Parquet")
    with open_atomic(path) as file, FORMATS[path.suffix.lower()](file) as write:
        yield write


@contextmanager
def csv_file(file: BinaryIO) -> Iterator[Write]:
    """Write CSV in UTF-8."""
    text = io.TextIOWrapper(file, "utf-8", newline="")
    yield csv_writer(text)
    text.detach()  # flushes, and leaves the file open


def csv_writer(file: TextIO) -> Write:
    """Return a function that writes CSV lines, the first with the names; floats in full."""
    lines = csv.writer(file, lineterminator="\n")
    header: list[str] = []

    def write(columns: Mapping[str, Any]) -> None:
        if not header:
            header.extend(columns)
            lines.writerow(header)
        lines.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))

    return write


@contextmanager
def parquet_file(file: BinaryIO) -> Iterator[Write]:
    """Write Parquet, one row group per block."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with ExitStack() as stack:
        writer: Any = None

        def write(columns: Mapping[str, Any]) -> None:
            nonlocal writer
            table = pa.table({name: pa.array(column) for name, column in columns.items()})
            writer = writer or stack.enter_context(pq.ParquetWriter(file, table.schema))
            writer.write_table(table)

        yield write


@contextmanager
def npy_file(file: BinaryIO) -> Iterator[Write]:
    """Write an array: one column in one dimension, several columns of one type in two."""
    blocks: list[Array] = []
    yield lambda columns: blocks.append(stack_columns(columns))
    if blocks:
        np.save(file, np.concatenate(blocks))


FORMATS = {".csv": csv_file, ".parquet": parquet_file, ".npy": npy_file}


def stack_columns(columns: Mapping[str, Any]) -> Array:
    """Return columns as one array, of one dimension if there is one column."""
    arrays = [np.asarray(column) for column in columns.values()]
    for place, array in enumerate(arrays):
        if array.dtype == object and all(isinstance(value, str) for value in array.flat):
            arrays[place] = array.astype(str)
    types = {"text" if array.dtype.kind == "U" else str(array.dtype) for array in arrays}
    if len(types) > 1 or "object" in types:
        raise TableError(
            f"Columns {', '.join(columns)} have the types {', '.join(sorted(types))}, but an array "
            "has one type, of numbers or text: write .csv or .parquet."
        )
    return arrays[0] if len(arrays) == 1 else np.column_stack(arrays)
