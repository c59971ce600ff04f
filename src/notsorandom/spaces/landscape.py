"""What a search walks on: the log of the smoothed potential over a space."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from notsorandom.data.array_api import on_host
from notsorandom.data.rows import Array, Rows

# Two features are compared on this many rows: a correlation is then known to about 0.03.
PROBE_ROWS = 1024
# Numbers that single precision holds as well as it holds any.
SINGLE_REACH = (1e-37, 1e37)


def potential_of(amplitudes: Array) -> Array:
    """Potential of each frequency from the transform: the sum of squares over the tasks."""
    return (amplitudes * amplitudes).sum(axis=(0, 1))


def masses(measure: Array) -> Array:
    """Of each sample, the sum of a measure's absolute values over the tasks; never zero."""
    return np.abs(measure).sum(axis=1, dtype=np.float64) + np.finfo(float).tiny


def sums_of_block(measure: Array) -> tuple[float, Array, Array]:
    """See :attr:`Landscape._sums`."""
    return (
        float(masses(measure).sum()),
        np.abs(measure).sum(axis=0, dtype=np.float64),
        measure.sum(axis=0, dtype=np.float64),
    )


def kernel_potentials(space: Any, amplitudes: Array, phase: str) -> Array:
    """Potential of each frequency's own features, in float64: what the kernel player is paid."""
    phases = space.phases(amplitudes)
    alignment = space.alignment(amplitudes, phases, phase)
    return np.square(alignment, dtype=np.float64).sum(axis=(1, 2))


def mean_in_groups(values: Array, groups: Array) -> Array:
    """The values, each replaced by the mean of its group."""
    _, codes = np.unique(groups, return_inverse=True)
    means = np.bincount(codes, weights=values) / np.bincount(codes)
    return means[codes].astype(values.dtype)


def in_single(frequencies: Array) -> Array:
    """Frequencies rounded to what single precision holds, in the type they are in.

    No sample tells two waves that close apart, and a model is stored in half the room, exactly.
    Frequencies so long or short that single precision doesn't reach them are left as they are.
    """
    if frequencies.dtype != np.float64:
        return frequencies
    sizes = np.abs(frequencies[frequencies != 0])
    if sizes.size and not (SINGLE_REACH[0] < sizes.min() and sizes.max() < SINGLE_REACH[1]):
        return frequencies
    return frequencies.astype(np.float32).astype(np.float64)


@dataclass(frozen=True)
class Points:
    """Places in the landscape and what is known of them.

    Parameters
    ----------
    frequencies : ndarray of shape (n_points, n_features)
    height : ndarray of shape (n_points,)
        Log of the smoothed potential.
    slope : ndarray of shape (n_points, n_features)
        Gradient of the height; no columns where there is none.
    amplitudes : ndarray of shape (n_parts, n_tasks, n_points)
        Fourier transform of the measure: real and imaginary part, or what the space has for them.
    """

    frequencies: Array
    height: Array
    slope: Array
    amplitudes: Array

    def __len__(self) -> int:
        return len(self.height)

    def replaced(self, where: Array, by: Points) -> Points:
        """Take `by` where the mask is true, and these points elsewhere."""
        return Points(
            np.where(where[:, None], by.frequencies, self.frequencies),
            np.where(where, by.height, self.height),
            np.where(where[:, None], by.slope, self.slope),
            np.where(where, by.amplitudes, self.amplitudes),
        )

    def take(self, indices: Any) -> Points:
        """The points at `indices`, in that order."""
        return Points(
            self.frequencies[indices],
            self.height[indices],
            self.slope[indices],
            self.amplitudes[..., indices],
        )


@dataclass(frozen=True)
class Landscape:
    r"""The function :math:`\log v(\omega) - r(\omega)` for one state of the game.

    `v` is the Fourier potential of the measure, `r` the space's penalty on rough frequencies for
    the smoothing asked for. On R^d this is the log potential of the samples blurred by Gaussian
    noise of standard deviation ``smoothing * scale``.

    Parameters
    ----------
    space : a space, resolved
    rows : Rows
    measure : column of shape (n_samples, n_tasks)
    smoothing : float
        As a fraction of the space's scale.
    phase : {"aligned", "paired"}
    known : list, optional
        What :func:`sums_of_block` says of the measure's blocks, if that is known already.
    """

    space: Any
    rows: Rows
    measure: Any
    smoothing: float
    phase: str = "aligned"
    known: list[tuple[float, Array, Array]] | None = None

    @cached_property
    def _sums(self) -> list[tuple[float, Array, Array]]:
        """Of each block, its masses' sum, and by task the mass and the sum of the measure."""
        sums = self.known
        if sums is None:
            sums = list(self.rows.bare.each(lambda _, a: sums_of_block(a), self.measure))
        if not np.isfinite([mass for mass, *_ in sums]).all():
            raise ValueError(
                f"Numbers became too large for {self.rows.dtype}: scale X and y down, or take a "
                "smaller C."
            )
        return sums

    @cached_property
    def mass(self) -> Array:
        """Of each task, the sum of the measure's absolute values, in float64."""
        return np.sum([mass for _, mass, _ in self._sums], axis=0)

    def at(self, frequencies: Array) -> Points:
        """Height, slope and transform at the frequencies of a continuous space."""
        amplitudes, gradient = self.space.amplitudes_and_gradient(
            self.rows, self.measure, frequencies
        )
        potential = potential_of(amplitudes) + self._floor
        penalty, rough_slope = self.space.penalty(self.rows, frequencies, self.smoothing)
        return Points(
            frequencies,
            np.log(potential) - penalty,
            gradient / potential[:, None] - rough_slope,
            amplitudes,
        )

    def moved(self, points: Points, shift: Array) -> Points:
        """What is found at a shift from the points."""
        return self.at(self.space.move(points.frequencies, shift))

    def everywhere(self) -> Points:
        """Height and transform at all frequencies of a finite space."""
        frequencies = self.space.everything(self.rows.n_features)
        return self._without_slope(
            frequencies, self.space.amplitudes_of_everything(self.rows, self.measure)
        )

    def seen(self, frequencies: Array) -> Points:
        """Height and transform at some frequencies, without a slope where it would cost."""
        return self._without_slope(
            frequencies, self.space.amplitudes(self.rows, self.measure, frequencies)
        )

    def _without_slope(self, frequencies: Array, amplitudes: Array) -> Points:
        # Frequencies that stand for one kernel together are as high as their mean.
        groups = self.space.groups(frequencies, self.phase)
        potential = mean_in_groups(potential_of(amplitudes), groups) + self._floor
        penalty, slope = self.space.penalty(self.rows, frequencies, self.smoothing)
        return Points(frequencies, np.log(potential) - penalty, slope, amplitudes)

    @property
    def _floor(self) -> Any:
        """Potential below which rounding alone leaves nothing to see."""
        dtype = self.rows.dtype.type
        return dtype((np.finfo(dtype).eps * self.mass.sum()) ** 2) + np.finfo(dtype).tiny

    def require(self, kind: str, search: Any, instead: str) -> None:
        """Raise ValueError unless the space is of the kind that the search needs."""
        if self.space.kind != kind:
            raise ValueError(
                f"{type(search).__name__} needs a {kind} space, but the frequencies of "
                f"{type(self.space).__name__} are {self.space.kind}: use {instead}, or "
                "search='auto'."
            )

    def draw(self, n_points: int, rng: np.random.Generator, variance: float = 1.0) -> Array:
        """Frequencies to start from, of so many times the usual variance."""
        return self.space.draw(n_points, self.rows.n_features, self.rows.dtype, rng, variance)

    def in_single(self, points: Points) -> Points:
        """The points, their frequencies rounded to single precision, and what is seen there."""
        frequencies = in_single(points.frequencies)
        if frequencies is points.frequencies:
            return points
        amplitudes = self.space.amplitudes(self.rows, self.measure, frequencies)
        return replace(points, frequencies=frequencies, amplitudes=amplitudes)

    def coarse(self, n_rows: int, rng: np.random.Generator) -> Landscape:
        """The same landscape as `n_rows` random samples show it.

        Samples are drawn by their share of the measure and weighted by its inverse, so that few of
        them stand for it well; what then is left of each task's total mass is taken away again.
        """
        block_masses = [mass for mass, *_ in self._sums]
        marks = np.sort(rng.random(n_rows))
        rows, seen = self.rows.picked(masses, self.measure, block_masses, marks)
        measure = seen * (sum(block_masses) / (n_rows * masses(seen)))[:, None]
        total = np.sum([total for *_, total in self._sums], axis=0)
        measure += (total - measure.sum(axis=0)) / n_rows
        return Landscape(
            self.space,
            rows,  # drawn by weight already
            measure.astype(self.rows.dtype),
            self.smoothing,
            self.phase,
        )

    def distinct(self, points: Points, similarity: float, rng: np.random.Generator) -> list[int]:
        """Indices of points that are not alike, highest first.

        Two points are alike if their features correlate by more than `similarity`, on a sample of
        the rows; of such points the highest stands for all.
        """
        phases = self.space.phases(points.amplitudes)
        probe = self.rows.take(self.rows.sample(PROBE_ROWS, rng))
        features = on_host(self.space.features(probe.array, points.frequencies, phases, "aligned"))
        weights = None if probe.weights is None else probe.weights[:, 0]
        features = features - np.average(features, axis=0, weights=weights)
        if probe.weights is not None:
            features *= np.sqrt(probe.weights)
        norms = np.sqrt((features * features).sum(axis=0))
        features /= np.maximum(norms, np.finfo(features.dtype).tiny)
        alike = np.abs(features.T @ features) > similarity  # (n_points, n_points)
        chosen: list[int] = []
        for candidate in np.argsort(-points.height, kind="stable"):
            if not alike[candidate, chosen].any():
                chosen.append(int(candidate))
        return chosen
