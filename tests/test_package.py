"""What the package says of itself is the same in all files."""

import re
import tomllib
from itertools import chain
from pathlib import Path

import notsorandom

ROOT = Path(__file__).parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
EXTRAS = PROJECT["optional-dependencies"]
# Extras for work on the library, not with it.
FOR_DEVELOPERS = {"test", "docs", "all", "dev"}
# Names that conda-forge has for packages of PyPI; extras such as dask[array] are not in names.
CONDA_NAMES = {"matplotlib": "matplotlib-base"}
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def conda_list(key):
    """The entries of a list in the recipe, but for Python and pip."""
    (block,) = re.findall(rf"^  {key}:\n((?:    - .*\n)+)", read("conda/recipe/recipe.yaml"), re.M)
    entries = {line.strip(" -") for line in block.splitlines()}
    return {entry for entry in entries if entry.split()[0] not in {"python", "pip"}}


def conda_requirements(requirements):
    pairs = (re.fullmatch(r"([\w-]+)(?:\[.*\])?(>=[\d.]+)", text).groups() for text in requirements)
    return {f"{CONDA_NAMES.get(name, name)} {bound}" for name, bound in pairs}


def test_version_and_date():
    version = notsorandom.__version__
    released, date = re.search(
        r"^## (\S+), (\d{4}-\d\d-\d\d)$", read("CHANGELOG.md"), re.M
    ).groups()
    assert released == version
    assert f"\nversion: {version}\n" in read("CITATION.cff")
    assert f'\ndate-released: "{date}"\n' in read("CITATION.cff")
    assert f'  version: "{version}"\n' in read("conda/recipe/recipe.yaml")


def test_conda_recipe_has_the_same_dependencies():
    assert conda_list("run") == conda_requirements(PROJECT["dependencies"])
    assert conda_list("host") == conda_requirements(PYPROJECT["build-system"]["requires"])
    of_users = (EXTRAS[name] for name in EXTRAS.keys() - FOR_DEVELOPERS)
    assert conda_list("run_constraints") == conda_requirements(chain.from_iterable(of_users))
    python = PROJECT["requires-python"].removeprefix(">=")
    assert f'  python_min: "{python}"\n' in read("conda/recipe/recipe.yaml")


def test_summary():
    summary = PROJECT["description"]
    assert f'abstract: "{summary}"\n' in read("CITATION.cff")
    assert f'  summary: "{summary}"\n' in read("conda/recipe/recipe.yaml")


def test_python_versions():
    """The classifiers name the versions that are tested."""
    prefix = "Programming Language :: Python :: 3."
    named = [text.removeprefix(prefix) for text in PROJECT["classifiers"] if prefix in text]
    (tested,) = re.findall(r"python: \[(.*)\]", read(".github/workflows/tests.yml"))
    assert re.findall(r'"3\.(\d+)"', tested) == named
    assert PROJECT["requires-python"] == f">=3.{named[0]}"


def test_documents_name_extras_that_exist():
    names = set()
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        groups = re.findall(r"(?:pip install.*?|extra )[\"'`]?\w*\.?\[([\w,-]+)\]", text)
        groups += re.findall(r"\bextra `([\w-]+)`", text)
        found = set(chain.from_iterable(group.split(",") for group in groups))
        assert found <= EXTRAS.keys(), f"{document.name}: {found - EXTRAS.keys()}"
        names |= found
    assert {"plot", "tables", "dask", "onnx", "test"} <= names  # the pattern still finds them
