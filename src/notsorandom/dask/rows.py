"""Rows on a Dask cluster, cut into chunks: a pass over them is one task per chunk.

Columns are futures in the memory of the workers: the scheduler knows how each was computed, and
computes it again if its worker dies.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from operator import getitem
from typing import Any

import cloudpickle
import dask.array as da
import numpy as np
from scipy import sparse

from notsorandom._utils.threads import BLAS_LIMIT, cached_property, cut_slices
from notsorandom.dask.cluster import Cluster
from notsorandom.data.rows import MAX_BLOCK_ROWS, Array, Rows, RunningSum, cut_runs

# Chunks are cut anew to about this many bytes, or to CHUNKS_PER_THREAD, if they don't begin at
# multiples of MAX_BLOCK_ROWS or are many: each task costs the scheduler about a millisecond.
CHUNK_BYTES, CHUNKS_PER_THREAD = 2**27, 2
# Sums of single blocks are returned up to this many bytes per chunk, and added in the same order as
# in memory. Larger ones are added on the workers, and by a tree if all have more than DIRECT_BYTES.
BLOCK_SUM_BYTES, DIRECT_BYTES, TREE_WIDTH = 2**16, 2**24, 8


@dataclass(frozen=True)
class DaskColumn:
    """One row of values per sample, as futures of its chunks.

    `n_stored` is how many numbers a row of a sparse array has in the mean.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    futures: Sequence[Any]
    n_stored: int = 0

    def to_array(self, sizes: Sequence[int]) -> Any:
        """Return the column as a Dask array, given the sizes of its chunks."""
        shapes = ((size, *self.shape[1:]) for size in sizes)
        pairs = zip(self.futures, shapes, strict=True)
        return da.concatenate([da.from_delayed(*pair, dtype=self.dtype) for pair in pairs])


def run_task(kind: str, step: bytes, size: int, given: Any, samples: Any, *columns: Any) -> Any:
    """Process the blocks of a chunk, on a worker: ``"map"``, ``"map_blocks"`` or ``"sums"``.

    BLAS uses one thread, because a worker's threads run other tasks. Samples of None are rows
    without features.
    """
    function, block_rows, dtype, errors = pickle.loads(step)
    rows = Rows(np.empty((size, 0), dtype) if samples is None else samples, block_rows=block_rows)
    with BLAS_LIMIT.hold(), np.errstate(**errors):
        if kind == "map":
            return rows.map(function, *columns)
        results = list(rows.map_blocks(function, *columns, given=given))
    if kind == "map_blocks":
        return results
    n_bytes = sum(np.asarray(part).nbytes for sums in results for part in sums)
    return results if n_bytes <= BLOCK_SUM_BYTES else add_sums([results])


def add_sums(lists: Sequence[list[Any]]) -> list[Any]:
    """Add the sums in some lists, in order."""
    total = RunningSum()
    for parts in chain.from_iterable(lists):
        total.add(parts)
    return [total.parts]


def make_zeros_at(dtype: Any, size: int, indices: Array) -> Array:
    """Return a chunk of ones, with zeros at `indices`."""
    rows = Rows.without_features(size, dtype)
    column: Array = rows.zeros_at(indices)
    return column


@dataclass(frozen=True)
class DaskRows(Rows):
    """Samples on a Dask cluster; `array` and `weights` are columns, `sizes` the chunks' lengths.

    Chunks begin at multiples of `MAX_BLOCK_ROWS` after :meth:`select`, so their blocks are those
    of all rows.
    """

    cluster: Cluster = None  # type: ignore[assignment]
    sizes: Sequence[int] = ()
    is_local = False

    @cached_property
    def columns_only(self) -> Rows:
        """The same rows without their samples, for operations on columns."""
        samples = DaskColumn((len(self), 0), self.dtype, [None] * len(self.sizes))
        # Dask makes its workers return freed memory to the system at once, and to get temporary
        # arrays of more than 64 KB again takes longer than to compute them.
        return replace(self, array=samples, block_rows=MAX_BLOCK_ROWS)

    @property
    def is_sparse(self) -> bool:
        """Whether blocks of the samples are sparse."""
        return bool(self.array.n_stored)

    @property
    def _n_stored(self) -> int:
        return self.array.n_stored or self.n_features

    def _submit(self, kind: str, function: Any, columns: Any, width: int, given: Any = None) -> Any:
        """Return futures of one task per chunk, with one more argument for each block if given."""
        block_rows = self.block_rows or self._rows_per_block(width)
        step = cloudpickle.dumps((function, block_rows, self.dtype, np.geterr()))
        inner = getattr(function, "func", function)  # of a partial
        name = getattr(inner, "__qualname__", type(inner).__name__).split(".<")[0].split(".")[-1]
        extras: list[Any] = [None] * len(self.sizes)
        if given is not None:
            rest = iter(given)
            extras = [[next(rest) for _ in cut_slices(size, block_rows)] for size in self.sizes]
        futures = (column.futures for column in (self.array, *columns))
        return self.cluster.map(name, partial(run_task, kind, step), self.sizes, extras, *futures)

    def map_blocks(self, function: Any, *columns: Any, width: int = 0, given: Any = None) -> Any:
        """Yield ``function(block, *column_blocks)`` for each block, in order."""
        futures = self._submit("map_blocks", function, columns, width, given)
        return chain.from_iterable(self.cluster.gather(futures))

    def map(self, function: Any, *columns: Any, width: int = 0, on_device: bool = False) -> Any:
        """Return the column with the blocks ``function(block, *column_blocks)``, computed later."""
        empty = [np.empty((0, *one.shape[1:]), dtype=one.dtype) for one in (self.array, *columns)]
        if self.array.n_stored:
            empty[0] = sparse.csr_array(empty[0])
        like = function(*empty)
        futures = self._submit("map", function, columns, width)
        n_stored = self.array.n_stored if sparse.issparse(like) else 0
        return DaskColumn((len(self), *like.shape[1:]), like.dtype, futures, n_stored)

    def sum_blocks(self, function: Any, *columns: Any, width: int = 0, dtype: Any = None) -> Any:
        """Sum ``function(block, *column_blocks)``; small sums in the same order as in memory."""
        futures = self._submit("sums", function, columns, width)
        while len(futures) > 1 and len(futures) * 8 * width**2 > DIRECT_BYTES:
            groups = [futures[i : i + TREE_WIDTH] for i in range(0, len(futures), TREE_WIDTH)]
            futures = self.cluster.map("add_sums", add_sums, groups)
        sums = list(chain.from_iterable(self.cluster.gather(futures)))
        (total,) = add_sums([add_sums([run]) for run in cut_runs(sums)])
        return tuple(part.astype(self.dtype if dtype is None else dtype) for part in total)

    def _take_samples(self, indices: Array) -> Any:
        return self.to_host(self.array, indices)

    def with_samples(self, array: Any, weights: Array | None = None) -> Rows:
        """Return rows of some of the samples, in memory."""
        return Rows(array, weights, self.pool)

    def to_host(self, column: Any, indices: Array | None = None) -> Array:
        """Return a column, or its values at `indices`, as an array in memory."""
        if isinstance(column, np.ndarray):
            return column
        array = column.to_array(self.sizes)[slice(None) if indices is None else indices]
        return self.cluster.gather([self.cluster.client.compute(array)])[0]

    def zeros_at(self, indices: Array) -> DaskColumn:
        """Return a column of ones, with zeros at sorted `indices`, on the cluster."""
        ends = np.cumsum(self.sizes)
        parts = np.split(indices, np.searchsorted(indices, ends[:-1]))
        inside = [
            part - (end - size) for part, end, size in zip(parts, ends, self.sizes, strict=True)
        ]
        make = partial(make_zeros_at, self.dtype)
        futures = self.cluster.map("zeros_at", make, self.sizes, inside)
        return DaskColumn((len(self), 1), self.dtype, futures)

    def select(self, mask: Array, column: DaskColumn) -> tuple[DaskRows, DaskColumn]:
        """Return the rows where the mask is true, and a column of them, on the cluster."""
        masks = np.split(mask, np.cumsum(self.sizes)[:-1])
        kept = [int(part.sum()) for part in masks]
        chosen = [slice(None) if part.all() else part for part in masks]
        sizes = self._plan([size for size in kept if size])
        if sizes == self.sizes:
            return self, column
        selected = []
        for one in (self.array, column, *self.weight_columns):
            shape = (sum(kept), *one.shape[1:])
            futures = self.cluster.map("select", getitem, one.futures, chosen)
            array = replace(one, shape=shape, futures=futures).to_array(kept)
            blocks = array.rechunk((tuple(sizes), *shape[1:])).to_delayed().ravel()
            futures = self.cluster.client.compute(list(blocks))
            selected.append(replace(one, shape=shape, futures=futures))
        array, column, weights, *_ = (*selected, None)
        return replace(self, array=array, weights=weights, sizes=sizes), column

    def _plan(self, sizes: list[int]) -> list[int]:
        """Return sizes of chunks that begin where blocks in memory may begin, and are not many."""
        total = sum(sizes)
        n_bytes = total * self._n_stored * self.dtype.itemsize
        n_chunks = max(1, CHUNKS_PER_THREAD * self.cluster.n_threads(), n_bytes / CHUNK_BYTES)
        if len(sizes) <= 2 * n_chunks and not any(size % MAX_BLOCK_ROWS for size in sizes[:-1]):
            return sizes
        step = MAX_BLOCK_ROWS * math.ceil(total / n_chunks / MAX_BLOCK_ROWS)
        return [min(step, total - start) for start in range(0, total, step)]
