"""Linear models on many sparse columns, to a given duality gap, by products with them alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from notsorandom._utils.threads import cached_property, cut_slices
from notsorandom.data.rows import Array
from notsorandom.game import Loss, Problem
from notsorandom.game.losses import LogisticLoss
from notsorandom.linear.newton_step import relative_gap
from notsorandom.linear.softmax import LEAST_CLASS, N_REMEMBERED, Pair, remembering_step, take_step
from notsorandom.linear.softmax_pass import Evaluation, SoftmaxPass, squared_norms
from notsorandom.linear.softmax_step import inner

# Steps of L-BFGS. Frequencies of words need ten to fifty.
MAX_LBFGS_STEPS = 400
# Steps in a row without a smaller gap or objective: float32 has no more digits.
MAX_STALLED_LBFGS = 20
# Columns of a larger mean square have other units than the waves. With units that are as large as
# the mean square itself, words need twice as many steps.
LARGE_SQUARE = 30.0
# Rows that are evaluated at a time.
BLOCK_ROWS = 4096
# Relative residuals of least squares, in turn, until the duality gap is closed.
CG_TOLERANCES = tuple(10.0**-k for k in range(2, 15, 2))
# Steps of conjugate gradients for each tolerance; twenty to thirty are usual.
MAX_CG_STEPS = 1000


def can_solve(loss: Loss) -> bool:
    """Whether there is a solver for a loss on sparse columns."""
    return loss.is_squared_error or type(loss) is LogisticLoss


@dataclass(frozen=True, eq=False)
class MixedFeatures:
    """Dense features and sparse ones beside each other, as a matrix to multiply with.

    A sparse matrix of both would multiply the dense features several times as slowly.
    """

    waves: Array
    columns: Any

    __array_ufunc__ = None  # so that NumPy's arrays leave products to this class

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and of features."""
        return len(self.waves), self.waves.shape[1] + self.columns.shape[1]

    def __getitem__(self, rows: Any) -> MixedFeatures:
        return MixedFeatures(self.waves[rows], self.columns[rows])

    def __matmul__(self, right: Array) -> Array:
        n_waves = self.waves.shape[1]
        result: Array = self.waves @ right[:n_waves] + self.columns @ right[n_waves:]
        return result

    def __rmatmul__(self, left: Array) -> Array:
        return np.concatenate([left @ self.waves, left @ self.columns], axis=-1)

    def astype(self, dtype: Any, copy: bool = True) -> MixedFeatures:
        """Return the features in another type."""
        if dtype == self.waves.dtype and not copy:
            return self
        parts = (part.astype(dtype, copy=copy) for part in (self.waves, self.columns))
        return MixedFeatures(*parts)

    @property
    def units(self) -> Array:
        """Units of the coefficients: more than one for columns of a large mean square."""
        mean = float(self.columns.multiply(self.columns).sum()) / max(1, len(self.waves))
        units = np.ones(self.shape[1] + 1)
        units[self.waves.shape[1] : -1] = max(1.0, mean / LARGE_SQUARE)
        return units

    @cached_property
    def squared_norms(self) -> Array:
        """The squared norm of each row."""
        return squared_norms(self.waves) + self.columns.multiply(self.columns).sum(axis=1)


def solve_sparse(
    features: MixedFeatures,
    problem: Problem,
    tol: float,
    callback: Callable[[int], Any] | None = None,
) -> tuple[Array, Array, float]:
    """Fit linear models with the logistic or the squared loss to features, some of them sparse.

    Parameters
    ----------
    features : MixedFeatures
        Of shape (n_samples, n_features).
    problem : Problem
    tol : float
        Largest relative duality gap.
    callback : callable, optional
        Called with the number of tasks that are solved.

    Returns
    -------
    coef : ndarray of shape (n_tasks, n_features)
    intercept : ndarray of shape (n_tasks,)
    gap : float
        The largest of the relative duality gaps.
    """
    if isinstance(problem.loss, LogisticLoss):
        models, gap = solve_logistic(features, problem, tol)
        if not gap <= tol and features.waves.dtype != np.float64:  # mostly too little precision
            exact = features.astype(np.float64)
            models, gap = min((models, gap), solve_logistic(exact, problem, tol), key=itemgetter(1))
    else:
        exact, problems = features.astype(np.float64), map(problem.task, range(problem.n_tasks))
        tasks = [solve_least_squares(exact, each, tol) for each in problems]
        models, gap = np.stack([model for model, _ in tasks]), max(gap for _, gap in tasks)
    if callback is not None:
        callback(problem.n_tasks)
    return models[:, :-1], models[:, -1], gap


def solve_logistic(features: MixedFeatures, problem: Problem, tol: float) -> tuple[Array, float]:
    """Solve the multinomial model by L-BFGS, until the duality gap is at most `tol`.

    Two classes have the model of half the `C` whose coefficients are opposite: half of the
    objective of the model of one task, whose coefficients are the differences. (In units of the
    Hessian's diagonal, or from a model without waves, it takes more steps.)
    """
    is_binary = problem.n_tasks == 1
    targets, loss = problem.targets, problem.loss
    if is_binary:
        targets, loss = np.hstack([-targets, targets]), loss.times(0.5)
    weights, n_classes = problem.weights, targets.shape[1]
    blocks = [
        (features[part], targets[part], None if weights is None else weights[part])
        for part in cut_slices(len(targets), BLOCK_ROWS)
    ]
    start = np.zeros((n_classes, features.shape[1] + 1))
    counts = problem.counts.astype(np.float64) @ (targets > 0)
    start[:, -1] = np.log(np.maximum(counts, LEAST_CLASS * counts.mean()))

    def evaluate(model: Array) -> Evaluation:
        compute = SoftmaxPass(lambda X: X, model.astype(features.waves.dtype), loss.upper)
        parts = [
            [part.astype(np.float64) for part in compute(*block)]  # sums in double precision
            for block in blocks
        ]
        return Evaluation.from_sums(model, *(sum(each) for each in zip(*parts, strict=True)))

    best = minimise_by_gradients(evaluate, start, features.units, tol)
    model = best.model - best.model.mean(axis=0)
    return (model[1:] - model[:1] if is_binary else model), best.gap


@dataclass(frozen=True, eq=False)
class Point:
    """A model that takes steps."""

    model: Array

    def moved(self, step: Array, fraction: float, changes: Any = None) -> Point:
        """Return the model after a fraction of a step."""
        return Point(self.model + fraction * step)


def minimise_by_gradients(
    evaluate: Callable[[Array], Evaluation], start: Array, units: Array, tol: float
) -> Evaluation:
    """Take steps of L-BFGS until the duality gap is at most `tol`.

    The first Hessian is diagonal, a multiple of `units`.
    """
    point, state = Point(start), evaluate(start)
    best, pairs, n_stalled = state, list[Pair](), 0
    for _ in range(MAX_LBFGS_STEPS):
        if best.gap <= tol or n_stalled > MAX_STALLED_LBFGS or not math.isfinite(state.primal):
            break
        # The scale of the last step, or one that changes no coefficient by more than one.
        scale = 1 / max(float(np.abs(state.gradient / units).max()), np.finfo(float).tiny)
        if pairs:
            scale = float(inner(*pairs[-1]) / inner(pairs[-1][1], pairs[-1][1] / units))
        step = remembering_step(partial(np.multiply, -scale / units), state.gradient, pairs)
        point, new, _ = take_step(point, state, step, 1.0, lambda each: evaluate(each.model))
        pair = new.model - state.model, new.gradient - state.gradient
        pairs = [*pairs[1 - N_REMEMBERED :], pair] if inner(*pair) > 0 else []
        n_stalled = 0 if new.improves(best, tol) else n_stalled + 1
        if (new.gap, new.primal) < (best.gap, best.primal):
            best = new
        state = new
    return best


def solve_least_squares(
    features: MixedFeatures, problem: Problem, tol: float
) -> tuple[Array, float]:
    r"""Solve :math:`\tfrac12 |w|^2 + \tfrac1{2c} \sum_i m_i (t_i - f_i)^2` by conjugate gradients.

    `c` is the curvature of the loss. The intercept is the one that makes the mean residual zero, so
    that the residuals over `c` are feasible dual variables.
    """
    n_columns, curvature = features.shape[1], problem.loss.curvature
    mass, targets = problem.counts.astype(np.float64), problem.targets[:, 0].astype(np.float64)
    shares = mass / mass.sum()
    mean = shares @ features

    def gradient_of(residuals: Array) -> Array:
        measure = mass * residuals / curvature
        product: Array = measure @ features
        return product - mean * measure.sum()

    def predict(coef: Array) -> Array:
        scores: Array = features @ coef
        return scores - mean @ coef

    shape = (n_columns, n_columns)
    hessian = LinearOperator(shape, matvec=lambda w: w + gradient_of(predict(w)), dtype=np.float64)
    target_mean = shares @ targets
    right = gradient_of(targets - target_mean)
    model, gap = np.zeros(n_columns + 1), math.inf
    coef: Array = np.zeros(n_columns)
    for tolerance in CG_TOLERANCES:
        coef, _ = cg(hessian, right, coef, rtol=tolerance, maxiter=MAX_CG_STEPS)
        residuals = targets - target_mean - predict(coef)
        dual = residuals / curvature
        aligned = gradient_of(residuals)
        primal = 0.5 * coef @ coef + 0.5 * curvature * mass @ np.square(dual)
        value = (
            mass @ (targets * dual - 0.5 * curvature * np.square(dual)) - 0.5 * aligned @ aligned
        )
        new = relative_gap(float(primal), float(value))
        if new < gap:
            model, gap = np.append(coef, target_mean - mean @ coef), new
        if gap <= tol:
            break
    return model, gap
