"""The cluster that a fit uses: its client, tasks, and waiting for results."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import dask
import distributed

# Seconds that a fit waits for a cluster without workers, and the key in Dask's configuration that
# overrides them.
NO_WORKERS_TIMEOUT = 30.0
TIMEOUT_KEY = "notsorandom.no-workers-timeout"
# Seconds between two checks of the cluster while a fit waits, and for moving results.
POLL_SECONDS, GATHER_SECONDS = 1.0, 60.0


class ClusterError(RuntimeError):
    """The connection to the cluster is closed, or it has no workers."""


@dataclass
class Cluster:
    """A client, with waiting that ends if the cluster does; `hint` is added to errors."""

    client: Any
    hint: str = ""

    @classmethod
    def of(cls, client: Any) -> Cluster:
        """Return the cluster of a client, or of the current one; ValueError if there is none."""
        if client is None:
            try:
                client = distributed.get_client()
            except ValueError as error:
                raise ValueError(
                    "There is no Dask client: create one first, as in client = "
                    "distributed.Client(), or pass one, as in FourierClassifier(client=client)."
                ) from error
        if not isinstance(client, distributed.Client) or client.asynchronous:
            raise ValueError(
                f"client={client!r} is not allowed: it must be None or a distributed.Client made "
                "without asynchronous=True."
            )
        try:
            distributed.secede()  # a fit inside a task: its thread is free for other tasks
        except (ValueError, KeyError):
            pass  # not in a task, or done before
        return cls(client)

    def map(self, name: str, function: Callable[..., Any], *items: Iterable[Any]) -> list[Any]:
        """Return futures of a function of each item; `name` is shown on the dashboard."""
        if self.client.status != "running":
            raise self._closed()
        return list(self.client.map(function, *items, key=f"fourier_{name}", pure=False))

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
                pass
            except (OSError, distributed.CancelledError) as error:
                raise self._closed() from error
            if self.client.status != "running":
                raise self._closed()
            if self.n_threads():
                last_seen = time.monotonic()
            elif time.monotonic() - last_seen > limit:
                raise ClusterError(
                    f"The Dask cluster has had no workers for {limit:g} seconds, so the fit ends. "
                    f"Start workers and fit again. {self.hint}(Dask's configuration "
                    f"{TIMEOUT_KEY!r} sets the time to wait.)"
                )

    def n_threads(self) -> int:
        """Return the number of threads of all workers."""
        try:
            return sum(self.client.nthreads().values())
        except (OSError, RuntimeError, distributed.CancelledError):  # closed meanwhile
            return 0

    def _closed(self) -> ClusterError:
        return ClusterError(
            "The connection to the Dask cluster is closed, or its data were released, so the fit "
            f"ends. {self.hint}"
        )
