"""A thorough search for the highest peak, for estimates of bounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from notsorandom.data.rows import Array
from notsorandom.search.ascent import climb
from notsorandom.spaces.landscape import Landscape, Points

# Ascents per batch, and their steps. Batches end when this many of them in a row have not raised
# the highest peak by the share below.
BATCH, N_STEPS = 64, 40
PATIENCE, LEAST_RISE = 3, 1e-3
MAX_BATCHES = 24
# Ascents on at most this many rows; the highest distinct peaks then continue on all rows.
MAX_ROWS, N_REFINED, REFINE_STEPS = 4096, 16, 12
SIMILARITY = 0.95
# Range of displacements from peaks, in units of the inverse scale of the samples.
DISPLACEMENTS = 0.05, 1.0
# Ascents that end within this share of the highest peak count as having found it.
SAME_PEAK = 0.01


@dataclass(frozen=True)
class HighestPeak:
    """The outcome of a thorough search.

    Parameters
    ----------
    points : Points
        Distinct peaks, highest first, evaluated on all rows.
    n_ascents : int
        Number of ascents from independent starts.
    n_agreeing : int
        Number of those that ended within 1 % of the highest peak. If they are few, there may be
        higher ones.
    """

    points: Points
    n_ascents: int
    n_agreeing: int


def find_highest(
    landscape: Landscape, known: Array, rng: np.random.Generator, least_agreeing: int = 0
) -> HighestPeak:
    """Climb from many starts within the space until more of them find no higher peak.

    And until `least_agreeing` independent ascents have found the highest one, or the batches end.
    A fourth of the starts are those of usual searches, a fourth are spread over the space, and the
    others are near the highest peaks found. `known` are frequencies to start from first, of shape
    (n_frequencies, n_features).
    """
    space, all_rows = landscape.continuous_space, landscape
    if len(all_rows.rows) > MAX_ROWS:
        landscape = all_rows.subsample(MAX_ROWS, rng)
    found: list[Points] = []
    best, idle, rows = -np.inf, 0, landscape.rows
    while len(found) < MAX_BATCHES and (
        idle < PATIENCE or n_agreeing(found, best) < least_agreeing
    ):
        starts = [landscape.draw(BATCH // 4, rng), space.spread(BATCH // 4, rows, rng)]
        starts.append(displaced(landscape, found, rng) if found else starts_from(landscape, known))
        points = landscape.evaluate_with_slope(np.concatenate(starts))
        steps = np.full(len(points), space.first_step(), dtype=points.height.dtype)
        points, _ = climb(landscape, points, steps, N_STEPS)
        highest = float(points.height.max())
        idle = 0 if highest > best + LEAST_RISE else idle + 1
        best = max(best, highest)
        found.append(points)
    heights = np.concatenate([points.height for points in found])
    frequencies = np.concatenate([points.frequencies for points in found])
    order = np.argsort(-heights, kind="stable")[: BATCH * PATIENCE]
    points = landscape.evaluate(frequencies[order])
    points = points.take(landscape.distinct(points, SIMILARITY, rng)[:N_REFINED])
    if landscape is not all_rows:
        points = all_rows.evaluate_with_slope(points.frequencies)
        steps = np.full(len(points), space.first_step(), dtype=points.height.dtype)
        points, _ = climb(all_rows, points, steps, REFINE_STEPS)
        points = points.take(np.argsort(-points.height, kind="stable"))
    return HighestPeak(points, len(found) * (BATCH // 2), n_agreeing(found, best))


def n_agreeing(found: list[Points], best: float) -> int:
    """Return how many ascents ended at the highest peak; starts near others aren't independent."""
    independent = np.concatenate([points.height[: BATCH // 2] for points in found])
    return int((independent >= best + np.log(1 - SAME_PEAK)).sum())


def starts_from(landscape: Landscape, known: Array) -> Array:
    """Return the highest of known frequencies."""
    if len(known) <= BATCH:
        return known
    return known[np.argsort(-landscape.evaluate(known).height, kind="stable")[:BATCH]]


def displaced(landscape: Landscape, found: list[Points], rng: np.random.Generator) -> Array:
    """Return frequencies near the highest peaks found: next to one there may be a higher one."""
    heights = np.concatenate([points.height for points in found])
    peaks = np.concatenate([points.frequencies for points in found])
    highest = peaks[np.argsort(-heights, kind="stable")[:N_REFINED]]
    centers = highest[rng.integers(len(highest), size=BATCH // 2)]
    space = landscape.continuous_space
    low, high = np.log(DISPLACEMENTS)
    lengths = space.first_step() ** 0.5 * np.exp(rng.uniform(low, high, BATCH // 2))
    shifts = lengths[:, None] * rng.standard_normal(centers.shape)
    return space.move(centers, shifts.astype(centers.dtype))
