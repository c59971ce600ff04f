"""Predictions, written a block at a time, and put in place when all are there."""

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

from notsorandom._utils.files import whole_file
from notsorandom.data.rows import Array
from notsorandom.data.tables.opening import require_pyarrow
from notsorandom.data.tables.table import TableError

KNOWN = (".csv", ".parquet", ".npy")

# Takes columns of equal length by name, NumPy's arrays or pyarrow's; the same names each time.
Write = Callable[[Mapping[str, Any]], None]


@contextmanager
def open_writer(path: str | Path | None) -> Iterator[Write]:
    """A function that writes columns below those written before.

    The file is there only when the ``with`` block has ended well; until then the old one, if any,
    stays as it was.

    Parameters
    ----------
    path : str, Path or None
        Ends in ``.csv``, ``.parquet`` or ``.npy``; None is standard output, as CSV.

    Raises
    ------
    TableError
        If the ending is another.
    ImportError
        If it takes pyarrow, which isn't installed.
    """
    if path is None:
        yield csv_writer(sys.stdout)
        sys.stdout.flush()
        return
    path = Path(path)
    ending = path.suffix.lower()
    if ending not in KNOWN:
        raise TableError(f"{path}: can't tell what to write. Files end in {', '.join(KNOWN)}.")
    if not path.resolve().parent.is_dir():
        raise TableError(f"{path}: there is no folder {path.parent}. Make it first.")
    if ending == ".parquet":
        require_pyarrow("Writing Parquet")
    formats = {".csv": csv_file, ".parquet": parquet_file, ".npy": npy_file}
    with whole_file(path) as file, formats[ending](file) as write:
        yield write


@contextmanager
def csv_file(file: BinaryIO) -> Iterator[Write]:
    """Text in UTF-8, a line for each row."""
    text = io.TextIOWrapper(file, "utf-8", newline="")
    yield csv_writer(text)
    text.detach()  # which writes what is left, and leaves the file open


def csv_writer(file: TextIO) -> Write:
    """Lines, the first with the names; floats with all their digits."""
    has_header = False

    def write(columns: Mapping[str, Any]) -> None:
        nonlocal has_header
        text = io.StringIO()  # a file takes long over every line
        lines = csv.writer(text, lineterminator="\n")
        if not has_header:
            lines.writerow(columns)
            has_header = True
        lines.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))
        file.write(text.getvalue())

    return write


@contextmanager
def parquet_file(file: BinaryIO) -> Iterator[Write]:
    """Parquet, a group of rows for each block."""
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
    """An array of one column, or of several of one type side by side."""
    layout: dict[str, Any] = {}

    def write(columns: Mapping[str, Any]) -> None:
        array = side_by_side(columns)
        if layout and array.dtype.kind == "U" and array.dtype < np.dtype(layout["descr"]):
            array = array.astype(layout["descr"])  # of objects, only the longest text is known
        if not layout:
            layout.update(npy.header_data_from_array_1_0(array), shape=(0, *array.shape[1:]))
            npy.write_array_header_1_0(file, layout)
        if npy.dtype_to_descr(array.dtype) != layout["descr"]:
            raise TableError(
                f"An array of type {layout['descr']} can't go on with {array.dtype}: write .csv "
                "or .parquet."
            )
        file.write(array.tobytes())
        layout["shape"] = (layout["shape"][0] + len(array), *array.shape[1:])

    yield write
    if layout:
        file.seek(0)  # a header has room for the number of rows, which is known only now
        npy.write_array_header_1_0(file, layout)


def side_by_side(columns: Mapping[str, Any]) -> Array:
    """Columns as one array, of one dimension if there is but one of them."""
    arrays = [without_objects(np.asarray(column)) for column in columns.values()]
    types = {"text" if array.dtype.kind == "U" else str(array.dtype) for array in arrays}
    if len(types) > 1 or "object" in types:
        raise TableError(
            f"Columns {', '.join(columns)} are of types {', '.join(sorted(types))}, but an array "
            "is of numbers or text alone: write .csv or .parquet."
        )
    return arrays[0] if len(arrays) == 1 else np.column_stack(arrays)


def without_objects(array: Array) -> Array:
    """Text as NumPy's own, if objects are nothing but that."""
    if array.dtype == object and all(isinstance(value, str) for value in array.flat):
        return array.astype(str)
    return array
