"""Compute the best weights of given frequencies, by solving the game over their kernels."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from notsorandom.data.rows import Array, Rows
from notsorandom.game.equilibrium import Equilibrium, find_equilibrium
from notsorandom.game.generation import ColumnGame, FindPeaks, generate_columns
from notsorandom.game.problem import Problem
from notsorandom.game.state import GameResult
from notsorandom.kernel import LearnedKernel, normalized
from notsorandom.spaces.base import ContinuousSpace, FiniteSpace, ResolvedSpace

# Weights below this share of the largest are set to zero: they change the value by less than the
# gap.
LEAST_WEIGHT_SHARE = 1e-6
# Relative gap to which weights are found.
WEIGHTS_GAP = 1e-3


def reweight(
    kernel: LearnedKernel,
    problem: Problem,
    callback: Callable[[float], Any] | None = None,
) -> tuple[LearnedKernel, Equilibrium]:
    """Return the kernel of the same frequencies with the largest margin, and its equilibrium.

    Most frequencies end with zero weight and are dropped. All features of all samples are held in
    memory. `callback` is called with the current relative gap.
    """
    labels = kernel.space.groups(kernel.frequencies, kernel.phase)
    _, groups, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    shares = 1 / sizes[groups]  # the kernel of a group is the mean of its members' kernels
    features = replace(kernel, weights=shares).features_of(problem.rows)
    columns = np.repeat(groups, kernel.space.n_columns(kernel.phase))
    equilibrium = find_equilibrium(features, columns, problem, WEIGHTS_GAP, callback=callback)
    if not equilibrium.relative_gap <= WEIGHTS_GAP:
        warnings.warn(
            f"The weights of the kernel were found to a relative gap of "
            f"{equilibrium.relative_gap:.1e}, not to {WEIGHTS_GAP:.0e}: try a smaller C or fewer "
            "features.",
            ConvergenceWarning,
            stacklevel=2,
        )
    weights = equilibrium.weights[groups] * shares
    kept = weights > LEAST_WEIGHT_SHARE * weights.max()
    return select(kernel, weights, kept), equilibrium


def select(kernel: LearnedKernel, weights: Array, kept: Array) -> LearnedKernel:
    """Return the kernel of some of the frequencies, with new weights."""
    return replace(
        kernel,
        frequencies=kernel.frequencies[kept],
        phases=kernel.phases[kept],
        scales=kernel.scales[kept],
        weights=normalized(weights[kept]),
    )


def solve_equilibrium(
    problem: Problem,
    *,
    space: ResolvedSpace,
    n_frequencies: int,
    phase: str,
    smoothing: float,
    find_peaks: FindPeaks,
    rng: np.random.Generator,
    callback: Callable[[float], Any] | None = None,
) -> GameResult:
    """Compute the equilibrium of a space directly, without playing.

    On a finite space over all of its frequencies, on a continuous one by
    :func:`generate_columns`. Smoothing shrinks the kernels of high frequencies. If more than
    `n_frequencies` have weight, the heaviest are kept and weighted again.
    """
    start = time.perf_counter()
    rows = problem.rows
    if isinstance(space, ContinuousSpace):
        check_bounded(space, smoothing)
        game = ColumnGame(problem, space, phase, smoothing)
        kernel, equilibrium = generate_columns(game, find_peaks, rng, callback)
        kept = kernel.weights > LEAST_WEIGHT_SHARE * kernel.weights.max()
        kernel = select(kernel, kernel.weights, kept)
    else:
        assert isinstance(space, FiniteSpace)
        kernel = kernel_of_all(space, rows, phase, smoothing)
        kernel, equilibrium = reweight(kernel, problem, callback)
    if len(kernel.weights) > n_frequencies:
        heaviest = select(kernel, kernel.weights, select_heaviest(kernel, n_frequencies))
        kernel, reduced = reweight(heaviest, problem)
        equilibrium = replace(equilibrium, upper=reduced.upper)
    # The scales that smoothing gave are moved into the weights.
    scales = space.scales(rows, kernel.frequencies)
    weights = kernel.weights * np.square(kernel.scales / scales, dtype=np.float64)
    kernel = replace(kernel, scales=scales)
    order = np.argsort(-weights, kind="stable")
    kernel = select(kernel, weights, order)
    stats = problem.stats(equilibrium.dual)
    dual = equilibrium.dual.astype(rows.dtype)
    record = {
        "n_frequencies": len(order),
        "potential": np.nan,
        "objective": equilibrium.lower,
        "share_at_zero": stats.share_at_zero,
        "share_at_upper": stats.share_at_upper,
        "seconds": time.perf_counter() - start,
    }
    return GameResult(
        space=space,
        phase=phase,
        frequencies=kernel.frequencies,
        phases=kernel.phases,
        scales=kernel.scales,
        strengths=kernel.weights,
        weights=kernel.weights,
        dual=dual,
        average_dual=dual,
        history={name: np.array([value]) for name, value in record.items()},
        status="complete",
    )


def check_bounded(space: ContinuousSpace, smoothing: float) -> None:
    """Raise ValueError if arbitrarily long frequencies count: then every labelling is separable."""
    if not smoothing and math.isinf(getattr(space, "max_norm", 0.0)):
        raise ValueError(
            "solver='equilibrium' on R^d needs a limit of the frequencies, because long ones "
            "separate any labels: use Euclidean(max_norm=...), or smoothing > 0."
        )


def kernel_of_all(space: FiniteSpace, rows: Rows, phase: str, smoothing: float) -> LearnedKernel:
    """Return the kernel of all frequencies of a finite space, smoothed."""
    frequencies = space.all_frequencies(rows.n_features)
    penalty = space.penalty(rows, frequencies, smoothing)
    return LearnedKernel(
        space=space,
        frequencies=frequencies,
        phases=np.zeros(len(frequencies), dtype=rows.dtype),
        scales=np.exp(-penalty / 2),
        weights=np.full(len(frequencies), 1 / len(frequencies)),
        phase=phase,
    )


def select_heaviest(kernel: LearnedKernel, n_frequencies: int) -> Array:
    """Return a mask of the frequencies of the heaviest groups that fit into `n_frequencies`."""
    groups = kernel.space.groups(kernel.frequencies, kernel.phase)
    kept = np.zeros(len(groups), dtype=bool)
    totals = np.bincount(groups, weights=kernel.weights)
    for group in np.argsort(-totals, kind="stable"):
        members = groups == group
        if kept.sum() + members.sum() <= n_frequencies:
            kept |= members
    if not kept.any():
        raise ValueError(
            f"n_components={n_frequencies} is too small: the features of each kernel can't be "
            "separated, and are more. Give a larger n_components, or a smaller max_degree."
        )
    return kept
