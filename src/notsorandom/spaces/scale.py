"""The scale of the samples of R^d, and random frequencies at that scale."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from notsorandom.data.array_api import to_host
from notsorandom.data.rows import Array, Rows, row_norms
from notsorandom.spaces.landscape import draw_by_weight

# Random pairs of rows for the median distance: its standard error is then a few percent.
N_PAIRS = 1024
# Cauchy draws: the range of their scales, and the largest entry, whose float32 angles are precise.
CAUCHY_SCALES, MAX_ENTRY = (0.1, 10.0), 1000.0


def cauchy_frequencies(n_frequencies: int, n_features: int, rng: np.random.Generator) -> Array:
    r"""Draw vectors with independent Cauchy entries, times one random scale per vector.

    They are for samples at distance one. With scale :math:`\gamma` they have the spectrum of
    :math:`e^{-\gamma |x - z|_1}`. The scale is log-uniform in `CAUCHY_SCALES`, divided by the root
    of the number of columns, which is about the ratio of :math:`|x - z|_1` to the distance.
    """
    low, high = np.log(CAUCHY_SCALES)
    scales = np.exp(rng.uniform(low, high, size=(n_frequencies, 1))) / math.sqrt(n_features)
    draws = scales * rng.standard_cauchy((n_frequencies, n_features))
    return np.clip(draws, -MAX_ENTRY, MAX_ENTRY)


def resolve_scale(scale: str | float, rows: Rows, rng: np.random.Generator) -> float:
    """Return a scale given as a number or as "median"."""
    return median_distance(rows, rng) if isinstance(scale, str) else float(scale)


@np.errstate(over="ignore", invalid="ignore")  # check_scale
def median_distance(
    rows: Rows, rng: np.random.Generator, norms: Callable[[Any], Array] = row_norms
) -> float:
    """Return the median distance between random pairs of samples, in a norm of their differences.

    Equal samples are left out. It is 1 if all samples are equal.
    """
    left, right = (to_host(draw_by_weight(rows, N_PAIRS, rng).array) for _ in range(2))
    distances = norms(left - right.astype(np.float64))
    if not distances.any():  # almost all samples are equal: search for others
        origin = to_host(rows.take(np.array([0])).array).astype(np.float64)
        distances = rows.to_host(
            rows.map(lambda X: norms(to_host(X) - origin[np.zeros(X.shape[0], dtype=int)]))
        )
    apart = distances[distances > 0]
    return float(np.median(apart)) if len(apart) else 1.0
