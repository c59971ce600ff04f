"""Bounds on the potential over all frequencies of R^d, for certificates."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import numpy as np

from notsorandom.data.rows import Array
from notsorandom.spaces.base import Supremum

# Cells whose middles are evaluated together.
BATCH = 4096


def largest_in_ball(
    amplitude: Callable[[Array], Array],
    drift: Array,
    radius: float,
    reached: float,
    tol: float,
    max_evaluations: int,
) -> Supremum:
    r"""Bound the square of an even function over a ball by branch and bound.

    The ball is cut into cells. In a cell around `c` with half-widths `h` the function is at most
    its value at `c` plus :math:`\langle h, drift\rangle`. Cells that cannot exceed the largest
    value seen are dropped, and the others are halved along every axis, until none is left or
    `max_evaluations` are used up.

    `amplitude` computes the function, non-negative and even, at points of shape (n_points,
    n_features). `drift` has its Lipschitz constant along each coordinate. `reached` is the largest
    square known so far, which the bound may exceed by a share of `tol`.
    """
    n_features = len(drift)
    best = float(np.sqrt(reached))
    middles = np.zeros((1, n_features))
    half = np.full(n_features, float(radius))
    middles[:, 0] = half[0] = radius / 2  # the function is even: half of the ball is enough
    corners = np.array(list(product((-0.5, 0.5), repeat=n_features)))
    dropped, n_evaluations = 0.0, 0
    while len(middles):
        values = np.concatenate(
            [amplitude(middles[start : start + BATCH]) for start in range(0, len(middles), BATCH)]
        )
        n_evaluations += len(middles)
        inside = np.einsum("ij,ij->i", middles, middles) <= radius**2
        best = max(best, float(values[inside].max(initial=0.0)))
        bounds = values + half @ drift
        open_cells = bounds > best * (1 + tol) ** 0.5
        dropped = max(dropped, float(bounds[~open_cells].max(initial=0.0)))
        middles, bounds = middles[open_cells], bounds[open_cells]
        if n_evaluations + len(middles) * len(corners) > max_evaluations:
            return Supremum(best**2, max(best, dropped, float(bounds.max(initial=0.0))) ** 2)
        half = half / 2
        middles = (middles[:, None, :] + 2 * corners * half).reshape(-1, n_features)
        nearest = np.maximum(np.abs(middles) - half, 0)
        middles = middles[np.einsum("ij,ij->i", nearest, nearest) <= radius**2]
    return Supremum(best**2, max(best, dropped) ** 2)


def concentration_sample_size(
    n_features: int, reach: float, epsilon: float = 0.1, delta: float = 0.05
) -> float:
    r"""Return the sample size at which the potential over n^2 is uniformly within `epsilon`.

    One sample changes :math:`v / n^2` by at most 4/n. By McDiarmid's inequality it is within
    :math:`\epsilon / 2` of its mean at each of :math:`(1 + 32 R_\omega R_x / \epsilon)^d` points of
    a net, with probability :math:`1 - \delta`. Between these points it changes by at most
    :math:`\epsilon / 4`, and its mean is within 1/n of its limit. `reach` is :math:`R_\omega R_x`.
    """
    net = n_features * math.log(1 + 32 * reach / epsilon)
    return max(32 / epsilon**2 * (net + math.log(2 / delta)), 4 / epsilon)
