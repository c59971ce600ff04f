"""Whatever samples are given as: what needs no help goes through, the rest is made sliceable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_consistent_length

from notsorandom.data.lazy import Lazy, Sliced
from notsorandom.data.rows import Array
from notsorandom.data.spool import SHAPES, laid_aside
from notsorandom.data.tables.table import listed

# Who has one of these has its numbers in memory, on a device, in columns, or in a graph of tasks.
OF_OTHERS = (
    "__array_interface__",
    "__array_namespace__",
    "__cuda_array_interface__",
    "__dlpack__",
    "__dask_graph__",
    "columns",
    "iloc",
)


def read_source(
    X: Any, y: Any = None, sample_weight: Any = None, folder: str | Path | None = None
) -> tuple[Any, Any, Any, list[str] | None]:
    """Samples that can be looked at by slices, their targets and weights, and names of columns.

    Parameters
    ----------
    X : anything
        Arrays, lists, sparse arrays and data frames, which are in memory, and memory maps are
        handed through. Arrays of zarr's or h5py's and the like are read by slices
        (:class:`Sliced`). Datasets, tables and readers of pyarrow's, and iterators of blocks, are
        laid aside in temporary files (:func:`spooled`).
    y : array-like, or str
        For what is pyarrow's, the name of the target's column. For an iterator of blocks, nothing,
        since each block has its own; or that name, if the blocks are record batches.
    sample_weight : array-like, or str
        For what is pyarrow's, perhaps the name of a column.
    folder : str or Path, optional
        For temporary files.

    Returns
    -------
    X : what was given, or Sliced, or memmap
    y, sample_weight : what was given, or ndarrays
    names : list of str, or None
        Columns of what was laid aside, if they have names. Those of a data frame that is handed
        through are told by itself.
    """
    if is_arrow(X) and (y is None or isinstance(y, str) or not hasattr(X, "column_names")):
        if y is None or not isinstance(y, str):
            given = "nothing" if y is None else f"a {type(y).__name__}"
            raise ValueError(
                f"y is {given}, but X is a {type(X).__name__} of pyarrow's: give the name of the "
                f"target column, one of {listed(column_names(X))}."
            )
        return from_arrow(X, y, sample_weight, folder)
    if is_source(X):
        if isinstance(y, str):
            return from_arrow(X, y, sample_weight, folder)
        for what, given in (("y", y), ("sample_weight", sample_weight)):
            if given is not None:
                raise ValueError(
                    f"{what} is given beside an iterator of blocks, whose rows it can't be matched "
                    f"with: each block must be {SHAPES}; leave {what} out."
                )
        return tuple(laid_aside(X, folder))  # type: ignore[return-value]
    if not isinstance(X, Lazy) and not is_sliceable(X):
        return X, y, sample_weight, None
    if y is None:
        raise ValueError(
            "y is missing: requires y to be passed, but the target y is None. Give an array with "
            "one for each row of X."
        )
    y, sample_weight = whole(y), whole(sample_weight)
    X = X if isinstance(X, Lazy) else Sliced(X)
    check_consistent_length(X, y, sample_weight)
    return X, y, sample_weight, None


def read_lazily(X: Any) -> Any:
    """Samples that are not in memory, memory maps among them, as Lazy; others as they are.

    Raises
    ------
    TypeError
        If they can only be gone through, which is for fits.
    """
    if is_source(X) or (is_arrow(X) and not hasattr(X, "column_names")):
        raise TypeError(
            f"X is a {type(X).__name__}, which a fit can go through, but no single answer can be "
            "given to: give an array, or one block of it after the other."
        )
    is_map = isinstance(X, np.memmap) and X.ndim == 2 and X.dtype.kind in "biuf"
    return Sliced(X) if is_map or is_sliceable(X) else X


def from_arrow(
    data: Any, target: str, sample_weight: Any = None, folder: str | Path | None = None
) -> tuple[Any, Array, Any, list[str]]:
    """Lay the rows of pyarrow's data aside; see :func:`read_source`.

    Parameters
    ----------
    data : pyarrow Dataset, Table, Scanner, RecordBatchReader, or iterable of RecordBatch
    target : str
        Name of the target's column: numbers, booleans or text, as they are or in a dictionary. All
        other columns are features, and must be of numbers.
    sample_weight : str or array-like, optional
        Name of the column that has weights; or the weights themselves.
    folder : str or Path, optional
        For temporary files.

    Raises
    ------
    TableError
        A ValueError: if there is no such column, or one is not of numbers, or a cell is empty.
    """
    from notsorandom.data.arrow import ArrowTable

    table = ArrowTable(data)
    column = sample_weight if isinstance(sample_weight, str) else None
    names = table.names(target, column)
    X, y, weights, _ = laid_aside(table.weighted_blocks(target, column), folder)
    if column is None:
        weights = whole(sample_weight)
        check_consistent_length(X, weights)
    return X, y, weights, names


def is_arrow(X: Any) -> bool:
    """Whether something is pyarrow's, told without importing it."""
    return type(X).__module__.split(".")[0] == "pyarrow"


def is_source(X: Any) -> bool:
    """Whether something yields blocks: an iterator, or what can be gone through but not indexed."""
    if hasattr(X, "__next__"):
        return True
    is_data = any(hasattr(X, name) for name in ("__getitem__", "__array__", "shape", *OF_OTHERS))
    return isinstance(X, Iterable) and not is_data and not isinstance(X, Mapping | Set)


def is_sliceable(X: Any) -> bool:
    """Whether something is an array that is not in memory, but can be read by slices."""
    if isinstance(X, np.ndarray) or sparse.issparse(X):
        return False
    if any(hasattr(X, name) for name in OF_OTHERS) or not hasattr(X, "__getitem__"):
        return False
    shape, dtype = getattr(X, "shape", None), getattr(X, "dtype", None)
    return isinstance(shape, tuple) and len(shape) > 0 and dtype is not None


def whole(values: Any) -> Any:
    """Targets or weights, read if they are not in memory: they are but a few for each row."""
    return np.asarray(values[:]) if is_sliceable(values) else values


def column_names(data: Any) -> list[str]:
    """Names of the columns of pyarrow's data, as far as they are known."""
    schema = next(
        (getattr(data, name) for name in ("schema", "projected_schema") if hasattr(data, name)), ()
    )
    return list(getattr(schema, "names", ()))
