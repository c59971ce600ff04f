"""The pages of the site: snippets run, and the API reference is complete."""

import importlib
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
# Pages whose snippets stand by themselves, each continuing the last.
PAGES = ["start", "images", "sphere", "text"]
MODULES = ["", ".baselines", ".dask", ".datasets", ".display", ".io"]
# Not for users, or said in the text of the page.
UNLISTED = {"CIFAR10_CLASSES", "SKOPS_TYPES", "__version__", "import_pyplot"}


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_snippets_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NOTSORANDOM_DATA", str(tmp_path))
    monkeypatch.setenv("MPLBACKEND", "agg")
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    snippets = re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    assert snippets
    namespace = {}
    for snippet in snippets:
        exec(compile(snippet, f"{page}.md", "exec"), namespace)


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
