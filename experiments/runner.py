"""Work off a list of runs, some at a time, and record each as it ends."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any

from notsorandom._utils.progress import Progress
from notsorandom.experiments.records import Config, Records

Perform = Callable[[Config], dict[str, Any]]

# What the libraries of linear algebra are told their number of threads by.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def run_missing(
    configs: Sequence[Config],
    records: Records,
    perform: Perform,
    n_jobs: int = 1,
    size: Callable[[Config], int] = lambda config: 1,
    shown: bool = True,
) -> None:
    """Run what there is no record of yet.

    Parameters
    ----------
    configs : sequence of dict
    records : Records
        Each run is written there as soon as it ends: whoever stops this, however, loses no more
        than the runs under way.
    perform : callable
        From a configuration to its outcome; a function that other processes can import.
    n_jobs : int
        Runs at a time, each in a process of its own with a share of the cores.
    size : callable
        About how much work a configuration is; the progress bar counts it.
    shown : bool
    """
    missing = records.missing(configs)
    if not missing:
        return
    done = 0
    with records.held(), Progress(sum(map(size, missing)), "running", shown) as bar:
        bar.update(0)
        finished = in_turn(missing, perform) if n_jobs == 1 else at_once(missing, perform, n_jobs)
        for number, (config, outcome, seconds) in enumerate(finished, start=1):
            records.append(config, outcome, seconds)
            done += size(config)
            words = [str(value) for name, value in config.items() if name != "kind"]
            bar.update(done, f"({number} of {len(missing)} runs; last {' '.join(words)})")


Finished = Iterator[tuple[Config, dict[str, Any], float]]


def in_turn(configs: Sequence[Config], perform: Perform) -> Finished:
    """One run after the other, in this process."""
    for config in configs:
        yield timed(perform, config)


def at_once(configs: Sequence[Config], perform: Perform, n_jobs: int) -> Finished:
    """Several runs at a time, yielded as they end."""
    # New processes, not forks: threads of linear algebra don't survive a fork.
    context = multiprocessing.get_context("spawn")
    with limited_threads(max(1, (os.cpu_count() or 1) // n_jobs)):
        pool = ProcessPoolExecutor(n_jobs, context, prepare_worker)
        futures = {pool.submit(timed, perform, config): config for config in configs}
    try:
        for future in as_completed(futures):
            yield future.result()
    except BrokenProcessPool as error:
        raise ChildProcessError(
            "A process that was fitting was killed, for want of memory perhaps. The same command "
            "goes on where this one stopped; give fewer --jobs."
        ) from error
    finally:
        # Whoever stops this wants it to stop now, not when the fits under way have ended.
        workers = list((pool._processes or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in workers:
            worker.kill()


def timed(perform: Perform, config: Config) -> tuple[Config, dict[str, Any], float]:
    """Run one, and say how long it took."""
    began = time.perf_counter()
    try:
        outcome = perform(config)
    except Exception as error:
        error.add_note(f"This was in the run {config}.")
        raise
    return config, outcome, time.perf_counter() - began


@contextmanager
def limited_threads(n_threads: int) -> Iterator[None]:
    """Let processes that are started meanwhile use so many threads for linear algebra."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, str(n_threads)))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def prepare_worker() -> None:
    """Leave interrupts to the parent, and end when it does, even if it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
