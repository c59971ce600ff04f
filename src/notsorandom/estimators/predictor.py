"""The base class of classifier and regressor: linear models on the learned features."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from notsorandom._utils.threads import thread_pool
from notsorandom.data.rows import Array, Rows
from notsorandom.estimators.base import FourierEstimator
from notsorandom.estimators.callbacks import CALLBACK_FRAMES
from notsorandom.estimators.training import (
    DUALITY_GAP,
    FitData,
    fit_linear_models,
    progress_bar,
)
from notsorandom.estimators.validation import read_samples
from notsorandom.kernel import LearnedKernel

if TYPE_CHECKING:
    from notsorandom.estimators.features import FourierFeatures


class FourierPredictor(FourierEstimator):
    """Base class of classifier and regressor: linear models on the learned features."""

    def _fit_linear_models(self, kernel: LearnedKernel, fit: FitData) -> None:
        problem = fit.data.problem
        with progress_bar(problem.n_tasks, "linear models", self.verbose) as update:
            self.coef_, intercept, self.duality_gap_ = fit_linear_models(
                kernel, problem, callback=update
            )
        self.intercept_ = intercept + fit.preparation.offset
        if not self.duality_gap_ <= DUALITY_GAP:
            warnings.warn(
                f"The final model was solved to a relative duality gap of {self.duality_gap_:.1e}, "
                f"not to {DUALITY_GAP:.0e}: try a smaller C.",
                ConvergenceWarning,
                stacklevel=5 + CALLBACK_FRAMES,
            )

    @property
    def features_(self) -> FourierFeatures:
        """The learned features as a fitted transformer."""
        if not hasattr(self, "kernel_"):
            raise AttributeError(f"This {type(self).__name__} is not fitted: call fit first.")
        from notsorandom.estimators.features import FourierFeatures

        features = FourierFeatures(**self.get_params(deep=False))
        features.__dict__ |= self._learned()
        return features

    def _scores(self, X: Any) -> Array:
        """Return the values of the linear models, of shape (n_samples, n_tasks)."""
        check_is_fitted(self)
        X = read_samples(self, X)
        with thread_pool(self.n_jobs, work=X.shape[0] * self.kernel_.frequencies.size) as pool:
            rows = Rows(self.kernel_.space.prepare(X), pool=pool)
            return self.kernel_.scores(rows, self.coef_, self.intercept_)
