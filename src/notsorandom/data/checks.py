"""Checks and conversions shared by all readers of samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from notsorandom.data.rows import Array


def first_non_finite(rows: Array) -> tuple[int, ...] | None:
    """Return the index of the first NaN or infinite number, or None."""
    finite = np.isfinite(rows)
    if finite.all():
        return None
    return tuple(int(place) for place in np.unravel_index(finite.argmin(), finite.shape))


def float_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type that numbers of a type are computed in: float32 for itself, else float64."""
    return np.dtype(np.float32 if dtype.kind == "f" and dtype.itemsize == 4 else np.float64)


def to_native(array: Array) -> Array:
    """Return an array in native byte order, with floats of 32 or 64 bits."""
    dtype = array.dtype.newbyteorder("=") if array.dtype.kind != "f" else float_dtype(array.dtype)
    with np.errstate(over="ignore"):  # overflow gives infinity, which is reported later
        return array.astype(dtype, copy=False)


def shorten(value: object) -> str:
    """Return the representation of a value, cut to fit into a one-line message."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:36]}...{text[-1]}"


def format_names(names: Sequence[str], most: int = 8) -> str:
    """Return at most `most` of the names, and the number of the others."""
    shown = ", ".join(repr(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
