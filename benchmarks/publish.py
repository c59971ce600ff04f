"""Put the tables of recorded runs into README and the pages of docs.

    python -m benchmarks.publish

A page has a pair of comments around each table:

    <!-- messy: Scores + provenance -->
    <!-- end -->

The first word names a benchmark or an experiment, the others are titles of its tables; "provenance"
is one line about the records. All that is between the comments is replaced, as soon as
`docs/records` has a record of each run. Tables of which runs are missing stay as they are, and are
listed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks import (
    certificate,
    intervals,
    messy,
    peer_report,
    peers,
    reproduction,
    scaling,
    sphere,
    table_report,
    tables,
)
from benchmarks.common import RECORDS, Recorded, make_parser
from experiments.peers import peers_tables, summary_table
from experiments.records import Config, Record, Records, matching
from experiments.registry import EXPERIMENTS, Options, provenance
from experiments.table1 import above_paper, table1_tables
from experiments.tables import Table
from notsorandom._utils.files import write_atomic

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"<!-- ([\w-]+): (.+?) -->\n(.*?)<!-- end -->", re.DOTALL)


class Source(NamedTuple):
    """Where published tables come from.

    Parameters
    ----------
    file : str
        Name of the file of records, without its ending.
    configs : callable
        Returns the configurations of all runs that the tables need.
    tables : callable
        From records to tables.
    """

    file: str
    configs: Callable[[], list[Config]]
    tables: Callable[[Sequence[Record]], list[Table]]


SOURCES = {
    name: Source("experiments", partial(experiment.configs, Options()), experiment.tables)
    for name, experiment in EXPERIMENTS.items()
} | {
    "table1": Source(
        "experiments",
        partial(EXPERIMENTS["table1"].configs, Options()),
        lambda records: [*table1_tables(records), above_paper(records)],
    ),
    "peers": Source(
        "experiments",
        partial(EXPERIMENTS["peers"].configs, Options()),
        lambda records: [*peers_tables(records), summary_table(records, "auto-truck")],
    ),
    "compared": Source("peers", peers.make_configs, peer_report.published_tables),
    "tables": Source("tables", tables.published_configs, table_report.make_tables),
    "messy": Source("messy", messy.published_configs, messy.make_tables),
    "intervals": Source("intervals", intervals.published_configs, intervals.make_tables),
    "scaling": Source("scaling", scaling.published_configs, scaling.make_tables),
    "dask": Source("dask", scaling.dask_configs, scaling.dask_tables),
    **{
        name: Source(name, part.configs, part.tables)
        for module in (certificate, reproduction, sphere)
        for name, part in module.PARTS.items()
        if isinstance(part, Recorded)
    },
}


class IncompleteError(ValueError):
    """Runs that a published table needs have no record."""


def names_of(text: str) -> set[str]:
    """Return the sources of the tables of a page."""
    return {found[1] for found in BLOCK.finditer(text)}


def shown_records(source: Source, folder: Path = RECORDS) -> list[Record]:
    """Return the records of all runs that the tables of a source need."""
    configs = source.configs()
    shown = matching(Records(folder, f"{source.file}.jsonl").read(), configs)
    if len(shown) < len(configs):
        missing = len(configs) - len(shown)
        raise IncompleteError(f"{missing} of {len(configs)} runs have no record")
    return shown


def contents(source: Source, folder: Path = RECORDS) -> dict[str, str]:
    """Return the contents of the blocks of a source, by title."""
    shown = shown_records(source, folder)
    return {table.title: table.body() for table in source.tables(shown)} | {
        "provenance": provenance(shown)
    }


def fill(text: str, known: Mapping[str, Mapping[str, str]]) -> str:
    """Return a page with new contents in the blocks of the sources that are known."""

    def replace(found: re.Match[str]) -> str:
        name, titles = found[1], found[2]
        if name not in known:
            return found[0]
        content = "\n\n".join(known[name][title] for title in titles.split(" + "))
        return f"<!-- {name}: {titles} -->\n{content}\n<!-- end -->"

    return BLOCK.sub(replace, text)


def main() -> None:
    """Write the pages."""
    make_parser(__doc__).parse_args()
    known = {}
    for name in sorted({name for page in PAGES for name in names_of(page.read_text("utf-8"))}):
        if name not in SOURCES:
            print(f"{name}: not among the sources of benchmarks.publish")
            continue
        try:
            known[name] = contents(SOURCES[name])
        except IncompleteError as error:
            print(f"{name}: {error}")
    for page in PAGES:
        text = page.read_text("utf-8")
        filled = fill(text, known)
        if filled != text:
            write_atomic(page, filled.encode())
            print(page)


if __name__ == "__main__":
    main()
