"""Trial games of several candidates, of which the worse can be dropped."""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from dataclasses import replace

import numpy as np

from notsorandom.data.rows import Array
from notsorandom.estimators.config import FitConfig, GradientSolver
from notsorandom.estimators.training import learn_kernel, play_game
from notsorandom.estimators.trials import TrialGames
from notsorandom.game.dual import DualProblem
from notsorandom.spaces import Euclidean
from notsorandom.spaces.base import FiniteSpace

Candidate = tuple[str | None, float]  # spectrum and smoothing


class Contest(ABC):
    """One game for each candidate and split of the samples.

    Parameters
    ----------
    problem : DualProblem
        With dense samples in memory.
    masks : ndarray of shape (n_splits, n_samples)
        Rows that the games of each split are played on.
    candidates : list of Candidate
    """

    def __init__(self, problem: DualProblem, masks: Array, candidates: list[Candidate]) -> None:
        self.problem, self.masks, self.candidates = problem, masks, candidates

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


def start_contest(
    config: FitConfig,
    problem: DualProblem,
    masks: Array,
    candidates: list[Candidate],
    rng: np.random.Generator,
) -> Contest:
    """Return the contest that suits the space."""
    # Games that are played at once have no limit of the frequencies.
    if isinstance(config.space, Euclidean) and math.isinf(config.space.max_norm):
        return EuclideanContest(problem, masks, candidates, rng)
    return SequentialContest(problem, masks, candidates, config, rng)


class EuclideanContest(Contest):
    """All games on R^d with the same spectrum are played at once."""

    def __init__(
        self,
        problem: DualProblem,
        masks: Array,
        candidates: list[Candidate],
        rng: np.random.Generator,
    ) -> None:
        super().__init__(problem, masks, candidates)
        self._games = {
            spectrum: self._start(spectrum, rng)
            for spectrum in dict.fromkeys(spectrum for spectrum, _ in candidates)
        }

    def _start(self, spectrum: str | None, rng: np.random.Generator) -> TrialGames:
        smoothing = np.array([value for name, value in self.candidates if name == spectrum])
        return TrialGames(
            self.problem,
            masks=np.repeat(self.masks, len(smoothing), axis=0),
            smoothing=np.tile(smoothing, len(self.masks)),
            rng=rng,
            spectrum=spectrum or "gaussian",
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
        spectra = np.array([str(spectrum) for spectrum, _ in self.candidates])
        kept = np.isin(np.arange(len(spectra)), numbers)
        for spectrum in list(self._games):
            chosen = kept[spectra == str(spectrum)]
            if chosen.any():
                self._games[spectrum].keep(np.flatnonzero(np.tile(chosen, len(self.masks))))
            else:
                del self._games[spectrum]
        self.candidates = [self.candidates[number] for number in numbers]


class SequentialContest(Contest):
    """Games on spaces other than R^d, one after the other, and all of them to the end."""

    def __init__(
        self,
        problem: DualProblem,
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
        n_components = n_frequencies * self.config.space.n_columns(self.config.phase)
        if isinstance(self.config.space, FiniteSpace):
            n_components = sys.maxsize  # a frequency can be found again: rounds are limited instead
        solver = GradientSolver(n_rounds=n_frequencies)
        config = replace(self.config, solver=solver, search=None, n_components=n_components)

        def features(mask: Array, smoothing: float) -> Array:
            part = self.problem.take(np.flatnonzero(mask))
            # The same seed for all candidates: they differ only in the smoothing.
            result = play_game(config, part, smoothing, np.random.default_rng(self.seed))
            return learn_kernel(config, part, result).features_of(self.problem.rows)

        self._features = [
            [features(mask, smoothing) for _, smoothing in self.candidates] for mask in self.masks
        ]

    def keep(self, numbers: Array) -> None:
        """Continue only with some of the candidates."""
        self.candidates = [self.candidates[number] for number in numbers]
        self._features = [[row[number] for number in numbers] for row in self._features]
