"""What the baselines have in common once their frequencies are there."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    clone,
)
from sklearn.utils.validation import check_is_fitted, validate_data

from notsorandom.kernel import LearnedKernel
from notsorandom.rows import Array

TYPES = [np.float64, np.float32]


class FeatureMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A transformer whose fit ends with a kernel of a few waves."""

    kernel_: LearnedKernel

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

    def transform(self, X: Any) -> Array:
        """Map samples to the features.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        check_is_fitted(self)
        return self.kernel_.features(
            validate_data(self, X, accept_sparse="csr", dtype=TYPES, reset=False)
        )

    def head(self, n_components: int) -> Any:
        """Return the fitted transformer of the first `n_components` features."""
        check_is_fitted(self)
        kernel = self.kernel_.head(n_components)
        shorter = clone(self).set_params(n_components=n_components)
        shorter.__dict__ |= {name: value for name, value in vars(self).items() if name[-1] == "_"}
        shorter._take(kernel)
        return shorter

    @property
    def _n_features_out(self) -> int:
        return self.kernel_.n_components

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
