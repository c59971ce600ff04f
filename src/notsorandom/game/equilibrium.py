"""Solve a game over finitely many kernels to a certified gap."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse.linalg import svds

from notsorandom.data.rows import Array
from notsorandom.game.problem import Problem

# Steps between two computations of the gap, each of which costs as much as a few steps.
CHECK_EVERY = 50
# The average restarts when the gap has shrunk to this share, or after this many checks.
RESTART_SHARE = 0.4
RESTART_CHECKS = 30
# Steps are shorter than the norm of the matrix allows, by this factor.
SAFETY = 0.99
# Ratios of step sizes are at most this, and at least its inverse.
MAX_BALANCE = 1e100

# Coefficients (n_features, n_tasks), intercepts (n_tasks,) and dual variables (n_samples, n_tasks).
State = tuple[Array, ...]


@dataclass(frozen=True)
class Equilibrium:
    """A kernel and a dual point that are approximately best responses to each other.

    Parameters
    ----------
    weights : ndarray of shape (n_groups,)
        Weights of the groups' kernels. They sum to 1; most are zero.
    dual : ndarray of shape (n_samples, n_tasks)
        A feasible dual point.
    upper, lower : float
        Bounds on the value of the game.
    n_steps : int
        Number of primal-dual steps taken.
    state : tuple of ndarrays, optional
        Coefficients, intercept and dual point to continue from.
    """

    weights: Array
    dual: Array
    upper: float
    lower: float
    n_steps: int
    state: State | None = None

    @property
    def relative_gap(self) -> float:
        """Difference of the bounds, as a share of the upper one; 1 if that is infinite."""
        if math.isinf(self.upper):
            return 1.0
        return (self.upper - self.lower) / self.upper if self.upper > 0 else 0.0


@dataclass(frozen=True)
class FiniteGame:
    """A game over the kernels of groups of features; see :func:`find_equilibrium`."""

    features: Array
    groups: Array
    problem: Problem

    def group_norms(self, coef: Array) -> Array:
        """Norm of each group's coefficients, over all tasks."""
        return np.sqrt(np.bincount(self.groups, weights=(coef * coef).sum(axis=1)))


# Numbers that overflow end in bounds that aren't used.
@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def find_equilibrium(
    features: Array,
    groups: Array,
    problem: Problem,
    tol: float = 1e-3,
    max_steps: int = 20_000,
    callback: Callable[[float], Any] | None = None,
    start: State | None = None,
) -> Equilibrium:
    r"""Solve the game over the kernels of groups of features.

    Minimised over the weights of the kernels, the SVM problem is

    .. math:: \min_{w, b} \; \tfrac12 \left(\sum_g |w_g|\right)^2
       + \sum_i \ell(t_i, \langle w, \phi_i\rangle + b),

    and the best weights are proportional to :math:`|w_g|`. Its saddle point form is a bilinear
    function plus two functions with simple proximal steps, which the primal-dual hybrid gradient
    method solves. It restarts from the average iterate and rebalances the two step sizes.

    Parameters
    ----------
    features : ndarray of shape (n_samples, n_features)
    groups : ndarray of int, of shape (n_features,)
        The kernel of a group is the sum of products of its features; groups are numbered from 0.
    problem : Problem
    tol : float, default=1e-3
        The relative gap to reach.
    max_steps : int, default=20000
    callback : callable, optional
        Called with the relative gap at each check.
    start : tuple of ndarrays, optional
        A primal-dual point to start from; by default zero and the dual point of the game's start.
    """
    problem = problem.astype(np.float64)
    game = FiniteGame(features.astype(np.float64), groups, problem)
    n_groups = int(groups.max()) + 1
    norm = operator_norm(game.features, problem.weights) / SAFETY
    # Ratio of primal to dual step sizes, at first from the expected norms of the two.
    dual = problem.start_factor * problem.targets
    n_tasks = dual.shape[1]
    primal_norm, dual_norm = math.sqrt(n_tasks) * problem.target_scale(), np.linalg.norm(dual)
    balance = limit_balance(primal_norm / max(float(dual_norm), primal_norm / MAX_BALANCE))
    coef, intercept = np.zeros((features.shape[1], n_tasks)), np.zeros(n_tasks)
    state: State = (coef, intercept, dual) if start is None else start
    anchor, count, anchor_gap = state, 0, math.inf
    total: State | None = None
    best = Equilibrium(np.full(n_groups, 1 / n_groups), 0 * dual, math.inf, 0.0, 0)
    for n_steps in range(1, max_steps + 1):
        state = step(game, state, norm, balance)
        total = state if total is None else tuple(a + b for a, b in zip(total, state, strict=True))
        count += 1
        if n_steps % CHECK_EVERY:
            continue
        average = tuple(part / count for part in total)
        checks = [bounds(game, candidate, n_steps) for candidate in (state, average)]
        best = better_of(best, *checks)
        if callback is not None:
            callback(best.relative_gap)
        if best.relative_gap <= tol:
            break
        gaps = [check.upper - check.lower for check in checks]
        if min(gaps) <= RESTART_SHARE * anchor_gap or count >= RESTART_CHECKS * CHECK_EVERY:
            state = state if gaps[0] < gaps[1] else average
            moved = [float(np.linalg.norm(state[part] - anchor[part])) for part in (0, 2)]
            if min(moved) > 0:
                balance = limit_balance(math.sqrt(balance * moved[0] / moved[1]))
            anchor, total, count, anchor_gap = state, None, 0, min(gaps)
    return replace(best, state=state)


def limit_balance(ratio: float) -> float:
    """Return the ratio of step sizes, within limits."""
    return min(max(float(ratio), 1 / MAX_BALANCE), MAX_BALANCE)


def step(game: FiniteGame, state: State, norm: float, balance: float) -> State:
    """Take one primal-dual hybrid gradient step; the dual uses the extrapolated primal point."""
    coef, intercept, dual = state
    features, problem = game.features, game.problem
    primal_step, dual_step = balance / norm, 1 / (balance * norm)
    measure = problem.measure(dual)
    new_coef = shrink(game, coef + primal_step * (features.T @ measure), primal_step)
    new_intercept = intercept + primal_step * measure.sum(axis=0)
    scores = features @ (2 * new_coef - coef) + (2 * new_intercept - intercept)
    # Proximal step of the dual.
    shifted = dual / dual_step + problem.targets - scores
    new_dual = problem.loss.best_dual(shifted, *problem.box, 1 / dual_step + problem.loss.curvature)
    return new_coef, new_intercept, new_dual


def shrink(game: FiniteGame, coef: Array, amount: float) -> Array:
    r"""Proximal step of :math:`\tfrac{t}{2} (\sum_g |w_g|)^2`: all group norms fall by one amount.

    The amount is `t` times the sum of the remaining norms: if the largest k remain, it is
    :math:`t c_k / (1 + t k)` with `c_k` their sum.
    """
    norms = game.group_norms(coef)
    ordered = np.sort(norms)[::-1]
    falls = amount * np.cumsum(ordered) / (1 + amount * np.arange(1, len(norms) + 1))
    remaining = np.flatnonzero(ordered > falls)
    fall = falls[remaining[-1]] if len(remaining) else 0.0
    kept = norms > fall
    factors = np.where(kept, 1 - fall / np.where(kept, norms, 1), 0)
    return coef * factors[game.groups][:, None]


def bounds(game: FiniteGame, state: State, n_steps: int) -> Equilibrium:
    """Bound the value of the game by the two players' current points."""
    coef, intercept, dual = state
    features, problem = game.features, game.problem
    norms = game.group_norms(coef)
    upper = 0.5 * float(norms.sum()) ** 2 + problem.total_loss(features @ coef + intercept)
    dual = problem.project(dual)
    potentials = game.group_norms(features.T @ problem.measure(dual)) ** 2
    weights = norms / norms.sum() if norms.any() else np.full(len(norms), 1 / len(norms))
    lower = problem.stats(dual).best_scaled_objective(float(potentials.max()))
    if not math.isfinite(upper):
        upper, weights = math.inf, np.full(len(norms), 1 / len(norms))
    lower = lower if math.isfinite(lower) and np.isfinite(dual).all() else -math.inf
    return Equilibrium(weights, dual, upper, lower, n_steps)


def better_of(best: Equilibrium, *checks: Equilibrium) -> Equilibrium:
    """Combine the lowest upper bound and its weights with the highest lower bound and its dual."""
    above = min((best, *checks), key=lambda check: check.upper)
    below = max((best, *checks), key=lambda check: check.lower)
    return Equilibrium(above.weights, below.dual, above.upper, below.lower, checks[0].n_steps)


def operator_norm(features: Array, weights: Array | None = None) -> float:
    """Largest singular value of the features with a column of ones, rows scaled by weight."""
    extended = np.column_stack([features, np.ones(len(features))])
    if weights is not None:
        extended *= np.sqrt(weights)
    if min(extended.shape) < 3:  # too small for the Lanczos method
        return float(np.linalg.norm(extended, 2))
    start = np.ones(min(extended.shape))
    return float(svds(extended, k=1, v0=start, return_singular_vectors=False)[0])
