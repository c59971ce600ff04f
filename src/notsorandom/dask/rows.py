"""Rows on a Dask cluster, cut into chunks: a pass over them is one task per chunk.

Columns are futures in the memory of the workers: the scheduler knows how each was computed, and
computes it again if its worker dies.
"""

from __future__ import annotations

import bisect
import math
import pickle
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, chain, groupby
from operator import itemgetter
from threading import local
from typing import Any

import cloudpickle
import dask.array as da
import numpy as np
from scipy import sparse

from notsorandom._utils.threads import BLAS_LIMIT, cached_property, cut_slices
from notsorandom.dask.cluster import Cluster
from notsorandom.data.rows import (
    MAX_BLOCK_ROWS,
    Array,
    Rows,
    RunningSum,
    run_slices,
    stack_blocks,
)

# Parts that don't begin at multiples of MAX_BLOCK_ROWS are cut anew to about this many bytes.
PART_BYTES = 2**27
# Neighbouring parts are one chunk, of at most about this many bytes, and one for each thread of the
# workers: a task costs about as much as a pass over 50 MB.
CHUNK_BYTES = 2**28
# Columns up to this many bytes per chunk are computed where they are used, if they can be.
LAZY_BYTES = 2**24
# A chain of passes sends the results of all chunks to all chunks, up to this many.
CHAINED_CHUNKS = 16
# Sums of single blocks are returned up to this many bytes per chunk, if their run begins in another
# chunk. Larger ones are added on the workers, and by a tree if all have more than DIRECT_BYTES.
BLOCK_SUM_BYTES, DIRECT_BYTES, TREE_WIDTH = 2**18, 2**24, 8

# Memory that each thread of a worker keeps, in pieces below the limit from which glibc maps memory
# for each array, 128 KB. A fit to 400,000 rows of 50 columns took the system 1.8 s without it.
PIECE_BYTES, N_PIECES = 120_000, 256
_reserved = local()


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
        if not any(self.futures is one for one in leaves):
            leaves.append(self.futures)
        return next(i for i, one in enumerate(leaves) if one is self.futures)


class Blocks:
    """A lazy column, or an array in several parts, as far as ``Rows`` needs it of an array."""

    def __init__(self, function: Any, inputs: Sequence[Any]) -> None:
        self.function, self.inputs = function, inputs
        if function is None:
            self.ends = list(accumulate(part.shape[0] for part in inputs))
            self.shape, self.dtype = (self.ends[-1], *inputs[0].shape[1:]), inputs[0].dtype

    def __getitem__(self, rows: slice) -> Any:
        if self.function is not None:
            return self.function(None, *(one[rows] for one in self.inputs))
        parts = []
        for number in range(bisect.bisect(self.ends, rows.start), len(self.ends)):
            begin = self.ends[number] - self.inputs[number].shape[0]
            if begin >= rows.stop:
                break
            parts.append(self.inputs[number][max(rows.start - begin, 0) : rows.stop - begin])
        return parts[0] if len(parts) == 1 else stack_blocks(parts)


def read_recipe(recipe: Any, leaves: Sequence[Any]) -> Any:
    """Return the column of a recipe, on a worker."""
    if not isinstance(recipe, int):
        return Blocks(recipe[0], [read_recipe(one, leaves) for one in recipe[1]])
    leaf = leaves[recipe]
    return Blocks(None, leaf) if isinstance(leaf, list) else leaf


def reserve_memory() -> None:
    """Keep free memory for the temporary arrays of this thread, once.

    Dask starts its workers with ``MALLOC_TRIM_THRESHOLD_=65536``: the end of the heap is returned
    to the system as soon as it is free, and to get it again costs more than a pass. An array behind
    some free memory keeps that from being the end. Each piece is small enough to be on the heap.
    """
    if not hasattr(_reserved, "end"):
        free = [np.empty(PIECE_BYTES, dtype=np.uint8) for _ in range(N_PIECES)]
        _reserved.end = np.empty(PIECE_BYTES, dtype=np.uint8)
        del free


def run_task(
    kind: str, step: bytes, size: int, begin: int, given: Any, before: Any, *leaves: Any
) -> Any:
    """Process the blocks of a chunk, on a worker: ``"map"``, ``"map_blocks"`` or ``"sums"``.

    The result is a column, or pickled: what the function has returned for each block, or sums. BLAS
    uses one thread, because a worker's threads run other tasks. The chunk begins at row `begin`. What is `given` is one argument for each block, or all it is prepared from: what the
    tasks `before` have returned.
    """
    reserve_memory()
    function, prepare, recipes, n_rows, block_rows, dtype, errors = pickle.loads(step)
    samples, *columns = (None if one is None else read_recipe(one, leaves) for one in recipes)
    rows = Rows(np.empty((size, 0), dtype) if samples is None else samples, block_rows=block_rows)
    with BLAS_LIMIT.hold(), np.errstate(**errors):
        if kind == "map":
            return rows.map(function, *columns)
        first = begin // block_rows
        if prepare is not None:
            given = prepare(list(chain.from_iterable(map(pickle.loads, before))))
            given = given[first : first + len(rows.blocks())]
        results = list(rows.map_blocks(function, *columns, given=given))
    if kind == "sums":
        results = add_runs(results, first, math.ceil(n_rows / block_rows))
    return pickle.dumps(results)  # Dask would send each array by itself


def add_runs(results: list[Any], first: int, n_blocks: int) -> list[tuple[int, Any]]:
    """Add the sums of blocks of one run, as far as all are added in the same order as in memory.

    Returns pairs of the run's number and sums. `first` is the number of the first block.
    """
    pairs: list[tuple[int, Any]] = []
    for number, run in enumerate(run_slices(n_blocks)):
        inside = results[max(run.start - first, 0) : max(run.stop - first, 0)]
        n_bytes = sum(np.asarray(part).nbytes for sums in inside for part in sums)
        if run.start < first and n_bytes <= BLOCK_SUM_BYTES:  # begun by the chunk before
            pairs += [(number, one) for one in inside]
        elif inside:
            pairs.append((number, add_sums(inside)))
    return pairs


def add_sums(sums: Iterable[Any]) -> list[Array]:
    """Add sums in order."""
    total = RunningSum()
    for parts in sums:
        total.add(parts)
    return total.parts


def add_pairs(results: Iterable[bytes]) -> bytes:
    """Add what :func:`add_runs` has returned for some chunks, as one run."""
    pairs = chain.from_iterable(map(pickle.loads, results))
    return pickle.dumps([(0, add_sums(sums for _, sums in pairs))])


def take_rows(recipe: Any, size: int, indices: Array, *leaves: Any) -> Any:
    """Return the values of a chunk of a column at sorted indices, on a worker."""
    column = read_recipe(recipe, leaves)
    if not isinstance(column, Blocks):
        return column[indices]
    blocks = cut_slices(size, MAX_BLOCK_ROWS)
    splits = np.split(indices, np.searchsorted(indices, [block.stop for block in blocks[:-1]]))
    pairs = zip(blocks, splits, strict=True)
    return stack_blocks([column[b][some - b.start] for b, some in pairs if len(some)])


def select_rows(recipes: Any, size: int, *leaves: Any) -> Any:
    """Return the rows of a chunk of a column, where a mask is not zero if there is one."""
    column, *masks = (read_recipe(recipe, leaves)[0:size] for recipe in recipes)
    for mask in masks:
        column = column[np.flatnonzero(mask)]
    return column


def join_parts(futures: Sequence[Any], groups: Sequence[Sequence[int]]) -> list[Any]:
    """Return the futures of groups of chunks, each as one or as a list of its parts."""
    joined = []
    for group in groups:
        parts = [futures[i] if isinstance(futures[i], list) else [futures[i]] for i in group]
        parts = list(chain.from_iterable(parts))
        joined.append(parts[0] if len(parts) == 1 else parts)
    return joined


def make_zeros_at(dtype: Any, size: int, indices: Array) -> Array:
    """Return a chunk of ones, with zeros at `indices`."""
    rows = Rows.without_features(size, dtype)
    column: Array = rows.zeros_at(indices)
    return column


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
        samples = DaskColumn((len(self), 0), self.dtype, ())
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

    def _submit(
        self,
        kind: str,
        function: Any,
        columns: Any,
        width: int,
        given: Any = None,
        prepare: Any = None,
        before: Any = None,
    ) -> Any:
        """Return futures of one task per chunk; see :func:`run_task`."""
        block_rows, leaves = self.block_rows or self._rows_per_block(width), list[Any]()
        recipes = [one.recipe(leaves) if one.shape[1:] != (0,) else None
                   for one in (self.array, *columns)]  # fmt: skip
        step = cloudpickle.dumps(
            (function, prepare, recipes, len(self), block_rows, self.dtype, np.geterr())
        )
        inner = getattr(function, "func", function)  # of a partial
        name = getattr(inner, "__qualname__", type(inner).__name__).split(".<")[0].split(".")[-1]
        extras: list[Any] = [None] * len(self.sizes)
        if given is not None:
            rest = iter(given)
            extras = [[next(rest) for _ in cut_slices(size, block_rows)] for size in self.sizes]
        begins = [end - size for end, size in zip(accumulate(self.sizes), self.sizes, strict=True)]
        task, earlier = partial(run_task, kind, step), [before] * len(self.sizes)
        return self.cluster.map(name, task, self.sizes, begins, extras, earlier, *leaves)

    def map_blocks(self, function: Any, *columns: Any, width: int = 0, given: Any = None) -> Any:
        """Yield ``function(block, *column_blocks)`` for each block, in order."""
        futures = self._submit("map_blocks", function, columns, width, given)
        return chain.from_iterable(map(pickle.loads, self.cluster.gather(futures)))

    def chain(self, stages: Any, *columns: Any) -> list[list[Any]]:
        """Return the results of several passes; the workers send each other those of a stage."""
        if len(self.sizes) > CHAINED_CHUNKS:
            return super().chain(stages, *columns)
        futures: list[Any] = [None]
        for prepare, function in stages:
            before = futures[-1]
            futures.append(self._submit("map_blocks", function, columns, 0, None, prepare, before))
        results = map(pickle.loads, self.cluster.gather(list(chain.from_iterable(futures[1:]))))
        return [list(chain.from_iterable(next(results) for _ in self.sizes)) for _ in stages]

    def map(
        self,
        function: Any,
        *columns: Any,
        width: int = 0,
        on_device: bool = False,
        lazy: bool = False,
    ) -> Any:
        """Return the column with the blocks ``function(block, *column_blocks)``, computed later."""
        empty = [np.empty((0, *one.shape[1:]), dtype=one.dtype) for one in (self.array, *columns)]
        if self.array.n_stored:
            empty[0] = sparse.csr_array(empty[0])
        like = function(*empty)
        shape = (len(self), *like.shape[1:])
        if lazy and max(self.sizes) * math.prod(shape[1:]) * like.dtype.itemsize <= LAZY_BYTES:
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
        pairs = chain.from_iterable(map(pickle.loads, self.cluster.gather(futures)))
        runs = groupby(pairs, itemgetter(0))
        total = add_sums([add_sums(sums for _, sums in run) for _, run in runs])
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
        if indices is None:
            blocks = replace(self.columns_only).map_blocks(lambda _, values: values, column)
            return stack_blocks(list(blocks))
        order, leaves = np.argsort(indices, kind="stable"), list[Any]()
        inside = self._split(indices[order])
        step = partial(take_rows, column.recipe(leaves))
        chosen = [number for number, some in enumerate(inside) if len(some)]
        arguments = ([one[number] for number in chosen] for one in (self.sizes, inside, *leaves))
        taken = stack_blocks(self.cluster.gather(self.cluster.map("take", step, *arguments)))
        return taken[np.argsort(order)]

    def _split(self, indices: Array) -> list[Array]:
        """Return the sorted indices that are in each chunk, from its first row."""
        ends = np.cumsum(self.sizes)
        parts = np.split(indices, np.searchsorted(indices, ends[:-1]))
        return [
            part - (end - size) for part, end, size in zip(parts, ends, self.sizes, strict=True)
        ]

    def zeros_at(self, indices: Array) -> DaskColumn:
        """Return a column of ones, with zeros at sorted `indices`, on the cluster."""
        make = partial(make_zeros_at, self.dtype)
        futures = self.cluster.map("zeros_at", make, self.sizes, self._split(indices))
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
            kept = [sum(next(counts) for _ in cut_slices(n, MAX_BLOCK_ROWS)) for n in sizes]
        total, n_threads = sum(kept), max(1, self.cluster.n_threads())
        if kept != sizes or any(size % MAX_BLOCK_ROWS for size in sizes[:-1]):
            n_parts = max(n_threads, total * row_bytes / PART_BYTES)
            step = MAX_BLOCK_ROWS * math.ceil(total / n_parts / MAX_BLOCK_ROWS)
            sizes = [min(step, total - start) for start in range(0, total, step)]
            columns = [self._recut(one, mask, kept, sizes) for one in columns]
        n_chunks = max(n_threads, math.ceil(total * row_bytes / CHUNK_BYTES))
        middles = [end - size / 2 for end, size in zip(accumulate(sizes), sizes, strict=True)]
        groups = [
            list(group)
            for _, group in groupby(range(len(sizes)), lambda i: int(middles[i] * n_chunks / total))
        ]
        array, column, weights, *_ = (
            *(replace(one, futures=join_parts(one.futures, groups)) for one in columns),
            None,
        )
        sizes = [sum(sizes[i] for i in group) for group in groups]
        return replace(self, array=array, weights=weights, sizes=sizes), column

    def _recut(
        self, column: DaskColumn, mask: DaskColumn | None, kept: Sequence[int], sizes: Sequence[int]
    ) -> DaskColumn:
        """Return a column of the kept rows in parts of other sizes."""
        leaves: list[Any] = []
        recipes = [one.recipe(leaves) for one in (column, mask) if one is not None]
        futures = self.cluster.map("select", partial(select_rows, recipes), self.sizes, *leaves)
        shape = (sum(sizes), *column.shape[1:])
        array = da.concatenate(
            [
                da.from_delayed(one, (size, *shape[1:]), dtype=column.dtype)
                for one, size in zip(futures, kept, strict=True)
            ]
        )
        blocks = array.rechunk((tuple(sizes), *shape[1:])).to_delayed().ravel()
        return replace(column, shape=shape, futures=self.cluster.client.compute(list(blocks)))
