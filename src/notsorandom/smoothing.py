"""How much to smooth the potential, from the training data alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from notsorandom.rows import Array
from notsorandom.splits import folds

# Fractions of the median distance, the usual one first. Images and other clean data have little
# need of smoothing; where labels are mostly noise, only waves of nearly the data's width are left.
CANDIDATES = (0.06, 0.02, 0.2, 0.6, 1.0)
# More rows than this don't make the comparison much sharper, only slower.
MAX_ROWS = 2048
# Of this many or fewer, every sample is asked once, by games on the other three fourths, and the
# best candidate is taken as it is: few samples are often noisy ones. Of more, half are asked by a
# game on the others.
FEW_SAMPLES, N_FOLDS = 1024, 4
# Of many samples with classes, another must beat the first by so many standard errors: what is
# at stake is less than the luck of a short game's starts, which they don't count.
CLEARLY = 2.0
# With fewer samples of the smallest class than this, a part of the data says nothing.
LEAST_MEMBERS = 8


def choose_smoothing(
    codes: Array,
    weights: Array,
    errors: Callable[[Array, Array, float], Array],
    rng: np.random.Generator,
    clearly: float = CLEARLY,
) -> float:
    """Compare the candidates on parts of the data that are held out.

    Parameters
    ----------
    codes, weights : ndarrays of shape (n_samples,)
        As in :func:`notsorandom.splits.folds`.
    errors : callable
        ``errors(train, test, smoothing)`` learns on the `train` indices and returns, for each of
        the `test` indices, how wrong the prediction is.
    rng : numpy.random.Generator
    clearly : float
        Standard errors of the difference by which another must beat the first, of many samples.

    Returns
    -------
    float
    """
    chosen = rng.permutation(len(codes))[:MAX_ROWS]
    if np.bincount(codes[chosen], minlength=codes.max() + 1).min() < LEAST_MEMBERS:
        return CANDIDATES[0]
    few = len(codes) <= FEW_SAMPLES
    parts = folds(codes[chosen], weights[chosen], N_FOLDS if few else 2, rng)
    splits = [(chosen[parts != part], chosen[parts == part]) for part in np.unique(parts)]
    if not few:
        del splits[1:]
    if any(len(np.unique(codes[train])) < codes.max() + 1 for train, _ in splits):
        return CANDIDATES[0]  # nearly all weight of a class is on one sample
    counts = np.concatenate([weights[test] for _, test in splits]).astype(np.float64)

    def wrong(smoothing: float) -> Array:
        return np.concatenate([errors(*split, smoothing) for split in splits]).astype(float)

    best, fewest = CANDIDATES[0], wrong(CANDIDATES[0])
    for candidate in CANDIDATES[1:]:
        found = wrong(candidate)
        gain = np.average(fewest - found, weights=counts)
        deviation = np.sqrt(np.average((fewest - found - gain) ** 2, weights=counts))
        error = deviation / np.sqrt(counts.sum())
        if gain > (0 if few else clearly) * error:
            best, fewest = candidate, found
        elif candidate > best and gain < -CLEARLY * error:
            break  # and more smoothing would be worse still
    return best
