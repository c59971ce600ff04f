"""Parts of Newton's method: a model and its gap, the linear system and line search of a step."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from notsorandom.data.rows import Array
from notsorandom.game import Loss

# Duality gaps may be negative by rounding to float32, but not more than this.
MAX_ROUNDING = 1e-2
# A step improves a model if the objective decreases by this share of the duality gap allowed, or if
# the gap is less than this times the smallest so far.
MIN_DECREASE, SMALLER_GAP = 1e-2, 0.9
# Rows that weigh less than this share of the mean are left out of Gram matrices.
LEAST_WEIGHT = 1e-8
# A line search ends where the slope is at most this share of the first slope, or after this many
# evaluations, which are enough for approximate solutions.
MAX_SLOPE, LINE_SEARCH_EVALUATIONS = 0.5, 8


def relative_gap(primal: float, dual: float) -> float:
    """Return the duality gap, relative to the primal value.

    It is not a number if it is more negative than rounding explains: something overflowed.
    """
    gap = (primal - dual) / max(primal, 1e-300)  # no division by zero
    return gap if gap >= -MAX_ROUNDING else math.nan


@dataclass(frozen=True)
class LinearModel:
    """A linear model of one task, with bounds on the optimum.

    `dual` has the feasible signed dual variables. `primal_value` and `dual_value` bound the optimum
    from above and below. The model minimises the objective with the loss smoothed to `curvature`.
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
        return relative_gap(self.primal_value, self.dual_value)


def better_of(*models: LinearModel) -> LinearModel:
    """Return the model with the smallest gap that is a number."""
    return min(models, key=lambda model: math.inf if math.isnan(model.gap) else model.gap)


def solve_hessian(
    features: Array,
    weights: Array,
    curvature: float,
    ridge: float,
    gradient: Array,
    sqrt_weights: Array | None = None,
) -> Array:
    r"""Solve a linear system with the Hessian of the smoothed objective.

    With :math:`\Phi` the rows of features times the roots of their weights and `D` the ridge, it is
    :math:`D + \Phi^T \Phi / c`, or, by Woodbury's identity, a system with
    :math:`c I + \Phi D^{-1} \Phi^T`. The smaller one is solved. `weights` are the result of
    `Loss.hessian_weights`. The last number of the gradient belongs to the intercept, and `ridge` is
    the intercept's ridge.
    """
    precision = features.dtype
    rows, roots = active_rows(features, weights, sqrt_weights)
    by_features = len(rows) >= features.shape[1]
    if not by_features:
        # By rows, the curvature is added to the Gram matrix and must exceed its rounding error.
        squares = float(np.square(rows, dtype=np.float64).sum())
        by_features = curvature < np.finfo(precision).eps * squares
    if by_features:
        sums = active_sums(rows, roots)
        return solve_hessian_of_sums(*sums, curvature, ridge, gradient, precision)
    scaled = np.append(gradient[:-1], gradient[-1] / ridge)
    if len(rows) == 0:
        return scaled
    gram = (rows @ rows.T).astype(np.float64)  # (n_active, n_active)
    gram += np.outer(roots, roots).astype(np.float64) / ridge
    gram[np.diag_indices(len(rows))] += curvature
    right = (rows @ scaled[:-1].astype(precision)).astype(np.float64) + scaled[-1] * roots
    solution = solve_positive(gram, right, precision)
    return scaled - np.append(rows.T @ solution.astype(precision), roots @ solution / ridge)


def active_rows(features: Array, weights: Array, sqrt_weights: Array | None) -> tuple[Array, Array]:
    """Return the active rows times the roots of their weights, and these roots.

    `weights` are the result of `Loss.hessian_weights`, and `sqrt_weights` the square roots of the
    sample weights.
    """
    least = LEAST_WEIGHT * weights.sum() / max(len(weights), 1)
    active = weights if weights.dtype == bool else weights > least
    rows = features if active.all() else features[active]
    roots = np.sqrt(weights[active].astype(rows.dtype))
    if sqrt_weights is not None:
        roots *= sqrt_weights[active].astype(rows.dtype)
    elif weights.dtype == bool:
        return rows, roots
    if rows is features:
        return rows * roots[:, None], roots
    rows *= roots[:, None]
    return rows, roots


def active_sums(rows: Array, roots: Array) -> tuple[Array, Array, float]:
    """Return the Gram matrix of :func:`active_rows`, their weighted sum and their weight."""
    return rows.T @ rows, roots @ rows, float(np.square(roots, dtype=np.float64).sum())


def intercept_ridge(total_weight: float, loss: Loss) -> float:
    """Return a small ridge: the unpenalised intercept has no curvature when no row is active.

    It is a millionth of the curvature with maximal smoothing and all rows active.
    """
    first = loss.smoothing_schedule()[0]
    return 1e-6 * total_weight / (max(first, 1.0) if loss.curvature else first)


def solve_hessian_of_sums(
    gram: Array,
    totals: Array,
    weight: float,
    curvature: float,
    ridge: float,
    gradient: Array,
    precision: Any,
) -> Array:
    """Solve a linear system with the Hessian of :func:`active_sums`, in `precision`."""
    hessian = np.block([[gram, totals[:, None]], [totals, weight]])
    hessian /= curvature
    hessian[np.diag_indices(len(totals))] += 1
    hessian[-1, -1] += ridge
    return solve_positive(hessian, gradient, precision)


def solve_positive(matrix: Array, right: Array, precision: Any) -> Array:
    """Solve with a matrix that is positive definite up to rounding of its Gram part.

    Where it is not, this changes Newton's direction, not the optimum.
    """
    factor = factorize(matrix, precision)
    if factor is None:
        return right / np.diag(matrix).sum()
    solution: Array = linalg.lapack.dpotrs(factor, right, lower=1)[0]
    return solution


def factorize(matrix: Array, precision: Any) -> Array | None:
    """Return the lower Cholesky factor of a matrix, or None if it has none.

    With little smoothing its ridge is smaller than the rounding of its Gram part to `precision`.
    The diagonal is then increased, in place, until the matrix is positive definite.
    """
    diagonal = np.diag(matrix).copy()
    rounding = float(np.finfo(precision).eps * diagonal.sum())
    for jitter in (0.0, 1e-2, 1.0, 1e2, 1e4):  # in units of the rounding error
        matrix[np.diag_indices(len(diagonal))] = diagonal + jitter * rounding
        # NumPy's, not SciPy's: each has its own BLAS threads, which compete for the cores.
        with suppress(np.linalg.LinAlgError):
            factor: Array = np.linalg.cholesky(matrix)
            return factor if np.isfinite(factor[-1]).all() else None
    matrix[np.diag_indices(len(diagonal))] = diagonal
    return None


def dots(left: Array, right: Array) -> Array:
    """Return inner products along the last axis."""
    return np.einsum("...i,...i->...", left, right)


def find_roots(
    function: Callable[[Array], Array],
    first: Array,
    last: Array,
    tol: Array,
    max_evaluations: int = LINE_SEARCH_EVALUATIONS,
) -> Array:
    """Return where increasing functions on [0, 1] have values of at most `tol`, up to the sign.

    `first` and `last` are their values at 0 and 1, of shape (n_functions,). By the false position
    method, where the value at an end that stays twice in a row is halved. After `max_evaluations`,
    the last points are returned.
    """
    left, right = np.zeros_like(first), np.ones_like(first)
    moved_right = np.zeros(len(first), dtype=int)
    roots = right
    for _ in range(max_evaluations):
        roots = left - first * (right - left) / (last - first)
        values = function(roots)
        if np.all(np.abs(values) <= tol):
            break
        above = values > 0
        first = np.where(above, np.where(moved_right == 1, first / 2, first), values)
        last = np.where(above, values, np.where(moved_right == -1, last / 2, last))
        left, right = np.where(above, left, roots), np.where(above, roots, right)
        moved_right = np.where(above, 1, -1)
    return roots
