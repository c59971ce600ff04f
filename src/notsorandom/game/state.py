"""Records, active set, state and result of a game."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from notsorandom.data.rows import Array
from notsorandom.game.problem import DualStats
from notsorandom.kernel import LearnedKernel, normalized
from notsorandom.spaces.base import ResolvedSpace
from notsorandom.spaces.landscape import Sample

# Arrays of an active set, one value per frequency.
ACTIVE_SET_ARRAYS = ("frequencies", "phases", "scales", "strengths", "weights")


@dataclass(frozen=True)
class Round:
    """Record of one round.

    Parameters
    ----------
    n_frequencies : int
        Number of frequencies found so far, including this round.
    potential : float
        Potential of the first frequency found, divided by the largest value possible: on R^d, of
        samples at the crests and troughs of one wave; on the sphere, of a feature of mean square
        one that is proportional to the measure. Chance level is about ``1 / n_samples``.
    objective : float
        Dual objective under this round's kernel, the mean over its frequencies.
    share_at_zero, share_at_upper : float
        Shares of the dual variables at zero, and at the nonzero limits of their boxes.
    plays : int
        Number of plays the round counts for: its number of peaks, or one with
        ``learning_rate="theory"`` or a callable.
    step : float
        Step size of the dual player, per play.
    seconds : float
        Time since the game began.
    """

    n_frequencies: int
    potential: float
    objective: float
    share_at_zero: float
    share_at_upper: float
    plays: int
    step: float
    seconds: float


class ActiveSet:
    """The frequencies found so far, with their phases, scales, strengths and weights.

    With `merging`, a frequency that is found again gains strength and weight instead of being
    listed twice.
    """

    def __init__(self, merging: bool) -> None:
        self.merging = merging
        self.frequencies: list[Array] = []
        self.phases: list[float] = []
        self.scales: list[float] = []
        self.strengths: list[float] = []
        self.weights: list[float] = []
        self._positions: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self.frequencies)

    def copy(self) -> ActiveSet:
        """Return an independent copy."""
        other = ActiveSet(self.merging)
        other.__dict__ |= {name: copy(value) for name, value in vars(self).items()}
        return other

    def to_arrays(self) -> dict[str, Array]:
        """Return the contents as arrays, by name."""
        return {name: np.array(getattr(self, name)) for name in ACTIVE_SET_ARRAYS}

    @classmethod
    def from_arrays(cls, merging: bool, arrays: dict[str, Array]) -> ActiveSet:
        """Return the active set of which :meth:`to_arrays` gave the arrays."""
        result = cls(merging)
        for name in ACTIVE_SET_ARRAYS:
            setattr(result, name, list(arrays[name]))
        if merging:
            result._positions = {_key(one): i for i, one in enumerate(result.frequencies)}
        return result

    def select_fitting(self, frequencies: Array, groups: Array, room: int) -> list[int]:
        """Return the indices of whole groups that are known, or for which there is room."""
        remaining = room
        fitting: list[int] = []
        for group in dict.fromkeys(groups.tolist()):
            members = np.flatnonzero(groups == group).tolist()
            n_new = sum(_key(frequencies[i]) not in self._positions for i in members)
            if n_new <= remaining:
                fitting += members
                remaining -= n_new
        if not fitting and not len(self):
            raise ValueError(
                f"n_components={room} is too small: the first kernel found has {n_new} features, "
                "which can't be separated. Give at least as many, or a smaller max_degree."
            )
        return fitting

    def add(
        self, frequencies: Array, phases: Array, scales: Array, strengths: Array, weight: float
    ) -> None:
        """Add the frequencies of a round, each with the same weight."""
        for frequency, phase, scale, strength in zip(
            frequencies, phases, scales, strengths, strict=True
        ):
            position = self._positions.get(_key(frequency), len(self))
            if position == len(self):
                self.frequencies.append(frequency)
                self.phases.append(phase)
                self.scales.append(scale)
                self.strengths.append(0.0)
                self.weights.append(0.0)
                if self.merging:
                    self._positions[_key(frequency)] = position
            self.strengths[position] += float(strength)
            self.weights[position] += weight


def _key(frequency: Array) -> str:
    return frequency.tobytes().hex()


@dataclass(frozen=True)
class Move:
    """What the dual player's step of one round depends on, beside the dual variables.

    The response of the kernel player is the features of the frequencies times the coefficients, of
    shape (n_peaks * n_columns, n_tasks).
    """

    frequencies: Array
    phases: Array
    coefficients: Array
    step: float


@dataclass(frozen=True)
class GameState:
    """State of a game at the start of a round: with samples and settings, enough to continue.

    Without dual variables, as in the checkpoint of a fit on a cluster, they are computed again from
    the moves.
    """

    space: ResolvedSpace
    random_state: Any
    active_set: ActiveSet
    history: list[dict[str, Any]]
    dual: Array | None
    dual_total: Array | None
    n_plays: int
    flat: bool
    moves: tuple[Move, ...] = ()


@dataclass(frozen=True)
class GameResult:
    """Outcome of a game.

    Parameters
    ----------
    space : ResolvedSpace
    phase : {"aligned", "paired"}
    frequencies : ndarray of shape (n_frequencies, n_features)
        In the order in which they were first found; on the sphere's harmonics, their indices.
    phases, scales : ndarrays of shape (n_frequencies,)
        Of each frequency's features.
    strengths : ndarray of shape (n_frequencies,)
        Amplitude of each frequency's features when it was found, the root of the potential; the
        sum of them if it was found again.
    weights : ndarray of shape (n_frequencies,)
        The kernel player's average play: uniform over the frequencies or, with
        ``learning_rate="theory"``, over the rounds.
    dual, average_dual : ndarrays of shape (n_samples, n_tasks)
        The last dual point, and the average over the plays; signed. On a cluster there is no
        average.
    history : dict of str to ndarray
        The rounds' records by field; see :class:`Round`.
    status : {"complete", "stopped", "flat"}
        ``"stopped"`` by a callback or by early stopping; ``"flat"`` if the potential vanished
        everywhere, as for samples that are all equal.
    state : GameState, optional
        Where a longer game continues from.
    """

    space: ResolvedSpace
    phase: str
    frequencies: Array
    phases: Array
    scales: Array
    strengths: Array
    weights: Array
    dual: Array | None
    average_dual: Array | None
    history: dict[str, Array]
    status: str
    state: GameState | None = None

    def kernel(self, weighting: str = "uniform") -> LearnedKernel:
        """Return the kernel of the frequencies found.

        Parameters
        ----------
        weighting : {"uniform", "potential"}
            ``"uniform"`` is the average play; ``"potential"`` weights each frequency by its
            strength.
        """
        weights = self.weights if weighting == "uniform" else normalized(self.strengths)
        parts = (self.frequencies, self.phases, self.scales)
        return LearnedKernel(self.space, *parts, weights, self.phase)


@dataclass(frozen=True)
class Ahead:
    """What is known of a dual point before the round that starts from it; None if it is not.

    `taken` is how many passes the last projections took.
    """

    taken: tuple[int, ...] = (2,)
    stats: DualStats | None = None
    sample: Sample | None = None
