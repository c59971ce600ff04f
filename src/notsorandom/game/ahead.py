"""The end of a round and the start of the next one, for samples that are stored elsewhere.

On a cluster, to wait for sums and to start the next pass takes longer than a short pass. So the
projection, the sums over the projected point and the sample of the next round are submitted at
once, for as many of Newton's steps as the last projections took: two passes with one task, three
to five with ten.
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
from notsorandom.game.problem import Problem, dual_sums, task_squares
from notsorandom.game.projection import (
    box_sums,
    multiplier_steps,
    nearest_multiplier,
    shifted_point,
)
from notsorandom.game.state import Ahead
from notsorandom.spaces.landscape import (
    Sample,
    draw_marks,
    pick,
    sample_masses,
    split_marks,
    stack_picks,
)

# As many passes are submitted at once as the most that one of the last projections took, of so many
# of them: a pass too many costs less than one too few. And no more than MOST_PASSES.
REMEMBERED, MOST_PASSES = 4, 8


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

    def sums_at_zero(self, X: Any, p: Array, t: Array, *columns: Array) -> tuple[Any, ...]:
        """Return the sums at the first multiplier, which is zero."""
        return self.sums_at_next(X, p, t, *columns, ())

    def sums_at_next(self, _: Any, p: Array, t: Array, *given: Any) -> tuple[Any, ...]:
        """Return the sums at the multipliers so far, and those of the block at the next one."""
        *columns, sums = given
        weights, _ = self._parts(columns)
        return sums, box_sums(p, *self.loss.box(t), weights, self.multiplier(sums, p.shape[1]))

    def sums_at_last(self, _: Any, p: Array, t: Array, *given: Any) -> tuple[Any, ...]:
        """Return also the sums over the point that is projected with the next multiplier."""
        *columns, sums = given
        weights, scores = self._parts(columns)
        low, high = self.loss.box(t)
        multiplier = self.multiplier(sums, p.shape[1])
        a = np.clip(p - multiplier.astype(p.dtype), low, high)
        squares = () if math.isfinite(self.loss.upper) else (task_squares(weights, a),)
        block = (*box_sums(p, low, high, weights, multiplier), *squares)
        return sums, block, dual_sums(self.loss, t, weights, a, *scores)

    def add(self, results: Sequence[Any]) -> list[Any]:
        """Return the sums at all multipliers so far, for each block."""
        sums = (*results[0][0], add_results([block for _, block, *_ in results]))
        return [sums] * len(results)

    def multiplier(self, sums: Sequence[Any], n_tasks: int) -> Array:
        """Return the multiplier after those at which the sums are known."""
        zero = np.zeros(n_tasks)
        steps = multiplier_steps(lambda: (zero, zero), n_tasks, self.dtype)
        multiplier = next(steps)
        try:
            for one in sums:
                multiplier = steps.send(one[:3])
        except StopIteration:  # found
            pass
        return multiplier

    def block_marks(self, results: Sequence[Any]) -> list[tuple[Array, Array]]:
        """Return the last multiplier and the marks in each block."""
        masses = [stats[-1][0] for *_, stats in results]
        multiplier = self.multiplier(results[0][0], len(results[0][1][0]))
        return [(multiplier, marks) for marks in split_marks(self.marks, masses)]

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
    problem: Problem,
    point: Any,
    taken: tuple[int, ...],
    n_rows: int,
    rng: np.random.Generator,
) -> tuple[Any, Ahead]:
    """Project a point as :meth:`Problem.step` does; return what else has been found on the way.

    Parameters
    ----------
    problem : Problem
        Of samples that are not local.
    point : column of shape (n_samples, n_tasks)
    taken : tuple of int
        Passes that the last projections took.
    n_rows : int
        Size of the next sample, or 0.
    rng : numpy.random.Generator
        As it will be when the sample is drawn. It stays as it is.
    """
    rows, box, n_passes = problem.rows, problem.loss.box, min(max(taken), MOST_PASSES)
    run = Stages(problem.loss, problem.dtype, len(problem.score_columns), n_rows, rng)
    passes: list[Any] = [(None, run.sums_at_zero)]
    passes += [(run.add, run.sums_at_next)] * (n_passes - 2) + [(run.add, run.sums_at_last)]
    if n_rows:
        passes.append((run.block_marks, run.sample))
    columns = (point, problem.targets, *problem.score_columns, *rows.weight_columns)
    results = rows.with_column_blocks().chain(passes, *columns)
    last = results[n_passes - 1]
    sums = run.add(last)[0]
    multipliers = [run.multiplier(sums[:number], problem.n_tasks) for number in range(n_passes)]
    known = [(one, parts[:3]) for one, parts in zip(multipliers, sums, strict=True)]
    final = nearest_multiplier(rows, point, box, problem.targets, known=known)
    projected = shifted_point(rows, point, final, box, problem.targets)
    same = [np.array_equal(final, one.astype(final.dtype)) for one, _ in known]
    needed = max(2, same.index(True) + 1 if any(same) else len(known))
    taken = (*taken, needed)[-REMEMBERED:]
    if not same[n_passes - 1]:
        return problem.into_ball(projected), Ahead(taken)
    dual = problem.scale_back(projected, *sums[-1][3:]) if sums[-1][3:] else projected
    if dual is not projected:
        return dual, Ahead(taken)
    sample = Sample(run.marks, *stack_picks(rows, results[-1])) if n_rows else None
    return dual, Ahead(taken, problem.stats_of([stats for *_, stats in last]), sample)
