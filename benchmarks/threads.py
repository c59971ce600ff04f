"""Jobs that share the samples: how much faster two are than one.

    python benchmarks/threads.py

Fits the same model with one job and with two, in turn, matrix products having one thread each, and
compares: seconds, of the least disturbed of a few fits, and whether the models are the same.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from notsorandom import FourierClassifier


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    X = rng.standard_normal((options.rows, options.columns), dtype=np.float32)
    y = np.cos(X @ rng.standard_normal(options.columns).astype(np.float32) * 0.3) > 0
    seconds: dict[int, list[float]] = {1: [], 2: []}
    models = {}
    for _ in range(options.repeats):
        for n_jobs, taken in seconds.items():
            model = FourierClassifier(
                options.features, smoothing=0.06, random_state=0, n_jobs=n_jobs
            )
            began = time.perf_counter()
            models[n_jobs] = model.fit(X, y)
            taken.append(time.perf_counter() - began)
    one, two = (min(taken) for taken in seconds.values())
    same = np.array_equal(models[1].coef_, models[2].coef_)
    print(f"{options.rows:,} rows, {options.columns} columns, {options.features} features")
    print(f"1 job: {one:.2f} s; 2 jobs: {two:.2f} s; {one / two:.2f} times as fast")
    print(f"the same model: {same}")


if __name__ == "__main__":
    main()
