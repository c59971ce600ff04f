"""Views: frequencies found there are the same waves of the samples."""

import numpy as np
import pytest
import reference
from scipy import sparse
from scipy.spatial.distance import pdist

from notsorandom import Euclidean, FourierClassifier, Sphere
from notsorandom.data.lazy import LazyArray
from notsorandom.data.rows import Rows
from notsorandom.spaces import view as view_module
from notsorandom.spaces.view import MAX_DIRECTIONS, principal_directions, round_to_float32

pytestmark = pytest.mark.usefixtures("quick_trials")


def low_rank(rng, n_samples=300, n_features=200, rank=10):
    X = rng.standard_normal((n_samples, rank)) @ rng.standard_normal((rank, n_features))
    return X + 5.0


def view_of(X, dtype="float32"):
    """The space, and the view in the usual directions."""
    space = Euclidean().resolve(Rows(X), np.random.default_rng(0))
    view = space.view(Rows(X), dtype, np.random.default_rng(1))
    return space, view.without_optional()


def usual_directions(X, rng):
    directions, n_usual = principal_directions(Rows(X), X.mean(axis=0), rng)
    assert n_usual == MAX_DIRECTIONS
    return directions[:, :n_usual]


def viewed(X, weights=None):
    """The samples as the view has them."""
    return view_of(X)[1].apply(Rows(X, weights))


@pytest.mark.parametrize("n_features", [3, 200])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_waves_are_the_waves_of_the_samples(rng, n_features, kind):
    X = low_rank(rng, n_features=n_features) + 0.01 * rng.standard_normal((300, n_features))
    space, view = view_of(kind(X), "float64")
    Z = view.apply(Rows(kind(X))).array
    assert isinstance(Z, np.ndarray)
    assert Z.shape[1] == min(n_features, MAX_DIRECTIONS)
    frequencies = rng.standard_normal((7, Z.shape[1]))
    angles = (X - space.center) @ view.restore(frequencies).T
    # The basis is in float32; sparse samples are centred after the product.
    np.testing.assert_allclose(Z @ frequencies.T, angles, atol=1e-4)


def test_directions_are_orthonormal_and_span_data_of_low_rank(rng):
    X = low_rank(rng)
    basis = usual_directions(X, rng).astype(np.float64)
    np.testing.assert_allclose(basis.T @ basis, np.eye(MAX_DIRECTIONS), atol=1e-5)
    centred = X - X.mean(axis=0)
    np.testing.assert_allclose(centred @ basis @ basis.T, centred, atol=1e-3)


def test_leading_directions_are_kept(rng):
    """Two hundred columns with variances from 200^2 down to 1: the large ones remain."""
    scales = np.arange(200, 0, -1.0)
    X = scales * rng.standard_normal((4000, 200))
    basis = usual_directions(X, rng)
    kept = np.square(basis).sum(axis=1)  # of each column
    assert kept[:60].min() > 0.8
    assert kept[-30:].max() < 0.2


def test_no_directions_hold_more_variance(rng):
    """Of a slowly decreasing spectrum; the singular vectors of all samples are the reference."""
    X = 0.99 ** np.arange(300.0) * rng.standard_normal((1000, 300))
    centred = X - X.mean(axis=0)
    best = np.linalg.svd(centred, full_matrices=False)[2][:MAX_DIRECTIONS].T
    basis = usual_directions(X, rng)
    kept, most = (np.square(centred @ each).sum() for each in (basis, best))
    assert kept > (1 - 1e-6) * most


@pytest.mark.full_trials
@pytest.mark.parametrize("column", [10, 160])
def test_trials_choose_the_number_of_directions(rng, column):
    """Of 200 columns of decreasing variance, with the signal in one of them."""
    X = 0.99 ** np.arange(200.0) * rng.standard_normal((3000, 200))
    model = FourierClassifier(50, linear=False, random_state=0).fit(X, X[:, column] > 0)
    rank = np.linalg.matrix_rank(model.frequencies_.astype(np.float64), rtol=1e-4)
    assert rank == 50
    _, view = view_of(X)
    outside = model.frequencies_ - model.frequencies_ @ view.basis @ view.basis.T
    assert (np.abs(outside).max() > 1e-3 * np.abs(model.frequencies_).max()) == (column == 160)


def test_a_given_smoothing_has_the_usual_directions(rng):
    X = 0.99 ** np.arange(200.0) * rng.standard_normal((1000, 200))
    model = FourierClassifier(10, smoothing=0.07, random_state=0).fit(X, X[:, 160] > 0)
    _, view = view_of(X)
    outside = model.frequencies_ - model.frequencies_ @ view.basis @ view.basis.T
    assert np.abs(outside).max() < 0.5 * np.abs(model.frequencies_).max()


@pytest.mark.parametrize("n_samples", [20, 200])
def test_few_samples_keep_their_distances(rng, n_samples):
    X = rng.standard_normal((n_samples, 1000))
    space, view = view_of(X)
    Z = view.apply(Rows(X)).array.astype(np.float64)
    assert Z.shape == (n_samples, n_samples)
    np.testing.assert_allclose(space.scale * pdist(Z), pdist(X), rtol=1e-4)


@pytest.mark.parametrize("n_samples", [1000, 6000])
def test_all_columns_are_kept_if_none_varies_more_than_others(rng, n_samples):
    X = rng.standard_normal((n_samples, 200))
    assert principal_directions(Rows(X), X.mean(axis=0), rng) == (None, X.shape[1])
    assert viewed(X).array.shape == X.shape


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_large_weights_outliers_and_units_leave_the_directions(rng, factor):
    """The directions of low rank are found beside one row and one column of another scale."""
    X = low_rank(rng, 600)
    X[0] *= 1000
    X[:, 7] *= 1000
    weights = np.full((600, 1), factor**10)
    basis, _ = principal_directions(Rows(factor * X, weights), factor * X.mean(axis=0), rng)
    centred = np.delete(X - X.mean(axis=0), 0, axis=0)
    left_out = centred - centred @ basis @ basis.T
    assert np.square(left_out).sum() < 1e-3 * np.square(np.delete(centred, 7, axis=1)).sum()


def test_units_do_not_matter(rng):
    X = rng.standard_normal((100, 3))
    for factor in (1e-150, 1e150):
        scaled, expected = viewed(factor * X).array, viewed(X).array
        np.testing.assert_allclose(scaled, expected, rtol=1e-5, atol=1e-6)


def test_precision_far_from_the_origin(rng):
    """Centred in float64, and only then rounded to float32."""
    X = rng.standard_normal((100, 2))
    np.testing.assert_allclose(viewed(X + 1e8).array, viewed(X).array, atol=1e-6)


def test_a_large_view_of_samples_on_disk_is_computed_on_demand(rng, tmp_path, monkeypatch):
    X = np.memmap(tmp_path / "X", dtype=np.float64, mode="w+", shape=(500, 150))
    X[:] = rng.standard_normal(X.shape)
    _, view = view_of(X)
    held = view.apply(Rows(X)).array
    assert isinstance(held, np.ndarray)
    monkeypatch.setattr(view_module, "VIEW_BYTES", 1000)
    on_demand = view.apply(Rows(X)).array
    assert isinstance(on_demand, LazyArray)
    assert (on_demand.shape, on_demand.dtype) == (held.shape, held.dtype)
    np.testing.assert_allclose(on_demand[100:200], held[100:200], atol=1e-6)
    np.testing.assert_allclose(on_demand[np.array([7, 3])], held[[7, 3]], atol=1e-6)


def test_wide_sparse_samples_are_not_centred_for_their_directions(rng):
    X = sparse.random(2000, 5000, 0.01, random_state=0, format="csr")
    basis, _ = principal_directions(Rows(sparse.csr_array(X)), np.zeros(5000), rng)
    assert basis.shape == (5000, MAX_DIRECTIONS)
    kept = np.linalg.norm(X @ basis) / sparse.linalg.norm(X)
    assert kept > np.sqrt(MAX_DIRECTIONS / 5000)  # more than random directions keep


def test_weights_matter_for_the_directions(rng):
    X = np.concatenate([low_rank(rng, 150), 30 * low_rank(rng, 150)])
    weights = np.repeat([1.0, 1e-12], 150)[:, None]
    basis, _ = principal_directions(Rows(X, weights), X[:150].mean(axis=0), rng)
    light, _ = principal_directions(Rows(X[:150]), X[:150].mean(axis=0), rng)
    overlap = np.linalg.svd(basis[:, :10].T @ light[:, :10], compute_uv=False)
    assert overlap.min() > 0.99


@pytest.mark.parametrize("basis", ["zonal", "harmonic"])
def test_samples_on_the_sphere_are_rounded_only(rng, basis):
    X = reference.sphere_points(rng, 50, 3)
    space = Sphere(basis, max_degree=3).resolve(Rows(X), rng)
    view = space.view(Rows(X), "float32", rng)
    for kind in (np.asarray, sparse.csr_array):
        np.testing.assert_array_equal(view.apply(Rows(kind(X))).array, X.astype(np.float32))
    assert view.space is space


def test_wide_sparse_samples_on_the_sphere_stay_sparse(rng, monkeypatch):
    monkeypatch.setattr(view_module, "VIEW_BYTES", 0)
    X = sparse.csr_array(sparse.random(50, 300, 0.2, random_state=0, format="csr"))
    space = Sphere("zonal", max_degree=3).resolve(Rows(X), rng)
    viewed = space.view(Rows(X), "float32", rng).apply(Rows(X)).array
    assert sparse.issparse(viewed)
    np.testing.assert_array_equal(viewed.toarray(), X.toarray().astype(np.float32))


def test_weights_are_rounded_with_the_samples(rng):
    X, weights = rng.standard_normal((20, 2)), rng.uniform(0.5, 2, size=(20, 1))
    rows = viewed(X, weights)
    assert rows.weights.dtype == np.float32
    np.testing.assert_array_equal(rows.weights, weights.astype(np.float32))


def test_rounding_to_float32_keeps_the_type_and_extreme_numbers():
    numbers = np.array([1 / 3, -2e5])
    rounded = round_to_float32(numbers)
    assert rounded.dtype == np.float64
    np.testing.assert_array_equal(rounded, numbers.astype(np.float32))
    extreme = np.array([1e-200, 1.0])
    np.testing.assert_array_equal(round_to_float32(extreme), extreme)
