"""The sphere: enumeration, known poles, many dimensions, images.

    python -m benchmarks.sphere [enumerate] [poles] [wide] [mnist]

enumerate  time for the potential of all 961 harmonics up to degree 30 on S^2, n = 100,000, relative
           to the matrix product of that size
poles      labels from zonal harmonics of degrees 1 to 3 with known poles at d = 50, n = 20,000:
           angle from each pole to the nearest learned pole of that degree. Alone: labels of one
           degree, 20 features. Together: the sign of the sum of the three, 200 features.
wide       time to learn 100 zonal features at d = 768, n = 20,000
mnist      the digits 4 and 9 as unit vectors: 100 zonal features, and 100 on R^d
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.common import run_parts, timed
from experiments.tasks import load_task
from notsorandom import FourierClassifier, FourierFeatures, Sphere
from notsorandom.data.rows import Array, Rows
from notsorandom.spaces import FiniteSpace
from notsorandom.spaces.gegenbauer import zonal

REPEATS = 7


def points(n_samples: int, n_features: int, rng: np.random.Generator) -> Array:
    """Return uniform points on the sphere."""
    X = rng.standard_normal((n_samples, n_features))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def best_time(function: Callable[[], object]) -> float:
    """Return the shortest of several times, in seconds."""
    return min(timed(function)[1] for _ in range(REPEATS))


def run_enumerate(data_home: str | None) -> None:
    """Print the time of an enumeration and of the matrix product."""
    rng = np.random.default_rng(0)
    for dtype in (np.float64, np.float32):
        rows = Rows(points(100_000, 3, rng).astype(dtype))
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


def angle(features: FourierFeatures, pole: Array, degree: int) -> float:
    """Return the angle in degrees from a pole to the nearest learned one of the same degree."""
    degrees = np.rint(np.linalg.norm(features.frequencies_, axis=1))
    cosines = np.abs(features.frequencies_[degrees == degree] @ pole) / degree
    return float(np.degrees(np.arccos(min(1.0, cosines.max(initial=0.0)))))


def run_poles(data_home: str | None) -> None:
    """Print the angles to the known poles."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, poles = points(20_000, 50, rng), points(3, 50, rng)
        waves = zonal(X @ poles.T, np.array([1, 2, 3]), 50).T
        together = FourierFeatures(200, space="sphere", random_state=seed).fit(X, sum(waves) > 0)
        for degree, (pole, wave) in enumerate(zip(poles, waves, strict=True), start=1):
            alone = FourierFeatures(20, space="sphere", random_state=seed).fit(X, wave > 0)
            print(
                f"poles, seed {seed}, degree {degree}: {angle(alone, pole, degree):.1f} degrees "
                f"alone, {angle(together, pole, degree):.1f} together",
                flush=True,
            )


def run_wide(data_home: str | None) -> None:
    """Print the time of a fit in many dimensions."""
    rng = np.random.default_rng(0)
    X = points(20_000, 768, rng).astype(np.float32)
    directions = points(2, 768, rng)
    y = (X @ directions[0]) * (X @ directions[1]) > 0
    _, seconds = timed(FourierClassifier(100, space="sphere", random_state=0).fit, X, y)
    print(f"wide: d = 768, n = 20,000, m = 100: {seconds:.1f} s", flush=True)


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


PARTS = {"enumerate": run_enumerate, "poles": run_poles, "wide": run_wide, "mnist": run_mnist}


if __name__ == "__main__":
    run_parts(__doc__, PARTS)
