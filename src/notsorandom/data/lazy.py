"""Arrays whose rows are read from storage on demand."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable
from itertools import pairwise
from numbers import Integral
from threading import Lock
from typing import Any

import numpy as np
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
        return self.read_rows(normalize_indices(key, len(self)))

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        # An implicit conversion could fill the memory.
        raise TypeError(
            f"{type(self).__name__} of shape {self.shape} is not converted to an array "
            "implicitly: take slices of its rows."
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={self.shape}, dtype={self.dtype})"

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

    Parameters
    ----------
    array : array-like of shape (n_samples, n_features)
        Numbers. float32 is kept, other types are converted to float64. If the array has
        ``chunks``, each is read once in a pass over the rows, whatever the slices.
    read_bytes : int
        Bytes read at a time when rows are read by index.
    cache_bytes : int
        Bytes of chunks that are kept.

    Raises
    ------
    ValueError
        If it has other than two dimensions, or no numbers.
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
        self._max_cached = max(1, cache_bytes // (self._chunk * row_bytes))
        self._cache: OrderedDict[int, Array] = OrderedDict()
        self._lock = Lock()

    def __reduce__(self) -> Any:
        return type(self), (self.array, *self._sizes)

    def read_slice(self, start: int, stop: int) -> Array:
        """See :meth:`LazyArray.read_slice`."""
        cuts = [start, stop]
        if self._uses_cache:  # whole chunks are read directly, the two ends through the cache
            inner = min(stop, -(-start // self._chunk) * self._chunk)
            # The last chunk may be shorter.
            end = stop if stop == len(self) else stop // self._chunk * self._chunk
            cuts = [start, inner, max(inner, end), stop]
        parts = [self._read_part(*ends) for ends in pairwise(cuts) if ends[0] < ends[1]]
        if len(parts) == 1:
            return parts[0]
        result = np.empty((stop - start, self.shape[1]), dtype=self.dtype)
        return np.concatenate(parts, out=result) if parts else result

    def read_rows(self, indices: Array) -> Array:
        """See :meth:`LazyArray.read_rows`."""
        result = np.empty((len(indices), self.shape[1]), dtype=self.dtype)
        if not len(indices):
            return result
        order = np.argsort(indices, kind="stable")
        wanted = indices[order]
        # A read ends before a chunk that isn't needed, and where it would be too long.
        is_end = (np.diff(wanted // self._chunk) > 1) | (np.diff(wanted // self._max_rows) > 0)
        ends = np.union1d(np.flatnonzero(is_end) + 1, np.arange(0, len(wanted), self._max_rows))
        for begin, end in zip(ends, np.append(ends[1:], len(wanted)), strict=True):
            first, last = int(wanted[begin]), int(wanted[end - 1])
            part = self.read_slice(first, last + 1)
            result[order[begin:end]] = part[wanted[begin:end] - first]
        return result

    def _read_part(self, start: int, stop: int) -> Array:
        """Return rows that are whole chunks, or a part of one chunk."""
        number = start // self._chunk
        first, last = number * self._chunk, min(len(self), (number + 1) * self._chunk)
        if not self._uses_cache or stop > last or (start, stop) == (first, last):
            return self._read(start, stop)
        with self._lock:
            if number not in self._cache:
                self._cache[number] = self._read(first, last)
                self._cache[number].flags.writeable = False
                while len(self._cache) > self._max_cached:
                    self._cache.popitem(last=False)
            self._cache.move_to_end(number)
            return self._cache[number][start - first : stop - first]

    def _read(self, start: int, stop: int) -> Array:
        rows = np.asarray(self.array[start:stop])
        if rows.shape != (stop - start, self.shape[1]):
            raise ValueError(
                f"Rows {start} to {stop} of X have shape {rows.shape}, but the shape of X is "
                f"{self.shape}: make sure that X doesn't change while it is read."
            )
        with np.errstate(over="ignore"):  # overflow gives infinity, which is reported later
            return np.ascontiguousarray(rows, dtype=self.dtype)


class PreparedArray(LazyArray):
    """Rows of an array, transformed by a function on demand.

    Parameters
    ----------
    array : LazyArray, or ndarray such as a memory map
    function : callable
        Returns a transformed block of rows, of the same shape and type. Each row depends on one
        row, such as a row scaled to norm one. It must not write to its argument.
    """

    def __init__(self, array: Any, function: Callable[[Array], Array]) -> None:
        self.array = array
        self.function = function
        self.shape = array.shape[0], array.shape[1]
        self.dtype = array.dtype

    def read_slice(self, start: int, stop: int) -> Array:
        """See :meth:`LazyArray.read_slice`."""
        return self._transform(self.array[start:stop])

    def read_rows(self, indices: Array) -> Array:
        """See :meth:`LazyArray.read_rows`."""
        return self._transform(self.array[indices])

    def _transform(self, rows: Array) -> Array:
        return np.asarray(self.function(np.asarray(rows)), dtype=self.dtype)


class RowSubset(LazyArray):
    """Some rows of an array, read on demand.

    Parameters
    ----------
    array : LazyArray, or ndarray such as a memory map
    indices : ndarray of int, or a boolean mask
        Sorted indices are read fastest.
    """

    def __init__(self, array: Any, indices: Any) -> None:
        indices = normalize_indices(indices, array.shape[0])
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
    """Validate samples as scikit-learn does, but in blocks.

    Parameters
    ----------
    X : LazyArray, or ndarray such as a memory map
        Numbers.
    min_samples : int
    estimator : estimator or str, optional
        Named in errors.
    read_bytes : int
        Bytes read at a time.

    Returns
    -------
    LazyArray or ndarray
        The samples, as float32 or float64.

    Raises
    ------
    ValueError
        If there are too few samples or features, or a number is NaN or infinite.
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


def normalize_indices(key: Any, n_rows: int) -> Array:
    """Return row indices, none negative, from indices or a mask."""
    indices = np.asarray(key)
    if indices.ndim == 1 and indices.dtype == bool and len(indices) == n_rows:
        return np.flatnonzero(indices)
    if indices.ndim == 1 and indices.size == 0:
        indices = indices.astype(int)
    if indices.ndim != 1 or indices.dtype.kind not in "iu":
        raise IndexError(
            f"Got an index of type {indices.dtype} and shape {indices.shape}: give a slice, a 1D "
            f"array of indices, or a mask of shape ({n_rows},)."
        )
    indices = indices.astype(np.intp, copy=False)
    is_out = (indices < -n_rows) | (indices >= n_rows)
    if is_out.any():
        raise IndexError(f"There is no row {indices[is_out][0]}: there are {n_rows} rows.")
    return np.where(indices < 0, indices + n_rows, indices)
