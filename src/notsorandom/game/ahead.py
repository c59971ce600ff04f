"""The end of a round and the start of the next one, for samples that are stored elsewhere.

On a cluster, to wait for sums and to start the next pass takes longer than a short pass. So the
projection, the sums over the projected point and the sample of the next round are submitted at
once, for the multiplier of Newton's first step, which is nearly always the last one.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from notsorandom.data.rows import Array, add_results
from notsorandom.game.losses import Loss
from notsorandom.game.problem import DualStats, Problem, dual_sums, task_squares
from notsorandom.game.projection import (
    box_sums,
    multiplier_steps,
    nearest_multiplier,
    shifted_point,
)
from notsorandom.spaces.landscape import (
    Sample,
    draw_marks,
    pick,
    sample_masses,
    split_marks,
    stack_picks,
)


@dataclass(frozen=True)
class Ahead:
    """What is known of a dual point before the round that starts from it; None if it is not."""

    stats: DualStats | None = None
    sample: Sample | None = None


NOTHING_AHEAD = Ahead()


@dataclass(frozen=True)
class Stages:
    """Functions of blocks, and of what they have returned for all blocks, of three passes.

    The columns of a block are the point to project, the targets, the scores of a linear model if
    `n_scores` is one, and the weights if there are any. `n_rows` are sampled with `rng`.
    """

    loss: Loss
    dtype: np.dtype[Any]
    n_scores: int
    n_rows: int
    rng: np.random.Generator

    @property
    def marks(self) -> Array:
        """The fractions of the sample, as for `pick_by_mass`."""
        return draw_marks(self.n_rows, copy.deepcopy(self.rng))

    def sums_at_zero(self, _: Any, p: Array, t: Array, *columns: Array) -> tuple[Array, ...]:
        """Return the sums at a multiplier of zero."""
        weights, _ = self._parts(columns)
        return box_sums(p, *self.loss.box(t), weights, np.zeros(p.shape[1]))

    def first_multiplier(self, results: Sequence[Any]) -> list[Array]:
        """Return the multiplier of Newton's first step, for each block."""
        excess, size, slope = add_results(results)
        zero = np.zeros_like(excess)
        steps = multiplier_steps(lambda: (zero, zero), len(zero), self.dtype)
        next(steps)
        try:
            multiplier = steps.send((excess, size, slope))
        except StopIteration:  # the point is feasible
            multiplier = zero
        return [multiplier] * len(results)

    def sums_at_first(self, _: Any, p: Array, t: Array, *given: Any) -> tuple[Any, ...]:
        """Return the multiplier, the sums there, and the sums over the projected point."""
        *columns, multiplier = given
        weights, scores = self._parts(columns)
        low, high = self.loss.box(t)
        a = np.clip(p - multiplier.astype(p.dtype), low, high)
        sums = box_sums(p, low, high, weights, multiplier)
        squares = () if math.isfinite(self.loss.upper) else (task_squares(weights, a),)
        return multiplier, (*sums, *squares), dual_sums(self.loss, t, weights, a, *scores)

    def block_marks(self, results: Sequence[Any]) -> list[tuple[Array, Array]]:
        """Return the multiplier and the marks in each block."""
        masses = [stats[-1][0] for *_, stats in results]
        return [(results[0][0], marks) for marks in split_marks(self.marks, masses)]

    def sample(self, X: Any, p: Array, t: Array, *given: Any) -> Any:
        """Return the samples at the marks, and their measure."""
        *columns, (multiplier, marks) = given
        weights, _ = self._parts(columns)
        a = np.clip(p - multiplier.astype(p.dtype), *self.loss.box(t))
        return pick(X, a if np.isscalar(weights) else a * weights, sample_masses, marks)

    def _parts(self, columns: Sequence[Array]) -> tuple[Any, Sequence[Array]]:
        """Return the weights, or 1, and the scores."""
        weights = columns[self.n_scores] if len(columns) > self.n_scores else 1
        return weights, columns[: self.n_scores]


def project_ahead(
    problem: Problem, point: Any, n_rows: int, rng: np.random.Generator
) -> tuple[Any, Ahead]:
    """Project a point as :meth:`Problem.step` does; return what else has been found on the way.

    Parameters
    ----------
    problem : Problem
        Of samples that are not local.
    point : column of shape (n_samples, n_tasks)
    n_rows : int
        Size of the next sample, or 0.
    rng : numpy.random.Generator
        As it will be when the sample is drawn. It stays as it is.
    """
    rows, box = problem.rows, problem.loss.box
    run = Stages(problem.loss, problem.dtype, len(problem.score_columns), n_rows, rng)
    passes: list[Any] = [(None, run.sums_at_zero), (run.first_multiplier, run.sums_at_first)]
    if n_rows:
        passes.append((run.block_marks, run.sample))
    columns = (point, problem.targets, *problem.score_columns, *rows.weight_columns)
    at_zero, at_first, *picks = rows.with_column_blocks().chain(passes, *columns)
    multipliers, sums, blocks = zip(*at_first, strict=True)
    first, total = multipliers[0], add_results(sums)
    known = [(np.zeros_like(first), add_results(at_zero)), (first, total[:3])]
    final = nearest_multiplier(rows, point, box, problem.targets, known=known)
    projected = shifted_point(rows, point, final, box, problem.targets)
    if not np.array_equal(final, first.astype(final.dtype)):
        return problem.into_ball(projected), NOTHING_AHEAD
    dual = problem.scale_back(projected, *total[3:]) if total[3:] else projected
    if dual is not projected:
        return dual, NOTHING_AHEAD
    sample = Sample(run.marks, *stack_picks(rows, picks[0])) if picks else None
    return dual, Ahead(problem.stats_of(blocks), sample)
