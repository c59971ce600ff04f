"""The game over whole degrees, against explicit Gram matrices."""

import numpy as np
import pytest
import reference

from notsorandom.data.rows import Rows
from notsorandom.game import LOSSES, Problem
from notsorandom.game.degrees import FIRST_DUAL_STEP, centred_norms, play_degrees

MAX_DEGREE = 5


def make_problem(rng, n_tasks=1, n_features=4, n_samples=30, C=1.0, weights=None):
    X = reference.sphere_points(rng, n_samples, n_features)
    labels = np.where(X[:, :n_tasks] * X[:, [-1]] + 0.3 * X[:, [-2]] > 0, 1.0, -1.0)
    return Problem(LOSSES["hinge"].times(C), labels, Rows(X, weights))


def grams_of(problem):
    X = problem.rows.array
    return np.stack([reference.degree_gram(X, degree) for degree in range(1, MAX_DEGREE + 1)])


@pytest.mark.parametrize("n_tasks", [1, 3])
@pytest.mark.parametrize("smoothing", [0.0, 0.4])
def test_rounds_are_best_responses_and_gradient_steps(rng, n_tasks, smoothing):
    problem = make_problem(rng, n_tasks)
    degrees = np.arange(1, MAX_DEGREE + 1)
    damping = np.exp(-(smoothing**2) * (degrees * (degrees + 2) / 3 - 1))  # in four dimensions
    grams = damping[:, None, None] * grams_of(problem)
    size = FIRST_DUAL_STEP / centred_norms(grams, np.ones(30)).max()
    dual, plays, total = problem.first_dual(), np.zeros(MAX_DEGREE), 0
    for round_ in range(1, 10):
        best = np.argmax([np.trace(dual.T @ gram @ dual) for gram in grams])
        plays[best] += round_ * damping[best]
        total = total + round_ * dual
        dual = problem.step(dual, grams[best] @ dual, size / round_**0.5)
    weights, average = play_degrees(problem, MAX_DEGREE, smoothing, n_rounds=9)
    np.testing.assert_allclose(weights, plays / plays.sum())
    np.testing.assert_allclose(average, total / 45, atol=1e-10)


@pytest.mark.parametrize("C", [0.1, 1.0])
def test_average_play_approaches_the_value_of_the_game(rng, C):
    pytest.importorskip("clarabel")
    problem = make_problem(rng, C=C)
    labels, grams = problem.targets[:, 0], grams_of(problem)
    factors = [factor_of(gram) for gram in grams]
    value, _ = reference.game_value(factors, labels, C)
    weights, average = play_degrees(problem, MAX_DEGREE, n_rounds=4000)
    lower = np.abs(average).sum() - 0.5 * max(
        average[:, 0] @ gram @ average[:, 0] for gram in grams
    )
    mixed = np.tensordot(weights, grams, axes=1)
    upper, _ = reference.game_value([factor_of(mixed)], labels, C)
    assert lower <= value * (1 + 1e-6)
    assert upper >= value * (1 - 1e-6)
    assert upper - lower < 0.01 * value


def factor_of(gram):
    """A matrix of features with this Gram matrix."""
    values, vectors = np.linalg.eigh(gram)
    kept = values > 1e-12
    return vectors[:, kept] * np.sqrt(values[kept])


@pytest.mark.parametrize("weighted", [False, True])
def test_norms_are_those_of_the_centred_grams(rng, weighted):
    problem = make_problem(rng, n_samples=60)
    counts = rng.integers(1, 4, size=60) if weighted else np.ones(60, dtype=int)
    grams = np.stack([np.repeat(np.repeat(g, counts, 0), counts, 1) for g in grams_of(problem)])
    centred = grams - grams.mean(axis=1, keepdims=True)
    centred = centred - centred.mean(axis=2, keepdims=True)
    expected = np.linalg.norm(centred, 2, axis=(1, 2))
    norms = centred_norms(grams_of(problem), counts.astype(float))
    assert (norms <= expected * (1 + 1e-9)).all()
    assert (norms >= 0.6 * expected).all()


def test_weight_two_is_the_row_twice(rng):
    once = make_problem(rng, n_tasks=2)
    counts = rng.integers(1, 4, size=30)
    X, labels = once.rows.array, once.targets
    weighted = Problem(once.loss, labels, Rows(X, counts[:, None].astype(float)))
    repeated = Problem(once.loss, labels.repeat(counts, axis=0), Rows(X.repeat(counts, axis=0)))
    one, dual = play_degrees(weighted, MAX_DEGREE, n_rounds=50)
    other, repeated_dual = play_degrees(repeated, MAX_DEGREE, n_rounds=50)
    np.testing.assert_allclose(one, other)
    np.testing.assert_allclose(dual.repeat(counts, axis=0), repeated_dual, atol=1e-10)


@pytest.mark.parametrize("degree", [1, 2, 4])
def test_planted_degree_is_found(rng, degree):
    X = reference.sphere_points(rng, 400, 4)
    labels = np.sign(reference.legendre(4, degree, X[:, [0]]))
    problem = Problem(LOSSES["hinge"], labels, Rows(X))
    weights, _ = play_degrees(problem, MAX_DEGREE, n_rounds=100)
    assert weights.argmax() == degree - 1
    smooth, _ = play_degrees(problem, MAX_DEGREE, smoothing=10.0, n_rounds=100)
    assert smooth.argmax() == 0


def test_equal_samples_give_finite_weights():
    problem = Problem(LOSSES["hinge"], np.array([[1.0], [-1.0]]), Rows(np.eye(3)[[0, 0]]))
    weights, _ = play_degrees(problem, MAX_DEGREE, n_rounds=5)
    assert weights.sum() == pytest.approx(1)
    assert np.isfinite(weights).all()
