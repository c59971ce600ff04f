"""The best weights for frequencies that are known: the game over them played to its end."""

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
from notsorandom.game import Equilibrium, GameResult, Player, find_equilibrium
from notsorandom.kernel import LearnedKernel, normalized

# Weights below this share of the largest are zero: they move the value by less than the gap.
LEAST_SHARE = 1e-6
# The relative gap to which weights are found.
GAP = 1e-3


def reweighted(
    kernel: LearnedKernel,
    rows: Rows,
    player: Player,
    watch: Callable[[float], Any] | None = None,
) -> tuple[LearnedKernel, Equilibrium]:
    """Return the kernel of the same frequencies with the largest margin, and what proves it.

    Most frequencies that were found on the way there have no weight in the end; they are dropped.
    It needs all features of all samples at once.
    """
    labels_of_groups = kernel.space.groups(kernel.frequencies, kernel.phase)
    _, groups, sizes = np.unique(labels_of_groups, return_inverse=True, return_counts=True)
    shares = 1 / sizes[groups]  # the kernel of a group is the mean of its members'
    plain = replace(kernel, weights=shares).features_of(rows)
    columns = np.repeat(groups, kernel.space.n_columns(kernel.phase))
    equilibrium = find_equilibrium(plain, columns, player, GAP, watch=watch)
    if equilibrium.relative_gap > GAP:
        warnings.warn(
            f"The weights are known to a relative gap of {equilibrium.relative_gap:.1e} in the "
            f"margin's objective, not to {GAP:.0e}: try a smaller C or fewer features.",
            ConvergenceWarning,
            stacklevel=2,
        )
    weights = equilibrium.weights[groups] * shares
    kept = weights > LEAST_SHARE * weights.max()
    return subset(kernel, weights, kept), equilibrium


def subset(kernel: LearnedKernel, weights: Array, kept: Array) -> LearnedKernel:
    """The kernel of those frequencies that are kept, with new weights."""
    return replace(
        kernel,
        frequencies=kernel.frequencies[kept],
        phases=kernel.phases[kept],
        scales=kernel.scales[kept],
        weights=normalized(weights[kept]),
    )


def settle(
    rows: Rows,
    player: Player,
    *,
    space: Any,
    n_frequencies: int,
    rng: np.random.Generator,
    phase: str,
    smoothing: float,
    watch: Callable[[float], Any] | None = None,
) -> GameResult:
    """Go to the equilibrium of a finite space at once, without playing.

    Smoothing makes the kernels of rough frequencies smaller. If more frequencies have weight than
    may be kept, the heaviest are, and weighted anew.
    """
    began = time.perf_counter()
    space = space.resolve(rows, rng)
    if space.kind != "finite":
        raise ValueError(
            "dynamics='primal_dual' needs a finite space, but the frequencies of "
            f"{type(space).__name__} are {space.kind}: use dynamics='gradient', or "
            "Sphere(basis='harmonic')."
        )
    everything = space.everything(rows.n_features)
    penalty, _ = space.penalty(rows, everything, smoothing)
    whole = LearnedKernel(
        space=space,
        frequencies=everything,
        phases=np.zeros(len(everything), dtype=rows.dtype),
        scales=np.exp(-penalty / 2),
        weights=np.full(len(everything), 1 / len(everything)),
        phase=phase,
    )
    kernel, equilibrium = reweighted(whole, rows, player, watch)
    if len(kernel.weights) > n_frequencies:
        kernel, equilibrium = reweighted(
            subset(kernel, kernel.weights, heaviest(kernel, n_frequencies)), rows, player
        )
    # What smoothing took from a kernel's size is as well taken from its weight.
    weights = kernel.weights * kernel.scales**2
    kernel = replace(kernel, scales=np.ones_like(kernel.scales))
    order = np.argsort(-weights, kind="stable")
    kernel = subset(kernel, weights, order)
    standing = player.standing(equilibrium.dual)
    dual = equilibrium.dual.astype(rows.dtype)
    # Of all kernels as they are, not of those that smoothing or want of room left.
    highest = space.supremum(rows, player.measure(dual), phase, math.inf, 0.0, 0.0, 0).bound
    lower = player.best_multiple(dual, highest)
    record = {
        "n_frequencies": len(order),
        "potential": np.nan,
        "objective": equilibrium.lower,
        "lower": lower,
        "share_at_zero": standing.at_zero,
        "share_at_upper": standing.at_upper,
        "seconds": time.perf_counter() - began,
    }
    return GameResult(
        space=space,
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


def heaviest(kernel: LearnedKernel, n_frequencies: int) -> Array:
    """Which frequencies belong to the heaviest kernels that fit into so many, as a mask."""
    groups = kernel.space.groups(kernel.frequencies, kernel.phase)
    kept = np.zeros(len(groups), dtype=bool)
    totals = np.bincount(groups, weights=kernel.weights)
    for group in np.argsort(-totals, kind="stable"):
        members = groups == group
        if kept.sum() + members.sum() <= n_frequencies:
            kept |= members
    if not kept.any():
        raise ValueError(
            f"n_components={n_frequencies} is not enough: the features of each kernel come "
            "together, and are more. Give more, or a smaller max_degree."
        )
    return kept
