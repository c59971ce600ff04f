"""Other ways to a classifier: accuracy, time and size, at 100 features and at their own best."""

from __future__ import annotations

import pickle
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC

from notsorandom.baselines import median_gamma
from notsorandom.estimators import FourierClassifier
from notsorandom.experiments.records import Config, Record
from notsorandom.experiments.tables import Table
from notsorandom.experiments.tasks import load_task

DEFAULT_TASKS = ("auto-truck", "mnist-4-9")
SMALLEST = "100 features"
BEST = "best size"
# Share of the training samples on which sizes are compared.
HELD_OUT = 0.2
# Predictions are timed so often, and the fastest counts.
N_TIMINGS = 3


@dataclass(frozen=True)
class Peer:
    """A classifier to compare with.

    Parameters
    ----------
    title : str
    make : callable
        From `gamma`, a size and a seed to an unfitted classifier.
    sizes : tuple
        What "best" is chosen from; the first is of 100 features, or the nearest thing.
    """

    title: str
    make: Callable[[float, Any, int], Any]
    sizes: tuple[Any, ...]


def linear(seed: int) -> LinearSVC:
    """The linear SVM that the random features of scikit-learn get."""
    return LinearSVC(loss="hinge", random_state=seed)


PEERS = {
    "ours": Peer(
        "ours",
        lambda gamma, size, seed: FourierClassifier(size, random_state=seed),
        (100, 500, 1000),
    ),
    "svc": Peer(
        "exact RBF SVM",
        lambda gamma, size, seed: SVC(gamma=gamma * size[0], C=size[1]),
        ((1, 1), (2, 1), (4, 1), (1, 10), (2, 10), (4, 10)),
    ),
    "nystroem": Peer(
        "Nystroem, LinearSVC",
        lambda gamma, size, seed: make_pipeline(
            Nystroem(gamma=gamma, n_components=size, random_state=seed), linear(seed)
        ),
        (100, 500, 2000),
    ),
    "random": Peer(
        "RBFSampler, LinearSVC",
        lambda gamma, size, seed: make_pipeline(
            RBFSampler(gamma=gamma, n_components=size, random_state=seed), linear(seed)
        ),
        (100, 1000, 5000),
    ),
    "boosting": Peer(
        "gradient boosting (trees)",
        lambda gamma, size, seed: HistGradientBoostingClassifier(max_iter=size, random_state=seed),
        (100, 300),
    ),
    "mlp": Peer(
        "MLP (hidden units)",
        lambda gamma, size, seed: MLPClassifier((size,), early_stopping=True, random_state=seed),
        (100, 500),
    ),
}


def peers_configs(tasks: Sequence[str], methods: Sequence[str], n_seeds: int) -> list[Config]:
    """All fits: each peer at its smallest and at its best size."""
    return [
        {"kind": "peer", "task": task, "method": method, "size": size, "seed": seed}
        for task in tasks
        for method in methods
        for size in (SMALLEST, BEST)
        for seed in range(n_seeds)
    ]


def perform_peer(config: Config, data_home: str | None) -> dict[str, Any]:
    """Choose the size on held-out training samples if asked, fit, test and weigh."""
    task, peer, seed = load_task(config["task"], data_home), PEERS[config["method"]], config["seed"]
    gamma = median_gamma(task.X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # liblinear's, on random features
        size = peer.sizes[0]
        if config["size"] == BEST:
            X, X_held, y, y_held = train_test_split(
                task.X, task.y, test_size=HELD_OUT, stratify=task.y, random_state=seed
            )
            scores = [
                peer.make(gamma, each, seed).fit(X, y).score(X_held, y_held) for each in peer.sizes
            ]
            size = peer.sizes[int(np.argmax(scores))]
        began = time.perf_counter()
        model = peer.make(gamma, size, seed).fit(task.X, task.y)
        fit_seconds = time.perf_counter() - began
    timings = []
    for _ in range(N_TIMINGS):
        began = time.perf_counter()
        predictions = model.predict(task.X_test)
        timings.append(time.perf_counter() - began)
    return {
        "test_accuracy": float(np.mean(predictions == task.y_test)),
        "fit_seconds": round(fit_seconds, 3),
        "predict_microseconds": round(1e6 * min(timings) / len(task.X_test), 2),
        "bytes": len(pickle.dumps(model)),
        "chosen": size,
    }


def peers_tables(records: Sequence[Record]) -> list[Table]:
    """A table a task."""
    by_task: dict[str, list[Record]] = {}
    for record in records:
        by_task.setdefault(record["config"]["task"], []).append(record)
    return [peers_table(task, each) for task, each in by_task.items()]


def peers_table(task: str, records: Sequence[Record]) -> Table:
    """Means over the seeds, a line a method and size."""
    by_row: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for record in records:
        row = record["config"]["method"], record["config"]["size"]
        by_row.setdefault(row, []).append(record["outcome"])
    rows = []
    for (method, size), outcomes in by_row.items():
        accuracy, seconds, microseconds, n_bytes = (
            np.mean([outcome[column] for outcome in outcomes])
            for column in ("test_accuracy", "fit_seconds", "predict_microseconds", "bytes")
        )
        rows.append(
            (
                f"{PEERS[method].title}, {'best' if size == BEST else 'small'}",
                " or ".join(dict.fromkeys(str(outcome["chosen"]) for outcome in outcomes)),
                f"{100 * accuracy:.2f}",
                f"{seconds:.2f}",
                f"{microseconds:.1f}",
                f"{n_bytes / 1000:,.0f}",
            )
        )
    return Table(
        f"Peers on {task}",
        "Best: the size chosen on a held-out fifth of the training samples. For the exact SVM it "
        "is the multiple of the median bandwidth's gamma, and C.",
        ("method", "size", "test %", "seconds to fit", "µs a row", "kilobytes pickled"),
        tuple(rows),
    )
