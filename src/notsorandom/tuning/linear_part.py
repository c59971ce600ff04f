r"""A linear part of the kernel: the columns of the samples beside the waves.

The model is :math:`f(x) = \langle w, \phi(x) \rangle + \langle u, s (x - c) \rangle + b` under the
one penalty :math:`\tfrac12 |w|^2 + \tfrac12 |u|^2`. The square of :math:`s` is the weight of the
linear part, in units in which both parts have a mean square of one. A linear model without waves is
fitted first: the game starts from its dual variables, and finds waves for what it leaves over.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import log_softmax

from notsorandom._utils.threads import cached_property
from notsorandom.data.array_api import namespace, to_host
from notsorandom.data.rows import Array, Rows
from notsorandom.game.losses import LogisticLoss, Loss
from notsorandom.game.problem import Problem
from notsorandom.kernel import LearnedKernel, linear_kernel
from notsorandom.linear.fit import fit_linear_models
from notsorandom.linear.sparse_columns import can_solve
from notsorandom.spaces.view import MAX_DIRECTIONS, View

# Most columns of dense samples: solvers hold a square matrix of the columns.
MAX_LINEAR_COLUMNS = 4096
# Relative duality gap of the model that a game starts from: its scores matter, not its objective.
LINEAR_GAP = 0.1
# Log odds of the classes are at most this: of probabilities that float32 holds.
MAX_LOG_ODDS = 16.0


def why_not_linear(rows: Rows, loss: Loss) -> str:
    """Return why the samples and the loss admit no linear part; empty if they do."""
    is_wide = rows.is_sparse and rows.n_features > MAX_DIRECTIONS
    if is_wide and not rows.is_local:
        return f"on a cluster, sparse samples of more than {MAX_DIRECTIONS} columns can't have one"
    if is_wide and not can_solve(loss):
        return (
            f"sparse samples of more than {MAX_DIRECTIONS} columns can have a linear part only "
            "with the loss 'logistic' or 'squared'"
        )
    if not is_wide and rows.n_features > MAX_LINEAR_COLUMNS:
        return f"dense samples of more than {MAX_LINEAR_COLUMNS} columns can't have a linear part"
    return ""


def to_game_scores(scores: Array, loss: Loss) -> Array:
    """Return scores as the game has them: one-versus-rest log odds of a multinomial model."""
    if scores.shape[-1] < 3 or type(loss) is not LogisticLoss:
        return scores
    logarithms = log_softmax(scores.astype(np.float64), axis=-1)
    with np.errstate(divide="ignore"):
        odds = logarithms - np.log(-np.expm1(logarithms))
    return np.clip(odds, -MAX_LOG_ODDS, MAX_LOG_ODDS).astype(scores.dtype)


@dataclass(frozen=True, eq=False)
class LinearPart:
    """The columns of a problem's samples, as features of mean square one.

    Parameters
    ----------
    problem : Problem
        With the samples as the unprojected view has them.
    view : View
        The unprojected view; see :meth:`notsorandom.spaces.view.View.unprojected`.
    """

    problem: Problem
    view: View

    @classmethod
    def of(cls, problem: Problem, view: View, viewed: Problem) -> LinearPart:
        """Return the linear part, given the problem as it is and as a view has it."""
        unprojected = view.unprojected(problem.rows)
        has_all = not view.is_projected and not view.is_selection
        if has_all and type(unprojected) is type(view):
            return cls(viewed, unprojected)
        return cls(problem.viewed(unprojected), unprojected)

    @cached_property
    def scale(self) -> float:
        """The factor that gives the columns a mean square of one around their centre."""

        def squares(X: Any, w: Any = 1.0) -> tuple[Array]:
            if sparse.issparse(X):
                numbers = X.multiply(X).sum(axis=1)
            else:
                numbers = to_host(namespace(X).sum(X * X, axis=1))
            return ((np.ravel(to_host(w)) * numbers).sum(dtype=np.float64),)

        rows = self.problem.rows
        (total,) = rows.sum_blocks(squares, *rows.weight_columns, dtype=np.float64)
        mean = float(total) / rows.total_weight
        if rows.is_sparse and self.view.space.is_vector_space:
            mean -= float(np.square(rows.mean(), dtype=np.float64).sum())
        return mean**-0.5 if mean > 0 else 1.0

    @property
    def kernel(self) -> LearnedKernel:
        """The kernel of the columns alone."""
        return linear_kernel(self.problem.rows, self.scale)

    def game_problem(self, problem: Problem, C: float) -> Problem:
        """Return the problem of a game that is added to the linear models with this `C`.

        The models are fitted to the rows that have a weight in the game.
        """
        kernel, rows = self.kernel, replace(self.problem.rows, weights=problem.rows.weights)
        # In passes wherever the rows are, so that the game is the same.
        problem_at_C = replace(self.problem.with_C(C), rows=rows)
        found = fit_linear_models(kernel, problem_at_C, LINEAR_GAP, feature_bytes=0)
        compute = kernel.score_map(rows.dtype, found.coef, found.intercept)
        loss = problem.loss
        scores = rows.map(lambda X: to_game_scores(to_host(compute(X)), loss), width=kernel.width)
        return replace(problem, linear_scores=scores)

    def extended(self, kernel: LearnedKernel, view: View, weight: float) -> LearnedKernel:
        """Return a view's kernel with the linear part, in the unprojected view."""
        scale = self.scale * weight**0.5
        lifted = view.lift(kernel.frequencies)
        return replace(kernel, space=self.view.space, frequencies=lifted, linear_scale=scale)
