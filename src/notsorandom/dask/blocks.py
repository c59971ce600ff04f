"""The worker's side: blocks of samples, and one pass over those that a worker holds."""

from __future__ import annotations

import asyncio
import ctypes
import os
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from notsorandom.data.rows import Array, Rows, dense

# Numbers of the parts of a block; columns computed from it have higher numbers.
SAMPLES, TARGETS, WEIGHTS, NO_FEATURES = range(4)
FIRST_COLUMN = 4
# Parameters of glibc's mallopt, and the environment variable that Dask sets for its workers.
TRIM_VARIABLE = "MALLOC_TRIM_THRESHOLD_"
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
# During a pass: bytes that malloc keeps for the next temporary, and the largest temporary that it
# doesn't map from the system. Afterwards: glibc's initial threshold.
KEPT_BYTES, LARGEST_BYTES, DEFAULT_MMAP_BYTES = 2**26, 2**25, 2**17
# Passes that are running in this process.
n_running = 0


@dataclass
class Block:
    """Some rows of the samples, as one object in the memory of a worker.

    Columns are stored inside, so that Dask moves and releases them with the block. They can always
    be computed again from the rest.
    """

    samples: Any
    targets: Array
    weights: Array | None  # of shape (n_rows, 1)
    columns: dict[int, Array] = field(default_factory=dict)

    def __sizeof__(self) -> int:  # Dask counts these bytes
        parts = (self.samples, self.targets, self.weights, *self.columns.values())
        return sum(part.nbytes for part in parts if part is not None)

    def part(self, number: int) -> Any:
        """Return a part or a column; raise KeyError if a column is missing."""
        if number == NO_FEATURES:
            return np.empty((self.samples.shape[0], 0), dtype=self.samples.dtype)
        if number >= FIRST_COLUMN:
            return self.columns[number]
        return (self.samples, self.targets, self.weights)[number]


@dataclass(frozen=True)
class ColumnStep:
    """How a column is computed from others, or the values that the client sent."""

    number: int
    function: bytes = b""  # pickled function of the inputs
    inputs: tuple[int, ...] = ()
    pieces: dict[int, Array] = field(default_factory=dict)

    def restrict(self, chunks: set[int]) -> ColumnStep:
        """Return the step for some of the blocks."""
        return replace(self, pieces={c: self.pieces[c] for c in chunks}) if self.pieces else self


@dataclass(frozen=True)
class PassRequest:
    """One pass over the blocks."""

    plan: dict[str, list[int]]  # the blocks that each worker processes
    keys: list[str]  # Dask's keys of the blocks
    steps: list[ColumnStep]  # columns to compute if they are required or are inputs
    required: list[int]  # columns that are stored in the blocks by this pass
    live: frozenset[int]  # columns that may be used again; all others are deleted
    function: bytes = b""  # pickled; its results are returned
    inputs: tuple[int, ...] = ()
    given: Sequence[Any] | None = None  # one more argument of the function for each block


class MissingColumnError(Exception):
    """A column is not in the block, and the request doesn't say how to compute it."""


async def run_pass(request: bytes, dask_worker: Any) -> list[tuple[int, str, Any]]:
    """Process a worker's blocks; return number, status and result of each."""
    work: PassRequest = pickle.loads(request)
    functions = {s.number: pickle.loads(s.function) for s in work.steps if s.function}
    final = pickle.loads(work.function) if work.function else None

    def process(chunk: int) -> tuple[int, str, Any]:
        try:
            # Loaded and released one by one: Dask may have spilled some blocks to disk.
            block = dask_worker.data.get(work.keys[chunk])
            if block is None:
                return chunk, "missing", None
            return chunk, "done", process_block(work, chunk, block, functions, final)
        except MissingColumnError:
            return chunk, "missing", None
        except Exception as error:  # raised again by the client
            return chunk, "error", error

    loop, pool = asyncio.get_running_loop(), dask_worker.executors["default"]
    with reuse_freed_memory():
        calls = (
            loop.run_in_executor(pool, process, chunk)
            for chunk in work.plan.get(dask_worker.address, [])
        )
        return list(await asyncio.gather(*calls))


@contextmanager
def reuse_freed_memory() -> Iterator[None]:
    """Let malloc reuse freed memory for a while.

    Dask sets ``MALLOC_TRIM_THRESHOLD_`` so that its workers return freed memory to the system at
    once. For every temporary of a pass this takes about as long as computing it.
    """
    global n_running
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    threshold = os.environ.get(TRIM_VARIABLE, "")
    if mallopt is None or not threshold.isdecimal():
        yield
        return
    n_running += 1
    mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)
    mallopt(M_MMAP_THRESHOLD, LARGEST_BYTES)
    try:
        yield
    finally:
        n_running -= 1
        if not n_running:
            mallopt(M_TRIM_THRESHOLD, int(threshold))
            mallopt(M_MMAP_THRESHOLD, DEFAULT_MMAP_BYTES)


def process_block(
    work: PassRequest,
    chunk: int,
    block: Block,
    functions: dict[int, Callable[..., Any]],
    final: Callable[..., Any] | None,
) -> Any:
    """Compute the required columns of one block, and the result of the final function."""
    steps = {step.number: step for step in work.steps}

    def compute(number: int) -> Any:
        # A stack instead of recursion: a column may depend on a chain of thousands of others.
        stack = [number]
        while stack:
            last = stack[-1]
            if last < FIRST_COLUMN or last in block.columns:
                stack.pop()
                continue
            if last not in steps:
                raise MissingColumnError(last)
            step = steps[last]
            if step.pieces:
                block.columns[last] = step.pieces[chunk]
                continue
            missing = [i for i in step.inputs if i >= FIRST_COLUMN and i not in block.columns]
            if missing:
                stack += missing
                continue
            block.columns[last] = functions[last](*(block.part(i) for i in step.inputs))
        return block.part(number)

    for number in work.required:
        compute(number)
    result: Any = None
    if final is not None:
        extra = () if work.given is None else (work.given[chunk],)
        result = final(*(compute(number) for number in work.inputs), *extra)
    for number in block.columns.keys() - work.live:
        block.columns.pop(number, None)
    return result


def map_block(
    function: Callable[..., Any], width: int, n_total: int, samples: Any, *columns: Array
) -> Array:
    """Compute a column of one block, in smaller blocks as in memory."""
    result: Array = Rows(samples, n_total=n_total).map(function, *columns, width=width)
    return result


def sum_block(
    function: Callable[..., Any], width: int, n_total: int, samples: Any, *columns: Array
) -> tuple[Array, ...]:
    """Sum a function over one block, in smaller blocks as in memory."""
    rows = Rows(samples, n_total=n_total)
    return rows.sum_blocks(function, *columns, width=width, dtype=np.float64)


def take_rows(*parts: Any) -> tuple[Any, ...]:
    """Return rows of some parts of a block, at the indices that come last."""
    *parts, indices = parts  # type: ignore[assignment]
    return tuple(part[indices] for part in parts)


def samples_array(block: Any, dtype: Any) -> Array:
    """Return a block of samples, of an array or a data frame, as a dense array."""
    if hasattr(block, "to_numpy"):
        block = block.to_numpy(dtype=dtype, na_value=np.nan)
    try:
        return np.ascontiguousarray(dense(block), dtype=dtype)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"X has values that are not numbers ({error}): convert them, or leave such rows out."
        ) from error
