"""What a fit was asked for, and what trials chose of it."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from notsorandom.data.rows import Array
from notsorandom.game.losses import Loss
from notsorandom.game.solvers import Solver
from notsorandom.search import Ascent, Enumerate
from notsorandom.search.base import Search
from notsorandom.spaces import Euclidean
from notsorandom.spaces.base import ResolvedSpace, Space
from notsorandom.spaces.view import ProjectedView, View

# The value of `C` in trial games, and where no trials are possible: a game depends little on it.
AUTO_C = 1.0


class Candidate(NamedTuple):
    """What trials compare, beside `C` and the number of features."""

    spectrum: str | None  # None if the search has none
    smoothing: float
    uses_optional: bool = True  # whether the game sees the optional columns of the view
    linear: bool = False  # whether the kernel has a linear part

    @property
    def group(self) -> tuple[str | None, bool, bool]:
        """Candidates of a group differ only in their smoothing."""
        return self.spectrum, self.uses_optional, self.linear


@dataclass(frozen=True)
class FitConfig:
    """The checked configuration of a fit."""

    space: Space
    search: Search | None  # None: one that suits the space
    solver: Solver
    phase: str
    loss: Loss  # with C = 1
    epsilon: float | None  # None: in proportion to the scale of the targets
    # Candidates that trials choose from, the usual one first; there may be only one. Their best one
    # may get a linear part.
    candidates: tuple[Candidate, ...]
    C: tuple[float, ...] | None  # None: any
    calibrated: bool  # whether a temperature is needed
    n_components: int  # the most, if the number is chosen
    size: str  # "given" or "auto"
    warm_start: bool
    optional: Array | None = None  # a mask of the columns that may be left out
    linear: bool | None = False  # whether the kernel has a linear part; None: trials choose
    calibration_size: int | None = 0  # rows that the game is not played on; None: the usual number

    @property
    def extends_C(self) -> bool:
        """Whether very large values of `C` may be tried: for real targets, with a fast solver."""
        is_slow = self.solver.computes_equilibrium
        return self.C is None and not (self.loss.one_sided or is_slow)

    @property
    def n_frequencies(self) -> int:
        """The number of frequencies that gives `n_components` features."""
        return self.n_components // self.space.n_columns(self.phase)

    def in_view(self, view: View) -> FitConfig:
        """Return the configuration in the coordinates of a view."""
        candidates, usual = self.candidates, self.candidates[0].spectrum
        if view.is_projected and len({each.spectrum for each in candidates}) > 1:
            # Directions mix the columns, which the Cauchy spectrum selects.
            candidates = tuple(each for each in candidates if each.spectrum == "gaussian")
        without = tuple(each._replace(uses_optional=False) for each in candidates)
        if view.optional is not None and view.is_projected:
            candidates = *without, candidates[0]
        elif view.optional is not None:
            candidates = *(each for each in candidates if each.spectrum == usual), *without
        # A linear part would have the columns that a selection leaves out.
        linear = False if self.linear is None and view.is_selection else self.linear
        return replace(self, space=view.space, candidates=candidates, linear=linear)

    @property
    def chooses_directions(self) -> bool:
        """Whether trials choose the number of directions: where they choose the smoothing too."""
        is_batched = isinstance(self.space, Euclidean) and self.space.has_batched_trials
        return is_batched and len({each.smoothing for each in self.candidates}) > 1

    def search_in(self, space: ResolvedSpace) -> Search:
        """Return the configured search, or the one that suits a space."""
        return default_search(space) if self.search is None else self.search


def default_search(space: ResolvedSpace) -> Search:
    """Return the search that suits a space."""
    return Ascent() if space.kind == "continuous" else Enumerate()


@dataclass(frozen=True)
class Choice:
    """What trials chose of a configuration's candidates.

    Parameters
    ----------
    candidate : Candidate
        Spectrum, smoothing and columns.
    C : float
    temperature : float
        Scores of a classifier are divided by it before they become probabilities.
    table : dict of str to ndarray, optional
        What the trials found, one row per candidate.
    n_components : int, optional
        The number of features, if trials chose it.
    sizes : dict of str to ndarray, optional
        The estimator's attributes with the numbers of features that were compared.
    linear_c : float, optional
        `C` of a linear model without waves, which the game starts from; None without a linear part.
    linear_weight : float
        Weight of the linear part in the kernel, if the waves have a weight of one.
    held_out_losses, held_out_counts : ndarrays of shape (n_held_out,), optional
        For classes, the losses of the held-out rows with the chosen setting, and their weights.
    """

    candidate: Candidate
    C: float
    temperature: float = 1.0
    table: dict[str, Any] | None = None
    n_components: int | None = None
    sizes: dict[str, Any] | None = None
    linear_c: float | None = None
    linear_weight: float = 0.0
    held_out_losses: Array | None = None
    held_out_counts: Array | None = None

    def view(self, view: View) -> View:
        """Return the view without the optional columns, if they are left out."""
        if self.candidate.uses_optional:
            return replace(view, optional=None)
        assert isinstance(view, ProjectedView)
        return view.without_optional()

    def apply(self, config: FitConfig, view: View) -> FitConfig:
        """Return the configuration with what was chosen, in the coordinates of the chosen view."""
        config = replace(config, space=view.space)
        if self.n_components is not None:
            config = replace(config, n_components=self.n_components)
        spectrum = self.candidate.spectrum
        if spectrum is None:
            return config
        search = Ascent() if config.search is None else copy.copy(config.search)
        assert isinstance(search, Ascent)
        assert isinstance(config.space, Euclidean)
        search.spectrum = spectrum
        return replace(config, search=search, space=config.space.with_noise(spectrum))
