"""The site: the API reference is complete, dead links are found."""

import importlib
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

DOCS = Path(__file__).parent.parent / "docs"
MODULES = ["", ".baselines", ".dask", ".datasets", ".display", ".io"]
# Not for users, or said in the text of the page.
UNLISTED = {"CIFAR10_CLASSES", "__version__", "import_pyplot"}


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_is_in_the_reference(module):
    if module == ".dask":
        pytest.importorskip("distributed")
    listed, current = set(), ""
    for line in (DOCS / "api.rst").read_text(encoding="utf-8").splitlines():
        if line.startswith(".. currentmodule:: "):
            current = line.removeprefix(".. currentmodule:: ")
        elif re.fullmatch(r"   [\w.]+", line):
            listed.add(f"{current}.{line.strip()}")
    package = importlib.import_module(f"notsorandom{module}")
    public = {name for name in package.__all__ if name not in UNLISTED}
    missing = {
        name
        for name in public
        if f"{package.__name__}.{name}" not in listed and f"notsorandom.{name}" not in listed
    }
    assert not missing


def test_dead_links_and_network_resources_are_found(tmp_path, monkeypatch):
    pytest.importorskip("sphinx")
    monkeypatch.syspath_prepend(DOCS / "_ext")
    check_links = importlib.import_module("check_links")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b.html").write_text('<h1 id="top">b</h1><a href="../a.html#here">a</a>')
    (tmp_path / "a.html").write_text(
        '<p id="here"><a href="sub/b.html#top">fine</a><a href="https://other.site">fine</a>'
        '<a href="#here">fine</a><img src="data:,x">'
        '<a href="sub/b.html#gone">no anchor</a><a href="gone.html">no file</a>'
        '<script src="https://cdn.example/x.js"></script>'
    )
    problems = sorted(check_links.find_problems(tmp_path))
    assert problems == [
        "a.html links to gone.html, but there is no such file",
        "a.html links to sub/b.html#gone, but there is no such anchor",
        "a.html loads https://cdn.example/x.js from the network",
    ]


def test_the_first_mention_of_a_name_leads_to_its_page(monkeypatch):
    pytest.importorskip("sphinx")
    from docutils import nodes
    from docutils.utils import new_document

    monkeypatch.syspath_prepend(DOCS / "_ext")
    api_links = importlib.import_module("api_links")
    document = new_document("page.md")
    document.settings.env = SimpleNamespace(docname="page")
    texts = ["FourierClassifier(50)", "FourierClassifier", "n_components", "FourierClassifier.fit"]
    document += [nodes.literal(text, text) for text in [*texts, "notsorandom.datasets", "hog"]]
    document += nodes.title("", "", nodes.literal("", "SphereKernel"))
    api_links.LinkNames(document).apply()
    links = document.findall(api_links.pending_xref)
    assert [link["reftarget"].removeprefix("notsorandom.") for link in links] == [
        "FourierClassifier",
        "FourierClassifier.fit",
        "datasets.hog",
    ]
    assert document.astext().split() == [*texts, "notsorandom.datasets", "hog", "SphereKernel"]
