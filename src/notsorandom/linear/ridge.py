r"""Ridge regression on learned features, in memory or in passes, with its posterior.

The model minimises :math:`\tfrac12 |w|^2 + \tfrac1{2c} \sum_i m_i (t_i - \langle w, \phi_i \rangle
- b)^2`, where `c` is the curvature of the squared loss and :math:`m_i` are sample weights. That is
the mean of the posterior of a Bayesian linear model with Gaussian noise of variance
:math:`\sigma^2` and a Gaussian prior of variance :math:`\sigma^2 / c`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from notsorandom.data.array_api import cast, to_host
from notsorandom.data.rows import Array
from notsorandom.game import Problem
from notsorandom.linear.newton_step import factorize, relative_gap

# Most features: their factor takes 4 bytes times the square of their number in a model file.
MAX_FEATURES = 2048
# Steps of refinement, each one pass: rounding of the Gram matrix to float32 needs one or two.
MAX_STEPS = 8
# Least share of a row that others have in its own prediction: rounding may make it negative.
LEAST_SHARE = 1e-6


@dataclass(frozen=True, eq=False)
class RidgePosterior:
    r"""The posterior variance of ridge regression, in units of the noise variance.

    .. math:: h(x) = 1 / n + (\phi(x) - \bar\phi)^T A^{-1} (\phi(x) - \bar\phi), \qquad
              A = \sum_i m_i (\phi_i - \bar\phi) (\phi_i - \bar\phi)^T + c I.

    Parameters
    ----------
    mean : ndarray of shape (n_features,)
        Weighted mean of the features.
    factor : ndarray of shape (n_features * (n_features + 1) / 2,)
        The lower triangle of the Cholesky factor of `A`, row after row.
    total_weight : float
        Sum of the sample weights.
    """

    mean: Array
    factor: Array
    total_weight: float

    def unpack(self) -> Array:
        """Return the lower Cholesky factor as a matrix."""
        n_features = len(self.mean)
        matrix = np.zeros((n_features, n_features))
        matrix[np.tri(n_features, dtype=bool)] = self.factor
        return matrix

    def variance_map(self) -> Callable[[Array], Array]:
        """Return a function that computes `h` of rows of features."""
        mean, factor, total_weight = self.mean, self.unpack(), self.total_weight

        def compute(features: Array) -> Array:
            centred = (features - mean).T.astype(np.float64)
            solved = linalg.solve_triangular(factor, centred, lower=True, check_finite=False)
            return 1 / total_weight + np.einsum("ij,ij->j", solved, solved)

        return compute

    def variances(self, features: Array) -> Array:
        """Return `h` of rows of features."""
        return self.variance_map()(features)

    def leave_one_out(self, features: Array, residuals: Array, weights: Array) -> Array:
        r"""Return standardised residuals of training rows, each predicted from the others.

        Without the row, its residual `r` becomes :math:`r / (1 - m h)`, and its variance
        :math:`h / (1 - m h)`. The residual is divided by the root of one plus that.

        Parameters
        ----------
        features : ndarray of shape (n_rows, n_features)
        residuals : ndarray of shape (n_rows, n_outputs)
        weights : ndarray of shape (n_rows,)
        """
        variances = self.variances(features)
        others = np.maximum(1 - weights * variances, LEAST_SHARE)
        deviations = np.sqrt(1 + variances / others)
        standardised: Array = residuals / (others * deviations)[:, None]
        return standardised


@dataclass(frozen=True, eq=False)
class GramPass:
    """A function of a block of samples that returns its sums of products."""

    features: Callable[[Any], Array]
    dtype: Any

    @np.errstate(invalid="ignore", over="ignore")
    def __call__(self, X: Any, targets: Array, weights: Array | None = None) -> tuple[Array, ...]:
        """Return sums of products of features, with targets, of both alone, and of squares."""
        features = to_host(self.features(cast(X, self.dtype)))
        targets = to_host(targets).astype(self.dtype)
        weighted = features if weights is None else features * to_host(weights).astype(self.dtype)
        mass = np.ones(len(targets), self.dtype) if weights is None else to_host(weights)[:, 0]
        products = weighted.T @ features, targets.T @ weighted
        sums = mass @ targets, mass @ np.square(targets, dtype=np.float64)
        return *products, weighted.sum(axis=0, dtype=np.float64), *sums


@dataclass(frozen=True, eq=False)
class ResidualPass:
    """A function of a block of samples that returns its sums over the residuals of models."""

    features: Callable[[Any], Array]
    dtype: Any
    coef: Array
    intercept: Array

    @np.errstate(invalid="ignore", over="ignore")
    def __call__(self, X: Any, targets: Array, weights: Array | None = None) -> tuple[Array, ...]:
        """Return sums of the residuals times features, of their squares, times targets, and all."""
        features = to_host(self.features(cast(X, self.dtype)))
        scores = (features @ self.coef.T.astype(self.dtype)).astype(np.float64) + self.intercept
        targets = to_host(targets).astype(np.float64)
        residuals = targets - scores
        weighted = residuals if weights is None else residuals * to_host(weights)
        sums = (weighted * residuals).sum(axis=0), (weighted * targets).sum(axis=0)
        return weighted.T.astype(self.dtype) @ features, *sums, weighted.sum(axis=0)


# What overflows ends in a gap that is not a number.
@np.errstate(invalid="ignore", over="ignore", divide="ignore")
def solve_ridge(
    problem: Problem,
    feature_map: Callable[[Any], Callable[[Any], Array]],
    n_features: int,
    tol: float,
    width: int = 0,
) -> tuple[Array, Array, float, RidgePosterior | None]:
    """Fit one model per output to a relative duality gap of `tol`.

    One pass computes the Gram matrix, which all outputs share. Another one computes the duality
    gap, and the gradient for a step of refinement if the gap is larger than `tol`. Where the
    precision of the rows doesn't allow `tol`, everything is computed in float64.

    Parameters
    ----------
    problem : Problem
        With the squared loss.
    feature_map : callable
        Returns, for a floating point type, the function that computes the features of a block.
    n_features : int
    tol : float
    width : int, default=0
        Numbers held per row while its features are computed, if more than `n_features`.

    Returns
    -------
    coef : ndarray of shape (n_outputs, n_features)
    intercept : ndarray of shape (n_outputs,)
    gap : float
        The largest of the relative duality gaps.
    posterior : RidgePosterior or None
        None if the Gram matrix has no factor, since its numbers overflowed.
    """
    rows, curvature = problem.rows, problem.loss.curvature
    columns = (problem.targets, *rows.weight_columns)
    width = max(width, n_features)
    coef, intercept = np.zeros((problem.n_tasks, n_features)), np.zeros(problem.n_tasks)
    gap, posterior = math.nan, None
    for precision in dict.fromkeys([rows.dtype, np.dtype(np.float64)]):
        features = feature_map(precision)
        gram, products, totals, target_totals, squares = rows.sum_blocks(
            GramPass(features, precision), *columns, width=width, dtype=np.float64
        )
        weight = problem.total_weight
        mean, target_means = totals / weight, target_totals / weight
        gram -= np.outer(totals, mean)
        gram[np.diag_indices(n_features)] += curvature
        factor = factorize(gram, precision)
        if factor is None:
            continue
        posterior = RidgePosterior(mean, factor[np.tri(n_features, dtype=bool)], weight)
        model = solve(factor, products - np.outer(target_means, totals))
        last, floor = math.inf, np.finfo(np.float64).eps * squares / (2 * curvature)
        for _ in range(MAX_STEPS):
            bias = target_means - model @ mean
            sums = rows.sum_blocks(
                ResidualPass(features, precision, model, bias),
                *columns,
                width=width,
                dtype=np.float64,
            )
            found, gradient = gap_and_gradient(model, mean, floor, curvature, *sums)
            if math.isnan(gap) or found < gap:
                coef, intercept, gap = model, bias, found
            if gap <= tol or not found < last / 2:
                break
            last = found
            model = model - solve(factor, gradient)
        if gap <= tol:
            break
    return coef, intercept, gap, posterior


def solve(factor: Array, right: Array) -> Array:
    """Solve with the matrix of a lower Cholesky factor, for the rows of `right`."""
    solution: Array = linalg.lapack.dpotrs(factor, right.T, lower=1)[0].T
    return solution


def gap_and_gradient(
    coef: Array,
    mean: Array,
    floor: Array,
    curvature: float,
    aligned: Array,
    squares: Array,
    with_targets: Array,
    totals: Array,
) -> tuple[float, Array]:
    """Return the largest relative duality gap, and gradients times the curvature.

    The residuals less their mean, over the curvature, are feasible dual variables. The bound is
    that of their best multiple. Objectives below `floor` are rounding errors.
    """
    aligned = aligned - np.outer(totals, mean)
    norms = np.einsum("kj,kj->k", coef, coef)
    primal = 0.5 * norms + 0.5 / curvature * squares
    linear = with_targets / curvature  # the mean of the residuals is zero up to rounding
    square = np.einsum("kj,kj->k", aligned, aligned) / curvature**2 + squares / curvature
    dual = np.where(square > 0, 0.5 * np.maximum(linear, 0) ** 2 / square, 0)
    dual = np.where(primal <= floor, primal, dual)
    gaps = [relative_gap(*pair) for pair in zip(primal.tolist(), dual.tolist(), strict=True)]
    return float(np.max(gaps)), curvature * coef - aligned
