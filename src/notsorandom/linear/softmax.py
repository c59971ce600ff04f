r"""The multinomial logistic model: truncated Newton steps, to a given duality gap.

With scores :math:`f_i = W \phi_i + b`, one for each class, it minimises

.. math:: \tfrac12 |W|^2 + C \sum_i m_i \Big[ \log \sum_k e^{f_{ik}} - f_{i y_i} \Big].

The dual has a distribution :math:`p_i` over the classes for each row, and the measure
:math:`a_{ik} = C (1[y_i = k] - p_{ik})`:

.. math:: \max_p \; -\tfrac12 \Big| \sum_i m_i a_i \phi_i^T \Big|^2 + C \sum_i m_i H(p_i)
   \quad \text{s.t.} \quad \sum_i m_i a_i = 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from notsorandom.data.array_api import cast, to_host
from notsorandom.data.rows import Array, Rows
from notsorandom.game import Problem
from notsorandom.linear.newton import SAMPLE_GAP
from notsorandom.linear.newton_step import MAX_SLOPE, MIN_DECREASE, SMALLER_GAP, find_roots
from notsorandom.linear.softmax_step import (
    INTERCEPT_RIDGE,
    Preconditioner,
    conjugate_gradients,
    curve,
    inner,
    to_probabilities,
)
from notsorandom.linear.streaming import SAMPLE_ROWS, FeatureMap, sample_size

# Largest number of steps, and of steps in a row without improvement. Five to ten are usual.
MAX_SOFTMAX_STEPS, MAX_STALLED = 200, 10
# Products with the Hessian in a step. Five to twenty are usual, more only with a large `C`.
MAX_PRODUCTS = 50
# The last steps change the intercepts alone, when the coefficients cost at most this share of the
# duality gap allowed.
COEF_SHARE = 0.7
# A line search ends where the slope is at most this share of the first: the first step, from the
# zero model, is much too long.
MAX_SCORE_SLOPE = 0.02
# A step that is too long for all rows is shortened at most this often.
MAX_SHORTENINGS = 20
# The fraction of a step to try first grows by this factor after a step that was too short.
GROWTH = 1.5
# Steps that are remembered where the Hessian is that of a sample.
N_PAIRS = 8


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
        is_class = to_host(targets) > 0
        truth = scores[is_class]
        largest, totals = to_probabilities(scores.T)
        mass = row_mass(weights, self.C, len(scores), dtype)
        losses = np.log(totals[0]) + (largest[0] - truth)
        probabilities, weighted = scores, mass[:, None] * scores
        measure = mass[:, None] * is_class - weighted
        norms = np.einsum("ij,ij->i", features, features)
        aligned = np.column_stack([measure.T @ features, measure.sum(axis=0, dtype=np.float64)])
        loss = losses.astype(np.float64) @ mass.astype(np.float64)
        return loss, aligned, probabilities.T @ weighted, norms @ weighted


def row_mass(weights: Any, C: float, n_rows: int, dtype: Any) -> Array:
    """Return `C` times the weights of a block of rows, of shape (n_rows,)."""
    if weights is None:
        return np.full(n_rows, C, dtype=dtype)
    return (C * to_host(weights)[:, 0].astype(np.float64)).astype(dtype)


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


@dataclass(frozen=True, eq=False)
class Basis:
    """Principal directions of some features, of shape (n_features, n_directions), and the mean."""

    mean: Array
    directions: Array

    @classmethod
    def of(cls, rows: Rows) -> Basis:
        """Return the principal directions of all features, computed in float64."""
        mean = rows.mean().astype(np.float64)
        if len(rows) < rows.n_features:
            roots = np.sqrt(rows.weights) if rows.weights is not None else 1.0
            # Models are in the span of the rows.
            return cls(mean, np.linalg.svd((rows.array - mean) * roots, full_matrices=False)[2].T)

        def sums(X: Array, weights: Any = None) -> tuple[Array]:
            return ((X if weights is None else weights * X).T @ X,)

        (gram,) = rows.sum_blocks(
            sums, *rows.weight_columns, width=rows.n_features, dtype=np.float64
        )
        gram -= rows.total_weight * np.outer(mean, mean)
        return cls(mean, np.linalg.eigh((gram + gram.T) / 2)[1])

    def rotated(self, X: Array) -> Array:
        """Return features in the basis."""
        return (X - self.mean.astype(X.dtype)) @ self.directions.astype(X.dtype)

    def to_features(self, model: Array) -> Array:
        """Return the model on the features, given the model in the basis."""
        coef = model[:, :-1] @ self.directions.T
        return np.column_stack([coef, model[:, -1] - coef @ self.mean])

    def gradient(self, gradient: Array) -> Array:
        """Return the gradient in the basis, given the gradient on the features.

        The penalty's part of it is that of a model in the basis, whose intercept has none.
        """
        last = gradient[:, -1:]
        return np.column_stack([(gradient[:, :-1] - last * self.mean) @ self.directions, last])


@dataclass(frozen=True, eq=False)
class CurvedRows:
    """Features in memory, in the basis of their principal directions, that give the Hessian."""

    problem: Problem  # its rows are the features
    model: Array

    @cached_property
    def mass(self) -> Array:
        """`C` times the weights of the rows, a column."""
        problem = self.problem
        mass = row_mass(problem.weights, problem.loss.upper, len(problem.rows), problem.rows.dtype)
        return mass[:, None]

    def at(self, model: Array) -> CurvedRows:
        """Return the same rows for another model."""
        rows = CurvedRows(self.problem, model)
        rows.__dict__["mass"] = self.mass
        return rows

    def scores_of(self, model: Array) -> Array:
        """Return the scores of a model, of shape (n_rows, n_classes)."""
        model = model.astype(self.problem.rows.dtype)
        return self.problem.rows.map(lambda X: X @ model[:, :-1].T + model[:, -1], width=len(model))

    @cached_property
    def scores(self) -> Array:
        """The scores of the rows."""
        return self.scores_of(self.model)

    @cached_property
    def probabilities(self) -> Array:
        """The probabilities of the classes, of shape (n_rows, n_classes)."""

        def compute(_: Any, scores: Array) -> Array:
            result = scores.copy()
            to_probabilities(result.T)
            return result

        return self.problem.rows.columns_only.map(compute, self.scores, width=len(self.model))

    def sum(self, function: Callable[..., tuple[Any, ...]], *columns: Array) -> tuple[Array, ...]:
        """Sum a function of features, probabilities, masses and other columns over the rows."""
        return self.problem.rows.sum_blocks(
            function, self.probabilities, self.mass, *columns, width=len(self.model)
        )

    def newton_step(self, gradient: Array) -> Array:
        """Return a step that nearly solves Newton's equations."""
        dtype = self.problem.rows.dtype
        penalty = np.append(np.ones(self.model.shape[1] - 1), 0).astype(dtype)

        def product(step: Array) -> Array:
            def block_product(X: Array, probabilities: Array, mass: Array) -> tuple[Array]:
                changes = X @ step[:, :-1].T
                changes += step[:, -1]
                curve(changes.T, probabilities.T)
                changes *= mass
                return (np.column_stack([changes.T @ X, changes.sum(axis=0)]),)

            return self.sum(block_product)[0] + penalty * step

        def block_sums(X: Array, probabilities: Array, mass: Array) -> tuple[Array, Array]:
            variances = mass * probabilities * (1 - probabilities)
            total = variances.sum(axis=0)
            first, second = variances.T @ X, variances.T @ np.square(X)
            return np.column_stack([first, total]), np.column_stack([second, total])

        sums, squares = self.sum(block_sums)
        ridge = dtype.type(INTERCEPT_RIDGE * float(self.mass.sum(dtype=np.float64)))
        precondition = Preconditioner.from_sums(sums, squares, ridge)
        step = conjugate_gradients(product, precondition, gradient.astype(dtype), MAX_PRODUCTS)
        return step.astype(np.float64)

    def first_step(self, gradient: Array) -> Array:
        """Return Newton's step from the zero model, as if all classes had equal weights.

        The Hessian is diagonal there. Where classes are of different weights, Newton's own step
        would be longest for the lightest one.
        """
        rows = self.problem.rows
        squares = rows.sum_blocks(
            lambda X, mass: (mass[:, 0] @ np.square(X),), self.mass, dtype=np.float64
        )[0]
        step = np.zeros_like(gradient)
        step[:, :-1] = -gradient[:, :-1] / (1 + squares / len(gradient))
        return step

    def line_search(self, step: Array, gain: float) -> float:
        """Return the fraction of a step that nearly minimises the objective of these rows."""
        coef, scores, changes = self.model[:, :-1], self.scores, self.scores_of(step)
        linear, square = float(inner(coef, step[:, :-1])), float(inner(step[:, :-1], step[:, :-1]))

        def slope(fraction: float) -> float:
            factor = scores.dtype.type(fraction)

            def block_slope(_: Any, s: Array, c: Array, targets: Array, mass: Array) -> tuple[Any]:
                moved = s + factor * c
                to_probabilities(moved.T)
                moved -= targets > 0
                return (np.einsum("ij,ij->i", moved, c).astype(np.float64) @ mass,)

            columns = scores, changes, self.problem.targets, self.mass
            rows = self.problem.rows.columns_only
            (total,) = rows.sum_blocks(block_slope, *columns, width=len(step), dtype=np.float64)
            return float(linear + fraction * square + float(total[0]))

        last = slope(1.0)
        if not last > MAX_SCORE_SLOPE * gain > 0:
            return 1.0
        slopes = np.vectorize(slope, otypes=[np.float64])
        ends = np.array([-gain]), np.array([last])
        return float(find_roots(slopes, *ends, np.array([MAX_SCORE_SLOPE * gain]), 20)[0])


Pair = tuple[Array, Array]  # a step, and the change of the gradient


def remembering_step(rows: CurvedRows, gradient: Array, pairs: list[Pair]) -> Array:
    """Return Newton's step of a sample, corrected by what steps did to all rows' gradient.

    This is the recursion of L-BFGS, with the sample's Hessian as its first one.
    """
    rest, factors = gradient.copy(), []
    for step, change in reversed(pairs):
        factors.append(inner(step, rest) / inner(step, change))
        rest -= factors[-1] * change
    result = rows.newton_step(rest)
    for (step, change), factor in zip(pairs, reversed(factors), strict=True):
        result -= (factor + inner(change, result) / inner(step, change)) * step
    return result


def minimise(
    rows: CurvedRows, evaluate: Callable[[Array], Evaluation], tol: float, is_sample: bool
) -> Evaluation:
    """Take steps from the model of `rows` until the duality gap is at most `tol`.

    `evaluate` evaluates models on all rows, of which the given ones may be a sample.
    """
    state = best = evaluate(rows.model)
    pairs: list[Pair] = []
    n_stalled, fraction = 0, 1.0
    for _ in range(MAX_SOFTMAX_STEPS):
        if best.gap <= tol or n_stalled > MAX_STALLED or not math.isfinite(state.primal):
            break
        if state.coef_gap <= COEF_SHARE * tol * state.primal:
            step = np.zeros_like(state.model)
            step[:, -1] = state.intercept_step / max(1.0, np.ptp(state.intercept_step))
            new, _ = take_step(state, step, 1.0, evaluate)
        else:
            rows = rows.at(state.model)
            if state.model[:, :-1].any():
                step = remembering_step(rows, state.gradient, pairs)
            else:
                step = rows.first_step(state.gradient)
            if not is_sample:
                fraction = rows.line_search(step, -float(inner(state.gradient, step)))
            new, fraction = take_step(state, step, fraction, evaluate)
            # Steps of a sample are too long by about the same factor in succession.
            if inner(new.gradient, step) < 0:
                fraction = min(1.0, GROWTH * fraction)
        pair = new.model - state.model, new.gradient - state.gradient
        if is_sample and inner(*pair) > 0:
            pairs = [*pairs[-N_PAIRS + 1 :], pair]
        n_stalled = 0 if new.improves(best, tol) else n_stalled + 1
        if math.isfinite(new.primal) and (new.gap, new.primal) < (best.gap, best.primal):
            best = new
        state = new
    return best


def take_step(
    state: Evaluation, step: Array, fraction: float, evaluate: Callable[[Array], Evaluation]
) -> tuple[Evaluation, float]:
    """Return the evaluation after a fraction of a step, or after less of one that is too long.

    The second result is the fraction taken.
    """
    gain = -float(inner(state.gradient, step))
    for _ in range(MAX_SHORTENINGS):
        new = evaluate(state.model + fraction * step)
        slope = float(inner(new.gradient, step))
        # The slope increases from -gain. While it is small, the minimum is near.
        if slope <= MAX_SLOPE * gain:
            break
        # The zero of the slope, by linear interpolation.
        fraction *= gain / (gain + slope) if slope > gain else 0.5
    return new, fraction


# As in newton.solve_task.
@np.errstate(invalid="ignore", over="ignore", divide="ignore")
def solve_softmax(
    problem: Problem,
    feature_map: FeatureMap,
    n_features: int,
    tol: float,
    callback: Callable[[int], Any] | None = None,
    width: int = 0,
    *,
    sample_rows: int = SAMPLE_ROWS,
) -> tuple[Array, Array, float]:
    r"""Solve the multinomial logistic model, without holding the features of all samples.

    Newton's linear systems are solved by conjugate gradients, with the Hessian of a random sample
    whose features are held in memory; with few rows, of all of them. Every step evaluates the model
    in one pass over all rows. The steps start from the solution of the sample. Where the precision
    of the rows does not allow `tol`, features are computed in float64.

    Parameters
    ----------
    problem : Problem
        With the logistic loss; one task per class. The loss has `C`.
    feature_map, n_features, tol, callback, width
        As for :func:`notsorandom.linear.streaming.solve_streaming`.
    sample_rows : int
        Rows of the sample.

    Returns
    -------
    coef : ndarray of shape (n_classes, n_features)
        Their sum over the classes is zero.
    intercept : ndarray of shape (n_classes,)
        With a mean of zero.
    gap : float
        The relative duality gap.
    """
    best: Evaluation | None = None
    for precision in dict.fromkeys([problem.rows.dtype, np.dtype(np.float64)]):
        n_rows = min(sample_size(n_features, precision, sample_rows), len(problem.rows))
        result = solve_in(problem, feature_map, tol, width, n_rows, precision)
        if best is None or result.gap < best.gap:
            best = result
        if best.gap <= tol:
            break
    assert best is not None
    if callback is not None:
        callback(problem.n_tasks)
    model = best.model - best.model.mean(axis=0)
    return model[:, :-1], model[:, -1], best.gap


def solve_features(
    features: Array, problem: Problem, tol: float, callback: Callable[[int], Any] | None = None
) -> tuple[Array, Array, float]:
    """Solve the multinomial logistic model of features in memory; see :func:`solve_softmax`."""
    rows = Rows(features, problem.weights, problem.rows.pool)
    held = Problem(problem.loss, problem.targets, rows)
    n_rows, n_features = features.shape
    feature_map = lambda _: lambda X: X  # noqa: E731
    return solve_softmax(held, feature_map, n_features, tol, callback, sample_rows=n_rows)


def solve_in(
    problem: Problem, feature_map: FeatureMap, tol: float, width: int, n_rows: int, precision: Any
) -> Evaluation:
    """Solve with features computed in `precision`, and the Hessian of `n_rows` rows."""
    rows, compute = problem.rows, feature_map(precision)
    is_sample = n_rows < len(rows)
    sample = problem
    if is_sample or not rows.is_local:
        # A fixed seed: the linear model does not depend on the random state of the fit.
        sample = problem.take(rows.sample_indices(n_rows, np.random.default_rng(0)))
    features = sample.rows.map(lambda X: to_host(compute(cast(X, precision))), width=width)
    weights = sample.weights
    if is_sample:
        weights = sample.counts[:, None] * (problem.total_weight / sample.total_weight)
    weights = None if weights is None else weights.astype(precision)
    held = Rows(features, weights, rows.pool)
    basis = Basis.of(held)
    held = replace(held, array=held.map(basis.rotated, width=held.n_features))
    curved = CurvedRows(
        replace(sample, rows=held, positions=None),
        np.zeros((problem.n_tasks, basis.directions.shape[1] + 1)),
    )
    # Intercepts alone would have the logarithms of the classes' weights.
    counts = np.bincount(sample.strata(), sample.counts, minlength=problem.n_tasks)
    curved.model[:, -1] = np.log(np.maximum(counts, counts.mean() / 1e3))

    def evaluate_held(model: Array) -> Evaluation:
        return evaluate(curved.problem, lambda X: X, held.n_features, precision, model)

    def evaluate_all(model: Array) -> Evaluation:
        n_numbers = max(width, features.shape[1])
        result = evaluate(problem, compute, n_numbers, precision, basis.to_features(model))
        return replace(result, model=model, gradient=basis.gradient(result.gradient))

    if not is_sample:
        best = minimise(curved, evaluate_held, tol, is_sample=False)
    else:
        if counts.all():
            best = minimise(curved, evaluate_held, max(tol, SAMPLE_GAP), is_sample=False)
            curved = curved.at(best.model)
        best = minimise(curved, evaluate_all, tol, is_sample=True)
    return replace(best, model=basis.to_features(best.model))
