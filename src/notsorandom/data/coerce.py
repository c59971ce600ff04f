"""Make samples of any supported kind readable by slices of rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_consistent_length

from notsorandom.data.checks import format_names, import_pandas
from notsorandom.data.lazy import LazyArray, SlicedArray
from notsorandom.data.rows import Array
from notsorandom.data.spool import BLOCK_FORMS, spool_blocks

# Objects with one of these attributes have data in memory, on a device, or in a task graph.
ARRAY_ATTRIBUTES = ["__array_interface__", "__array_namespace__", "__cuda_array_interface__"]
ARRAY_ATTRIBUTES += ["__dlpack__", "__dask_graph__", "columns", "iloc"]


def read_source(
    X: Any, y: Any = None, sample_weight: Any = None
) -> tuple[Any, Any, Any, list[str] | None]:
    """Return samples that can be sliced, targets, weights and column names.

    Arrays, lists, sparse arrays, data frames and memory maps are returned unchanged. Arrays of
    zarr, h5py and the like are read by slices (:class:`SlicedArray`). pyarrow data and iterators of
    blocks are written to temporary files (:func:`spool_blocks`); only these have column names.

    For pyarrow data and iterators of record batches, `y` is the name of the target column, and
    `sample_weight` can be that of a column. Other iterators of blocks have neither, since each
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
        return spool_arrow(X, y, sample_weight)
    if is_block_source(X):
        if isinstance(y, str):
            return spool_arrow(X, y, sample_weight)
        for name, given in (("y", y), ("sample_weight", sample_weight)):
            if given is not None:
                raise ValueError(
                    f"{name} is given, but X is an iterator of blocks, which have their own "
                    f"targets and weights: make each block {BLOCK_FORMS}, and leave {name} out."
                )
        return spool_blocks(X)
    if not isinstance(X, LazyArray) and not is_sliceable(X):
        return X, y, sample_weight, None
    if y is None:
        raise ValueError(
            "This estimator requires y to be passed, but the target y is None: give one value per "
            "row of X."
        )
    y, sample_weight = load_values(y), load_values(sample_weight)
    X = X if isinstance(X, LazyArray) else SlicedArray(X)
    check_consistent_length(X, y, sample_weight)
    return X, y, sample_weight, None


def read_lazily(X: Any) -> Any:
    """Return samples that are not in memory, including memory maps, as a LazyArray.

    Other samples are returned unchanged, except that those that can only be iterated over raise
    TypeError.
    """
    if is_block_source(X) or (is_arrow(X) and not hasattr(X, "column_names")):
        raise TypeError(
            f"X is a {type(X).__name__}, which only fit supports: give an array, or call this "
            "method for one block after the other."
        )
    is_memory_map = isinstance(X, np.memmap) and X.ndim == 2 and X.dtype.kind in "biuf"
    return SlicedArray(X) if is_memory_map or is_sliceable(X) else X


def spool_arrow(
    data: Any, target: str, sample_weight: Any = None
) -> tuple[Any, Array, Any, list[str]]:
    """Write pyarrow data, or an iterable of record batches, to temporary files.

    See :func:`read_source`. The target column has numbers, booleans or text. All other columns are
    features and must have numbers.
    """
    import_pandas("pyarrow")
    from notsorandom.data.arrow import read_arrow

    column = sample_weight if isinstance(sample_weight, str) else None
    names, blocks = read_arrow(data, target, column)
    X, y, weights, _ = spool_blocks(blocks)
    weights = weights if column is not None else load_values(sample_weight)
    check_consistent_length(X, weights)
    return X, y, weights, names


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
