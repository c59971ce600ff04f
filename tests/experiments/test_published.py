"""The tables of README and docs show their records, all of one source of the package."""

import re
from contextlib import suppress

import pytest

from benchmarks import publish
from benchmarks.common import RECORDS
from experiments.records import Records, git_source
from experiments.tables import Table

# What is still to be run again, until when it may have no records, or records without a source
# (see "Before a release" in CONTRIBUTING.md). A name leaves this list when it was run; the list is
# to become empty.
NOT_YET = {
    *"table1 figure2 windmill checkerboard peers".split(),  # have records without a source
    *"paper-setting search-gap".split(),
    *"tables messy compared intervals ball high baselines scaling dask".split(),
}
PAGES = [page for page in publish.PAGES if publish.names_of(page.read_text("utf-8"))]
NAMES = sorted({name for page in PAGES for name in publish.names_of(page.read_text("utf-8"))})


def sources_of(name):
    records = publish.shown_records(publish.SOURCES[name])
    return {record["versions"].get("source") for record in records}


@pytest.fixture(scope="module")
def known():
    """Contents of all tables but those that may be incomplete and are."""
    known = {}
    for name in publish.SOURCES.keys() & NAMES:
        try:
            known[name] = publish.contents(publish.SOURCES[name])
        except publish.IncompleteError:
            assert name in NOT_YET
    return known


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_shows_its_records(page, known):
    text = page.read_text("utf-8")
    assert publish.fill(text, known) == text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_table_is_closed_and_named(page):
    """A typing error in a comment would leave a table as it is, without a word."""
    text = page.read_text("utf-8")
    openings = [line for line in text.splitlines() if re.match(r"<!-- [\w-]+: .* -->", line)]
    n_blocks = len(publish.BLOCK.findall(text))
    assert n_blocks == len(openings) - text.count("<!-- Below: ") == text.count("<!-- end -->")
    assert publish.names_of(text) <= {*publish.SOURCES, *NOT_YET}


@pytest.mark.parametrize("name", NAMES)
def test_a_page_says_where_the_figures_come_from(name):
    opening = re.compile(rf"<!-- {name}: (.* \+ )?provenance -->")
    assert any(opening.search(page.read_text("utf-8")) for page in PAGES)


def test_all_records_are_of_one_source():
    sources = set().union(*(sources_of(name) for name in NAMES if name not in NOT_YET))
    assert len(sources) == 1
    (source,) = sources
    assert re.fullmatch("[0-9a-f]{7,}", source)  # no files differed from it


@pytest.mark.parametrize("name", sorted(NOT_YET))
def test_what_was_run_again_has_left_the_list(name):
    assert name in NAMES
    if name in publish.SOURCES:
        with suppress(publish.IncompleteError):
            assert None in sources_of(name)


CONFIGS = [{"kind": "made up", "number": number} for number in range(3)]
SOURCE = publish.Source(
    "made-up",
    lambda: CONFIGS,
    lambda records: [
        Table("Sum", "", ("sum",), ((str(sum(each["outcome"]["x"] for each in records)),),)),
        Table("Note", notes=("one",)),
    ],
)
PAGE = (
    "a\n\n<!-- made-up: Sum + provenance -->\nold\n<!-- end -->\nb\n<!-- other: x -->\n<!-- end -->"
)


def test_tables_replace_what_is_between_their_comments(tmp_path):
    records = Records(tmp_path, "made-up.jsonl")
    for config in CONFIGS[:2]:
        records.append(config, {"x": 2}, 1.0)
    with pytest.raises(publish.IncompleteError, match="1 of 3 runs"):
        publish.contents(SOURCE, tmp_path)
    records.append(CONFIGS[2], {"x": 3}, 1.0)
    records.append({"kind": "unpublished"}, {"x": 100}, 1.0)
    known = {"made-up": publish.contents(SOURCE, tmp_path)}
    filled = publish.fill(PAGE, known)
    assert re.search(
        r"\n\| 7   \|\n\n3 runs, 3.0s in all, .*, source \w+\+?\.\n<!-- end -->", filled
    )
    assert "old" not in filled
    assert filled.endswith("b\n<!-- other: x -->\n<!-- end -->")
    assert publish.fill(filled, known) == filled
    with pytest.raises(KeyError, match="Product"):
        publish.fill(PAGE.replace("Sum", "Product"), known)


def test_runs_of_another_source_can_be_repeated(tmp_path):
    records = Records(tmp_path, "made-up.jsonl")
    records.append(CONFIGS[0], {}, 0.0)
    assert Records(tmp_path, "made-up.jsonl", git_source()).missing(CONFIGS) == CONFIGS[1:]
    assert Records(tmp_path, "made-up.jsonl", "abcdef0").missing(CONFIGS) == CONFIGS


def test_records_of_pages_are_all_published():
    files = {path.stem for path in RECORDS.glob("*.jsonl")}
    assert files <= {source.file for source in publish.SOURCES.values()}
