"""A Markov chain over the frequencies of a finite space: Langevin dynamics without a gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from notsorandom._utils.parameters import check_number
from notsorandom.data.rows import Array
from notsorandom.search.base import Search
from notsorandom.spaces.landscape import Landscape, Points

# With beta="auto", the inverse temperature in units of one over the potential that a frequency has
# by luck. That luck is the square of a Gaussian, whose exponential has no mean beyond a half.
AUTO_BETA = 0.25


class Chain(Search):
    r"""Walk at random over the frequencies, mostly among the high ones; the best places seen.

    This is Metropolis' rule: from each frequency a neighbour is proposed, and taken with
    probability :math:`\min(1, e^{\beta (v' - v)})`, so that in the long run each frequency is
    visited in proportion to :math:`e^{\beta v}` (Appendix A.3 of the paper). It is for spaces too
    large for :class:`Enumerate`: it looks at no more than the chains' own frequencies.

    Parameters
    ----------
    n_steps : int, default=100
    n_particles : int, default=64
        Parallel chains, from random starts.
    beta : float or "auto", default="auto"
        Inverse temperature. ``"auto"`` is a quarter over the potential that is expected by luck:
        cold enough to stay on a peak, warm enough to leave the rest.
    n_peaks : int, default=1
        At most this many are returned, highest first.
    """

    def __init__(
        self, n_steps: int = 100, n_particles: int = 64, beta: Any = "auto", n_peaks: int = 1
    ) -> None:
        self.n_steps = n_steps
        self.n_particles = n_particles
        self.beta = beta
        self.n_peaks = n_peaks

    def check(self) -> None:
        """Raise ValueError if a parameter is out of its range."""
        check_number("n_steps", self.n_steps, least=0, integer=True)
        check_number("n_particles", self.n_particles, least=1, integer=True)
        check_number("beta", self.beta, least=0, or_else=["auto"])
        check_number("n_peaks", self.n_peaks, least=1, integer=True)

    def find(self, landscape: Landscape, n_peaks: int, rng: np.random.Generator) -> Points:
        """Return the highest kernels seen, highest first.

        There may be more than `n_peaks`, the number that is new to the game: some may be known.
        """
        landscape.require_kind("finite", self, "search='langevin', its continuous counterpart")
        beta = inverse_luck(landscape) if self.beta == "auto" else float(self.beta)
        places = landscape.draw(self.n_particles, rng)
        heights = kernel_heights(landscape, places)
        best, best_heights = places, heights
        for _ in range(self.n_steps):
            places, heights = step(landscape, places, heights, beta, rng)
            better = heights > best_heights
            best = np.where(better[:, None], places, best)
            best_heights = np.where(better, heights, best_heights)
        representatives = landscape.space.representatives(best, landscape.phase)
        order = np.argsort(-best_heights, kind="stable")
        _, first = np.unique(representatives[order], axis=0, return_index=True)
        highest = representatives[order[np.sort(first)[: self.n_peaks]]]  # each kernel once
        members = [landscape.space.members(one, landscape.phase) for one in highest]
        return landscape.evaluate(np.concatenate(members))


def step(
    landscape: Landscape, places: Array, heights: Array, beta: float, rng: np.random.Generator
) -> tuple[Array, Array]:
    """One step of every chain; return where they are then, and how high."""
    proposed = landscape.space.propose(places, rng)
    there = kernel_heights(landscape, proposed)
    rise = beta * (np.exp(there) - np.exp(heights))
    taken = np.log(rng.uniform(size=len(places))) < rise
    return np.where(taken[:, None], proposed, places), np.where(taken, there, heights)


def kernel_heights(landscape: Landscape, places: Array) -> Array:
    """Height of the kernel that each frequency belongs to, in float64."""
    space, phase = landscape.space, landscape.phase
    representatives, codes = np.unique(
        space.representatives(places, phase), axis=0, return_inverse=True
    )  # every kernel is looked at once, however many chains are at it
    members = [space.members(one, phase) for one in representatives]
    first = np.cumsum([0] + [len(kernel) for kernel in members[:-1]])
    heights = landscape.evaluate(np.concatenate(members)).height[first]
    return heights[codes.ravel()].astype(np.float64)


def inverse_luck(landscape: Landscape) -> float:
    """The inverse temperature that suits a measure, from the potential it has by luck."""
    luck = landscape.rows.squared_norm(landscape.measure)
    return AUTO_BETA / max(luck, np.finfo(float).tiny)
