"""The contract of a search: how peaks of the potential are found.

To add a search, write one class that derives from :class:`Search`, and name it in
``notsorandom.search.SEARCHES``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from notsorandom.spaces.base import BaseEstimator
from notsorandom.spaces.landscape import Landscape, Points


class Search(BaseEstimator, ABC):
    """A search for peaks, with scikit-learn style parameters.

    A search uses the landscape only. ``landscape.draw`` gives starting points,
    ``landscape.evaluate`` heights, and ``landscape.distinct`` leaves out similar points. On a
    continuous space there are also ``evaluate_with_slope``, ``move`` and ``subsample``, and on a
    finite one ``evaluate_all`` and the methods of ``finite_space``. A search that needs one kind of
    space calls ``landscape.require_kind`` first.
    """

    @abstractmethod
    def check(self) -> None:
        """Raise ValueError if a parameter is out of its range."""

    def sample_size(self, n_rows: int) -> int:
        """Return how many of the rows the search draws before anything else; 0 if it uses all."""
        return 0

    @abstractmethod
    def find(self, landscape: Landscape, n_peaks: int, rng: np.random.Generator) -> Points:
        """Return distinct peaks, highest first, with their amplitudes on all rows.

        On a continuous space at most `n_peaks`, the number that the game has room for. On a finite
        space there may be more, since some may be in the game's active set already.
        """
