"""Validation: from what a user passes to `fit` to the training problem."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from notsorandom._utils.parameters import check_magnitude
from notsorandom._utils.threads import ThreadPool
from notsorandom.data.array_api import to_host
from notsorandom.data.rows import Array, Rows
from notsorandom.estimators.config import fitted_loss
from notsorandom.estimators.samples import (
    coerce,
    validate_samples_and_targets,
    warn_of_scales,
)
from notsorandom.estimators.targets import (
    check_classes,
    check_sample_weight,
    check_targets,
    class_weights,
    real_targets,
    warn_of_many_classes,
)
from notsorandom.game.losses import Loss
from notsorandom.game.problem import Problem, signs_from_codes
from notsorandom.spaces import Euclidean
from notsorandom.spaces.base import Space
from notsorandom.tuning.choice import FitConfig


def read_training_data(
    estimator: Any,
    config: FitConfig,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    pool: ThreadPool | None = None,
) -> tuple[Problem, dict[str, Any]]:
    """Validate samples, targets and weights of a fit.

    Returns the training problem, and the attributes of the estimator that follow from the data.
    """
    loss, space = config.loss, config.space
    X, y, sample_weight, names = coerce(X, to_host(y), to_host(sample_weight), estimator.verbose)
    y = check_targets(y, type(estimator).__name__, estimator.loss, loss.one_sided)
    X, y = validate_samples_and_targets(estimator, X, y, names, True, loss.one_sided)
    weights = check_sample_weight(sample_weight, X.shape[0], Rows(X).dtype)
    problem, found = make_problem(
        estimator, loss, *used_rows(space, X, y, weights, pool), y.ndim == 1
    )
    if isinstance(space, Euclidean):
        warn_of_scales(problem.rows.array, getattr(estimator, "feature_names_in_", None))
    found |= {"n_samples_fit_": X.shape[0], "_weights": weights}
    found["_weighted"] = sample_weight is not None
    from notsorandom.game.duplicates import merge_duplicates  # needed by fits only

    return merge_duplicates(problem), found


def read_again(estimator: Any, X: Any, y: Any) -> Problem:
    """Validate samples and targets after a fit: they must agree with what the estimator stored.

    As many samples as at fit are taken to be the same, with the same weights.
    """
    from notsorandom.game.duplicates import merge_duplicates

    return merge_duplicates(read_labelled(estimator, X, y, known_weights=estimator._weights))


def read_labelled(
    estimator: Any, X: Any, y: Any, sample_weight: Any = None, known_weights: Array | None = None
) -> Problem:
    """Validate samples, targets and weights after a fit: they must agree with what is stored.

    `known_weights` are used if there are as many as samples.
    """
    loss = fitted_loss(estimator)
    X, y, sample_weight, names = coerce(X, to_host(y), to_host(sample_weight), estimator.verbose)
    y = check_targets(y, type(estimator).__name__, estimator.loss, loss.one_sided)
    X, y = validate_samples_and_targets(estimator, X, y, names, False, loss.one_sided)
    weights = check_sample_weight(sample_weight, X.shape[0], Rows(X).dtype)
    if known_weights is not None and len(known_weights) == X.shape[0]:
        weights = known_weights
    used = used_rows(estimator.kernel_.space, X, y, weights, None)
    return make_problem(estimator, loss, *used, y.ndim == 1, known=estimator)[0]


def used_rows(
    space: Space, X: Any, y: Array, weights: Array | None, pool: ThreadPool | None
) -> tuple[Rows, Array, Array | None]:
    """Return the rows of positive weight, their targets, and their positions if some are left out.

    See :class:`Problem` for positions.
    """
    positions = None
    if weights is not None and not (weights > 0).all():
        kept = weights > 0
        positions = np.where(kept, np.cumsum(kept) - 1, -1)
        rows, y = Rows(X).select(kept, y)
        X, weights = rows.array, weights[kept]
    return Rows(space.prepare(X), None if weights is None else weights[:, None], pool), y, positions


def make_problem(
    estimator: Any,
    loss: Loss,
    rows: Rows,
    y: Any,
    positions: Array | None,
    is_flat: bool,
    known: Any = None,
) -> tuple[Problem, dict[str, Any]]:
    """Return the training problem of valid rows, wherever they are, and attributes of the targets.

    Parameters
    ----------
    estimator : FourierEstimator
        Its name and its class weights are used.
    loss : Loss
    rows : Rows
        With weights; weights of 1 are left out.
    y : column
        Class labels, or real targets.
    positions : ndarray or None
        See :class:`Problem`.
    is_flat : bool
        Whether real targets were given in one dimension.
    known : FourierEstimator, optional
        Fitted; classes or outputs must be the same as its own.
    """
    columns, found = rows.columns_only, dict[str, Any]()
    if loss.one_sided:
        classes = np.unique(np.concatenate(list(columns.map_blocks(lambda _, y: np.unique(y), y))))
        name = type(estimator).__name__
        if known is None:
            warn_of_many_classes(name, classes, len(rows))
        check_classes(name, classes, classes if known is None else known.classes_)
        if estimator.class_weight is not None:
            rows = replace(rows, weights=class_weights(estimator.class_weight, classes, rows, y))
        n_classes, dtype = len(classes), rows.dtype

        def signs(_: Any, y: Array) -> Array:
            return signs_from_codes(np.searchsorted(classes, y), n_classes, dtype)

        targets, found["classes_"] = columns.map(signs, y), classes
    else:
        targets = real_targets(y, rows.dtype) if isinstance(y, np.ndarray) else y
        n_outputs = targets.shape[1]
        if known is not None and n_outputs != known.n_outputs_:
            raise ValueError(
                f"y has {n_outputs} columns, but had {known.n_outputs_} at fit: give as many."
            )
        found = {"n_outputs_": n_outputs, "_flat": is_flat}
    ones = columns.map_blocks(
        lambda _, *w: all((one == 1).all() for one in w), *rows.weight_columns
    )
    rows = replace(rows, weights=None) if all(ones) else rows
    problem = Problem(loss, targets, rows, positions)
    check_magnitudes(problem)
    return problem, found


def check_magnitudes(problem: Problem) -> None:
    """Raise ValueError if targets or weights are too large or too small to compute with."""

    def largest(_: Any, targets: Array, weights: Any = 1.0) -> tuple[float, float]:
        return float(np.abs(targets).max()), float(np.max(weights))

    columns = (problem.targets, *problem.rows.weight_columns)
    targets, weights = zip(*problem.rows.columns_only.map_blocks(largest, *columns), strict=True)
    check_magnitude("sample_weight, times class_weight,", max(weights))
    if not problem.loss.one_sided:
        check_magnitude("y", max(targets))
