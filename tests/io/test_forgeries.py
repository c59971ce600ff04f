"""Files forged to corrupt memory, to take much of it, or to start processes, wherever they go.

Each has a part that scikit-learn's classes, SciPy or NumPy trust. They are written as `save` writes
files, without its checks, which would refuse them too.
"""

import json
import runpy
import sys
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import BaggingClassifier
from sklearn.impute import SimpleImputer
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from notsorandom import FileFormatError, FourierClassifier, load, tabular_pipeline
from notsorandom.cli import main
from notsorandom.io.archive import METADATA, MIN_LENGTH, encode, pack
from notsorandom.io.models import FORMAT, VERSIONS

EXAMPLE = Path(__file__).parents[2] / "examples" / "serve.py"
SETTINGS = {"smoothing": 0.06, "C": 1.0, "random_state": 0}
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame({"a": RNG.normal(size=60), "b": RNG.choice([1, 2, 5, 9], 60)})
FRAME["city"], TARGET = RNG.choice(list("xxyyyz"), 60), np.arange(60) % 2


def write(path, model, trial="empty"):
    """Write a model file as `save` does, of a model that would be refused."""
    metadata = {"format": FORMAT, **VERSIONS, "class": type(model).__name__, "trial": trial}
    metadata |= {"metrics": {}, "description": {}}
    text = json.dumps(metadata).ljust(MIN_LENGTH).encode()
    path.write_bytes(pack({METADATA: text, **encode(model)}))


def classifier():
    return FourierClassifier(8, **SETTINGS)


def row_numbers_out_of_range():
    """Sub-estimators of three classes: SciPy writes behind a matrix of two."""
    X, three = FRAME[["a", "b"]], np.arange(60) % 3
    model = OneVsRestClassifier(classifier()).fit(X, np.column_stack([TARGET, 1 - TARGET]))
    model.estimators_ = [classifier().fit(X, three) for _ in range(2)]
    return model


def encoder(**changes):
    """An encoder of numbers in a pipeline, with other attributes."""
    model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), classifier())
    vars(model.fit(FRAME[["b"]], TARGET)[0]).update(changes)
    return model


def rare_categories(**changes):
    """An encoder in which rare categories share a column, with other attributes."""
    one_hot = OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=25)
    model = make_pipeline(one_hot, classifier()).fit(FRAME[["city"]], TARGET)
    vars(model[0]).update(changes)
    return model


def function(name, **changes):
    """A pipeline with a function of NumPy, and other attributes."""
    model = make_pipeline(FunctionTransformer(getattr(np, name)), classifier())
    vars(model.fit(FRAME[["a"]], TARGET)[0]).update(changes)
    return model


def many_classes():
    model = BaggingClassifier(classifier(), 2).fit(FRAME[["a", "b"]], TARGET)
    model.n_classes_ = 50_000_000
    return model


def many_processes_of_others():
    return many_classes().set_params(n_jobs=24)


def negative_weights():
    model = classifier().fit(FRAME[["a", "b"]], TARGET)
    object.__setattr__(model.kernel_, "weights", -model.kernel_.weights)
    return model


def columns(change):
    """A pipeline of transformers of columns, changed by a function."""
    encode = make_column_transformer((SimpleImputer(add_indicator=True), ["a", "b"]))
    model = make_pipeline(encode, StandardScaler(), classifier()).fit(FRAME, TARGET)
    change(model[0])
    return model


def wide_statistics(step):
    """A value for each of many columns, of which the samples have two."""
    step.transformers_[0][1].statistics_ = np.zeros(10**6)


def repeated_columns(step):
    """A column for which the transformer is given a thousand million copies."""
    step.transformers_[0] = (*step.transformers_[0][:2], [0] * 10**5)
    step._transformer_to_input_indices["simpleimputer"] = [0] * 10**5


def repeated_parts():
    """A date of which a column is made again and again."""
    frame = FRAME.assign(day=pd.date_range("2020-01-01", periods=60))
    model = tabular_pipeline(classifier()).fit(frame, TARGET)
    model[0].date_parts_ = {"day": ["days"] * 10**5}
    return model


ORDER = [np.array([9, 5, 2, 1]), np.array([1, 2, 5, 9, 9]), np.array([9, 5, 2, 1], object)]
FORGERIES = {
    "row numbers out of range": row_numbers_out_of_range,
    "searched categories that aren't sorted": lambda: encoder(categories_=[ORDER[0]]),
    "searched categories that are repeated": lambda: encoder(categories_=[ORDER[1]]),
    "objects that aren't sorted": lambda: encoder(categories_=[ORDER[2]]),
    "more categories than columns": lambda: encoder(_n_features_outs=[2]),
    "many columns of a category": lambda: encoder(_n_features_outs=[10**9]),
    "many columns": lambda: encoder(n_features_in_=10**9),
    "a dropped category out of range": lambda: encoder(
        drop="first", _drop_idx_after_grouping=np.array([7], object)
    ),
    "rare categories out of range": lambda: rare_categories(
        _default_to_infrequent_mappings=[np.array([0, 1, 10**9])]
    ),
    "rare categories that are negative": lambda: rare_categories(
        _infrequent_indices=[np.array([-5])]
    ),
    "memory as it was": lambda: function("positive", kw_args={"where": False}),
    "memory as it was, of another function": lambda: function("sin", kw_args={"where": False}),
    "memory of a given size": lambda: function("sin", func=np.empty),
    "many classes": many_classes,
    "many processes of other classes": many_processes_of_others,
    "negative weights": negative_weights,
    "many statistics": lambda: columns(wide_statistics),
    "many columns of a transformer": lambda: columns(repeated_columns),
    "many parts of a date": repeated_parts,
}


@pytest.fixture
def path(tmp_path):
    FRAME.assign(target=TARGET).to_csv(tmp_path / "data.csv", index=False)
    return tmp_path / "model.skops"


@pytest.fixture(params=FORGERIES)
def forged(request, path, contents):
    """The path of a forged file."""
    if request.param not in contents:
        write(path, FORGERIES[request.param]())
        contents[request.param] = path.read_bytes()
    path.write_bytes(contents[request.param])
    return path


@pytest.fixture(scope="module")
def contents():
    """Forged files that were made before, by name."""
    return {}


def test_files_written_so_are_loaded(path):
    """What refuses the others is what they were changed in."""
    for model in (encoder(), rare_categories(), function("sin"), columns(lambda step: None)):
        write(path, model, "unit" if isinstance(model[0], FunctionTransformer) else "empty")
        assert len(load(path).predict(FRAME[model.feature_names_in_])) == 60


def test_load_refuses(forged):
    with pytest.raises(FileFormatError):  # loads skops
        load(forged)
    tracemalloc.start()
    start = time.process_time()
    with pytest.raises(FileFormatError, match=r"is not valid|not loaded by default"):
        load(forged)
    seconds, peak = time.process_time() - start, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert seconds < 5  # 1 without the memory being traced
    assert peak < 4 * forged.stat().st_size + 2**20


def run_all(path, capsys):
    """Return exit codes and errors of the commands that read a model."""
    data = path.with_name("data.csv")
    for command, arguments in {
        "inspect": [],
        "predict": [data, "-o", path.with_name("out.csv")],
        "evaluate": [data, "--target", "target"],
        "convert": ["-o", path.with_name("out.onnx")],
        "report": [data, "-o", path.with_name("out.html"), "--quiet", "--target", "target"],
    }.items():
        code = main([command, str(path), *map(str, arguments)])
        yield command, code, capsys.readouterr().err


@pytest.mark.slow
def test_commands_refuse(forged, capsys):
    for command, code, text in run_all(forged, capsys):
        assert (code, text.count("\n")) == (1, 1), command
        assert "is not valid" in text or "not loaded by default" in text
    assert {file.name for file in forged.parent.iterdir()} == {"data.csv", "model.skops"}


def serve(path, monkeypatch):
    """Return the application that the example server would run."""
    uvicorn = pytest.importorskip("uvicorn", reason="needs uvicorn: pip install 'notsorandom[all]'")
    pytest.importorskip("fastapi", reason="needs fastapi: pip install 'notsorandom[all]'")
    apps = []
    monkeypatch.setattr(uvicorn, "run", lambda app, **_: apps.append(app))
    monkeypatch.setattr(sys, "argv", ["serve.py", str(path)])
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    return apps


@pytest.mark.slow
def test_the_server_refuses(forged, monkeypatch):
    with pytest.raises(SystemExit, match=r"serve.py: .*(is not valid|not loaded by default)"):
        serve(forged, monkeypatch)


@pytest.mark.slow
def test_number_of_processes(path, capsys, monkeypatch):
    """Harmless: the machine that loads a model decides."""

    def change(step):
        step.n_jobs = 24

    model = columns(change)
    model[-1].n_jobs = 24
    write(path, model)
    loaded = load(path)
    assert loaded[0].n_jobs is None
    assert loaded[-1].n_jobs is None
    start = "joblib._parallel_backends.get_memmapping_executor"
    monkeypatch.setattr(start, lambda *_, **__: pytest.fail("processes are started"))
    codes = {command: code for command, code, _ in run_all(path, capsys) if command != "convert"}
    assert codes == dict.fromkeys(codes, 0)
    assert len(serve(path, monkeypatch)) == 1
