"""ONNX graphs: the answers of the model, to 1e-5 of their size."""

import sys
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
import reference
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from notsorandom import (
    Euclidean,
    FourierClassifier,
    FourierFeatures,
    FourierRegressor,
    Sphere,
    __version__,
    to_onnx,
)
from notsorandom.data.rows import Rows
from notsorandom.spaces import HarmonicSphere, ZonalSphere
from notsorandom.spaces.harmonics import harmonic_indices

pytestmark = pytest.mark.usefixtures("quick_trials")

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
each_case = pytest.mark.parametrize("case", CASES)


@pytest.fixture
def run(tmp_path):
    """Export a model and return all outputs of the graph by name."""

    def export_and_run(model, X):
        path = tmp_path / "model.onnx"
        assert to_onnx(model, path) == path
        session = start_session(path)
        names = [output.name for output in session.get_outputs()]
        return dict(zip(names, session.run(None, {"X": X}), strict=True))

    return export_and_run


def start_session(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


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


def assert_close(found, expected):
    assert found.dtype == np.float32
    assert found.shape == expected.shape
    size = np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=TOLERANCE, atol=TOLERANCE * size)


def is_clear(decisions):
    """Return which decisions are so far from a tie that rounding can't change them."""
    if decisions.ndim == 1:
        margins = 2 * np.abs(decisions)
    else:
        margins = np.diff(np.sort(decisions, axis=1)[:, -2:], axis=1)[:, 0]
    return margins > 4 * TOLERANCE * np.abs(decisions).max()


class TestOutputs:
    @each_case
    def test_features(self, run, case):
        model, X = fit_case(FourierFeatures, case)
        outputs = run(model, X)
        assert list(outputs) == ["features"]
        assert_close(outputs["features"], model.transform(X))

    @each_case
    def test_decisions_and_labels(self, run, case):
        model, X = fit_case(FourierClassifier, case, loss="hinge")
        outputs = run(model, X)
        decisions = model.decision_function(X)
        assert list(outputs) == ["label", "decision"]
        assert_close(outputs["decision"], decisions)
        clear = is_clear(decisions)
        assert clear.mean() > 0.9
        np.testing.assert_array_equal(outputs["label"][clear], model.predict(X)[clear])

    @each_case
    def test_probabilities(self, run, case):
        model, X = fit_case(FourierClassifier, case, loss="logistic")
        model.temperature_ = 1.5
        outputs = run(model, X)
        assert list(outputs) == ["label", "decision", "probabilities"]
        assert_close(outputs["decision"], model.decision_function(X))
        assert_close(outputs["probabilities"], model.predict_proba(X))
        np.testing.assert_allclose(outputs["probabilities"].sum(axis=1), 1, rtol=1e-6)

    @pytest.mark.parametrize("temperature", [0.01, 1.0, 100.0])
    def test_probabilities_of_three_classes(self, run, temperature):
        X, targets = make_samples(3, euclidean=True)
        model = FourierClassifier(loss="logistic", **SETTINGS).fit(X, targets.argmax(axis=1))
        model.temperature_ = temperature
        found, expected = run(model, X)["probabilities"], model.predict_proba(X)
        assert found.dtype == np.float32
        tolerance = TOLERANCE * np.abs(model.decision_function(X)).max() / min(temperature, 1)
        np.testing.assert_allclose(found, expected, atol=tolerance)

    def test_small_probabilities_keep_their_digits(self, run):
        X, targets = make_samples(3, euclidean=True)
        model = FourierClassifier(loss="logistic", **SETTINGS).fit(X, targets[:, 0] > 0)
        model.coef_ *= 30 / np.abs(model.decision_function(X)).max()
        model.temperature_ = 1.0
        found, expected = run(model, X)["probabilities"], model.predict_proba(X)
        assert expected.min() < 1e-9
        np.testing.assert_allclose(found, expected, rtol=1e-3)

    @each_case
    def test_predictions(self, run, case):
        model, X = fit_case(FourierRegressor, case)
        outputs = run(model, X)
        assert list(outputs) == ["prediction"]
        assert_close(outputs["prediction"], model.predict(X))

    @pytest.mark.parametrize("width", [1, 3])
    def test_several_targets(self, run, width):
        X, targets = make_samples(3, euclidean=True)
        model = FourierRegressor(**SETTINGS).fit(X, targets[:, :width])
        found = run(model, X)["prediction"]
        assert found.shape == (len(X), width)
        assert_close(found, model.predict(X))

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
    def test_labels_are_the_classes(self, run, names, dtype):
        X, targets = make_samples(3, euclidean=True)
        codes = targets[:, : len(names)].argmax(axis=1)
        model = FourierClassifier(**SETTINGS).fit(X, names[codes])
        outputs = run(model, X)
        decisions = model.decision_function(X)
        assert outputs["label"].dtype == dtype
        assert_close(outputs["decision"], decisions)
        clear = is_clear(decisions)
        assert clear.mean() > 0.9
        assert outputs["label"][clear].tolist() == model.predict(X)[clear].tolist()
        assert set(outputs["label"].tolist()) == set(names.tolist())

    @each_case
    @pytest.mark.parametrize("count", [0, 1, 1000])
    def test_any_number_of_rows(self, run, case, count):
        model, X = fit_case(FourierClassifier, case)
        outputs = run(model, np.resize(X, (count, X.shape[1])))
        assert outputs["decision"].shape == outputs["label"].shape == (count,)
        if count:
            np.testing.assert_allclose(
                outputs["decision"],
                np.resize(model.decision_function(X), count),
                atol=TOLERANCE * np.abs(model.decision_function(X)).max(),
            )

    def test_reweighted_and_shortened_models(self, run):
        model, X = fit_case(FourierFeatures, "paired", solver="reweight")
        assert_close(run(model, X)["features"], model.transform(X))
        assert_close(run(model.head(4), X)["features"], model.head(4).transform(X))


class TestEveryDegree:
    @pytest.mark.parametrize(("n_features", "degree"), [(2, 20), (3, 12), (5, 10), (12, 3)])
    def test_every_harmonic(self, run, n_features, degree):
        X, _ = make_samples(n_features, euclidean=False)
        frequencies = harmonic_indices(n_features, degree)
        space = HarmonicSphere(degree, max_harmonics=2000)
        model = with_frequencies(space, frequencies[::-1], X)
        assert_close(run(model, X)["features"], model.transform(X))

    def test_harmonics_at_the_poles(self, run):
        model = with_frequencies(
            HarmonicSphere(8), harmonic_indices(4, 8), make_samples(4, euclidean=False)[0]
        )
        X = np.concatenate([np.eye(4), -np.eye(4)]).astype(np.float32)
        assert_close(run(model, X)["features"], model.transform(X))

    @pytest.mark.parametrize(("n_features", "degree"), [(3, 10), (6, 8), (50, 6)])
    def test_zonal_features(self, run, rng, n_features, degree):
        X, _ = make_samples(n_features, euclidean=False)
        space = ZonalSphere(degree)
        model = with_frequencies(space, space.draw(40, Rows(X), rng), X)
        assert set(space.norms(model.kernel_.frequencies)) == set(range(1, degree + 1))
        assert_close(run(model, X)["features"], model.transform(X))

    @pytest.mark.parametrize("space", [HarmonicSphere(300), ZonalSphere(300)])
    def test_high_degrees_are_computed_in_float64(self, run, rng, space):
        X, _ = make_samples(2, euclidean=False)
        exact = X.astype(np.float64)
        exact /= np.linalg.norm(exact, axis=1, keepdims=True)
        model = with_frequencies(space, space.draw(30, Rows(exact), rng), exact)
        assert_close(run(model, X)["features"], model.transform(X.astype(np.float64)))

    @pytest.mark.parametrize("kind", [FourierClassifier, FourierRegressor])
    def test_predictors_of_high_degree(self, run, rng, kind):
        """Features are computed in float64, outputs are in float32."""
        angles = rng.uniform(0, 2 * np.pi, size=800)
        X = np.column_stack([np.cos(angles), np.sin(angles)]).astype(np.float32)
        wave = np.cos(80 * angles)
        y = wave > 0 if kind is FourierClassifier else wave
        model = kind(4, space=Sphere("harmonic", max_degree=100), smoothing=0.0).fit(X, y)
        assert 80 in model.kernel_.space.norms(model.frequencies_)  # float32 is used up to 64
        outputs, exact = run(model, X), X.astype(np.float64)
        if kind is FourierClassifier:
            decisions = model.decision_function(exact)
            assert_close(outputs["decision"], decisions)
            clear = is_clear(decisions)
            assert outputs["label"][clear].tolist() == model.predict(exact)[clear].tolist()
        else:
            assert_close(outputs["prediction"], model.predict(exact))


class TestPrecision:
    @pytest.mark.parametrize("phase", ["aligned", "paired"])
    def test_samples_far_from_the_origin(self, run, phase):
        """The only error is the rounding of the samples to float32."""
        X, targets = make_samples(3, euclidean=True)
        far = (X + 1000 * X.std()).astype(np.float32)
        model = FourierFeatures(phase=phase, **SETTINGS).fit(
            far.astype(np.float64), targets[:, 0] > 0
        )
        assert_close(run(model, far)["features"], model.transform(far.astype(np.float64)))

    @pytest.mark.parametrize("size", [1e-30, 1e-3, 1e30])
    @pytest.mark.parametrize("basis", ["harmonic", "zonal"])
    def test_samples_are_normalized(self, run, basis, size):
        X, targets = make_samples(3, euclidean=False)
        space = Sphere(basis, max_degree=5, normalize=True)
        model = FourierFeatures(space=space, **SETTINGS).fit(X, targets[:, 0] > 0)
        scaled = X * np.float32(size)
        assert_close(run(model, scaled)["features"], model.transform(X))

    def test_norms_close_to_one_are_normalized(self, run):
        model, X = fit_case(FourierFeatures, "harmonic")
        assert not model.kernel_.space.normalize
        assert_close(run(model, X * np.float32(1.0005))["features"], model.transform(X))

    def test_a_row_of_zeros_gives_nan(self, run):
        model, X = fit_case(FourierFeatures, "harmonic")
        outputs = run(model, np.concatenate([X[:1], 0 * X[:1]]))
        assert np.isnan(outputs["features"]).all(axis=1).tolist() == [False, True]


class TestFile:
    def test_metadata(self, tmp_path):
        model, _ = fit_case(FourierClassifier, "aligned")
        stored = onnx.load(to_onnx(model, str(tmp_path / "model.onnx")))
        onnx.checker.check_model(stored, full_check=True)
        assert (stored.producer_name, stored.producer_version) == ("notsorandom", __version__)
        assert "FourierClassifier on 3 columns" in stored.doc_string
        assert [(each.domain, each.version) for each in stored.opset_import] == [("", 13)]
        assert stored.ir_version == 7

    @pytest.mark.parametrize("kind", [FourierFeatures, FourierClassifier, FourierRegressor])
    def test_shapes_and_types(self, tmp_path, kind):
        session = start_session(to_onnx(fit_case(kind, "paired")[0], tmp_path / "model.onnx"))
        (X,) = session.get_inputs()
        assert (X.name, X.type, X.shape) == ("X", "tensor(float)", ["N", 3])
        outputs = {each.name: (each.type, each.shape) for each in session.get_outputs()}
        assert (
            outputs
            == {
                FourierFeatures: {"features": ("tensor(float)", ["N", 12])},
                FourierClassifier: {
                    "label": ("tensor(bool)", ["N"]),
                    "decision": ("tensor(float)", ["N"]),
                    "probabilities": ("tensor(float)", ["N", 2]),
                },
                FourierRegressor: {"prediction": ("tensor(float)", ["N"])},
            }[kind]
        )

    @each_case
    def test_low_degrees_are_computed_in_float32(self, tmp_path, case):
        path = to_onnx(fit_case(FourierClassifier, case)[0], tmp_path / "model.onnx")
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
        with pytest.raises(ValueError, match=r"space is Other\(.*only Euclidean, .*: fit with"):
            to_onnx(other, path)
        assert path.read_text() == "old"
        assert list(tmp_path.iterdir()) == [path]


class TestErrors:
    def test_bad_paths(self, tmp_path):
        for bad in ("model.pkl", tmp_path, str(tmp_path / "model")):
            with pytest.raises(ValueError, match=r"ends in \.onnx"):
                to_onnx(FourierFeatures(), bad)  # checked first: it is not fitted
        with pytest.raises(TypeError, match="path=None is not allowed"):
            to_onnx(FourierFeatures(), None)
        with pytest.raises(FileNotFoundError, match="doesn't exist: create it first"):
            to_onnx(FourierFeatures(), tmp_path / "no" / "model.onnx")

    def test_what_cannot_be_exported(self, tmp_path):
        path = tmp_path / "model.onnx"
        for kind in (FourierFeatures, FourierClassifier, FourierRegressor):
            with pytest.raises(NotFittedError):
                to_onnx(kind(), path)
        with pytest.raises(TypeError, match=r"model is a Pipeline, .* export the last step"):
            to_onnx(make_pipeline(StandardScaler(), FourierClassifier()), path)

    @pytest.mark.parametrize(
        "names",
        [
            np.array(["2020-01-01", "2021-01-01"], dtype="M8[D]"),
            np.array([1, 2**64 - 1], dtype=np.uint64),
            np.array([1.0, 2.0**24 + 1]),
        ],
        ids=["dates", "uint64", "float64"],
    )
    def test_classes_without_exact_counterpart(self, tmp_path, names):
        X, targets = make_samples(3, euclidean=True)
        model = FourierClassifier(**SETTINGS).fit(X, targets[:, 0] > 0)
        model.classes_ = names
        with pytest.raises(ValueError, match=r"no exact counterpart in ONNX.*fit with labels"):
            to_onnx(model, tmp_path / "model.onnx")

    @pytest.mark.parametrize("part", ["samples", "coefficients"])
    def test_numbers_too_large_for_float32(self, tmp_path, part):
        X, targets = make_samples(3, euclidean=True)
        size = 1e60 if part == "samples" else 1.0
        model = FourierRegressor(**SETTINGS).fit(size * X.astype(float), targets)
        if part == "coefficients":
            model.coef_ = 1e60 * model.coef_.astype(float)
        with pytest.raises(ValueError, match="infinite in float32: scale"):
            to_onnx(model, tmp_path / "model.onnx")

    def test_without_onnx_the_extra_is_named(self, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "onnx", None)
        model, _ = fit_case(FourierFeatures, "aligned")
        with pytest.raises(ImportError, match=r"pip install 'notsorandom\[onnx\]'"):
            to_onnx(model, tmp_path / "model.onnx")
