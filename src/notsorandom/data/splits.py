"""Samples dealt into parts, every class alike."""

from __future__ import annotations

import numpy as np

from notsorandom.data.rows import Array

# Shares of a sum are rounded.
ROUNDING = 1e-12


def held_out(codes: Array, weights: Array, share: float, rng: np.random.Generator) -> Array:
    """Which samples are held out: about `share` of the weight of every class, as a mask.

    At least one sample of every class is not.
    """
    place = places(codes, weights, rng)
    return (place > 0) & (place > (1 - share) - ROUNDING)


def folds(codes: Array, weights: Array, n_folds: int, rng: np.random.Generator) -> Array:
    """The part that each sample is in, from 0, of about equal weight."""
    return (n_folds * (places(codes, weights, rng) + ROUNDING)).astype(int)


def places(codes: Array, weights: Array, rng: np.random.Generator) -> Array:
    """The samples of each class in random order: what share of its weight is before each of them.

    Parameters
    ----------
    codes : ndarray of shape (n_samples,)
        Class of each sample, as integers from 0.
    weights : ndarray of shape (n_samples,)
        How often each sample counts.
    rng : numpy.random.Generator
    """
    result = np.empty(len(codes))
    for code in np.unique(codes):
        members = rng.permutation(np.flatnonzero(codes == code))
        weight = weights[members].astype(np.float64)
        result[members] = (np.cumsum(weight) - weight) / weight.sum()
    return result
