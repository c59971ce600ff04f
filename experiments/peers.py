"""Other classifiers: accuracy, time and size, at 100 features and at their best size."""

from __future__ import annotations

import pickle
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
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

from experiments.chosen import chosen_settings, describe_choices
from experiments.records import Config, Record
from experiments.tables import Table
from experiments.tasks import TaskLoader
from notsorandom import FourierClassifier
from notsorandom.baselines import median_gamma

DEFAULT_TASKS = ("auto-truck", "mnist-4-9")
SMALLEST = "100 features"
BEST = "best size"
# Share of the training samples on which sizes are compared.
VALIDATION_FRACTION = 0.2
# Number of timed predictions; the fastest counts.
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
        Candidates for the best size; the first has 100 features, or the closest equivalent.
    summary : str
        Title in a short table, with the size.
    """

    title: str
    make: Callable[[float, Any, int], Any]
    sizes: tuple[Any, ...]
    summary: str


def linear(seed: int) -> LinearSVC:
    """Return the linear SVM on scikit-learn's features."""
    return LinearSVC(loss="hinge", random_state=seed)


PEERS = {
    "ours": Peer(
        "ours",
        lambda gamma, size, seed: FourierClassifier(size, random_state=seed),
        (100, 500, 1000),
        "{} learned features, all defaults",
    ),
    "svc": Peer(
        "exact RBF SVM",
        lambda gamma, size, seed: SVC(gamma=gamma * size[0], C=size[1]),
        ((1, 1), (2, 1), (4, 1), (1, 10), (2, 10), (4, 10)),
        "exact RBF SVM, tuned",
    ),
    "nystroem": Peer(
        "Nystroem, LinearSVC",
        lambda gamma, size, seed: make_pipeline(
            Nystroem(gamma=gamma, n_components=size, random_state=seed), linear(seed)
        ),
        (100, 500, 2000),
        "{} Nystroem features",
    ),
    "random": Peer(
        "RBFSampler, LinearSVC",
        lambda gamma, size, seed: make_pipeline(
            RBFSampler(gamma=gamma, n_components=size, random_state=seed), linear(seed)
        ),
        (100, 1000, 5000),
        "{} random Fourier features",
    ),
    "boosting": Peer(
        "gradient boosting (trees)",
        lambda gamma, size, seed: HistGradientBoostingClassifier(max_iter=size, random_state=seed),
        (100, 300),
        "gradient boosting, {} trees",
    ),
    "mlp": Peer(
        "MLP (hidden units)",
        lambda gamma, size, seed: MLPClassifier((size,), early_stopping=True, random_state=seed),
        (100, 500),
        "MLP, {} hidden units",
    ),
}


def peers_configs(tasks: Sequence[str], methods: Sequence[str], n_seeds: int) -> list[Config]:
    """Return all fits: each peer at its smallest and at its best size."""
    return [
        {"kind": "peer", "task": task, "method": method, "size": size, "seed": seed}
        for task in tasks
        for method in methods
        for size in (SMALLEST, BEST)
        for seed in range(n_seeds)
    ]


def run_peer(config: Config, load: TaskLoader, peers: Mapping[str, Peer] = PEERS) -> dict[str, Any]:
    """Choose the size on validation samples if it is to be the best; fit, test and measure."""
    task, peer, seed = load(config["task"]), peers[config["method"]], config["seed"]
    gamma = median_gamma(task.X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of liblinear, on random features
        size = peer.sizes[0]
        if config["size"] == BEST:
            X, X_validation, y, y_validation = train_test_split(
                task.X, task.y, test_size=VALIDATION_FRACTION, stratify=task.y, random_state=seed
            )
            scores = [
                peer.make(gamma, candidate, seed).fit(X, y).score(X_validation, y_validation)
                for candidate in peer.sizes
            ]
            size = peer.sizes[int(np.argmax(scores))]
        start = time.perf_counter()
        model = peer.make(gamma, size, seed).fit(task.X, task.y)
        fit_seconds = time.perf_counter() - start
    timings = []
    for _ in range(N_TIMINGS):
        start = time.perf_counter()
        predictions = model.predict(task.X_test)
        timings.append(time.perf_counter() - start)
    return {
        "test_accuracy": float(np.mean(predictions == task.y_test)),
        "fit_seconds": round(fit_seconds, 3),
        "predict_microseconds": round(1e6 * min(timings) / len(task.X_test), 2),
        "bytes": len(pickle.dumps(model)),
        "chosen_size": size,
        **({"chosen": chosen_settings(model)} if isinstance(model, FourierClassifier) else {}),
    }


def peers_tables(records: Sequence[Record]) -> list[Table]:
    """Return one table per task."""
    by_task: dict[str, list[Record]] = {}
    for record in records:
        by_task.setdefault(record["config"]["task"], []).append(record)
    return [peers_table(task, each) for task, each in by_task.items()]


def summary_table(records: Sequence[Record], task: str) -> Table:
    """Return the best size of each method on a task, and few random features."""
    rows = []
    for record in records:
        config, outcome = record["config"], record["outcome"]
        is_few = config["method"] == "random" and config["size"] == SMALLEST
        if config["task"] == task and (is_few or config["size"] == BEST):
            title = PEERS[config["method"]].summary.format(outcome["chosen_size"])
            rows.append((outcome["test_accuracy"], title, outcome))
    cells = [
        (
            title,
            f"{100 * accuracy:.2f} %",
            f"{outcome['predict_microseconds']:.1f}",
            f"{outcome['fit_seconds']:.2f}",
        )
        for accuracy, title, outcome in sorted(rows, key=lambda row: -row[0])
    ]
    headers = ("", "test accuracy", "µs per prediction", "seconds to fit")
    return Table(f"Summary of {task}", "", headers, tuple(cells))


def peers_table(task: str, records: Sequence[Record]) -> Table:
    """Return means over the seeds, one row per method and size."""
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
                " or ".join(dict.fromkeys(str(outcome["chosen_size"]) for outcome in outcomes)),
                f"{100 * accuracy:.2f}",
                f"{seconds:.2f}",
                f"{microseconds:.1f}",
                f"{n_bytes / 1000:,.0f}",
            )
        )
    choices = tuple(
        f"{PEERS[method].title} at its {size}, all defaults: {text}."
        for (method, size), outcomes in by_row.items()
        if (text := describe_choices(outcomes))
    )
    return Table(
        f"Peers on {task}",
        "Best: the size chosen on a held-out fifth of the training samples. The size of the exact "
        "SVM is the multiple of the median bandwidth's gamma, and C.",
        ("method", "size", "test %", "seconds to fit", "µs per row", "kilobytes pickled"),
        tuple(rows),
        choices,
    )
