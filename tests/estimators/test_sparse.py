"""Sparse samples give the same model as dense ones, and are not made dense."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import notsorandom
from notsorandom import FourierClassifier, FourierFeatures, FourierRegressor, Sphere
from notsorandom.baselines import LKRF, RandomFourierFeatures
from notsorandom.data.rows import Rows, row_norms
from notsorandom.spaces import Euclidean, Landscape
from notsorandom.spaces.landscape import median_distance

FORMATS = [sparse.csr_matrix, sparse.csr_array, sparse.csc_matrix, sparse.coo_array]


def data(rng, n_samples=300, n_features=20, density=0.2, dtype=np.float64):
    X = sparse.random(
        n_samples, n_features, density, format="csr", random_state=np.random.RandomState(0)
    )
    X = X.toarray().astype(dtype)
    X[:, 0] += 0.01  # no row without entries
    return X, X[:, :5].sum(axis=1) + 0.1 * rng.standard_normal(n_samples)


@pytest.mark.parametrize("n_tasks", [1, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_landscape_equals_the_dense_one(rng, n_tasks, dtype):
    X, _ = data(rng, dtype=dtype)
    dense_rows, rows = Rows(X), Rows(sparse.csr_array(X))
    measure = rng.standard_normal((300, n_tasks)).astype(dtype)
    spaces = [Euclidean().resolve(each, np.random.default_rng(0)) for each in (dense_rows, rows)]
    np.testing.assert_allclose(spaces[0].center, spaces[1].center, rtol=1e-5)
    np.testing.assert_allclose(spaces[0].scale, spaces[1].scale, rtol=1e-5)
    frequencies = spaces[0].draw(5, dense_rows, rng)
    points = [
        Landscape(spaces[0], each, measure, 0.1).evaluate_with_slope(frequencies)
        for each in (dense_rows, rows)
    ]
    tolerance = 1e-3 if dtype == np.float32 else 1e-9
    for name in ("height", "slope", "amplitudes"):
        one, other = (getattr(point, name) for point in points)
        assert one.dtype == other.dtype == dtype
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=100 * tolerance)


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e5])
@pytest.mark.parametrize("phase", ["aligned", "paired"])
def test_float32_far_from_the_origin(rng, offset, phase):
    """Features of float32 samples, dense or sparse, are those of the same numbers in float64."""
    X = rng.standard_normal((400, 5)) + offset
    model = FourierFeatures(30, C=1.0, smoothing=0.1, phase=phase, random_state=0)
    model.fit(X, X[:, 0] > np.median(X[:, 0]))
    single = X.astype(np.float32)
    expected = model.transform(single.astype(np.float64))
    for samples in (single, sparse.csr_array(single)):
        found = model.transform(samples)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("estimator", [FourierFeatures, FourierClassifier, FourierRegressor])
def test_model_equals_the_dense_one(rng, form, estimator):
    X, y = data(rng)
    y = y if estimator is FourierRegressor else y > np.median(y)
    models = [estimator(4, smoothing=0.2, random_state=0).fit(each, y) for each in (X, form(X))]
    for other in (X, form(X)):
        for model in models:
            name = "transform" if estimator is FourierFeatures else "predict"
            np.testing.assert_allclose(
                getattr(model, name)(other), getattr(models[0], name)(X), rtol=1e-3, atol=1e-3
            )


@pytest.mark.parametrize("linear", [False, True])
def test_intervals_equal_the_dense_ones(rng, linear):
    X, y = data(rng)
    model = FourierRegressor(4, smoothing=0.2, linear=linear, random_state=0)
    dense, model = clone(model).fit(X, y), model.fit(sparse.csr_array(X), y)
    assert model.posterior_ is not None
    for each in (X, sparse.csr_array(X)):
        for name, options in (("predict", {"return_std": True}), ("predict_interval", {})):
            expected = getattr(dense, name)(X, **options)
            np.testing.assert_allclose(getattr(model, name)(each, **options), expected, rtol=1e-3)


def test_intervals_of_many_columns_are_equally_wide(rng):
    """There is no posterior: their linear models are solved without a matrix of the columns."""
    X = sparse.random(700, 3000, 0.02, random_state=0, format="csr")
    y = X[:, :200].sum(axis=1) + 0.5 * rng.standard_normal((700, 1))
    y = np.asarray(y) @ [[1.0, -2.0]]
    model = FourierRegressor(6, smoothing=0.3, linear=True, random_state=0).fit(X[:500], y[:500])
    assert model.posterior_ is None
    _, deviations = model.predict(X, return_std=True)
    np.testing.assert_allclose(deviations, np.broadcast_to(model.noise_, (700, 2)))
    intervals = model.predict_interval(X[500:], 0.9)
    widths = np.diff(intervals, axis=2)[:, :, 0]
    np.testing.assert_allclose(widths, np.broadcast_to(widths[0], widths.shape))
    covered = (intervals[:, :, 0] <= y[500:]) & (y[500:] <= intervals[:, :, 1])
    assert 0.8 < covered.mean() < 0.98
    assert (np.diff(model.calibrate(X[500:], y[500:]).predict_interval(X), axis=2) > 0).all()


def test_wide_sparse_samples_give_the_model_of_dense_ones(rng):
    X = sparse.random(400, 300, 0.1, random_state=0, format="csr")
    y = np.ravel(X[:, :20].sum(axis=1)) > 1
    model = FourierClassifier(6, smoothing=0.3, random_state=0)
    expected = model.fit(X.toarray(), y).decision_function(X)
    np.testing.assert_allclose(model.fit(X, y).decision_function(X), expected, rtol=0.02, atol=0.02)


@pytest.mark.parametrize("n_samples", [300, 3000])
def test_samples_are_not_made_dense(rng, n_samples, monkeypatch):
    """Twenty thousand columns, eight entries per row."""

    def bounded(plain):
        def toarray(matrix, *arguments, **options):
            assert np.prod(matrix.shape) < 10**6, "made dense"
            return plain(matrix, *arguments, **options)

        return toarray

    for kind in (sparse.csr_matrix, sparse.csr_array, sparse.csc_matrix, sparse.csc_array):
        monkeypatch.setattr(kind, "toarray", bounded(kind.toarray))
        monkeypatch.setattr(kind, "todense", None)
    columns = rng.integers(0, 20_000, size=(n_samples, 8))
    y = np.arange(n_samples) % 2
    columns[:, 0] = y
    entries = (np.ones(8 * n_samples), (np.repeat(np.arange(n_samples), 8), columns.ravel()))
    X = sparse.csr_matrix(sparse.coo_matrix(entries, shape=(n_samples, 20_000)))
    model = FourierClassifier(4, smoothing=0.3, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.95
    assert model.frequencies_.shape == (4, 20_000)


@pytest.mark.parametrize("basis", ["zonal", "harmonic", "degree"])
def test_sparse_samples_on_the_sphere(rng, basis):
    X, y = data(rng, n_features=4, density=0.6)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = y > np.median(y)
    for normalize in (False, True):
        sphere = Sphere(basis, normalize=normalize)
        factor = 3 if normalize else 1
        model = FourierClassifier(16, space=sphere, smoothing=0.1, random_state=0)
        expected = model.fit(factor * X, y).decision_function(factor * X)
        found = model.fit(sparse.csr_matrix(factor * X), y).decision_function(factor * X)
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


def test_rows_without_entries_are_rejected_on_the_sphere(rng):
    X, y = data(rng)
    X[[3, 7]] = 0
    with pytest.raises(ValueError, match=r"Row 3 of sparse X has no entries \(2 of 300"):
        FourierFeatures(4, space=Sphere("zonal", normalize=True)).fit(sparse.csr_matrix(X), y > 1)


def test_explicit_zeros_and_long_indices_change_nothing(rng):
    X, y = data(rng)
    plain = sparse.csr_matrix(X)
    odd = plain.copy()
    odd.data[::5] = 0  # explicit zeros
    zeroed = odd.toarray()
    odd.indices, odd.indptr = odd.indices.astype(np.int64), odd.indptr.astype(np.int64)
    before = odd.data.copy()
    model = FourierClassifier(4, smoothing=0.2, random_state=0)
    expected = model.fit(sparse.csr_matrix(zeroed), y > 1).decision_function(X)
    found = model.fit(odd, y > 1)
    np.testing.assert_array_equal(found.decision_function(X), expected)
    np.testing.assert_array_equal(odd.data, before)  # the input is not modified
    unsorted = plain.copy()
    for start, end in zip(plain.indptr, plain.indptr[1:], strict=False):
        unsorted.indices[start:end] = unsorted.indices[start:end][::-1]
        unsorted.data[start:end] = unsorted.data[start:end][::-1]
    unsorted.has_sorted_indices = False
    np.testing.assert_allclose(
        model.fit(unsorted, y > 1).decision_function(X),
        model.fit(plain, y > 1).decision_function(X),
        rtol=1e-6,
        atol=1e-6,
    )


def test_nan_and_infinity_are_rejected(rng):
    X, y = data(rng)
    X = sparse.csr_matrix(X)
    for value in (np.nan, np.inf):
        X.data[0] = value
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            FourierClassifier().fit(X, y > 1)


def test_row_norms_and_scale(rng):
    X, _ = data(rng)
    mixed = X * 10.0 ** np.linspace(-300, 300, len(X))[:, None]
    for each in (mixed, (X * 10.0 ** np.linspace(-30, 30, len(X))[:, None]).astype(np.float32)):
        np.testing.assert_allclose(row_norms(sparse.csr_array(each)), row_norms(each), rtol=1e-6)
        assert (row_norms(each) > 0).all()
    for factor in (1e-200, 1.0, 1e200):
        rows = sparse.csr_array(X * factor)
        np.testing.assert_allclose(row_norms(rows), row_norms(X * factor))
        found = median_distance(Rows(rows), np.random.default_rng(0))
        expected = median_distance(Rows(X * factor), np.random.default_rng(0))
        np.testing.assert_allclose(found, expected)
    equal = sparse.csr_array(np.ones((50, 3)))
    assert median_distance(Rows(equal), rng) == 1.0


def test_certificate_kernel_and_report(rng, tmp_path):
    X, y = data(rng)
    labels = y > np.median(y)
    sparse_X = sparse.csr_matrix(X)
    model = FourierClassifier(6, smoothing=0.2, random_state=0).fit(sparse_X, labels)
    np.testing.assert_allclose(model.kernel_(sparse_X), model.kernel_(X))
    one, other = (model.certificate(each, labels) for each in (X, sparse_X))
    np.testing.assert_allclose(one.upper, other.upper, rtol=1e-6)
    page = notsorandom.report(model, sparse_X, labels, tmp_path / "page.html")
    assert page.stat().st_size > 10_000


@pytest.mark.parametrize("baseline", [RandomFourierFeatures, LKRF])
def test_baselines(rng, baseline):
    X, y = data(rng)
    options = {"n_pool": 50} if baseline is LKRF else {}
    model = baseline(10, random_state=0, **options)
    expected = model.fit(X, y > 1).transform(X)
    np.testing.assert_allclose(
        model.fit(sparse.csr_matrix(X), y > 1).transform(sparse.csr_matrix(X)), expected, rtol=1e-6
    )
