"""Damaged and forged model files: each raises FileFormatError, or is a model that predicts.

``python -m benchmarks.damage`` does the same to many more files.
"""

import io
import json
import os
import pickle
import re
import time
import tracemalloc
import warnings
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import numpy as np
import pytest

from benchmarks.damage import load_and_predict, make_models
from benchmarks.forgery import (
    DAMAGES,
    MARKER,
    Payload,
    cut,
    dangerous_nodes,
    json_node,
    list_node,
    plant_code,
    replace_content,
    trick_zip,
    unzip,
)
from notsorandom import FileFormatError, FourierClassifier, load, save
from notsorandom.io import read_metadata
from notsorandom.io.archive import METADATA, SCHEMA, pack


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Contents of valid files by name, with samples."""
    path = tmp_path_factory.mktemp("models") / "model.skops"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the last step of a pipeline
        return {
            name: (save(model, path, {"accuracy": 0.9}).read_bytes(), X)
            for name, (model, X) in make_models().items()
        }


@pytest.fixture
def path(tmp_path, monkeypatch):
    """The path of a file; nothing that is named in it may be executed."""
    monkeypatch.setenv(MARKER, str(tmp_path / "executed"))
    yield tmp_path / "model.skops"
    assert not (tmp_path / "executed").exists()


def assert_rejected(path, message):
    with pytest.raises(FileFormatError, match=message) as caught:
        load(path)
    assert str(path) in str(caught.value)
    assert re.search("use another copy|give the path", str(caught.value))


def change(content, function, name=SCHEMA):
    """Return a file with a changed schema or metadata, and with a correct digest."""
    parts = unzip(content)
    value = json.loads(parts[name])
    function(value)
    parts[name] = json.dumps(value, indent=2).encode()
    return pack(parts)


def array_file(content, *place):
    """Return the name of the file of an array, an attribute in a schema."""
    node = json.loads(unzip(content)[SCHEMA])
    for key in place:
        node = node["content"]["content"][key]
    return node["file"]


def set_attribute(*place, value):
    """Return a function that replaces the node of an attribute in a schema."""

    def function(schema):
        node = schema
        for key in place[:-1]:
            node = node["content"]["content"][key]
        if value is None:
            del node["content"]["content"][place[-1]]
        else:
            node["content"]["content"][place[-1]] = value

    return function


@pytest.mark.parametrize("n_files", [25, pytest.param(500, marks=pytest.mark.slow)])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_rejected_or_a_model_that_predicts(damage, n_files, files, path):
    rng = np.random.default_rng(0)
    contents = list(files.values())
    outcomes = []
    for _ in range(n_files):
        first, second = rng.integers(len(contents), size=2)
        content, X = contents[first]
        path.write_bytes(damage(content, rng, contents[second][0]))
        outcomes.append(load_and_predict(path, X))
    assert "refused" in outcomes
    if damage in (cut, replace_content, plant_code):
        assert set(outcomes) == {"refused"}
    if damage is trick_zip:  # a few are no tricks, such as a size that is already there
        assert outcomes.count("refused") >= 0.9 * n_files


def test_undamaged_files(files, path):
    for content, X in files.values():
        path.write_bytes(content)
        assert load_and_predict(path, X) == "predicts"
        assert pack(unzip(content)) == content


class TestZip:
    def test_every_byte_is_checked(self, files, path):
        content = files["zonal"][0]
        for place in range(0, len(content), 97):
            changed = bytearray(content)
            changed[place] ^= 1
            path.write_bytes(changed)
            assert_rejected(path, "can't be read")

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            (SCHEMA, "bytes are not as they were written"),
            ("../x", "not an array"),
            ("0.npy", "not an array"),
        ],
    )
    def test_entries_that_should_not_be_there(self, name, message, files, path):
        buffer = io.BytesIO(files["zonal"][0])
        with warnings.catch_warnings(), ZipFile(buffer, "a") as archive:
            warnings.simplefilter("ignore")  # the name is there already
            archive.writestr(ZipInfo(name), b"content" * 30)
        path.write_bytes(buffer.getvalue())
        assert_rejected(path, message)

    def test_a_bomb_is_not_unpacked(self, files, path):
        parts = unzip(files["zonal"][0])
        name = array_file(files["zonal"][0], "frequencies_")
        parts[name] = parts[name][:128] + bytes(2**28)
        buffer = io.BytesIO()
        with ZipFile(buffer, "w") as archive:
            for name, content in parts.items():
                archive.writestr(ZipInfo(name), content, ZIP_DEFLATED)
        path.write_bytes(buffer.getvalue())
        del parts, buffer
        self.assert_little_memory(path)

    def test_many_small_entries(self, path):
        path.write_bytes(pack({str(number): b"" for number in range(60_000)}))
        self.assert_little_memory(path)

    def assert_little_memory(self, path):
        tracemalloc.start()
        assert_rejected(path, "bytes are not as they were written")
        assert tracemalloc.get_traced_memory()[1] < 4 * path.stat().st_size + 2**20
        tracemalloc.stop()

    @pytest.mark.parametrize("field", [20, 24, 42])
    def test_wrong_sizes_and_overlap(self, field, files, path):
        """Sizes and place of an entry, in the directory at the end of the file."""
        content = bytearray(files["zonal"][0])
        entry = content.index(b"PK\x01\x02")
        content[entry + field : entry + field + 4] = (1).to_bytes(4, "little")
        path.write_bytes(content)
        assert_rejected(path, "bytes are not as they were written")


class TestArrays:
    @pytest.mark.parametrize(
        "header",
        [
            "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 1000000000000), }",
            "{'descr': '<U0', 'fortran_order': False, 'shape': (1000000000000,), }",
            "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
            "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,), }",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (1,), 'more': 1, }",
            "(" * 9000,
            "-" * 9000 + "1",
        ],
    )
    def test_forged_headers(self, header, files, path):
        parts = unzip(files["zonal"][0])
        text = header.ljust(117).encode() + b"\n"
        data = bytes(0 if "(0," in header or "U0" in header else 8)
        name = array_file(files["zonal"][0], "phases_")
        parts[name] = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data
        path.write_bytes(pack(parts))
        assert_rejected(path, rf"[Hh]eader|descr|{name} has")

    @pytest.mark.parametrize("name", ["frequencies", "phases", "weights"])
    def test_other_dimensions(self, name, files, path):
        content = files["three classes"][0]
        parts, file = unzip(content), array_file(content, "kernel_", name)
        buffer = io.BytesIO()
        np.save(buffer, np.load(io.BytesIO(parts[file]))[..., None])
        path.write_bytes(pack(parts | {file: buffer.getvalue()}))
        assert_rejected(path, f"{name} is not valid|too many values to unpack")

    def test_shared_files(self, files, path):
        """skops would copy the file for each array that has another number."""

        def share(schema):
            attributes = schema["content"]["content"]
            attributes["phases_"]["file"] = attributes["coef_"]["file"]

        path.write_bytes(change(files["classifier"][0], share))
        assert_rejected(path, "wrong number or file")


class TestSchemas:
    def test_nothing_is_executed(self, files, path):
        nodes = dangerous_nodes(json_node(1))
        assert len(nodes) > 30
        for node in nodes:
            for place in (("C",), ("kernel_", "space"), ("classes_",)):
                forge = set_attribute(*place, value=node)
                path.write_bytes(change(files["classifier"][0], forge))
                assert_rejected(path, "model files can't have")
            path.write_bytes(pack(unzip(files["zonal"][0]) | {SCHEMA: json.dumps(node).encode()}))
            assert_rejected(path, "can't be read")

    def test_old_versions_of_the_schema(self, files, path):
        """They have other loaders."""
        path.write_bytes(change(files["zonal"][0], lambda schema: schema.update(protocol=0)))
        assert_rejected(path, "protocol 0")

    def test_shared_objects(self, files, path):
        """skops would follow all paths to them, here a million million."""
        for has_file in (False, True):
            node = json_node(1)
            for number in range(1000, 1040):
                shared = {"__id__": number} | ({"file": f"{number}.npy"} if has_file else {})
                node = list_node([node, list_node([]) | {"__id__": number - 1}]) | shared
            path.write_bytes(change(files["zonal"][0], set_attribute("C", value=node)))
            start = time.perf_counter()
            assert_rejected(path, "wrong number or file")
            assert time.perf_counter() - start < 5

    @pytest.mark.parametrize(
        ("schema", "message"),
        [
            (b"[" + b"[]," * 10**5 + b"[]]", "too many values"),
            (b"[" * 10**5, "too many values"),
            ((b"[" + b" " * 40) * 10**4, "can't be read"),
            (b'{"protocol": 2,           "a": null}', "can't be read"),
            (b"null" + b" " * 100, "can't be read"),
            (b"", "can't be read"),
        ],
    )
    def test_other_json(self, schema, message, files, path):
        path.write_bytes(pack(unzip(files["zonal"][0]) | {SCHEMA: schema}))
        assert_rejected(path, message)

    def test_deep_nesting(self, files, path):
        node = json_node(1)
        for _ in range(300):
            node = list_node([node])
        path.write_bytes(change(files["zonal"][0], set_attribute("C", value=node)))
        assert_rejected(path, "can't be read")  # how deep is too deep depends on Python

    @pytest.mark.parametrize(
        ("place", "value", "message"),
        [
            (("C",), -1, "C=-1 is not allowed"),
            (("C",), [], r"C=\[\] is not allowed"),
            (("checkpoint",), "/tmp/other", "checkpoint is not valid"),
            (("n_jobs",), 10**6, "n_jobs is not valid"),
            (("n_features_in_",), 4, "could not be broadcast"),
            (("temperature_",), -1.0, "temperature_ is not valid"),
            (("temperature_",), 0.0, "temperature_ is not valid"),
            (("kernel_", "phase"), "none", "coef_ is not valid"),
            (("kernel_", "space", "scale"), 0, "scale=0 is not allowed"),
            (("kernel_", "space", "scale"), "median", "can't be read"),
        ],
    )
    def test_wrong_values(self, place, value, message, files, path):
        forge = set_attribute(*place, value=json_node(value))
        path.write_bytes(change(files["classifier"][0], forge))
        assert_rejected(path, message)

    @pytest.mark.parametrize("name", ["kernel_", "classes_", "coef_", "loss", "_flat"])
    def test_missing_attributes(self, name, files, path):
        source = files["regressor" if name == "_flat" else "classifier"][0]
        schema = json.loads(unzip(source)[SCHEMA])
        attributes = schema["content"]["content"]
        where = list(attributes).index(name)
        del attributes[name]
        del schema["content"]["key_types"]["content"][where]
        path.write_bytes(pack(unzip(source) | {SCHEMA: json.dumps(schema, indent=2).encode()}))
        assert_rejected(path, name)

    @pytest.mark.parametrize(("source", "n_classes"), [("classifier", 1), ("three classes", 2)])
    def test_too_few_classes(self, source, n_classes, files, path):
        content = files[source][0]
        parts, name = unzip(content), array_file(content, "classes_")
        buffer = io.BytesIO()
        np.save(buffer, np.load(io.BytesIO(parts[name]))[:n_classes])
        path.write_bytes(pack(parts | {name: buffer.getvalue()}))
        assert_rejected(path, "coef_ is not valid")

    @pytest.mark.parametrize("degree", [10**7, 2**62])
    def test_degrees_that_take_for_ever(self, degree, files, path):
        for source in ("harmonic", "zonal"):
            parts = unzip(files[source][0])
            name = array_file(files[source][0], "frequencies_")
            array = np.load(io.BytesIO(parts[name]))
            array.flat[0] = degree
            buffer = io.BytesIO()
            np.save(buffer, array)
            path.write_bytes(pack(parts | {name: buffer.getvalue()}))
            assert_rejected(path, "max_degree is not valid")


class TestPipelines:
    def forge_encoder(self, content, function):
        """Return a file with changed attributes of its fitted one-hot encoder."""

        def find(value):
            is_encoder = isinstance(value, dict) and value.get("__class__") == "OneHotEncoder"
            if is_encoder and "categories_" in value["content"]["content"]:
                function(value["content"]["content"])
            for child in value.values() if isinstance(value, dict) else value:
                if isinstance(child, dict | list):
                    find(child)

        return change(content, find)

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("_n_features_outs", list_node([json_node(0)])),
            ("_n_features_outs", list_node([json_node(10**9)])),
            ("_n_features_outs", list_node([json_node(1), json_node(1)])),
            ("_drop_idx_after_grouping", list_node([json_node(-5)])),
            ("_infrequent_enabled", json_node(False)),
            ("_infrequent_indices", list_node([json_node(None)])),
            ("_default_to_infrequent_mappings", list_node([json_node(None)])),
        ],
    )
    def test_codes_out_of_range(self, name, value, files, path):
        """SciPy would write outside of its memory."""

        def forge(attributes):
            assert name in attributes
            attributes[name] = value

        path.write_bytes(self.forge_encoder(files["table"][0], forge))
        assert_rejected(path, "_n_features_outs|mapping|zip")

    def test_codes_of_too_few_categories(self, files, path):
        """The rows of the trial may have none of the others."""
        names = []
        content = files["table"][0]
        mappings = "_default_to_infrequent_mappings"
        self.forge_encoder(content, lambda a: names.append(a[mappings]["content"][0]["file"]))
        parts, buffer = unzip(content), io.BytesIO()
        array = np.load(io.BytesIO(parts[names[0]]))
        assert array.shape == (3,)
        np.save(buffer, array[array.argmax()][None])
        path.write_bytes(pack(parts | {names[0]: buffer.getvalue()}))
        assert_rejected(path, "mapping is not valid")

    def test_folders_and_processes(self, files, path):
        for name, value in {"memory": "/tmp/pickles", "n_jobs": 10**5}.items():
            forge = set_attribute(name, value=json_node(value))
            source = files["pipeline" if name == "memory" else "voting"][0]
            path.write_bytes(change(source, forge))
            assert_rejected(path, f"{name} is not valid")

    def test_what_is_not_an_estimator(self, files, path):
        schema = list_node([]) | {"protocol": 2, "padding": "x" * 100}
        parts = unzip(files["pipeline"][0]) | {SCHEMA: json.dumps(schema).encode()}
        metadata = json.loads(parts[METADATA]) | {"trial": None}
        path.write_bytes(pack(parts | {METADATA: json.dumps(metadata).encode()}))
        assert_rejected(path, "predict is not valid")

    def test_a_step_that_fails(self, files, path):
        def forge(schema):
            steps = schema["content"]["content"]["steps"]["content"]
            steps[0]["content"][1] = steps[1]["content"][1]

        path.write_bytes(change(files["pipeline"][0], forge))
        assert_rejected(path, "transform")


class TestMetadata:
    @pytest.mark.parametrize(
        ("name", "value", "message"),
        [
            ("format", 4, "of format 4, not 5.*the version that wrote it"),
            ("format", None, "of format None"),
            ("metrics", {"a": "b"}, "metrics"),
            ("metrics", 5, "metrics"),
            ("description", 5, "description"),
        ],
    )
    def test_wrong_values(self, name, value, message, files, path):
        content = files["pipeline"][0]
        path.write_bytes(change(content, lambda metadata: metadata.update({name: value}), METADATA))
        assert_rejected(path, message)
        with pytest.raises(FileFormatError, match=message):
            read_metadata(path)

    def test_versions_are_named_if_a_file_cannot_be_read(self, files, path):
        content = change(files["classifier"][0], set_attribute("C", value=json_node(-1)))
        content = change(content, lambda metadata: metadata.update(library="9.0"), METADATA)
        path.write_bytes(content)
        assert_rejected(path, r"C=-1.*the version that wrote it \(notsorandom 9.0, scikit-learn")

    def test_too_much(self, files, path):
        parts = unzip(files["zonal"][0])
        path.write_bytes(pack(parts | {METADATA: b"[" + b"[]," * 10**6 + b"[]]"}))
        assert_rejected(path, "too long")


def test_what_is_not_a_regular_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "missing.skops")
    others = [tmp_path]
    if os.name == "posix":
        os.mkfifo(tmp_path / "pipe")
        others += [tmp_path / "pipe", "/dev/zero"]
    for other in others:
        assert_rejected(other, "not a regular file")


def test_a_pickle_is_not_opened(path):
    path.write_bytes(pickle.dumps(Payload()))
    assert_rejected(path, "bytes are not as they were written")


def test_loading_uses_no_pickle(files, path, monkeypatch):
    def fail(*args, **kwargs):
        raise AssertionError("a pickle was opened")

    path.write_bytes(files["classifier"][0])
    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, fail)
    assert isinstance(load(path), FourierClassifier)


def test_memory(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 5000))
    model = FourierClassifier(50, smoothing=0.1, C=1.0, random_state=0).fit(X, X[:, 0] > 0)
    path = save(model, tmp_path / "model.skops")
    assert path.stat().st_size > 2e6
    tracemalloc.start()
    load(path)
    assert tracemalloc.get_traced_memory()[1] < 4 * path.stat().st_size
    tracemalloc.stop()
