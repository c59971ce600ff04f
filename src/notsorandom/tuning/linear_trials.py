"""Trials of a linear part: its own `C`, whether it helps, and its weight beside the waves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from notsorandom.data.rows import Array
from notsorandom.kernel import beside
from notsorandom.linear.sparse_columns import solve_sparse
from notsorandom.spaces.view import View
from notsorandom.tuning.choice import FitConfig
from notsorandom.tuning.linear_part import LinearPart, to_game_scores
from notsorandom.tuning.trial_games import Contest

if TYPE_CHECKING:
    from notsorandom.tuning.tune import TrialLosses, Trials

# Values of `C` of linear models without waves: on columns of mean square one. The loss is
# interpolated between them.
LINEAR_C = (0.1, 1.0, 10.0, 100.0, 1000.0)
# Weights of the linear part. Trials compare candidates with the first one. With a larger weight, `C`
# is smaller, and so is the share of the waves.
LINEAR_WEIGHTS = (30.0, 3.0)
# Values of `C` with a linear part: `C` of the linear model over the weight times these.
FIRST_RATIOS, LAST_RATIOS = (0.5, 2.0), (0.2, 1.0, 5.0)


@dataclass(frozen=True, eq=False)
class LinearTrial:
    """Linear models without waves, at their best `C`.

    Parameters
    ----------
    trials : Trials
    part : LinearPart
        Of the trials' rows.
    C : float
    loss : float
        The mean loss of the held-out rows.
    game_scores : ndarray of shape (n_splits, n_samples, n_tasks)
        Scores of each split's model, as a game has them.
    """

    trials: Trials
    part: LinearPart
    C: float
    loss: float
    game_scores: Array

    def is_close(self, losses: TrialLosses) -> bool:
        """Whether the model is as good as the best candidate with a few waves."""
        return bool(self.loss <= losses.means.min())

    def evaluate(self, waves: Array, weight: float, C: tuple[float, ...]) -> TrialLosses:
        """Return the losses of models on waves and columns; see `Trials.scores`."""
        scores = scores_beside(self.trials, self.part, weight, C, waves)
        return self.trials.losses(scores, C)

    def choose_weight(self, features: Array, config: FitConfig) -> tuple[TrialLosses, float]:
        """Return the losses with the best weight of the linear part, and the weight."""
        results = []
        for weight in LINEAR_WEIGHTS:
            grid = self.grid(weight, LAST_RATIOS, config.C)
            evaluate = partial(self.evaluate, features, weight)
            results.append(self.trials.search_C(evaluate, grid, config.extends_C))
        best = int(np.argmin([losses.means.min() for losses in results]))
        return results[best], LINEAR_WEIGHTS[best]

    def grid(
        self, weight: float, ratios: tuple[float, ...], given_C: tuple[float, ...] | None = None
    ) -> tuple[float, ...]:
        """Return values of `C` for a weight of the linear part, or those that were given."""
        return given_C or tuple(ratio * self.C / weight for ratio in ratios)


def try_linear(trials: Trials, view: View, unit: float) -> LinearTrial:
    """Find the best `C` of linear models without waves, in multiples of its unit."""
    rows = replace(trials.problem.rows, array=trials.given)
    whole = view.whole(rows)
    array = whole.apply(replace(rows, weights=None)).array
    part = LinearPart(replace(trials.problem, rows=replace(rows, array=array)), whole)
    grid = tuple(unit * each for each in LINEAR_C)
    losses = trials.losses(scores_beside(trials, part, 1.0, grid), grid)
    C, _ = losses.best_C(between=True)
    scores = np.stack([each[0, 0] for each in scores_beside(trials, part, 1.0, (C,))])
    game_scores = to_game_scores(scores, trials.problem.loss)
    return LinearTrial(trials, part, C, float(losses.means.min()), game_scores)


def scores_beside(
    trials: Trials,
    part: LinearPart,
    weight: float,
    C: tuple[float, ...],
    waves: Array | None = None,
) -> Iterator[Array]:
    """Yield each split's scores of models on columns beside waves; see `Trials.scores`."""
    columns = part.problem.rows.array * part.problem.dtype.type(part.scale * weight**0.5)
    n_splits = len(trials.masks)
    if waves is None:
        waves = np.empty((n_splits, 1, len(trials.problem.rows), 0), dtype=trials.problem.dtype)
    if not sparse.issparse(columns):
        shape = (*waves.shape[:3], columns.shape[1])
        yield from trials.scores(
            np.concatenate([waves, np.broadcast_to(columns, shape)], axis=3), C
        )
        return
    for features, mask in zip(waves, trials.masks, strict=True):
        yield np.stack([sparse_scores(trials, beside(each, columns), mask, C) for each in features])


def sparse_scores(trials: Trials, features: Any, mask: Array, C: tuple[float, ...]) -> Array:
    """Return the scores of models with each `C` on sparse features, (n_C, n_samples, n_tasks)."""
    from notsorandom.tuning.tune import TRIAL_GAP

    inside = trials.problem.take(np.flatnonzero(mask))
    scores = []
    for scale in trials.loss_scales(C):
        coef, intercept, _ = solve_sparse(features[mask], inside.with_C(float(scale)), TRIAL_GAP)
        scores.append((features @ coef.T + intercept).astype(trials.problem.dtype))
    return np.stack(scores)


def evaluate_all(
    trials: Trials,
    contest: Contest,
    C: tuple[float, ...],
    linear: LinearTrial | None,
    given_C: tuple[float, ...] | None,
) -> TrialLosses:
    """Evaluate all candidates of a contest; those with a linear part are the last ones.

    `C` has the values for candidates without one.
    """
    features, losses = contest.features, None
    n_first = sum(not each.linear for each in contest.candidates)
    if n_first:
        losses = trials.evaluate(features[:, :n_first], C)
    if n_first == len(contest.candidates):
        assert losses is not None
        return losses
    assert linear is not None
    weight = LINEAR_WEIGHTS[0]
    grid = linear.grid(weight, FIRST_RATIOS, given_C)
    more = linear.evaluate(features[:, n_first:], weight, grid)
    return more if losses is None else losses.joined(more, axis=0)


def evaluation(
    trials: Trials, linear: LinearTrial | None, weight: float
) -> Callable[[Array, tuple[float, ...]], TrialLosses]:
    """Return the function that evaluates features, with a linear part of this weight if any."""
    if linear is None or not weight:
        return trials.evaluate
    return lambda features, C: linear.evaluate(features, weight, C)
