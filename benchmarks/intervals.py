"""Intervals and standard deviations of regressions: coverage, width, likelihood, quantiles.

    python -m benchmarks.intervals --data FOLDER [set ...] --records FILE
    python -m benchmarks.intervals --made

ours       FourierRegressor().predict_interval and return_std, all defaults
plain      FourierRegressor(calibration_size=0): what held-out rows cost
boosting   HistGradientBoostingRegressor, two quantiles as they are
conformal  HistGradientBoostingRegressor, split-conformal with a fifth of the rows held out
process    GaussianProcessRegressor, RBF kernel with noise, on at most 2000 rows; the parameters of
           the kernel are fitted to 500 of them
pinball    FourierRegressor(loss="quantile") and HistGradientBoostingRegressor(loss="quantile")

The sets are the regressions of `benchmarks.modern_data`, split as there; widths and errors are in
units of the target's standard deviation. `--made` has made data instead, with weights, skewed
noise, outliers, and noise that depends on the sample; coverage there is that of 20,000 new samples,
in the mean of 20 fits. `--records` is a file of JSON lines that a run adds to: what it has is not
run again. Times are of the CPU; set OMP_NUM_THREADS=1.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.metrics import mean_pinball_loss

from benchmarks.common import make_parser
from benchmarks.modern_data import REGRESSIONS, Split, load_regression
from experiments.records import Record
from notsorandom import FourierRegressor

METHODS = ("ours", "plain", "boosting", "conformal", "process", "pinball")
COVERAGES = (0.5, 0.8, 0.9, 0.95)
QUANTILES = (0.1, 0.5, 0.9)
PROCESS_ROWS, PARAMETER_ROWS = 2000, 500
MADE_ROWS, NEW_ROWS, MADE_FITS = 1000, 20_000, 20


def run_ours(parts: Split, split: int) -> Record:
    """Return coverage, mean widths and the mean negative log-likelihood."""
    X, X_test, y, y_test = parts
    start = time.process_time()
    model = FourierRegressor(random_state=split).fit(X, y)
    record: Record = {"seconds": round(time.process_time() - start, 2)}
    intervals = model.predict_interval(X_test, COVERAGES)
    mean, deviation = model.predict(X_test, return_std=True)
    return record | measure(y_test, intervals) | likelihood(y_test, mean, deviation)


def run_plain(parts: Split, split: int) -> Record:
    """Return the error of a model whose features are learned from all rows."""
    X, X_test, y, y_test = parts
    start = time.process_time()
    model = FourierRegressor(calibration_size=0, random_state=split).fit(X, y)
    seconds = round(time.process_time() - start, 2)
    error = np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2))
    return {"seconds": seconds, "rmse": float(error)}


def run_boosting(parts: Split, split: int) -> Record:
    """Return coverage and widths between two quantiles."""
    X, X_test, y, y_test = parts
    limits = []
    for coverage in COVERAGES:
        for quantile in ((1 - coverage) / 2, (1 + coverage) / 2):
            model = HistGradientBoostingRegressor(
                loss="quantile", quantile=quantile, random_state=split
            )
            limits.append(model.fit(X, y).predict(X_test))
    return measure(y_test, np.reshape(limits, (len(COVERAGES), 2, -1)).transpose(2, 1, 0))


def run_conformal(parts: Split, split: int) -> Record:
    """Return coverage and widths of intervals of constant width."""
    X, X_test, y, y_test = parts
    order = np.random.default_rng(split).permutation(len(y))
    held_out, rest = np.split(order, [len(y) // 5])
    model = HistGradientBoostingRegressor(random_state=split).fit(X[rest], y[rest])
    residuals = np.sort(np.abs(y[held_out] - model.predict(X[held_out])))
    ranks = np.ceil((len(residuals) + 1) * np.array(COVERAGES)).astype(int)
    widths = residuals[np.minimum(ranks, len(residuals)) - 1]
    middle = model.predict(X_test)[:, None]
    return measure(y_test, np.stack([middle - widths, middle + widths], axis=1))


def run_process(parts: Split, split: int) -> Record:
    """Return the negative log-likelihood of a Gaussian process."""
    X, X_test, y, y_test = parts
    chosen = np.random.default_rng(split).permutation(len(y))[:PROCESS_ROWS]
    few = chosen[:PARAMETER_ROWS]
    start = time.process_time()
    kernel = ConstantKernel() * RBF(np.sqrt(X.shape[1])) + WhiteKernel(0.1)
    found = GaussianProcessRegressor(kernel, normalize_y=True).fit(X[few], y[few])
    model = GaussianProcessRegressor(found.kernel_, optimizer=None, normalize_y=True)
    model.fit(X[chosen], y[chosen])
    record = {"seconds": round(time.process_time() - start, 2)}
    return record | likelihood(y_test, *model.predict(X_test, return_std=True))


def run_pinball(parts: Split, split: int) -> Record:
    """Return the pinball losses of both quantile regressions."""
    X, X_test, y, y_test = parts
    record: Record = {}
    for name, kind in (("ours", FourierRegressor), ("boosting", HistGradientBoostingRegressor)):
        losses = []
        for quantile in QUANTILES:
            model: Any = kind(loss="quantile", quantile=quantile, random_state=split)
            predicted = model.fit(X, y).predict(X_test)
            losses.append(float(mean_pinball_loss(y_test, predicted, alpha=quantile)))
        record[name] = losses
    return record


def measure(y: Any, intervals: Any) -> Record:
    """Return coverage and mean width of intervals of shape (n_samples, 2, n_coverages)."""
    inside = (y[:, None] >= intervals[:, 0]) & (y[:, None] <= intervals[:, 1])
    widths = np.mean(intervals[:, 1] - intervals[:, 0], axis=0)
    return {"coverage": inside.mean(axis=0).tolist(), "width": widths.tolist()}


def likelihood(y: Any, mean: Any, deviation: Any) -> Record:
    """Return the mean negative log-likelihood of Gaussians, and the root mean squared error."""
    squares = np.square(y - mean)
    losses = 0.5 * np.log(2 * np.pi * np.square(deviation)) + squares / (2 * np.square(deviation))
    return {"nll": float(losses.mean()), "rmse": float(np.sqrt(squares.mean()))}


def show(records: dict[str, Record], sets: Sequence[str], splits: int) -> None:
    """Print the tables, with means over the splits."""

    def mean(name: str, method: str, key: str) -> Any:
        found = [records.get(f"{name} {split} {method}", {}).get(key) for split in range(splits)]
        known = [each for each in found if each is not None]
        return np.mean(known, axis=0) if known else np.full(len(COVERAGES), np.nan)

    titles = [f"{coverage:.0%}" for coverage in COVERAGES]
    print(f"{'coverage of ours in %':22}{'  '.join(titles)}   width at 90 %: ours, conformal, two")
    for name in sets:
        cells = "  ".join(f"{100 * each:4.1f}" for each in mean(name, "ours", "coverage"))
        widths = [mean(name, method, "width")[2] for method in ("ours", "conformal", "boosting")]
        two = 100 * mean(name, "boosting", "coverage")[2]
        numbers = "  ".join(f"{each:.3f}" for each in widths)
        print(f"{name:22}{cells}   {numbers} (covers {two:.1f})")
    print("negative log-likelihood and error of ours, of the process; error of plain; seconds")
    shown = [("ours", "nll"), ("ours", "rmse"), ("process", "nll"), ("process", "rmse")]
    shown += [("plain", "rmse"), ("ours", "seconds"), ("plain", "seconds")]
    for name in sets:
        print(f"{name:14}" + "  ".join(f"{np.mean(mean(name, *each)):7.4f}" for each in shown))
    print("pinball losses at 0.1, 0.5, 0.9 of ours, and of boosting")
    for name in sets:
        ours, boosting = (mean(name, "pinball", key) for key in ("ours", "boosting"))
        cells = "  ".join(f"{each:.4f}" for each in (*ours, *boosting))
        print(f"{name:14}{cells}   mean {np.mean(ours):.4f}  {np.mean(boosting):.4f}")


def make_data(kind: str, n_rows: int, rng: np.random.Generator) -> tuple[Any, Any, Any]:
    """Return samples, targets and weights."""
    X = rng.uniform(-3, 3, size=(n_rows, 2))
    signal, weights = np.sin(2 * X[:, 0]) * X[:, 1], np.ones(n_rows)
    noise = rng.normal(scale=0.3, size=n_rows)
    if kind == "skewed":
        noise = 0.3 * (rng.exponential(size=n_rows) - 1)
    elif kind == "outliers":
        noise = np.where(rng.random(n_rows) < 0.02, 20 * noise, noise)
    elif kind == "depends on the sample":
        noise = noise * (0.2 + np.abs(X[:, 0]))
    elif kind == "weights":
        # Drawn too often where the noise is small, which the weights make up for.
        weights = np.where(X[:, 0] > 0, 1.0, 3.0)
        noise = np.where(X[:, 0] > 0, 0.3 * noise, noise)
    return X, signal + noise, weights


def show_made() -> None:
    """Print the coverage of intervals on made data."""
    print(f"{'coverage in %':24}" + "  ".join(f"{each:.0%}" for each in COVERAGES))
    for kind in ("normal", "skewed", "outliers", "depends on the sample", "weights"):
        found = []
        for number in range(MADE_FITS):
            rng = np.random.default_rng(number)
            X, y, weights = make_data(kind, MADE_ROWS, rng)
            model = FourierRegressor(random_state=number).fit(X, y, weights)
            X_new, y_new, weights = make_data(kind, NEW_ROWS, rng)
            limits = model.predict_interval(X_new, COVERAGES)
            inside = (y_new[:, None] >= limits[:, 0]) & (y_new[:, None] <= limits[:, 1])
            found.append(np.average(inside, axis=0, weights=weights))
        print(f"{kind:24}" + "  ".join(f"{100 * each:4.1f}" for each in np.mean(found, axis=0)))


def main() -> None:
    """Run what the records don't have, and print the tables."""
    parser = make_parser(__doc__)
    parser.add_argument("sets", nargs="*", metavar="set", help=", ".join(REGRESSIONS))
    parser.add_argument("--data", type=Path, help="folder of the files")
    parser.add_argument("--made", action="store_true", help="made data instead")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--splits", type=int, default=3, help="default: %(default)s")
    parser.add_argument("--records", type=Path, help="file of JSON lines")
    options = parser.parse_args()
    if options.made:
        return show_made()
    if options.data is None or not options.data.is_dir():
        parser.error(f"--data {options.data} is no folder: give that of the sets, or --made")
    sets, records = options.sets or REGRESSIONS, dict[str, Record]()
    if options.records is not None and options.records.exists():
        for line in options.records.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            records[record["key"]] = record
    for name, split in ((name, split) for name in sets for split in range(options.splits)):
        parts = load_regression(options.data, name, split, validation=False)
        for method in options.methods:
            key = f"{name} {split} {method}"
            if key in records:
                continue
            records[key] = {"key": key} | globals()[f"run_{method}"](parts, split)
            print(records[key], flush=True)
            if options.records is not None:
                with options.records.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(records[key]) + "\n")
    return show(records, sets, options.splits)


if __name__ == "__main__":
    main()
