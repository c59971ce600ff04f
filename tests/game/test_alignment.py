"""Kernel alignment by its definitions: sums over pairs, Fourier integrals, means of features."""

import numpy as np
import pytest
import reference
from sklearn.metrics.pairwise import rbf_kernel

from notsorandom import FourierFeatures, Sphere
from notsorandom.game import fourier_potential, kernel_alignment, mean_discrepancy


@pytest.fixture
def samples(rng):
    X = rng.standard_normal((40, 3))
    return X, np.where(X[:, 0] + 0.5 * rng.standard_normal(40) > 0.3, 1, -1)


def learn(X, y, **settings):
    settings = {"C": 1.0, "smoothing": 0.05, "random_state": 0} | settings
    return FourierFeatures(8, **settings).fit(X, y).kernel_


def pair_sum(X, Z, kernel):
    """The double integral of a kernel over two sums of unit masses, pair by pair."""
    return sum(float(kernel(x[None], z[None])[0, 0]) for x in X for z in Z)


@pytest.mark.parametrize("kind", ["rbf", "aligned", "paired"])
def test_alignment_is_within_minus_twice_between(samples, kind):
    X, y = samples
    kernel = rbf_kernel if kind == "rbf" else learn(X, y, phase=kind)
    P, Q = X[y == 1], X[y == -1]
    within = pair_sum(P, P, kernel) + pair_sum(Q, Q, kernel)
    expected = within - 2 * pair_sum(P, Q, kernel)
    np.testing.assert_allclose(kernel_alignment(X, y, kernel), expected)
    gram = np.asarray(kernel(X))
    np.testing.assert_allclose(kernel_alignment(X, y, kernel), y @ gram @ y)


def test_fourier_form_is_the_weighted_potential_of_the_samples(samples):
    X, y = samples
    kernel = learn(X, y, phase="paired")
    potentials = [reference.potential(X, y[:, None], one) for one in kernel.frequencies]
    np.testing.assert_allclose(fourier_potential(X, y, kernel), potentials, rtol=1e-5)
    alignment = kernel_alignment(X, y, kernel)
    np.testing.assert_allclose(kernel.weights @ potentials, alignment, rtol=1e-5)


@pytest.mark.parametrize("space", ["euclidean", "sphere", Sphere("zonal", max_degree=4)])
def test_fourier_form_is_the_alignment_of_any_learned_kernel(samples, space):
    X, y = samples
    X = X if space == "euclidean" else reference.unit(X)
    kernel, alpha = learn(X, y, space=space), np.linspace(0, 1, len(y)) * y
    for measure in (y, alpha):
        potentials = fourier_potential(X, measure, kernel)
        assert potentials.shape == kernel.weights.shape
        alignment = kernel_alignment(X, measure, kernel)
        np.testing.assert_allclose(kernel.weights @ potentials, alignment, rtol=1e-6)


@pytest.mark.parametrize("kind", ["rbf", "aligned"])
def test_mean_discrepancy_is_the_largest_difference_of_means(samples, kind, rng):
    """The distance of the class means of the features; no function of norm one has more."""
    X, y = samples
    kernel = rbf_kernel if kind == "rbf" else learn(X, y)
    values, vectors = np.linalg.eigh(kernel(X))
    features = vectors * np.sqrt(np.maximum(values, 0))
    difference = features[y == 1].mean(axis=0) - features[y == -1].mean(axis=0)
    distance = mean_discrepancy(X, y, kernel)
    np.testing.assert_allclose(distance, np.linalg.norm(difference), rtol=1e-6)
    functions = reference.sphere_points(rng, 200, len(difference))
    assert (functions @ difference).max() <= distance
    np.testing.assert_allclose(difference @ difference / distance, distance)


def test_labels_of_two_classes_are_needed(samples):
    X, y = samples
    with pytest.raises(ValueError, match="must have 1 and -1, one for each class"):
        mean_discrepancy(X, (y + 1) // 2, rbf_kernel)
