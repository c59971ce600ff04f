"""Convex losses, each defined by its dual."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit

from notsorandom._utils.parameters import MAX_NUMBER, check_flag, check_number
from notsorandom.data.rows import Array

# The entropy's slope, which is infinite at the limits of the box, is evaluated at probabilities
# clipped to this distance from 0 and 1.
LEAST_PROBABILITY = 1e-6
# Smaller relative differences of curvatures come from rounding to float32.
SAME_CURVATURE = 1e-5
# Newton's method for `LogisticLoss.best_dual` takes about log(curvature * C) steps.
MAX_LOGIT_STEPS = 100


@dataclass(frozen=True)
class Loss(ABC):
    r"""A convex loss, defined by its dual.

    The loss of a score `f` with target `t` is

    .. math:: \ell(t, f) = \max_{a \in B(t)} \; a (t - f) + h(a) - \tfrac c2 a^2,

    where `h` is concave and zero at zero. So a linear model with that loss has the dual

    .. math:: \max_a \; t^T a + \sum_i h(a_i) - \tfrac12 a^T K a - \tfrac c2 |a|^2
       \quad \text{s.t.} \quad a_i \in B(t_i), \; \mathbf 1^T a = 0.

    Parameters
    ----------
    upper : float
        Side `u` of the box `B`, which is [0, u] for the label 1 and [-u, 0] for -1 in
        classification (one-sided), and [-u, u] in regression (two-sided). May be infinite if the
        curvature is positive.
    curvature : float
        `c`, the strong concavity of the dual.
    start : float
        The game starts at the projection of the targets, in the unit of `C`, times this number.
    one_sided : bool
        Whether the loss is one of classification.

    Notes
    -----
    Methods that take a curvature and the limits of the box, and `concave_part`, also accept those
    of multiples of the loss: they take the scale from them.
    """

    upper: float
    curvature: float
    start: float
    one_sided: bool = True

    def __sklearn_clone__(self) -> Loss:
        return self  # frozen: estimators can share it

    def check(self) -> None:
        """Raise ValueError if a parameter is out of its range."""
        if self.upper != math.inf:
            hint = "It may be infinite if the curvature is positive."
            check_number("upper", self.upper, above=0, most=MAX_NUMBER, hint=hint)
        check_number("curvature", self.curvature, least=0, most=MAX_NUMBER)
        check_number("start", self.start, above=0, most=MAX_NUMBER)
        check_flag("one_sided", self.one_sided)
        if math.isinf(self.upper) and not self.curvature:
            raise ValueError(
                f"curvature={self.curvature!r} is not allowed with upper=inf: the loss would be "
                "infinite. Give a finite upper, or a positive curvature."
            )

    @property
    def sides(self) -> tuple[float, float]:
        """How far boxes reach below and above zero."""
        return self.upper, self.upper

    def box(self, targets: Array) -> tuple[Array, Array]:
        """Return the limits of the dual variables, in the shape and type of the targets."""
        side = targets.dtype.type(self.upper)
        if not self.one_sided:
            below, above = self.sides
            return np.full_like(targets, -below), np.full_like(targets, above)
        if math.isfinite(side):  # several times as fast as np.where
            return -side * (targets <= 0), side * (targets > 0)
        zero = targets.dtype.type(0)
        return np.where(targets > 0, zero, -side), np.where(targets > 0, side, zero)

    @abstractmethod
    def slope(self, targets: Array, dual: Array, response: Array) -> Array:
        """Return the gradient of the dual objective; `response` is the Gram matrix times `dual`."""

    @abstractmethod
    def slope_norm(self, target_norm: float, radius: float, root_weight: float) -> float:
        """Bound the norm of the slope at a response of zero.

        For targets and dual variables of these norms; `root_weight` is the norm of ones.
        """

    @property
    def slope_error(self) -> float:
        """Bound on how far the objective that has this slope is below the true one, per sample."""
        return 0.0

    @abstractmethod
    def best_dual(
        self, residuals: Array, low: Array, high: Array, curvature: float | Array
    ) -> Array:
        """Return the dual variables that attain the maximum in the definition of the loss.

        `curvature` replaces the curvature of the loss; it must be positive and at least as large.
        """

    def dual_at(self, targets: Array, scores: Array) -> Array:
        """Return the dual variables of a model with these scores.

        A loss without curvature is smoothed over a margin interval of width one.
        """
        return self.best_dual(
            targets - scores, *self.box(targets), self.curvature or 1 / self.upper
        )

    @abstractmethod
    def hessian_weights(
        self, dual: Array, low: Array, high: Array, curvature: float | Array
    ) -> Array:
        """Return the derivatives of :meth:`best_dual` by the residuals, times the curvature.

        They are in [0, 1]; a boolean array, if they are 0 or 1.
        """

    @abstractmethod
    def concave_part(self, residuals: Array, dual: Array, low: Array, high: Array) -> Array:
        """Return `a r + h(a)`, the maximum's argument in the definition without its last term.

        At the targets as residuals, it is the part of the dual objective that is not quadratic.
        """

    @abstractmethod
    def values(self, residuals: Array, low: Array, high: Array) -> Array:
        """Return the loss of each sample."""

    @abstractmethod
    def largest_multiple(self, lowest: float, highest: float) -> float:
        """Return the largest factor by which a dual point may be multiplied.

        Its variables are between `lowest`, at most 0, and `highest`, at least 0. The multiple must
        stay in the box, and its concave part must be at least the multiple of the point's.
        """

    @abstractmethod
    def largest_dual(self, target_size: float) -> float:
        """Return the absolute value that the maximiser's dual variables can reach."""

    @property
    def is_squared_error(self) -> bool:
        """Whether it is a multiple of the squared error of real targets."""
        return False

    @property
    @abstractmethod
    def has_margin(self) -> bool:
        """Whether scores of labels beyond a margin of 1 have no loss and no dual variable."""

    def near_margin(self, targets: Array, residuals: Array, slack: float) -> Array:
        """Return which rows may have a loss, if their residuals change by `slack`."""
        if not self.has_margin:
            return np.ones(len(targets), dtype=bool)
        near: Array = residuals * targets > -slack
        return near

    @property
    def start_multiple(self) -> float:
        """The multiple of the targets, in the unit of `C`, that the game starts near."""
        return self.start

    def times(self, C: float) -> Loss:
        """Return `C` times the loss: its box is `C` times as large, its curvature `1 / C`."""
        curvature, start = self.curvature / C, self.start * C
        return replace(self, upper=self.upper * C, curvature=curvature, start=start)

    def unit(self, target_scale: float) -> float:
        """Return the unit of `C`: in this unit, `C` doesn't depend on the unit of the targets."""
        return 1.0

    def rescaled(self, scale: float) -> Loss:
        """Return the loss of targets divided by a number, itself divided by its square."""
        return self

    @property
    def gives_probabilities(self) -> bool:
        """Whether scores are log odds, up to a temperature."""
        return False

    def held_out_errors(self, residuals: Array) -> Array:
        """Return what trials compare of real targets that were held out: the squared errors."""
        return np.square(residuals, dtype=np.float64)

    @abstractmethod
    def smoothing_schedule(self) -> list[float]:
        """Return decreasing curvatures of smoothed losses, for Newton's method.

        The first is large enough for it to converge from the zero model. The last is the loss's
        own curvature, if it has one.
        """


# Widths of the margin interval over which the hinge is smoothed, in turn, until the gap is closed.
# The first contains every margin of the zero model, so the first step is a least squares fit.
SMOOTHING_WIDTHS = tuple(2.0 * 0.3**k for k in range(16))


@dataclass(frozen=True)
class QuadraticLoss(Loss):
    r"""A loss whose dual is quadratic: :math:`h(a) = -\epsilon |a|`.

    For classification the loss is the hinge for ``curvature=0``, the squared hinge for
    ``upper=inf``, and a smoothed hinge otherwise. For real targets it is the epsilon-insensitive
    loss, the squared loss, or Huber's loss, which is quadratic for residuals up to
    ``upper * curvature`` and linear with the slope `upper` beyond.

    Parameters
    ----------
    upper, curvature, start, one_sided
        See :class:`Loss`.
    epsilon : float
        Residuals of smaller absolute value have no loss.
    """

    epsilon: float = 0.0

    def check(self) -> None:
        """Raise ValueError if a parameter is out of its range."""
        super().check()
        check_number("epsilon", self.epsilon, least=0, most=MAX_NUMBER)

    def slope(self, targets: Array, dual: Array, response: Array) -> Array:
        """Return the gradient of the dual objective."""
        slope = targets - response
        if self.epsilon:
            slope -= dual.dtype.type(self.epsilon) * np.sign(dual)
        if self.curvature:
            slope -= dual.dtype.type(self.curvature) * dual
        return slope

    def slope_norm(self, target_norm: float, radius: float, root_weight: float) -> float:
        """Bound the norm of the slope at a response of zero."""
        return target_norm + self.curvature * radius + self.epsilon * root_weight

    def best_dual(
        self, residuals: Array, low: Array, high: Array, curvature: float | Array
    ) -> Array:
        """Return the best dual variables: residuals over the curvature, clipped to the box."""
        if self.epsilon:
            residuals = np.sign(residuals) * np.maximum(np.abs(residuals) - self.epsilon, 0)
        return np.minimum(np.maximum(residuals / curvature, low), high)  # faster than np.clip

    def hessian_weights(
        self, dual: Array, low: Array, high: Array, curvature: float | Array
    ) -> Array:
        """Return which dual variables are strictly inside their boxes."""
        active: Array = (dual != 0) & (dual > low) & (dual < high)
        return active

    def concave_part(self, residuals: Array, dual: Array, low: Array, high: Array) -> Array:
        """Return the linear part of the maximum's argument."""
        linear = dual * residuals
        return linear - self.epsilon * np.abs(dual) if self.epsilon else linear

    def values(self, residuals: Array, low: Array, high: Array) -> Array:
        """Return the loss of each sample."""
        if self.curvature:
            dual = self.best_dual(residuals, low, high, self.curvature)
            linear = self.concave_part(residuals, dual, low, high)
            return linear - 0.5 * self.curvature * np.square(dual)
        above = np.maximum(residuals - self.epsilon, 0)
        below = np.maximum(-residuals - self.epsilon, 0)
        # np.where avoids inf * 0 where the box is infinite and the residual zero.
        return np.where(above > 0, high, 0) * above - np.where(below > 0, low, 0) * below

    def largest_multiple(self, lowest: float, highest: float) -> float:
        """Return the largest factor that stays in the box."""
        below, above = self.sides
        sizes = (below, -lowest), (above, highest)
        return min((side / size for side, size in sizes if size > 0), default=0.0)

    def largest_dual(self, target_size: float) -> float:
        """Return the limit of the box, or the limit that the curvature sets."""
        return min(max(self.sides), target_size / self.curvature if self.curvature else math.inf)

    @property
    def is_squared_error(self) -> bool:
        """Whether it is a multiple of the squared error; a subclass may have another dual."""
        has_box = self.one_sided or math.isfinite(self.upper)
        return type(self) is QuadraticLoss and not (has_box or self.epsilon)

    @property
    def has_margin(self) -> bool:
        """Whether it is a loss of labels."""
        return self.one_sided

    def unit(self, target_scale: float) -> float:
        """Return the scale of the targets, if the loss is linear in the residuals."""
        return 1.0 if self.one_sided or self.curvature else target_scale

    def rescaled(self, scale: float) -> Loss:
        """Return the loss of targets divided by a number, itself divided by its square."""
        start = self.start / self.unit(scale)
        return replace(self, upper=self.upper / scale, start=start, epsilon=self.epsilon / scale)

    def smoothing_schedule(self) -> list[float]:
        """Return decreasing curvatures of smoothed losses."""
        if not self.curvature:
            return [width / self.upper for width in SMOOTHING_WIDTHS]
        n_before = max(0, math.ceil(-math.log10(self.curvature)))
        return [self.curvature * 10.0**power for power in range(n_before, -1, -1)]


@dataclass(frozen=True)
class QuantileLoss(QuadraticLoss):
    r"""The pinball loss :math:`C \max(q r, (q - 1) r)` of real residuals `r`.

    A constant has the least loss at the `q`-quantile of the targets, and the scores of a model
    estimate the quantile given the sample. The dual is linear, with the box
    :math:`[-(1 - q) C, \; q C]`.

    Parameters
    ----------
    upper, curvature, start, one_sided
        See :class:`Loss`. `upper` is `C`, the total side of the box; the curvature is 0, the start
        in units of the nearer limit of the box with ``C = 1``, and the loss two-sided.
    epsilon : float
        0.
    quantile : float
        `q`, between 0 and 1.
    """

    upper: float = 1.0
    curvature: float = 0.0
    start: float = 0.5
    one_sided: bool = False
    quantile: float = 0.5

    def check(self) -> None:
        """Raise ValueError if a parameter is out of its range."""
        super().check()
        check_number("quantile", self.quantile, above=0, below=1)
        if self.curvature or self.one_sided or self.epsilon:
            raise ValueError(
                f"{self!r} is not allowed: a loss of quantiles has no curvature and no epsilon, "
                "and one_sided is False. QuantileLoss(quantile=0.9) is one with C = 1."
            )

    @property
    def sides(self) -> tuple[float, float]:
        """How far the box reaches below and above zero."""
        return (1 - self.quantile) * self.upper, self.quantile * self.upper

    @property
    def start_multiple(self) -> float:
        """The multiple of the targets that the game starts near, which few limits clip."""
        # In units of the nearer limit. Clipped to it, most targets of one side would be equal.
        return self.start * min(self.quantile, 1 - self.quantile)

    def held_out_errors(self, residuals: Array) -> Array:
        """Return the loss with ``C = 1``."""
        residuals = residuals.astype(np.float64)
        errors: Array = np.maximum(self.quantile * residuals, (self.quantile - 1) * residuals)
        return errors


@dataclass(frozen=True)
class LogisticLoss(Loss):
    r"""The loss :math:`C \log(1 + e^{-t f})` of labels.

    A dual variable is `C` times the probability `p` of the other label, with its own label's sign,
    and the dual has the entropy `H`:

    .. math:: -|a| + C H(|a| / C), \qquad H(p) = -p \log p - (1 - p) \log(1 - p).

    Its least curvature, at :math:`p = \tfrac12`, is :math:`c = 4 / C`; what is left without it,
    :math:`h(a) = -|a| + C H(p) + \tfrac c2 a^2`, is concave.

    Parameters
    ----------
    upper, curvature, start, one_sided
        See :class:`Loss`. `upper` is `C`, the curvature ``4 / upper``, and the loss one-sided.
    """

    upper: float = 1.0
    curvature: float = 4.0
    start: float = 0.5

    def check(self) -> None:
        """Raise ValueError if a parameter is out of its range."""
        super().check()
        if not math.isclose(self.curvature * self.upper, 4) or not self.one_sided:
            raise ValueError(
                f"{self!r} is not allowed: the curvature of the logistic loss is 4 / upper, and "
                "one_sided is True. LogisticLoss() is the loss with C = 1."
            )

    def slope(self, targets: Array, dual: Array, response: Array) -> Array:
        """Return the gradient of the dual objective, finite at the limits of the box."""
        # The slope of a strongly concave function that is below the entropy by at most
        # LEAST_PROBABILITY: its concave part is linear near the limits of the box.
        probability = np.abs(dual) / dual.dtype.type(self.upper)
        clipped = np.clip(probability, LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
        logit = np.log((1 - clipped) / clipped)
        return targets * (logit + 4 * (clipped - probability)) - response

    def slope_norm(self, target_norm: float, radius: float, root_weight: float) -> float:
        """Bound the norm of the slope at a response of zero."""
        return (4 * LEAST_PROBABILITY - math.log(LEAST_PROBABILITY)) * root_weight

    @property
    def slope_error(self) -> float:
        """Bound on the difference that clipped probabilities make, per sample."""
        return LEAST_PROBABILITY * self.upper

    def best_dual(
        self, residuals: Array, low: Array, high: Array, curvature: float | Array
    ) -> Array:
        """Return the best dual variables: `C` times the sigmoid, if the curvature is the loss's."""
        signed = high + low
        logits = np.sign(signed) * residuals - 1
        # The curvature that is added to the entropy's own, times C.
        added = curvature * (high - low) - 4
        if np.max(added, initial=0.0) > 4 * SAME_CURVATURE:
            logits = damped_logits(logits, np.maximum(added, 0))
        best: Array = signed * expit(logits)
        return best

    def hessian_weights(
        self, dual: Array, low: Array, high: Array, curvature: float | Array
    ) -> Array:
        """Return ``4 p (1 - p)``, if the curvature is the loss's."""
        size = high - low
        probability = np.abs(dual) / at_least_tiny(size)
        variance = 4 * probability * (1 - probability)  # over c: the derivative without addition
        ratio = curvature * size / 4
        weights: Array = variance * ratio / (1 + np.maximum(ratio - 1, 0) * variance)
        return weights

    def concave_part(self, residuals: Array, dual: Array, low: Array, high: Array) -> Array:
        """Return the maximum's argument without its last term."""
        size, absolute = high - low, np.abs(dual)
        probability = absolute / at_least_tiny(size)
        curved: Array = size * (entropy(probability) + 2 * np.square(probability))
        return dual * residuals - absolute + curved

    def values(self, residuals: Array, low: Array, high: Array) -> Array:
        """Return the loss of each sample."""
        size = high - low
        losses: Array = size * np.logaddexp(0, np.sign(high + low) * residuals - 1)
        return losses

    def largest_multiple(self, lowest: float, highest: float) -> float:
        """Return 1: the concave part is not linear."""
        return 1.0

    def largest_dual(self, target_size: float) -> float:
        """Return the limit of the box."""
        return self.upper

    @property
    def has_margin(self) -> bool:
        """False: every score has a loss."""
        return False

    @property
    def gives_probabilities(self) -> bool:
        """Whether scores are log odds, up to a temperature."""
        return True

    def smoothing_schedule(self) -> list[float]:
        """Return the loss's own curvature: its Newton steps need no smoothing."""
        return [self.curvature]


def at_least_tiny(size: Array) -> Array:
    """Return numbers to divide by, or to take logarithms of: tiny ones in place of zeros."""
    return np.maximum(size, np.finfo(size.dtype).tiny)


def entropy(probability: Array) -> Array:
    """Return `H(p)`; a probability may exceed 1 by rounding."""
    rest = np.maximum(1 - probability, 0)
    # Several times as fast as SciPy's function, which has no vector instructions.
    first, last = (p * np.log(at_least_tiny(p)) for p in (probability, rest))
    result: Array = -(first + last)
    return result


def damped_logits(logits: Array, added: Array) -> Array:
    """Return the roots `z` of `z + added * sigmoid(z) = logits`.

    The left side is convex below zero and concave above it, so Newton's method from zero, or from
    the nearer one of the root's bounds, converges without overshooting.
    """
    logits, added = np.broadcast_arrays(logits, added)
    dtype = np.result_type(logits, added)
    roots = np.where(added < 2 * logits, np.maximum(logits - added, 0), np.minimum(logits, 0))
    roots = roots.astype(np.float64)
    for _ in range(MAX_LOGIT_STEPS):
        probability = expit(roots)
        slope = 1 + added * probability * (1 - probability)
        steps = (logits - roots - added * probability) / slope
        roots += steps
        if not np.any(np.abs(steps) > 1e-12 * (1 + np.abs(roots))):
            break
    return roots.astype(dtype)


# The named losses with `C = 1`; :meth:`Loss.times` gives others. For classes:
# hinge                C * max(0, 1 - margin)          of the l1-SVM
# squared_hinge        C * max(0, 1 - margin) ** 2     of the l2-SVM
# logistic             C * log(1 + exp(-margin))       of logistic regression
# For real targets:
# squared              C * residual ** 2               of ridge regression
# epsilon_insensitive  C * max(0, abs(residual) - epsilon)   of support vector regression
# quantile             C * max(q * residual, (q - 1) * residual)   of quantile regression
CLASSIFICATION_LOSSES: dict[str, Loss] = {
    "hinge": QuadraticLoss(upper=1.0, curvature=0.0, start=0.5),
    "squared_hinge": QuadraticLoss(upper=math.inf, curvature=0.5, start=0.5),
    "logistic": LogisticLoss(),
}
REGRESSION_LOSSES: dict[str, Loss] = {
    "squared": QuadraticLoss(upper=math.inf, curvature=0.5, start=1.0, one_sided=False),
    "epsilon_insensitive": QuadraticLoss(
        upper=1.0, curvature=0.0, start=0.5, one_sided=False, epsilon=0.1
    ),
    "quantile": QuantileLoss(),
}
LOSSES = CLASSIFICATION_LOSSES | REGRESSION_LOSSES
