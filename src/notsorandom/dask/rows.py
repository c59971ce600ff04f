"""Rows on a Dask cluster, cut into chunks: a pass over them is one task per chunk.

Columns are futures in the memory of the workers: the scheduler knows how each was computed, and
computes it again if its worker dies.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import cloudpickle
import numpy as np
from scipy import sparse

from notsorandom._utils.threads import BLAS_LIMIT, cut_slices
from notsorandom.dask.cluster import Cluster
from notsorandom.data.rows import MAX_BLOCK_ROWS, Array, Rows, RunningSum, cut_runs, stack_blocks

# Chunks are cut anew to about this many bytes, or to CHUNKS_PER_THREAD, if they don't begin at
# multiples of MAX_BLOCK_ROWS or are many: each task costs the scheduler about a millisecond.
CHUNK_BYTES, CHUNKS_PER_THREAD = 2**27, 2
# Sums of single blocks are returned up to this many bytes per chunk, and added in the same order as
# in memory. Larger ones are added on the workers, and by a tree if all have more than DIRECT_BYTES.
BLOCK_SUM_BYTES, DIRECT_BYTES, TREE_WIDTH = 2**16, 2**24, 8
# Rows of a block of columns. Dask makes its workers return freed memory to the system at once, and
# to get larger temporary arrays again takes longer than to compute them.
COLUMN_BLOCK_ROWS = 2**14
# For the same reason, bytes of the blocks that a column is computed in, and their least rows.
MAP_BYTES, MIN_MAP_ROWS = 2**16, 2**10


@dataclass(frozen=True)
class DaskColumn:
    """One row of values per sample, as futures of its chunks.

    `n_stored` is how many numbers a row of a sparse array has in the mean.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    futures: Sequence[Any]
    n_stored: int = 0

    def __len__(self) -> int:
        return self.shape[0]


def run_task(kind: str, step: bytes, size: int, given: Any, samples: Any, *columns: Any) -> Any:
    """Process the blocks of a chunk, on a worker: ``"map"``, ``"map_blocks"`` or ``"sums"``.

    BLAS uses one thread, because a worker's threads run other tasks. Samples of None are rows
    without features.
    """
    function, width, block_rows, dtype, errors = pickle.loads(step)
    rows = Rows(np.empty((size, 0), dtype) if samples is None else samples, block_rows=block_rows)
    with BLAS_LIMIT.hold(), np.errstate(**errors):
        if kind == "map":
            return rows.map(function, *columns, width=width)
        results = list(rows.map_blocks(function, *columns, width=width, given=given))
    if kind == "map_blocks" or sum(np.asarray(p).nbytes for s in results for p in s) <= (
        BLOCK_SUM_BYTES
    ):
        return results
    return add_sums([results])


def add_sums(lists: Sequence[list[Any]]) -> list[Any]:
    """Add the sums in some lists, in order."""
    total = RunningSum()
    for parts in (parts for sums in lists for parts in sums):
        total.add(parts)
    return [total.parts]


def take_pieces(pieces: Sequence[Array], blocks: Sequence[Any]) -> Any:
    """Return rows of several blocks, stacked."""
    return stack_blocks([block[piece] for block, piece in zip(blocks, pieces, strict=True)])


def take_rows(*parts: Any) -> tuple[Any, ...]:
    """Return rows of some columns, at the indices that come last."""
    *columns, indices = parts
    return tuple(column[indices] for column in columns)


@dataclass(frozen=True)
class DaskRows(Rows):
    """Samples on a Dask cluster; `array` and `weights` are columns, `sizes` the chunks' lengths."""

    cluster: Cluster = None  # type: ignore[assignment]
    sizes: Sequence[int] = ()
    is_local = False

    @cached_property
    def starts(self) -> Array:
        """First rows of the chunks."""
        return np.cumsum([0, *self.sizes[:-1]])

    @cached_property
    def columns_only(self) -> Rows:
        """The same rows without their samples, for operations on columns."""
        samples = DaskColumn((len(self), 0), self.dtype, [None] * len(self.sizes))
        return replace(self, array=samples, block_rows=COLUMN_BLOCK_ROWS)

    @property
    def _n_stored(self) -> int:
        return self.array.n_stored or self.n_features

    def _rows_per_block(self, width: int) -> int:
        return self.block_rows or super()._rows_per_block(width)

    def blocks(self, width: int = 0) -> Sequence[slice]:
        """Return slices that cut each chunk into blocks, as rows in memory are cut."""
        return [
            slice(start + block.start, start + block.stop)
            for start, size in zip(self.starts.tolist(), self.sizes, strict=True)
            for block in cut_slices(size, self._rows_per_block(width))
        ]

    def _submit(
        self,
        kind: str,
        function: Callable[..., Any],
        columns: Sequence[Any],
        width: int,
        block_rows: int,
        given: Sequence[Any] | None = None,
    ) -> list[Any]:
        """Return futures of one task per chunk, with one more argument for each if given."""
        step = cloudpickle.dumps((function, width, block_rows, self.dtype, np.geterr()))
        inner = getattr(function, "func", function)  # of a partial
        name = getattr(inner, "__qualname__", type(inner).__name__).split(".<")[0].split(".")[-1]
        given = [None] * len(self.sizes) if given is None else given
        futures = (column.futures for column in (self.array, *columns))
        return self.cluster.map(name, partial(run_task, kind, step), self.sizes, given, *futures)

    def map_blocks(
        self, function: Callable[..., Any], *columns: Any, width: int = 0, given: Any = None
    ) -> Iterator[Any]:
        """Yield ``function(block, *column_blocks)`` for each block, in order."""
        block_rows = self._rows_per_block(width)
        if given is not None:
            ends = np.cumsum([len(cut_slices(size, block_rows)) for size in self.sizes])
            given = [given[i:j] for i, j in zip([0, *ends[:-1]], ends, strict=True)]
        futures = self._submit("map_blocks", function, columns, width, block_rows, given)
        return (result for part in self.cluster.gather(futures) for result in part)

    def map(
        self, function: Callable[..., Any], *columns: Any, width: int = 0, on_device: bool = False
    ) -> Any:
        """Return the column with the blocks ``function(block, *column_blocks)``, computed later."""
        empty = [np.empty((0, *one.shape[1:]), dtype=one.dtype) for one in (self.array, *columns)]
        if self.array.n_stored:
            empty[0] = sparse.csr_array(empty[0])
        like = function(*empty)
        row_bytes = max(1, width, *like.shape[1:]) * self.dtype.itemsize
        room = max(MIN_MAP_ROWS, 1 << (MAP_BYTES // row_bytes).bit_length() - 1)
        block_rows = min(self._rows_per_block(width), room)
        futures = self._submit("map", function, columns, width, block_rows)
        n_stored = self.array.n_stored if sparse.issparse(like) else 0
        return DaskColumn((len(self), *like.shape[1:]), like.dtype, futures, n_stored)

    def sum_blocks(
        self, function: Callable[..., Any], *columns: Any, width: int = 0, dtype: Any = None
    ) -> tuple[Array, ...]:
        """Sum ``function(block, *column_blocks)``; small sums in the same order as in memory."""
        futures = self._submit("sums", function, columns, width, self._rows_per_block(width))
        while len(futures) > 1 and len(futures) * 8 * width**2 > DIRECT_BYTES:
            groups = [futures[i : i + TREE_WIDTH] for i in range(0, len(futures), TREE_WIDTH)]
            futures = self.cluster.map("add_sums", add_sums, groups)
        sums = [parts for sums in self.cluster.gather(futures) for parts in sums]
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
        indices = np.arange(len(self)) if indices is None else indices
        return np.asarray(self._take(indices, column)[0])

    def _take(self, indices: Array, *columns: Any) -> list[Any]:
        """Return some rows of columns, in one pass."""
        order = np.argsort(indices, kind="stable")
        given = [part for _, part in self._split(np.asarray(indices)[order])]
        rows = replace(self, array=columns[0], block_rows=max(self.sizes))
        parts = rows.map_blocks(take_rows, *columns[1:], given=given)
        back = np.argsort(order, kind="stable")
        return [stack_blocks(list(each))[back] for each in zip(*parts, strict=True)]

    def _split(self, indices: Array) -> list[tuple[int, Array]]:
        """Return the number of each chunk and which of its rows are at the sorted `indices`."""
        parts = np.split(indices, np.searchsorted(indices, self.starts[1:]))
        pairs = zip(parts, self.starts, strict=True)
        return [(number, part - start) for number, (part, start) in enumerate(pairs)]

    def select(self, mask: Array, *columns: DaskColumn) -> tuple[DaskRows, list[DaskColumn]]:
        """Return the rows where the mask is true, and columns of them, on the cluster.

        Their chunks are such that blocks of rows, and so sums over them, are those in memory.
        """
        kept = np.flatnonzero(mask)
        sizes = self._plan([len(part) for _, part in self._split(kept) if len(part)])
        if sizes == self.sizes:
            return self, list(columns)
        chunks = (self._split(part) for part in np.split(kept, np.cumsum(sizes)[:-1]))
        pieces = [[(number, part) for number, part in each if len(part)] for each in chunks]
        indices, taken = [[part for _, part in each] for each in pieces], []
        for column in (*columns, self.array, *self.weight_columns):
            blocks = [[column.futures[number] for number, _ in each] for each in pieces]
            futures = self.cluster.map("take_pieces", take_pieces, indices, blocks)
            taken.append(replace(column, shape=(len(kept), *column.shape[1:]), futures=futures))
        array, weights, *_ = (*taken[len(columns) :], None)
        rows = replace(self, array=array, weights=weights, sizes=sizes)
        return rows, taken[: len(columns)]

    def _plan(self, sizes: list[int]) -> list[int]:
        """Return sizes of chunks that begin where blocks in memory may begin, and are not many."""
        total, n_chunks = sum(sizes), CHUNKS_PER_THREAD * max(1, self.cluster.n_threads())
        row_bytes = max(1, self._n_stored * self.dtype.itemsize)
        rows = max(1, min(CHUNK_BYTES / row_bytes, total / n_chunks))
        is_aligned = all(size % MAX_BLOCK_ROWS == 0 for size in sizes[:-1])
        if is_aligned and len(sizes) <= 2 * math.ceil(total / rows):
            return sizes
        step = MAX_BLOCK_ROWS * math.ceil(rows / MAX_BLOCK_ROWS)
        return [min(step, total - start) for start in range(0, total, step)]
