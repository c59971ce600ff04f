"""Arrays whose rows are read from storage on demand."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import lru_cache, partial
from numbers import Integral
from threading import Lock
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_array

from notsorandom.data.checks import first_non_finite
from notsorandom.data.rows import FLOATS, Array

# Bytes read at a time: the overhead of a read doesn't show.
READ_BYTES = 2**24
# Without chunks: to read this much unneeded data costs less than another read.
GAP_BYTES = 2**16
# Bytes of chunks in the cache. A chunk that is read in part is kept there until the rest is
# needed, since decompressing it again for a few rows is slow.
CACHE_BYTES = 2**27


class LazyArray(ABC):
    """A matrix that is read by rows: ``[slice]`` and ``[indices]`` return ndarrays.

    A slice may be a view of the cache, so it must not be written to.
    """

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    ndim = 2

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Array:
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self))
            if step == 1:
                return self.read_slice(start, max(start, stop))
            key = np.arange(start, stop, step)
        key = np.asarray(key)
        return self.read_rows(np.flatnonzero(key) if key.dtype == bool else key.astype(np.intp))

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        # An implicit conversion could fill the memory.
        raise TypeError(
            f"{type(self).__name__} of shape {self.shape} is not converted to an array "
            "implicitly: take slices of its rows."
        )

    def chosen(self, indices: Array) -> LazyArray:
        """Return the rows at `indices`, read on demand."""
        return RowSubset(self, indices)

    def prepared(self, function: Callable[[Array], Array]) -> LazyArray:
        """Return the rows transformed by a function, on demand."""
        return PreparedArray(self, function)

    @abstractmethod
    def read_slice(self, start: int, stop: int) -> Array:
        """Return the rows from `start` up to `stop`, which are in bounds."""

    @abstractmethod
    def read_rows(self, indices: Array) -> Array:
        """Return the rows at `indices`, which are in bounds and not negative, in their order."""


class SlicedArray(LazyArray):
    """An array with `shape`, `dtype` and slices of rows, such as those of zarr and h5py.

    float32 is kept, other numbers are converted to float64. If the array has ``chunks``, each is
    read once in a pass over the rows, whatever the slices, since `cache_bytes` of chunks are kept.
    Rows by index are read `read_bytes` at a time.
    """

    def __init__(
        self, array: Any, read_bytes: int = READ_BYTES, cache_bytes: int = CACHE_BYTES
    ) -> None:
        shape, stored = tuple(map(int, array.shape)), np.dtype(array.dtype)
        if len(shape) != 2:
            raise ValueError(
                f"Expected 2D array, got {len(shape)}D array instead: X has shape {shape}, but "
                "must have one row per sample; reshape it."
            )
        if stored.kind not in "biuf":
            raise ValueError(f"X has type {stored}: it must have numbers; convert it.")
        self.array = array
        self.shape = shape[0], shape[1]
        self.dtype = stored if stored in FLOATS else np.dtype(np.float64)  # as scikit-learn does
        self._sizes = read_bytes, cache_bytes
        row_bytes = max(1, shape[1] * self.dtype.itemsize)
        chunks = getattr(array, "chunks", None)  # None in h5py if there are none
        self._chunk = max(1, GAP_BYTES // row_bytes)  # rows
        self._uses_cache = False
        if isinstance(chunks, tuple) and len(chunks) == 2 and isinstance(chunks[0], Integral):
            self._chunk = max(1, int(chunks[0]))
            self._uses_cache = self._chunk * row_bytes <= cache_bytes
        self._max_rows = max(1, read_bytes // row_bytes // self._chunk) * self._chunk
        self._lock = Lock()
        n_cached = max(1, cache_bytes // (self._chunk * row_bytes))
        self._read = partial(read_part, array, self.shape, self.dtype)
        self._read_cached = lru_cache(n_cached)(self._read)

    def __reduce__(self) -> Any:
        return type(self), (self.array, *self._sizes)

    def read_slice(self, start: int, stop: int) -> Array:
        """See :meth:`LazyArray.read_slice`."""
        first = -(-start // self._chunk) * self._chunk
        # The last chunk may be shorter.
        last = stop if stop == len(self) else stop // self._chunk * self._chunk
        if not self._uses_cache or (start, stop) == (first, last):
            return self._read(start, stop)
        # Whole chunks are read directly, the two ends through the cache.
        parts = [self._read(first, last)] if first < last else []
        if start < first:
            parts.insert(0, self._read_in_chunk(start, min(first, stop)))
        if last < stop and first <= last:
            parts.append(self._read_in_chunk(last, stop))
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def read_rows(self, indices: Array) -> Array:
        """See :meth:`LazyArray.read_rows`."""
        result = np.empty((len(indices), self.shape[1]), dtype=self.dtype)
        order = np.argsort(indices, kind="stable")
        wanted = indices[order]
        # A read ends before a chunk that isn't needed, and where it would be too long.
        is_end = (np.diff(wanted // self._chunk) > 1) | (np.diff(wanted // self._max_rows) > 0)
        for places in np.split(order, np.flatnonzero(is_end) + 1) if len(indices) else ():
            first, last = int(indices[places[0]]), int(indices[places[-1]])
            result[places] = self.read_slice(first, last + 1)[indices[places] - first]
        return result

    def _read_in_chunk(self, start: int, stop: int) -> Array:
        """Return a part of a chunk, which is read as a whole and kept."""
        first = start // self._chunk * self._chunk
        with self._lock:  # one thread reads a chunk, others wait for it
            chunk = self._read_cached(first, min(len(self), first + self._chunk))
        return chunk[start - first : stop - first]


def read_part(
    array: Any, shape: tuple[int, int], dtype: np.dtype[Any], start: int, stop: int
) -> Array:
    """Return some rows of an array, read-only."""
    rows = np.asarray(array[start:stop])
    if rows.shape != (stop - start, shape[1]):
        raise ValueError(
            f"Rows {start} to {stop} of X have shape {rows.shape}, but the shape of X is {shape}: "
            "make sure that X doesn't change while it is read."
        )
    with np.errstate(over="ignore"):  # overflow gives infinity, which is reported later
        rows = np.ascontiguousarray(rows, dtype=dtype).view()
    rows.flags.writeable = False  # it may be in the cache
    return rows


class PreparedArray(LazyArray):
    """Rows of a LazyArray or memory map, transformed by a function on demand.

    The function returns a transformed block of rows, with the columns and the type of `like`, by
    default those of the array. Each row depends on one row, such as a row scaled to norm one. It
    must not write to its argument.
    """

    def __init__(
        self, array: Any, function: Callable[[Array], Array], like: Array | None = None
    ) -> None:
        self.array = array
        self.function = function
        like = array if like is None else like
        self.shape = array.shape[0], like.shape[1]
        self.dtype = like.dtype

    def read_slice(self, start: int, stop: int) -> Array:
        """See :meth:`LazyArray.read_slice`."""
        return self._transform(self.array[start:stop])

    def read_rows(self, indices: Array) -> Array:
        """See :meth:`LazyArray.read_rows`."""
        return self._transform(self.array[indices])

    def _transform(self, rows: Array) -> Array:
        rows = rows if sparse.issparse(rows) else np.asarray(rows)
        return np.asarray(self.function(rows), dtype=self.dtype)


class RowSubset(LazyArray):
    """Some rows of a LazyArray or memory map; sorted indices are read fastest."""

    def __init__(self, array: Any, indices: Array) -> None:
        if isinstance(array, RowSubset):  # one level is enough
            array, indices = array.array, array.indices[indices]
        self.array: Any = array
        self.indices: Array = indices
        self.shape = len(indices), array.shape[1]
        self.dtype = array.dtype

    def read_slice(self, start: int, stop: int) -> Array:
        """See :meth:`LazyArray.read_slice`."""
        return self.read_rows(np.arange(start, stop))

    def read_rows(self, indices: Array) -> Array:
        """See :meth:`LazyArray.read_rows`."""
        wanted = self.indices[indices]
        if len(wanted) and (np.diff(wanted) == 1).all():  # a slice needs no copy
            return np.asarray(self.array[int(wanted[0]) : int(wanted[-1]) + 1])
        return np.asarray(self.array[wanted])


def validate_blocks(
    X: Any, min_samples: int = 1, estimator: Any = None, read_bytes: int = READ_BYTES
) -> Any:
    """Validate samples as scikit-learn does, but in blocks of `read_bytes`.

    Returns the LazyArray or memory map, as float32 or float64. Raises ValueError if there are too
    few samples or features, or a number is NaN or infinite. Errors name the estimator.
    """
    if not isinstance(X, LazyArray) and X.dtype not in FLOATS:
        X = SlicedArray(X)
    if X.shape[0] < min_samples or X.shape[1] < 1:
        check_array(X[:], ensure_min_samples=min_samples, estimator=estimator)  # raises
    step = max(1, read_bytes // max(1, X.shape[1] * X.dtype.itemsize))
    for start in range(0, X.shape[0], step):
        block = X[start : start + step]
        place = first_non_finite(block)
        if place is not None:
            row, column = place
            what = "NaN" if np.isnan(block[place]) else "infinity"
            raise ValueError(
                f"Input X contains {what}, in row {start + row}, column {column}, both counted "
                "from 0: replace it, or remove the row."
            )
    return X
