"""The linear model at the end: Newton's method, to a stated duality gap."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from notsorandom.data.rows import Array
from notsorandom.game import DualProblem, Loss

# The hinge's corner is rounded over these widths of margin in turn, until the gap is closed. At
# the first, every margin starts inside the corner, so the first step is a least squares fit.
WIDTHS = tuple(2.0 * 0.3**k for k in range(16))
# Newton's method on a piecewise quadratic function needs about ten steps a width.
MAX_NEWTON = 100
# A width is left when what Newton's method has yet to gain is this share of the gap allowed.
SLACK = 0.1
# Halvings of the line search: steps are found to any precision that float64 has a use for.
LINE_HALVINGS = 40


@dataclass(frozen=True)
class LinearModel:
    """One linear model, and how well it is solved.

    Parameters
    ----------
    coef : ndarray of shape (n_features,)
    intercept : float
    dual : ndarray of shape (n_samples,)
        Feasible, and signed.
    primal_value, dual_value : float
        They bracket the optimum.
    curvature : float
        Of the corners at which it was found.
    """

    coef: Array
    intercept: float
    dual: Array
    primal_value: float
    dual_value: float
    curvature: float

    @property
    def gap(self) -> float:
        """Duality gap, relative to the primal value."""
        return (self.primal_value - self.dual_value) / max(self.primal_value, 1e-300)


# Products with few rows are computed with what lies beside them in memory as well, which may raise
# a flag though nothing comes of it.
@np.errstate(invalid="ignore")
def solve_task(features: Array, problem: DualProblem, tol: float) -> LinearModel:
    r"""Minimise :math:`\tfrac12 |w|^2 + \sum_i \ell(t_i, \langle w, \phi_i\rangle + b)`.

    A loss with corners is replaced by one with rounded ones, whose minimum Newton's method finds
    in a few steps and whose dual variables are feasible for the loss itself; the corners are
    sharpened until the duality gap of the loss's own problem is at most `tol`. A step costs one
    product with the features, and a Gram matrix of the rows inside a corner alone.

    Parameters
    ----------
    features : ndarray of shape (n_samples, n_features)
    problem : DualProblem
        Of one task; of a loss of the margin, both labels must be present.
    tol : float
        Largest relative duality gap.

    Returns
    -------
    LinearMachine
        With the smallest gap reached, if `tol` is beyond what float64 allows. Features in float32
        are taken to float64 where their own precision doesn't allow it.
    """
    precision = features.dtype
    exact = problem.astype(np.float64)
    loss, (low, high), targets = exact.loss, exact.box, exact.targets[:, 0]
    low, high = low[:, 0], high[:, 0]
    weights = None if exact.weights is None else exact.weights[:, 0]
    roots = None if weights is None else np.sqrt(weights)
    coef = np.zeros(features.shape[1])
    intercept = 0.0
    residuals = targets.copy()
    best: LinearModel | None = None
    for curvature in smoothing_schedule(loss):
        for _ in range(MAX_NEWTON):
            dual = loss.best_dual(residuals, low, high, curvature)
            measure = dual if weights is None else dual * weights
            gradient = np.append(coef - features.T @ measure.astype(precision), -measure.sum())
            inside = (dual != 0) & (dual > low) & (dual < high)
            direction = -newton_solve(
                features, inside, curvature, exact.total_weight, gradient, roots
            )
            change = -(features @ direction[:-1].astype(precision) + direction[-1]).astype(
                np.float64
            )
            step = line_search(exact, curvature, coef, direction[:-1], residuals, change)
            coef = coef + step * direction[:-1]
            intercept += step * direction[-1]
            residuals = residuals + step * change
            # What the primal can still fall, the dual still rise, and its balance still cost.
            left = max(
                -float(gradient @ direction),
                float(gradient[:-1] @ gradient[:-1]),
                abs(gradient[-1] * intercept),
            )
            # A corner that is still too round costs more than the last steps on it would gain.
            rounding = 0.5 * (curvature - loss.curvature) * float(dual[inside] @ measure[inside])
            primal = 0.5 * coef @ coef + exact.total_loss((targets - residuals)[:, None])
            if left <= max(SLACK * tol * primal, rounding):
                break
        # Scores anew, free of what the updates rounded; then the gap of the loss itself.
        scores = (features @ coef.astype(precision) + intercept).astype(np.float64)
        residuals = targets - scores
        dual = exact.project(loss.best_dual(residuals, low, high, curvature)[:, None])
        alignment = features.T @ exact.measure(dual)[:, 0].astype(precision)
        potential = float(np.square(alignment, dtype=np.float64).sum())
        solution = LinearModel(
            coef=coef,
            intercept=intercept,
            dual=dual[:, 0],
            primal_value=0.5 * float(coef @ coef) + exact.total_loss(scores[:, None]),
            dual_value=exact.stats(dual).objective(potential),
            curvature=curvature,
        )
        if best is None or not best.gap <= solution.gap:
            best = solution
        if best.gap <= tol:
            break
    assert best is not None
    if not best.gap <= tol and precision != np.float64:
        return solve_task(features.astype(np.float64), exact, tol)
    return best


def smoothing_schedule(loss: Loss) -> list[float]:
    """Curvatures to go through, from one that Newton's method solves from afar to the loss's own.

    Those of a loss with none of its own are as many as it takes.
    """
    if not loss.curvature:
        return [width / loss.upper for width in WIDTHS]
    n_before = max(0, math.ceil(-math.log10(loss.curvature)))
    return [loss.curvature * 10.0**power for power in range(n_before, -1, -1)]


def newton_solve(
    features: Array,
    inside: Array,
    curvature: float,
    total_weight: float,
    gradient: Array,
    roots: Array | None = None,
) -> Array:
    r"""Solve with the Hessian: a ridge plus the corner's Gram matrix over the curvature.

    It is as large as there are features, :math:`D + \Phi^T \Phi / c`, or, by Woodbury's identity,
    as there are rows in the corner, :math:`c I + \Phi D^{-1} \Phi^T`: whichever is less.

    Parameters
    ----------
    features : ndarray of shape (n_samples, n_features)
    inside : ndarray of bool, of shape (n_samples,)
        The rows in the corner.
    curvature, total_weight : float
    gradient : ndarray of shape (n_features + 1,)
        The intercept's last.
    roots : ndarray of shape (n_samples,), optional
        Of the samples' weights.
    """
    n_inside, precision = int(inside.sum()), features.dtype
    corner, inner_roots = features[inside], None
    if roots is not None:
        inner_roots = roots[inside].astype(precision)
        corner = corner * inner_roots[:, None]
    by_features = n_inside >= features.shape[1]
    if not by_features:
        # By rows the curvature stands beside the Gram matrix, and mustn't be lost in its rounding.
        squares = float(np.square(corner, dtype=np.float64).sum())
        by_features = curvature < np.finfo(precision).eps * squares
    if by_features:
        return solve_by_features(
            *corner_sums(corner, inner_roots), curvature, total_weight, gradient, precision
        )
    intercept_ridge = ridge(total_weight, curvature)
    ones = np.ones(n_inside, dtype=precision) if inner_roots is None else inner_roots
    scaled = np.append(gradient[:-1], gradient[-1] / intercept_ridge)
    if len(corner) == 0:
        return scaled
    gram = (corner @ corner.T).astype(np.float64)  # (n_corner, n_corner)
    gram += np.outer(ones, ones).astype(np.float64) / intercept_ridge
    gram[np.diag_indices(len(corner))] += curvature
    right = (corner @ scaled[:-1].astype(corner.dtype)).astype(np.float64) + scaled[-1] * ones
    pull = solve_positive(gram, right, precision)
    back = np.append(corner.T @ pull.astype(corner.dtype), ones @ pull / intercept_ridge)
    return scaled - back


def corner_sums(corner: Array, roots: Array | None) -> tuple[Array, Array, float]:
    """What Newton's method asks of the rows in a corner.

    Parameters
    ----------
    corner : ndarray of shape (n_inside, n_features)
        Features, times the roots of the samples' weights.
    roots : ndarray of shape (n_inside,), or None

    Returns
    -------
    gram : ndarray of shape (n_features, n_features)
    totals : ndarray of shape (n_features,)
        Sums of the features, by weight.
    mass : float
        The rows' weight.
    """
    gram = corner.T @ corner
    if roots is None:
        return gram, corner.sum(axis=0, dtype=np.float64), float(len(corner))
    totals = (roots[:, None] * corner).sum(axis=0, dtype=np.float64)
    return gram, totals, float(np.square(roots, dtype=np.float64).sum())


def ridge(total_weight: float, curvature: float) -> float:
    """The intercept's: it isn't regularised, and has no curvature with nobody in the corner."""
    return 1e-6 * total_weight / curvature


def solve_by_features(
    gram: Array,
    totals: Array,
    mass: float,
    curvature: float,
    total_weight: float,
    gradient: Array,
    precision: Any,
) -> Array:
    """Solve with the Hessian that the sums over a corner make; `precision` is that of the sums."""
    n_features = len(totals)
    hessian = np.empty((n_features + 1, n_features + 1))
    hessian[:-1, :-1] = gram
    hessian[-1, :-1] = hessian[:-1, -1] = totals
    hessian[-1, -1] = mass
    hessian /= curvature
    hessian[np.diag_indices(n_features)] += 1
    hessian[-1, -1] += ridge(total_weight, curvature)
    return solve_positive(hessian, gradient, precision)


def solve_positive(matrix: Array, right: Array, precision: Any) -> Array:
    """Solve with a matrix that is positive definite but for the rounding of its Gram part.

    A sharp corner leaves the identity below that rounding; then as little is added as makes the
    matrix positive definite again. That bends Newton's direction, not the solution.
    """
    diagonal = np.diag(matrix).copy()
    rounding = float(np.finfo(precision).eps * diagonal.sum())
    for jitter in (0.0, 1e-2, 1.0, 1e2, 1e4):
        matrix[np.diag_indices(len(diagonal))] = diagonal + jitter * rounding
        try:
            # NumPy's, not SciPy's: each has threads of its own, which get in each other's way.
            factor = np.linalg.cholesky(matrix)
        except np.linalg.LinAlgError:
            continue
        half = linalg.solve_triangular(factor, right, lower=True, check_finite=False)
        return linalg.solve_triangular(factor, half, lower=True, trans="T", check_finite=False)
    return right / diagonal.sum()


def line_search(
    problem: DualProblem,
    curvature: float,
    coef: Array,
    direction: Array,
    residuals: Array,
    change: Array,
) -> float:
    """Where the objective along the direction is lowest, between 0 and 1."""
    linear, square = coef @ direction, direction @ direction
    low, high = (side[:, 0] for side in problem.box)
    pull = change if problem.weights is None else change * problem.weights[:, 0]

    def slope(step: float) -> float:
        dual = problem.loss.best_dual(residuals + step * change, low, high, curvature)
        return float(linear + step * square + dual @ pull)

    if slope(1.0) <= 0:
        return 1.0
    first, last = 0.0, 1.0
    for _ in range(LINE_HALVINGS):
        middle = (first + last) / 2
        first, last = (middle, last) if slope(middle) < 0 else (first, middle)
    return last


def solve_tasks(
    features: Array,
    problem: DualProblem,
    tol: float,
    callback: Callable[[int], Any] | None = None,
) -> tuple[Array, Array, float]:
    """Solve one machine a task.

    Returns
    -------
    coef : ndarray of shape (n_tasks, n_features)
    intercept : ndarray of shape (n_tasks,)
    gap : float
        The largest of the relative duality gaps.
    """
    machines = []
    for task in range(problem.n_tasks):
        machines.append(solve_task(features, problem.task(task), tol))
        if callback is not None:
            callback(task + 1)
    coef = np.stack([machine.coef for machine in machines])
    intercept = np.array([machine.intercept for machine in machines])
    return coef, intercept, float(np.max([machine.gap for machine in machines]))  # NaN is told
