"""Our defaults on the regressions of the literature on Gaussian processes.

    python -m benchmarks.modern --data FOLDER [set ...] --records FILE

ours      FourierRegressor, all defaults
table     tabular_pipeline("regressor"), all defaults
kernel    kernel ridge regression with an RBF or a Laplacian kernel, tuned by 3 folds on at most
          4,500 of the training rows
boosting  HistGradientBoostingRegressor, defaults

The folder has one file per set, such as ``pol.npz``, with the arrays `X` and `y` of the UCI
repository's tables. Of each, 4/9 of the rows are for training and 3/9 for testing, in `--splits`
random splits, standardised by the training rows. With `--validation` the test rows are left aside,
and a fourth of the training rows is scored instead: this is for choosing settings.

Scores are root mean squared errors in units of the target's standard deviation, the mean over the
splits. `--records` is a file of JSON lines that a run adds to: what it has is not run again, unless
`--again` names the method. Times are of the CPU; set OMP_NUM_THREADS=1.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV

from benchmarks.common import make_parser
from notsorandom import FourierRegressor, tabular_pipeline

SETS = "skillcraft sml airfoil energy pumadyn32nm pol elevators keggdirected".split()
MOST_ROWS = 4500  # of kernel ridge regression
ALPHAS = [1.0, 0.1, 0.01, 0.001, 0.0001]
WIDTHS = np.array([0.03, 0.1, 0.3, 1.0, 3.0])  # times the inverse number of columns

Record = dict[str, Any]


def load_set(folder: Path, name: str, split: int, validation: bool) -> tuple[Any, Any, Any, Any]:
    """Return training samples and targets, then the samples and targets that are scored."""
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


def make_kernel_ridge(n_columns: int) -> Any:
    """Return the grid search of kernel ridge regression."""
    grid = {"alpha": ALPHAS, "gamma": (WIDTHS / n_columns).tolist(), "kernel": ["rbf", "laplacian"]}
    return GridSearchCV(KernelRidge(), grid, cv=3)


def run(method: str, parts: tuple[Any, Any, Any, Any], split: int) -> Record:
    """Fit a method and return its measurements."""
    X, y, X_test, y_test = parts
    start = time.process_time()
    if method == "ours":
        model: Any = FourierRegressor(random_state=split)
    elif method == "table":
        model = tabular_pipeline("regressor", random_state=split)
    elif method == "boosting":
        model = HistGradientBoostingRegressor(random_state=split)
    else:
        X, y, model = X[:MOST_ROWS], y[:MOST_ROWS], make_kernel_ridge(X.shape[1])
    model.fit(X, y)
    seconds = time.process_time() - start
    rmse = float(np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2)))
    record: Record = {"rmse": rmse, "seconds": round(seconds, 2)}
    last = model[-1] if method == "table" else model
    if method in ("ours", "table"):
        names = ("C_", "smoothing_", "spectrum_", "uses_optional_columns_")
        record["chosen"] = {name: getattr(last, name) for name in names}
        record["features"] = last.kernel_.n_components
    elif method == "kernel":
        record["chosen"] = model.best_params_
    return record


def show(records: dict[str, Record], sets: list[str], methods: list[str]) -> None:
    """Print one row per set, with means over the splits."""
    print(
        f"{'set':14}" + "".join(f"{method:>10}{'seconds':>9}" for method in methods), "  features"
    )
    for name in sets:
        line, sizes = f"{name:14}", []
        for method in methods:
            found = [r for r in records.values() if (r["set"], r["method"]) == (name, method)]
            sizes += [r["features"] for r in found if "features" in r]
            rmse, seconds = (np.mean([r[key] for r in found]) for key in ("rmse", "seconds"))
            line += f"{rmse:10.4f}{seconds:9.1f}"
        print(line, "  " + ", ".join(map(str, sizes)))


def main() -> None:
    """Run what the records don't have, and print the comparison."""
    parser = make_parser(__doc__)
    parser.add_argument("sets", nargs="*", metavar="set", help=", ".join(SETS))
    parser.add_argument("--data", type=Path, required=True, help="folder of the files")
    parser.add_argument("--methods", nargs="+", default=["ours", "table", "kernel", "boosting"])
    parser.add_argument("--splits", type=int, default=3, help="default: %(default)s")
    parser.add_argument("--validation", action="store_true", help="score training rows")
    parser.add_argument("--records", type=Path, help="file of JSON lines")
    parser.add_argument("--again", nargs="+", default=[], help="methods to run again")
    options = parser.parse_args()
    sets = options.sets or SETS
    for name in sets:
        if not (options.data / f"{name}.npz").exists():
            parser.error(f"--data {options.data} has no file {name}.npz")
    records: dict[str, Record] = {}
    if options.records is not None and options.records.exists():
        for line in options.records.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            records[record["key"]] = record
    for name in sets:
        for split in range(options.splits):
            for method in options.methods:
                key = f"{name} {split} {method}{' validation' if options.validation else ''}"
                if key in records and method not in options.again:
                    continue
                parts = load_set(options.data, name, split, options.validation)
                record = {"key": key, "set": name, "method": method, **run(method, parts, split)}
                records[key] = record
                print(f"{key}: {record['rmse']:.4f}, {record['seconds']} s", flush=True)
                if options.records is not None:
                    with options.records.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(record) + "\n")
    kept = {
        key: r for key, r in records.items() if key.endswith("validation") == options.validation
    }
    show(kept, sets, options.methods)


if __name__ == "__main__":
    main()
