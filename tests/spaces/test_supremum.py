"""Bounds over all frequencies, against dense grids, Monte Carlo and closed forms."""

import math

import numpy as np
import pytest
import reference

from notsorandom import Euclidean, Sphere
from notsorandom.data.rows import Rows
from notsorandom.spaces.supremum import concentration_sample_size

PHASE = pytest.mark.parametrize("phase", ["aligned", "paired"])


@pytest.mark.parametrize("n_features", [1, 2, 3])
@PHASE
@pytest.mark.parametrize("n_tasks", [1, 3])
def test_no_frequency_exceeds_the_bound(rng, n_features, phase, n_tasks):
    for _ in range(5):
        rows = Rows(rng.standard_normal((12, n_features)) + 5)
        measure = rng.standard_normal((12, n_tasks))
        space = Euclidean().resolve(rows, rng)
        tol = [0, 1e-3, 1e-2, 0.2][n_features]
        supremum = space.supremum(rows, measure, phase, 2.0, 0.0, tol, 100_000)
        grid = reference.grid_in_ball(n_features, 2.0, [0, 2001, 81, 25][n_features])
        amplitudes = space.amplitudes(rows, measure, grid)
        alignment = space.alignment(amplitudes, space.phases(amplitudes), phase)
        largest = np.square(alignment).sum(axis=(1, 2)).max()
        assert supremum.certified
        assert largest <= supremum.bound * (1 + 1e-12)
        assert supremum.reached <= supremum.bound <= supremum.reached * (1 + 1.01 * tol)
        assert supremum.reached >= largest / (1 + tol)


def test_few_evaluations_give_a_looser_bound(rng):
    rows, measure = Rows(rng.standard_normal((20, 2))), rng.standard_normal((20, 1))
    space = Euclidean().resolve(rows, rng)
    good, poor = (
        space.supremum(rows, measure, "paired", 5.0, 0.0, 1e-3, n_evaluations).bound
        for n_evaluations in (200_000, 100)
    )
    assert good * (1 - 1e-3) <= poor
    assert poor > 1.1 * good


@PHASE
@pytest.mark.parametrize("n_features", [1, 2, 3, 4])
def test_the_mass_bounds_the_supremum(rng, n_features, phase):
    """It does with an outlier, and in a ball that is too large to search."""
    X, measure = rng.standard_normal((40, n_features)), rng.standard_normal((40, 2))
    X[0] = 1e4
    space, rows = Euclidean(1.0, np.zeros(n_features)), Rows(X)
    cap = (1 if phase == "paired" else 2) * np.square(np.abs(measure).sum(axis=0)).sum()
    for radius in (1e6, 1e300):
        far = space.supremum(rows, measure, phase, radius, 0.0, 1e-3, 2000)
        assert far.bound == pytest.approx(cap)
    near = space.supremum(rows, measure, phase, 3.0, 7.0, 1e-3, 2000)
    if n_features <= 3:
        assert near.reached <= near.bound <= cap * (1 + 1e-12)
    else:  # too many dimensions to search
        assert (near.reached, near.bound, near.certified) == (7.0, math.inf, False)


@pytest.mark.parametrize("n_features", [1, 2, 3])
@PHASE
def test_an_outlier_of_little_mass_hardly_loosens_the_bound(rng, n_features, phase):
    """Its wave is bounded by its mass, and those of the other samples are expanded."""
    X, measure = rng.standard_normal((30, n_features)), rng.standard_normal((30, 1))
    X[0], measure[0] = 1e6, 1e-4
    space = Euclidean(1.0, np.zeros(n_features))
    supremum = space.supremum(Rows(X), measure, phase, 4.0, 0.0, 0.02, 200_000)
    assert supremum.bound <= 1.05 * supremum.reached


@PHASE
@pytest.mark.parametrize("bandwidth", [0.01, 0.5, 5.0])
def test_complexity_of_waves(rng, phase, bandwidth):
    """At least the Monte Carlo mean of the supremum over a fine grid, for small reach too."""
    n_samples = 200
    X = rng.uniform(-1, 1, size=(n_samples, 1))
    space = Euclidean(1.0, np.zeros(1))
    complexity, share = space.rademacher_complexity(Rows(X), bandwidth, phase)
    waves = np.exp(1j * X @ np.linspace(0, bandwidth, 200)[None])
    signs = rng.choice([-1.0, 1.0], size=(500, n_samples))
    factor = math.sqrt(space.kernel_bound(1, phase))
    drawn = factor * np.abs(signs @ waves).max(axis=1).mean() / n_samples
    assert drawn <= complexity
    assert 0 < share < 1


def test_shares_of_the_bandwidths_add_up():
    space, rows = Euclidean(1.0, np.zeros(1)), Rows(np.ones((10, 1)))
    shares = [
        space.rademacher_complexity(rows, 1.1 ** (j - 0.5), "paired")[1] for j in range(-300, 300)
    ]
    assert sum(shares) <= 1


@pytest.mark.parametrize("basis", ["harmonic", "degree"])
@pytest.mark.parametrize("degree", [1, 6])
def test_complexity_of_harmonics(rng, basis, degree):
    X = reference.sphere_points(rng, 100, 3)
    space = Sphere(basis, max_degree=degree).resolve(Rows(X), rng)
    complexity, share = space.rademacher_complexity(Rows(X), degree, "aligned")
    signs, factors = rng.choice([-1.0, 1.0], size=(500, 100)), reference.harmonic_factors
    norms = [np.linalg.norm(signs @ factor, axis=1) for factor in factors(X, degree, basis)]
    assert np.max(norms, axis=0).mean() / 100 <= complexity
    assert share == 1.0


def test_potential_concentrates_at_the_required_sample_size(rng):
    """At the sample size of the theorem, the potential is near its expectation everywhere."""
    epsilon, reach = 0.4, 4.0
    n_samples = int(concentration_sample_size(1, reach, epsilon))
    frequencies = np.linspace(-reach, reach, 200)
    # Classes of equal size, uniform on [-1, 0] and [0, 1], have a closed form.

    def half(w, a, b):
        return (np.exp(1j * w * b) - np.exp(1j * w * a)) / (1j * w)

    expected = np.abs(half(frequencies, 0, 1) - half(frequencies, -1, 0)) ** 2 / 4
    for _ in range(5):
        y = rng.choice([-1, 1], size=n_samples)
        x = rng.uniform(0, 1, size=n_samples) * y
        empirical = np.abs(np.exp(1j * np.outer(frequencies, x)) @ y) ** 2 / n_samples**2
        assert np.abs(empirical - expected).max() < epsilon
    assert concentration_sample_size(1, reach, epsilon / 2) > 3 * n_samples
