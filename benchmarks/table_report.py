"""Comparisons of methods over the tables of `benchmarks.tables`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.table_data import RealTable
from experiments.tables import Table

MANY = 500  # test rows, from which one table alone is judged
LEVEL = 0.2  # points
CALIBRATED = 0.05  # calibration error

Record = dict[str, Any]


class Results:
    """Measurements by table, method and name, one number for each split."""

    def __init__(self) -> None:
        self.values: dict[tuple[str, str, str], list[float]] = defaultdict(list)
        self.n_test: dict[str, int] = {}
        self.is_regression: dict[str, bool] = {}

    def add(self, table: RealTable, method: str, record: Record) -> None:
        """Add the record of one split."""
        self.n_test[table.name] = record["n_test"]
        self.is_regression[table.name] = table.is_regression
        for name in ("score", "cpu", "log_loss", "calibration_error"):
            if name in record:
                self.values[table.name, method, name].append(record[name])

    def mean(self, table: str, method: str, name: str) -> float:
        """Return the mean over splits, NaN if there is none."""
        values = self.values.get((table, method, name))
        return float(np.mean(values)) if values else np.nan

    def gain(self, table: str, method: str, other: str) -> tuple[float, float]:
        """Return the mean gain in score over another method, and its standard error."""
        ours, others = (self.values.get((table, name, "score"), []) for name in (method, other))
        if not ours or len(ours) != len(others):
            return np.nan, np.nan
        return paired_gain(ours, others)


def paired_gain(ours: Sequence[float], others: Sequence[float]) -> tuple[float, float]:
    """Return the mean difference over the splits and its standard error, 0 for one split."""
    gains = np.subtract(ours, others)
    error = gains.std(ddof=1) / len(gains) ** 0.5 if len(gains) > 1 else 0.0
    return float(gains.mean()), float(error)


def show_scores(results: Results, methods: Sequence[str]) -> None:
    """Print scores and seconds of all methods, one row a table."""
    rows = []
    for table, n_test in results.n_test.items():
        cells = [table, "R^2" if results.is_regression[table] else "accuracy", str(n_test)]
        for name, form in (("score", ".1f"), ("cpu", ".2f")):
            means = [results.mean(table, method, name) for method in methods]
            cells += ["" if np.isnan(mean) else format(mean, form) for mean in means]
        gain, error = results.gain(table, "ours", "tuned")
        spread = f" ({error:.1f})" if error else ""  # one split has none
        rows.append((*cells, "" if np.isnan(gain) else f"{gain:+.1f}{spread}"))
    headers = ["table", "score", "test rows", *methods, *(f"{method}, s" for method in methods)]
    headers.append("ours - tuned (se)")
    print(Table("Tables", "", tuple(headers), tuple(rows)).markdown())


def compare(
    results: Results, tables: Sequence[str], method: str, other: str
) -> tuple[str, ...] | None:
    """Return the cells that compare two methods, None if no table has both."""
    gains = {table: results.gain(table, method, other) for table in tables}
    gains = {table: pair for table, pair in gains.items() if not np.isnan(pair[0])}
    if not gains:
        return None
    means, errors = np.array(list(gains.values())).T
    seconds = np.array(
        [[results.mean(table, name, "cpu") for table in gains] for name in (method, other)]
    )
    n_level = int((means >= -np.maximum(LEVEL, errors)).sum())
    error = means.std(ddof=1) / len(means) ** 0.5 if len(means) > 1 else np.nan
    large = {table: gains[table][0] for table in gains if results.n_test[table] > MANY}
    worst = min(large, key=large.__getitem__, default=None)
    return (
        f"{method} - {other}",
        f"{means.mean():+.2f} ({error:.2f})",
        f"{np.median(means):+.2f}",
        f"{n_level} of {len(gains)}",
        f"{large[worst]:+.1f} {worst}" if worst else "",
        f"{np.median(seconds[0] / seconds[1]):.2f}",
        f"{seconds[0].sum() / seconds[1].sum():.2f}",
    )


def show_gains(results: Results, methods: Sequence[str], ours: Sequence[str]) -> None:
    """Print what ours gain over each other method, for all tables and for each kind."""
    pairs = [(a, b) for i, a in enumerate(ours) for b in methods if b not in ours[i:]]
    worst = f"worst above {MANY} test rows"
    ratios = ("seconds, median ratio", "ratio of sums")
    headers = ("", "mean (se)", "median", "ahead or level", worst, *ratios)
    kinds = {"All tables": (False, True), "Classification": (False,), "Regression": (True,)}
    for title, kind in kinds.items():
        tables = [table for table in results.n_test if results.is_regression[table] in kind]
        rows = [compare(results, tables, *pair) for pair in pairs]
        known = tuple(row for row in rows if row is not None)
        if known:
            print("\n" + Table(title, "Gains in points.", headers, known).markdown())


def show_probabilities(results: Results, methods: Sequence[str]) -> None:
    """Print log loss and calibration error of the methods that have probabilities."""
    rows = []
    known = {method for _, method, name in results.values if name == "log_loss"}
    methods = [method for method in methods if method in known]
    for table, n_test in results.n_test.items():
        losses = [results.mean(table, method, "log_loss") for method in methods]
        errors = [results.mean(table, method, "calibration_error") for method in methods]
        if not np.isnan(losses).all():
            cells = ("" if np.isnan(value) else f"{value:.3f}" for value in (*losses, *errors))
            rows.append((table, str(n_test), *cells))
    if rows:
        headers = ["table", "test rows", *(f"{method}, log loss" for method in methods)]
        headers += [f"{method}, calibration error" for method in methods]
        print("\n" + Table("Probabilities", "", tuple(headers), tuple(rows)).markdown())


def show_calibration(results: Results, ours: Sequence[str]) -> None:
    """Print how often our probabilities are as good as the probabilities of a calibrated SVC."""
    for method in ours:
        pairs = np.array(
            [
                [results.mean(table, name, "log_loss") for name in (method, "calibrated")]
                for table in results.n_test
            ]
        )
        pairs = pairs[~np.isnan(pairs).any(axis=1)]
        errors = {
            table: results.mean(table, method, "calibration_error")
            for table, n_test in results.n_test.items()
            if n_test >= MANY
        }
        errors = {table: error for table, error in errors.items() if not np.isnan(error)}
        if len(pairs):
            n_better = (pairs[:, 0] <= pairs[:, 1]).sum()
            gain = (pairs[:, 0] - pairs[:, 1]).mean()
            print(f"\n{method}: log loss not above calibrated on {n_better} of {len(pairs)}")
            print(f"tables, mean difference {gain:+.3f}")
        if errors:
            worst = max(errors, key=errors.__getitem__)
            n_calibrated = sum(error <= CALIBRATED for error in errors.values())
            print(f"{method}: calibration error at most {CALIBRATED} on {n_calibrated} of", end=" ")
            print(f"{len(errors)} tables of {MANY} test rows, worst {errors[worst]:.3f} ({worst})")


def show(results: Results, methods: Sequence[str], ours: Sequence[str]) -> None:
    """Print all comparisons of the methods, some of which are ours."""
    ours = [method for method in methods if method in ours]
    show_scores(results, methods)
    show_gains(results, methods, ours)
    show_probabilities(results, methods)
    show_calibration(results, ours)
