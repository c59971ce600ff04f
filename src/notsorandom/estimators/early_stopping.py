"""Early stopping: the number of features chosen on validation samples."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from notsorandom.data.rows import Array
from notsorandom.estimators.calibration import held_out_losses, row_counts
from notsorandom.estimators.config import FitConfig
from notsorandom.estimators.training import kernel_before_reweighting
from notsorandom.game.dual import DualProblem
from notsorandom.game.loop import GameLoop
from notsorandom.game.result import GameResult
from notsorandom.kernel import LearnedKernel, linear_scores
from notsorandom.linear.newton import solve_tasks
from notsorandom.spaces.base import ResolvedSpace

# Features at the first evaluation. The next follows after FIRST_SIZE more, or after a share of
# GROWTH more if that is larger: models of nearly the same size differ little.
FIRST_SIZE = 10
GROWTH = 0.2
# Relative duality gap of the models that are evaluated.
GAP = 1e-2
# More features must reduce the validation loss by this many standard errors.
MIN_STANDARD_ERRORS = 0.5
# Least share of the validation loss that more features must reduce it by, to be worth their cost.
MIN_IMPROVEMENT = 5e-3
# Most training rows, and most validation rows, of an evaluation: random ones, so that a very rare
# class may be missing there.
MAX_ROWS = 8192


class EarlyStopping:
    """Evaluate the features found so far on validation samples, and decide when to stop.

    More features are kept if they reduce the mean validation loss by more than half its standard
    error, and by `MIN_IMPROVEMENT` of it. The game stops after `patience` evaluations without that.
    """

    def __init__(
        self,
        config: FitConfig,
        training: DualProblem,
        validation: DualProblem,
        rng: np.random.Generator,
        patience: int = 3,
    ) -> None:
        self.config, self.patience = config, patience
        # Numbers of features evaluated, with validation loss and score.
        self.sizes: list[int] = []
        self.losses: list[float] = []
        self.scores: list[float] = []
        self._best: GameResult | None = None  # at the last improvement
        self._best_losses: Array | None = None  # of the validation rows
        self._n_without_improvement = 0
        self._last_progress = 0
        self._training, self._validation = (
            FeatureCache(part.take(part.rows.sample_indices(MAX_ROWS, rng)))
            for part in (training, validation)
        )

    @property
    def n_validation_rows(self) -> int:
        """Number of rows that features are evaluated on."""
        return len(self._validation.problem.rows)

    def should_stop(self, loop: GameLoop) -> bool:
        """Evaluate the features after a round, if there are enough new ones since the last time."""
        # Where frequencies are found again, rounds may change only their weights.
        progress = max(loop.n_features, len(loop.history))
        if progress < self._last_progress + max(FIRST_SIZE, GROWTH * self._last_progress):
            return False
        self._last_progress = progress
        self._evaluate(loop.result())
        return self._n_without_improvement >= self.patience

    def best_result(self, result: GameResult) -> GameResult:
        """Return the game's result at the last improvement; `result` is the final one."""
        n_components = kernel_before_reweighting(self.config, result).n_components
        if not self.sizes or self.sizes[-1] != n_components:
            self._evaluate(result)
        assert self._best is not None
        return self._best

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

    def set_state(self, state: dict[str, Any], space: ResolvedSpace) -> None:
        """Continue from a checkpoint."""
        self.sizes, self.losses, self.scores = state["evaluations"]
        if state["best"] is not None:
            self._best = GameResult(**(state["best"] | {"space": space}))
        self._best_losses = state["best_losses"]
        self._n_without_improvement, self._last_progress = state["counters"]

    def _evaluate(self, result: GameResult) -> None:
        kernel = kernel_before_reweighting(self.config, result)
        validation = self._validation.problem
        training, scale = self._training.problem, self._training.scale
        coef, intercept, _ = solve_tasks(
            self._training.features(kernel), training.rescaled(scale), GAP
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
        gains = self._best_losses - losses
        gain = np.average(gains, weights=counts)
        variance = np.average(np.square(gains - gain), weights=counts)
        least = MIN_IMPROVEMENT * np.average(self._best_losses, weights=counts)
        return bool(gain > max(MIN_STANDARD_ERRORS * np.sqrt(variance / counts.sum()), least))


class FeatureCache:
    """Features of some samples: those of frequencies found earlier are not computed again."""

    def __init__(self, problem: DualProblem) -> None:
        self.problem, self.scale = problem, problem.power_of_scale()
        self._columns = np.empty((len(problem.rows), 0), dtype=problem.dtype)  # without weights
        self._n_frequencies = 0

    def features(self, kernel: LearnedKernel) -> Array:
        """Return the features of a kernel, whose first frequencies are those of the last call."""
        new = slice(self._n_frequencies, len(kernel.weights))
        if new.start < new.stop:
            parts = {name: getattr(kernel, name)[new] for name in ("frequencies", "phases")}
            ones = np.ones(new.stop - new.start, dtype=kernel.weights.dtype)
            added = replace(kernel, **parts, scales=kernel.scales[new], weights=ones)
            self._columns = np.hstack([self._columns, added.features_of(self.problem.rows)])
            self._n_frequencies = new.stop
        factors = np.repeat(np.sqrt(kernel.weights), kernel.space.n_columns(kernel.phase))
        return self._columns * factors.astype(self._columns.dtype)
