"""The equilibrium of a game over finitely many kernels, to a certified gap."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse.linalg import svds

from notsorandom.data.rows import Array
from notsorandom.game.dual import Player

# Steps between looks at the gap, each of which costs as much as a few steps.
CHECK_EVERY = 50
# The average is started anew when the gap has shrunk to this share, or after so many looks.
RESTART_SHARE = 0.4
RESTART_LOOKS = 30
# How much shorter steps are than the norm of the matrix allows.
SAFETY = 0.99


@dataclass(frozen=True)
class Equilibrium:
    """A kernel and a dual point that are nearly best answers to each other.

    Parameters
    ----------
    weights : ndarray of shape (n_groups,)
        Of the kernels, of sum 1; most are zero.
    dual : ndarray of shape (n_samples, n_tasks)
        Feasible.
    upper, lower : float
        Bounds on the value.
    n_steps : int
    """

    weights: Array
    dual: Array
    upper: float
    lower: float
    n_steps: int

    @property
    def relative_gap(self) -> float:
        """Distance of the bounds, as a share of the upper."""
        return (self.upper - self.lower) / self.upper if self.upper > 0 else 0.0


@dataclass(frozen=True)
class Problem:
    """A game over the kernels of groups of features; see :func:`find_equilibrium`."""

    features: Array
    groups: Array
    player: Player

    def group_norms(self, coef: Array) -> Array:
        """Norm of each group's coefficients, over all tasks."""
        return np.sqrt(np.bincount(self.groups, weights=(coef * coef).sum(axis=1)))


def find_equilibrium(
    features: Array,
    groups: Array,
    player: Player,
    tol: float = 1e-3,
    max_steps: int = 20_000,
    watch: Callable[[float], Any] | None = None,
) -> Equilibrium:
    r"""Solve the game over the kernels of groups of features.

    With the best weights put in, the SVM of the best kernel is

    .. math:: \min_{w, b} \; \tfrac12 \Big(\sum_g |w_g|\Big)^2
       + \sum_i \ell(t_i, \langle w, \phi_i\rangle + b),

    whose weights are in proportion to the :math:`|w_g|`. It is the saddle point of a bilinear
    function and two simple ones, which the primal-dual hybrid gradient method finds; restarts from
    the average, and steps balanced anew at each, make it fast.

    Parameters
    ----------
    features : ndarray of shape (n_samples, n_features)
    groups : ndarray of int, of shape (n_features,)
        The kernel of a group is the sum of products of its features; groups are numbered from 0.
    player : Player
    tol : float, default=1e-3
        The relative gap to reach.
    max_steps : int, default=20000
    watch : callable, optional
        Called with the relative gap at each look.
    """
    player = player.astype(np.float64)
    problem = Problem(features.astype(np.float64), groups, player)
    n_groups = int(groups.max()) + 1
    norm = operator_norm(problem.features, player.weights) / SAFETY
    # Steps of the primal against those of the dual, at first by the sizes the two may have.
    dual = player.loss.start * player.targets
    n_tasks = dual.shape[1]
    balance = math.sqrt(n_tasks) / max(float(np.linalg.norm(dual)), np.finfo(float).tiny)
    coef, intercept = np.zeros((features.shape[1], n_tasks)), np.zeros(n_tasks)
    state: tuple[Array, ...] = (coef, intercept, dual)
    anchor, count, anchor_gap = state, 0, math.inf
    total: tuple[Array, ...] | None = None
    best = Equilibrium(np.full(n_groups, 1 / n_groups), 0 * dual, math.inf, 0.0, 0)
    for n_steps in range(1, max_steps + 1):
        state = step(problem, state, norm, balance)
        total = state if total is None else tuple(a + b for a, b in zip(total, state, strict=True))
        count += 1
        if n_steps % CHECK_EVERY:
            continue
        average = tuple(part / count for part in total)
        looks = [bounds(problem, candidate, n_steps) for candidate in (state, average)]
        best = better_of(best, *looks)
        if watch is not None:
            watch(best.relative_gap)
        if best.relative_gap <= tol:
            break
        gaps = [look.upper - look.lower for look in looks]
        if min(gaps) <= RESTART_SHARE * anchor_gap or count >= RESTART_LOOKS * CHECK_EVERY:
            state = state if gaps[0] < gaps[1] else average
            moved = [float(np.linalg.norm(state[part] - anchor[part])) for part in (0, 2)]
            if min(moved) > 0:
                balance = math.sqrt(balance * moved[0] / moved[1])
            anchor, total, count, anchor_gap = state, None, 0, min(gaps)
    return best


def step(
    problem: Problem, state: tuple[Array, ...], norm: float, balance: float
) -> tuple[Array, ...]:
    """One step of both players, the dual's against where the primal is heading."""
    coef, intercept, dual = state
    features, player = problem.features, problem.player
    ahead, against = balance / norm, 1 / (balance * norm)
    measure = player.measure(dual)
    new_coef = shrink(problem, coef + ahead * (features.T @ measure), ahead)
    new_intercept = intercept + ahead * measure.sum(axis=0)
    scores = features @ (2 * new_coef - coef) + (2 * new_intercept - intercept)
    # The dual's own step: its nearest best point, had it to pay for the way there.
    pull = dual / against + player.targets - scores
    answer = player.loss.answer(pull, *player.box, 1 / against + player.loss.curvature)
    return new_coef, new_intercept, answer


def shrink(problem: Problem, coef: Array, amount: float) -> Array:
    r"""Proximal step of :math:`\tfrac{t}{2} (\sum_g |w_g|)^2`: all norms fall by the same.

    What they fall by is `t` times the sum of what is left, so the largest k of them stay with
    a fall of :math:`t c_k / (1 + t k)`, `c_k` being their sum.
    """
    norms = problem.group_norms(coef)
    ordered = np.sort(norms)[::-1]
    falls = amount * np.cumsum(ordered) / (1 + amount * np.arange(1, len(norms) + 1))
    staying = np.flatnonzero(ordered > falls)
    fall = falls[staying[-1]] if len(staying) else 0.0
    stay = norms > fall
    factors = np.where(stay, 1 - fall / np.where(stay, norms, 1), 0)
    return coef * factors[problem.groups][:, None]


def bounds(problem: Problem, state: tuple[Array, ...], n_steps: int) -> Equilibrium:
    """What the two players' positions prove."""
    coef, intercept, dual = state
    features, player = problem.features, problem.player
    norms = problem.group_norms(coef)
    upper = 0.5 * float(norms.sum()) ** 2 + player.loss_of(features @ coef + intercept)
    dual = player.project(dual)
    potentials = problem.group_norms(features.T @ player.measure(dual)) ** 2
    weights = norms / norms.sum() if norms.any() else np.full(len(norms), 1 / len(norms))
    lower = player.best_multiple(dual, float(potentials.max()))
    return Equilibrium(weights, dual, upper, lower, n_steps)


def better_of(best: Equilibrium, *looks: Equilibrium) -> Equilibrium:
    """The lowest upper bound with its kernel, and the highest lower bound with its dual point."""
    above = min((best, *looks), key=lambda look: look.upper)
    below = max((best, *looks), key=lambda look: look.lower)
    return Equilibrium(above.weights, below.dual, above.upper, below.lower, looks[0].n_steps)


def operator_norm(features: Array, weights: Array | None = None) -> float:
    """Largest singular value of the features with a column of ones, rows by their weights."""
    extended = np.column_stack([features, np.ones(len(features))])
    if weights is not None:
        extended *= np.sqrt(weights)
    if min(extended.shape) < 3:  # too small for Lanczos' method
        return float(np.linalg.norm(extended, 2))
    start = np.ones(min(extended.shape))
    return float(svds(extended, k=1, v0=start, return_singular_vectors=False)[0])
