"""The report of `benchmarks.peers`: ranks, wins and losses, costs, scores, and the figure.

`kinds_table` is the table of README.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.modern_data import REGRESSIONS
from benchmarks.peer_figure import Points, draw
from benchmarks.peer_methods import METHODS, N_CONFIGS, TUNING_ROWS
from benchmarks.peer_results import (
    CLASSES,
    EMBEDDED,
    GROUPS,
    IMAGES,
    NUMBERS,
    WORDS,
    Comparison,
    typical,
)
from benchmarks.table_report import LEVEL
from experiments.records import Record, latest
from experiments.registry import provenance
from experiments.tables import Table
from notsorandom._utils.files import write_atomic
from notsorandom.display.figures import save_figure

MARKER = "<!-- Below: written by python -m benchmarks.peers. Above: kept. -->"
TITLE = "# A comparison of today"
NEW_GROUPS = (
    "Accuracy in percent (crackers) or R^2 in points. The same tables, but the test rows are of "
    "households (crackers), routes (airfare), days (nox) or cities (texas_houses) that no training "
    "row has."
)
PANELS = ((CLASSES,), (NUMBERS,), (EMBEDDED, WORDS), (IMAGES,))  # of the figure
# Columns of the table of README. The boosted trees are those of the most used library.
COLUMNS = {
    "ours": "ours, all defaults",
    "linear-tuned": "linear model, tuned",
    "svm-tuned": "SVM or kernel ridge, tuned",
    "lightgbm": "LightGBM, defaults",
}
# What is shown beside scores: for classes, and for numbers.
ERRORS = (
    (
        "log_loss",
        "Log loss",
        "Log loss of the test rows, where a method has probabilities; less is better.",
    ),
    (
        "rmse",
        "Errors",
        "Root mean squared error of the test rows in units of the target's standard deviation.",
    ),
)


def panels(results: Comparison) -> dict[str, Points]:
    """Return fit seconds and shares of methods beaten, by kind of data."""
    found = {}
    for groups in PANELS:
        data = results.group(*groups)
        counts = [f"{len(results.group(each))} {each}" for each in groups if results.group(each)]
        if data:
            found[" and ".join(counts)] = {
                method: (seconds, results.share_beaten(data, method))
                for method in results.methods
                if not np.isnan(seconds := results.fit_seconds(data, method))
            }
    return found


def number(value: float, form: str) -> str:
    """Return a formatted number, nothing for NaN."""
    return "" if np.isnan(value) else format(value, form)


def short(value: float) -> str:
    """Return a number with two digits, or as an integer."""
    return f"{value:.2g}" if value < 100 else f"{value:,.0f}"


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
    parts = {
        "tables, regressions": results.group(CLASSES, NUMBERS),
        "embeddings, text, images": results.group(EMBEDDED, WORDS, IMAGES),
    }
    parts = {name: data for name, data in parts.items() if data}
    rows = []
    for method in results.methods:
        cells = [METHODS[method].title]
        for data in parts.values():
            cells.append(number(results.fit_seconds(data, method), ".3g"))
            cells.append(number(results.microseconds(data, method), ".3g"))
            cells.append(number(typical(results.values(data, method, "bytes")) / 1000, ",.0f"))
        rows.append(tuple(cells))
    headers = [
        f"{name}: {header}"
        for name in parts
        for header in ("fit, CPU s", "predict, µs a row", "kB")
    ]
    return Table(
        "Costs",
        "Geometric means over the data sets of CPU seconds with one thread (with all tuning; over "
        "the limit they count as the limit), of CPU microseconds to predict a row, and of "
        "kilobytes of the pickled model.",
        ("method", *headers),
        tuple(rows),
    )


def value_table(
    results: Comparison, data: Sequence[str], name: str, title: str, caption: str, form: str
) -> Table:
    """Return one measurement: a row a method, a column a data set; the best in bold."""
    best = np.nanargmax if name == "score" else np.nanargmin
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
    ours = [name for name in results.methods if METHODS[name].family == "ours"]
    tables += [duel_table(results, name) for name in ours]
    tables.append(cost_table(results))
    for group in GROUPS:
        if not (data := results.group(group)):
            continue
        score = "R^2 in points" if group == NUMBERS else "Accuracy in percent"
        rows = [
            f"{each} {' + '.join(map(str, outcome['rows']))}"
            for each in data
            if (outcome := results.outcomes.get((each, results.methods[0]), {}))
            and "rows" in outcome
        ]
        caption = f"{score}, test rows. Training + test rows: {', '.join(rows)}."
        tables.append(value_table(results, data, "score", f"Scores: {group}", caption, ".2f"))
        name, title, caption = ERRORS[group == NUMBERS]
        data = [each for each in data if group != NUMBERS or each in REGRESSIONS]
        if data:
            tables.append(value_table(results, data, name, f"{title}: {group}", caption, ".3f"))
    return tables


def kinds_table(records: Sequence[Record]) -> Table:
    """Return a row per kind of data: score, seconds to fit and microseconds a prediction.

    Data sets without a score of one of the methods are left out, and named.
    """
    records = [each for each in latest(records) if not {"groups", "validation"} & {*each["config"]}]
    results, rows, left_out = Comparison(records), [], []
    losses: dict[str, list[str]] = {method: [] for method in COLUMNS if method != "ours"}
    for group in GROUPS:
        data = results.group(group)
        for method, title in COLUMNS.items():
            over = [each for each in data if np.isnan(results.value(each, method, "score"))]
            left_out += [f"{each} ({title})" for each in over]
            data = [each for each in data if each not in over]
        if not data:
            continue
        scores = [float(results.values(data, method, "score").mean()) for method in COLUMNS]
        cells = highlight([f"{score:.1f}" for score in scores], scores, np.argmax)
        for index, method in enumerate(COLUMNS):
            seconds, times = results.fit_seconds(data, method), results.microseconds(data, method)
            cells[index] += f", {short(seconds)} s, {short(times)} µs"
        rows.append((f"{len(data)} {group}", *cells))
        for method, lost in losses.items():
            gains = results.gains(data, "ours", method).items()
            lost += [f"{each} ({-gain:.1f})" for each, (gain, level) in gains if gain < -level]
    notes = [
        f"Ours loses to {COLUMNS[method]}, in points, on: {', '.join(lost) or 'none'}."
        for method, lost in losses.items()
    ]
    notes += [f"Left out, for lack of a result: {', '.join(left_out)}."] if left_out else []
    return Table(
        "By kind of data",
        "Accuracy in percent or R^2 in points, mean over the data sets; CPU seconds to fit, with "
        "all tuning, and microseconds to predict a row, geometric means.",
        ("", *COLUMNS.values()),
        tuple(rows),
        tuple(notes),
    )


def data_table(results: Comparison, groups: Sequence[str], title: str, caption: str) -> Table:
    """Return a row per data set of some groups, of the methods of README's table."""
    rows = []
    for data in results.group(*groups):
        name, form = ("rmse", ".3f") if data in REGRESSIONS else ("score", ".1f")
        values = [results.value(data, method, name) for method in COLUMNS]
        best = np.nanargmin if name == "rmse" else np.nanargmax
        cells = highlight([number(value, form) or "-" for value in values], values, best)
        if name == "score":
            losses = [number(results.value(data, m, "log_loss"), ".3f") for m in COLUMNS]
            cells = [f"{c}, {loss}" if loss else c for c, loss in zip(cells, losses, strict=True)]
        rows.append((data, *cells))
    return Table(title, caption, ("", *COLUMNS.values()), tuple(rows))


def published_tables(records: Sequence[Record]) -> list[Table]:
    """Return what README and the pages on embeddings and regressions show."""
    found = Comparison([each for each in records if not each["config"].get("groups")])
    caption = "Accuracy in percent and log loss on test rows."
    errors = "Root mean squared error in units of the targets' standard deviation, three splits."
    words = data_table(found, (EMBEDDED, WORDS), "Embeddings and words", caption)
    numbers = data_table(found, (NUMBERS,), "Regressions", errors)
    few = tuple(row for row in numbers.rows if row[0] in REGRESSIONS)
    return [kinds_table(records), words, replace(numbers, rows=few)]


def library_versions(records: Sequence[Record]) -> str:
    """Return the commits and the versions of the libraries that only some methods need."""
    outcomes = [record["outcome"] | record["versions"] for record in records]
    commits, packages = (
        sorted({each[name] for each in outcomes if name in each}) for name in ("commit", "package")
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
