"""The linear model at the end, of more features than memory holds: one pass a Newton step."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from notsorandom.data.rows import Array
from notsorandom.game import DualProblem, Loss
from notsorandom.linear.newton import smoothing_schedule, solve_task, solve_tasks
from notsorandom.linear.passes import SHARES, Pass, PassResult, Point

Maker = Callable[[Any], Callable[[Any], Array]]

# Features of more bytes than this are made anew in every pass.
MOST_BYTES = 2**26
# The solution of so many random rows is where the passes over all of them start.
SAMPLE_ROWS = 2**14
# It takes so many of either class for each feature.
FEWEST = 0.25
# Tasks go over the rows together as long as their Gram matrices take no more bytes than this.
MOST_GRAM_BYTES = 2**28
# Numbers that a pass holds for each row and task, beside the features.
HELD_A_TASK = 128
# A step is taken whole if it gains this share of what the slope promised; one to the lowest point
# of a parabola gains a half.
ENOUGH = 0.1
# A sample that leads to shorter steps than this misleads.
SHORT = 0.25
# Two or three passes a width is what it takes where all goes well. Corners that so many come no
# closer to are too sharp for the precision; and there is an end to everything.
PATIENCE = 12
# Of the gap allowed, what counts as having come closer.
FALL = 1e-2
MAX_PASSES = 500


class Bracket:
    """The best model so far, and values that the optimum lies between.

    Parameters
    ----------
    start : Point
    loss : Loss
    tol : float
    """

    def __init__(self, start: Point, loss: Loss, tol: float) -> None:
        self.best, self.loss, self.tol = start, loss, tol
        self.primal, self.dual = math.inf, -math.inf
        self.n_passes = 0

    @property
    def gap(self) -> float:
        """Duality gap, relative to the primal value."""
        return (self.primal - self.dual) / max(self.primal, 1e-300)

    @property
    def is_over(self) -> bool:
        """Whether it is narrow enough, or took too long."""
        return self.gap <= self.tol or self.n_passes >= MAX_PASSES

    def see(self, stand: PassResult) -> None:
        """Narrow it by what a pass tells."""
        if stand.primal < self.primal:
            self.best, self.primal = stand.point, stand.primal
        self.dual = max(self.dual, stand.dual(self.loss, self.loss.curvature))
        self.n_passes += 1


def origin(n_features: int, loss: Loss) -> Point:
    """Where one starts who knows nothing: with corners so round that every sample is inside."""
    return Point(np.zeros(n_features), 0.0, smoothing_schedule(loss)[0])


Course = Generator[Point, PassResult, None]


def descend(bracket: Bracket, total_weight: float, precision: Any) -> Course:
    """Solve one task: yields the points where it wants to know what a pass tells.

    Parameters
    ----------
    bracket : Bracket
        Is narrowed on the way, until it is over or nothing is left to try.
    total_weight : float
    precision : dtype
        Of the features.
    """
    point, loss = bracket.best, bracket.loss
    rounded = smoothing_schedule(loss)
    width = rounded.index(point.curvature)
    trusting = width > 0
    before: PassResult | None = None
    while width < len(rounded):
        stand = yield replace(point, curvature=rounded[width], step=None)
        if before is not None and not stand.primal <= before.primal:
            stand = yield replace(before.point, curvature=rounded[width], step=None)
        least, lowest, since, share = math.inf, math.inf, 0, 1.0
        while not bracket.is_over:
            step = stand.newton(total_weight, precision)
            # What is left to gain with these corners, and what is lost by their being round.
            left = stand.rounded_primal - stand.dual(loss, rounded[width])
            rounding = stand.primal - stand.dual(loss, loss.curvature) - left
            fallen = lowest - stand.rounded_primal > FALL * bracket.tol * stand.rounded_primal
            since = 0 if fallen or left < 0.9 * least else since + 1
            least, lowest = min(left, least), min(stand.rounded_primal, lowest)
            misled = trusting and (share < SHORT or since >= PATIENCE)
            close = left <= max(rounding, np.finfo(precision).eps * stand.primal)
            if misled or close or since >= PATIENCE:
                break
            share, stand = yield from search(stand, step, np.finfo(precision).eps)
        if bracket.is_over:
            return
        if misled:
            width, point, before = 0, origin(len(point.coef), loss), None
            trusting = False
        else:
            # The next corners are tried one more step ahead.
            width, point, before = width + 1, stand.point.moved(step), stand


def search(
    stand: PassResult, step: Array, rounding: float
) -> Generator[Point, PassResult, tuple[float, PassResult]]:
    """Go Newton's step, or the share of it at which the objective is lowest.

    Returns
    -------
    share : float
    stand : PassResult
    """
    slope = float(stand.gradient @ step)
    trial = yield stand.point.moved(step, asking=True)
    last = float(trial.gradient @ step)
    enough = ENOUGH * slope + rounding * abs(stand.rounded_primal)
    if last <= 0 or trial.rounded_primal <= stand.rounded_primal + enough:
        return 1.0, trial
    shares = np.concatenate([[0.0], SHARES, [1.0]])
    slopes = np.concatenate([[min(0.0, slope)], trial.slopes(), [last]])
    first = int(np.flatnonzero(slopes <= 0)[-1])
    # Where the slope is zero if it is a straight line in between.
    part = slopes[first] / (slopes[first] - slopes[first + 1])
    share = float(shares[first] + part * (shares[first + 1] - shares[first]))
    trial = yield stand.point.moved(share * step)
    return share, trial


# As in solve_machine, flags are raised by numbers that nobody uses.
@np.errstate(invalid="ignore")
def solve_streaming(
    problem: DualProblem,
    maker: Maker,
    n_features: int,
    tol: float,
    callback: Callable[[int], Any] | None = None,
    width: int = 0,
) -> tuple[Array, Array, float]:
    r"""Solve one machine a task, without holding anything as long as the samples.

    The problem and the losses are those of :func:`notsorandom.linear.newton.solve_machine`. Every step is
    one pass over the rows, in which all tasks not done yet take part. What a pass sums up gives
    the objective, its gradient and Hessian, and a lower bound on the optimum, for the loss itself
    and for the one with rounded corners. The solution of a random sample is where it starts.

    Parameters
    ----------
    problem : DualProblem
    maker : callable
        Returns, for a floating point type, the function that computes the features of a block.
    n_features : int
    tol : float
        Largest relative duality gap.
    callback : callable, optional
        Called with the number of tasks that are done whenever one is.
    width : int, default=0
        Numbers that are held for each row on the way to its features, if more than these.

    Returns
    -------
    coef : ndarray of shape (n_tasks, n_features)
    intercept : ndarray of shape (n_tasks,)
    gap : float
        The largest of the relative duality gaps. Where the precision of the rows doesn't allow
        `tol`, features are made in float64.
    """
    rows, n_tasks = problem.rows, problem.n_tasks
    n_rows = sample_size(n_features, rows.dtype)
    if n_rows >= len(rows):
        local = problem.take(np.arange(len(rows)))
        features = local.rows.map(maker(rows.dtype), width=width)
        return solve_tasks(features, local, tol, callback)
    brackets = [
        Bracket(start, problem.loss, tol)
        for start in first_points(problem, maker, n_features, tol, n_rows, width)
    ]
    most = max(1, MOST_GRAM_BYTES // (8 * n_features**2))
    width = max(width, n_features + HELD_A_TASK * (min(most, n_tasks) - 1))
    for precision in dict.fromkeys([rows.dtype, np.dtype(np.float64)]):
        # Anew: values in a lower precision are no bounds on what a higher one finds.
        wide = {
            task: Bracket(bracket.best, problem.loss, tol)
            for task, bracket in enumerate(brackets)
            if not bracket.gap <= tol
        }
        for task in narrow(wide, problem, maker(precision), precision, most, width):
            brackets[task] = wide[task]
            if callback is not None:
                callback(sum(bracket.gap <= tol for bracket in brackets))
    if callback is not None:
        callback(n_tasks)
    coef = np.stack([bracket.best.coef for bracket in brackets])
    intercept = np.array([bracket.best.intercept for bracket in brackets])
    return coef, intercept, float(np.max([bracket.gap for bracket in brackets]))  # NaN is told


def narrow(
    brackets: dict[int, Bracket],
    problem: DualProblem,
    make: Callable[[Any], Array],
    precision: np.dtype[Any],
    most: int,
    width: int,
) -> Iterator[int]:
    """Narrow the brackets of some tasks in common passes; yields each task when it is done.

    Parameters
    ----------
    brackets : dict
        By the task.
    problem : DualProblem
    make : callable
        Makes the features of a block.
    precision : dtype
        Of the features.
    most : int
        Tasks that may take part in a pass.
    width : int
        Numbers that are held for each row in a pass.
    """
    columns = [problem.targets] if problem.weights is None else [problem.targets, problem.weights]
    waiting = list(brackets)
    courses: dict[int, Course] = {}
    points: dict[int, Point] = {}
    while waiting or courses:
        while waiting and len(courses) < most:
            task = waiting.pop(0)
            courses[task] = descend(brackets[task], problem.total_weight, precision)
            points[task] = next(courses[task])
        queries = tuple(points.values())
        look = Pass(make, precision, problem.loss, np.array(list(points)), queries)
        sums = problem.rows.sum_blocks(look, *columns, width=width, dtype=np.float64)
        for task, *parts in zip(list(points), queries, *sums, strict=True):
            stand = PassResult(*parts)
            brackets[task].see(stand)
            try:
                points[task] = courses[task].send(stand)
            except StopIteration:
                del courses[task], points[task]
                yield task


def sample_size(n_features: int, dtype: np.dtype[Any]) -> int:
    """Rows to start with: as many as help, if their features are few enough to hold."""
    room = MOST_BYTES // (n_features * dtype.itemsize)
    return min(SAMPLE_ROWS, max(4 * n_features, room))


def first_points(
    problem: DualProblem,
    maker: Maker,
    n_features: int,
    tol: float,
    n_rows: int,
    width: int,
) -> Iterator[Point]:
    """Where each task starts: at the solution of a sample, with the corners that it took."""
    # Always the same sample: a fit has a seed for what is random in the model alone.
    rng = np.random.default_rng(0)
    rows = problem.rows
    indices = np.sort(rng.choice(len(rows), size=n_rows, replace=False, shuffle=False))
    sample = problem.take(indices)
    scale = problem.total_weight / sample.total_weight
    features = sample.rows.map(maker(rows.dtype), width=width)
    weights = sample.counts[:, None] * scale
    sample = replace(sample, rows=replace(sample.rows, weights=weights))
    for task in range(sample.n_tasks):
        n_positive = int((sample.targets[:, task] > 0).sum())
        # Of a rare class too few may be there to learn from, or none.
        rare = FEWEST * n_features >= min(n_positive, n_rows - n_positive)
        if problem.loss.one_sided and rare:
            yield origin(n_features, problem.loss)
            continue
        machine = solve_task(features, sample.task(task), tol)
        if np.isfinite(machine.coef).all() and np.isfinite(machine.intercept):
            yield Point(machine.coef, float(machine.intercept), machine.curvature)
        else:
            yield origin(n_features, problem.loss)
