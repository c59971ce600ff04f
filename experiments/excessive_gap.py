"""Nesterov's excessive gap technique on finite spaces, a reference for other solvers."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np

from notsorandom.data.rows import Array
from notsorandom.game.equilibrium import FiniteGame, operator_norm, shrink
from notsorandom.game.losses import QuadraticLoss
from notsorandom.game.problem import Problem


@dataclass(frozen=True)
class GapRecord:
    """Bounds on the value of the game after some steps.

    Parameters
    ----------
    n_steps : int
    upper, lower : float
        Attained by the two points: the objectives of the model and of the dual point.
    theory : float
        The bound of the theorem on their difference.
    """

    n_steps: int
    upper: float
    lower: float
    theory: float


def excessive_gap(
    features: Array, groups: Array, problem: Problem, steps: Collection[int]
) -> Iterator[GapRecord]:
    r"""Solve a game over finitely many kernels for the hinge loss; yield bounds after some steps.

    Appendix A.3 of the paper suggests this method. The game is the saddle point of

    .. math:: \tfrac12 \left(\sum_g |w_g|\right)^2 + \langle a, t - \Phi w\rangle

    over :math:`\sum_g |w_g| \le \rho` and the feasible dual points. Both sides are smoothed by half
    the squared distance from a centre, with weights :math:`\mu_1` and :math:`\mu_2`, such that the
    smoothed objective of the model is at most the dual point's. A step keeps this "excessive
    gap" while one of the weights shrinks by the factor :math:`1 - \tau_k`, :math:`\tau_k = 2 /
    (k + 3)`, both in turn. With :math:`D_1` and :math:`D_2` the largest values of the two smoothing
    terms, the gap is at most :math:`\mu_1 D_1 + \mu_2 D_2 = O(\|\Phi\| \sqrt{D_1 D_2} / k)`
    (Nesterov, SIAM J. Optim. 16, 2005).

    Parameters
    ----------
    features : ndarray of shape (n_samples, n_features)
    groups : ndarray of int, of shape (n_features,)
        As in :func:`notsorandom.game.find_equilibrium`.
    problem : Problem
        Of one task, with the hinge loss and without sample weights.
    steps : collection of int
        Numbers of steps after which bounds are computed.
    """
    problem = problem.astype(np.float64)
    loss = problem.loss
    is_hinge = isinstance(loss, QuadraticLoss) and loss.one_sided and not loss.curvature
    if not is_hinge or problem.n_tasks > 1 or problem.weights is not None:
        weights = "no" if problem.weights is None else "with"
        raise ValueError(
            f"The excessive gap technique got {loss}, {problem.n_tasks} tasks and {weights} sample "
            "weights. It is for the hinge loss with one task and no weights: use find_equilibrium."
        )
    if not steps:
        raise ValueError("steps is empty: give at least one number of steps, as in [1, 10, 100].")
    game = FiniteGame(features.astype(np.float64), groups, problem)
    features, targets, center = game.features, problem.targets, problem.first_dual()
    # The model at zero has an objective of at most C n, so the best one has no larger norm.
    radius = math.sqrt(2 * loss.upper * len(targets))
    norm = operator_norm(features)
    farthest = np.maximum(np.abs(center), loss.upper - np.abs(center))
    size1, size2 = 0.5 * radius**2, 0.5 * float(np.square(farthest).sum())
    # Their product is 2 |Phi|^2, and both terms of the bound are equal.
    mu1 = math.sqrt(2) * norm * math.sqrt(size2 / size1)
    mu2 = math.sqrt(2) * norm * math.sqrt(size1 / size2)

    def best_coef(near: Array, dual: Array, weight: float) -> Array:
        """Minimise the first player's side plus `weight` / 2 times the squared distance."""
        coef = shrink(game, near + features.T @ dual / weight, 1 / weight)
        return limited(game, coef, radius)

    def best_dual(near: Array, coef: Array, weight: float) -> Array:
        return problem.project(near + (targets - features @ coef) / weight)

    zero = np.zeros((features.shape[1], 1))
    dual = best_dual(center, zero, mu2)
    coef = best_coef(zero, dual, mu1)
    for k in range(max(steps)):
        tau = 2 / (k + 3)
        if k % 2 == 0:
            prox = best_coef(zero, dual, mu1)
            answer = best_dual(center, (1 - tau) * coef + tau * prox, mu2)
            dual = (1 - tau) * dual + tau * answer
            coef = (1 - tau) * coef + tau * best_coef(prox, answer, (1 - tau) * mu1 / tau)
            mu1 *= 1 - tau
        else:
            prox = best_dual(center, coef, mu2)
            answer = best_coef(zero, (1 - tau) * dual + tau * prox, mu1)
            coef = (1 - tau) * coef + tau * answer
            dual = (1 - tau) * dual + tau * best_dual(prox, answer, (1 - tau) * mu2 / tau)
            mu2 *= 1 - tau
        if k + 1 in steps:
            yield record(game, coef, dual, k + 1, mu1 * size1 + mu2 * size2)


def limited(game: FiniteGame, coef: Array, radius: float) -> Array:
    """Return the nearest coefficients whose group norms add up to at most the radius."""
    norms = game.group_norms(coef)
    if norms.sum() <= radius:
        return coef
    ordered = np.sort(norms)[::-1]
    falls = (np.cumsum(ordered) - radius) / np.arange(1, len(norms) + 1)
    fall = falls[np.flatnonzero(ordered > falls)[-1]]
    factors = np.maximum(norms - fall, 0) / np.maximum(norms, np.finfo(float).tiny)
    limited_coef: Array = coef * factors[game.groups][:, None]
    return limited_coef


def record(game: FiniteGame, coef: Array, dual: Array, n_steps: int, theory: float) -> GapRecord:
    """Return the objectives of both points."""
    problem, scores = game.problem, game.features @ coef
    # The loss is piecewise linear in the intercept, with its corners where a margin is 1.
    corners = (problem.targets - scores)[:, 0]
    order = np.argsort(corners)
    low, high = 0, len(order) - 1
    while high - low > 2:  # it is convex: discard thirds
        third = (high - low) // 3
        left, right = low + third, high - third
        values = [problem.total_loss(scores + corners[order[one]]) for one in (left, right)]
        low, high = (low, right) if values[0] <= values[1] else (left, high)
    losses = [problem.total_loss(scores + corners[order[one]]) for one in range(low, high + 1)]
    upper = 0.5 * float(game.group_norms(coef).sum()) ** 2 + min(losses)
    highest = float(np.square(game.group_norms(game.features.T @ dual)).max())
    return GapRecord(n_steps, upper, problem.stats(dual).objective(highest), theory)
