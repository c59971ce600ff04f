"""Rows on a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from notsorandom._utils.threads import cut_slices
from notsorandom.dask.chunks import Chunks, DaskColumn, Step, add_sums
from notsorandom.data.rows import Array, Rows, cut_runs, stack_blocks

# Rows of a block of columns. Dask makes its workers return freed memory to the system at once, and
# to get larger temporary arrays again takes longer than to compute them.
COLUMN_BLOCK_ROWS = 2**14
# For the same reason, bytes of the blocks that a column is computed in, and their least rows.
MAP_BYTES, MIN_MAP_ROWS = 2**16, 2**10


@dataclass(frozen=True)
class DaskRows(Rows):
    """Samples on a Dask cluster; `array` and `weights` are columns there."""

    chunks: Chunks = None  # type: ignore[assignment]
    is_local = False

    @cached_property
    def columns_only(self) -> Rows:
        """The same rows without their samples, for operations on columns."""
        samples = DaskColumn((len(self), 0), self.dtype)
        return replace(self, array=samples, block_rows=COLUMN_BLOCK_ROWS)

    @property
    def _n_stored(self) -> int:
        return self.array.n_stored or self.n_features

    def _step(self, kind: str, function: Callable[..., Any], width: int) -> Step:
        block_rows = self.block_rows or self._rows_per_block(width)
        return Step(kind, function, width, block_rows, self.dtype)

    def blocks(self, width: int = 0) -> Sequence[slice]:
        """Return slices that cut each chunk into blocks, as rows in memory are cut."""
        step, sizes = self.block_rows or self._rows_per_block(width), self.chunks.sizes
        blocks = [(i, block) for i, n in enumerate(sizes) for block in cut_slices(n, step)]
        starts = self.chunks.starts.tolist()
        return [slice(starts[i] + block.start, starts[i] + block.stop) for i, block in blocks]

    def map_blocks(
        self, function: Callable[..., Any], *columns: Any, width: int = 0, given: Any = None
    ) -> Iterator[Any]:
        """Yield ``function(block, *column_blocks)`` for each block, in order."""
        step = self._step("map_blocks", function, width)
        if given is not None:
            ends = np.cumsum([len(cut_slices(n, step.block_rows)) for n in self.chunks.sizes])
            given = [given[i:j] for i, j in zip([0, *ends[:-1]], ends, strict=True)]
        futures = self.chunks.run(step, (self.array, *columns), given)
        return (result for part in self.chunks.cluster.gather(futures) for result in part)

    def map(
        self, function: Callable[..., Any], *columns: Any, width: int = 0, on_device: bool = False
    ) -> Any:
        """Return the column with the blocks ``function(block, *column_blocks)``, not yet stored."""
        empty = [np.empty((0, *one.shape[1:]), dtype=one.dtype) for one in (self.array, *columns)]
        if self.array.n_stored:
            empty[0] = sparse.csr_array(empty[0])
        like = function(*empty)
        step, row = self._step("map", function, width), max(1, width, *like.shape[1:])
        room = 1 << (MAP_BYTES // (row * self.dtype.itemsize)).bit_length() - 1
        return DaskColumn(
            (len(self), *like.shape[1:]),
            like.dtype,
            step=replace(step, block_rows=min(step.block_rows, max(MIN_MAP_ROWS, room))),
            inputs=(self.array, *columns),
            n_stored=self.array.n_stored if sparse.issparse(like) else 0,
        )

    def sum_blocks(
        self, function: Callable[..., Any], *columns: Any, width: int = 0, dtype: Any = None
    ) -> tuple[Array, ...]:
        """Sum ``function(block, *column_blocks)``; small sums in the same order as in memory."""
        futures = self.chunks.run(self._step("sums", function, width), (self.array, *columns))
        sums = self.chunks.gather_sums(futures, n_bytes=8 * width**2)
        (total,) = add_sums([add_sums([run]) for run in cut_runs(sums)])
        return tuple(part.astype(self.dtype if dtype is None else dtype) for part in total)

    def take(self, indices: Array) -> Rows:
        """Return the rows at `indices`, in memory."""
        return self.with_samples(*self._take(indices, self.array, *self.weight_columns))

    def with_samples(self, array: Any, weights: Array | None = None) -> Rows:
        """Return rows of some of the samples, in memory."""
        return Rows(array, weights, self.pool)

    def to_host(self, column: Any, indices: Array | None = None) -> Array:
        """Return a column, or its values at `indices`, as an array in memory."""
        return np.asarray(
            self._take(np.arange(len(self)) if indices is None else indices, column)[0]
        )

    def _take(self, indices: Array, *columns: Any) -> list[Any]:
        """Return some rows of columns, in one pass."""
        chunks, indices = self.chunks, np.asarray(indices)
        numbers = np.searchsorted(chunks.starts, indices, side="right") - 1
        order = np.argsort(numbers, kind="stable")
        splits = np.split(order, np.searchsorted(numbers[order], range(1, len(chunks.sizes))))
        given = [[indices[s] - start] for s, start in zip(splits, chunks.starts, strict=True)]
        step = Step("map_blocks", take_rows, 0, max(chunks.sizes), self.dtype)
        parts = chunks.cluster.gather(chunks.run(step, columns, given))
        back = np.argsort(order, kind="stable")
        return [stack_blocks(list(each))[back] for each in zip(*(p[0] for p in parts), strict=True)]


def take_rows(*parts: Any) -> tuple[Any, ...]:
    """Return rows of some columns, at the indices that come last."""
    *columns, indices = parts
    return tuple(column[indices] for column in columns)
