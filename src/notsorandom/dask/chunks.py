"""Columns of values on a cluster, cut into chunks of rows.

A pass over the rows is one task per chunk. Columns are futures in the memory of the workers: the
scheduler knows how each was computed, and computes it again if its worker dies.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import cloudpickle
import numpy as np

from notsorandom._utils.threads import BLAS_LIMIT
from notsorandom.dask.cluster import Cluster
from notsorandom.data.rows import MAX_BLOCK_ROWS, Array, Rows, RunningSum, stack_blocks

# Chunks are cut anew to about this many bytes, or to CHUNKS_PER_THREAD, if they don't begin at
# multiples of MAX_BLOCK_ROWS or are many: each task costs the scheduler about a millisecond.
CHUNK_BYTES, CHUNKS_PER_THREAD = 2**27, 2
# A column that is computed without samples is stored when more passes than this have used it.
MAX_USES = 6
# Sums of single blocks are returned up to this many bytes per chunk, and added in the same order as
# in memory. Larger ones are added on the workers, and by a tree if all have more than DIRECT_BYTES.
BLOCK_SUM_BYTES, DIRECT_BYTES, TREE_WIDTH = 2**16, 2**24, 8


@dataclass(frozen=True)
class Step:
    """A function of a chunk's blocks, run on a worker.

    Inputs are numbers of stored columns, other steps, or None for rows without features.
    """

    kind: str  # "map", "map_blocks" or "sums"
    function: Callable[..., Any]
    width: int
    block_rows: int
    dtype: Any
    inputs: tuple[int | Step | None, ...] = ()

    def run(self, size: int, parts: Sequence[Any], given: Any = None) -> Any:
        """Return the result for a chunk of `size` rows, from its parts of the stored columns."""
        no_features = np.empty((size, 0), dtype=self.dtype)
        samples, *columns = (
            one.run(size, parts)
            if isinstance(one, Step)
            else (no_features if one is None else parts[one])
            for one in self.inputs
        )
        rows = Rows(samples, block_rows=self.block_rows)
        if self.kind == "map":
            return rows.map(self.function, *columns, width=self.width)
        results = list(rows.map_blocks(self.function, *columns, width=self.width, given=given))
        if self.kind == "map_blocks":
            return results
        n_bytes = sum(np.asarray(part).nbytes for sums in results for part in sums)
        return results if n_bytes <= BLOCK_SUM_BYTES else add_sums([results])


def run_step(step: bytes, errors: Any, size: int, given: Any, *parts: Any) -> Any:
    """Run a step as a task; BLAS uses one thread, because a worker's threads run other tasks."""
    with BLAS_LIMIT.hold(), np.errstate(**errors):
        return pickle.loads(step).run(size, parts, given)


def add_sums(lists: Sequence[list[Any]]) -> list[Any]:
    """Add the sums in some lists, in order."""
    total = RunningSum()
    for parts in (parts for sums in lists for parts in sums):
        total.add(parts)
    return [total.parts]


def take_pieces(pieces: Sequence[Array], blocks: Sequence[Any]) -> Any:
    """Return rows of several blocks, stacked."""
    return stack_blocks([block[piece] for block, piece in zip(blocks, pieces, strict=True)])


@dataclass(eq=False)
class DaskColumn:
    """One row of values per sample: futures of its chunks, or the step that computes them.

    `n_stored` is how many numbers a row of a sparse array has in the mean.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    futures: list[Any] = field(default_factory=list)
    step: Step | None = None
    inputs: tuple[DaskColumn, ...] = ()
    n_stored: int = 0
    n_uses: int = 0

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def is_cheap(self) -> bool:
        """Whether the column is stored, or computed without samples."""
        without_samples = self.step is None or not self.inputs[0].shape[1]
        return without_samples and all(one.is_cheap for one in self.inputs)


def resolve(step: Step, inputs: Sequence[DaskColumn], stored: list[DaskColumn]) -> Step:
    """Return a step with its inputs; columns that it needs are appended to `stored`."""
    stored += [one for one in inputs if one.futures and one not in stored]
    values = (
        resolve(one.step, one.inputs, stored)
        if one.step is not None
        else (stored.index(one) if one.futures else None)
        for one in inputs
    )
    return replace(step, inputs=tuple(values))


@dataclass(frozen=True)
class Chunks:
    """How the rows on a cluster are cut into chunks."""

    cluster: Cluster
    sizes: list[int]

    @cached_property
    def starts(self) -> Array:
        """First rows of the chunks."""
        return np.cumsum([0, *self.sizes[:-1]])

    def plan(self, samples: DaskColumn) -> Chunks:
        """Return chunks whose blocks of rows are those in memory, so that sums over them are."""
        sizes, total = [size for size in self.sizes if size], sum(self.sizes)
        n_chunks = CHUNKS_PER_THREAD * max(1, self.cluster.n_threads())
        row_bytes = (samples.n_stored or samples.shape[1]) * samples.dtype.itemsize
        rows = max(1, min(CHUNK_BYTES / max(1, row_bytes), total / n_chunks))
        is_aligned = all(size % MAX_BLOCK_ROWS == 0 for size in sizes[:-1])
        if is_aligned and len(sizes) <= 2 * math.ceil(total / rows):
            return Chunks(self.cluster, sizes)
        step = MAX_BLOCK_ROWS * math.ceil(rows / MAX_BLOCK_ROWS)
        return Chunks(self.cluster, np.diff([*range(0, total, step), total]).tolist())

    def select(
        self, columns: Sequence[DaskColumn], masks: Sequence[Any]
    ) -> tuple[Chunks, list[DaskColumn]]:
        """Return rows of samples and columns in chunks of their own; a mask of None is all."""
        pairs = zip(self.sizes, masks, strict=True)
        kept = [np.arange(size) if mask is None else np.flatnonzero(mask) for size, mask in pairs]
        sizes = [len(rows) for rows in kept]
        chunks, firsts = Chunks(self.cluster, sizes).plan(columns[0]), np.cumsum([0, *sizes])
        if chunks.sizes == self.sizes:
            return chunks, list(columns)
        pieces = [
            {
                number: rows[max(0, start - first) : max(0, start + size - first)]
                for number, (rows, first) in enumerate(zip(kept, firsts, strict=False))
                if first < start + size and start < first + len(rows)
            }
            for start, size in zip(chunks.starts, chunks.sizes, strict=True)
        ]
        indices, result = [list(each.values()) for each in pieces], []
        for column in columns:
            self.store(column)
            blocks = [[column.futures[number] for number in each] for each in pieces]
            futures = self.cluster.map("take_pieces", take_pieces, indices, blocks)
            result.append(replace(column, shape=(sum(sizes), *column.shape[1:]), futures=futures))
        return chunks, result

    def store(self, column: DaskColumn) -> None:
        """Compute a column and keep it on the workers."""
        if column.step is not None:
            column.futures = self.run(column.step, column.inputs, store_expensive=False)
            column.step, column.inputs = None, ()  # releases columns that it was computed from

    def run(
        self,
        step: Step,
        inputs: Sequence[DaskColumn],
        given: Sequence[Any] | None = None,
        store_expensive: bool = True,
    ) -> list[Any]:
        """Return futures of a step of every chunk, with one more argument for each if given."""
        self._store_inputs(inputs, store_expensive)
        stored: list[DaskColumn] = []
        task = partial(run_step, cloudpickle.dumps(resolve(step, inputs, stored)), np.geterr())
        function = getattr(step.function, "func", step.function)  # of a partial
        name = getattr(function, "__qualname__", type(function).__name__)
        extras = [None] * len(self.sizes) if given is None else given
        columns = [column.futures for column in stored]
        return self.cluster.map(
            name.split(".<")[0].split(".")[-1], task, self.sizes, extras, *columns
        )

    def _store_inputs(self, columns: Sequence[DaskColumn], store_expensive: bool) -> None:
        """Store samples, columns that are used often and perhaps those computed from samples.

        Others are computed inside of the tasks that use them.
        """
        for position, column in enumerate(columns):
            if column.step is not None:
                column.n_uses += 1
                is_costly = position == 0 or (store_expensive and not column.is_cheap)
                if is_costly or column.n_uses > MAX_USES:
                    self.store(column)
                else:
                    self._store_inputs(column.inputs, store_expensive=False)

    def gather_sums(self, futures: list[Any], n_bytes: int) -> list[Any]:
        """Return the sums of blocks or chunks, in order; large ones are added by a tree."""
        while len(futures) > 1 and len(futures) * n_bytes > DIRECT_BYTES:
            groups = [futures[i : i + TREE_WIDTH] for i in range(0, len(futures), TREE_WIDTH)]
            futures = self.cluster.map("add_sums", add_sums, groups)
        return [parts for sums in self.cluster.gather(futures) for parts in sums]
