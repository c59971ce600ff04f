"""The dual player's side of the game: what it may play, and what it is paid."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from notsorandom.rows import Array


@dataclass(frozen=True)
class MarginLoss:
    r"""A soft-margin SVM, given by two numbers of its dual.

    .. math:: \max_\alpha \; \mathbf 1^T \alpha - \tfrac12 \alpha^T Y K Y \alpha
       - \tfrac{c}{2} |\alpha|^2 \quad \text{s.t.} \quad 0 \le \alpha \le u, \; y^T \alpha = 0

    is the dual of an SVM whose loss at margin `z` is
    :math:`\max_{0 \le a \le u} a (1 - z) - c a^2 / 2`: the hinge for ``curvature=0``, the squared
    hinge for ``upper=inf``, and a hinge with a rounded corner in between.

    Parameters
    ----------
    upper : float
        The box's side `u`; may be infinite.
    curvature : float
        `c`, the strong concavity of the dual.
    start : float
        Where the game starts every dual variable, before projection.
    """

    upper: float
    curvature: float
    start: float

    def dual_of(self, margins: Array) -> Array:
        """The dual variables at which the loss's maximum is reached (for ``curvature > 0``)."""
        return np.clip((1 - margins) / self.curvature, 0, self.upper)

    def loss(self, margins: Array) -> float:
        """The loss, summed over the samples, in float64."""
        short = np.maximum(1 - margins, 0).astype(np.float64)
        if self.curvature == 0:
            return float(self.upper * short.sum())
        dual = np.minimum(short / self.curvature, self.upper)
        return float((dual * short - 0.5 * self.curvature * dual**2).sum())

    def objective(self, dual: Array, potential: float) -> float:
        r"""The dual objective where :math:`\alpha^T Y K Y \alpha` is `potential`."""
        total = dual.sum(dtype=np.float64) - 0.5 * potential
        if self.curvature:
            total -= 0.5 * self.curvature * np.square(dual, dtype=np.float64).sum()
        return float(total)

    def gradient(self, dual: Array, labels: Array, response: Array) -> Array:
        """Gradient of the dual objective.

        Parameters
        ----------
        dual, labels : ndarrays of shape (n_samples, n_tasks)
        response : ndarray of shape (n_samples, n_tasks)
            The kernel's Gram matrix times the measure ``dual * labels``.
        """
        slope = 1 - labels * response
        if self.curvature:
            slope -= dual.dtype.type(self.curvature) * dual
        return slope

    def radius(self, n_samples: int) -> float:
        r"""A ball around zero that holds every maximiser, of any kernel.

        The box has :math:`u \sqrt n`. Without one, the objective of a maximiser is not below that
        of 0, so :math:`\tfrac c2 |\alpha|^2 \le \mathbf 1^T \alpha \le \sqrt n |\alpha|`.
        """
        if math.isfinite(self.upper):
            return self.upper * math.sqrt(n_samples)
        return 2 / self.curvature * math.sqrt(n_samples)

    def theory_rate(self, round_: int, n_samples: int, bound: float) -> float:
        r"""Step size of the regret bound, times `n_samples` (the unit of ``learning_rate``).

        Online gradient ascent over a set of diameter `D` with gradients of at most `G` has its
        regret bound of :math:`\tfrac32 G D \sqrt T` at :math:`\eta_t = D / (G \sqrt t)`; with a
        dual of strong concavity `c`, the bound is logarithmic at :math:`\eta_t = 1 / (c t)`.
        Here :math:`D = u \sqrt n` and, since a kernel bounded by `bound` answers a measure of mass
        :math:`u n` with at most that times `bound`, :math:`G = (1 + u n \cdot bound) \sqrt n`.
        """
        if self.curvature:
            return n_samples / (self.curvature * round_)
        gradient = (1 + self.upper * n_samples * bound) * math.sqrt(n_samples)
        return n_samples * self.radius(n_samples) / (gradient * math.sqrt(round_))

    def steepest(self, n_samples: int, n_tasks: int, bound: float) -> tuple[float, float]:
        r"""Diameter `D` of the dual's set, and a bound `G` on its gradients.

        A measure within the radius `r` has a mass of at most :math:`r \sqrt n`, which a kernel of
        at most `bound` answers with that times `bound`.
        """
        radius = self.radius(n_samples)
        response = bound * radius * math.sqrt(n_samples)
        gradient = math.sqrt(n_samples) * (1 + response) + self.curvature * radius
        diameter = radius if math.isfinite(self.upper) else math.sqrt(2) * radius
        return diameter * math.sqrt(n_tasks), gradient * math.sqrt(n_tasks)

    def shares(self, dual: Array) -> tuple[float, float]:
        """Shares of the dual variables at 0 and at the upper end of the box."""
        return float(np.mean(dual <= 0)), float(np.mean(dual >= self.upper))


def hinge(C: float) -> MarginLoss:
    """The l1-SVM: a loss of ``C * max(0, 1 - margin)``."""
    return MarginLoss(upper=C, curvature=0.0, start=C / 2)


def squared_hinge(C: float) -> MarginLoss:
    """The l2-SVM: a loss of ``C * max(0, 1 - margin) ** 2``."""
    return MarginLoss(upper=math.inf, curvature=1 / (2 * C), start=C / 2)


LOSSES: dict[str, Callable[[Any], MarginLoss]] = {"hinge": hinge, "squared_hinge": squared_hinge}
