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
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from notsorandom.data.array_api import cast, to_host
from notsorandom.data.rows import Array, Rows
from notsorandom.game import Problem
from notsorandom.linear.newton import SAMPLE_GAP
from notsorandom.linear.newton_step import MAX_SLOPE
from notsorandom.linear.softmax_pass import Evaluation, evaluate
from notsorandom.linear.softmax_rows import Basis, CurvedRows
from notsorandom.linear.softmax_step import inner
from notsorandom.linear.streaming import SAMPLE_ROWS, FeatureMap, sample_size

# Largest number of steps, and of steps in a row without improvement. Five to ten are usual.
MAX_SOFTMAX_STEPS, MAX_STALLED = 200, 10
# The last steps change the intercepts alone, when the coefficients cost at most this share of the
# duality gap allowed.
COEF_SHARE = 0.7
# A step that is too long for all rows is shortened at most this often.
MAX_SHORTENINGS = 20
# The fraction of a step to try first grows by this factor after a step that was too short.
GROWTH = 1.5
# Steps that are remembered where the Hessian is that of a sample.
N_REMEMBERED = 8
# A class that is missing from a sample has this share of the mean weight of the classes.
LEAST_CLASS = 1e-3

Pair = tuple[Array, Array]  # a step, and the change of the gradient
Moving = TypeVar("Moving", bound=Any)  # rows, or what else `moved` by a step


def remembering_step(
    first_step: Callable[[Array], Array], gradient: Array, pairs: list[Pair]
) -> Array:
    """Return a step that is corrected by what earlier steps did to the gradient.

    This is the recursion of L-BFGS. `first_step` returns the step for a gradient without them, such
    as Newton's step of a sample of the rows.
    """
    rest, factors = gradient.copy(), []
    for step, change in reversed(pairs):
        factors.append(inner(step, rest) / inner(step, change))
        rest -= factors[-1] * change
    result = first_step(rest)
    for (step, change), factor in zip(pairs, reversed(factors), strict=True):
        result -= (factor + inner(change, result) / inner(step, change)) * step
    return result


def minimise(
    rows: CurvedRows, tol: float, evaluate_all: Callable[[Array], Evaluation] | None = None
) -> Evaluation:
    """Take steps from the model of `rows` until the duality gap is at most `tol`.

    If the rows are a sample, `evaluate_all` evaluates models on all rows.
    """

    def evaluate(rows: CurvedRows) -> Evaluation:
        return rows.evaluate() if evaluate_all is None else evaluate_all(rows.model)

    is_sample = evaluate_all is not None
    state = best = evaluate(rows)
    pairs: list[Pair] = []
    n_stalled, fraction = 0, 1.0
    for _ in range(MAX_SOFTMAX_STEPS):
        if best.gap <= tol or n_stalled > MAX_STALLED or not math.isfinite(state.primal):
            break
        if state.coef_gap <= COEF_SHARE * tol * state.primal:
            step = np.zeros_like(state.model)
            step[:, -1] = state.intercept_step / max(1.0, np.ptp(state.intercept_step))
            rows, new, _ = take_step(rows, state, step, 1.0, evaluate)
        else:
            if state.model[:, :-1].any():
                step = remembering_step(rows.newton_step, state.gradient, pairs)
            else:
                step = rows.first_step(state.gradient)
            changes = None
            if not is_sample:
                changes = rows.scores_of(step)
                fraction = rows.line_search(step, changes, -float(inner(state.gradient, step)))
            rows, new, fraction = take_step(rows, state, step, fraction, evaluate, changes)
            # Steps of a sample are too long by about the same factor in succession.
            if inner(new.gradient, step) < 0:
                fraction = min(1.0, GROWTH * fraction)
        pair = new.model - state.model, new.gradient - state.gradient
        if is_sample and inner(*pair) > 0:
            pairs = [*pairs[-N_REMEMBERED + 1 :], pair]
        n_stalled = 0 if new.improves(best, tol) else n_stalled + 1
        if math.isfinite(new.primal) and (new.gap, new.primal) < (best.gap, best.primal):
            best = new
        state = new
    return best


def take_step(
    rows: Moving,
    state: Evaluation,
    step: Array,
    fraction: float,
    evaluate: Callable[[Moving], Evaluation],
    changes: Any = None,
) -> tuple[Moving, Evaluation, float]:
    """Return rows and evaluation after a fraction of a step, or after less of one too long.

    The third result is the fraction taken. `changes` are the changes of the scores, if known.
    """
    gain = -float(inner(state.gradient, step))
    for _ in range(MAX_SHORTENINGS):
        moved = rows.moved(step, fraction, changes)
        new = evaluate(moved)
        slope = float(inner(new.gradient, step))
        # The slope increases from -gain. While it is small, the minimum is near.
        if slope <= MAX_SLOPE * gain:
            break
        # The zero of the slope, by linear interpolation.
        fraction *= gain / (gain + slope) if slope > gain else 0.5
    return moved, new, fraction


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

    def feature_map(_: Any) -> Callable[[Any], Any]:
        return lambda X: X

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
    basis = Basis.of(held, complete=is_sample)
    held = replace(held, array=held.map(basis.rotated, width=held.n_features))
    sample = replace(sample, rows=held, positions=None)
    model = np.zeros((problem.n_tasks, basis.directions.shape[1] + 1))
    # Intercepts alone would have the logarithms of the classes' weights.
    counts = np.bincount(sample.strata(), sample.counts, minlength=problem.n_tasks)
    model[:, -1] = np.log(np.maximum(counts, LEAST_CLASS * counts.mean()))
    curved = CurvedRows(sample, model, lambda X: X, precision)

    def evaluate_all(model: Array) -> Evaluation:
        n_numbers = max(width, features.shape[1])
        result = evaluate(problem, compute, n_numbers, precision, basis.to_features(model))
        return replace(result, model=model, gradient=basis.gradient(result.gradient))

    if not is_sample:
        best = minimise(curved, tol)
    else:
        if counts.all():
            best = minimise(curved, max(tol, SAMPLE_GAP))
            curved = replace(curved, model=best.model)
        best = minimise(curved, tol, evaluate_all)
        if not best.gap <= tol:  # the sample tells too little, as with very different weights
            everything = CurvedRows(
                problem,
                best.model,
                lambda X: basis.rotated(to_host(compute(cast(X, precision)))),
                precision,
            )
            best = min(best, minimise(everything, tol), key=lambda each: each.gap)
    return replace(best, model=basis.to_features(best.model))
