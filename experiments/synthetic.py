"""The paper's two toy problems: the windmill on the plane, the checkerboard on the sphere."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from notsorandom.baselines import arc_cosine_kernel, median_gamma
from notsorandom.datasets import make_checkerboard, make_windmill
from notsorandom.estimators import FourierClassifier
from notsorandom.experiments import paper
from notsorandom.experiments.records import Config, Record
from notsorandom.experiments.tables import Table
from notsorandom.search import Enumerate

N_TRAIN, N_TEST = 2000, 50_000
# Whatever is tuned is tuned by five-fold cross-validation on the training samples.
WIDE_GRID, OUR_GRID, SPHERE_GRID = (
    {"C": 10.0 ** np.arange(first, last)} for first, last in ((-1, 5), (0, 4), (0, 5))
)
N_ROUNDS = 100


def bandwidths(X: Any) -> dict[str, Any]:
    """A grid of `gamma`, around that of the median bandwidth and far above it."""
    return {"gamma": median_gamma(X) * 4.0 ** np.arange(-1, 5)}


def tuned(model: Any, grid: dict[str, Any]) -> Any:
    """The model with what is in the grid chosen on the training samples."""
    return GridSearchCV(model, grid, cv=5)


def single_harmonics(seed: int) -> FourierClassifier:
    """One harmonic a round, as in the paper."""
    return FourierClassifier(
        n_rounds=N_ROUNDS, space="sphere", search=Enumerate(n_peaks=1), random_state=seed
    )


def four_harmonics(seed: int) -> FourierClassifier:
    """The defaults."""
    return FourierClassifier(n_rounds=N_ROUNDS, space="sphere", random_state=seed)


def arc_cosine(degree: int) -> SVC:
    """An exact SVM with that kernel."""
    return SVC(kernel=partial(arc_cosine_kernel, degree=degree))


Maker = Callable[[Any, int], Any]

WINDMILL: dict[str, Maker] = {
    "RBF SVM, median bandwidth, C = 1": lambda X, seed: SVC(gamma=median_gamma(X)),
    "RBF SVM, bandwidth and C tuned": lambda X, seed: tuned(SVC(), WIDE_GRID | bandwidths(X)),
    "ours, m = 100, C = 1": lambda X, seed: FourierClassifier(100, random_state=seed),
    "ours, m = 100, C tuned": lambda X, seed: tuned(
        FourierClassifier(100, random_state=seed), OUR_GRID
    ),
    "ours, m = 1000, C = 1": lambda X, seed: FourierClassifier(1000, random_state=seed),
    "ours, m = 1000, C tuned": lambda X, seed: tuned(
        FourierClassifier(1000, random_state=seed), OUR_GRID
    ),
}

CHECKERBOARD: dict[str, Maker] = {
    "RBF SVM, median bandwidth, C = 1": lambda X, seed: SVC(gamma=median_gamma(X)),
    "RBF SVM, best bandwidth, C = 1": lambda X, seed: tuned(SVC(), bandwidths(X)),
    "RBF SVM, bandwidth and C tuned": lambda X, seed: tuned(SVC(), SPHERE_GRID | bandwidths(X)),
    "arc-cosine SVM of degree 0, C = 1": lambda X, seed: arc_cosine(0),
    "arc-cosine SVM of degree 0, C tuned": lambda X, seed: tuned(arc_cosine(0), SPHERE_GRID),
    "arc-cosine SVM of degree 1, C = 1": lambda X, seed: arc_cosine(1),
    "arc-cosine SVM of degree 1, C tuned": lambda X, seed: tuned(arc_cosine(1), SPHERE_GRID),
    "ours, one harmonic a round, C = 1": lambda X, seed: single_harmonics(seed),
    "ours, one harmonic a round, C tuned": lambda X, seed: tuned(
        single_harmonics(seed), SPHERE_GRID
    ),
    "ours, defaults, C = 1": lambda X, seed: four_harmonics(seed),
    "ours, defaults, C tuned": lambda X, seed: tuned(four_harmonics(seed), SPHERE_GRID),
}


def windmill_configs(n_seeds: int) -> list[Config]:
    """All models on the windmills of some seeds."""
    return configs("windmill", WINDMILL, n_seeds)


def checkerboard_configs(n_seeds: int) -> list[Config]:
    """All models on the checkerboards of some seeds."""
    return configs("checkerboard", CHECKERBOARD, n_seeds)


def configs(kind: str, models: dict[str, Maker], n_seeds: int) -> list[Config]:
    """Each model once a seed."""
    return [
        {"kind": kind, "method": name, "seed": seed} for seed in range(n_seeds) for name in models
    ]


def perform_windmill(config: Config, data_home: str | None = None) -> dict[str, Any]:
    """Fit one model on one windmill."""
    return perform_synthetic(config, make_windmill, WINDMILL)


def perform_checkerboard(config: Config, data_home: str | None = None) -> dict[str, Any]:
    """Fit one model on one checkerboard."""
    return perform_synthetic(config, make_checkerboard, CHECKERBOARD)


def perform_synthetic(
    config: Config, make_data: Callable[..., Any], models: dict[str, Maker]
) -> dict[str, Any]:
    """Tune the model if it is to be tuned, fit it, and test it on new samples."""
    seed = config["seed"]
    X, y = make_data(N_TRAIN, random_state=seed)
    model = models[config["method"]](X, seed)
    began = time.perf_counter()
    model.fit(X, y)
    seconds = getattr(model, "refit_time_", time.perf_counter() - began)
    best: Any = getattr(model, "best_estimator_", model)
    ours = isinstance(best, FourierClassifier)
    return {
        "test_accuracy": best.score(*make_data(N_TEST, random_state=1000 + seed)),
        "train_accuracy": best.score(X, y),
        "fit_seconds": round(seconds, 3),
        "size": int(best.coef_.shape[1] if ours else best.n_support_.sum()),
    }


def windmill_tables(records: Sequence[Record]) -> list[Table]:
    """The windmill's figures."""
    theirs = paper.WINDMILL
    note = (
        f"The paper: {theirs['rbf']} % with the RBF kernel, {theirs['ours']} % with its method at "
        "T = 1000."
    )
    return [synthetic_table("The windmill", records, note)]


def checkerboard_tables(records: Sequence[Record]) -> list[Table]:
    """The checkerboard's figures."""
    theirs = paper.CHECKERBOARD
    note = (
        f"The paper: {theirs['usual kernels']} % with RBF and arc-cosine kernels, "
        f"{theirs['ours']} % with its method on {theirs['n_harmonics']} harmonics."
    )
    return [synthetic_table("The checkerboard", records, note)]


def synthetic_table(title: str, records: Sequence[Record], note: str) -> Table:
    """Means over the seeds, a line a model."""
    by_method: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        by_method.setdefault(record["config"]["method"], []).append(record["outcome"])
    rows = []
    for name, outcomes in by_method.items():
        test, train, size, seconds = (
            np.array([outcome[column] for outcome in outcomes])
            for column in ("test_accuracy", "train_accuracy", "size", "fit_seconds")
        )
        rows.append(
            (
                name,
                f"{100 * test.mean():.2f}",
                f"{100 * test.std(ddof=min(1, len(test) - 1)):.2f}",
                f"{100 * train.mean():.2f}",
                f"{size.mean():.1f}",
                f"{seconds.mean():.2f}",
            )
        )
    n_seeds = max(len(outcomes) for outcomes in by_method.values())
    return Table(
        title,
        f"{N_TRAIN} training and {N_TEST:,} test samples, mean over seeds ({n_seeds}); tuned: by "
        "five-fold cross-validation on the training samples.",
        ("model", "test %", "std", "train %", "size", "seconds to fit"),
        tuple(rows),
        (note, "Size: features, or support vectors of the exact SVMs."),
    )
