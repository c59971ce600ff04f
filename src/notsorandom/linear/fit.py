"""The linear models on a kernel's features, by the solver that suits them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from notsorandom.data.rows import Array
from notsorandom.game.losses import LogisticLoss
from notsorandom.game.problem import Problem
from notsorandom.kernel import LearnedKernel

# Relative duality gap of the final linear models: far less than what changes their accuracy.
DUALITY_GAP = 1e-3
# Features of more bytes than this are computed again in every pass.
FEATURE_BYTES = 2**28


def fit_linear_models(
    kernel: LearnedKernel,
    problem: Problem,
    tol: float = DUALITY_GAP,
    callback: Callable[[int], Any] | None = None,
    feature_bytes: int = FEATURE_BYTES,
) -> tuple[Array, Array, float]:
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

    Returns
    -------
    coef : ndarray of shape (n_tasks, n_features)
    intercept : ndarray of shape (n_tasks,)
    gap : float
        The largest of the relative duality gaps.
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
            coef, intercept, gap = solve_sparse(features, problem, tol, callback)
            return scale * coef, scale * intercept, gap
        rows = replace(rows, array=rows.array.toarray())  # few columns, with another loss
        problem = replace(problem, rows=rows)
    if problem.n_tasks > 2 and type(problem.loss) is LogisticLoss:  # not a subclass
        from notsorandom.linear.softmax import solve_features, solve_softmax

        if in_memory:
            return solve_features(kernel.features_of(rows), problem, tol, callback)
        return solve_softmax(problem, kernel.feature_map, n_features, tol, callback, kernel.width)
    if in_memory:
        from notsorandom.linear.newton import solve_tasks

        coef, intercept, gap = solve_tasks(kernel.features_of(rows), problem, tol, callback)
    else:
        from notsorandom.linear.streaming import solve_streaming

        coef, intercept, gap = solve_streaming(
            problem, kernel.feature_map, n_features, tol, callback, kernel.width
        )
    return scale * coef, scale * intercept, gap
