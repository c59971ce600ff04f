import math

import numpy as np
import pytest
import reference

from notsorandom import FourierClassifier, FourierFeatures, Sphere
from notsorandom.data.rows import Rows
from notsorandom.datasets import make_checkerboard, make_windmill
from notsorandom.estimators.certify import regret_and_bound
from notsorandom.game import LOSSES, Loss, Player, play
from notsorandom.game.certificate import lower_bound, margin_bound, regret_bound
from notsorandom.kernel import LearnedKernel
from notsorandom.linear.newton import solve_machine
from notsorandom.search import Ascent
from notsorandom.spaces import Euclidean, Supremum
from notsorandom.spaces.harmonics import harmonics
from notsorandom.spaces.supremum import concentration_sample_size


def grid_in_ball(n_features, radius, n_side):
    axes = np.meshgrid(*[np.linspace(-radius, radius, n_side)] * n_features)
    grid = np.stack([axis.ravel() for axis in axes], axis=1)
    return grid[np.linalg.norm(grid, axis=1) <= radius]


def value_by_cutting_planes(X, labels, player, bandwidth, phase):
    """Value of the game over a fine grid, where one frequency after another is let in."""
    grid = grid_in_ball(X.shape[1], bandwidth, [0, 401, 41][X.shape[1]])
    angles = X @ grid.T  # (n_samples, n_frequencies)
    factors = [np.column_stack([np.cos(angles[:, 0]), np.sin(angles[:, 0])])]
    for _ in range(40):
        value, dual = reference.game_value(factors, labels, player.upper, player.curvature)
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
    def test_nothing_exceeds_the_bound(self, rng, n_features, phase, n_tasks):
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

    def test_out_of_evaluations_it_is_still_a_bound(self, rng):
        rows, measure = Rows(rng.standard_normal((20, 2))), rng.standard_normal((20, 1))
        space = Euclidean().resolve(rows, rng)
        good = space.supremum(rows, measure, "paired", 5.0, 0.0, 1e-3, 200_000)
        poor = space.supremum(rows, measure, "paired", 5.0, 0.0, 1e-3, 100)
        assert good.bound * (1 - 1e-3) <= poor.bound
        assert poor.bound > 1.1 * good.bound

    def test_beyond_three_dimensions_nothing_is_certified(self, rng):
        rows, measure = Rows(rng.standard_normal((20, 4))), rng.standard_normal((20, 1))
        supremum = Euclidean().resolve(rows, rng).supremum(rows, measure, "paired", 5, 7.0, 1e-3, 9)
        assert (supremum.reached, supremum.bound, supremum.certified) == (7.0, math.inf, False)


@pytest.mark.parametrize("upper", [0.5, 3.0, math.inf])
@pytest.mark.parametrize("curvature", [0.0, 0.7])
def test_the_best_multiple_is_the_best(rng, upper, curvature):
    labels = np.where(rng.uniform(size=(9, 2)) < 0.5, 1.0, -1.0)
    player = Player(Loss(upper=upper, curvature=curvature, start=0.1), labels)
    dual = rng.uniform(0, min(upper, 1), size=(9, 2)) * labels
    potential = 5.0
    most = min(upper / np.abs(dual).max(), 50)
    values = [player.objective(s * dual, s**2 * potential) for s in np.linspace(0, most, 20_001)]
    np.testing.assert_allclose(player.best_multiple(dual, potential), max(values), rtol=1e-4)
    assert player.best_multiple(0 * dual, potential) == 0
    assert player.best_multiple(-dual, potential) == 0  # no multiple of it gains anything


def test_certified_bounds_come_before_estimates():
    player, dual = Player(LOSSES["hinge"](1.0), np.ones((4, 1))), np.full((4, 1), 0.5)
    known, guess = Supremum(8.0, 8.0), Supremum(1.0, math.inf)
    value, name, certified = lower_bound(player, [("guess", dual, guess), ("known", dual, known)])
    assert (name, certified) == ("known", True)
    assert value == player.best_multiple(dual, 8.0)
    assert lower_bound(player, [("guess", dual, guess)])[1:] == ("guess", False)


@pytest.mark.parametrize("n_features", [1, 2])
@pytest.mark.parametrize("phase", ["aligned", "paired"])
def test_the_bracket_holds_the_value(n_features, phase):
    """Fifty random instances each, against the value on a fine grid of frequencies.

    Fewer frequencies make a larger value; the dual point of that game, with the true supremum,
    gives a smaller one.
    """
    width = []
    for seed in range(50):
        rng = np.random.default_rng(seed)
        n_samples, C = int(rng.integers(5, 10)), float(10 ** rng.uniform(-1, 1))
        X = rng.standard_normal((n_samples, n_features))
        y = rng.permutation(np.arange(n_samples) % 2)
        loss = ["hinge", "squared_hinge"][seed % 2]
        model = FourierFeatures(
            8, phase=phase, loss=loss, C=C, smoothing=0.1, weighting="uniform", random_state=seed
        ).fit(X, y)
        certificate = model.certificate(X, y)
        assert certificate.certified
        labels, player = np.where(y == 1, 1.0, -1.0), LOSSES[loss](C)
        value, dual = value_by_cutting_planes(X, labels, player, certificate.bandwidth, phase)
        assert certificate.lower <= value * (1 + 1e-6) + 1e-9
        space, measure = model.kernel_.space, (dual * labels)[:, None]
        supremum = space.supremum(
            Rows(X), measure, phase, certificate.bandwidth, 0.0, 1e-3, 100_000
        )
        inside = (labels * np.clip(dual, 0, player.upper))[:, None]
        below = Player(player, labels[:, None]).best_multiple(inside, supremum.bound)
        assert below <= certificate.upper * (1 + 1e-6) + 1e-6
        assert certificate.lower <= certificate.upper * (1 + 1e-9)
        width.append((value - below) / value)
    assert np.median(width) < 0.05  # the reference is close enough to mean something


@pytest.mark.parametrize("basis", ["harmonic", "degree"])
@pytest.mark.parametrize("seed", range(10))
def test_the_bracket_holds_the_value_on_the_sphere(basis, seed):
    rng = np.random.default_rng(seed)
    X = reference.sphere_points(rng, 14, 3)
    y = rng.permutation(np.arange(14) % 2)
    model = FourierFeatures(9, space=Sphere(basis, max_degree=2), random_state=0, C=2.0).fit(X, y)
    certificate = model.certificate(X, y)
    assert certificate.certified
    indices = model.kernel_.space.everything(3)
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


def test_a_longer_game_of_the_theory_tightens_the_bracket():
    X, y = make_checkerboard(300, random_state=0)
    settings = {
        "space": Sphere(max_degree=6),
        "learning_rate": 0.05,
        "weighting": "uniform",
        "smoothing": 0,
        "search": "enumerate",
        "random_state": 0,
    }
    gaps = [
        FourierFeatures(49, n_rounds=n_rounds, **settings).fit(X, y).certificate(X, y).relative_gap
        for n_rounds in (2, 20, 400)
    ]
    assert gaps[0] > gaps[1] > gaps[2]


class TestEstimators:
    def test_the_parts_fit_together(self):
        X, y = make_windmill(200, random_state=0)
        model = FourierClassifier(20, smoothing=0.06, random_state=0).fit(X, y)
        certificate = model.certificate(X, y)
        assert certificate.lower <= certificate.upper_from <= certificate.upper
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

    def test_an_estimate_is_called_one(self, rng):
        X = reference.sphere_points(rng, 100, 6)
        y = X[:, 0] > 0
        for space in ("euclidean", "sphere"):
            model = FourierFeatures(8, space=space, smoothing=0.06, random_state=0).fit(X, y)
            certificate = model.certificate(X, y)
            assert not certificate.certified
            assert "estimated" in repr(certificate)
            assert "certified" not in repr(certificate)
            assert 0 < certificate.lower < certificate.upper

    def test_other_samples_and_many_classes(self, rng):
        X = rng.standard_normal((90, 2))
        y = np.array(["a", "b", "c"])[np.arange(90) % 3]
        model = FourierFeatures(8, smoothing=0.06, random_state=0).fit(X, y)
        whole, part = model.certificate(X, y), model.certificate(X[:40], y[:40])
        assert part.upper < whole.upper
        assert math.isnan(whole.generalization)
        assert "unknown" in repr(whole)
        for labels in (["d"] * 90, ["a"] * 90, ["a", "b"] * 45, ["a", "b", "c", "d", "c"] * 18):
            with pytest.raises(ValueError, match="samples of just the classes seen at fit"):
                model.certificate(X, labels)


@pytest.mark.usefixtures("rough_suprema")
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("rate", ["auto", "theory", 0.05])
@pytest.mark.parametrize("space", ["euclidean", "sphere"])
def test_regret_is_within_the_theorem(loss, rate, space):
    X, y = (make_windmill if space == "euclidean" else make_checkerboard)(150, random_state=0)
    model = FourierFeatures(
        12, space=space, loss=loss, learning_rate=rate, smoothing=0.05, random_state=0
    ).fit(X, y)
    certificate = model.certificate(X, y)
    history = model.history_
    player = Player(LOSSES[loss](1.0), np.where(y == 1, 1.0, -1.0)[:, None])
    best = solve_machine(model.average_kernel_.features(X), player, 1e-6).primal_value
    earned = (history["objective"] * history["plays"]).sum() / history["plays"].sum()
    np.testing.assert_allclose(certificate.regret, best - earned, rtol=1e-3)
    assert 0 < certificate.regret <= certificate.regret_bound


def test_regret_needs_the_game_that_was_played():
    X, y = make_checkerboard(150, random_state=0)
    settings = {"smoothing": 0.06, "random_state": 0}
    model = FourierFeatures(12, space="sphere", **settings).fit(X, y)
    assert math.isnan(model.certificate(X[:100], y[:100]).regret)
    assert math.isnan(model.head(5).certificate(X, y).regret)
    settled = FourierFeatures(space="sphere", dynamics="primal_dual", smoothing=0).fit(X, y)
    assert math.isnan(settled.certificate(X, y).regret)
    zonal = FourierFeatures(12, space=Sphere("zonal", max_degree=4), **settings).fit(X, y)
    certificate = zonal.certificate(X, y)
    assert certificate.regret_bound == math.inf
    assert "the theorem allows any" in repr(certificate)


def test_the_regret_bound_is_the_theorems():
    player, n_rounds, bound = Player(LOSSES["hinge"](0.5), np.ones((30, 1))), 400, 2.0
    diameter, gradient = player.steepest(bound)
    times = np.arange(1, n_rounds + 1)
    steps = diameter / (gradient * np.sqrt(times))
    plays = np.ones(n_rounds)
    theorem = 1.5 * gradient * diameter / math.sqrt(n_rounds)
    ours = regret_bound(player, bound, plays, steps)
    assert 0.9 * theorem < ours <= theorem
    np.testing.assert_allclose(steps, [player.theory_rate(t, bound) / 30 for t in times])
    inverted = gradient / (diameter * np.sqrt(times))  # as the paper's lemma prints it
    assert regret_bound(player, bound, plays, inverted) > 100 * theorem


def test_with_strong_concavity_the_bound_is_logarithmic():
    player, n_rounds, bound = Player(LOSSES["squared_hinge"](0.5), np.ones((30, 1))), 400, 1.0
    loss, (_, gradient) = player.loss, player.steepest(bound)
    steps = np.array([player.theory_rate(t, bound) / 30 for t in range(1, n_rounds + 1)])
    harmonic_number = (1 / np.arange(1, n_rounds + 1)).sum()
    expected = gradient**2 / (2 * loss.curvature) * harmonic_number / n_rounds
    ours = regret_bound(player, bound, np.ones(n_rounds), steps)
    np.testing.assert_allclose(ours, expected, rtol=1e-9)
    assert ours <= gradient**2 / (2 * loss.curvature) * (1 + math.log(n_rounds)) / n_rounds


class InvertedSteps(Player):
    """The schedule as the paper's lemma prints it."""

    def theory_rate(self, round_, bound):
        right = super().theory_rate(1, bound) / self.total_weight  # D / G
        return self.total_weight / right / math.sqrt(round_)


def regret_of(loss, n_rounds, kind=Player):
    """Average regret of a game on two clusters, which one wave tells apart."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(20) % 2, 1.0, -1.0)
    rows, player = Rows(y[:, None] + 0.01 * rng.standard_normal((20, 1))), kind(loss, y[:, None])
    result = play(
        rows,
        player,
        space=Euclidean(),
        search=Ascent(n_peaks=1),
        n_frequencies=n_rounds,
        rng=rng,
        learning_rate="theory",
        smoothing=0.05,
    )
    average = LearnedKernel.from_game(result, result.weights, "aligned")
    return regret_and_bound((average, result.history), rows, player)


@pytest.mark.parametrize("C", [0.5, 1.0, 2.0])
def test_the_theorem_holds_and_breaks_with_the_step_inverted(C):
    n_rounds = 300
    loss = LOSSES["hinge"](C)
    diameter, gradient = Player(loss, np.ones((20, 1))).steepest(2.0)
    theorem = 1.5 * gradient * diameter / math.sqrt(n_rounds)
    regret, allowed = regret_of(loss, n_rounds)
    assert regret <= allowed <= theorem
    regret, allowed = regret_of(loss, n_rounds, InvertedSteps)
    assert theorem < regret <= allowed


def test_the_squared_hinge_learns_at_the_faster_rate():
    """Its regret falls like log T / T, where a schedule for the hinge falls like 1 / sqrt T."""
    loss = LOSSES["squared_hinge"](0.05)
    short, long = (regret_of(loss, n_rounds)[0] for n_rounds in (20, 320))
    assert 0 < long < short * (1 + math.log(320)) / (1 + math.log(20)) * 20 / 320 * 1.5


def test_the_margin_bound_is_the_best_over_the_thresholds(rng):
    margins, complexity = rng.uniform(-0.2, 1, size=400), 0.01
    best = min(
        np.mean(margins < theta)
        + 2 * complexity / theta
        + math.sqrt(math.log(max(math.log2(2 / theta), 1)) / 400)
        for theta in np.linspace(1e-3, 1, 20_000)
    )
    tail = 3 * math.sqrt(math.log(2 / 0.05) / 400)
    np.testing.assert_allclose(margin_bound(margins, complexity), best + tail, rtol=1e-2)
    assert margin_bound(np.ones(100_000), 1e-3) < 0.05
    assert margin_bound(-np.ones(10), 1e-3) == math.inf


def test_the_potential_is_seen_with_so_many_samples(rng):
    """At the sample size of the theorem the potential is close to its ideal everywhere."""
    epsilon, reach = 0.4, 4.0
    n_samples = int(concentration_sample_size(1, reach, epsilon))
    frequencies = np.linspace(-reach, reach, 200)
    # Classes of equal size, uniform on [-1, 0] and [0, 1]: the transform is known.

    def half(w, a, b):
        return (np.exp(1j * w * b) - np.exp(1j * w * a)) / (1j * w)

    ideal = np.abs(half(frequencies, 0, 1) - half(frequencies, -1, 0)) ** 2 / 4
    for _ in range(5):
        y = rng.choice([-1, 1], size=n_samples)
        x = rng.uniform(0, 1, size=n_samples) * y
        empirical = np.abs(np.exp(1j * np.outer(frequencies, x)) @ y) ** 2 / n_samples**2
        assert np.abs(empirical - ideal).max() < epsilon
    assert concentration_sample_size(1, reach, epsilon / 2) > 3 * n_samples
