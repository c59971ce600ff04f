"""Trial games: many short games on R^d, played at once to compare settings."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from notsorandom.data.rows import Array
from notsorandom.game.dual import DualProblem
from notsorandom.game.loop import shrinkage
from notsorandom.game.projection import project
from notsorandom.linear.batched import solve_batch
from notsorandom.search.ascent import Ascent, climb
from notsorandom.spaces.landscape import Points, potential_of

# Steps of each particle: a few less than a search takes.
TRIAL_STEPS = 6
# Relative precision of the linear models: a tenth changes the class of a few samples in a thousand.
TRIAL_GAP = 0.1
# Games are evaluated together as long as their waves fit the cache.
WAVES = 2**16


@dataclass(frozen=True)
class TrialLandscape:
    """The log potentials of several games, each with a measure of its own.

    Points are those of all games, game after game, with equally many of each.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Centred, in units of their scale.
    measure : ndarray of shape (n_games, n_samples, n_tasks)
    smoothing : ndarray of shape (n_games,)
    buffers : ndarray of shape (3, n_numbers)
        Memory for what is computed of one part of the games.
    """

    X: Array
    measure: Array
    smoothing: Array
    buffers: Array

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
        size = max(1, self.buffers.shape[1] // (n_samples * n_points))
        for start in range(0, n_games, size):
            part = slice(start, start + size)
            amplitudes[:, part], gradient[part] = self._sums(self.measure[part], by_game[part])
        amplitudes = np.moveaxis(amplitudes, 1, 2).reshape(2, n_tasks, -1)
        tiny = np.finfo(self.X.dtype).tiny
        potential = potential_of(amplitudes) + self._floor.repeat(n_points) + tiny
        weight = np.square(self.smoothing).repeat(n_points)
        height = np.log(potential) - weight * np.square(frequencies).sum(axis=1)
        slope = gradient.reshape(frequencies.shape) / potential[:, None]
        slope -= (2 * weight)[:, None] * frequencies
        return Points(frequencies, height, slope, amplitudes)

    def _sums(self, measure: Array, frequencies: Array) -> tuple[Array, Array]:
        """Return amplitudes and gradients of the potential of some games."""
        n_games, n_samples, n_tasks = measure.shape
        n_waves = n_games * n_samples * frequencies.shape[1]
        shape = (n_games, n_samples, frequencies.shape[1])
        cosine, sine, factors = (buffer[:n_waves].reshape(shape) for buffer in self.buffers)
        np.matmul(self.X, np.swapaxes(frequencies, 1, 2), out=sine)  # the angles
        np.cos(sine, out=cosine)
        np.sin(sine, out=sine)
        by_task = np.swapaxes(measure, 1, 2)  # (n_games, n_tasks, n_samples)
        sums = np.stack([by_task @ cosine, by_task @ sine])  # (2, n_games, n_tasks, n_points)
        if n_tasks == 1:  # a product with one column is faster without BLAS
            cosine *= sums[1]
            sine *= sums[0]
            cosine -= sine
            cosine *= measure
        else:
            cosine *= np.matmul(measure, sums[1], out=factors)
            sine *= np.matmul(measure, sums[0], out=factors)
            cosine -= sine
        return sums, 2 * (np.swapaxes(cosine, 1, 2) @ self.X)

    @cached_property
    def _floor(self) -> Array:
        """Potential per game below which there is only rounding error."""
        mass = np.abs(self.measure).sum(axis=(1, 2))
        return np.square(np.finfo(self.X.dtype).eps * mass)


@dataclass(frozen=True)
class TrialGames:
    """Short games on the same samples that differ in their rows and their smoothing.

    They have the default search with fewer steps, the default step size, and one aligned feature
    per frequency.

    Parameters
    ----------
    problem : DualProblem
        With dense samples in memory, centred and in units of their scale.
    masks : ndarray of shape (n_games, n_samples)
        The rows that each game is played on.
    smoothing : ndarray of shape (n_games,)
    n_frequencies : int
        Features of each game.
    """

    problem: DualProblem
    masks: Array
    smoothing: Array
    n_frequencies: int

    def errors(self, rng: np.random.Generator) -> Array:
        """Play, fit linear models, and return the error of each sample in each game.

        Of shape (n_games, n_samples); see :meth:`DualProblem.errors`.
        """
        features = self.play(rng)
        weights = None if self.problem.weights is None else self.problem.weights[:, 0]
        coef, intercept = solve_batch(
            features, self.problem.targets, self.masks, self.problem.loss, weights, tol=TRIAL_GAP
        )
        scores = features @ np.swapaxes(coef, 1, 2) + intercept[:, None, :]
        return np.stack([self.problem.errors(each) for each in scores])

    def play(self, rng: np.random.Generator) -> Array:
        """Return the features of all samples, of shape (n_games, n_samples, n_frequencies)."""
        X: Array = self.problem.rows.array
        n_games, search = len(self.masks), Ascent()
        used: Array = np.flatnonzero(self.masks.any(axis=0))
        inside, dual_player = X[used], DualPlayer(self.problem.take(used), self.masks[:, used])
        features = np.zeros((n_games, len(X), self.n_frequencies), dtype=X.dtype)
        strengths = np.zeros((n_games, self.n_frequencies))
        counts = np.zeros(n_games, dtype=int)
        buffers = np.empty((3, max(WAVES, len(inside) * search.n_particles)), dtype=X.dtype)
        # Where few peaks are distinct, more rounds would find nearly the same ones again.
        for _ in range(-(-self.n_frequencies // search.n_peaks)):
            games = np.flatnonzero(counts < self.n_frequencies)
            if not len(games):
                break
            smoothing = self.smoothing[games].astype(X.dtype)
            landscape = TrialLandscape(inside, dual_player.measure[games], smoothing, buffers)
            # The same starts for all games.
            starts = rng.standard_normal((search.n_particles, X.shape[1])).astype(X.dtype)
            points = landscape.evaluate(np.tile(starts, (len(games), 1)))
            steps = np.ones(len(points), dtype=X.dtype)
            points, _ = climb(landscape, points, steps, TRIAL_STEPS)
            frequencies, phases, alignment = peaks_by_game(points, len(games))
            waves = np.sqrt(X.dtype.type(2)) * np.cos(
                X @ np.swapaxes(frequencies, 1, 2) - phases[:, None, :]
            )  # (n_games, n_samples, n_points)
            heights = points.height.reshape(len(games), -1)
            weights = dual_player.weights[games]
            chosen, valid = distinct(
                waves[:, used], heights, weights, search.similarity, search.n_peaks
            )
            valid &= np.cumsum(valid, axis=1) <= (self.n_frequencies - counts[games])[:, None]
            waves = np.take_along_axis(waves, chosen[:, None, :], axis=2) * valid[:, None, :]
            alignment = np.take_along_axis(alignment, chosen[:, :, None], axis=1)
            alignment = alignment * valid[:, :, None]  # (n_games, n_peaks, n_tasks)
            for row, game in enumerate(games):
                n_new = int(valid[row].sum())
                new = slice(counts[game], counts[game] + n_new)
                features[game][:, new] = waves[row][:, valid[row]]
                strengths[game, new] = np.sqrt(np.square(alignment[row][valid[row]]).sum(axis=1))
                counts[game] += n_new
            dual_player.step(games, waves[:, used] @ alignment, valid.sum(axis=1))
        totals = np.maximum(strengths.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        features *= np.sqrt(strengths / totals)[:, None, :].astype(X.dtype)
        return features


class DualPlayer:
    """The dual players of all games; held-out rows have dual variables of zero."""

    def __init__(self, problem: DualProblem, masks: Array) -> None:
        self.problem = problem
        n_games, n_rows = masks.shape
        counts = problem.counts.astype(problem.dtype)
        self.weights = masks * counts  # (n_games, n_rows)
        low, high = problem.box
        zero = problem.dtype.type(0)
        self._low, self._high = (
            by_row(np.where(masks[:, :, None], side, zero)) for side in (low, high)
        )
        start = problem.dtype.type(problem.loss.start) * problem.targets
        self._sample_weights = problem.weights
        self.dual = np.zeros((n_games, n_rows, problem.n_tasks), dtype=problem.dtype)
        self._project(np.arange(n_games), np.tile(start, (n_games, 1, 1)))

    @property
    def measure(self) -> Array:
        """Dual variables times sample weights, of shape (n_games, n_rows, n_tasks)."""
        return self.dual if self._sample_weights is None else self.dual * self._sample_weights

    def step(self, games: Array, response: Array, n_peaks: Array) -> None:
        """Take a projected gradient step in some of the games; see `GameLoop.play_round`.

        `response` is the sum of the peaks' kernels times the measure, which counts for as many
        plays as there are peaks.
        """
        loss, dual = self.problem.loss, self.dual[games]
        totals = self.weights[games].sum(axis=1)
        sizes = n_peaks * shrinkage(self.problem.n_tasks) / totals
        if loss.curvature:
            sizes = np.minimum(sizes, 1 / loss.curvature)
        means = response / np.maximum(n_peaks, 1)[:, None, None]
        slope = loss.slope(self.problem.targets, dual, means.astype(dual.dtype))
        self._project(games, dual + sizes[:, None, None].astype(dual.dtype) * slope)

    def _project(self, games: Array, dual: Array) -> None:
        n_tasks = self.problem.n_tasks
        columns = (games[:, None] * n_tasks + np.arange(n_tasks)).ravel()
        low, high = self._low[:, columns], self._high[:, columns]
        projected = project(by_row(dual), low, high, self._sample_weights)
        self.dual[games] = np.moveaxis(projected.reshape(-1, len(games), n_tasks), 1, 0)


def by_row(columns: Array) -> Array:
    """Return an array of shape (n_games, n_rows, n_tasks) with one row per sample."""
    n_games, n_rows, n_tasks = columns.shape
    return np.moveaxis(columns, 0, 1).reshape(n_rows, n_games * n_tasks)


def peaks_by_game(points: Points, n_games: int) -> tuple[Array, Array, Array]:
    """Return frequencies, phases and alignment of the points, with a first axis of games."""
    cosine, sine = points.amplitudes  # (n_tasks, n_points)
    twice = np.arctan2(2 * (cosine * sine).sum(axis=0), (cosine**2 - sine**2).sum(axis=0))
    phases = twice / 2
    alignment = math.sqrt(2) * (cosine * np.cos(phases) + sine * np.sin(phases))

    def split(values: Array) -> Any:
        return values.reshape(n_games, -1, *values.shape[1:])

    return split(points.frequencies), split(phases), split(alignment.T)


def distinct(
    features: Array, heights: Array, weights: Array, similarity: float, n_peaks: int
) -> tuple[Array, Array]:
    """Return the highest distinct points of each game; see :meth:`Landscape.distinct`.

    Returns indices and a mask, of shape (n_games, n_peaks): false where there are fewer.
    """
    weights = weights[:, :, None]  # (n_games, n_rows, 1)
    means = (features * weights).sum(axis=1, keepdims=True) / weights.sum(axis=1, keepdims=True)
    centred = (features - means) * np.sqrt(weights)
    norms = np.sqrt(np.square(centred).sum(axis=1, keepdims=True))
    centred /= np.maximum(norms, np.finfo(features.dtype).tiny)
    similar = np.abs(np.swapaxes(centred, 1, 2) @ centred) > similarity
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
