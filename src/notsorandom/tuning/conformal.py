"""Rows held out of the search for features, and the quantiles of what a model says of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from notsorandom._utils.parameters import check_number
from notsorandom.data.rows import Array
from notsorandom.game.problem import Problem
from notsorandom.kernel import LearnedKernel
from notsorandom.linear.fit import LinearFit, fit_linear_models
from notsorandom.tuning.held_out import row_counts

# One in HELD_OUT_RATIO of the rows, at most MOST_HELD_OUT. On the regressions of
# benchmarks/intervals.py that costs nothing, on validation rows of 17 tables (benchmarks/tables.py)
# 0.12 (0.24) points of R^2. With 300 rows the width of an interval is known to 5 %, with 2,000 to
# 2 %.
HELD_OUT_RATIO, MOST_HELD_OUT = 5, 2000
# Sums of weights are known to this relative precision.
ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class HeldOutScores:
    """What a model says of rows that its features were not learned from: higher is worse.

    For real targets, the absolute residuals in units of the model's deviation at the row. For
    classes, minus the logarithm of the probability of the true class.

    Parameters
    ----------
    scores : ndarray of shape (n_rows, n_outputs)
    counts : ndarray of shape (n_rows,)
        Sample weights as numbers of samples.
    """

    scores: Array
    counts: Array

    @classmethod
    def of(cls, scores: Array, counts: Array) -> HeldOutScores:
        """Return the scores of rows, stored in single precision."""
        return cls(scores.astype(np.float32), counts.astype(np.float32))

    @classmethod
    def of_residuals(cls, residuals: Array, problem: Problem) -> tuple[HeldOutScores, Array]:
        """Return the scores of standardised residuals, and the deviation of each output's noise."""
        counts = row_counts(problem)
        noise = np.sqrt(np.average(np.square(residuals, dtype=np.float64), axis=0, weights=counts))
        return cls.of(np.abs(residuals), counts), noise

    @property
    def max_coverage(self) -> float:
        """The largest coverage that so many rows allow."""
        total = float(self.counts.sum(dtype=np.float64))
        return total / (total + 1)

    def quantiles(self, coverage: Any) -> Array:
        r"""Return the thresholds that cover shares of new samples.

        Of `n` exchangeable scores and a new one, the new one is at most the
        :math:`\lceil (n + 1) \cdot` coverage :math:`\rceil`-th smallest with at least that
        probability.

        Parameters
        ----------
        coverage : float or array-like of float

        Returns
        -------
        ndarray of shape (n_outputs,) or (n_outputs, n_coverages)
        """
        total = float(self.counts.sum(dtype=np.float64))
        orders = np.argsort(self.scores, axis=0, kind="stable")
        sums = np.cumsum(self.counts[orders], axis=0, dtype=np.float64)  # (n_rows, n_outputs)
        thresholds = []
        for each in check_coverage(coverage):
            least = each * (total + 1)
            if least > total * (1 + ROUNDING):
                largest = math.floor(1e4 * self.max_coverage) / 1e4
                raise ValueError(
                    f"coverage={each:g} is not possible with {total:.9g} held-out samples: "
                    f"the largest possible one is {largest:.4f}. Give at most that, fit to more "
                    "samples, or call calibrate with other ones."
                )
            numbers = np.minimum((sums < least * (1 - ROUNDING)).sum(axis=0), len(sums) - 1)
            chosen = np.take_along_axis(orders, numbers[None], axis=0)
            thresholds.append(np.take_along_axis(self.scores, chosen, axis=0)[0])
        result = np.stack(thresholds, axis=-1).astype(np.float64)
        return result if np.ndim(coverage) else result[:, 0]


def check_coverage(coverage: Any) -> list[float]:
    """Return coverages as a list; raise ValueError unless they are between 0 and 1."""
    is_list = isinstance(coverage, (list, tuple, np.ndarray)) and np.ndim(coverage) == 1
    values = list(coverage) if is_list else [coverage]
    for each in values:
        check_number("coverage", each, above=0, below=1)
    if not values:
        raise ValueError("coverage=[] is not allowed: give a number between 0 and 1, or several.")
    return [float(each) for each in values]


def choose_held_out(n_rows: int, size: int | None) -> Array:
    """Return the sorted indices of rows that the game is not played on.

    They don't depend on the random state, so that they are the same if a game is continued. None
    for `size` is the usual number.
    """
    if size is None:
        size = min(n_rows // HELD_OUT_RATIO, MOST_HELD_OUT)
    return np.sort(np.random.default_rng(0).choice(n_rows, size=size, replace=False))


def score_held_out(
    kernel: LearnedKernel, problem: Problem, fit: LinearFit, game: Problem, held_out: Array
) -> tuple[HeldOutScores, Array]:
    """Return the scores of held-out rows, and the deviation of the noise for each output.

    Each row is predicted from all others. Models with too many features for that, which have no
    posterior, are fitted to the rows of the game for it.

    Parameters
    ----------
    kernel : LearnedKernel
    problem : Problem
        All rows.
    fit : LinearFit
        Models of all rows.
    game : Problem
        All rows; those that were held out weigh nothing.
    held_out : ndarray of int
    """
    part = problem.take(held_out)
    if fit.posterior is None:
        fit = fit_linear_models(kernel, game)
    scores = kernel.scores(part.rows, fit.coef, fit.intercept).astype(np.float64)
    residuals = part.targets - scores
    if fit.posterior is not None:
        weights = part.counts.astype(np.float64)
        features = kernel.features_of(part.rows)
        residuals = fit.posterior.leave_one_out(features, residuals, weights)
    return HeldOutScores.of_residuals(residuals, part)
