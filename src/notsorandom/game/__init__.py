"""The game between the kernel and the dual player: losses, projection, the loop."""

from notsorandom.game.active_set import Found
from notsorandom.game.certificate import Certificate
from notsorandom.game.dual import Player
from notsorandom.game.equilibrium import Equilibrium, find_equilibrium
from notsorandom.game.loop import Checkpoint, GameResult, Match, Round, play
from notsorandom.game.losses import LOSSES, MARGIN_LOSSES, RESIDUAL_LOSSES, Loss
from notsorandom.game.projection import PROJECTIONS, project, project_alternating
from notsorandom.game.replay import replay

__all__ = [
    "LOSSES",
    "MARGIN_LOSSES",
    "PROJECTIONS",
    "RESIDUAL_LOSSES",
    "Certificate",
    "Checkpoint",
    "Equilibrium",
    "Found",
    "GameResult",
    "Loss",
    "Match",
    "Player",
    "Round",
    "find_equilibrium",
    "play",
    "project",
    "project_alternating",
    "replay",
]
