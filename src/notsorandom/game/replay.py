"""A game played again from its record: the same duals, without the searches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from notsorandom.data.rows import Array, Rows
from notsorandom.game.dual import Player
from notsorandom.game.loop import respond


def replay(
    rows: Rows,
    player: Player,
    *,
    space: Any,
    frequencies: Array,
    phases: Array,
    scales: Array,
    phase: str,
    history: dict[str, Array],
) -> Iterator[Array]:
    """Yield the dual variables that each round started from, and at last where they ended.

    Parameters
    ----------
    rows, player, space, phase
        As in :func:`play`; the space resolved, the projection exact.
    frequencies, phases, scales
        What the game found, each frequency once: on a finite space, where one can be found again,
        the record doesn't tell when.
    history : dict of str to ndarray
        The rounds' records.
    """
    dual = player.first()
    first = 0
    for last, plays, step in zip(
        history["n_frequencies"], history["plays"], history["step"], strict=True
    ):
        yield dual
        found = slice(first, last)
        amplitudes = space.amplitudes(rows, player.measure(dual), frequencies[found])
        heights = scales[found, None, None]
        alignment = space.alignment(amplitudes, phases[found], phase) * heights
        coefficients = alignment * heights / (last - first)
        response = respond(rows, space, phase, frequencies[found], phases[found], coefficients)
        dual = player.following(dual, response, float(plays * step))
        first = last
    yield dual
