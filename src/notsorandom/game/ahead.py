"""The end of a round and the start of the next one, for samples that are stored elsewhere.

On a cluster, to wait for sums and to start the next pass takes longer than a short pass. So the
projection, the sums over the projected point and the sample of the next round are submitted at
once, for the multiplier of Newton's first step, which is nearly always the last one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from notsorandom.data.rows import Array, add_results
from notsorandom.game.problem import DualStats, Problem, dual_sums, task_squares
from notsorandom.game.projection import (
    box_sums,
    multiplier_steps,
    nearest_multiplier,
    shifted_point,
)
from notsorandom.spaces.landscape import Sample, pick, sample_masses, split_marks, stack_picks


@dataclass(frozen=True)
class Ahead:
    """What is known of a dual point before the round that starts from it; None if it is not."""

    stats: DualStats | None = None
    sample: Sample | None = None


NOTHING_AHEAD = Ahead()


def project_ahead(problem: Problem, point: Any, marks: Array) -> tuple[Any, Ahead]:
    """Project a point as :meth:`Problem.step` does; return what else has been found on the way.

    Parameters
    ----------
    problem : Problem
        Of samples that are not local.
    point : column of shape (n_samples, n_tasks)
    marks : ndarray
        The fractions of the next sample, as for `pick_by_mass`; empty if there is none.
    """
    rows, loss, n_tasks, dtype = problem.rows, problem.loss, problem.n_tasks, problem.dtype
    n_scores = 0 if problem.linear_scores is None else 1

    def parts(columns: Sequence[Array]) -> tuple[Any, Sequence[Array]]:
        """Return the weights of a block, or 1, and the scores of a linear model if there are."""
        return columns[n_scores] if len(columns) > n_scores else 1, columns[:n_scores]

    def sums_at_zero(_: Any, p: Array, t: Array, *columns: Array) -> tuple[Array, ...]:
        return box_sums(p, *loss.box(t), parts(columns)[0], np.zeros(n_tasks))

    def first_multiplier(results: Sequence[Any]) -> list[Array]:
        zero = np.zeros(n_tasks)
        steps = multiplier_steps(lambda: (zero, zero), n_tasks, dtype)
        next(steps)
        try:
            multiplier = steps.send(add_results(results))
        except StopIteration:  # the point is feasible
            multiplier = zero
        return [multiplier] * len(results)

    def sums_at_first(_: Any, p: Array, t: Array, *given: Any) -> tuple[Any, ...]:
        *columns, multiplier = given
        weights, scores = parts(columns)
        a = np.clip(p - multiplier.astype(dtype), *loss.box(t))
        sums = box_sums(p, *loss.box(t), weights, multiplier)
        squares = () if math.isfinite(loss.upper) else (task_squares(weights, a),)
        return multiplier, (*sums, *squares), dual_sums(loss, t, weights, a, *scores)

    def marks_and_multiplier(results: Sequence[Any]) -> list[tuple[Array, Array]]:
        masses = [stats[-1][0] for *_, stats in results]
        return [(one, results[0][0]) for one in split_marks(marks, masses)]

    def sample(X: Any, p: Array, t: Array, *given: Any) -> Any:
        *columns, (block_marks, multiplier) = given
        a = np.clip(p - multiplier.astype(dtype), *loss.box(t))
        weights, _ = parts(columns)
        return pick(X, a if np.isscalar(weights) else a * weights, sample_masses, block_marks)

    stages: list[Any] = [(None, sums_at_zero), (first_multiplier, sums_at_first)]
    if len(marks):
        stages.append((marks_and_multiplier, sample))
    columns = (point, problem.targets, *problem.score_columns, *rows.weight_columns)
    at_zero, at_first, *picks = rows.with_column_blocks().chain(stages, *columns)
    multipliers, sums, blocks = zip(*at_first, strict=True)
    first, total = multipliers[0], add_results(sums)
    known = [(np.zeros(n_tasks), add_results(at_zero)), (first, total[:3])]
    final = nearest_multiplier(rows, point, loss.box, problem.targets, known=known)
    projected = shifted_point(rows, point, final, loss.box, problem.targets)
    if np.array_equal(final, first.astype(dtype)):
        dual = problem.scale_back(projected, total[3]) if len(total) > 3 else projected
        if dual is projected:
            taken = Sample(marks, *stack_picks(rows, picks[0])) if picks else None
            return dual, Ahead(problem.stats_of(blocks), taken)
        return dual, NOTHING_AHEAD
    return problem.into_ball(projected), NOTHING_AHEAD
