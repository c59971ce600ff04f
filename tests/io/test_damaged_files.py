"""Damaged and forged model files: each raises FileFormatError, or is a model that predicts."""

import copy
import json
import os
import pickle
import re
import warnings

import numpy as np
import pandas as pd
import pytest

from notsorandom import (
    Enumerate,
    FileFormatError,
    FourierClassifier,
    FourierFeatures,
    FourierRegressor,
    Sphere,
    load,
    save,
)
from notsorandom.estimators import tuning
from notsorandom.io.models import METADATA_KEY
from notsorandom.io.tensors import (
    DIGEST,
    METADATA,
    compute_digest,
    read_tensors,
    write_tensors,
)

SETTINGS = {"smoothing": 0.06, "random_state": 0}


def split_file(content):
    """Return the header of a file, and its data."""
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def join_file(header, data):
    """Return a file with a correct digest, whatever its header says."""
    header = copy.deepcopy(header)
    metadata = header.pop(METADATA)
    metadata.pop(DIGEST, None)
    metadata[DIGEST] = compute_digest(header, metadata, data)
    text = json.dumps({METADATA: metadata, **header}).encode()
    return len(text).to_bytes(8, "little") + text + data


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    return X, np.where(np.cos(3 * X[:, 0] + X[:, 1]) > 0, "yes", "no")


def with_choices(model):
    """Return the model with what trials choose, and their results."""
    model.C_, model.spectrum_, model.temperature_ = 0.3, "cauchy", 1.7
    model.tuning_ = {
        "spectrum": np.array(["gaussian", "cauchy"]),
        "C": np.array([0.3, 1.0]),
        "loss": np.array([0.4, 0.1]),
    }
    return model


@pytest.fixture(scope="module")
def files(data, tmp_path_factory):
    """Contents of valid files, of all estimators and spaces."""
    X, y = data
    sphere = Sphere(normalize=True)
    with pytest.MonkeyPatch.context() as patch:  # hold out samples, as of large data
        patch.setattr(tuning, "CROSS_VALIDATED_ROWS", 0)
        stopped = FourierClassifier("auto", max_components=8, **SETTINGS).fit(X, y)
    models = {
        "classifier": stopped,
        "logistic": with_choices(FourierClassifier(8, loss="logistic", **SETTINGS).fit(X, y)),
        "three classes": FourierClassifier(8, **SETTINGS).fit(X, np.arange(60) % 3),
        "regressor": FourierRegressor(8, phase="paired", **SETTINGS).fit(X, X[:, :2]),
        "features": FourierFeatures(8, **SETTINGS).fit(pd.DataFrame(X, columns=list("abc")), y),
        "harmonic": FourierClassifier(8, space=sphere, search=Enumerate(2), **SETTINGS).fit(X, y),
        "zonal": FourierFeatures(8, space=Sphere("zonal", normalize=True), **SETTINGS).fit(X, y),
    }
    folder = tmp_path_factory.mktemp("models")
    return {
        name: save(model, folder / "model.safetensors", {"accuracy": 0.9}).read_bytes()
        for name, model in models.items()
    }


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


def assert_rejected(path, message):
    with pytest.raises(FileFormatError, match=message) as caught:
        load(path)
    assert str(path) in str(caught.value)
    assert re.search("use another copy|use the version", str(caught.value))


# Random damage.


def flip_bits(content, rng, other):
    changed = np.frombuffer(content, np.uint8).copy()
    end = len(changed) if rng.random() < 0.5 else min(len(changed), 4000)
    for place in rng.integers(end, size=rng.integers(1, 9)):
        changed[place] ^= np.uint8(1 << rng.integers(8))
    return changed.tobytes()


def cut(content, rng, other):
    first, last = np.sort(rng.integers(len(content) + 1, size=2))
    changes = [content[:first], content[:first] + content[last:], content + rng.bytes(9)]
    return changes[rng.integers(3)]


def swap_headers(content, rng, other):
    (header, data), (other_header, _) = split_file(content), split_file(other)
    if rng.random() < 0.5:
        return join_file(other_header, data)
    return join_file({**header, METADATA: other_header[METADATA]}, data)


def change_entry(content, rng, other):
    """Change a size, shape, type or offset in the header."""
    if rng.random() < 0.2:
        return int(rng.integers(2**63)).to_bytes(8, "little") + content[8:]
    header, data = split_file(content)
    names = [name for name in header if name != METADATA]
    entry = header[names[rng.integers(len(names))]]
    key = ("shape", "data_offsets", "dtype")[rng.integers(3)]
    if key == "dtype":
        entry[key] = str(rng.choice(["F64", "F32", "I64", "I32", "U8", "BOOL", "F16", ""]))
    else:
        sizes = [0, 1, -1, 3, 8, 10**6, 2**31, 2**63, 10**30, True, 0.5, "8", None]
        entry[key] = [sizes[rng.integers(len(sizes))] for _ in range(rng.integers(0, 4))]
    return join_file(header, data)


def change_metadata(content, rng, other):
    """Replace or delete values anywhere in the description of the model."""
    header, data = split_file(content)
    metadata = json.loads(header[METADATA][METADATA_KEY])
    for _ in range(rng.integers(1, 4)):
        parent, key = random_place(metadata, rng)
        kind = rng.integers(3)
        if kind == 0 and len(metadata) > 1:
            del parent[key]
        elif kind == 1:
            parent[key] = random_value(rng)
        else:
            other_parent, name = random_place(metadata, rng)
            parent[key] = copy.deepcopy(other_parent[name])
    text = json.dumps(metadata).replace('"deep"', "[" * 5000 + "]" * 5000)
    header[METADATA][METADATA_KEY] = text
    return join_file(header, data)


def random_place(value, rng):
    parent, key = value, list(value)[rng.integers(len(value))]
    while isinstance(parent[key], dict | list) and parent[key] and rng.random() < 0.8:
        parent = parent[key]
        keys = list(parent) if isinstance(parent, dict) else range(len(parent))
        key = keys[rng.integers(len(keys))]
    return parent, key


def random_value(rng):
    values = [None, True, -1, 0, 1, 2, 10**30, 1e308, -1e-308, "", "nan", "auto", [], {}, "deep"]
    values += [{"number": "nan"}, {"number": "inf"}, {"object": "Euclidean", "parameters": {}}]
    values += [{"array": "kernel.frequencies", "dtype": "f8"}, {"array": "coef_", "dtype": "O"}]
    values += [{"object": "os.system", "parameters": {"command": "true"}}, {"pairs": [[1, 2]]}]
    values += ["FourierRegressor", "FourierFeatures", "squared", "paired", "x" * 1000]
    return values[rng.integers(len(values))]


def change_numbers(content, rng, other):
    header, data = split_file(content)
    changed = np.frombuffer(data, np.uint8).copy()
    start = int(rng.integers(len(changed)))
    numbers = np.array([np.nan, np.inf, -1.0, 0.0, 1e30, -1e-30, 0.5, 3.0])
    part = rng.choice(numbers, size=8).astype(rng.choice(["f4", "f8"])).tobytes()
    part = (part if rng.random() < 0.5 else rng.bytes(64))[: len(changed) - start]
    changed[start : start + len(part)] = np.frombuffer(part, np.uint8)
    return join_file(header, changed.tobytes())


def replace_content(content, rng, other):
    nested = b'{"a":' * 5000
    contents = [b"", rng.bytes(500), b"PK\x03\x04" + rng.bytes(100), b"a,b,c\n1,2,3\n"]
    contents += [len(text).to_bytes(8, "little") + text for text in (nested, b"{}", b"[]", b"null")]
    return contents[rng.integers(len(contents))]


DAMAGES = [
    flip_bits,
    cut,
    swap_headers,
    change_entry,
    change_metadata,
    change_numbers,
    replace_content,
]


@pytest.mark.parametrize("n_files", [40, pytest.param(2000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_rejected_or_a_model_that_predicts(damage, n_files, files, path):
    rng = np.random.default_rng(0)
    contents = list(files.values())
    n_rejected = 0
    for _ in range(n_files):
        first, second = rng.integers(len(contents), size=2)
        path.write_bytes(damage(contents[first], rng, contents[second]))
        try:
            model = load(path)
        except FileFormatError:
            n_rejected += 1
            continue
        X = rng.normal(size=(3, model.n_features_in_))
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert_predicts(model, X)
    assert n_rejected > 0
    if damage in (flip_bits, cut, replace_content):
        # Padding of the header is not in the digest.
        assert n_rejected >= 0.99 * n_files


def assert_predicts(model, X):
    try:
        result = model.transform(X) if hasattr(model, "transform") else model.predict(X)
    except ValueError as error:  # the numbers of the model may be huge
        if "too far from them to compute with" not in str(error):
            raise
        return
    assert len(result) == len(X)
    if hasattr(model, "predict_proba"):
        assert model.predict_proba(X).shape == (len(X), len(model.classes_))


# Specific damage.


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("format",), None, "of format None"),
        (("format",), 2, "of format 2, but .*use the version that wrote the file"),
        (("format",), 4, "of format 4, but .*update the library"),
        (("class",), "SVC", "valid model"),
        (("phase",), "none", "phase is not valid"),
        (("space",), None, "valid model"),
        (("space",), {"object": "Popen", "parameters": {}}, "unknown value.*Popen"),
        (("space", "object"), "Sphere", "valid model"),
        (("space", "parameters", "scale"), 0, "scale=0 is not allowed"),
        (("space", "parameters", "scale"), "median", "scale is not valid"),
        (("space", "parameters", "center"), "mean", "valid model"),
        (("parameters", "C"), -1, "C=-1 is not allowed"),
        (("parameters", "checkpoint"), "/tmp/other", "checkpoint is not valid"),
        (("parameters", "random_state"), "clock", "random_state is not valid"),
        (("parameters", "more"), 1, "its parameters"),
        (("learned", "n_features_in_"), 3.0, "n_features_in_ is not valid"),
        (("learned", "n_features_in_"), 4, "n_features_in_ is not valid"),
        (("learned", "n_samples_fit_"), 0, "n_samples_fit_ is not valid"),
        (("learned", "n_samples_fit_"), 10**12, "_held_out_bits is not valid"),
        (("learned", "status_"), "done", "status_ is not valid"),
        (("learned", "smoothing_"), -1.0, "smoothing_ is not valid"),
        (("learned", "_weighted"), None, "_weighted is not valid"),
        (("learned", "history_"), {"pairs": []}, "history_ is not valid"),
        (("learned", "duality_gap_"), "small", "duality_gap_ is not valid"),
        (("learned", "coef_", "dtype"), "i8", "can't be stored as"),
        (("learned", "coef_", "dtype"), "O", "can't be stored as"),
        (("learned", "classes_", "strings"), "coef_", "valid model"),
    ],
)
def test_a_wrong_value(place, value, message, files, path):
    assert_value_is_rejected(files["classifier"], place, value, message, path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("C_", 0.0),
        ("C_", -1.0),
        ("C_", "auto"),
        ("C_", {"number": "inf"}),
        ("temperature_", 0.0),
        ("temperature_", -2.0),
        ("temperature_", None),
        ("temperature_", 1),
        ("temperature_", {"number": "nan"}),
        ("epsilon_", -1.0),
        ("epsilon_", {"number": "inf"}),
        ("spectrum_", "laplace"),
        ("spectrum_", 3),
        ("tuning_", 1.0),
        ("tuning_", {"pairs": []}),
        ("tuning_", {"pairs": [["C", {"array": "tuning_.C", "dtype": "f8"}]]}),
        ("tuning_", {"pairs": [["loss", {"array": "coef_", "dtype": "f8"}]]}),
        ("tuning_", {"pairs": [["loss", {"strings": "tuning_.spectrum", "objects": False}]]}),
        ("tuning_", {"pairs": [["loss", 0.5]]}),
        (
            "tuning_",
            {
                "pairs": [
                    ["loss", {"array": "tuning_.loss", "dtype": "f8"}],
                    [5, {"array": "tuning_.C", "dtype": "f8"}],
                ]
            },
        ),
        (
            "tuning_",
            {
                "pairs": [
                    ["loss", {"array": "tuning_.loss", "dtype": "f8"}],
                    ["C", {"array": "kernel.weights", "dtype": "f8"}],
                ]
            },
        ),
        (
            "tuning_",
            {
                "pairs": [
                    ["loss", {"array": "tuning_.loss", "dtype": "f8"}],
                    ["spectrum", {"strings": "tuning_.spectrum", "objects": True}],
                ]
            },
        ),
    ],
)
def test_a_wrong_choice(name, value, files, path):
    message = f"{name} is not valid"
    assert_value_is_rejected(files["logistic"], ("learned", name), value, message, path)


def assert_value_is_rejected(content, place, value, message, path):
    header, data = split_file(content)
    metadata = json.loads(header[METADATA][METADATA_KEY])
    parent = metadata
    for key in place[:-1]:
        parent = parent[key]
    parent[place[-1]] = value
    header[METADATA][METADATA_KEY] = json.dumps(metadata)
    path.write_bytes(join_file(header, data))
    assert_rejected(path, message)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("kernel.frequencies", np.nan, "frequencies is not valid"),
        ("kernel.weights", -1.0, "weights is not valid"),
        ("kernel.weights", 1.0, "weights is not valid"),
        ("kernel.scales", np.inf, "scales is not valid"),
        ("kernel.phases", np.nan, "phases is not valid"),
        ("coef_", np.nan, "coef_ is not valid"),
        ("intercept_", np.inf, "intercept_ is not valid"),
    ],
)
def test_a_wrong_number(name, value, message, files, path):
    path.write_bytes(files["classifier"])
    arrays, metadata = read_tensors(path)
    changed = arrays[name].copy()
    changed.flat[0] = value
    write_tensors(path, {**arrays, name: changed}, metadata)
    assert_rejected(path, message)


@pytest.mark.parametrize("space", ["harmonic", "zonal"])
@pytest.mark.parametrize("frequency", [[10**6] * 3, [3, 1, 0], [0, -1, 0]])
def test_frequencies_outside_the_space(space, frequency, files, path):
    path.write_bytes(files[space])
    arrays, metadata = read_tensors(path)
    frequencies = arrays["kernel.frequencies"].copy()
    frequencies[0] = np.array(frequency[: frequencies.shape[1]]) * 1.5 ** (space == "zonal")
    write_tensors(path, {**arrays, "kernel.frequencies": frequencies}, metadata)
    assert_rejected(path, "frequencies is not valid")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"data_offsets":[0,', '"data_offsets":[8,'),
        ('"F32"', '"F16"'),
        ('"dtype"', '"type"'),
        ('"digest":"', '"digest":"0'),
    ],
)
def test_a_wrong_header(old, new, files, path):
    content = files["classifier"]
    length = int.from_bytes(content[:8], "little")
    text = content[8 : 8 + length].decode().rstrip()
    assert old in text
    text = text.replace(old, new, 1).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + length :])
    assert_rejected(path, "its header or data is not valid")


def test_a_safetensors_file_of_another_program(path, rng):
    numpy = pytest.importorskip(
        "safetensors.numpy", reason="needs safetensors: pip install 'notsorandom[all]'"
    )
    numpy.save_file({"a": rng.normal(size=3)}, path)
    assert_rejected(path, "its header or data is not valid")
    write_tensors(path, {"a": rng.normal(size=3)}, {})
    assert_rejected(path, "not those of a model")


def test_what_is_not_a_regular_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "missing.safetensors")
    os.mkfifo(tmp_path / "pipe")
    for other in (tmp_path, tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(FileFormatError, match="not a regular file"):
            load(other)


def test_a_pickle_is_not_executed(tmp_path, path):
    class Payload:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "executed"),)

    path.write_bytes(pickle.dumps(Payload()))
    assert_rejected(path, "header")
    assert not (tmp_path / "executed").exists()


def test_loading_uses_no_pickle(files, path, monkeypatch):
    def fail(*args, **kwargs):
        raise AssertionError("a pickle was opened")

    path.write_bytes(files["classifier"])
    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, fail)
    assert isinstance(load(path), FourierClassifier)


def test_arrays_of_all_types(path, rng):
    arrays = {
        "float64": rng.normal(size=(3, 4)),
        "transposed": rng.normal(size=(3, 4)).T,
        "float32": rng.normal(size=5).astype(np.float32),
        "int64": np.arange(7),
        "int32": np.arange(7, dtype=np.int32),
        "uint8": np.frombuffer(b"abc", np.uint8),
        "bool": np.array([True, False]),
        "scalar": np.array(2.5),
        "empty": np.empty((0, 3)),
    }
    write_tensors(path, arrays, {"name": "value"})
    stored, metadata = read_tensors(path)
    assert metadata == {"name": "value"}
    assert set(stored) == set(arrays)
    for name, array in arrays.items():
        assert (stored[name].dtype, stored[name].shape) == (array.dtype, array.shape)
        np.testing.assert_array_equal(stored[name], array)
