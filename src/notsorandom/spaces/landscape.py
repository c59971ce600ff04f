"""The landscape of one round: the log of the smoothed potential over a space; random samples."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from notsorandom._utils.threads import cached_property, cut_slices
from notsorandom.data.array_api import to_host
from notsorandom.data.rows import Array, Column, Rows, row_norms, stack_blocks
from notsorandom.spaces.base import ContinuousSpace, FiniteSpace, ResolvedSpace

# Rows on which two features are compared. The standard error of a correlation is then 0.03.
SIMILARITY_ROWS = 1024
# Points that are compared at a time, for each distinct one that is wanted.
POINTS_PER_DISTINCT = 4
# Random pairs of rows for the median distance: its standard error is then a few percent.
N_PAIRS = 1024
# Numbers that are subtracted at a time: 4 MB. With more, new memory takes most of the time.
DIFFERENCES = 2**19
# Of a block of the measure: the total mass of the samples; per task, the mass and the sum.
MeasureStats = tuple[float, Array, Array]


def split_sums(sums: Array) -> Array:
    """Return the amplitudes, given sums of cosines and then of sines with one column per task."""
    return np.swapaxes(sums.reshape(2, -1, sums.shape[1]), 1, 2)


def potential_of(amplitudes: Array, phase: str = "paired") -> Array:
    r"""Return the potential of each frequency: the sum of squared amplitudes over the tasks.

    Of paired features it is the sum over both parts, cosine and sine. An aligned feature has the
    one phase :math:`b` that is best for all tasks, so that its potential is
    :math:`\max_b \sum_k (C_k \cos b + S_k \sin b)^2`, the largest eigenvalue of a matrix. For one
    task the two are equal.
    """
    if phase == "paired" or 1 in amplitudes.shape[:2]:
        return (amplitudes * amplitudes).sum(axis=(0, 1))
    cosine, sine = amplitudes  # (n_tasks, n_frequencies)
    total = (amplitudes * amplitudes).sum(axis=(0, 1))
    difference = ((cosine + sine) * (cosine - sine)).sum(axis=0)
    mixed = (cosine * sine).sum(axis=0)
    return (total + np.hypot(difference, 2 * mixed)) / 2


def relative_potential(amplitudes: Array, phase: str, mass: Any) -> Array:
    """Return the potential of each frequency in units of the squared mass of the measure.

    What is added has the size of rounding errors, so that it is never zero. A multiple of the
    measure by a power of two has exactly the same relative potential. So has its logarithm, while
    adding a constant to logarithms changes how they are rounded, and then the course of a game.
    """
    return potential_of(amplitudes / mass, phase) + np.finfo(amplitudes.dtype).eps ** 2


def feature_potentials(space: ResolvedSpace, amplitudes: Array, phase: str) -> Array:
    """Return the potential of each frequency's own features, in float64."""
    alignment = space.alignment(amplitudes, space.phases(amplitudes), phase)
    return np.square(alignment, dtype=np.float64).sum(axis=(1, 2))


def average_groups(values: Array, groups: Array) -> Array:
    """Replace each value by the mean of its group; groups are small non-negative integers."""
    means = np.bincount(groups, weights=values) / np.maximum(np.bincount(groups), 1)
    return means[groups].astype(values.dtype)


def sample_masses(measure: Array) -> Array:
    """Return the sum of each sample's absolute measure over the tasks; never zero."""
    return np.abs(measure).sum(axis=1, dtype=np.float64) + np.finfo(float).tiny


def measure_stats(measure: Array) -> MeasureStats:
    """Return the total of the masses; per task, the mass and the sum of the measure."""
    mass = np.abs(measure).sum(axis=0, dtype=np.float64)
    total = float(mass.sum()) + np.finfo(float).tiny  # never zero, like `sample_masses`
    return total, mass, measure.sum(axis=0, dtype=np.float64)


@dataclass(frozen=True)
class Points:
    """Points of a landscape.

    Parameters
    ----------
    frequencies : ndarray of shape (n_points, n_features)
    height : ndarray of shape (n_points,)
        Log of the smoothed potential, in the landscape's unit.
    slope : ndarray of shape (n_points, n_features)
        Gradient of the height; without columns if it was not computed.
    amplitudes : ndarray of shape (n_parts, n_tasks, n_points)
        Fourier transform of the measure: real and imaginary part on R^d.
    """

    frequencies: Array
    height: Array
    slope: Array
    amplitudes: Array

    def __len__(self) -> int:
        return len(self.height)

    def where(self, mask: Array, other: Points) -> Points:
        """Return the points, replaced by the points of `other` where the mask is true."""
        return Points(
            np.where(mask[:, None], other.frequencies, self.frequencies),
            np.where(mask, other.height, self.height),
            np.where(mask[:, None], other.slope, self.slope),
            np.where(mask, other.amplitudes, self.amplitudes),
        )

    def take(self, indices: Any) -> Points:
        """Return the points at `indices`, in that order."""
        return Points(
            self.frequencies[indices],
            self.height[indices],
            self.slope[indices],
            self.amplitudes[..., indices],
        )


@dataclass(frozen=True)
class Sample:
    """Samples at random fractions of the mass of a measure, with its values: `pick_by_mass`."""

    marks: Array
    rows: Rows
    values: Array


@dataclass(frozen=True)
class Landscape:
    r"""The function :math:`\log v(\omega) - r(\omega)` for the measure of one round.

    `v` is the Fourier potential of the measure, `r` the space's penalty for the smoothing. On R^d
    this is the log potential of the samples blurred by Gaussian noise of standard deviation
    ``smoothing * scale``. The potential is in units of the squared mass of the measure: see `unit`.

    Parameters
    ----------
    space : ResolvedSpace
    rows : Rows
    measure : column of shape (n_samples, n_tasks)
    smoothing : float
        In units of the space's scale.
    phase : {"aligned", "paired"}
    block_stats : list, optional
        `measure_stats` of the measure's blocks, if known.
    sample : Sample, optional
        A random sample, if one has been drawn ahead.
    """

    space: ResolvedSpace
    rows: Rows
    measure: Column
    smoothing: float
    phase: str = "aligned"
    block_stats: list[MeasureStats] | None = None
    sample: Sample | None = None

    @cached_property
    def _stats(self) -> list[MeasureStats]:
        stats = self.block_stats
        if stats is None:
            columns = self.rows.columns_only
            stats = list(columns.map_blocks(lambda _, a: measure_stats(a), self.measure))
        if not np.isfinite([mass for mass, *_ in stats]).all():
            raise ValueError(
                f"Numbers became too large for {self.rows.dtype}: scale X and y down, or use a "
                "smaller C."
            )
        return stats

    @cached_property
    def mass(self) -> Array:
        """Sum of the absolute measure of each task, in float64."""
        return np.sum([mass for _, mass, _ in self._stats], axis=0)

    @cached_property
    def _total_mass(self) -> Any:
        """Sum of the absolute measure of all tasks, in the type of the samples; never zero."""
        return self.rows.dtype.type(self.mass.sum() or 1.0)

    @property
    def unit(self) -> float:
        """The potential, blurred by the smoothing, of points of height zero."""
        return float(self._total_mass) ** 2

    @property
    def max_potential(self) -> float:
        """Upper bound on the potential, for features of mean square one."""
        return self.space.max_potential(self.rows, self.measure, self.mass, self.phase)

    # Heights.

    def evaluate(self, frequencies: Array) -> Points:
        """Compute heights and amplitudes, but no slopes."""
        amplitudes = self.space.amplitudes(self.rows, self.measure, frequencies)
        return self._points(frequencies, amplitudes)

    def evaluate_with_slope(self, frequencies: Array) -> Points:
        """Compute heights, slopes and amplitudes on a continuous space."""
        height, slope, amplitudes = self.continuous_space.log_potential(
            self.rows, self.measure, frequencies, self.smoothing, self.phase, self._total_mass
        )
        return Points(frequencies, height, slope, amplitudes)

    def evaluate_all(self) -> Points:
        """Compute heights and amplitudes at all frequencies of a finite space."""
        space = self.finite_space
        frequencies = space.all_frequencies(self.rows.n_features)
        return self._points(frequencies, space.all_amplitudes(self.rows, self.measure))

    def move(self, points: Points, shift: Array) -> Points:
        """Evaluate the points displaced by a shift, with slopes."""
        return self.evaluate_with_slope(self.continuous_space.move(points.frequencies, shift))

    def _points(self, frequencies: Array, amplitudes: Array) -> Points:
        potential = relative_potential(amplitudes, self.phase, self._total_mass)
        if self.space.kind == "finite":
            # Frequencies that form one kernel have one height, the log of their mean potential.
            potential = average_groups(potential, self.space.groups(frequencies, self.phase))
        penalty = self.space.penalty(self.rows, frequencies, self.smoothing)
        no_slope = np.empty((len(frequencies), 0), dtype=penalty.dtype)
        return Points(frequencies, np.log(potential) - penalty, no_slope, amplitudes)

    # For searches.

    @property
    def continuous_space(self) -> ContinuousSpace:
        """The space, which must have a gradient; see :meth:`require_kind`."""
        assert isinstance(self.space, ContinuousSpace)
        return self.space

    @property
    def finite_space(self) -> FiniteSpace:
        """The space, which must be finite; see :meth:`require_kind`."""
        assert isinstance(self.space, FiniteSpace)
        return self.space

    def require_kind(self, kind: str, search: object, instead: str) -> None:
        """Raise ValueError unless the space is of the kind that the search needs."""
        if self.space.kind != kind:
            raise ValueError(
                f"{type(search).__name__} needs a {kind} space, but {type(self.space).__name__} is "
                f"{self.space.kind}: use {instead}, or search='auto'."
            )

    def draw(
        self,
        n_points: int,
        rng: np.random.Generator,
        variance: float = 1.0,
        spectrum: str = "gaussian",
    ) -> Array:
        """Draw frequencies to start from.

        `variance` multiplies the variance of the Gaussian spectrum. The spectrum "cauchy" needs a
        continuous space; see :meth:`ContinuousSpace.draw_cauchy`.
        """
        if spectrum == "cauchy":
            return self.continuous_space.draw_cauchy(n_points, self.rows, rng)
        return self.space.draw(n_points, self.rows, rng, variance)

    def subsample(self, n_rows: int, rng: np.random.Generator) -> Landscape:
        """Return an unbiased estimate of the landscape from `n_rows` random samples.

        Samples are drawn in proportion to their mass and weighted by its inverse. The sum of each
        task's measure is then restored.
        """
        block_masses = [mass for mass, *_ in self._stats]
        marks = draw_marks(n_rows, rng)
        sample = self.sample
        if sample is not None and np.array_equal(sample.marks, marks):
            rows, values = sample.rows, sample.values
        else:
            rows, values = pick_by_mass(self.rows, sample_masses, self.measure, block_masses, marks)
        measure = values * (sum(block_masses) / (n_rows * sample_masses(values)))[:, None]
        total = np.sum([total for *_, total in self._stats], axis=0)
        measure += (total - measure.sum(axis=0)) / n_rows
        # The rows have no weights: the measure contains them.
        measure = measure.astype(self.rows.dtype)
        return Landscape(self.space, rows, measure, self.smoothing, self.phase)

    def distinct(
        self,
        points: Points,
        similarity: float,
        rng: np.random.Generator,
        n_points: int = sys.maxsize,
    ) -> list[int]:
        """Return the indices of distinct points, highest first, at most `n_points`.

        Two points are similar if their features correlate by more than `similarity` on a sample of
        the rows. Of similar points the highest is kept.
        """
        probe = self.rows
        if len(probe) > SIMILARITY_ROWS or not probe.is_local:
            probe = probe.take(probe.sample_indices(SIMILARITY_ROWS, rng))
        order, chosen = np.argsort(-points.height, kind="stable"), list[int]()
        kept = np.empty((len(probe), 0), dtype=probe.dtype)  # features of the chosen points
        # The highest points mostly have enough distinct ones.
        size = min(len(order), POINTS_PER_DISTINCT * n_points)
        for start in range(0, len(order), size):
            part = order[start : start + size]
            features = self._standardised_features(probe, points.take(part))
            available = (np.abs(kept.T @ features) <= similarity).all(axis=0)
            similar = np.abs(features.T @ features) > similarity  # (n_part, n_part)
            first = []
            for candidate in range(len(part)):
                if available[candidate]:
                    first.append(candidate)
                    available &= ~similar[candidate]
            chosen += part[first].tolist()
            if len(chosen) >= n_points:
                break
            kept = np.concatenate([kept, features[:, first]], axis=1)
        return chosen[:n_points]

    def _standardised_features(self, probe: Rows, points: Points) -> Array:
        """Return the features of points on some rows, centred and of norm one."""
        phases = self.space.phases(points.amplitudes)
        features = to_host(self.space.features(probe.array, points.frequencies, phases, "aligned"))
        weights = None if probe.weights is None else probe.weights[:, 0]
        features = features - np.average(features, axis=0, weights=weights)
        if probe.weights is not None:
            features *= np.sqrt(probe.weights)
        norms = np.sqrt((features * features).sum(axis=0))
        features /= np.maximum(norms, np.finfo(features.dtype).tiny)
        return features


# Random samples, and the scale of the samples.


def resolve_scale(scale: str | float, rows: Rows, rng: np.random.Generator) -> float:
    """Return a scale given as a number or as "median"."""
    return median_distance(rows, rng) if isinstance(scale, str) else float(scale)


@np.errstate(over="ignore", invalid="ignore")  # check_scale
def median_distance(
    rows: Rows, rng: np.random.Generator, norms: Callable[[Any], Array] = row_norms
) -> float:
    """Return the median distance between random pairs of samples, in a norm of their differences.

    Equal samples are left out. It is 1 if all samples are equal.
    """
    if rows.is_local and isinstance(rows.array, np.ndarray):  # draw pairs of row numbers
        X, numbers = rows.array, replace(rows, array=np.arange(float(len(rows)))[:, None])
        left, right = (draw_by_weight(numbers, N_PAIRS, rng).array for _ in range(2))
        pairs = np.concatenate([left, right], axis=1).astype(int)
        steps = cut_slices(N_PAIRS, max(1, DIFFERENCES // rows.n_features))
        parts = [norms(X[i] - X[j].astype(np.float64)) for i, j in (pairs[p].T for p in steps)]
        distances = np.concatenate(parts)
    else:
        left, right = (to_host(draw_by_weight(rows, N_PAIRS, rng).array) for _ in range(2))
        distances = norms(left - right.astype(np.float64))
    if not distances.any():  # almost all samples are equal: search all rows for different ones
        origin = to_host(rows.take(np.array([0])).array).astype(np.float64)
        distances = rows.to_host(
            rows.map(lambda X: norms(to_host(X) - origin[np.zeros(X.shape[0], dtype=int)]))
        )
    apart = distances[distances > 0]
    return float(np.median(apart)) if len(apart) else 1.0


def draw_by_weight(rows: Rows, n_rows: int, rng: np.random.Generator) -> Rows:
    """Draw samples with replacement in proportion to their weights; return them without weights."""
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
    """Return the samples at sorted fractions of the cumulative mass, and their column values.

    Random fractions draw each sample with probability proportional to its mass. `mass_of` computes
    the masses from a block of the column, and `block_masses` are their sums over the blocks of
    ``rows.columns_only``.
    """
    block_marks = split_marks(marks, block_masses)
    if not rows.is_local:  # the samples are returned by the pass
        return stack_picks(
            rows,
            rows.with_column_blocks().map_blocks(
                lambda X, values, marks: pick(X, values, mass_of, marks), column, given=block_marks
            ),
        )
    starts = [block.start for block in rows.columns_only.blocks()]
    given = list(zip(starts, block_marks, strict=True))

    def pick_indices(_: Any, values: Array, given: tuple[int, Array]) -> Any:
        start, marks = given
        return pick(np.arange(start, start + len(values)), values, mass_of, marks)

    picks = [one for one in rows.columns_only.map_blocks(pick_indices, column, given=given) if one]
    indices, values = (np.concatenate(each) for each in zip(*picks, strict=True))
    return replace(rows.take(indices), weights=None), values


def draw_marks(n_rows: int, rng: np.random.Generator) -> Array:
    """Return sorted random fractions for :func:`pick_by_mass`, one in each of `n_rows` equal parts.

    The estimate of a sum has a smaller variance than with independent fractions.
    """
    marks: Array = (np.arange(n_rows) + rng.random(n_rows)) / n_rows
    return marks


def split_marks(marks: Array, block_masses: Sequence[float]) -> list[Array]:
    """Return the marks in each block, as masses from its start, given sorted fractions of all."""
    ends = np.cumsum(block_masses)
    last = max(number for number, mass in enumerate(block_masses) if mass > 0)
    marks = marks * ends[-1]
    splits = np.searchsorted(marks, ends[:last], side="left")
    parts = [*np.split(marks, splits), *[np.empty(0)] * (len(ends) - 1 - last)]
    return [part - before for part, before in zip(parts, ends - block_masses, strict=True)]


def pick(X: Any, values: Array, mass_of: Callable[[Array], Array], marks: Array) -> Any:
    """Return the samples of a block at some cumulative masses, and their values; None if none."""
    if len(marks) == 0:
        return None
    sums = mass_of(values).astype(np.float64).cumsum()
    chosen = np.minimum(np.searchsorted(sums, marks, side="right"), len(sums) - 1)
    return X[chosen], values[chosen]


def stack_picks(rows: Rows, picks: Iterable[Any]) -> tuple[Rows, Array]:
    """Return the picks of all blocks of rows that are stored elsewhere, in memory."""
    chosen = zip(*(one for one in picks if one is not None), strict=True)
    X, values = (stack_blocks(list(each)) for each in chosen)
    return rows.with_samples(X), values


class PeakFinder(Protocol):
    """What the game needs of a search; see :class:`notsorandom.search.base.Search`."""

    def sample_size(self, n_rows: int) -> int:
        """Return how many of the rows the search first draws, or 0."""

    def find(self, landscape: Landscape, n_peaks: int, rng: np.random.Generator) -> Points:
        """Return at most `n_peaks` distinct peaks, highest first."""
