"""A learned or drawn kernel as a transformer."""

from __future__ import annotations

from typing import Any

from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from notsorandom.kernel import LearnedKernel
from notsorandom.rows import FLOATS, Array


class KernelTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """What an estimator needs to be a transformer once it has a kernel."""

    kernel_: LearnedKernel

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
        X = validate_data(self, X, accept_sparse="csr", dtype=FLOATS, reset=False)
        return self.kernel_.features(X)

    @property
    def _n_features_out(self) -> int:
        return self.kernel_.n_components

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
