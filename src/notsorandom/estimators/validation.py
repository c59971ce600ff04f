"""Validation: from what a user passes to `fit` to the training problem."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_consistent_length, validate_data

from notsorandom._utils.parameters import check_magnitude
from notsorandom._utils.threads import ThreadPool
from notsorandom.data.array_api import in_host_memory, is_device_array, to_host
from notsorandom.data.rows import FLOATS, Array, Rows, dense
from notsorandom.estimators.cautions import warn_of_many_classes, warn_of_scales
from notsorandom.estimators.config import fitted_loss
from notsorandom.estimators.targets import check_classes, check_targets, real_targets
from notsorandom.game.losses import Loss
from notsorandom.game.problem import Problem, signs_from_codes
from notsorandom.spaces import Euclidean
from notsorandom.spaces.base import Space
from notsorandom.tuning.choice import FitConfig

# Up to this many samples are sorted and duplicates merged, so that the model depends on nothing but
# the samples and their weights, to the last digit.
DEDUPLICATED_ROWS = 1024
# Columns compared at a time while sorting.
SORT_COLUMNS = 64


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
    return deduplicate(problem), found


def read_again(estimator: Any, X: Any, y: Any) -> Problem:
    """Validate samples and targets after a fit: they must agree with what the estimator stored.

    As many samples as at fit are taken to be the same, with the same weights.
    """
    loss = fitted_loss(estimator)
    X, y, _, names = coerce(X, to_host(y), None, estimator.verbose)
    y = check_targets(y, type(estimator).__name__, estimator.loss, loss.one_sided)
    X, y = validate_samples_and_targets(estimator, X, y, names, False, loss.one_sided)
    weights = estimator._weights
    if weights is not None and len(weights) != X.shape[0]:
        weights = None
    used = used_rows(estimator.kernel_.space, X, y, weights, None)
    return deduplicate(make_problem(estimator, loss, *used, y.ndim == 1, known=estimator)[0])


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


def deduplicate(problem: Problem) -> Problem:
    """Sort up to `DEDUPLICATED_ROWS` samples and merge duplicates into weights.

    Larger data are returned unchanged.
    """
    rows = problem.rows
    if len(rows) > DEDUPLICATED_ROWS:
        return problem
    first, which = sort_and_deduplicate(rows.array, problem.targets)
    counts = np.bincount(which, weights=problem.counts)[:, None].astype(rows.dtype)
    weights = None if (counts == 1).all() else counts
    taken = problem.take(first)
    merged = replace(taken.rows, weights=weights)
    return replace(taken, rows=merged, positions=problem.moved(which))


def check_magnitudes(problem: Problem) -> None:
    """Raise ValueError if targets or weights are too large or too small to compute with."""

    def largest(_: Any, targets: Array, weights: Any = 1.0) -> tuple[float, float]:
        return float(np.abs(targets).max()), float(np.max(weights))

    columns = (problem.targets, *problem.rows.weight_columns)
    targets, weights = zip(*problem.rows.columns_only.map_blocks(largest, *columns), strict=True)
    check_magnitude("sample_weight, times class_weight,", max(weights))
    if not problem.loss.one_sided:
        check_magnitude("y", max(targets))


# Samples.


def coerce(
    X: Any, y: Any, sample_weight: Any, verbose: int = 0
) -> tuple[Any, Any, Any, list[str] | None]:
    """Wrap samples that are not in memory so that they can be read by slices.

    Returns samples, targets, weights, and the column names of a dataset.
    """
    if type(X) is np.ndarray or sparse.issparse(X):
        return X, y, sample_weight, None
    from notsorandom.data.coerce import read_lazily, read_source

    X, y, sample_weight, names = read_source(X, y, sample_weight, verbose)
    return read_lazily(X), y, sample_weight, names


def is_lazy(X: Any) -> bool:
    """Whether samples are read by slices: a LazyArray, whose module a dense fit doesn't load."""
    return hasattr(X, "prepared")


@np.errstate(invalid="ignore")  # scikit-learn adds up numbers like 1e308
def validate_samples_and_targets(
    estimator: Any, X: Any, y: Any, names: list[str] | None, reset: bool, is_classification: bool
) -> tuple[Any, Array]:
    """Validate `X` and `y` as scikit-learn does, wherever the samples are."""
    target_checks = {"multi_output": not is_classification, "y_numeric": not is_classification}
    if is_lazy(X) or is_device_array(X):
        y = validate_data(estimator, y=y, reset=reset, **target_checks)
        X = validate_samples(estimator, X, reset, names)
        if is_device_array(X) and in_host_memory(X):
            X = to_host(X)  # without a copy; NumPy gives the same model as for NumPy input
        check_consistent_length(X, y)
    else:
        checks = target_checks | {"ensure_min_samples": 2 if reset else 1}
        X, y = validate_data(
            estimator, X, y, accept_sparse="csr", dtype=FLOATS, reset=reset, **checks
        )
    return sparse.csr_array(X) if sparse.issparse(X) else X, np.asarray(y)


@np.errstate(invalid="ignore")
def read_samples(estimator: Any, X: Any, reset: bool = False, dtype: Any = FLOATS) -> Any:
    """Validate samples without targets, as `transform` and `predict` take them.

    With ``reset=True`` the estimator stores the number of columns. Samples in memory are converted
    to `dtype`, or to the first of several types unless they have one of the others.
    """
    if type(X) is not np.ndarray and not is_device_array(X):
        from notsorandom.data.coerce import read_lazily

        X = read_lazily(X)
    if is_lazy(X) or is_device_array(X):
        return validate_samples(estimator, X, reset)
    return validate_data(estimator, X, accept_sparse="csr", dtype=dtype, reset=reset)


def validate_samples(estimator: Any, X: Any, reset: bool, names: list[str] | None = None) -> Any:
    """Validate samples on a device, or that are read by slices."""
    min_samples = 2 if reset else 1
    if is_lazy(X):
        from notsorandom.data.lazy import validate_blocks

        X = validate_blocks(X, min_samples, estimator=estimator)
        if reset:
            estimator.__dict__.pop("feature_names_in_", None)
            if names is not None:
                estimator.feature_names_in_ = np.array(names, dtype=object)
    else:
        from notsorandom.estimators.device_validation import validate_device_samples

        X = validate_device_samples(X, type(estimator).__name__, min_samples)
    if reset:
        estimator.n_features_in_ = int(X.shape[1])
    elif X.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )
    return X


def sort_and_deduplicate(X: Any, targets: Array) -> tuple[Array, Array]:
    """Sort distinct samples by their columns and targets; see :func:`unique_rows`."""
    # Columns of a sparse matrix without entries don't matter.
    X = X.tocsc()[:, np.unique(X.indices)] if sparse.issparse(X) else dense(X)
    which = np.zeros(X.shape[0], dtype=int)
    for start in range(0, X.shape[1], SORT_COLUMNS):  # a few columns mostly suffice
        columns = dense(X[:, start : start + SORT_COLUMNS])
        _, which = unique_rows(np.column_stack([which, columns]))
        if which.max() == len(which) - 1:
            break
    return unique_rows(np.column_stack([which, targets]))


def unique_rows(values: Array) -> tuple[Array, Array]:
    """Return the indices of the distinct rows, sorted, and the position of each row in them."""
    first, which = np.unique(values, axis=0, return_index=True, return_inverse=True)[1:]
    return first, which.ravel()


# Weights.


def check_sample_weight(sample_weight: Any, n_samples: int, dtype: Any) -> Array | None:
    """Return the sample weights as an array, or None; raise ValueError if they are invalid."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight)
    if weights.dtype.kind == "O":
        weights = np.array(weights.tolist())
    if weights.dtype.kind not in "biuf":
        raise ValueError(
            f"sample_weight has values of type {weights.dtype}, such as "
            f"{weights.ravel()[:1].tolist()}: it must be numbers, one per sample."
        )
    weights = weights.astype(np.float64)
    if weights.ndim == 0:
        weights = np.full(n_samples, weights)
    if weights.shape != (n_samples,):
        raise ValueError(
            f"sample_weight has shape {weights.shape}, but X has {n_samples} samples: it must have "
            f"shape ({n_samples},), one weight per sample."
        )
    invalid = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(invalid):
        raise ValueError(
            f"sample_weight has {weights[invalid[0]]} at sample {invalid[0]}, but weights must be "
            "finite and non-negative: weight 2 counts the sample twice, weight 0 leaves it out."
        )
    if not weights.any():
        raise ValueError(
            "sample_weight is zero for all samples: at least one must have a positive weight."
        )
    with np.errstate(over="ignore", under="ignore"):
        rounded = weights.astype(dtype)
    if not np.isfinite(rounded).all() or ((weights > 0) & (rounded == 0)).any():
        raise ValueError(
            f"sample_weight ranges from {weights[weights > 0].min()} to {weights.max()}, which "
            f"{np.dtype(dtype)} can't hold: scale the weights, or give X in float64."
        )
    return rounded


def class_weights(class_weight: Any, classes: Array, rows: Rows, y: Any) -> Any:
    """Return the column of the rows' weights times those of their classes."""

    def totals(_: Any, y: Array, w: Array | None = None) -> tuple[Array]:
        codes = np.searchsorted(classes, y)
        return (np.bincount(codes, None if w is None else w[:, 0], len(classes)),)

    (sums,) = rows.columns_only.sum_blocks(totals, y, *rows.weight_columns, dtype=np.float64)
    factors = class_factors(class_weight, classes, sums, rows.dtype)

    def weigh(_: Any, y: Array, w: Any = 1) -> Array:
        with np.errstate(over="ignore"):  # see check_magnitudes
            return np.asarray(w * factors[np.searchsorted(classes, y)][:, None])

    return rows.columns_only.map(weigh, y, *rows.weight_columns)


@np.errstate(over="ignore", under="ignore")
def class_factors(class_weight: Any, classes: Array, totals: Array, dtype: Any) -> Array:
    """Return the factor of the weights of each class, given the total weight of each.

    `class_weight` is a dict of class to number, or ``"balanced"``, which gives all classes the same
    total weight.
    """
    if isinstance(class_weight, str) and class_weight == "balanced":
        return (totals.sum() / (len(classes) * totals)).astype(dtype)
    if not isinstance(class_weight, Mapping):
        raise ValueError(
            f"class_weight={class_weight!r} is not allowed: it must be None, 'balanced' or a dict "
            "of class to weight."
        )
    known = classes.tolist()
    for name, weight in class_weight.items():
        is_number = isinstance(weight, (int, float, np.number)) and not isinstance(weight, bool)
        if name not in known or not (is_number and 0 < np.dtype(dtype).type(weight) < np.inf):
            raise ValueError(
                f"class_weight has {name!r}: {weight!r}, but its keys must be classes of y, "
                f"{known[:10]!r}, and its values positive {np.dtype(dtype)}; others have weight 1."
            )
    return np.array([class_weight.get(name, 1.0) for name in known], dtype=dtype)
