"""The dual player has no regret, within the theorem's bound; broken players violate it."""

import math

import numpy as np
import pytest

from notsorandom import Ascent, Euclidean, FourierFeatures, GradientSolver, Sphere
from notsorandom.data.rows import Rows
from notsorandom.datasets import make_checkerboard, make_windmill
from notsorandom.estimators.certify import average_regret
from notsorandom.game import CLASSIFICATION_LOSSES, LOSSES, Problem, play
from notsorandom.game.certificate import regret_bound
from notsorandom.linear.newton import solve_task


class InvertedSteps(Problem):
    """Step sizes G / (D sqrt t), as the paper's lemma prints them."""

    def theory_rate(self, round_, kernel_bound):
        right = super().theory_rate(1, kernel_bound) / self.total_weight  # D / G
        return self.total_weight / right / math.sqrt(round_)


class WrongSign(Problem):
    """Descends on the objective instead of ascending."""

    def step(self, dual, response, size, projection):
        return super().step(dual, response, -size, projection)


class ZeroStep(Problem):
    """Never moves."""

    def step(self, dual, response, size, projection):
        return dual


def play_two_clusters(loss, n_rounds, kind=Problem):
    """Average regret, and its bound, of a game on two clusters that one wave separates."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(20) % 2, 1.0, -1.0)
    problem = kind(loss, y[:, None], Rows(y[:, None] + 0.01 * rng.standard_normal((20, 1))))
    players = {"space": Euclidean(), "search": Ascent(n_peaks=1), "learning_rate": "theory"}
    result = play(problem, n_frequencies=n_rounds, rng=rng, smoothing=0.05, **players)
    return average_regret(result.kernel(), result.history, problem)


def theorem(loss, n_rounds):
    diameter, gradient = Problem.from_arrays(loss, np.ones((20, 1))).diameter_and_gradient(2.0)
    return 1.5 * gradient * diameter / math.sqrt(n_rounds)


@pytest.mark.parametrize("C", [0.5, 1.0, 2.0])
def test_regret_is_within_the_theorem_and_inverted_steps_violate_it(C):
    loss = LOSSES["hinge"].times(C)
    regret, allowed = play_two_clusters(loss, 300)
    assert regret <= allowed <= theorem(loss, 300)
    regret, allowed = play_two_clusters(loss, 300, InvertedSteps)
    assert theorem(loss, 300) < regret <= allowed


@pytest.mark.parametrize("kind", [WrongSign, ZeroStep])
def test_broken_players_violate_the_theorem(kind):
    loss = LOSSES["hinge"]
    assert play_two_clusters(loss, 300, kind)[0] > theorem(loss, 300)


@pytest.mark.parametrize(
    ("kind", "has_no_regret"), [(Problem, True), (WrongSign, False), (ZeroStep, False)]
)
def test_average_regret_vanishes_with_the_rounds(kind, has_no_regret):
    """Total regret grows like the root of the number of rounds, so the average halves."""
    few, many = (play_two_clusters(LOSSES["hinge"], n, kind)[0] for n in (20, 80))
    assert (many < 0.6 * few) == has_no_regret


def test_squared_hinge_has_logarithmic_regret():
    """Its average regret falls like log T / T, faster than the hinge's 1 / sqrt T."""
    loss = LOSSES["squared_hinge"].times(0.05)
    short, long = (play_two_clusters(loss, n_rounds)[0] for n_rounds in (20, 320))
    assert 0 < long < short * (1 + math.log(320)) / (1 + math.log(20)) * 20 / 320 * 1.5


@pytest.mark.parametrize("C", [0.05, 1.0])
def test_logistic_regret_is_within_its_bound_and_vanishes(C):
    (short, _), (long, allowed) = (
        play_two_clusters(LOSSES["logistic"].times(C), n_rounds) for n_rounds in (20, 320)
    )
    assert 0 < long <= allowed
    assert long < 0.3 * short
    broken, _ = play_two_clusters(LOSSES["logistic"].times(C), 320, ZeroStep)
    assert broken > 2 * long


@pytest.mark.parametrize("loss", CLASSIFICATION_LOSSES)
@pytest.mark.parametrize("rate", ["auto", "theory", 0.05])
@pytest.mark.parametrize("space", ["euclidean", "sphere"])
def test_certificate_has_the_regret_of_the_game(loss, rate, space):
    X, y = (make_windmill if space == "euclidean" else make_checkerboard)(150, random_state=0)
    solver = GradientSolver(learning_rate=rate)
    settings = {"space": space, "loss": loss, "C": 1.0, "smoothing": 0.05, "random_state": 0}
    model = FourierFeatures(12, solver=solver, **settings).fit(X, y)
    certificate = model.certificate(X, y, max_evaluations=1000)
    history = model.history_
    labels = np.where(y == 1, 1.0, -1.0)[:, None]
    problem = Problem.from_arrays(LOSSES[loss], labels)
    best = solve_task(model.average_kernel_.features(X), problem, 1e-6).primal_value
    earned = (history["objective"] * history["plays"]).sum() / history["plays"].sum()
    np.testing.assert_allclose(certificate.regret, best - earned, rtol=1e-3)
    assert 0 < certificate.regret <= certificate.regret_bound


def test_regret_is_unknown_without_the_game():
    X, y = make_checkerboard(150, random_state=0)
    settings = {"C": 1.0, "smoothing": 0.06, "random_state": 0}
    model = FourierFeatures(12, space="sphere", **settings).fit(X, y)
    assert math.isnan(model.certificate(X[:100], y[:100]).regret)
    assert math.isnan(model.head(5).certificate(X, y).regret)
    solved = FourierFeatures(space="sphere", solver="equilibrium", smoothing=0).fit(X, y)
    assert math.isnan(solved.certificate(X, y).regret)
    zonal = FourierFeatures(12, space=Sphere("zonal", max_degree=4), **settings).fit(X, y)
    assert zonal.certificate(X, y).regret_bound == math.inf


def test_alternating_projections_have_no_regret_bound():
    """The theorem is about the nearest feasible point, which they don't find."""
    X, y = make_windmill(150, random_state=0)
    settings = {"loss": "hinge", "C": 1.0, "smoothing": 0.05, "random_state": 0}
    solver = GradientSolver("theory", projection="alternating")
    certificate = FourierFeatures(12, solver=solver, **settings).fit(X, y).certificate(X, y)
    assert math.isfinite(certificate.regret)
    assert certificate.regret_bound == math.inf
    assert "(bound: none)" in repr(certificate)


def test_regret_bound_is_that_of_the_theorem():
    problem = Problem.from_arrays(LOSSES["hinge"].times(0.5), np.ones((30, 1)))
    n_rounds, kernel_bound = 400, 2.0
    diameter, gradient = problem.diameter_and_gradient(kernel_bound)
    times = np.arange(1, n_rounds + 1)
    steps = diameter / (gradient * np.sqrt(times))
    plays = np.ones(n_rounds)
    expected = 1.5 * gradient * diameter / math.sqrt(n_rounds)
    bound = regret_bound(problem, kernel_bound, plays, steps)
    assert 0.9 * expected < bound <= expected
    np.testing.assert_allclose(steps, [problem.theory_rate(t, kernel_bound) / 30 for t in times])
    inverted = gradient / (diameter * np.sqrt(times))
    assert regret_bound(problem, kernel_bound, plays, inverted) > 100 * expected


def test_regret_bound_is_logarithmic_with_strong_concavity():
    problem = Problem.from_arrays(LOSSES["squared_hinge"].times(0.5), np.ones((30, 1)))
    n_rounds, curvature = 400, problem.loss.curvature
    _, gradient = problem.diameter_and_gradient(1.0)
    steps = np.array([problem.theory_rate(t, 1.0) / 30 for t in range(1, n_rounds + 1)])
    harmonic_number = (1 / np.arange(1, n_rounds + 1)).sum()
    expected = gradient**2 / (2 * curvature) * harmonic_number / n_rounds
    bound = regret_bound(problem, 1.0, np.ones(n_rounds), steps)
    np.testing.assert_allclose(bound, expected, rtol=1e-9)
    assert bound <= gradient**2 / (2 * curvature) * (1 + math.log(n_rounds)) / n_rounds
