"""ONNX graphs: the answers of the model or pipeline, to 1e-5 of their size."""

import sys
import warnings
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pandas as pd
import pytest
import reference
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    OneHotEncoder,
    PolynomialFeatures,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
)

from notsorandom import (
    Euclidean,
    FourierClassifier,
    FourierFeatures,
    FourierRegressor,
    Sphere,
    tabular_pipeline,
    to_onnx,
)
from notsorandom.data.rows import Rows
from notsorandom.spaces import HarmonicSphere, ZonalSphere
from notsorandom.spaces.harmonics import harmonic_indices
from notsorandom.tabular import NumberEncoder

pytestmark = pytest.mark.usefixtures("quick_trials")

skl2onnx = pytest.importorskip("skl2onnx", reason="needs skl2onnx: pip install 'notsorandom[all]'")
onnx = pytest.importorskip("onnx", reason="needs onnx: pip install 'notsorandom[all]'")
onnxruntime = pytest.importorskip(
    "onnxruntime", reason="needs onnxruntime: pip install 'notsorandom[all]'"
)

TOLERANCE = 1e-5
SETTINGS = {"n_components": 12, "C": 1.0, "smoothing": 0.06, "random_state": 0}
# Space, phase and number of columns.
CASES = {
    "aligned": ("euclidean", "aligned", 3),
    "paired": ("euclidean", "paired", 3),
    "circle": (Sphere("harmonic", max_degree=12), "aligned", 2),
    "harmonic": (Sphere("harmonic", max_degree=10), "aligned", 3),
    "harmonic pairs": (Sphere("harmonic", max_degree=10), "paired", 3),
    "whole degrees": (Sphere("degree", max_degree=2), "aligned", 4),
    "zonal": (Sphere("zonal"), "aligned", 50),
    "normalized": (Sphere("zonal", normalize=True), "aligned", 5),
}
# Outputs, and the methods of the model that they are compared with.
METHODS = {"features": "transform", "prediction": "predict", "decision": "decision_function"}
METHODS |= {"probabilities": "predict_proba"}


@pytest.fixture
def check(tmp_path):
    """Export a model, compare the outputs of its graph with the model's own, and return them.

    `samples` are for the model, if they are other ones than for the graph.
    """

    def compare(model, X, samples=None):
        path = tmp_path / "model.onnx"
        assert to_onnx(model, path) == path
        outputs = run_graph(path, X)
        samples = X if samples is None else samples
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # unknown categories
            for name in outputs.keys() - {"label"}:
                assert_close(outputs[name], getattr(model, METHODS[name])(samples))
            if "label" in outputs:
                decisions = model.decision_function(samples)
                if decisions.ndim == 1:
                    margins = 2 * np.abs(decisions)
                else:
                    margins = np.diff(np.sort(decisions, axis=1)[:, -2:], axis=1)[:, 0]
                clear = margins > 4 * TOLERANCE * np.abs(decisions).max()  # despite rounding
                assert clear.mean() > 0.9
                predicted = model.predict(samples)
                assert outputs["label"][clear].tolist() == predicted[clear].tolist()
        return outputs

    return compare


def assert_close(found, expected):
    assert found.dtype == np.float32
    assert found.shape == expected.shape
    size = np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=TOLERANCE, atol=TOLERANCE * size)


def run_graph(path, X):
    session = start_session(path)
    feed = {"X": X}
    if isinstance(X, pd.DataFrame):
        types = {"tensor(float)": np.float32, "tensor(string)": object}
        feed = {
            each.name: X[[each.name]].to_numpy(types[each.type]) for each in session.get_inputs()
        }
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, feed), strict=True))


def start_session(model):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


@lru_cache
def make_samples(n_features, euclidean):
    """Return samples in float32, on the sphere or not, and real targets of three columns."""
    rng = np.random.default_rng(0)
    X = reference.sphere_points(rng, 120, n_features)
    if euclidean:
        X = 3 * X * rng.uniform(size=(120, 1)) + 1
    targets = np.sin(4 * X @ rng.standard_normal((n_features, 3)))
    return X.astype(np.float32), targets


@lru_cache
def fit_case(kind, case, **changes):
    """Return a fitted estimator, a classifier with two classes, and its samples."""
    space, phase, n_features = CASES[case]
    X, targets = make_samples(n_features, euclidean=space == "euclidean")
    y = targets[:, 0] if kind is FourierRegressor else targets[:, 0] > 0
    # In float64, so that everything in the model has to be rounded.
    model = kind(space=space, phase=phase, **SETTINGS | changes).fit(X.astype(np.float64), y)
    return model, X


def with_frequencies(space, frequencies, X):
    """Return a transformer with these frequencies, of equal weights."""
    model = FourierFeatures(space=space, **SETTINGS).fit(X, X[:, 0] > 0)
    count = len(frequencies)
    model.kernel_ = replace(
        model.kernel_,
        frequencies=frequencies,
        phases=np.zeros(count),
        scales=model.kernel_.space.scales(Rows(X), frequencies),
        weights=np.full(count, 1 / count),
    )
    return model


MODELS = {
    "features": (FourierFeatures, {}, ["features"]),
    "classes": (FourierClassifier, {"loss": "hinge"}, ["label", "decision"]),
    "probabilities": (FourierClassifier, {}, ["label", "probabilities", "decision"]),
    "regression": (FourierRegressor, {}, ["prediction"]),
    "quantile": (FourierRegressor, {"loss": "quantile", "quantile": 0.8}, ["prediction"]),
    "linear part": (
        FourierClassifier,
        {"linear": True},
        ["label", "probabilities", "decision"],
    ),
    "linear regression": (FourierRegressor, {"linear": True}, ["prediction"]),
}


class TestOutputs:
    @pytest.mark.parametrize("case", CASES)
    @pytest.mark.parametrize("name", MODELS)
    def test_every_space(self, check, name, case):
        kind, changes, names = MODELS[name]
        assert list(check(*fit_case(kind, case, **changes))) == names

    @pytest.mark.parametrize("temperature", [0.01, 1.0, 100.0])
    def test_probabilities_of_three_classes(self, tmp_path, temperature):
        X, targets = make_samples(3, euclidean=True)
        model = FourierClassifier(loss="logistic", **SETTINGS).fit(X, targets.argmax(axis=1))
        model.temperature_ = temperature
        found = run_graph(to_onnx(model, tmp_path / "model.onnx"), X)["probabilities"]
        tolerance = TOLERANCE * np.abs(model.decision_function(X)).max() / min(temperature, 1)
        np.testing.assert_allclose(found, model.predict_proba(X), atol=tolerance)
        np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-6)

    def test_small_probabilities_keep_their_digits(self, check):
        X, targets = make_samples(3, euclidean=True)
        model = FourierClassifier(loss="logistic", **SETTINGS).fit(X, targets[:, 0] > 0)
        model.coef_ *= 30 / np.abs(model.decision_function(X)).max()
        model.temperature_ = 1.0
        expected = model.predict_proba(X)
        assert expected.min() < 1e-9
        np.testing.assert_allclose(check(model, X)["probabilities"], expected, rtol=1e-3)

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_linear_part_of_samples_far_from_zero(self, check, dtype):
        """The part of the centre that float32 can't hold is not lost."""
        X, targets = make_samples(3, euclidean=True)
        far = (X + np.array([1e5, 0, -33.3], np.float32)).astype(dtype)
        y = 3 * far[:, 0] + targets[:, 0]
        model = FourierRegressor(linear=True, **SETTINGS).fit(far, y)
        model.intercept_ -= y.mean()  # so that the tolerance is relative to the differences
        check(model, far.astype(np.float32))
        labels = np.digitize(y - y.mean(), [-1, 1])
        check(FourierClassifier(linear=True, **SETTINGS).fit(far, labels), far.astype(np.float32))

    def test_linear_part_of_a_model_of_sparse_samples(self, check):
        rng = np.random.default_rng(0)
        X = sparse.random_array(
            (80, 200), density=0.1, random_state=rng, format="csr", dtype=np.float32
        )
        model = FourierClassifier(linear=True, **SETTINGS).fit(X, X[:, :9].sum(axis=1) > 0.4)
        assert model.kernel_.linear_center is None
        check(model, X.toarray())

    @pytest.mark.parametrize("width", [1, 3])
    def test_several_targets(self, check, width):
        X, targets = make_samples(3, euclidean=True)
        model = FourierRegressor(**SETTINGS).fit(X, targets[:, :width])
        assert check(model, X)["prediction"].shape == (len(X), width)

    @pytest.mark.parametrize("coverage", [0.8, [0.5, 0.9]])
    @pytest.mark.parametrize("case", ["numbers", "column", "outputs", "sphere", "many columns"])
    def test_deviations_and_intervals(self, tmp_path, case, coverage):
        X, targets = make_samples(3, euclidean=case != "sphere")
        settings = SETTINGS | ({"space": CASES["harmonic"][0]} if case == "sphere" else {})
        y = targets + np.random.default_rng(1).normal(size=targets.shape)
        y = y[:, 0] if case in ("numbers", "sphere") else y[:, :1] if case == "column" else y
        model = FourierRegressor(**settings).fit(X, y)
        if case == "many columns":
            model.posterior_ = None
        path = to_onnx(model, tmp_path / "model.onnx", return_std=True, coverage=coverage)
        shapes = [output.shape for output in start_session(path).get_outputs()]
        outputs = run_graph(path, X)
        assert list(outputs) == ["prediction", "std", "interval"]
        assert [shape[1:] for shape in shapes] == [list(v.shape[1:]) for v in outputs.values()]
        prediction, std = model.predict(X, return_std=True)
        assert_close(outputs["prediction"], prediction)
        assert_close(outputs["std"], std)
        assert_close(outputs["interval"], model.predict_interval(X, coverage))
        alone = to_onnx(model, path, coverage=coverage)
        assert list(run_graph(alone, X)) == ["prediction", "interval"]

    @pytest.mark.parametrize(
        ("names", "dtype"),
        [
            (np.array([False, True]), np.bool_),
            (np.array([-3, 7]), np.int64),
            (np.array([2, 40, 5], dtype=np.uint8), np.int64),
            (np.array([-1.0, 1.0]), np.float32),
            (np.array(["no", "yes"]), np.object_),
            (np.array(["Zürich", "a", "longer"], dtype=object), np.object_),
        ],
        ids=["bool", "int", "uint8", "float", "str", "object"],
    )
    def test_labels_are_the_classes(self, check, names, dtype):
        X, targets = make_samples(3, euclidean=True)
        codes = targets[:, : len(names)].argmax(axis=1)
        labels = check(FourierClassifier(**SETTINGS).fit(X, names[codes]), X)["label"]
        assert labels.dtype == dtype
        assert set(labels.tolist()) == set(names.tolist())

    @pytest.mark.parametrize("case", ["aligned", "harmonic", "zonal"])
    @pytest.mark.parametrize("count", [0, 1, 1000])
    def test_any_number_of_rows(self, check, tmp_path, case, count):
        model, X = fit_case(FourierClassifier, case)
        X = np.resize(X, (count, X.shape[1]))
        if count:
            check(model, X)
        else:
            outputs = run_graph(to_onnx(model, tmp_path / "model.onnx"), X)
            assert outputs["decision"].shape == outputs["label"].shape == (0,)

    def test_reweighted_and_shortened_models(self, check):
        model, X = fit_case(FourierFeatures, "paired", solver="reweight")
        check(model, X)
        check(model.head(4), X)


class TestEveryDegree:
    @pytest.mark.parametrize(("n_features", "degree"), [(2, 20), (3, 12), (5, 10), (12, 3)])
    def test_every_harmonic(self, check, n_features, degree):
        X, _ = make_samples(n_features, euclidean=False)
        frequencies = harmonic_indices(n_features, degree)
        space = HarmonicSphere(degree, max_harmonics=2000)
        model = with_frequencies(space, frequencies[::-1], X)
        poles = np.concatenate([np.eye(n_features), -np.eye(n_features)]).astype(np.float32)
        for samples in (X, poles):
            check(model, samples)

    @pytest.mark.parametrize(("n_features", "degree"), [(3, 10), (6, 8), (50, 6)])
    def test_zonal_features(self, check, rng, n_features, degree):
        X, _ = make_samples(n_features, euclidean=False)
        space = ZonalSphere(degree)
        model = with_frequencies(space, space.draw(40, Rows(X), rng), X)
        assert set(space.norms(model.kernel_.frequencies)) == set(range(1, degree + 1))
        check(model, X)

    @pytest.mark.parametrize("space", [HarmonicSphere(200), ZonalSphere(200)])
    def test_high_degrees_are_computed_in_float64(self, check, rng, space):
        X, _ = make_samples(2, euclidean=False)
        exact = X.astype(np.float64)
        exact /= np.linalg.norm(exact, axis=1, keepdims=True)
        model = with_frequencies(space, space.draw(30, Rows(exact), rng), exact)
        check(model, X, X.astype(np.float64))

    @pytest.mark.parametrize("kind", [FourierClassifier, FourierRegressor])
    def test_predictors_of_high_degree(self, check, rng, kind):
        """Features are computed in float64, outputs are in float32."""
        angles = rng.uniform(0, 2 * np.pi, size=800)
        X = np.column_stack([np.cos(angles), np.sin(angles)]).astype(np.float32)
        wave = np.cos(80 * angles)
        y = wave > 0 if kind is FourierClassifier else wave
        model = kind(4, space=Sphere("harmonic", max_degree=100), smoothing=0.0).fit(X, y)
        assert 80 in model.kernel_.space.norms(model.frequencies_)  # float32 is used up to 64
        check(model, X, X.astype(np.float64))


class TestPrecision:
    @pytest.mark.parametrize("phase", ["aligned", "paired"])
    def test_samples_far_from_the_origin(self, check, phase):
        """The only error is the rounding of the samples to float32."""
        X, targets = make_samples(3, euclidean=True)
        far = (X + 1000 * X.std()).astype(np.float32)
        model = FourierFeatures(phase=phase, **SETTINGS).fit(
            far.astype(np.float64), targets[:, 0] > 0
        )
        check(model, far, far.astype(np.float64))

    @pytest.mark.parametrize("size", [1e-30, 1e-3, 1e30])
    @pytest.mark.parametrize("basis", ["harmonic", "zonal"])
    def test_samples_are_normalized(self, check, basis, size):
        X, targets = make_samples(3, euclidean=False)
        space = Sphere(basis, max_degree=5, normalize=True)
        model = FourierFeatures(space=space, **SETTINGS).fit(X, targets[:, 0] > 0)
        check(model, X * np.float32(size), X)

    def test_norms_close_to_one_are_normalized(self, check, tmp_path):
        """A row of zeros gives NaN."""
        model, X = fit_case(FourierFeatures, "harmonic")
        assert not model.kernel_.space.normalize
        check(model, X * np.float32(1.0005), X)
        outputs = run_graph(tmp_path / "model.onnx", np.concatenate([X[:1], 0 * X[:1]]))
        assert np.isnan(outputs["features"]).all(axis=1).tolist() == [False, True]


class TestPipelines:
    @pytest.mark.parametrize(
        "step",
        [
            StandardScaler(),
            RobustScaler(),
            MinMaxScaler((-1, 0.5), clip=True),
            "passthrough",
            QuantileTransformer(n_quantiles=20),
            PolynomialFeatures(2),
            PCA(2),
            NumberEncoder(),
            NumberEncoder("raw"),
            NumberEncoder("scores"),
            FeatureUnion([("scaled", StandardScaler()), ("directions", PCA(2))]),
            make_pipeline(SimpleImputer(), StandardScaler()),
        ],
        ids=lambda step: type(step).__name__,
    )
    def test_transformers(self, check, step):
        X, targets = make_samples(3, euclidean=True)
        model = make_pipeline(step, FourierClassifier(**SETTINGS)).fit(
            X.astype(np.float64), targets[:, 0] > 0
        )
        outputs = check(model, X * np.float32(1.5))  # also outside of the range at fit
        assert list(outputs) == ["label", "probabilities", "decision"]

    def test_scaled_columns_far_from_zero(self, check):
        X, targets = make_samples(3, euclidean=True)
        far = (X + 1000 * X.std()).astype(np.float32)
        model = make_pipeline(NumberEncoder(), FourierRegressor(**SETTINGS)).fit(far, targets[:, 0])
        check(model, far, far.astype(np.float64))

    @pytest.mark.parametrize("output", ["raw", "scores", "both"])
    def test_numbers_alone(self, tmp_path, output):
        """Scores of more and fewer values than knots, gaps, and values beyond the knots."""
        rng = np.random.default_rng(0)
        X = np.column_stack([rng.standard_t(2, (1000, 2)), rng.integers([3, 40], size=(1000, 2))])
        X[::9, 1:3] = np.nan
        encoder = NumberEncoder(output).fit(X)
        new = np.float32(np.concatenate([X, 100 * X[:20], np.full((2, 4), np.nan)]))
        found = run_graph(to_onnx(encoder, tmp_path / "model.onnx"), new)["features"]
        np.testing.assert_allclose(found, encoder.transform(new), atol=1e-5)

    @pytest.mark.parametrize(
        ("last", "output", "method"),
        [
            (LogisticRegression(), "probabilities", "predict_proba"),
            (Ridge(), "variable", "predict"),
            (PCA(3), "variable", "transform"),
        ],
    )
    def test_features_of_other_models(self, tmp_path, last, output, method):
        X, targets = make_samples(3, euclidean=True)
        model = make_pipeline(StandardScaler(), FourierFeatures(**SETTINGS), last)
        path = to_onnx(model.fit(X, targets[:, 0] > 0), tmp_path / "model.onnx")
        outputs = run_graph(path, X)
        expected = getattr(model, method)(X)
        np.testing.assert_allclose(
            outputs[output].reshape(expected.shape), expected, atol=TOLERANCE
        )


def make_frame(n_samples=200):
    """Return a data frame with numbers and text, some missing, and two classes."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "income in $": (1000 + rng.normal(size=n_samples)).round(2),
            "gaps": rng.normal(size=n_samples),
            "city": rng.choice(
                ["Ulm", "Bonn", "Zürich", "a", "b"], n_samples, p=[0.4, 0.3, 0.2, 0.05, 0.05]
            ),
            "flag": rng.choice(["yes", "no"], n_samples),
            "floor": rng.integers(0, 4, n_samples).astype(float),
            "unused": "text",
        }
    )
    y = np.where((frame["city"] == "Ulm") ^ (frame["gaps"] > 0.3), "p", "q")
    frame.loc[::7, "gaps"] = np.nan
    for name in ("income in $", "gaps"):
        frame[name] = frame[name].astype(np.float32).astype(np.float64)
    return frame, y


def make_new_frame():
    """Return rows with unknown categories, and numbers missing that were never missing."""
    frame, _ = make_frame()
    frame = frame.head(50).copy()
    frame.loc[3, "city"] = frame.loc[5, "flag"] = "unknown"
    frame.loc[6, "floor"] = 9
    frame.loc[8, "income in $"] = np.nan
    return frame


def encode(remainder="drop", **parameters):
    categories = OneHotEncoder(sparse_output=False, **parameters)
    return ColumnTransformer(
        [
            ("numbers", NumberEncoder(), ["gaps", "income in $"]),
            ("categories", categories, ["city", "flag", "floor"]),
        ],
        remainder=remainder,
    )


class TestFrames:
    @pytest.mark.parametrize(
        "categories",
        [
            {"handle_unknown": "ignore"},
            {"handle_unknown": "infrequent_if_exist", "min_frequency": 0.1},
            {"handle_unknown": "infrequent_if_exist", "max_categories": 2},
            {"handle_unknown": "ignore", "min_frequency": 0.1},
        ],
    )
    def test_rare_and_unknown_categories(self, check, categories):
        frame, y = make_frame()
        model = make_pipeline(encode(**categories), FourierClassifier(**SETTINGS))
        model.fit(frame, y)
        for rows in (frame, make_new_frame()):
            check(model, rows)

    def test_inputs_are_the_columns_in_use(self, tmp_path):
        frame, y = make_frame()
        model = make_pipeline(encode(), FourierClassifier(**SETTINGS)).fit(frame, y)
        session = start_session(to_onnx(model, tmp_path / "model.onnx"))
        inputs = {each.name: (each.type, each.shape) for each in session.get_inputs()}
        number, text = ("tensor(float)", [None, 1]), ("tensor(string)", [None, 1])
        assert inputs == {
            "income in $": number,
            "gaps": number,
            "city": text,
            "flag": text,
            "floor": number,
        }

    def test_columns_with_similar_names_and_that_of_an_output(self, check):
        rng = np.random.default_rng(0)
        names = ["a b", "a_b", "a+b", "1", "label", "variable", "MatMul"]
        frame = pd.DataFrame(rng.normal(size=(80, 7)).astype(np.float32), columns=names)
        scale = ColumnTransformer([("scale", StandardScaler(), ["a_b", "label", "1", "a b"])])
        scale.set_params(remainder="passthrough")
        model = make_pipeline(scale, FourierClassifier(**SETTINGS)).fit(frame, frame["a b"] > 0)
        outputs = check(model, frame.rename(columns={"label": "label_"}), frame)
        assert list(outputs) == ["label", "probabilities", "decision"]

    def test_missing_categories(self, check):
        """Missing text is what `str` makes of it."""
        frame, y = make_frame()
        frame = frame[["city", "floor"]].astype({"city": object})
        frame.loc[::5, "city"] = np.nan
        frame.loc[::6, "floor"] = np.nan
        encoder = OneHotEncoder(handle_unknown="ignore")
        steps = [("text", encoder, ["city"]), ("number", OneHotEncoder(), ["floor"])]
        model = make_pipeline(ColumnTransformer(steps), FourierClassifier(**SETTINGS))
        check(model.fit(frame, y), frame.assign(city=frame["city"].astype(str)), frame)

    def test_arrays_of_numbers_and_text(self, check):
        """Without names, the columns are called as scikit-learn does."""
        frame, y = make_frame()
        X = frame[["gaps", "city"]].to_numpy(object)
        steps = [("number", SimpleImputer(), [0]), ("text", OneHotEncoder(), [1])]
        model = make_pipeline(ColumnTransformer(steps), FourierClassifier(**SETTINGS)).fit(X, y)
        given = pd.DataFrame(X, columns=["x0", "x1"]).astype({"x0": np.float32})
        check(model, given, X)

    @pytest.mark.filterwarnings("ignore:Skipping features without any observed values")
    @pytest.mark.parametrize("keep", [False, True])
    def test_imputers_of_numbers(self, check, keep):
        X, targets = make_samples(3, euclidean=True)
        X = np.column_stack([X, np.full(len(X), np.nan)]).astype(np.float32)
        X[::4, 1] = np.nan
        imputer = SimpleImputer(add_indicator=True, keep_empty_features=keep)
        model = make_pipeline(imputer, FourierFeatures(**SETTINGS)).fit(X, targets[:, 0] > 0)
        new = X.copy()
        new[1, 0] = np.nan  # not missing at fit
        check(model, new)


class TestTabularPipeline:
    def make_messy(self):
        frame, y = make_frame()
        frame = frame.drop(columns="unused").astype({"city": object, "flag": object})
        frame["when"] = pd.date_range("2021-03-01", periods=len(frame), freq="31h").strftime(
            "%d.%m.%Y"
        )
        frame["amount"] = [f" {value:.1f} " for value in frame["gaps"].fillna(0) * 1e3]
        frame.loc[::9, "city"] = None
        frame.loc[::11, "flag"] = "NO "
        return frame, y

    @pytest.mark.parametrize("linear", [False, True])
    @pytest.mark.parametrize("kind", ["classifier", "regressor"])
    def test_answers_from_the_cleaned_frame(self, check, kind, linear):
        frame, y = self.make_messy()
        y = y if kind == "classifier" else frame["gaps"].fillna(0)
        model = tabular_pipeline(kind, linear=linear, **SETTINGS).fit(frame, y)
        new = frame.head(60).copy()
        new.loc[2, "city"] = "unknown"
        new.loc[4, ["income in $", "amount", "when"]] = None
        new.loc[5, "income in $"] = 1e9
        check(model, model[0].transform(new), new)

    def test_deviations_and_intervals(self, tmp_path):
        frame, _ = self.make_messy()
        y = frame["gaps"].fillna(0) + np.random.default_rng(1).normal(size=len(frame))
        model = tabular_pipeline("regressor", **SETTINGS).fit(frame, y)
        path = to_onnx(model, tmp_path / "model.onnx", return_std=True, coverage=0.9)
        outputs = run_graph(path, model[0].transform(frame))
        assert_close(outputs["std"], model.predict(frame, return_std=True)[1])
        assert_close(outputs["interval"], model.predict_interval(frame, 0.9))

    def test_steps_that_are_switched_off(self, tmp_path):
        frame, y = self.make_messy()
        frame = frame.drop(columns=["income in $", "amount"])  # far too large without a scaler
        model = tabular_pipeline("classifier", **SETTINGS)
        impute = SimpleImputer(strategy="median", add_indicator=True)
        numbers = Pipeline([("scale", "passthrough"), ("impute", impute)])
        model.set_params(encode__number=numbers).fit(frame, y)
        path = to_onnx(model, tmp_path / "model.onnx")
        outputs = run_graph(path, model[0].transform(frame))
        assert (outputs["label"] == model.predict(frame)).mean() > 0.95  # of days since 1970


class TestFile:
    def test_versions(self, tmp_path):
        model, _ = fit_case(FourierClassifier, "aligned")
        stored = onnx.load(to_onnx(model, str(tmp_path / "model.onnx")))
        onnx.checker.check_model(stored, full_check=True)
        versions = {each.domain: each.version for each in stored.opset_import}
        assert versions[""] <= 18
        assert stored.ir_version <= 8

    @pytest.mark.parametrize("kind", [FourierFeatures, FourierClassifier, FourierRegressor])
    def test_shapes_and_types(self, tmp_path, kind):
        session = start_session(to_onnx(fit_case(kind, "paired")[0], tmp_path / "model.onnx"))
        (X,) = session.get_inputs()
        assert (X.name, X.type, X.shape) == ("X", "tensor(float)", [None, 3])
        outputs = {each.name: (each.type, each.shape) for each in session.get_outputs()}
        assert (
            outputs
            == {
                FourierFeatures: {"features": ("tensor(float)", [None, 12])},
                FourierClassifier: {
                    "label": ("tensor(bool)", [None]),
                    "decision": ("tensor(float)", [None]),
                    "probabilities": ("tensor(float)", [None, 2]),
                },
                FourierRegressor: {"prediction": ("tensor(float)", [None])},
            }[kind]
        )

    def test_waves_are_computed_in_float32(self, tmp_path):
        path = to_onnx(fit_case(FourierClassifier, "aligned")[0], tmp_path / "model.onnx")
        inferred = onnx.shape_inference.infer_shapes(onnx.load(path)).graph
        types = {value.type.tensor_type.elem_type for value in inferred.value_info}
        assert onnx.TensorProto.FLOAT in types
        assert onnx.TensorProto.DOUBLE not in types | {c.data_type for c in inferred.initializer}

    def test_a_failed_export_leaves_the_old_file(self, tmp_path):
        path = tmp_path / "model.onnx"
        path.write_text("old")
        model, X = fit_case(FourierFeatures, "aligned")

        class Other(Euclidean):
            """A subclass, which may have other features."""

        other = FourierFeatures(**SETTINGS).fit(X, X[:, 0] > 0)
        other.kernel_ = replace(model.kernel_, space=Other(1.0, np.zeros(3)))
        with pytest.raises(ValueError, match=r"Fit with space='euclidean'.*: Other\("):
            to_onnx(other, path)
        assert path.read_text() == "old"
        assert list(tmp_path.iterdir()) == [path]


class TestErrors:
    @pytest.fixture
    def refuse(self, tmp_path):
        """Assert that an export fails, and what the error says."""

        def check(model, message, error=ValueError, path=tmp_path / "model.onnx"):
            with pytest.raises(error, match=message):
                to_onnx(model, path)

        return check

    def test_paths_and_objects(self, refuse):
        for model in (FourierFeatures(), make_pipeline(StandardScaler(), FourierClassifier())):
            refuse(model, r"ends in \.onnx", path="model.pkl")  # checked first
            refuse(model, "not fitted", NotFittedError)
        refuse([1, 2], "not an estimator", TypeError)

    def test_deviations_of_other_models(self, tmp_path):
        path, X = tmp_path / "model.onnx", make_samples(3, euclidean=True)[0]
        classifier, y = FourierClassifier(**SETTINGS).fit(X, X[:, 0] > 0), X[:, 0]
        refused = [(classifier, {"return_std": True}, "FourierRegressor, but .* FourierClassifier")]
        regressor = FourierRegressor(**SETTINGS).fit(X, y)
        refused += [(regressor, {"coverage": 1}, "coverage=1 is not allowed")]
        without = FourierRegressor(calibration_size=0, **SETTINGS).fit(X, y)
        quantile = FourierRegressor(loss="quantile", **SETTINGS).fit(X, y)
        for options in ({"return_std": True}, {"coverage": 0.9}):
            refused += [
                (without, options, "call calibrate with other"),
                (quantile, options, "loss="),
            ]
        for model, options, message in refused:
            with pytest.raises(ValueError, match=message):
                to_onnx(model, path, **options)
        assert not path.exists()

    @pytest.mark.parametrize(
        ("step", "match"),
        [
            (SplineTransformer(), "SplineTransformer"),
            (FunctionTransformer(np.tanh), "FunctionTransformer"),
            (OneHotEncoder(drop="first"), r"OneHotEncoder\(drop='first'\) drops categories"),
            (SimpleImputer(missing_values=-1), "numbers that aren't NaN"),
            (SimpleImputer(strategy="most_frequent"), "imputes text"),
            (TfidfVectorizer(), "TfidfVectorizer"),
        ],
        ids=lambda value: type(value).__name__,
    )
    def test_steps_without_converter_are_named(self, refuse, step, match):
        X = np.tile([[0, 1], [1, 0], [2, 1], [3, 0]], (20, 1))
        if match == "imputes text":
            X = X.astype(str).astype(object)
            step = make_pipeline(step, OneHotEncoder())
        if isinstance(step, TfidfVectorizer):
            X = ["good film", "bad film", "very good", "very bad thing"] * 20
        model = make_pipeline(step, FourierFeatures(**SETTINGS)).fit(X, [0, 1, 0, 1] * 20)
        refuse(model, rf"can't convert .*{match}.*pipeline\[1:\]")

    @pytest.mark.parametrize("loss", ["hinge", "logistic"])
    @pytest.mark.parametrize(
        "meta",
        [
            lambda model: CalibratedClassifierCV(model, cv=2),
            lambda model: OneVsRestClassifier(model),
            lambda model: BaggingClassifier(model, 2),
            lambda model: StackingClassifier([("fourier", model)], cv=2),
            lambda model: VotingClassifier([("fourier", model)]),
        ],
    )
    def test_classifiers_in_other_classifiers(self, refuse, meta, loss):
        X, targets = make_samples(3, euclidean=True)
        model = meta(FourierClassifier(loss=loss, **SETTINGS)).fit(X, targets[:, 0] > 0)
        refuse(model, r"skl2onnx can't convert the model: .*Fourier")

    def test_categories_that_are_equal_in_float32(self, refuse):
        X = np.repeat([[1e9], [1e9 + 1], [1e9 + 2]], 20, axis=0)
        model = make_pipeline(OneHotEncoder(), FourierFeatures(**SETTINGS))
        refuse(model.fit(X, X[:, 0] > 1e9), "numbers that are equal in float32")

    @pytest.mark.parametrize(
        "names",
        [
            np.array(["2020-01-01", "2021-01-01"], dtype="M8[D]"),
            np.array([1, 2**64 - 1], dtype=np.uint64),
            np.array([1.0, 2.0**24 + 1]),
        ],
        ids=["dates", "uint64", "float64"],
    )
    def test_classes_without_exact_counterpart(self, refuse, names):
        X, targets = make_samples(3, euclidean=True)
        model = FourierClassifier(**SETTINGS).fit(X, targets[:, 0] > 0)
        model.classes_ = names
        refuse(model, r"ONNX can't hold the classes|expect a string")

    def test_numbers_too_large_for_float32(self, refuse):
        X, targets = make_samples(3, euclidean=True)
        refuse(FourierRegressor(**SETTINGS).fit(1e60 * X.astype(float), targets), "infinite in fl")
        model = FourierRegressor(**SETTINGS).fit(X, targets)
        model.coef_ = 1e60 * model.coef_.astype(float)
        refuse(model, "infinite in float32: scale")

    def test_without_skl2onnx_the_extra_is_named(self, refuse, monkeypatch):
        monkeypatch.setitem(sys.modules, "skl2onnx", None)
        model, _ = fit_case(FourierFeatures, "aligned")
        refuse(model, r"pip install 'notsorandom\[onnx\]'", ImportError)
