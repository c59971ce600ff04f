"""Where the samples live: blocks of rows, dense or sparse, and map-and-add over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from notsorandom._utils.threads import Workers
from notsorandom.data.array_api import (
    Array,
    beside,
    empty_like,
    is_device_array,
    namespace,
    numpy_dtype,
    on_host,
)

__all__ = ["FLOATS", "Array", "Rows", "dense", "lengths", "stacked"]

# What samples may be given as.
FLOATS = [np.float64, np.float32]

# A block of this many bytes stays in cache between two uses of it.
BLOCK_BYTES = 2**22
# Below, the overhead of a block shows; above, so does the memory of what is computed from it.
# Powers of two all: parts of the samples that are cut at multiples of the largest have the blocks
# of the whole, and what adds up over them is the same.
BLOCK_ROWS = (2**8, 2**13)
# Blocks that are longer than this are cut until there are so many for workers to share.
SHARED_ROWS, FEW_BLOCKS = 2**10, 4
# Blocks are shared in so many runs at most, each of which has sums of its own.
MOST_RUNS = 16
# Without the samples, blocks of their values alone may be longer.
BARE_ROWS = 2**16


@dataclass(frozen=True)
class Rows:
    """Samples, only ever looked at a block of rows at a time.

    Everything the game asks of its data is a sum over the samples, a value for each of them, or a
    few of them: whoever can do :meth:`each`, :meth:`map` and :meth:`take` can hold the data. Values
    of the samples, such as dual variables, live with them as *columns*, which only rows look into:
    what :meth:`map` makes, and all methods take.

    Parameters
    ----------
    array : array-like or sparse CSR array of shape (n_samples, n_features)
        In memory, or anything else that can be sliced; blocks of a sparse array are sparse. An
        array of another kind than NumPy's stays on its device: functions of its blocks get arrays
        of that kind, their columns among them, and may return them. Columns themselves, and sums,
        are NumPy arrays in host memory.
    weights : column of shape (n_samples, 1), optional
        How many samples each row stands for: positive, and all one if not given.
    workers : Workers, optional
        Who the blocks are shared among. What they make is added up in the order of the blocks, so
        that it is the same however many there are.
    n_whole : int, optional
        Number of rows that these are a part of, which are cut alike.
    """

    array: Any
    weights: Any = None
    workers: Workers | None = None
    n_whole: int | None = None

    # Whether columns are arrays in the memory of this process.
    is_near = True

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
        """Whether the samples are of another kind than NumPy's."""
        return is_device_array(self.array)

    @cached_property
    def bare(self) -> Rows:
        """The same without the samples, for what asks for their columns alone."""
        return replace(self, array=np.empty((len(self), 0), dtype=self.dtype))

    def blocks(self, width: int = 0) -> Sequence[slice]:
        """Slices that cut the rows into blocks of bounded memory.

        `width` is how many numbers are computed from each row, if they are more than its own.
        """
        held = self.n_features
        if sparse.issparse(self.array):
            held = self.array.nnz // max(1, len(self))
        row_bytes = max(1, held, width) * self.dtype.itemsize
        least, most = BLOCK_ROWS
        if self.n_features == 0:
            most = BARE_ROWS
        else:
            most = min(most, max(SHARED_ROWS, (self.n_whole or len(self)) // FEW_BLOCKS))
        room = max(least, min(most, BLOCK_BYTES // row_bytes))
        return cuts(len(self), 1 << (room.bit_length() - 1))

    # What a place to keep rows must know how to do.

    def each(
        self,
        function: Callable[..., Any],
        *columns: Any,
        width: int = 0,
        given: Sequence[Any] | None = None,
    ) -> Iterator[Any]:
        """``function(block, *column_blocks)`` of one block after the other.

        Parameters
        ----------
        function : callable
            It may be sent elsewhere, and should hold nothing that is as long as the samples.
        *columns : columns
            Cut into the same blocks.
        width : int, default=0
            Numbers that `function` holds for each row, if more than the row's own.
        given : sequence, optional
            Something for each block of :meth:`blocks`, which `function` takes last.
        """
        blocks = self.blocks(width)
        extras = [()] * len(blocks) if given is None else [(one,) for one in given]

        def of(run: Sequence[tuple[slice, tuple[Any, ...]]]) -> list[Any]:
            return [self._of_block(function, block, columns, more) for block, more in run]

        found: list[Any] = []
        self._share(of, list(zip(blocks, extras, strict=True)), found.extend)
        return iter(found)

    def _of_block(
        self,
        function: Callable[..., Any],
        block: slice,
        columns: Sequence[Any],
        more: tuple[Any, ...] = (),
        stays: bool = False,
    ) -> Any:
        """The function of a block and of its columns; unless it `stays`, in host memory."""
        if not self.on_device:
            return function(self.array[block], *(column[block] for column in columns), *more)
        X = self.array[block, ...]
        parts = [
            beside(column[block], X) if isinstance(column, np.ndarray) else column[block, ...]
            for column in columns
        ]
        made = function(X, *parts, *more)
        if stays:
            return made
        return tuple(map(on_host, made)) if isinstance(made, tuple) else on_host(made)

    def _share(
        self,
        function: Callable[[Sequence[Any]], Any],
        items: Sequence[Any],
        take: Callable[[Any], Any] = lambda _: None,
    ) -> None:
        """Take what a function makes of runs of items, made by the workers where that pays."""
        if len(items) == 1:
            take(function(items))
            return
        n_runs = min(len(items), MOST_RUNS)
        ends = [len(items) * number // n_runs for number in range(n_runs + 1)] if items else []
        runs = [items[start:end] for start, end in pairwise(ends)]
        if self.workers is not None and len(runs) >= (2 if self.n_features else FEW_BLOCKS):
            self.workers.together(function, runs, take)
            return
        for run in runs:
            take(function(run))

    def map(self, function: Callable[..., Any], *columns: Any, width: int = 0) -> Any:
        """The column of which ``function(block, *column_blocks)`` is a block; see :meth:`each`."""

        def of(block: slice) -> Any:
            return self._of_block(function, block, columns)

        first, *others = self.blocks(width)
        head = of(first)
        if not others:
            return head
        if sparse.issparse(head):
            return sparse.vstack([head, *self._parts(of, others)], format="csr")
        result = np.empty((len(self), *head.shape[1:]), dtype=head.dtype)
        result[first] = head

        def fill(run: Sequence[slice]) -> None:
            for block in run:
                result[block] = of(block)

        self._share(fill, others)
        return result

    def _parts(self, of: Callable[[slice], Any], blocks: Sequence[slice]) -> list[Any]:
        """The function of each block."""
        parts: list[Any] = []
        self._share(lambda run: [of(block) for block in run], blocks, parts.extend)
        return parts

    def image(self, function: Callable[[Any], Any], width: int = 0) -> Any:
        """Like :meth:`map` without columns, but what is made stays where the samples are."""
        if not self.on_device:
            return self.map(function, width=width)

        def of(block: slice) -> Any:
            return self._of_block(function, block, (), stays=True)

        first, *others = self.blocks(width)
        head = of(first)
        if not others:
            return head
        whole = empty_like(head, (len(self), *head.shape[1:]))
        try:
            whole[first, ...] = head
        except TypeError:  # a kind of array that is never written to
            return namespace(head).concat([head, *self._parts(of, others)], axis=0)

        def fill(run: Sequence[slice]) -> None:
            for block in run:
                whole[block, ...] = of(block)

        self._share(fill, others)
        return whole

    def take(self, indices: Array) -> Rows:
        """The rows at `indices`, in memory, or where the samples are."""
        weights = None if self.weights is None else self.weights[indices]
        if not self.on_device:
            return self.near(self._gathered(indices), weights)
        chosen = beside(np.asarray(indices, dtype=np.int64), self.array)
        taken = namespace(self.array).take(self.array, chosen, axis=0)
        return replace(self, array=taken, weights=weights)

    def _gathered(self, indices: Array) -> Any:
        """Samples at `indices`, copied by the workers if there are many."""
        plain = isinstance(self.array, np.ndarray)
        if self.workers is None or not plain or len(indices) < FEW_BLOCKS * SHARED_ROWS:
            return self.array[indices]
        result = np.empty((len(indices), self.n_features), dtype=self.dtype)

        def fill(run: slice) -> None:
            np.take(self.array, indices[run], axis=0, out=result[run], mode="clip")

        starts = range(0, len(indices), SHARED_ROWS)
        parts = [slice(start, start + SHARED_ROWS) for start in starts]
        self.workers.together(fill, parts, lambda _: None)
        return result

    def near(self, array: Any, weights: Array | None = None) -> Rows:
        """Some of the samples, in memory."""
        return replace(self, array=array, weights=weights, n_whole=None)

    def only(self, indices: Array) -> Rows:
        """The rows at `indices`, many perhaps, left where they are if they are not in memory."""
        if not hasattr(self.array, "chosen"):
            return self.take(indices)
        weights = None if self.weights is None else self.weights[indices]
        return replace(self, array=self.array.chosen(indices), weights=weights)

    def fetch(self, column: Any, indices: Array | None = None) -> Array:
        """A column, or its values at some rows, as an array in memory."""
        array: Array = column if indices is None else column[indices]
        return array

    def place(self, array: Array) -> Any:
        """Values of the samples as a column."""
        return array

    # What follows from it.

    def add(
        self,
        function: Callable[..., tuple[Any, ...]],
        *columns: Any,
        width: int = 0,
        dtype: Any = None,
    ) -> tuple[Array, ...]:
        """Sum of ``function(block, *column_blocks)`` over the blocks; see :meth:`each`.

        Parameters
        ----------
        function : callable returning a tuple of arrays
        *columns : columns
        width : int, default=0
        dtype : data-type, optional
            Of the sums, which are kept in float64 until they are whole; by default the rows' own.

        Returns
        -------
        tuple of ndarrays
        """

        def of(run: Sequence[slice]) -> list[Array]:
            part = Sum()
            for block in run:
                part.add(self._of_block(function, block, columns))
            return part.parts

        total = Sum()
        self._share(of, self.blocks(width), total.add)
        return tuple(part.astype(self.dtype if dtype is None else dtype) for part in total.parts)

    @property
    def weighing(self) -> tuple[Any, ...]:
        """The weights as a column to give along, or none."""
        return () if self.weights is None else (self.weights,)

    @cached_property
    def total_weight(self) -> float:
        """Samples, each as often as its weight says."""
        if self.weights is None:
            return float(len(self))
        (total,) = self.bare.add(
            lambda _, w: (w.sum(dtype=np.float64),), self.weights, dtype=np.float64
        )
        return float(total)

    def square_of(self, measure: Any) -> float:
        """Squares of a measure, summed over samples and tasks, were each sample a row."""

        def squares(_: Any, a: Array, w: Any = 1) -> tuple[Array]:
            return ((np.square(a, dtype=np.float64) / w).sum(),)

        (total,) = self.bare.add(squares, measure, *self.weighing, dtype=np.float64)
        return float(total)

    def mean(self) -> Array:
        """The mean of the samples."""

        def sums(X: Any, w: Any = None) -> tuple[Any]:
            if is_device_array(X):
                xp = namespace(X)
                if w is None:
                    return (xp.sum(X, axis=0, dtype=xp.float64),)
                return (xp.astype(w[:, 0], xp.float64) @ xp.astype(X, xp.float64),)
            if w is None:
                return (np.ravel(X.sum(axis=0, dtype=np.float64)),)
            return (np.ravel(w.astype(np.float64).T @ X),)

        (total,) = self.add(sums, *self.weighing, dtype=np.float64)
        return (total / self.total_weight).astype(self.dtype)

    def sample(self, n_rows: int, rng: np.random.Generator) -> Array:
        """Indices of at most `n_rows` distinct rows, in order."""
        if n_rows >= len(self):
            return np.arange(len(self))
        return np.sort(rng.choice(len(self), size=n_rows, replace=False, shuffle=False))

    def drawn(self, n_rows: int, rng: np.random.Generator) -> Rows:
        """Some random samples, as often as their weights say, without weights of their own."""
        parts = [] if self.weights is None else list(self.bare.each(weights_of_block, self.weights))
        if len({end for _, *ends in parts for end in ends}) <= 1:  # all weights are the same
            return replace(self.take(rng.integers(len(self), size=n_rows)), weights=None)
        masses = [mass for mass, *_ in parts]
        marks = rng.random(n_rows)
        order = np.argsort(marks)
        drawn, _ = self.picked(lambda w: w[:, 0], self.weights, masses, marks[order])
        return drawn.take(np.argsort(order))

    def picked(
        self,
        mass_of: Callable[[Array], Array],
        column: Any,
        block_masses: Sequence[float],
        marks: Array,
    ) -> tuple[Rows, Array]:
        """Samples at some marks along their masses, one after the other, and their column's values.

        Marks that are random draw samples at random, each as likely as its mass says.

        Parameters
        ----------
        mass_of : callable
            The samples' masses from a block of the column: not negative, not all of them zero.
        column : column
        block_masses : sequence of float
            The masses of all samples of each block, without the samples.
        marks : ndarray
            From 0 to 1, in order.
        """

        def found(X: Any, values: Array, given: tuple[Array, int | None]) -> Any:
            marks, start = given
            if len(marks) == 0:
                return None
            sums = mass_of(values).astype(np.float64).cumsum()
            chosen = np.minimum(np.searchsorted(sums, marks, side="right"), len(sums) - 1)
            return X[chosen] if start is None else start + chosen, values[chosen]

        ends = np.cumsum(block_masses)
        last = max(number for number, mass in enumerate(block_masses) if mass > 0)
        marks = marks * ends[-1]
        cuts = np.searchsorted(marks, ends[:last], side="left")
        parts = [*np.split(marks, cuts), *[np.empty(0)] * (len(ends) - 1 - last)]
        # Nearby, samples are taken by their indices; from afar they come along at once.
        starts = [block.start if self.is_near else None for block in self.bare.blocks()]
        given = [
            (part - before, start)
            for part, before, start in zip(parts, ends - block_masses, starts, strict=True)
        ]
        rows = self.bare if self.is_near else self
        picks = [pick for pick in rows.each(found, column, given=given) if pick is not None]
        X, values = (stacked(list(each)) for each in zip(*picks, strict=True))
        return replace(self.take(X), weights=None) if self.is_near else self.near(X), values


@lru_cache(maxsize=64)
def cuts(n_rows: int, step: int) -> list[slice]:
    """Slices of so many rows each, and of what is left."""
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]


def weights_of_block(_: Any, weights: Array) -> tuple[float, float, float]:
    """Sum of the weights, the smallest and the largest."""
    return float(weights.sum(dtype=np.float64)), float(weights.min()), float(weights.max())


class Sum:
    """Sums of arrays that come together, in float64."""

    def __init__(self) -> None:
        self.parts: list[Array] = []

    def add(self, parts: Sequence[Any]) -> None:
        """Add some more."""
        if self.parts:
            for running, part in zip(self.parts, parts, strict=True):
                running += part
        else:
            self.parts = [np.array(part, dtype=np.float64) for part in parts]


def stacked(parts: list[Any]) -> Any:
    """Blocks of rows, one below the other."""
    if sparse.issparse(parts[0]):
        return sparse.vstack(parts, format="csr")
    return np.concatenate(parts)


def dense(block: Any) -> Array:
    """A block of rows, or all of them, as an ordinary array in host memory."""
    if hasattr(block, "chosen"):
        block = block[:]
    array: Array = block.toarray() if sparse.issparse(block) else on_host(block)
    return array


def lengths(vectors: Any) -> Array:
    """Norms of the rows, safe from the overflow of squares of very large or small numbers."""
    if sparse.issparse(vectors):
        largest = float(np.abs(vectors.data).max(initial=0.0)) or 1.0
        scaled = vectors / largest
        return largest * np.sqrt(np.ravel(scaled.multiply(scaled).sum(axis=1)))
    xp = namespace(vectors)
    reach = xp.max(xp.abs(vectors), axis=1, keepdims=True)
    scaled = vectors / xp.where(reach > 0, reach, xp.ones_like(reach))
    norms: Array = reach[:, 0] * xp.sqrt(xp.sum(scaled * scaled, axis=1))
    return norms
