"""A game put together: from samples and targets to a kernel, the smoothing chosen on the way."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from notsorandom._utils.progress import Progress
from notsorandom.data.rows import Array, Rows
from notsorandom.estimators.smoothing import CANDIDATES, CLEARLY, asked, choose_smoothing
from notsorandom.game import Checkpoint, GameResult, Loss, Match, Player
from notsorandom.game.reweight import reweighted, settle
from notsorandom.game.scoring import mistakes, n_strata, strata
from notsorandom.kernel import LearnedKernel, normalized
from notsorandom.linear.newton import solve_machines

WEIGHTINGS: dict[str, Callable[[GameResult], Array]] = {
    "potential": lambda result: normalized(result.strengths),
    "uniform": lambda result: result.weights,
}
# How the players come to the equilibrium.
DYNAMICS = ("gradient", "primal_dual")
# Features, or rounds, of the games that choose the smoothing: always as many, so that a longer fit
# chooses as a shorter one does.
TRIAL_SIZE = 32
# Their SVMs needn't be exact.
TRIAL_GAP = 1e-2
# The final SVM's, relative to its objective: far less than what moves its accuracy.
DUALITY_GAP = 1e-3


@dataclass(frozen=True)
class Game:
    """A configured game, ready for data: what all estimators share."""

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
        watch: Callable[[Match], bool] | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> GameResult:
        """Play for `n_components` real features.

        Parameters
        ----------
        rows, player, smoothing, rng, n_rounds, checkpoint
            As in :class:`notsorandom.game.Match`.
        n_components : int
        verbose : int
        watch : callable, optional
            Called after each round; the game ends if it returns True.
        """
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
        n_columns = self.space.n_columns(self.phase)
        match = Match(
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
            checkpoint=checkpoint,
        )
        stopped = False
        with Progress(n_components, "features", shown=verbose > 0) as bar:
            while not stopped and (record := match.play_round()) is not None:
                bar.update(record.n_frequencies * n_columns, f"potential {record.potential:.2e}")
                stopped = watch is not None and watch(match)
        result = match.result()
        return replace(result, status="stopped") if stopped else result

    def kernel(self, result: GameResult, rows: Rows, player: Player) -> LearnedKernel:
        """The kernel that a game's result is for, on the samples it was played on."""
        if self.dynamics == "primal_dual":
            return LearnedKernel.from_game(result, result.weights, self.phase)
        kernel = self.plain_kernel(result)
        return reweighted(kernel, rows, player)[0] if self.reweight else kernel

    def plain_kernel(self, result: GameResult) -> LearnedKernel:
        """The kernel of the frequencies found, in the weights of the play."""
        weights = WEIGHTINGS[self.weighting](result)
        return LearnedKernel.from_game(result, weights, self.phase)

    def choose_smoothing(
        self,
        rows: Rows,
        player: Player,
        n_components: int,
        rng: np.random.Generator,
        verbose: int = 0,
    ) -> float:
        """Compare the candidates by short games on a part of the data."""
        room = TRIAL_SIZE * self.space.n_columns(self.phase)
        seed = rng.integers(2**63)
        chosen = asked(len(rows), rng)
        few, pupils = rows.take(chosen), player.take(chosen)
        if self.dynamics == "primal_dual":
            room = n_components
        elif self.space.resolve(few, np.random.default_rng(seed)).kind == "finite":
            room = sys.maxsize  # frequencies are found again there, and may come many together
        with Progress(len(CANDIDATES), "smoothing", shown=verbose > 0) as bar:

            def errors(train: Array, test: Array, smoothing: float) -> Array:
                part, pupil = few.take(train), pupils.take(train)
                # The same seed for all candidates: they differ by nothing else.
                trial_rng = np.random.default_rng(seed)
                result = self.play(part, pupil, room, smoothing, trial_rng, n_rounds=TRIAL_SIZE)
                kernel = self.kernel(result, part, pupil)
                coef, intercept, _ = solve_machines(kernel.features_of(part), pupil, TRIAL_GAP)
                scores = kernel.scores(few.take(test), coef, intercept)
                bar.update(CANDIDATES.index(smoothing) + 1)
                return mistakes(pupils.take(test), scores)

            # Residuals tell more than wrong classes do.
            clearly = CLEARLY if player.loss.one_sided else 0.0
            return choose_smoothing(
                strata(pupils),
                pupils.multiplicities,
                errors,
                rng,
                clearly,
                n_strata(player),
                len(rows),
            )
