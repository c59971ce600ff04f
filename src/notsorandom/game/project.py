"""Projection onto what the dual player may play: a box cut by a hyperplane."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from notsorandom.rows import Array

# Newton's method on a piecewise linear function ends after a handful of pieces, and every fourth
# step halves the bracket, so this is far past the precision of float64.
MAX_ITERATIONS = 256


def project(point: Array, labels: Array, upper: float) -> Array:
    r"""Nearest point of :math:`\{0 \le \alpha \le u, \; y^T \alpha = 0\}`, column by column.

    The projection is :math:`\mathrm{clip}(a - \lambda y, 0, u)` for the root :math:`\lambda` of a
    decreasing, piecewise linear function, found by Newton's method inside a bracket: O(n) a step.

    Parameters
    ----------
    point : ndarray of shape (n_samples, n_tasks)
    labels : ndarray of shape (n_samples, n_tasks)
        Of +1 and -1, with both in every column.
    upper : float
        May be infinite.
    """
    positive = labels > 0
    # At these two multipliers all of one class is at zero.
    high = np.max(point, axis=0, where=positive, initial=-np.inf).astype(np.float64)
    low = -np.max(point, axis=0, where=~positive, initial=-np.inf).astype(np.float64)
    low, high = np.minimum(low, high), np.maximum(low, high)
    multiplier = np.clip(0.0, low, high)
    rounding = np.finfo(point.dtype).eps
    for iteration in range(MAX_ITERATIONS):
        moved = point - multiplier.astype(point.dtype) * labels
        clipped = np.clip(moved, 0, upper)
        excess = (labels * clipped).sum(axis=0, dtype=np.float64)
        low = np.where(excess > 0, multiplier, low)
        high = np.where(excess < 0, multiplier, high)
        inside = np.count_nonzero((moved > 0) & (moved < upper), axis=0)
        newton = multiplier + excess / np.maximum(inside, 1)
        balanced = np.abs(excess) <= rounding * clipped.sum(axis=0, dtype=np.float64)
        # Now and then a bisection, so that the bracket shrinks whatever Newton does.
        good = (inside > 0) & (newton > low) & (newton < high) & (iteration % 4 != 3)
        following = np.where(balanced, multiplier, np.where(good, newton, (low + high) / 2))
        if np.all(following.astype(point.dtype) == multiplier.astype(point.dtype)):
            break
        multiplier = following
    return clipped


def project_alternating(point: Array, labels: Array, upper: float, n_iterations: int = 10) -> Array:
    """Algorithm 3 of the paper: project onto the box and onto the hyperplane, in turns.

    It ends on the box, so that the result is always inside; what is left of ``labels @ result``
    shrinks geometrically with `n_iterations`.
    """
    for _ in range(n_iterations):
        point = np.clip(point, 0, upper)
        excess = (labels * point).mean(axis=0, dtype=np.float64).astype(point.dtype)
        point = point - excess * labels
    return np.clip(point, 0, upper)


PROJECTIONS: dict[str, Callable[[Any, Any, float], Any]] = {
    "exact": project,
    "alternating": project_alternating,
}
