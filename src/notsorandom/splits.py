"""A part of the samples held out."""

from __future__ import annotations

import numpy as np

from notsorandom.rows import Array


def held_out(codes: Array, weights: Array, share: float, rng: np.random.Generator) -> Array:
    """Which samples are held out: about `share` of the weight of every class, as a mask.

    At least one sample of every class is not.

    Parameters
    ----------
    codes : ndarray of shape (n_samples,)
        Class of each sample, as integers from 0.
    weights : ndarray of shape (n_samples,)
        How often each sample counts.
    share : float
        Between 0 and 1.
    rng : numpy.random.Generator
    """
    mask = np.zeros(len(codes), dtype=bool)
    for code in np.unique(codes):
        members = rng.permutation(np.flatnonzero(codes == code))
        weight = weights[members].astype(np.float64)
        before = np.cumsum(weight) - weight
        mask[members] = before >= (1 - share) * weight.sum() * (1 - 1e-12)
    return mask
