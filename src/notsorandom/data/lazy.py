"""Rows that are read when they are asked for, and no others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterator
from numbers import Integral
from threading import Lock
from typing import Any

import numpy as np

from notsorandom.data.rows import FLOATS, Array
from notsorandom.data.tables.table import first_not_finite

# Read at a time: enough for the overhead of a read not to show.
READ_BYTES = 2**24
# Where nothing is said of chunks: to read so much that isn't needed costs less than another read.
GAP_BYTES = 2**16
# Chunks that were asked for only in part are kept, up to so many bytes of them, for whoever comes
# next for the rest: to unpack them again for every few rows takes far longer than all else.
HELD_BYTES = 2**27


class Lazy(ABC):
    """A matrix that can be looked at by rows: ``[slice]`` and ``[indices]`` give ndarrays.

    What a slice gives may be a view of what is kept, and must not be written to.
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
                return self.rows(start, max(start, stop))
            key = np.arange(start, stop, step)
        return self.gathered(checked_indices(key, len(self)))

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        # whoever comes here by mistake would fill the memory
        raise TypeError(
            f"{type(self).__name__} of shape {self.shape} is not made an array at once: take "
            "slices of its rows."
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={self.shape}, dtype={self.dtype})"

    def chosen(self, indices: Array) -> Lazy:
        """The rows at some indices, read when they are asked for."""
        return Chosen(self, indices)

    def prepared(self, function: Callable[[Array], Array]) -> Lazy:
        """The rows with something done to each of them, when they are asked for."""
        return Prepared(self, function)

    @abstractmethod
    def rows(self, start: int, stop: int) -> Array:
        """Rows from `start` up to `stop`, both between 0 and the number of rows."""

    @abstractmethod
    def gathered(self, indices: Array) -> Array:
        """Rows at some indices, none negative, in their order."""


class Sliced(Lazy):
    """Anything with `shape`, `dtype` and slices of rows, such as an array of zarr's or h5py's.

    Parameters
    ----------
    array : array-like of shape (n_samples, n_features)
        Of numbers. Floats of 32 bits stay, all else becomes floats of 64. If it says what its
        ``chunks`` are, none is unpacked twice in a pass over the rows, however these are cut.

    Raises
    ------
    ValueError
        If it has other than 2 dimensions, or is not of numbers.
    """

    def __init__(self, array: Any) -> None:
        shape, stored = tuple(map(int, array.shape)), np.dtype(array.dtype)
        if len(shape) != 2:
            raise ValueError(
                f"Expected 2D array, got {len(shape)}D array instead: X has shape {shape}, but "
                "must have a row for each sample; reshape it."
            )
        if stored.kind not in "biuf":
            raise ValueError(f"X is of type {stored}: it must be of numbers; convert it.")
        self.array = array
        self.shape = shape[0], shape[1]
        self.dtype = stored if stored in FLOATS else np.dtype(np.float64)  # as scikit-learn does
        row_bytes = max(1, shape[1] * self.dtype.itemsize)
        chunks = getattr(array, "chunks", None)  # None if there are none, in h5py
        self._unit = max(1, GAP_BYTES // row_bytes)
        self._holds = False
        if isinstance(chunks, tuple) and len(chunks) == 2 and isinstance(chunks[0], Integral):
            self._unit = max(1, int(chunks[0]))
            self._holds = self._unit * row_bytes <= HELD_BYTES
        self._most = max(1, READ_BYTES // row_bytes // self._unit) * self._unit
        self._room = max(1, HELD_BYTES // (self._unit * row_bytes))
        self._held: OrderedDict[int, Array] = OrderedDict()
        self._lock = Lock()

    def __reduce__(self) -> Any:
        return type(self), (self.array,)

    def rows(self, start: int, stop: int) -> Array:
        """See :meth:`Lazy.rows`."""
        parts = [self._part(*ends) for ends in self._cuts(start, stop)]
        if len(parts) == 1:
            return parts[0]
        result = np.empty((stop - start, self.shape[1]), dtype=self.dtype)
        return np.concatenate(parts, out=result) if parts else result

    def gathered(self, indices: Array) -> Array:
        """See :meth:`Lazy.gathered`."""
        result = np.empty((len(indices), self.shape[1]), dtype=self.dtype)
        if not len(indices):
            return result
        order = np.argsort(indices, kind="stable")
        wanted = indices[order]
        # a read ends where a chunk that isn't needed follows, and where it would be too long
        is_end = (np.diff(wanted // self._unit) > 1) | (np.diff(wanted // self._most) > 0)
        ends = np.union1d(np.flatnonzero(is_end) + 1, np.arange(0, len(wanted), self._most))
        for begin, end in zip(ends, np.append(ends[1:], len(wanted)), strict=True):
            first, last = int(wanted[begin]), int(wanted[end - 1])
            part = self.rows(first, last + 1)
            result[order[begin:end]] = part[wanted[begin:end] - first]
        return result

    def _cuts(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Where a slice is cut: where it enters a chunk that it has only a part of."""
        if not self._holds:
            if start < stop:
                yield start, stop
            return
        inner_start = min(stop, -(-start // self._unit) * self._unit)
        # the last chunk ends where the rows do
        inner_stop = stop if stop == len(self) else stop // self._unit * self._unit
        inner_stop = max(inner_start, inner_stop)
        for ends in ((start, inner_start), (inner_start, inner_stop), (inner_stop, stop)):
            if ends[0] < ends[1]:
                yield ends

    def _part(self, start: int, stop: int) -> Array:
        """Rows that are whole chunks, or are of a single one."""
        number = start // self._unit
        first, last = number * self._unit, min(len(self), (number + 1) * self._unit)
        if not self._holds or stop > last or (start, stop) == (first, last):
            return self._read(start, stop)
        with self._lock:
            if number not in self._held:
                self._held[number] = self._read(first, last)
                self._held[number].flags.writeable = False
                while len(self._held) > self._room:
                    self._held.popitem(last=False)
            self._held.move_to_end(number)
            return self._held[number][start - first : stop - first]

    def _read(self, start: int, stop: int) -> Array:
        rows = np.asarray(self.array[start:stop])
        if rows.shape != (stop - start, self.shape[1]):
            raise ValueError(
                f"Rows {start} to {stop} of X have shape {rows.shape}, but "
                f"{(stop - start, self.shape[1])} is what its shape {self.shape} says: is it being "
                "written to?"
            )
        with np.errstate(over="ignore"):  # what is too large is infinite, and found as such
            return np.ascontiguousarray(rows, dtype=self.dtype)


class Prepared(Lazy):
    """Rows of an array with something done to each of them, when they are asked for.

    Parameters
    ----------
    array : Lazy, or ndarray such as a memory map
    function : callable
        Takes a block of rows and returns as many, of the same width and type, each made of one;
        such as one that scales rows to norm one. It must not write to what it is given.
    """

    def __init__(self, array: Any, function: Callable[[Array], Array]) -> None:
        self.array = array
        self.function = function
        self.shape = array.shape[0], array.shape[1]
        self.dtype = array.dtype

    def rows(self, start: int, stop: int) -> Array:
        """See :meth:`Lazy.rows`."""
        return self._done(self.array[start:stop])

    def gathered(self, indices: Array) -> Array:
        """See :meth:`Lazy.gathered`."""
        return self._done(self.array[indices])

    def _done(self, rows: Array) -> Array:
        return np.asarray(self.function(np.asarray(rows)), dtype=self.dtype)


class Chosen(Lazy):
    """Some rows of an array, read when they are asked for.

    Parameters
    ----------
    array : Lazy, or ndarray such as a memory map
    indices : ndarray of int, or a mask of bool
        Of the rows; those in order are read quickest.
    """

    def __init__(self, array: Any, indices: Any) -> None:
        indices = checked_indices(indices, array.shape[0])
        if isinstance(array, Chosen):  # no chains of them
            array, indices = array.array, array.indices[indices]
        self.array: Any = array
        self.indices: Array = indices
        self.shape = len(indices), array.shape[1]
        self.dtype = array.dtype

    def rows(self, start: int, stop: int) -> Array:
        """See :meth:`Lazy.rows`."""
        return self.gathered(np.arange(start, stop))

    def gathered(self, indices: Array) -> Array:
        """See :meth:`Lazy.gathered`."""
        wanted = self.indices[indices]
        if len(wanted) and (np.diff(wanted) == 1).all():  # neighbours need no copy
            return np.asarray(self.array[int(wanted[0]) : int(wanted[-1]) + 1])
        return np.asarray(self.array[wanted])


def check_blocks(X: Any, min_samples: int = 1, min_features: int = 1, estimator: Any = None) -> Any:
    """Check samples as scikit-learn does, but by slices of bounded memory.

    Parameters
    ----------
    X : Lazy, or ndarray such as a memory map
        Of numbers.
    min_samples, min_features : int
        How many there must be.
    estimator : estimator or str, optional
        Named in errors about that.

    Returns
    -------
    Lazy or ndarray
        The samples, which now are floats of 32 or 64 bits.

    Raises
    ------
    ValueError
        If there are too few samples or features, or a number is missing or infinite.
    """
    if not isinstance(X, Lazy) and X.dtype not in FLOATS:
        X = Sliced(X)
    name = estimator if isinstance(estimator, str | None) else type(estimator).__name__
    by = "" if name is None else f" by {name}"
    for count, least, what in zip(
        X.shape, (min_samples, min_features), ("sample", "feature"), strict=True
    ):
        if count < least:
            raise ValueError(
                f"Found array with {count} {what}(s) (shape={tuple(X.shape)}) while a minimum of "
                f"{least} is required{by}."
            )
    step = max(1, READ_BYTES // max(1, X.shape[1] * X.dtype.itemsize))
    for start in range(0, X.shape[0], step):
        block = X[start : start + step]
        place = first_not_finite(block)
        if place is not None:
            row, column = place
            what = "NaN" if np.isnan(block[place]) else "infinity"
            raise ValueError(
                f"Input X contains {what}, in row {start + row}, column {column}, both counted "
                "from 0: fill in a number, or leave the row out."
            )
    return X


def checked_indices(key: Any, n_rows: int) -> Array:
    """Indices of rows, none negative, of what may be counted from the end or be a mask."""
    indices = np.asarray(key)
    if indices.ndim == 1 and indices.dtype == bool and len(indices) == n_rows:
        return np.flatnonzero(indices)
    if indices.ndim == 1 and indices.size == 0:
        indices = indices.astype(int)
    if indices.ndim != 1 or indices.dtype.kind not in "iu":
        what = type(key).__name__ if indices.ndim == 0 else f"{indices.dtype} of {indices.shape}"
        raise IndexError(
            f"Rows are taken by a slice, an array of indices, or a mask of shape ({n_rows},); not "
            f"by {what}."
        )
    indices = indices.astype(np.intp, copy=False)
    is_out = (indices < -n_rows) | (indices >= n_rows)
    if is_out.any():
        raise IndexError(f"There is no row {indices[is_out][0]}: there are {n_rows} rows.")
    return np.where(indices < 0, indices + n_rows, indices)
