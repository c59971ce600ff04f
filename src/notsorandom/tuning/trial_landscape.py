"""Landscapes of trial games: the log potentials of many games, evaluated at once."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Generic, TypeVar

import numpy as np

from notsorandom._utils.threads import ONE_THREAD, ThreadPool, cached_property, scratch
from notsorandom.data.rows import Array
from notsorandom.spaces import Euclidean
from notsorandom.spaces.base import ContinuousSpace
from notsorandom.spaces.landscape import Points, relative_potential

# Most features that are computed at a time: they fit the cache.
CACHED_FEATURES = 2**16

AnySpace = TypeVar("AnySpace", bound=ContinuousSpace)


@dataclass(frozen=True)
class TrialLandscape(ABC, Generic[AnySpace]):
    """The log potentials of several games, each with a measure of its own.

    Points are listed game after game, with the same number for each game.

    Parameters
    ----------
    space : ContinuousSpace
    X : ndarray of shape (n_samples, n_features)
    measure : ndarray of shape (n_games, n_samples, n_tasks)
    weights : ndarray of shape (n_games, n_samples)
        Of the samples; zero for those that a game is not played on.
    smoothing : ndarray of shape (n_games,)
    pool : ThreadPool
        Threads that share the games.
    """

    space: AnySpace
    X: Any
    measure: Array
    weights: Array
    smoothing: Array
    pool: ThreadPool = ONE_THREAD

    def take(self, rows: Array) -> TrialLandscape[AnySpace]:
        """Return the landscape of some of the samples."""
        measure, weights = self.measure[:, rows], self.weights[:, rows]
        return replace(self, X=self.X[rows], measure=measure, weights=weights)

    def move(self, points: Points, shift: Array) -> Points:
        """Evaluate the points displaced by a shift."""
        return self.evaluate(self.space.move(points.frequencies, shift))

    def evaluate(self, frequencies: Array) -> Points:
        """Compute heights, slopes and amplitudes; see :class:`notsorandom.spaces.Landscape`."""
        n_games, n_samples, n_tasks = self.measure.shape
        by_game = frequencies.reshape(n_games, -1, frequencies.shape[1])
        # Parts of the games are shared among threads, and their features fit the cache.
        n_parts = min(n_games, -(-len(frequencies) * n_samples // CACHED_FEATURES))
        ends = [n_games * number // n_parts for number in range(n_parts + 1)]
        parts: list[tuple[Array, ...]] = []
        self.pool.map_ordered(
            lambda part: self._evaluate(part, by_game[part]),
            [slice(*both) for both in pairwise(ends)],
            parts.append,
        )
        height, slope, amplitudes = (np.concatenate(each) for each in zip(*parts, strict=True))
        amplitudes = np.moveaxis(amplitudes, 0, 2).reshape(-1, n_tasks, len(frequencies))
        return Points(frequencies, height.ravel(), slope.reshape(frequencies.shape), amplitudes)

    def peaks(self, points: Points) -> tuple[Array, Array, Array]:
        """Return frequencies, phases and alignment of points, with a first axis of games."""
        phases = self.space.phases(points.amplitudes)
        alignment = self.space.alignment(points.amplitudes, phases, "aligned")[:, 0]

        def split(values: Array) -> Any:
            return values.reshape(len(self.measure), -1, *values.shape[1:])

        return split(points.frequencies), split(phases), split(alignment)

    @abstractmethod
    def _evaluate(self, part: slice, frequencies: Array) -> tuple[Array, Array, Array]:
        """Return heights, slopes and amplitudes of the points of some games.

        The shapes are (n_games, n_points), (n_games, n_points, n_features) and (n_games, n_parts,
        n_tasks, n_points); see :meth:`ResolvedSpace.amplitudes`.
        """

    @abstractmethod
    def features(self, X: Any, frequencies: Array, phases: Array) -> Array:
        """Return aligned features, of shape (n_games, n_rows, n_points).

        Frequencies and phases have a first axis of games.
        """

    @abstractmethod
    def scales(self, features: Array) -> Array:
        """Return the factors that give features mean square one, of shape (n_games, n_points).

        `features` are those of the landscape's samples.
        """

    @cached_property
    def _mass(self) -> Array:
        """Sum of the absolute measure of each game; never zero."""
        mass = np.abs(self.measure).sum(axis=(1, 2))
        return np.where(mass > 0, mass, mass.dtype.type(1))


class WaveLandscape(TrialLandscape[Euclidean]):
    """The landscape of games on R^d, for dense samples, centred and in units of their scale.

    The space has the noise of the smoothing; see :class:`notsorandom.Euclidean`.
    """

    def highest(self, draws: Array, n_points: int) -> Array:
        """Return the highest of some frequencies in each game, listed game after game."""
        angles = self.X @ draws.T  # (n_samples, n_draws)
        n_games, n_samples, n_tasks = self.measure.shape
        by_task = np.moveaxis(self.measure, 1, 2).reshape(-1, n_samples)
        sums = np.stack([by_task @ np.cos(angles), by_task @ np.sin(angles, out=angles)])
        sums = sums.reshape(2, n_games, n_tasks, -1)
        potential = self._potential(sums, slice(None))  # (n_games, n_draws)
        penalty, _ = self._penalty(draws[None], slice(None))
        order = np.argsort(penalty - np.log(potential), axis=1, kind="stable")
        return draws[order[:, :n_points].ravel()]

    def features(self, X: Array, frequencies: Array, phases: Array) -> Array:
        """Return waves; see :meth:`Euclidean.features`."""
        waves = X @ np.swapaxes(frequencies, 1, 2)
        waves -= phases[:, None, :]
        np.cos(waves, out=waves)
        waves *= math.sqrt(2)
        return waves

    def scales(self, features: Array) -> Array:
        """Return ones: waves have mean square one."""
        return np.ones_like(features[:, 0])

    def _evaluate(self, part: slice, frequencies: Array) -> tuple[Array, Array, Array]:
        """See `Euclidean.amplitudes_and_gradient`."""
        sums, slope = self._sums(part, frequencies)
        potential = self._potential(sums, part)
        penalty, penalty_slope = self._penalty(frequencies, part)
        mass = self._mass[part, None]
        slope /= mass[:, :, None]
        slope *= (2 / mass / potential)[:, :, None]
        slope -= penalty_slope
        return np.log(potential) - penalty, slope, np.swapaxes(sums, 0, 1)

    def _sums(self, part: slice, frequencies: Array) -> tuple[Array, Array]:
        """Return amplitudes and half the gradients of the potential of some games."""
        measure, (n_games, n_points, _) = self.measure[part], frequencies.shape
        shape = (3, n_games, len(self.X), n_points)
        cosine, sine, factors = scratch(shape, self.X.dtype)
        np.matmul(self.X, np.swapaxes(frequencies, 1, 2), out=sine)  # the angles
        np.cos(sine, out=cosine)
        np.sin(sine, out=sine)
        by_task = np.swapaxes(measure, 1, 2)  # (n_games, n_tasks, n_samples)
        sums = np.stack([by_task @ cosine, by_task @ sine])  # (2, n_games, n_tasks, n_points)
        if measure.shape[2] == 1:  # a product with one column is faster without BLAS
            cosine *= sums[1]
            sine *= sums[0]
            cosine -= sine
            cosine *= measure
        else:  # the cosine and the sine of the best phase in the place of a task's own
            phases = self.space.phases(np.moveaxis(sums, 2, 1))[:, None]  # (n_games, 1, n_points)
            turns = np.cos(phases), np.sin(phases)
            aligned = sums[0] * turns[0] + sums[1] * turns[1]  # (n_games, n_tasks, n_points)
            cosine *= turns[1]
            sine *= turns[0]
            cosine -= sine
            cosine *= np.matmul(measure, aligned, out=factors)
        return sums, np.swapaxes(cosine, 1, 2) @ self.X

    def _penalty(self, frequencies: Array, part: slice) -> tuple[Array, Array]:
        """Return penalties and their slopes; see `Euclidean.penalty`."""
        smoothing = self.smoothing[part, None]
        if self.space.noise == "cauchy":
            weight = 2 * smoothing
            sizes = np.abs(frequencies).sum(axis=2)
            return weight * sizes, weight[:, :, None] * np.sign(frequencies)
        weight = np.square(smoothing)
        squares = np.einsum("gpi,gpi->gp", frequencies, frequencies)
        return weight * squares, (2 * weight)[:, :, None] * frequencies

    def _potential(self, sums: Array, part: slice) -> Array:
        """Return relative potentials of aligned features, of shape (n_games, n_points)."""
        by_task = np.moveaxis(sums, 2, 1)  # (2, n_tasks, n_games, n_points)
        return relative_potential(by_task, "aligned", self._mass[part, None])


def distinct(
    features: Array, heights: Array, weights: Array, similarity: float, n_peaks: int
) -> tuple[Array, Array]:
    """Return the highest distinct points of each game; see :meth:`Landscape.distinct`.

    Returns indices and a mask, of shape (n_games, n_peaks): false where there are fewer.
    """
    shares = weights / weights.sum(axis=1, keepdims=True)
    weighted = np.swapaxes(features * shares[:, :, None], 1, 2)  # (n_games, n_points, n_rows)
    means = weighted.sum(axis=2)
    covariances = weighted @ features - means[:, :, None] * means[:, None, :]
    tiny = np.finfo(features.dtype).tiny
    deviations = np.sqrt(np.maximum(np.diagonal(covariances, axis1=1, axis2=2), tiny))
    products = deviations[:, :, None] * deviations[:, None, :]
    similar = np.abs(covariances) > similarity * products
    games = np.arange(len(features))
    heights = heights.copy()
    chosen, valid = [], []
    for _ in range(n_peaks):
        best = heights.argmax(axis=1)
        chosen.append(best)
        valid.append(heights[games, best] > -np.inf)
        heights[similar[games, best]] = -np.inf
        heights[games, best] = -np.inf
    return np.stack(chosen, axis=1), np.stack(valid, axis=1)
