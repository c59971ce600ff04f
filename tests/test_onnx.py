import sys
from dataclasses import replace
from functools import lru_cache

import numpy as np
import onnx
import onnxruntime
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
    onnx_export,
)
from notsorandom.data.rows import Rows
from notsorandom.spaces import HarmonicSphere, ZonalSphere
from notsorandom.spaces.harmonics import harmonic_indices

TOLERANCE = 1e-5
SETTINGS = {"n_components": 12, "smoothing": 0.06, "random_state": 0}
# Where samples live, the phase, and their columns.
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
    """Export a model, and return all outputs of the graph by name."""

    def exported_and_run(model, X):
        path = tmp_path / "model.onnx"
        assert model.to_onnx(path) == path
        session = session_of(path)
        names = [output.name for output in session.get_outputs()]
        return dict(zip(names, session.run(None, {"X": X}), strict=True))

    return exported_and_run


def session_of(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


@lru_cache
def samples(n_features, flat):
    """Samples in single precision, and a real target of three columns."""
    rng = np.random.default_rng(0)
    X = reference.sphere_points(rng, 120, n_features)
    if flat:
        X = 3 * X * rng.uniform(size=(120, 1)) + 1
    targets = np.sin(4 * X @ rng.standard_normal((n_features, 3)))
    return X.astype(np.float32), targets


@lru_cache
def fitted(kind, case, **changes):
    """A fitted estimator and its samples; of classes there are two."""
    space, phase, n_features = CASES[case]
    X, targets = samples(n_features, space == "euclidean")
    y = targets[:, 0] if kind is FourierRegressor else targets[:, 0] > 0
    # In double precision, so that everything in the model has to be rounded.
    model = kind(space=space, phase=phase, **SETTINGS | changes).fit(X.astype(np.float64), y)
    return model, X


def with_frequencies(space, frequencies, X):
    """A transformer of these frequencies, all as heavy."""
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
    """Whether decisions are far enough from a tie that rounding can't turn them."""
    if decisions.ndim == 1:
        margins = 2 * np.abs(decisions)
    else:
        margins = np.diff(np.sort(decisions, axis=1)[:, -2:], axis=1)[:, 0]
    return margins > 4 * TOLERANCE * np.abs(decisions).max()


class TestSameAnswers:
    @each_case
    def test_features(self, run, case):
        model, X = fitted(FourierFeatures, case)
        outputs = run(model, X)
        assert list(outputs) == ["features"]
        assert_close(outputs["features"], model.transform(X))

    @each_case
    def test_decisions_and_labels(self, run, case):
        model, X = fitted(FourierClassifier, case)
        outputs = run(model, X)
        decisions = model.decision_function(X)
        assert list(outputs) == ["label", "decision"]
        assert_close(outputs["decision"], decisions)
        clear = is_clear(decisions)
        assert clear.mean() > 0.9
        np.testing.assert_array_equal(outputs["label"][clear], model.predict(X)[clear])

    @each_case
    def test_predictions(self, run, case):
        model, X = fitted(FourierRegressor, case)
        outputs = run(model, X)
        assert list(outputs) == ["prediction"]
        assert_close(outputs["prediction"], model.predict(X))

    @pytest.mark.parametrize("width", [1, 3])
    def test_columns_of_targets_are_columns_of_predictions(self, run, width):
        X, targets = samples(3, flat=True)
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
    def test_labels_are_the_classes_themselves(self, run, names, dtype):
        X, targets = samples(3, flat=True)
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
        model, X = fitted(FourierClassifier, case)
        outputs = run(model, np.resize(X, (count, X.shape[1])))
        assert outputs["decision"].shape == outputs["label"].shape == (count,)
        if count:
            np.testing.assert_allclose(
                outputs["decision"],
                np.resize(model.decision_function(X), count),
                atol=TOLERANCE * np.abs(model.decision_function(X)).max(),
            )

    def test_reweighted_and_shortened_models_are_what_they_say(self, run):
        model, X = fitted(FourierFeatures, "paired", reweight=True)
        assert_close(run(model, X)["features"], model.transform(X))
        assert_close(run(model.head(4), X)["features"], model.head(4).transform(X))


class TestEveryDegree:
    @pytest.mark.parametrize(("n_features", "degree"), [(2, 20), (3, 12), (5, 10), (12, 3)])
    def test_every_harmonic(self, run, n_features, degree):
        X, _ = samples(n_features, flat=False)
        frequencies = harmonic_indices(n_features, degree)
        space = HarmonicSphere(degree, max_harmonics=2000)
        model = with_frequencies(space, frequencies[::-1], X)
        assert_close(run(model, X)["features"], model.transform(X))

    def test_the_poles_of_the_sphere_are_points_like_all_others(self, run):
        model = with_frequencies(HarmonicSphere(8), harmonic_indices(4, 8), samples(4, False)[0])
        X = np.concatenate([np.eye(4), -np.eye(4)]).astype(np.float32)
        assert_close(run(model, X)["features"], model.transform(X))

    @pytest.mark.parametrize(("n_features", "degree"), [(3, 10), (6, 8), (50, 6)])
    def test_zonal_features(self, run, rng, n_features, degree):
        X, _ = samples(n_features, flat=False)
        space = ZonalSphere(degree)
        model = with_frequencies(space, space.draw(40, n_features, np.float32, rng), X)
        assert set(space.sizes(model.kernel_.frequencies)) == set(range(1, degree + 1))
        assert_close(run(model, X)["features"], model.transform(X))

    @pytest.mark.parametrize("space", [HarmonicSphere(300), ZonalSphere(300)])
    def test_high_degrees_are_as_good_as_in_double_precision(self, run, rng, space):
        X, _ = samples(2, flat=False)
        exact = X.astype(np.float64)
        exact /= np.linalg.norm(exact, axis=1, keepdims=True)
        model = with_frequencies(space, space.draw(30, 2, np.float64, rng), exact)
        assert_close(run(model, X)["features"], model.transform(X.astype(np.float64)))

    @pytest.mark.parametrize("kind", [FourierClassifier, FourierRegressor])
    def test_predictors_of_high_degrees_answer_in_single_precision(self, run, monkeypatch, kind):
        monkeypatch.setattr(onnx_export, "SINGLE_DEGREE", 1)  # these are high, then
        model, X = fitted(kind, "harmonic")
        outputs = run(model, X)
        if kind is FourierClassifier:
            assert outputs["label"].tolist() == model.predict(X).tolist()
            assert_close(outputs["decision"], model.decision_function(X))
        else:
            assert_close(outputs["prediction"], model.predict(X))


class TestPrecision:
    @pytest.mark.parametrize("phase", ["aligned", "paired"])
    def test_samples_far_from_the_origin_lose_nothing(self, run, phase):
        """What single precision holds of the samples is all that counts, however far they are."""
        X, targets = samples(3, flat=True)
        far = (X + 1000 * X.std()).astype(np.float32)
        model = FourierFeatures(phase=phase, **SETTINGS).fit(
            far.astype(np.float64), targets[:, 0] > 0
        )
        assert_close(run(model, far)["features"], model.transform(far.astype(np.float64)))

    @pytest.mark.parametrize("size", [1e-30, 1e-3, 1e30])
    @pytest.mark.parametrize("basis", ["harmonic", "zonal"])
    def test_only_directions_count_where_samples_are_normalized(self, run, basis, size):
        X, targets = samples(3, flat=False)
        space = Sphere(basis, max_degree=5, normalize=True)
        model = FourierFeatures(space=space, **SETTINGS).fit(X, targets[:, 0] > 0)
        scaled = X * np.float32(size)
        assert_close(run(model, scaled)["features"], model.transform(X))

    def test_norms_that_are_nearly_one_are_made_one(self, run):
        model, X = fitted(FourierFeatures, "harmonic")
        assert not model.kernel_.space.normalize
        assert_close(run(model, X * np.float32(1.0005))["features"], model.transform(X))

    def test_zero_has_no_direction(self, run):
        model, X = fitted(FourierFeatures, "harmonic")
        outputs = run(model, np.concatenate([X[:1], 0 * X[:1]]))
        assert np.isnan(outputs["features"]).all(axis=1).tolist() == [False, True]


class TestFile:
    def test_it_says_what_it_is(self, tmp_path):
        model, _ = fitted(FourierClassifier, "aligned")
        stored = onnx.load(model.to_onnx(str(tmp_path / "model.onnx")))
        onnx.checker.check_model(stored, full_check=True)
        assert (stored.producer_name, stored.producer_version) == ("notsorandom", __version__)
        assert "FourierClassifier of 3 columns" in stored.doc_string
        assert [(each.domain, each.version) for each in stored.opset_import] == [("", 13)]
        assert stored.ir_version == 7

    @pytest.mark.parametrize("kind", [FourierFeatures, FourierClassifier, FourierRegressor])
    def test_shapes_are_declared(self, tmp_path, kind):
        session = session_of(fitted(kind, "paired")[0].to_onnx(tmp_path / "model.onnx"))
        (taken,) = session.get_inputs()
        assert (taken.name, taken.type, taken.shape) == ("X", "tensor(float)", ["N", 3])
        given = {each.name: (each.type, each.shape) for each in session.get_outputs()}
        assert (
            given
            == {
                FourierFeatures: {"features": ("tensor(float)", ["N", 12])},
                FourierClassifier: {
                    "label": ("tensor(bool)", ["N"]),
                    "decision": ("tensor(float)", ["N"]),
                },
                FourierRegressor: {"prediction": ("tensor(float)", ["N"])},
            }[kind]
        )

    @each_case
    def test_real_numbers_inside_are_single(self, tmp_path, case):
        path = fitted(FourierClassifier, case)[0].to_onnx(tmp_path / "model.onnx")
        inferred = onnx.shape_inference.infer_shapes(onnx.load(path)).graph
        types = {value.type.tensor_type.elem_type for value in inferred.value_info}
        assert onnx.TensorProto.FLOAT in types
        assert onnx.TensorProto.DOUBLE not in types | {c.data_type for c in inferred.initializer}

    def test_a_failed_export_leaves_the_old_file(self, tmp_path):
        path = tmp_path / "model.onnx"
        path.write_text("old")
        model, X = fitted(FourierFeatures, "aligned")

        class Other(Euclidean):
            """A space of somebody's own, with features of its own perhaps."""

        other = FourierFeatures(**SETTINGS).fit(X, X[:, 0] > 0)
        other.kernel_ = replace(model.kernel_, space=Other(1.0, np.zeros(3)))
        with pytest.raises(ValueError, match=r"space is Other\(.*only Euclidean, .*: fit with"):
            other.to_onnx(path)
        assert path.read_text() == "old"
        assert list(tmp_path.iterdir()) == [path]


class TestErrors:
    def test_paths_that_are_none(self, tmp_path):
        for bad in ("model.pkl", tmp_path, str(tmp_path / "model")):
            with pytest.raises(ValueError, match=r"name a file that ends in \.onnx"):
                FourierFeatures().to_onnx(bad)  # before anything else: it isn't even fitted
        with pytest.raises(TypeError, match="path=None is not allowed"):
            FourierFeatures().to_onnx(None)
        with pytest.raises(FileNotFoundError, match="doesn't exist: make it first"):
            FourierFeatures().to_onnx(tmp_path / "no" / "model.onnx")

    def test_models_that_can_not_be_exported(self, tmp_path):
        path = tmp_path / "model.onnx"
        for kind in (FourierFeatures, FourierClassifier, FourierRegressor):
            with pytest.raises(NotFittedError):
                kind().to_onnx(path)
        with pytest.raises(TypeError, match=r"estimator is a Pipeline, .* export the last step"):
            onnx_export.export_onnx(make_pipeline(StandardScaler(), FourierClassifier()), path)

    @pytest.mark.parametrize(
        ("names", "error", "message"),
        [
            (np.array(["2020-01-01", "2021-01-01"], dtype="M8[D]"), TypeError, "of type datetime"),
            (
                np.array([1, 2**64 - 1], dtype=np.uint64),
                ValueError,
                "18446744073709551615.*strings",
            ),
            (np.array([1.0, 2.0**24 + 1]), ValueError, "16777217.* no equal in float32"),
        ],
    )
    def test_classes_that_onnx_can_not_hold(self, tmp_path, names, error, message):
        X, targets = samples(3, flat=True)
        model = FourierClassifier(**SETTINGS).fit(X, targets[:, 0] > 0)
        model.classes_ = names
        with pytest.raises(error, match=message):
            model.to_onnx(tmp_path / "model.onnx")

    @pytest.mark.parametrize("sizes", [(1e60, 1), (1, 1e60)])
    def test_numbers_too_large_for_single_precision(self, tmp_path, sizes):
        X, targets = samples(3, flat=True)
        model = FourierRegressor(**SETTINGS).fit(sizes[0] * X.astype(float), sizes[1] * targets)
        with pytest.raises(ValueError, match="which single precision doesn't hold: scale"):
            model.to_onnx(tmp_path / "model.onnx")

    def test_the_extra_is_named(self, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "onnx", None)
        model, _ = fitted(FourierFeatures, "aligned")
        with pytest.raises(ImportError, match=r"pip install 'notsorandom\[onnx\]'"):
            model.to_onnx(tmp_path / "model.onnx")
