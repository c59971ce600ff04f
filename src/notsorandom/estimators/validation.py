"""Validation: from what a user passes to `fit` to the training problem."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_consistent_length, validate_data

from notsorandom._utils.parameters import check_magnitude
from notsorandom._utils.threads import ThreadPool
from notsorandom.data.array_api import in_host_memory, is_device_array, to_host
from notsorandom.data.rows import FLOATS, Array, Rows, dense
from notsorandom.estimators.cautions import warn_of_many_classes, warn_of_scales
from notsorandom.estimators.config import loss_of
from notsorandom.estimators.targets import check_classes, check_targets, real_targets
from notsorandom.game.dual import DualProblem, signs_from_codes
from notsorandom.game.losses import Loss
from notsorandom.spaces import Euclidean
from notsorandom.spaces.base import Space

# Up to this many samples are sorted and duplicates merged, so that the model depends on nothing but
# the samples and their weights, to the last digit.
DEDUPLICATED_ROWS = 1024
# Columns compared at a time while sorting.
SORT_COLUMNS = 64


@dataclass(frozen=True)
class TrainingData:
    """The training problem, and which of the given rows it holds.

    Parameters
    ----------
    problem : DualProblem
    positions : ndarray of shape (n_given,), optional
        Position of each given row in the problem; -1 if it was left out. By default its own index.
    """

    problem: DualProblem
    positions: Array | None = None

    @property
    def n_given(self) -> int:
        """Number of rows that were given."""
        return len(self.problem.rows) if self.positions is None else len(self.positions)

    def _compose(self, positions: Array) -> Array:
        """Positions of the given rows after the problem's rows moved to new positions."""
        return positions if self.positions is None else np.append(positions, -1)[self.positions]

    def take(self, mask: Array) -> TrainingData:
        """Return the training data of the rows where the mask is true."""
        problem = self.problem.select(mask)
        if not problem.rows.is_local:  # no column of the given rows is stored
            return TrainingData(problem)
        return TrainingData(problem, self._compose(np.where(mask, np.cumsum(mask) - 1, -1)))

    def with_loss(self, loss: Loss) -> TrainingData:
        """Return the training data with another loss."""
        return replace(self, problem=replace(self.problem, loss=loss))

    def to_given(self, column: Any) -> Array:
        """Return a column of the problem for the rows that were given; zero for those left out."""
        values = self.problem.rows.to_host(column)
        if self.positions is None:
            return values
        return np.concatenate([values, np.zeros_like(values[:1])])[self.positions]

    def from_given(self, values: Array) -> Array:
        """Return values of the given rows for the rows of the problem."""
        if self.positions is None:
            return values
        present = np.flatnonzero(self.positions >= 0)
        shape = (len(self.problem.rows), *values.shape[1:])
        result = np.empty(shape, dtype=values.dtype)
        result[self.positions[present]] = values[present]
        return result

    def deduplicated(self) -> TrainingData:
        """Sort up to `DEDUPLICATED_ROWS` samples and merge duplicates into weights.

        Larger data are returned unchanged.
        """
        problem, rows = self.problem, self.problem.rows
        if len(rows) > DEDUPLICATED_ROWS:
            return self
        first, which = sort_and_deduplicate(rows.array, problem.targets)
        counts = np.bincount(which, weights=problem.counts)[:, None].astype(rows.dtype)
        weights = None if (counts == 1).all() else counts
        taken = problem.take(first)
        merged = replace(taken, rows=replace(taken.rows, weights=weights))
        return TrainingData(merged, self._compose(which))


def read_training_data(
    estimator: Any,
    space: Space,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    reset: bool = True,
    pool: ThreadPool | None = None,
) -> TrainingData:
    """Validate samples, targets and weights, and return the training problem.

    With ``reset=True``, the estimator stores the classes or the number of outputs, the number of
    columns and the sample weights. Otherwise, the data must agree with what it stored.
    """
    loss = loss_of(estimator)
    is_classification, name = loss.one_sided, type(estimator).__name__
    X, y, sample_weight, names = coerce(X, to_host(y), to_host(sample_weight), estimator.verbose)
    y = check_targets(y, name, estimator.loss, is_classification)
    X, y = validate_samples_and_targets(estimator, X, y, names, reset, is_classification)
    if reset:
        estimator.n_samples_fit_ = X.shape[0]
        estimator._weights = check_sample_weight(sample_weight, X.shape[0], Rows(X).dtype)
        estimator._weighted = sample_weight is not None
    weights = estimator._weights
    if weights is not None and len(weights) != X.shape[0]:  # other samples than at fit
        weights = None
    positions = None
    if weights is not None and not (weights > 0).all():
        kept = weights > 0
        positions = np.where(kept, np.cumsum(kept) - 1, -1)
        rows, y = Rows(X).select(kept, y)
        X, weights = rows.array, weights[kept]
    rows = Rows(space.prepare(X), None if weights is None else weights[:, None], pool)
    targets = y if is_classification else real_targets(y, rows.dtype)
    problem = make_problem(estimator, loss, rows, targets, y.ndim == 1, reset)
    if reset and isinstance(space, Euclidean):
        warn_of_scales(X, getattr(estimator, "feature_names_in_", None))
    return TrainingData(problem, positions).deduplicated()


def make_problem(
    estimator: Any, loss: Loss, rows: Rows, y: Any, is_flat: bool, reset: bool = True
) -> DualProblem:
    """Return the training problem of valid rows, wherever they are; weights of 1 are left out.

    `y` is a column of class labels, or of real targets with one column per output. The rest is as
    in :func:`read_training_data`; `is_flat` is whether targets were given in one dimension.
    """
    name, columns = type(estimator).__name__, rows.columns_only
    if loss.one_sided:
        classes = np.unique(np.concatenate(list(columns.map_blocks(lambda _, y: np.unique(y), y))))
        if reset:
            estimator.classes_ = classes
            warn_of_many_classes(name, classes, len(rows))
        check_classes(name, classes, estimator.classes_)
        n_classes, dtype = len(classes), rows.dtype

        def signs(_: Any, y: Array) -> Array:
            return signs_from_codes(np.searchsorted(classes, y), n_classes, dtype)

        if estimator.class_weight is not None:
            rows = replace(rows, weights=class_weights(estimator.class_weight, classes, rows, y))
        y = columns.map(signs, y)
    else:
        if reset:
            estimator.n_outputs_, estimator._flat = y.shape[1], is_flat
        n_outputs, known = y.shape[1], estimator.n_outputs_
        if n_outputs != known:
            raise ValueError(f"y has {n_outputs} columns, but had {known} at fit: give as many.")
    ones = columns.map_blocks(
        lambda _, *w: all((one == 1).all() for one in w), *rows.weight_columns
    )
    problem = DualProblem(loss, y, replace(rows, weights=None) if all(ones) else rows)
    check_magnitudes(problem)
    return problem


def check_magnitudes(problem: DualProblem) -> None:
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
