"""The sphere: the cost of enumerating harmonics, accuracy on images and on sentence embeddings.

    python -m benchmarks.sphere [enumerate] [mnist]
    python -m benchmarks.sphere [embeddings] [folds] --data FOLDER

enumerate  time for the potential of all 961 harmonics up to degree 30 on S^2, n = 100,000, relative
           to the matrix product of that size
mnist      the digits 4 and 9 as unit vectors: 100 zonal features, and 100 on R^d
embeddings an SVM with C = 1: the learned kernel of whole degrees, and kernels that aren't learned
folds      the same by three folds of the training rows and on scikit-learn's digits: this is for
           choosing settings

The folder of the last two has trec.npz and banking77.npz, with the embeddings `X`, `y`, `X_test`
and `y_test`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import normalize
from sklearn.svm import SVC

from benchmarks.common import run_parts, timed
from experiments.tasks import load_task
from notsorandom import DegreeKernel, FourierClassifier, Sphere, SphereKernel
from notsorandom.data.rows import Rows
from notsorandom.kernel import normalized
from notsorandom.spaces import FiniteSpace

REPEATS = 7
N_SHOTS = 10  # samples of each class of the smallest set


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


def embeddings_of(data_home: str | None) -> Iterator[tuple[str, tuple[Any, Any, Any, Any]]]:
    """Yield the names of the sets and their training and test rows."""
    for name in ("trec", "banking77"):
        file = np.load(Path(data_home or ".") / f"{name}.npz")
        X, y, X_test, y_test = (file[key] for key in ("X", "y", "X_test", "y_test"))
        X, X_test = normalize(X), normalize(X_test)
        yield name, (X, y, X_test, y_test)
    rng = np.random.default_rng(0)
    kept = [rng.choice(np.flatnonzero(y == c), N_SHOTS, replace=False) for c in np.unique(y)]
    few = np.concatenate(kept)
    yield f"{name}, {N_SHOTS} a class", (X[few], y[few], X_test, y_test)


def svm_scores(X: Any, y: Any, X_test: Any, y_test: Any) -> dict[str, float]:
    """Return the accuracy of an SVM with each kernel, in percent."""

    def degrees(weights: Any) -> DegreeKernel:
        return DegreeKernel(normalized(np.asarray(weights, dtype=float)), X.shape[1])

    start = time.perf_counter()
    learned = SphereKernel(random_state=0).fit(X, y).kernel_
    print(f"  {learned} in {time.perf_counter() - start:.1f} s", flush=True)
    machines = {
        "learned": SVC(kernel=learned),
        "degree 1": SVC(kernel=degrees([1])),
        "degrees 1-4": SVC(kernel=degrees([1] * 4)),
        "RBF": SVC(),  # its gamma="scale" is 1 for unit vectors
        "RBF, gamma 2": SVC(gamma=2.0),
    }
    return {name: 100 * svm.fit(X, y).score(X_test, y_test) for name, svm in machines.items()}


def show_scores(name: str, scores: list[dict[str, float]]) -> None:
    """Print the mean of each kernel's scores."""
    means = {kernel: np.mean([one[kernel] for one in scores]) for kernel in scores[0]}
    print(f"{name}: " + ", ".join(f"{kernel} {m:.2f}" for kernel, m in means.items()), flush=True)


def run_embeddings(data_home: str | None) -> None:
    """Print accuracies on the test rows."""
    for name, parts in embeddings_of(data_home):
        show_scores(name, [svm_scores(*parts)])


def run_folds(data_home: str | None) -> None:
    """Print accuracies on folds of the training rows."""
    digits, labels = load_digits(return_X_y=True)
    sets = {name: parts[:2] for name, parts in embeddings_of(data_home)}
    for name, (X, y) in (sets | {"digits": (normalize(digits), labels)}).items():
        folds = StratifiedKFold(3, shuffle=True, random_state=0).split(X, y)
        show_scores(name, [svm_scores(X[a], y[a], X[b], y[b]) for a, b in folds])


PARTS = {
    "enumerate": run_enumerate,
    "mnist": run_mnist,
    "embeddings": run_embeddings,
    "folds": run_folds,
}


if __name__ == "__main__":
    run_parts(__doc__, PARTS)
