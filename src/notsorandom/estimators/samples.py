"""Samples as estimators are given them, checked."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from notsorandom.data import Lazy, check_blocks, read_lazily
from notsorandom.data.array_api import as_floats, is_device_array, namespace, on_host
from notsorandom.data.rows import FLOATS, Rows


def read_samples(estimator: Any, X: Any, reset: bool = False, dtype: Any = FLOATS) -> Any:
    """Samples in float32 or float64, dense or sparse CSR, or left where they are.

    Parameters
    ----------
    estimator : estimator
    X : array-like, sparse matrix or array by the array API standard
    reset : bool, default=False
        Whether the estimator is fitted to them, and learns how many columns there are.
    dtype : data-type or list of them
        Taken where the samples are not on a device.
    """
    if is_device_array(X):
        return read_device_samples(estimator, X, reset)
    X = read_lazily(X)
    if isinstance(X, Lazy):
        return read_lazy_samples(estimator, X, reset)
    return validate_data(estimator, X, accept_sparse="csr", dtype=dtype, reset=reset)


def read_lazy_samples(estimator: Any, X: Lazy, reset: bool, names: list[str] | None = None) -> Any:
    """What scikit-learn checks of samples, checked by slices."""
    X = check_blocks(X, 2 if reset else 1, estimator=estimator)
    if reset:
        estimator.__dict__.pop("feature_names_in_", None)
        if names is not None:
            estimator.feature_names_in_ = np.array(names, dtype=object)
    check_width(estimator, X.shape[1], reset)
    return X


def check_width(estimator: Any, n_features: int, reset: bool) -> None:
    """Raise ValueError unless there are as many columns as at fit."""
    if reset:
        estimator.n_features_in_ = n_features
    elif n_features != estimator.n_features_in_:
        raise ValueError(
            f"X has {n_features} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )


def read_device_samples(estimator: Any, X: Any, reset: bool) -> Any:
    """What scikit-learn checks of samples, checked where they are."""
    name, shape = type(estimator).__name__, tuple(X.shape)
    if len(shape) != 2:
        raise ValueError(
            f"Expected 2D array, got an array of shape {shape} instead: X must have one row a "
            "sample. Reshape it to (n_samples, 1) if it has a single column, or to "
            "(1, n_features) if it is a single sample."
        )
    least = 2 if reset else 1
    for axis, found, wanted in ((0, "sample(s)", least), (1, "feature(s)", 1)):
        if shape[axis] < wanted:
            raise ValueError(
                f"Found array with {shape[axis]} {found} (shape={shape}) while a minimum of "
                f"{wanted} is required by {name}."
            )
    check_width(estimator, shape[1], reset)
    xp = namespace(X)
    if xp.isdtype(X.dtype, "complex floating"):
        raise ValueError(
            f"Complex data not supported: X is of {X.dtype}. Give real numbers, such as the real "
            "and imaginary parts as columns of their own."
        )
    X = as_floats(X)
    check_finite_samples(X, name)
    return X


def check_finite_samples(X: Any, name: str) -> None:
    """Raise ValueError if a number on a device is not finite, and say where."""
    xp = namespace(X)

    def first_bad(block: Any) -> Any:
        # A sum is finite only if all is; that it isn't may be overflow.
        if bool(xp.isfinite(xp.sum(block))):
            return None
        bad = np.argwhere(~on_host(xp.isfinite(block)))
        return (*bad[0], float(block[int(bad[0][0]), int(bad[0][1])])) if len(bad) else None

    rows = Rows(X)
    for block, found in zip(rows.blocks(), rows.each(first_bad), strict=True):
        if found is not None:
            row, column, value = found
            raise ValueError(
                f"Input X contains {'NaN' if np.isnan(value) else 'infinity'}: {value} in row "
                f"{block.start + row}, column {column}. {name} takes finite numbers: fill in what "
                "is missing, or leave such rows out."
            )
