"""The search that suits the space."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator

from notsorandom.search.ascent import Ascent
from notsorandom.search.enumerate import Enumerate
from notsorandom.spaces import Landscape, Points


class Auto(BaseEstimator):
    """Climb where frequencies are continuous, look at all of them where they are finite."""

    def check(self) -> None:
        """There is nothing to check."""

    def find(self, landscape: Landscape, n_peaks: int, rng: np.random.Generator) -> Points:
        """Return at most `n_peaks` distinct peaks of the landscape, highest first."""
        search = Ascent() if landscape.space.kind == "continuous" else Enumerate()
        return search.find(landscape, n_peaks, rng)
