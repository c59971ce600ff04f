"""Samples as blocks of rows, dense or sparse, with maps and sums over the blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from threading import Lock
from typing import Any

import numpy as np
from scipy import sparse

from notsorandom._utils.threads import (
    ONE_THREAD,
    RunningSum,
    ThreadPool,
    cached_property,
    cut_slices,
)
from notsorandom.data.array_api import (
    Array,
    asarray_like,
    empty_like,
    is_device_array,
    namespace,
    numpy_dtype,
    row_norms,
    to_host,
)

__all__ = ["FLOATS", "Array", "Column", "Rows", "RunningSum", "dense", "row_norms", "stack_blocks"]

# One value, or one row of values, per sample: an array in memory, or what a subclass of Rows uses.
Column = Any

# Floating point types that samples are computed in.
FLOATS = [np.float64, np.float32]

# Bytes of a block: it stays in cache between two uses.
BLOCK_BYTES = 2**22
# Smallest and largest number of rows of a block. Smaller blocks cost overhead per call, larger ones
# memory for what is computed from them. Powers of two: a part of the samples that starts at a
# multiple of the largest has the same blocks as all samples, so sums over it are the same.
MIN_BLOCK_ROWS, MAX_BLOCK_ROWS = 2**8, 2**13
# Blocks longer than SHARED_ROWS are cut until there are MIN_BLOCKS of them for threads to share.
SHARED_ROWS, MIN_BLOCKS = 2**11, 4
# Blocks are shared in at most this many runs. Each run has its own sums.
MAX_RUNS = 16
# Multiplications of a pass from which threads share it: they take one thread about 1 ms. To hand
# over a part takes up to 0.1 ms, and threads wait for each other between short NumPy calls.
SHARED_WORK = 2**23
# Numbers computed per row if a caller doesn't say. And the time that each takes besides products
# with the row's own numbers, such as the time of a cosine, in multiplications.
MIN_WIDTH, OTHER_WORK = 8, 8
# Largest number of rows of a block that has columns only, no samples.
COLUMN_ROWS = 2**16


@dataclass(frozen=True)
class Rows:
    """Samples that are processed one block of rows at a time.

    The game needs sums over the samples, one value per sample, or a few samples. A subclass that
    overrides :meth:`map_blocks`, :meth:`sum_blocks`, :meth:`map` and :meth:`take` can therefore
    hold the data elsewhere. Values per sample, such as dual variables, are *columns*: :meth:`map`
    returns them and all methods take them.

    Parameters
    ----------
    array : array-like or sparse CSR array of shape (n_samples, n_features)
        In memory, or anything else that can be sliced. Blocks of a sparse array are sparse. An
        array API array stays on its device: functions of its blocks get arrays of the same kind,
        and may return them. Columns and sums are NumPy arrays in host memory.
    weights : column of shape (n_samples, 1), optional
        Sample weights. Zero for rows that are held out of a game.
    pool : ThreadPool, optional
        Threads that share the blocks. Results are added in block order, so they are the same for
        any number of threads.
    n_total : int, optional
        Number of rows of the data that these rows are a part of. Both are cut into equal blocks.
    block_rows : int, optional
        Rows per block; by default as many as suit the cache and the threads.
    """

    array: Any
    weights: Column = None
    pool: ThreadPool | None = None
    n_total: int | None = None
    block_rows: int | None = None

    # Whether columns are arrays in the memory of this process.
    is_local = True

    @classmethod
    def without_features(cls, n_rows: int, dtype: Any, weights: Array | None = None) -> Rows:
        """Return rows with columns only, in memory."""
        return cls(np.empty((n_rows, 0), dtype=dtype), weights)

    def __len__(self) -> int:
        return int(self.array.shape[0])

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.array.shape[1])

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The floating point type that everything is computed in."""
        return numpy_dtype(self.array)

    @cached_property
    def on_device(self) -> bool:
        """Whether the samples are an array API array other than NumPy's."""
        return is_device_array(self.array)

    @property
    def is_sparse(self) -> bool:
        """Whether blocks of the samples are sparse."""
        return bool(sparse.issparse(self.array) or getattr(self.array, "n_stored", 0))

    @cached_property
    def columns_only(self) -> Rows:
        """The same rows without their samples, for operations on columns."""
        return replace(self, array=np.empty((len(self), 0), dtype=self.dtype))

    def blocks(self, width: int = 0) -> Sequence[slice]:
        """Return slices that cut the rows into blocks of bounded memory.

        `width` is how many numbers are computed from each row, if more than it has itself.
        """
        n_rows, step = len(self), self.block_rows
        if step is None:
            step = MIN_BLOCK_ROWS if n_rows <= MIN_BLOCK_ROWS else self._rows_per_block(width)
        return cut_slices(n_rows, step)

    def _rows_per_block(self, width: int) -> int:
        largest = COLUMN_ROWS
        if self.n_features:
            n_rows = self.n_total or len(self)
            largest = min(MAX_BLOCK_ROWS, max(SHARED_ROWS, n_rows // MIN_BLOCKS))
        row_bytes = max(1, self._n_stored, width) * self.dtype.itemsize
        room = max(MIN_BLOCK_ROWS, min(largest, BLOCK_BYTES // row_bytes))
        return int(1 << (room.bit_length() - 1))

    @cached_property
    def _n_stored(self) -> int:
        """Numbers that are stored for each row, in the mean."""
        if sparse.issparse(self.array):
            return int(self.array.nnz // max(1, len(self)))
        return self.n_features

    # Methods that subclasses override to store the rows elsewhere.

    def map_blocks(
        self,
        function: Callable[..., Any],
        *columns: Column,
        width: int = 0,
        given: Sequence[Any] | None = None,
    ) -> Iterator[Any]:
        """Yield ``function(block, *column_blocks)`` for each block, in order.

        Parameters
        ----------
        function : callable
            It may be sent to another process, so it should hold nothing as long as the samples.
        *columns : columns
            Cut into the same blocks.
        width : int, default=0
            Numbers that `function` holds for each row, if more than the row has itself.
        given : sequence, optional
            One more argument for each block of :meth:`blocks`, passed last.
        """
        blocks = self.blocks(width)
        extras = [()] * len(blocks) if given is None else [(one,) for one in given]
        if len(blocks) == 1:
            return iter([self._apply(function, blocks[0], columns, extras[0])])

        def apply(run: Sequence[tuple[slice, tuple[Any, ...]]]) -> list[Any]:
            return [self._apply(function, block, columns, extra) for block, extra in run]

        results: list[Any] = []
        self._share(apply, list(zip(blocks, extras, strict=True)), width, results.extend)
        return iter(results)

    def _apply(
        self,
        function: Callable[..., Any],
        block: slice,
        columns: Sequence[Column],
        extra: tuple[Any, ...] = (),
        on_device: bool = False,
    ) -> Any:
        """Apply the function to a block; unless `on_device`, the result goes to host memory."""
        if not self.on_device:
            return function(self.array[block], *(column[block] for column in columns), *extra)
        X = self.array[block, ...]
        parts = [
            asarray_like(column[block], X) if isinstance(column, np.ndarray) else column[block, ...]
            for column in columns
        ]
        result = function(X, *parts, *extra)
        if on_device:
            return result
        return tuple(map(to_host, result)) if isinstance(result, tuple) else to_host(result)

    def _share(
        self,
        function: Callable[[Sequence[Any]], Any],
        items: Sequence[Any],
        width: int,
        collect: Callable[[Any], Any] = lambda _: None,
    ) -> None:
        """Collect ``function(run)`` of runs of items in order, in threads where that pays."""
        runs = cut_runs(items)
        work = len(self) * (self._n_stored + OTHER_WORK) * max(width, MIN_WIDTH)
        pays = work >= SHARED_WORK and not self.on_device  # a device's library has own threads
        ((pays and self.pool) or ONE_THREAD).map_ordered(function, runs, collect)

    def map(
        self,
        function: Callable[..., Any],
        *columns: Column,
        width: int = 0,
        on_device: bool = False,
        lazy: bool = False,
    ) -> Column:
        """Return the column with the blocks ``function(block, *column_blocks)``.

        With `on_device` the result stays on the samples' device. With `lazy`, rows that are stored
        elsewhere may compute it wherever it is used: the function must not use the samples, and be
        quick.
        """
        blocks = self.blocks(width)
        on_device = on_device and self.on_device
        if len(blocks) == 1:
            return self._apply(function, blocks[0], columns, (), on_device)
        out: Any = None
        lock = Lock()

        def fill(run: Sequence[slice]) -> list[Any]:
            """Write blocks to the result; return blocks that can't be written."""
            nonlocal out
            parts = []
            for block in run:
                part = self._apply(function, block, columns, (), on_device)
                if sparse.issparse(part):
                    parts.append(part)
                    continue
                with lock:  # the first block that is done shows the shape
                    if out is None:
                        shape = (len(self), *part.shape[1:])
                        out = empty_like(part, shape) if on_device else np.empty(shape, part.dtype)
                try:
                    out[block, ...] = part
                except TypeError:  # immutable arrays
                    parts.append(part)
            return parts

        parts: list[Any] = []
        self._share(fill, blocks, width, parts.extend)
        return stack_blocks(parts) if parts else out

    def chain(
        self,
        stages: Sequence[tuple[Callable[..., Any] | None, Callable[..., Any]]],
        *columns: Column,
    ) -> list[list[Any]]:
        """Return the results of several passes, each of which uses those of the one before.

        Each stage is a pair of functions. The second is called with each block and its columns, as
        in :meth:`map_blocks`. The first is called with the list of what the stage before returned,
        and returns one more argument for each block; it is None for the first stage. Rows that are
        stored elsewhere need not wait for this process between two stages.
        """
        results: list[list[Any]] = []
        for prepare, function in stages:
            given = None if prepare is None else prepare(results[-1])
            results.append(list(self.map_blocks(function, *columns, given=given)))
        return results

    def take(self, indices: Array) -> Rows:
        """Return the rows at `indices`, in memory or on the samples' device."""
        weights = None if self.weights is None else self.to_host(self.weights, indices)
        if not self.on_device:
            return self.with_samples(self._take_samples(indices), weights)
        chosen = asarray_like(np.asarray(indices, dtype=np.int64), self.array)
        taken = namespace(self.array).take(self.array, chosen, axis=0)
        return replace(self, array=taken, weights=weights)

    def _take_samples(self, indices: Array) -> Any:
        """Copy the samples at `indices`, in threads if there are many."""
        if not self.is_local:
            return self.to_host(self.array, indices)
        if indices.dtype == bool:
            indices = np.flatnonzero(indices)
        pays = isinstance(self.array, np.ndarray) and indices.size * self.n_features >= SHARED_WORK
        if self.pool is None or not pays:
            return self.array[indices]
        result = np.empty((len(indices), self.n_features), dtype=self.dtype)

        def fill(part: slice) -> None:
            np.take(self.array, indices[part], axis=0, out=result[part], mode="clip")

        self.pool.map_ordered(fill, cut_slices(len(indices), SHARED_ROWS), lambda _: None)
        return result

    def with_samples(self, array: Any, weights: Array | None = None) -> Rows:
        """Return rows in memory that hold these samples instead."""
        return replace(self, array=array, weights=weights, n_total=None)

    def select(self, mask: Column, column: Column) -> tuple[Rows, Column]:
        """Return the rows where the mask is true, and a column of them.

        Samples that are not in memory stay where they are.
        """
        indices = np.flatnonzero(mask)
        if not hasattr(self.array, "chosen"):  # not a LazyArray
            return self.take(indices), column[indices]
        weights = None if self.weights is None else self.weights[indices]
        rows = replace(self, array=self.array.chosen(indices), weights=weights)
        return rows, column[indices]

    def without_weight(self, indices: Array) -> Rows:
        """Return the same rows, of which those at `indices` have a weight of zero."""
        weights: Any = self.zeros_at(indices)
        if self.weights is not None:
            weights = self.columns_only.map(lambda _, w, z: w * z, self.weights, weights)
        return replace(self, weights=weights)

    def zeros_at(self, indices: Array) -> Column:
        """Return a column of ones, with zeros at sorted `indices`."""
        column: Array = np.ones((len(self), 1), dtype=self.dtype)
        column[indices] = 0
        return column

    def to_host(self, column: Column, indices: Array | None = None) -> Array:
        """Return a column, or its values at `indices`, as an array in memory."""
        return column if indices is None else column[indices]

    def sum_blocks(
        self,
        function: Callable[..., tuple[Any, ...]],
        *columns: Column,
        width: int = 0,
        dtype: Any = None,
    ) -> tuple[Array, ...]:
        """Sum ``function(block, *column_blocks)`` over the blocks; see :meth:`map_blocks`.

        The function returns a tuple of arrays. Sums are accumulated in float64, and returned in
        `dtype`, by default the type of the rows.
        """
        blocks = self.blocks(width)
        dtype = self.dtype if dtype is None else dtype
        if len(blocks) == 1:
            parts = self._apply(function, blocks[0], columns)
            return tuple([np.array(part, dtype=dtype) for part in parts])

        def sum_run(run: Sequence[slice]) -> list[Array]:
            part = RunningSum()
            for block in run:
                part.add(self._apply(function, block, columns))
            return part.parts

        total = RunningSum()
        self._share(sum_run, blocks, width, total.add)
        return tuple([part.astype(dtype) for part in total.parts])

    # Methods that are built on these.

    @property
    def weight_columns(self) -> tuple[Column, ...]:
        """The weights as a tuple of columns, empty if there are none."""
        return () if self.weights is None else (self.weights,)

    @cached_property
    def total_weight(self) -> float:
        """Sum of the sample weights."""
        if self.weights is None:
            return float(len(self))
        (total,) = self.columns_only.sum_blocks(
            lambda _, w: (w.sum(dtype=np.float64),), self.weights, dtype=np.float64
        )
        return float(total)

    def with_column_blocks(self) -> Rows:
        """Return the same rows, cut into the blocks of :attr:`columns_only`."""
        return replace(self, block_rows=self.columns_only.block_rows)

    def squared_norm(self, measure: Column) -> float:
        """Sum of the squared measure over samples and tasks, each divided by its weight."""

        def squares(_: Any, a: Array, w: Any = 1) -> tuple[Array]:
            weights = np.where(np.equal(w, 0), 1, w)  # the measure is zero there
            return ((np.square(a, dtype=np.float64) / weights).sum(),)

        (total,) = self.columns_only.sum_blocks(
            squares, measure, *self.weight_columns, dtype=np.float64
        )
        return float(total)

    @np.errstate(over="ignore", invalid="ignore")
    def mean(self) -> Array:
        """Return the weighted mean of the samples, which is not finite if a sum overflows."""

        def sums(X: Any, w: Any = None) -> tuple[Any]:
            if is_device_array(X):
                xp = namespace(X)
                if w is None:
                    return (xp.sum(X, axis=0, dtype=xp.float64),)
                return (xp.astype(w[:, 0], xp.float64) @ xp.astype(X, xp.float64),)
            if w is None:
                return (np.ravel(X.sum(axis=0, dtype=np.float64)),)
            return (np.ravel(w.astype(np.float64).T @ X),)

        (total,) = self.sum_blocks(sums, *self.weight_columns, dtype=np.float64)
        return (total / self.total_weight).astype(self.dtype)

    def sample_indices(self, n_rows: int, rng: np.random.Generator) -> Array:
        """Return the sorted indices of at most `n_rows` random rows."""
        if n_rows >= len(self):
            return np.arange(len(self))
        return np.sort(rng.choice(len(self), size=n_rows, replace=False, shuffle=False))


def run_slices(n_items: int) -> list[slice]:
    """Return slices that cut items into at most `MAX_RUNS` runs.

    Neither the runs nor the sums over them depend on the threads, or on where the items are.
    """
    n_runs = min(n_items, MAX_RUNS)
    ends = [n_items * run // n_runs for run in range(n_runs + 1)]
    return [slice(first, last) for first, last in pairwise(ends)]


def cut_runs(items: Sequence[Any]) -> list[Any]:
    """Cut items into the runs of :func:`run_slices`."""
    return [items[run] for run in run_slices(len(items))]


def add_results(results: Sequence[Sequence[Any]]) -> list[Array]:
    """Add what a function has returned for each block, as ``Rows.sum_blocks`` does."""
    total = RunningSum()
    for run in cut_runs(results):
        part = RunningSum()
        for one in run:
            part.add(one)
        total.add(part.parts)
    return total.parts


def stack_blocks(parts: list[Any]) -> Any:
    """Stack blocks of rows."""
    if sparse.issparse(parts[0]):
        return sparse.vstack(parts, format="csr")
    if is_device_array(parts[0]):
        return namespace(parts[0]).concat(parts, axis=0)
    return np.concatenate(parts)


def dense(block: Any) -> Array:
    """Return rows as a dense NumPy array in host memory."""
    if hasattr(block, "chosen"):  # a LazyArray
        block = block[:]
    return block.toarray() if sparse.issparse(block) else to_host(block)
