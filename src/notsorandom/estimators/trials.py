"""Trial games: many short games on R^d, played at once to compare settings."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from notsorandom._utils.threads import ONE_THREAD, ThreadPool
from notsorandom.data.rows import Array
from notsorandom.game.dual import DualProblem
from notsorandom.game.loop import shrinkage
from notsorandom.game.projection import nearest_lines
from notsorandom.search.ascent import Ascent, climb
from notsorandom.spaces import Euclidean
from notsorandom.spaces.euclidean import cauchy_frequencies
from notsorandom.spaces.landscape import Points

# Most steps of each particle: a few less than a search takes.
TRIAL_STEPS = 6
# Most rows that a particle climbs on; where it ends is evaluated on all of them.
CLIMB_ROWS = 768
# Most waves that are computed at a time: they fit the cache.
WAVES = 2**16
# Rows on which two features are compared: a correlation is then known to about 0.06.
PROBE_ROWS = 256


def ignore(_: Any) -> None:
    """Collect nothing."""


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
    buffers : ndarray of shape (3, n_games, n_samples, n_points)
        Memory for the waves.
    pool : ThreadPool
        Threads that share the games.
    """

    X: Array
    measure: Array
    smoothing: Array
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
        potential = np.einsum("cgtp,cgtp->gp", amplitudes, amplitudes)
        potential += self._floor[:, None]
        weight = np.square(self.smoothing)[:, None]
        height = np.log(potential) - weight * np.einsum("gpi,gpi->gp", by_game, by_game)
        slope = gradient
        slope *= (2 / potential)[:, :, None]
        slope -= (2 * weight)[:, :, None] * by_game
        amplitudes = np.moveaxis(amplitudes, 1, 2).reshape(2, n_tasks, -1)
        return Points(frequencies, height.ravel(), slope.reshape(frequencies.shape), amplitudes)

    def highest(self, draws: Array, n_points: int) -> Array:
        """Return the highest of some frequencies in each game: those of all games in turn."""
        angles = self.X @ draws.T  # (n_samples, n_draws)
        n_games, n_samples, n_tasks = self.measure.shape
        by_task = np.moveaxis(self.measure, 1, 2).reshape(-1, n_samples)
        sums = np.stack([by_task @ np.cos(angles), by_task @ np.sin(angles, out=angles)])
        sums = sums.reshape(2, n_games, n_tasks, -1)
        potential = np.square(sums).sum(axis=(0, 2)) + self._floor[:, None]  # (n_games, n_draws)
        penalty = np.square(self.smoothing)[:, None] * np.square(draws).sum(axis=1)
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
        else:
            cosine *= np.matmul(measure, sums[1], out=factors)
            sine *= np.matmul(measure, sums[0], out=factors)
            cosine -= sine
        np.matmul(np.swapaxes(cosine, 1, 2), self.X, out=gradient)

    @cached_property
    def _floor(self) -> Array:
        """Potential per game below which there is only rounding error."""
        mass, precision = np.abs(self.measure).sum(axis=(1, 2)), np.finfo(self.X.dtype)
        return np.square(precision.eps * mass) + precision.tiny


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
    rng : numpy.random.Generator
    spectrum : {"gaussian", "cauchy"}
        Of the search; see :class:`notsorandom.Ascent`.
    """

    def __init__(
        self,
        problem: DualProblem,
        masks: Array,
        smoothing: Array,
        rng: np.random.Generator,
        spectrum: str = "gaussian",
    ) -> None:
        X: Array = problem.rows.array
        self.X, self.rng, self.search = X, rng, Ascent(spectrum).resolved()
        self.smoothing = smoothing.astype(X.dtype)
        self.pool = problem.rows.pool or ONE_THREAD
        self.used: Array = np.flatnonzero(masks.any(axis=0))
        self.probe = self.used[:: -(-len(self.used) // PROBE_ROWS)]
        self.probe_weights = masks[:, self.probe] * problem.counts[self.probe].astype(X.dtype)
        self.dual_player = DualPlayer(problem.take(self.used), masks[:, self.used])
        self.waves = np.empty((len(masks), len(X), 0), dtype=X.dtype)  # of all samples
        self.strengths = np.empty((len(masks), 0))

    @property
    def n_frequencies(self) -> int:
        """Number of features of each game so far."""
        return int(self.waves.shape[2])

    @property
    def features(self) -> Array:
        """The features of all samples, of shape (n_games, n_samples, n_frequencies)."""
        totals = np.maximum(self.strengths.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        return self.waves * np.sqrt(self.strengths / totals)[:, None, :].astype(self.X.dtype)

    def keep(self, games: Array) -> None:
        """Continue only with some of the games."""
        self.smoothing, self.probe_weights = self.smoothing[games], self.probe_weights[games]
        self.waves, self.strengths = self.waves[games], self.strengths[games]
        self.dual_player.keep(games)

    def play(self, n_frequencies: int) -> None:
        """Add features.

        A round adds as many as it has distinct peaks. Where they are few, more rounds would find
        nearly the same ones again, so the columns that are left are zero.
        """
        X, search, n_games = self.X, self.search, len(self.smoothing)
        inside = X[self.used]
        shape = (3, n_games, len(inside), search.n_particles)
        buffers = np.empty(shape, dtype=X.dtype)
        waves, strengths = [self.waves], [self.strengths]
        for start in range(0, n_frequencies, search.n_peaks):
            measure = self.dual_player.measure
            landscape = TrialLandscape(inside, measure, self.smoothing, buffers, self.pool)
            points = self._climb(landscape)
            frequencies, phases, alignment = peaks_by_game(points, n_games)
            chosen, valid = distinct(
                waves_by_game(X[self.probe], frequencies, phases),
                points.height.reshape(n_games, -1),
                self.probe_weights,
                search.similarity,
                min(search.n_peaks, n_frequencies - start),
            )
            frequencies = np.take_along_axis(frequencies, chosen[:, :, None], axis=1)
            phases = np.take_along_axis(phases, chosen, axis=1)
            alignment = np.take_along_axis(alignment, chosen[:, :, None], axis=1)
            alignment *= valid[:, :, None]  # (n_games, n_peaks, n_tasks)
            waves.append(waves_by_game(X, frequencies, phases))  # (n_games, n_samples, n_peaks)
            strengths.append(np.sqrt(np.square(alignment).sum(axis=2)))
            response = waves[-1][:, self.used] @ alignment
            self.dual_player.step(response, valid.sum(axis=1))
        self.waves = np.concatenate(waves, axis=2)
        self.strengths = np.concatenate(strengths, axis=1)

    def _climb(self, landscape: TrialLandscape) -> Points:
        """Return where the particles of a round end."""
        hills, n_rows = landscape, len(landscape.X)
        if n_rows > CLIMB_ROWS:
            hills = landscape.take(self.rng.choice(n_rows, CLIMB_ROWS, replace=False))
        points = hills.evaluate(self._starts(hills))
        steps = np.ones(len(points), dtype=self.X.dtype)
        points, _ = climb(hills, points, steps, min(TRIAL_STEPS, self.search.n_steps))
        return points if hills is landscape else landscape.evaluate(points.frequencies)

    def _starts(self, landscape: TrialLandscape) -> Array:
        """Draw the starts of a round, from the same frequencies for all games."""
        search, n_columns, dtype = self.search, self.X.shape[1], self.X.dtype
        if search.spectrum == "cauchy":
            draws = cauchy_frequencies(search.n_draws, n_columns, self.rng).astype(dtype)
            return landscape.highest(draws, search.n_particles)
        draws = self.rng.standard_normal((search.n_particles, n_columns)).astype(dtype)
        return np.tile(draws, (len(self.smoothing), 1))


class DualPlayer:
    """The dual players of all games; held-out rows have dual variables of zero."""

    def __init__(self, problem: DualProblem, masks: Array) -> None:
        self.problem, self.masks = problem, masks
        self._weights = problem.counts.astype(problem.dtype)
        self._set_box()
        start = problem.dtype.type(problem.loss.start) * problem.targets
        self.dual = self._project(np.tile(start, (len(masks), 1, 1)))

    def _set_box(self) -> None:
        self.total_weights = self.masks @ self.problem.counts  # (n_games,)
        zero = self.problem.dtype.type(0)
        self._low, self._high = (
            np.where(self.masks[:, None, :], side.T, zero).reshape(-1, len(side))
            for side in self.problem.box
        )

    def keep(self, games: Array) -> None:
        """Continue only with some of the games."""
        self.masks, self.dual = self.masks[games], self.dual[games]
        self._set_box()

    @property
    def measure(self) -> Array:
        """Dual variables times sample weights, of shape (n_games, n_rows, n_tasks)."""
        weights = self.problem.weights
        return self.dual if weights is None else self.dual * weights

    def step(self, response: Array, n_peaks: Array) -> None:
        """Take a projected gradient step in every game; see `GameLoop.play_round`.

        `response` is the sum of the peaks' kernels times the measure, which counts for as many
        plays as there are peaks.
        """
        problem, dual = self.problem, self.dual
        sizes = n_peaks * shrinkage(problem.n_tasks) / self.total_weights
        if problem.loss.curvature:
            sizes = np.minimum(sizes, 1 / problem.loss.curvature)
        means = response / n_peaks[:, None, None]
        slope = problem.loss.slope(problem.targets, dual, means.astype(dual.dtype))
        self.dual = self._project(dual + sizes[:, None, None].astype(dual.dtype) * slope)

    def _project(self, dual: Array) -> Array:
        """Project dual variables; in memory, those of a task follow each other."""
        by_task = np.swapaxes(dual, 1, 2)  # (n_games, n_tasks, n_rows)
        lines = np.ascontiguousarray(by_task.reshape(-1, by_task.shape[2]))
        projected = nearest_lines(lines, self._low, self._high, self._weights)
        return np.swapaxes(projected.reshape(by_task.shape), 1, 2)


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
