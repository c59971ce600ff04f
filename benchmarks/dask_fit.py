"""Fits on a local Dask cluster against the same fits in memory.

    python -m benchmarks.dask_fit              # the next three
    python -m benchmarks.dask_fit xgboost      # 4 * 10^5 x 50, against two threads and XGBoost
    python -m benchmarks.dask_fit million      # 10^6 x 100, against two threads
    python -m benchmarks.dask_fit ten-million  # 10^7 x 50, against two threads and one worker
    python -m benchmarks.dask_fit kills        # 6 * 10^4 x 10, a worker killed in each of 10 fits
    python -m benchmarks.dask_fit stream       # 4 * 10^5 x 50, drawn to docs/task_stream.png

Workers are processes of one thread each. They make their own chunks of the data and keep them in
memory before the fits begin; for fits in memory the same data are made again. Fits alternate, and
the shortest time counts. The processor time is that of this process, in which the scheduler runs,
and of the workers. `benchmarks.scaling` has the sizes and the table.
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
from benchmarks.common import add_record_options, make_parser, run_recorded
from benchmarks.scaling import dask_configs, dask_tables
from experiments.records import Config
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


def compare(config: Config, options: Any) -> dict[str, Any]:
    """Return seconds of fits on two workers, in memory, and for the largest data on one worker."""
    options = argparse.Namespace(**vars(options) | config)
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
    for _ in range(REPEATS[options.case]):
        for name, call in calls.items():
            before = two.processor_seconds()
            times[name].append(seconds_of(call)[0])
            processor[name].append(two.processor_seconds() - before)
    with recorded_waits() as record:
        seconds, model = seconds_of(two.fit)
    two.close()
    del X, y, calls
    if options.case == "ten-million":
        one = ClusterFit(options, 1)
        times["one worker"] = [seconds_of(one.fit)[0]]
        one.close()
    return {
        "seconds": {name: min(values) for name, values in times.items()},
        "processor": {name: min(values) for name, values in processor.items()},
        "tasks": record["tasks"],
        "waits": record["waits"],
        "alone": seconds - record["waiting"],  # when only the client computes
        "difference": float(np.abs(local.frequencies_ - model.frequencies_).max()),
    }


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


# Rows, columns and rows per chunk of each case that isn't a comparison.
SIZES = {"kills": (60_000, 10, 8192), "stream": (400_000, 50, 106_496)}
REPEATS = {"xgboost": 5, "million": 4, "ten-million": 1}


def main() -> None:
    """Run from the command line."""
    parser = make_parser(__doc__)
    parser.add_argument("case", choices=[*SIZES, *REPEATS, "compare"], nargs="?", default="compare")
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--fits", type=int, default=10, help="number of fits with a killed worker")
    parser.add_argument("--path", type=Path, default="docs/task_stream.png", help="of the picture")
    add_record_options(parser)
    options = parser.parse_args()
    if options.case in SIZES:
        options.rows, options.columns, options.chunk = SIZES[options.case]
        {"kills": kill_workers, "stream": draw_task_stream}[options.case](options)
        return
    cases = [*REPEATS] if options.case == "compare" else [options.case]
    configs = [config for config in dask_configs() if config["case"] in cases]
    run_recorded("dask", configs, partial(compare, options=options), dask_tables, options)


if __name__ == "__main__":
    main()
