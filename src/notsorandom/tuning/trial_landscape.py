"""Landscapes of trial games: the log potentials of many games on R^d, evaluated at once."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from notsorandom._utils.threads import ONE_THREAD, ThreadPool
from notsorandom.data.rows import Array
from notsorandom.spaces import Euclidean
from notsorandom.spaces.landscape import Points, potential_of

# Most waves that are computed at a time: they fit the cache.
WAVES = 2**16


def ignore(_: Any) -> None:
    """Collect nothing."""


@dataclass(frozen=True)
class TrialLandscape:
    """The log potentials of several games, each with a measure of its own.

    Points are listed game after game, with the same number for each game.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Centred, in units of their scale.
    measure : ndarray of shape (n_games, n_samples, n_tasks)
    smoothing : ndarray of shape (n_games,)
    noise : {"gaussian", "cauchy"}
        The noise of the smoothing; see :class:`notsorandom.Euclidean`.
    buffers : ndarray of shape (3, n_games, n_samples, n_points)
        Memory for the waves.
    pool : ThreadPool
        Threads that share the games.
    """

    X: Array
    measure: Array
    smoothing: Array
    noise: str
    buffers: Array
    pool: ThreadPool = ONE_THREAD

    def take(self, rows: Array) -> TrialLandscape:
        """Return the landscape of some of the samples, in the same memory."""
        buffers = self.buffers[:, :, : len(rows)]
        return replace(self, X=self.X[rows], measure=self.measure[:, rows], buffers=buffers)

    def move(self, points: Points, shift: Array) -> Points:
        """Evaluate the points displaced by a shift."""
        return self.evaluate(points.frequencies + shift)

    def evaluate(self, frequencies: Array) -> Points:
        """Compute heights, slopes and amplitudes; see `Euclidean.amplitudes_and_gradient`."""
        n_games, n_samples, n_tasks = self.measure.shape
        by_game = frequencies.reshape(n_games, -1, self.X.shape[1])
        n_points = by_game.shape[1]
        amplitudes = np.empty((2, n_games, n_tasks, n_points), dtype=self.X.dtype)
        gradient = np.empty_like(by_game)

        def evaluate_part(part: slice) -> None:
            self._sums(part, by_game[part], amplitudes[:, part], gradient[part])

        # Parts of the games are shared among threads, and their waves fit the cache.
        n_parts = min(n_games, -(-n_games * n_samples * n_points // WAVES))
        ends = [n_games * number // n_parts for number in range(n_parts + 1)]
        self.pool.map_ordered(evaluate_part, [slice(*both) for both in pairwise(ends)], ignore)
        potential = self._potential(amplitudes)
        penalty, penalty_slope = self._penalty(by_game)
        height = np.log(potential) - penalty
        slope = gradient
        slope *= (2 / potential)[:, :, None]
        slope -= penalty_slope
        amplitudes = np.moveaxis(amplitudes, 1, 2).reshape(2, n_tasks, -1)
        return Points(frequencies, height.ravel(), slope.reshape(frequencies.shape), amplitudes)

    def highest(self, draws: Array, n_points: int) -> Array:
        """Return the highest of some frequencies in each game, listed game after game."""
        angles = self.X @ draws.T  # (n_samples, n_draws)
        n_games, n_samples, n_tasks = self.measure.shape
        by_task = np.moveaxis(self.measure, 1, 2).reshape(-1, n_samples)
        sums = np.stack([by_task @ np.cos(angles), by_task @ np.sin(angles, out=angles)])
        sums = sums.reshape(2, n_games, n_tasks, -1)
        potential = self._potential(sums)  # (n_games, n_draws)
        penalty, _ = self._penalty(draws[None])
        order = np.argsort(penalty - np.log(potential), axis=1, kind="stable")
        return draws[order[:, :n_points].ravel()]

    def _sums(self, part: slice, frequencies: Array, sums: Array, gradient: Array) -> None:
        """Compute amplitudes and half the gradients of the potential of some games."""
        measure = self.measure[part]
        cosine, sine, factors = self.buffers[:, part]  # (n_games, n_samples, n_points) each
        np.matmul(self.X, np.swapaxes(frequencies, 1, 2), out=sine)  # the angles
        np.cos(sine, out=cosine)
        np.sin(sine, out=sine)
        by_task = np.swapaxes(measure, 1, 2)  # (n_games, n_tasks, n_samples)
        np.matmul(by_task, cosine, out=sums[0])  # (n_games, n_tasks, n_points)
        np.matmul(by_task, sine, out=sums[1])
        if measure.shape[2] == 1:  # a product with one column is faster without BLAS
            cosine *= sums[1]
            sine *= sums[0]
            cosine -= sine
            cosine *= measure
        else:  # the cosine and the sine of the best phase in the place of a task's own
            phases = Euclidean().phases(np.moveaxis(sums, 2, 1))[:, None]  # (n_games, 1, n_points)
            turns = np.cos(phases), np.sin(phases)
            aligned = sums[0] * turns[0] + sums[1] * turns[1]  # (n_games, n_tasks, n_points)
            cosine *= turns[1]
            sine *= turns[0]
            cosine -= sine
            cosine *= np.matmul(measure, aligned, out=factors)
        np.matmul(np.swapaxes(cosine, 1, 2), self.X, out=gradient)

    def _penalty(self, frequencies: Array) -> tuple[Array, Array]:
        """Return penalties and their slopes; see `Euclidean.penalty`."""
        if self.noise == "cauchy":
            weight = 2 * self.smoothing[:, None]
            sizes = np.abs(frequencies).sum(axis=2)
            return weight * sizes, weight[:, :, None] * np.sign(frequencies)
        weight = np.square(self.smoothing)[:, None]
        squares = np.einsum("gpi,gpi->gp", frequencies, frequencies)
        return weight * squares, (2 * weight)[:, :, None] * frequencies

    def _potential(self, amplitudes: Array) -> Array:
        """Return the potentials of aligned features, of shape (n_games, n_points)."""
        by_task = np.moveaxis(amplitudes, 2, 1)  # (2, n_tasks, n_games, n_points)
        return potential_of(by_task, "aligned") + self._floor[:, None]

    @cached_property
    def _floor(self) -> Array:
        """Potential per game below which there is only rounding error."""
        mass, precision = np.abs(self.measure).sum(axis=(1, 2)), np.finfo(self.X.dtype)
        return np.square(precision.eps * mass) + precision.tiny


def peaks_by_game(points: Points, n_games: int) -> tuple[Array, Array, Array]:
    """Return frequencies, phases and alignment of the points, with a first axis of games."""
    space = Euclidean()
    phases = space.phases(points.amplitudes)
    alignment = space.alignment(points.amplitudes, phases, "aligned")[:, 0]  # (n_points, n_tasks)

    def split(values: Array) -> Any:
        return values.reshape(n_games, -1, *values.shape[1:])

    return split(points.frequencies), split(phases), split(alignment)


def waves_by_game(X: Array, frequencies: Array, phases: Array) -> Array:
    """Return aligned features, of shape (n_games, n_rows, n_points)."""
    waves = X @ np.swapaxes(frequencies, 1, 2)
    waves -= phases[:, None, :]
    np.cos(waves, out=waves)
    waves *= math.sqrt(2)
    return waves


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
