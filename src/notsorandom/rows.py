"""Where the samples live: blocks of rows, dense or sparse, and map-and-add over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from notsorandom.parallel import Workers

Array = np.ndarray[Any, np.dtype[Any]]

# What samples may be given as.
FLOATS = [np.float64, np.float32]

# A block of this many bytes stays in cache between two uses of it.
BLOCK_BYTES = 2**22
# Below, the overhead of a block shows; above, so does the memory of what is computed from it.
BLOCK_ROWS = (256, 8192)


@dataclass(frozen=True)
class Rows:
    """Samples in memory, only ever looked at a block of rows at a time.

    Everything the game asks of its data is a sum over the samples, a value for each of them, or a
    few of them: whoever can do :meth:`add`, :meth:`map` and :meth:`take` can hold the data.

    Parameters
    ----------
    array : ndarray or sparse CSR array of shape (n_samples, n_features)
        Blocks of a sparse array are sparse.
    weights : ndarray of shape (n_samples, 1), optional
        How many samples each row stands for: positive, and all one if not given.
    workers : Workers, optional
        Who the blocks are shared among. What they make is added up in the order of the blocks, so
        that it is the same however many there are.
    """

    array: Any
    weights: Array | None = None
    workers: Workers | None = None

    def __len__(self) -> int:
        return int(self.array.shape[0])

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.array.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """The floating point type that everything is computed in."""
        dtype: np.dtype[Any] = self.array.dtype
        return dtype

    @cached_property
    def weight_column(self) -> Array:
        """The weights, of shape (n_samples, 1), all one if none were given."""
        return np.ones((len(self), 1), dtype=self.dtype) if self.weights is None else self.weights

    @cached_property
    def total_weight(self) -> float:
        """Samples, each as often as its weight says."""
        return float(len(self) if self.weights is None else self.weights.sum(dtype=np.float64))

    def square_of(self, measure: Array) -> float:
        """Squares of a measure, summed over samples and tasks, were each sample a row."""
        squares = np.square(measure, dtype=np.float64)
        return float((squares if self.weights is None else squares / self.weights).sum())

    def blocks(self, width: int = 0) -> Iterator[slice]:
        """Slices that cut the rows into blocks of bounded memory.

        `width` is how many numbers are computed from each row, if they are more than its own.
        """
        held = self.n_features
        if sparse.issparse(self.array):
            held = self.array.nnz // max(1, len(self))
        row_bytes = max(1, held, width) * self.dtype.itemsize
        least, most = BLOCK_ROWS
        step = max(least, min(most, BLOCK_BYTES // row_bytes))
        return (slice(start, start + step) for start in range(0, len(self), step))

    def _each(
        self, function: Callable[..., Any], *companions: Array, width: int = 0
    ) -> Iterator[Any]:
        """``function(block, *companion_blocks)`` of one block after the other."""

        def of(block: slice) -> Any:
            return function(self.array[block], *(companion[block] for companion in companions))

        blocks = self.blocks(width)
        return map(of, blocks) if self.workers is None else self.workers.each(of, blocks)

    def add(
        self,
        function: Callable[..., tuple[Array, ...]],
        *companions: Array,
        width: int = 0,
        dtype: Any = None,
    ) -> tuple[Array, ...]:
        """Sum of ``function(block, *companion_blocks)`` over the blocks.

        Parameters
        ----------
        function : callable returning a tuple of arrays
        *companions : ndarrays with a row for each sample
            Cut into the same blocks.
        width : int, default=0
            Numbers that `function` holds for each row, if more than the row's own.
        dtype : dtype, optional
            Of the sums; the rows' own if not given.

        Returns
        -------
        tuple of ndarrays
            The sums across blocks are kept in float64.
        """
        total: list[Array] | None = None
        for parts in self._each(function, *companions, width=width):
            if total is None:
                total = [part.astype(np.float64) for part in parts]
            else:
                for running, part in zip(total, parts, strict=True):
                    running += part
        assert total is not None, "rows are never empty"
        return tuple(part.astype(dtype or self.dtype, copy=False) for part in total)

    def map(self, function: Callable[[Any], Any], width: int = 0) -> Any:
        """One row of ``function(block)`` for each sample; `width` as in :meth:`add`."""
        parts = list(self._each(function, width=width))
        return stacked(parts)

    def mean(self) -> Array:
        """The mean of the samples."""
        if self.weights is None:
            (total,) = self.add(lambda X: (np.ravel(X.sum(axis=0, dtype=np.float64)),))
        else:
            (total,) = self.add(lambda X, w: (np.ravel(w.T @ X),), self.weights.astype(np.float64))
        return total / self.dtype.type(self.total_weight)

    def sample(self, n_rows: int, rng: np.random.Generator) -> Array:
        """Indices of at most `n_rows` distinct rows, in order."""
        if n_rows >= len(self):
            return np.arange(len(self))
        return np.sort(rng.choice(len(self), size=n_rows, replace=False, shuffle=False))

    def drawn(self, n_rows: int, rng: np.random.Generator) -> Array:
        """Indices of `n_rows` random samples, some more than once."""
        if self.weights is None or np.ptp(self.weights) == 0:
            return rng.integers(len(self), size=n_rows)
        share = self.weights[:, 0].astype(np.float64)
        return rng.choice(len(self), size=n_rows, p=share / share.sum())

    def take(self, indices: Array) -> Rows:
        """The rows at `indices`, as rows of their own."""
        weights = None if self.weights is None else self.weights[indices]
        return replace(self, array=self.array[indices], weights=weights)


def stacked(parts: list[Any]) -> Any:
    """Blocks of rows, one below the other."""
    if sparse.issparse(parts[0]):
        return sparse.vstack(parts, format="csr")
    return np.concatenate(parts)


def dense(block: Any) -> Array:
    """A block of rows as an ordinary array."""
    array: Array = block.toarray() if sparse.issparse(block) else block
    return array


def lengths(vectors: Any) -> Array:
    """Norms of the rows, safe from the overflow of squares of very large or small numbers."""
    if sparse.issparse(vectors):
        largest = float(np.abs(vectors.data).max(initial=0.0)) or 1.0
        scaled = vectors / largest
        return largest * np.sqrt(np.ravel(scaled.multiply(scaled).sum(axis=1)))
    reach = np.abs(vectors).max(axis=1, keepdims=True)
    scaled = vectors / np.where(reach > 0, reach, 1)
    norms: Array = reach[:, 0] * np.sqrt((scaled * scaled).sum(axis=1))
    return norms
