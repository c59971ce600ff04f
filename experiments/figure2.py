"""Figure 2 of the paper: accuracy by number of features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments.pairs import METHODS
from experiments.records import Record
from notsorandom.data.rows import Array
from notsorandom.display import ScoreCurveDisplay

DEFAULT_METHODS = ("ours", "rbf", "lkrf")


def draw_figure2(records: Sequence[Record]) -> dict[str, Any]:
    """Draw one figure per task."""
    figures = {}
    for task in dict.fromkeys(record["config"]["task"] for record in records):
        sizes, accuracies = accuracies_by_size(records, task)
        display = ScoreCurveDisplay(sizes, accuracies).plot()
        display.ax_.set_title(f"{task}, {len(next(iter(accuracies.values())))} trials")
        figures[f"figure2-{task}"] = display.figure_
    return figures


def accuracies_by_size(records: Sequence[Record], task: str) -> tuple[Array, dict[str, Array]]:
    """Return sizes, and accuracies of shape (n_trials, n_sizes) by method; NaN if not run."""
    cells = {
        (config["method"], config["seed"], config["n_features"]): record["outcome"]["test_accuracy"]
        for record in records
        if (config := record["config"])["task"] == task
    }
    sizes = sorted({size for _, _, size in cells})
    seeds = sorted({seed for _, seed, _ in cells})
    return np.array(sizes), {
        METHODS[method].title: np.array(
            [[cells.get((method, seed, size), np.nan) for size in sizes] for seed in seeds]
        )
        for method in METHODS
        if any(method == name for name, _, _ in cells)
    }
