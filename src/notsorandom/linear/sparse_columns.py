"""Linear models on many sparse columns, to a given duality gap, by products with them alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import optimize
from scipy.sparse.linalg import LinearOperator, cg

from notsorandom.data.rows import Array, Rows
from notsorandom.game import Loss, Problem
from notsorandom.game.losses import LogisticLoss, QuadraticLoss
from notsorandom.linear.newton_step import relative_gap
from notsorandom.linear.softmax_pass import Evaluation, evaluate

# Steps of L-BFGS, and pairs of steps and gradients that it keeps. Frequencies of words need ten to
# fifty steps.
MAX_LBFGS_STEPS, N_PAIRS = 1000, 8
# Relative residuals of least squares, in turn, until the duality gap is closed.
RESIDUALS = (1e-2, 1e-4, 1e-6, 1e-9)


def can_solve(loss: Loss) -> bool:
    """Whether there is a solver for a loss on sparse columns."""
    if isinstance(loss, QuadraticLoss):
        return math.isinf(loss.upper) and not (loss.one_sided or loss.epsilon)
    return type(loss) is LogisticLoss


def solve_sparse(
    features: Any,
    problem: Problem,
    tol: float,
    callback: Callable[[int], Any] | None = None,
) -> tuple[Array, Array, float]:
    """Fit linear models with the logistic or the squared loss to sparse features.

    Parameters
    ----------
    features : sparse array of shape (n_samples, n_features)
    problem : Problem
    tol : float
        Largest relative duality gap.
    callback : callable, optional
        Called with the number of tasks that are solved.

    Returns
    -------
    coef : ndarray of shape (n_tasks, n_features)
    intercept : ndarray of shape (n_tasks,)
    gap : float
        The largest of the relative duality gaps.
    """
    features = features.astype(np.float64)
    if isinstance(problem.loss, LogisticLoss):
        models, gap = solve_logistic(features, problem, tol)
    else:
        tasks = [
            solve_least_squares(features, problem.task(k), tol) for k in range(problem.n_tasks)
        ]
        models, gap = np.stack([model for model, _ in tasks]), max(gap for _, gap in tasks)
    if callback is not None:
        callback(problem.n_tasks)
    return models[:, :-1], models[:, -1], gap


def solve_logistic(features: Any, problem: Problem, tol: float) -> tuple[Array, float]:
    """Solve the multinomial model by L-BFGS, until the duality gap is at most `tol`.

    Two classes have the model of half the `C` whose coefficients are opposite: half of the
    objective of the model of one task, whose coefficients are the differences. (In units of the
    Hessian's diagonal, or from a model without waves, it takes more steps.)
    """
    rows = Rows(features, problem.weights, problem.rows.pool)
    is_binary = problem.n_tasks == 1
    targets, loss = problem.targets, problem.loss
    if is_binary:
        targets, loss = np.hstack([-targets, targets]), loss.times(0.5)
    held = Problem(loss, targets, rows)
    start = np.zeros((held.n_tasks, features.shape[1] + 1))
    counts = np.bincount(held.strata(), held.counts, minlength=held.n_tasks)
    start[:, -1] = np.log(counts / counts.sum())
    best: Evaluation | None = None

    def objective(model: Array) -> tuple[float, Array]:
        nonlocal best
        model = model.reshape(start.shape).copy()
        state = evaluate(held, lambda X: X, held.n_tasks, np.float64, model)
        if best is None or (state.gap, state.primal) < (best.gap, best.primal):
            best = state
        return state.primal, state.gradient.ravel()

    def stop(_: Array) -> None:
        if best is not None and best.gap <= tol:
            raise StopIteration

    options = {"maxiter": MAX_LBFGS_STEPS, "maxcor": N_PAIRS, "ftol": 0.0, "gtol": 0.0}
    settings: Any = {"jac": True, "method": "L-BFGS-B", "callback": stop, "options": options}
    optimize.minimize(objective, start.ravel(), **settings)
    assert best is not None
    model = best.model - best.model.mean(axis=0)
    return (model[1:] - model[:1] if is_binary else model), best.gap


def solve_least_squares(features: Any, problem: Problem, tol: float) -> tuple[Array, float]:
    r"""Solve :math:`\tfrac12 |w|^2 + \tfrac1{2c} \sum_i m_i (t_i - f_i)^2` by conjugate gradients.

    `c` is the curvature of the loss. The intercept is the one that makes the mean residual zero, so
    that the residuals over `c` are feasible dual variables.
    """
    n_columns, curvature = features.shape[1], problem.loss.curvature
    mass, targets = problem.counts.astype(np.float64), problem.targets[:, 0].astype(np.float64)
    shares = mass / mass.sum()
    mean = features.T @ shares

    def gradient_of(residuals: Array) -> Array:
        measure = mass * residuals / curvature
        return features.T @ measure - mean * measure.sum()

    def predict(coef: Array) -> Array:
        scores: Array = features @ coef
        return scores - mean @ coef

    shape = (n_columns, n_columns)
    hessian = LinearOperator(shape, matvec=lambda w: w + gradient_of(predict(w)), dtype=np.float64)
    target_mean = shares @ targets
    right = gradient_of(targets - target_mean)
    model, gap = np.zeros(n_columns + 1), math.inf
    coef: Array = np.zeros(n_columns)
    for residual in RESIDUALS:
        coef, _ = cg(hessian, right, coef, rtol=residual, maxiter=MAX_LBFGS_STEPS)
        residuals = targets - target_mean - predict(coef)
        dual = residuals / curvature
        aligned = gradient_of(residuals)
        primal = 0.5 * coef @ coef + 0.5 * curvature * mass @ np.square(dual)
        value = (
            mass @ (targets * dual - 0.5 * curvature * np.square(dual)) - 0.5 * aligned @ aligned
        )
        new = relative_gap(float(primal), float(value))
        if new < gap:
            model, gap = np.append(coef, target_mean - mean @ coef), new
        if gap <= tol:
            break
    return model, gap
