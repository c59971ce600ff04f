"""Where the samples live: blocks of rows, and map-and-add over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

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
    array : ndarray of shape (n_samples, n_features)
    """

    array: Array

    def __len__(self) -> int:
        return len(self.array)

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.array.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """The floating point type that everything is computed in."""
        return self.array.dtype

    def blocks(self, width: int = 0) -> Iterator[slice]:
        """Slices that cut the rows into blocks of bounded memory.

        `width` is how many numbers are computed from each row, if they are more than its own.
        """
        row_bytes = max(1, self.n_features, width) * self.dtype.itemsize
        step = int(np.clip(BLOCK_BYTES // row_bytes, *BLOCK_ROWS))
        return (slice(start, start + step) for start in range(0, len(self), step))

    def add(
        self, function: Callable[..., tuple[Array, ...]], *companions: Array, width: int = 0
    ) -> tuple[Array, ...]:
        """Sum of ``function(block, *companion_blocks)`` over the blocks.

        Parameters
        ----------
        function : callable returning a tuple of arrays
        *companions : ndarrays with a row for each sample
            Cut into the same blocks.
        width : int, default=0
            Numbers that `function` holds for each row, if more than the row's own.

        Returns
        -------
        tuple of ndarrays
            In the rows' own type; the sums across blocks are kept in float64.
        """
        total: list[Array] | None = None
        for block in self.blocks(width):
            parts = function(self.array[block], *(companion[block] for companion in companions))
            if total is None:
                total = [part.astype(np.float64) for part in parts]
            else:
                for running, part in zip(total, parts, strict=True):
                    running += part
        assert total is not None, "rows are never empty"
        return tuple(part.astype(self.dtype) for part in total)

    def map(self, function: Callable[[Array], Array]) -> Array:
        """One row of ``function(block)`` for each sample."""
        return np.concatenate([function(self.array[block]) for block in self.blocks()])

    def sample(self, n_rows: int, rng: np.random.Generator) -> Array:
        """Indices of at most `n_rows` distinct rows, in order."""
        if n_rows >= len(self):
            return np.arange(len(self))
        return np.sort(rng.choice(len(self), size=n_rows, replace=False, shuffle=False))

    def take(self, indices: Array) -> Rows:
        """The rows at `indices`, as rows of their own."""
        return Rows(self.array[indices])
