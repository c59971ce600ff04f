"""The linear SVM at the end: Newton's method, to a stated duality gap."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import linalg

from notsorandom.game.losses import MarginLoss
from notsorandom.game.project import project
from notsorandom.rows import Array

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
class LinearSVM:
    """One linear SVM, and how well it is solved.

    Parameters
    ----------
    coef : ndarray of shape (n_features,)
    intercept : float
    dual : ndarray of shape (n_samples,)
        Feasible.
    primal_value, dual_value : float
        They bracket the optimum.
    """

    coef: Array
    intercept: float
    dual: Array
    primal_value: float
    dual_value: float

    @property
    def gap(self) -> float:
        """Duality gap, relative to the primal value."""
        return (self.primal_value - self.dual_value) / max(self.primal_value, 1e-300)


def solve_svm(features: Array, labels: Array, loss: MarginLoss, tol: float) -> LinearSVM:
    r"""Minimise :math:`\tfrac12 |w|^2 + \sum_i \ell(y_i (\langle w, \phi_i\rangle + b))`.

    The hinge is replaced by one with a rounded corner, whose minimum Newton's method finds in a
    few steps and whose dual variables are feasible for the hinge itself; the corner is sharpened
    until the duality gap of the hinge's own problem is at most `tol`. A step costs one product
    with the features, and a Gram matrix of the rows inside the corner alone.

    Parameters
    ----------
    features : ndarray of shape (n_samples, n_features)
    labels : ndarray of shape (n_samples,)
        Of +1 and -1, both present.
    loss : MarginLoss
    tol : float
        Largest relative duality gap.

    Returns
    -------
    LinearSVM
        With the smallest gap reached, if `tol` is beyond what float64 allows. Features in float32
        are taken to float64 where their own precision doesn't allow it.
    """
    n_samples, n_features = features.shape
    coef = np.zeros(n_features)
    intercept = 0.0
    margins = np.zeros(n_samples)
    best: LinearSVM | None = None
    for curvature in corners(loss):
        rounded = replace(loss, curvature=curvature)
        for _ in range(MAX_NEWTON):
            dual = rounded.dual_of(margins)
            signed = labels * dual
            gradient = np.append(coef - features.T @ signed.astype(features.dtype), -signed.sum())
            inside = (dual > 0) & (dual < rounded.upper)
            direction = -newton_solve(features[inside], curvature, n_samples, gradient)
            move = features @ direction[:-1].astype(features.dtype) + direction[-1]
            change = labels * move.astype(np.float64)
            step = line_search(rounded, coef, direction[:-1], margins, change)
            coef = coef + step * direction[:-1]
            intercept += step * direction[-1]
            margins = margins + step * change
            # What the primal can still fall, the dual still rise, and its balance still cost.
            left = max(
                -float(gradient @ direction),
                float(gradient[:-1] @ gradient[:-1]),
                abs(gradient[-1] * intercept),
            )
            # A corner that is still too round costs more than the last steps on it would gain.
            rounding = 0.5 * (curvature - loss.curvature) * float(dual[inside] @ dual[inside])
            allowed = max(SLACK * tol * (0.5 * coef @ coef + loss.loss(margins)), rounding)
            if left <= allowed:
                break
        # Margins anew, free of what the updates rounded; then the gap of the loss itself.
        margins = labels * (features @ coef.astype(features.dtype) + intercept).astype(np.float64)
        dual = project(rounded.dual_of(margins)[:, None], labels[:, None], loss.upper)[:, 0]
        alignment = features.T @ (labels * dual).astype(features.dtype)
        solution = LinearSVM(
            coef=coef,
            intercept=intercept,
            dual=dual,
            primal_value=0.5 * float(coef @ coef) + loss.loss(margins),
            dual_value=loss.objective(dual, float(np.square(alignment, dtype=np.float64).sum())),
        )
        if best is None or not best.gap <= solution.gap:
            best = solution
        if best.gap <= tol:
            break
    assert best is not None
    if not best.gap <= tol and features.dtype != np.float64:
        return solve_svm(features.astype(np.float64), labels.astype(np.float64), loss, tol)
    return best


def corners(loss: MarginLoss) -> list[float]:
    """Curvatures to go through, from one that Newton's method solves from afar to the loss's own.

    The hinge's are as many as it takes. The squared hinge's own is its last.
    """
    if not loss.curvature:
        return [width / loss.upper for width in WIDTHS]
    n_before = max(0, math.ceil(-math.log10(loss.curvature)))
    return [loss.curvature * 10.0**power for power in range(n_before, -1, -1)]


def newton_solve(corner: Array, curvature: float, n_samples: int, gradient: Array) -> Array:
    r"""Solve with the Hessian: a ridge plus the corner's Gram matrix over the curvature.

    It is as large as there are features, :math:`D + \Phi^T \Phi / c`, or, by Woodbury's identity,
    as there are rows in the corner, :math:`c I + \Phi D^{-1} \Phi^T`: whichever is less.
    """
    n_features = corner.shape[1]
    # The intercept isn't regularised: with nobody in the corner it would have no curvature at all.
    intercept_ridge = 1e-6 * n_samples / curvature
    squares = float(np.square(corner, dtype=np.float64).sum())
    # By rows the curvature stands beside the Gram matrix, and mustn't be lost in its rounding.
    if len(corner) >= n_features or curvature < np.finfo(corner.dtype).eps * squares:
        hessian = np.empty((n_features + 1, n_features + 1))
        hessian[:-1, :-1] = corner.T @ corner
        hessian[-1, :-1] = hessian[:-1, -1] = corner.sum(axis=0, dtype=np.float64)
        hessian[-1, -1] = len(corner)
        hessian /= curvature
        hessian[np.diag_indices(n_features)] += 1
        hessian[-1, -1] += intercept_ridge
        return solve_positive(hessian, gradient, corner.dtype)
    scaled = np.append(gradient[:-1], gradient[-1] / intercept_ridge)
    gram = (corner @ corner.T).astype(np.float64)  # (n_corner, n_corner)
    gram += 1 / intercept_ridge
    gram[np.diag_indices(len(corner))] += curvature
    right = (corner @ scaled[:-1].astype(corner.dtype)).astype(np.float64) + scaled[-1]
    pull = solve_positive(gram, right, corner.dtype)
    return scaled - np.append(corner.T @ pull.astype(corner.dtype), pull.sum() / intercept_ridge)


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
            factor = linalg.cho_factor(matrix, check_finite=False)
        except linalg.LinAlgError:
            continue
        return linalg.cho_solve(factor, right, check_finite=False)
    return right / diagonal.sum()


def line_search(
    loss: MarginLoss, coef: Array, direction: Array, margins: Array, change: Array
) -> float:
    """Where the objective along the direction is lowest, between 0 and 1."""
    linear, square = coef @ direction, direction @ direction

    def slope(step: float) -> float:
        return float(linear + step * square - loss.dual_of(margins + step * change) @ change)

    if slope(1.0) <= 0:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(LINE_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    return high


def one_versus_rest(
    features: Array,
    labels: Array,
    loss: MarginLoss,
    tol: float,
    watch: Callable[[int], Any] | None = None,
) -> tuple[Array, Array, float]:
    """Solve one SVM a column of `labels`.

    Returns
    -------
    coef : ndarray of shape (n_tasks, n_features)
    intercept : ndarray of shape (n_tasks,)
    gap : float
        The largest of the relative duality gaps.
    """
    machines = []
    for task in range(labels.shape[1]):
        machines.append(solve_svm(features, labels[:, task], loss, tol))
        if watch is not None:
            watch(task + 1)
    coef = np.stack([machine.coef for machine in machines])
    intercept = np.array([machine.intercept for machine in machines])
    return coef, intercept, max(machine.gap for machine in machines)


def decide(features: Array, coef: Array, intercept: Array) -> Array:
    """Decision values of shape (n_samples, n_tasks), in the features' type."""
    return features @ coef.T.astype(features.dtype) + intercept.astype(features.dtype)
