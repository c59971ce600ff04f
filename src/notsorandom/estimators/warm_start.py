"""A fit that goes on with the game of the one before."""

from __future__ import annotations

import copy
import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from notsorandom.estimators.reading import Reading
from notsorandom.game import Checkpoint
from notsorandom.parameters import same

# A longer game may differ in these from the one that it goes on with.
FREE_PARAMETERS = (
    "n_components",
    "n_rounds",
    "validation_fraction",
    "n_iter_no_change",
    "tol",
    "warm_start",
    "random_state",
    "verbose",
)


@dataclass(frozen=True)
class Paused:
    """A game that may be gone on with.

    Parameters
    ----------
    checkpoint : Checkpoint
    identity : dict
        What must be the same then; see :func:`identity_of`.
    lengths : dict
        The features and rounds that it had, by parameter.
    """

    checkpoint: Checkpoint
    identity: dict[str, Any]
    lengths: dict[str, int]

    def resumed(self, estimator: Any, reading: Reading) -> Checkpoint:
        """Where an estimator's game goes on from; raise ValueError if it is another game."""
        identity = identity_of(estimator, reading)
        other = [name for name in identity if not same(identity[name], self.identity.get(name))]
        if other:
            raise ValueError(
                f"warm_start=True goes on with the game of the last fit, but {', '.join(other)} "
                "was another then: give the same, or set warm_start=False to begin anew."
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


def identity_of(estimator: Any, reading: Reading) -> dict[str, Any]:
    """Most of an estimator's parameters, and a digest of its data."""
    X = reading.rows.array
    samples = (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,)
    content = hashlib.blake2b()
    for array in (*samples, reading.player.targets, reading.player.multiplicities):
        content.update(np.ascontiguousarray(array).tobytes())
    parameters = {
        name: type(value) if hasattr(value, "get_params") else copy.deepcopy(value)
        for name, value in estimator.get_params().items()
        if name not in FREE_PARAMETERS
    }
    return parameters | {"data": content.hexdigest()}
