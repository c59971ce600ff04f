import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from notsorandom import FourierClassifier
from notsorandom.datasets import make_windmill
from notsorandom.game import LOSSES, Player
from notsorandom.linear.newton import newton_solve, solve_machine


def solve_svm(X, labels, loss, tol):
    return solve_machine(X, Player(loss, labels[:, None]), tol)


def problem(rng, n_samples=300, n_features=12, share=0.5, dtype=np.float64):
    X = rng.standard_normal((n_samples, n_features)) / np.sqrt(n_features)
    scores = X @ rng.standard_normal(n_features) + 0.3 * rng.standard_normal(n_samples)
    labels = np.where(scores > np.quantile(scores, 1 - share), 1.0, -1.0)
    return X.astype(dtype), labels.astype(dtype)


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("share", [0.5, 0.03])
def test_hinge_agrees_with_libsvm(rng, C, share):
    X, labels = problem(rng, share=share)
    machine = solve_svm(X, labels, LOSSES["hinge"](C), tol=1e-5)
    libsvm = SVC(kernel="linear", C=C, tol=1e-8).fit(X, labels)
    assert machine.gap <= 1e-5
    margins = labels * libsvm.decision_function(X)
    value = 0.5 * (libsvm.coef_ @ libsvm.coef_.T).item() + C * np.maximum(0, 1 - margins).sum()
    np.testing.assert_allclose(machine.primal_value, value, rtol=2e-5)
    np.testing.assert_allclose(
        machine.coef, libsvm.coef_[0], atol=0.02 * np.abs(machine.coef).max()
    )


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_values_bracket_the_optimum(rng, loss, dtype, C):
    X, labels = problem(rng, dtype=dtype)
    rough = solve_svm(X, labels, LOSSES[loss](C), tol=1e-2)
    exact = solve_svm(X.astype(float), labels.astype(float), LOSSES[loss](C), tol=1e-8)
    assert rough.gap <= 1e-2
    slack = 1e-4 * exact.primal_value
    assert rough.dual_value - slack <= exact.primal_value <= rough.primal_value + slack


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_optimality_conditions(rng, loss):
    X, labels = problem(rng)
    loss = LOSSES[loss](1.0)
    machine = solve_svm(X, labels, loss, tol=1e-7)
    assert (labels * machine.dual >= 0).all()
    assert (np.abs(machine.dual) <= loss.upper).all()
    assert abs(machine.dual.sum()) < 1e-8
    np.testing.assert_allclose(machine.coef, X.T @ machine.dual, atol=2e-3)
    margins = labels * (X @ machine.coef + machine.intercept)
    assert machine.dual[margins > 1.01] == pytest.approx(0, abs=1e-6)


def test_separable_and_tiny(rng):
    machine = solve_svm(
        np.array([[-1.0], [1.0]]), np.array([-1.0, 1.0]), LOSSES["hinge"](1e3), 1e-6
    )
    np.testing.assert_allclose([machine.coef[0], machine.intercept], [1, 0], atol=1e-3)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("C", [10.0, 1000.0])
def test_more_features_than_samples_in_single_precision(rng, loss, C):
    X, labels = problem(rng, n_samples=60, n_features=200, dtype=np.float32)
    assert solve_svm(X, labels, LOSSES[loss](C), tol=1e-3).gap <= 1e-3


def test_beyond_any_precision_it_returns_its_best(rng):
    X, labels = problem(rng, n_samples=60, n_features=100)
    machine = solve_svm(X, labels, LOSSES["hinge"](1e12), tol=1e-12)
    assert np.isfinite(machine.coef).all()


def test_useless_features_give_the_majority(rng):
    labels = np.array([1.0, 1, 1, -1, 1, -1, 1])
    machine = solve_svm(np.zeros((7, 2)), labels, LOSSES["hinge"](1.0), 1e-6)
    assert machine.intercept > 0
    np.testing.assert_allclose(machine.primal_value, 4.0, rtol=1e-4)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("C", [1.0, 100.0, 1e4])
@pytest.mark.parametrize("shape", [(300, 150), (60, 200), (200, 60)])
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_few_positives_and_large_c(rng, loss, C, shape, noise):
    X, labels = rng.standard_normal(shape), -np.ones(shape[0])
    labels[: max(2, shape[0] // 33)] = 1
    X[:, 0] += 3 * labels
    labels[rng.uniform(size=len(labels)) < noise] *= -1
    machine = solve_svm(X, labels, LOSSES[loss](C), 1e-3)
    assert machine.gap <= 1e-3


def test_rows_and_columns_solve_the_same(rng):
    """Newton's system by the features' Gram matrix and by the rows' own."""
    for n_rows, n_features in ((5, 9), (9, 5), (0, 4), (6, 6)):
        corner, gradient = (
            rng.standard_normal((n_rows, n_features)),
            rng.standard_normal(n_features + 1),
        )
        wide = np.column_stack([corner, np.ones(n_rows)])
        ridge = np.diag([1.0] * n_features + [1e-6 * 50 / 0.3])
        expected = np.linalg.solve(ridge + wide.T @ wide / 0.3, gradient)
        # Beside rows that are not in the corner.
        features = np.concatenate([corner, rng.standard_normal((3, n_features))])
        inside = np.arange(n_rows + 3) < n_rows
        solution = newton_solve(features, inside, 0.3, 50, gradient)
        np.testing.assert_allclose(solution, expected, rtol=1e-6)


def test_what_cannot_be_solved_is_said():
    X, y = make_windmill(60, random_state=0)
    with pytest.warns(ConvergenceWarning, match="try a smaller C"):
        FourierClassifier(80, loss="squared_hinge", C=1e39, smoothing=0.05).fit(X, y)
