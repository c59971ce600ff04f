"""Our defaults on data of today: sentence embeddings, text, and regressions with little noise.

    python -m benchmarks.modern --data FOLDER [set ...] --records FILE

ours      FourierClassifier or FourierRegressor, all defaults
whole     FourierRegressor(calibration_size=0): its features are learned from all samples
table     tabular_pipeline("regressor"), all defaults
logistic  LogisticRegression, C of 1, 10 or 100 chosen by 3 folds
svm       SVC, all defaults
kernel    kernel ridge regression with an RBF or a Laplacian kernel, tuned by 3 folds on at most
          4,500 of the training rows
boosting  HistGradientBoostingRegressor, defaults

The folder has one file per set. ``banking77.npz`` and ``trec.npz`` have sentence embeddings of unit
norm `X`, `X_test`, classes `y`, `y_test`, and the sentences `texts`, `texts_test`. The set
``banking77-10`` has ten samples of each class; ``trec-words`` and ``banking77-words`` have the
frequencies of the words (TfidfVectorizer) in place of the embeddings. The other files, such as
``pol.npz``, have the arrays `X` and `y` of the UCI repository's tables. Of these, 4/9 of the rows
are for training and 3/9 for testing, in `--splits` random splits, standardised by the training
rows. With `--validation` the test rows are left aside, and a fourth of the training rows is scored
instead: this is for choosing settings.

Scores of regressions are root mean squared errors in units of the target's standard deviation, the
mean over the splits; of classes accuracy in percent, and log loss. `--records` is a file of JSON
lines that a run adds to: what it has is not run again, unless `--again` names the method. Times are
of the CPU; set OMP_NUM_THREADS=1.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.svm import SVC

from benchmarks.common import make_parser
from notsorandom import FourierClassifier, FourierRegressor, tabular_pipeline

CLASSES = "banking77 banking77-10 trec trec-words banking77-words".split()
REGRESSIONS = "skillcraft sml airfoil energy pumadyn32nm pol elevators keggdirected".split()
METHODS = {
    True: ["ours", "logistic", "svm"],  # of classes
    False: ["ours", "whole", "table", "kernel", "boosting"],
}
SHOTS = 10  # samples of each class in banking77-10
MOST_ROWS = 4500  # of kernel ridge regression
ALPHAS = [1.0, 0.1, 0.01, 0.001, 0.0001]
WIDTHS = np.array([0.03, 0.1, 0.3, 1.0, 3.0])  # times the inverse number of columns
PENALTIES = [1.0, 10.0, 100.0]
CHOSEN = ("C_", "smoothing_", "spectrum_", "uses_optional_columns_", "uses_linear_part_")

Record = dict[str, Any]
Parts = tuple[Any, Any, Any, Any]  # samples and targets for training, and those that are scored


def load_regression(folder: Path, name: str, split: int, validation: bool) -> Parts:
    """Return standardised samples and targets."""
    file = np.load(folder / f"{name}.npz")
    X, y = file["X"].astype(float), file["y"].astype(float)
    X = X[:, X.std(axis=0) > 0]
    order = np.random.default_rng(split).permutation(len(y))
    train, test = order[: len(y) * 4 // 9], order[len(y) * 6 // 9 :]
    if validation:
        train, test = np.split(train, [len(train) * 3 // 4])
    deviations = X[train].std(axis=0)
    X = (X - X[train].mean(axis=0)) / np.where(deviations > 0, deviations, 1)
    y = (y - y[train].mean()) / y[train].std()
    return X[train], y[train], X[test], y[test]


def load_classes(folder: Path, name: str, split: int, validation: bool) -> Parts:
    """Return embeddings or frequencies of words, and class labels."""
    base, _, form = name.partition("-")
    file = np.load(folder / f"{base}.npz")
    key = "texts" if form == "words" else "X"
    X, y, X_test, y_test = file[key], file["y"], file[f"{key}_test"], file["y_test"]
    rng = np.random.default_rng(split)
    if validation:
        X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, random_state=split)
    if form == str(SHOTS):
        members = [rng.permutation(np.flatnonzero(y == each))[:SHOTS] for each in np.unique(y)]
        X, y = X[np.concatenate(members)], y[np.concatenate(members)]
    if form == "words":
        words = TfidfVectorizer(sublinear_tf=True).fit(X)
        return words.transform(X), y, words.transform(X_test), y_test
    X, X_test = (each.astype(np.float32) for each in (X, X_test))
    X, X_test = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in (X, X_test))
    return X, y, X_test, y_test


def make_model(method: str, X: Any, is_regression: bool, split: int) -> Any:
    """Return the model of a method."""
    if method == "ours":
        ours = FourierRegressor if is_regression else FourierClassifier
        return ours(random_state=split)
    if method == "whole":
        return FourierRegressor(calibration_size=0, random_state=split)
    if method == "table":
        return tabular_pipeline("regressor", random_state=split)
    if method == "boosting":
        return HistGradientBoostingRegressor(random_state=split)
    if method == "svm":
        return SVC()
    if method == "logistic":
        model = LogisticRegression(max_iter=1000)
        return GridSearchCV(model, {"C": PENALTIES}, cv=3, scoring="neg_log_loss")
    gammas = (WIDTHS / X.shape[1]).tolist()
    grid = {"alpha": ALPHAS, "gamma": gammas, "kernel": ["rbf", "laplacian"]}
    return GridSearchCV(KernelRidge(), grid, cv=3)


def run(method: str, parts: Parts, is_regression: bool, split: int) -> Record:
    """Fit a method and return its measurements."""
    X, y, X_test, y_test = parts
    if method == "kernel":
        X, y = X[:MOST_ROWS], y[:MOST_ROWS]
    model = make_model(method, X, is_regression, split)
    start = time.process_time()
    model.fit(X, y)
    record: Record = {"seconds": round(time.process_time() - start, 2)}
    if is_regression:
        record["rmse"] = float(np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2)))
    else:
        record["accuracy"] = 100 * float(np.mean(model.predict(X_test) == y_test))
    if hasattr(model, "predict_proba"):
        probabilities = np.asarray(model.predict_proba(X_test), dtype=np.float64)
        record["log_loss"] = float(log_loss(y_test, probabilities, labels=model.classes_))
    last = model[-1] if method == "table" else model
    if method in ("ours", "whole", "table"):
        record["chosen"] = {name: getattr(last, name) for name in CHOSEN}
        record["features"] = last.kernel_.n_components
    elif isinstance(model, GridSearchCV):
        record["chosen"] = model.best_params_
    return record


def show(records: list[Record], sets: list[str], methods: list[str]) -> None:
    """Print one row per set, with means over the splits."""
    for name in sets:
        line = f"{name:16}"
        for method in methods:
            found = [each for each in records if (each["set"], each["method"]) == (name, method)]
            if not found:
                continue
            means = {
                key: float(np.mean([each[key] for each in found]))
                for key in ("rmse", "accuracy", "log_loss", "seconds")
                if key in found[0]
            }
            numbers = ", ".join(
                f"{value:.4f}" if key in ("rmse", "log_loss") else f"{value:.2f}"
                for key, value in means.items()
            )
            sizes = [str(each["features"]) for each in found if "features" in each]
            line += f"  {method} {numbers}" + (f" ({', '.join(sizes)})" if sizes else "")
        print(line)


def main() -> None:
    """Run what the records don't have, and print the comparison."""
    parser = make_parser(__doc__)
    parser.add_argument("sets", nargs="*", metavar="set", help=", ".join(CLASSES + REGRESSIONS))
    parser.add_argument("--data", type=Path, required=True, help="folder of the files")
    parser.add_argument("--methods", nargs="+", help="default: all")
    parser.add_argument("--splits", type=int, default=3, help="default: %(default)s")
    parser.add_argument("--validation", action="store_true", help="score training rows")
    parser.add_argument("--records", type=Path, help="file of JSON lines")
    parser.add_argument("--again", nargs="+", default=[], help="methods to run again")
    options = parser.parse_args()
    sets = options.sets or CLASSES + REGRESSIONS
    for name in sets:
        if not (options.data / f"{name.partition('-')[0]}.npz").exists():
            parser.error(f"--data {options.data} has no file {name.partition('-')[0]}.npz")
    records: dict[str, Record] = {}
    if options.records is not None and options.records.exists():
        for line in options.records.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            records[record["key"]] = record
    wanted: list[Record] = []
    for name in sets:
        is_class = name in CLASSES
        methods = [each for each in METHODS[is_class] if each in (options.methods or [each])]
        # Only regressions, and the few samples of a class, are drawn anew in every split.
        n_splits = options.splits if not is_class or name.endswith(str(SHOTS)) else 1
        load = load_classes if is_class else load_regression
        for split, method in ((k, each) for k in range(n_splits) for each in methods):
            key = f"{name} {split} {method}{' validation' if options.validation else ''}"
            if key not in records or method in options.again:
                parts = load(options.data, name, split, options.validation)
                found = run(method, parts, not is_class, split)
                records[key] = {"key": key, "set": name, "method": method, **found}
                print(f"{key}: {found}", flush=True)
                if options.records is not None:
                    with options.records.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(records[key]) + "\n")
            wanted.append(records[key])
    show(wanted, sets, options.methods or [*METHODS[True], *METHODS[False][1:]])


if __name__ == "__main__":
    main()
