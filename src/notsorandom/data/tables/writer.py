"""Write predictions in blocks; the file appears when all of them are written."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import numpy as np
from numpy.lib import format as npy

from notsorandom._utils.files import open_atomic
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

    Raises
    ------
    TableError
        If the path ends in anything else, or its folder doesn't exist.
    ImportError
        If it needs pyarrow, which isn't installed.
    """
    if path is None:
        yield csv_writer(sys.stdout)
        sys.stdout.flush()
        return
    path = Path(path)
    ending = path.suffix.lower()
    if ending not in FORMATS:
        raise TableError(
            f"{path} is of an unknown format: write a file that ends in {', '.join(FORMATS)}."
        )
    if not path.resolve().parent.is_dir():
        raise TableError(f"{path}: the folder {path.parent} doesn't exist: create it first.")
    if ending == ".parquet":
        require_pyarrow("Writing Parquet")
    with open_atomic(path) as file, FORMATS[ending](file) as write:
        yield write


@contextmanager
def csv_file(file: BinaryIO) -> Iterator[Write]:
    """Write CSV in UTF-8."""
    text = io.TextIOWrapper(file, "utf-8", newline="")
    yield csv_writer(text)
    text.detach()  # flushes, and leaves the file open


def csv_writer(file: TextIO) -> Write:
    """Return a function that writes CSV lines, the first with the names; floats in full."""
    has_header = False

    def write(columns: Mapping[str, Any]) -> None:
        nonlocal has_header
        text = io.StringIO()  # one write per block is faster than one per line
        lines = csv.writer(text, lineterminator="\n")
        if not has_header:
            lines.writerow(columns)
            has_header = True
        lines.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))
        file.write(text.getvalue())

    return write


@contextmanager
def parquet_file(file: BinaryIO) -> Iterator[Write]:
    """Write Parquet, one row group per block."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer: Any = None

    def write(columns: Mapping[str, Any]) -> None:
        nonlocal writer
        batch = pa.table({name: pa.array(column) for name, column in columns.items()})
        if writer is None:
            writer = pq.ParquetWriter(file, batch.schema)
        writer.write_table(batch)

    try:
        yield write
    finally:
        if writer is not None:
            writer.close()


@contextmanager
def npy_file(file: BinaryIO) -> Iterator[Write]:
    """Write an array: one column in one dimension, several columns of one type in two."""
    header: dict[str, Any] = {}

    def write(columns: Mapping[str, Any]) -> None:
        array = stack_columns(columns)
        if header and array.dtype.kind == "U" and array.dtype < np.dtype(header["descr"]):
            array = array.astype(header["descr"])  # texts shorter than those of the first block
        if not header:
            header.update(npy.header_data_from_array_1_0(array), shape=(0, *array.shape[1:]))
            npy.write_array_header_1_0(file, header)
        if npy.dtype_to_descr(array.dtype) != header["descr"]:
            raise TableError(
                f"A block has type {array.dtype}, but the first block has {header['descr']}, and "
                "an array has one type: write .csv or .parquet."
            )
        file.write(array.tobytes())
        header["shape"] = (header["shape"][0] + len(array), *array.shape[1:])

    yield write
    if header:
        file.seek(0)  # the header has room for the number of rows, which is known now
        npy.write_array_header_1_0(file, header)


FORMATS = {".csv": csv_file, ".parquet": parquet_file, ".npy": npy_file}


def stack_columns(columns: Mapping[str, Any]) -> Array:
    """Return columns as one array, of one dimension if there is one column."""
    arrays = [np.asarray(column) for column in columns.values()]
    arrays = [array.astype(str) if has_only_text(array) else array for array in arrays]
    types = {"text" if array.dtype.kind == "U" else str(array.dtype) for array in arrays}
    if len(types) > 1 or "object" in types:
        raise TableError(
            f"Columns {', '.join(columns)} have the types {', '.join(sorted(types))}, but an array "
            "has one type, of numbers or text: write .csv or .parquet."
        )
    return arrays[0] if len(arrays) == 1 else np.column_stack(arrays)


def has_only_text(array: Array) -> bool:
    """Whether an array has Python objects that are all text."""
    return array.dtype == object and all(isinstance(value, str) for value in array.flat)
