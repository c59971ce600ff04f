"""Recompute the dual variables of a game from its record, without searching."""

from __future__ import annotations

from collections.abc import Iterator

from notsorandom.data.rows import Array
from notsorandom.game.dual import DualProblem
from notsorandom.game.loop import kernel_response
from notsorandom.kernel import LearnedKernel


def replay(
    problem: DualProblem, kernel: LearnedKernel, history: dict[str, Array]
) -> Iterator[Array]:
    """Yield the dual variables at the start of each round, and at the end.

    Parameters
    ----------
    problem : DualProblem
        The problem that the game was played on, with exact projections.
    kernel : LearnedKernel
        With the frequencies in the order they were found, each once. A game on a finite space
        can't be replayed: a frequency can be found again, and the record doesn't say when.
    history : dict of str to ndarray
        The rounds' records.
    """
    rows, space, phase = problem.rows, kernel.space, kernel.phase
    dual = problem.first_dual()
    first = 0
    for last, plays, step in zip(
        history["n_frequencies"], history["plays"], history["step"], strict=True
    ):
        yield dual
        found = slice(first, last)
        frequencies, phases = kernel.frequencies[found], kernel.phases[found]
        scales = kernel.scales[found, None, None].astype(rows.dtype)
        amplitudes = space.amplitudes(rows, problem.measure(dual), frequencies)
        alignment = space.alignment(amplitudes, phases, phase) * scales
        coefficients = alignment * scales / (last - first)
        response = kernel_response(rows, space, phase, frequencies, phases, coefficients)
        dual = problem.step(dual, response, float(plays * step))
        first = last
    yield dual
