"""Model files: equal predictions, nothing executed, nothing partly written."""

import ast
import errno
import io
import os
import pickle
import re
import subprocess
import sys
from dataclasses import replace
from zipfile import ZipFile

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import (
    ColumnTransformer,
    TransformedTargetRegressor,
    make_column_selector,
)
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    BaggingClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC

import notsorandom
from notsorandom import (
    Ascent,
    Enumerate,
    Euclidean,
    FileFormatError,
    FourierClassifier,
    FourierFeatures,
    FourierRegressor,
    GradientSolver,
    Langevin,
    Sphere,
    SphereKernel,
    load,
    save,
)
from notsorandom.io import read_metadata
from notsorandom.io.archive import CLASSES, SCHEMA
from notsorandom.io.checks import KERNEL_ARRAYS
from notsorandom.search import SEARCHES
from notsorandom.spaces import SPACES

pytestmark = pytest.mark.usefixtures("quick_trials")

SETTINGS = {"smoothing": 0.06, "C": 1.0, "random_state": 0}
METHODS = ("transform", "predict", "decision_function", "predict_proba")


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    numbers = np.where(rng.random(80) < 0.2, np.nan, rng.normal(size=80))
    city = rng.choice(["Rome", "Oslo", None], 80)
    return pd.DataFrame(
        {"a": numbers, "b": rng.normal(size=80), "city": city, "size": rng.choice([3, 4], 80)}
    )


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    return X, np.where(np.cos(3 * X[:, 0] + X[:, 1]) > 0, "yes", "no")


def assert_equal_predictions(model, loaded, X):
    names = [name for name in METHODS if hasattr(model, name)]
    assert names == [name for name in METHODS if hasattr(loaded, name)]
    for name in names:
        before, after = (np.asarray(getattr(each, name)(X)) for each in (model, loaded))
        assert before.dtype == after.dtype
        np.testing.assert_array_equal(before, after)


def make_cases():
    """Return estimators and their targets; None stands for two classes."""
    three = np.arange(80) % 3
    real = np.random.default_rng(1).normal(size=(80, 2))
    sphere = Sphere(normalize=True)
    small = Sphere(normalize=True, max_degree=3)
    uniform = GradientSolver("theory", "uniform", "alternating")
    words = np.array(["b", "a", "cc"])
    return {
        "classifier": (FourierClassifier(8, **SETTINGS), None),
        "paired": (
            FourierClassifier(8, phase="paired", search=Langevin(n_steps=3), **SETTINGS),
            None,
        ),
        "three classes": (FourierClassifier(8, class_weight={0: 2, 1: 1}, **SETTINGS), three),
        "str classes": (FourierClassifier(8, **SETTINGS), words[three]),
        "object classes": (FourierClassifier(8, **SETTINGS), words.astype(object)[three]),
        "float classes": (FourierClassifier(8, **SETTINGS), three + 0.0),
        "uint8 classes": (FourierClassifier(8, **SETTINGS), three.astype(np.uint8)),
        "bool classes": (FourierClassifier(8, **SETTINGS), three > 1),
        "hinge": (FourierClassifier(8, loss="hinge", **SETTINGS), None),
        "features": (FourierFeatures(8, search=Ascent(n_steps=3), **SETTINGS), None),
        "features of real targets": (FourierFeatures(8, loss="squared", **SETTINGS), real),
        "regressor": (FourierRegressor(8, **SETTINGS), real[:, 0]),
        "regressor of a column": (FourierRegressor(8, **SETTINGS), real[:, :1]),
        "regressor of two columns": (
            FourierRegressor(8, loss="epsilon_insensitive", **SETTINGS),
            real,
        ),
        "regressor of outputs": (FourierRegressor(8, **SETTINGS), real),
        "regressor without rows": (FourierRegressor(8, calibration_size=0, **SETTINGS), real),
        "quantile": (FourierRegressor(8, loss="quantile", quantile=0.8, **SETTINGS), real[:, 0]),
        "size chosen": (FourierClassifier("auto", max_components=12, **SETTINGS), None),
        "reweighted": (FourierClassifier(12, solver="reweight", **SETTINGS), None),
        "solver": (FourierClassifier(8, solver=uniform, **SETTINGS), None),
        "all chosen": (FourierClassifier(4, random_state=0), None),
        "chosen of lists": (
            FourierRegressor(4, smoothing=[0.06, 0.2], C=np.array([1.0, 10.0]), random_state=0),
            real[:, 0],
        ),
        "centred": (FourierFeatures(8, space=Euclidean(center=np.arange(3.0)), **SETTINGS), None),
        "harmonic": (FourierClassifier(8, space=sphere, search=Enumerate(2), **SETTINGS), None),
        "zonal": (FourierClassifier(8, space=Sphere("zonal", normalize=True), **SETTINGS), None),
        "degrees": (
            FourierFeatures(9, space=Sphere("degree", 2, normalize=True), **SETTINGS),
            None,
        ),
        "linear": (FourierClassifier(8, linear=True, **SETTINGS), None),
        "linear, three classes": (FourierClassifier(8, linear=True, **SETTINGS), three),
        "linear, two columns": (FourierRegressor(8, linear=True, **SETTINGS), real),
        "linear, paired": (FourierClassifier(8, linear=True, phase="paired", **SETTINGS), None),
        "linear, harmonic": (FourierClassifier(8, space=sphere, linear=True, **SETTINGS), None),
        "equilibrium": (FourierClassifier(8, space=small, solver="equilibrium", **SETTINGS), None),
    }


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("case", make_cases())
def test_a_loaded_model_equals_the_saved_one(case, dtype, data, tmp_path):
    X, y = data[0].astype(dtype), data[1]
    model, targets = make_cases()[case]
    model.fit(X, y if targets is None else targets)
    path = save(model, tmp_path / "model.skops", {"accuracy": 0.5})
    loaded = load(path)
    assert type(loaded) is type(model)
    assert repr(loaded) == repr(model)
    for samples in (X, X[:1], X.astype(np.float32), X.astype(np.float64)):
        assert_equal_predictions(model, loaded, samples)
    if isinstance(model, FourierClassifier):
        assert model.classes_.dtype == loaded.classes_.dtype
        assert loaded.features_.transform(X).tobytes() == model.features_.transform(X).tobytes()
    # Only arrays with one value per training sample are missing, and saving again changes nothing.
    assert set(vars(model)) - set(vars(loaded)) == {"dual_", "average_dual_"}
    again = save(loaded, tmp_path / "again.skops", {"accuracy": 0.5})
    assert again.read_bytes() == path.read_bytes()


def uncertain_models(X, rng):
    """Yield regressors with one and several outputs, and without a posterior."""
    for linear, shape in ((False, (80,)), (True, (80, 2))):
        y = rng.normal(size=shape)
        yield FourierRegressor(8, linear=linear, **SETTINGS).fit(X, y), X
        many = sparse.random_array((80, 3000), density=0.02, random_state=rng, format="csr")
        yield FourierRegressor(8, linear=True, **SETTINGS).fit(many, y), many


def test_uncertainty_of_a_loaded_model(data, rng, tmp_path):
    path = tmp_path / "model.skops"
    found = []
    for model, X in uncertain_models(data[0], rng):
        loaded = load(save(model, path))
        found.append(loaded.posterior_ is not None)
        for coverage in (0.8, [0.5, 0.9]):
            expected = model.predict_interval(X, coverage)
            np.testing.assert_array_equal(loaded.predict_interval(X, coverage), expected)
        for part, whole in zip(
            loaded.predict(X, return_std=True), model.predict(X, return_std=True), strict=True
        ):
            np.testing.assert_array_equal(part, whole)
    assert found == [True, False, True, False]
    model = FourierRegressor(8, calibration_size=0, **SETTINGS).fit(data[0], data[0][:, 0])
    with pytest.raises(ValueError, match="call calibrate with other samples"):
        load(save(model, path)).predict_interval(data[0])


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("noise_", lambda m: -m.noise_),
        ("noise_", lambda m: m.noise_ * np.nan),
        ("noise_", lambda m: m.noise_ * np.inf),
        ("noise_", lambda m: m.noise_[:1]),
        ("noise_", lambda m: m.noise_.astype(int)),
        ("posterior_", lambda m: FourierRegressor(4, **SETTINGS).fit(*small()).posterior_),
        ("posterior_", lambda m: m.held_out_scores_),
        ("posterior_", lambda m: 1.0),
        ("mean", lambda m: replace(m.posterior_, mean=m.posterior_.mean * np.nan)),
        ("mean", lambda m: replace(m.posterior_, mean=m.posterior_.mean + 1e300)),
        ("variances", lambda m: replace(m.posterior_, factor=growing(m.posterior_.factor))),
        ("factor", lambda m: replace(m.posterior_, factor=m.posterior_.factor[:-1])),
        ("factor", lambda m: replace(m.posterior_, factor=-m.posterior_.factor)),
        ("total_weight", lambda m: replace(m.posterior_, total_weight=0.0)),
        ("held_out_scores_", lambda m: FourierRegressor(**SETTINGS).fit(*small()).held_out_scores_),
        ("held_out_scores_", lambda m: m.posterior_),
        ("held_out_scores_", lambda m: None),
        ("scores", lambda m: replace(m.held_out_scores_, scores=-m.held_out_scores_.scores)),
        ("counts", lambda m: replace(m.held_out_scores_, counts=m.held_out_scores_.counts[1:])),
    ],
)
def test_forged_uncertainty(data, tmp_path, name, change):
    model = FourierRegressor(8, **SETTINGS).fit(data[0], data[0][:, :2])
    owner = {"scores": "held_out_scores_", "counts": "held_out_scores_"}.get(name, "posterior_")
    setattr(model, name if name[-1] == "_" else owner, change(model))
    with pytest.raises(ValueError, match=f"{name} is not valid"):
        save(model, tmp_path / "model.skops")


def growing(factor):
    """Return a triangular factor whose inverse overflows, though no number is extreme."""
    diagonal = np.cumsum(np.arange(1, len(factor))) - 1
    return np.where(np.isin(np.arange(len(factor)), diagonal), 1e-29, 1e29)


def small():
    """Return samples with one target."""
    X = np.random.default_rng(0).normal(size=(50, 3))
    return X, X[:, 0] + np.random.default_rng(1).normal(size=50)


def test_linear_part_of_a_table_and_of_sparse_samples(frame, tmp_path):
    y = np.arange(80) % 2
    table = notsorandom.tabular_pipeline(FourierClassifier(8, linear=True, **SETTINGS))
    path = save(table.fit(frame, y), tmp_path / "model.skops")
    assert_equal_predictions(table, load(path), frame)
    X = sparse.random_array(
        (80, 300), density=0.1, random_state=np.random.default_rng(0), format="csr"
    )
    model = FourierClassifier(8, linear=True, **SETTINGS).fit(X, y)
    loaded = load(save(model, path))
    assert loaded.kernel_.linear_center is None
    assert loaded.kernel_.linear_scale == model.kernel_.linear_scale
    for samples in (X, X.toarray()):
        assert_equal_predictions(model, loaded, samples)
    found = loaded.features_.transform(X)
    np.testing.assert_array_equal(found.toarray(), model.features_.transform(X).toarray())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("linear_scale", -1.0),
        ("linear_scale", np.nan),
        ("linear_scale", np.inf),
        ("linear_scale", "1"),
        ("linear_scale", True),
        ("linear_scale", None),
        ("linear_center", np.zeros(4)),
        ("linear_center", np.zeros((1, 3))),
        ("linear_center", np.zeros(3, dtype=int)),
        ("linear_center", np.array(list("abc"))),
        ("linear_center", np.array([0.0, np.nan, 0.0])),
        ("linear_center", np.array([0.0, np.inf, 0.0])),
        ("linear_center", 0.0),
        ("linear_center", [0.0, 0.0, 0.0]),
        ("uses_linear_part_", False),
        ("uses_linear_part_", 1),
        ("uses_linear_part_", "yes"),
        ("uses_linear_part_", None),
        ("coef_", np.zeros((1, 8))),
        ("coef_", np.zeros((1, 12))),
    ],
)
def test_forged_linear_part(data, tmp_path, name, value):
    model = FourierClassifier(8, linear=True, **SETTINGS).fit(*data)
    if name.startswith("linear"):
        object.__setattr__(model.kernel_, name, value)
    else:
        setattr(model, name, value)
    with pytest.raises(ValueError, match=f"{name} is not valid"):
        save(model, tmp_path / "model.skops")


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_kernel_of_whole_degrees(data, tmp_path, dtype):
    X, y = data[0].astype(dtype), data[1]
    model = SphereKernel(4, random_state=0).fit(X, y)
    loaded = load(save(model, tmp_path / "model.skops"))
    assert repr(loaded.kernel_) == repr(model.kernel_)
    assert loaded.transform(X).tobytes() == model.transform(X).tobytes()
    assert not loaded.kernel_.weights.flags.writeable


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("weights", np.array([np.nan])),
        ("weights", np.array([-1.0])),
        ("weights", np.ones((1, 1))),
        ("weights", np.ones(10_001)),
        ("n_features", 3.0),
    ],
)
def test_forged_kernel_of_whole_degrees(data, tmp_path, name, value):
    model = SphereKernel(4).fit(*data)
    object.__setattr__(model.kernel_, name, value)
    with pytest.raises(ValueError, match=f"{name} is not valid"):
        save(model, tmp_path / "model.skops")


def test_all_attributes(data, tmp_path):
    model = FourierClassifier("auto", max_components=8, **SETTINGS).fit(*data)
    model.C_, model.spectrum_, model.temperature_ = 0.3, "cauchy", 1.7
    model.tuning_ = {
        "spectrum": np.array(["gaussian", "cauchy", "cauchy"]),
        "C": np.array([1.0, 0.3, 1e3]),
        "loss": np.array([0.4, 0.1, 0.3]),
        "standard_error": np.array([0.1, 0.05, np.nan]),
    }
    loaded = load(save(model, tmp_path / "model.skops"))
    assert_equal_predictions(model, loaded, data[0])
    for name in vars(loaded):
        before, after = getattr(model, name), getattr(loaded, name)
        assert type(after) is type(before), name
        if isinstance(before, np.ndarray):
            np.testing.assert_array_equal(before, after)
        elif isinstance(before, dict):
            assert list(before) == list(after)
            for key, column in before.items():
                assert after[key].dtype == column.dtype
                np.testing.assert_array_equal(after[key], column)
        elif not name.endswith(("kernel_", "held_out_scores_")):
            assert after == before, name
    for name in KERNEL_ARRAYS:
        for kernel in ("kernel_", "average_kernel_"):
            before, after = (getattr(getattr(each, kernel), name) for each in (model, loaded))
            assert before.dtype == after.dtype
            np.testing.assert_array_equal(before, after)
            assert not after.flags.writeable
    np.testing.assert_array_equal(model.predict_set(data[0]), loaded.predict_set(data[0]))
    model.spectrum_ = model.tuning_ = None
    loaded = load(save(model, tmp_path / "model.skops"))
    assert loaded.spectrum_ is None
    assert loaded.tuning_ is None


@pytest.mark.parametrize("case", ["size chosen", "zonal", "regressor of two columns"])
def test_a_loaded_model_has_the_same_certificate(case, data, tmp_path):
    X, y = data
    model, targets = make_cases()[case]
    y = y if targets is None else targets
    loaded = load(save(model.fit(X, y), tmp_path / "model.skops"))
    uppers = [each.certificate(X, y, max_evaluations=1000).upper for each in (model, loaded)]
    assert uppers[0] == uppers[1]


def test_frequencies_are_stored_once(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 256))
    model = FourierClassifier(50, **SETTINGS).fit(X, np.cos(X[:, 0]) > 0.5)
    path = save(model, tmp_path / "model.skops")
    held_out = model.held_out_scores_
    size = path.stat().st_size - model.feature_importances_.nbytes
    size -= held_out.scores.nbytes + held_out.counts.nbytes
    assert size < 1.5 * model.frequencies_.nbytes
    loaded = load(path)
    assert loaded.frequencies_ is loaded.kernel_.frequencies
    assert loaded.frequencies_ is loaded.average_kernel_.frequencies


def test_feature_names_generators_and_paths(data, tmp_path):
    X, y = pd.DataFrame(data[0], columns=["a", "b", "ü"]), data[1]
    model = FourierClassifier(8, random_state=np.random.RandomState(0), smoothing=0.06).fit(X, y)
    model.set_params(checkpoint=tmp_path / "here")
    pipeline = make_pipeline(model, memory=str(tmp_path / "there"))
    for each, find in ((model, lambda m: m), (pipeline, lambda m: m[-1])):
        path = save(each, tmp_path / "model.skops")
        loaded = load(path)
        np.testing.assert_array_equal(find(loaded).feature_names_in_, X.columns)
        assert_equal_predictions(each, loaded, X)
        with pytest.raises(ValueError, match="feature names"):
            loaded.predict(X.rename(columns={"a": "z"}))
        assert find(loaded).random_state is None
        assert find(loaded).checkpoint is None
        assert str(tmp_path).encode() not in path.read_bytes()
    assert model.checkpoint == tmp_path / "here"
    assert isinstance(model.random_state, np.random.RandomState)
    assert pipeline.memory == str(tmp_path / "there")


def test_what_belongs_to_the_training_is_not_in_the_file(data, tmp_path):
    X, y = data
    model = FourierClassifier(8, warm_start=True, **SETTINGS)
    pipeline = make_pipeline(StandardScaler(), model)
    pipeline.fit(X, y, fourierclassifier__sample_weight=np.arange(1.0, 81))
    size = size_without_scores(pipeline, tmp_path)
    attributes = set(vars(model))
    loaded = load(tmp_path / "model.skops")
    assert_equal_predictions(pipeline, loaded, X)
    assert attributes - set(vars(loaded[-1])) == {"dual_", "average_dual_", "_warm_start"}
    assert set(vars(model)) == attributes  # unchanged
    with pytest.raises(ValueError, match="weights, which model files don't keep"):
        loaded[-1].certificate(loaded[0].transform(X), y)
    pipeline.set_params(fourierclassifier__warm_start=False)
    pipeline.fit(np.tile(X, (20, 1)), np.tile(y, 20))
    assert abs(size_without_scores(pipeline, tmp_path) - size) < 0.1 * size


def size_without_scores(pipeline, tmp_path):
    """Return the bytes of a model file without the scores of at most 2048 held-out samples."""
    held_out = pipeline[-1].held_out_scores_
    size = save(pipeline, tmp_path / "model.skops").stat().st_size
    return size - held_out.scores.nbytes - held_out.counts.nbytes


class TestPipelines:
    def check(self, model, X, tmp_path):
        """Check a model whose classes need no trust."""
        path = save(model, tmp_path / "model.skops")
        loaded = load(path)
        assert type(loaded) is type(model)
        assert_equal_predictions(model, loaded, X)
        return read_metadata(path)["trial"]

    def make(self, **parameters):
        return FourierClassifier(8, **SETTINGS | parameters)

    @pytest.mark.parametrize("drop", [None, "first", "if_binary"])
    def test_data_frame(self, drop, data, frame, tmp_path):
        numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
        text = make_pipeline(
            SimpleImputer(strategy="most_frequent"),
            OneHotEncoder(drop=drop, min_frequency=2, handle_unknown="ignore"),
        )
        encode = ColumnTransformer(
            [
                ("numbers", numbers, make_column_selector(dtype_include=np.number)),
                ("text", text, ["city"]),
            ],
            remainder="passthrough",
        )
        model = make_pipeline(encode, self.make()).fit(frame, data[1])
        assert self.check(model, frame, tmp_path)
        encode.set_output(transform="default")
        model = make_pipeline(encode, FunctionTransformer(np.exp), self.make())
        assert self.check(model.fit(frame, data[1]), frame, tmp_path)

    @pytest.mark.parametrize(
        "scaler", [StandardScaler(), MinMaxScaler(clip=True), MaxAbsScaler(), RobustScaler()]
    )
    def test_scalers(self, scaler, data, tmp_path):
        model = make_pipeline(scaler, self.make()).fit(*data)
        assert self.check(model, data[0], tmp_path) == "unit"

    @pytest.mark.parametrize("numbers", ["raw", "both"])
    def test_tables_without_scores(self, numbers, data, tmp_path):
        frame = pd.DataFrame({"x": data[0][:, 0].round(), "city": ["Rome", "Oslo"] * 40})
        model = notsorandom.tabular_pipeline(self.make(), numbers=numbers).fit(frame, data[1])
        assert self.check(model, frame, tmp_path)

    @pytest.mark.parametrize("numbers", ["auto", "raw", "scores"])
    def test_tabular_pipeline(self, numbers, data, frame, tmp_path):
        frame = frame.assign(
            when=pd.date_range("2020-01-01", periods=80), text=[f"{k}.2.2020" for k in [1, 2] * 40]
        )
        model = notsorandom.tabular_pipeline(self.make(), numbers=numbers).fit(frame, data[1])
        assert self.check(model, frame, tmp_path) == "missing"

    def test_intervals_of_a_tabular_pipeline(self, data, frame, tmp_path):
        y = np.random.default_rng(1).normal(size=len(frame))
        model = notsorandom.tabular_pipeline(FourierRegressor(8, **SETTINGS)).fit(frame, y)
        loaded = load(save(model, tmp_path / "model.skops"))
        expected = model.predict_interval(frame, [0.5, 0.9])
        np.testing.assert_array_equal(loaded.predict_interval(frame, [0.5, 0.9]), expected)
        assert loaded.calibrate(frame, y) is loaded

    def test_unknown_categories_that_are_an_error(self, data, frame, tmp_path):
        """The rows to try have no category that is known."""
        model = make_pipeline(OneHotEncoder(), self.make()).fit(frame[["size"]], data[1])
        assert self.check(model, frame[["size"]], tmp_path) == "missing"
        for each in (model, load(tmp_path / "model.skops")):
            with pytest.raises(ValueError, match="unknown categories"):
                each.predict(frame[["size"]] + 100)

    def test_rows_that_cannot_be_made_up(self, data, tmp_path):
        steps = FunctionTransformer(np.negative), FunctionTransformer(np.sqrt)
        model = make_pipeline(*steps, self.make()).fit(-np.abs(data[0]), data[1])
        with pytest.raises(ValueError, match="can't be saved: its steps compute neither a row of"):
            save(model, tmp_path / "model.skops")

    def test_search(self, data, tmp_path):
        X, y = data
        pipeline = make_pipeline(StandardScaler(), self.make())
        grid = {"fourierclassifier__n_components": [4, 8]}
        search = GridSearchCV(pipeline, grid, cv=2).fit(X, y)
        self.check(search.best_estimator_, X, tmp_path)
        with pytest.warns(UserWarning, match=r"trusted=.*GridSearchCV"):
            save(search, tmp_path / "search.skops")


def last_names(names):
    return {name.rpartition(".")[-1] for name in names}


class TestTrust:
    """Of other classes, `save` and the error of `load` give the names, and `load` takes them."""

    def check(self, model, X, tmp_path, names):
        with pytest.warns(UserWarning, match="refuses by default") as caught:
            path = save(model, tmp_path / "model.skops")
        trusted = ast.literal_eval(str(caught[0].message).partition("trusted=")[2][:-2])
        assert last_names(trusted) == set(names.split())
        with pytest.raises(FileFormatError, match="not loaded by default") as error:
            load(path)
        assert f"load(path, trusted={trusted})" in str(error.value)
        assert_equal_predictions(model, load(path, trusted=trusted), X)
        for left_out in trusted:
            with pytest.raises(FileFormatError, match=re.escape(f"default: {left_out}. If")):
                load(path, trusted=[name for name in trusted if name != left_out])

    @pytest.mark.parametrize(
        ("make_model", "names"),
        [
            (lambda m: OneVsRestClassifier(m), "OneVsRestClassifier LabelBinarizer"),
            (
                lambda m: VotingClassifier([("a", m), ("b", LogisticRegression())]),
                "VotingClassifier LabelEncoder Bunch LogisticRegression",
            ),
            (lambda m: StackingClassifier([("a", m)], cv=2), None),
            (
                lambda m: BaggingClassifier(m, n_estimators=2, random_state=0),
                "BaggingClassifier",
            ),
            (
                lambda m: CalibratedClassifierCV(m, cv=2),
                "CalibratedClassifierCV _CalibratedClassifier _SigmoidCalibration",
            ),
            (lambda m: make_pipeline(PCA(2), m), "PCA"),
            (lambda m: make_pipeline(FunctionTransformer(np.positive), m), "positive"),
            (lambda m: make_pipeline(FunctionTransformer(abs), m), "abs"),
            (lambda m: SVC(), "SVC"),
            (lambda m: make_pipeline(OtherFeatures(4, **SETTINGS), m), "OtherFeatures"),
            (lambda m: m.set_params(search=OtherSearch()), "OtherSearch"),
        ],
    )
    def test_other_classes(self, make_model, names, data, tmp_path):
        X, y = data
        model = make_model(FourierClassifier(8, **SETTINGS)).fit(X, y)
        names = names or "StackingClassifier LabelEncoder Bunch LogisticRegression"
        self.check(model, X, tmp_path, names)

    def test_targets_and_features(self, data, tmp_path):
        X, y = data
        model = TransformedTargetRegressor(FourierRegressor(8, **SETTINGS), func=np.log1p)
        model.set_params(inverse_func=np.expm1).fit(X, X[:, 0] ** 2)
        self.check(model, X, tmp_path, "TransformedTargetRegressor")
        features = FourierFeatures(8, **SETTINGS).set_output(transform="pandas")
        model = make_pipeline(features, LogisticRegression()).fit(X, y)
        self.check(model, X, tmp_path, "LogisticRegression")

    def test_our_own_parts_are_checked_as_ever(self, data, tmp_path):
        model = BaggingClassifier(FourierClassifier(8, **SETTINGS), 2).fit(*data)
        model.estimators_[1].coef_[0, 0] = np.nan
        with pytest.raises(ValueError, match="coef_ is not valid"):
            save(model, tmp_path / "model.skops")

    def test_a_name_alone_is_not_a_list(self, data, tmp_path):
        path = save(FourierClassifier(8, **SETTINGS).fit(*data), tmp_path / "model.skops")
        for trusted in ("sklearn.svm._classes.SVC", [SVC]):
            with pytest.raises(TypeError, match="give a list of full names"):
                load(path, trusted=trusted)


def test_jobs_are_not_stored(data, tmp_path):
    """The machine that loads a model decides how many processes there are."""
    encode = ColumnTransformer([("a", StandardScaler(), [0, 1, 2])], n_jobs=2)
    model = make_pipeline(encode, FourierClassifier(8, n_jobs=2, **SETTINGS)).fit(*data)
    loaded = load(save(model, tmp_path / "model.skops"))
    assert_equal_predictions(model, loaded, data[0])
    assert (loaded[0].n_jobs, loaded[1].n_jobs) == (None, None)
    assert (model[0].n_jobs, model[1].n_jobs) == (2, 2)


def test_metadata(data, tmp_path):
    model = FourierClassifier(8, **SETTINGS).fit(*data)
    description = {"fit": {"rows": 80, "columns": ["a", "ü"]}}
    path = save(model, tmp_path / "model.skops", {"test accuracy": 0.75}, description)
    metadata = read_metadata(path)
    assert metadata["class"] == "FourierClassifier"
    assert metadata["library"] == notsorandom.__version__
    assert metadata["scikit-learn"] == sklearn.__version__
    assert metadata["metrics"] == {"test accuracy": 0.75}
    assert metadata["description"] == description
    path = save(make_pipeline(model), tmp_path / "model.skops")
    assert read_metadata(path)["class"] == "Pipeline"
    assert read_metadata(path)["metrics"] == read_metadata(path)["description"] == {}


def test_bad_paths(data, tmp_path):
    model = FourierFeatures(4, **SETTINGS).fit(*data)
    for path, error in (("m.bin", ValueError), (tmp_path / "no/m.skops", OSError), (5, TypeError)):
        with pytest.raises(error, match=r"ends in \.skops|doesn't exist|path=5"):
            save(model, path)


class OtherSearch(Ascent):
    """A search of a user."""


class OtherFeatures(FourierFeatures):
    """An estimator of a user."""


class TestWhatCannotBeSaved:
    @pytest.fixture
    def path(self, tmp_path):
        yield tmp_path / "model.skops"
        assert os.listdir(tmp_path) == []

    def test_unfitted_models(self, path):
        for model in (FourierFeatures(), make_pipeline(StandardScaler(), FourierClassifier())):
            with pytest.raises(NotFittedError):
                save(model, path)

    def test_what_skops_would_change(self, data, path):
        X, y = data
        model = FourierClassifier(4, class_weight={True: 2.0, False: 1.0}, **SETTINGS)
        with pytest.raises(ValueError, match="keys are booleans"):
            save(model.fit(X, y == "yes"), path)

    def test_metrics_and_descriptions(self, data, path):
        model = FourierFeatures(4, **SETTINGS).fit(*data)
        for metrics in ({"a": "b"}, {"a": np.nan}, {"a": 10**400}, [1]):
            with pytest.raises(ValueError, match="metrics"):
                save(model, path, metrics)
        for description in ({"a": object()}, 5, {"a": "x" * 2**20}):
            with pytest.raises(ValueError, match="JSON"):
                save(model, path, description=description)

    @pytest.mark.parametrize(
        ("estimator", "change"),
        [
            (FourierClassifier, {"C": -1}),
            (FourierClassifier, {"space": Sphere(basis="none")}),
            (FourierFeatures, {"loss": "none"}),
        ],
    )
    def test_parameters_changed_after_the_fit(self, estimator, change, data, path):
        """An error when saving, not when loading, when the model is gone."""
        model = estimator(4, **SETTINGS).fit(*data).set_params(**change)
        for each in (model, make_pipeline(model)):
            with pytest.raises(ValueError, match="fit it again"):
                save(each, path)


def test_the_kernel_keeps_its_phase(data, tmp_path):
    model = FourierClassifier(8, **SETTINGS).fit(*data).set_params(phase="paired")
    assert_equal_predictions(model, load(save(model, tmp_path / "model.skops")), data[0])


def test_a_full_disk(data, tmp_path, monkeypatch):
    X, y = data
    path = save(FourierClassifier(4, **SETTINGS).fit(X, y), tmp_path / "model.skops")
    before = path.read_bytes()
    model = FourierClassifier(8, **SETTINGS).fit(X, y)

    def full_disk(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full_disk)
        with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)) as caught:
            save(model, path)
    assert "an earlier file is unchanged" in str(caught.value)
    assert str(path) in str(caught.value)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model.skops"]
    assert_equal_predictions(model, load(save(model, path)), X)


def test_all_spaces_and_searches_can_be_saved():
    for kind in (*SPACES.values(), *SEARCHES.values()):
        assert f"{kind.__module__}.{kind.__qualname__}" in CLASSES


class TestOtherPrograms:
    def test_a_file_of_skops_itself_is_not_a_model_file(self, data, tmp_path):
        import skops.io

        model = FourierClassifier(8, **SETTINGS).fit(*data)
        skops.io.dump(model, tmp_path / "model.skops")
        with pytest.raises(FileFormatError, match="bytes are not as they were written"):
            load(tmp_path / "model.skops")

    def test_joblib_and_pickle_keep_everything(self, data):
        X, y = data
        model = FourierClassifier(8, **SETTINGS).fit(X, y)
        file = io.BytesIO()
        joblib.dump(model, file)
        file.seek(0)
        for copy in (joblib.load(file), pickle.loads(pickle.dumps(model))):
            assert_equal_predictions(model, copy, X)
            assert set(vars(copy)) == set(vars(model))


def test_number_of_nodes_and_arrays_does_not_depend_on_the_number_of_columns(tmp_path, rng):
    """Else it took minutes to save a table of 100,000 columns."""
    counts = []
    for n_columns in (10, 200):
        X = pd.DataFrame(rng.normal(size=(30, n_columns))).add_prefix("c")
        model = notsorandom.tabular_pipeline(FourierClassifier(4, **SETTINGS))
        path = save(model.fit(X, X["c0"] > 0), tmp_path / "model.skops")
        assert_equal_predictions(model, load(path), X)
        with ZipFile(path) as archive:
            counts.append((len(archive.namelist()), archive.read(SCHEMA).count(b"__loader__")))
    assert counts[0] == counts[1]


@pytest.mark.slow
def test_torch_and_dask_are_not_imported(data, tmp_path):
    """skops imports all of scikit-learn, and with it what its adapters of arrays are for."""
    path = save(FourierClassifier(4, **SETTINGS).fit(*data), tmp_path / "model.skops")
    code = f"from notsorandom import load, save; save(load({str(path)!r}), {str(path)!r})"
    code = f"import sys, pandas; {code}; print(*{{'torch', 'dask', 'cupy'}} & {{*sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == ""
