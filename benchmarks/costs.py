"""Costs of parts of a fit: more classes, the potential, a second thread, torch.

    python -m benchmarks.costs classes
    python -m benchmarks.costs potential
    python -m benchmarks.costs threads [--rows 100000 --columns 512]
    python -m benchmarks.costs torch [--device cuda] [--dtype float64]

classes    seconds per round of the game and of the linear models for 2 to 100 classes: samples
           around random centres, three centres per class, in 64 columns; ratios to two classes
potential  potential and gradient relative to the matrix products that they contain (samples by
           frequencies, and waves by samples), on all rows or by blocks, whichever is faster
threads    the same fit with n_jobs=1, 2 and None; then passes of growing size in one thread and in
           two, from which ``SHARED_WORK`` of notsorandom/data/rows.py comes; and the fixed costs of
           a pool and of a pass
torch      fit and transform of torch tensors relative to NumPy arrays, one thread each

Nothing is chosen by trials. What is compared runs in turn.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.common import run_command, timed
from experiments.svm import fit_svm
from experiments.tables import Table
from notsorandom import Ascent, Euclidean, FourierClassifier, FourierFeatures
from notsorandom._utils.threads import thread_pool
from notsorandom.data import rows as rows_module
from notsorandom.data.array_api import to_host
from notsorandom.data.rows import Array, Rows

CENTRES_PER_CLASS = 3
# A game without trials.
GIVEN: dict[str, Any] = {
    "C": 1.0,
    "smoothing": 0.06,
    "search": Ascent(spectrum="gaussian"),
    "random_state": 0,
}


def make_blobs(n_samples: int, n_classes: int, seed: int) -> tuple[Array, Array]:
    """Return samples around random centres and their classes."""
    rng = np.random.default_rng(seed)
    centres = 3 * np.random.default_rng(0).standard_normal((n_classes * CENTRES_PER_CLASS, 64))
    which = rng.integers(len(centres), size=n_samples)
    X = centres[which] + 2 * rng.standard_normal((n_samples, 64))
    return X.astype(np.float32), which % n_classes


def compare_classes(
    classes: tuple[int, ...] = (2, 10, 30, 100), samples: int = 10_000, features: int = 100
) -> None:
    """Print one line per number of classes, then the table."""
    rows, first = [], (0.0, 0.0)
    for n_classes in classes:
        X, y = make_blobs(samples, n_classes, 1)
        X_test, y_test = make_blobs(5000, n_classes, 2)
        learned = FourierFeatures(features, loss="hinge", **GIVEN).fit(X, y)
        per_round = learned.history_["seconds"][-1] / len(learned.history_["seconds"])
        predict, linear = timed(fit_svm, learned.transform(X), y, n_classes)
        predictions = predict(learned.transform(X_test))
        first = first if any(first) else (per_round, linear)
        rows.append(
            (
                str(n_classes),
                f"{1000 * per_round:.0f}",
                f"{per_round / first[0]:.1f}",
                f"{linear:.2f}",
                f"{linear / first[1]:.1f}",
                f"{100 * np.mean(predictions == y_test):.1f}",
            )
        )
        print(*rows[-1], flush=True)
    headers = ("classes", "ms per round", "ratio", "s for linear models", "ratio", "test %")
    print(Table("Number of classes", "", headers, tuple(rows)).markdown())


def products(X: Array, frequencies: Array, waves: Array, block_rows: int) -> None:
    """Compute the matrix products of a pass, by blocks that stay in cache between the two."""
    for start in range(0, len(X), block_rows):
        block = slice(start, start + block_rows)
        X[block] @ frequencies.T
        waves[block].T @ X[block]


def compare_potential(
    rows: int = 100_000, columns: int = 512, particles: int = 64, repeats: int = 7
) -> None:
    """Print the speed of one pass relative to its matrix products."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, columns), dtype=np.float32)
    measure = rng.standard_normal((rows, 1), dtype=np.float32)
    frequencies = 0.03 * rng.standard_normal((particles, columns), dtype=np.float32)
    waves = rng.standard_normal((rows, 2 * particles), dtype=np.float32)
    samples = Rows(X)
    space = Euclidean().resolve(samples, rng)
    with threadpool_limits(1, user_api="blas"):
        times = [
            (
                min(timed(products, X, frequencies, waves, size)[1] for size in (rows, 2048)),
                timed(space.amplitudes_and_gradient, samples, measure, frequencies)[1],
            )
            for _ in range(repeats)
        ]
    bare, ours = np.min(times, axis=0)
    print(f"{rows:,} rows, {columns} columns, {particles} particles")
    print(f"products {1e3 * bare:.0f} ms, potential and gradient {1e3 * ours:.0f} ms")
    print(f"relative speed: {bare / ours:.2f}")


def compare_threads(
    rows: int = 1_000_000, columns: int = 100, features: int = 100, repeats: int = 3
) -> None:
    """Print the seconds of fits and of passes by number of threads."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, columns), dtype=np.float32)
    y = np.cos(X @ rng.standard_normal(columns).astype(np.float32) * 0.3) > 0
    models = {
        n_jobs: FourierClassifier(features, loss="hinge", n_jobs=n_jobs, **GIVEN)
        for n_jobs in (1, 2, None)
    }
    times = [[timed(model.fit, X, y)[1] for model in models.values()] for _ in range(repeats)]
    one, two, default = np.min(times, axis=0)
    equal = all(np.array_equal(models[1].coef_, model.coef_) for model in models.values())
    print(f"{rows:,} rows, {columns} columns, {features} features")
    print(f"1 job: {one:.2f} s; 2 jobs: {two:.2f} s; speed-up {one / two:.2f}")
    print(f"n_jobs=None: {default:.2f} s; equal models: {equal}")
    with patch.object(rows_module, "SHARED_WORK", 0):
        compare_passes()
    measure_fixed_costs()


def compare_passes(n_columns: int = 20, n_frequencies: int = 8) -> None:
    """Print the time of one pass of the search in one thread and in two."""
    rng = np.random.default_rng(0)
    frequencies = rng.standard_normal((n_columns, n_frequencies), dtype=np.float32)

    def sums(X: Any) -> tuple[Any, ...]:
        waves = np.cos(X @ frequencies)
        return waves.sum(axis=0), waves.T @ X

    print("multiplications of a pass, its us in one thread and in two")
    for n_rows in (2048, 4096, 8192, 16384, 32768, 65536):
        X = rng.standard_normal((n_rows, n_columns), dtype=np.float32)
        work = n_rows * (n_columns + rows_module.OTHER_WORK) * n_frequencies
        with thread_pool(1) as one, thread_pool(2) as two:
            times = [least_us(Rows(X, pool=pool).sum_blocks, sums) for pool in (one, two)]
        print(f"2^{np.log2(work):.1f} {times[0]:7.0f} {times[1]:7.0f}")


def measure_fixed_costs() -> None:
    """Print the overhead of a pool and of a pass."""

    def open_pool() -> None:
        with thread_pool(2):
            pass

    data = Rows(np.ones((150, 4), dtype=np.float32))
    zeros = np.zeros(4)
    print(f"a pool, BLAS limited: {least_us(open_pool):.1f} us")
    print(f"a pass over one block: {least_us(data.sum_blocks, lambda X: (zeros,)):.1f} us")


def least_us(function: Callable[..., Any], *arguments: Any, repeats: int = 300) -> float:
    """Return the shortest time of a call in microseconds."""
    return 1e6 * min(timed(function, *arguments)[1] for _ in range(repeats))


def transform(model: FourierFeatures, samples: Any) -> float:
    """Compute all features; reading one waits until a device has finished."""
    return float(model.transform(samples)[-1, -1])


def compare_torch(
    rows: int = 100_000,
    columns: int = 100,
    features: int = 100,
    classes: int = 2,
    repeats: int = 3,
    device: str = "cpu",
    dtype: str = "float32",
) -> None:
    """Print seconds, their ratio, and the largest difference of the results."""
    import torch

    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, columns)).astype(dtype)
    phases = X @ rng.standard_normal(columns).astype(dtype) * 0.3
    y = np.floor(phases).astype(int) % classes
    torch.set_num_threads(1)
    libraries = {"numpy": X, "torch": torch.asarray(X, device=device)}
    model = FourierFeatures(features, **GIVEN)
    seconds: dict[tuple[str, str], list[float]] = {}
    results: dict[str, tuple[Any, Any]] = {}
    with threadpool_limits(1):
        for _ in range(repeats):
            for library, samples in libraries.items():
                taken = timed(model.fit, samples, y)[1]
                seconds.setdefault(("fit", library), []).append(taken)
                taken = min(timed(partial(transform, model, samples))[1] for _ in range(5))
                seconds.setdefault(("transform", library), []).append(taken)
                results[library] = model.frequencies_, to_host(model.transform(samples))
    print(f"{rows:,} rows, {columns} columns, {features} features, {classes} classes, {dtype}")
    for task in ("fit", "transform"):
        numpy, other = (float(np.median(seconds[task, library])) for library in libraries)
        print(
            f"{task}: numpy {numpy:.3f} s, torch on {device} {other:.3f} s, "
            f"ratio {other / numpy:.2f}"
        )
    for number, part in enumerate(("frequencies", "features")):
        difference = np.abs(results["numpy"][number] - results["torch"][number]).max()
        print(f"{part}: largest difference {difference:.1e}")


COMMANDS: dict[str, Callable[..., None]] = {
    "classes": compare_classes,
    "potential": compare_potential,
    "threads": compare_threads,
    "torch": compare_torch,
}


if __name__ == "__main__":
    run_command(__doc__, COMMANDS)
