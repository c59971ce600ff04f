import numpy as np
import pytest
import reference
from sklearn.metrics import accuracy_score, r2_score

from notsorandom.data.rows import Rows
from notsorandom.game import LOSSES, REGRESSION_LOSSES, Problem, QuadraticLoss
from notsorandom.game.certificate import regret_bound
from notsorandom.game.duplicates import merge_duplicates
from notsorandom.game.problem import codes_from_scores, signs_from_codes


def column(weights):
    return None if weights is None else weights[:, None]


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_of_a_classification_problem(rng, n_classes, weighted):
    codes = rng.integers(n_classes, size=50)
    weights = rng.uniform(0.5, 2, size=50) if weighted else None
    targets = signs_from_codes(codes, n_classes, np.float64)
    problem = Problem.from_arrays(LOSSES["hinge"], targets, column(weights))
    np.testing.assert_array_equal(problem.strata(), codes)
    assert problem.n_strata == n_classes
    values = rng.standard_normal(targets.shape)
    expected = accuracy_score(codes, codes_from_scores(values), sample_weight=weights)
    assert problem.score(values) == pytest.approx(expected)
    assert problem.score(targets) == 1


@pytest.mark.parametrize("weighted", [False, True])
def test_scores_of_a_regression_problem(rng, weighted):
    targets = rng.standard_normal((50, 2))
    weights = rng.uniform(0.5, 2, size=50) if weighted else None
    problem = Problem.from_arrays(LOSSES["squared"], targets, column(weights))
    values = targets + rng.standard_normal((50, 2))
    expected = r2_score(targets, values, sample_weight=weights, multioutput="variance_weighted")
    assert problem.score(values) == pytest.approx(expected)


def test_r2_of_constant_targets():
    constant = Problem.from_arrays(LOSSES["squared"], np.ones((5, 1)))
    assert constant.score(np.ones((5, 1))) == 1
    assert constant.score(np.zeros((5, 1))) == 0


@pytest.mark.parametrize("upper", [0.5, 3.0, np.inf])
@pytest.mark.parametrize("curvature", [0.0, 0.7])
def test_best_scaled_objective_is_the_maximum_over_multiples(rng, upper, curvature):
    labels = np.where(rng.uniform(size=(9, 2)) < 0.5, 1.0, -1.0)
    loss = QuadraticLoss(upper=upper, curvature=curvature, start=0.1)
    problem = Problem.from_arrays(loss, labels)
    dual = rng.uniform(0, min(upper, 1), size=(9, 2)) * labels
    potential = 5.0
    most = min(upper / np.abs(dual).max(), 50)
    values = [
        problem.stats(s * dual).objective(s**2 * potential) for s in np.linspace(0, most, 2001)
    ]
    best = problem.stats(dual).best_scaled_objective(potential)
    np.testing.assert_allclose(best, max(values), rtol=1e-4)
    assert problem.stats(0 * dual).best_scaled_objective(potential) == 0
    assert problem.stats(-dual).best_scaled_objective(potential) == 0  # no multiple gains anything


def test_theory_step_sizes_minimise_the_regret_bound():
    """The hinge's step is D / (G sqrt t): other constants give a larger bound."""
    problem = Problem.from_arrays(LOSSES["hinge"], np.ones((50, 1)))
    plays = np.ones(100)
    steps = np.array([problem.theory_rate(t, 1.0) / 50 for t in range(1, 101)])
    bounds = [regret_bound(problem, 1.0, plays, factor * steps) for factor in (0.5, 1, 2)]
    assert bounds[1] < min(bounds[0], bounds[2])


@pytest.mark.parametrize("loss", LOSSES)
def test_dual_and_gradient_stay_within_the_theory_constants(rng, loss):
    X = rng.standard_normal((30, 2))
    targets = np.where(np.arange(30) % 2, 1.0, -1.0)[:, None]
    if loss in REGRESSION_LOSSES:
        targets = rng.standard_normal((30, 1))
    problem = Problem(LOSSES[loss].times(2.0), targets, Rows(X))
    diameter, gradient = problem.diameter_and_gradient(1.0)
    frequencies = rng.standard_normal((4, 2))
    gram = reference.translation_invariant_gram(X, X, frequencies, np.full(4, 0.25))
    duals = [problem.first_dual()]
    for size in (0.01, 0.1, 1.0, 10.0):
        response = gram @ duals[-1]
        slope = problem.loss.slope(targets, duals[-1], response)
        assert np.linalg.norm(slope) <= gradient
        duals.append(problem.step(duals[-1], response, size))
    for one in duals:
        assert all(np.linalg.norm(one - other) <= diameter for other in duals)


def test_to_given_and_from_given_are_inverse(rng):
    """After rows were left out, merged, and twice selected."""
    X = rng.integers(0, 3, size=(30, 2)).astype(float)
    targets = np.where(np.arange(30) % 2, 1.0, -1.0)[:, None]
    positions = np.append(np.arange(30), -1)  # one more row was given, and left out
    problem = merge_duplicates(Problem(LOSSES["hinge"], targets, Rows(X), positions))
    values = rng.standard_normal((len(problem.rows), 1))
    given = problem.to_given(values)
    assert given.shape == (problem.n_given, 1) == (31, 1)
    assert given[-1] == 0
    np.testing.assert_array_equal(problem.from_given(given), values)
    masks = np.arange(len(values)) % 3 > 0, rng.uniform(size=(len(values) * 2) // 3) < 0.5
    part = problem.without(np.flatnonzero(~masks[0])).without(np.flatnonzero(~masks[1]))
    kept = np.flatnonzero(masks[0])[masks[1]]
    assert part.n_given == 31
    np.testing.assert_array_equal(part.targets, problem.targets[kept])
    np.testing.assert_array_equal(part.rows.array, problem.rows.array[kept])
    np.testing.assert_array_equal(part.from_given(given), values[kept])
    again = part.to_given(values[kept])
    np.testing.assert_array_equal(again, np.where(np.isin(given, values[kept]), given, 0))
    assert again.any()


def test_a_problem_with_c_has_a_multiple_of_its_loss(rng):
    """The samples, targets and positions are the same."""
    targets, scores = np.array([[1.0], [-1.0], [1.0]]), rng.standard_normal((3, 1))
    rows, positions = Rows(rng.standard_normal((3, 2)), np.ones((3, 1))), np.array([2, -1, 0, 1])
    problem = Problem(LOSSES["squared_hinge"], targets, rows, positions)
    other = problem.with_C(2.5)
    assert other.total_loss(scores) == pytest.approx(2.5 * problem.total_loss(scores))
    assert other.loss == LOSSES["squared_hinge"].times(2.5)
    assert problem.loss is LOSSES["squared_hinge"]  # as it was
    for name in ("targets", "rows", "positions"):
        assert getattr(other, name) is getattr(problem, name)
