"""Searches of continuous spaces: ascent and Langevin dynamics."""

from dataclasses import replace

import numpy as np
import pytest
import reference
from scipy import optimize, sparse
from sklearn.datasets import load_digits

from notsorandom import Ascent, Euclidean, FourierFeatures, Langevin, Sphere, Thorough
from notsorandom.data.lazy import LazyArray
from notsorandom.data.rows import Rows
from notsorandom.game import LOSSES, Problem
from notsorandom.game.problem import signs_from_codes
from notsorandom.search.ascent import climb
from notsorandom.spaces import Landscape

pytestmark = pytest.mark.usefixtures("quick_trials")

PLANTED = np.array([2.0, -1.0, 0.5])


def landscape(rng, n_samples=3000, smoothing=0.0, dtype=np.float64, noise=1.0):
    """A measure of one wave and noise: its potential has its peak at the wave's frequency."""
    X = rng.standard_normal((n_samples, 3)).astype(dtype)
    measure = np.cos(X @ PLANTED - 0.3) + noise * rng.standard_normal(n_samples)
    rows = Rows(X)
    return Landscape(
        Euclidean().resolve(rows, rng), rows, measure[:, None].astype(dtype), smoothing
    )


def distance_to_planted(frequencies):
    return np.minimum(
        np.linalg.norm(frequencies - PLANTED, axis=1), np.linalg.norm(frequencies + PLANTED, axis=1)
    )


@pytest.mark.parametrize(
    "search",
    [
        Ascent(),
        Ascent(subsample=1.0),
        Ascent(max_rows=1000),
        Ascent("cauchy"),
        Ascent("cauchy", max_rows=1000),
        Langevin(n_particles=100, n_refine=10),
        Thorough(n_agreeing=0),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_planted_frequency_is_found(rng, search, dtype):
    peaks = search.find(landscape(rng, dtype=dtype), 1, rng)
    assert peaks.frequencies.dtype == dtype
    assert distance_to_planted(peaks.frequencies)[0] < 0.1


@pytest.mark.parametrize(
    "search",
    [
        Ascent(n_peaks=6),
        Ascent(n_particles=64, n_steps=4, subsample=0.2),
        Ascent(n_particles=64, n_steps=4, max_rows=1000),
        Langevin(n_particles=40, n_peaks=6),
        Thorough(n_peaks=6, n_agreeing=0),
    ],
)
def test_peaks_are_distinct_and_sorted_and_evaluated_on_all_rows(rng, search):
    land = landscape(rng, noise=3.0)
    peaks = search.find(land, 6, rng)
    assert len(peaks) <= search.n_peaks
    assert len(peaks) > 1 or isinstance(search, Thorough)  # whose ascents end at the highest
    assert len(search.find(land, 2, rng)) <= 2
    assert (np.diff(peaks.height) <= 0).all()
    phases = land.space.phases(peaks.amplitudes)
    features = land.space.features(land.rows.array, peaks.frequencies, phases, "aligned")
    correlation = np.abs(np.corrcoef(features.T)) - np.eye(len(peaks))
    assert correlation.max() < search.similarity + 0.1  # estimated on a sample of rows
    everywhere = land.evaluate(peaks.frequencies)
    np.testing.assert_allclose(peaks.height, everywhere.height)
    np.testing.assert_allclose(peaks.amplitudes, everywhere.amplitudes)


def test_height_never_decreases(rng):
    land = landscape(rng)
    points = land.evaluate_with_slope(land.draw(20, rng))
    steps = np.full(20, 10 * land.space.first_step())
    for _ in range(10):
        higher, steps = climb(land, points, steps, 1)
        assert (higher.height >= points.height).all()
        points = higher


def test_ascent_converges_to_a_zero_of_the_slope(rng):
    land = landscape(rng, smoothing=0.1)
    start = land.evaluate_with_slope(land.draw(8, rng))
    points, _ = climb(land, start, np.full(8, land.space.first_step()), 60)
    assert np.abs(points.slope).max() < 1e-3 * np.abs(start.slope).max()


@pytest.mark.parametrize(
    "search",
    [
        Ascent(n_peaks=6),
        Ascent("cauchy"),
        Langevin(n_particles=40, n_refine=20),
        Thorough(n_agreeing=0),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_frequencies_stay_in_the_ball(rng, search, dtype):
    """The planted peak is outside: the search ends where a grid of the sphere is highest."""
    free = landscape(rng, noise=0.1, dtype=dtype)
    radius = 0.7 * float(np.linalg.norm(PLANTED))
    land = replace(free, space=Euclidean(free.space.scale, free.space.center, radius))
    peaks = search.find(land, 6, rng)
    norms = np.linalg.norm(peaks.frequencies, axis=1)
    assert norms.max() <= radius * (1 + 10 * np.finfo(dtype).eps)
    np.testing.assert_allclose(norms[0], radius, rtol=1e-3)
    grid = rng.standard_normal((5000, 3))
    grid = (radius * grid / np.linalg.norm(grid, axis=1, keepdims=True)).astype(dtype)
    assert peaks.height[0] >= land.evaluate(grid).height.max() - 1e-2


def test_langevin_without_temperature_is_gradient_ascent(rng):
    land = landscape(rng, n_samples=200)
    rate = 1e-7
    search = Langevin(n_steps=20, n_particles=1, diffusion_rate=rate, temperature=0)
    found = search.find(land, 1, np.random.default_rng(5))
    omega = np.sqrt(1.5) * land.draw(1, np.random.default_rng(5))
    for _ in range(20):
        _, gradient = land.space.amplitudes_and_gradient(land.rows, land.measure, omega)
        omega = omega + rate * gradient
    np.testing.assert_allclose(found.frequencies, omega, rtol=1e-9)


def test_langevin_returns_the_highest_point_visited(rng):
    """The result is at least as high as the start, at a temperature that moves particles away."""
    land = landscape(rng)
    wild = Langevin(n_steps=5, n_particles=3, diffusion_rate=1e-9, temperature=1e3)
    still = Langevin(n_steps=0, n_particles=3)
    for seed in range(5):
        moved = wild.find(land, 1, np.random.default_rng(seed))
        start = still.find(land, 1, np.random.default_rng(seed))
        assert moved.height[0] >= start.height[0]


def test_both_noise_scales_are_equivalent(rng):
    """The paper divides by the rate where the textbook multiplies."""
    land, rate = landscape(rng, n_samples=200), 1e-6
    paper = Langevin(10, 4, diffusion_rate=rate, temperature=1e-9 * rate, noise="paper")
    textbook = Langevin(10, 4, diffusion_rate=rate, temperature=1e-9 / rate, noise="textbook")
    one = paper.find(land, 1, np.random.default_rng(1))
    other = textbook.find(land, 1, np.random.default_rng(1))
    np.testing.assert_allclose(one.frequencies, other.frequencies)


def test_langevin_starts_at_one_and_a_half_times_the_variance(rng):
    land = landscape(rng)
    search = Langevin(n_steps=0, n_particles=1500, n_peaks=1500, similarity=1.0)
    starts = search.find(land, 1500, rng).frequencies
    np.testing.assert_allclose(starts.var() * land.space.scale**2, 1.5, rtol=0.1)


def test_refinement_increases_the_height(rng):
    land = landscape(rng, noise=3.0)
    rough = Langevin(5, 4).find(land, 1, np.random.default_rng(2))
    fine = Langevin(5, 4, n_refine=10).find(land, 1, np.random.default_rng(2))
    assert fine.height[0] > rough.height[0]


def test_subsample_keeps_the_balance_of_rare_classes(rng):
    """In 99:1 data the measure of a uniform subsample would have a nonzero sum, a peak at zero."""
    labels = np.full((5000, 1), -1.0)
    labels[rng.choice(5000, size=50, replace=False)] = 1.0
    measure = Problem.from_arrays(LOSSES["hinge"], labels).first_dual()
    rows = Rows(rng.standard_normal((5000, 2)))
    coarse = Landscape(Euclidean().resolve(rows, rng), rows, measure, 0.0).subsample(500, rng)
    assert abs(coarse.measure.sum()) < 1e-9 * np.abs(coarse.measure).sum()
    assert 0.4 < np.mean(coarse.measure > 0) < 0.6  # drawn by mass: as many of the rare class


def test_subsample_is_unbiased(rng):
    land = landscape(rng, n_samples=2000, noise=0.3)
    frequency = np.array([[0.3, -0.2, 0.1]])
    exact = land.evaluate(frequency).amplitudes
    estimates = [land.subsample(600, rng).evaluate(frequency).amplitudes for _ in range(200)]
    spread = np.std(estimates, axis=0) / np.sqrt(200)
    assert (np.abs(np.mean(estimates, axis=0) - exact) < 4 * spread).all()


def test_undecided_spectrum_is_gaussian(rng):
    land = landscape(rng)
    one, other = (
        search.find(land, 4, np.random.default_rng(1))
        for search in (Ascent(), Ascent("gaussian", n_draws=16, n_steps=8))
    )
    np.testing.assert_array_equal(one.frequencies, other.frequencies)


def test_equal_seeds_give_equal_peaks(rng):
    land = landscape(rng, noise=3.0)
    one, other, different = (
        Ascent("cauchy").find(land, 4, np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one.frequencies, other.frequencies)
    assert (one.frequencies[0] != different.frequencies[0]).all()


@pytest.mark.parametrize("spectrum", ["gaussian", "cauchy"])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_peaks_are_at_least_as_high_as_the_highest_start(rng, spectrum, smoothing):
    land = landscape(rng, smoothing=smoothing, noise=10.0)
    for seed in range(5):
        starts = land.draw(100, np.random.default_rng(seed), spectrum=spectrum)
        search = Ascent(spectrum, n_draws=100, n_particles=3, n_steps=2, subsample=1.0)
        peaks = search.find(land, 1, np.random.default_rng(seed))
        assert peaks.height[0] >= land.evaluate(starts).height.max()


def test_particles_start_at_the_highest_distinct_draws(rng):
    """Without steps, the peaks are these draws."""
    land = landscape(rng, n_samples=500, noise=3.0)
    search = Ascent("cauchy", n_draws=60, n_particles=5, n_steps=0, n_peaks=60)
    peaks = search.find(land, 60, np.random.default_rng(3))
    points = land.evaluate(land.draw(60, np.random.default_rng(3), spectrum="cauchy"))
    expected = land.distinct(points, search.similarity, rng)[:5]
    np.testing.assert_array_equal(peaks.frequencies, points.frequencies[expected])


@pytest.mark.parametrize("kind", ["sparse", "lazy", "blocks", "torch"])
def test_cauchy_starts_for_samples_of_any_kind(rng, kind):
    land = landscape(rng, n_samples=2000, noise=3.0)
    X = land.rows.array
    if kind == "torch":
        samples = Rows(pytest.importorskip("torch").asarray(X.copy()))
    elif kind == "sparse":
        samples = Rows(sparse.csr_array(X))
    else:
        samples = Rows(LazyArray(X) if kind == "lazy" else X, block_rows=300)
    same = Landscape(land.space, samples, land.measure, land.smoothing)
    one, other = (Ascent("cauchy").find(each, 4, np.random.default_rng(1)) for each in (land, same))
    assert isinstance(other.frequencies, np.ndarray)
    np.testing.assert_allclose(other.frequencies, one.frequencies, rtol=1e-6, atol=1e-9)


def test_cauchy_starts_find_a_wave_in_one_of_many_columns(rng):
    """A high frequency in one of 20 columns, which Gaussian starts are far from."""
    X = rng.standard_normal((2000, 20))
    y = np.cos(7 * X[:, 3]) > 0
    found = {}
    for spectrum in ("gaussian", "cauchy"):
        features = FourierFeatures(8, search=Ascent(spectrum), smoothing=0.01, random_state=0)
        frequencies = np.abs(features.fit(X, y).frequencies_)
        found[spectrum] = np.any((np.abs(frequencies[:, 3] - 7) < 0.5).ravel())
    assert found == {"gaussian": False, "cauchy": True}


def test_sphere_has_no_cauchy_spectrum(rng):
    X, y = reference.sphere_points(rng, 60, 4), np.arange(60) % 2
    features = FourierFeatures(4, search=Ascent("cauchy"), smoothing=0.1)
    assert np.isfinite(features.fit_transform(X, y)).all()
    with pytest.raises(ValueError, match="spectrum='cauchy' is not possible on the sphere"):
        features.set_params(space=Sphere("zonal")).fit(X, y)


def test_no_ascent_of_the_definition_finds_a_higher_peak_of_several_tasks(rng):
    """Of the largest eigenvalue: the sum of both eigenvalues has another highest peak."""
    X, y = load_digits(return_X_y=True)
    X, smoothing = X[:400] - X[:400].mean(axis=0), 0.07
    problem = Problem(LOSSES["hinge"], signs_from_codes(y[:400], 10, float), Rows(X))
    space, measure = Euclidean().resolve(problem.rows, rng), problem.first_dual()

    def depth(w):
        """Return minus the height, and its gradient."""
        angles = X @ w
        waves = np.stack([np.cos(angles), np.sin(angles)])  # (2, n_samples)
        slopes = np.stack([-waves[1], waves[0]])
        sums, moments = waves @ measure, np.einsum("cn,nk,ni->cki", slopes, measure, X)
        values, vectors = np.linalg.eigh(sums @ sums.T)
        best = vectors[:, 1]
        slope = 2 * np.einsum("k,c,cki->i", best @ sums, best, moments) / values[1]
        noise = (smoothing * space.scale) ** 2
        return noise * w @ w - np.log(values[1]), 2 * noise * w - slope

    starts = rng.standard_normal((24, X.shape[1])) / space.scale
    highest = -min(optimize.minimize(depth, w, jac=True, method="BFGS").fun for w in starts)
    search = Ascent(n_steps=40)
    land = Landscape(space, problem.rows, measure, smoothing)
    found = search.find(land, 1, rng)
    height = found.height[0] + np.log(land.unit)
    assert height > highest + np.log(0.99)
    np.testing.assert_allclose(height, -depth(found.frequencies[0])[0])


@pytest.mark.parametrize("n_points", [1, 3, 10, 40, 100])
def test_the_first_distinct_points_are_the_first_of_all_distinct_points(rng, n_points):
    land = landscape(rng, n_samples=500, noise=3.0)
    points = land.evaluate(land.draw(200, rng, spectrum="cauchy"))
    all_points = land.distinct(points, 0.5, rng)
    assert len(all_points) > 10
    assert land.distinct(points, 0.5, rng, n_points) == all_points[:n_points]


def test_the_thorough_search_finds_the_highest_peak_of_noise(rng):
    """Against a grid of the plane, where usual searches miss it: peaks are many and far out."""
    found = {"ascent": [], "thorough": []}
    for _ in range(5):
        rows, labels = Rows(rng.standard_normal((300, 2))), rng.choice([-1.0, 1.0], size=(300, 1))
        land = Landscape(Euclidean().resolve(rows, rng), rows, labels, 0.07)
        # Beyond the reach the penalty exceeds the log of 300 samples; half of a peak's width apart.
        grid = reference.grid_in_ball(2, land.space.within_reach(0.07, 300).max_norm, 150)
        highest = land.evaluate(grid).height.max()
        for name, search in {"ascent": Ascent(), "thorough": Thorough()}.items():
            found[name].append(np.exp(search.find(land, 1, rng).height[0] - highest))
    assert min(found["thorough"]) > 0.99
    assert sum(share < 0.9 for share in found["ascent"]) >= 3


@pytest.mark.parametrize("noise", ["gaussian", "cauchy"])
def test_nothing_is_above_chance_beyond_the_reach(rng, noise):
    """Whatever the samples, a frequency there is penalised by the log of their number or more."""
    space = Euclidean(2.0, np.zeros(3), noise=noise)
    directions = reference.sphere_points(rng, 100, 3)
    penalties = space.penalty(None, space.within_reach(0.1, 500).max_norm * directions, 0.1)
    assert penalties.min() >= np.log(500) * (1 - 1e-9)
    assert space.within_reach(0.0, 500).max_norm == np.inf
    small = Euclidean(2.0, np.zeros(3), max_norm=1.5, noise=noise)
    assert small.within_reach(0.1, 500).max_norm == 1.5
