"""Bounds on the value of the game, and what they imply for a learned kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from notsorandom.data.rows import Array
from notsorandom.game.problem import Problem
from notsorandom.spaces import Supremum

# If fewer ascents, or a smaller share of them, end at the highest peak, an estimate is doubtful.
LEAST_AGREEING, LEAST_AGREEING_SHARE = 2, 0.02
# Multiples of a dual point whose lower bounds are compared. For a quadratic dual, the first one's
# bound is the best; powers of two don't change it by rounding.
MULTIPLES = 0.5 ** np.arange(12)


@dataclass(frozen=True)
class Certificate:
    r"""Bounds on how far a learned kernel is from the best kernel of its bandwidth.

    The SVM objective of the best kernel is the value of the game,
    :math:`\min_\lambda \max_\alpha F(\alpha, \lambda)`. The SVM on any kernel gives an upper bound.
    Any dual point :math:`\alpha` gives a lower bound, :math:`\min_\lambda F(\alpha, \lambda)`,
    which follows from the highest peak of its potential.

    Parameters
    ----------
    upper : float
        Upper bound on the value of the game: the primal objective of the SVM on the learned kernel.
    upper_dual : float
        Dual objective of that SVM; its distance from `upper` is the SVM's own duality gap.
    lower : float
        Lower bound on the value of the game; an estimate unless `certified`.
    source : str
        Name of the dual point that gave `lower`.
    certified : bool
        Whether the highest peak is bounded or known exactly. Otherwise `lower` relies on the
        highest peak that searches found.
    bandwidth : float
        Longest frequency of the kernels that the learned one is compared with.
    regret : float
        Average regret of the dual player per play: how much more the best single dual point would
        have earned against the same kernels. NaN if no game was played on these samples.
    regret_bound : float
        Bound of the theorem on `regret`, for the step sizes that were used. Infinite where there is
        no theorem: for a space whose kernels have no bound, and for alternating projections.
    generalization : float
        Bound on the error rate on new samples, with probability 95 %. For two classes; NaN if
        there are more, or for a space without such a bound.
    sample_size : float
        Number of samples with which the potential of the labels is everywhere within a tenth of its
        largest value from the potential of the distribution, with probability 95 %, for a bandwidth
        that doesn't depend on the samples. NaN where there is no theorem: for real targets, several
        classes, sample weights, and on the sphere.
    is_svm : bool
        Whether the loss is zero beyond a margin.
    precision : float
        Share by which the bound on the highest peak exceeds the highest one found, for the dual
        point that gave `lower`; infinite unless `certified`.
    n_ascents, n_agreeing : int
        Independent ascents per search for the highest peak, and how many of them ended within 1 %
        of it, for the dual point with the fewest; 0 where all frequencies are evaluated. If few
        agree, there may be higher peaks, and an estimated `lower` may be too high.
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
    is_svm: bool = True
    precision: float = 0.0
    n_ascents: int = 0
    n_agreeing: int = 0

    @property
    def gap(self) -> float:
        """Difference of the bounds."""
        return self.upper - self.lower

    @property
    def relative_gap(self) -> float:
        """Difference of the bounds, as a share of the upper one."""
        return self.gap / self.upper if self.upper > 0 else 0.0

    @property
    def excess(self) -> float:
        """Difference of the bounds, as a share of the lower one."""
        if not self.lower > 0:
            return math.inf if self.upper > 0 else 0.0
        return self.gap / self.lower

    @property
    def sentence(self) -> str:
        """What the certificate says, in one plain sentence."""
        is_guess = not self.certified and self.n_ascents > 0 and not self.n_agreeing
        if math.isinf(self.excess) or is_guess:
            text = "Nothing is known about how far the model is from the best kernel of this kind"
            if is_guess:
                text += f": none of {self.n_ascents} searches agree on the highest peak"
        else:
            what = "SVM" if self.is_svm else "training"
            text = f"The {what} objective is at most {at_most(self.excess)} the least that any "
            text += "kernel of this kind can have"
            if not self.certified:
                text += f" (estimated{self._doubt or ', not proven'})"
        if math.isnan(self.generalization):
            return f"{text}."
        if self.generalization < 1:
            return (
                f"{text}; on new samples at most {self.generalization:.1%} are wrong (95 % sure)."
            )
        return f"{text}; the bound on the error says nothing at this sample size."

    @property
    def _doubt(self) -> str:
        """What to say if almost no ascent agrees with the highest peak; empty otherwise."""
        least = max(LEAST_AGREEING, LEAST_AGREEING_SHARE * self.n_ascents)
        if not self.n_ascents or self.n_agreeing >= least:
            return ""
        few = f"only {self.n_agreeing} of {self.n_ascents} searches agree"
        return f"; {few}, so it may be far from the truth"

    @property
    def _peak(self) -> str:
        """How well the highest peak is known; empty if exactly."""
        if self.certified:
            return f"within {self.precision:.2g} of its bound" if self.precision > 0 else ""
        if not self.n_ascents:
            return ""
        found = f"by {self.n_agreeing} of {self.n_ascents} independent ascents"
        return found + (", so there may be far higher ones" if self._doubt else "")

    def __repr__(self) -> str:
        kind = "certified" if self.certified else "estimated"
        error = f"{self.generalization:.3g}"
        allowed = f"{self.regret_bound:.3g}" if math.isfinite(self.regret_bound) else "none"
        if not self.generalization < 1:  # it bounds a probability
            error = "unknown" if math.isnan(self.generalization) else f"vacuous ({error})"
        samples = "unknown" if math.isnan(self.sample_size) else f"{self.sample_size:.3g}"
        lines = [
            f"Certificate ({kind})",
            f"  upper bound       {self.upper:.6g}  (the model; its dual {self.upper_dual:.6g})",
            f"  lower bound       {self.lower:.6g}  ({kind}, by {self.source})",
            f"  gap               {self.gap:.3g}  ({self.relative_gap:.2%} of the upper bound)",
            f"  bandwidth         {self.bandwidth:.4g}",
            f"  regret per play   {self.regret:.4g}  (bound: {allowed})",
            f"  error bound       {error}",
            f"  sample size       {samples}",
            f"  highest peak      {self._peak}",
            self.sentence,
        ]
        if math.isnan(self.regret):
            lines = [line for line in lines if "regret" not in line]
        if not self._peak:
            lines = [line for line in lines if "highest peak" not in line]
        if not self.is_svm and math.isnan(self.generalization):
            lines = [line for line in lines if "error bound" not in line]
        return "\n".join(lines)


def at_most(excess: float) -> str:
    """Return words for a share by which something is exceeded at most, rounded up."""
    if excess >= 1:
        return f"{math.ceil(10 * (1 + excess)) / 10:,.1f} times"
    digits = 1 - math.floor(math.log10(100 * excess)) if excess > 0 else 0
    return f"{math.ceil(100 * excess * 10.0**digits) / 10.0**digits:.3g} % above"


def lower_bound(
    problem: Problem, candidates: Sequence[tuple[str, Array, Supremum]]
) -> tuple[float, str, Supremum]:
    """Return the best lower bound of some dual points, the point's name, and its highest peak.

    Certified bounds are preferred to estimated ones, which may be too high.
    """

    def bound(dual: Array, supremum: Supremum) -> float:
        highest = supremum.bound if supremum.certified else supremum.reached
        return max(
            problem.stats(multiple * dual).best_scaled_objective(multiple**2 * highest)
            for multiple in MULTIPLES
        )

    bounds = [(bound(dual, supremum), name, supremum) for name, dual, supremum in candidates]
    return max(bounds, key=lambda each: (each[2].certified, each[0]))


def regret_bound(problem: Problem, bound: float, plays: Array, steps: Array) -> float:
    r"""Bound the average regret of projected gradient ascent, for the step sizes that were used.

    With step sizes :math:`\eta_t` per play, rounds of :math:`p_t` plays, gradients of norm at most
    `G`, a feasible set of diameter `D`, and objectives of strong concavity `c`, the total regret of
    all plays is at most

    .. math:: \tfrac12 D^2 \sum_t \max(0, \tfrac{1}{\eta_t} - \tfrac{1}{\eta_{t-1}} - c p_t)
       + \tfrac12 G^2 \sum_t \eta_t p_t^2, \qquad \tfrac{1}{\eta_0} = 0.

    At :math:`\eta_t = D / (G \sqrt t)` this is the theorem's :math:`\tfrac32 G D \sqrt T`, and at
    :math:`\eta_t = 1 / (c t)` it is :math:`\tfrac{G^2}{2 c} (1 + \log T)`. `bound` is the
    largest value of a kernel. A loss whose slope is one of a nearby objective adds its distance.
    """
    if not math.isfinite(bound):
        return math.inf
    diameter, gradient = problem.diameter_and_gradient(bound)
    slower = np.maximum(np.diff(1 / steps, prepend=0.0) - problem.loss.curvature * plays, 0).sum()
    total = diameter**2 * float(slower) + gradient**2 * float(steps @ plays**2)
    error = problem.loss.slope_error * problem.total_weight * problem.n_tasks
    return 0.5 * total / float(plays.sum()) + error


def margin_bound(
    margins: Array,
    complexity: float,
    kernel_bound: float,
    share: float = 1.0,
    delta: float = 0.05,
    counts: Array | None = None,
) -> float:
    r"""Bound the error by the margins of a decision function of norm one with an intercept.

    .. math:: \min_\theta \; \tfrac1n \#\{i : m_i \le \theta\} + \tfrac{4}{\theta} \left(\mathcal R
       + \frac{\sqrt k + 1}{\sqrt n}\right) + \sqrt{\tfrac{\log \log_2 (2 / \theta)}{n}}
       + 3 \sqrt{\tfrac{\log (4 / (s \delta))}{2 n}}

    for :math:`0 < \theta \le 1`, with the empirical Rademacher complexity :math:`\mathcal R` of the
    functions without intercept (Koltchinskii and Panchenko, 2002; with these constants, Mohri,
    Rostamizadeh and Talwalkar, Foundations of Machine Learning, Theorem 5.9). The factor 4 instead
    of 2, and the third term, account for choosing :math:`\theta` from the samples. Without its
    intercept the function is at most :math:`\sqrt k`, so intercepts beyond :math:`\sqrt k + 1` are
    as good as that one, and their complexity is at most :math:`(\sqrt k + 1) / \sqrt n`.

    Parameters
    ----------
    margins : ndarray of shape (n_samples,)
    complexity : float
    kernel_bound : float
        `k`, the largest value of a kernel.
    share : float
        `s`, the share of the probability of failure that is reserved for this class of kernels.
    delta : float
        The probability that the bound fails.
    counts : ndarray of shape (n_samples,), optional
        Numbers of samples that the margins stand for.
    """
    counts = np.ones(len(margins)) if counts is None else counts
    n_samples = float(counts.sum())
    complexity += (math.sqrt(kernel_bound) + 1) / math.sqrt(n_samples)
    order = np.argsort(margins)
    ordered, sums = margins[order], np.append(0.0, np.cumsum(counts[order]))
    # All smaller thresholds have the share of a margin, and terms as near to its as one likes.
    theta = np.unique(np.clip(ordered[ordered > 0], 0, 1))
    below = sums[np.searchsorted(ordered, theta)] / n_samples
    choice = np.sqrt(np.log(np.maximum(np.log2(2 / theta), 1)) / n_samples)
    best = float((below + 4 * complexity / theta + choice).min(initial=math.inf))
    return best + 3 * math.sqrt(math.log(4 / (share * delta)) / (2 * n_samples))
