"""Table 1 of the paper: accuracy on eight tasks by method and number of features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments import paper
from experiments.chosen import describe_choices
from experiments.pairs import METHODS, pair_config
from experiments.records import Config, Record
from experiments.tables import Table

DEFAULT_METHODS = ("rbf", "lkrf", "ours", "ours-default")
# A baseline counts as reproduced within this many points of the paper's accuracy.
TOLERANCE = 2.0
# Up to this size ours should exceed the paper in every cell.
SMALL = 500


def table1_configs(
    tasks: Sequence[str], methods: Sequence[str], sizes: Sequence[int], n_seeds: int
) -> list[Config]:
    """Return all fits, ordered by task, so that each task is loaded once, then by size."""
    return [
        pair_config(task, method, size, seed)
        for task in tasks
        for size in sizes
        for method in methods
        for seed in range(n_seeds)
    ]


class Cells:
    """Mean accuracies in percent, by task, method and size."""

    def __init__(self, records: Sequence[Record]) -> None:
        values: dict[tuple[str, str, int], list[float]] = {}
        for record in records:
            config = record["config"]
            cell = config["task"], config["method"], config["n_features"]
            values.setdefault(cell, []).append(100 * record["outcome"]["test_accuracy"])
        self.means = {cell: float(np.mean(each)) for cell, each in values.items()}
        counts = sorted({len(each) for each in values.values()})
        self.n_seeds = " to ".join(str(count) for count in dict.fromkeys(counts[:1] + counts[-1:]))
        self.tasks = list(dict.fromkeys(task for task, _, _ in values))
        self.methods = [name for name in METHODS if any(name == method for _, method, _ in values)]
        self.sizes = sorted({size for _, _, size in values})

    def best(self, task: str, size: int) -> str | None:
        """Return the method with the highest mean, if there are several."""
        means = {
            method: self.means[task, method, size]
            for method in self.methods
            if (task, method, size) in self.means
        }
        return max(means, key=lambda method: means[method]) if len(means) > 1 else None


def paper_accuracy(task: str, method: str, size: int) -> float | None:
    """Return the paper's accuracy in a cell, if it reports one."""
    theirs = METHODS[method].paper
    if theirs is None or task not in paper.TABLE1 or size not in paper.SIZES:
        return None
    return paper.TABLE1[task][theirs][paper.SIZES.index(size)]


def table1_tables(records: Sequence[Record]) -> list[Table]:
    """Return the accuracies, with the paper's in brackets, and what our methods chose."""
    return [accuracy_table(records), *choice_tables(records)]


def accuracy_table(records: Sequence[Record]) -> Table:
    """Return the table with the paper's accuracies in brackets, and a comparison in its notes."""
    cells = Cells(records)
    rows = tuple(
        (
            task,
            METHODS[method].title,
            *(
                cell_text(cells, task, method, size) if (task, method, size) in cells.means else "-"
                for size in cells.sizes
            ),
        )
        for task in cells.tasks
        for method in cells.methods
    )
    settings = [f"{METHODS[name].title}: {METHODS[name].note}." for name in cells.methods]
    return Table(
        "Test accuracy by number of features",
        f"In percent, mean over seeds ({cells.n_seeds}), the paper's in brackets; bold: the best "
        "method on a task at that m.",
        ("task", "method", *(f"m = {size}" for size in cells.sizes)),
        rows,
        (*settings, *compare_with_paper(cells)),
    )


def choice_tables(records: Sequence[Record]) -> list[Table]:
    """Return one table of what our methods chose by trials, if there are any."""
    cells: dict[tuple[str, str], dict[int, list[dict[str, Any]]]] = {}
    for record in records:
        config, outcome = record["config"], record["outcome"]
        if "chosen" in outcome:
            row = cells.setdefault((config["task"], config["method"]), {})
            row.setdefault(config["n_features"], []).append(outcome)
    sizes = sorted({size for row in cells.values() for size in row})
    rows = tuple(
        (
            task,
            METHODS[method].title,
            *(describe_choices(row[size]) if size in row else "-" for size in sizes),
        )
        for (task, method), row in cells.items()
    )
    if not rows:
        return []
    return [
        Table(
            "What ours chose",
            "Spectrum of the search, smoothing and C, over the seeds; given values are shown too.",
            ("task", "method", *(f"m = {size}" for size in sizes)),
            rows,
        )
    ]


def cell_text(cells: Cells, task: str, method: str, size: int) -> str:
    """Return our accuracy, bold if it is the best, and the paper's in brackets."""
    text = f"{cells.means[task, method, size]:.2f}"
    if cells.best(task, size) == method:
        text = f"**{text}**"
    theirs = paper_accuracy(task, method, size)
    return text if theirs is None else f"{text} ({theirs:.2f})"


def compare_with_paper(cells: Cells) -> list[str]:
    """Count the cells in which baselines reproduce the paper, and ours exceeds it."""
    lines = []
    for method in cells.methods:
        pairs = [
            (task, size, mean, theirs)
            for (task, name, size), mean in cells.means.items()
            if name == method and (theirs := paper_accuracy(task, name, size)) is not None
        ]
        if not pairs:
            continue
        title = METHODS[method].title
        if METHODS[method].paper == "ours":
            small = [mean > theirs for _, size, mean, theirs in pairs if size <= SMALL]
            behind = [
                f"{task} at m = {size} ({mean - theirs:.2f})"
                for task, size, mean, theirs in pairs
                if mean <= theirs
            ]
            lines.append(
                f"{title}: above the paper's in {len(pairs) - len(behind)} of {len(pairs)} cells, "
                f"and in {sum(small)} of the {len(small)} with m <= {SMALL}"
                + (f"; not above it on {', '.join(behind)}." if behind else ".")
            )
            means = [
                f"{np.mean([mean for _, one, mean, _ in pairs if one == size]):.2f} at m = {size}"
                for size in cells.sizes
            ]
            lines.append(f"{title}: mean of the tasks {', '.join(means)}.")
        else:
            near = sum(abs(mean - theirs) <= TOLERANCE for *_, mean, theirs in pairs)
            lines.append(
                f"{title}: within {TOLERANCE:.0f} points of the paper's in {near} of "
                f"{len(pairs)} cells."
            )
    return lines


def above_paper(records: Sequence[Record]) -> Table:
    """Return one sentence: all defaults against the paper's figures and many random features."""
    cells = Cells(records)
    ours = [(*cell, mean) for cell, mean in cells.means.items() if cell[1] == "ours-default"]
    pairs = [(mean, paper_accuracy(task, name, size) or 0.0) for task, name, size, mean in ours]
    least, most = cells.sizes[0], cells.sizes[-1]
    few = [
        cells.means[task, "ours-default", least] > cells.means[task, "rbf", most]
        for task in cells.tasks
    ]
    sentence = (
        f"The paper's image tasks, ours with all defaults and {least} to {most} features: above "
        f"the paper's own figures in {sum(mean > theirs for mean, theirs in pairs)} of "
        f"{len(pairs)} cells, and with {least} features above {most} random ones in {sum(few)} of "
        f"{len(few)} tasks."
    )
    return Table("Summary", notes=(sentence,))
