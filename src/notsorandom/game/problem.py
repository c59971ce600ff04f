"""The training problem, and operations on its dual variables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import astuple, dataclass, replace
from typing import Any

import numpy as np

from notsorandom._utils.threads import cached_property
from notsorandom.data.rows import Array, Rows
from notsorandom.game.losses import Loss
from notsorandom.game.projection import nearest
from notsorandom.spaces.landscape import measure_stats
from notsorandom.spaces.view import View


def signs_from_codes(codes: Array, n_classes: int, dtype: Any) -> Array:
    """One-versus-rest labels of +1 and -1: one column for two classes, else one per class."""
    tasks = np.arange(1, 2) if n_classes == 2 else np.arange(n_classes)
    return np.where(codes[:, None] == tasks, 1, -1).astype(dtype)


def codes_from_scores(scores: Array) -> Array:
    """Class codes from decision values: the sign of one column, the largest of several."""
    return (scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)


@dataclass(frozen=True)
class DualStats:
    """Sums over the dual variables of one point."""

    linear: float  # the part of the dual objective that is linear, or concave, along a ray
    quadratic: float  # twice the quadratic part that comes from the loss, not from the kernel
    share_at_zero: float
    share_at_upper: float  # share of the variables at the nonzero limit of their box
    largest_multiple: float  # see `Loss.largest_multiple`
    block_stats: list[Any]  # `measure_stats` of each block's measure

    def objective(self, potential: float) -> float:
        """Dual objective, given the potential of the measure under the kernel."""
        return self.linear - 0.5 * potential - 0.5 * self.quadratic

    def best_scaled_objective(self, potential: float) -> float:
        r"""Largest dual objective over the multiples of the point that stay in the box.

        With `g` the linear part and `v` the largest `potential` of any frequency,
        :math:`s g - \tfrac{s^2}{2} (v + c |a|^2)` is maximised over the factor `s`. For a part
        that is concave instead of linear, it is a lower bound on that objective.
        """
        square = potential + self.quadratic
        if math.isinf(square):  # all multiples but zero are infinitely bad
            return 0.0
        factor = max(self.linear, 0.0) / square if square > 0 else self.largest_multiple
        factor = min(factor, self.largest_multiple)
        if not math.isfinite(factor):
            return math.inf
        return factor * self.linear - 0.5 * factor**2 * square


@dataclass(frozen=True, eq=False)
class Problem:
    r"""The training problem: samples, sample weights, targets and loss.

    Dual variables are signed (:math:`\alpha_i y_i` in the paper). The *measure*, whose Fourier
    transform gives the potential, is the dual variables times the sample weights.

    Parameters
    ----------
    loss : Loss
    targets : column of shape (n_samples, n_tasks)
        Labels of +1 and -1 for classification losses, real numbers for regression losses.
    rows : Rows
        The samples and their weights. Targets and dual variables are columns of these rows.
    positions : ndarray of shape (n_given,), optional
        Position of each row that the user gave in these rows; -1 if it was left out. By default
        the rows are the given ones.
    linear_scores : column of shape (n_samples, n_tasks), optional
        Scores of a linear model that the scores of the game are added to. The game starts from the
        dual variables of this model.
    """

    loss: Loss
    targets: Any
    rows: Rows
    positions: Array | None = None
    linear_scores: Any = None

    @classmethod
    def from_arrays(cls, loss: Loss, targets: Array, weights: Array | None = None) -> Problem:
        """Return the problem of targets in memory, without samples."""
        return cls(loss, targets, Rows.without_features(len(targets), targets.dtype, weights))

    @property
    def n_tasks(self) -> int:
        """Number of columns of the targets."""
        return int(self.targets.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """Floating point type of the targets and the dual variables."""
        dtype: np.dtype[Any] = self.targets.dtype
        return dtype

    @property
    def weights(self) -> Any:
        """Sample weights, a column of shape (n_samples, 1), or None."""
        return self.rows.weights

    @property
    def total_weight(self) -> float:
        """Sum of the sample weights."""
        return self._columns.total_weight

    @property
    def counts(self) -> Array:
        """The sample weights in memory, of shape (n_samples,); ones if there are none."""
        if self.weights is None:
            return np.ones(len(self.rows))
        return self.rows.to_host(self.weights)[:, 0]

    @property
    def _columns(self) -> Rows:
        return self.rows.columns_only

    @property
    def score_columns(self) -> tuple[Any, ...]:
        """The scores of the linear model as a tuple of columns, empty if there are none."""
        return () if self.linear_scores is None else (self.linear_scores,)

    @cached_property
    def box(self) -> tuple[Array, Array]:
        """Lower and upper limits of the dual variables, for targets in memory."""
        return self.loss.box(self.targets)

    # Parts of the problem.

    def task(self, number: int) -> Problem:
        """Return the problem of one task."""
        scores = None if self.linear_scores is None else self.linear_scores[:, [number]]
        return replace(self, targets=self.targets[:, [number]], linear_scores=scores)

    def take(self, indices: Array) -> Problem:
        """Return the problem of some of the samples, copied into memory, as given rows."""
        targets, scores = (
            None if column is None else self.rows.to_host(column, indices)
            for column in (self.targets, self.linear_scores)
        )
        return Problem(self.loss, targets, self.rows.take(indices), linear_scores=scores)

    def without(self, indices: Array) -> Problem:
        """Return the problem without the samples at `indices`; the others stay where they are."""
        if not self.rows.is_local:  # no column of the given rows is stored
            rows, targets = self.rows.select(self.rows.zeros_at(np.sort(indices)), self.targets)
            return Problem(self.loss, targets, rows)
        mask = np.ones(len(self.rows), dtype=bool)
        mask[indices] = False
        rows, targets = self.rows.select(mask, self.targets)
        positions = self.moved(np.where(mask, np.cumsum(mask) - 1, -1))
        return replace(self, targets=targets, rows=rows, positions=positions)

    def with_C(self, C: float) -> Problem:
        """Return the problem with `C` times its loss."""
        return replace(self, loss=self.loss.times(C))

    def viewed(self, view: View) -> Problem:
        """Return the problem as the game is played on it: through a view of the samples."""
        dtype, offset = view.dtype, view.offset
        targets = self._columns.map(lambda _, t: (t - offset).astype(dtype), self.targets)
        return replace(self, targets=targets, rows=view.apply(self.rows))

    # The rows that were given.

    @property
    def n_given(self) -> int:
        """Number of rows that were given."""
        return len(self.rows) if self.positions is None else len(self.positions)

    def moved(self, positions: Array) -> Array:
        """Return positions of the given rows, after the rows of the problem moved to others."""
        return positions if self.positions is None else np.append(positions, -1)[self.positions]

    def to_given(self, column: Any) -> Array:
        """Return a column for the rows that were given; zero for rows that were left out."""
        values = self.rows.to_host(column)
        if self.positions is None:
            return values
        return np.concatenate([values, np.zeros_like(values[:1])])[self.positions]

    def from_given(self, values: Array) -> Array:
        """Return values of the given rows for the rows of the problem."""
        if self.positions is None:
            return values
        present = np.flatnonzero(self.positions >= 0)
        shape = (len(self.rows), *values.shape[1:])
        result = np.empty(shape, dtype=values.dtype)
        result[self.positions[present]] = values[present]
        return result

    # Numbers of the problem.

    def astype(self, dtype: Any) -> Problem:
        """Return the problem in another floating point type, without the samples."""
        weights = None if self.weights is None else self.weights.astype(dtype)
        return Problem.from_arrays(self.loss, self.targets.astype(dtype), weights)

    def mean_target(self) -> Array:
        """Weighted mean of real targets per task, in float64; zero for classes."""
        if self.loss.one_sided:
            return np.zeros(self.n_tasks)
        (total,) = self._sum(lambda t, w: ((w * t.astype(np.float64)).sum(axis=0),))
        return total / self.total_weight

    def target_scale(self) -> float:
        """Root mean square deviation of real targets from their mean; 1 for classes."""
        if self.loss.one_sided:
            return 1.0
        mean = self.mean_target()
        (squares,) = self._sum(
            lambda t, w: ((w * np.square(t.astype(np.float64) - mean)).sum(axis=0),)
        )
        scale = math.sqrt(float(squares.mean()) / self.total_weight)
        return scale if scale > 0 else 1.0

    def power_of_scale(self) -> float:
        """Return a power of two near the scale of the targets, whose products are exact."""
        return 2.0 ** round(math.log2(self.target_scale()))

    def rescaled(self, scale: float) -> Problem:
        """Return the problem of the targets divided by a number.

        Its loss is such that scores, models and dual variables are divided by the number too.
        """
        if scale == 1:
            return self
        factor = self.dtype.type(1 / scale)
        targets = self._columns.map(lambda _, t: t * factor, self.targets)
        return replace(self, loss=self.loss.rescaled(scale), targets=targets)

    def fits_float32(self, limit: float, offset: Array) -> bool:
        """Whether the numbers of the problem, and sums of them, are within ``1 / limit, limit``."""

        def extremes(t: Array, w: Any) -> tuple[float, float, float]:
            return float(np.abs(t - offset).max()), float(np.min(w)), float(np.max(w))

        blocks = self._columns.map_blocks(
            with_weights(extremes, self.weights), self.targets, *self.rows.weight_columns
        )
        targets, least, most = zip(*blocks, strict=True)
        loss = self.loss
        measure = loss.largest_dual(max(targets)) * self.total_weight  # the largest possible mass
        numbers = [max(targets), min(least), max(most), measure, *astuple(loss)]
        return all(1 / limit < abs(x) < limit for x in numbers if x and math.isfinite(x))

    # Dual variables.

    def measure(self, dual: Any) -> Any:
        """Return the signed measure: dual variables times sample weights."""
        if self.weights is None:
            return dual
        return self._columns.map(lambda _, a, w: a * w, dual, self.weights, lazy=True)

    def project(self, dual: Any, projection: Callable[..., Any] = nearest) -> Any:
        """Return the nearest feasible dual point."""
        return projection(self._columns, dual, self.loss.box, self.targets)

    @property
    def start_factor(self) -> float:
        """The game starts at the projection of the targets times this number."""
        return self.loss.start_multiple / self.loss.unit(self.target_scale())

    def first_dual(self, projection: Callable[..., Any] = nearest) -> Any:
        """Return the dual point that the game starts from."""
        loss = self.loss
        if self.linear_scores is not None:
            start = self._columns.map(
                lambda _, t, s: loss.dual_at(t, s), self.targets, self.linear_scores
            )
            return self.project(start, projection)
        start = self.dtype.type(self.start_factor)
        return self.project(self._columns.map(lambda _, t: start * t, self.targets), projection)

    def step(
        self, dual: Any, response: Any, size: float, projection: Callable[..., Any] = nearest
    ) -> Any:
        """Take one projected gradient step on the dual objective."""
        return self.into_ball(self.project(self.ascend(dual, response, size), projection))

    def ascend(self, dual: Any, response: Any, size: float) -> Any:
        """Take a gradient step on the dual objective, which may leave the feasible set.

        `response` is the kernel's Gram matrix times the measure: a column, or a function of a block
        of samples that returns it, with the attribute `width` as for `Rows.map`.
        """
        rows, columns = self.rows, (self.targets, dual, *self.score_columns)
        step = Step(self.loss, self.dtype.type(size))
        if callable(response) and not rows.on_device:
            return rows.map(replace(step, response=response), *columns, width=response.width)
        if callable(response):
            response = rows.map(response, width=response.width)
        return self._columns.map(step, *columns, response)

    def into_ball(self, dual: Any) -> Any:
        """Scale a feasible point back into the ball that holds the maximiser."""
        if math.isfinite(self.loss.upper):
            return dual
        (squares,) = self._sum(lambda t, w, a: (task_squares(w, a),), dual)
        return self.scale_back(dual, squares)

    def scale_back(self, dual: Any, squares: Array) -> Any:
        """Scale a point back into the ball, given the squared norm of each task."""
        radius = max(self.radius, np.finfo(np.float64).tiny)
        factors = np.minimum(1, radius / np.maximum(np.sqrt(squares), radius)).astype(self.dtype)
        if np.all(factors == 1):
            return dual
        return self._columns.map(lambda _, a: a * factors, dual, lazy=True)

    def stats(self, dual: Any) -> DualStats:
        """Compute the sums over the dual variables, in one pass."""
        loss = self.loss
        return self.stats_of(
            self._columns.map_blocks(
                with_weights(
                    lambda t, w, a, *scores: dual_sums(loss, t, w, a, *scores), self.weights
                ),
                self.targets,
                dual,
                *self.score_columns,
                *self.rows.weight_columns,
            )
        )

    def stats_of(self, blocks: Iterable[Any]) -> DualStats:
        """Return the sums over the dual variables, given `dual_sums` of each block."""
        loss = self.loss
        sums, lowest, highest, block_stats = zip(*blocks, strict=True)
        linear, squares, at_zero, at_upper = np.sum(sums, axis=0)
        return DualStats(
            linear=float(linear),
            quadratic=float(loss.curvature * squares),
            share_at_zero=float(at_zero / self.total_weight),
            share_at_upper=float(at_upper / self.total_weight),
            largest_multiple=loss.largest_multiple(min(lowest), max(highest)),
            block_stats=list(block_stats),
        )

    def total_loss(self, scores: Any) -> float:
        """Sum of the loss over the samples, in float64."""
        loss = self.loss

        def block_loss(t: Array, w: Any, scores: Array) -> tuple[Array]:
            residuals = (t - scores).astype(np.float64)
            return ((w * loss.values(residuals, *loss.box(t))).sum(),)

        (total,) = self._sum(block_loss, scores)
        return float(total)

    def _sum(self, function: Callable[..., tuple[Any, ...]], *columns: Any) -> tuple[Array, ...]:
        """Sum ``function(targets, weights, *column_blocks)`` over the blocks, in float64."""
        return self._columns.sum_blocks(
            with_weights(function, self.weights),
            self.targets,
            *columns,
            *self.rows.weight_columns,
            dtype=np.float64,
        )

    # Constants of the theory's step sizes and regret bounds.

    @property
    def radius(self) -> float:
        r"""Radius of a ball around zero that holds the maximiser of a task, for any kernel.

        A box that reaches as far as `u` gives :math:`u \sqrt n`. Without a box the objective of a
        maximiser is at least that of 0, so :math:`\tfrac c2 |a|^2 \le t^T a \le |t| |a|`.
        """
        if math.isfinite(self.loss.upper):
            return max(self.loss.sides) * math.sqrt(self.total_weight)
        return 2 / self.loss.curvature * self.target_norm

    @cached_property
    def target_norm(self) -> float:
        """Largest norm of the targets of a task."""
        if self.loss.one_sided:
            return math.sqrt(self.total_weight)
        (squares,) = self._sum(lambda t, w: ((w * np.square(t, dtype=np.float64)).sum(axis=0),))
        return math.sqrt(float(squares.max()))

    def theory_rate(self, round_: int, kernel_bound: float) -> float:
        r"""Step size of the regret bound, times the total weight (the unit of `learning_rate`).

        Online gradient ascent over a set of diameter `D` with gradients of at most `G` has
        regret :math:`\tfrac32 G D \sqrt T` at :math:`\eta_t = D / (G \sqrt t)`; if the dual is
        strongly concave with constant `c`, it is logarithmic at :math:`\eta_t = 1 / (c t)`.
        """
        if self.loss.curvature:
            return self.total_weight / (self.loss.curvature * round_)
        diameter, gradient = self.diameter_and_gradient(kernel_bound, n_tasks=1)
        return self.total_weight * diameter / (gradient * math.sqrt(round_))

    def diameter_and_gradient(
        self, kernel_bound: float, n_tasks: int | None = None
    ) -> tuple[float, float]:
        r"""Diameter of the feasible set, and a bound on the norm of the dual gradient.

        A measure within the radius `r` has mass at most :math:`r \sqrt n`. A kernel of at most
        `kernel_bound` multiplies it by no more than that.
        """
        n_tasks, radius = n_tasks or self.n_tasks, self.radius
        response = kernel_bound * radius * self.total_weight
        root_weight = math.sqrt(self.total_weight)
        gradient = response + self.loss.slope_norm(self.target_norm, radius, root_weight)
        diameter = radius
        if not math.isfinite(self.loss.upper):
            diameter *= math.sqrt(2)
        if not self.loss.one_sided:
            diameter = min(2 * radius, sum(self.loss.sides) * root_weight)
        return diameter * math.sqrt(n_tasks), gradient * math.sqrt(n_tasks)

    # Quality of predictions.

    @property
    def n_strata(self) -> int:
        """Number of classes; 1 for regression."""
        return max(2, self.n_tasks) if self.loss.one_sided else 1

    def strata(self) -> Array:
        """Class code of each sample; zero for regression."""
        dtype = np.min_scalar_type(self.n_strata)
        if not self.loss.one_sided:
            return np.zeros(len(self.rows), dtype)
        codes = self._columns.map(lambda _, t: codes_from_scores(t).astype(dtype), self.targets)
        return self.rows.to_host(codes)

    def errors(self, scores: Array) -> Array:
        """Error of each sample: whether the class is wrong, or the squared residual."""
        if self.loss.one_sided:
            return codes_from_scores(scores) != self.strata()
        return np.square(scores - self.targets, dtype=np.float64).sum(axis=1)

    def score(self, scores: Array) -> float:
        """Accuracy, or R^2 over all outputs together."""
        error = np.average(self.errors(scores), weights=self.counts)
        if self.loss.one_sided:
            return float(1 - error)
        targets, counts = self.targets.astype(np.float64), self.counts
        mean = np.average(targets, axis=0, weights=counts)
        variance = np.average(np.square(targets - mean).sum(axis=1), weights=counts)
        return float(1 - error / variance) if variance > 0 else float(error == 0)


@dataclass(frozen=True)
class Step:
    """The function of a block that takes a gradient step on the dual objective.

    `response` computes the response of the samples; by default it is the last of the columns.
    """

    loss: Loss
    size: Any
    response: Callable[[Any], Any] | None = None

    def __call__(self, X: Any, targets: Array, dual: Array, *columns: Array) -> Array:
        """Return the block of dual variables after the step."""
        if self.response is not None:
            columns = (*columns, self.response(X))
        *scores, response = columns
        if scores:
            response = response + scores[0]
        return dual + self.size * self.loss.slope(targets, dual, response)


def task_squares(w: Any, a: Array) -> Array:
    """Return the squared norm of a block of dual variables, for each task."""
    squares: Array = (w * np.square(a, dtype=np.float64)).sum(axis=0)
    return squares


def dual_sums(loss: Loss, t: Array, w: Any, a: Array, scores: Any = 0) -> tuple[Any, ...]:
    """Return what :meth:`Problem.stats_of` needs of a block of dual variables."""
    below, above = loss.sides
    linear = loss.concave_part(t - scores, a, *loss.box(t))
    at_zero, at_upper = (
        (np.count_nonzero(which) if np.isscalar(w) else (w * which).sum()) / a.shape[1]
        for which in (a == 0, (a <= -below) | (a >= above))
    )
    squares = (w * np.square(a, dtype=np.float64)).sum() if loss.curvature else 0.0
    sums = np.array([(w * linear).sum(dtype=np.float64), squares, at_zero, at_upper])
    extremes = float(a.min(initial=0.0)), float(a.max(initial=0.0))
    return sums, *extremes, measure_stats(w * a)


def with_weights(function: Callable[..., Any], weights: Any) -> Callable[..., Any]:
    """Return a function of a block that is given the sample weights, or 1, as second argument."""
    if weights is None:
        return lambda _, t, *parts: function(t, 1, *parts)
    return lambda _, t, *parts: function(t, parts[-1], *parts[:-1])
