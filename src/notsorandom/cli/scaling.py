"""A model of scaled samples as one of the samples themselves."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.preprocessing import StandardScaler

from notsorandom.kernel import LearnedKernel
from notsorandom.spaces import Euclidean
from notsorandom.spaces.landscape import in_single


def scaler_of(X: Any) -> StandardScaler:
    """Scale columns to unit variance; those of sparse samples are not moved."""
    return StandardScaler(with_mean=not sparse.issparse(X)).fit(X)


def rescaled(estimator: Any, scaler: StandardScaler, back: bool = False) -> Any:
    r"""The estimator that does with `x` what the given one does with the scaled `x`.

    A wave of scaled samples is a wave of the samples, of another frequency: nothing is lost but
    the last digit, and whoever uses the model needn't know of the scaling.

    Parameters
    ----------
    estimator : a fitted estimator, on a Euclidean space
    scaler : StandardScaler, fitted
    back : bool, default=False
        Take that back: from the estimator of `x` to that of the scaled `x`.
    """
    width = scaler.scale_
    moving = scaler.var_ > 0  # nothing was learned of a column that is constant
    mean = scaler.mean_ if scaler.with_mean else np.zeros_like(width)
    if back:
        mean, width = -mean / width, 1 / width

    def moved(kernel: LearnedKernel) -> LearnedKernel:
        dtype = kernel.frequencies.dtype
        center = (mean + width * kernel.space.center).astype(kernel.space.center.dtype)
        frequencies = in_single(np.where(moving, kernel.frequencies / width, 0).astype(dtype))
        space = Euclidean(kernel.space.scale, center)
        return replace(kernel, space=space, frequencies=frequencies)

    other = copy.copy(estimator)
    for name in ("kernel_", "average_kernel_"):
        if hasattr(estimator, name):
            setattr(other, name, moved(getattr(estimator, name)))
    other.frequencies_ = other.kernel_.frequencies
    other._complete()
    return other
