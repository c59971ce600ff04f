import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import DotProduct, WhiteKernel
from sklearn.linear_model import Ridge

from notsorandom.data.rows import Rows
from notsorandom.game import LOSSES, Problem
from notsorandom.linear.newton import solve_task
from notsorandom.linear.ridge import solve_ridge

C = 0.7


@pytest.fixture(params=[False, True], ids=["equal weights", "weights"])
def problem(request, rng):
    features = rng.standard_normal((90, 7)) + 2
    targets = features[:, :2] @ rng.standard_normal((2, 3)) + rng.standard_normal((90, 3)) + 5
    weights = rng.integers(1, 4, size=(90, 1)).astype(float) if request.param else None
    return Problem(LOSSES["squared"].times(C), targets, Rows(features, weights, block_rows=32))


def identity(_):
    return lambda block: block


def solve(problem, tol=1e-12):
    return solve_ridge(problem, identity, problem.rows.n_features, tol)


def ridge(problem, kept=slice(None)):
    """scikit-learn's ridge regression, with the same objective."""
    model = Ridge(alpha=1 / (2 * C))
    return model.fit(problem.rows.array[kept], problem.targets[kept], problem.counts[kept])


def test_model_is_scikit_learns(problem):
    coef, intercept, gap, _ = solve(problem)
    model = ridge(problem)
    np.testing.assert_allclose(coef, model.coef_, rtol=1e-9)
    np.testing.assert_allclose(intercept, model.intercept_, rtol=1e-9)
    assert abs(gap) < 1e-12


def test_gap_bounds_the_distance_from_the_optimum(problem, monkeypatch):
    best = sum(solve_task(problem.rows.array, problem.task(k), 1e-12).primal_value for k in (0, 1))
    few = Problem(problem.loss, problem.targets[:, :2], problem.rows)
    monkeypatch.setattr("notsorandom.linear.ridge.solve", lambda _, right: 0.01 * right)
    coef, intercept, gap, _ = solve(few)
    value = few.total_loss(few.rows.array @ coef.T + intercept) + 0.5 * np.square(coef).sum()
    assert value > best  # not solved
    assert value * (1 - gap) <= best


@pytest.mark.parametrize("n_features", [20, 300])
def test_float32_is_refined_to_the_tolerance(rng, n_features):
    """A large C: the ridge is far below the rounding of the Gram matrix."""
    features = rng.standard_normal((200, n_features)).astype(np.float32)
    features[:, 1] = features[:, 0] + 1e-3 * features[:, 1]
    targets = features[:, :1] + np.float32(0.1) * rng.standard_normal((200, 1)).astype(np.float32)
    problem = Problem(LOSSES["squared"].times(1e4), targets, Rows(features))
    coef, intercept, gap, _ = solve(problem, 1e-3)
    assert gap <= 1e-3
    value = problem.total_loss(features @ coef.T + intercept) + 0.5 * np.square(coef).sum()
    assert value <= (1 + 2e-3) * solve_task(features, problem.task(0), 1e-6).primal_value


def test_posterior_is_that_of_a_gaussian_process(rng):
    """With the kernel of the features, and a flat prior of the intercept."""
    features, new = rng.standard_normal((40, 5)), rng.standard_normal((10, 5))
    problem = Problem(LOSSES["squared"].times(C), rng.standard_normal((40, 1)), Rows(features))
    _, _, _, posterior = solve(problem)
    noise = 1 / (2 * C)  # prior variance of the coefficients: 1
    kernel = DotProduct(sigma_0=1e4) + WhiteKernel(noise)
    process = GaussianProcessRegressor(kernel, optimizer=None, alpha=0)
    _, deviation = process.fit(features, problem.targets[:, 0]).predict(new, return_std=True)
    np.testing.assert_allclose(noise * (1 + posterior.variances(new)), deviation**2, rtol=1e-5)


def test_leave_one_out_is_that_of_models_without_the_row(problem):
    coef, intercept, _, posterior = solve(problem)
    X, counts = problem.rows.array, problem.counts
    residuals = problem.targets - (X @ coef.T + intercept)
    found = posterior.leave_one_out(X, residuals, counts)
    for row in (0, 17, 89):
        kept = np.delete(np.arange(len(X)), row)
        other = ridge(problem, kept)
        part = Problem(problem.loss, problem.targets[kept], problem.rows.take(kept))
        variance = solve(part)[3].variances(X[[row]])
        residual = problem.targets[row] - other.predict(X[[row]])[0]
        np.testing.assert_allclose(found[row], residual / np.sqrt(1 + variance), rtol=1e-8)
        assert variance > 0


@pytest.mark.parametrize("block_rows", [16, 90])
def test_blocks_make_no_difference(problem, block_rows):
    rows = Rows(problem.rows.array, problem.weights, block_rows=block_rows)
    other = Problem(problem.loss, problem.targets, rows)
    for part, same in zip(solve(problem)[:2], solve(other)[:2], strict=True):
        np.testing.assert_allclose(part, same, rtol=1e-10)


def test_constant_targets_have_a_constant_model(rng):
    rows = Rows(rng.standard_normal((30, 4)))
    problem = Problem(LOSSES["squared"].times(C), np.full((30, 1), 3.0), rows)
    coef, intercept, gap, _ = solve(problem)
    np.testing.assert_allclose(coef, 0, atol=1e-12)
    np.testing.assert_allclose(intercept, 3)
    assert gap <= 1e-3


def test_overflow_is_no_model(rng):
    rows = Rows(np.full((30, 4), 1e200))
    problem = Problem(LOSSES["squared"].times(C), rng.standard_normal((30, 1)), rows)
    *_, gap, posterior = solve(problem)
    assert np.isnan(gap)
    assert posterior is None
