"""Projection onto what the dual player may play: a box cut by a hyperplane."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from notsorandom.rows import Array

# Newton's method on a piecewise linear function ends after a handful of pieces, and every fourth
# step halves the bracket, so this is far past the precision of float64.
MAX_ITERATIONS = 256


def project(point: Array, low: Array, high: Array, weights: Array | None = None) -> Array:
    r"""Nearest point of :math:`\{l \le a \le h, \; w^T a = 0\}`, column by column.

    Nearest in the norm of the weights. The projection is :math:`\mathrm{clip}(a - \lambda, l, h)`
    for the root :math:`\lambda` of a decreasing, piecewise linear function, found by Newton's
    method inside a bracket: O(n) a step.

    Parameters
    ----------
    point : ndarray of shape (n_samples, n_tasks)
    low, high : ndarrays of shape (n_samples, n_tasks)
        Around zero, and infinite perhaps; in every column some are below zero, and some above.
    weights : ndarray of shape (n_samples, 1), optional
        Positive; all one if not given.
    """
    # At these two multipliers all that is left is of one sign.
    most = np.max(point, axis=0, where=high > 0, initial=-np.inf).astype(np.float64)
    least = np.min(point, axis=0, where=low < 0, initial=np.inf).astype(np.float64)
    least, most = np.minimum(least, most), np.maximum(least, most)
    multiplier = np.clip(0.0, least, most)
    rounding = np.finfo(point.dtype).eps
    for iteration in range(MAX_ITERATIONS):
        moved = point - multiplier.astype(point.dtype)
        clipped = np.clip(moved, low, high)
        inside = (moved > low) & (moved < high)
        if weights is None:
            excess = clipped.sum(axis=0, dtype=np.float64)
            size = np.abs(clipped).sum(axis=0, dtype=np.float64)
            slope = np.count_nonzero(inside, axis=0)
        else:
            excess = (weights * clipped).sum(axis=0, dtype=np.float64)
            size = (weights * np.abs(clipped)).sum(axis=0, dtype=np.float64)
            slope = (weights * inside).sum(axis=0, dtype=np.float64)
        least = np.where(excess > 0, multiplier, least)
        most = np.where(excess < 0, multiplier, most)
        newton = multiplier + excess / np.where(slope > 0, slope, 1)
        balanced = np.abs(excess) <= rounding * size
        # Now and then a bisection, so that the bracket shrinks whatever Newton does.
        good = (slope > 0) & (newton > least) & (newton < most) & (iteration % 4 != 3)
        following = np.where(balanced, multiplier, np.where(good, newton, (least + most) / 2))
        if np.all(following.astype(point.dtype) == multiplier.astype(point.dtype)):
            break
        multiplier = following
    return clipped


def project_alternating(
    point: Array, low: Array, high: Array, weights: Array | None = None, n_iterations: int = 10
) -> Array:
    """Algorithm 3 of the paper: project onto the box and onto the hyperplane, in turns.

    It ends on the box, so that the result is always inside; what is left of the sum shrinks
    geometrically with `n_iterations`.
    """
    for _ in range(n_iterations):
        point = np.clip(point, low, high)
        excess = np.average(
            point.astype(np.float64), axis=0, weights=None if weights is None else weights[:, 0]
        )
        point = point - excess.astype(point.dtype)
    return np.clip(point, low, high)


PROJECTIONS: dict[str, Callable[..., Array]] = {
    "exact": project,
    "alternating": project_alternating,
}
