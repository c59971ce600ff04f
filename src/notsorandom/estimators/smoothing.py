"""How much to smooth the potential, from the training data alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from notsorandom.data.rows import Array
from notsorandom.data.splits import folds

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


def asked(n_samples: int, rng: np.random.Generator) -> Array:
    """Indices of the samples that the candidates are compared on, in random order."""
    if n_samples <= MAX_ROWS:
        return rng.permutation(n_samples)
    return rng.choice(n_samples, size=MAX_ROWS, replace=False)


def choose_smoothing(
    codes: Array,
    weights: Array,
    errors: Callable[[Array, Array, float], Array],
    rng: np.random.Generator,
    clearly: float = CLEARLY,
    n_codes: int | None = None,
    n_samples: int | None = None,
) -> float:
    """Compare the candidates on parts of the data that are held out.

    Parameters
    ----------
    codes, weights : ndarrays of shape (n_samples,)
        As in :func:`notsorandom.data.splits.folds`, of the samples that are :func:`asked`.
    errors : callable
        ``errors(train, test, smoothing)`` learns on the `train` indices and returns, for each of
        the `test` indices, how wrong the prediction is.
    rng : numpy.random.Generator
    clearly : float
        Standard errors of the difference by which another must beat the first, of many samples.
    n_codes, n_samples : int, optional
        Of all samples, if those given are a part of them.

    Returns
    -------
    float
    """
    n_codes = int(codes.max()) + 1 if n_codes is None else n_codes
    if np.bincount(codes, minlength=n_codes).min() < LEAST_MEMBERS:
        return CANDIDATES[0]
    few = (len(codes) if n_samples is None else n_samples) <= FEW_SAMPLES
    parts = folds(codes, weights, N_FOLDS if few else 2, rng)
    splits = [
        (np.flatnonzero(parts != part), np.flatnonzero(parts == part)) for part in np.unique(parts)
    ]
    if not few:
        del splits[1:]
    if any(len(np.unique(codes[train])) < n_codes for train, _ in splits):
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
