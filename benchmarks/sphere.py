"""The sphere: the cost of enumerating harmonics, accuracy on images and on sentence embeddings.

    python -m benchmarks.sphere [enumerate] [mnist]
    python -m benchmarks.sphere embeddings --data FOLDER

enumerate  time for the potential of all 961 harmonics up to degree 30 on S^2, n = 100,000, relative
           to the matrix product of that size
mnist      the digits 4 and 9 as unit vectors: 100 zonal features, and 100 on R^d
embeddings an SVM with C = 1: the learned kernel of whole degrees, and kernels that aren't learned,
           on test rows, and by three folds of the training rows and of scikit-learn's digits, which
           is for choosing settings

The folder of the last has trec.npz and banking77.npz, with the embeddings `X`, `y`, `X_test`
and `y_test`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import normalize
from sklearn.svm import SVC

from benchmarks.common import Recorded, run_parts, timed
from experiments.records import Config, Record
from experiments.tables import Table
from experiments.tasks import load_task
from notsorandom import DegreeKernel, FourierClassifier, Sphere, SphereKernel
from notsorandom.data.rows import Rows
from notsorandom.kernel import normalized
from notsorandom.spaces import FiniteSpace

REPEATS = 7
N_SHOTS = 10  # samples of each class of the smallest set
SETS = ("trec", "banking77", f"banking77, {N_SHOTS} a class", "digits")


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


def embedding_configs() -> list[Config]:
    """Return one run per set and fold, and one on the test rows of those that have some."""
    return [
        {"kind": "embeddings", "set": name, "part": part}
        for name in SETS
        for part in ("fold 1", "fold 2", "fold 3", "test")
        if (name, part) != ("digits", "test")
    ]


def load_embeddings(name: str, data: str | None) -> tuple[Any, Any, Any, Any]:
    """Return training and test rows of a set and their classes; the digits have no test rows."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        return normalize(X), y, None, None
    base, _, is_small = name.partition(", ")
    file = np.load(Path(data or ".") / f"{base}.npz")
    X, y, X_test, y_test = (file[key] for key in ("X", "y", "X_test", "y_test"))
    if is_small:
        rng = np.random.default_rng(0)
        kept = [rng.choice(np.flatnonzero(y == c), N_SHOTS, replace=False) for c in np.unique(y)]
        X, y = X[np.concatenate(kept)], y[np.concatenate(kept)]
    return normalize(X), y, normalize(X_test), y_test


def run_embeddings(data: str | None, config: Config) -> dict[str, Any]:
    """Return the accuracy of an SVM with each kernel, in percent, and the learned kernel."""
    X, y, X_test, y_test = load_embeddings(config["set"], data)
    if config["part"] != "test":
        folds = StratifiedKFold(3, shuffle=True, random_state=0).split(X, y)
        train, test = list(folds)[int(config["part"][-1]) - 1]
        X, y, X_test, y_test = X[train], y[train], X[test], y[test]

    def degrees(weights: Any) -> DegreeKernel:
        return DegreeKernel(normalized(np.asarray(weights, dtype=float)), X.shape[1])

    learned = SphereKernel(random_state=0).fit(X, y).kernel_
    machines = {
        "learned": SVC(kernel=learned),
        "degree 1": SVC(kernel=degrees([1])),
        "degrees 1 to 4, equal": SVC(kernel=degrees([1] * 4)),
        "RBF": SVC(),  # its gamma="scale" is 1 for unit vectors
        "RBF, `gamma=2`": SVC(gamma=2.0),
    }
    return {
        "kernel": str(learned),
        "scores": {
            name: 100 * svm.fit(X, y).score(X_test, y_test) for name, svm in machines.items()
        },
    }


def embedding_tables(records: Sequence[Record]) -> list[Table]:
    """Return mean accuracies over the folds, then those on test rows."""
    rows: dict[str, list[dict[str, float]]] = {}
    for kind in ("folds", "test rows"):
        for record in records:
            name, part = record["config"]["set"], record["config"]["part"]
            if (part == "test") == (kind == "test rows"):
                rows.setdefault(f"{name}, {kind}", []).append(record["outcome"]["scores"])
    kernels = list(records[0]["outcome"]["scores"])
    cells = [
        (title, *(f"{np.mean([scores[kernel] for scores in each]):.2f}" for kernel in kernels))
        for title, each in rows.items()
    ]
    caption = "Accuracy in percent of `SVC` with `C=1`."
    return [Table("Kernels of the angle", caption, ("", *kernels), tuple(cells))]


PARTS: dict[str, Callable[..., None] | Recorded] = {
    "enumerate": run_enumerate,
    "mnist": run_mnist,
    "embeddings": Recorded(embedding_configs, run_embeddings, embedding_tables),
}


if __name__ == "__main__":
    run_parts(__doc__, PARTS)
