"""Solvers: how a game is solved, as a user configures it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from notsorandom._utils.parameters import check_choice, check_flag, check_number
from notsorandom._utils.progress import progress_bar
from notsorandom.game.loop import MAX_RATE, GameLoop, Observer, count_arguments
from notsorandom.game.problem import Problem
from notsorandom.game.projection import PROJECTIONS
from notsorandom.game.state import GameResult, GameState
from notsorandom.kernel import LearnedKernel
from notsorandom.spaces.base import ResolvedSpace
from notsorandom.spaces.landscape import PeakFinder


class Solver(BaseEstimator, ABC):
    """The contract of a solver, with scikit-learn style parameters."""

    @property
    @abstractmethod
    def computes_equilibrium(self) -> bool:
        """Whether it computes an equilibrium, in a time that grows with `C`."""

    @abstractmethod
    def check(self) -> None:
        """Raise ValueError if a parameter is out of its range."""

    @abstractmethod
    def solve(
        self,
        problem: Problem,
        *,
        space: ResolvedSpace,
        search: PeakFinder,
        n_frequencies: int,
        phase: str,
        smoothing: float,
        rng: np.random.Generator,
        observers: Sequence[Observer] = (),
        state: GameState | None = None,
        verbose: int = 0,
    ) -> GameResult:
        """Solve the game for at most `n_frequencies`, or continue it from a state."""

    @abstractmethod
    def kernel(self, result: GameResult) -> LearnedKernel:
        """Return the kernel of a result, also of a game that isn't over."""

    def final_kernel(self, result: GameResult, problem: Problem) -> LearnedKernel:
        """Return the kernel at the end of a game."""
        return self.kernel(result)


class GradientSolver(Solver):
    """Solve the game by online gradient ascent of the dual, as in the paper.

    Parameters
    ----------
    learning_rate : "auto", "theory", float or callable, default="auto"
        Step size of the dual player; see :class:`notsorandom.game.GameLoop`. A callable is given
        the round, from 1, ``lambda t: t**-0.5``, and, if it requires two arguments, the theory's
        step: ``lambda t, theory: 4 * theory``. Model files don't keep callables.
    weighting : {"potential", "uniform"}, default="potential"
        Weight of each frequency in the kernel: in proportion to the amplitude of its peak, or
        equal for all plays, as in the paper. With `learning_rate="theory"` a round is one play,
        which its peaks share.
    projection : {"exact", "alternating"}, default="exact"
        Projection of the dual player's steps; ``"alternating"`` is the paper's Algorithm 3.
    n_rounds : int or "auto", default="auto"
        Most rounds of the game; ``"auto"`` is `n_components`. It matters where a frequency can be
        found again, as on the sphere's harmonics.
    reweight : bool, default=False
        After the game, weight the frequencies so that the margin is largest and drop those without
        weight. A larger margin isn't always a better accuracy.
    """

    def __init__(
        self,
        learning_rate: Any = "auto",
        weighting: str = "potential",
        projection: str = "exact",
        n_rounds: Any = "auto",
        reweight: bool = False,
    ) -> None:
        self.learning_rate = learning_rate
        self.weighting = weighting
        self.projection = projection
        self.n_rounds = n_rounds
        self.reweight = reweight

    @property
    def computes_equilibrium(self) -> bool:
        """Whether the weights of the frequencies found are an equilibrium."""
        return bool(self.reweight)

    def check(self) -> None:
        """Raise ValueError if a parameter is out of its range."""
        names = ["auto", "theory"]
        rate, hint = self.learning_rate, "A callable of the round is allowed, too."
        if callable(rate):
            count_arguments(rate)
        else:
            check_number("learning_rate", rate, above=0, most=MAX_RATE, or_else=names, hint=hint)
        check_choice("weighting", self.weighting, ["potential", "uniform"])
        check_choice("projection", self.projection, PROJECTIONS)
        check_number("n_rounds", self.n_rounds, above=0, integer=True, or_else=["auto"])
        check_flag("reweight", self.reweight)

    def solve(
        self,
        problem: Problem,
        *,
        observers: Sequence[Observer] = (),
        verbose: int = 0,
        **settings: Any,
    ) -> GameResult:
        """Play the game, or continue it from a state; see :class:`Solver`."""
        loop = GameLoop(
            problem,
            n_rounds=None if self.n_rounds == "auto" else int(self.n_rounds),
            learning_rate=self.learning_rate,
            projection=self.projection,
            **settings,
        )
        return loop.play(observers)

    def kernel(self, result: GameResult) -> LearnedKernel:
        """Return the kernel of a result, before any reweighting."""
        return result.kernel(self.weighting)

    def final_kernel(self, result: GameResult, problem: Problem) -> LearnedKernel:
        """Return the kernel at the end of a game, reweighted if configured."""
        if not self.reweight:
            return self.kernel(result)
        from notsorandom.game.reweighting import reweight

        return reweight(self.kernel(result), problem)[0]


class EquilibriumSolver(Solver):
    """Compute the equilibrium of the game directly.

    On finite spaces such as the sphere's harmonics by a primal-dual method over all of them, to a
    relative gap of 1e-3 between the bounds of the certificate. On R^d and with zonal features by
    column generation, to 5e-3; the lower bound is proven in up to three dimensions. Both with
    ``smoothing=0`` and enough `n_components`. R^d then needs a limit of the frequencies, as in
    ``space=Euclidean(max_norm=5.0)``. All features of all samples are held in memory.

    ``history_["objective"]`` is the lower bound on the value of the game that was solved. With
    smoothing that is the smoothed game, whose value is higher than the value in the certificate.
    """

    @property
    def computes_equilibrium(self) -> bool:
        """True."""
        return True

    def check(self) -> None:
        """There are no parameters to check."""

    def solve(
        self,
        problem: Problem,
        *,
        search: PeakFinder,
        observers: Sequence[Observer] = (),
        state: GameState | None = None,
        verbose: int = 0,
        **settings: Any,
    ) -> GameResult:
        """Compute the equilibrium; it has a search of its own, and no rounds to observe."""
        from notsorandom.game.reweighting import solve_equilibrium
        from notsorandom.search.thorough import find_highest

        with progress_bar(1, "equilibrium", verbose) as update:
            return solve_equilibrium(
                problem,
                find_peaks=lambda *given: find_highest(*given).points,
                callback=lambda gap: update(0, f"gap {gap:.1e}"),
                **settings,
            )

    def kernel(self, result: GameResult) -> LearnedKernel:
        """Return the kernel with the weights of the equilibrium."""
        return result.kernel()


SOLVERS: dict[str, Any] = {
    "gradient": GradientSolver,
    "reweight": lambda: GradientSolver(reweight=True),
    "equilibrium": EquilibriumSolver,
}
