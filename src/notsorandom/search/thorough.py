"""A thorough search for the highest peak: for estimates of bounds, and as a search of a fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from notsorandom._utils.parameters import check_number
from notsorandom.data.rows import Array
from notsorandom.search.ascent import climb
from notsorandom.search.base import Search
from notsorandom.spaces.landscape import Landscape, Points

# Ascents per batch, and their steps, several times as many as in usual searches.
BATCH_ASCENTS, THOROUGH_STEPS = 64, 40
# Each independent ascent starts from the highest of this many draws, which takes a fifth of its
# time. On the measures below, 96 batches without it missed the highest peak known in 9.
DRAWS_PER_START = 16
# The search ends when this many batches in a row have not raised the highest peak by this share,
# and after `MAX_BATCHES` in any case.
MAX_IDLE_BATCHES, LEAST_RISE = 6, 1e-3
# Ascents are on at most this many rows. The highest distinct peaks, at most this many, then climb
# this many more steps on all rows.
THOROUGH_ROWS, N_REFINED, REFINE_STEPS = 4096, 16, 12
# Batches with as many rows as that, and with few rows. On 28 random measures in R^4 to R^40 with
# values at 60 to 200 samples, 96 batches missed the highest peak known by more than 1 % in 4, 24 in
# 12, and few ascents agreed in these 4.
MAX_BATCHES, MAX_SMALL_BATCHES = 24, 96
# Peaks of certificates whose features correlate by more than this count as one.
THOROUGH_SIMILARITY = 0.95
# Range of displacements from peaks, in units of the inverse scale of the samples.
DISPLACEMENTS = 0.05, 1.0
# Independent ascents that should end at the highest peak: with 60 samples in R^4 one in 200 does,
# and a search that ended with two of them had missed a peak 25 % higher.
AGREEING_ASCENTS = 5
# Ascents that end within this share of the highest peak count as having found it.
SAME_PEAK = 0.01


class Thorough(Search):
    r"""Climb from many starts, in batches, until further batches find no higher peak.

    It is for those who want the theorem's :math:`\epsilon_t` small, the distance of each round's
    potential from the supremum; see :class:`notsorandom.game.SearchGap`. Where the potential has
    many peaks of similar height, as with random labels and little smoothing, :class:`Ascent` misses
    the highest in most rounds. This search takes 50 to 150 times as long. All columns are searched
    alike, as by Gaussian starts.

    Parameters
    ----------
    n_peaks : int, default=4
        Maximum number of peaks returned, highest first; 1 is the game of the paper.
    similarity : float, default=0.8
        Two peaks count as one if their features correlate by more than this.
    n_agreeing : int, default=5
        Independent ascents that must have found the highest peak, up to a largest number of
        batches.
    """

    def __init__(
        self, n_peaks: int = 4, similarity: float = 0.8, n_agreeing: int = AGREEING_ASCENTS
    ) -> None:
        self.n_peaks = n_peaks
        self.similarity = similarity
        self.n_agreeing = n_agreeing

    def check(self) -> None:
        """Raise ValueError if a parameter is out of its range."""
        check_number("n_peaks", self.n_peaks, least=1, integer=True)
        check_number("similarity", self.similarity, above=0, most=1)
        check_number("n_agreeing", self.n_agreeing, least=0, integer=True)

    def find(self, landscape: Landscape, n_peaks: int, rng: np.random.Generator) -> Points:
        """Return at most `n_peaks` distinct peaks of the landscape, highest first."""
        landscape.require_kind("continuous", self, "search='enumerate'")
        starts = landscape.draw(BATCH_ASCENTS // 2, rng)
        points = find_highest(landscape, starts, rng, self.n_agreeing, self.similarity).points
        n_peaks = min(n_peaks, self.n_peaks)
        return points.take(landscape.distinct(points, self.similarity, rng, n_peaks))


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
        Number of these ascents that ended within 1 % of the highest peak. If they are few, there
        may be higher peaks.
    """

    points: Points
    n_ascents: int
    n_agreeing: int


def find_highest(
    landscape: Landscape,
    known: Array,
    rng: np.random.Generator,
    least_agreeing: int = 0,
    similarity: float = THOROUGH_SIMILARITY,
) -> HighestPeak:
    """Climb from many starts, in batches, until further batches find no higher peak.

    At least `least_agreeing` independent ascents must also have found the highest peak, unless
    the largest number of batches is reached. Of the starts, a fourth are drawn as in usual
    searches, a fourth are spread over the part of the space that smoothing leaves, and the others
    are near the highest peaks found. `known` are frequencies of shape (n_frequencies, n_features)
    that the first batch starts from. Peaks whose features correlate by more than `similarity` count
    as one.
    """
    space, all_rows = landscape.continuous_space, landscape
    if len(all_rows.rows) > THOROUGH_ROWS:
        landscape = all_rows.subsample(THOROUGH_ROWS, rng)
    wide = space.within_reach(landscape.smoothing, len(landscape.rows))
    found: list[Points] = []
    best, idle, rows = -np.inf, 0, landscape.rows
    max_batches = min(MAX_SMALL_BATCHES, MAX_BATCHES * THOROUGH_ROWS // len(rows))
    n_draws = DRAWS_PER_START * BATCH_ASCENTS // 4
    while len(found) < max_batches and (
        idle < MAX_IDLE_BATCHES or n_agreeing(found, best) < least_agreeing
    ):
        draws = landscape.draw(n_draws, rng), wide.spread(n_draws, rows, rng)
        starts = [highest_draws(landscape, each) for each in draws]
        starts.append(displaced(landscape, found, rng) if found else starts_from(landscape, known))
        points = landscape.evaluate_with_slope(np.concatenate(starts))
        steps = np.full(len(points), space.first_step(), dtype=points.height.dtype)
        points, _ = climb(landscape, points, steps, THOROUGH_STEPS)
        highest = float(points.height.max())
        idle = 0 if highest > best + LEAST_RISE else idle + 1
        best = max(best, highest)
        found.append(points)
    frequencies = np.concatenate([points.frequencies for points in found])
    points = landscape.evaluate(frequencies)
    points = points.take(landscape.distinct(points, similarity, rng, N_REFINED))
    if landscape is not all_rows:
        points = all_rows.evaluate_with_slope(points.frequencies)
        steps = np.full(len(points), space.first_step(), dtype=points.height.dtype)
        points, _ = climb(all_rows, points, steps, REFINE_STEPS)
        points = points.take(np.argsort(-points.height, kind="stable"))
    return HighestPeak(points, len(found) * (BATCH_ASCENTS // 2), n_agreeing(found, best))


def highest_draws(landscape: Landscape, draws: Array) -> Array:
    """Return the highest of each `DRAWS_PER_START` draws in a row, which have similar degrees."""
    heights = landscape.evaluate(draws).height.reshape(-1, DRAWS_PER_START)
    return draws[np.arange(len(heights)) * DRAWS_PER_START + heights.argmax(axis=1)]


def n_agreeing(found: list[Points], best: float) -> int:
    """Return how many independent ascents, the first half of each batch, found the highest peak."""
    independent = np.concatenate([points.height[: BATCH_ASCENTS // 2] for points in found])
    return int((independent >= best + np.log(1 - SAME_PEAK)).sum())


def starts_from(landscape: Landscape, known: Array) -> Array:
    """Return the highest of the known frequencies, as many as a batch has ascents."""
    if len(known) <= BATCH_ASCENTS:
        return known
    return known[np.argsort(-landscape.evaluate(known).height, kind="stable")[:BATCH_ASCENTS]]


def displaced(landscape: Landscape, found: list[Points], rng: np.random.Generator) -> Array:
    """Return frequencies near the highest peaks found, since there may be higher peaks nearby."""
    heights = np.concatenate([points.height for points in found])
    peaks = np.concatenate([points.frequencies for points in found])
    highest = peaks[np.argsort(-heights, kind="stable")[:N_REFINED]]
    centers = highest[rng.integers(len(highest), size=BATCH_ASCENTS // 2)]
    space = landscape.continuous_space
    low, high = np.log(DISPLACEMENTS)
    lengths = space.first_step() ** 0.5 * np.exp(rng.uniform(low, high, BATCH_ASCENTS // 2))
    shifts = lengths[:, None] * rng.standard_normal(centers.shape)
    return space.move(centers, shifts.astype(centers.dtype))
