"""A certificate put together: the SVM on a kernel from above, peaks of dual points from below."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from notsorandom.data.rows import Array, Rows
from notsorandom.game import Player
from notsorandom.game.certificate import (
    Certificate,
    feasible,
    lower_bound,
    margin_bound,
    regret_bound,
)
from notsorandom.kernel import LearnedKernel
from notsorandom.linear.newton import LinearMachine, solve_machine
from notsorandom.spaces import Landscape
from notsorandom.spaces.landscape import kernel_potentials

# Independent searches for the highest peak of each dual point.
N_SEARCHES = 8
# Peaks are bounded to this share of their heights.
PEAK_PRECISION = 1e-3
# SVMs are solved to this share of their objectives: the gap should be the kernel's, not theirs.
SVM_PRECISION = 1e-4
# Evaluations of the potential after which a bound is left as it is.
MAX_EVALUATIONS = 200_000


def certify(
    kernel: LearnedKernel,
    rows: Rows,
    player: Player,
    duals: Sequence[tuple[str, Array]],
    search: Any,
    rng: np.random.Generator,
    bandwidth: float | None = None,
    played: tuple[LearnedKernel, dict[str, Array]] | None = None,
) -> Certificate:
    """Bound the value of the game that a kernel is an answer to.

    Parameters
    ----------
    kernel : LearnedKernel
    rows : Rows
    player : Player
    duals : sequence of (str, ndarray of shape (n_samples, n_tasks))
        Dual points to try, with names, beside the SVM's own.
    search : a search
        Finds peaks where they can't be bounded, and a start where they can.
    rng : numpy.random.Generator
    bandwidth : float, optional
        The kernels competed with have no frequencies beyond; by default the learned kernel's own.
    played : (LearnedKernel, dict), optional
        The kernel player's average play, and the history of the game, if it was on these samples.
    """
    space = kernel.space
    widest = space.bandwidth(kernel.frequencies)
    if bandwidth is None:
        bandwidth = widest
    elif bandwidth < widest:
        raise ValueError(
            f"bandwidth={bandwidth!r} is less than that of the learned kernel, {widest:.6g}, which "
            "must be among those it is compared with: give no less."
        )
    features = kernel.features_of(rows)
    machines = solve_tasks(features, player)
    own = np.column_stack([machine.dual for machine in machines])
    candidates = []
    for name, dual in feasible([("the model's dual", own), *duals], player):
        measure = player.measure(dual).astype(rows.dtype)
        seen = highest_seen(kernel, rows, measure, search, rng, bandwidth)
        supremum = space.supremum(
            rows, measure, kernel.phase, bandwidth, seen, PEAK_PRECISION, MAX_EVALUATIONS
        )
        candidates.append((name, dual, supremum))
    lower, source, certified = lower_bound(player, candidates)
    regret, allowed = regret_and_bound(played, rows, player)
    return Certificate(
        upper=sum(machine.primal_value for machine in machines),
        upper_from=sum(machine.dual_value for machine in machines),
        lower=lower,
        source=source,
        certified=certified,
        bandwidth=bandwidth,
        regret=regret,
        regret_bound=allowed,
        generalization=generalization(kernel, rows, features, player, machines, bandwidth),
        sample_size=space.sample_size(rows, bandwidth),
        has_margin=player.loss.one_sided,
    )


def highest_seen(
    kernel: LearnedKernel,
    rows: Rows,
    measure: Array,
    search: Any,
    rng: np.random.Generator,
    bandwidth: float,
) -> float:
    """The highest potential of the learned frequencies and of those that searches find."""
    space, phase = kernel.space, kernel.phase
    if space.kind == "finite":  # all of them will be looked at
        return 0.0
    landscape = Landscape(space, rows, measure, 0.0, phase)
    found = [kernel.frequencies.astype(rows.dtype)]
    for _ in range(N_SEARCHES):
        found.append(search.find(landscape, 1, rng).frequencies)
    frequencies = space.within(np.concatenate(found), bandwidth)
    amplitudes = space.amplitudes(rows, measure, frequencies)
    scales = space.scales(rows, frequencies).astype(np.float64)
    return float((kernel_potentials(space, amplitudes, phase) * scales**2).max())


def regret_and_bound(
    played: tuple[LearnedKernel, dict[str, Array]] | None,
    rows: Rows,
    player: Player,
) -> tuple[float, float]:
    """Average regret of the dual player, and what the theorem allows.

    It is the SVM's objective on the average kernel, less what the player earned.
    """
    if played is None:
        return math.nan, math.nan
    average, history = played
    features = average.features_of(rows)
    best = sum(machine.primal_value for machine in solve_tasks(features, player))
    earned = float(np.average(history["objective"], weights=history["plays"]))
    bound = average.space.bound(rows.n_features, average.phase)
    allowed = regret_bound(player, bound, history["plays"], history["step"])
    return best - earned, allowed


def generalization(
    kernel: LearnedKernel,
    rows: Rows,
    features: Array,
    player: Player,
    machines: Sequence[LinearMachine],
    bandwidth: float,
) -> float:
    """The margin bound on the error of the one SVM of two classes."""
    complexity = kernel.space.complexity(rows, bandwidth, kernel.phase)
    norm = float(np.sqrt(machines[0].coef @ machines[0].coef))
    if len(machines) > 1 or not player.loss.one_sided or math.isnan(complexity) or norm == 0:
        return math.nan
    scores = features @ machines[0].coef + machines[0].intercept
    margins = player.targets[:, 0] * scores / norm
    return margin_bound(margins, complexity, counts=player.multiplicities)


def solve_tasks(features: Array, player: Player) -> list[LinearMachine]:
    """The machines on some features, one a task."""
    tasks = range(player.targets.shape[1])
    return [solve_machine(features, player.task(task), SVM_PRECISION) for task in tasks]
