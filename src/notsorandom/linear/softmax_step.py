"""Parts of Newton's method for softmax models: probabilities, Hessian, conjugate gradients.

Scores and probabilities have the shape (..., n_classes, n_rows). Models have the shape (...,
n_classes, n_columns + 1), the intercept last. With one class, the scores are log odds against a
second class whose score is zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from notsorandom.data.rows import Array

# The linear system of a step is solved until its residual is this share of the first: an exact
# solution would hardly be closer to the optimum. Of 0.1, 0.3 and 0.5, this took the least products
# with 77 classes and C = 10.
LEAST_RESIDUAL = 0.3
# Added to the curvature of the unpenalised intercepts, as a share of the rows' weight: they have
# nearly none where all rows are far on the right side.
LOGISTIC_INTERCEPT_RIDGE = 1e-7
# Avoids divisions by zero.
TINY = 1e-30


def to_probabilities(scores: Array) -> tuple[Array, Array]:
    """Replace scores by probabilities, in place.

    Returns the largest scores, and the sums of the exponentials of the differences from them, of
    shape (..., 1, n_rows).
    """
    largest = scores.max(axis=-2, keepdims=True)
    has_one = scores.shape[-2] == 1
    if has_one:
        largest = np.maximum(largest, 0)
    scores -= largest
    np.exp(scores, out=scores)
    totals = scores.sum(axis=-2, keepdims=True)
    if has_one:
        totals = totals + np.exp(-largest)
    scores /= totals
    return largest, totals


def curve(changes: Array, probabilities: Array) -> Array:
    r"""Multiply changes of the scores by :math:`\mathrm{diag}(p_i) - p_i p_i^T`, in place.

    It is the Hessian of a row's loss.
    """
    changes *= probabilities
    changes -= probabilities * changes.sum(axis=-2, keepdims=True)
    return changes


def inner(left: Array, right: Array) -> Array:
    """Return the inner products of models."""
    return np.einsum("...ij,...ij->...", left, right)


@dataclass(frozen=True, eq=False)
class Preconditioner:
    r"""Solve approximately with the Hessian, as if it had no products of classes or columns.

    Class `k` has the curvature :math:`v_i = m_i p_{ik} (1 - p_{ik})` at each row. Its rows are
    centred at their mean with these weights, which separates coefficients and intercept. The rest
    is diagonal for features rotated to their principal directions, if all rows had equal weights.

    Parameters
    ----------
    means : ndarray of shape (..., n_classes, n_columns)
    curvatures : ndarray of shape (..., n_classes, n_columns + 1)
        The diagonal of the Hessian of the centred rows.
    """

    means: Array
    curvatures: Array

    @classmethod
    def from_sums(cls, sums: Array, squares: Array, ridge: Array) -> Preconditioner:
        """Return it, given sums of rows and of their squares, times the rows' curvatures.

        The last column of both is the sum of the curvatures. `ridge` is added to the intercept's.
        """
        total = sums[..., -1:]
        means = sums[..., :-1] / (total + TINY)
        curvatures = squares + 1
        curvatures[..., :-1] -= np.minimum(total * np.square(means), squares[..., :-1])
        curvatures[..., -1] += ridge - 1
        return cls(means, curvatures)

    def __call__(self, residuals: Array) -> Array:
        """Return the approximate solution; that of several classes has a sum of zero.

        The optimum has, and so has every gradient.
        """
        steps = residuals.copy()
        steps[..., :-1] -= self.means * residuals[..., -1:]
        steps /= self.curvatures
        steps[..., -1] -= np.einsum("...i,...i->...", self.means, steps[..., :-1])
        if steps.shape[-2] > 1:
            steps -= steps.mean(axis=-2, keepdims=True)
        return steps


def conjugate_gradients(
    product: Callable[[Array], Array],
    precondition: Callable[[Array], Array],
    gradient: Array,
    max_products: int,
) -> Array:
    """Return steps that nearly solve Newton's equations; `product` multiplies by the Hessian."""
    steps, residuals = np.zeros_like(gradient), -gradient
    directions = precondition(residuals)
    size = inner(residuals, directions)
    allowed = LEAST_RESIDUAL**2 * size
    for _ in range(max_products):
        curved = product(directions)
        lengths = size / np.maximum(inner(directions, curved), TINY)
        # Solved systems wait for the others: rounding errors would grow.
        lengths = np.where(size > allowed, lengths, 0)[..., None, None]
        steps += lengths * directions
        residuals -= lengths * curved
        scaled = precondition(residuals)
        last, size = size, inner(residuals, scaled)
        if np.all(size <= allowed):
            break
        directions = scaled + (size / np.maximum(last, TINY))[..., None, None] * directions
    return steps
