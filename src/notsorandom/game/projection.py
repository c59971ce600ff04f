"""Projection onto the feasible set of the dual: a box cut by a hyperplane."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Any

import numpy as np

from notsorandom.data.rows import Array, Rows

# Newton's method on a piecewise linear function takes about five steps. Where one does not halve
# the sum, the next halves the bracket, so 256 steps exceed the precision of float64 in any case.
MULTIPLIER_STEPS = 256

# Rounding errors that the sums of small problems may have: more than products have.
N_ROUNDINGS = 256

# Lower and upper limits of a block, from blocks of columns.
Limits = Callable[..., tuple[Array, Array]]


# Multipliers at which the sums of :func:`box_sums` are known, with the sums.
KnownSums = list[tuple[Array, Sequence[Array]]]


def nearest(rows: Rows, point: Any, limits: Limits, *columns: Any) -> Any:
    r"""Project onto :math:`\{l \le a \le h, \; w^T a = 0\}`, task by task.

    Distances are weighted by `w`. The projection is :math:`\mathrm{clip}(a - \lambda, l, h)`,
    where the multiplier :math:`\lambda` is the root of a decreasing, piecewise linear function. It
    is found by Newton's method inside a bracket, with one pass over the samples per step.

    Parameters
    ----------
    rows : Rows
        The rows that the columns belong to, with the weights `w`.
    point : column of shape (n_samples, n_tasks)
    limits : callable
        Returns the lower and upper limits of a block, given the block of each of `columns`. Limits
        enclose zero and may be infinite. Every task has some below zero and some above.
    *columns : columns
        Arguments of `limits`.
    """
    if rows.is_local:  # computed once
        columns, limits = limits(*columns), lambda *both: both
    multiplier = nearest_multiplier(rows, point, limits, *columns)
    return shifted_point(rows, point, multiplier, limits, *columns)


def shifted_point(rows: Rows, point: Any, multiplier: Array, limits: Limits, *columns: Any) -> Any:
    """Subtract the multiplier from the point, and project onto the box."""
    shift = partial(shifted_block, limits, multiplier)
    return rows.columns_only.map(shift, point, *columns, lazy=True)


def shifted_block(limits: Limits, multiplier: Array, _: Any, p: Array, *parts: Array) -> Array:
    """Subtract the multiplier from a block of a point, and project onto the box."""
    return np.clip(p - multiplier, *limits(*parts))


def box_sums(
    p: Array, low: Array, high: Array, weights: Any, multiplier: Array
) -> tuple[Array, Array, Array]:
    """Return sums over a block at a multiplier: see :func:`find_multipliers`.

    The weights are a column, or 1 if there are none.
    """
    shifted = p - multiplier.astype(p.dtype)
    clipped = np.minimum(np.maximum(shifted, low), high)  # faster than np.clip
    inside = (shifted > low) & (shifted < high)
    if not np.isscalar(weights):
        clipped = weights * clipped
        inside = weights * inside
    excess = clipped.sum(axis=0, dtype=np.float64)
    # Counts, and sizes that need not be exact, are faster by products.
    ones = np.ones(len(p), dtype=p.dtype)
    size = ones @ np.abs(clipped, out=clipped)
    if inside.dtype == bool:
        return excess, size, ones @ inside.astype(p.dtype)
    return excess, size, inside.sum(axis=0, dtype=np.float64)


def nearest_multiplier(
    rows: Rows, point: Any, limits: Limits, *columns: Any, known: KnownSums | None = None
) -> Array:
    """Return the multiplier of :func:`nearest`; no pass is needed where the sums are `known`.

    To these the sums of all other passes are added.
    """
    rows, n_columns, known = rows.columns_only, len(columns), [] if known is None else known

    def block_sums(p: Array, parts: tuple[Array, ...], multiplier: Array) -> tuple[Array, ...]:
        (weights,) = parts[n_columns:] or (1,)
        return box_sums(p, *limits(*parts[:n_columns]), weights, multiplier)

    def extremes(_: Any, p: Array, *parts: Array) -> tuple[Array, ...]:
        low, high = limits(*parts)
        most = np.max(p, axis=0, where=high > 0, initial=-np.inf).astype(np.float64)
        least = np.min(p, axis=0, where=low < 0, initial=np.inf).astype(np.float64)
        return least, most

    def bracket() -> tuple[Array, Array]:
        """Return multipliers at which all clipped values have one sign."""
        lows, highs = zip(*rows.map_blocks(extremes, point, *columns), strict=True)
        ends = np.min(lows, axis=0), np.max(highs, axis=0)
        return np.minimum(*ends), np.maximum(*ends)

    def sums_at(multiplier: Array) -> Sequence[Array]:
        for one, sums in known:
            if np.array_equal(one, multiplier):
                return sums
        sums = rows.sum_blocks(
            lambda _, p, *parts: block_sums(p, parts, multiplier),
            point,
            *columns,
            *rows.weight_columns,
            dtype=np.float64,
        )
        known.append((multiplier, sums))
        return sums

    return find_multipliers(sums_at, bracket, point.shape[1], rows.dtype)


def find_multipliers(
    sums_at: Callable[[Array], Sequence[Array]],
    bracket: Callable[[], tuple[Array, Array]],
    n_tasks: int,
    dtype: Any,
    n_roundings: int = 1,
) -> Array:
    """Return the multipliers of a projection, by Newton's method inside brackets.

    Parameters
    ----------
    sums_at : callable
        Returns the sums of the clipped values and of their sizes, and the weight inside the box,
        for given multipliers.
    bracket, n_tasks, dtype, n_roundings
        See :func:`multiplier_steps`.
    """
    steps = multiplier_steps(bracket, n_tasks, dtype, n_roundings)
    multiplier = next(steps)
    while True:
        try:
            multiplier = steps.send(sums_at(multiplier))
        except StopIteration as end:
            result: Array = end.value
            return result


def multiplier_steps(
    bracket: Callable[[], tuple[Array, Array]],
    n_tasks: int,
    dtype: Any,
    n_roundings: int = 1,
) -> Generator[Array, Sequence[Array], Array]:
    """Yield multipliers, receive the sums there, and return the solution in `dtype`.

    Parameters
    ----------
    bracket : callable
        Returns multipliers on both sides of the solutions; called if they are needed.
    n_tasks : int
    dtype : data type
        Of the projected points.
    n_roundings : int, default=1
        Largest sum of the clipped values, in units of the rounding error of the sum of their sizes.
    """
    dtype = np.dtype(dtype).type
    tol = n_roundings * np.finfo(dtype).eps
    multiplier = np.zeros(n_tasks)
    least, most = np.full_like(multiplier, -np.inf), np.full_like(multiplier, np.inf)
    before = np.full_like(multiplier, np.inf)  # the excess of the last step
    for _ in range(MULTIPLIER_STEPS):
        excess, size, slope = yield multiplier
        least = np.where(excess > 0, multiplier, least)
        most = np.where(excess < 0, multiplier, most)
        newton = multiplier + excess / np.where(slope > 0, slope, 1)
        # Solved, or as well as the precision allows.
        solved = np.abs(excess) <= tol * size
        solved |= (slope > 0) & (newton.astype(dtype) == multiplier.astype(dtype))
        if solved.all():
            break
        halved = np.abs(excess) <= before / 2
        good = (slope > 0) & (newton > least) & (newton < most) & halved
        if not (good | solved | np.isfinite(most - least)).all():
            first, last = bracket()
            least, most = np.maximum(least, first), np.minimum(most, last)
        middle = np.where(good | solved, 0, least) + np.where(good | solved, 0, most)
        candidate = np.where(solved, multiplier, np.where(good, newton, middle / 2))
        if np.all(candidate.astype(dtype) == multiplier.astype(dtype)):
            break
        multiplier = candidate
        # After a bisection, the next step is Newton's.
        before = np.where(good, np.abs(excess), np.inf)
    return multiplier.astype(dtype)


def alternating(
    rows: Rows, point: Any, limits: Limits, *columns: Any, n_iterations: int = 10
) -> Any:
    """Algorithm 3 of the paper: project onto the box and onto the hyperplane in turn.

    The last projection is onto the box, so the result is always inside it. The remaining weighted
    sum decreases geometrically with `n_iterations`. Other parameters as in :func:`nearest`.
    """
    rows = rows.columns_only

    def clip(_: Any, p: Array, *parts: Array) -> Array:
        return np.clip(p, *limits(*parts))

    def block_sum(_: Any, p: Array, w: Any = 1) -> tuple[Array]:
        return ((w * p.astype(np.float64)).sum(axis=0),)

    for _ in range(n_iterations):
        point = rows.map(clip, point, *columns)
        (excess,) = rows.sum_blocks(block_sum, point, *rows.weight_columns, dtype=np.float64)
        excess = (excess / rows.total_weight).astype(rows.dtype)
        point = rows.map(lambda _, p, excess=excess: p - excess, point)
    return rows.map(clip, point, *columns)


def nearest_lines(point: Array, low: Array, high: Array, weights: Array) -> Array:
    """Return the exact projection of many small problems at once: the lines of an array.

    Parameters
    ----------
    point, low, high : ndarray of shape (n_problems, n_samples)
    weights : ndarray of shape (n_samples,)
    """
    shifted, clipped = np.empty_like(point), np.empty_like(point)
    size = np.abs(np.minimum(np.maximum(point, low), high)) @ weights

    def clip(multiplier: Array) -> None:
        np.subtract(point, multiplier.astype(point.dtype)[:, None], out=shifted)
        np.maximum(shifted, low, out=clipped)
        np.minimum(clipped, high, out=clipped)

    def sums_at(multiplier: Array) -> tuple[Array, ...]:
        clip(multiplier)
        inside = np.equal(shifted, clipped).astype(point.dtype)
        return clipped @ weights, size, inside @ weights

    def bracket() -> tuple[Array, Array]:
        most = np.max(point, axis=1, where=high > 0, initial=-np.inf).astype(np.float64)
        least = np.min(point, axis=1, where=low < 0, initial=np.inf).astype(np.float64)
        return np.minimum(least, most), np.maximum(least, most)

    # The products round more than sums in float64.
    clip(find_multipliers(sums_at, bracket, len(point), point.dtype, N_ROUNDINGS))
    return clipped


PROJECTIONS: dict[str, Callable[..., Any]] = {"exact": nearest, "alternating": alternating}


def project(
    point: Array,
    low: Array,
    high: Array,
    weights: Array | None = None,
    projection: str = "exact",
) -> Array:
    """Apply one of `PROJECTIONS` to arrays of shape (n_samples, n_tasks)."""
    rows = Rows.without_features(len(point), point.dtype, weights)
    result: Array = PROJECTIONS[projection](rows, point, lambda *both: both, low, high)
    return result
