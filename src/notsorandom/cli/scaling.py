"""Models of standardised columns as models of the columns themselves, and back."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.preprocessing import StandardScaler

from notsorandom.data.rows import Array
from notsorandom.kernel import LearnedKernel
from notsorandom.spaces import Euclidean
from notsorandom.spaces.landscape import round_to_float32


def fit_scaler(X: Any) -> StandardScaler:
    """Return a scaler to unit variance, and to mean zero unless the samples are sparse."""
    return StandardScaler(with_mean=not sparse.issparse(X)).fit(X)


def unscale_model(model: Any, scaler: StandardScaler) -> Any:
    """Return the model of `x` that is equal to the given model of the scaled `x`.

    A wave of scaled samples is a wave of the samples with another frequency, so the result takes
    columns in their own units. Predictions change only by rounding.

    Parameters
    ----------
    model : fitted estimator on a Euclidean space
    scaler : StandardScaler, fitted
    """
    return transform_model(model, scaler, scale_mean(scaler), scaler.scale_)


def scale_model(model: Any, scaler: StandardScaler) -> Any:
    """Return the model of the scaled `x` for a model of `x`: the inverse of `unscale_model`."""
    return transform_model(model, scaler, -scale_mean(scaler) / scaler.scale_, 1 / scaler.scale_)


def scale_mean(scaler: StandardScaler) -> Array:
    """Return the point that the scaler moves to zero."""
    mean: Array = scaler.mean_ if scaler.with_mean else np.zeros_like(scaler.scale_)
    return mean


def transform_model(model: Any, scaler: StandardScaler, shift: Array, factor: Array) -> Any:
    """Return the model of ``shift + factor * x`` for a model of `x`."""
    varies = scaler.var_ > 0  # frequencies along constant columns carry no information

    def transform_kernel(kernel: LearnedKernel) -> LearnedKernel:
        space: Any = kernel.space
        center = (shift + factor * space.center).astype(space.center.dtype)
        frequencies = np.where(varies, kernel.frequencies / factor, 0)
        return replace(
            kernel,
            space=Euclidean(space.scale, center),
            frequencies=round_to_float32(frequencies.astype(kernel.frequencies.dtype)),
        )

    other = copy.copy(model)
    other.kernel_ = transform_kernel(model.kernel_)
    other.frequencies_ = other.kernel_.frequencies
    if hasattr(model, "average_kernel_"):
        other.average_kernel_ = transform_kernel(model.average_kernel_)
    return other
