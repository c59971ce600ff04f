"""A learned or random kernel as a transformer."""

from __future__ import annotations

from typing import Any

from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from notsorandom._utils.threads import thread_pool
from notsorandom.data.rows import Rows
from notsorandom.estimators.validation import read_samples
from notsorandom.kernel import LearnedKernel


class KernelTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """Mixin that makes an estimator with a `kernel_` a transformer."""

    kernel_: LearnedKernel
    n_jobs: int | None = None  # for classes without this parameter

    def transform(self, X: Any) -> Any:
        """Map samples to the features.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Or an array API array, such as a tensor, on any device.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            For an array API array `X`, of its kind and on its device.
        """
        check_is_fitted(self)
        X, kernel = read_samples(self, X), self.kernel_
        with thread_pool(self.n_jobs, work=X.shape[0] * kernel.frequencies.size) as pool:
            rows = Rows(kernel.space.prepare(X), pool=pool)
            return kernel.device_features(rows)

    @property
    def _n_features_out(self) -> int:
        return self.kernel_.n_components

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
