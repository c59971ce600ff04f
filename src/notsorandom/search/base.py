"""The contract of a search: how a peak of the potential is found.

To add a search, write one class that derives from :class:`Search`, and name it in
``notsorandom.search.SEARCHES``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from sklearn.base import BaseEstimator

from notsorandom.spaces.landscape import Landscape, Points


class Search(BaseEstimator, ABC):
    """A search for peaks, with scikit-learn style parameters.

    A search sees the landscape only: ``landscape.draw`` for starting points and
    ``landscape.evaluate`` for heights; on a continuous space also ``evaluate_with_slope``, ``move``
    and ``subsample``, on a finite one ``evaluate_all``. It declares which kind of space it needs by
    ``landscape.require_kind``.
    """

    @abstractmethod
    def check(self) -> None:
        """Raise ValueError if a parameter is out of its range."""

    @abstractmethod
    def find(self, landscape: Landscape, n_peaks: int, rng: np.random.Generator) -> Points:
        """Return at most `n_peaks` distinct peaks (``landscape.distinct``), highest first.

        On a finite space there may be more: `n_peaks` counts the frequencies that are new to the
        game.
        """
