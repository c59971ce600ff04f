"""Samples of other array libraries: the same model, and the samples stay on their device."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import notsorandom
from notsorandom import (
    Ascent,
    Euclidean,
    FourierClassifier,
    FourierFeatures,
    FourierRegressor,
    Langevin,
    Sphere,
)
from notsorandom.baselines import RandomFourierFeatures
from notsorandom.data.array_api import (
    asarray_like,
    cast_like,
    is_device_array,
    namespace,
    numpy_dtype,
    to_host,
)
from notsorandom.data.rows import Rows
from notsorandom.estimators import steps
from notsorandom.game import LOSSES, Problem
from notsorandom.game.problem import signs_from_codes
from notsorandom.linear.softmax import solve_softmax
from notsorandom.linear.streaming import solve_streaming
from notsorandom.spaces.harmonic_sphere import HarmonicSphere
from notsorandom.spaces.landscape import draw_by_weight
from notsorandom.spaces.sphere import unit_rows
from notsorandom.spaces.zonal_sphere import ZonalSphere

pytestmark = pytest.mark.usefixtures("quick_trials")

torch = pytest.importorskip("torch", reason="needs torch: pip install 'notsorandom[all]'")
array_api_strict = pytest.importorskip(
    "array_api_strict", reason="needs array-api-strict: pip install 'notsorandom[all]'"
)

FAR = array_api_strict.Device("device1")  # from which NumPy can't read
KINDS = {
    "torch": torch.asarray,
    "strict": array_api_strict.asarray,
    "strict, second device": lambda array: array_api_strict.asarray(array, device=FAR),
}


@pytest.fixture(params=KINDS)
def to(request):
    """What takes NumPy arrays to another library."""
    return lambda array: KINDS[request.param](array.copy())


@pytest.fixture(autouse=True)
def simulate_device(request, monkeypatch):
    """Fits compute there, even where NumPy could read the numbers as they are."""
    if "host_memory" not in request.keywords:
        monkeypatch.setattr("notsorandom.estimators.samples.in_host_memory", lambda X: False)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1200, 3))
    return X, (np.cos(3 * X[:, 0] + X[:, 1]) > 0).astype(int)


def same_place(made, given):
    return type(made) is type(given) and made.device == given.device


def test_round_trip(to, rng):
    X = rng.standard_normal((6, 3))
    device = to(X)
    assert is_device_array(device)
    assert namespace(device) is not np
    np.testing.assert_array_equal(to_host(device), X)
    for array in (X.T, X[::-1], np.arange(3), X > 0, X.astype(np.float32)):
        array = array.copy()[::-1]
        array.flags.writeable = False
        there = asarray_like(array, device)
        assert same_place(there, device)
        assert to_host(there).dtype == array.dtype
        np.testing.assert_array_equal(to_host(there), array)
    assert cast_like(X.astype(np.float32), device).dtype == device.dtype
    assert numpy_dtype(device) == np.float64
    assert numpy_dtype(to(X.astype(np.float32))) == np.float32


@pytest.mark.parametrize("given", [np.ones((2, 2)), [[1.0]], sparse.csr_array(np.eye(2)), None])
def test_other_objects_are_unchanged(given):
    assert not is_device_array(given)
    assert to_host(given) is given
    if given is not None and not isinstance(given, list):
        array = np.ones(3)
        assert cast_like(array, given) is array
        assert asarray_like(array, given) is array
        assert namespace(given) is np


def test_data_frame_with_a_column_named_device(monkeypatch):
    pandas = pytest.importorskip("pandas")
    monkeypatch.setitem(sys.modules, "array_api_compat", None)  # which would say so as well
    assert not is_device_array(pandas.DataFrame({"device": [1.0], "shape": [2.0], "dtype": [3.0]}))


SPACES = {
    "euclidean": Euclidean(),
    "zonal": ZonalSphere(normalize=True),
    "harmonic": HarmonicSphere(max_degree=3, normalize=True),
}


def sums(space, rows, measure, frequencies):
    """Return all sums over rows that a space computes."""
    found = [space.amplitudes(rows, measure, frequencies), space.scales(rows, frequencies)]
    found.append(space.penalty(rows, frequencies, 0.1))
    if space.kind == "continuous":
        mass = np.float64(1)
        return [*found, *space.log_potential(rows, measure, frequencies, 0.1, "aligned", mass)]
    return [*found, space.all_amplitudes(rows, measure)]


@pytest.mark.parametrize(("n_tasks", "weighted"), [(1, False), (3, True)])
@pytest.mark.parametrize("name", SPACES)
def test_sums_equal_those_of_numpy(name, n_tasks, weighted, to, rng):
    X = rng.standard_normal((30, 5)) + 1
    weights = rng.uniform(1, 2, size=(30, 1)) if weighted else None
    measure = rng.standard_normal((30, n_tasks))
    here, there = (Rows(SPACES[name].prepare(array), weights, block_rows=8) for array in (X, to(X)))
    assert same_place(there.array, to(X))
    assert len(there.blocks()) == 4
    space, other = (SPACES[name].resolve(rows, np.random.default_rng(0)) for rows in (here, there))
    assert space.scale == pytest.approx(other.scale)
    frequencies = space.draw(6, here, rng)
    expected = sums(space, here, measure, frequencies)
    for found, wanted in zip(sums(other, there, measure, frequencies), expected, strict=True):
        assert isinstance(found, np.ndarray)
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)
    phases = space.phases(expected[0])
    for phase in ("aligned",) if name == "zonal" else ("aligned", "paired"):
        made = other.features(there.array, frequencies, phases, phase)
        assert same_place(made, there.array)
        expected = space.features(here.array, frequencies, phases, phase)
        np.testing.assert_allclose(to_host(made), expected, atol=1e-9)


def test_rows_give_the_same_results(to, rng):
    X, weights = rng.standard_normal((30, 4)), rng.uniform(1, 2, size=(30, 1))
    here, there = (Rows(array, weights, block_rows=8) for array in (X, to(X)))
    assert there.dtype == here.dtype
    np.testing.assert_allclose(there.mean(), here.mean())
    np.testing.assert_allclose(Rows(to(X)).mean(), Rows(X).mean())
    drawn = [draw_by_weight(rows, 20, np.random.default_rng(1)).array for rows in (here, there)]
    assert same_place(drawn[1], there.array)
    np.testing.assert_array_equal(*map(to_host, drawn))
    chosen = np.array([3, 1, 17])
    few = there.take(chosen)
    assert same_place(few.array, there.array)
    np.testing.assert_array_equal(to_host(few.array), X[chosen])
    np.testing.assert_array_equal(few.weights, weights[chosen])
    column = there.map(lambda X, w: X * w, weights)
    assert isinstance(column, np.ndarray)
    np.testing.assert_allclose(column, X * weights)
    doubled = there.map(lambda X: X * 2, on_device=True)
    assert same_place(doubled, there.array)
    np.testing.assert_array_equal(to_host(doubled), 2 * X)


@pytest.fixture(autouse=True)
def float64_views(monkeypatch):
    """In float32 the games of two libraries would go apart by their rounding."""
    monkeypatch.setattr(steps, "FLOAT32_LIMIT", 1.0)


MODELS = {
    "two classes": FourierClassifier(12),
    "three classes": FourierClassifier(12),
    "words": FourierClassifier(6),
    "weights": FourierClassifier(12),
    "paired": FourierClassifier(12, phase="paired"),
    "jobs": FourierClassifier(12, n_jobs=2),
    "balanced": FourierClassifier(6, class_weight="balanced"),
    "stopping": FourierClassifier("auto", max_components=20),
    "reweighted": FourierClassifier(12, solver="reweight", C=1.0),
    "langevin": FourierClassifier(3, search=Langevin(10, 20)),
    "regressor": FourierRegressor(12),
    "two outputs": FourierRegressor(12),
    "zonal": FourierClassifier(12, space=Sphere("zonal", normalize=True)),
    "harmonic": FourierClassifier(12, space=Sphere(normalize=True)),
    "linear": FourierClassifier(12, linear=True),
    "linear, three classes": FourierClassifier(12, linear=True),
    "linear, two outputs": FourierRegressor(12, linear=True, phase="paired"),
    "linear, zonal": FourierClassifier(12, linear=True, space=Sphere("zonal", normalize=True)),
}


TARGETS = {
    "three classes": lambda X: np.floor(2 * X[:, 0]).astype(int) % 3,
    "words": lambda X: np.where(X[:, 0] > 0, "yes", "no"),
    "regressor": lambda X: np.sin(X[:, 0]),
    "two outputs": lambda X: np.sin(X[:, :2]),
}
TARGETS |= {f"linear, {name}": TARGETS[name] for name in ("three classes", "two outputs")}


@pytest.mark.parametrize("name", MODELS)
def test_model_equals_that_of_numpy(name, to, data):
    X, y = data[0], TARGETS[name](data[0]) if name in TARGETS else data[1]
    weights = np.arange(len(y)) % 4.0 if name == "weights" else None
    model = MODELS[name].set_params(smoothing=0.06, random_state=0)
    expected = pickle.loads(pickle.dumps(model.fit(X, y, weights)))
    found = model.fit(
        to(X), y if name == "words" else to(y), None if weights is None else to(weights)
    )
    for part in ("frequencies_", "phases_", "dual_", "coef_", "intercept_"):
        assert isinstance(getattr(found, part), np.ndarray)
        np.testing.assert_allclose(
            getattr(found, part), getattr(expected, part), rtol=1e-4, atol=1e-4, err_msg=part
        )
    assert found.n_features_in_ == 3
    for fitted in (found, expected):  # each knows samples of the other's kind
        labels, own = fitted.predict(to(X)), expected.predict(X)
        assert isinstance(labels, np.ndarray) if name == "words" else same_place(labels, to(X))
        assert to_host(labels).dtype == own.dtype
        np.testing.assert_allclose(*map(as_numbers, (to_host(labels), own)), atol=1e-4)
        assert isinstance(fitted.predict(X), np.ndarray)
        features = fitted.features_.transform(to(X))
        assert same_place(features, to(X))
        np.testing.assert_allclose(to_host(features), expected.features_.transform(X), atol=1e-4)
        if hasattr(fitted, "decision_function"):
            scores = fitted.decision_function(to(X))
            assert same_place(scores, to(X))
            assert tuple(scores.shape) == expected.decision_function(X).shape
            np.testing.assert_allclose(to_host(scores), expected.decision_function(X), atol=1e-3)


def as_numbers(labels):
    return labels if labels.dtype.kind in "biuf" else (labels == labels[0]).astype(int)


@pytest.mark.parametrize("space", ["euclidean", Sphere("zonal", normalize=True)])
def test_float32_is_kept(space, to, data):
    """How games in it go depends on every rounding; that they go well doesn't."""
    X, y = data[0].astype(np.float32), data[1]
    model = FourierClassifier(12, smoothing=0.06, random_state=0, space=space)
    expected = np.mean(model.fit(X, y).predict(X) == y)
    model.fit(to(X), y)
    assert model.frequencies_.dtype == np.float32
    features = model.features_.transform(to(X))
    assert features.dtype == to(X).dtype
    assert abs(np.mean(to_host(model.predict(to(X))) == y) - expected) < 0.03
    double = pickle.loads(pickle.dumps(model.fit(X.astype(float), y))).features_
    np.testing.assert_allclose(to_host(double.transform(to(X))), double.transform(X), atol=1e-4)


@pytest.mark.parametrize("model", [FourierClassifier(6), FourierRegressor(6)])
def test_score(model, to, data):
    X, y = data
    weights = 1.0 + y
    expected = model.set_params(smoothing=0.06, random_state=0).fit(X, y).score(X, y, weights)
    assert model.score(to(X), to(y), to(weights)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("model", "target"),
    [
        (FourierRegressor(12), TARGETS["regressor"]),
        (FourierRegressor(12, linear=True), TARGETS["two outputs"]),
        (FourierClassifier(12), TARGETS["three classes"]),
    ],
)
def test_uncertainty_is_that_of_numpy(model, target, to, data):
    X, rng = data[0], np.random.default_rng(0)
    y = target(X)
    y = y if y.dtype == int else y + rng.normal(size=y.shape)
    model.set_params(smoothing=0.06, random_state=0)
    here, there = clone(model).fit(X[:800], y[:800]), clone(model).fit(to(X[:800]), to(y[:800]))
    is_classifier = isinstance(model, FourierClassifier)
    for stage in ("fitted", "calibrated"):
        if stage == "calibrated":
            weights = rng.integers(0, 3, size=400).astype(float)
            here.calibrate(X[800:], y[800:], weights)
            there.calibrate(to(X[800:]), to(y[800:]), to(weights))
        scores, others = here.held_out_scores_, there.held_out_scores_
        np.testing.assert_allclose(others.scores, scores.scores, rtol=1e-2, atol=1e-3)
        np.testing.assert_array_equal(others.counts, scores.counts)
        for coverage in (0.8, [0.5, 0.9]):
            name = "predict_set" if is_classifier else "predict_interval"
            results = [getattr(here, name)(each, coverage) for each in (X, to(X))]
            assert same_place(results[1], to(X))
            found = to_host(results[1])
            assert (found.shape, found.dtype) == (results[0].shape, results[0].dtype)
            if is_classifier:
                assert (found == results[0]).mean() > 0.999  # despite rounding
            else:
                np.testing.assert_allclose(found, results[0], atol=1e-3)
        if not is_classifier:
            np.testing.assert_allclose(there.noise_, here.noise_, rtol=1e-3)
            pairs = [here.predict(each, return_std=True) for each in (X, to(X))]
            for one, other in zip(*pairs, strict=True):
                assert same_place(other, to(X))
                np.testing.assert_allclose(to_host(other), one, atol=1e-3)


@pytest.mark.host_memory
@pytest.mark.parametrize("kind", ["torch", "strict"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_model_in_host_memory_is_exactly_that_of_numpy(kind, dtype, data):
    X, y = data[0].astype(dtype), data[1]
    there = KINDS[kind](X.copy())
    expected = FourierClassifier(20, smoothing=0.06, random_state=0).fit(X, y)
    found = FourierClassifier(20, smoothing=0.06, random_state=0).fit(there, y)
    np.testing.assert_array_equal(found.frequencies_, expected.frequencies_)
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    features = found.features_.transform(there)
    assert same_place(features, there)
    np.testing.assert_allclose(to_host(features), expected.features_.transform(X), atol=1e-4)


def test_linear_model_in_passes(to, data):
    X, y = data
    targets, weights = np.where(y > 0, 1.0, -1.0)[:, None], 1.0 + np.arange(len(y))[:, None] % 2
    kernel = FourierFeatures(8, smoothing=0.06, random_state=0).fit(X, y).kernel_
    coefs = []
    for array in (X, to(X)):
        problem = Problem(LOSSES["hinge"], targets, Rows(array, weights))
        coefs += solve_streaming(problem, kernel.feature_map, 8, 1e-3, sample_rows=200)[:1]
    np.testing.assert_allclose(coefs[1], coefs[0], rtol=1e-4, atol=1e-6)


def test_softmax_model_in_passes(to, data):
    X, y = data
    targets = signs_from_codes((y > 0).astype(int) + (X[:, 0] > 0), 3, np.float64)
    weights = 1.0 + np.arange(len(y))[:, None] % 2
    kernel = FourierFeatures(8, smoothing=0.06, random_state=0).fit(X, y).kernel_
    coefs = []
    for array in (X, to(X)):
        problem = Problem(LOSSES["logistic"], targets, Rows(array, weights))
        coefs += solve_softmax(problem, kernel.feature_map, 8, 1e-3, sample_rows=200)[:1]
    np.testing.assert_allclose(coefs[1], coefs[0], rtol=1e-4, atol=1e-6)


def test_few_samples_and_chosen_smoothing(to, data):
    X, y = data[0][:200], data[1][:200]
    X = np.concatenate([X, X[:50]])  # copies are merged
    y = np.concatenate([y, y[:50]])
    model = FourierFeatures(6, smoothing="auto", random_state=0)
    expected = model.fit(X, y).frequencies_
    np.testing.assert_allclose(model.fit(to(X), y).frequencies_, expected, atol=1e-4)


@pytest.mark.parametrize("linear", [False, True])
def test_kernel_is_computed_on_the_device(linear, to, data):
    X, y = data
    kernel = FourierClassifier(6, linear=linear, smoothing=0.06, random_state=0).fit(X, y).kernel_
    gram = kernel(to(X[:20]), to(X[:30]))
    assert same_place(gram, to(X))
    np.testing.assert_allclose(to_host(gram), kernel(X[:20], X[:30]), atol=1e-9)
    assert float(kernel(to(X[0]), to(X[1]))) == pytest.approx(kernel(X[0], X[1]))
    nothing = kernel.features(to(X[:0]))
    assert same_place(nothing, to(X))
    assert tuple(nothing.shape) == (0, 9 if linear else 6)
    diagonal = kernel.diag(to(X[:20]))
    assert same_place(diagonal, to(X))
    np.testing.assert_allclose(to_host(diagonal), kernel.diag(X[:20]), atol=1e-9)
    with pytest.raises(ValueError, match=r"shape \(1200, 2\)"):
        kernel.features(to(X[:, :2]))


def test_saved_and_loaded(to, data, tmp_path):
    X, y = data
    model = FourierClassifier(6, smoothing=0.06, random_state=0).fit(to(X), to(y))
    notsorandom.save(model, tmp_path / "model.skops")
    for other in (notsorandom.load(tmp_path / "model.skops"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.predict(X), to_host(model.predict(to(X))))
        assert same_place(other.decision_function(to(X)), to(X))


def test_certificate_and_baseline(to, data):
    X, y = data[0][:300, :2], data[1][:300]
    model = FourierClassifier(6, smoothing=0.06, random_state=0).fit(X, y)
    there = FourierClassifier(6, smoothing=0.06, random_state=0).fit(to(X), to(y))
    expected = model.certificate(X, y, max_evaluations=1000)
    found = there.certificate(to(X), to(y), max_evaluations=1000)
    assert found.upper == pytest.approx(expected.upper, rel=1e-4)
    assert found.lower == pytest.approx(expected.lower, rel=1e-4)
    random = RandomFourierFeatures(6, random_state=0).fit(X)
    assert same_place(random.transform(to(X)), to(X))


def test_warm_start_on_another_device(to, data):
    X, y = data
    model = FourierFeatures(6, smoothing=0.06, random_state=0, warm_start=True).fit(X, y)
    longer = model.set_params(n_components=12).fit(to(X), y)
    whole = FourierFeatures(12, smoothing=0.06, random_state=0).fit(X, y)
    np.testing.assert_allclose(longer.frequencies_, whole.frequencies_, atol=1e-4)


def with_row(X, row, value):
    return np.where(np.arange(len(X))[:, None] == row, value, X)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda X: with_row(X, 701, np.nan), "NaN.* row 701, column 0"),
        (lambda X: with_row(X, 7, np.inf), "infinity.* row 7,"),
        (lambda X: X[:, 0], r"Expected 2D array, got an array of shape \(1200,\)"),
        (lambda X: X[:1], r"1 sample\(s\) .*minimum of 2"),
        (lambda X: X[:, :0], r"0 feature\(s\)"),
        (lambda X: X.astype(complex), "Complex data not supported"),
        (lambda X: X[:-1], "inconsistent numbers of samples"),
    ],
)
def test_bad_samples(spoil, message, to, data):
    X, y = data
    with pytest.raises(ValueError, match=message):
        FourierFeatures(4, smoothing=0.06).fit(to(spoil(X)), y)


def test_bad_samples_once_fitted(to, data):
    X, y = data
    model = FourierClassifier(4, smoothing=0.06, random_state=0).fit(X, y)
    for predict in (model.predict, model.decision_function, model.features_.transform):
        with pytest.raises(ValueError, match=r"X has 2 features, but Fourier\w+ is expecting 3"):
            predict(to(X[:, :2]))
        with pytest.raises(ValueError, match="NaN"):
            predict(to(X * np.nan))
    with pytest.raises(ValueError, match="requires y to be passed"):
        FourierFeatures(4).fit(to(X), None)
    with pytest.raises(ValueError, match="has norm"):
        FourierFeatures(4, space="sphere").fit(to(X), y)
    with pytest.raises(ValueError, match="Row 3 of X is zero"):
        unit_rows(to(with_row(X, 3, 0)), True)


def test_large_finite_numbers(to, data):
    """They are not mistaken for infinity, but refused if no digit of a feature is correct."""
    X, y = data
    model = FourierFeatures(4, smoothing=0.06, random_state=0).fit(to(X), y)
    assert np.isfinite(to_host(model.transform(to(np.abs(X) * 1e10)))).all()
    with pytest.raises(ValueError, match=r"Row 0 of X has .*e\+30\d in column ., .* too far"):
        model.transform(to(np.abs(X) * 1e305))


def test_integers(to, data):
    X = np.rint(4000 * data[0]).astype(np.int64)  # no two are equal: NumPy would merge them
    model = FourierFeatures(4, smoothing=0.06, random_state=0)
    expected = model.fit(X, data[1]).transform(X)
    made = model.fit(to(X), data[1]).transform(to(X))
    assert made.dtype == to(np.ones(1)).dtype
    np.testing.assert_allclose(to_host(made), expected, atol=1e-4)


def test_samples_are_not_transferred(data, monkeypatch):
    """From a device that NumPy can't read, only sums and columns come, never the samples."""
    X, y = np.tile(data[0], (10, 1)), np.tile(data[1], 10)
    X += 0.01 * np.random.default_rng(0).standard_normal(X.shape)
    brought = []
    plain = array_api_strict._array_object.Array.to_device

    def watched(self, device, /, **settings):
        brought.append(self.shape)
        return plain(self, device, **settings)

    search = Ascent(spectrum="gaussian")  # nothing to try out
    model = FourierFeatures(8, C=1.0, smoothing=0.06, search=search, random_state=0)
    monkeypatch.setattr(array_api_strict._array_object.Array, "to_device", watched)
    far = KINDS["strict, second device"](X)
    made = model.fit(far, y).transform(far)
    assert made.device == FAR
    assert brought
    # pairs for the median distance, and features of a probe
    assert max(shape[0] for shape in brought if len(shape) == 2 and shape[1] == 3) <= 1024


@pytest.mark.host_memory
def test_tensors_that_require_gradients(data):
    X, y = data
    tensor = torch.tensor(X, requires_grad=True)
    model = FourierClassifier(4, smoothing=0.06, random_state=0)
    expected, found = clone(model).fit(X, y), clone(model).fit(tensor, y)
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    np.testing.assert_array_equal(to_host(found.predict(tensor)), expected.predict(X))
    space = Sphere("zonal", normalize=True)
    zonal = FourierFeatures(4, smoothing=0.06, random_state=0, space=space).fit(X, y)
    np.testing.assert_allclose(to_host(zonal.transform(tensor)), zonal.transform(X), atol=1e-6)


def test_features_are_differentiable(data):
    X, y = data
    model = FourierFeatures(6, smoothing=0.06, random_state=0).fit(X, y)
    samples = torch.asarray(X[:5].copy()).requires_grad_()
    assert torch.autograd.gradcheck(model.transform, (samples,))


@pytest.mark.parametrize("kind", ["torch", "strict"])
def test_missing_package_is_named(kind, data, monkeypatch):
    X, y = data
    given = KINDS[kind](X.copy())
    monkeypatch.setitem(sys.modules, "array_api_compat", None)
    with pytest.raises(ImportError, match=r"notsorandom\[array-api\]"):
        FourierFeatures(4, smoothing=0.06).fit(given, y)
    FourierFeatures(4, smoothing=0.06).fit(X, y).transform(X.tolist())  # which don't need it


@pytest.mark.slow
def test_nothing_is_imported_for_numpy():
    code = "import sys, numpy as np; from notsorandom import FourierClassifier;"
    code += "X = np.random.default_rng(0).normal(size=(100, 2));"
    code += "FourierClassifier(4, smoothing=.06).fit(X, X[:, 0] > 0).predict(X);"
    code += "assert not {'torch', 'array_api_compat'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
