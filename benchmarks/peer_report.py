"""The report of `benchmarks.peers`: ranks, wins and losses, costs, scores, and the figure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import gmean, rankdata

from benchmarks.peer_figure import Points, draw
from benchmarks.peer_methods import METHODS, N_CONFIGS, TUNING_ROWS
from benchmarks.table_data import RECIPES
from benchmarks.table_report import LEVEL, paired_gain
from experiments.records import Record, latest
from experiments.registry import provenance
from experiments.tables import Table
from experiments.tasks import TASKS
from notsorandom._utils.files import write_atomic
from notsorandom.data.rows import Array
from notsorandom.display.figures import save_figure

MARKER = "<!-- Below: written by python -m benchmarks.peers. Above: kept. -->"
TITLE = "# A comparison of today"
NEW_GROUPS = (
    "Accuracy in percent (crackers) or R^2 in points. The same tables, but the test rows are of "
    "households (crackers), routes (airfare), days (nox) or cities (texas_houses) that no training "
    "row has."
)
GROUPS = ("classification tables", "regression tables", "image pairs")


def group_of(data: str) -> str:
    """Return the group of a data set."""
    if data in TASKS:
        return GROUPS[2]
    return GROUPS[RECIPES[data].is_regression]


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

    def against(self, data: Sequence[str], method: str, other: str) -> tuple[int, int, int, Array]:
        """Return on how many data sets a method wins, is level and loses, and all differences.

        Two methods are level if they differ by at most `LEVEL` points or by one standard error over
        the splits.
        """
        differences, margins = [], []
        for each in data:
            ours, others = (self.outcomes.get((each, name), {}) for name in (method, other))
            if "scores" in ours and "scores" in others:
                gain, error = paired_gain(ours["scores"], others["scores"])
                differences.append(100 * gain)
                margins.append(max(LEVEL, 100 * error))
        gains, limits = np.array(differences), np.array(margins)
        wins, losses = int((gains > limits).sum()), int((gains < -limits).sum())
        return wins, len(gains) - wins - losses, losses, gains


def panels(results: Comparison) -> dict[str, Points]:
    """Return fit seconds and shares of methods beaten, on tables and on image pairs."""
    parts = {"tables": results.group(*GROUPS[:2]), "image pairs": results.group(GROUPS[2])}
    return {
        f"{len(data)} {name}": {
            method: (typical(seconds), results.share_beaten(data, method))
            for method in results.methods
            if len(seconds := results.values(data, method, "fit_cpu"))
        }
        for name, data in parts.items()
        if data
    }


def number(value: float, form: str) -> str:
    """Return a formatted number, nothing for NaN."""
    return "" if np.isnan(value) else format(value, form)


def highlight(cells: Sequence[str], values: Sequence[float], best: Callable[..., Any]) -> list[str]:
    """Return the cells; the best value is in bold, and so are values that print the same."""
    if np.isnan(values).all():
        return list(cells)
    chosen = cells[int(best(values))]
    return [f"**{cell}**" if cell == chosen else cell for cell in cells]


def rank_table(results: Comparison) -> Table:
    """Return mean ranks and shares of methods beaten, by group."""
    groups = [group for group in GROUPS if results.group(group)]
    columns = []
    for group in groups:
        data = results.group(group)
        ranks = [results.mean_rank(data, method) for method in results.methods]
        cells = [number(rank, ".1f") for rank in ranks]
        columns.append(highlight(cells, ranks, np.nanargmin))
    shares = [results.share_beaten(results.data, method) for method in results.methods]
    columns.append(highlight([number(share, ".0f") for share in shares], shares, np.nanargmax))
    titles = [METHODS[method].title for method in results.methods]
    return Table(
        "Ranks",
        "Mean rank by accuracy or R^2 among all rows of this table (1 is the best), and the mean "
        "share of the other methods that a method beats, in percent over all data sets.",
        ("method", *(f"{group} ({len(results.group(group))})" for group in groups), "% beaten"),
        tuple(zip(titles, *columns, strict=True)),
    )


def duel_table(results: Comparison, method: str) -> Table:
    """Return wins, levels and losses of one of ours against every other method."""
    groups = [group for group in GROUPS if results.group(group)]
    rows = []
    for other in results.methods:
        if other == method:
            continue
        row = [METHODS[other].title]
        for group in groups:
            wins, level, losses, gains = results.against(results.group(group), method, other)
            row += (
                [f"{wins} / {level} / {losses}", f"{np.mean(gains):+.2f}"]
                if len(gains)
                else ["", ""]
            )
        rows.append(tuple(row))
    headers = [header for group in groups for header in (group, "mean difference")]
    return Table(
        f"{METHODS[method].title} against each",
        f"Data sets won / level / lost, and the mean difference in points (positive: "
        f"{METHODS[method].title} is better). Level: at most {LEVEL} points or one standard error "
        "over the splits.",
        ("against", *headers),
        tuple(rows),
    )


def cost_table(results: Comparison) -> Table:
    """Return fit seconds, prediction times and sizes."""
    parts = {"tables": results.group(*GROUPS[:2]), "pairs": results.group(GROUPS[2])}
    parts = {name: data for name, data in parts.items() if data}
    rows = []
    for method in results.methods:
        cells = [METHODS[method].title]
        for data in parts.values():
            cells.append(number(typical(results.values(data, method, "fit_cpu")), ".3g"))
            times = [
                1e6 * results.value(each, method, "predict_cpu") / outcome["rows"][1]
                for each in data
                if "rows" in (outcome := results.outcomes.get((each, method), {}))
            ]
            cells.append(number(typical(np.array(times)), ".3g"))
            cells.append(number(typical(results.values(data, method, "bytes")) / 1000, ",.0f"))
        rows.append(tuple(cells))
    headers = [
        f"{name}: {header}"
        for name in parts
        for header in ("fit, CPU s", "predict, µs a row", "kB")
    ]
    return Table(
        "Costs",
        "Geometric means over the data sets of CPU seconds with one thread (with all tuning), of "
        "CPU microseconds to predict a row, and of kilobytes of the pickled model.",
        ("method", *headers),
        tuple(rows),
    )


def typical(values: Array) -> float:
    """Return the geometric mean, NaN if there are no values."""
    return float(gmean(values)) if len(values) else np.nan


def value_table(
    results: Comparison, data: Sequence[str], name: str, title: str, caption: str, form: str
) -> Table:
    """Return one measurement: a row a method, a column a data set; the best in bold."""
    best = np.nanargmin if name == "log_loss" else np.nanargmax
    columns = {method: [METHODS[method].title] for method in results.methods}
    for each in data:
        values = [results.value(each, method, name) for method in results.methods]
        cells = highlight([number(value, form) for value in values], values, best)
        for method, cell in zip(results.methods, cells, strict=True):
            over = "over_limit" in results.outcomes.get((each, method), {})
            columns[method].append("over the limit" if over else cell)
    rows = tuple(tuple(cells) for cells in columns.values() if any(cells[1:]))
    return Table(title, caption, ("method", *data), rows)


def method_table(results: Comparison) -> Table:
    """Return what each row is."""
    rows = [(METHODS[method].title, METHODS[method].note) for method in results.methods]
    caption = (
        f"Tuned: the best of {N_CONFIGS} settings (3 x 3 values) by 3-fold cross-validation on at "
        f"most {TUNING_ROWS:,} training rows, then a fit to all of them."
    )
    return Table("What each row is", caption, ("method", "settings"), tuple(rows))


def report_tables(results: Comparison) -> list[Table]:
    """Return all tables of the report."""
    tables = [rank_table(results)]
    tables += [duel_table(results, name) for name in ("ours", "ours500") if name in results.methods]
    tables.append(cost_table(results))
    for group in GROUPS:
        if results.group(group):
            score = "R^2 in points" if group == GROUPS[1] else "Accuracy in percent"
            rows = [
                f"{data} {' + '.join(map(str, outcome['rows']))}"
                for data in results.group(group)
                if (outcome := results.outcomes.get((data, results.methods[0]), {}))
                and "rows" in outcome
            ]
            caption = f"{score}, test rows. Training + test rows: {', '.join(rows)}."
            title = f"Scores: {group}"
            data = results.group(group)
            tables.append(value_table(results, data, "score", title, caption, ".2f"))
    for group in (GROUPS[0], GROUPS[2]):
        if results.group(group):
            caption = "Log loss of the test rows, where a method has probabilities; less is better."
            title, data = f"Log loss: {group}", results.group(group)
            tables.append(value_table(results, data, "log_loss", title, caption, ".3f"))
    return tables


def library_versions(records: Sequence[Record]) -> str:
    """Return the commits and the versions of the libraries that only some methods need."""
    commits, packages = (
        sorted({record["outcome"][name] for record in records if name in record["outcome"]})
        for name in ("commit", "package")
    )
    return f"Commit {' and '.join(commits)}. {', '.join(packages)}."


def write_report(records: Sequence[Record], folder: Path) -> None:
    """Write peers_table.md and, with matplotlib, peers.png; keep the text above the marker."""
    records = latest(records)
    results, on_groups = (
        Comparison([r for r in records if r["config"].get("groups", False) == grouped])
        for grouped in (False, True)
    )
    path = folder / "peers_table.md"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    above = text.split(MARKER)[0] if MARKER in text else f"{TITLE}\n\n"
    picture = (
        "![Share of the other methods that each method beats, against the CPU seconds of its fit]"
        "(peers.png)"
    )
    parts = [f"{above}{MARKER}", picture]
    parts += [table.markdown() for table in report_tables(results)]
    if on_groups.data:
        title = "Scores: whole groups held out"
        parts.append(
            value_table(on_groups, on_groups.data, "score", title, NEW_GROUPS, ".2f").markdown()
        )
    parts.append(method_table(results).markdown())
    parts += [f"{provenance(records)} {library_versions(records)}"]
    write_atomic(path, ("\n\n".join(parts) + "\n").encode())
    print(path)
    try:
        figure = draw(panels(results))
    except ImportError as error:
        print(error)
        return
    save_figure(figure, folder / "peers.png")
    print(folder / "peers.png")
