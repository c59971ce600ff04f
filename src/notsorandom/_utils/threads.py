"""A thread pool that shares blocks of rows and returns results in order."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from joblib import effective_n_jobs
from joblib.parallel import get_active_backend
from threadpoolctl import threadpool_limits

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class ThreadPool:
    """Threads that share work."""

    n_jobs: int
    executor: ThreadPoolExecutor | None  # None for one thread

    def map_ordered(
        self,
        function: Callable[[Item], Result],
        items: Sequence[Item],
        collect: Callable[[Result], Any],
    ) -> None:
        """Call ``collect(function(item))`` for each item, in the order of the items.

        The calling thread also processes items. Only about as many results as there are threads
        wait for their turn.
        """
        if self.executor is None:
            for item in items:
                collect(function(item))
            return
        settings = np.geterr()  # per thread in NumPy, so they are set in each
        queue, next_index = iter(enumerate(items)), 0
        waiting: dict[int, Result] = {}
        queue_lock, collect_lock = Lock(), Lock()

        def pop() -> tuple[int, Item] | None:
            with queue_lock:
                return next(queue, None)

        def work() -> None:
            nonlocal next_index
            try:
                with np.errstate(**settings):
                    while (entry := pop()) is not None:
                        index, item = entry
                        result = function(item)
                        with collect_lock:
                            waiting[index] = result
                            while next_index in waiting:
                                collect(waiting.pop(next_index))
                                next_index += 1
            finally:
                while pop() is not None:  # after an error the other threads stop too
                    pass

        n_others = min(self.n_jobs, len(items)) - 1
        others = [self.executor.submit(work) for _ in range(n_others)]
        try:
            work()
        finally:
            wait(others)
        for other in others:
            other.result()


def n_threads(n_jobs: int) -> int:
    """Return the number of threads for `n_jobs`; inside other joblib work, its share of cores."""
    number = int(effective_n_jobs(n_jobs))
    backend, _ = get_active_backend()
    if not backend.nesting_level:
        return number
    return min(number, int(os.environ.get("OMP_NUM_THREADS", 1)))  # joblib sets it in its workers


@contextmanager
def thread_pool(n_jobs: int | None) -> Iterator[ThreadPool | None]:
    """Yield a pool of `n_jobs` threads, or None for ``n_jobs=None``.

    Inside, BLAS uses one thread per call: the pool's threads share the cores, and results are the
    same for any number of them.
    """
    if n_jobs is None:
        yield None
        return
    number = n_threads(n_jobs)
    with threadpool_limits(1, user_api="blas"):
        if number == 1:
            yield ThreadPool(1, None)
            return
        with ThreadPoolExecutor(number) as executor:
            yield ThreadPool(number, executor)
