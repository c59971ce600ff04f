"""A fit that goes on with the game of the one before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from notsorandom.estimators.identity import differences, identity_of
from notsorandom.game import Checkpoint

# A longer game may differ in these from the one that it goes on with.
FREE_PARAMETERS = (
    "n_components",
    "n_rounds",
    "validation_fraction",
    "n_iter_no_change",
    "tol",
    "warm_start",
    "checkpoint",
    "checkpoint_every",
    "random_state",
    "verbose",
)


@dataclass(frozen=True)
class Paused:
    """A game that may be gone on with.

    Parameters
    ----------
    checkpoint : Checkpoint
    identity : dict of str to str
        What must be the same then.
    lengths : dict of str to int
        The features and rounds that it had, by parameter.
    """

    checkpoint: Checkpoint
    identity: dict[str, str]
    lengths: dict[str, int]

    @classmethod
    def after(cls, estimator: Any, checkpoint: Checkpoint) -> Paused:
        """The game of an estimator that was just fitted."""
        lengths = {
            "n_components": estimator.average_kernel_.n_components,
            "n_rounds": len(estimator.history_["seconds"]),
        }
        return cls(checkpoint, identity_of(estimator, FREE_PARAMETERS), lengths)

    def resumed(self, estimator: Any) -> Checkpoint:
        """Where an estimator's game goes on from; raise ValueError if it is another game."""
        other = differences(self.identity, identity_of(estimator, FREE_PARAMETERS))
        if other:
            raise ValueError(
                f"warm_start=True goes on with the game of the last fit, but {other}: give the "
                "same, or set warm_start=False to begin anew."
            )
        for name, length in self.lengths.items():
            asked = getattr(estimator, name)
            if asked != "auto" and asked < length:
                raise ValueError(
                    f"{name}={asked} is less than the {length} of the last fit, which "
                    "warm_start=True goes on with: give at least as many, use features_.head(), "
                    "or set warm_start=False."
                )
        return self.checkpoint
