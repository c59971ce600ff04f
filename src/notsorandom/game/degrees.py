r"""The game over whole degrees of the sphere: a kernel of a dozen Gegenbauer polynomials.

Up to degree 12 there are twelve kernels :math:`P_l(\langle x, z\rangle)`, in any dimension, and the
potential of each is a quadratic form in its Gram matrix. So the game needs no features, of which
degree 2 alone has 73,919 in 384 dimensions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from notsorandom.data.rows import Array, dense
from notsorandom.game.problem import Problem
from notsorandom.kernel import normalized
from notsorandom.spaces.gegenbauer import legendre

# Length of the dual player's first step, in units of the inverse norm of the largest Gram matrix.
# Step t is shorter by the root of t, as in the regret bound. After 400 rounds on 600 rows of trec
# and of digits, the bounds on the value of the game differ by 0.3 and 3 %. Equal steps cycle
# between the degrees.
FIRST_DUAL_STEP = 2.0
# Steps of the power method for the norms of the Gram matrices, which need not be exact.
POWER_STEPS = 20


def play_degrees(
    problem: Problem,
    max_degree: int,
    smoothing: float = 0.0,
    n_rounds: int = 200,
    callback: Callable[[int], Any] | None = None,
) -> tuple[Array, Array]:
    r"""Learn the weights of whole degrees, by Algorithm 2 of the paper.

    In each round the kernel player takes the degree with the largest potential, the sum over tasks
    of :math:`a^T P_l(X X^T) \, a`, and the dual player takes a projected gradient step against it.
    The weights are the kernel player's average play; later plays count more, in proportion to the
    round, since the first dual points are far from the equilibrium.

    Smoothing by :math:`\sigma` multiplies the kernel of degree `l` in `d` dimensions by
    :math:`e^{-\sigma^2 (l (l + d - 2) / (d - 1) - 1)}`: its mean over samples that diffuse on the
    sphere by :math:`\sigma`, in all directions together, relative to degree 1.

    Parameters
    ----------
    problem : Problem
        With samples of norm one in memory, of which `max_degree` Gram matrices are held.
    max_degree : int
    smoothing : float
        In radians.
    n_rounds : int
    callback : callable, optional
        Called with the number of rounds played.

    Returns
    -------
    weights : ndarray of shape (max_degree,)
        Of the degrees 1 to `max_degree`, with sum 1. Degree 0, a constant, is the intercept's.
    average_dual : ndarray of shape (n_samples, n_tasks)
        The dual player's average play.
    """
    X = problem.rows.array
    grams = np.empty((max_degree, len(problem.rows), len(problem.rows)), dtype=problem.dtype)
    for gram, values in zip(grams, legendre(dense(X @ X.T), X.shape[1], max_degree), strict=True):
        gram[...] = values
    stacked = grams.reshape(-1, grams.shape[2])  # one matrix product for all degrees
    degrees = np.arange(1, max_degree + 1)
    # Eigenvalues of the Laplacian, in units of the first.
    eigenvalues = degrees * (degrees + X.shape[1] - 2) / (X.shape[1] - 1)
    damping = np.exp(-(smoothing**2) * (eigenvalues - 1))
    # One step size for all degrees: a degree whose plays had longer steps would need fewer of them.
    norm = float((damping * centred_norms(grams, problem.counts)).max())
    first_size = FIRST_DUAL_STEP / (norm + problem.loss.curvature)
    dual, plays = problem.first_dual(), np.zeros(max_degree)
    total = np.zeros_like(dual, dtype=np.float64)
    for round_ in range(1, n_rounds + 1):
        measure = problem.measure(dual)
        responses = (stacked @ measure).reshape(max_degree, *dual.shape)
        potentials = damping * np.einsum("ik,lik->l", measure, responses, dtype=np.float64)
        best = int(potentials.argmax())
        plays[best] += round_
        total += round_ * dual
        response = responses[best] * problem.dtype.type(damping[best])
        dual = problem.step(dual, response, first_size / math.sqrt(round_))
        if callback is not None:
            callback(round_)
    return normalized(plays * damping), total / (n_rounds * (n_rounds + 1) / 2)


def centred_norms(grams: Array, weights: Array) -> Array:
    """Return the largest eigenvalue of each Gram matrix of weighted samples, by the power method.

    On measures that sum to zero, as dual points do: a constant doesn't count.
    """
    weight = (weights / weights.sum()).astype(grams.dtype)[:, None]
    # Any start that isn't constant. It is the same for a row of weight 2 and for the row twice.
    vectors = grams[:, :, :1] + grams[:, :, -1:] * grams.dtype.type(0.5)
    norms = np.ones(len(grams))
    vectors -= (weight * vectors).sum(axis=1, keepdims=True)
    for _ in range(POWER_STEPS):
        sizes = np.sqrt((weight * vectors**2).sum(axis=1, keepdims=True))
        vectors /= np.maximum(sizes, np.finfo(grams.dtype).tiny)
        vectors = grams @ (weight * vectors)
        vectors -= (weight * vectors).sum(axis=1, keepdims=True)
        norms = np.sqrt((weight * vectors**2).sum(axis=(1, 2), dtype=np.float64))
    return np.maximum(norms * weights.sum(), 1.0)
