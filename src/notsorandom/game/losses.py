"""Convex losses, each defined by its dual."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from notsorandom.data.rows import Array


@dataclass(frozen=True)
class Loss:
    r"""A convex loss, defined by the parameters of its dual.

    The loss of a score `f` with target `t` is

    .. math:: \ell(t, f) = \max_{a \in B(t)} \; a (t - f) - \epsilon |a| - \tfrac c2 a^2,

    so a linear model with that loss has the dual

    .. math:: \max_a \; t^T a - \epsilon |a|_1 - \tfrac12 a^T K a - \tfrac c2 |a|^2
       \quad \text{s.t.} \quad a_i \in B(t_i), \; \mathbf 1^T a = 0.

    For classification (one-sided), the box `B` is [0, u] for the label 1 and [-u, 0] for -1: the
    loss is the hinge for ``curvature=0``, the squared hinge for ``upper=inf``, and a smoothed hinge
    otherwise. For regression (two-sided), the box is [-u, u].

    Parameters
    ----------
    upper : float
        Side `u` of the box; may be infinite if the curvature is positive.
    curvature : float
        `c`, the strong concavity of the dual.
    start : float
        The game starts at the projection of the targets times this number.
    epsilon : float
        Residuals of smaller absolute value have no loss.
    one_sided : bool
        Whether the loss is one of classification.
    """

    upper: float
    curvature: float
    start: float
    epsilon: float = 0.0
    one_sided: bool = True

    def box(self, targets: Array) -> tuple[Array, Array]:
        """Return the limits of the dual variables, in the shape and type of the targets."""
        side = targets.dtype.type(self.upper)
        if not self.one_sided:
            return np.full_like(targets, -side), np.full_like(targets, side)
        if math.isfinite(side):  # several times as fast as np.where
            return -side * (targets <= 0), side * (targets > 0)
        zero = targets.dtype.type(0)
        return np.where(targets > 0, zero, -side), np.where(targets > 0, side, zero)

    def slope(self, targets: Array, dual: Array, response: Array) -> Array:
        """Return the gradient of the dual objective; `response` is the Gram matrix times `dual`."""
        slope = targets - response
        if self.epsilon:
            slope -= dual.dtype.type(self.epsilon) * np.sign(dual)
        if self.curvature:
            slope -= dual.dtype.type(self.curvature) * dual
        return slope

    def best_dual(
        self, residuals: Array, low: Array, high: Array, curvature: float | Array
    ) -> Array:
        """Return the dual variables that attain the maximum in the definition of the loss.

        `curvature` must be positive; it replaces that of the loss.
        """
        if self.epsilon:
            residuals = np.sign(residuals) * np.maximum(np.abs(residuals) - self.epsilon, 0)
        return np.minimum(np.maximum(residuals / curvature, low), high)  # faster than np.clip

    def values(self, residuals: Array, low: Array, high: Array) -> Array:
        """Return the loss of each sample."""
        if self.curvature:
            dual = self.best_dual(residuals, low, high, self.curvature)
            return dual * residuals - self.epsilon * np.abs(dual) - 0.5 * self.curvature * dual**2
        above = np.maximum(residuals - self.epsilon, 0)
        below = np.maximum(-residuals - self.epsilon, 0)
        # np.where avoids inf * 0 where the box is infinite and the residual zero.
        return np.where(above > 0, high, 0) * above - np.where(below > 0, low, 0) * below


def hinge(C: float, epsilon: float = 0.0) -> Loss:
    """Return the loss ``C * max(0, 1 - margin)`` of the l1-SVM."""
    return Loss(upper=C, curvature=0.0, start=C / 2)


def squared_hinge(C: float, epsilon: float = 0.0) -> Loss:
    """Return the loss ``C * max(0, 1 - margin) ** 2`` of the l2-SVM."""
    return Loss(upper=math.inf, curvature=1 / (2 * C), start=C / 2)


def squared(C: float, epsilon: float = 0.0) -> Loss:
    """Return the loss ``C * residual ** 2`` of ridge regression."""
    return Loss(upper=math.inf, curvature=1 / (2 * C), start=C, one_sided=False)


def epsilon_insensitive(C: float, epsilon: float = 0.1) -> Loss:
    """Return the loss ``C * max(0, abs(residual) - epsilon)`` of support vector regression."""
    return Loss(upper=C, curvature=0.0, start=C / 2, epsilon=epsilon, one_sided=False)


CLASSIFICATION_LOSSES = ("hinge", "squared_hinge")
REGRESSION_LOSSES = ("squared", "epsilon_insensitive")
LOSSES: dict[str, Callable[..., Loss]] = {
    "hinge": hinge,
    "squared_hinge": squared_hinge,
    "squared": squared,
    "epsilon_insensitive": epsilon_insensitive,
}
