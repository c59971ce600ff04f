"""Every Python snippet and every command of README and docs runs, on small made-up data."""

import ast
import asyncio
import re
import shlex
import textwrap
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from notsorandom import FourierClassifier, save
from notsorandom.baselines import RandomFourierFeatures
from notsorandom.cli import main
from notsorandom.display.inspection import scores_by_size

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
DOCUMENTS = [README, *sorted((ROOT / "docs").glob("*.md"))]
# Packages without which some statements are not run, and the test counts as skipped.
OPTIONAL = ["distributed", "fastapi", "onnxruntime", "skimage", "skl2onnx", "skrub", "torch"]
# Commands that can't run here, and why.
NOT_RUN = {"notsorandom demo": "takes long: .ci/check_package.py runs it"}
# Code that can't run here as it is: its substitute, and why.
SUBSTITUTES = {
    "shape=(10 ** 7, 50)": ("shape=(60, 3)", "has 2 GB"),
    "FourierClassifier(2000,": ("FourierClassifier(20,", "takes long"),
    "Client('tcp://scheduler:8786')": ("Client.current()", "needs a cluster"),
    "s3://bucket/table/": ("folder", "needs a network"),
    "storage_options={'anon': True}": ("storage_options=None", "needs a network"),
}
# README imports what it uses. Pages of docs may leave these out.
IMPORTS = """
import numpy as np, pandas, pyarrow.dataset, sklearn.impute
import notsorandom
from notsorandom import *
from notsorandom.display import *
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
"""
N_ROWS = 60


def read_snippets(path):
    """Code blocks of a document, fenced or indented: language, number of the first line, text."""
    lines = path.read_text(encoding="utf-8").splitlines()
    number = 0
    while number < len(lines):
        start = number
        if fence := re.match(r"( *)(`{3,})(.*)", lines[number]):
            number = lines.index(fence[1] + fence[2], number + 1)
            text = "\n".join(lines[start + 1 : number])
            yield fence[3].strip(), start + 2, textwrap.dedent(text)
        elif lines[number].startswith("    ") and not lines[number - 1]:
            while lines[number].startswith("    "):
                number += 1
            yield "", start + 1, textwrap.dedent("\n".join(lines[start:number]))
        number += 1


def read_steps(path):
    """Python statements and commands of a document, in order: number of the line, text."""
    for language, start, text in read_snippets(path):
        if language == "python":
            for statement in ast.parse(text).body:
                yield start + statement.lineno - 1, statement
        elif language in {"", "shell", "bash", "console"}:
            for line, command in enumerate(text.splitlines(), start):
                if found := re.search(r"(?:^|&& |\$ )(notsorandom .+)", command):
                    yield line, found[1]


def text_of(step):
    return step if isinstance(step, str) else ast.unparse(step)


STEPS = {path: list(read_steps(path)) for path in DOCUMENTS}


def make_frame(X):
    """A table with a number, a category with gaps and a date."""
    city = pd.Series(np.where(X[:, 1] > 0, "Rome", "Oslo")).mask(X[:, 2] > 1)
    days = pd.date_range("2026-01-01", periods=len(X))
    return pd.DataFrame({"age": X[:, 0], "city": city, "since": days})


def make_data():
    """Functions that return data, under the names that documents use. Writes their files."""
    rng = np.random.default_rng(0)
    X, X_test = rng.normal(size=(2, N_ROWS, 3))
    y, y_test = (np.where(samples[:, 0] > 0, "yes", "no") for samples in (X, X_test))
    frame, new_frame, codes = make_frame(X), make_frame(X_test), (y == "yes").astype(int)
    np.save("X.npy", X)
    X.astype(np.float32).tofile("X.f32")
    frame.assign(label=y).to_csv("train.csv", index=False)
    new_frame.assign(label=y_test).to_csv("test.csv", index=False)
    new_frame.to_csv("new.csv", index=False)
    Path("folder").mkdir()
    table = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "label": codes})
    table.to_parquet("folder/part.parquet")
    values = {"X": X, "y": y, "X_test": X_test, "y_test": y_test, "blocks": [(X, y)]}
    values |= {"z": X @ [1.0, 2.0, 3.0], "w": rng.uniform(1, 2, N_ROWS), "features": ["a", "b"]}
    values |= {"norms": np.linalg.norm(X, axis=1, keepdims=True), "X_sparse": sparse.csr_array(X)}
    values |= {"frame": frame, "new_frame": new_frame, "labels": y}

    def make_model():
        return FourierClassifier(10, random_state=0).fit(X, y)

    def make_tensor():
        import torch

        return torch.asarray(X)

    def make_dask_array(array):
        import dask.array

        return dask.array.from_array(array, chunks=N_ROWS // 2)

    functions = {name: (lambda value=value: value) for name, value in values.items()}
    functions |= {"model": make_model, "X_gpu": make_tensor}
    functions |= {"skrub": partial(import_module, "skrub")}
    functions |= {"X_dask": partial(make_dask_array, X), "y_dask": partial(make_dask_array, codes)}
    return functions


def names_in(statement, context):
    """Names that a statement loads or stores; imported names are stored."""
    names = {
        node.id
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, context)
    }
    if context is ast.Store and isinstance(statement, ast.FunctionDef | ast.ClassDef):
        names.add(statement.name)
    if context is ast.Store and isinstance(statement, ast.Import | ast.ImportFrom):
        names |= {(alias.asname or alias.name).split(".")[0] for alias in statement.names}
    return names


def run_statement(statement, namespace, data, unavailable):
    """Run a statement. Names that the document has not defined come from the data.

    Raises ImportError if it needs a package that is missing, or a name that is then `unavailable`.
    """
    loaded, stored = (names_in(statement, context) for context in (ast.Load, ast.Store))
    text = text_of(statement)
    for fragment, (substitute, _) in SUBSTITUTES.items():
        text = text.replace(fragment, substitute)
    try:
        if loaded & unavailable:
            raise ImportError(f"needs {', '.join(loaded & unavailable)}")
        namespace |= {name: data[name]() for name in (loaded & data.keys()) - namespace.keys()}
        exec(text, namespace)
    except ImportError:
        unavailable |= stored - {"notsorandom"}
        raise
    unavailable -= stored
    if text.startswith("from notsorandom.dask import"):  # from here on, samples are on the cluster
        namespace |= {name: data[f"{name}_dask"]() for name in "Xy"}


def run_command(command, capsys):
    """Run a command of the command line."""
    if main(shlex.split(command)[1:]):
        message = capsys.readouterr().err
        raise (ImportError if "pip install" in message else AssertionError)(message)


@pytest.fixture
def cluster(request):
    """A cluster in this process, for documents that need one."""
    if "dask" not in request.getfixturevalue("path").read_text() or not find_spec("distributed"):
        yield
        return
    from distributed import Client

    with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0"):
        yield


@pytest.mark.usefixtures("quick_trials", "cluster")
@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_document(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    namespace, data, unavailable, not_run = {}, make_data(), set(), []
    if path != README:
        exec(IMPORTS, namespace)
    for line, step in STEPS[path]:
        if any(fragment in text_of(step) for fragment in NOT_RUN):
            continue
        try:
            if isinstance(step, str):
                run_command(step, capsys)
            else:
                run_statement(step, namespace, data, unavailable)
        except ImportError as error:
            if all(map(find_spec, OPTIONAL)):
                raise
            not_run.append(f"line {line}: {error}")
        except Exception as error:
            error.add_note(f"{path.name}, line {line}: {text_of(step)}")
            raise
    plt.close("all")
    if not_run:
        pytest.skip("; ".join(not_run))


def test_the_service_answers_over_http(tmp_path, monkeypatch):
    pytest.importorskip("fastapi", reason="needs fastapi: pip install 'notsorandom[serve]'")
    httpx = pytest.importorskip("httpx", reason="needs httpx: pip install 'notsorandom[all]'")
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).normal(size=(N_ROWS, 3))
    model = FourierClassifier(10, C=1.0, smoothing=0.1, random_state=0).fit(X, X[:, 0] > 0)
    save(model, "model.skops")
    blocks = [text for _, _, text in read_snippets(ROOT / "docs" / "service.md")]
    (block,) = (text for text in blocks if "FastAPI()" in text)
    namespace = {}
    exec(block, namespace)

    async def ask():
        transport = httpx.ASGITransport(namespace["app"])
        async with httpx.AsyncClient(transport=transport, base_url="http://service") as client:
            return await client.post("/predict", json=X[:5].tolist())

    assert asyncio.run(ask()).json() == model.predict_proba(X[:5]).tolist()


def test_exceptions_are_needed():
    """What is said not to run is still there; nothing else is left out."""
    texts = [text_of(step) for steps in STEPS.values() for _, step in steps]
    for fragment in [*NOT_RUN, *SUBSTITUTES]:
        assert any(fragment in text for text in texts), f"no document has {fragment}"


def test_all_languages_are_known():
    """A block that is neither Python nor commands would not be run."""
    known = {"", "python", "shell"}
    for path in DOCUMENTS:
        languages = {language for language, _, _ in read_snippets(path)}
        other = {name for name in languages - known if not name.startswith("{")}  # directives
        assert not other, f"{path.name}: {other}"


def test_the_first_snippet_has_the_accuracies_that_it_says():
    """The learned features' own, and the demo's of 5000 random ones."""
    (_, _, code), *_ = read_snippets(README)
    *lines, last = code.splitlines()
    learned, random = re.findall(r"0\.\d{3}", last)
    namespace = {}
    exec("\n".join(lines), namespace)
    X_test, y_test = namespace["make_windmill"](10_000, random_state=1)
    model = namespace["model"]
    assert f"{model.score(X_test, y_test):.3f}" == learned
    baselines = {"random": RandomFourierFeatures(random_state=0)}
    train = namespace["X_train"], namespace["y_train"]
    _, scores = scores_by_size(model, *train, X_test, y_test, [100, 5000], baselines)
    assert f"{scores['random'][1]:.3f}" == random
