"""The base class of the random feature maps."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from notsorandom.data.rows import Array, Rows
from notsorandom.estimators.transformer import KernelTransformer
from notsorandom.kernel import LearnedKernel, normalized
from notsorandom.spaces import Euclidean


class FeatureMap(KernelTransformer, BaseEstimator):
    """A transformer whose features are drawn from the spectrum of an RBF kernel."""

    bandwidth: Any
    random_state: Any

    def fit(self, X: Any, y: Any = None) -> Any:
        """Draw the frequencies.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), optional
            Class labels, for methods that use them.

        Returns
        -------
        self
        """
        fitted = copy.copy(self)  # a fit that fails leaves the estimator unchanged
        fitted._fit(X, y)
        self.__dict__ = fitted.__dict__
        return self

    def _fit(self, X: Any, y: Any) -> None:
        raise NotImplementedError

    def _resolve_space(self, rows: Rows) -> tuple[Euclidean, np.random.Generator]:
        """Return the space with its bandwidth, and the generator to draw from."""
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        space = Euclidean(scale=self.bandwidth).resolve(rows, rng)
        self.bandwidth_ = float(space.scale)
        return space, rng

    def _set_kernel(self, kernel: LearnedKernel) -> None:
        self.kernel_ = kernel
        self.frequencies_, self.phases_ = kernel.frequencies, kernel.phases

    def head(self, n_components: int) -> Any:
        """Return the fitted transformer of the first `n_components` features."""
        check_is_fitted(self)
        kernel = self.kernel_.head(n_components)
        shorter = clone(self).set_params(n_components=n_components)
        shorter.__dict__ |= {name: value for name, value in vars(self).items() if name[-1] == "_"}
        shorter._set_kernel(kernel)
        return shorter

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def make_kernel(
    space: Euclidean, frequencies: Array, phases: Array, weights: Array, phase: str = "aligned"
) -> LearnedKernel:
    """Return the kernel of the frequencies, with weights that are normalised to sum 1."""
    return LearnedKernel(
        space=space,
        frequencies=frequencies,
        phases=phases,
        scales=np.ones(len(frequencies)),
        weights=normalized(weights),
        phase=phase,
    )
