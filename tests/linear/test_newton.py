"""The linear model in memory, against other solvers, duality and optimality conditions."""

import warnings

import numpy as np
import pytest
import reference
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from notsorandom import FourierClassifier
from notsorandom.game import CLASSIFICATION_LOSSES, LOSSES, Problem
from notsorandom.linear import newton
from notsorandom.linear.newton import Task, solve_task, solve_tasks
from notsorandom.linear.newton_step import solve_hessian


def solve(X, labels, loss, tol, weights=None):
    """Solve one task; the weights are a vector."""
    weights = None if weights is None else weights[:, None]
    return solve_task(X, Problem.from_arrays(loss, labels[:, None], weights), tol)


def assert_feasible(model, labels, loss, weights=None):
    """The dual variables are in their box, and their weighted sum is zero."""
    low, high = loss.box(labels.astype(float))
    assert ((model.dual >= low) & (model.dual <= high)).all()
    measure = model.dual if weights is None else model.dual * weights
    assert abs(measure.sum()) <= 1e-9 * np.abs(measure).sum()


def make_problem(rng, n_samples=300, n_features=12, share=0.5, dtype=np.float64):
    X = rng.standard_normal((n_samples, n_features)) / np.sqrt(n_features)
    scores = X @ rng.standard_normal(n_features) + 0.3 * rng.standard_normal(n_samples)
    labels = np.where(scores > np.quantile(scores, 1 - share), 1.0, -1.0)
    return X.astype(dtype), labels.astype(dtype)


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("share", [0.5, 0.03])
def test_hinge_agrees_with_libsvm(rng, C, share):
    X, labels = make_problem(rng, share=share)
    model = solve(X, labels, LOSSES["hinge"].times(C), tol=1e-5)
    libsvm = SVC(kernel="linear", C=C, tol=1e-8).fit(X, labels)
    assert model.gap <= 1e-5
    margins = labels * libsvm.decision_function(X)
    value = 0.5 * (libsvm.coef_ @ libsvm.coef_.T).item() + C * np.maximum(0, 1 - margins).sum()
    np.testing.assert_allclose(model.primal_value, value, rtol=2e-5)
    np.testing.assert_allclose(model.coef, libsvm.coef_[0], atol=0.02 * np.abs(model.coef).max())


@pytest.mark.parametrize("C", [1e-3, 1.0, 100.0, 1e4])
@pytest.mark.parametrize("share", [0.5, 0.03])
@pytest.mark.parametrize("weighted", [False, True])
def test_logistic_agrees_with_scikit_learn(rng, C, share, weighted):
    X, labels = make_problem(rng, share=share)
    weights = rng.uniform(0.2, 3, size=300) if weighted else np.ones(300)
    model = solve(X, labels, LOSSES["logistic"].times(C), 1e-8, weights)
    settings = {"C": C, "tol": 1e-10, "solver": "newton-cholesky", "max_iter": 1000}
    theirs = LogisticRegression(**settings).fit(X, labels, sample_weight=weights)
    losses = np.logaddexp(0, -labels * theirs.decision_function(X))
    value = 0.5 * np.square(theirs.coef_).sum() + C * weights @ losses
    np.testing.assert_allclose(model.primal_value, value, rtol=1e-7)
    np.testing.assert_allclose(model.coef, theirs.coef_[0], rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(model.intercept, theirs.intercept_[0], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    ("loss", "tol"), [("hinge", 1e-2), ("squared_hinge", 1e-2), ("logistic", 1e-6)]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e5])
@pytest.mark.parametrize("shape", [(300, 12), (60, 200), (3000, 8)])
@pytest.mark.parametrize("separable", [False, True])
def test_primal_and_dual_values_bracket_the_optimum(rng, loss, tol, dtype, C, shape, separable):
    X = rng.standard_normal(shape).astype(dtype)
    noise = 0 if separable else rng.standard_normal(shape[0])
    labels = np.where(X[:, 0] + noise > 0.3, 1.0, -1.0).astype(dtype)
    model = solve(X, labels, LOSSES[loss].times(C), tol)
    assert model.gap <= tol
    optimum = reference.linear_model_value(X, labels, loss, C)
    slack = 1e-8 if loss == "logistic" else 1e-6 if dtype is np.float64 else 1e-4
    assert model.dual_value <= optimum * (1 + slack)
    assert optimum <= model.primal_value * (1 + slack)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_optimality_conditions(rng, loss):
    X, labels = make_problem(rng)
    loss = LOSSES[loss]
    model = solve(X, labels, loss, tol=1e-7)
    assert_feasible(model, labels, loss)
    np.testing.assert_allclose(model.coef, X.T @ model.dual, atol=2e-3)
    margins = labels * (X @ model.coef + model.intercept)
    assert model.dual[margins > 1.01] == pytest.approx(0, abs=1e-6)


def test_two_separable_samples(rng):
    model = solve(
        np.array([[-1.0], [1.0]]), np.array([-1.0, 1.0]), LOSSES["hinge"].times(1e3), 1e-6
    )
    np.testing.assert_allclose([model.coef[0], model.intercept], [1, 0], atol=1e-3)


def test_unreachable_tolerance_gives_a_finite_model(rng):
    X, labels = make_problem(rng, n_samples=60, n_features=100)
    model = solve(X, labels, LOSSES["hinge"].times(1e12), tol=1e-12)
    assert np.isfinite(model.coef).all()


def test_constant_features_predict_the_majority(rng):
    labels = np.array([1.0, 1, 1, -1, 1, -1, 1])
    model = solve(np.zeros((7, 2)), labels, LOSSES["hinge"], 1e-6)
    assert model.intercept > 0
    np.testing.assert_allclose(model.primal_value, 4.0, rtol=1e-4)


@pytest.mark.parametrize("loss", CLASSIFICATION_LOSSES)
@pytest.mark.parametrize("C", [1.0, 100.0, 1e4])
@pytest.mark.parametrize("shape", [(300, 150), (60, 200), (200, 60)])
@pytest.mark.parametrize(("noise", "dtype"), [(0.0, np.float64), (0.1, np.float32)])
def test_few_positives_and_large_c(rng, loss, C, shape, noise, dtype):
    X, labels = rng.standard_normal(shape), -np.ones(shape[0])
    labels[: max(2, shape[0] // 33)] = 1
    X[:, 0] += 3 * labels
    labels[rng.uniform(size=len(labels)) < noise] *= -1
    assert solve(X.astype(dtype), labels, LOSSES[loss].times(C), 1e-3).gap <= 1e-3


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("share", [0.5, 0.002])
def test_many_rows_are_solved_from_a_sample(rng, loss, weighted, share):
    """A rare class may be missing from the sample."""
    X, labels = make_problem(rng, n_samples=3000, n_features=5, share=share, dtype=np.float32)
    weights = rng.uniform(0.2, 3, size=3000) if weighted else None
    model = solve(X, labels, LOSSES[loss], 1e-3, weights)
    optimum = reference.linear_model_value(X.astype(float), labels, loss, 1.0, weights)
    assert model.gap <= 1e-3
    assert model.dual_value * (1 - 1e-5) <= optimum <= model.primal_value * (1 + 1e-5)
    assert_feasible(model, labels, LOSSES[loss], weights)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("slack", [0.5, 0.2])
def test_rows_far_from_the_margin_are_left_out_without_error(
    rng, loss, weighted, slack, monkeypatch
):
    """With little slack, some rows with a loss are missing at first."""
    monkeypatch.setattr(newton, "NEAR_MARGIN", slack)
    X, labels = rng.standard_normal((4000, 5)), np.repeat([-1.0, 1.0], 2000)
    X[:, 0] += 2 * labels
    weights, loss = rng.uniform(0.2, 3, size=4000) if weighted else np.ones(4000), LOSSES[loss]
    sizes = []

    def solve_and_count(task, start, tol, method=newton.Task.solve):
        sizes.append(len(task.targets))
        return method(task, start, tol)

    monkeypatch.setattr(newton.Task, "solve", solve_and_count)
    model = solve(X, labels, loss, 1e-3, weights if weighted else None)
    assert len(sizes) >= 3  # two samples, and the rows near the margin
    assert max(sizes) < 2000
    residuals = labels - X @ model.coef - model.intercept
    primal = 0.5 * model.coef @ model.coef + weights @ loss.values(residuals, *loss.box(labels))
    measure = model.dual * weights
    dual = labels @ measure - 0.5 * np.square(X.T @ measure).sum()
    dual -= 0.5 * loss.curvature * weights @ np.square(model.dual)
    np.testing.assert_allclose([model.primal_value, model.dual_value], [primal, dual], rtol=1e-8)
    assert model.gap <= 1e-3
    assert_feasible(model, labels, loss, weights)


def expected_solution(rows, weights, curvature, gradient):
    """The system with the Hessian, written down; the intercept has the ridge 2e-4."""
    wide = np.column_stack([rows, np.ones(len(rows))])
    ridge = np.append(np.ones(rows.shape[1]), 2e-4)
    hessian = np.diag(ridge) + wide.T @ (weights[:, None] * wide) / curvature
    return np.linalg.solve(hessian, gradient)


@pytest.mark.parametrize(("n_rows", "n_features"), [(5, 9), (9, 5), (0, 4), (6, 6)])
def test_hessian_by_rows_and_by_features(rng, n_rows, n_features):
    """The smaller system is solved: by the Gram matrix of the features or of the rows."""
    rows, gradient = rng.standard_normal((n_rows, n_features)), rng.standard_normal(n_features + 1)
    # With rows that are not active.
    features = np.concatenate([rows, rng.standard_normal((3, n_features))])
    solution = solve_hessian(features, np.arange(n_rows + 3) < n_rows, 0.3, 2e-4, gradient)
    expected = expected_solution(rows, np.ones(n_rows), 0.3, gradient)
    np.testing.assert_allclose(solution, expected, rtol=1e-6)
    # With weights between 0 and 1, and weights of the samples.
    weights, counts = rng.uniform(0.1, 1, size=(2, n_rows))
    solution = solve_hessian(rows, weights, 0.3, 2e-4, gradient, np.sqrt(counts))
    expected = expected_solution(rows, weights * counts, 0.3, gradient)
    np.testing.assert_allclose(solution, expected, rtol=1e-6)


# If all rows weigh little, none are left out.
@pytest.mark.parametrize(("heavy", "curvature"), [(0.5, 1e-3), (0.5e-12, 1e-12)])
def test_rows_of_little_weight_do_not_change_the_hessian(rng, heavy, curvature):
    features, gradient = rng.standard_normal((30, 4)), rng.standard_normal(5)
    weights = np.where(np.arange(30) % 3, heavy, 1e-12)
    solution = solve_hessian(features, weights, curvature, 2e-4, gradient)
    expected = expected_solution(features, weights, curvature, gradient)
    np.testing.assert_allclose(solution, expected, rtol=1e-6)


def test_unsolved_model_gives_a_warning(monkeypatch, windmill):
    monkeypatch.setattr(newton, "MAX_NEWTON_STEPS", 2)
    with pytest.warns(ConvergenceWarning, match="try a smaller C"):
        FourierClassifier(20, smoothing=0.05).fit(windmill[0][:60], windmill[1][:60])


def test_gap_that_is_not_a_number_is_returned(rng):
    X = rng.standard_normal((50, 3))
    targets = np.column_stack([X[:, 0] + 0.1, X[:, 1] * 1e170])
    problem = Problem.from_arrays(LOSSES["squared"], targets)
    with np.errstate(all="ignore"):
        *_, gap = solve_tasks(X, problem, 1e-3)
    assert np.isnan(gap)


@pytest.mark.parametrize("loss", CLASSIFICATION_LOSSES)
@pytest.mark.parametrize("C", [1e-300, 1e-30, 1e12, 1e30, 1e300])
@pytest.mark.parametrize("weighted", [False, True])
def test_extreme_numbers_end_without_error_or_overflow(rng, loss, C, weighted):
    """In a warning of the estimator, if the gap is large."""
    X, labels = make_problem(rng)
    weights = np.full(300, C) if weighted else None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = solve(X, labels, LOSSES[loss].times(1.0 if weighted else C), 1e-3, weights)
    assert np.isfinite(model.coef).all()
    assert np.isnan(model.gap) or model.gap >= -1e-6


def test_without_noise_no_solution_is_tried_twice(rng, monkeypatch):
    """Targets that features explain to float32: the objective is too small for its precision."""
    X = rng.standard_normal((2000, 100)).astype(np.float32)
    targets = X @ rng.standard_normal((100, 1)).astype(np.float32)
    problem = Problem.from_arrays(LOSSES["quantile"].times(1000.0), targets / targets.std())
    starts, solve = [], Task.solve

    def record(self, start, tol):
        if len(self.targets) == len(targets):
            starts.append((self.features.dtype, start.model.any()))
        return solve(self, start, tol)

    monkeypatch.setattr(Task, "solve", record)
    monkeypatch.setattr(newton, "MIN_SAMPLE_ROWS", 2000)  # no start from a sample
    assert solve_task(X, problem, 1e-3).gap <= 1e-3
    # In float32 from zero, and in float64 from there.
    assert starts == [(np.float32, False), (np.float64, True)]  # the model, not zero
