"""Validation of samples on a device, as scikit-learn validates NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from notsorandom.data.array_api import as_floats, namespace, to_host
from notsorandom.data.rows import Rows


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
