"""A thread pool that shares blocks of rows and returns results in order."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import lru_cache
from threading import Lock, RLock, local
from time import perf_counter
from typing import Any, Generic, TypeVar

import numpy as np
from joblib import effective_n_jobs
from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")
Result = TypeVar("Result")

# Multiplications below which BLAS is left alone and all is done by the calling thread. OpenBLAS
# itself uses one thread for products of a matrix and a vector below 4 * 2304 numbers, and for all
# other operations below more than that, so a limit would change neither time nor rounding.
LITTLE_WORK = 2**13
# The time of sharing relative to one thread is a mean with weight MEMORY of the last, which counts
# at most MAX_RATIO: one interruption by another process doesn't end the sharing, two in a row do.
# After that it is tried once in RETRY calls.
MEMORY, MAX_RATIO, RETRY = 1 / 8, 4.0, 16
# Most bytes of scratch memory that a thread keeps.
SCRATCH_BYTES = 2**22
_scratch = local()


class cached_property(Generic[Result]):  # noqa: N801
    """Property that is computed once, as of ``functools`` from Python 3.12 on.

    Before, that has a lock for all instances, which a forked process may wait for in vain.
    """

    def __init__(self, compute: Callable[[Any], Result]) -> None:
        self.compute, self.__doc__ = compute, compute.__doc__

    def __get__(self, instance: Any, owner: Any = None) -> Result:
        if instance is None:
            return self  # type: ignore[return-value]
        value = instance.__dict__[self.compute.__name__] = self.compute(instance)
        return value


class BlasLimit:
    """A limit of one BLAS thread per call, for the whole process and for overlapping users.

    Most BLAS libraries have one setting per process. Of users that overlap in time, in several
    threads, the first lowers it and the last restores what the first found. MKL and libraries on
    OpenMP have one setting per thread: there each user restores its own.

    A forked process has only the thread that forked, so only the users in that one.
    """

    def __init__(self) -> None:
        self._lock = RLock()  # a signal handler may fork while its thread has the lock
        self._n_users = 0
        self._thread = local()  # with `n_users` of a thread
        self._found: dict[str, tuple[Any, int]] = {}  # by file: library, its number of threads
        self._libraries: list[Any] = []
        self._n_modules = 0

    @contextmanager
    def hold(self) -> Iterator[int]:
        """Limit BLAS to one thread per call; yield the largest number of threads it had before."""
        own: list[tuple[Any, int]] = []  # libraries with one setting per thread
        with self._lock:
            for library in self._loaded():
                if library.filepath in self._found:
                    continue
                number = library.get_num_threads()
                if is_per_thread(library):
                    own.append((library, number))
                else:  # of the process, perhaps loaded while there were users already
                    self._found[library.filepath] = library, number
                set_threads(library, 1)
            self._n_users += 1
            self._thread.n_users = self._thread_users() + 1
            numbers = [number for _, number in (*self._found.values(), *own)]
        try:
            yield max(numbers, default=sys.maxsize)
        finally:
            with self._lock:
                self._n_users -= 1
                self._thread.n_users -= 1
                if not self._n_users:
                    own += self._found.values()
                    self._found = {}
                for library, number in own:
                    set_threads(library, number)

    def limit_thread(self) -> None:
        """Limit a new thread of a user, which ends before the user does."""
        with self._lock:
            for library in self._loaded():
                if is_per_thread(library):
                    set_threads(library, 1)

    def _thread_users(self) -> int:
        return getattr(self._thread, "n_users", 0)

    def before_fork(self) -> None:
        """Wait until no other thread has the lock, which nobody would release in the child."""
        self._lock.acquire()

    def after_fork_in_parent(self) -> None:
        """Release the lock."""
        self._lock.release()

    def after_fork_in_child(self) -> None:
        """End the users that are not in the child: the threads of the process that forked."""
        self._lock, self._n_users = RLock(), self._thread_users()
        if not self._n_users:
            for library, number in self._found.values():
                set_threads(library, number)
            self._found = {}

    def _loaded(self) -> list[Any]:
        """Return the BLAS libraries of the process.

        To find them takes 0.6 to 2 ms, the rest of a limit some 10 us. So they are looked for again
        only if modules were imported since, which is how libraries are loaded.
        """
        if self._n_modules != len(sys.modules):
            self._n_modules = len(sys.modules)
            self._libraries = ThreadpoolController().select(user_api="blas").lib_controllers
        return self._libraries


def set_threads(library: Any, number: int) -> None:
    """Set the number of threads of a BLAS library, whichever thread set it before.

    Since 3.8, threadpoolctl lets only the first thread that sets OpenBLAS's number change it, until
    that is cleared. The lock of :class:`BlasLimit` orders the users instead.
    """
    clear = getattr(library, "clear_controlling_thread", lambda force: None)
    clear(force=True)
    library.set_num_threads(number)
    clear(force=True)


def is_per_thread(library: Any) -> bool:
    """Whether the number of threads of a BLAS library is a setting of the calling thread."""
    return (
        library.internal_api == "mkl" or getattr(library, "threading_layer", "pthreads") == "openmp"
    )


BLAS_LIMIT = BlasLimit()
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(
        before=BLAS_LIMIT.before_fork,
        after_in_parent=BLAS_LIMIT.after_fork_in_parent,
        after_in_child=BLAS_LIMIT.after_fork_in_child,
    )


class ThreadPool:
    """Threads that share work; they are started when the first work is shared.

    Parameters
    ----------
    n_jobs : int or None
        Number of threads, the calling one included; negative numbers as in joblib. None is one per
        core, but at most `max_threads`.
    max_threads : int
        As many as BLAS would use: what ``OMP_NUM_THREADS``, similar variables or
        ``threadpool_limits`` have set, or one per core.
    """

    def __init__(self, n_jobs: int | None, max_threads: int = sys.maxsize) -> None:
        self._n_jobs = n_jobs
        self._max_threads = max_threads
        self._executor: ThreadPoolExecutor | None = None
        self._shared_time = 0.5  # of sharing in the mean, in units of the time of one thread
        self._n_alone = 0  # calls since sharing was last tried

    @cached_property
    def n_threads(self) -> int:
        """Number of threads. It is computed when it is needed, since that takes some 100 us."""
        if self._n_jobs == 1 or (self._n_jobs is None and self._max_threads == 1):
            return 1
        if self._n_jobs is not None:
            return n_threads(self._n_jobs)
        return max(1, min(n_threads(-1), self._max_threads, omp_threads(sys.maxsize)))

    def map_ordered(
        self,
        function: Callable[[Item], Result],
        items: Sequence[Item],
        collect: Callable[[Result], Any],
    ) -> None:
        """Call ``collect(function(item))`` for each item, in the order of the items.

        The calling thread also processes items. Only about as many results as there are threads
        wait for their turn. While other processes need the cores, so that sharing takes longer
        than one thread, the calling thread does all the work most of the time.
        """
        n_others = min(self.n_threads, len(items)) - 1
        if n_others <= 0 or not self._pays_now():
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

        def work() -> int:
            nonlocal next_index
            n_done = 0
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
                        n_done += 1
            finally:
                while pop() is not None:  # after an error the other threads stop too
                    pass
            return n_done

        if self._executor is None:
            self._executor = ThreadPoolExecutor(
                self.n_threads - 1, initializer=BLAS_LIMIT.limit_thread
            )
        begin = perf_counter()
        others = [self._executor.submit(work) for _ in range(n_others)]
        try:
            n_own = work()
            own_end = perf_counter()
        finally:
            # Nothing is left to do, so threads that have not begun yet need not.
            begun = [other for other in others if not other.cancel()]
            wait(begun)
        for other in begun:
            other.result()
        if n_own:
            alone = (own_end - begin) / n_own * len(items)  # time of all items in one thread
            ratio = min((perf_counter() - begin) / alone, MAX_RATIO)
            self._shared_time += MEMORY * (ratio - self._shared_time)

    def _pays_now(self) -> bool:
        """Whether sharing has been faster than one thread, or is tried again."""
        if self._shared_time < 1:
            return True
        self._n_alone = (self._n_alone + 1) % RETRY
        return not self._n_alone

    def close(self) -> None:
        """End the threads."""
        if self._executor is not None:
            self._executor.shutdown()


# For work that is not shared.
ONE_THREAD = ThreadPool(1)


def n_threads(n_jobs: int) -> int:
    """Return the number of threads for `n_jobs`; inside other joblib work, its share of cores."""
    number = int(effective_n_jobs(n_jobs))
    backend, _ = get_active_backend()
    if not backend.nesting_level:
        return number
    return min(number, omp_threads(1))  # joblib sets the variable in its workers


def omp_threads(default: int) -> int:
    """Return the number of ``OMP_NUM_THREADS``, which may be a list with one for each level."""
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(first) if first.isdecimal() and int(first) else default


@contextmanager
def thread_pool(n_jobs: int | None, work: float = np.inf) -> Iterator[ThreadPool]:
    """Yield a pool of `n_jobs` threads, by default one per core that BLAS may use.

    Inside, BLAS uses one thread per call: the pool's threads share the cores, and results are the
    same for any number of them. `work` is how many multiplications there will be: if they are few,
    one thread does them and BLAS is left as it is.
    """
    if work < LITTLE_WORK:
        yield ONE_THREAD
        return
    with BLAS_LIMIT.hold() as max_threads:
        pool = ThreadPool(n_jobs, max_threads)
        try:
            yield pool
        finally:
            pool.close()


@lru_cache(maxsize=64)
def cut_slices(length: int, step: int) -> list[slice]:
    """Return slices of `step` items each; the last may be shorter."""
    return [slice(start, min(start + step, length)) for start in range(0, length, step)]


class RunningSum:
    """Sums of tuples of arrays, in float64."""

    def __init__(self) -> None:
        self.parts: list[Any] = []

    def add(self, parts: Sequence[Any]) -> None:
        """Add one tuple."""
        if self.parts:
            for running, part in zip(self.parts, parts, strict=True):
                running += part
        else:
            self.parts = [np.array(part, dtype=np.float64) for part in parts]


def scratch(shape: tuple[int, ...], dtype: Any) -> Any:
    """Return an array of this thread that is overwritten by the next call.

    New memory costs more than simple operations on it.
    """
    size = math.prod(shape)
    array = getattr(_scratch, "array", None)
    if array is None or array.size < size or array.dtype != dtype:
        array = np.empty(size, dtype=dtype)
        if array.nbytes <= SCRATCH_BYTES:
            _scratch.array = array
    return array[:size].reshape(shape)


def prefetch(items: Iterator[Item]) -> Iterator[Item]:
    """Iterate over items, each computed in another thread while the one before is used."""
    end: Any = object()
    with ThreadPoolExecutor(1) as executor:
        future = executor.submit(next, items, end)
        while (item := future.result()) is not end:
            future = executor.submit(next, items, end)
            yield item
