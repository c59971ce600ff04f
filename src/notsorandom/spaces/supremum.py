"""The largest potential that any frequency has: known exactly, bounded, or only estimated."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np

from notsorandom.data.rows import Array

# Cells whose middles are evaluated together.
BATCH = 4096


@dataclass(frozen=True)
class Supremum:
    """The largest potential over the frequencies considered.

    Parameters
    ----------
    reached : float
        The largest that was seen.
    bound : float
        What none exceeds; infinite if nothing is known beyond what was seen.
    """

    reached: float
    bound: float

    @property
    def certified(self) -> bool:
        """Whether there is a bound."""
        return bool(np.isfinite(self.bound))


def largest_in_ball(
    amplitude: Callable[[Array], Array],
    drift: Array,
    radius: float,
    reached: float,
    tol: float,
    max_evaluations: int,
) -> Supremum:
    r"""Bound the square of an even function over a ball, by branching and bounding.

    The ball is cut into cells. In a cell around `c` of half-widths `h` the function is at most
    its value at `c` plus :math:`\langle h, drift\rangle`. Cells that can't hold more than what was
    already seen are dropped, the others cut in half along every axis, until none is left.

    Parameters
    ----------
    amplitude : callable
        Values of the function, non-negative and even, at points of shape (n_points, n_features).
    drift : ndarray of shape (n_features,)
        How much it can change, per unit of each coordinate.
    radius : float
        Of the ball around zero.
    reached : float
        The largest square that is known already.
    tol : float
        The bound is to be within this of what is reached, as a share of it.
    max_evaluations : int
        If it isn't by then, the bound is what it is.

    Returns
    -------
    Supremum
    """
    n_features = len(drift)
    best = float(np.sqrt(reached))
    middles = np.zeros((1, n_features))
    half = np.full(n_features, float(radius))
    middles[:, 0], half[0] = (
        radius / 2,
        radius / 2,
    )  # the function is even: half of the ball will do
    corners = np.array(list(product((-0.5, 0.5), repeat=n_features)))
    dropped, spent = 0.0, 0
    while len(middles):
        values = np.concatenate(
            [amplitude(middles[start : start + BATCH]) for start in range(0, len(middles), BATCH)]
        )
        spent += len(middles)
        inside = np.einsum("ij,ij->i", middles, middles) <= radius**2
        best = max(best, float(values[inside].max(initial=0.0)))
        bounds = values + half @ drift
        hopeful = bounds > best * (1 + tol) ** 0.5
        dropped = max(dropped, float(bounds[~hopeful].max(initial=0.0)))
        middles, bounds = middles[hopeful], bounds[hopeful]
        if spent + len(middles) * len(corners) > max_evaluations:
            return Supremum(best**2, max(best, dropped, float(bounds.max(initial=0.0))) ** 2)
        half = half / 2
        middles = (middles[:, None, :] + 2 * corners * half).reshape(-1, n_features)
        nearest = np.maximum(np.abs(middles) - half, 0)
        middles = middles[np.einsum("ij,ij->i", nearest, nearest) <= radius**2]
    return Supremum(best**2, max(best, dropped) ** 2)


def concentration_sample_size(
    n_features: int, reach: float, epsilon: float = 0.1, delta: float = 0.05
) -> float:
    r"""Samples after which the potential over n^2 is within `epsilon` of its ideal everywhere.

    One sample changes :math:`v / n^2` by at most 4/n, so McDiarmid's inequality holds it to
    :math:`\epsilon / 2` of its mean at each of :math:`(1 + 32 R_\omega R_x / \epsilon)^d` points of
    a net, between which it changes by at most :math:`\epsilon / 4`; its mean is within 1/n of the
    ideal. `reach` is :math:`R_\omega R_x`.
    """
    net = n_features * math.log(1 + 32 * reach / epsilon)
    return max(32 / epsilon**2 * (net + math.log(2 / delta)), 4 / epsilon)
