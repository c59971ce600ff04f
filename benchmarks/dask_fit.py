"""A fit on a Dask cluster against the same fit in memory.

    python benchmarks/dask_fit.py

Data are made by the graph, on a local cluster of two processes, and once more in memory. Both fits
are done in turn, and compared: seconds, of the least disturbed of a few, and how far the
frequencies are apart.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait

import notsorandom
import notsorandom.dask


def samples(numbers: Any, n_columns: int) -> Any:
    """Samples of the block that begins at a row."""
    rng = np.random.default_rng(int(numbers[0]))
    return rng.standard_normal((len(numbers), n_columns), dtype=np.float32)


def labels(X: Any) -> Any:
    """Whether samples are on the crest of a wave."""
    rng = np.random.default_rng(1)
    wave = rng.standard_normal(X.shape[1]).astype(np.float32)
    return np.cos(X @ wave * np.float32(3 / X.shape[1] ** 0.5)) > 0


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--chunk", type=int, default=131_072)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    settings = {"n_components": options.features, "n_jobs": options.workers, "random_state": 0}
    cluster = LocalCluster(
        n_workers=options.workers, threads_per_worker=1, processes=True, dashboard_address=None
    )
    seconds: dict[str, list[float]] = {"memory": [], "dask": []}
    with cluster, Client(cluster) as client:
        numbers = da.arange(options.rows, chunks=options.chunk)
        X = numbers.map_blocks(
            samples,
            options.columns,
            dtype=np.float32,
            new_axis=1,
            chunks=(numbers.chunks[0], (options.columns,)),
        )
        y = X.map_blocks(labels, dtype=bool, drop_axis=1)
        X, y = client.persist([X, y])
        wait([X, y])
        parts = np.split(np.arange(options.rows), np.cumsum(numbers.chunks[0])[:-1])
        here = np.concatenate([samples(part, options.columns) for part in parts])
        there = np.concatenate([labels(part) for part in np.array_split(here, len(parts))])
        for _ in range(options.repeats):
            began = time.perf_counter()
            local = notsorandom.FourierClassifier(**settings).fit(here, there)
            seconds["memory"].append(time.perf_counter() - began)
            began = time.perf_counter()
            model = notsorandom.dask.FourierClassifier(**settings).fit(X, y)
            seconds["dask"].append(time.perf_counter() - began)
    memory, dask = (min(taken) for taken in seconds.values())
    apart = np.abs(local.frequencies_ - model.frequencies_).max()
    print(f"{options.rows:,} rows, {options.columns} columns, {options.features} features")
    print(f"in memory: {memory:.2f} s; on the cluster: {dask:.2f} s; {dask / memory:.2f} times")
    print(f"frequencies differ by at most {apart:.1e}")


if __name__ == "__main__":
    main()
