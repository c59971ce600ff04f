"""Comparisons of methods over the tables of `benchmarks.tables`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.table_data import REGRESSIONS
from experiments.records import Record
from experiments.tables import Table

MANY = 500  # test rows, from which one table alone is judged
LEVEL = 0.2  # points
CALIBRATED = 0.05  # calibration error
OURS = {
    "ours": "all defaults",
    "table": "`tabular_pipeline`, all defaults",
    "ours500": "500 features",
}
OTHERS = ("tuned", "boosting", "calibrated")
DEFAULTS = "the same with its defaults"  # of a method with changed parameters


class Results:
    """Measurements by table and method, a list with one for each split.

    A method with changed parameters has them in its name.
    """

    def __init__(self, records: Sequence[Record]) -> None:
        self.splits: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for record in records:
            config = record["config"]
            method = " ".join([config["method"], *config.get("parameters", [])])
            self.splits[config["table"], method] = record["outcome"]["splits"]
        self.tables = list(dict.fromkeys(table for table, _ in self.splits))
        self.methods = list(dict.fromkeys(method for _, method in self.splits))
        self.ours = [method for method in self.methods if method not in OTHERS]

    def kind(self, is_regression: bool) -> list[str]:
        """Return the classifications or the regressions."""
        return [table for table in self.tables if (table in REGRESSIONS) == is_regression]

    def large(self, tables: Sequence[str]) -> list[str]:
        """Return the tables that have enough test rows to be judged alone."""
        rows = {table: splits[0]["n_test"] for (table, _), splits in self.splits.items()}
        return [table for table in tables if rows[table] >= MANY]

    def values(self, table: str, method: str, name: str) -> list[float]:
        """Return a measurement in each split, nothing if there is none."""
        splits = self.splits.get((table, method), [])
        return [split[name] for split in splits if name in split]

    def mean(self, table: str, method: str, name: str) -> float:
        """Return the mean over splits, NaN if there is none."""
        values = self.values(table, method, name)
        return float(np.mean(values)) if values else np.nan

    def gains(
        self, tables: Sequence[str], method: str, other: str
    ) -> dict[str, tuple[float, float]]:
        """Return mean gains in score over another method, and their errors, where both ran."""
        return {
            table: paired_gain(ours, others)
            for table in tables
            if (ours := self.values(table, method, "score"))
            and (others := self.values(table, other, "score"))
        }


def paired_gain(ours: Sequence[float], others: Sequence[float]) -> tuple[float, float]:
    """Return the mean difference over the splits and its standard error, 0 for one split."""
    gains = np.subtract(ours, others)
    error = gains.std(ddof=1) / len(gains) ** 0.5 if len(gains) > 1 else 0.0
    return float(gains.mean()), float(error)


def mean_and_error(gains: dict[str, tuple[float, float]]) -> tuple[float, float]:
    """Return the mean of gains over tables and its standard error."""
    means = [mean for mean, _ in gains.values()]
    return paired_gain(means, [0.0] * len(means))


def time_ratio(results: Results, method: str, other: str) -> float:
    """Return the median over tables of the ratio of CPU seconds, NaN if there is none."""
    ratios = [
        results.mean(table, method, "cpu") / results.mean(table, other, "cpu")
        for table in results.gains(results.tables, method, other)
    ]
    return float(np.median(ratios)) if ratios else np.nan


def difference_table(results: Results) -> Table:
    """Return what ours gain over the other methods, a column for each of ours."""
    rows = []
    for is_regression in (False, True):
        tables = results.kind(is_regression)
        for other in ("tuned", "boosting", DEFAULTS):
            cells = []
            for method in results.ours:
                base = method.split()[0] if other == DEFAULTS else other
                gains = results.gains(tables, method, base) if method != base else {}
                mean, error = mean_and_error(gains) if gains else (np.nan, np.nan)
                n_level = sum(gain >= -max(LEVEL, spread) for gain, spread in gains.values())
                known = f"{mean:+.2f} ({error:.2f}), ahead or level on {n_level}"
                cells.append(known if gains else "")
            kind = "regressions" if is_regression else "classifications"
            if any(cells):
                rows.append((f"minus {other}, {len(tables)} {kind}", *cells))
    ratios = [time_ratio(results, method, "tuned") for method in results.ours]
    rows.append(
        (
            "CPU time over the time of the grid search, median",
            *("" if np.isnan(ratio) else f"{ratio:.2f}" for ratio in ratios),
        )
    )
    headers = ("", *(OURS.get(method, method) for method in results.ours))
    caption = "Points of accuracy or R^2, with standard errors over tables."
    notes = (*loss_notes(results), *probability_notes(results))
    return Table("Differences", caption, headers, tuple(rows), notes)


def loss_notes(results: Results) -> list[str]:
    """Say on which large regression ours lose most."""
    notes = []
    for other in ("tuned", "boosting"):
        parts = []
        for method in results.ours:
            gains = results.gains(results.large(results.kind(True)), method, other)
            if gains:
                worst = min(gains, key=lambda table: gains[table][0])
                title = OURS.get(method, method)
                parts.append(f"{gains[worst][0]:+.1f} on {worst} ({title})")
        if parts:
            notes.append(
                f"The least gain over {other} on a regression of {MANY} test rows or more: "
                f"{', '.join(parts)}."
            )
    return notes


def better_losses(results: Results, method: str) -> tuple[int, int]:
    """Return on how many tables our log loss is at most that of a calibrated SVM, and of how many.

    Tables without both are not counted.
    """
    pairs = np.array(
        [
            [results.mean(table, name, "log_loss") for name in (method, "calibrated")]
            for table in results.tables
        ]
    )
    pairs = pairs[~np.isnan(pairs).any(axis=1)]
    return int((pairs[:, 0] <= pairs[:, 1]).sum()), len(pairs)


def probability_notes(results: Results) -> list[str]:
    """Compare probabilities with those of a calibrated SVM, and with the shares of right ones."""
    notes = []
    for method in results.ours:
        n_better, n_pairs = better_losses(results, method)
        errors = [
            error
            for table in results.large(results.tables)
            if not np.isnan(error := results.mean(table, method, "calibration_error"))
        ]
        n_calibrated = sum(error <= CALIBRATED for error in errors)
        if n_pairs:
            notes.append(
                f"{OURS.get(method, method)}: log loss at most that of "
                f"`CalibratedClassifierCV(SVC(), ensemble=False)` on {n_better} of {n_pairs}; "
                f"calibration error (10 bins) at most {CALIBRATED} on {n_calibrated} of "
                f"{len(errors)} with {MANY} test rows or more."
            )
    return notes


def score_table(results: Results, caption: str = "", form: str = ".1f") -> Table:
    """Return the scores of all methods, a row for each table."""
    rows = [
        (
            table,
            *(
                "" if np.isnan(mean := results.mean(table, method, "score")) else f"{mean:{form}}"
                for method in results.methods
            ),
        )
        for table in results.tables
    ]
    return Table("Scores", caption, ("", *results.methods), tuple(rows))


def summary(results: Results) -> Table:
    """Return one sentence about all tables."""
    ours, table = (
        mean_and_error(results.gains(results.tables, method, "tuned"))
        for method in ("ours", "table")
    )
    n_better, n_pairs = better_losses(results, "ours")
    sentence = (
        f"{len(results.tables)} real tables, all defaults: {ours[0]:+.2f} points (standard error "
        f"{ours[1]:.2f}) against an SVM or kernel ridge regression that was tuned by grid search, "
        f"in {time_ratio(results, 'ours', 'tuned'):.1f} of the time, and {table[0]:+.2f} "
        f"({table[1]:.2f}) with `tabular_pipeline`; log loss at most that of a calibrated SVM on "
        f"{n_better} of {n_pairs} (`python -m benchmarks.tables`)."
    )
    return Table("Summary", notes=(sentence,))


def make_tables(records: Sequence[Record]) -> list[Table]:
    """Return all comparisons."""
    results = Results(records)
    tables = [score_table(results), difference_table(results)]
    has_all = {"ours", "table", "tuned", "calibrated"} <= {*results.methods}
    return [*tables, summary(results)] if has_all else tables
