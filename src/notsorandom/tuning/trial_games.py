"""Trial games: many short games, to compare settings."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from notsorandom._utils.threads import ONE_THREAD
from notsorandom.data.rows import Array
from notsorandom.game.loop import shrinkage
from notsorandom.game.problem import Problem
from notsorandom.game.projection import nearest_lines
from notsorandom.game.solvers import GradientSolver
from notsorandom.search.ascent import Ascent, climb
from notsorandom.spaces import Euclidean
from notsorandom.spaces.base import ContinuousSpace, FiniteSpace, ResolvedSpace, Space
from notsorandom.spaces.landscape import Points
from notsorandom.spaces.zonal_sphere import ZonalSphere
from notsorandom.tuning.choice import Candidate, FitConfig, default_search
from notsorandom.tuning.trial_landscape import TrialLandscape, WaveLandscape, distinct
from notsorandom.tuning.zonal_landscape import ZonalLandscape

# Most steps of each particle: a few less than a search takes.
TRIAL_STEPS = 6
# Most rows that a particle climbs on; where it ends is evaluated on all of them.
CLIMB_ROWS = 768
# Rows on which two features are compared: a correlation is then known to about 0.06.
CORRELATION_ROWS = 256


class Contest(ABC):
    """One game for each candidate and split of the samples.

    Parameters
    ----------
    problem : Problem
        With dense samples in memory.
    masks : ndarray of shape (n_splits, n_samples)
        Rows that the games of each split are played on.
    candidates : list of Candidate
    optional : ndarray of shape (n_features,), optional
        Mask of the columns that some candidates leave out.
    linear_scores : ndarray of shape (n_splits, n_samples, n_tasks), optional
        Scores that the games of candidates with a linear part are added to; see
        :class:`notsorandom.game.Problem`.
    """

    def __init__(
        self,
        problem: Problem,
        masks: Array,
        candidates: list[Candidate],
        optional: Array | None = None,
        linear_scores: Array | None = None,
    ) -> None:
        self.problem, self.masks, self.candidates = problem, masks, candidates
        self.optional, self.linear_scores = optional, linear_scores

    def n_columns(self, candidate: Candidate) -> int:
        """Return the number of columns that the games of a candidate see."""
        n_optional = 0 if self.optional is None else int(self.optional.sum())
        return self.problem.rows.n_features - n_optional * (not candidate.uses_optional)

    @property
    @abstractmethod
    def features(self) -> Array:
        """Features of all samples, (n_splits, n_candidates, n_samples, n_frequencies)."""

    @abstractmethod
    def play(self, n_frequencies: int) -> None:
        """Continue all games until they have this many frequencies."""

    @abstractmethod
    def keep(self, numbers: Array) -> None:
        """Continue only with some of the candidates."""

    @abstractmethod
    def with_linear_part(self, linear_scores: Array) -> Contest:
        """Return the contest of the only candidate with a linear part, as far as it is played."""


def start_contest(
    config: FitConfig,
    problem: Problem,
    masks: Array,
    candidates: list[Candidate],
    optional: Array | None,
    rng: np.random.Generator,
) -> Contest:
    """Return the contest that suits the space; `optional` is the mask of the view."""
    if landscape_of(config.space) is None:
        return SequentialContest(problem, masks, candidates, config, rng)
    assert isinstance(config.space, ContinuousSpace)
    return BatchedContest(problem, masks, candidates, config.space, optional, rng)


def landscape_of(space: Space) -> type[TrialLandscape[Any]] | None:
    """Return the landscape of games that are played at once; None if a space has none.

    A derived space may have other features.
    """
    if isinstance(space, Euclidean):
        return WaveLandscape if space.has_batched_trials else None
    return ZonalLandscape if type(space) is ZonalSphere else None


class BatchedContest(Contest):
    """All games on R^d or with zonal features, of the same spectrum and columns, played at once.

    Candidates of a group follow each other.
    """

    def __init__(
        self,
        problem: Problem,
        masks: Array,
        candidates: list[Candidate],
        space: ContinuousSpace,
        optional: Array | None,
        rng: np.random.Generator,
        linear_scores: Array | None = None,
    ) -> None:
        super().__init__(problem, masks, candidates, optional, linear_scores)
        self.space, self._rng = space, rng
        self._games = {
            group: self._start(group, rng)
            for group in dict.fromkeys(each.group for each in candidates)
        }

    def with_linear_part(self, linear_scores: Array) -> Contest:
        """Return the contest of the only candidate with a linear part, as far as it is played."""
        (candidate,), (games,) = self.candidates, self._games.values()
        (rng,) = self._rng.spawn(1)  # the other games go on as if alone
        extended = [candidate._replace(linear=True)]
        contest = BatchedContest(
            self.problem, self.masks, extended, self.space, self.optional, rng, linear_scores
        )
        contest.play(games.n_frequencies)
        return contest

    def _start(self, group: tuple[str | None, bool, bool], rng: np.random.Generator) -> TrialGames:
        problem, space, (spectrum, uses_optional, linear) = self.problem, self.space, group
        if spectrum is not None and isinstance(space, Euclidean):
            space = space.with_noise(spectrum)
        smoothing = np.array([each.smoothing for each in self.candidates if each.group == group])
        if self.optional is not None and not uses_optional:
            columns = np.ascontiguousarray(problem.rows.array[:, ~self.optional])
            problem = replace(problem, rows=replace(problem.rows, array=columns))
        return TrialGames(
            problem,
            space,
            masks=np.repeat(self.masks, len(smoothing), axis=0),
            smoothing=np.tile(smoothing, len(self.masks)),
            rng=rng,
            spectrum=spectrum or "gaussian",
            linear_scores=(
                np.repeat(self.linear_scores, len(smoothing), axis=0)
                if linear and self.linear_scores is not None
                else None
            ),
        )

    @property
    def features(self) -> Array:
        """Features of all samples, (n_splits, n_candidates, n_samples, n_frequencies)."""
        n_splits = len(self.masks)
        parts = [games.features for games in self._games.values()]
        return np.concatenate(
            [part.reshape(n_splits, len(part) // n_splits, *part.shape[1:]) for part in parts],
            axis=1,
        )

    def play(self, n_frequencies: int) -> None:
        """Continue all games until they have this many frequencies."""
        for games in self._games.values():
            games.play(n_frequencies - games.n_frequencies)

    def keep(self, numbers: Array) -> None:
        """Continue only with some of the candidates."""
        for group in list(self._games):
            members = [k for k, each in enumerate(self.candidates) if each.group == group]
            chosen = np.isin(members, numbers)
            if chosen.any():
                self._games[group].keep(np.flatnonzero(np.tile(chosen, len(self.masks))))
            else:
                del self._games[group]
        self.candidates = [self.candidates[number] for number in numbers]


class SequentialContest(Contest):
    """Games on other spaces, one after the other, each of them anew in every stage."""

    def __init__(
        self,
        problem: Problem,
        masks: Array,
        candidates: list[Candidate],
        config: FitConfig,
        rng: np.random.Generator,
    ) -> None:
        super().__init__(problem, masks, candidates)
        self.config, self.seed = config, int(rng.integers(2**63))
        self._features: list[list[Array]] = []  # by split and candidate

    @property
    def features(self) -> Array:
        """Features of all samples, (n_splits, n_candidates, n_samples, n_features)."""
        widest = max(part.shape[1] for row in self._features for part in row)
        # Columns of zeros change no model.
        padded = [
            [np.pad(part, ((0, 0), (0, widest - part.shape[1]))) for part in row]
            for row in self._features
        ]
        return np.stack([np.stack(row) for row in padded])

    def play(self, n_frequencies: int) -> None:
        """Play all games, of as many rounds as frequencies."""
        self.n_rounds = n_frequencies
        self._features = self._play(self.candidates)

    def with_linear_part(self, linear_scores: Array) -> Contest:
        """Return the contest of the only candidate with a linear part, as far as it is played."""
        contest = copy(self)
        contest.linear_scores = linear_scores
        contest.candidates = [each._replace(linear=True) for each in self.candidates]
        contest.play(self.n_rounds)
        return contest

    def _play(self, candidates: list[Candidate]) -> list[list[Array]]:
        """Play the games of some candidates, and return their features by split and candidate."""
        space, phase = self.config.space, self.config.phase
        solver, n_frequencies = GradientSolver(n_rounds=self.n_rounds), self.n_rounds
        assert isinstance(space, ResolvedSpace)  # of a view
        if isinstance(space, FiniteSpace):
            n_frequencies = sys.maxsize  # one can be found again: rounds are limited instead

        def features(split: int, candidate: Candidate) -> Array:
            problem = self.problem
            if candidate.linear and self.linear_scores is not None:
                problem = replace(problem, linear_scores=self.linear_scores[split])
            # The same seed for all candidates: they differ only in the smoothing.
            rng = np.random.default_rng(self.seed)
            result = solver.solve(
                problem.take(np.flatnonzero(self.masks[split])),
                space=space,
                search=default_search(space),
                n_frequencies=n_frequencies,
                phase=phase,
                smoothing=candidate.smoothing,
                rng=rng,
            )
            return solver.kernel(result).features_of(self.problem.rows)

        return [[features(split, each) for each in candidates] for split in range(len(self.masks))]

    def keep(self, numbers: Array) -> None:
        """Continue only with some of the candidates."""
        self.candidates = [self.candidates[number] for number in numbers]
        self._features = [[row[number] for number in numbers] for row in self._features]


class TrialGames:
    """Short games on the same samples that differ in their rows and their smoothing.

    They have the default search with fewer steps, the default step size, and one aligned feature
    per frequency.

    Parameters
    ----------
    problem : Problem
        With samples in memory, for R^d dense, centred and in units of their scale.
    space : ContinuousSpace
        That of the samples, with the noise of the smoothing.
    masks : ndarray of shape (n_games, n_samples)
        The rows that each game is played on.
    smoothing : ndarray of shape (n_games,)
    rng : numpy.random.Generator
    spectrum : {"gaussian", "cauchy"}
        Of the search; see :class:`notsorandom.Ascent`.
    linear_scores : ndarray of shape (n_games, n_samples, n_tasks), optional
        Scores that the scores of each game are added to.
    """

    def __init__(
        self,
        problem: Problem,
        space: ContinuousSpace,
        masks: Array,
        smoothing: Array,
        rng: np.random.Generator,
        spectrum: str = "gaussian",
        linear_scores: Array | None = None,
    ) -> None:
        self.rows, self.X, self.dtype = problem.rows, problem.rows.array, problem.rows.dtype
        self.space, self.landscape_type = space, landscape_of(space)
        self.rng, self.search = rng, Ascent(spectrum).resolved()
        self.smoothing = smoothing.astype(self.dtype)
        self.used: Array = np.flatnonzero(masks.any(axis=0))
        self.weights = masks[:, self.used] * problem.counts[self.used].astype(self.dtype)
        self.probe = slice(None, None, -(-len(self.used) // CORRELATION_ROWS))  # of those used
        if linear_scores is not None:
            linear_scores = linear_scores[:, self.used]
        self.dual_player = DualPlayer(problem.take(self.used), masks[:, self.used], linear_scores)
        self.values = np.empty((*masks.shape, 0), dtype=self.dtype)  # features of all samples
        self.strengths = np.empty((len(masks), 0))

    @property
    def n_frequencies(self) -> int:
        """Number of features of each game so far."""
        return int(self.values.shape[2])

    @property
    def features(self) -> Array:
        """The features of all samples, of shape (n_games, n_samples, n_frequencies)."""
        totals = np.maximum(self.strengths.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        return self.values * np.sqrt(self.strengths / totals)[:, None, :].astype(self.dtype)

    def keep(self, games: Array) -> None:
        """Continue only with some of the games."""
        self.smoothing, self.weights = self.smoothing[games], self.weights[games]
        self.values, self.strengths = self.values[games], self.strengths[games]
        self.dual_player.keep(games)

    def play(self, n_frequencies: int) -> None:
        """Add features.

        A round adds as many as it has distinct peaks. Where they are few, more rounds would find
        nearly the same ones again, so the columns that are left are zero.
        """
        search, n_games = self.search, len(self.smoothing)
        X, inside = self.X, self.X[self.used]
        values, strengths = [self.values], [self.strengths]
        assert self.landscape_type is not None
        for start in range(0, n_frequencies, search.n_peaks):
            landscape = self.landscape_type(
                self.space,
                inside,
                self.dual_player.measure,
                self.weights,
                self.smoothing,
                self.rows.pool or ONE_THREAD,
            )
            points = self._climb(landscape)
            frequencies, phases, alignment = landscape.peaks(points)
            chosen, valid = distinct(
                landscape.features(inside[self.probe], frequencies, phases),
                points.height.reshape(n_games, -1),
                self.weights[:, self.probe],
                search.similarity,
                min(search.n_peaks, n_frequencies - start),
            )
            frequencies = np.take_along_axis(frequencies, chosen[:, :, None], axis=1)
            phases = np.take_along_axis(phases, chosen, axis=1)
            alignment = np.take_along_axis(alignment, chosen[:, :, None], axis=1)
            features = landscape.features(X, frequencies, phases)  # (n_games, n_samples, n_peaks)
            used = features[:, self.used]
            scales = landscape.scales(used)  # (n_games, n_peaks)
            alignment *= (scales * valid)[:, :, None]  # (n_games, n_peaks, n_tasks)
            values.append(features * scales[:, None, :])
            strengths.append(np.sqrt(np.square(alignment).sum(axis=2)))
            response = used @ (alignment * scales[:, :, None])
            self.dual_player.step(response, valid.sum(axis=1))
        self.values = np.concatenate(values, axis=2)
        self.strengths = np.concatenate(strengths, axis=1)

    def _climb(self, landscape: TrialLandscape[Any]) -> Points:
        """Return where the particles of a round end."""
        hills, n_rows = landscape, len(self.used)
        if n_rows > CLIMB_ROWS:
            hills = landscape.take(self.rng.choice(n_rows, CLIMB_ROWS, replace=False))
        points = hills.evaluate(self._starts(hills))
        steps = np.full(len(points), self.space.first_step(), dtype=self.dtype)
        points, _ = climb(hills, points, steps, min(TRIAL_STEPS, self.search.n_steps))
        return points if hills is landscape else landscape.evaluate(points.frequencies)

    def _starts(self, landscape: TrialLandscape[Any]) -> Array:
        """Draw the starts of a round, from the same frequencies for all games."""
        search, space = self.search, self.space
        if search.spectrum == "cauchy":
            assert isinstance(landscape, WaveLandscape)  # other spaces have no such spectrum
            draws = space.draw_cauchy(search.n_draws, self.rows, self.rng)
            return landscape.highest(draws, search.n_particles)
        draws = space.draw(search.n_particles, self.rows, self.rng)
        return np.tile(draws, (len(self.smoothing), 1))


class DualPlayer:
    """The dual players of all games; held-out rows have dual variables of zero."""

    def __init__(self, problem: Problem, masks: Array, linear_scores: Array | None = None) -> None:
        self.problem, self.masks, self.linear_scores = problem, masks, linear_scores
        self._weights = problem.counts.astype(problem.dtype)
        self._set_box()
        if linear_scores is None:
            start = problem.dtype.type(problem.loss.start_multiple) * problem.targets
            start = np.tile(start, (len(masks), 1, 1))
        else:
            start = problem.loss.dual_at(problem.targets, linear_scores)
        self.dual = self._project(start)

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
        if self.linear_scores is not None:
            self.linear_scores = self.linear_scores[games]
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
        if self.linear_scores is not None:
            means += self.linear_scores
        slope = problem.loss.slope(problem.targets, dual, means.astype(dual.dtype))
        self.dual = self._project(dual + sizes[:, None, None].astype(dual.dtype) * slope)

    def _project(self, dual: Array) -> Array:
        """Project dual variables; the variables of a task are next to each other in memory."""
        by_task = np.swapaxes(dual, 1, 2)  # (n_games, n_tasks, n_rows)
        lines = np.ascontiguousarray(by_task.reshape(-1, by_task.shape[2]))
        projected = nearest_lines(lines, self._low, self._high, self._weights)
        return np.swapaxes(projected.reshape(by_task.shape), 1, 2)
