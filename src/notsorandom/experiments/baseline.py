"""Random Fourier features of the RBF kernel, the way everyone draws them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.kernel_approximation import RBFSampler

from notsorandom.rows import Array, Rows
from notsorandom.spaces.euclidean import median_distance


def median_gamma(X: Array, random_state: int = 0) -> float:
    """Return the `gamma` of the RBF kernel whose bandwidth is the median distance."""
    return 0.5 / median_distance(Rows(X), np.random.default_rng(random_state)) ** 2


def random_features(X: Array, n_components: int, random_state: int) -> Any:
    """Return scikit-learn's sampler of that kernel, fitted."""
    sampler = RBFSampler(
        gamma=median_gamma(X), n_components=n_components, random_state=random_state
    )
    return sampler.fit(X)
