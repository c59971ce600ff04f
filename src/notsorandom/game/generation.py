"""The equilibrium of a game over infinitely many frequencies, by column generation."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from notsorandom.data.rows import Array
from notsorandom.game.equilibrium import Equilibrium, State, find_equilibrium
from notsorandom.game.problem import Problem
from notsorandom.kernel import LearnedKernel
from notsorandom.spaces.base import ContinuousSpace
from notsorandom.spaces.landscape import Landscape, Points, feature_potentials

# Relative gap to which the game is solved; restricted games are solved to a fifth of it.
GENERATION_GAP = 5e-3
# Sets of frequencies that are added at the most; most games need fewer than ten.
MAX_SETS = 100
# Frequencies added at a time: the highest distinct peaks of the potential.
N_ADDED = 8
# Evaluations of the potential to bound it, where it can be bounded.
SUPREMUM_EVALUATIONS = 200_000

# Finds distinct peaks of a landscape, highest first, given frequencies to start from.
FindPeaks = Callable[[Landscape, Array, np.random.Generator], Points]


@dataclass(frozen=True)
class ColumnGame:
    """A game over the frequencies of a continuous space.

    With smoothing, the kernel of a frequency is multiplied by the exponential of its penalty.
    """

    problem: Problem
    space: ContinuousSpace
    phase: str
    smoothing: float

    def kernel_of(self, points: Points) -> LearnedKernel:
        """Return the kernel of some frequencies, at the phases that fit their amplitudes best."""
        penalty = self.space.penalty(self.problem.rows, points.frequencies, self.smoothing)
        return LearnedKernel(
            space=self.space,
            frequencies=points.frequencies,
            phases=self.space.phases(points.amplitudes),
            scales=np.exp(-penalty / 2),
            weights=np.full(len(points), 1 / len(points)),
            phase=self.phase,
        )

    def potentials(self, points: Points) -> Array:
        """Return the smoothed potentials of the frequencies' features."""
        penalty = self.space.penalty(self.problem.rows, points.frequencies, self.smoothing)
        potentials = feature_potentials(self.space, points.amplitudes, self.phase)
        return potentials * np.exp(-penalty.astype(np.float64))

    def landscape(self, dual: Array) -> Landscape:
        """Return the landscape of a dual point."""
        rows = self.problem.rows
        measure = self.problem.measure(dual).astype(rows.dtype)
        return Landscape(self.space, rows, measure, self.smoothing, self.phase)


def generate_columns(
    game: ColumnGame,
    find_peaks: FindPeaks,
    rng: np.random.Generator,
    callback: Callable[[float], Any] | None = None,
) -> tuple[LearnedKernel, Equilibrium]:
    """Solve a game over a continuous space, one set of frequencies after another.

    The game restricted to the frequencies found so far is solved by :func:`find_equilibrium`. The
    peaks of the potential of its dual point that are higher than at these frequencies are added,
    until there are none, or until the bounds meet: the value of the restricted game is an upper
    bound on the value of the whole one, and the highest peak gives a lower bound. In up to three
    dimensions, without smoothing, that peak is bounded by branch and bound.

    Returns
    -------
    kernel : LearnedKernel
        Of all frequencies found, with their weights.
    equilibrium : Equilibrium
        With the bounds on the value of the whole game; the lower one is estimated where peaks are
        not bounded.
    """
    problem = game.problem
    dual = problem.first_dual()
    kernel: LearnedKernel | None = None
    best: Equilibrium | None = None
    for _ in range(MAX_SETS):
        landscape = game.landscape(dual)
        known = landscape.rows.array[:0] if kernel is None else kernel.frequencies
        points = find_peaks(landscape, known, rng)
        highest = float(game.potentials(points).max())
        if best is not None:
            best, points, solved = bound_below(game, best, dual, highest, points)
            if callback is not None:
                callback(best.relative_gap)
            if solved:
                break
        kernel = joined(kernel, game.kernel_of(points.take(slice(N_ADDED))))
        solution = solve_restricted(kernel, problem, None if best is None else best.state)
        kernel, dual = replace(kernel, weights=solution.weights), solution.dual
        if best is None:  # of other frequencies nothing is known yet
            best = replace(solution, lower=0.0)
        else:
            best = replace(solution, lower=best.lower, dual=best.dual)
    else:
        assert best is not None
        warnings.warn(
            f"The equilibrium was found to a relative gap of {best.relative_gap:.1e}, not to "
            f"{GENERATION_GAP:.0e}: try a smaller C, more smoothing or a smaller max_norm.",
            ConvergenceWarning,
            stacklevel=2,
        )
    assert kernel is not None
    return kernel, best


def bound_below(
    game: ColumnGame, best: Equilibrium, dual: Array, highest: float, points: Points
) -> tuple[Equilibrium, Points, bool]:
    """Return the solution with the lower bound of a new dual point, the peaks, and if it is solved.

    The peaks found estimate the bound. If that closes the gap, a proven bound takes its place where
    there is one. If that needs a higher peak than was found, the peak is added to the points.
    """
    problem, rows = game.problem, game.problem.rows
    stats = problem.stats(dual)
    estimate = stats.best_scaled_objective(highest)
    if estimate <= best.lower:
        return best, points, best.relative_gap <= GENERATION_GAP
    solution = replace(best, lower=estimate, dual=dual)
    if solution.relative_gap > GENERATION_GAP:
        return solution, points, False
    if game.smoothing:
        return solution, points, True
    measure = problem.measure(dual).astype(rows.dtype)
    bandwidth = game.space.bandwidth(points.frequencies)
    supremum = game.space.supremum(
        rows, measure, game.phase, bandwidth, highest, GENERATION_GAP / 5, SUPREMUM_EVALUATIONS
    )
    if not supremum.certified:
        return solution, points, True
    missed = stats.best_scaled_objective(supremum.reached)
    if supremum.frequency is not None and replace(best, lower=missed).relative_gap > GENERATION_GAP:
        frequencies = np.vstack([supremum.frequency.astype(rows.dtype), points.frequencies])
        return best, game.landscape(dual).evaluate(frequencies), False
    proven = stats.best_scaled_objective(supremum.bound)
    return replace(best, lower=proven, dual=dual), points, True


def solve_restricted(kernel: LearnedKernel, problem: Problem, state: State | None) -> Equilibrium:
    """Solve the game over the frequencies of a kernel, from the solution over the first of them."""
    features = replace(kernel, weights=np.ones(len(kernel.weights))).features_of(problem.rows)
    groups = np.repeat(np.arange(len(kernel.weights)), kernel.space.n_columns(kernel.phase))
    if state is not None:
        coef, *others = state
        added = np.zeros((features.shape[1] - len(coef), coef.shape[1]))
        state = np.concatenate([coef, added]), *others
    return find_equilibrium(features, groups, problem, GENERATION_GAP / 5, start=state)


def joined(first: LearnedKernel | None, second: LearnedKernel) -> LearnedKernel:
    """Return the kernel of the frequencies of both."""
    if first is None:
        return second
    parts: dict[str, Any] = {
        name: np.concatenate([getattr(first, name), getattr(second, name)])
        for name in ("frequencies", "phases", "scales", "weights")
    }
    return replace(second, **parts)
