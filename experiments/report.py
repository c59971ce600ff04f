"""One HTML page about the records of a folder."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path

from experiments.figure1 import figure1_tables, globe_panels, recorded_game
from experiments.figure2 import accuracies_by_size
from experiments.paper_setting import paper_setting_tables
from experiments.peers import peers_tables
from experiments.records import Record, RecordError, Records, latest
from experiments.registry import provenance
from experiments.synthetic import checkerboard_tables, windmill_tables
from experiments.table1 import table1_tables
from experiments.tables import Table
from notsorandom.display import GlobeDisplay, ScoreCurveDisplay
from notsorandom.display.page import figures_section, game_section, section, write_page


def write_run_report(folder: Path, path: Path) -> Path:
    """Write a page about all records of a folder; return its path."""
    records = latest(Records(folder).read())
    if not records:
        raise FileNotFoundError(
            f"{folder} has no records: give the folder of a run (--output of an experiment)."
        )
    sections: list[str] = []
    for kind, make in SECTIONS.items():
        chosen = [record for record in records if record["config"]["kind"] == kind]
        if chosen:
            sections += make(chosen)
    if not sections:
        raise RecordError(f"{folder} has only records of unknown kinds, of another version.")
    return write_page(path, "The paper, reproduced", provenance(records), sections)


def table_section(table: Table) -> str:
    """Return a table as a section of the page."""
    parts = []
    if table.headers:
        lines = ["".join(f"<th>{escape(header)}</th>" for header in table.headers)]
        lines += ["".join(map(table_cell, row)) for row in table.rows]
        rows = "".join(f"<tr>{line}</tr>" for line in lines)
        parts.append(f'<div class="wide"><table>{rows}</table></div>')
    if table.notes:
        parts.append(f"<ul>{''.join(f'<li>{escape(note)}</li>' for note in table.notes)}</ul>")
    return section(table.title, "".join(parts), table.caption)


def table_cell(text: str) -> str:
    """Return a cell: the best value is highlighted, the paper's value in brackets is faint."""
    kind = "best" if text.startswith("**") else "words" if re.search("[A-Za-z]", text) else ""
    content = escape(text.replace("**", ""))
    content = re.sub(r"( \([\d.]+\))$", r'<span class="theirs">\1</span>', content)
    return f'<td class="{kind}">{content}</td>'


def table_sections(tables: Sequence[Table]) -> list[str]:
    """Return one section per table."""
    return [table_section(table) for table in tables]


def pair_sections(records: Sequence[Record]) -> list[str]:
    """Return Table 1, and one chart per task."""
    figures = []
    for task in dict.fromkeys(record["config"]["task"] for record in records):
        display = ScoreCurveDisplay(*accuracies_by_size(records, task)).plot()
        figures.append((task, display.figure_))
    return [
        *table_sections(table1_tables(records)),
        figures_section("Accuracy by number of features", figures),
    ]


def globe_sections(records: Sequence[Record]) -> list[str]:
    """Return the heaviest harmonics and the decision function, one globe each."""
    return [
        figures_section(
            "The checkerboard on the sphere",
            [
                ("", GlobeDisplay([panel]).plot().figure_)
                for panel in globe_panels(record["outcome"])
            ],
            figure1_tables([record])[0].notes[0],
        )
        for record in records
    ]


SECTIONS: dict[str, Callable[[Sequence[Record]], list[str]]] = {
    "pair": pair_sections,
    "evolution": lambda records: [game_section(*recorded_game(record)) for record in records],
    "globe": globe_sections,
    "windmill": lambda records: table_sections(windmill_tables(records)),
    "checkerboard": lambda records: table_sections(checkerboard_tables(records)),
    "paper-setting": lambda records: table_sections(paper_setting_tables(records)),
    "peer": lambda records: table_sections(peers_tables(records)),
}
