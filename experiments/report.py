"""A page about a run, from its records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from notsorandom.display.globe import front_of_globe
from notsorandom.display.report.page import Section, write_page
from notsorandom.display.report.sections import game_section, images_section, path_section
from notsorandom.experiments.figure1 import figure1_tables, globe_panels, recorded_moments
from notsorandom.experiments.figure2 import accuracies_by_size
from notsorandom.experiments.peers import peers_tables
from notsorandom.experiments.records import Record, RecordError, Records, latest
from notsorandom.experiments.reproduce import provenance
from notsorandom.experiments.synthetic import checkerboard_tables, windmill_tables
from notsorandom.experiments.table1 import table1_tables
from notsorandom.experiments.tables import Table

# Pixels across a globe.
GLOBE_SIDE = 120


def write_run_report(folder: Path, path: Path) -> Path:
    """Write a page about all records of a folder."""
    records = latest(Records(folder).read())
    if not records:
        raise FileNotFoundError(
            f"{folder} has no records: it must be the folder of a run, as `notsorandom reproduce` "
            "makes them."
        )
    sections: list[Section] = []
    for kind, make in SECTIONS.items():
        chosen = [record for record in records if record["config"]["kind"] == kind]
        if chosen:
            sections += make(chosen)
    if not sections:
        raise RecordError(
            f"{folder} has records of no kind that is known: they are of another version."
        )
    return write_page(path, "The paper, reproduced", provenance(records), sections)


def as_sections(tables: Sequence[Table]) -> list[Section]:
    """Tables as the page has them."""
    return [
        {
            "kind": "table",
            "title": table.title,
            "note": table.caption,
            "headers": table.headers,
            "rows": table.rows,
            "notes": table.notes,
        }
        for table in tables
    ]


def pair_sections(records: Sequence[Record]) -> list[Section]:
    """The table, and a chart a task."""
    charts = []
    for task in dict.fromkeys(record["config"]["task"] for record in records):
        sizes, accuracies = accuracies_by_size(records, task)
        charts += path_section(sizes, accuracies, task)["charts"]
    title = "Accuracy by number of features"
    return [
        *as_sections(table1_tables(records)),
        {"kind": "charts", "title": title, "charts": charts},
    ]


def evolution_sections(records: Sequence[Record]) -> list[Section]:
    """The slider."""
    return [game_section(*recorded_moments(record)) for record in records]


def globe_sections(records: Sequence[Record]) -> list[Section]:
    """The heaviest harmonics and the decision function, on globes."""
    sections = []
    for record in records:
        outcome = record["outcome"]
        panels = globe_panels(outcome)
        images = np.array([front_of_globe(function, GLOBE_SIDE) for _, function in panels])
        sections.append(
            images_section(
                "The checkerboard on the sphere",
                images[:, ::-1],
                [name for name, _ in panels],
                figure1_tables([record])[0].notes[0],
                smooth=True,
                width_rem=11,
            )
        )
    return sections


SECTIONS: dict[str, Callable[[Sequence[Record]], list[Section]]] = {
    "pair": pair_sections,
    "evolution": evolution_sections,
    "globe": globe_sections,
    "windmill": lambda records: as_sections(windmill_tables(records)),
    "checkerboard": lambda records: as_sections(checkerboard_tables(records)),
    "peer": lambda records: as_sections(peers_tables(records)),
}
