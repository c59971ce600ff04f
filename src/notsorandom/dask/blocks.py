"""What workers do: a block of samples each, with the columns that were made from it."""

from __future__ import annotations

import asyncio
import ctypes
import os
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np

from notsorandom.data.rows import Array, Rows, dense

# The parts that a block is made of; columns made from it have higher numbers.
SAMPLES, TARGETS, WEIGHTS, NOTHING = range(4)
FIRST_NUMBER = 4
# How malloc is told to keep up to so many bytes for the next temporary, each of at most so many;
# the last is what glibc starts with.
TRIM_SETTING = "MALLOC_TRIM_THRESHOLD_"
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
KEPT_BYTES, LARGEST_BYTES, USUAL_BYTES = 2**26, 2**25, 2**17
# Passes going on in this process.
passing = 0


@dataclass
class Block:
    """Some rows of the samples, as one object in the memory of a worker.

    Columns are kept inside, so that they go when Dask lets go of the block, and with it wherever it
    goes. They can always be made anew from the rest.

    Parameters
    ----------
    samples, targets : arrays
    weights : ndarray of shape (n_rows, 1), optional
    columns : dict of int to ndarray
    """

    samples: Any
    targets: Array
    weights: Array | None
    columns: dict[int, Array] = field(default_factory=dict)

    def __sizeof__(self) -> int:  # what Dask takes for its size
        parts = (self.samples, self.targets, self.weights, *self.columns.values())
        return sum(part.nbytes for part in parts if part is not None)

    def part(self, number: int) -> Any:
        """A part or a column by its number; raise KeyError if it isn't there."""
        if number == NOTHING:
            return np.empty((self.samples.shape[0], 0), dtype=self.samples.dtype)
        if number >= FIRST_NUMBER:
            return self.columns[number]
        return (self.samples, self.targets, self.weights)[number]


@dataclass(frozen=True, eq=False)
class Recipe:
    """How a column is made: all that it takes to make it once more.

    Parameters
    ----------
    number : int
        Its name.
    function : bytes
        Pickled; of blocks of the inputs.
    inputs : tuple of Recipes
        The rows themselves first.
    width : int
        See :meth:`notsorandom.data.rows.Rows.each`.
    pieces : list of ndarrays, optional
        For a column that was placed there: its blocks.
    """

    number: int
    function: bytes = b""
    inputs: tuple[Recipe, ...] = ()
    width: int = 0
    pieces: list[Array] | None = None


@dataclass(frozen=True)
class Step:
    """A recipe as it is sent, its inputs by number, its pieces by block."""

    number: int
    function: bytes
    inputs: tuple[int, ...]
    width: int
    pieces: dict[int, Array]


@dataclass(frozen=True)
class Work:
    """One pass over the blocks.

    Parameters
    ----------
    plan : dict of str to list of int
        Which blocks each worker is asked for.
    n_rows : int
        Of all blocks.
    keys : list of str
        By which workers know the blocks.
    steps : list of Step
        Columns to make on the way, if they are wanted, or needed.
    wanted : list of int
        Columns that are to be there afterwards.
    live : frozenset of int
        Columns that somebody may still ask for.
    how : str
        What is done with the function: "each", "add" or "none".
    function : bytes
    inputs : tuple of int
    width : int
    given : sequence, optional
        Something for each block.
    """

    plan: dict[str, list[int]]
    n_rows: int
    keys: list[str]
    steps: list[Step]
    wanted: list[int]
    live: frozenset[int]
    how: str
    function: bytes = b""
    inputs: tuple[int, ...] = ()
    width: int = 0
    given: Sequence[Any] | None = None


async def perform(request: bytes, dask_worker: Any) -> list[tuple[int, str, Any]]:
    """Do a worker's share of a pass: for each of its blocks, how it went, and what came of it."""
    work: Work = pickle.loads(request)
    chunks = work.plan.get(dask_worker.address, [])
    if not chunks:
        return []
    functions = {step.number: loaded(step.function) for step in work.steps}
    final = loaded(work.function)
    loop, pool = asyncio.get_running_loop(), dask_worker.executors["default"]

    def done(chunk: int) -> tuple[int, str, Any]:
        try:
            # Only now, and let go afterwards: others may be spilled meanwhile.
            block = dask_worker.data.get(work.keys[chunk])
            if block is None:
                return chunk, "missing", None
            return chunk, "done", share(work, chunk, block, functions, final)
        except LostColumnError:
            return chunk, "missing", None
        except Exception as error:  # told to who asked
            return chunk, "error", error

    # Each thread takes a block, then the next: one call a thread, not one a block.
    line = iter(chunks)
    lock = Lock()

    def busy() -> list[tuple[int, str, Any]]:
        told: list[tuple[int, str, Any]] = []
        while True:
            with lock:
                following = next(line, None)
            if following is None:
                return told
            told.append(done(following))

    n_threads = min(len(chunks), dask_worker.state.nthreads)
    with roomy():
        parts = await asyncio.gather(*(loop.run_in_executor(pool, busy) for _ in range(n_threads)))
    return [one for part in parts for one in part]


@contextmanager
def roomy() -> Iterator[None]:
    """A while in which memory that is freed may be used again.

    Dask has its workers give memory back to the system at once (``MALLOC_TRIM_THRESHOLD_``), with
    every temporary of a pass, which takes about as long as to compute it.
    """
    global passing
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    asked = os.environ.get(TRIM_SETTING, "")
    if mallopt is None or not asked.isdecimal():
        yield
        return
    passing += 1
    mallopt(TRIM_THRESHOLD, KEPT_BYTES)
    mallopt(MMAP_THRESHOLD, LARGEST_BYTES)
    try:
        yield
    finally:
        passing -= 1
        if not passing:
            mallopt(TRIM_THRESHOLD, int(asked))
            mallopt(MMAP_THRESHOLD, USUAL_BYTES)


class LostColumnError(Exception):
    """A column is asked for that isn't there, and nobody said how to make it."""


def loaded(function: bytes) -> Any:
    """What was pickled, or None."""
    return pickle.loads(function) if function else None


def share(
    work: Work,
    chunk: int,
    block: Block,
    functions: dict[int, Callable[..., Any]],
    final: Callable[..., Any] | None,
) -> Any:
    """One block's part of a pass."""
    steps = {step.number: step for step in work.steps}

    def column(number: int) -> Any:
        # Without recursion: a column may follow from thousands of others.
        line = [number]
        while line:
            last = line[-1]
            try:
                block.part(last)
                line.pop()
                continue
            except KeyError:
                if last not in steps:
                    raise LostColumnError(last) from None
            step = steps[last]
            if step.pieces:
                block.columns[last] = step.pieces[chunk]
                continue
            lost = [one for one in step.inputs if one >= FIRST_NUMBER and one not in block.columns]
            if lost:
                line += lost
                continue
            rows, *columns = (block.part(one) for one in step.inputs)
            made = Rows(rows, n_whole=work.n_rows).map(functions[last], *columns, width=step.width)
            block.columns[last] = made
        return block.part(number)

    for number in work.wanted:
        column(number)
    result: Any = None
    if final is not None:
        rows, *columns = (column(number) for number in work.inputs)
        if work.how == "add":
            part = Rows(rows, n_whole=work.n_rows)
            result = part.add(final, *columns, width=work.width, dtype=np.float64)
        else:
            more = () if work.given is None else (work.given[chunk],)
            result = final(rows, *columns, *more)
    for number in [one for one in block.columns if one not in work.live]:
        block.columns.pop(number, None)
    return result


def rows_at(block: Any, *parts: Any) -> tuple[Any, ...]:
    """Rows of a block, and of the weights perhaps, at the indices that come last."""
    *columns, indices = parts
    return (block[indices], *(column[indices] for column in columns))


def as_samples(block: Any, dtype: Any) -> Any:
    """A block of samples, of an array or a data frame, as a plain array."""
    if hasattr(block, "to_numpy"):
        block = block.to_numpy(dtype=dtype, na_value=np.nan)
    try:
        return np.ascontiguousarray(dense(block), dtype=dtype)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"X has what is no number ({error}): fill it in, or leave such rows out."
        ) from error
