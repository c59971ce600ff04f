"""Fits on a local Dask cluster against the same fits in memory.

    python -m benchmarks.dask_fit xgboost      # 4 * 10^5 x 50, against two threads and XGBoost
    python -m benchmarks.dask_fit million      # 10^6 x 100, against two threads
    python -m benchmarks.dask_fit ten-million  # 10^7 x 50, against two threads and one worker
    python -m benchmarks.dask_fit busy         # 4 * 10^5 x 50, beside a busy process
    python -m benchmarks.dask_fit kills        # 6 * 10^4 x 10, a worker killed in each of 10 fits
    python -m benchmarks.dask_fit scaling      # up to 4 * 10^5 x 100, one and two workers: a model
    python -m benchmarks.dask_fit stream       # 4 * 10^5 x 50, drawn to docs/task_stream.png

Workers are processes of one thread each. They make their own chunks of the data and keep them in
memory before the fits begin; for fits in memory the same data are made again. Fits alternate, and
the shortest of three times counts. Each ratio is printed with its limit. The processor time is that
of this process, in which the scheduler runs, and of the workers.
"""

from __future__ import annotations

import argparse
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, get_task_stream, wait

import notsorandom
import notsorandom.dask
from benchmarks.common import busy_process, make_parser
from notsorandom.dask.cluster import Cluster


def samples(numbers: Any, n_columns: int) -> Any:
    """Return the samples of the block whose first row has the first of the numbers."""
    rng = np.random.default_rng(int(numbers[0]))
    return rng.standard_normal((len(numbers), n_columns), dtype=np.float32)


def labels(X: Any) -> Any:
    """Return whether the cosine of a wave is positive at the samples."""
    rng = np.random.default_rng(1)
    wave = rng.standard_normal(X.shape[1]).astype(np.float32)
    return np.cos(X @ wave * np.float32(3 / X.shape[1] ** 0.5)) > 0


def seconds_of(function: Callable[..., Any], *args: Any) -> tuple[float, Any]:
    """Return the time that a function takes, and its result."""
    start = time.perf_counter()
    result = function(*args)
    return time.perf_counter() - start, result


class ClusterFit:
    """Data on a local cluster, and fits to them."""

    def __init__(self, options: Any, n_workers: int) -> None:
        self.settings = {"n_components": options.features, "n_jobs": 2, "random_state": 0}
        self.cluster = LocalCluster(
            n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=":0"
        )
        self.client = Client(self.cluster, set_as_default=False)
        with self.client.as_current():
            numbers = da.arange(options.rows, chunks=options.chunk)
            X = numbers.map_blocks(
                samples,
                options.columns,
                dtype=np.float32,
                new_axis=1,
                chunks=(numbers.chunks[0], (options.columns,)),
            )
            y = X.map_blocks(labels, dtype=bool, drop_axis=1)
            self.data = self.client.persist([X, y])
            wait(self.data)

    def fit(self) -> Any:
        """Fit the classifier."""
        model = notsorandom.dask.FourierClassifier(**self.settings, client=self.client)
        return model.fit(*self.data)

    def fit_xgboost(self) -> Any:
        """Fit XGBoost's classifier with its own parameters, 100 trees."""
        import xgboost.dask

        with self.client.as_current():
            return xgboost.dask.DaskXGBClassifier().fit(*self.data)

    def processor_seconds(self) -> float:
        """Return the processor time of this process and of the workers so far."""
        of_workers = self.client.run(time.process_time).values()
        return time.process_time() + sum(of_workers)

    def close(self) -> None:
        """Close the cluster."""
        self.client.close()
        self.cluster.close()


def make_in_memory(options: Any) -> tuple[Any, Any]:
    """Return the data of the cluster in memory."""
    X = np.empty((options.rows, options.columns), dtype=np.float32)
    for start in range(0, options.rows, options.chunk):
        part = X[start : start + options.chunk]
        part[:] = samples(np.arange(start, start + len(part)), options.columns)
    return X, labels(X)


def report(what: str, ratio: float, limit: float, at_least: bool = False) -> None:
    """Print a ratio beside its limit."""
    met = ratio >= limit if at_least else ratio <= limit
    bound = "at least" if at_least else "at most"
    print(f"{what}: {ratio:.3g} ({bound} {limit:g}: {'met' if met else 'MISSED'})", flush=True)


@contextmanager
def recorded_waits() -> Iterator[dict[str, float]]:
    """Count the tasks and the waits of fits, and the seconds of these."""
    record, submit, gather = {"tasks": 0, "waits": 0, "waiting": 0.0}, Cluster.map, Cluster.gather

    def recording_map(self: Any, *args: Any) -> Any:
        futures = submit(self, *args)
        record["tasks"] += len(futures)
        return futures

    def recording_gather(self: Any, futures: Any) -> Any:
        seconds, results = seconds_of(gather, self, futures)
        record["waits"] += 1
        record["waiting"] += seconds
        return results

    with (
        patch.object(Cluster, "map", recording_map),
        patch.object(Cluster, "gather", recording_gather),
    ):
        yield record


def compare(options: Any) -> None:
    """Compare fits on two workers with fits in memory, and for the largest data with one worker."""
    X, y = make_in_memory(options)
    two = ClusterFit(options, 2)
    local = notsorandom.FourierClassifier(**two.settings)
    calls: dict[str, Callable[[], Any]] = {
        "two threads in memory": partial(local.fit, X, y),
        "two workers": two.fit,
    }
    if options.case == "xgboost":
        import xgboost

        calls["XGBoost, two threads"] = partial(xgboost.XGBClassifier(n_jobs=2).fit, X, y)
        calls["XGBoost, two workers"] = two.fit_xgboost
    times: dict[str, list[float]] = {name: [] for name in calls}
    processor: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(options.repeats):
        for name, call in calls.items():
            before = two.processor_seconds()
            seconds, found = seconds_of(call)
            times[name].append(seconds)
            processor[name].append(two.processor_seconds() - before)
            if name == "two workers":
                model = found
    with recorded_waits() as record:
        seconds, _ = seconds_of(two.fit)
    print(f"{record['tasks']} tasks, {record['waits']} waits: {seconds - record['waiting']:.2f} s "
          f"of {seconds:.2f} s without them")  # fmt: skip
    two.close()
    for name, values in processor.items():
        print(f"{name}: {min(values):.2f} s of processor time")
    del X, y, calls
    if options.case == "ten-million":
        one = ClusterFit(options, 1)
        times["one worker"] = [seconds_of(one.fit)[0] for _ in range(options.repeats)]
        one.close()
    least = print_times(options, times)
    limit = {"xgboost": 2.2, "million": 1.6, "ten-million": 1.4}[options.case]
    report(
        "two workers / two threads", least["two workers"] / least["two threads in memory"], limit
    )
    if "XGBoost, two workers" in least:
        ratio = least["two workers"] / least["XGBoost, two workers"]
        report("two workers / XGBoost on two workers", ratio, 0.5)
    if "one worker" in least:
        ratio = least["one worker"] / least["two workers"]
        report("one worker / two workers", ratio, 1.7, at_least=True)
    difference = np.abs(local.frequencies_ - model.frequencies_).max()
    report("largest difference of frequencies", float(difference), 1e-4)


def print_times(options: Any, times: dict[str, list[float]]) -> dict[str, float]:
    """Print all times, and return the shortest of each kind."""
    print(f"{options.rows:,} rows, {options.columns} columns, {options.features} features")
    for name, values in times.items():
        print(f"{name}: {min(values):.2f} s of " + ", ".join(f"{value:.2f}" for value in values))
    return {name: min(values) for name, values in times.items()}


def measure_scaling(options: Any) -> None:
    """Fit the model ``seconds = fixed + rows / (workers * rate)`` to fits of several sizes."""
    equations, seconds = [], []
    for n_workers in (1, 2):
        for share in (8, 2, 1):
            part = argparse.Namespace(**vars(options) | {"rows": options.rows // share})
            part.chunk = options.chunk // share
            fits = ClusterFit(part, n_workers)
            fits.fit()
            with recorded_waits() as record:
                least = min(seconds_of(fits.fit)[0] for _ in range(options.repeats))
            fits.close()
            equations.append([1.0, part.rows / n_workers])
            seconds.append(least)
            alone = least - record["waiting"] / options.repeats
            print(
                f"{n_workers} workers, {part.rows:,} rows: {least:.2f} s, "
                f"{record['waits'] / options.repeats:.0f} waits, "
                f"{record['tasks'] / options.repeats:.0f} tasks, {alone:.2f} s without waits",
                flush=True,
            )
    fixed, per_row = np.linalg.lstsq(np.array(equations), np.array(seconds), rcond=None)[0]
    print(f"fixed {fixed:.2f} s, {1 / per_row:,.0f} rows a second and worker")


def compare_busy(options: Any) -> None:
    """Compare fits on a quiet machine with fits beside a busy process."""
    fits = ClusterFit(options, 2)
    times: dict[str, list[float]] = {"quiet": [], "beside a busy process": []}
    for _ in range(options.repeats):
        times["quiet"].append(seconds_of(fits.fit)[0])
        with busy_process():
            times["beside a busy process"].append(seconds_of(fits.fit)[0])
    fits.close()
    least = print_times(options, times)
    report("busy / quiet", least["beside a busy process"] / least["quiet"], 3.0)


def kill_workers(options: Any) -> None:
    """Kill a worker at a random time of each fit; all models must equal an undisturbed one."""
    fits, rng = ClusterFit(options, 2), np.random.default_rng(0)
    seconds, expected = seconds_of(fits.fit)
    fits.close()
    print(f"undisturbed: {seconds:.1f} s, {expected.history_['seconds'][-1]:.1f} s of it the game")
    for number in range(options.fits):
        fits = ClusterFit(options, 2)
        pid = list(fits.cluster.workers.values())[number % 2].pid  # of the nanny's worker
        # Every third time in the last part of the fit, which is the final model.
        share = rng.uniform(0.75, 0.95) if number % 3 == 2 else rng.uniform(0.05, 0.75)
        timer = threading.Timer(share * seconds, os.kill, (pid, signal.SIGKILL))
        timer.start()
        taken, model = seconds_of(fits.fit)
        was_killed = timer.finished.is_set()
        timer.cancel()
        fits.close()
        np.testing.assert_array_equal(model.frequencies_, expected.frequencies_)
        np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-9, atol=1e-12)
        print(
            f"killed after {share * seconds:.1f} s: {was_killed}; the game ended after "
            f"{model.history_['seconds'][-1]:.1f} s, the fit after {taken:.1f} s; same model",
            flush=True,
        )


def draw_task_stream(options: Any) -> None:
    """Draw the tasks of a fit as the dashboard does: time to the right, one line per worker."""
    from matplotlib import pyplot as plt

    fits = ClusterFit(options, 2)
    fits.fit()
    first = time.time()
    with get_task_stream(fits.client) as stream:
        fits.fit()
    fits.close()
    tasks = [
        (str(task["key"]).lstrip("('").split("-")[0].removeprefix("fourier_"), task["worker"], part)
        for task in stream.data
        for part in task["startstops"]
        if part["action"] == "compute" and part["start"] > first
    ]
    begin = min(part["start"] for *_, part in tasks)
    end = max(part["stop"] for *_, part in tasks)
    workers = sorted({worker for _, worker, _ in tasks})
    figure, (whole, detail) = plt.subplots(2, figsize=(10, 4), layout="constrained")
    names = list(dict.fromkeys(name for name, *_ in tasks))
    middle = begin + 0.5 * (end - begin)
    for axes, limits in ((whole, (begin, end)), (detail, (middle, middle + 0.04 * (end - begin)))):
        for position, name in enumerate(names):
            shown = [(workers.index(w), part) for one, w, part in tasks if one == name]
            axes.barh(
                [line for line, _ in shown],
                [part["stop"] - part["start"] for _, part in shown],
                left=[part["start"] - begin for _, part in shown],
                color=plt.get_cmap("tab20")(position % 20),
                label=name,
            )
        axes.set_xlim(*(limit - begin for limit in limits))
        axes.set_yticks(range(len(workers)), [f"worker {i}" for i in range(len(workers))])
    detail.set_xlabel("seconds since the first task; below, some rounds of the game")
    whole.legend(ncols=7, fontsize="x-small", loc="lower center", bbox_to_anchor=(0.5, 1))
    figure.savefig(options.path, dpi=120)
    print(f"{len(tasks)} tasks in {end - begin:.1f} s: {options.path}")


# Rows, columns and rows per chunk of each case.
SIZES = {
    "xgboost": (400_000, 50, 106_496),
    "scaling": (400_000, 100, 106_496),
    "million": (1_000_000, 100, 253_952),
    "ten-million": (10_000_000, 50, 655_360),
    "busy": (400_000, 50, 106_496),
    "kills": (60_000, 10, 8192),
    "stream": (400_000, 50, 106_496),
}


def main() -> None:
    """Run from the command line."""
    parser = make_parser(__doc__)
    parser.add_argument("case", choices=SIZES, nargs="?", default="xgboost")
    for name in ("rows", "columns", "chunk"):
        parser.add_argument(f"--{name}", type=int, help="by default as in the case")
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--fits", type=int, default=10, help="number of fits with a killed worker")
    parser.add_argument("--path", type=Path, default="docs/task_stream.png", help="of the picture")
    options = parser.parse_args()
    for name, size in zip(("rows", "columns", "chunk"), SIZES[options.case], strict=True):
        if getattr(options, name) is None:
            setattr(options, name, size)
    functions = {
        "scaling": measure_scaling,
        "busy": compare_busy,
        "kills": kill_workers,
        "stream": draw_task_stream,
    }
    functions.get(options.case, compare)(options)


if __name__ == "__main__":
    main()
