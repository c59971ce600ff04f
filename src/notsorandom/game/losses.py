"""Losses, each by what its dual may be and is paid."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from notsorandom.data.rows import Array


@dataclass(frozen=True)
class Loss:
    r"""A convex loss, given by a few numbers of its dual.

    The loss of a score `f` where the target is `t` is

    .. math:: \ell(t, f) = \max_{a \in B(t)} \; a (t - f) - \epsilon |a| - \tfrac c2 a^2,

    so that a machine with that loss has the dual

    .. math:: \max_a \; t^T a - \epsilon |a|_1 - \tfrac12 a^T K a - \tfrac c2 |a|^2
       \quad \text{s.t.} \quad a_i \in B(t_i), \; \mathbf 1^T a = 0.

    One-sided, the box `B` is [0, u] for the label 1 and [-u, 0] for -1, and the loss is one of the
    margin: the hinge for ``curvature=0``, the squared hinge for ``upper=inf``, a hinge with a
    rounded corner in between. Two-sided, it is [-u, u], and the loss one of the residual.

    Parameters
    ----------
    upper : float
        The box's side `u`; may be infinite if the curvature isn't zero.
    curvature : float
        `c`, the strong concavity of the dual.
    start : float
        The game starts at the targets times this, before projection.
    epsilon : float
        Residuals below cost nothing.
    one_sided : bool
    """

    upper: float
    curvature: float
    start: float
    epsilon: float = 0.0
    one_sided: bool = True

    def box(self, targets: Array) -> tuple[Array, Array]:
        """Least and largest dual variables, in the targets' shape and type."""
        side = targets.dtype.type(self.upper)
        if not self.one_sided:
            return np.full_like(targets, -side), np.full_like(targets, side)
        if math.isfinite(side):  # several times as fast as a choice
            return -side * (targets <= 0), side * (targets > 0)
        zero = targets.dtype.type(0)
        return np.where(targets > 0, zero, -side), np.where(targets > 0, side, zero)

    def slope(self, targets: Array, dual: Array, response: Array) -> Array:
        """Slope of the dual objective in each variable, a kernel having answered them."""
        slope = targets - response
        if self.epsilon:
            slope -= dual.dtype.type(self.epsilon) * np.sign(dual)
        if self.curvature:
            slope -= dual.dtype.type(self.curvature) * dual
        return slope

    def answer(self, residuals: Array, low: Array, high: Array, curvature: float | Array) -> Array:
        """The dual variables at which the loss's maximum is reached, for a positive curvature."""
        if self.epsilon:
            residuals = np.sign(residuals) * np.maximum(np.abs(residuals) - self.epsilon, 0)
        return np.clip(residuals / curvature, low, high)

    def values(self, residuals: Array, low: Array, high: Array) -> Array:
        """The loss of each sample."""
        if self.curvature:
            dual = self.answer(residuals, low, high, self.curvature)
            return dual * residuals - self.epsilon * np.abs(dual) - 0.5 * self.curvature * dual**2
        above = np.maximum(residuals - self.epsilon, 0)
        below = np.maximum(-residuals - self.epsilon, 0)
        # A residual of zero costs nothing, however long the box.
        return np.where(above > 0, high, 0) * above - np.where(below > 0, low, 0) * below


def hinge(C: float, epsilon: float = 0.0) -> Loss:
    """The l1-SVM: a loss of ``C * max(0, 1 - margin)``."""
    return Loss(upper=C, curvature=0.0, start=C / 2)


def squared_hinge(C: float, epsilon: float = 0.0) -> Loss:
    """The l2-SVM: a loss of ``C * max(0, 1 - margin) ** 2``."""
    return Loss(upper=math.inf, curvature=1 / (2 * C), start=C / 2)


def squared(C: float, epsilon: float = 0.0) -> Loss:
    """Ridge regression: a loss of ``C * residual ** 2``."""
    return Loss(upper=math.inf, curvature=1 / (2 * C), start=C, one_sided=False)


def epsilon_insensitive(C: float, epsilon: float = 0.1) -> Loss:
    """Support vector regression: a loss of ``C * max(0, abs(residual) - epsilon)``."""
    return Loss(upper=C, curvature=0.0, start=C / 2, epsilon=epsilon, one_sided=False)


MARGIN_LOSSES = ("hinge", "squared_hinge")
RESIDUAL_LOSSES = ("squared", "epsilon_insensitive")
LOSSES: dict[str, Callable[..., Loss]] = {
    "hinge": hinge,
    "squared_hinge": squared_hinge,
    "squared": squared,
    "epsilon_insensitive": epsilon_insensitive,
}
