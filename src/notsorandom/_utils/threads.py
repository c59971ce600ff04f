"""Several things at a time, and their results one after the other."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from joblib import effective_n_jobs
from joblib.parallel import get_active_backend
from threadpoolctl import threadpool_limits

Item = TypeVar("Item")
Made = TypeVar("Made")


@dataclass(frozen=True, eq=False)
class Workers:
    """Threads that share some work.

    Parameters
    ----------
    n_jobs : int
    pool : Executor or None
        None if there is but one.
    """

    n_jobs: int
    pool: ThreadPoolExecutor | None

    def each(self, function: Callable[[Item], Made], items: Iterable[Item]) -> Iterator[Made]:
        """The function of each item, in the items' order; only a few are made ahead."""
        if self.pool is None:
            yield from map(function, items)
            return
        settings = np.geterr()  # which threads have of their own

        def done(item: Item) -> Made:
            with np.errstate(**settings):
                return function(item)

        coming: deque[Future[Made]] = deque()
        try:
            for item in items:
                coming.append(self.pool.submit(done, item))
                if len(coming) > 2 * self.n_jobs:
                    yield coming.popleft().result()
            while coming:
                yield coming.popleft().result()
        finally:
            for future in coming:  # nobody waits for those any more
                future.cancel()

    def together(
        self,
        function: Callable[[Item], Made],
        items: Sequence[Item],
        take: Callable[[Made], Any],
    ) -> None:
        """Hand what the function makes of each item to `take`, in the items' order.

        Who asks does a share of it too, so that nobody waits for anybody but at the end; little
        more is made ahead of its turn than there are workers.
        """
        if self.pool is None:
            for item in items:
                take(function(item))
            return
        settings = np.geterr()  # which threads have of their own
        line, expected = iter(enumerate(items)), 0
        early: dict[int, Made] = {}
        picking, taking = Lock(), Lock()

        def following() -> tuple[int, Item] | None:
            with picking:
                return next(line, None)

        def busy() -> None:
            nonlocal expected
            try:
                with np.errstate(**settings):
                    while (one := following()) is not None:
                        made = function(one[1])
                        with taking:
                            early[one[0]] = made
                            while expected in early:
                                take(early.pop(expected))
                                expected += 1
            finally:
                while following() is not None:  # after an error nobody goes on
                    pass

        others = [self.pool.submit(busy) for _ in range(min(self.n_jobs, len(items)) - 1)]
        try:
            busy()
        finally:
            wait(others)
        for other in others:
            other.result()


def number_of_workers(n_jobs: int) -> int:
    """How many are asked for, or, inside other parallel work, what that leaves for each of it."""
    number = int(effective_n_jobs(n_jobs))
    backend, _ = get_active_backend()
    if not backend.nesting_level:
        return number
    return min(number, int(os.environ.get("OMP_NUM_THREADS", 1)))  # which joblib sets there


@contextmanager
def working(n_jobs: int | None) -> Iterator[Any]:
    """Workers, for as long as they are needed; None if no number of them was asked for.

    They are what the cores are shared among: matrix products shouldn't want them all as well, and
    have one thread each, so that whatever the number of workers, results are the same.
    """
    if n_jobs is None:
        yield None
        return
    number = number_of_workers(n_jobs)
    with threadpool_limits(1, user_api="blas"):
        if number == 1:
            yield Workers(1, None)
            return
        with ThreadPoolExecutor(number) as pool:
            yield Workers(number, pool)
