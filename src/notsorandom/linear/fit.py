"""The linear models on a kernel's features, by the solver that suits them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from notsorandom.data.rows import Array
from notsorandom.game.losses import LogisticLoss
from notsorandom.game.problem import Problem
from notsorandom.kernel import LearnedKernel

if TYPE_CHECKING:
    from notsorandom.linear.ridge import RidgePosterior

# Relative duality gap of the final linear models: far less than what changes their accuracy.
DUALITY_GAP = 1e-3
# Features of more bytes than this are computed again in every pass.
FEATURE_BYTES = 2**28
# Rows whose products with each other are computed at a time, of features in memory.
RIDGE_BLOCK_ROWS = 2**12


@dataclass(frozen=True, eq=False)
class LinearFit:
    """Linear models on a kernel's features.

    Parameters
    ----------
    coef : ndarray of shape (n_tasks, n_features)
    intercept : ndarray of shape (n_tasks,)
    gap : float
        The largest of the relative duality gaps.
    posterior : RidgePosterior, optional
        Of the squared loss, unless there are too many features.
    """

    coef: Array
    intercept: Array
    gap: float
    posterior: RidgePosterior | None = None

    def times(self, scale: float) -> LinearFit:
        """Return the models of targets that are this many times as large."""
        return replace(self, coef=scale * self.coef, intercept=scale * self.intercept)


def fit_linear_models(
    kernel: LearnedKernel,
    problem: Problem,
    tol: float = DUALITY_GAP,
    callback: Callable[[int], Any] | None = None,
    feature_bytes: int = FEATURE_BYTES,
) -> LinearFit:
    """Fit linear models to a kernel's features, held in memory if they fit.

    One model per task. With the logistic loss, several tasks are the classes of one model.

    Parameters
    ----------
    kernel : LearnedKernel
    problem : Problem
    tol : float
        Largest relative duality gap.
    callback : callable, optional
        Called with the number of tasks that are solved.
    feature_bytes : int
        Features of more bytes are computed again in every pass.
    """
    rows, n_features = problem.rows, kernel.n_components
    scale = problem.power_of_scale()
    problem = problem.rescaled(scale)
    in_memory = rows.is_local and len(rows) * n_features * rows.dtype.itemsize <= feature_bytes
    if rows.is_sparse and kernel.linear_scale and kernel.linear_center is None:
        from notsorandom.linear.sparse_columns import MixedFeatures, can_solve, solve_sparse

        if can_solve(problem.loss):
            waves = rows.map(kernel.wave_map(rows.dtype), width=kernel.n_waves)
            features = MixedFeatures(waves, rows.array * kernel.linear_scale)
            return LinearFit(*solve_sparse(features, problem, tol, callback)).times(scale)
        rows = replace(rows, array=rows.array.toarray())  # few columns, with another loss
        problem = replace(problem, rows=rows)
    if problem.loss.is_squared_error:
        from notsorandom.linear.ridge import MAX_FEATURES

        if n_features <= MAX_FEATURES:
            found = fit_ridge(kernel, problem, tol, in_memory)
            if callback is not None:
                callback(problem.n_tasks)
            return found.times(scale)
    if problem.n_tasks > 2 and type(problem.loss) is LogisticLoss:  # not a subclass
        from notsorandom.linear.softmax import solve_features, solve_softmax

        if in_memory:
            return LinearFit(*solve_features(kernel.features_of(rows), problem, tol, callback))
        return LinearFit(
            *solve_softmax(problem, kernel.feature_map, n_features, tol, callback, kernel.width)
        )
    if in_memory:
        from notsorandom.linear.newton import solve_tasks

        solved = solve_tasks(kernel.features_of(rows), problem, tol, callback)
    else:
        from notsorandom.linear.streaming import solve_streaming

        solved = solve_streaming(
            problem, kernel.feature_map, n_features, tol, callback, kernel.width
        )
    return LinearFit(*solved).times(scale)


def fit_ridge(kernel: LearnedKernel, problem: Problem, tol: float, in_memory: bool) -> LinearFit:
    """Fit linear models with the squared loss."""
    from notsorandom.linear.newton import FLOAT64_SIZE
    from notsorandom.linear.ridge import solve_ridge

    rows, n_features = problem.rows, kernel.n_components
    if not in_memory:
        return LinearFit(*solve_ridge(problem, kernel.feature_map, n_features, tol, kernel.width))
    features = kernel.features_of(rows)
    if features.size <= FLOAT64_SIZE:
        features = features.astype(np.float64)
    held = replace(rows, array=features, block_rows=RIDGE_BLOCK_ROWS, n_total=None)
    problem = replace(problem, rows=held)
    return LinearFit(*solve_ridge(problem, lambda _: lambda block: block, n_features, tol))
