import math

import numpy as np
import pytest
import reference

from notsorandom import FourierClassifier, FourierFeatures, GradientSolver, Sphere
from notsorandom.data.rows import Rows
from notsorandom.datasets import make_checkerboard, make_windmill
from notsorandom.game import LOSSES, Problem, find_equilibrium
from notsorandom.game.certificate import lower_bound, margin_bound
from notsorandom.spaces import Euclidean, Supremum
from notsorandom.spaces.harmonics import harmonics
from notsorandom.spaces.supremum import concentration_sample_size

pytestmark = pytest.mark.usefixtures("quick_trials")


def grid_in_ball(n_features, radius, n_side):
    axes = np.meshgrid(*[np.linspace(-radius, radius, n_side)] * n_features)
    grid = np.stack([axis.ravel() for axis in axes], axis=1)
    return grid[np.linalg.norm(grid, axis=1) <= radius]


def value_by_cutting_planes(X, labels, loss, bandwidth, phase):
    """Value of the game over a fine grid, where one frequency after another is added."""
    grid = grid_in_ball(X.shape[1], bandwidth, [0, 401, 41][X.shape[1]])
    angles = X @ grid.T  # (n_samples, n_frequencies)
    factors = [np.column_stack([np.cos(angles[:, 0]), np.sin(angles[:, 0])])]
    for _ in range(40):
        value, dual = reference.game_value(factors, labels, loss.upper, loss.curvature)
        transform = (dual * labels) @ np.exp(1j * angles)
        peak = np.argmax(np.abs(transform))
        if phase == "paired":
            factor = np.column_stack([np.cos(angles[:, peak]), np.sin(angles[:, peak])])
        else:
            factor = math.sqrt(2) * np.cos(angles[:, [peak]] - np.angle(transform[peak]))
        largest = max(np.sum((known.T @ (dual * labels)) ** 2) for known in factors)
        if np.sum((factor.T @ (dual * labels)) ** 2) < 1.001 * largest:
            break
        factors.append(factor)
    return value, dual


class TestSupremum:
    @pytest.mark.parametrize("n_features", [1, 2, 3])
    @pytest.mark.parametrize("phase", ["aligned", "paired"])
    @pytest.mark.parametrize("n_tasks", [1, 3])
    def test_no_frequency_exceeds_the_bound(self, rng, n_features, phase, n_tasks):
        for _ in range(5):
            rows = Rows(rng.standard_normal((12, n_features)) + 5)
            measure = rng.standard_normal((12, n_tasks))
            space = Euclidean().resolve(rows, rng)
            tol = [0, 1e-3, 1e-2, 0.2][n_features]
            supremum = space.supremum(rows, measure, phase, 2.0, 0.0, tol, 100_000)
            grid = grid_in_ball(n_features, 2.0, [0, 2001, 81, 25][n_features])
            amplitudes = space.amplitudes(rows, measure, grid)
            alignment = space.alignment(amplitudes, space.phases(amplitudes), phase)
            largest = np.square(alignment).sum(axis=(1, 2)).max()
            assert supremum.certified
            assert largest <= supremum.bound * (1 + 1e-12)
            assert supremum.reached <= supremum.bound <= supremum.reached * (1 + 1.01 * tol)
            assert supremum.reached >= largest / (1 + tol)

    def test_few_evaluations_give_a_looser_bound(self, rng):
        rows, measure = Rows(rng.standard_normal((20, 2))), rng.standard_normal((20, 1))
        space = Euclidean().resolve(rows, rng)
        good = space.supremum(rows, measure, "paired", 5.0, 0.0, 1e-3, 200_000)
        poor = space.supremum(rows, measure, "paired", 5.0, 0.0, 1e-3, 100)
        assert good.bound * (1 - 1e-3) <= poor.bound
        assert poor.bound > 1.1 * good.bound

    def test_no_certificate_above_three_dimensions(self, rng):
        rows, measure = Rows(rng.standard_normal((20, 4))), rng.standard_normal((20, 1))
        supremum = Euclidean().resolve(rows, rng).supremum(rows, measure, "paired", 5, 7.0, 1e-3, 9)
        assert (supremum.reached, supremum.bound, supremum.certified) == (7.0, math.inf, False)

    def test_only_the_mass_bounds_a_ball_that_is_too_large_to_search(self, rng):
        rows, measure = Rows(rng.standard_normal((20, 4))), rng.standard_normal((20, 2))
        space = Euclidean(1.0, np.zeros(4))
        for phase, factor in (("paired", 1), ("aligned", 2)):
            supremum = space.supremum(rows, measure, phase, 1e6, 7.0, 1e-3, 9)
            cap = factor * np.square(np.abs(measure).sum(axis=0)).sum()
            assert supremum.bound == pytest.approx(cap)


def test_certified_bounds_are_preferred_to_estimates():
    problem = Problem.from_arrays(LOSSES["hinge"], np.ones((4, 1)))
    dual = np.full((4, 1), 0.5)
    known, guess = Supremum(8.0, 8.0), Supremum(1.0, math.inf)
    value, name, certified = lower_bound(problem, [("guess", dual, guess), ("known", dual, known)])
    assert (name, certified) == ("known", True)
    assert value == problem.stats(dual).best_scaled_objective(8.0)
    assert lower_bound(problem, [("guess", dual, guess)])[1:] == ("guess", False)


def check_bounds_against_a_grid(n_features, phase, n_instances):
    """Random instances, against the value on a fine grid of frequencies.

    A grid has fewer frequencies, so the value is larger. The dual point of that game, with the true
    supremum, gives a smaller one.
    """
    widths = []
    for seed in range(n_instances):
        rng = np.random.default_rng(seed)
        n_samples, C = int(rng.integers(5, 10)), float(10 ** rng.uniform(-1, 1))
        X = rng.standard_normal((n_samples, n_features))
        y = rng.permutation(np.arange(n_samples) % 2)
        name = ["hinge", "squared_hinge"][seed % 2]
        solver = GradientSolver(weighting="uniform")
        model = FourierFeatures(
            8, phase=phase, loss=name, C=C, smoothing=0.1, solver=solver, random_state=seed
        ).fit(X, y)
        certificate = model.certificate(X, y)
        assert certificate.certified
        labels, loss = np.where(y == 1, 1.0, -1.0), LOSSES[name].times(C)
        value, dual = value_by_cutting_planes(X, labels, loss, certificate.bandwidth, phase)
        assert certificate.lower <= value * (1 + 1e-6) + 1e-9
        space, measure = model.kernel_.space, (dual * labels)[:, None]
        supremum = space.supremum(
            Rows(X), measure, phase, certificate.bandwidth, 0.0, 1e-3, 100_000
        )
        inside = (labels * np.clip(dual, 0, loss.upper))[:, None]
        problem = Problem.from_arrays(loss, labels[:, None])
        below = problem.stats(inside).best_scaled_objective(supremum.bound)
        assert below <= certificate.upper * (1 + 1e-6) + 1e-6
        assert certificate.lower <= certificate.upper * (1 + 1e-9)
        widths.append((value - below) / value)
    assert np.median(widths) < 0.1  # otherwise the reference would be too loose to test anything


@pytest.mark.parametrize("n_features", [1, 2])
@pytest.mark.parametrize("phase", ["aligned", "paired"])
def test_bounds_enclose_the_value(n_features, phase):
    check_bounds_against_a_grid(n_features, phase, 4)


@pytest.mark.slow
@pytest.mark.parametrize("n_features", [1, 2])
@pytest.mark.parametrize("phase", ["aligned", "paired"])
def test_bounds_enclose_the_value_in_many_instances(n_features, phase):
    check_bounds_against_a_grid(n_features, phase, 50)


@pytest.mark.parametrize("seed", range(4))
def test_bounds_enclose_the_value_of_the_logistic_game(seed):
    """No kernel has a lower value than the bound, not even the best one of many frequencies."""
    rng = np.random.default_rng(seed)
    X, C = rng.standard_normal((20, 2)), [0.3, 1.0, 5.0, 30.0][seed]
    y = rng.permutation(np.arange(20) % 2)
    labels = np.where(y == 1, 1.0, -1.0)
    settings = {"phase": "paired", "smoothing": 0.1, "random_state": seed}
    model = FourierFeatures(8, loss="logistic", C=C, **settings).fit(X, y)
    certificate = model.certificate(X, y)
    assert certificate.certified
    assert 0 < certificate.lower <= certificate.upper_dual <= certificate.upper
    assert math.isnan(certificate.margin)
    assert "margin" not in repr(certificate)
    grid = grid_in_ball(2, certificate.bandwidth, 17)
    angles = X @ np.concatenate([grid, model.frequencies_]).T
    waves = np.stack([np.cos(angles), np.sin(angles)], axis=2)  # (n_samples, n_frequencies, 2)
    groups = np.repeat(np.arange(angles.shape[1]), 2)
    problem = Problem.from_arrays(LOSSES["logistic"].times(C), labels[:, None])
    best = find_equilibrium(waves.reshape(20, -1), groups, problem)
    assert best.relative_gap <= 1e-3
    assert certificate.lower <= best.upper
    assert best.lower <= certificate.upper
    for _ in range(10):
        weights = rng.dirichlet(np.full(angles.shape[1], 0.02))
        features = (waves * np.sqrt(weights)[:, None]).reshape(20, -1)
        value = reference.linear_model_value(features, labels, "logistic", C)
        assert value >= max(certificate.lower, best.lower)


@pytest.mark.parametrize("basis", ["harmonic", "degree"])
@pytest.mark.parametrize("seed", range(4))
def test_bounds_enclose_the_value_on_the_sphere(basis, seed):
    rng = np.random.default_rng(seed)
    X = reference.sphere_points(rng, 14, 3)
    y = rng.permutation(np.arange(14) % 2)
    model = FourierFeatures(
        9,
        space=Sphere(basis, max_degree=2),
        loss="hinge",
        C=2.0,
        smoothing=0.06,
        random_state=0,
    ).fit(X, y)
    certificate = model.certificate(X, y)
    assert certificate.certified
    indices = model.kernel_.space.all_frequencies(3)
    values = harmonics(X, indices)
    if basis == "degree":
        factors = [
            values[:, indices[:, -1] == degree] / math.sqrt(2 * degree + 1) for degree in range(3)
        ]
    else:
        factors = [column[:, None] for column in values.T]
    value, _ = reference.game_value(factors, np.where(y == 1, 1.0, -1.0), 2.0)
    assert certificate.lower <= value * (1 + 1e-5)
    assert certificate.upper >= value * (1 - 1e-5)


def test_a_longer_game_tightens_the_bounds():
    X, y = make_checkerboard(300, random_state=0)
    settings = {"space": Sphere(max_degree=6), "loss": "hinge", "C": 1.0, "smoothing": 0}
    gaps = []
    for n_rounds in (2, 20, 400):
        solver = GradientSolver(0.05, "uniform", n_rounds=n_rounds)
        model = FourierFeatures(49, solver=solver, random_state=0, **settings).fit(X, y)
        gaps.append(model.certificate(X, y).relative_gap)
    assert gaps[0] > gaps[1] > gaps[2]


class TestEstimators:
    def test_parts_of_a_certificate_agree(self):
        X, y = make_windmill(60, random_state=0)
        model = FourierClassifier(20, loss="hinge", C=1.0, smoothing=0.06, random_state=0).fit(X, y)
        certificate = model.certificate(X, y)
        assert certificate.lower <= certificate.upper_dual <= certificate.upper
        assert certificate.gap == certificate.upper - certificate.lower
        np.testing.assert_allclose(certificate.margin, (2 * certificate.upper) ** -0.5)
        np.testing.assert_allclose(
            certificate.competitive_ratio**2, certificate.lower / certificate.upper
        )
        np.testing.assert_allclose(
            certificate.bandwidth, np.linalg.norm(model.frequencies_, axis=1).max()
        )
        assert "certified" in repr(certificate)
        assert "vacuous" in repr(certificate)
        wider = model.certificate(X, y, bandwidth=2 * certificate.bandwidth)
        assert wider.lower <= certificate.lower * (1 + 2e-3)
        with pytest.raises(ValueError, match=r"bandwidth=0\.1 is less than that of the learned"):
            model.certificate(X, y, bandwidth=0.1)
        with pytest.raises(ValueError, match="bandwidth=-1 is not allowed"):
            model.certificate(X, y, bandwidth=-1)

    def test_estimates_are_marked_as_such(self, rng):
        X = reference.sphere_points(rng, 100, 6)
        y = X[:, 0] > 0
        for space in ("euclidean", "sphere"):
            model = FourierFeatures(8, space=space, smoothing=0.06, random_state=0).fit(X, y)
            certificate = model.certificate(X, y)
            assert not certificate.certified
            assert "estimated" in repr(certificate)
            assert "certified" not in repr(certificate)
            assert 0 < certificate.lower < certificate.upper

    def test_other_samples_and_several_classes(self, rng):
        X = rng.standard_normal((90, 2))
        y = np.array(["a", "b", "c"])[np.arange(90) % 3]
        model = FourierFeatures(8, loss="hinge", smoothing=0.06, random_state=0).fit(X, y)
        whole, part = model.certificate(X, y), model.certificate(X[:40], y[:40])
        assert part.upper < whole.upper
        assert math.isnan(whole.generalization)
        assert "unknown" in repr(whole)
        for labels in (["d"] * 90, ["a"] * 90, ["a", "b"] * 45, ["a", "b", "c", "d", "c"] * 18):
            with pytest.raises(ValueError, match="was fitted with the classes 'a', 'b', 'c'"):
                model.certificate(X, labels)


def test_margin_bound_is_the_minimum_over_thresholds(rng):
    margins, complexity = rng.uniform(-0.2, 1, size=400), 0.01
    with_intercept = complexity + (math.sqrt(2) + 1) / 20
    best = min(
        np.mean(margins < theta)
        + 4 * with_intercept / theta
        + math.sqrt(math.log(max(math.log2(2 / theta), 1)) / 400)
        for theta in np.linspace(1e-3, 1, 20_000)
    )
    tail = 3 * math.sqrt(math.log(4 / (0.1 * 0.05)) / 800)
    bound = margin_bound(margins, complexity, kernel_bound=2.0, share=0.1)
    np.testing.assert_allclose(bound, best + tail, rtol=1e-2)
    assert margin_bound(np.ones(10**6), 1e-4, 1.0) < 0.05
    assert margin_bound(-np.ones(10), 1e-3, 1.0) == math.inf


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
