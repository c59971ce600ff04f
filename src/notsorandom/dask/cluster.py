"""The client's side: passes over blocks on a cluster, repeated for blocks of workers that died."""

from __future__ import annotations

import pickle
import time
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import cloudpickle
import dask
import distributed
import numpy as np
from distributed.comm.core import CommClosedError
from distributed.threadpoolexecutor import thread_state

from notsorandom.dask.blocks import FIRST_COLUMN, ColumnStep, PassRequest, map_block, run_pass
from notsorandom.data.rows import Array

# Seconds that a fit waits for a cluster without workers, and the key in Dask's configuration that
# overrides them.
NO_WORKERS_TIMEOUT = 30.0
TIMEOUT_KEY = "notsorandom.no-workers-timeout"
# Seconds between two checks of the workers.
POLL_SECONDS = 0.1


class ClusterError(RuntimeError):
    """The connection to the cluster is closed, or it has no workers."""


def find_client(client: Any) -> Any:
    """Return the given client, or the current one; raise ValueError if a fit can't use it."""
    if client is None:
        try:
            client = distributed.get_client()
        except ValueError as error:
            raise ValueError(
                "There is no Dask client: create one first, as in client = distributed.Client(), "
                "or pass one, as in FourierClassifier(client=client)."
            ) from error
    if not isinstance(client, distributed.Client):
        raise ValueError(
            f"client={client!r} is not allowed: it must be None or a distributed.Client."
        )
    if getattr(thread_state, "proceed", False):
        raise ValueError(
            "fit was called in a task of the cluster, and would wait for the thread that the task "
            "holds: call it inside 'with distributed.worker_client() as client:'."
        )
    if client.asynchronous:
        raise ValueError(
            "The Dask client is asynchronous, but fit waits for its results: use a client made "
            "without asynchronous=True."
        )
    return client


class WorkerTimeout:
    """The time that a fit waits for workers; `hint` is added to error messages."""

    def __init__(self, client: Any, hint: str = "") -> None:
        self.client, self.hint = client, hint
        self.seconds = float(dask.config.get(TIMEOUT_KEY, NO_WORKERS_TIMEOUT))
        self.last_seen = time.monotonic()

    def check(self, blocks: Sequence[Any] = ()) -> tuple[dict[str, int], dict[str, Any]]:
        """Return the threads of each worker, and the workers that hold each block, by key.

        Raise ClusterError after too long without workers.
        """
        check_open(self.client, self.hint)
        threads: dict[str, int] = {}
        holders: dict[str, Any] = {}
        try:
            threads, holders = self.client.nthreads(), self.client.who_has(list(blocks))
        except (OSError, RuntimeError, distributed.CancelledError) as error:
            check_open(self.client, self.hint, error)
        if threads:
            self.last_seen = time.monotonic()
        elif time.monotonic() - self.last_seen > self.seconds:
            raise ClusterError(
                f"The Dask cluster has had no workers for {self.seconds:g} seconds, so the fit "
                f"ends. Start workers and fit again. {self.hint}(Dask's configuration "
                f"{TIMEOUT_KEY!r} sets the time to wait.)"
            )
        return threads, holders


def check_open(client: Any, hint: str, error: BaseException | None = None) -> None:
    """Raise ClusterError if the connection is closed, or an error says so."""
    if client.status != "running" or (isinstance(error, RuntimeError) and "closed" in str(error)):
        raise ClusterError(
            f"The connection to the Dask cluster is closed, so the fit ends. {hint}"
        ) from error


def gather(client: Any, futures: list[Any]) -> list[Any]:
    """Return the results of futures; wait for them as long as there are workers."""
    timeout = WorkerTimeout(client)
    while True:
        try:
            with client.as_current():  # `wait` would take the default client, which may be absent
                distributed.wait(futures, timeout=1)
            results: list[Any] = client.gather(futures)
            return results
        except TimeoutError:
            timeout.check()


@dataclass(frozen=True, eq=False)
class DaskColumn:
    """One row of values per sample, on the cluster; `number` identifies it in the blocks."""

    number: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def __len__(self) -> int:
        return self.shape[0]


class Cluster:
    """Blocks of samples on a cluster.

    A pass over the blocks is one message to the workers. It takes a few milliseconds for any number
    of blocks, a tenth of a graph of tasks. The blocks themselves are Dask's: if a worker dies, Dask
    computes them again on another one, and the columns are computed again from their lineage.
    `blocks` are futures of :class:`~notsorandom.dask.blocks.Block`, and `sizes` their numbers of
    rows.
    """

    def __init__(self, client: Any, blocks: list[Any], sizes: Sequence[int]) -> None:
        self.client = client
        self.blocks = blocks
        self.sizes = list(sizes)
        self.ends = np.cumsum(self.sizes)
        self.n_rows = int(self.ends[-1])
        self.hint = ""  # added to error messages
        self._owners: dict[int, str] = {}
        self._steps: dict[int, ColumnStep] = {}
        self._first_new = FIRST_COLUMN  # no worker has columns from this number on
        self._live: weakref.WeakSet[DaskColumn] = weakref.WeakSet()
        self._pending: list[weakref.ref[DaskColumn]] = []

    # Columns.

    def part(self, number: int, n_columns: int, dtype: Any) -> DaskColumn:
        """Return a part of the blocks as a column."""
        return DaskColumn(number, (self.n_rows, n_columns), np.dtype(dtype))

    def map(
        self, function: Callable[..., Any], inputs: tuple[DaskColumn, ...], width: int
    ) -> DaskColumn:
        """Return a column to be computed from others in the next pass."""
        with np.errstate(all="ignore"):  # only shape and type of the result matter
            like = function(*(np.ones((1, *one.shape[1:]), dtype=one.dtype) for one in inputs))
        column = self._new_column(
            (self.n_rows, *like.shape[1:]),
            like.dtype,
            function=cloudpickle.dumps(partial(map_block, function, width, self.n_rows)),
            inputs=tuple(one.number for one in inputs),
        )
        self._pending.append(weakref.ref(column))
        return column

    def send(self, array: Array) -> DaskColumn:
        """Send an array with one row per sample to the workers, one block at a time."""
        pieces = dict(enumerate(np.split(array, self.ends[:-1])))
        column = self._new_column(array.shape, array.dtype, pieces=pieces)
        for chunk in range(len(self.blocks)):
            self._run([chunk], [column])
        return column

    def _new_column(self, shape: tuple[int, ...], dtype: Any, **source: Any) -> DaskColumn:
        number = FIRST_COLUMN + len(self._steps)
        self._steps[number] = ColumnStep(number, **source)
        column = DaskColumn(number, shape, dtype)
        self._live.add(column)
        return column

    # Passes.

    def map_blocks(
        self,
        function: Callable[..., Any],
        inputs: tuple[DaskColumn, ...],
        given: Sequence[Any] | None = None,
    ) -> list[Any]:
        """Return the results of a function of every block, in order."""
        pending = [column for ref in self._pending if (column := ref()) is not None]
        self._pending = []
        chunks = list(range(len(self.blocks)))
        return self._run(chunks, pending, cloudpickle.dumps(function), inputs, given)

    def _lineage(self, columns: Sequence[DaskColumn], start: int) -> list[ColumnStep]:
        """Return how columns and all their inputs are computed, from a number on."""
        found: dict[int, ColumnStep] = {}
        stack = [column.number for column in columns]
        while stack:
            number = stack.pop()
            if number >= start and number not in found:
                found[number] = self._steps[number]
                stack += self._steps[number].inputs
        return list(found.values())

    def _run(
        self,
        chunks: list[int],
        required: list[DaskColumn],
        function: bytes = b"",
        inputs: tuple[DaskColumn, ...] = (),
        given: Sequence[Any] | None = None,
    ) -> list[Any]:
        """Run a pass over some blocks until each of them has a result."""
        results: dict[int, Any] = {}
        remaining = set(chunks)
        # Includes inputs of required columns that were released before they were computed.
        steps = self._lineage([*required, *inputs], start=self._first_new)
        while remaining:
            request = PassRequest(
                self._plan(sorted(remaining)),
                [block.key for block in self.blocks],
                [step.restrict(remaining) for step in steps],
                [column.number for column in required],
                frozenset(column.number for column in self._live),
                function,
                tuple(column.number for column in inputs),
                given,
            )
            for chunk, status, value in self._send_request(request):
                if status == "error":
                    raise value
                if status == "done":
                    results[chunk] = value
                    remaining.discard(chunk)
            if remaining:
                # A worker was lost or a block moved; resend the full lineage.
                for chunk in remaining:
                    self._owners.pop(chunk, None)
                steps = self._lineage([*required, *inputs], start=FIRST_COLUMN)
                time.sleep(POLL_SECONDS)
        self._first_new = FIRST_COLUMN + len(self._steps)
        return [results[chunk] for chunk in chunks]

    def _send_request(self, request: PassRequest) -> list[tuple[int, str, Any]]:
        """Return the answers of the workers, except those that were lost."""
        try:
            # To all workers: Dask would wait for a lost one that is named.
            answers = self.client.run(
                run_pass, pickle.dumps(request, protocol=5), on_error="return"
            )
        except (OSError, distributed.CancelledError) as error:
            check_open(self.client, self.hint, error)
            return []
        except (RuntimeError, ValueError) as error:
            check_open(self.client, self.hint, error)
            raise
        results: list[tuple[int, str, Any]] = []
        for answer in answers.values():
            if isinstance(answer, CommClosedError):  # the worker was lost
                continue
            if isinstance(answer, BaseException):
                raise answer
            results += answer
        return results

    # Locations of the blocks.

    def _plan(self, chunks: list[int]) -> dict[str, list[int]]:
        """Return which worker processes which blocks, once all of them are computed."""
        self._locate([chunk for chunk in chunks if chunk not in self._owners])
        plan: dict[str, list[int]] = {}
        for chunk in chunks:
            plan.setdefault(self._owners[chunk], []).append(chunk)
        return plan

    def _locate(self, chunks: list[int]) -> None:
        """Wait until each block is on a worker, and store which one."""
        loads = Counter(self._owners.values())
        timeout = WorkerTimeout(self.client, self.hint)
        while chunks:
            workers, holders = timeout.check([self.blocks[chunk] for chunk in chunks])
            for chunk in list(chunks):
                block = self.blocks[chunk]
                if block.status == "cancelled":
                    raise ClusterError(
                        "The Dask cluster was restarted, or its data were released, so the fit "
                        f"ends. {self.hint}"
                    )
                if block.status == "error":
                    block.result()  # raises the error
                candidates = [worker for worker in holders.get(block.key, ()) if worker in workers]
                if candidates:
                    owner = min(candidates, key=lambda worker: (loads[worker], worker))
                    self._owners[chunk] = owner
                    loads[owner] += 1
                    chunks.remove(chunk)
            if chunks:
                time.sleep(POLL_SECONDS)
