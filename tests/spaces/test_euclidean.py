"""The waves of R^d: potential, gradient and features against their definitions."""

import numpy as np
import pytest
import reference

from notsorandom import Euclidean
from notsorandom.data.rows import Rows
from notsorandom.spaces import Landscape, euclidean, landscape
from notsorandom.spaces.landscape import median_distance, potential_of


def make_problem(rng, n_tasks, n_features=4, n_samples=30, n_frequencies=5, dtype=np.float64):
    X = (rng.standard_normal((n_samples, n_features)) + 3).astype(dtype)
    measure = rng.standard_normal((n_samples, n_tasks)).astype(dtype)
    frequencies = rng.standard_normal((n_frequencies, n_features)).astype(dtype)
    return Rows(X), measure, frequencies, Euclidean().resolve(Rows(X), rng)


def potential(space, rows, measure, frequencies):
    return potential_of(space.amplitudes(rows, measure, frequencies))


@pytest.mark.parametrize("n_tasks", [1, 3])
def test_potential_is_the_squared_fourier_transform(rng, n_tasks):
    data, measure, frequencies, space = make_problem(rng, n_tasks)
    expected = [reference.potential(data.array, measure, w) for w in frequencies]
    np.testing.assert_allclose(potential(space, data, measure, frequencies), expected)


@pytest.mark.parametrize("n_tasks", [1, 3])
def test_gradient_agrees_with_finite_differences(rng, n_tasks):
    data, measure, frequencies, space = make_problem(rng, n_tasks)
    amplitudes, gradient = space.amplitudes_and_gradient(data, measure, frequencies)
    np.testing.assert_allclose(amplitudes, space.amplitudes(data, measure, frequencies))
    for frequency, slope in zip(frequencies, gradient, strict=True):
        expected = reference.gradient(
            lambda w: reference.potential(data.array, measure, w), frequency
        )
        np.testing.assert_allclose(slope, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("n_tasks", [1, 3])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("noise", ["gaussian", "cauchy"])
@pytest.mark.parametrize("phase", ["aligned", "paired"])
def test_slope_of_the_landscape_is_its_gradient(rng, n_tasks, smoothing, noise, phase):
    data, measure, frequencies, space = make_problem(rng, n_tasks)
    landscape = Landscape(space.with_noise(noise), data, measure, smoothing, phase)
    slopes = landscape.evaluate_with_slope(frequencies).slope
    for frequency, slope in zip(frequencies, slopes, strict=True):
        expected = reference.gradient(
            lambda w: landscape.evaluate_with_slope(w[None]).height[0], frequency
        )
        np.testing.assert_allclose(slope, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["gaussian", "cauchy"])
def test_smoothing_is_blurring_the_samples(rng, kind):
    """The smoothed potential is the potential of samples with noise, on average."""
    data, measure, frequencies, space = make_problem(rng, 1, n_features=2, n_samples=8)
    frequencies, smoothing = frequencies * 0.5, 0.2
    draw = rng.standard_normal if kind == "gaussian" else rng.standard_cauchy
    noise = smoothing * space.scale * draw((200_000, 8, 2))
    landscape = Landscape(space.with_noise(kind), data, measure, smoothing)
    for frequency, height in zip(
        frequencies, landscape.evaluate_with_slope(frequencies).height, strict=True
    ):
        blurred = np.exp(1j * (data.array + noise) @ frequency).mean(axis=0) @ measure[:, 0]
        np.testing.assert_allclose(landscape.unit * np.exp(height), abs(blurred) ** 2, rtol=0.05)


@pytest.mark.parametrize("phase", ["paired", "aligned"])
@pytest.mark.parametrize("n_tasks", [1, 3])
def test_alignment_is_features_times_measure(rng, phase, n_tasks):
    data, measure, frequencies, space = make_problem(rng, n_tasks)
    amplitudes = space.amplitudes(data, measure, frequencies)
    phases = space.phases(amplitudes)
    features = space.features(data.array, frequencies, phases, phase)
    alignment = space.alignment(amplitudes, phases, phase)
    np.testing.assert_allclose(alignment.reshape(-1, n_tasks), features.T @ measure, atol=1e-10)
    if phase == "paired":
        np.testing.assert_allclose((alignment**2).sum(axis=(1, 2)), potential_of(amplitudes))


@pytest.mark.parametrize("n_tasks", [1, 3])
def test_height_is_the_potential_of_the_feature(rng, n_tasks):
    """An aligned feature has one phase for all tasks; a frequency's pair of features has two."""
    data, measure, frequencies, space = make_problem(rng, n_tasks)
    for phase, factor in (("aligned", 2), ("paired", 1)):
        landscape = Landscape(space, data, measure, 0.0, phase)
        points = landscape.evaluate(frequencies)
        phases = space.phases(points.amplitudes)
        features = space.features(data.array, frequencies, phases, phase)
        potentials = np.square(features.T @ measure).sum(axis=1)
        potentials = potentials.reshape(len(frequencies), -1).sum(axis=1)
        found = factor * landscape.unit * np.exp(points.height)
        np.testing.assert_allclose(found, potentials)


@pytest.mark.parametrize("n_tasks", [1, 3])
def test_aligned_phase_is_optimal(rng, n_tasks):
    data, measure, frequencies, space = make_problem(rng, n_tasks)
    amplitudes = space.amplitudes(data, measure, frequencies)

    def strength(phases):
        return (space.alignment(amplitudes, phases, "aligned") ** 2).sum(axis=(1, 2))

    best = strength(space.phases(amplitudes))
    for angle in np.linspace(0, np.pi, 50):
        assert (strength(np.full(len(frequencies), angle)) <= best + 1e-9).all()
    if n_tasks == 1:  # one cosine of norm sqrt(2) then has twice the potential of the pair
        np.testing.assert_allclose(best, 2 * potential(space, data, measure, frequencies))


def test_potential_does_not_depend_on_the_origin(rng):
    data, measure, frequencies, space = make_problem(rng, 2)
    far = Rows(data.array + 100.0)
    np.testing.assert_allclose(
        potential(space, data, measure, frequencies), potential(space, far, measure, frequencies)
    )


@pytest.mark.parametrize("n_tasks", [1, 3])
@pytest.mark.parametrize("phase", ["aligned", "paired"])
def test_blocks_do_not_change_the_result(rng, n_tasks, phase):
    data, measure, frequencies, space = make_problem(rng, n_tasks)
    expected = space.amplitudes_and_gradient(data, measure, frequencies, phase)
    blocks = Rows(data.array, block_rows=8)
    assert len(blocks.blocks()) == 4
    # 1000 bytes are fewer than the waves of two frequencies take.
    result = space.amplitudes_and_gradient(blocks, measure, frequencies, phase, wave_bytes=1000)
    for part, expected_part in zip(result, expected, strict=True):
        np.testing.assert_allclose(part, expected_part)


@pytest.mark.parametrize("n_tasks", [1, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dtypes_are_kept(rng, n_tasks, dtype):
    data, measure, frequencies, space = make_problem(rng, n_tasks, dtype=dtype)
    points = Landscape(space, data, measure, 0.1).evaluate_with_slope(frequencies)
    for array in (points.height, points.slope, points.amplitudes, space.center):
        assert array.dtype == dtype
    phases = space.phases(points.amplitudes)
    for phase in ("paired", "aligned"):
        assert space.features(data.array, frequencies, phases, phase).dtype == dtype
        assert space.alignment(points.amplitudes, phases, phase).dtype == dtype


def test_median_distance_in_parts(rng, monkeypatch):
    X = rng.standard_normal((40, 30))
    distances = []
    for numbers in (2**19, 100, 1):
        monkeypatch.setattr(landscape, "DIFFERENCES", numbers)
        distances.append(median_distance(Rows(X), np.random.default_rng(0)))
    assert len(set(distances)) == 1


def test_scale_is_the_median_distance(rng):
    X = rng.standard_normal((400, 3))
    distances = np.linalg.norm(X[:, None] - X[None], axis=2)[np.triu_indices(400, 1)]
    np.testing.assert_allclose(median_distance(Rows(X), rng), np.median(distances), rtol=0.08)


def test_scale_with_copies_and_extreme_numbers(rng):
    X = np.zeros((1000, 2))
    assert median_distance(Rows(X), rng) == 1.0
    X[:30] = rng.standard_normal((30, 2))
    assert 0.3 < median_distance(Rows(X), rng) < 3
    for factor in (1e-200, 1e200):
        assert 0.3 < median_distance(Rows(X * factor), rng) / factor < 3
    X = np.zeros((5000, 2))
    X[[17, 4000]] = [[3.0, 4.0], [6.0, 8.0]]  # too few for random pairs
    assert 5 <= median_distance(Rows(X), rng) <= 10


def test_given_scale_and_center_are_kept(rng):
    data = Rows(rng.standard_normal((20, 2)))
    space = Euclidean(scale=7.0, center=[1.0, 2.0]).resolve(data, rng)
    assert space.scale == 7.0
    np.testing.assert_array_equal(space.center, [1.0, 2.0])


@pytest.mark.parametrize(
    ("name", "value"), [("scale", 0), ("scale", "mode"), ("center", "median"), ("center", [np.nan])]
)
def test_bad_parameters(name, value):
    with pytest.raises(ValueError, match=f"{name}=.*must be"):
        Euclidean(**{name: value}).check()


@pytest.mark.parametrize("scales", [(1.0, 1.0), (0.1, 10.0)])
def test_cauchy_draws_have_the_spectrum_of_laplacian_kernels(rng, monkeypatch, scales):
    """The mean wave of the draws is the kernel, averaged over the logarithm of its scale."""
    monkeypatch.setattr(euclidean, "CAUCHY_SCALES", scales)
    X = rng.standard_normal((12, 3))
    rows, space, n_draws = Rows(X), Euclidean(scale=2.0, center=np.zeros(3)), 100_000
    draws = space.draw_cauchy(n_draws, rows, rng)
    lengths = np.abs(X).sum(axis=1) / (2 * 3**0.5)
    each = np.exp(np.linspace(*np.log(scales), 1001))
    expected = np.exp(-each[:, None] * lengths).mean(axis=0)  # (n_samples,)
    tolerance = 5 / n_draws**0.5
    np.testing.assert_allclose(np.cos(X @ draws.T).mean(axis=1), expected, atol=tolerance)
    np.testing.assert_allclose(np.sin(X @ draws.T).mean(axis=1), 0, atol=tolerance)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_cauchy_draws_keep_the_type_and_are_bounded(rng, dtype):
    rows = Rows(rng.standard_normal((10, 5)).astype(dtype))
    draws = Euclidean(scale=0.5, center=np.zeros(5)).draw_cauchy(100_000, rows, rng)
    assert draws.dtype == dtype
    assert np.abs(draws).max() == euclidean.MAX_ENTRY / 0.5


def test_searches_stay_in_the_ball(rng):
    """Starts, moves and slopes; on its surface, a slope that leads out has no such part."""
    rows = Rows(rng.standard_normal((50, 3)))
    space = Euclidean(1.0, np.zeros(3), max_norm=2.0)
    for draw in (space.draw, space.draw_cauchy, space.spread):
        assert np.linalg.norm(draw(500, rows, rng), axis=1).max() <= 2 * (1 + 1e-12)
    frequencies, shift = space.spread(500, rows, rng), rng.standard_normal((500, 3))
    moved = space.move(frequencies, shift)
    assert np.linalg.norm(moved, axis=1).max() <= 2 * (1 + 1e-12)
    slopes = rng.standard_normal((500, 3))
    feasible = space.feasible_slope(moved, slopes)
    on_surface = np.linalg.norm(moved, axis=1) > 2 - 1e-9
    outward = np.einsum("ij,ij->i", moved, slopes) > 0
    assert 50 < (on_surface & outward).sum() < 400
    leads_out = on_surface & outward
    np.testing.assert_allclose((moved * feasible).sum(axis=1)[leads_out], 0, atol=1e-12)
    np.testing.assert_array_equal(feasible[~leads_out], slopes[~leads_out])


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e5])
def test_amplitudes_far_from_the_origin_in_float32(rng, offset):
    """As precise as the samples are: the same as in float64 of the same samples."""
    X = (rng.standard_normal((200, 2)) + offset).astype(np.float32)
    frequencies, measure = rng.standard_normal((30, 2)), rng.standard_normal((200, 1))
    center = X.mean(axis=0, dtype=np.float64).astype(np.float32)
    single = Euclidean(1.0, center).amplitudes(
        Rows(X), measure.astype(np.float32), frequencies.astype(np.float32)
    )
    transform = measure.T @ np.exp(1j * (X - center.astype(np.float64)) @ frequencies.T)
    np.testing.assert_allclose(single[0] + 1j * single[1], transform, atol=1e-4)
