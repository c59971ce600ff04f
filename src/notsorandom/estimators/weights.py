"""Weights of samples and of classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from notsorandom.data.rows import Array


def check_sample_weight(sample_weight: Any, n_samples: int, dtype: Any) -> Array | None:
    """Return the weights as an array, or None for None; raise ValueError if they can't be ones."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight)
    if weights.dtype.kind == "O":
        weights = np.array(weights.tolist())
    if weights.dtype.kind not in "biuf":
        raise ValueError(
            f"sample_weight has values of type {weights.dtype}, such as "
            f"{weights.ravel()[:1].tolist()}: it must be numbers, one a sample."
        )
    weights = weights.astype(np.float64)
    if weights.ndim == 0:
        weights = np.full(n_samples, weights)
    if weights.shape != (n_samples,):
        raise ValueError(
            f"sample_weight has shape {weights.shape}, but X has {n_samples} samples: it must have "
            f"shape ({n_samples},), one weight a sample."
        )
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad):
        raise ValueError(
            f"sample_weight has {weights[bad[0]]} at sample {bad[0]}, but weights must be finite "
            "and not negative: a weight of 2 is the sample twice, one of 0 leaves it out."
        )
    if not weights.any():
        raise ValueError(
            "sample_weight is zero for all samples, which leaves none to learn from: give some of "
            "them weight."
        )
    with np.errstate(over="ignore", under="ignore"):
        rounded = weights.astype(dtype)
    if not np.isfinite(rounded).all() or ((weights > 0) & (rounded == 0)).any():
        raise ValueError(
            f"sample_weight is from {weights[weights > 0].min()} to {weights.max()}, which "
            f"{np.dtype(dtype)} can't hold: scale the weights, or give X in float64."
        )
    return rounded


def class_factors(
    class_weight: Any, classes: Array, codes: Array, weights: Array | None, dtype: Any
) -> Array:
    """Factors of the samples' weights by their class.

    Parameters
    ----------
    class_weight : "balanced" or dict of class to number
        ``"balanced"`` gives all classes the same total weight.
    classes, codes : ndarrays
        The classes, and which of them each sample is.
    weights : ndarray of shape (n_samples,), optional
        Of the samples.
    dtype : data-type
    """
    if isinstance(class_weight, str) and class_weight == "balanced":
        totals = np.bincount(codes, weights=weights, minlength=len(classes))
        return (totals.sum() / (len(classes) * totals))[codes].astype(dtype)
    if not isinstance(class_weight, Mapping):
        raise ValueError(
            f"class_weight={class_weight!r} is not allowed: it must be None, 'balanced' or a dict "
            "of class to weight."
        )
    known = classes.tolist()
    for name, weight in class_weight.items():
        number = isinstance(weight, (int, float, np.number)) and not isinstance(weight, bool)
        if name not in known or not number or not (0 < weight < np.inf):
            raise ValueError(
                f"class_weight has {name!r}: {weight!r}, but it must have classes of y, "
                f"{known[:10]!r}, with positive weights; those left out have weight 1."
            )
    factors = np.array([class_weight.get(name, 1.0) for name in known], dtype=dtype)
    return factors[codes]
