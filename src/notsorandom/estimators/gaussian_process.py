"""A learned kernel inside scikit-learn's Gaussian processes."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from notsorandom.data.rows import Array


class GaussianProcessKernel(Kernel):
    r"""A learned kernel as a kernel of scikit-learn's Gaussian processes.

    It has no hyperparameters to optimise. Multiply it by a ``ConstantKernel`` for the variance of
    the process, and add a ``WhiteKernel`` for the noise of the targets. Since a `LearnedKernel` has
    finitely many features, the Gaussian process is a Bayesian linear regression on them: without
    noise, its covariance matrix is singular for more samples than features.

    Parameters
    ----------
    kernel : LearnedKernel or DegreeKernel
        The attribute ``kernel_`` of a fitted estimator.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process import GaussianProcessRegressor
    >>> from sklearn.gaussian_process.kernels import ConstantKernel, WhiteKernel
    >>> from notsorandom import FourierRegressor, GaussianProcessKernel
    >>> X = np.linspace(-3, 3, 200)[:, None]
    >>> y = np.sin(5 * X[:, 0]) + 0.1 * np.random.default_rng(0).standard_normal(200)
    >>> learned = FourierRegressor(20, random_state=0).fit(X, y).kernel_
    >>> kernel = ConstantKernel() * GaussianProcessKernel(learned) + WhiteKernel()
    >>> mean, std = GaussianProcessRegressor(kernel).fit(X, y).predict(X, return_std=True)
    >>> bool(0.08 < std.mean() < 0.12)  # mostly the noise
    True
    """

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """Return the Gram matrix in float64, and its gradient if asked for.

        Parameters
        ----------
        X : array-like of shape (n_samples_X, n_features)
            The samples.
        Y : array-like of shape (n_samples_Y, n_features), optional
            `X` if not given.
        eval_gradient : bool, default=False
            Whether to return the gradient, which has no columns: there are no hyperparameters.

        Returns
        -------
        K : ndarray of shape (n_samples_X, n_samples_Y)
        K_gradient : ndarray of shape (n_samples_X, n_samples_X, 0), optional
        """
        if Y is not None and eval_gradient:
            raise ValueError("eval_gradient=True is possible only without Y, as for Y=X.")
        # In float64: a Gram matrix in float32 is not positive definite with little noise.
        gram = self.kernel(in_float64(X), None if Y is None else in_float64(Y))
        return (gram, np.empty((*gram.shape, 0))) if eval_gradient else gram

    def diag(self, X: Any) -> Array:
        """Return the diagonal of the Gram matrix.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        diagonal: Array = self.kernel.diag(in_float64(X))
        return diagonal

    def is_stationary(self) -> bool:
        """Return whether the kernel depends on differences of samples only."""
        return bool(self.kernel.is_stationary())

    def __repr__(self) -> str:
        return f"GaussianProcessKernel({self.kernel!r})"


def in_float64(X: Any) -> Array:
    """Return samples as an array in double precision."""
    return np.asarray(X, dtype=np.float64)
