"""The number of features: chosen by trials, or on validation samples while the game is played."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from notsorandom.data.rows import Array
from notsorandom.game.loop import GameLoop, Observer
from notsorandom.game.problem import Problem
from notsorandom.game.state import GameResult
from notsorandom.kernel import LearnedKernel, linear_scores
from notsorandom.linear.newton import solve_tasks
from notsorandom.spaces.base import ResolvedSpace
from notsorandom.tuning.choice import Choice, FitConfig
from notsorandom.tuning.held_out import held_out_losses, mean_gain, row_counts
from notsorandom.tuning.tune import ALL_FREQUENCIES, TrialLosses, Trials, first_features

# Trials: numbers of frequencies that are compared. The least is taken whose loss exceeds the
# smallest one by no more than a share of its standard error, or of itself.
TRIAL_SIZES, SIZE_TOLERANCE = (4, 8, 12, 16, 24, 32, 48, 64), (0.5, 0.005)
# Early stopping: features at the first evaluation. The next follows after FIRST_SIZE more, or after
# a share of GROWTH more if that is larger: models of nearly the same size differ little.
FIRST_SIZE = 10
GROWTH = 0.2
# Relative duality gap of the models that are evaluated.
EVALUATION_GAP = 1e-2
# More features must reduce the validation loss by this many standard errors, and by this share of
# it, to be worth their cost.
MIN_ERRORS_GAINED, MIN_SHARE_GAINED = 0.5, 5e-3
# Most training rows, and most validation rows, of an evaluation: random ones, so that a very rare
# class may be missing there.
EVALUATION_ROWS = 8192


def choose_size(choice: Choice, trials: Trials, features: Array, config: FitConfig) -> Choice:
    """Return a choice with the least number of features that is about as good as the best one."""
    curve: list[tuple[int, TrialLosses]] = []
    n_columns = config.space.n_columns(config.phase)
    growth = ALL_FREQUENCIES / trials.reduced(ALL_FREQUENCIES)  # the fit has more rows
    for n_frequencies in (*TRIAL_SIZES, features.shape[-1]):
        if n_frequencies > features.shape[-1]:
            continue
        part = first_features(features, n_frequencies)
        n_found = np.any(part != 0, axis=2).sum(axis=-1).mean()  # some columns are zero
        size = n_columns * max(1, math.ceil(growth * float(n_found) / n_columns))
        losses = trials.evaluate(part, (choice.C,))
        curve.append((min(size, config.n_components), losses))
        if size >= config.n_components:
            break
    best = min((losses for _, losses in curve), key=lambda each: each.means[0, 0])
    size, chosen = next(each for each in curve if is_close(each[1], best))
    sizes = {
        "validation_sizes_": np.array([size for size, _ in curve]),
        "validation_losses_": np.array([losses.means[0, 0] for _, losses in curve]),
        "validation_scores_": np.array([losses.scores[0, 0] for _, losses in curve]),
    }
    temperature = float(chosen.temperatures[0, 0])
    return replace(choice, temperature=temperature, n_components=size, sizes=sizes)


def is_close(losses: TrialLosses, best: TrialLosses) -> bool:
    """Whether the losses of a size are about the losses of the best one."""
    in_errors, in_losses = SIZE_TOLERANCE
    gain, error = mean_gain(losses.losses[0, 0], best.losses[0, 0], best.counts)
    return gain <= in_errors * error or bool(
        losses.means[0, 0] <= (1 + in_losses) * best.means[0, 0]
    )


class EarlyStopping(Observer):
    """Evaluate the features found so far on validation samples, and decide when to stop.

    More features are kept if they reduce the mean validation loss by more than half its standard
    error, and by `MIN_SHARE_GAINED` of it. The game stops after `patience` evaluations without
    such a gain.

    Parameters
    ----------
    make_kernel : callable
        Returns the kernel of a game's result.
    space : ResolvedSpace
        The space of the game.
    training, validation : Problem
    rng : numpy.random.Generator
    patience : int
    """

    def __init__(
        self,
        make_kernel: Callable[[GameResult], LearnedKernel],
        space: ResolvedSpace,
        training: Problem,
        validation: Problem,
        rng: np.random.Generator,
        patience: int = 3,
    ) -> None:
        self.make_kernel, self.space, self.patience = make_kernel, space, patience
        # Numbers of features evaluated, with validation loss and score.
        self.sizes: list[int] = []
        self.losses: list[float] = []
        self.scores: list[float] = []
        self._best: GameResult | None = None  # at the last improvement
        self._best_losses: Array | None = None  # of the validation rows
        self._n_without_improvement = 0
        self._last_progress = 0
        self._training, self._validation = (
            FeatureCache(part.take(part.rows.sample_indices(EVALUATION_ROWS, rng)))
            for part in (training, validation)
        )

    @property
    def n_validation_rows(self) -> int:
        """Number of rows that features are evaluated on."""
        return len(self._validation.problem.rows)

    def after_round(self, game: GameLoop) -> bool:
        """Evaluate the features if there are enough new ones since the last time."""
        # Where frequencies are found again, rounds may change only their weights.
        progress = max(game.n_features, len(game.history))
        if progress < self._last_progress + max(FIRST_SIZE, GROWTH * self._last_progress):
            return False
        self._last_progress = progress
        self._evaluate(game.result())
        return self._n_without_improvement >= self.patience

    def best_result(self, result: GameResult) -> GameResult:
        """Return the game's result at the last improvement; `result` is the final one."""
        if not self.sizes or self.sizes[-1] != self.make_kernel(result).n_components:
            self._evaluate(result)
        assert self._best is not None
        return replace(self._best, status=result.status)

    def get_state(self) -> dict[str, Any]:
        """Return the evaluations so far in plain values and arrays, for a checkpoint."""
        best = None
        if self._best is not None:
            best = vars(self._best) | {"space": None, "state": None}
            if best["average_dual"] is None:  # on a cluster, dual variables stay there
                best["dual"] = None
        return {
            "evaluations": [self.sizes, self.losses, self.scores],
            "best": best,
            "best_losses": self._best_losses,
            "counters": [self._n_without_improvement, self._last_progress],
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint."""
        self.sizes, self.losses, self.scores = state["evaluations"]
        if state["best"] is not None:
            self._best = GameResult(**(state["best"] | {"space": self.space}))
        self._best_losses = state["best_losses"]
        self._n_without_improvement, self._last_progress = state["counters"]

    def _evaluate(self, result: GameResult) -> None:
        kernel = self.make_kernel(result)
        validation = self._validation.problem
        training, scale = self._training.problem, self._training.scale
        coef, intercept, _ = solve_tasks(
            self._training.features(kernel), training.rescaled(scale), EVALUATION_GAP
        )
        scores = scale * linear_scores(self._validation.features(kernel), coef, intercept)
        losses, _ = held_out_losses(validation, scores)
        self.sizes.append(kernel.n_components)
        self.losses.append(float(np.average(losses, weights=validation.counts)))
        self.scores.append(validation.score(scores))
        if self._improves(losses):
            self._best, self._best_losses = result, losses
            self._n_without_improvement = 0
        else:
            self._n_without_improvement += 1

    def _improves(self, losses: Array) -> bool:
        """Whether the losses of the validation rows are clearly less than the best so far."""
        if self._best_losses is None:
            return True
        counts = row_counts(self._validation.problem)
        gain, error = mean_gain(self._best_losses, losses, counts)
        least = MIN_SHARE_GAINED * np.average(self._best_losses, weights=counts)
        return bool(gain > max(MIN_ERRORS_GAINED * error, least))


class FeatureCache:
    """Features of some samples: features of earlier frequencies are not computed again."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.scale = problem, problem.power_of_scale()
        self._columns = np.empty((len(problem.rows), 0), dtype=problem.dtype)  # without weights
        self._n_frequencies = 0

    def features(self, kernel: LearnedKernel) -> Array:
        """Return the features of a kernel, which begins with the frequencies of the last call."""
        new = slice(self._n_frequencies, len(kernel.weights))
        if new.start < new.stop:
            parts = {name: getattr(kernel, name)[new] for name in ("frequencies", "phases")}
            ones = np.ones(new.stop - new.start, dtype=kernel.weights.dtype)
            added = replace(kernel, **parts, scales=kernel.scales[new], weights=ones)
            self._columns = np.hstack([self._columns, added.features_of(self.problem.rows)])
            self._n_frequencies = new.stop
        factors = np.repeat(np.sqrt(kernel.weights), kernel.space.n_columns(kernel.phase))
        return self._columns * factors.astype(self._columns.dtype)
