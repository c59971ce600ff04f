"""Trials of a linear part: its own `C`, whether it helps, and its weight beside the waves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy import sparse

from notsorandom.data.rows import Array
from notsorandom.linear.sparse_columns import MixedFeatures, solve_sparse
from notsorandom.spaces.view import View
from notsorandom.tuning.choice import FitConfig
from notsorandom.tuning.linear_part import LinearPart, to_game_scores
from notsorandom.tuning.trials import TRIAL_GAP, TrialLosses, Trials

# Values of `C` of linear models without waves, on columns of mean square one.
LINEAR_C = (0.5, 5.0, 50.0, 500.0)
# Weights of the linear part. With a larger weight, `C` is smaller, and so is the share of the
# waves: with the largest, it is small.
LINEAR_WEIGHTS = (30.0, 300.0, 3.0)
# Values of `C` with a linear part: `C` of the linear model over the weight times these. Weights are
# compared at the middle one.
LINEAR_RATIOS = (0.2, 1.0, 5.0)


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

    def evaluate(self, waves: Array, C: tuple[float, ...], weight: float) -> TrialLosses:
        """Return the losses of models on waves and columns; see `Trials.scores`."""
        scores = scores_with_columns(self.trials, self.part, weight, C, waves)
        return self.trials.losses(scores, C, weight)

    def choose_weight(self, features: Array, config: FitConfig) -> TrialLosses:
        """Return the losses with the best weight of the linear part."""
        results = [
            self.evaluate(features, config.C or (self.C / weight,), weight)
            for weight in LINEAR_WEIGHTS
        ]
        losses = min(results, key=lambda each: float(each.means.min()))
        best = float(losses.weights[0, 0])
        if config.C is None:
            low, _, high = (ratio * self.C / best for ratio in LINEAR_RATIOS)
            below, above = (self.evaluate(features, (C,), best) for C in (low, high))
            losses = below.joined(losses).joined(above)
        evaluate = partial(self.evaluate, features, weight=best)
        return self.trials.extend_C(evaluate, losses, config.extends_C)


def try_linear(trials: Trials, view: View, unit: float) -> LinearTrial:
    """Find the best `C` of linear models without waves, in multiples of its unit."""
    rows = replace(trials.problem.rows, array=trials.given)
    unprojected = view.unprojected(rows)
    array = unprojected.apply(replace(rows, weights=None)).array
    part = LinearPart(replace(trials.problem, rows=replace(rows, array=array)), unprojected)
    grid = tuple(unit * each for each in LINEAR_C)
    by_split = list(scores_with_columns(trials, part, 1.0, grid))
    losses = trials.losses(by_split, grid)
    best = int(losses.means[0].argmin())
    scores = np.stack([scores[0, best] for scores in by_split])
    game_scores = to_game_scores(scores, trials.problem.loss)
    return LinearTrial(trials, part, grid[best], float(losses.means.min()), game_scores)


def scores_with_columns(
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
        yield np.stack(
            [sparse_scores(trials, MixedFeatures(each, columns), mask, C) for each in features]
        )


def sparse_scores(
    trials: Trials, features: MixedFeatures, mask: Array, C: tuple[float, ...]
) -> Array:
    """Return the scores of models with each `C` on sparse features, (n_C, n_samples, n_tasks)."""
    inside = trials.problem.take(np.flatnonzero(mask))
    scores = []
    for scale in trials.loss_scales(C):
        problem = inside.with_C(float(scale))
        coef, intercept, _ = solve_sparse(features[mask], problem, TRIAL_GAP)
        scores.append((features @ coef.T + intercept).astype(trials.problem.dtype))
    return np.stack(scores)
