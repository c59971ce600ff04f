"""A game put together: from samples and classes to a kernel, the smoothing chosen on the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from notsorandom.game import GameResult, Loss, Player, Round, play
from notsorandom.kernel import LearnedKernel, normalized
from notsorandom.linear import decide, solve_machines
from notsorandom.progress import Progress
from notsorandom.reweight import reweighted, settle
from notsorandom.rows import Array, Rows
from notsorandom.smoothing import CANDIDATES, CLEARLY, REAL_CANDIDATES, choose_smoothing

WEIGHTINGS: dict[str, Callable[[GameResult], Array]] = {
    "potential": lambda result: normalized(result.strengths),
    "uniform": lambda result: result.weights,
}
# How the players come to the equilibrium.
DYNAMICS = ("gradient", "primal_dual")
# Games that choose the smoothing are this much shorter than the one they choose it for.
TRIAL_SHARE = 6
# Shorter ones would cost more than they tell.
LEAST_TRIAL = 5
# Their SVMs needn't be exact.
TRIAL_GAP = 1e-2
# The final SVM's, relative to its objective: far less than what moves its accuracy.
DUALITY_GAP = 1e-3


@dataclass(frozen=True)
class Game:
    """A configured game, ready for data: what the two estimators share."""

    space: Any
    search: Any
    loss: Loss
    phase: str
    weighting: str
    learning_rate: str | float
    dynamics: str = "gradient"
    reweight: bool = False

    def play(
        self,
        rows: Rows,
        player: Player,
        n_components: int,
        smoothing: float,
        rng: np.random.Generator,
        n_rounds: int | None = None,
        verbose: int = 0,
    ) -> tuple[GameResult, LearnedKernel]:
        """Play for `n_components` real features; return the result and its kernel."""
        if self.dynamics == "primal_dual":
            with Progress(1, "equilibrium", shown=verbose > 0) as bar:
                return settle(
                    rows,
                    player,
                    space=self.space,
                    n_frequencies=n_components,
                    rng=rng,
                    phase=self.phase,
                    smoothing=smoothing,
                    watch=lambda gap: bar.update(0, f"gap {gap:.1e}"),
                )
        with Progress(n_components, "features", shown=verbose > 0) as bar:
            n_columns = self.space.n_columns(self.phase)

            def watch(record: Round, dual: Array) -> None:
                bar.update(record.n_frequencies * n_columns, f"potential {record.potential:.2e}")

            result = play(
                rows,
                player,
                space=self.space,
                search=self.search,
                n_frequencies=n_components // n_columns,
                n_rounds=n_rounds,
                rng=rng,
                phase=self.phase,
                smoothing=smoothing,
                learning_rate=self.learning_rate,
                watch=watch,
            )
        weights = WEIGHTINGS[self.weighting](result)
        kernel = LearnedKernel.from_game(result, weights, self.phase)
        if self.reweight:
            kernel, _ = reweighted(kernel, rows, player)
        return result, kernel

    def choose_smoothing(
        self,
        rows: Rows,
        player: Player,
        n_components: int,
        n_rounds: int | None,
        rng: np.random.Generator,
        verbose: int = 0,
    ) -> float:
        """Compare the candidates by short games on a part of the data."""
        of_classes = player.loss.one_sided
        candidates = CANDIDATES if of_classes else REAL_CANDIDATES
        n_columns = self.space.n_columns(self.phase)
        room = n_components // n_columns // TRIAL_SHARE * n_columns
        if n_rounds is not None:
            n_rounds //= TRIAL_SHARE
        if min(room, n_rounds or room) < LEAST_TRIAL:
            return candidates[0]
        seed = rng.integers(2**63)
        if self.space.resolve(rows, np.random.default_rng(seed)).kind == "finite":
            # Frequencies are found again there, and may come many together.
            room, n_rounds = n_components, n_rounds or room
        with Progress(len(candidates), "smoothing", shown=verbose > 0) as bar:

            def errors(train: Array, test: Array, smoothing: float) -> Array:
                # The same seed for all candidates: they differ by nothing else.
                trial_rng, part = np.random.default_rng(seed), rows.take(train)
                _, kernel = self.play(
                    part, player.take(train), room, smoothing, trial_rng, n_rounds=n_rounds
                )
                features = kernel.features_of(part)
                coef, intercept, _ = solve_machines(features, player.take(train), TRIAL_GAP)
                scores = decide(kernel.features_of(rows.take(test)), coef, intercept)
                bar.update(candidates.index(smoothing) + 1)
                return mistakes(player.take(test), scores)

            clearly = CLEARLY if of_classes else 0.0
            return choose_smoothing(strata(player), errors, rng, candidates, clearly)


def strata(player: Player) -> Array:
    """What should be as frequent in a part of the samples as in all: classes, if there are any."""
    if player.loss.one_sided:
        return predicted_codes(player.targets)
    return np.zeros(len(player.targets), dtype=int)


def mistakes(player: Player, scores: Array) -> Array:
    """How wrong each sample's scores are: a wrong class, or the squared residual."""
    if player.loss.one_sided:
        return predicted_codes(scores) != predicted_codes(player.targets)
    return np.square(scores - player.targets, dtype=np.float64).sum(axis=1)


def predicted_codes(scores: Array) -> Array:
    """Class codes from decision values: the sign of one task, the largest of several."""
    return (scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)


def signs(codes: Array, n_classes: int, dtype: Any) -> Array:
    """One-versus-rest labels of +1 and -1: one column for two classes, else one a class."""
    tasks = np.arange(1, 2) if n_classes == 2 else np.arange(n_classes)
    return np.where(codes[:, None] == tasks, 1, -1).astype(dtype)
