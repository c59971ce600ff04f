"""The dual player: a loss with the targets it is played for."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from notsorandom.game.losses import Loss
from notsorandom.game.project import project as nearest
from notsorandom.rows import Array


@dataclass(frozen=True, eq=False)
class Player:
    r"""What the dual player may play on some samples, and what it is paid.

    Its dual variables are signed, and those of a sample with a weight stand for as many samples:
    the measure, whose Fourier transform is the potential, is the dual times the weights.

    Parameters
    ----------
    loss : Loss
    targets : ndarray of shape (n_samples, n_tasks)
        Labels of +1 and -1 for losses of the margin.
    weights : ndarray of shape (n_samples, 1), optional
        Positive; all one if not given.
    """

    loss: Loss
    targets: Array
    weights: Array | None = None

    @cached_property
    def box(self) -> tuple[Array, Array]:
        """Least and largest dual variables."""
        return self.loss.box(self.targets)

    @cached_property
    def total_weight(self) -> float:
        """Samples, each as often as its weight says."""
        if self.weights is None:
            return float(len(self.targets))
        return float(self.weights.sum(dtype=np.float64))

    @property
    def multiplicities(self) -> Array:
        """The weights, of shape (n_samples,), all one if none were given."""
        return np.ones(len(self.targets)) if self.weights is None else self.weights[:, 0]

    def task(self, number: int) -> Player:
        """The player of one task alone."""
        return replace(self, targets=self.targets[:, [number]])

    def take(self, indices: Array) -> Player:
        """The player on some of the samples."""
        weights = None if self.weights is None else self.weights[indices]
        return replace(self, targets=self.targets[indices], weights=weights)

    def astype(self, dtype: Any) -> Player:
        """The same in another floating point type."""
        weights = None if self.weights is None else self.weights.astype(dtype)
        return replace(self, targets=self.targets.astype(dtype), weights=weights)

    def weighted(self, values: Array) -> Array:
        """Values of samples, each as often as its weight says."""
        return values if self.weights is None else values * self.weights

    measure = weighted

    def project(self, dual: Array, how: Callable[..., Array] = nearest) -> Array:
        """The nearest dual point that may be played."""
        return how(dual, *self.box, self.weights)

    def first(self, how: Callable[..., Array] = nearest) -> Array:
        """Where the player starts."""
        return self.project(self.targets.dtype.type(self.loss.start) * self.targets, how)

    def following(
        self, dual: Array, response: Array, step: float, how: Callable[..., Array] = nearest
    ) -> Array:
        """Where the player goes once a kernel has answered its measure with `response`."""
        dual = self.project(dual + dual.dtype.type(step) * self.gradient(dual, response), how)
        if math.isfinite(self.loss.upper):
            return dual
        # A cone's part inside a ball: scaled down.
        norms = np.sqrt(self.weighted(np.square(dual, dtype=np.float64)).sum(axis=0))
        radius = max(self.radius, np.finfo(np.float64).tiny)
        return dual * np.minimum(1, radius / np.maximum(norms, radius)).astype(dual.dtype)

    def gradient(self, dual: Array, response: Array) -> Array:
        """Slope of the objective in each dual variable, over its weight.

        Parameters
        ----------
        dual : ndarray of shape (n_samples, n_tasks)
        response : ndarray of shape (n_samples, n_tasks)
            The kernel's Gram matrix times the measure.
        """
        slope = self.targets - response
        if self.loss.epsilon:
            slope -= dual.dtype.type(self.loss.epsilon) * np.sign(dual)
        if self.loss.curvature:
            slope -= dual.dtype.type(self.loss.curvature) * dual
        return slope

    def gain(self, dual: Array) -> float:
        """The linear part of the objective."""
        paid = self.targets * dual
        if self.loss.epsilon:
            paid = paid - self.loss.epsilon * np.abs(dual)
        return float(self.weighted(paid).sum(dtype=np.float64))

    def cost(self, dual: Array) -> float:
        """The quadratic part that is not the kernel's, twice."""
        if not self.loss.curvature:
            return 0.0
        squares = self.weighted(np.square(dual, dtype=np.float64))
        return self.loss.curvature * float(squares.sum())

    def objective(self, dual: Array, potential: float) -> float:
        """The dual objective where the measure's potential under the kernel is `potential`."""
        return self.gain(dual) - 0.5 * potential - 0.5 * self.cost(dual)

    def best_multiple(self, dual: Array, potential: float) -> float:
        r"""Largest objective of a multiple of a dual point that stays in the box.

        :math:`s g - \tfrac{s^2}{2} (v + c |a|^2)` is largest at a quotient.

        Parameters
        ----------
        dual : ndarray of shape (n_samples, n_tasks)
            Feasible.
        potential : float
            The largest of any frequency.
        """
        gain = self.gain(dual)
        square = potential + self.cost(dual)
        highest = float(np.abs(dual).max(initial=0.0))
        most = self.loss.upper / highest if highest > 0 else 0.0
        multiple = min(max(gain, 0.0) / square if square > 0 else most, most)
        return multiple * gain - 0.5 * multiple**2 * square if math.isfinite(multiple) else math.inf

    def loss_of(self, scores: Array) -> float:
        """The loss, summed over the samples, in float64."""
        residuals = (self.targets - scores).astype(np.float64)
        return float(self.weighted(self.loss.values(residuals, *self.box)).sum())

    def shares(self, dual: Array) -> tuple[float, float]:
        """Shares of the dual variables at 0 and at the far ends of their boxes."""
        shares = (
            np.average(which.mean(axis=1), weights=self.multiplicities)
            for which in (dual == 0, np.abs(dual) >= self.loss.upper)
        )
        at_zero, at_upper = shares
        return float(at_zero), float(at_upper)

    @property
    def radius(self) -> float:
        r"""A ball around zero that holds every maximiser of a task, of any kernel.

        The box has :math:`u \sqrt n`. Without one, the objective of a maximiser is not below that
        of 0, so :math:`\tfrac c2 |a|^2 \le t^T a \le |t| |a|`.
        """
        if math.isfinite(self.loss.upper):
            return self.loss.upper * math.sqrt(self.total_weight)
        return 2 / self.loss.curvature * self.reach

    @cached_property
    def reach(self) -> float:
        """The largest norm of a task's targets."""
        if self.loss.one_sided:
            return math.sqrt(self.total_weight)
        squares = self.weighted(np.square(self.targets, dtype=np.float64)).sum(axis=0)
        return math.sqrt(float(squares.max()))

    def theory_rate(self, round_: int, bound: float) -> float:
        r"""Step size of the regret bound, times the samples (the unit of ``learning_rate``).

        Online gradient ascent over a set of diameter `D` with gradients of at most `G` has its
        regret bound of :math:`\tfrac32 G D \sqrt T` at :math:`\eta_t = D / (G \sqrt t)`; with a
        dual of strong concavity `c`, the bound is logarithmic at :math:`\eta_t = 1 / (c t)`.
        """
        if self.loss.curvature:
            return self.total_weight / (self.loss.curvature * round_)
        diameter, gradient = self.task(0).steepest(bound)
        return self.total_weight * diameter / (gradient * math.sqrt(round_))

    def steepest(self, bound: float) -> tuple[float, float]:
        r"""Diameter `D` of the dual's set, and a bound `G` on its gradients.

        A measure within the radius `r` has a mass of at most :math:`r \sqrt n`, which a kernel of
        at most `bound` answers with that times `bound`.
        """
        n_tasks, radius = self.targets.shape[1], self.radius
        response = bound * radius * self.total_weight  # of all samples, each at most r sqrt n
        gradient = self.reach + response + self.loss.curvature * radius
        gradient += self.loss.epsilon * math.sqrt(self.total_weight)
        diameter = radius
        if not math.isfinite(self.loss.upper):
            diameter *= math.sqrt(2)
        if not self.loss.one_sided:
            diameter = 2 * radius
        return diameter * math.sqrt(n_tasks), gradient * math.sqrt(n_tasks)
