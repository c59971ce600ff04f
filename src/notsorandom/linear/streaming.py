"""The linear model on more features than fit into memory: one pass over the samples per step."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from notsorandom.data.rows import Array
from notsorandom.game import Loss, Problem
from notsorandom.linear.newton import SAMPLE_GAP, solve_task, solve_tasks
from notsorandom.linear.newton_step import MIN_DECREASE, SMALLER_GAP, intercept_ridge, relative_gap
from notsorandom.linear.passes import STEP_FRACTIONS, BlockPass, Iterate, PassResult

# Returns, for a floating point type, the function that computes the features of a block.
FeatureMap = Callable[[Any], Callable[[Any], Array]]

# Rows of the random sample whose solution the passes start from, and bytes of its features.
SAMPLE_ROWS = 2**14
SAMPLE_BYTES = 2**26
# The sample's solution is used only if each class has at least this many rows per feature in it.
MIN_ROWS_PER_FEATURE = 0.25
# Tasks share passes as long as their Gram matrices take no more bytes than this.
GRAM_BYTES = 2**28
# Numbers that a pass holds per row and task, beside the features.
NUMBERS_PER_TASK = 128
# A full step is accepted if the objective decreases by this share of the step times the slope. A
# step to the minimum of a parabola decreases it by a half of that.
SUFFICIENT_DECREASE = 0.1
# The start from the sample is discarded if a line search takes a smaller fraction of a step.
MIN_FRACTION = 0.01
# Two or three passes per smoothing are usual. After this many without improvement the smoothing is
# too small for the floating point precision.
MAX_STALLED_PASSES = 12
# Passes per task after which the best model so far is returned.
MAX_PASSES = 500


@dataclass
class DualityBracket:
    """The best model of a task so far, with bounds on the optimum."""

    best: Iterate
    loss: Loss
    tol: float
    primal: float = math.inf
    dual: float = -math.inf
    n_passes: int = 0

    @property
    def gap(self) -> float:
        """Duality gap, relative to the primal value."""
        return relative_gap(self.primal, self.dual)

    @property
    def finished(self) -> bool:
        """Whether the gap is small enough or the passes are used up."""
        return self.gap <= self.tol or self.n_passes >= MAX_PASSES

    def update(self, result: PassResult) -> None:
        """Tighten the bounds by the result of a pass."""
        if result.primal < self.primal:
            self.best, self.primal = result.iterate, result.primal
        self.dual = max(self.dual, result.dual_bound(self.loss, self.loss.curvature))
        self.n_passes += 1


def zero_iterate(n_features: int, loss: Loss) -> Iterate:
    """Return the zero model with maximal smoothing of the loss."""
    return Iterate(np.zeros(n_features), 0.0, loss.smoothing_schedule()[0])


# A solver of one task yields the iterates to evaluate and receives the results of the passes.
TaskSolver = Generator[Iterate, PassResult, None]


def iterate_newton(bracket: DualityBracket, total_weight: float, precision: Any) -> TaskSolver:
    """Solve one task by Newton's method on a loss that is smoothed less and less.

    The caller updates the bracket after each pass. The solver ends when the bracket is finished, or
    when the smoothing schedule is exhausted.
    """
    iterate, loss = bracket.best, bracket.loss
    ridge = intercept_ridge(total_weight, loss)
    schedule = loss.smoothing_schedule()
    level = next(i for i, curvature in enumerate(schedule) if curvature <= iterate.curvature)
    warm_started = level > 0
    previous: PassResult | None = None
    while level < len(schedule):
        result = yield replace(iterate, curvature=schedule[level], step=None)
        if previous is not None and not result.primal <= previous.primal:
            result = yield replace(previous.iterate, curvature=schedule[level], step=None)
        smallest_gap, lowest, n_stalled, fraction = math.inf, math.inf, 0, 1.0
        while not bracket.finished:
            step = result.newton_step(ridge, precision)
            smoothed_gap = result.smoothed_primal - result.dual_bound(loss, schedule[level])
            smoothing_error = result.primal - result.dual_bound(loss, loss.curvature) - smoothed_gap
            threshold = MIN_DECREASE * bracket.tol * result.smoothed_primal
            improved = lowest - result.smoothed_primal > threshold
            improved = improved or smoothed_gap < SMALLER_GAP * smallest_gap
            n_stalled = 0 if improved else n_stalled + 1
            smallest_gap = min(smoothed_gap, smallest_gap)
            lowest = min(result.smoothed_primal, lowest)
            stalled = n_stalled >= MAX_STALLED_PASSES
            bad_start = warm_started and (fraction < MIN_FRACTION or stalled)
            rounding = np.finfo(precision).eps * result.primal
            converged = smoothed_gap <= max(smoothing_error, rounding)
            if bad_start or converged or stalled:
                break
            fraction, result = yield from take_step(result, step, np.finfo(precision).eps)
        if bracket.finished:
            return
        if bad_start:
            level, iterate, previous = 0, zero_iterate(len(iterate.coef), loss), None
            warm_started = False
        else:
            # Start the next smoothing level at its minimum, if the rows keep their weights; the
            # primal objective decides whether to keep it.
            level, previous = level + 1, result
            if level < len(schedule):
                step = result.predict_step(schedule[level], ridge, precision)
                iterate = result.iterate.advance(step)


def take_step(
    result: PassResult, step: Array, rounding: float
) -> Generator[Iterate, PassResult, tuple[float, PassResult]]:
    """Take Newton's step, or the fraction of it that minimises the smoothed objective."""
    slope = float(result.gradient @ step)
    trial = yield result.iterate.advance(step, with_slopes=True)
    last_slope = float(trial.gradient @ step)
    decrease = SUFFICIENT_DECREASE * slope + rounding * abs(result.smoothed_primal)
    if last_slope <= 0 or trial.smoothed_primal <= result.smoothed_primal + decrease:
        return 1.0, trial
    fractions = np.concatenate([[0.0], STEP_FRACTIONS, [1.0]])
    slopes = np.concatenate([[min(0.0, slope)], trial.step_slopes(), [last_slope]])
    # The zero of the slope, by linear interpolation.
    first = int(np.flatnonzero(slopes <= 0)[-1])
    part = slopes[first] / (slopes[first] - slopes[first + 1])
    fraction = float(fractions[first] + part * (fractions[first + 1] - fractions[first]))
    trial = yield result.iterate.advance(fraction * step)
    return fraction, trial


# As in newton.solve_task.
@np.errstate(invalid="ignore", over="ignore", divide="ignore")
def solve_streaming(
    problem: Problem,
    feature_map: FeatureMap,
    n_features: int,
    tol: float,
    callback: Callable[[int], Any] | None = None,
    width: int = 0,
    *,
    sample_rows: int = SAMPLE_ROWS,
    gram_bytes: int = GRAM_BYTES,
) -> tuple[Array, Array, float]:
    r"""Solve one linear model per task, without holding the features of all samples.

    The objective is the one of :func:`notsorandom.linear.newton.solve_task`. Every step is one pass
    over the rows, shared by all unsolved tasks. The sums of a pass give the objective, its gradient
    and Hessian, and a lower bound on the optimum. The passes start from the solution of a random
    sample. Where the precision of the rows does not allow `tol`, features are computed in float64.

    Parameters
    ----------
    problem, tol, callback
        As for :func:`notsorandom.linear.newton.solve_tasks`, and so is the result.
    feature_map : callable
    n_features : int
    width : int, default=0
        Numbers held per row while its features are computed, if more than `n_features`.
    sample_rows : int
        Rows of the sample. Smaller data is solved in memory.
    gram_bytes : int
        Tasks share passes as long as their Gram matrices take no more bytes than this.
    """
    rows, n_tasks = problem.rows, problem.n_tasks
    n_rows = sample_size(n_features, rows.dtype, sample_rows)
    if n_rows >= len(rows):
        local = problem.take(np.arange(len(rows)))
        features = local.rows.map(feature_map(rows.dtype), width=width)
        return solve_tasks(features, local, tol, callback)
    brackets = [
        DualityBracket(start, problem.loss, tol)
        for start in initial_iterates(problem, feature_map, n_features, tol, n_rows, width)
    ]
    max_tasks = max(1, gram_bytes // (8 * n_features**2))
    width = max(width, n_features + NUMBERS_PER_TASK * (min(max_tasks, n_tasks) - 1))
    for precision in dict.fromkeys([rows.dtype, np.dtype(np.float64)]):
        # New brackets: values computed in float32 don't bound the optimum to float64 precision.
        unsolved = {
            task: DualityBracket(bracket.best, problem.loss, tol)
            for task, bracket in enumerate(brackets)
            if not bracket.gap <= tol
        }
        features_of_block = feature_map(precision)
        for task in run_passes(unsolved, problem, features_of_block, precision, max_tasks, width):
            brackets[task] = unsolved[task]
            if callback is not None:
                callback(sum(bracket.gap <= tol for bracket in brackets))
    if callback is not None:
        callback(n_tasks)
    coef = np.stack([bracket.best.coef for bracket in brackets])
    intercept = np.array([bracket.best.intercept for bracket in brackets])
    return coef, intercept, float(np.max([bracket.gap for bracket in brackets]))


def run_passes(
    brackets: dict[int, DualityBracket],
    problem: Problem,
    features: Callable[[Any], Array],
    precision: np.dtype[Any],
    max_tasks: int,
    width: int,
) -> Iterator[int]:
    """Solve some tasks in shared passes of at most `max_tasks`; yield each when it is solved.

    The brackets, by task, are updated in place. `width` is how many numbers a pass holds per row.
    """
    waiting = list(brackets)
    solvers: dict[int, TaskSolver] = {}
    iterates: dict[int, Iterate] = {}
    while waiting or solvers:
        while waiting and len(solvers) < max_tasks:
            task = waiting.pop(0)
            solvers[task] = iterate_newton(brackets[task], problem.total_weight, precision)
            iterates[task] = next(solvers[task])
        tasks, current = list(iterates), tuple(iterates.values())
        sums = problem.rows.sum_blocks(
            BlockPass(features, precision, problem.loss, np.array(tasks), current),
            problem.targets,
            *problem.rows.weight_columns,
            width=width,
            dtype=np.float64,
        )
        for task, *parts in zip(tasks, current, *sums, strict=True):
            result = PassResult(*parts)
            brackets[task].update(result)
            try:
                iterates[task] = solvers[task].send(result)
            except StopIteration:
                del solvers[task], iterates[task]
                yield task


def sample_size(n_features: int, dtype: np.dtype[Any], sample_rows: int = SAMPLE_ROWS) -> int:
    """Return the rows of the sample: limited by bytes, but at least four per feature.

    With fewer rows, the solution of the sample is too far from the solution of all rows.
    """
    room = SAMPLE_BYTES // (n_features * dtype.itemsize)
    return min(sample_rows, max(4 * n_features, room))


def initial_iterates(
    problem: Problem,
    feature_map: FeatureMap,
    n_features: int,
    tol: float,
    n_rows: int,
    width: int,
) -> Iterator[Iterate]:
    """Yield the iterate that each task starts from: the solution of a random sample."""
    # A fixed seed: the linear model does not depend on the random state of the fit.
    rng = np.random.default_rng(0)
    rows = problem.rows
    sample = problem.take(rows.sample_indices(n_rows, rng))
    features = sample.rows.map(feature_map(rows.dtype), width=width)
    weights = sample.counts[:, None] * (problem.total_weight / sample.total_weight)
    sample = replace(sample, rows=replace(sample.rows, weights=weights))
    for task in range(sample.n_tasks):
        n_positive = int((sample.targets[:, task] > 0).sum())
        smaller_class = min(n_positive, n_rows - n_positive)
        if not problem.loss.one_sided or smaller_class > MIN_ROWS_PER_FEATURE * n_features:
            model = solve_task(features, sample.task(task), max(tol, SAMPLE_GAP))
            if np.isfinite(model.coef).all() and np.isfinite(model.intercept):
                yield Iterate(model.coef, float(model.intercept), model.curvature)
                continue
        yield zero_iterate(n_features, problem.loss)
