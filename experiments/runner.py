"""Run configurations, several at a time, and record each as it ends."""

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
from typing import Any, TypeAlias

from experiments.records import Config, Records
from notsorandom._utils.progress import Progress

Run: TypeAlias = Callable[[Config], dict[str, Any]]
Results: TypeAlias = Iterator[tuple[Config, dict[str, Any], float]]

# Environment variables with the number of threads of BLAS libraries.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


def run_missing(
    configs: Sequence[Config],
    records: Records,
    run: Run,
    n_jobs: int = 1,
    size: Callable[[Config], int] = lambda config: 1,
    verbose: bool = True,
) -> None:
    """Run the configurations that have no record yet.

    Parameters
    ----------
    configs : sequence of dict
    records : Records
        Each run is recorded as soon as it ends, so that an interruption loses only the current
        runs.
    run : callable
        From a configuration to its outcome; a function that other processes can import.
    n_jobs : int
        Number of concurrent runs, each in a process of its own with a share of the cores.
    size : callable
        Approximate amount of work of a configuration, for the progress bar.
    verbose : bool
        Whether to show the progress bar.
    """
    missing = records.missing(configs)
    if not missing:
        return
    done = 0
    with records.lock(), Progress(sum(map(size, missing)), "running", verbose) as bar:
        bar.update(0)
        results = run_in_process(missing, run) if n_jobs == 1 else run_in_pool(missing, run, n_jobs)
        for number, (config, outcome, seconds) in enumerate(results, start=1):
            records.append(config, outcome, seconds)
            done += size(config)
            words = ", ".join(f"{name}={value}" for name, value in config.items() if name != "kind")
            bar.update(done, f"({number} of {len(missing)} runs; last: {words})")


def run_in_process(configs: Sequence[Config], run: Run) -> Results:
    """Run one configuration after the other in this process."""
    for config in configs:
        yield run_timed(run, config)


def run_in_pool(configs: Sequence[Config], run: Run, n_jobs: int) -> Results:
    """Run several configurations at a time; yield the results as they arrive."""
    # New processes, not forks: threads of BLAS libraries don't survive a fork.
    context = multiprocessing.get_context("spawn")
    with limited_threads(max(1, (os.cpu_count() or 1) // n_jobs)):
        pool = ProcessPoolExecutor(n_jobs, context, prepare_worker)
        futures = [pool.submit(run_timed, run, config) for config in configs]
    try:
        for future in as_completed(futures):
            yield future.result()
    except BrokenProcessPool as error:
        raise ChildProcessError(
            "A worker process was killed, possibly because memory ran out. Run the same command "
            "again with fewer --jobs: it continues where this one stopped."
        ) from error
    finally:
        # Stop now; don't wait until the current runs have ended.
        workers = list((pool._processes or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in workers:
            worker.kill()


def run_timed(run: Run, config: Config) -> tuple[Config, dict[str, Any], float]:
    """Run a configuration; return it with its outcome and the seconds it took."""
    start = time.perf_counter()
    try:
        outcome = run(config)
    except Exception as error:
        error.add_note(f"Raised in the run {config}.")
        raise
    return config, outcome, time.perf_counter() - start


@contextmanager
def limited_threads(n_threads: int) -> Iterator[None]:
    """Limit the BLAS threads of processes that are started in this context."""
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(n_threads)))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def prepare_worker() -> None:
    """Leave interrupts to the parent, and exit when the parent ends, even if it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
