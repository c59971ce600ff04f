"""Intervals and standard deviations of regressions: coverage, width, likelihood, quantiles.

    python -m benchmarks.intervals --data FOLDER [set ...]
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
in the mean of 20 fits. Times are of the CPU; set OMP_NUM_THREADS=1.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.metrics import mean_pinball_loss

from benchmarks.common import add_record_options, make_parser, mean_of, run_recorded
from benchmarks.modern_data import REGRESSIONS, Split, load_regression
from experiments.records import Config, Record
from experiments.tables import Table
from notsorandom import FourierRegressor

COVERAGES = (0.5, 0.8, 0.9, 0.95)
QUANTILES = (0.1, 0.5, 0.9)
PROCESS_ROWS, PARAMETER_ROWS = 2000, 500
MADE_ROWS, NEW_ROWS, MADE_FITS = 1000, 20_000, 20
MADE = ("normal", "skewed", "outliers", "depends on the sample", "weights")
N_SPLITS = 3
TOO_LONG = {("keggdirected", "pinball")}  # more than eight minutes a fit

KINDS = ("ours", "conformal", "boosting")  # of intervals
COVERED = f"covered at {', '.join(f'{100 * coverage:.0f}' for coverage in COVERAGES)} %"

Outcome = dict[str, Any]
Mean = Callable[..., Any]  # `mean_of` some records


def run_ours(parts: Split, split: int) -> Outcome:
    """Return coverage, mean widths and the mean negative log-likelihood."""
    X, X_test, y, y_test = parts
    start = time.process_time()
    model = FourierRegressor(random_state=split).fit(X, y)
    record: Outcome = {"seconds": round(time.process_time() - start, 2)}
    intervals = model.predict_interval(X_test, COVERAGES)
    mean, deviation = model.predict(X_test, return_std=True)
    return record | measure(y_test, intervals) | likelihood(y_test, mean, deviation)


def run_plain(parts: Split, split: int) -> Outcome:
    """Return the error of a model whose features are learned from all rows."""
    X, X_test, y, y_test = parts
    start = time.process_time()
    model = FourierRegressor(calibration_size=0, random_state=split).fit(X, y)
    seconds = round(time.process_time() - start, 2)
    error = np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2))
    return {"seconds": seconds, "rmse": float(error)}


def run_boosting(parts: Split, split: int) -> Outcome:
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


def run_conformal(parts: Split, split: int) -> Outcome:
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


def run_process(parts: Split, split: int) -> Outcome:
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


def run_pinball(parts: Split, split: int) -> Outcome:
    """Return the pinball losses of both quantile regressions."""
    X, X_test, y, y_test = parts
    record: Outcome = {}
    for name, kind in (("ours", FourierRegressor), ("boosting", HistGradientBoostingRegressor)):
        losses = []
        for quantile in QUANTILES:
            model: Any = kind(loss="quantile", quantile=quantile, random_state=split)
            predicted = model.fit(X, y).predict(X_test)
            losses.append(float(mean_pinball_loss(y_test, predicted, alpha=quantile)))
        record[name] = losses
    return record


def measure(y: Any, intervals: Any) -> Outcome:
    """Return coverage and mean width of intervals of shape (n_samples, 2, n_coverages)."""
    inside = (y[:, None] >= intervals[:, 0]) & (y[:, None] <= intervals[:, 1])
    widths = np.mean(intervals[:, 1] - intervals[:, 0], axis=0)
    return {"coverage": inside.mean(axis=0).tolist(), "width": widths.tolist()}


def likelihood(y: Any, mean: Any, deviation: Any) -> Outcome:
    """Return the mean negative log-likelihood of Gaussians, and the root mean squared error."""
    squares = np.square(y - mean)
    losses = 0.5 * np.log(2 * np.pi * np.square(deviation)) + squares / (2 * np.square(deviation))
    return {"nll": float(losses.mean()), "rmse": float(np.sqrt(squares.mean()))}


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


def run_made(kind: str, seed: int) -> Outcome:
    """Return the coverage of intervals on made data."""
    rng = np.random.default_rng(seed)
    X, y, weights = make_data(kind, MADE_ROWS, rng)
    model = FourierRegressor(random_state=seed).fit(X, y, weights)
    X_new, y_new, weights = make_data(kind, NEW_ROWS, rng)
    limits = model.predict_interval(X_new, COVERAGES)
    inside = (y_new[:, None] >= limits[:, 0]) & (y_new[:, None] <= limits[:, 1])
    return {"coverage": np.average(inside, axis=0, weights=weights).tolist()}


RUNS = {
    "ours": run_ours,
    "plain": run_plain,
    "boosting": run_boosting,
    "conformal": run_conformal,
    "process": run_process,
    "pinball": run_pinball,
}
load = lru_cache(maxsize=1)(load_regression)  # consecutive runs use the same data


def run(config: Config, data: Path | None) -> Outcome:
    """Return the outcome of a configuration."""
    if "noise" in config:
        return run_made(config["noise"], config["seed"])
    assert data is not None  # `main` asks for it
    parts = load(data, config["set"], config["split"], validation=False)
    return {"rows": len(parts.y)} | RUNS[config["method"]](parts, config["split"])


def set_configs(
    sets: Sequence[str] = REGRESSIONS, methods: Sequence[str] = tuple(RUNS)
) -> list[Config]:
    """Return the runs on real data."""
    return [
        {"kind": "intervals", "set": name, "split": split, "method": method}
        for name in sets
        for split in range(N_SPLITS)
        for method in methods
        if (name, method) not in TOO_LONG
    ]


def made_configs() -> list[Config]:
    """Return the runs on made data."""
    return [
        {"kind": "intervals", "noise": noise, "seed": seed}
        for noise in MADE
        for seed in range(MADE_FITS)
    ]


def published_configs() -> list[Config]:
    """Return all runs of the tables in the documentation."""
    return [*set_configs(), *made_configs()]


def make_tables(records: Sequence[Record]) -> list[Table]:
    """Return coverage and widths, likelihoods and quantiles on sets, and coverage on made data."""
    mean = partial(mean_of, records)
    sets = list(dict.fromkeys(name for each in records if (name := each["config"].get("set"))))
    made = [noise for noise in MADE if not np.isnan(mean("coverage", noise=noise)).all()]
    tables = [coverage_table(mean, sets), loss_table(mean, sets), held_out_table(mean, sets)]
    covered = [(noise, percentages(mean("coverage", noise=noise))) for noise in made]
    caption = f"{MADE_ROWS:,} training samples, mean of {MADE_FITS} fits."
    tables.append(Table("Made data", caption, ("noise", COVERED), tuple(covered)))
    return [table for table in tables if table.rows or table.notes]


def percentages(shares: Any) -> str:
    """Return shares in percent."""
    return ", ".join(f"{100 * share:.1f}" for share in np.atleast_1d(shares))


def coverage_table(mean: Mean, sets: Sequence[str]) -> Table:
    """Return coverage of ours, and widths of three kinds of intervals."""
    at90 = COVERAGES.index(0.9)
    rows = []
    for name in sets:
        widths, covered = (
            [np.broadcast_to(mean(key, set=name, method=method), 4)[at90] for method in KINDS]
            for key in ("width", "coverage")
        )
        rows.append(
            (
                name,
                f"{mean('rows', set=name):,.0f}",
                percentages(mean("coverage", set=name, method="ours")),
                *(f"{width:.3f}" for width in widths[:2]),
                f"{widths[2]:.3f}, covers {100 * covered[2]:.1f}",
            )
        )
    caption = (
        f"Means of {N_SPLITS} splits; widths in units of the target's standard deviation. Split "
        "conformal: a fifth of the rows of `HistGradientBoostingRegressor` held out. Two "
        "quantiles: two such models with the pinball loss, as they are."
    )
    headers = ("", "training rows", COVERED, "width at 90 %", "split conformal", "two quantiles")
    return Table("Coverage", caption, headers, tuple(rows))


def loss_table(mean: Mean, sets: Sequence[str]) -> Table:
    """Return negative log-likelihoods beside a Gaussian process, pinball losses beside boosting."""
    rows = []
    for name in sets:
        cells = []
        for pair in (
            [mean("nll", set=name, method=method) for method in ("ours", "process")],
            [np.mean(mean(key, set=name, method="pinball")) for key in ("ours", "boosting")],
        ):
            least = f"{min(pair):.3f}"
            for loss in pair:
                text = f"{loss:.3f}"
                cells.append("" if np.isnan(loss) else f"**{text}**" if text == least else text)
        rows.append((name, *cells))
    caption = (
        "Negative log-likelihood of normal distributions with mean and deviation of ours, and of a "
        f"`GaussianProcessRegressor` on at most {PROCESS_ROWS:,} rows; pinball losses of "
        '`loss="quantile"`, mean of the quantiles '
        f"{', '.join(map(str, QUANTILES))}, and of `HistGradientBoostingRegressor` with it. Empty: "
        "a fit of ours takes more than eight minutes, so it was not run."
    )
    headers = ("", "likelihood, ours", "process", "pinball, ours", "boosting")
    return Table("Losses", caption, headers, tuple(rows))


def held_out_table(mean: Mean, sets: Sequence[str]) -> Table:
    """Return a sentence about errors with and without held-out samples."""
    ratios = [
        mean("rmse", set=name, method="ours") / mean("rmse", set=name, method="plain")
        for name in sets
    ]
    if not ratios:
        return Table("Held-out samples")
    sentence = (
        f"On {len(ratios)} regressions the error with held-out samples is {min(ratios):.2f} to "
        f"{max(ratios):.2f} times that without, and smaller on "
        f"{sum(ratio < 1 for ratio in ratios)} (`python -m benchmarks.intervals`)."
    )
    return Table("Held-out samples", notes=(sentence,))


def main() -> None:
    """Run what the records don't have, and print the tables."""
    parser = make_parser(__doc__)
    parser.add_argument("sets", nargs="*", metavar="set", help=", ".join(REGRESSIONS))
    parser.add_argument("--data", type=Path, help="folder of the files")
    parser.add_argument("--made", action="store_true", help="made data instead")
    parser.add_argument("--methods", nargs="+", choices=RUNS, default=list(RUNS))
    add_record_options(parser)
    options = parser.parse_args()
    if not options.made and (options.data is None or not options.data.is_dir()):
        parser.error(f"--data {options.data} is no folder: give that of the sets, or --made")
    sets = options.sets or REGRESSIONS
    configs = made_configs() if options.made else set_configs(sets, options.methods)
    run_recorded("intervals", configs, partial(run, data=options.data), make_tables, options)


if __name__ == "__main__":
    main()
