"""The linear SVM that every feature map gets, so that only the features differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from notsorandom.data.rows import Array
from notsorandom.game import LOSSES, Problem
from notsorandom.game.problem import codes_from_scores, signs_from_codes
from notsorandom.kernel import linear_scores
from notsorandom.linear.fit import DUALITY_GAP
from notsorandom.linear.newton import solve_tasks


def fit_svm(features: Array, y: Array, n_classes: int = 2) -> Callable[[Any], Array]:
    """Fit a linear SVM (hinge loss, C = 1) to features.

    Parameters
    ----------
    features : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
        Class codes from 0.
    n_classes : int

    Returns
    -------
    callable
        From features to predicted class codes.
    """
    targets = signs_from_codes(y, n_classes, features.dtype)
    problem = Problem.from_arrays(LOSSES["hinge"], targets)
    coef, intercept, _ = solve_tasks(features, problem, DUALITY_GAP)
    return lambda values: codes_from_scores(linear_scores(values, coef, intercept))
