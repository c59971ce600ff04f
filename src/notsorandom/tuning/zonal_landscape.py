"""Landscapes of trial games on the sphere, with zonal features."""

from __future__ import annotations

from typing import Any

import numpy as np

from notsorandom._utils.threads import cached_property
from notsorandom.data.rows import Array
from notsorandom.spaces.gegenbauer import zonal, zonal_slopes
from notsorandom.spaces.landscape import relative_potential
from notsorandom.spaces.zonal_sphere import (
    ZonalSphere,
    poles_and_degrees,
    tangent,
    variance_of,
    zonal_features,
)
from notsorandom.tuning.trial_landscape import TrialLandscape


class ZonalLandscape(TrialLandscape[ZonalSphere]):
    """The landscape of games with zonal features, for samples of norm one, which may be sparse."""

    def features(self, X: Any, frequencies: Array, phases: Array) -> Array:
        """Return zonal harmonics; see :meth:`ZonalSphere.features`."""
        n_games, n_points, n_columns = frequencies.shape
        values = zonal_features(X, frequencies.reshape(-1, n_columns))
        return np.swapaxes(values.T.reshape(n_games, n_points, -1), 1, 2)

    def scales(self, features: Array) -> Array:
        """Return the inverse standard deviations of the features."""
        _, variance = self._moments(np.swapaxes(features, 1, 2), slice(None))
        return 1 / np.sqrt(variance)

    def _moments(self, values: Array, part: slice) -> tuple[Array, Array]:
        """Return means and variances of features of shape (n_games, n_points, n_samples)."""
        weights, counts = self.weights[part], self._counts[part, None]
        total = (values @ weights[:, :, None])[:, :, 0]
        squares = np.einsum("gpi,gpi,gi->gp", values, values, weights)
        return total / counts, variance_of(total, squares, counts)

    def _evaluate(self, part: slice, frequencies: Array) -> tuple[Array, Array, Array]:
        """See :meth:`ZonalSphere.log_potential`."""
        (n_games, n_points, n_columns), measure = frequencies.shape, self.measure[part]
        poles, degrees = poles_and_degrees(frequencies.reshape(-1, n_columns))
        cosines = self.X @ poles.T  # (n_samples, n_games * n_points)
        values, slopes = (
            each(cosines, degrees, n_columns).T.reshape(n_games, n_points, -1)
            for each in (zonal, zonal_slopes)
        )
        by_task = np.swapaxes(measure, 1, 2)  # (n_games, n_tasks, n_samples)
        sums = by_task @ np.swapaxes(values, 1, 2)  # (n_games, n_tasks, n_points)
        mass = self._mass[part, None]
        potential = relative_potential(np.swapaxes(sums, 0, 1)[None], "aligned", mass)
        mean, variance = self._moments(values, part)
        noise = np.square(self.smoothing[part, None] * self.space.scale)
        levels = degrees * (degrees + n_columns - 2)
        variance += noise * levels.reshape(n_games, n_points).astype(values.dtype)
        # The factors of the samples; values of a pole are next to each other in memory.
        pulls = sums / mass[:, None] / (mass * potential)[:, None, :]
        factors = np.swapaxes(pulls, 1, 2) @ by_task
        values -= mean[:, :, None]
        values *= (1 / (variance * self._counts[part, None]))[:, :, None]
        values *= self.weights[part, None, :]
        factors -= values
        factors *= slopes
        slope = tangent(factors.reshape(len(poles), -1) @ self.X, poles)
        slope *= (2 / degrees).astype(values.dtype)[:, None]
        return np.log(potential) - np.log(variance), slope.reshape(frequencies.shape), sums[:, None]

    @cached_property
    def _counts(self) -> Array:
        """Total weight of the samples of each game; never zero."""
        return np.maximum(self.weights.sum(axis=1), np.finfo(self.weights.dtype).tiny)
