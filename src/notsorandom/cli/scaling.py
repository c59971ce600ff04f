"""Models of standardised columns as models of the columns themselves, and back."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.preprocessing import StandardScaler

from notsorandom.kernel import LearnedKernel
from notsorandom.spaces import Euclidean
from notsorandom.spaces.view import round_to_float32


def fit_scaler(X: Any) -> StandardScaler:
    """Return a scaler to unit variance, and to mean zero unless the samples are sparse."""
    return StandardScaler(with_mean=not sparse.issparse(X)).fit(X)


def scale_model(model: Any, scaler: StandardScaler, *, inverse: bool = False) -> Any:
    """Return the model of the scaled `x` that is equal to a model of `x` on a Euclidean space.

    A wave of scaled samples is a wave of the samples with another frequency, so predictions change
    only by rounding. `inverse` returns the model of `x` for a model of the scaled `x`.
    """
    mean = scaler.mean_ if scaler.with_mean else np.zeros_like(scaler.scale_)
    shift, factor = -mean / scaler.scale_, 1 / scaler.scale_
    if inverse:
        shift, factor = mean, scaler.scale_
    varies = scaler.var_ > 0  # frequencies along constant columns carry no information

    def transform_kernel(kernel: LearnedKernel) -> LearnedKernel:
        space = kernel.space
        assert isinstance(space, Euclidean)
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
