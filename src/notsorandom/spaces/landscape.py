"""What a search walks on: the log of the smoothed potential over a space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from notsorandom.rows import Array, Rows

# Two features are compared on this many rows: a correlation is then known to about 0.03.
PROBE_ROWS = 1024


def potential_of(amplitudes: Array) -> Array:
    """Potential of each frequency from the transform: the sum of squares over the tasks."""
    return (amplitudes * amplitudes).sum(axis=(0, 1))


@dataclass(frozen=True)
class Points:
    """Places in the landscape and what is known of them.

    Parameters
    ----------
    frequencies : ndarray of shape (n_points, n_features)
    height : ndarray of shape (n_points,)
        Log of the smoothed potential.
    slope : ndarray of shape (n_points, n_features)
        Gradient of the height.
    amplitudes : ndarray of shape (2, n_tasks, n_points)
        Fourier transform of the measure.
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
    r"""The function :math:`\log v(\omega) - s^2 \, r(\omega)` for one state of the game.

    `v` is the Fourier potential of the measure, `r` the roughness of the space and `s` the
    smoothing, a fraction of the space's scale. On R^d this is the log potential of the samples
    blurred by Gaussian noise of standard deviation `s * scale`.

    Parameters
    ----------
    space : a space, resolved
    rows : Rows
    measure : ndarray of shape (n_samples, n_tasks)
    smoothing : float
    """

    space: Any
    rows: Rows
    measure: Array
    smoothing: float

    def at(self, frequencies: Array) -> Points:
        """Height, slope and transform at the frequencies."""
        dtype = frequencies.dtype.type
        amplitudes, gradient = self.space.amplitudes_and_gradient(
            self.rows, self.measure, frequencies
        )
        # Below what rounding alone leaves of the measure's mass there is nothing to climb.
        floor = dtype((np.finfo(dtype).eps * np.abs(self.measure).sum(dtype=np.float64)) ** 2)
        potential = potential_of(amplitudes) + floor + np.finfo(dtype).tiny
        roughness, rough_slope = self.space.roughness(frequencies)
        weight = dtype(self.smoothing**2)
        return Points(
            frequencies,
            np.log(potential) - weight * roughness,
            gradient / potential[:, None] - weight * rough_slope,
            amplitudes,
        )

    def draw(self, n_points: int, rng: np.random.Generator) -> Array:
        """Frequencies to start from."""
        return self.space.draw(n_points, self.rows.dtype, rng)

    def coarse(self, n_rows: int, rng: np.random.Generator) -> Landscape:
        """The same landscape as `n_rows` random samples show it.

        Samples are drawn by their share of the measure and weighted by its inverse, so that few of
        them stand for it well; what then is left of each task's total mass is taken away again.
        """
        mass = np.abs(self.measure).sum(axis=1, dtype=np.float64) + np.finfo(float).tiny
        share = mass / mass.sum()
        chosen = np.sort(rng.choice(len(share), size=n_rows, p=share))
        measure = self.measure[chosen] / (n_rows * share[chosen, None])
        total = self.measure.sum(axis=0, dtype=np.float64)
        measure += (total - measure.sum(axis=0)) / n_rows
        return Landscape(
            self.space,
            self.rows.take(chosen),
            measure.astype(self.rows.dtype),
            self.smoothing,
        )

    def distinct(self, points: Points, similarity: float, rng: np.random.Generator) -> list[int]:
        """Indices of points that are not alike, highest first.

        Two points are alike if their features correlate by more than `similarity`, on a sample of
        the rows; of such points the highest stands for all.
        """
        phases = self.space.phases(points.amplitudes)
        probe = self.rows.take(self.rows.sample(PROBE_ROWS, rng)).array
        features = self.space.features(probe, points.frequencies, phases, "aligned")
        features -= features.mean(axis=0)
        norms = np.sqrt((features * features).sum(axis=0))
        features /= np.maximum(norms, np.finfo(features.dtype).tiny)
        alike = np.abs(features.T @ features) > similarity  # (n_points, n_points)
        chosen: list[int] = []
        for candidate in np.argsort(-points.height, kind="stable"):
            if not alike[candidate, chosen].any():
                chosen.append(int(candidate))
        return chosen
