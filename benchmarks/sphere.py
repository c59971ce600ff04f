"""The sphere: the cost of enumerating harmonics, and accuracy on images.

    python -m benchmarks.sphere [enumerate] [mnist]

enumerate  time for the potential of all 961 harmonics up to degree 30 on S^2, n = 100,000, relative
           to the matrix product of that size
mnist      the digits 4 and 9 as unit vectors: 100 zonal features, and 100 on R^d
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.common import run_parts, timed
from experiments.tasks import load_task
from notsorandom import FourierClassifier, Sphere
from notsorandom.data.rows import Rows
from notsorandom.spaces import FiniteSpace

REPEATS = 7


def best_time(function: Callable[[], object]) -> float:
    """Return the shortest of several times, in seconds."""
    return min(timed(function)[1] for _ in range(REPEATS))


def run_enumerate(data_home: str | None) -> None:
    """Print the time of an enumeration and of the matrix product."""
    rng = np.random.default_rng(0)
    for dtype in (np.float64, np.float32):
        X = rng.standard_normal((100_000, 3))
        rows = Rows((X / np.linalg.norm(X, axis=1, keepdims=True)).astype(dtype))
        measure = rng.standard_normal((100_000, 1)).astype(dtype)
        space = Sphere().resolve(rows, rng)
        assert isinstance(space, FiniteSpace)
        n_harmonics = len(space.all_frequencies(3))
        matrix = rng.standard_normal((100_000, n_harmonics)).astype(dtype)
        product = best_time(partial(np.matmul, measure.T, matrix))
        ours = best_time(partial(space.all_amplitudes, rows, measure))
        print(
            f"enumerate: {n_harmonics} harmonics, {np.dtype(dtype).name}: {1e3 * ours:.0f} ms, "
            f"matrix product {1e3 * product:.0f} ms: ratio {ours / product:.2f}",
            flush=True,
        )


def run_mnist(data_home: str | None) -> None:
    """Print accuracies on unit-norm images."""
    X, y, X_test, y_test = load_task("mnist-4-9", data_home)
    X, X_test = (part / np.linalg.norm(part, axis=1, keepdims=True) for part in (X, X_test))
    for space in ("sphere", "euclidean"):
        scores, start = [], time.perf_counter()
        for seed in range(3):
            model = FourierClassifier(100, space=space, random_state=seed).fit(X, y)
            scores.append(100 * model.score(X_test, y_test))
        seconds = (time.perf_counter() - start) / 3
        print(
            f"mnist 4-9, unit norm, m = 100, {space}: {np.mean(scores):.2f} +- "
            f"{np.std(scores):.2f} % in {seconds:.1f} s",
            flush=True,
        )


PARTS = {"enumerate": run_enumerate, "mnist": run_mnist}


if __name__ == "__main__":
    run_parts(__doc__, PARTS)
