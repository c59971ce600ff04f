"""The linear model on features in memory: Newton's method, to a given duality gap."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from notsorandom._utils.threads import ONE_THREAD, cached_property
from notsorandom.data.rows import Array
from notsorandom.game import Loss, Problem
from notsorandom.linear.newton_step import (
    MAX_SLOPE,
    MIN_DECREASE,
    SMALLER_GAP,
    LinearModel,
    active_rows,
    active_sums,
    better_of,
    find_roots,
    intercept_ridge,
    solve_hessian,
    solve_hessian_of_sums,
)

# Each reduction of the smoothing divides it by a number in this interval.
LEAST_REDUCTION, MOST_REDUCTION = 2.0, 4.0
# The smoothing may cost this share of the duality gap allowed.
SMOOTHING_SHARE = 0.7
# Largest number of steps, and of steps in a row without improvement. About twenty steps are usual,
# and a few of them may not decrease the gap.
MAX_NEWTON_STEPS, MAX_STALLED_STEPS = 200, 30
# A step that gains less than this share of the duality gap allowed gains nothing: the smoothing is
# reduced.
MIN_GAIN = 1e-4
# Slopes evaluated in a line search of an exact solution.
MAX_SLOPES = 40
# Up to this many numbers, features are converted to float64: that costs less than it saves.
FLOAT64_SIZE = 2**17
# A solution starts from the solution of a sample, of one in this many rows, if the sample has at
# least this many rows per feature.
SAMPLE_RATIO, MIN_SAMPLE_ROWS = 8, 8
# Relative duality gap of the sample's solution: the solution of all rows differs by more.
SAMPLE_GAP = 1e-2
# Rows whose margin exceeds 1 by less than this are solved first, to this share of the duality gap
# allowed, if they are at most half of the rows. Rows that come close join in the next rounds.
NEAR_MARGIN, NEAR_SHARE, NEAR_ROUNDS = 0.5, 0.9, 4
# Threads share the tasks if the features have at least this many numbers: a task then takes
# milliseconds.
SHARED_SIZE = 2**16


# Some BLAS kernels for products of few rows read beyond them and set the invalid flag. Numbers that
# overflow end in a gap that is infinite or not a number.
@np.errstate(invalid="ignore", over="ignore", divide="ignore")
def solve_task(features: Array, problem: Problem, tol: float) -> LinearModel:
    r"""Minimise :math:`\tfrac12 |w|^2 + \sum_i \ell(t_i, \langle w, \phi_i\rangle + b)`.

    The loss is replaced by a smoothed one, whose dual variables are feasible for the loss itself.
    Newton's method minimises it in a few steps. The smoothing is reduced until the duality gap of
    the original problem is at most `tol`. A step costs two products with the features, and a Gram
    matrix of the active rows, whose dual variables are strictly inside their box. With many rows,
    the steps start from the solution of a sample, where little smoothing and few active rows are
    left. Rows of a class that are then far from the margin are left out, and checked at the end.

    Parameters
    ----------
    features : ndarray of shape (n_samples, n_features)
    problem : Problem
        Of one task; for a classification loss, both labels must be present.
    tol : float
        Largest relative duality gap.

    Returns
    -------
    LinearModel
        With the smallest gap reached, if float64 does not allow `tol`. Features in float32 are
        converted to float64 where float32 does not allow it.
    """
    targets = problem.targets[:, 0].astype(np.float64)
    weights = None if problem.weights is None else problem.weights[:, 0].astype(np.float64)
    if features.size <= FLOAT64_SIZE:
        features = features.astype(np.float64)
    task = Task(features, targets, weights, problem.loss)
    start = task.start_from_sample()
    model = task.solve_near_margin(start, tol)
    if not model.gap <= tol and start.model.any():  # a poor start
        model = better_of(model, task.solve(task.zero_start, tol))
    if not model.gap <= tol and features.dtype != np.float64:  # too little precision
        task = replace(task, features=features.astype(np.float64))
        if model.gap < 1:
            start = Start(np.append(model.coef, model.intercept), model.curvature)
            model = better_of(model, task.solve(start, tol))
        if not model.gap <= tol:
            model = better_of(model, task.solve(task.zero_start, tol))
    return model


@dataclass(frozen=True)
class Start:
    """A model, the intercept last, and the curvature of the smoothed loss to continue with."""

    model: Array
    curvature: float


@dataclass(frozen=True, eq=False)
class Task:
    """Features, targets and weights of one task, and Newton's method on them."""

    features: Array
    targets: Array
    weights: Array | None
    loss: Loss

    @cached_property
    def box(self) -> tuple[Array, Array]:
        """Limits of the dual variables."""
        return self.loss.box(self.targets)

    @cached_property
    def total_weight(self) -> float:
        """Sum of the weights of the rows."""
        return len(self.targets) if self.weights is None else float(self.weights.sum())

    @cached_property
    def roots(self) -> Array | None:
        """Square roots of the weights."""
        return None if self.weights is None else np.sqrt(self.weights)

    @cached_property
    def sums_of_all_rows(self) -> tuple[Array, Array, float]:
        """The sums of the Hessian if all rows are active."""
        active = np.ones(len(self.targets), dtype=bool)
        return active_sums(*active_rows(self.features, active, self.roots))

    @property
    def zero_start(self) -> Start:
        """The zero model, with maximal smoothing."""
        return Start(np.zeros(self.features.shape[1] + 1), self.loss.smoothing_schedule()[0])

    def start_from_sample(self) -> Start:
        """Return the solution of a sample, or the zero model if there are few rows."""
        n_rows, n_features = self.features.shape
        size = n_rows // SAMPLE_RATIO
        if size < MIN_SAMPLE_ROWS * n_features:
            return self.zero_start
        # A fixed seed: the linear model does not depend on the random state of the fit.
        rows = np.random.default_rng(0).choice(n_rows, size=size, replace=False)
        weights = np.ones(size) if self.weights is None else self.weights[rows]
        if not weights.sum() > 0:
            return self.zero_start
        weights = weights * (self.total_weight / weights.sum())
        sample = Task(self.features[rows], self.targets[rows], weights, self.loss)
        n_positive = int((sample.targets > 0).sum())
        if self.loss.one_sided and min(n_positive, size - n_positive) < n_features:
            return self.zero_start
        model = sample.solve(sample.start_from_sample(), SAMPLE_GAP)
        if not model.gap <= SAMPLE_GAP:
            return self.zero_start
        return Start(np.append(model.coef, model.intercept), model.curvature)

    def solve_near_margin(self, start: Start, tol: float) -> LinearModel:
        """Solve with the rows near the margin or beyond it, and check with all rows.

        With a good start, the others have no loss and dual variables of zero.
        """
        if not start.model.any():
            return self.solve(start, tol)
        near = np.zeros(len(self.targets), dtype=bool)
        residuals = self.targets - self.scores(start.model)
        for _ in range(NEAR_ROUNDS):
            near |= self.loss.near_margin(self.targets, residuals, NEAR_MARGIN)
            if 2 * np.count_nonzero(near) > len(near):
                break
            weights = None if self.weights is None else self.weights[near]
            part = Task(self.features[near], self.targets[near], weights, self.loss)
            model = part.solve(start, NEAR_SHARE * tol)
            if not model.gap <= NEAR_SHARE * tol:
                break
            start = Start(np.append(model.coef, model.intercept), model.curvature)
            residuals = self.targets - self.scores(start.model)
            model = self.extend(model, near, residuals)
            if model.gap <= tol:
                return model
        return self.solve(start, tol)

    def extend(self, model: LinearModel, rows: Array, residuals: Array) -> LinearModel:
        """Return the model of the chosen rows with dual variables and bounds for all rows."""
        dual = np.zeros(len(rows))
        dual[rows] = model.dual
        losses = np.where(rows, 0, self.loss.values(residuals, *self.box))
        return replace(model, dual=dual, primal_value=model.primal_value + self.total(losses))

    def scores(self, model: Array) -> Array:
        """Return the scores of a model, or the change of the scores by a step."""
        product = self.features @ model[:-1].astype(self.features.dtype)
        return product.astype(np.float64) + model[-1]

    def total(self, values: Array) -> float:
        """Sum of values of the rows times their weights."""
        return float(values.sum() if self.weights is None else values @ self.weights)

    def primal_value(self, model: Array, residuals: Array) -> float:
        """Return the objective of a model."""
        losses = self.loss.values(residuals, *self.box)
        return 0.5 * float(model[:-1] @ model[:-1]) + self.total(losses)

    def solve(self, start: Start, tol: float) -> LinearModel:
        """Take Newton's steps until the duality gap is at most `tol`, or no longer decreases."""
        model, last = start.model, self.loss.smoothing_schedule()[-1]
        residuals = self.targets - self.scores(model)
        curvature = self.largest_curvature(start, residuals, tol)
        best: LinearModel | None = None
        lowest, n_stalled = math.inf, 0
        for _ in range(MAX_NEWTON_STEPS):
            dual = self.loss.best_dual(residuals, *self.box, curvature)
            alignment = self.align(dual)
            bound = self.bound(model, residuals, dual, alignment, curvature)
            threshold = lowest - MIN_DECREASE * tol * bound.primal_value
            smaller = best is None or bound.gap < SMALLER_GAP * best.gap
            improved = smaller or bound.primal_value < threshold
            n_stalled = 0 if improved else n_stalled + 1
            lowest = min(lowest, bound.primal_value)
            if best is None or (not best.gap <= bound.gap and np.isfinite(model).all()):
                best = bound
            if best.gap <= tol or n_stalled > MAX_STALLED_STEPS:
                break
            gradient = np.append(model[:-1], 0) - alignment.sum(axis=1)
            row_weights = self.loss.hessian_weights(dual, *self.box, curvature)
            direction = self.newton_direction(row_weights, gradient, curvature)
            gain = -float(gradient @ direction)
            change = -self.scores(direction)
            step = self.line_search(model, direction, residuals, change, curvature, gain)
            model = model + step * direction
            residuals = residuals + step * change
            error = self.smoothing_error(residuals, curvature)
            allowed = tol * bound.primal_value
            gain = max(gain, abs(gradient[-1] * model[-1]))
            # After a shortened step, more steps with this smoothing gain more than a reduction.
            if step < 1 and gain > 0.1 * allowed:
                continue
            # More steps are wasted while the smoothing costs more than they gain. Its error is
            # about quadratic in the curvature.
            costly = gain <= error and error > SMOOTHING_SHARE * allowed
            if costly or gain <= MIN_GAIN * allowed:
                ratio = math.sqrt(error / max(SMOOTHING_SHARE * allowed, 1e-300))
                ratio = min(max(ratio, LEAST_REDUCTION), MOST_REDUCTION)
                reduced = max(curvature / ratio, last)
                model = self.predict(model, residuals, curvature, reduced)
                curvature = reduced
                # Without the rounding errors of the steps so far.
                residuals = self.targets - self.scores(model)
        assert best is not None
        return best

    def largest_curvature(self, start: Start, residuals: Array, tol: float) -> float:
        """Return the largest multiple of the start's curvature whose smoothing costs little.

        A small sample is nearly separable and ends with little smoothing, from where Newton's
        method on more rows takes many steps.
        """
        allowed = SMOOTHING_SHARE * tol * self.primal_value(start.model, residuals)
        curvature, first = start.curvature, self.loss.smoothing_schedule()[0]
        while 2 * curvature <= first and self.smoothing_error(residuals, 2 * curvature) <= allowed:
            curvature *= 2
        return curvature

    def align(self, dual: Array) -> Array:
        """Return the sums of features, and of ones, times the positive and negative measure."""
        measure = dual if self.weights is None else dual * self.weights
        sides = np.stack([np.maximum(measure, 0), np.minimum(measure, 0)])
        # A product for each side: BLAS is slow with two columns.
        products = [side @ self.features for side in sides.astype(self.features.dtype)]
        return np.column_stack([np.stack(products), sides.sum(axis=1)]).T  # (n_features + 1, 2)

    def bound(
        self, model: Array, residuals: Array, dual: Array, alignment: Array, curvature: float
    ) -> LinearModel:
        """Return a model with the values of both objectives.

        Scaling down the dual variables of the heavier sign makes their sum zero.
        """
        above, below = float(alignment[-1, 0]), -float(alignment[-1, 1])
        scale = min(above, below) / max(above, below) if max(above, below) > 0 else 1.0
        factors = np.array([scale, 1.0] if above > below else [1.0, scale])
        feasible = dual * np.where(dual > 0, factors[0], factors[1])
        linear = self.total(self.loss.concave_part(self.targets, feasible, *self.box))
        square = float(np.square(alignment[:-1] @ factors).sum())
        if self.loss.curvature:
            square += self.loss.curvature * self.total(np.square(feasible))
        # The best multiple of the dual variables that certainly stays in the box.
        largest = 1.0 if math.isfinite(self.loss.upper) else math.inf
        multiple = min(max(linear, 0.0) / square, largest) if square > 0 else largest
        multiple = multiple if math.isfinite(multiple) else 0.0
        return LinearModel(
            coef=model[:-1],
            intercept=float(model[-1]),
            dual=multiple * feasible,
            primal_value=self.primal_value(model, residuals),
            dual_value=multiple * linear - 0.5 * multiple**2 * square,
            curvature=curvature,
        )

    def newton_direction(self, row_weights: Array, gradient: Array, curvature: float) -> Array:
        """Return Newton's direction for the smoothed objective."""
        ridge, features = intercept_ridge(self.total_weight, self.loss), self.features
        if row_weights.dtype == bool and row_weights.all() and len(features) >= features.shape[1]:
            # With much smoothing, in many steps.
            sums, precision = self.sums_of_all_rows, features.dtype
            return -solve_hessian_of_sums(*sums, curvature, ridge, gradient, precision)
        return -solve_hessian(features, row_weights, curvature, ridge, gradient, self.roots)

    def predict(self, model: Array, residuals: Array, curvature: float, reduced: float) -> Array:
        """Return the minimiser for a reduced curvature, if the rows keep their weights.

        If it does not decrease the primal objective, return the given model.
        """
        dual = self.loss.best_dual(residuals, *self.box, curvature)
        row_weights = self.loss.hessian_weights(dual, *self.box, curvature)
        growth = row_weights * (curvature / reduced - 1)
        gradient = np.append(model[:-1], 0) - self.align(dual * (1 + growth)).sum(axis=1)
        predicted = model + self.newton_direction(row_weights, gradient, reduced)
        left = self.targets - self.scores(predicted)
        lower = self.primal_value(predicted, left) < self.primal_value(model, residuals)
        return predicted if lower else model

    def smoothing_error(self, residuals: Array, curvature: float) -> float:
        """Return the duality gap of a model if it minimises the smoothed objective."""
        loss, (low, high) = self.loss, self.box
        dual = loss.best_dual(residuals, low, high, curvature)
        attained = loss.concave_part(residuals, dual, low, high)
        attained -= 0.5 * loss.curvature * np.square(dual)
        error = self.total(loss.values(residuals, low, high) - attained)
        return max(error, 0.0)  # rounding may make it negative

    def line_search(
        self,
        model: Array,
        direction: Array,
        residuals: Array,
        change: Array,
        curvature: float,
        gain: float,
    ) -> float:
        """Return the step in (0, 1] that nearly minimises the smoothed objective."""
        linear, square = model[:-1] @ direction[:-1], direction[:-1] @ direction[:-1]
        weighted = change if self.weights is None else change * self.weights

        def slope(step: float) -> float:
            dual = self.loss.best_dual(residuals + step * change, *self.box, curvature)
            return float(linear + step * square + dual @ weighted)

        # The slope increases from -gain. While it is small, the minimum is near.
        last = slope(1.0)
        if not last > MAX_SLOPE * gain:
            return 1.0
        first, largest = np.array([-gain]), np.array([MAX_SLOPE * gain])
        slopes = np.vectorize(slope, otypes=[np.float64])
        return float(find_roots(slopes, first, np.array([last]), largest, MAX_SLOPES)[0])


def solve_tasks(
    features: Array, problem: Problem, tol: float, callback: Callable[[int], Any] | None = None
) -> tuple[Array, Array, float]:
    """Solve one linear model per task, each to a relative duality gap of `tol`.

    Returns the coefficients, of shape (n_tasks, n_features), the intercepts, and the largest gap,
    which is NaN if any gap is. `callback` is called with the number of tasks solved so far. The
    threads of the problem's rows share the tasks.
    """
    models: list[LinearModel] = []

    def solve(task: int) -> LinearModel:
        return solve_task(features, problem.task(task), tol)

    def collect(model: LinearModel) -> None:
        models.append(model)
        if callback is not None:
            callback(len(models))

    pool = problem.rows.pool
    if pool is None or features.size < SHARED_SIZE:
        pool = ONE_THREAD
    pool.map_ordered(solve, range(problem.n_tasks), collect)
    coef = np.stack([model.coef for model in models])
    intercept = np.array([model.intercept for model in models])
    return coef, intercept, float(np.max([model.gap for model in models]))
