"""The linear model on features in memory: Newton's method, to a given duality gap."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from notsorandom.data.rows import Array
from notsorandom.game import DualProblem, Loss

# Widths of the margin interval over which the hinge is smoothed, in turn, until the gap is closed.
# The first contains every margin of the zero model, so the first step is a least squares fit.
SMOOTHING_WIDTHS = tuple(2.0 * 0.3**k for k in range(16))
# Newton's method on a piecewise quadratic function needs about ten steps per smoothing.
MAX_NEWTON_STEPS = 100
# Newton's method stops when its remaining gain is this share of the duality gap allowed.
NEWTON_PRECISION = 0.1
# Bisections of the line search: 2^-40 is below any step that matters in float64.
MAX_BISECTIONS = 40


@dataclass(frozen=True)
class LinearModel:
    """A linear model of one task, with bounds on the optimum.

    `dual` has the feasible signed dual variables. `primal_value` and `dual_value` bound the optimum
    from above and below. `curvature` is that of the smoothed loss which the model minimises.
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


# Some BLAS kernels for products of few rows read beyond them and set the invalid flag.
@np.errstate(invalid="ignore")
def solve_task(features: Array, problem: DualProblem, tol: float) -> LinearModel:
    r"""Minimise :math:`\tfrac12 |w|^2 + \sum_i \ell(t_i, \langle w, \phi_i\rangle + b)`.

    The loss is replaced by a smoothed one, whose dual variables are feasible for the loss itself.
    Newton's method minimises it in a few steps. The smoothing is reduced until the duality gap of
    the original problem is at most `tol`. A step costs one product with the features, and a Gram
    matrix of the active rows: those whose dual variable is strictly inside its box.

    Parameters
    ----------
    features : ndarray of shape (n_samples, n_features)
    problem : DualProblem
        Of one task; for a classification loss, both labels must be present.
    tol : float
        Largest relative duality gap.

    Returns
    -------
    LinearModel
        With the smallest gap reached, if float64 does not allow `tol`. Features in float32 are
        converted to float64 where float32 does not allow it.
    """
    precision = features.dtype
    exact = problem.astype(np.float64)
    loss, (low, high), targets = exact.loss, exact.box, exact.targets[:, 0]
    low, high = low[:, 0], high[:, 0]
    weights = None if exact.weights is None else exact.weights[:, 0]
    sqrt_weights = None if weights is None else np.sqrt(weights)
    coef = np.zeros(features.shape[1])
    intercept = 0.0
    residuals = targets.copy()
    best: LinearModel | None = None
    for curvature in smoothing_schedule(loss):
        for _ in range(MAX_NEWTON_STEPS):
            dual = loss.best_dual(residuals, low, high, curvature)
            measure = dual if weights is None else dual * weights
            gradient = np.append(coef - features.T @ measure.astype(precision), -measure.sum())
            active = (dual != 0) & (dual > low) & (dual < high)
            direction = -solve_hessian(
                features, active, curvature, exact.total_weight, gradient, sqrt_weights
            )
            change = features @ direction[:-1].astype(precision) + direction[-1]
            change = -change.astype(np.float64)
            step = line_search(exact, curvature, coef, direction[:-1], residuals, change)
            coef = coef + step * direction[:-1]
            intercept += step * direction[-1]
            residuals = residuals + step * change
            # What is left to gain in the primal, in the dual, and by the equality constraint.
            remaining = max(
                -float(gradient @ direction),
                float(gradient[:-1] @ gradient[:-1]),
                abs(gradient[-1] * intercept),
            )
            # More steps are wasted while the smoothing itself costs more than they would gain.
            active_square = float(dual[active] @ measure[active])
            smoothing_error = 0.5 * (curvature - loss.curvature) * active_square
            primal = 0.5 * coef @ coef + exact.total_loss((targets - residuals)[:, None])
            if remaining <= max(NEWTON_PRECISION * tol * primal, smoothing_error):
                break
        # Recompute the scores without accumulated rounding, then the gap of the original loss.
        scores = (features @ coef.astype(precision) + intercept).astype(np.float64)
        residuals = targets - scores
        dual = exact.project(loss.best_dual(residuals, low, high, curvature)[:, None])
        alignment = features.T @ exact.measure(dual)[:, 0].astype(precision)
        potential = float(np.square(alignment, dtype=np.float64).sum())
        model = LinearModel(
            coef=coef,
            intercept=intercept,
            dual=dual[:, 0],
            primal_value=0.5 * float(coef @ coef) + exact.total_loss(scores[:, None]),
            dual_value=exact.stats(dual).objective(potential),
            curvature=curvature,
        )
        if best is None or not best.gap <= model.gap:
            best = model
        if best.gap <= tol:
            break
    assert best is not None
    if not best.gap <= tol and precision != np.float64:
        return solve_task(features.astype(np.float64), exact, tol)
    return best


def smoothing_schedule(loss: Loss) -> list[float]:
    """Return decreasing curvatures of the smoothed loss.

    The first is large enough for Newton's method to converge from the zero model. The last is the
    loss's own curvature, if it has one.
    """
    if not loss.curvature:
        return [width / loss.upper for width in SMOOTHING_WIDTHS]
    n_before = max(0, math.ceil(-math.log10(loss.curvature)))
    return [loss.curvature * 10.0**power for power in range(n_before, -1, -1)]


def solve_hessian(
    features: Array,
    active: Array,
    curvature: float,
    total_weight: float,
    gradient: Array,
    sqrt_weights: Array | None = None,
) -> Array:
    r"""Solve a linear system with the Hessian of the smoothed objective.

    With :math:`\Phi` the features of the active rows and `D` the ridge, it is
    :math:`D + \Phi^T \Phi / c`, or, by Woodbury's identity, a system with
    :math:`c I + \Phi D^{-1} \Phi^T`. The smaller one is solved. `active` marks the rows, and the
    gradient of the intercept is last.
    """
    precision = features.dtype
    rows, roots = active_rows(features, active, sqrt_weights)
    by_features = len(rows) >= features.shape[1]
    if not by_features:
        # By rows, the curvature is added to the Gram matrix and must exceed its rounding error.
        squares = float(np.square(rows, dtype=np.float64).sum())
        by_features = curvature < np.finfo(precision).eps * squares
    if by_features:
        sums = active_sums(rows, roots)
        return solve_hessian_of_sums(*sums, curvature, total_weight, gradient, precision)
    ridge = intercept_ridge(total_weight, curvature)
    scaled = np.append(gradient[:-1], gradient[-1] / ridge)
    if len(rows) == 0:
        return scaled
    gram = (rows @ rows.T).astype(np.float64)  # (n_active, n_active)
    gram += np.outer(roots, roots).astype(np.float64) / ridge
    gram[np.diag_indices(len(rows))] += curvature
    right = (rows @ scaled[:-1].astype(precision)).astype(np.float64) + scaled[-1] * roots
    solution = solve_positive(gram, right, precision)
    return scaled - np.append(rows.T @ solution.astype(precision), roots @ solution / ridge)


def active_rows(features: Array, active: Array, sqrt_weights: Array | None) -> tuple[Array, Array]:
    """Return the active rows times the roots of their weights, and these roots."""
    rows = features[active]
    if sqrt_weights is None:
        return rows, np.ones(len(rows), dtype=rows.dtype)
    roots = sqrt_weights[active].astype(rows.dtype)
    return rows * roots[:, None], roots


def active_sums(rows: Array, roots: Array) -> tuple[Array, Array, float]:
    """Return the Gram matrix of :func:`active_rows`, their weighted sum and their weight."""
    totals = (roots[:, None] * rows).sum(axis=0, dtype=np.float64)
    return rows.T @ rows, totals, float(np.square(roots, dtype=np.float64).sum())


def intercept_ridge(total_weight: float, curvature: float) -> float:
    """Return a small ridge: the unpenalised intercept has no curvature when no row is active."""
    return 1e-6 * total_weight / curvature


def solve_hessian_of_sums(
    gram: Array,
    totals: Array,
    weight: float,
    curvature: float,
    total_weight: float,
    gradient: Array,
    precision: Any,
) -> Array:
    """Solve a linear system with the Hessian of :func:`active_sums`, in `precision`."""
    hessian = np.block([[gram, totals[:, None]], [totals, weight]])
    hessian /= curvature
    hessian[np.diag_indices(len(totals))] += 1
    hessian[-1, -1] += intercept_ridge(total_weight, curvature)
    return solve_positive(hessian, gradient, precision)


def solve_positive(matrix: Array, right: Array, precision: Any) -> Array:
    """Solve with a matrix that is positive definite up to rounding of its Gram part.

    With little smoothing the identity is below that rounding. The diagonal is then increased until
    the matrix is positive definite. This changes Newton's direction, not the optimum.
    """
    diagonal = np.diag(matrix).copy()
    rounding = float(np.finfo(precision).eps * diagonal.sum())
    for jitter in (0.0, 1e-2, 1.0, 1e2, 1e4):
        matrix[np.diag_indices(len(diagonal))] = diagonal + jitter * rounding
        try:
            # NumPy's, not SciPy's: each has its own BLAS threads, which compete for the cores.
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
    """Return the step in (0, 1] that minimises the smoothed objective along the direction."""
    linear, square = coef @ direction, direction @ direction
    low, high = (side[:, 0] for side in problem.box)
    weighted = change if problem.weights is None else change * problem.weights[:, 0]

    def slope(step: float) -> float:
        dual = problem.loss.best_dual(residuals + step * change, low, high, curvature)
        return float(linear + step * square + dual @ weighted)

    if slope(1.0) <= 0:
        return 1.0
    first, last = 0.0, 1.0
    for _ in range(MAX_BISECTIONS):
        middle = (first + last) / 2
        first, last = (middle, last) if slope(middle) < 0 else (first, middle)
    return last


def solve_tasks(
    features: Array, problem: DualProblem, tol: float, callback: Callable[[int], Any] | None = None
) -> tuple[Array, Array, float]:
    """Solve one linear model per task, each to a relative duality gap of `tol`.

    Returns the coefficients, of shape (n_tasks, n_features), the intercepts, and the largest gap,
    which is NaN if any gap is. `callback` is called with the number of tasks solved so far.
    """
    models = []
    for task in range(problem.n_tasks):
        models.append(solve_task(features, problem.task(task), tol))
        if callback is not None:
            callback(task + 1)
    coef = np.stack([model.coef for model in models])
    intercept = np.array([model.intercept for model in models])
    return coef, intercept, float(np.max([model.gap for model in models]))
