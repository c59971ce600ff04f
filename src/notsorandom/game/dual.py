"""The dual player: a loss with the targets it is played for."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from notsorandom.data.rows import Array, Rows
from notsorandom.game.losses import Loss
from notsorandom.game.projection import nearest, seats
from notsorandom.spaces.landscape import sums_of_block


@dataclass(frozen=True)
class Standing:
    """What dual variables add up to.

    Parameters
    ----------
    gain : float
        The linear part of the objective.
    cost : float
        The quadratic part that is not the kernel's, twice.
    highest : float
        The largest of them all.
    at_zero, at_upper : float
        Shares at 0, and at the far ends of their boxes.
    upper : float
        The far end.
    sums : list
        What :func:`notsorandom.spaces.landscape.sums_of_block` says of each block's measure.
    """

    gain: float
    cost: float
    highest: float
    at_zero: float
    at_upper: float
    upper: float
    sums: list[Any]

    def objective(self, potential: float) -> float:
        """The dual objective where the measure's potential under the kernel is `potential`."""
        return self.gain - 0.5 * potential - 0.5 * self.cost

    def best_multiple(self, potential: float) -> float:
        r"""Largest objective of a multiple of the dual point that stays in the box.

        :math:`s g - \tfrac{s^2}{2} (v + c |a|^2)` is largest at a quotient; `v` is the largest
        `potential` of any frequency.
        """
        square = potential + self.cost
        most = self.upper / self.highest if self.highest > 0 else 0.0
        multiple = min(max(self.gain, 0.0) / square if square > 0 else most, most)
        if not math.isfinite(multiple):
            return math.inf
        return multiple * self.gain - 0.5 * multiple**2 * square


@dataclass(frozen=True, eq=False)
class Player:
    r"""What the dual player may play on some samples, and what it is paid.

    Its dual variables are signed, and those of a sample with a weight stand for as many samples:
    the measure, whose Fourier transform is the potential, is the dual times the weights.

    Parameters
    ----------
    loss : Loss
    targets : column of shape (n_samples, n_tasks)
        Labels of +1 and -1 for losses of the margin.
    weights : column of shape (n_samples, 1), optional
        Positive; all one if not given.
    rows : Rows, optional
        Where targets and weights live, and the dual variables with them; by default in memory.
    """

    loss: Loss
    targets: Any
    weights: Any = None
    rows: Rows = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        rows = seats(self.targets) if self.rows is None else self.rows.bare
        object.__setattr__(self, "rows", replace(rows, weights=self.weights))

    @property
    def n_tasks(self) -> int:
        """Number of columns of the targets."""
        return int(self.targets.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the targets and of all dual variables."""
        dtype: np.dtype[Any] = self.targets.dtype
        return dtype

    @cached_property
    def box(self) -> tuple[Array, Array]:
        """Least and largest dual variables, of targets in memory."""
        return self.loss.box(self.targets)

    @property
    def total_weight(self) -> float:
        """Samples, each as often as its weight says."""
        return self.rows.total_weight

    @property
    def multiplicities(self) -> Array:
        """The weights, of shape (n_samples,), all one if none were given."""
        if self.weights is None:
            return np.ones(len(self.rows))
        return self.rows.fetch(self.weights)[:, 0]

    def task(self, number: int) -> Player:
        """The player of one task alone."""
        return replace(self, targets=self.targets[:, [number]])

    def take(self, indices: Array) -> Player:
        """The player on some of the samples, in memory."""
        rows = self.rows.take(indices)
        return Player(self.loss, self.rows.fetch(self.targets, indices), rows.weights, rows)

    def astype(self, dtype: Any) -> Player:
        """The same in another floating point type, of targets in memory."""
        weights = None if self.weights is None else self.weights.astype(dtype)
        return Player(self.loss, self.targets.astype(dtype), weights)

    def weighted(self, values: Any) -> Any:
        """Values of samples, each as often as its weight says."""
        if self.weights is None:
            return values
        return self.rows.map(lambda _, a, w: a * w, values, self.weights)

    measure = weighted

    def _add(self, function: Callable[..., tuple[Any, ...]], *columns: Any) -> tuple[Array, ...]:
        """Sums of ``function(targets, weights, *column_blocks)``, in float64."""
        return self.rows.add(
            with_weights(function, self.weights),
            self.targets,
            *columns,
            *self.rows.weighing,
            dtype=np.float64,
        )

    def project(self, dual: Any, how: Callable[..., Any] = nearest) -> Any:
        """The nearest dual point that may be played."""
        return how(self.rows, dual, self.loss.box, self.targets)

    def first(self, how: Callable[..., Any] = nearest) -> Any:
        """Where the player starts."""
        start = self.dtype.type(self.loss.start)
        return self.project(self.rows.map(lambda _, t: start * t, self.targets), how)

    def following(
        self, dual: Any, response: Any, step: float, how: Callable[..., Any] = nearest
    ) -> Any:
        """Where the player goes once a kernel has answered its measure with `response`."""
        loss, stride = self.loss, self.dtype.type(step)
        dual = self.rows.map(
            lambda _, t, a, r: a + stride * loss.slope(t, a, r), self.targets, dual, response
        )
        dual = self.project(dual, how)
        if math.isfinite(loss.upper):
            return dual
        # A cone's part inside a ball: scaled down.
        (squares,) = self._add(
            lambda t, w, a: ((w * np.square(a, dtype=np.float64)).sum(axis=0),), dual
        )
        radius = max(self.radius, np.finfo(np.float64).tiny)
        factors = np.minimum(1, radius / np.maximum(np.sqrt(squares), radius)).astype(self.dtype)
        return dual if np.all(factors == 1) else self.rows.map(lambda _, a: a * factors, dual)

    def gradient(self, dual: Any, response: Any) -> Any:
        """Slope of the objective in each dual variable, over its weight.

        Parameters
        ----------
        dual : column of shape (n_samples, n_tasks)
        response : column of shape (n_samples, n_tasks)
            The kernel's Gram matrix times the measure.
        """
        loss = self.loss
        return self.rows.map(lambda _, t, a, r: loss.slope(t, a, r), self.targets, dual, response)

    def standing(self, dual: Any) -> Standing:
        """What dual variables add up to, in one sweep."""
        loss = self.loss

        def parts(t: Array, w: Any, a: Array) -> tuple[Array, float, Any]:
            paid = t * a
            if loss.epsilon:
                paid = paid - loss.epsilon * np.abs(a)
            at_zero, at_upper = (
                (w * which).mean(axis=1).sum(dtype=np.float64)
                for which in (a == 0, np.abs(a) >= loss.upper)
            )
            squares = (w * np.square(a, dtype=np.float64)).sum() if loss.curvature else 0.0
            sums = np.array([(w * paid).sum(dtype=np.float64), squares, at_zero, at_upper])
            return sums, float(np.abs(a).max(initial=0.0)), sums_of_block(w * a)

        blocks = self.rows.each(
            with_weights(parts, self.weights), self.targets, dual, *self.rows.weighing
        )
        sums, highest, of_measure = zip(*blocks, strict=True)
        gain, squares, at_zero, at_upper = np.sum(sums, axis=0)
        return Standing(
            gain=float(gain),
            cost=float(loss.curvature * squares),
            highest=max(highest),
            at_zero=float(at_zero / self.total_weight),
            at_upper=float(at_upper / self.total_weight),
            upper=loss.upper,
            sums=list(of_measure),
        )

    def objective(self, dual: Any, potential: float) -> float:
        """The dual objective where the measure's potential under the kernel is `potential`."""
        return self.standing(dual).objective(potential)

    def best_multiple(self, dual: Any, potential: float) -> float:
        """See :meth:`Standing.best_multiple`, of a feasible dual point."""
        return self.standing(dual).best_multiple(potential)

    def loss_of(self, scores: Any) -> float:
        """The loss, summed over the samples, in float64."""
        loss = self.loss

        def values(t: Array, w: Any, scores: Array) -> tuple[Array]:
            residuals = (t - scores).astype(np.float64)
            return ((w * loss.values(residuals, *loss.box(t))).sum(),)

        (total,) = self._add(values, scores)
        return float(total)

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
        (squares,) = self._add(lambda t, w: ((w * np.square(t, dtype=np.float64)).sum(axis=0),))
        return math.sqrt(float(squares.max()))

    def theory_rate(self, round_: int, bound: float) -> float:
        r"""Step size of the regret bound, times the samples (the unit of ``learning_rate``).

        Online gradient ascent over a set of diameter `D` with gradients of at most `G` has its
        regret bound of :math:`\tfrac32 G D \sqrt T` at :math:`\eta_t = D / (G \sqrt t)`; with a
        dual of strong concavity `c`, the bound is logarithmic at :math:`\eta_t = 1 / (c t)`.
        """
        if self.loss.curvature:
            return self.total_weight / (self.loss.curvature * round_)
        diameter, gradient = self.steepest(bound, n_tasks=1)
        return self.total_weight * diameter / (gradient * math.sqrt(round_))

    def steepest(self, bound: float, n_tasks: int | None = None) -> tuple[float, float]:
        r"""Diameter `D` of the dual's set, and a bound `G` on its gradients.

        A measure within the radius `r` has a mass of at most :math:`r \sqrt n`, which a kernel of
        at most `bound` answers with that times `bound`.
        """
        n_tasks, radius = n_tasks or self.n_tasks, self.radius
        response = bound * radius * self.total_weight  # of all samples, each at most r sqrt n
        gradient = self.reach + response + self.loss.curvature * radius
        gradient += self.loss.epsilon * math.sqrt(self.total_weight)
        diameter = radius
        if not math.isfinite(self.loss.upper):
            diameter *= math.sqrt(2)
        if not self.loss.one_sided:
            diameter = 2 * radius
        return diameter * math.sqrt(n_tasks), gradient * math.sqrt(n_tasks)


def with_weights(function: Callable[..., Any], weights: Any) -> Callable[..., Any]:
    """The function of a block of rows that gets the samples' weights, or one, second."""
    if weights is None:
        return lambda _, t, *parts: function(t, 1, *parts)
    return lambda _, t, *parts: function(t, parts[-1], *parts[:-1])
