"""The alignment of a kernel with labels: Section 2.2 of the paper."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from notsorandom.data.rows import Array
from notsorandom.kernel import LearnedKernel, dense_if_sparse


def kernel_alignment(X: Any, y: Any, kernel: Callable[..., Any]) -> float:
    r"""Return the alignment of a kernel with labels, :math:`\sum_{ij} y_i y_j k(x_i, x_j)`.

    With `P` and `Q` the sums of unit masses at the samples of either class it is

    .. math:: \iint k \, dP \, dP + \iint k \, dQ \, dQ - 2 \iint k \, dP \, dQ,

    what the kernel has within the classes minus what it has between them. For a learned kernel
    without a linear part it is ``kernel.weights @ fourier_potential(X, y, kernel)``. With the
    means of the classes in place of their sums it is the square of their :func:`mean_discrepancy`.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
        Labels of 1 and -1, or any signed measure, such as a game's dual variables.
    kernel : callable
        A :class:`notsorandom.LearnedKernel`, or any function of `X` that returns a Gram matrix.

    Returns
    -------
    float
    """
    y = np.asarray(y, dtype=np.float64)
    if isinstance(kernel, LearnedKernel):  # without the Gram matrix
        sums = y @ dense_if_sparse(kernel.features(X))
        return float(sums @ sums)
    return float(y @ np.asarray(kernel(X)) @ y)


def fourier_potential(X: Any, y: Any, kernel: LearnedKernel) -> Array:
    r"""Return the Fourier potential of labels at the frequencies of a learned kernel.

    It is :math:`v(\omega) = |\sum_i y_i \phi_{x_i}(\omega)|^2`, for aligned phases that of the one
    feature :math:`\sqrt 2 \cos(\langle \omega, x \rangle - b)`.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
        Labels of 1 and -1, or any signed measure.
    kernel : LearnedKernel

    Returns
    -------
    ndarray of shape (n_frequencies,)
    """
    y = np.asarray(y, dtype=np.float64)
    waves = dense_if_sparse(kernel.features(X))[:, : kernel.n_waves]
    sums = (y @ waves).reshape(len(kernel.weights), -1)  # (n_frequencies, n_columns)
    return np.asarray((sums**2).sum(axis=1) / kernel.weights)


def mean_discrepancy(X: Any, y: Any, kernel: Callable[..., Any]) -> float:
    """Return the maximum mean discrepancy of two classes.

    It is the distance of their means in the kernel's feature space: the largest difference of the
    means of a function of norm one.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
        Labels of 1 and -1.
    kernel : callable
        A :class:`notsorandom.LearnedKernel`, or any function of `X` that returns a Gram matrix.

    Returns
    -------
    float
    """
    y = np.asarray(y)
    if set(np.unique(y)) != {-1, 1}:
        raise ValueError(
            f"y has the values {np.unique(y)[:5]}, but must have 1 and -1, one for each class."
        )
    shares = np.where(y == 1, 1 / np.sum(y == 1), -1 / np.sum(y == -1))
    return max(kernel_alignment(X, shares, kernel), 0.0) ** 0.5
