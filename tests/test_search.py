import numpy as np
import pytest
from sklearn.base import clone

from notsorandom import Ascent, Euclidean, Langevin
from notsorandom.data.rows import Rows
from notsorandom.game import LOSSES, Player
from notsorandom.search import ascent
from notsorandom.spaces import Landscape

PLANTED = np.array([2.0, -1.0, 0.5])


def landscape(rng, n_samples=3000, smoothing=0.0, dtype=np.float64, noise=1.0):
    """A measure that is one wave and noise: its potential has one peak, at the wave's frequency."""
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
        Langevin(n_particles=100, n_refine=10),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_planted_frequency_is_found(rng, search, dtype):
    peaks = search.find(landscape(rng, dtype=dtype), 1, rng)
    assert peaks.frequencies.dtype == dtype
    assert distance_to_planted(peaks.frequencies)[0] < 0.1


def test_peaks_of_a_sample_are_looked_at_on_all_rows(rng):
    land = landscape(rng, noise=3.0)
    peaks = Ascent(max_rows=1000).find(land, 4, rng)
    everywhere = land.at(peaks.frequencies)
    assert len(peaks) > 1
    assert (np.diff(peaks.height) <= 0).all()
    np.testing.assert_allclose(peaks.height, everywhere.height)
    np.testing.assert_allclose(peaks.amplitudes, everywhere.amplitudes)


def test_climbing_never_goes_down(rng):
    land = landscape(rng)
    points = land.at(land.draw(20, rng))
    steps = np.full(20, 10 * land.space.first_step())
    for _ in range(10):
        higher, steps = ascent.climb(land, points, steps, 1)
        assert (higher.height >= points.height).all()
        points = higher


def test_climbing_ends_where_the_slope_vanishes(rng):
    land = landscape(rng, smoothing=0.1)
    start = land.at(land.draw(8, rng))
    points, _ = ascent.climb(land, start, np.full(8, land.space.first_step()), 60)
    assert np.abs(points.slope).max() < 1e-3 * np.abs(start.slope).max()


@pytest.mark.parametrize("search", [Ascent(n_peaks=6), Langevin(n_particles=40, n_peaks=6)])
def test_peaks_are_distinct_and_the_highest_comes_first(rng, search):
    land = landscape(rng, noise=3.0)
    peaks = search.find(land, 6, rng)
    assert 1 < len(peaks) <= 6
    assert (np.diff(peaks.height) <= 0).all()
    phases = land.space.phases(peaks.amplitudes)
    features = land.space.features(land.rows.array, peaks.frequencies, phases, "aligned")
    correlation = np.abs(np.corrcoef(features.T)) - np.eye(len(peaks))
    assert correlation.max() < search.similarity + 0.1  # it was judged on a sample of rows
    np.testing.assert_allclose(land.at(peaks.frequencies).height, peaks.height)


def test_no_more_peaks_than_asked_for(rng):
    assert len(Ascent(n_peaks=6).find(landscape(rng, noise=3.0), 2, rng)) <= 2


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


def test_langevin_returns_the_best_place_seen(rng):
    """With a temperature that throws particles far away, the start is the best they have seen."""
    land = landscape(rng)
    wild = Langevin(n_steps=5, n_particles=3, diffusion_rate=1e-9, temperature=1e3)
    still = Langevin(n_steps=0, n_particles=3)
    for seed in range(5):
        moved = wild.find(land, 1, np.random.default_rng(seed))
        start = still.find(land, 1, np.random.default_rng(seed))
        assert moved.height[0] >= start.height[0]


def test_the_two_noise_scales_are_one_family(rng):
    """The paper divides by the rate where the textbook multiplies."""
    land, rate = landscape(rng, n_samples=200), 1e-6
    paper = Langevin(10, 4, diffusion_rate=rate, temperature=1e-9 * rate, noise="paper")
    textbook = Langevin(10, 4, diffusion_rate=rate, temperature=1e-9 / rate, noise="textbook")
    one = paper.find(land, 1, np.random.default_rng(1))
    other = textbook.find(land, 1, np.random.default_rng(1))
    np.testing.assert_allclose(one.frequencies, other.frequencies)


def test_langevin_starts_at_one_and_a_half_times_the_variance(rng):
    land = landscape(rng)
    search = Langevin(n_steps=0, n_particles=4000, n_peaks=4000, similarity=1.0)
    starts = search.find(land, 4000, rng).frequencies
    np.testing.assert_allclose(starts.var() * land.space.scale**2, 1.5, rtol=0.1)


def test_refinement_climbs(rng):
    land = landscape(rng, noise=3.0)
    rough = Langevin(5, 4).find(land, 1, np.random.default_rng(2))
    fine = Langevin(5, 4, n_refine=10).find(land, 1, np.random.default_rng(2))
    assert fine.height[0] > rough.height[0]


def test_a_coarse_landscape_keeps_the_balance_of_rare_classes(rng):
    """In 99:1 data a plain subsample would leave a total mass, and with it a hill at zero."""
    labels = np.full((5000, 1), -1.0)
    labels[rng.choice(5000, size=50, replace=False)] = 1.0
    measure = Player(LOSSES["hinge"](1.0), labels).first()
    rows = Rows(rng.standard_normal((5000, 2)))
    coarse = Landscape(Euclidean().resolve(rows, rng), rows, measure, 0.0).coarse(500, rng)
    assert abs(coarse.measure.sum()) < 1e-9 * np.abs(coarse.measure).sum()
    assert 0.4 < np.mean(coarse.measure > 0) < 0.6  # drawn by mass: as many of the rare class


def test_a_coarse_landscape_is_right_on_average(rng):
    land = landscape(rng, n_samples=2000, noise=0.3)
    frequency = np.array([[0.3, -0.2, 0.1]])
    exact = land.at(frequency).amplitudes
    seen = [land.coarse(600, rng).at(frequency).amplitudes for _ in range(200)]
    spread = np.std(seen, axis=0) / np.sqrt(200)
    assert (np.abs(np.mean(seen, axis=0) - exact) < 4 * spread).all()


def test_subsampling_ends_on_all_rows(rng):
    land = landscape(rng, n_samples=4000, noise=3.0)
    peaks = Ascent(subsample=0.2).find(land, 3, rng)
    np.testing.assert_allclose(land.at(peaks.frequencies).height, peaks.height)


@pytest.mark.parametrize(
    ("search", "name"),
    [
        (Ascent(n_particles=0), "n_particles"),
        (Ascent(n_steps=-1), "n_steps"),
        (Ascent(n_peaks=1.5), "n_peaks"),
        (Ascent(similarity=0), "similarity"),
        (Ascent(subsample=0), "subsample"),
        (Langevin(n_steps=-1), "n_steps"),
        (Langevin(diffusion_rate=0), "diffusion_rate"),
        (Langevin(diffusion_rate="fast"), "diffusion_rate"),
        (Langevin(temperature=-1), "temperature"),
        (Langevin(noise="white"), "noise"),
    ],
)
def test_bad_parameters(search, name):
    with pytest.raises(ValueError, match=f"{name}=.*must be"):
        search.check()
    assert clone(search).get_params() == search.get_params()
