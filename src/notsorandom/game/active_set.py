"""The frequencies that a game has found so far."""

from __future__ import annotations

from copy import copy

import numpy as np

from notsorandom.data.rows import Array

# What is known of each frequency found.
FOUND = ("frequencies", "phases", "scales", "strengths", "weights")


class Found:
    """The frequencies found so far.

    Parameters
    ----------
    merging : bool
        Whether one found again grows instead of being listed twice.
    """

    def __init__(self, merging: bool) -> None:
        self.merging = merging
        self.frequencies: list[Array] = []
        self.phases: list[float] = []
        self.scales: list[float] = []
        self.strengths: list[float] = []
        self.weights: list[float] = []
        self._known: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self.frequencies)

    def copy(self) -> Found:
        """The same, to go on with."""
        other = Found(self.merging)
        other.__dict__ |= {name: copy(value) for name, value in vars(self).items()}
        return other

    def columns(self) -> dict[str, Array]:
        """All there is to know of them, as arrays."""
        return {name: np.array(getattr(self, name)) for name in FOUND}

    @classmethod
    def from_columns(cls, merging: bool, columns: dict[str, Array]) -> Found:
        """What was taken apart by :meth:`columns`."""
        found = cls(merging)
        for name in FOUND:
            setattr(found, name, list(columns[name]))
        if merging:
            found._known = {
                one.tobytes().hex(): place for place, one in enumerate(found.frequencies)
            }
        return found

    def fitting(self, frequencies: Array, groups: Array, room: int) -> list[int]:
        """Indices of those that are known or that there is room for, group by group."""
        whole_room = room
        fitting: list[int] = []
        for group in dict.fromkeys(groups.tolist()):
            members = np.flatnonzero(groups == group).tolist()
            n_new = sum(frequencies[i].tobytes().hex() not in self._known for i in members)
            if n_new <= room:
                fitting += members
                room -= n_new
        if not fitting and not len(self):
            raise ValueError(
                f"n_components={whole_room} is not enough: the first kernel found has {n_new} "
                "features, which come together. Give at least as many, or a smaller max_degree."
            )
        return fitting

    def add(
        self, frequencies: Array, phases: Array, scales: Array, strengths: Array, weight: float
    ) -> None:
        """Take in the frequencies of a round, each with the same weight."""
        for frequency, phase, scale, strength in zip(
            frequencies, phases, scales, strengths, strict=True
        ):
            place = self._known.get(frequency.tobytes().hex(), len(self))
            if place == len(self):
                self.frequencies.append(frequency)
                self.phases.append(phase)
                self.scales.append(scale)
                self.strengths.append(0.0)
                self.weights.append(0.0)
                if self.merging:
                    self._known[frequency.tobytes().hex()] = place
            self.strengths[place] += float(strength)
            self.weights[place] += weight
