"""The client of a cluster: tasks, and waiting for their results."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakSet

import dask
import distributed

# Seconds that a fit waits for a cluster without workers, and the key in Dask's configuration that
# overrides them.
NO_WORKERS_TIMEOUT, TIMEOUT_KEY = 30.0, "notsorandom.no-workers-timeout"
# Seconds between two checks of the cluster while a fit waits, and for moving results.
POLL_SECONDS, GATHER_SECONDS = 1.0, 60.0
HINT = "If it has a checkpoint, a fit with the same data and parameters continues from there."


class ClusterError(RuntimeError):
    """The connection to the cluster is closed, or it has no workers."""


@dataclass(frozen=True)
class Cluster:
    """The cluster of a client, during one fit; waiting ends if the cluster does."""

    client: Any
    _futures: WeakSet[Any] = field(default_factory=WeakSet)

    @classmethod
    def of(cls, client: Any) -> Cluster:
        """Return the cluster of a client, by default the current one; raise ValueError if none."""
        with suppress(ValueError):
            client = distributed.get_client() if client is None else client
        if not isinstance(client, distributed.Client) or client.asynchronous:
            raise ValueError(
                f"client={client!r} is not allowed, or there is no Dask client: create one first, "
                "as in client = distributed.Client(), without asynchronous=True."
            )
        with suppress(ValueError, KeyError):  # not in a task, or done before
            distributed.secede()  # a fit inside of a task: its thread is free for other tasks
        return cls(client)

    def map(self, name: str, function: Callable[..., Any], *items: Iterable[Any]) -> list[Any]:
        """Return futures of a function of each item; `name` is shown on the dashboard."""
        self._check_open()
        return self._track(self.client.map(function, *items, key=f"fourier_{name}", pure=False))

    def compute(self, collections: Sequence[Any]) -> list[Any]:
        """Return futures of Dask collections."""
        return self._track(self.client.compute(list(collections)))

    def _track(self, futures: list[Any]) -> list[Any]:
        self._futures.update(futures)
        return futures

    def release(self) -> None:
        """Release all futures of a fit that failed.

        The client keeps the exception of a failed task, whose traceback has the frames of the fit.
        They would hold its columns on the workers for as long as the client exists.
        """
        for future in list(self._futures):
            future.release()

    def gather(self, futures: Sequence[Any]) -> list[Any]:
        """Return the results of futures; wait for them as long as there are workers."""
        limit, last_seen = float(dask.config.get(TIMEOUT_KEY, NO_WORKERS_TIMEOUT)), time.monotonic()

        async def fetch() -> Any:
            return await self.client.gather(list(futures), asynchronous=True)

        while True:
            try:
                with self.client.as_current():
                    distributed.wait(futures, timeout=POLL_SECONDS)
                return list(self.client.sync(fetch, callback_timeout=GATHER_SECONDS))
            except TimeoutError:
                self._check_open()
            except (OSError, distributed.CancelledError) as error:
                self._check_open(error)
            if self.n_threads():
                last_seen = time.monotonic()
            elif time.monotonic() - last_seen > limit:
                raise ClusterError(
                    f"The Dask cluster has had no workers for {limit:g} seconds (configuration "
                    f"{TIMEOUT_KEY!r}), so the fit ends: start workers and fit again. {HINT}"
                )

    def _check_open(self, error: BaseException | None = None) -> None:
        if error is not None or self.client.status != "running":
            raise ClusterError(
                "The connection to the Dask cluster is closed, or its data were released, so the "
                f"fit ends: connect and fit again. {HINT}"
            ) from error

    def n_threads(self) -> int:
        """Return the number of threads of all workers."""
        with suppress(OSError, RuntimeError, distributed.CancelledError):  # closed meanwhile
            return sum(self.client.nthreads().values())
        return 0
