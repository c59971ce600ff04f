"""What scores are worth: classes from them, and how wrong they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from notsorandom.game import Player
from notsorandom.rows import Array


def signs(codes: Array, n_classes: int, dtype: Any) -> Array:
    """One-versus-rest labels of +1 and -1: one column for two classes, else one a class."""
    tasks = np.arange(1, 2) if n_classes == 2 else np.arange(n_classes)
    return np.where(codes[:, None] == tasks, 1, -1).astype(dtype)


def predicted_codes(scores: Array) -> Array:
    """Class codes from decision values: the sign of one task, the largest of several."""
    return (scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)


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


def score(player: Player, scores: Array) -> float:
    """Accuracy, or the coefficient of determination of all outputs together."""
    counts = player.multiplicities
    wrong = float(mistakes(player, scores) @ counts)
    if player.loss.one_sided:
        return 1 - wrong / player.total_weight
    targets = player.targets.astype(np.float64)
    spread = float(
        np.square(targets - np.average(targets, axis=0, weights=counts)).sum(axis=1) @ counts
    )
    return 1 - wrong / spread if spread > 0 else float(wrong == 0)
