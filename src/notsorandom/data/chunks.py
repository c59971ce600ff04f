"""A pass over one chunk of rows, in another process: what the workers of a cluster run."""

from __future__ import annotations

import math
import pickle
from bisect import bisect
from collections.abc import Iterable, Sequence
from itertools import accumulate, chain, groupby
from operator import itemgetter
from threading import local
from typing import Any

import numpy as np
from scipy import sparse

from notsorandom._utils.threads import BLAS_LIMIT, RunningSum
from notsorandom.data.rows import Array, Rows, run_slices, stack_blocks

# Sums of single blocks are returned up to this many bytes per chunk, if their run begins in another
# chunk. Larger sums than this are added in each chunk, so that their last digits depend on chunks.
BLOCK_SUM_BYTES = 2**18
# Memory that each thread of a worker keeps, in pieces below the limit from which glibc maps memory
# for each array, 128 KB. A fit to 400,000 rows of 50 columns took the system 1.8 s without it.
PIECE_BYTES, N_PIECES = 120_000, 256
_reserved = local()


class Blocks:
    """A column as far as ``Rows`` needs it: in several parts, or a function of other columns.

    `inputs` are the parts, or the arguments of the function.
    """

    def __init__(self, function: Any, inputs: Sequence[Any]) -> None:
        self.function, self.inputs = function, inputs
        if function is None:
            self.ends = list(accumulate(part.shape[0] for part in inputs))
            self.shape, self.dtype = (self.ends[-1], *inputs[0].shape[1:]), inputs[0].dtype

    def __getitem__(self, rows: slice) -> Any:
        if self.function is not None:
            return self.function(None, *(one[rows] for one in self.inputs))
        parts = []
        for number in range(bisect(self.ends, rows.start), len(self.ends)):
            begin = self.ends[number] - self.inputs[number].shape[0]
            if begin >= rows.stop:
                break
            parts.append(self.inputs[number][max(rows.start - begin, 0) : rows.stop - begin])
        return parts[0] if len(parts) == 1 else stack_blocks(parts)


def read_recipe(recipe: Any, leaves: Sequence[Any]) -> Any:
    """Return a column, given its arrays.

    A recipe is the index of an array, or of a list of its parts, or a function and a list of the
    recipes of its arguments; None stands for samples that are not needed.
    """
    if recipe is None:
        return None
    if not isinstance(recipe, int):
        return Blocks(recipe[0], [read_recipe(one, leaves) for one in recipe[1]])
    leaf = leaves[recipe]
    return Blocks(None, leaf) if isinstance(leaf, list) else leaf


def run_task(
    kind: str, step: bytes, size: int, begin: int, given: Any, before: Any, *leaves: Any
) -> Any:
    """Process the blocks of a chunk: ``"map"``, ``"map_blocks"`` or ``"sums"``.

    The result is a column, or pickled: what the function has returned for each block, or sums. BLAS
    uses one thread, because a worker's threads run other tasks.

    Parameters
    ----------
    kind : str
    step : bytes
        Pickled: the function; if not None, the function that prepares one more argument for each
        block, given what the tasks `before` have returned; the recipes of samples and columns; the
        number of rows of all chunks; rows per block; type of the samples; settings of NumPy.
    size, begin : int
        Length of the chunk, and its first row.
    given : list or None
        One more argument for each block.
    before : list or None
    *leaves : arrays
    """
    reserve_memory()
    function, prepare, recipes, n_rows, block_rows, dtype, errors = pickle.loads(step)
    samples, *columns = (read_recipe(one, leaves) for one in recipes)
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


def select_rows(recipes: Any, size: int, *leaves: Any) -> Any:
    """Return the rows of a chunk of a column, where a mask is not zero if there is one."""
    column, *masks = (read_recipe(recipe, leaves)[0:size] for recipe in recipes)
    for mask in masks:
        column = column[np.flatnonzero(mask)]
    return column


def copy_rows(block: Any, indices: Any = None) -> Any:
    """Return the rows of a block at indices, or all."""
    return block if indices is None else block[indices]


def group_parts(sizes: Sequence[int], n_chunks: int) -> list[list[int]]:
    """Return the numbers of neighbouring parts that become one chunk, of about equal sizes."""
    middles = [end - size / 2 for end, size in zip(accumulate(sizes), sizes, strict=True)]
    numbers = [int(middle * n_chunks / sum(sizes)) for middle in middles]
    return [list(group) for _, group in groupby(range(len(sizes)), numbers.__getitem__)]


def join_parts(parts: Sequence[Any], groups: Sequence[Sequence[int]]) -> list[Any]:
    """Return each group of parts as one part, or as a list if there are several."""
    lists = [one if isinstance(one, list) else [one] for one in parts]
    joined = [list(chain.from_iterable(lists[i] for i in group)) for group in groups]
    return [one[0] if len(one) == 1 else one for one in joined]


def apply_to_none(function: Any, is_sparse: bool, columns: Sequence[Any]) -> Any:
    """Return what a function gives for blocks without rows, the first of them perhaps sparse."""
    empty = [np.empty((0, *one.shape[1:]), dtype=one.dtype) for one in columns]
    return function(sparse.csr_array(empty[0]) if is_sparse else empty[0], *empty[1:])


def split_indices(indices: Array, sizes: Sequence[int]) -> list[Array]:
    """Return the sorted indices that are in each part of rows, from its first row."""
    ends = np.cumsum(sizes)
    parts = np.split(indices, np.searchsorted(indices, ends[:-1]))
    return [part - (end - size) for part, end, size in zip(parts, ends, sizes, strict=True)]


def make_zeros_at(dtype: Any, size: int, indices: Array) -> Array:
    """Return a chunk of ones, with zeros at `indices`."""
    column: Array = Rows.without_features(size, dtype).zeros_at(indices)
    return column


def add_runs(results: list[Any], first: int, n_blocks: int) -> list[tuple[int, Any]]:
    """Add the sums of blocks of one run, as far as all are added in the same order as in memory.

    Returns pairs of the run's number and sums. `first` is the number of the first block. Large sums
    are added as one run.
    """
    pairs: list[tuple[int, Any]] = []
    if sum(np.asarray(part).nbytes for part in results[0]) > BLOCK_SUM_BYTES:
        return [(0, add_sums(results))]
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


def add_all(pairs: Iterable[tuple[int, Any]]) -> list[Array]:
    """Add what :func:`add_runs` has returned for all chunks, each run by itself first."""
    runs = groupby(pairs, itemgetter(0))
    return add_sums([add_sums(sums for _, sums in run) for _, run in runs])


def add_pairs(results: Iterable[bytes]) -> bytes:
    """Add what :func:`add_runs` has returned for some chunks, as one run."""
    pairs = chain.from_iterable(map(pickle.loads, results))
    return pickle.dumps([(0, add_sums(sums for _, sums in pairs))])


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
