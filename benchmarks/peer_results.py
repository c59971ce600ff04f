"""The outcomes of `benchmarks.peers`: kinds of data, ranks, differences and costs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy.stats import gmean, rankdata

from benchmarks.modern_data import EMBEDDINGS, REGRESSIONS, TEXTS
from benchmarks.peer_methods import METHODS
from benchmarks.table_data import RECIPES
from benchmarks.table_report import LEVEL, paired_gain
from experiments.records import Record
from experiments.tasks import TASKS
from notsorandom.data.rows import Array

CLASSES, NUMBERS, EMBEDDED, WORDS, IMAGES = GROUPS = (
    "classification tables",
    "regressions",
    "embeddings",
    "text",
    "image pairs",
)


def group_of(data: str) -> str:
    """Return the group of a data set."""
    if data in RECIPES:
        return NUMBERS if RECIPES[data].is_regression else CLASSES
    groups = {NUMBERS: REGRESSIONS, EMBEDDED: EMBEDDINGS, WORDS: TEXTS, IMAGES: TASKS}
    return next(group for group, names in groups.items() if data in names)


class Comparison:
    """Outcomes by data set and method.

    Parameters
    ----------
    records : sequence of Record
    """

    def __init__(self, records: Sequence[Record]) -> None:
        self.outcomes: dict[tuple[str, str], dict[str, Any]] = {
            (record["config"]["data"], record["config"]["method"]): record["outcome"]
            for record in records
        }
        self.data = list(dict.fromkeys(data for data, _ in self.outcomes))
        present = {method for _, method in self.outcomes}
        self.methods = [method for method in METHODS if method in present]

    def group(self, *groups: str) -> list[str]:
        """Return the data sets of some groups."""
        return [data for data in self.data if group_of(data) in groups]

    def value(self, data: str, method: str, name: str) -> float:
        """Return a measurement, NaN if there is none; scores in points, means over the splits."""
        outcome = self.outcomes.get((data, method), {})
        if name == "score":
            return 100 * float(np.mean(outcome["scores"])) if "scores" in outcome else np.nan
        return float(outcome.get(name, np.nan))

    def values(self, data: Sequence[str], method: str, name: str) -> Array:
        """Return a measurement on all of the data sets that have it."""
        values = np.array([self.value(each, method, name) for each in data])
        return values[~np.isnan(values)]

    @cached_property
    def ranks(self) -> dict[tuple[str, str], tuple[float, int]]:
        """Ranks by score, 1 is the best, and how many methods there are; ties share a rank.

        A method that was over the limit comes last.
        """
        ranks = {}
        for data in self.data:
            methods = [method for method in self.methods if (data, method) in self.outcomes]
            scores = [self.value(data, method, "score") for method in methods]
            for method, rank in zip(
                methods, rankdata(-np.nan_to_num(scores, nan=-np.inf)), strict=True
            ):
                ranks[data, method] = float(rank), len(methods)
        return ranks

    def mean_rank(self, data: Sequence[str], method: str) -> float:
        """Return the mean rank of a method, NaN if it was not compared there."""
        ranks = [self.ranks[each, method][0] for each in data if (each, method) in self.ranks]
        return float(np.mean(ranks)) if ranks else np.nan

    def share_beaten(self, data: Sequence[str], method: str) -> float:
        """Return the mean share of the other methods that a method beats, in percent."""
        ranks = [self.ranks[each, method] for each in data if (each, method) in self.ranks]
        shares = [
            (n_methods - rank) / (n_methods - 1) for rank, n_methods in ranks if n_methods > 1
        ]
        return 100 * float(np.mean(shares)) if shares else np.nan

    def gains(self, data: Sequence[str], method: str, other: str) -> dict[str, tuple[float, float]]:
        """Return by how many points a method is better than another, and what is still level.

        Two methods are level if they differ by at most `LEVEL` points or by one standard error over
        the splits. Data sets without both scores are left out.
        """
        gains = {}
        for each in data:
            ours, others = (self.outcomes.get((each, name), {}) for name in (method, other))
            if "scores" in ours and "scores" in others:
                gain, error = paired_gain(ours["scores"], others["scores"])
                gains[each] = 100 * gain, max(LEVEL, 100 * error)
        return gains

    def against(self, data: Sequence[str], method: str, other: str) -> tuple[int, int, int, Array]:
        """Return on how many data sets a method wins, is level and loses, and all differences."""
        gains, limits = np.reshape([*self.gains(data, method, other).values()], (-1, 2)).T
        wins, losses = int((gains > limits).sum()), int((gains < -limits).sum())
        return wins, len(gains) - wins - losses, losses, gains

    def fit_seconds(self, data: Sequence[str], method: str) -> float:
        """Return the typical CPU seconds of a fit; over the limit they count as the limit."""
        outcomes = [self.outcomes.get((each, method), {}) for each in data]
        seconds = [each.get("fit_cpu", each.get("over_limit")) for each in outcomes if each]
        return typical(np.array(seconds))

    def microseconds(self, data: Sequence[str], method: str) -> float:
        """Return the typical CPU microseconds to predict a row."""
        outcomes = [self.outcomes.get((each, method), {}) for each in data]
        times = [each["predict_cpu"] / each["rows"][1] for each in outcomes if "rows" in each]
        return 1e6 * typical(np.array(times))


def typical(values: Array) -> float:
    """Return the geometric mean, NaN if there are no values."""
    return float(gmean(values)) if len(values) else np.nan
