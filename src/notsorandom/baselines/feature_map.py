"""What the baselines have in common once their frequencies are there."""

from __future__ import annotations

import copy
from typing import Any

from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from notsorandom.estimators.transformer import KernelTransformer
from notsorandom.kernel import LearnedKernel


class FeatureMap(KernelTransformer, BaseEstimator):
    """A transformer whose fit ends with a kernel of a few waves."""

    def fit(self, X: Any, y: Any = None) -> Any:
        """Find the frequencies.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), optional
            Class labels, for who learns from them.

        Returns
        -------
        self
        """
        fitted = copy.copy(self)  # a fit that fails leaves the estimator as it was
        fitted._fit(X, y)
        self.__dict__ = fitted.__dict__
        return self

    def _fit(self, X: Any, y: Any) -> None:
        raise NotImplementedError

    def _take(self, kernel: LearnedKernel) -> None:
        self.kernel_ = kernel
        self.frequencies_, self.phases_ = kernel.frequencies, kernel.phases

    def head(self, n_components: int) -> Any:
        """Return the fitted transformer of the first `n_components` features."""
        check_is_fitted(self)
        kernel = self.kernel_.head(n_components)
        shorter = clone(self).set_params(n_components=n_components)
        shorter.__dict__ |= {name: value for name, value in vars(self).items() if name[-1] == "_"}
        shorter._take(kernel)
        return shorter

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
