"""One pass over the samples with a softmax model: objective, gradient, and duality gap."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from notsorandom.data.array_api import cast, to_host
from notsorandom.data.rows import Array
from notsorandom.game import Problem
from notsorandom.linear.newton_step import MIN_DECREASE, SMALLER_GAP
from notsorandom.linear.softmax_step import to_probabilities


@dataclass(frozen=True, eq=False)
class Evaluation:
    r"""A model, the gradient of the objective there, and a bound on the distance from the optimum.

    Softmax gives :math:`p` with the measure's :math:`A = \sum_i m_i a_i \phi_i^T` and
    :math:`r = \sum_i m_i a_i`. With :math:`r = 0`, the duality gap is :math:`\tfrac12 |W - A|^2`.
    Otherwise :math:`p'_{ik} = p_{ik} (1 + x_{ik})` with
    :math:`x_{ik} = \beta_k - \langle p_i, \beta \rangle` is feasible, if :math:`\beta` is a step of
    Newton's method for the intercepts, :math:`C \sum_i m_i (\mathrm{diag}(p_i) - p_i p_i^T) \beta =
    r`, and its range at most 1. It changes `A` by

    .. math:: |E|^2 \le \langle r, \beta \rangle \, \max_k C \sum_i m_i p_{ik} |\phi_i|^2

    by the inequality of Cauchy and Schwarz, and since
    :math:`\mathrm{KL}(p' | p) \le \sum_k p_k x_k^2`, the gap is at most
    :math:`\tfrac12 (|W - A| + |E|)^2 + \langle r, \beta \rangle`.

    Parameters
    ----------
    model : ndarray of shape (n_classes, n_features + 1)
        Coefficients, and the intercept last.
    primal : float
    gradient : ndarray of shape (n_classes, n_features + 1)
    intercept_step : ndarray of shape (n_classes,)
        :math:`\beta`.
    coef_gap, absolute_gap : float
        The gap with the best intercepts, about, and a bound on it with the given ones.
    """

    model: Array
    primal: float
    gradient: Array
    intercept_step: Array
    coef_gap: float
    absolute_gap: float

    @classmethod
    def from_sums(
        cls, model: Array, loss: Array, aligned: Array, products: Array, traces: Array
    ) -> Evaluation:
        """Return the evaluation, given the sums of a :class:`SoftmaxPass`."""
        gradient = -aligned
        gradient[:, :-1] += model[:, :-1]
        # The rows of the Hessian have a sum of zero. Its diagonal would lose digits otherwise.
        hessian = -products
        np.fill_diagonal(hessian, 0)
        diagonal = -hessian.sum(axis=1)
        np.fill_diagonal(hessian, diagonal * (1 + 1e-12) + np.finfo(float).tiny)
        # Intercepts with a mean of zero; the scale of the added matrix does not matter.
        hessian += diagonal.mean() / len(diagonal)
        try:
            step = np.linalg.solve(hessian, aligned[:, -1])
        except np.linalg.LinAlgError:
            step = np.full(len(model), np.nan)
        square = float(aligned[:, -1] @ step)
        norm = float(np.linalg.norm(gradient[:, :-1]))
        moved = math.sqrt(max(square, 0.0) * float(traces.max()))
        is_feasible = np.ptp(step) <= 1
        return cls(
            model=model,
            primal=0.5 * float(np.square(model[:, :-1]).sum()) + float(loss),
            gradient=gradient,
            intercept_step=step,
            coef_gap=0.5 * norm**2,
            absolute_gap=0.5 * (norm + moved) ** 2 + square if is_feasible else math.inf,
        )

    @property
    def gap(self) -> float:
        """Bound on the duality gap, relative to the primal value; infinite if it is not known."""
        gap = self.absolute_gap / max(self.primal, 1e-300)  # no division by zero
        return gap if math.isfinite(gap) else math.inf

    def improves(self, other: Evaluation, tol: float) -> bool:
        """Whether the gap, the coefficients' part of it or the objective is noticeably less."""
        decrease = other.primal - self.primal
        return (
            self.gap < SMALLER_GAP * other.gap
            or self.coef_gap < SMALLER_GAP * other.coef_gap
            or decrease > MIN_DECREASE * tol * self.primal
        )


@dataclass(frozen=True, eq=False)
class SoftmaxPass:
    """A function of one block of samples that returns its sums.

    It may be sent to another process, so it holds none of the samples. `features` computes the
    features of a block, in the type of the model.
    """

    features: Callable[[Any], Array]
    model: Array
    C: float

    def __call__(self, X: Any, targets: Any, weights: Any = None) -> tuple[Array, ...]:
        """Return sums of the loss, the measure, products of probabilities, and squared norms."""
        dtype = self.model.dtype
        features = to_host(self.features(cast(X, dtype)))
        scores = features @ self.model[:, :-1].T  # (n_rows, n_classes)
        scores += self.model[:, -1]
        return block_sums(features, scores, to_host(targets), row_mass(weights, self.C, scores))


def block_sums(
    features: Any, scores: Array, targets: Array, mass: Array
) -> tuple[Array, Array, Array, Array]:
    """Return the sums of a :class:`SoftmaxPass`; the scores are overwritten."""
    is_class = targets > 0
    truth = scores[is_class]
    largest, totals = to_probabilities(scores.T)
    losses = np.log(totals[0]) + (largest[0] - truth)
    probabilities, weighted = scores, mass[:, None] * scores
    measure = mass[:, None] * is_class - weighted
    norms = squared_norms(features)
    aligned = np.column_stack([measure.T @ features, measure.sum(axis=0, dtype=np.float64)])
    loss = losses.astype(np.float64) @ mass.astype(np.float64)
    return loss, aligned, probabilities.T @ weighted, norms @ weighted


def squared_norms(features: Any) -> Array:
    """Return the squared norm of each row."""
    if isinstance(features, np.ndarray):
        return np.einsum("ij,ij->i", features, features)
    norms: Array = features.squared_norms
    return norms


def row_mass(weights: Any, C: float, scores: Array) -> Array:
    """Return `C` times the weights of a block of rows, of shape (n_rows,), in the scores' type."""
    if weights is None:
        return np.full(len(scores), C, dtype=scores.dtype)
    return (C * to_host(weights)[:, 0].astype(np.float64)).astype(scores.dtype)


def evaluate(
    problem: Problem, features: Callable[[Any], Array], width: int, dtype: Any, model: Array
) -> Evaluation:
    """Evaluate a model, in one pass over the rows."""
    sums = problem.rows.sum_blocks(
        SoftmaxPass(features, model.astype(dtype), problem.loss.upper),
        problem.targets,
        *problem.rows.weight_columns,
        width=width,
        dtype=np.float64,
    )
    return Evaluation.from_sums(model, *sums)
