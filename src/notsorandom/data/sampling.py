"""Random samples of rows, in proportion to their weights or to a mass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from notsorandom.data.rows import Array, Column, Rows, stack_blocks


def draw_by_weight(rows: Rows, n_rows: int, rng: np.random.Generator) -> Rows:
    """Draw samples with replacement in proportion to their weights; the result has none."""
    blocks = []
    if rows.weights is not None:
        blocks = list(rows.columns_only.map_blocks(weight_stats, rows.weights))
    if len({extreme for _, *extremes in blocks for extreme in extremes}) <= 1:  # equal weights
        return replace(rows.take(rng.integers(len(rows), size=n_rows)), weights=None)
    masses = [mass for mass, *_ in blocks]
    marks = rng.random(n_rows)
    order = np.argsort(marks)
    drawn, _ = pick_by_mass(rows, lambda w: w[:, 0], rows.weights, masses, marks[order])
    return drawn.take(np.argsort(order))


def weight_stats(_: Any, weights: Array) -> tuple[float, float, float]:
    """Return the sum of the weights of a block, the smallest and the largest."""
    return float(weights.sum(dtype=np.float64)), float(weights.min()), float(weights.max())


def pick_by_mass(
    rows: Rows,
    mass_of: Callable[[Array], Array],
    column: Column,
    block_masses: Sequence[float],
    marks: Array,
) -> tuple[Rows, Array]:
    """Return the samples at given fractions of the cumulative mass, and their column values.

    Random fractions draw each sample with probability proportional to its mass.

    Parameters
    ----------
    rows : Rows
    mass_of : callable
        Masses of the samples from a block of the column: non-negative, not all zero.
    column : column
    block_masses : sequence of float
        Total mass of each block of ``rows.columns_only``.
    marks : ndarray
        Fractions from 0 to 1, sorted.
    """

    def pick(X: Any, values: Array, given: tuple[Array, int | None]) -> Any:
        marks, start = given
        if len(marks) == 0:
            return None
        sums = mass_of(values).astype(np.float64).cumsum()
        chosen = np.minimum(np.searchsorted(sums, marks, side="right"), len(sums) - 1)
        return X[chosen] if start is None else start + chosen, values[chosen]

    ends = np.cumsum(block_masses)
    last = max(number for number, mass in enumerate(block_masses) if mass > 0)
    marks = marks * ends[-1]
    splits = np.searchsorted(marks, ends[:last], side="left")
    parts = [*np.split(marks, splits), *[np.empty(0)] * (len(ends) - 1 - last)]
    # Local samples are taken by index afterwards; remote ones are returned by the pass.
    starts = [block.start if rows.is_local else None for block in rows.columns_only.blocks()]
    given = [
        (part - before, start)
        for part, before, start in zip(parts, ends - block_masses, starts, strict=True)
    ]
    searched = rows.columns_only if rows.is_local else rows
    picks = [one for one in searched.map_blocks(pick, column, given=given) if one is not None]
    X, values = (stack_blocks(list(each)) for each in zip(*picks, strict=True))
    return replace(rows.take(X), weights=None) if rows.is_local else rows.local_copy(X), values
