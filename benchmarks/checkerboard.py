"""The checkerboard on the sphere against exact SVMs with RBF and arc-cosine kernels.

    python benchmarks/checkerboard.py

2000 training and 50,000 test samples, 100 rounds. Whatever is tuned is tuned by five-fold
cross-validation on the training samples.
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from notsorandom import Enumerate, FourierClassifier
from notsorandom.baselines import arc_cosine_kernel, median_gamma
from notsorandom.datasets import make_checkerboard

ROUNDS = 100
C_GRID = {"C": 10.0 ** np.arange(0, 5)}


def models(gamma: float, seed: int) -> dict[str, Any]:
    """Return everything that is compared, by name."""
    paper = FourierClassifier(
        n_rounds=ROUNDS, space="sphere", search=Enumerate(n_peaks=1), random_state=seed
    )
    default = FourierClassifier(n_rounds=ROUNDS, space="sphere", random_state=seed)
    bandwidths = {"gamma": gamma * 4.0 ** np.arange(-1, 5)}
    ramps, steps = (SVC(kernel=partial(arc_cosine_kernel, degree=degree)) for degree in (1, 0))
    return {
        "RBF SVM, median bandwidth, C = 1": SVC(gamma=gamma),
        "RBF SVM, best bandwidth, C = 1": GridSearchCV(SVC(), bandwidths, cv=5),
        "RBF SVM, bandwidth and C tuned": GridSearchCV(SVC(), C_GRID | bandwidths, cv=5),
        "arc-cosine SVM of degree 0, C = 1": steps,
        "arc-cosine SVM of degree 0, C tuned": GridSearchCV(steps, C_GRID, cv=5),
        "arc-cosine SVM of degree 1, C = 1": ramps,
        "arc-cosine SVM of degree 1, C tuned": GridSearchCV(ramps, C_GRID, cv=5),
        "ours, one harmonic a round, C = 1": paper,
        "ours, one harmonic a round, C tuned": GridSearchCV(paper, C_GRID, cv=5),
        "ours, defaults, C = 1": default,
        "ours, defaults, C tuned": GridSearchCV(default, C_GRID, cv=5),
    }


def main() -> None:
    """Fit all models on each seed's checkerboard, and print their means."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    records: dict[str, list[tuple[float, float, float]]] = {}
    for seed in range(options.seeds):
        X, y = make_checkerboard(2000, random_state=seed)
        test = make_checkerboard(50_000, random_state=1000 + seed)
        for name, model in models(median_gamma(X), seed).items():
            model.fit(X, y)
            best = getattr(model, "best_estimator_", model)
            began = time.perf_counter()
            best.fit(X, y)
            seconds = time.perf_counter() - began
            size = best.coef_.shape[1] if isinstance(best, FourierClassifier) else best.n_support_
            record = (100 * best.score(*test), float(np.sum(size)), seconds)
            records.setdefault(name, []).append(record)
            print(f"seed {seed}: {name:<36} {record[0]:6.2f} %  {record[1]:5.0f}", flush=True)
    print(
        f"\n{'mean of ' + str(options.seeds):<36}  test %    std  harmonics or SVs  seconds a fit"
    )
    for name, values in records.items():
        score, size, seconds = np.mean(values, axis=0)
        spread = np.std(values, axis=0)[0]
        print(f"{name:<36} {score:7.2f} {spread:6.2f} {size:17.1f} {seconds:14.2f}")


if __name__ == "__main__":
    main()
