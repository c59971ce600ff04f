"""Random splits of the training data with the same share of every class in all parts."""

from __future__ import annotations

import numpy as np

from notsorandom.data.rows import Array
from notsorandom.game.problem import Problem

# Rows that a size can be chosen on.
VALIDATION_ROWS = 256
# Tolerance for rounding errors in cumulative shares.
SHARE_ROUNDING = 1e-12


def assign_folds(codes: Array, weights: Array, n_folds: int, rng: np.random.Generator) -> Array:
    """Return the fold of each sample, from 0; folds have about equal weight of every class."""
    return (n_folds * (cumulative_shares(codes, weights, rng) + SHARE_ROUNDING)).astype(int)


def hold_out(codes: Array, weights: Array, share: float, rng: np.random.Generator) -> Array:
    """Return a mask of about `share` of the weight of every class; never all of a class."""
    shares = cumulative_shares(codes, weights, rng)
    return (shares > 0) & (shares > (1 - share) - SHARE_ROUNDING)


def validation_mask(problem: Problem, share: float | None, rng: np.random.Generator) -> Array:
    """Return a mask of samples to validate on; raise ValueError if there are none.

    By default a tenth of the samples, and of few samples more: up to `VALIDATION_ROWS`, but at most
    a quarter.
    """
    if share is None:
        share = max(0.1, min(0.25, VALIDATION_ROWS / len(problem.rows)))
    mask = hold_out(problem.strata(), problem.counts, share, rng)
    if not mask.any():
        raise ValueError(
            f"validation_fraction={share} of {len(problem.rows)} different samples leaves none "
            "to validate on: give more samples, a larger fraction, or a number for n_components."
        )
    return mask


def cumulative_shares(codes: Array, weights: Array, rng: np.random.Generator) -> Array:
    """Shuffle each class, and return the share of its weight that precedes each sample."""
    result = np.empty(len(codes))
    for code in np.unique(codes):
        members = rng.permutation(np.flatnonzero(codes == code))
        weight = weights[members].astype(np.float64)
        result[members] = (np.cumsum(weight) - weight) / weight.sum()
    return result
