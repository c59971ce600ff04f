"""The gap between the peaks of a search and the highest known ones, round by round."""

from __future__ import annotations

from typing import Any

import numpy as np

from notsorandom.data.rows import Array
from notsorandom.game.loop import GameLoop, Observer
from notsorandom.spaces.landscape import Landscape, PeakFinder


class SearchGap(Observer):
    r"""Measures :math:`\epsilon_t`: how far each round's highest peak is below the highest known.

    The main theorem allows the search of round `t` a potential that is by :math:`\epsilon_t` below
    the supremum; the mean of these over two is then added to the bound. The highest known here is
    the highest of all frequencies of the game so far and the peak of another search, so that on
    R^d the gaps are lower bounds. They are of the function that is searched, the smoothed
    potential. A round of several peaks plays their mean: for the theorem's own number give the
    game's search ``n_peaks=1``.

    Parameters
    ----------
    search : Search
        Finds the highest peak: :class:`notsorandom.Thorough`, or :class:`notsorandom.Enumerate` on
        a finite space.
    random_state : int, default=0
        Seed of this search. The game's own random numbers are not touched.

    Attributes
    ----------
    found, highest : list of float
        The potential of each round's highest peak, and the highest known.

    Examples
    --------
    >>> import numpy as np
    >>> from notsorandom import Ascent, Euclidean, Thorough
    >>> from notsorandom.data.rows import Rows
    >>> from notsorandom.game import LOSSES, Problem, SearchGap, play
    >>> rng = np.random.default_rng(0)
    >>> X, noise = rng.standard_normal((200, 2)), rng.choice([-1.0, 1.0], size=(200, 1))
    >>> problem, gap = Problem(LOSSES["hinge"], noise, Rows(X)), SearchGap(Thorough())
    >>> settings = {"space": Euclidean(), "search": Ascent(n_peaks=1), "n_frequencies": 4}
    >>> result = play(problem, rng=rng, observers=[gap], **settings)
    >>> len(gap.epsilons)
    4
    """

    def __init__(self, search: PeakFinder, random_state: int = 0) -> None:
        self.search, self.random_state = search, random_state
        self.found: list[float] = []
        self.highest: list[float] = []

    @property
    def epsilons(self) -> Array:
        r""":math:`\epsilon_t` of each round."""
        return np.array(self.highest) - self.found

    @property
    def shares(self) -> Array:
        """The same as shares of the highest potential known."""
        return self.epsilons / self.highest

    def after_round(self, game: GameLoop) -> bool:
        """Search the round's landscape again; never stops the game."""
        measure = game.problem.measure(game.previous_dual)
        landscape = Landscape(game.space, game.problem.rows, measure, game.smoothing, game.phase)
        rng = np.random.default_rng([self.random_state, len(self.found)])
        known = landscape.evaluate(game.active_set.to_arrays()["frequencies"]).height.max()
        highest = self.search.find(landscape, 1, rng).height.max()
        found = landscape.evaluate(game.moves[-1].frequencies).height.max()
        self.found.append(landscape.unit * float(np.exp(found)))
        self.highest.append(landscape.unit * float(np.exp(max(found, known, highest))))
        return False

    def get_state(self) -> Any:
        """Return the potentials so far."""
        return {"found": np.array(self.found), "highest": np.array(self.highest)}

    def set_state(self, state: Any) -> None:
        """Continue from these potentials."""
        self.found, self.highest = state["found"].tolist(), state["highest"].tolist()
