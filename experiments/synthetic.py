"""The paper's two synthetic problems: the windmill on the plane, the checkerboard on the sphere."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from experiments import paper
from experiments.chosen import chosen_settings, describe_choices
from experiments.records import Config, Record
from experiments.tables import Table
from experiments.tasks import TaskLoader
from notsorandom import Enumerate, FourierClassifier, GradientSolver
from notsorandom.baselines import arc_cosine_kernel, median_gamma
from notsorandom.datasets import make_checkerboard, make_windmill

N_TRAIN, N_TEST = 2000, 50_000
N_ROUNDS = 100
WIDE_GRID, OUR_GRID, SPHERE_GRID = (
    {"C": 10.0 ** np.arange(first, last)} for first, last in ((-1, 5), (0, 4), (0, 5))
)


def bandwidths(X: Any) -> dict[str, Any]:
    """Return a grid of `gamma`, around the value of the median bandwidth and far above it."""
    return {"gamma": median_gamma(X) * 4.0 ** np.arange(-1, 5)}


def tuned(model: Any, grid: dict[str, Any]) -> GridSearchCV:
    """Return a five-fold grid search on the training samples."""
    return GridSearchCV(model, grid, cv=5)


def single_harmonics(seed: int) -> FourierClassifier:
    """Return our SVM at C = 1 with one harmonic per round, as in the paper."""
    return several_harmonics(seed).set_params(search=Enumerate(n_peaks=1))


def several_harmonics(seed: int) -> FourierClassifier:
    """Return our SVM at C = 1 with the default search."""
    return our_svm(N_ROUNDS, seed, space="sphere", solver=GradientSolver(n_rounds=N_ROUNDS))


def our_svm(n_components: int, seed: int, **parameters: Any) -> FourierClassifier:
    """Return our model with the paper's loss and C; spectrum and smoothing are chosen."""
    return FourierClassifier(n_components, loss="hinge", C=1.0, random_state=seed, **parameters)


def arc_cosine(degree: int) -> SVC:
    """Return an exact SVM with the arc-cosine kernel."""
    return SVC(kernel=partial(arc_cosine_kernel, degree=degree))


# From training samples and a seed to an unfitted classifier.
Maker = Callable[[Any, int], Any]

WINDMILL: dict[str, Maker] = {
    "RBF SVM, median bandwidth, C = 1": lambda X, seed: SVC(gamma=median_gamma(X)),
    "RBF SVM, scikit-learn's defaults": lambda X, seed: SVC(),
    "RBF SVM, bandwidth and C tuned": lambda X, seed: tuned(SVC(), WIDE_GRID | bandwidths(X)),
    "ours, m = 100, C = 1": lambda X, seed: our_svm(100, seed),
    "ours, m = 100, C tuned": lambda X, seed: tuned(our_svm(100, seed), OUR_GRID),
    "ours, m = 100, all defaults": lambda X, seed: FourierClassifier(100, random_state=seed),
    "ours, m = 1000, C = 1": lambda X, seed: our_svm(1000, seed),
    "ours, m = 1000, C tuned": lambda X, seed: tuned(our_svm(1000, seed), OUR_GRID),
    "ours, m = 1000, all defaults": lambda X, seed: FourierClassifier(1000, random_state=seed),
}

CHECKERBOARD: dict[str, Maker] = {
    "RBF SVM, median bandwidth, C = 1": lambda X, seed: SVC(gamma=median_gamma(X)),
    "RBF SVM, best bandwidth, C = 1": lambda X, seed: tuned(SVC(), bandwidths(X)),
    "RBF SVM, bandwidth and C tuned": lambda X, seed: tuned(SVC(), SPHERE_GRID | bandwidths(X)),
    "arc-cosine SVM of degree 0, C = 1": lambda X, seed: arc_cosine(0),
    "arc-cosine SVM of degree 0, C tuned": lambda X, seed: tuned(arc_cosine(0), SPHERE_GRID),
    "arc-cosine SVM of degree 1, C = 1": lambda X, seed: arc_cosine(1),
    "arc-cosine SVM of degree 1, C tuned": lambda X, seed: tuned(arc_cosine(1), SPHERE_GRID),
    "ours, one harmonic per round, C = 1": lambda X, seed: single_harmonics(seed),
    "ours, one harmonic per round, C tuned": lambda X, seed: tuned(
        single_harmonics(seed), SPHERE_GRID
    ),
    "ours, default search, C = 1": lambda X, seed: several_harmonics(seed),
    "ours, default search, C tuned": lambda X, seed: tuned(several_harmonics(seed), SPHERE_GRID),
    "ours, all defaults": lambda X, seed: FourierClassifier(space="sphere", random_state=seed),
}

PROBLEMS: dict[str, tuple[Callable[..., Any], dict[str, Maker]]] = {
    "windmill": (make_windmill, WINDMILL),
    "checkerboard": (make_checkerboard, CHECKERBOARD),
}


def synthetic_configs(
    problem: str,
    n_seeds: int,
    methods: Sequence[str] | None = None,
    n_train: int = N_TRAIN,
    n_test: int = N_TEST,
) -> list[Config]:
    """Return one run per model and seed, of all models by default."""
    return [
        {"kind": problem, "method": name, "seed": seed, "n_train": n_train, "n_test": n_test}
        for seed in range(n_seeds)
        for name in methods or PROBLEMS[problem][1]
    ]


def run_synthetic(config: Config, load: TaskLoader) -> dict[str, Any]:
    """Fit one model, after tuning if it is to be tuned, and test it on new samples."""
    make_data, models = PROBLEMS[config["kind"]]
    seed = config["seed"]
    X, y = make_data(config["n_train"], random_state=seed)
    model = models[config["method"]](X, seed)
    start = time.perf_counter()
    model.fit(X, y)
    seconds = getattr(model, "refit_time_", time.perf_counter() - start)
    best: Any = getattr(model, "best_estimator_", model)
    ours = isinstance(best, FourierClassifier)
    return {
        "test_accuracy": best.score(*make_data(config["n_test"], random_state=1000 + seed)),
        "train_accuracy": best.score(X, y),
        "fit_seconds": round(seconds, 3),
        "size": int(best.coef_.shape[1] if ours else best.n_support_.sum()),
        **({"chosen": chosen_settings(best)} if ours else {}),
    }


def windmill_tables(records: Sequence[Record]) -> list[Table]:
    """Return the table of the windmill."""
    theirs = paper.WINDMILL
    note = (
        f"The paper: {theirs['rbf']} % with the RBF kernel, {theirs['ours']} % with its method at "
        "T = 1000, which is 2000 real features, a cosine and a sine for each round: twice as many "
        "as ours at m = 1000."
    )
    return [synthetic_table("The windmill", records, note)]


def checkerboard_tables(records: Sequence[Record]) -> list[Table]:
    """Return the table of the checkerboard."""
    theirs = paper.CHECKERBOARD
    note = (
        f"The paper: {theirs['standard']} % with RBF and arc-cosine kernels, "
        f"{theirs['ours']} % with its method on {theirs['n_harmonics']} harmonics."
    )
    return [synthetic_table("The checkerboard", records, note)]


def synthetic_table(title: str, records: Sequence[Record], note: str) -> Table:
    """Return means over the seeds, one row per model."""
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
    choices = [
        f"{name}: {text}." for name, each in by_method.items() if (text := describe_choices(each))
    ]
    config = records[0]["config"]
    n_seeds = max(len(outcomes) for outcomes in by_method.values())
    return Table(
        title,
        f"{config['n_train']} training and {config['n_test']:,} test samples, mean over seeds "
        f"({n_seeds}); tuned: by five-fold cross-validation on the training samples.",
        ("model", "test %", "std", "train %", "size", "seconds to fit"),
        tuple(rows),
        (note, "Size: features, or support vectors of the exact SVMs.", *choices),
    )
