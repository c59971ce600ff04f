"""Spherical harmonics: counts, orthonormality and the addition theorem in any dimension."""

import math

import numpy as np
import pytest
import reference
from scipy import special

from notsorandom.spaces.gegenbauer import legendre, n_harmonics, zonal, zonal_slopes
from notsorandom.spaces.harmonic_sphere import largest_degree
from notsorandom.spaces.harmonics import (
    HarmonicSums,
    count_harmonics,
    harmonic_indices,
    harmonics,
    harmonics_by_degree,
)

# For each number of features, the largest degree up to which there are at most 2000 harmonics.
LARGEST = {n_features: largest_degree(n_features, 2000) for n_features in (2, 3, 4, 5, 8, 20)}


@pytest.mark.parametrize("n_features", LARGEST)
def test_largest_degree(n_features):
    assert count_harmonics(n_features, LARGEST[n_features]) <= 2000
    assert count_harmonics(n_features, LARGEST[n_features] + 1) > 2000


@pytest.mark.parametrize("n_features", [2, 3, 4, 5])
@pytest.mark.parametrize("degree", [0, 1, 2, 3, 5])
def test_number_of_harmonics_is_the_dimension_of_the_harmonic_polynomials(n_features, degree):
    expected = reference.n_harmonic_polynomials(n_features, degree)
    assert n_harmonics(n_features, degree) == expected
    before = count_harmonics(n_features, degree - 1)
    assert count_harmonics(n_features, degree) == before + expected
    if degree >= 3:  # the second term printed in the paper's appendix is different
        printed = math.comb(n_features - 1 + degree, degree)
        printed -= math.comb(n_features - 1 + degree, degree - 2)
        assert printed != expected


@pytest.mark.parametrize("n_features", LARGEST)
def test_indices(n_features):
    max_degree = min(LARGEST[n_features], 20)
    indices = harmonic_indices(n_features, max_degree)
    sizes = np.abs(indices)
    assert indices.shape == (count_harmonics(n_features, max_degree), n_features - 1)
    assert len(np.unique(indices, axis=0)) == len(indices)
    assert (np.diff(sizes, axis=1) >= 0).all()
    assert (indices[:, 1:] >= 0).all()
    assert (np.diff(sizes[:, -1]) >= 0).all()
    counts = np.bincount(sizes[:, -1])
    assert counts.tolist() == [n_harmonics(n_features, degree) for degree in range(max_degree + 1)]


@pytest.mark.parametrize("n_features", LARGEST)
def test_addition_theorem(rng, n_features):
    """The products of the harmonics of a degree sum to the degree's reproducing kernel.

    This kernel is a projection, and its rank is the number of harmonics, so they are orthonormal.
    """
    X = reference.sphere_points(rng, 25, n_features)
    by_degree = harmonics_by_degree(X, LARGEST[n_features])
    for degree, values in enumerate(by_degree):
        count = n_harmonics(n_features, degree)
        assert len(values) == count
        expected = reference.degree_gram(X, degree)
        np.testing.assert_allclose(values.T @ values / count, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("n_features", "max_degree"), [(2, 999), (3, 43), (4, 16), (5, 10), (8, 2)]
)
def test_orthonormality(n_features, max_degree):
    indices = harmonic_indices(n_features, max_degree)
    some = indices[:: max(1, len(indices) // 200)]
    points, weights = reference.sphere_quadrature(n_features, 2 * max_degree)
    gram = np.zeros((len(some), len(indices)))
    for start in range(0, len(points), 4096):
        block = slice(start, start + 4096)
        everything = np.concatenate(harmonics_by_degree(points[block], max_degree))
        gram += (harmonics(points[block], some).T * weights[block]) @ everything.T
    expected = (some[:, None] == indices).all(axis=2)
    np.testing.assert_allclose(gram, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("degree", [0, 1, 7, 60, 500])
@pytest.mark.skipif(not hasattr(special, "sph_harm_y"), reason="needs SciPy 1.15")
def test_scipy_agrees(rng, degree):
    """Up to the area of the sphere and the sign that SciPy's convention has at odd orders."""
    X = reference.sphere_points(rng, 30, 3)
    polar, azimuth = np.arccos(X[:, 2]), np.arctan2(X[:, 1], X[:, 0])
    orders = np.arange(degree + 1)
    theirs = special.sph_harm_y(degree, orders, polar[:, None], azimuth[:, None])
    theirs = theirs * math.sqrt(4 * np.pi) * (-1.0) ** orders * np.where(orders > 0, 2**0.5, 1)
    indices = np.column_stack([orders, np.full(degree + 1, degree)])
    np.testing.assert_allclose(harmonics(X, indices), theirs.real, atol=1e-10)
    np.testing.assert_allclose(
        harmonics(X, indices * [-1, 1])[:, 1:], theirs.imag[:, 1:], atol=1e-10
    )


@pytest.mark.parametrize(("n_features", "degree"), [(3, 500), (4, 200)])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-10), (np.float32, 1e-3)])
def test_high_degrees_are_accurate(rng, n_features, degree, dtype, tolerance):
    near_pole = np.eye(n_features)[-1] + 1e-3 * np.eye(n_features)[0]
    X = np.concatenate([reference.sphere_points(rng, 4, n_features), np.eye(n_features)])
    X = np.concatenate([X, near_pole[None] / np.linalg.norm(near_pole)]).astype(dtype)
    lower = harmonic_indices(n_features - 1, degree)
    indices = np.column_stack([lower, np.full(len(lower), degree)])
    values = harmonics(X, indices)
    assert values.dtype == dtype
    assert np.isfinite(values).all()
    exact = X.astype(np.float64)
    norms = np.linalg.norm(exact, axis=1)  # a rounded point is not quite on the sphere
    expected = reference.degree_gram(exact / norms[:, None], degree)
    expected *= np.outer(norms, norms) ** degree
    gram = values.astype(np.float64) @ values.T / n_harmonics(n_features, degree)
    np.testing.assert_allclose(gram, expected, atol=tolerance)


@pytest.mark.parametrize("n_features", [3, 4, 8])
def test_poles_and_zero_coordinates_are_not_singular(rng, n_features):
    special_points = np.concatenate([np.eye(n_features), -np.eye(n_features)])
    nearby = special_points + 1e-8 * rng.standard_normal(special_points.shape)
    nearby /= np.linalg.norm(nearby, axis=1, keepdims=True)
    indices = harmonic_indices(n_features, 4)
    values = harmonics(special_points, indices)
    np.testing.assert_allclose(values, harmonics(nearby, indices), atol=1e-5)
    at_pole = values[n_features - 1]
    degrees = indices[:, -1]
    counts = np.array([n_harmonics(n_features, degree) for degree in degrees])
    np.testing.assert_allclose(
        at_pole, np.where((indices[:, :-1] == 0).all(axis=1), np.sqrt(counts), 0), atol=1e-12
    )


@pytest.mark.parametrize("n_features", [2, 3, 5])
def test_pairs_rotate_together(rng, n_features):
    """A rotation of the first two coordinates rotates each pair by l_1 times the angle."""
    X = reference.sphere_points(rng, 10, n_features)
    angle = 0.7
    turned = X.copy()
    turned[:, 0] = np.cos(angle) * X[:, 0] - np.sin(angle) * X[:, 1]
    turned[:, 1] = np.sin(angle) * X[:, 0] + np.cos(angle) * X[:, 1]
    indices = harmonic_indices(n_features, 4)
    indices = indices[indices[:, 0] > 0]
    mirror = indices * np.where(np.arange(n_features - 1) == 0, -1, 1)
    before = harmonics(X, indices) + 1j * harmonics(X, mirror)
    after = harmonics(turned, indices) + 1j * harmonics(turned, mirror)
    np.testing.assert_allclose(after, before * np.exp(1j * angle * indices[:, 0]), atol=1e-12)


@pytest.mark.parametrize(
    ("n_features", "max_degree"), [(2, 9), (3, 30), (3, 150), (4, 13), (5, 7), (8, 4), (20, 2)]
)
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-10), (np.float32, 2e-3)])
def test_sums_of_all_harmonics(rng, n_features, max_degree, dtype, tolerance):
    X = np.concatenate([reference.sphere_points(rng, 20, n_features), np.eye(n_features)])
    X, a = X.astype(dtype), rng.standard_normal((len(X), 3)).astype(dtype)
    sums = HarmonicSums(n_features, max_degree)
    indices = harmonic_indices(n_features, max_degree)
    expected = a.T.astype(np.float64) @ harmonics(X.astype(np.float64), indices)
    result = sums.from_moments(sums.moments(X, a))
    assert result.dtype == dtype
    largest = np.abs(expected).max()
    np.testing.assert_allclose(result, expected, rtol=0, atol=tolerance * largest)


@pytest.mark.parametrize("n_features", [2, 3, 7, 50])
@pytest.mark.parametrize("degree", [1, 2, 3, 6])
def test_zonal_harmonics(rng, n_features, degree):
    cosines = rng.uniform(-1, 1, size=(5, 4))
    degrees = np.full(4, degree)
    values = zonal(cosines, degrees, n_features)
    slopes = zonal_slopes(cosines, degrees, n_features)
    root = math.sqrt(n_harmonics(n_features, degree))
    expected = root * reference.legendre(n_features, degree, cosines)
    np.testing.assert_allclose(values, expected, atol=1e-9 * root)
    step = 1e-6
    ahead, behind = (zonal(cosines + s, degrees, n_features) for s in (step, -step))
    np.testing.assert_allclose(slopes, (ahead - behind) / (2 * step), rtol=1e-4, atol=1e-6)
    mixed = np.array([degree, 0, 1, 4])
    columns = [zonal(cosines[:, [i]], mixed[[i]], n_features) for i in range(4)]
    np.testing.assert_allclose(zonal(cosines, mixed, n_features), np.column_stack(columns))


@pytest.mark.parametrize("n_features", [2, 3, 4])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_zonal_harmonics_of_high_degree(rng, n_features, dtype):
    # In 2 and 4 dimensions there is a closed form. Rounding makes cosines larger than 1.
    epsilon = np.finfo(dtype).eps
    edges = [-1 - epsilon, -1, epsilon - 1, 0, 1 - epsilon, 1, 1 + epsilon]
    cosines = np.concatenate([edges, rng.uniform(-1, 1, size=20)]).astype(dtype)
    degrees = np.array([40, 0, 17, 16, 41, 1, 63])
    exact = np.clip(cosines.astype(np.float64), -1, 1)
    roots = [math.sqrt(n_harmonics(n_features, degree)) for degree in degrees]
    values = zonal(np.tile(cosines[:, None], len(degrees)), degrees, n_features)
    assert values.dtype == dtype
    for column, degree, root in zip(values.T, degrees.tolist(), roots, strict=True):
        expected = root * reference.legendre(n_features, degree, exact)
        tolerance = 1e-11 if dtype == np.float64 else 1e-3
        np.testing.assert_allclose(column, expected, atol=tolerance * root)


@pytest.mark.parametrize("n_features", [2, 3, 4, 7, 30])
def test_degree_polynomials_are_schoenbergs(rng, n_features):
    cosines = np.append(rng.uniform(-1, 1, size=40), [-1, 0, 1])
    for degree, values in enumerate(legendre(cosines, n_features, 20), start=1):
        expected = reference.legendre(n_features, degree, cosines)
        np.testing.assert_allclose(values, expected, atol=1e-12)


@pytest.mark.parametrize("n_features", [3, 4])
def test_degree_polynomials_are_mean_products_of_harmonics(rng, n_features):
    X = reference.sphere_points(rng, 15, n_features)
    values = harmonics_by_degree(X, 8)
    for degree, gram in enumerate(legendre(X @ X.T, n_features, 8), start=1):
        expected = values[degree].T @ values[degree] / n_harmonics(n_features, degree)
        np.testing.assert_allclose(gram, expected, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_features", [2, 384, 100_000])
def test_degree_polynomials_are_one_at_one_and_bounded(dtype, n_features):
    """Also where rounding leads out of the interval."""
    eps = np.finfo(dtype).eps
    cosines = np.append(np.linspace(-1, 1, 101), [1 + 4 * eps, -1 - 4 * eps]).astype(dtype)
    for degree, values in enumerate(legendre(cosines, n_features, 100), start=1):
        assert values.dtype == dtype
        np.testing.assert_allclose(values[[0, 100, 101]], [(-1) ** degree, 1, 1], rtol=1e4 * eps)
        assert np.abs(values).max() <= 1 + 1e4 * eps
    assert cosines.max() > 1  # not changed in place
