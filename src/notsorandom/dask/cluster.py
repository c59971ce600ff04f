"""The client of a cluster: tasks, and waiting for their results."""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import dask
import distributed
from distributed.comm.core import CommClosedError

# Seconds that a fit waits for a cluster without workers, and the key in Dask's configuration that
# overrides them.
NO_WORKERS_TIMEOUT, TIMEOUT_KEY = 30.0, "notsorandom.no-workers-timeout"
# Seconds between two checks of the cluster while a fit waits.
POLL_SECONDS = 1.0
HINT = "If it has a checkpoint, a fit with the same data and parameters continues from there."


class ClusterError(RuntimeError):
    """The connection to the cluster is closed, or it has no workers."""


@dataclass(frozen=True)
class Cluster:
    """The cluster of a client, during one fit; waiting ends if the cluster does."""

    client: Any

    @classmethod
    @contextmanager
    def of(cls, client: Any) -> Iterator[Cluster]:
        """Yield the cluster of a client, by default the current one; raise ValueError if none."""
        with suppress(ValueError):
            client = distributed.get_client() if client is None else client
        if not isinstance(client, distributed.Client) or client.asynchronous:
            raise ValueError(
                f"client={client!r} is not allowed, or there is no Dask client: create one first, "
                "as in client = distributed.Client(), without asynchronous=True."
            )
        with suppress(ValueError, KeyError):  # not in a task, or done before
            distributed.secede()  # a fit inside of a task: its thread is free for other tasks
        try:
            with client.as_current():
                yield cls(client)
        except BaseException as error:
            # The client keeps the exception of a failed task, and so the frames of the fit, whose
            # columns would stay on the workers for as long as the client exists.
            traceback.clear_frames(error.__traceback__)
            is_lost = isinstance(error, (distributed.CancelledError, CommClosedError))
            if is_lost or (isinstance(error, Exception) and client.status != "running"):
                raise ClusterError(
                    "The connection to the Dask cluster is closed, or its data were released, so "
                    f"the fit ends: connect and fit again. {HINT}"
                ) from error
            raise

    def map(self, name: str, function: Callable[..., Any], *items: Iterable[Any]) -> Any:
        """Return futures of a function of each item; `name` is shown on the dashboard."""
        return self.client.map(function, *items, key=f"fourier_{name}", pure=False)

    def gather(self, futures: Sequence[Any]) -> list[Any]:
        """Return the results of futures; wait for them as long as there are workers."""
        limit, last_seen = float(dask.config.get(TIMEOUT_KEY, NO_WORKERS_TIMEOUT)), time.monotonic()
        # Dask's own waits with a timeout raise an error that refers to all frames, and so to the
        # columns in them, until Python collects cycles.
        fetch = self.client.gather(list(futures), errors="skip", asynchronous=True)
        results = asyncio.run_coroutine_threadsafe(fetch, self.client.loop.asyncio_loop)
        try:
            while not wait([results], timeout=POLL_SECONDS).done:
                if self.n_threads():
                    last_seen = time.monotonic()
                elif time.monotonic() - last_seen > limit:
                    raise ClusterError(
                        f"The Dask cluster has had no workers for {limit:g} seconds (configuration "
                        f"{TIMEOUT_KEY!r}), so the fit ends: start workers and fit again. {HINT}"
                    )
        finally:
            results.cancel()
        for failed in (one for one in futures if one.status != "finished"):
            failed.result()  # raises: of several errors, the error of the first chunk
        return list(results.result())

    def n_threads(self) -> int:
        """Return the number of threads of all workers."""
        return sum(self.client.nthreads().values())
