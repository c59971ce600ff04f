"""When to stop: a game watched on samples that it doesn't see."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from notsorandom.data.rows import Rows
from notsorandom.game import GameResult, Match, Player
from notsorandom.game.scoring import loss, score
from notsorandom.kernel import LearnedKernel
from notsorandom.linear.streaming import fit_machines

# With so many features the held-out samples are asked first, and then whenever there are so many
# more, or a tenth more: models of nearly the same size tell nothing new.
FIRST_SIZE = 10
GROWTH = 0.1
# Models on the way needn't be exact.
GAP = 1e-2


class Validation:
    """Scores of the features found so far on held-out samples, and whether to go on.

    Parameters
    ----------
    kernel_of : callable
        Makes the kernel of a game's result.
    played, held : tuples of Rows and Player
        What the game is played on, and what it is watched on.
    n_iter_no_change : int
        So many looks without a smaller loss end the game.
    tol : float
        A loss must be so much smaller to count.

    Attributes
    ----------
    sizes, losses, scores : lists
        Numbers of features that were looked at, and how good they are on the held-out samples.
    """

    def __init__(
        self,
        kernel_of: Callable[[GameResult], LearnedKernel],
        played: tuple[Rows, Player],
        held: tuple[Rows, Player],
        n_iter_no_change: int,
        tol: float,
    ) -> None:
        self.kernel_of = kernel_of
        self.played = played
        self.held = held
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.sizes: list[int] = []
        self.losses: list[float] = []
        self.scores: list[float] = []
        self._best: GameResult | None = None  # when the loss was last smaller by tol than before
        self._least = float("inf")
        self._since = 0
        self._progress = 0

    def says_stop(self, match: Match) -> bool:
        """Look at the game after a round, if enough has happened since the last look."""
        # Where frequencies are found again, rounds may bring nothing new but their weights.
        progress = max(match.n_features, len(match.history))
        if progress < self._progress + max(FIRST_SIZE, GROWTH * self._progress):
            return False
        self._progress = progress
        self._look(match.result())
        return self._since >= self.n_iter_no_change

    def conclude(self, result: GameResult) -> GameResult:
        """The game when it was best, once it has ended, however it did."""
        if not self.sizes or self.sizes[-1] != self.kernel_of(result).n_components:
            self._look(result)
        assert self._best is not None
        return self._best

    def state(self) -> dict[str, Any]:
        """What was seen so far, in plain values and arrays, of which files can be made."""
        best = None if self._best is None else vars(self._best) | {"checkpoint": None}
        return {
            "seen": [self.sizes, self.losses, self.scores],
            "best": best,
            "stand": [self._least, self._since, self._progress],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what was seen before."""
        self.sizes, self.losses, self.scores = state["seen"]
        self._best = None if state["best"] is None else GameResult(**state["best"])
        self._least, self._since, self._progress = state["stand"]

    def _look(self, result: GameResult) -> None:
        kernel, (rows, player) = self.kernel_of(result), self.played
        coef, intercept, _ = fit_machines(kernel, rows, player, GAP)
        held_rows, held_player = self.held
        values = kernel.scores(held_rows, coef, intercept)
        self.sizes.append(kernel.n_components)
        self.losses.append(loss(held_player, values))
        self.scores.append(score(held_player, values))
        if self.losses[-1] < self._least - self.tol:
            self._best, self._least, self._since = result, self.losses[-1], 0
        else:
            self._since += 1
