"""How good a kernel is: bounds on the value of the game, and what follows from them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from notsorandom.data.rows import Array
from notsorandom.game.dual import DualProblem
from notsorandom.spaces import Supremum

# A bound on a probability that isn't below one says nothing.
VACUOUS = 1.0


@dataclass(frozen=True)
class Certificate:
    r"""How far a learned kernel is from the best one of its kind.

    The best kernel's SVM objective is the value of the game,
    :math:`\min_\lambda \max_\alpha F(\alpha, \lambda)`. Any kernel bounds it from above, by its own
    SVM, and any dual point :math:`\alpha` from below, by :math:`\min_\lambda F(\alpha, \lambda)`,
    which the highest peak of its potential gives.

    Parameters
    ----------
    upper : float
        Primal value of the SVM on the learned kernel: the value is not above it.
    upper_dual : float
        Its dual value: how well the SVM itself is solved.
    lower : float
        The value is not below it, if `certified`.
    source : str
        The dual point that gave `lower`.
    certified : bool
        Whether the highest peak is bounded, or known exactly; otherwise `lower` rests on the
        highest that was found.
    bandwidth : float
        The kernels meant have no frequencies beyond.
    regret : float
        How much more a play the best single dual point would have earned than the dual player did,
        against the kernels it met. NaN where no game was played on these samples.
    regret_bound : float
        What the theorem allows for the steps that were taken; infinite for a space whose kernels
        have no bound.
    generalization : float
        With probability 95 %, a new sample is on the wrong side no more often than this. For two
        classes; NaN if there are more, or for a space without such a bound.
    sample_size : float
        Samples that the potential's concentration asks for, to be within a tenth of its largest
        value everywhere with probability 95 %; NaN where there is no theorem.
    has_margin : bool
        Whether the loss is one of the margin.
    """

    upper: float
    upper_dual: float
    lower: float
    source: str
    certified: bool
    bandwidth: float
    regret: float
    regret_bound: float
    generalization: float
    sample_size: float
    has_margin: bool = True

    @property
    def gap(self) -> float:
        """Distance of the bounds."""
        return self.upper - self.lower

    @property
    def relative_gap(self) -> float:
        """Distance of the bounds, as a share of the upper."""
        return self.gap / self.upper if self.upper > 0 else 0.0

    @property
    def margin(self) -> float:
        """The margin that would have this objective if no sample were inside it."""
        if not self.has_margin:
            return math.nan
        return 1 / math.sqrt(2 * self.upper) if self.upper > 0 else math.inf

    @property
    def competitive_ratio(self) -> float:
        """The margin is at least this share of the best kernel's, if `certified`."""
        return math.sqrt(max(self.lower, 0.0) / self.upper) if self.upper > 0 else 1.0

    def __repr__(self) -> str:
        kind = "certified" if self.certified else "estimated"
        error = f"{self.generalization:.3g}"
        allowed = f"{self.regret_bound:.3g}" if math.isfinite(self.regret_bound) else "any"
        if not self.generalization < VACUOUS:
            error = "unknown" if math.isnan(self.generalization) else f"vacuous ({error})"
        samples = "unknown" if math.isnan(self.sample_size) else f"{self.sample_size:.3g}"
        lines = [
            f"Certificate ({kind})",
            f"  upper bound       {self.upper:.6g}  (the model; its dual {self.upper_dual:.6g})",
            f"  lower bound       {self.lower:.6g}  ({kind}, by {self.source})",
            f"  gap               {self.gap:.3g}  ({self.relative_gap:.2%} of the upper bound)",
            f"  margin            {self.margin:.4g}  "
            f"(at least {self.competitive_ratio:.2%} of the best kernel's, {kind})",
            f"  bandwidth         {self.bandwidth:.4g}",
            f"  regret a play     {self.regret:.4g}  (the theorem allows {allowed})",
            f"  error bound       {error}",
            f"  samples to see v  {samples}",
        ]
        if not self.has_margin:
            lines = [line for line in lines if "margin" not in line and "error bound" not in line]
        return "\n".join(lines)


def lower_bound(
    problem: DualProblem, candidates: Sequence[tuple[str, Array, Supremum]]
) -> tuple[float, str, bool]:
    """Return the best lower bound of some dual points, whose it is, and whether it is certified.

    Certified bounds come before estimated ones, which may be too high.
    """
    bounds = [
        (
            supremum.certified,
            problem.stats(dual).best_scaled_objective(
                supremum.bound if supremum.certified else supremum.reached
            ),
            name,
        )
        for name, dual, supremum in candidates
    ]
    certified, value, name = max(bounds, key=lambda bound: bound[:2])
    return value, name, certified


def regret_bound(problem: DualProblem, bound: float, plays: Array, steps: Array) -> float:
    r"""Largest average regret of projected gradient ascent, for the steps that were taken.

    With steps :math:`\eta_t` a play, rounds of :math:`p_t` plays, gradients of at most `G` over
    a set of diameter `D`, and objectives of strong concavity `c`, all plays together regret at most

    .. math:: \tfrac12 D^2 \sum_t \max(0, \tfrac{1}{\eta_t} - \tfrac{1}{\eta_{t-1}} - c p_t)
       + \tfrac12 G^2 \sum_t \eta_t p_t^2, \qquad \tfrac{1}{\eta_0} = 0.

    At :math:`\eta_t = D / (G \sqrt t)` this is the theorem's :math:`\tfrac32 G D \sqrt T`, and at
    :math:`\eta_t = 1 / (c t)` it is :math:`\tfrac{G^2}{2 c} (1 + \log T)`.

    Parameters
    ----------
    problem : DualProblem
    bound : float
        The largest value of a kernel.
    plays, steps : ndarrays of shape (n_rounds,)
    """
    if not math.isfinite(bound):
        return math.inf
    diameter, gradient = problem.diameter_and_gradient(bound)
    slower = np.maximum(np.diff(1 / steps, prepend=0.0) - problem.loss.curvature * plays, 0).sum()
    total = diameter**2 * float(slower) + gradient**2 * float(steps @ plays**2)
    return 0.5 * total / float(plays.sum())


def margin_bound(
    margins: Array, complexity: float, delta: float = 0.05, counts: Array | None = None
) -> float:
    r"""Bound the error by the margins of a unit-norm decision function.

    .. math:: \min_\theta \; \tfrac1n \#\{i : m_i \le \theta\} + \tfrac{2}{\theta} \mathcal R
       + \sqrt{\tfrac{\log \log_2 (2 / \theta)}{n}} + 3 \sqrt{\tfrac{\log (2 / \delta)}{n}}

    with the Rademacher complexity :math:`\mathcal R`. The third term pays for choosing
    :math:`\theta` after having seen the samples. Each margin may be that of several samples,
    `counts` of them.
    """
    counts = np.ones(len(margins)) if counts is None else counts
    n_samples = float(counts.sum())
    best = math.inf
    for theta in np.unique(np.clip(margins, 0, 1)):
        if theta > 0:
            below = float(np.average(margins < theta, weights=counts))
            choice = math.sqrt(math.log(max(math.log2(2 / theta), 1)) / n_samples)
            best = min(best, below + 2 * complexity / theta + choice)
    return best + 3 * math.sqrt(math.log(2 / delta) / n_samples)
