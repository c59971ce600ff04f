"""Rows on a Dask cluster, cut into chunks: a pass over them is one task per chunk.

Columns are futures in the memory of the workers: the scheduler knows how each was computed, and
computes it again if its worker dies.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, chain, islice
from typing import Any

import cloudpickle
import dask.array as da
import numpy as np
from scipy import sparse

from notsorandom._utils.threads import cached_property, cut_slices
from notsorandom.dask.cluster import Cluster
from notsorandom.data.chunks import (
    add_all,
    add_pairs,
    apply_to_none,
    copy_rows,
    group_parts,
    join_parts,
    make_zeros_at,
    run_task,
    select_rows,
    split_indices,
)
from notsorandom.data.rows import MAX_BLOCK_ROWS, Array, Rows, stack_blocks

# Neighbouring parts are one chunk, of at most about this many bytes, and at least one for each
# thread of the workers. A pass over a chunk then takes ten times as long as a task costs.
JOINED_BYTES = 2**28
# Columns up to this many bytes per chunk are computed where they are used, if they can be.
LAZY_BYTES = 2**24
# A chain of passes sends the results of all chunks to all chunks, up to this many.
CHAINED_CHUNKS = 16
# Larger sums are added by a tree of tasks.
DIRECT_BYTES, TREE_WIDTH = 2**24, 8


@dataclass(frozen=True)
class DaskColumn:
    """One row of values per sample, as futures of its chunks, or of the parts of each chunk.

    `n_stored` is how many numbers a row of a sparse array has in the mean. A lazy column has no
    futures, but a `source`: a function of blocks of other columns, and these.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    futures: Sequence[Any]
    n_stored: int = 0
    source: tuple[Any, Sequence[Any]] | None = None

    def recipe(self, leaves: list[Any]) -> Any:
        """Return how to compute the column of `leaves`, to which its futures are added."""
        if self.source is not None:
            function, inputs = self.source
            return function, [one.recipe(leaves) for one in inputs]
        if 0 in self.shape[1:]:
            return None
        leaves.append(self.futures)
        return len(leaves) - 1


@dataclass(frozen=True)
class DaskRows(Rows):
    """Samples on a Dask cluster; `array` and `weights` are columns, `sizes` the chunks' lengths.

    Parts of chunks begin at multiples of `MAX_BLOCK_ROWS` after :meth:`select`, so their blocks are
    those of all rows.
    """

    cluster: Cluster = None  # type: ignore[assignment]
    sizes: Sequence[int] = ()
    is_local = False

    @cached_property
    def columns_only(self) -> Rows:
        """The same rows without their samples, for operations on columns."""
        # Chunks begin at multiples of these rows, not of the larger blocks of columns in memory.
        samples = DaskColumn((len(self), 0), self.dtype, ())
        return replace(self, array=samples, block_rows=MAX_BLOCK_ROWS)

    @property
    def _n_stored(self) -> int:
        return self.array.n_stored or self.n_features

    def _submit(self, kind: str, function: Any, columns: Any, width: int = 0, **more: Any) -> Any:
        """Return futures of one task per chunk; see :func:`run_task`."""
        block_rows, leaves = self.block_rows or self._rows_per_block(width), list[Any]()
        recipes = [one.recipe(leaves) for one in (self.array, *columns)]
        settings = (more.get("prepare"), recipes, len(self), block_rows, self.dtype, np.geterr())
        step = cloudpickle.dumps((function, *settings))
        inner = getattr(function, "func", function)  # of a partial
        name = getattr(inner, "__qualname__", type(inner).__name__).split(".<")[0].split(".")[-1]
        n_chunks, extras = len(self.sizes), [None] * len(self.sizes)
        if more.get("given") is not None:
            extras = self._by_chunk(more["given"], block_rows)
        begins = [0, *accumulate(self.sizes)][:n_chunks]
        arguments = (self.sizes, begins, extras, [more.get("before")] * n_chunks, *leaves)
        return self.cluster.map(name, partial(run_task, kind, step), *arguments)

    def _by_chunk(self, values: Iterable[Any], block_rows: int = MAX_BLOCK_ROWS) -> list[Any]:
        """Return a list for each chunk of values of blocks."""
        rest = iter(values)
        return [list(islice(rest, math.ceil(size / block_rows))) for size in self.sizes]

    def _read(self, futures: Sequence[Any]) -> Any:
        return chain.from_iterable(map(pickle.loads, self.cluster.gather(futures)))

    def map_blocks(self, function: Any, *columns: Any, width: int = 0, given: Any = None) -> Any:
        """Yield ``function(block, *column_blocks)`` for each block, in order."""
        return self._read(self._submit("map_blocks", function, columns, width, given=given))

    def chain(self, stages: Any, *columns: Any) -> list[list[Any]]:
        """Return the results of several passes; the workers send each other those of a stage."""
        if len(self.sizes) > CHAINED_CHUNKS:
            return super().chain(stages, *columns)
        futures: list[Any] = [None]
        for prepare, function in stages:
            more = {"prepare": prepare, "before": futures[-1]}
            futures.append(self._submit("map_blocks", function, columns, **more))
        results = map(pickle.loads, self.cluster.gather(list(chain(*futures[1:]))))
        return [list(chain.from_iterable(islice(results, len(self.sizes)))) for _ in stages]

    def map(self, function: Any, *columns: Any, width: int = 0, **options: Any) -> Any:
        """Return the column with the blocks ``function(block, *column_blocks)``, computed later."""
        like = apply_to_none(function, self.is_sparse, (self.array, *columns))
        shape = (len(self), *like.shape[1:])
        chunk_bytes = max(self.sizes) * math.prod(shape[1:]) * like.dtype.itemsize
        if options.get("lazy") and chunk_bytes <= LAZY_BYTES:
            return DaskColumn(shape, like.dtype, (), source=(function, columns))
        futures = self._submit("map", function, columns, width)
        n_stored = self.array.n_stored if sparse.issparse(like) else 0
        return DaskColumn(shape, like.dtype, futures, n_stored)

    def sum_blocks(self, function: Any, *columns: Any, width: int = 0, dtype: Any = None) -> Any:
        """Sum ``function(block, *column_blocks)``; small sums in the same order as in memory."""
        futures = self._submit("sums", function, columns, width)
        while len(futures) > 1 and len(futures) * 8 * width**2 > DIRECT_BYTES:
            groups = [futures[i : i + TREE_WIDTH] for i in range(0, len(futures), TREE_WIDTH)]
            futures = self.cluster.map("add_sums", add_pairs, groups)
        dtype = self.dtype if dtype is None else dtype
        return tuple(part.astype(dtype) for part in add_all(self._read(futures)))

    def with_samples(self, array: Any, weights: Array | None = None) -> Rows:
        """Return rows of some of the samples, in memory."""
        return Rows(array, weights, self.pool)

    def to_host(self, column: Any, indices: Array | None = None) -> Array:
        """Return a column, or its values at `indices`, as an array in memory."""
        if isinstance(column, np.ndarray):
            return column
        rows = replace(self, array=column, weights=None, block_rows=MAX_BLOCK_ROWS)
        if indices is None:
            return stack_blocks(list(rows.map_blocks(copy_rows)))
        order = np.argsort(indices, kind="stable")
        sizes = [block.stop - block.start for size in self.sizes
                 for block in cut_slices(size, MAX_BLOCK_ROWS)]  # fmt: skip
        parts = rows.map_blocks(copy_rows, given=split_indices(indices[order], sizes))
        return stack_blocks(list(parts))[np.argsort(order)]

    def zeros_at(self, indices: Array) -> DaskColumn:
        """Return a column of ones, with zeros at sorted `indices`, on the cluster."""
        make, inside = partial(make_zeros_at, self.dtype), split_indices(indices, self.sizes)
        futures = self.cluster.map("zeros_at", make, self.sizes, inside)
        return DaskColumn((len(self), 1), self.dtype, futures)

    def select(self, mask: DaskColumn | None, column: Any) -> tuple[DaskRows, DaskColumn]:
        """Return the rows where the mask is not zero, and a column of them, on the cluster.

        Parts are cut anew if they don't begin where blocks in memory do. Neighbours become one
        chunk: where they are doesn't matter, since Dask moves them to the worker of the task.
        """
        columns, sizes = [self.array, column, *self.weight_columns], list(self.sizes)
        kept, row_bytes = sizes, self._n_stored * self.dtype.itemsize
        if mask is not None:
            counts = self.columns_only.map_blocks(lambda _, m: np.count_nonzero(m), mask)
            kept = [sum(each) for each in self._by_chunk(counts)]
        total = sum(kept)
        n_chunks = max(1, self.cluster.n_threads(), math.ceil(total * row_bytes / JOINED_BYTES))
        if kept != sizes or any(size % MAX_BLOCK_ROWS for size in sizes[:-1]):
            step = MAX_BLOCK_ROWS * math.ceil(total / n_chunks / MAX_BLOCK_ROWS)
            sizes = [min(step, total - start) for start in range(0, total, step)]
            columns = [self._recut(one, mask, kept, sizes) for one in columns]
        groups = group_parts(sizes, n_chunks)
        joined = (replace(one, futures=join_parts(one.futures, groups)) for one in columns)
        array, column, *weights = joined
        sizes = [sum(sizes[i] for i in group) for group in groups]
        return replace(self, array=array, weights=(*weights, None)[0], sizes=sizes), column

    def _recut(self, column: DaskColumn, mask: Any, kept: list[int], sizes: list[int]) -> Any:
        """Return a column of the kept rows in parts of other sizes."""
        leaves: list[Any] = []
        recipes = [one.recipe(leaves) for one in (column, mask) if one is not None]
        futures = self.cluster.map("select", partial(select_rows, recipes), self.sizes, *leaves)
        shape, pairs = (sum(sizes), *column.shape[1:]), zip(futures, kept, strict=True)
        parts = [da.from_delayed(f, (n, *shape[1:]), dtype=column.dtype) for f, n in pairs]
        blocks = da.concatenate(parts).rechunk((tuple(sizes), *shape[1:])).to_delayed().ravel()
        return replace(column, shape=shape, futures=self.cluster.client.compute(list(blocks)))
