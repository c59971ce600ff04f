"""Searches of finite spaces: enumeration, and a Markov chain."""

from __future__ import annotations

import numpy as np

from notsorandom._utils.parameters import check_number
from notsorandom.data.rows import Array
from notsorandom.search.base import Search
from notsorandom.spaces.landscape import Landscape, Points

# With beta="auto", the inverse temperature times the potential expected by chance. By chance, the
# potential is about the square of a Gaussian, and the mean of its exponential is infinite from an
# inverse temperature of 1/2 on.
AUTO_BETA = 0.25


class Enumerate(Search):
    """Evaluate all frequencies of a finite space.

    Parameters
    ----------
    n_peaks : int, default=4
        Maximum number of peaks, highest first; 1 is the game of the paper. Frequencies that form
        one kernel, such as all harmonics of a degree, count as one.
    """

    def __init__(self, n_peaks: int = 4) -> None:
        self.n_peaks = n_peaks

    def check(self) -> None:
        """Raise ValueError if a parameter is out of its range."""
        check_number("n_peaks", self.n_peaks, least=1, integer=True)

    def find(self, landscape: Landscape, n_peaks: int, rng: np.random.Generator) -> Points:
        """Return the highest kernels of the landscape, highest first."""
        landscape.require_kind("finite", self, "search='ascent' or 'langevin'")
        points = landscape.evaluate_all()
        groups = landscape.space.groups(points.frequencies, landscape.phase)
        order = np.argsort(-points.height, kind="stable")
        _, first = np.unique(groups[order], return_index=True)
        highest = groups[order[np.sort(first)[: self.n_peaks]]]
        return points.take(np.concatenate([np.flatnonzero(groups == one) for one in highest]))


class Chain(Search):
    r"""Random walks over the frequencies of a finite space; returns the highest points visited.

    Langevin dynamics without a gradient, by the rule of Metropolis: from each frequency a neighbour
    is proposed, and accepted with probability :math:`\min(1, e^{\beta (v' - v)})`, so that each
    frequency is visited in proportion to :math:`e^{\beta v}` (Appendix A.3 of the paper). It is for
    spaces too large for :class:`Enumerate`: only the proposed frequencies are evaluated.

    Parameters
    ----------
    n_steps : int, default=100
        Length of the chains.
    n_particles : int, default=64
        Parallel chains, from random starts.
    beta : float or "auto", default="auto"
        Inverse temperature. ``"auto"`` is a quarter of the inverse of the potential expected by
        chance: large enough to stay on a peak, small enough to leave frequencies that are not.
    n_peaks : int, default=1
        Maximum number of peaks returned, highest first.
    """

    def __init__(
        self,
        n_steps: int = 100,
        n_particles: int = 64,
        beta: str | float = "auto",
        n_peaks: int = 1,
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
        """Return the highest kernels visited, highest first."""
        landscape.require_kind("finite", self, "search='langevin', its continuous counterpart")
        space, phase = landscape.finite_space, landscape.phase
        if self.beta == "auto":
            by_chance = landscape.rows.squared_norm(landscape.measure)
            beta = AUTO_BETA / max(by_chance, np.finfo(float).tiny)
        else:
            beta = float(self.beta)
        beta *= landscape.unit  # of the potential, as heights have it
        frequencies = landscape.draw(self.n_particles, rng)
        heights = kernel_heights(landscape, frequencies)
        best, best_heights = frequencies, heights
        for _ in range(self.n_steps):
            frequencies, heights = metropolis_step(landscape, frequencies, heights, beta, rng)
            better = heights > best_heights
            best = np.where(better[:, None], frequencies, best)
            best_heights = np.where(better, heights, best_heights)
        representatives = space.representatives(best, phase)
        order = np.argsort(-best_heights, kind="stable")
        _, first = np.unique(representatives[order], axis=0, return_index=True)
        highest = representatives[order[np.sort(first)[: self.n_peaks]]]  # each kernel once
        return landscape.evaluate(np.concatenate([space.members(one, phase) for one in highest]))


def metropolis_step(
    landscape: Landscape, frequencies: Array, heights: Array, beta: float, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Make one step of every chain; return the new frequencies and their heights."""
    proposed = landscape.finite_space.propose(frequencies, rng)
    proposed_heights = kernel_heights(landscape, proposed)
    rise = beta * (np.exp(proposed_heights) - np.exp(heights))
    accepted = np.log(rng.uniform(size=len(frequencies))) < rise
    return (
        np.where(accepted[:, None], proposed, frequencies),
        np.where(accepted, proposed_heights, heights),
    )


def kernel_heights(landscape: Landscape, frequencies: Array) -> Array:
    """Return the height of the kernel that each frequency belongs to, in float64."""
    space, phase = landscape.finite_space, landscape.phase
    # Each kernel is evaluated once, even if several chains are at it.
    representatives, codes = np.unique(
        space.representatives(frequencies, phase), axis=0, return_inverse=True
    )
    members = [space.members(one, phase) for one in representatives]
    first = np.cumsum([0] + [len(kernel) for kernel in members[:-1]])
    heights = landscape.evaluate(np.concatenate(members)).height[first]
    return heights[codes.ravel()].astype(np.float64)
