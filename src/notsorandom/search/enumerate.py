"""The exact search of a finite space: look at every frequency."""

from __future__ import annotations

import numpy as np

from notsorandom._utils.parameters import check_number
from notsorandom.search.base import Search
from notsorandom.spaces.landscape import Landscape, Points


class Enumerate(Search):
    """Find the highest of all frequencies of a finite space.

    Parameters
    ----------
    n_peaks : int, default=4
        At most this many are returned, highest first; 1 is the game as the paper has it.
        Frequencies that make up one kernel, such as all of a degree, count as one.
    """

    def __init__(self, n_peaks: int = 4) -> None:
        self.n_peaks = n_peaks

    def check(self) -> None:
        """Raise ValueError if a parameter is out of its range."""
        check_number("n_peaks", self.n_peaks, least=1, integer=True)

    def find(self, landscape: Landscape, n_peaks: int, rng: np.random.Generator) -> Points:
        """Return the highest kernels of the landscape, highest first.

        There may be more than `n_peaks`, the number that is new to the game: some may be known.
        """
        landscape.require_kind("finite", self, "search='ascent' or 'langevin'")
        points = landscape.evaluate_all()
        groups = landscape.space.groups(points.frequencies, landscape.phase)
        order = np.argsort(-points.height, kind="stable")
        _, first = np.unique(groups[order], return_index=True)
        highest = groups[order[np.sort(first)[: self.n_peaks]]]
        return points.take(np.concatenate([np.flatnonzero(groups == one) for one in highest]))
