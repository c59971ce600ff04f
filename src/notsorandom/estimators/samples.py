"""Checks of samples: in memory, read by slices, or on a device."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    check_X_y,
    validate_data,
)

from notsorandom.data.array_api import (
    as_floats,
    in_host_memory,
    is_device_array,
    namespace,
    to_host,
)
from notsorandom.data.rows import FLOATS, Array, Rows

# Columns of a smaller scale hardly change a distance that is as long as the largest column's.
MAX_SCALE_RATIO = 1000
# Numbers that the scales are computed from: the median takes about 20 ms.
SCALE_NUMBERS = 2**20
# Whether a process has warned of scales: a search would in each of many fits.
_warned: list[bool] = []


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
        X, y = validate_table(
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
    return validate_table(estimator, X, accept_sparse="csr", dtype=dtype, reset=reset)


def validate_table(estimator: Any, *data: Any, **settings: Any) -> Any:
    """Validate as scikit-learn does; errors about gaps and text say what takes such tables."""
    try:
        return validate_frame(estimator, *data, **settings)
    except ValueError as error:
        reason, _, _ = str(error).partition("\n")
        if "X contains NaN" not in reason and "convert string to float" not in reason:
            raise
        raise ValueError(
            f"{reason.removesuffix('.')}. {type(estimator).__name__} takes numbers without gaps: "
            "notsorandom.tabular_pipeline takes tables with text and missing values."
        ) from None


def validate_frame(estimator: Any, X: Any, *y: Any, reset: bool = True, **settings: Any) -> Any:
    """Validate as scikit-learn does, but take the array of a frame of floats.

    Its checks of the array of a frame take some microseconds a column.
    """
    types = set(X.dtypes) if hasattr(X, "iloc") else {None}
    if len(types) > 1 or getattr(types.pop(), "kind", "") != "f":
        return validate_data(estimator, X, *y, reset=reset, **settings)
    validate_data(estimator, X, *y, reset=reset, skip_check_array=True)  # names of columns
    if y:
        return check_X_y(X.to_numpy(), *y, estimator=estimator, **settings)
    return check_array(X.to_numpy(), input_name="X", estimator=estimator, **settings)


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
        X = validate_device_samples(X, type(estimator).__name__, min_samples)
    if reset:
        estimator.n_features_in_ = int(X.shape[1])
    elif X.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )
    return X


# On a device.


def validate_device_samples(X: Any, name: str, min_samples: int) -> Any:
    """Check shape, type and values of an array API array; return it in float32 or float64."""
    shape = tuple(X.shape)
    if len(shape) != 2:
        raise ValueError(
            f"Expected 2D array, got an array of shape {shape} instead: X must have one row per "
            "sample. Reshape it to (n_samples, 1) if it has a single column, or to "
            "(1, n_features) if it is a single sample."
        )
    for axis, what, minimum in ((0, "sample(s)", min_samples), (1, "feature(s)", 1)):
        if shape[axis] < minimum:
            raise ValueError(
                f"Found array with {shape[axis]} {what} (shape={shape}) while a minimum of "
                f"{minimum} is required by {name}."
            )
    xp = namespace(X)
    if xp.isdtype(X.dtype, "complex floating"):
        raise ValueError(
            f"Complex data not supported: X has dtype {X.dtype}. Give real numbers, such as the "
            "real and imaginary parts as separate columns."
        )
    X = as_floats(X)
    check_finite(X, name)
    return X


@np.errstate(over="ignore", invalid="ignore")
def check_finite(X: Any, name: str) -> None:
    """Raise ValueError at the first number that is not finite."""
    xp = namespace(X)

    def first_invalid(block: Any) -> Any:
        # A finite sum proves that all numbers are; an infinite one may be overflow.
        if bool(xp.isfinite(xp.sum(block))):
            return None
        invalid = np.argwhere(~to_host(xp.isfinite(block)))
        if len(invalid) == 0:
            return None
        row, column = invalid[0]
        return row, column, float(block[int(row), int(column)])

    rows = Rows(X)
    for block, invalid in zip(rows.blocks(), rows.map_blocks(first_invalid), strict=True):
        if invalid is not None:
            row, column, value = invalid
            raise ValueError(
                f"Input X contains {'NaN' if np.isnan(value) else 'infinity'}: {value} in row "
                f"{block.start + row}, column {column}. {name} takes finite numbers: impute "
                "missing values, or leave such rows out."
            )


# Scales of columns.


def warn_of_scales(X: Any, names: Array | None) -> None:
    """Warn if the columns of dense samples differ in scale by more than `MAX_SCALE_RATIO`.

    Sparse samples are mostly words or categories, whose scales differ by nature. Samples on a
    device or on disk would have to be read for it.
    """
    if type(X) is not np.ndarray:
        return
    scales = column_scales(X[:: X.size // SCALE_NUMBERS + 1])
    varying = np.flatnonzero(scales)
    if not len(varying):
        return
    small, large = varying[np.argsort(scales[varying])[[0, -1]]].tolist()
    if scales[large] > MAX_SCALE_RATIO * scales[small] and not _warned:
        _warned.append(True)
        labels = [repr(str(names[i])) if names is not None else i for i in (small, large)]
        warnings.warn(
            f"Column {labels[0]} of X varies by about {scales[small]:.2g}, and column {labels[1]} "
            f"by about {scales[large]:.2g}: next to it, the first has hardly any influence. Bring "
            "the columns to one scale, by a pipeline with scikit-learn's StandardScaler or by "
            "notsorandom.tabular_pipeline.",
            UserWarning,
            stacklevel=caller_level(),
        )


def caller_level() -> int:
    """Return the `stacklevel` of a warning that shows the line that called this package."""
    level, frame = 1, sys._getframe(1)
    inner = ("notsorandom", "sklearn", "joblib", "contextlib")
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in inner:
        level, frame = level + 1, frame.f_back
    return level


@np.errstate(over="ignore")
def column_scales(X: Array) -> Array:
    """Return the root mean square distance of each column's values from their median.

    Values equal to the median don't count: a category or a pixel that is nearly always zero has
    the scale of its other values. The scale of a constant column is zero, also if
    it is constant only up to rounding errors.
    """
    units = np.abs(X).max(axis=0).astype(np.float64)
    units[units == 0] = 1
    values = X / units  # so that no square overflows
    values -= np.median(values, axis=0)
    n_other = np.maximum(np.count_nonzero(values, axis=0), 1)
    scales = np.sqrt(np.square(values).sum(axis=0) / n_other)
    return units * np.where(scales > 10 * np.finfo(X.dtype).eps, scales, 0)
