"""Projection onto what the dual player may play: a box cut by a hyperplane."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from notsorandom.data.rows import Array, Rows

# Newton's method on a piecewise linear function ends after a handful of pieces, and every fourth
# step halves the bracket, so this is far past the precision of float64.
MAX_ITERATIONS = 256

# Least and largest values of a block, from blocks of columns.
Sides = Callable[..., tuple[Array, Array]]


def nearest(rows: Rows, point: Any, sides: Sides, *columns: Any) -> Any:
    r"""Nearest point of :math:`\{l \le a \le h, \; w^T a = 0\}`, task by task.

    Nearest in the norm of the weights `w`. The projection is :math:`\mathrm{clip}(a - \lambda, l,
    h)` for the root :math:`\lambda` of a decreasing, piecewise linear function, found by Newton's
    method inside a bracket: a sweep over the samples a step.

    Parameters
    ----------
    rows : Rows
        Which the columns belong to; their weights are those of the norm.
    point : column of shape (n_samples, n_tasks)
    sides : callable
        Gives least and largest values from blocks of the columns that follow: around zero, and
        infinite perhaps; in every task some are below zero, and some above.
    *columns : columns
    """
    rows, n_columns = rows.bare, len(columns)

    def sums(p: Array, parts: tuple[Array, ...], multiplier: Array) -> tuple[Array, ...]:
        low, high = sides(*parts[:n_columns])
        moved = p - multiplier.astype(p.dtype)
        clipped = np.clip(moved, low, high)
        inside = (moved > low) & (moved < high)
        for weights in parts[n_columns:]:
            clipped = weights * clipped
            inside = weights * inside
        return (
            clipped.sum(axis=0, dtype=np.float64),
            np.abs(clipped).sum(axis=0, dtype=np.float64),
            inside.sum(axis=0, dtype=np.float64),
        )

    def opening(_: Any, p: Array, *parts: Array) -> tuple[Array, ...]:
        low, high = sides(*parts[:n_columns])
        most = np.max(p, axis=0, where=high > 0, initial=-np.inf).astype(np.float64)
        least = np.min(p, axis=0, where=low < 0, initial=np.inf).astype(np.float64)
        return least, most, *sums(p, parts, np.zeros(p.shape[1]))

    def sums_at(multiplier: Array) -> tuple[Array, ...]:
        return rows.add(
            lambda _, p, *parts: sums(p, parts, multiplier),
            point,
            *columns,
            *rows.weighing,
            dtype=np.float64,
        )

    # At the first two multipliers all that is left is of one sign.
    lows, highs, *parts = zip(*rows.each(opening, point, *columns, *rows.weighing), strict=True)
    low_end, high_end = np.min(lows, axis=0), np.max(highs, axis=0)
    least, most = np.minimum(low_end, high_end), np.maximum(low_end, high_end)
    multiplier = np.clip(0.0, least, most)
    excess, size, slope = (np.sum(part, axis=0) for part in parts)  # those at zero
    if multiplier.any():
        excess, size, slope = sums_at(multiplier)
    dtype = rows.dtype.type
    for iteration in range(MAX_ITERATIONS):
        least = np.where(excess > 0, multiplier, least)
        most = np.where(excess < 0, multiplier, most)
        newton = multiplier + excess / np.where(slope > 0, slope, 1)
        balanced = np.abs(excess) <= np.finfo(dtype).eps * size
        # Now and then a bisection, so that the bracket shrinks whatever Newton does.
        good = (slope > 0) & (newton > least) & (newton < most) & (iteration % 4 != 3)
        following = np.where(balanced, multiplier, np.where(good, newton, (least + most) / 2))
        if np.all(following.astype(dtype) == multiplier.astype(dtype)):
            break
        multiplier = following
        excess, size, slope = sums_at(multiplier)
    final = multiplier.astype(dtype)
    return rows.map(lambda _, p, *parts: np.clip(p - final, *sides(*parts)), point, *columns)


def alternating(rows: Rows, point: Any, sides: Sides, *columns: Any, n_iterations: int = 10) -> Any:
    """Algorithm 3 of the paper: project onto the box and onto the hyperplane, in turns.

    It ends on the box, so that the result is always inside; what is left of the sum shrinks
    geometrically with `n_iterations`. Parameters are those of :func:`nearest`.
    """
    rows = rows.bare

    def clipped(_: Any, p: Array, *parts: Array) -> Array:
        return np.clip(p, *sides(*parts))

    def sums(_: Any, p: Array, w: Any = 1) -> tuple[Array]:
        return ((w * p.astype(np.float64)).sum(axis=0),)

    for _ in range(n_iterations):
        point = rows.map(clipped, point, *columns)
        (excess,) = rows.add(sums, point, *rows.weighing, dtype=np.float64)
        excess = (excess / rows.total_weight).astype(rows.dtype)
        point = rows.map(lambda _, p, excess=excess: p - excess, point)
    return rows.map(clipped, point, *columns)


def project(point: Array, low: Array, high: Array, weights: Array | None = None) -> Array:
    """:func:`nearest` of arrays, with the sides as arrays of the same shape."""
    result: Array = nearest(seats(point, weights), point, lambda *both: both, low, high)
    return result


def project_alternating(
    point: Array, low: Array, high: Array, weights: Array | None = None, n_iterations: int = 10
) -> Array:
    """:func:`alternating` of arrays, with the sides as arrays of the same shape."""
    rows = seats(point, weights)
    result: Array = alternating(
        rows, point, lambda *both: both, low, high, n_iterations=n_iterations
    )
    return result


def seats(values: Array, weights: Array | None = None) -> Rows:
    """Rows without samples, for values in memory."""
    return Rows(np.empty((len(values), 0), dtype=values.dtype), weights)


PROJECTIONS: dict[str, Callable[..., Any]] = {"exact": nearest, "alternating": alternating}
