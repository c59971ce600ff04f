"""Parts of Newton's method for softmax models: probabilities, Hessian, conjugate gradients.

Scores and probabilities have the shape (..., n_classes, n_rows). Models have the shape (...,
n_classes, n_columns + 1), the intercept last. With one class, the scores are log odds against a
second class whose score is zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from notsorandom.data.rows import Array

# The linear system of a step is solved until its residual is this share of the first: an exact
# solution would hardly be closer to the optimum. Of 0.1, 0.3 and 0.5, this took the least products
# with 77 classes and C = 10.
LEAST_RESIDUAL = 0.3
# Added to the curvature of the unpenalised intercepts, as a share of the rows' weight: they have
# nearly none where all rows are far on the right side.
LOGISTIC_INTERCEPT_RIDGE = 1e-7
# The heaviest rows of a class have at most this many times the curvature of its other rows: the
# difference of their inverses would lose all digits in float32.
MAX_CURVATURE_RATIO = 1e5
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
class HeaviestRows:
    r"""Some rows of each class, whose products of columns a preconditioner has too.

    With :math:`R` a class's centred rows times the roots of their curvatures and the diagonal `D`
    of all other rows, Woodbury's identity gives

    .. math:: (D + R^T R)^{-1} = D^{-1} - D^{-1} R^T (I + R D^{-1} R^T)^{-1} R D^{-1}.

    Parameters
    ----------
    scaled : ndarray of shape (n_classes, n_rows, n_columns)
        :math:`R D^{-1}`.
    inverse : ndarray of shape (n_classes, n_rows, n_rows)
    """

    scaled: Array
    inverse: Array

    @classmethod
    def of(cls, rows: Array, diagonal: Array) -> HeaviestRows:
        """Return it, given `R` and `D` of each class."""
        scaled = rows / diagonal[:, None]
        gram = (rows @ np.swapaxes(scaled, 1, 2)).astype(np.float64)
        traces = np.trace(gram, axis1=1, axis2=2)
        factors = np.minimum(1, MAX_CURVATURE_RATIO / np.maximum(traces, TINY))[:, None, None]
        inverse = np.linalg.inv(np.eye(gram.shape[1]) + factors * gram) * factors
        return cls(scaled, inverse.astype(rows.dtype))

    def correction(self, residuals: Array) -> Array:
        """Return what the rows subtract from the solution with the diagonal."""
        products = self.inverse @ (self.scaled @ residuals[..., None])
        return (np.swapaxes(products, 1, 2) @ self.scaled)[:, 0]


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
    heaviest : HeaviestRows, optional
        Rows that the diagonal leaves out.
    """

    means: Array
    curvatures: Array
    heaviest: HeaviestRows | None = None

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

    def with_rows(self, rows: Array, variances: Array) -> Preconditioner:
        """Return the preconditioner that treats some rows of each class exactly.

        Parameters
        ----------
        rows : ndarray of shape (n_classes, n_rows, n_columns)
        variances : ndarray of shape (n_classes, n_rows)
            Their curvatures.
        """
        rows = (rows - self.means[:, None]) * np.sqrt(variances)[..., None]
        curvatures = self.curvatures.copy()
        curvatures[:, :-1] -= np.einsum("kri,kri->ki", rows, rows)
        np.maximum(curvatures[:, :-1], 1, out=curvatures[:, :-1])
        heaviest = HeaviestRows.of(rows, curvatures[:, :-1])
        return replace(self, curvatures=curvatures, heaviest=heaviest)

    def __call__(self, residuals: Array) -> Array:
        """Return the approximate solution; that of several classes has a sum of zero.

        The optimum has, and so has every gradient.
        """
        steps = residuals.copy()
        steps[..., :-1] -= self.means * residuals[..., -1:]
        correction = self.heaviest.correction(steps[:, :-1]) if self.heaviest is not None else None
        steps /= self.curvatures
        if correction is not None:
            steps[:, :-1] -= correction
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
