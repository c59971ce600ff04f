"""The tables of the documentation show the published records, all of one version."""

from pathlib import Path

import pytest

from experiments.records import Records, matching
from experiments.registry import EXPERIMENTS, Options, provenance

DOCS = Path(__file__).parents[2] / "docs"
PUBLISHED = ("table1", "figure2", "windmill", "checkerboard", "peers")


@pytest.fixture(scope="module")
def records():
    return Records(DOCS, "reproduction.jsonl").read()


def test_the_records_are_of_one_commit(records):
    (commit,) = {record["versions"]["commit"] for record in records}
    assert not commit.endswith("+")  # no files that differ from it
    assert f"commit {commit}" in (DOCS / "reproduction.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_page_shows_the_records(records, name):
    experiment = EXPERIMENTS[name]
    configs = experiment.configs(Options())
    shown = matching(records, configs)
    assert len(shown) == len(configs)
    page = (DOCS / "reproduction.md").read_text(encoding="utf-8")
    lines = page.splitlines()
    for table in experiment.tables(shown):
        rows = [line for line in table.markdown().splitlines() if line.startswith("|")]
        assert set(rows) <= set(lines)
    assert provenance(shown) in lines


def test_the_first_table_of_the_readme_shows_the_records(records):
    """Accuracies, microseconds per row and seconds to fit on auto-truck."""
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8").replace("*", "")
    cells = {tuple(line.strip("| ").split(" | ")[1:]) for line in readme.splitlines()}
    peers = [record for record in records if record["config"]["kind"] == "peer"]
    (table,) = EXPERIMENTS["peers"].tables(
        [record for record in peers if record["config"]["task"] == "auto-truck"]
    )

    def short(microseconds):
        return microseconds if float(microseconds) < 100 else f"{float(microseconds):.0f}"

    figures = {
        (f"{accuracy} %", short(microseconds), seconds)
        for _, _, accuracy, seconds, microseconds, _ in table.rows
    }
    assert len(cells & figures) == 7
