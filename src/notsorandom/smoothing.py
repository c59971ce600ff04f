"""How much to smooth the potential, from the training data alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from notsorandom.rows import Array
from notsorandom.splits import held_out

# Fractions of the median distance. The first is taken unless another is clearly better: the
# optimum is flat, and a choice made on noise costs more than it can gain.
CANDIDATES = (0.06, 0.02, 0.2)
# Residuals tell more than wrong classes do, and real targets can be noise for the most part: then
# only waves of nearly all the data's width are left. The best of these is taken as it is. The list
# and the rule were picked on held-out folds of one data set, scikit-learn's diabetes.
REAL_CANDIDATES = (0.06, 0.02, 0.2, 0.6, 1.0)
# More rows than this don't make the comparison much sharper, only slower.
MAX_ROWS = 2048
# Standard errors by which another candidate must be better. They count the held-out samples, not
# the luck of a short game's starts, so two would not be enough.
CLEARLY = 3.0
# With fewer samples of the smallest class than this, two halves of the data say nothing.
LEAST_MEMBERS = 8


def choose_smoothing(
    codes: Array,
    weights: Array,
    errors: Callable[[Array, Array, float], Array],
    rng: np.random.Generator,
    candidates: tuple[float, ...] = CANDIDATES,
    clearly: float = CLEARLY,
) -> float:
    """Compare the candidates on a held-out half of the data.

    Parameters
    ----------
    codes, weights : ndarrays of shape (n_samples,)
        As in :func:`notsorandom.splits.held_out`.
    errors : callable
        ``errors(train, test, smoothing)`` learns on the `train` indices and returns, for each of
        the `test` indices, how wrong the prediction is.
    rng : numpy.random.Generator
    candidates : tuple of float
    clearly : float
        Standard errors of the difference by which another must beat the first.

    Returns
    -------
    float
    """
    chosen = rng.permutation(len(codes))[:MAX_ROWS]
    if np.bincount(codes[chosen], minlength=codes.max() + 1).min() < LEAST_MEMBERS:
        return candidates[0]
    asked = held_out(codes[chosen], weights[chosen], 0.5, rng)
    train, test = chosen[~asked], chosen[asked]
    if set(codes) != set(codes[test]):
        return candidates[0]  # some class is nearly all of one weight
    wrong = [errors(train, test, smoothing).astype(float) for smoothing in candidates]
    counts = weights[test].astype(np.float64)
    best = 0
    for candidate in range(1, len(candidates)):
        gain = wrong[best] - wrong[candidate]
        mean = np.average(gain, weights=counts)
        deviation = np.sqrt(np.average((gain - mean) ** 2, weights=counts))
        if mean > clearly * deviation / np.sqrt(counts.sum()):
            best = candidate
    return candidates[best]
