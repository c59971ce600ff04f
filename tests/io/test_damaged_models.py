"""Damaged and forged model files: each raises FileFormatError, or is a model that predicts."""

import io
import json
import math
import os
import pickle
import re
import subprocess
import sys
import time
import tracemalloc
import warnings
from contextlib import contextmanager
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import numpy as np
import pandas as pd
import pytest
from forgery import (
    DAMAGES,
    MARKER,
    Payload,
    array_bytes,
    change,
    cut,
    dangerous_nodes,
    json_node,
    list_node,
    nodes_of,
    plant_code,
    replace_content,
    trick_zip,
    unzip,
)
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    RobustScaler,
    StandardScaler,
)

from notsorandom import (
    Enumerate,
    FileFormatError,
    FourierClassifier,
    FourierFeatures,
    FourierRegressor,
    LearnedKernel,
    Sphere,
    load,
    save,
    tabular_pipeline,
)
from notsorandom.cli import main
from notsorandom.io import read_metadata
from notsorandom.io.archive import METADATA, SCHEMA, pack
from notsorandom.io.checks import validate
from notsorandom.tabular import NumberEncoder

SETTINGS = {"smoothing": 0.06, "C": 1.0, "random_state": 0}


def make_models():
    """Return fitted models of all kinds, with samples for each."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.where(np.cos(3 * X[:, 0] + X[:, 1]) > 0, "yes", "no")
    classifier = FourierClassifier(8, **SETTINGS)
    sphere, zonal = Sphere(normalize=True), Sphere("zonal", normalize=True)
    harmonic = FourierClassifier(8, space=sphere, search=Enumerate(2), **SETTINGS)
    frame = pd.DataFrame(X, columns=list("abc"))
    table = frame.assign(a=frame["a"].where(frame["a"] > -1), city=rng.choice(list("xyyz"), 60))
    one_hot = OneHotEncoder(min_frequency=15, handle_unknown="infrequent_if_exist", drop="first")
    encode = make_column_transformer(
        (make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), list("abc")),
        (one_hot, ["city"]),
    )
    scalers = [MinMaxScaler(), MaxAbsScaler(), RobustScaler(), FunctionTransformer(np.sin)]
    wide, cleaned = rng.normal(size=(60, 1000)), table.assign(k=1.0)
    return {
        "classifier": (FourierClassifier("auto", max_components=8, **SETTINGS).fit(X, y), X),
        "three classes": (clone(classifier).fit(X, np.arange(60) % 3), X),
        "wide": (FourierClassifier(100, **SETTINGS).fit(wide, y), wide),
        "regressor": (FourierRegressor(8, phase="paired", **SETTINGS).fit(X, X[:, :2]), X),
        "features": (FourierFeatures(8, **SETTINGS).fit(frame, y), frame),
        "linear": (FourierClassifier(8, linear=True, **SETTINGS).fit(X, y), X),
        "harmonic": (harmonic.fit(X, y), X),
        "zonal": (FourierFeatures(8, space=zonal, **SETTINGS).fit(X, y), X),
        "pipeline": (make_pipeline(StandardScaler(), clone(classifier)).fit(X, y), X),
        "table": (make_pipeline(encode, clone(classifier)).fit(table, y), table),
        "cleaned": (tabular_pipeline(clone(classifier)).fit(cleaned, y), cleaned),
        "scalers": (make_pipeline(*scalers, clone(classifier)).fit(X, y), X),
    }


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Contents of valid files by name, with samples."""
    path = tmp_path_factory.mktemp("models") / "model.skops"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a column is constant
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
    assert re.search(
        "use another copy|give the path|load it by|fit the model again", str(caught.value)
    )


@contextmanager
def memory_limit(n_bytes):
    """Assert that no more memory is allocated at any time."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < n_bytes
    finally:
        tracemalloc.stop()


def attributes(node, *place):
    """Return the nodes of the attributes of an object in a schema, by name."""
    for key in place:
        node = node["content"]["content"][key]
    return node["content"]["content"]


def set_attribute(*place, value):
    """Return a function that replaces the node of an attribute in a schema."""
    return lambda schema: attributes(schema, *place[:-1]).update({place[-1]: value})


def with_array(content, *place, change):
    """Return a file in which an array, an attribute in its schema, was changed by a function."""
    parts = unzip(content)
    name = attributes(json.loads(parts[SCHEMA]), *place[:-1])[place[-1]]["file"]
    return pack(parts | {name: array_bytes(change(np.load(io.BytesIO(parts[name]))))})


# Random damage


def load_and_predict(path, X):
    """Return "refused", or what happened when a loaded model was used for rows like `X`."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = load(path)
        except FileFormatError:
            return "refused"
        if not hasattr(X, "columns") and model.n_features_in_ != X.shape[1]:
            X = np.random.default_rng(0).normal(size=(3, model.n_features_in_))
        try:
            result = model.predict(X) if hasattr(model, "predict") else model.transform(X)
        except ValueError:  # a clean error: numbers too large, other names of columns
            return "refused rows"
    assert result.shape[0] == len(X)
    return "predicts"


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
        start = time.perf_counter()
        outcomes.append(load_and_predict(path, X))
        assert time.perf_counter() - start < 20  # 0.4 s on an idle machine
        if n_files > 100 and len(outcomes) % 5 == 0:
            with memory_limit(4 * path.stat().st_size + 2**20):
                load_and_predict(path, X)
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
        [(SCHEMA, "not as they were written"), ("../x", "not an array"), ("0.npy", "not an array")],
    )
    def test_entries_that_should_not_be_there(self, name, message, files, path):
        buffer = io.BytesIO(files["zonal"][0])
        with warnings.catch_warnings(), ZipFile(buffer, "a") as archive:
            warnings.simplefilter("ignore")  # the name is there already
            archive.writestr(ZipInfo(name), b"content" * 30)
        path.write_bytes(buffer.getvalue())
        assert_rejected(path, message)

    @pytest.mark.parametrize("kind", ["bomb", "small entries"])
    def test_little_memory(self, kind, path):
        if kind == "bomb":
            with ZipFile(path, "w") as archive:
                archive.writestr(ZipInfo("1.npy"), bytes(2**28), ZIP_DEFLATED)
        else:
            path.write_bytes(pack({str(number): b"" for number in range(60_000)}))
        with memory_limit(4 * path.stat().st_size + 2**20):
            assert_rejected(path, "bytes are not as they were written")

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
        name = attributes(json.loads(parts[SCHEMA]))["phases_"]["file"]
        parts[name] = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data
        path.write_bytes(pack(parts))
        assert_rejected(path, rf"[Hh]eader|descr|{name} has")

    @pytest.mark.parametrize(
        ("source", "place", "function", "message"),
        [
            (
                "three classes",
                ("kernel_", "frequencies"),
                lambda a: a[..., None],
                "too many values",
            ),
            ("three classes", ("kernel_", "phases"), lambda a: a[..., None], "phases is not valid"),
            (
                "three classes",
                ("kernel_", "weights"),
                lambda a: a[..., None],
                "weights is not vali",
            ),
            ("three classes", ("classes_",), lambda a: a[:2], "coef_ is not valid"),
            ("classifier", ("classes_",), lambda a: a[:1], "coef_ is not valid"),
            ("regressor", ("intercept_",), lambda a: np.ones((10_000, 1, 1)), "intercept_ is not"),
            ("linear", ("coef_",), lambda a: a[:, :8], "coef_ is not valid"),
            ("linear", ("kernel_", "linear_center"), lambda a: a[:2], "linear_center is not"),
            ("linear", ("kernel_", "linear_center"), lambda a: a * np.nan, "linear_center is not"),
            ("linear", ("kernel_", "linear_center"), lambda a: a.astype(int), "linear_center is"),
            ("linear", ("kernel_", "linear_center"), lambda a: a[:, None], "linear_center is not"),
            ("classifier", ("kernel_", "weights"), lambda a: a - 0.2, "weights is not valid"),
            ("classifier", ("coef_",), lambda a: a * np.nan, "coef_ is not valid"),
            ("regressor", ("intercept_",), lambda a: a + np.inf, "intercept_ is not valid"),
            ("three classes", ("classes_",), lambda a: a[::-1].copy(), "classes_ is not valid"),
            ("regressor", ("noise_",), lambda a: -a, "noise_ is not valid"),
            ("regressor", ("noise_",), lambda a: a * np.nan, "noise_ is not valid"),
            ("regressor", ("noise_",), lambda a: a[:, None], "noise_ is not valid"),
            ("regressor", ("posterior_", "factor"), lambda a: a[:-1], "factor is not valid"),
            (
                "regressor",
                ("held_out_scores_", "scores"),
                lambda a: a[:, :1],
                "held_out_scores_ is",
            ),
            ("classifier", ("held_out_scores_", "scores"), lambda a: a * [[1, 1]], "scores is not"),
            ("zonal", ("frequencies_",), lambda a: a * 1e7, "max_degree is not valid"),
            ("harmonic", ("frequencies_",), lambda a: a * 0 + 2**62, "max_degree is not valid"),
        ],
    )
    def test_wrong_arrays(self, source, place, function, message, files, path):
        path.write_bytes(with_array(files[source][0], *place, change=function))
        assert_rejected(path, message)

    def test_shared_files(self, files, path):
        """skops would copy the file for each array that has another number."""

        def share(schema):
            attributes(schema)["phases_"]["file"] = attributes(schema)["coef_"]["file"]

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
                assert_rejected(path, "not loaded by default")
            path.write_bytes(pack(unzip(files["zonal"][0]) | {SCHEMA: json.dumps(node).encode()}))
            assert_rejected(path, "can't be read")

    def test_old_versions_of_the_schema(self, files, path):
        """They have other loaders."""
        path.write_bytes(change(files["zonal"][0], lambda schema: schema.update(protocol=0)))
        assert_rejected(path, "protocol 0")

    @pytest.mark.parametrize("has_file", [False, True])
    def test_shared_objects(self, has_file, files, path):
        """skops would follow all paths to them, here a million million."""
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
        ("source", "place", "value", "message"),
        [
            ("classifier", ("C",), -1, "C=-1 is not allowed"),
            ("classifier", ("C",), [], r"C=\[\] is not allowed"),
            ("classifier", ("checkpoint",), "/tmp/other", "checkpoint is not valid"),
            ("classifier", ("n_features_in_",), 4, "feature_importances_ is not valid"),
            ("classifier", ("temperature_",), -1.0, "temperature_ is not valid"),
            ("classifier", ("temperature_",), 0.0, "temperature_ is not valid"),
            ("classifier", ("kernel_", "phase"), "none", "coef_ is not valid"),
            ("classifier", ("kernel_", "space", "scale"), 0, "scale=0 is not allowed"),
            ("classifier", ("kernel_", "space", "scale"), "median", "can't be read"),
            ("linear", ("linear",), "maybe", "linear='maybe' is not allowed"),
            ("linear", ("kernel_", "linear_scale"), -1.0, "linear_scale is not valid"),
            ("linear", ("kernel_", "linear_scale"), math.nan, "linear_scale is not valid"),
            ("linear", ("kernel_", "linear_scale"), math.inf, "linear_scale is not valid"),
            ("linear", ("kernel_", "linear_scale"), "1", "linear_scale is not valid"),
            ("linear", ("kernel_", "linear_scale"), 0.0, "uses_linear_part_ is not valid"),
            ("linear", ("kernel_", "linear_center"), 1.0, "linear_center is not valid"),
            ("linear", ("uses_linear_part_",), "yes", "uses_linear_part_ is not valid"),
            ("classifier", ("uses_linear_part_",), True, "uses_linear_part_ is not valid"),
            ("pipeline", ("memory",), "/tmp/pickles", "memory is not valid"),
        ],
    )
    def test_wrong_values(self, source, place, value, message, files, path):
        forge = set_attribute(*place, value=json_node(value))
        path.write_bytes(change(files[source][0], forge))
        assert_rejected(path, message)

    @pytest.mark.parametrize("name", ["kernel_", "classes_", "coef_", "loss", "_flat"])
    def test_missing_attributes(self, name, files, path):
        def remove(schema):
            where = list(attributes(schema)).index(name)
            del attributes(schema)[name]
            del schema["content"]["key_types"]["content"][where]

        source = "regressor" if name == "_flat" else "classifier"
        path.write_bytes(change(files[source][0], remove))
        assert_rejected(path, name)


class TestPipelines:
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
            ("_default_to_infrequent_mappings", "one category"),
        ],
    )
    def test_codes_out_of_range(self, name, value, files, path):
        """SciPy would write outside of its memory, for rows other than those of the trial."""
        content = files["table"][0]
        parts = unzip(content)

        def forge(schema):
            for node in nodes_of(schema):
                if node["__class__"] == "OneHotEncoder" and "categories_" in attributes(node):
                    if value == "one category":
                        file = attributes(node)[name]["content"][0]["file"]
                        array = np.load(io.BytesIO(parts[file]))
                        assert array.shape == (3,)
                        parts[file] = array_bytes(array[array.argmax()][None])
                    else:
                        assert name in attributes(node)
                        attributes(node)[name] = value

        forged = unzip(change(content, forge))[SCHEMA]
        path.write_bytes(pack(parts | {SCHEMA: forged}))
        assert_rejected(path, "_n_features_outs|mapping|_infrequent_indices|_drop_idx")

    def test_an_object_that_is_no_estimator(self, files, path):
        schema = list_node([]) | {"protocol": 2, "padding": "x" * 100}
        parts = unzip(files["pipeline"][0]) | {SCHEMA: json.dumps(schema).encode()}
        metadata = json.loads(parts[METADATA]) | {"trial": "unit"}
        path.write_bytes(pack(parts | {METADATA: json.dumps(metadata).encode()}))
        assert_rejected(path, "predict is not valid")

    def test_a_step_that_fails(self, files, path):
        def forge(schema):
            steps = attributes(schema)["steps"]["content"]
            steps[0]["content"][1] = steps[1]["content"][1]

        path.write_bytes(change(files["pipeline"][0], forge))
        assert_rejected(path, "transform")

    def test_attributes_of_a_cleaner(self, files, path, capsys):
        def forge(schema):
            for node in nodes_of(schema):
                if node["__class__"] == "TableCleaner":
                    attributes(node)["left_out_"] = list_node([])

        path.write_bytes(change(files["cleaned"][0], forge))
        assert_rejected(path, "left_out_ is not valid")
        assert main(["inspect", str(path)]) == 1
        assert capsys.readouterr().err.count("\n") == 1

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("center_", np.array([0.0, np.nan, 0.0])),
            ("scale_", np.ones(2)),
            ("scale_", np.zeros(3)),
            ("number_columns_", np.array([0, 1, 3])),
            ("score_columns_", np.array([0, 1, -1])),
            ("missing_columns_", np.zeros(1000, int)),
            ("n_knots_", np.array([60, 120])),
            ("n_knots_", np.array([60, 0, 120])),
            ("n_knots_", np.array([60, -60, 180])),
            ("n_knots_", np.array([60.0, 60.0, 60.0])),
            ("knots_", []),
            ("knots_", np.zeros((2, 0))),
            ("knots_", np.tile(np.arange(180.0), (3, 1))),
            ("knots_", np.tile(np.r_[:90.0, 89:179], (2, 1))),  # two are equal
            ("knots_", np.array([np.arange(180.0), np.full(180, np.nan)])),
        ],
    )
    def test_forged_numbers(self, name, value):
        X = np.random.default_rng(0).normal(size=(60, 3))
        model = make_pipeline(NumberEncoder(), Ridge()).fit(X, X[:, 0])
        validate(model, "missing", 1000)
        setattr(model[0], name, value)
        with pytest.raises(ValueError, match=f"{name} is not valid"):
            validate(model, "missing", 1000)

    def test_format_of_feature_names(self, files, path):
        """ColumnTransformer formats any template, also one with a width of 30 million letters."""
        parts = unzip(files["cleaned"][0])
        template = "{feature_name}"
        schema = parts[SCHEMA].decode()
        assert template in schema
        for wide in ("{feature_name:>30000000}", "{feature_name!r}", "{feature_name.__class__}"):
            path.write_bytes(pack(parts | {SCHEMA: schema.replace(template, wide).encode()}))
            with memory_limit(4 * path.stat().st_size + 2**20):
                assert_rejected(path, "verbose_feature_names_out is not valid")


def fitted_steps():
    """Return a fitted step of each class of scikit-learn that a file may have by default."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    X[rng.random(X.shape) < 0.2] = np.nan
    codes = np.column_stack([rng.choice([1, 2, 5, 9, 7.5], 60), rng.choice([3, 4], 60)])
    texts = rng.choice(list("aaaabbbbcd"), (60, 2))
    rare = OneHotEncoder(min_frequency=10, handle_unknown="infrequent_if_exist")
    columns = make_column_transformer((StandardScaler(), [0, 2]), (SimpleImputer(), slice(1, 2)))
    return {
        "pipeline": make_pipeline(StandardScaler()).fit(X),
        "columns": columns.fit(X),
        "numbers": OneHotEncoder(handle_unknown="ignore").fit(codes),
        "texts": OneHotEncoder(drop="first", handle_unknown="ignore").fit(texts),
        "rare": rare.fit(texts),
        "standard": StandardScaler().fit(X),
        "min and max": MinMaxScaler().fit(X),
        "max": MaxAbsScaler().fit(X),
        "robust": RobustScaler().fit(X),
        "imputer": SimpleImputer(add_indicator=True).fit(X),
        "function": FunctionTransformer(np.sin).fit(X),
    }


class TestSteps:
    """Attributes of scikit-learn's classes end in indices, shapes and compiled code."""

    def check(self, name, step):
        """Check a step, which computes rows of missing values or of numbers."""
        trial = "empty" if name in ("texts", "rare") else "unit"
        validate(step, "missing" if name == "imputer" else trial, 1000)

    def test_honest_steps(self):
        for name, step in fitted_steps().items():
            self.check(name, step)
            with pytest.raises(ValueError, match="neither a row of missing values"):
                validate(step, None, 1000)

    @pytest.mark.parametrize(
        ("name", "attribute", "value"),
        [
            # searchsorted returns 5 for 5 categories: memory behind a mapping would be changed.
            ("numbers", "categories_", [np.array([9.0, 7.5, 5, 2, 1]), np.array([3.0, 4])]),
            ("numbers", "categories_", [np.array([1, 2, 5, 5, 9.0]), np.array([3.0, 4])]),
            ("numbers", "categories_", [np.array([1, np.nan, 5, 6, 9.0]), np.array([3.0, 4])]),
            ("numbers", "categories_", [np.array([1, 2, 5, 6j, 9.0]), np.array([3.0, 4])]),
            ("numbers", "categories_", [np.array([1, np.nan, np.nan, 9]), np.array([3.0, 4])]),
            ("numbers", "categories_", [np.array([9, 7, 5, 2, 1], object), np.array([3.0, 4])]),
            ("numbers", "categories_", [np.array([1, "a", 5, 7, 9], object), np.array([3.0, 4])]),
            ("numbers", "categories_", [np.array([1, 2, 5, 7.5, 9.0])]),
            ("numbers", "categories_", [np.ones((5, 1)), np.array([3.0, 4])]),
            ("numbers", "categories_", [np.array([1, 2, 5, 7.5]), np.array([3.0, 4])]),
            ("numbers", "categories_", [np.zeros(0), np.array([3.0, 4])]),
            ("numbers", "categories_", [np.array([3.0, 4])] * 2),  # a long one would be shared
            ("numbers", "_n_features_outs", [5, 3]),
            ("numbers", "_n_features_outs", [5, 2.0]),
            ("numbers", "dtype", "O"),
            ("numbers", "dtype", "M8[s]"),
            ("numbers", "feature_name_combiner", np.add),
            ("numbers", "n_features_in_", 1),
            ("texts", "categories_", [np.array(list("aacd")), np.array(list("abcd"))]),
            ("texts", "categories_", [np.array([b"a", b"b", b"c", b"d"]), np.array(list("abcd"))]),
            ("texts", "categories_", [np.array(["a", None, None, "d"]), np.array(list("abcd"))]),
            ("texts", "_drop_idx_after_grouping", np.array([0, 4], object)),
            ("texts", "_drop_idx_after_grouping", np.array([0, -1], object)),
            ("texts", "_drop_idx_after_grouping", np.array([0, 0.5], object)),
            ("texts", "_drop_idx_after_grouping", np.array([0], object)),
            ("rare", "_infrequent_indices", [np.array([2, 4])] * 2),
            ("rare", "_infrequent_indices", [np.array([2, -1])] * 2),
            ("rare", "_infrequent_indices", [np.array([2.0, 3.0])] * 2),
            ("rare", "_infrequent_indices", [None] * 2),
            ("rare", "_default_to_infrequent_mappings", [np.array([0, 1, 2, 3])] * 2),
            ("rare", "_default_to_infrequent_mappings", [np.array([0, 1, 9, 9])] * 2),
            ("rare", "_default_to_infrequent_mappings", [None] * 2),
            ("rare", "_infrequent_enabled", False),
            ("standard", "mean_", np.zeros(2)),
            ("standard", "mean_", np.zeros((3, 1))),
            ("standard", "mean_", None),
            ("standard", "scale_", np.array([1, np.nan, 1])),
            ("standard", "n_features_in_", 10**8),
            ("standard", "n_features_in_", "3"),
            ("standard", "feature_names_in_", np.array(["a", "b"], object)),
            ("standard", "transform", np.sin),
            ("standard", "with_mean", "yes"),
            ("min and max", "min_", np.array([0, np.inf, 0])),
            ("max", "scale_", np.array(["a", "b", "c"])),
            ("robust", "center_", None),
            ("imputer", "statistics_", np.zeros(4)),
            ("imputer", "statistics_", np.array([[0], [0], [0]], object)),
            ("imputer", "statistics_", np.array([[1], {}, 0], object)),
            ("imputer", "indicator_", None),
            ("imputer", "strategy", np.sin),
            ("pipeline", "memory", "/tmp/pickles"),
            ("pipeline", "steps", [("a", LearnedKernel)]),
            ("pipeline", "steps", [(1, StandardScaler())]),
            ("columns", "transformers_", [("standardscaler", StandardScaler(), [0, 3])]),
            ("columns", "transformers_", [("standardscaler", StandardScaler(), [0, 1])]),
            ("columns", "transformers_", [("standardscaler", np.sin, [0, 2])]),
            ("columns", "transformers_", [("other", StandardScaler(), [0, 2])]),
            ("columns", "transformers_", [("standardscaler", StandardScaler(), np.sin)]),
            ("columns", "transformers_", [("standardscaler", StandardScaler(), [0] * 10**5)]),
            ("columns", "transformer_weights", 3),
            ("columns", "sparse_output_", None),
            ("columns", "verbose_feature_names_out", np.add),
            # A ufunc leaves gaps where `where` is false: what was in memory before.
            ("function", "kw_args", {"where": False}),
            ("function", "inv_kw_args", {"casting": "unsafe"}),
            ("function", "func", np.empty),
            ("function", "func", np.ndarray),
            ("function", "inverse_func", np.ndarray),
            ("function", "feature_names_out", np.sin),
        ],
    )
    def test_forged_steps(self, name, attribute, value):
        step = fitted_steps()[name]
        vars(step)[attribute] = value
        with pytest.raises(Exception, match=r"."):  # any becomes a FileFormatError
            self.check(name, step)

    @pytest.mark.parametrize("name", fitted_steps())
    def test_missing_attributes(self, name):
        step = fitted_steps()[name]
        unused = {"n_samples_seen_", "var_", "data_min_", "data_max_", "data_range_", "max_abs_"}
        unused |= {"drop_idx_", "_fit_dtype", "_fill_dtype", "_columns", "_remainder"}
        unused |= (
            {"output_indices_", "n_features_in_"} if name == "function" else {"output_indices_"}
        )
        for attribute in vars(step).keys() - unused:
            forged = clone(step)
            vars(forged).update(vars(step))
            del vars(forged)[attribute]
            with pytest.raises(Exception, match=r"."):
                self.check(name, forged)

    def test_kinds_of_categories_and_gaps(self):
        """Text does not take the place of numbers, nor None that of NaN."""
        X, y = np.array([[1.0], [2.0], [np.nan]] * 20), np.arange(60) % 2
        model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), SimpleImputer(), Ridge())
        model.fit(X, y)
        validate(model, "missing", 1000)
        model[0].categories_ = [np.array(["1", "2", "nan"])]
        with pytest.raises(TypeError):
            validate(model, "missing", 1000)
        model = make_pipeline(SimpleImputer(), Ridge()).fit(X, y)
        model[0].missing_values = None
        with pytest.raises(ValueError, match="NaN"):
            validate(model, "missing", 1000)

    def test_indicators(self):
        step = fitted_steps()["imputer"]
        for features in (np.array([3]), np.array([-1]), np.array([0, 0]), np.array([0.0]), [0]):
            step.indicator_.features_ = features
            with pytest.raises(ValueError, match="features_ is not valid"):
                self.check("imputer", step)

    @pytest.mark.parametrize("command", ["inspect", "predict", "evaluate", "convert", "report"])
    def test_commands_refuse_other_classes(self, command, tmp_path, capsys):
        X = np.random.default_rng(0).normal(size=(60, 2))
        data = pd.DataFrame(X, columns=["a", "b"]).assign(c=[0, 1] * 30)
        data.to_csv(tmp_path / "data.csv", index=False)
        model = make_pipeline(PCA(2), FourierClassifier(4, **SETTINGS))
        model.fit(data[["a", "b"]], data["c"])
        with pytest.warns(UserWarning, match="refuses by default"):
            path = str(save(model, tmp_path / "model.skops"))
        arguments = [command, path]
        arguments += [str(tmp_path / "data.csv")] * (command in ("predict", "evaluate", "report"))
        arguments += ["--target", "c"] * (command in ("evaluate", "report"))
        outputs = {"predict": "out.csv", "convert": "out.onnx", "report": "out.html"}
        if command in outputs:
            arguments += ["-o", str(tmp_path / outputs[command])]
        assert main(arguments) == 1
        assert "not loaded by default: sklearn.decomposition._pca.PCA" in capsys.readouterr().err
        if command == "convert":
            pytest.importorskip("skl2onnx", reason="needs skl2onnx: pip install 'notsorandom[all]'")
        assert main([*arguments, "--trust", "sklearn.decomposition._pca.PCA"]) == 0


class TestMetadata:
    @pytest.mark.parametrize(
        ("name", "value", "message"),
        [
            ("format", 5, "has format 5 .*reads format 6: fit the model again .*the version"),
            ("format", None, "has format None"),
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


def test_paths_of_other_kinds(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "missing.skops")
    others = [tmp_path]
    if os.name == "posix":
        os.mkfifo(tmp_path / "pipe")
        others += [tmp_path / "pipe", "/dev/zero"]
    for other in others:
        assert_rejected(other, "not a regular file")


def test_no_pickle_is_opened(files, path, monkeypatch):
    path.write_bytes(pickle.dumps(Payload()))
    assert_rejected(path, "bytes are not as they were written")

    def fail(*args, **kwargs):
        raise AssertionError("a pickle was opened")

    path.write_bytes(files["classifier"][0])
    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, fail)
    assert isinstance(load(path), FourierClassifier)


def test_memory_of_a_valid_file(tmp_path):
    X = np.random.default_rng(0).normal(size=(100, 5000))
    model = FourierClassifier(50, **SETTINGS).fit(X, X[:, 0] > 0)
    path = save(model, tmp_path / "model.skops")
    assert path.stat().st_size > 2e6
    with memory_limit(4 * path.stat().st_size):
        load(path)


# Prints the memory above that of loading the honest file, in bytes.
CHILD = """
import resource, sys, notsorandom
notsorandom.load(sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    notsorandom.load(sys.argv[2])
except notsorandom.FileFormatError:
    print(1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before))
"""


@pytest.mark.slow
def test_resident_memory_of_forged_intercepts(tmp_path):
    """Intercepts of another shape would be combined with all rows and outputs."""
    rng = np.random.default_rng(0)
    model = FourierRegressor(8, **SETTINGS)
    model.fit(rng.normal(size=(100, 3)), rng.normal(size=(100, 2000)))
    honest, forged = save(model, tmp_path / "honest.skops"), tmp_path / "forged.skops"
    forge = lambda array: np.ones((10_000, 1, 1))  # noqa: E731
    forged.write_bytes(with_array(honest.read_bytes(), "intercept_", change=forge))
    command = [sys.executable, "-c", CHILD, honest, forged]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) <= 4 * forged.stat().st_size + 20e6
