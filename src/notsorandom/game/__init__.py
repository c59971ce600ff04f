"""The game between the kernel and the dual player: losses, projection, the loop."""

from notsorandom.game.certificate import Certificate
from notsorandom.game.dual import DualProblem
from notsorandom.game.equilibrium import Equilibrium, find_equilibrium
from notsorandom.game.loop import GameLoop, play
from notsorandom.game.losses import CLASSIFICATION_LOSSES, LOSSES, REGRESSION_LOSSES, Loss
from notsorandom.game.projection import PROJECTIONS, project, project_alternating
from notsorandom.game.result import GameResult, GameState, Round

__all__ = [
    "CLASSIFICATION_LOSSES",
    "LOSSES",
    "PROJECTIONS",
    "REGRESSION_LOSSES",
    "Certificate",
    "DualProblem",
    "Equilibrium",
    "GameLoop",
    "GameResult",
    "GameState",
    "Loss",
    "Round",
    "find_equilibrium",
    "play",
    "project",
    "project_alternating",
]
