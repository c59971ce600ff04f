"""Data files as people have them, read whole or in blocks, and files of predictions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_svmlight_file

from notsorandom._utils.files import check_output_path, open_atomic
from notsorandom.data.checks import (
    PANDAS_INDEX,
    PARQUET_OPTIONS,
    TableError,
    check_columns,
    check_size,
    import_pandas,
    read_errors,
)
from notsorandom.data.rows import Array
from notsorandom.data.text import TextFile, open_text

# Suffixes of the names of files.
TEXT, MATRIX = (".csv", ".tsv", ".txt"), (".npy", ".npz", ".libsvm", ".svm", ".svmlight")
ALL_SUFFIXES = (*TEXT, *(f"{suffix}.gz" for suffix in TEXT), ".parquet", *MATRIX)
# Most bytes of a table in memory, and most rows and bytes of a frame of some of its rows.
MAX_BYTES, FRAME_ROWS, FRAME_BYTES = 2**31, 2**16, 2**25
PARQUET_ROWS = 2**10  # read at a time, to count the bytes of a table


def open_data_file(path: str | Path, *, max_bytes: int = MAX_BYTES) -> DataFile:
    """Open a data file.

    Text with a header (``.csv``, ``.tsv``, ``.txt``, also with ``.gz``), whose delimiter, decimal
    mark and encoding are found; typed columns (``.parquet``); or matrices (``.npy``, ``.npz`` with
    arrays `X` and `y`, ``.libsvm``, ``.svm``, ``.svmlight``). Read whole, a table may take at most
    `max_bytes` in memory: decompressed text, or 8 for each of its cells. Blocks have no limit.
    """
    path = Path(path)
    if not path.is_file():
        reason = "is no ordinary file" if path.exists() else "doesn't exist"
        raise TableError(f"{path} {reason}: give the path of a file.")
    if path.stat().st_size == 0:
        raise TableError(f"{path} is empty: give a file with rows.")
    suffix = next((suffix for suffix in ALL_SUFFIXES if path.name.lower().endswith(suffix)), None)
    if suffix is None:
        raise TableError(
            f"{path} is of an unknown format: it must end in {', '.join(ALL_SUFFIXES)}."
        )
    if suffix in MATRIX:
        return DataFile(path, max_bytes)
    import_pandas()
    import_pandas("pyarrow")
    with read_errors(path):
        if suffix == ".parquet":
            source, columns = open_parquet(path)
            return DataFile(path, max_bytes, columns, source=source)
        text = open_text(path)
        return DataFile(path, max_bytes, text.columns, text.dialect, text)


@dataclass(frozen=True)
class DataFile:
    """A data file: a frame of named columns, or a matrix of numbers in unnamed columns.

    Columns of a frame without a name are called ``Unnamed: 0`` and so on, as in pandas. `dialect`
    says how text differs from commas, decimal points and UTF-8, such as "semicolons, UTF-16".
    """

    path: Path
    max_bytes: int
    columns: list[str] = field(default_factory=list)
    dialect: str = ""
    source: Any = None

    @property
    def is_frame(self) -> bool:
        """Whether columns have names: :meth:`read` and :meth:`blocks` rather than a matrix."""
        return self.source is not None

    def read(self, columns: Sequence[str] | None = None) -> Any:
        """Return all rows as a data frame, with types that fit all cells of a column."""
        names = list(self.columns if columns is None else columns)
        check_columns(self.path, self.columns, names)
        with read_errors(self.path):
            if isinstance(self.source, TextFile):
                return next(self.source.blocks(max_bytes=self.max_bytes))[names]
            import pyarrow as pa

            check_size(self.path, 8 * len(names) * self.source.metadata.num_rows, self.max_bytes)
            n_bytes, batches = 0, []
            for batch in self.source.iter_batches(PARQUET_ROWS, columns=names):  # text may be long
                n_bytes += batch.nbytes
                check_size(self.path, n_bytes, self.max_bytes)
                batches.append(batch)
            return to_frame(pa.Table.from_batches(batches))[names]

    def blocks(
        self, columns: Sequence[str], texts: Collection[str] = (), max_rows: int = FRAME_ROWS
    ) -> Iterator[Any]:
        """Iterate over all rows, as data frames of at most `max_rows` rows, in bounded memory.

        In text files, columns in `texts` are text, and the type of the others depends on the cells
        of a block. Wrong columns raise at once, wrong cells when they are read.
        """
        check_columns(self.path, self.columns, columns)
        return self._blocks(list(columns), texts, max_rows)

    def _blocks(self, names: list[str], texts: Collection[str], max_rows: int) -> Iterator[Any]:
        is_text = isinstance(self.source, TextFile)
        row_bytes = max(8 * len(self.columns), self.source.row_bytes if is_text else 0)
        size = min(max_rows, max(1, FRAME_BYTES // row_bytes))
        with read_errors(self.path):
            if is_text:
                frames = self.source.blocks(set(texts).intersection(names), size)
            else:
                frames = map(to_frame, self.source.iter_batches(size, columns=names))
            for frame in frames:
                yield frame[names]

    def read_matrix(
        self, n_features: int | None = None, zero_based: bool | str = "auto"
    ) -> tuple[Any, Array | None]:
        """Return the samples of a matrix, and the target if the file has one.

        Samples are a memory map of ``.npy``, an array of ``.npz``, a sparse array of LIBSVM. The
        parameters are for LIBSVM: see :func:`sklearn.datasets.load_svmlight_file`. To predict, give
        the number of columns and the first column number of the training file.
        """
        path, y = self.path, None
        with read_errors(path):
            if path.suffix.lower() == ".npy":
                X = np.load(path, mmap_mode="r", allow_pickle=False)
            elif path.suffix.lower() == ".npz":
                with np.load(path, allow_pickle=False) as arrays:
                    sizes = [info.file_size for info in arrays.zip.infolist()]
                    check_size(path, sum(sizes), self.max_bytes)
                    try:
                        X, y = arrays["X"], arrays.get("y")
                    except MemoryError as error:  # a header announces more than there is
                        raise ValueError(str(error)) from error
            else:
                check_size(path, path.stat().st_size, self.max_bytes)
                X, y = load_svmlight_file(str(path), n_features=n_features, zero_based=zero_based)
                check_size(path, 8 * X.shape[1], self.max_bytes)  # of one sample
                y = y.astype(np.int64) if (y == np.rint(y)).all() else y
        is_matrix = X.ndim == 2 and 0 not in X.shape and X.dtype.kind in "biuf"
        is_target = y is None or (y.shape == X.shape[:1] and y.dtype.kind in "biufU")
        if not (is_matrix and is_target):
            target = "" if y is None else f", and y of shape {y.shape} and type {y.dtype}"
            raise TableError(
                f"{path} has X of shape {X.shape} and type {X.dtype}{target}: X must be numbers in "
                "rows and columns, and y one number or text for each row."
            )
        return X, y


def open_parquet(path: Path) -> tuple[Any, list[str]]:
    """Return an open file, and its columns without an index that pandas stored."""
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path, **PARQUET_OPTIONS)
    columns = [name for name in file.schema_arrow.names if not PANDAS_INDEX.fullmatch(name)]
    check_columns(path, columns, ())
    if file.metadata.num_rows == 0 or not columns:
        raise TableError(f"{path} has no rows or no columns: give a file with both.")
    return file, columns


def to_frame(table: Any) -> Any:
    """Return pyarrow data as a data frame: decimals are floats, dates datetime64, times text."""
    import pyarrow as pa

    types = {}
    for name, kind in zip(table.schema.names, table.schema.types, strict=True):
        is_float = pa.types.is_null(kind) or pa.types.is_decimal(kind)
        types[name] = pa.float64() if is_float else pa.string() if pa.types.is_time(kind) else kind
    return table.cast(pa.schema(types), safe=False).to_pandas(date_as_object=False)


@contextmanager
def open_writer(path: str | Path | None) -> Iterator[Callable[[Any], None]]:
    """Yield a function that appends a data frame to a .csv or .parquet file, or standard output.

    The file appears when the ``with`` block ends without an error. Until then an old file of that
    name is unchanged. Standard output is `path` None, and gets CSV.
    """
    import_pandas("pyarrow")
    import pyarrow as pa
    from pyarrow.csv import CSVWriter
    from pyarrow.parquet import ParquetWriter

    path = None if path is None else check_output_path(path, ".csv", ".parquet")
    open_table = ParquetWriter if path and path.suffix.lower() == ".parquet" else CSVWriter
    with ExitStack() as stack:
        file = sys.stdout.buffer if path is None else stack.enter_context(open_atomic(path))
        schema = writer = None

        def write(frame: Any) -> None:
            nonlocal schema, writer
            table = pa.Table.from_pandas(frame, preserve_index=False)
            if writer is None:  # a column that is empty so far may have text later
                types = [pa.string() if pa.types.is_null(t) else t for t in table.schema.types]
                schema = pa.schema(zip(table.column_names, types, strict=True))
                writer = stack.enter_context(open_table(file, schema))
            writer.write_table(table.cast(schema))
            file.flush()

        yield write
