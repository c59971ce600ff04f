"""Early stopping: the number of features chosen on validation samples."""

from __future__ import annotations

from typing import Any

from notsorandom.estimators.config import FitConfig
from notsorandom.estimators.training import fit_linear_models, kernel_before_reweighting
from notsorandom.game.dual import DualProblem
from notsorandom.game.loop import GameLoop
from notsorandom.game.result import GameResult
from notsorandom.spaces.base import ResolvedSpace

# Features at the first evaluation. The next follows after FIRST_SIZE more, or after a share of
# GROWTH more if that is larger: models of nearly the same size differ little.
FIRST_SIZE = 10
GROWTH = 0.1
# Relative duality gap of the models that are evaluated.
GAP = 1e-2


class EarlyStopping:
    """Evaluate the features found so far on validation samples, and decide when to stop.

    The game stops after `patience` evaluations in which the validation loss didn't decrease by
    `min_improvement`.
    """

    def __init__(
        self,
        config: FitConfig,
        training: DualProblem,
        validation: DualProblem,
        patience: int = 5,
        min_improvement: float = 1e-4,
    ) -> None:
        self.config, self.training, self.validation = config, training, validation
        self.patience, self.min_improvement = patience, min_improvement
        # Numbers of features evaluated, with validation loss and score.
        self.sizes: list[int] = []
        self.losses: list[float] = []
        self.scores: list[float] = []
        self._best: GameResult | None = None  # at the last improvement
        self._best_loss = float("inf")
        self._n_without_improvement = 0
        self._last_progress = 0

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
        best = None if self._best is None else vars(self._best) | {"space": None, "state": None}
        return {
            "evaluations": [self.sizes, self.losses, self.scores],
            "best": best,
            "counters": [self._best_loss, self._n_without_improvement, self._last_progress],
        }

    def set_state(self, state: dict[str, Any], space: ResolvedSpace) -> None:
        """Continue from a checkpoint."""
        self.sizes, self.losses, self.scores = state["evaluations"]
        if state["best"] is not None:
            self._best = GameResult(**(state["best"] | {"space": space}))
        self._best_loss, self._n_without_improvement, self._last_progress = state["counters"]

    def _evaluate(self, result: GameResult) -> None:
        kernel = kernel_before_reweighting(self.config, result)
        coef, intercept, _ = fit_linear_models(kernel, self.training, GAP)
        scores = kernel.scores(self.validation.rows, coef, intercept)
        self.sizes.append(kernel.n_components)
        self.losses.append(self.validation.validation_loss(scores))
        self.scores.append(self.validation.score(scores))
        if self.losses[-1] < self._best_loss - self.min_improvement:
            self._best, self._best_loss = result, self.losses[-1]
            self._n_without_improvement = 0
        else:
            self._n_without_improvement += 1
