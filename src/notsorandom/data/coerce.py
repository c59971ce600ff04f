"""Make samples of any supported kind readable by slices of rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from itertools import chain
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_consistent_length

from notsorandom.data.checks import (
    PANDAS_INDEX,
    PARQUET_OPTIONS,
    TableError,
    check_columns,
    format_names,
    import_pandas,
    read_errors,
)
from notsorandom.data.lazy import LazyArray
from notsorandom.data.rows import Array
from notsorandom.data.spool import BLOCK_FORMS, spool_array, spool_blocks

# Objects with one of these attributes have data in memory, on a device, or in a task graph.
ARRAY_ATTRIBUTES = ["__array_interface__", "__array_namespace__", "__cuda_array_interface__"]
ARRAY_ATTRIBUTES += ["__dlpack__", "__dask_graph__", "columns", "iloc"]
# Bytes and fewest rows of pyarrow data decoded at a time: they stay in cache until they are copied.
BATCH_BYTES, BATCH_ROWS = 2**20, 64


def take_rows(X: Any, rows: Array) -> Any:
    """Return the rows with these increasing numbers, of data of any kind that has all in memory."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    if hasattr(X, "take") and hasattr(X, "column_names"):  # of pyarrow
        return X.take(rows)
    return X[rows] if hasattr(X, "shape") else np.asarray(X)[rows]


def read_source(
    X: Any, y: Any = None, sample_weight: Any = None, verbose: int = 0
) -> tuple[Any, Any, Any, list[str] | None]:
    """Return samples that can be sliced, targets, weights and column names.

    Arrays, lists, sparse arrays, data frames and memory maps are returned unchanged. Arrays of
    zarr, h5py and the like, pyarrow data and iterators of blocks are copied to temporary files
    (:mod:`notsorandom.data.spool`), with a progress bar if `verbose`. Only pyarrow data and blocks
    of data frames have column names.

    For pyarrow data and iterators of record batches, `y` is the name of the target column, and
    `sample_weight` can be the name of a column. Other iterators of blocks have neither, since each
    block has its own targets and weights.
    """
    if is_arrow(X) and (y is None or isinstance(y, str) or not hasattr(X, "column_names")):
        if not isinstance(y, str):
            schema = getattr(X, "schema", None) or getattr(X, "projected_schema", None)
            names = format_names(getattr(schema, "names", ()))
            raise ValueError(
                f"y has type {type(y).__name__}, but X is a pyarrow {type(X).__name__}: give the "
                f"name of the target column, one of {names}."
            )
        return spool_arrow(X, y, sample_weight, verbose)
    if is_block_source(X):
        if isinstance(y, str):
            return spool_arrow(X, y, sample_weight, verbose)
        for name, given in (("y", y), ("sample_weight", sample_weight)):
            if given is not None:
                raise ValueError(
                    f"{name} is given, but X is an iterator of blocks, which have their own "
                    f"targets and weights: make each block {BLOCK_FORMS}, and leave {name} out."
                )
        return spool_blocks(X, verbose)
    if not is_sliceable(X):
        return X, y, sample_weight, None
    if y is None:
        raise ValueError(
            "This estimator requires y to be passed, but the target y is None: give one value per "
            "row of X."
        )
    y, sample_weight = load_values(y), load_values(sample_weight)
    check_consistent_length(X, y, sample_weight)
    return spool_array(X, verbose), y, sample_weight, None


def read_lazily(X: Any) -> Any:
    """Return memory maps, also of arrays that must be copied to one, as a LazyArray.

    Samples in memory or on a device are returned unchanged. Samples that can only be iterated over
    raise TypeError.
    """
    if is_block_source(X) or (is_arrow(X) and not hasattr(X, "column_names")):
        raise TypeError(
            f"X is a {type(X).__name__}, which only fit supports: give an array, or call this "
            "method for one block after the other."
        )
    X = spool_array(X) if is_sliceable(X) else X
    is_memory_map = isinstance(X, np.memmap) and X.ndim == 2 and X.dtype.kind in "biuf"
    return LazyArray(X) if is_memory_map else X


def spool_arrow(
    data: Any, target: str, sample_weight: Any = None, verbose: int = 0
) -> tuple[Any, Array, Any, list[str]]:
    """Write pyarrow data, or an iterable of record batches, to temporary files.

    See :func:`read_source`. The target column has numbers, booleans or text. All other columns are
    features and must have numbers.
    """
    import_pandas("pyarrow")
    column = sample_weight if isinstance(sample_weight, str) else None
    names, blocks = read_arrow(data, target, column)
    X, y, weights, _ = spool_blocks(blocks, verbose)
    weights = weights if column is not None else load_values(sample_weight)
    check_consistent_length(X, weights)
    return X, y, weights, names


def read_arrow(
    data: Any, target: str, weight: str | None = None
) -> tuple[list[str], Iterator[tuple[Any, ...]]]:
    """Return the feature names, and blocks (X, y) or (X, y, sample_weight) of data frames.

    `data` is a pyarrow dataset, table, scanner or reader, or an iterable of record batches. An
    index that pandas stored is left out. Wrong columns raise at once, wrong cells when read.
    """
    import pyarrow as pa

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
    import pyarrow as pa
    import pyarrow.dataset as ds

    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pa.Table | ds.Dataset):
        n_rows = max(BATCH_ROWS, BATCH_BYTES // (8 * max(1, len(data.schema.names))))
    if isinstance(data, pa.Table):
        return data.to_reader(n_rows)
    if isinstance(data, ds.Dataset):
        # With the defaults of pyarrow, a scan reads whole files ahead.
        options: dict[str, Any] = {"batch_readahead": 2, "fragment_readahead": 1}
        if isinstance(getattr(data, "format", None), ds.ParquetFileFormat):
            buffered = ds.ParquetFragmentScanOptions(use_buffered_stream=True, **PARQUET_OPTIONS)
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


def is_arrow(X: Any) -> bool:
    """Whether an object is of pyarrow, without importing it."""
    return type(X).__module__.split(".")[0] == "pyarrow"


def is_block_source(X: Any) -> bool:
    """Whether an object is an iterator or iterable, but not an array or container."""
    if hasattr(X, "__next__"):
        return True
    attributes = ("__getitem__", "__array__", "shape", *ARRAY_ATTRIBUTES)
    is_array = any(hasattr(X, name) for name in attributes)
    return isinstance(X, Iterable) and not is_array and not isinstance(X, Mapping | Set)


def is_sliceable(X: Any) -> bool:
    """Whether an object is an array outside of memory that can be read by slices."""
    if isinstance(X, np.ndarray) or sparse.issparse(X):
        return False
    if any(hasattr(X, name) for name in ARRAY_ATTRIBUTES) or not hasattr(X, "__getitem__"):
        return False
    shape, dtype = getattr(X, "shape", None), getattr(X, "dtype", None)
    return isinstance(shape, tuple) and len(shape) > 0 and dtype is not None


def load_values(values: Any) -> Any:
    """Read targets or weights that are not in memory."""
    return np.asarray(values[:]) if is_sliceable(values) else values
