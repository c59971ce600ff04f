"""What scores are worth: classes from them, and how wrong they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from notsorandom.data.rows import Array
from notsorandom.game import Player


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


def n_strata(player: Player) -> int:
    """How many of those there are."""
    return max(2, player.n_tasks) if player.loss.one_sided else 1


def mistakes(player: Player, scores: Array) -> Array:
    """How wrong each sample's scores are: a wrong class, or the squared residual."""
    if player.loss.one_sided:
        return predicted_codes(scores) != predicted_codes(player.targets)
    return np.square(scores - player.targets, dtype=np.float64).sum(axis=1)


def score(player: Player, scores: Array) -> float:
    """Accuracy, or the coefficient of determination of all outputs together."""
    wrong = np.average(mistakes(player, scores), weights=player.multiplicities)
    if player.loss.one_sided:
        return float(1 - wrong)
    targets, counts = player.targets.astype(np.float64), player.multiplicities
    mean = np.average(targets, axis=0, weights=counts)
    spread = np.average(np.square(targets - mean).sum(axis=1), weights=counts)
    return float(1 - wrong / spread) if spread > 0 else float(wrong == 0)


def loss(player: Player, scores: Array) -> float:
    """How far scores are from the targets: squared, those of classes clipped to [-1, 1].

    It tells more than wrong classes do. At most 1 for classes, and 1 for the mean of reals.
    """
    if not player.loss.one_sided:
        return 1 - score(player, scores)
    distance = np.square(np.clip(scores, -1, 1) - player.targets, dtype=np.float64) / 4
    return float(np.average(distance.mean(axis=1), weights=player.multiplicities))
