"""The base class of classifier and regressor: linear models on the learned features."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from notsorandom._utils.progress import progress_bar
from notsorandom._utils.threads import thread_pool
from notsorandom.data.rows import Array, Rows
from notsorandom.estimators.base import FourierEstimator
from notsorandom.estimators.observers import CALLBACK_FRAMES
from notsorandom.estimators.samples import read_samples
from notsorandom.estimators.steps import FinalFit
from notsorandom.game.losses import Loss, QuantileLoss
from notsorandom.game.problem import Problem

if TYPE_CHECKING:
    from notsorandom.estimators.explanation import Importances
    from notsorandom.estimators.features import FourierFeatures
    from notsorandom.linear.fit import LinearFit


class FourierPredictor(FourierEstimator):
    """Base class of classifier and regressor: linear models on the learned features."""

    loss: str | Loss

    def _fit_linear_models(self, final: FinalFit) -> None:
        from notsorandom.linear.fit import DUALITY_GAP, fit_linear_models  # needed by fits only

        problem = final.problem
        with progress_bar(problem.n_tasks, "linear models", self.verbose) as update:
            found = fit_linear_models(final.kernel, problem, callback=update)
        self.coef_, self.duality_gap_ = found.coef, found.gap
        self.intercept_ = found.intercept + final.view.offset
        self._store_uncertainty(final, found)
        if not self.duality_gap_ <= DUALITY_GAP:
            warnings.warn(
                f"The final model was solved to a relative duality gap of {self.duality_gap_:.1e}, "
                f"not to {DUALITY_GAP:.0e}: try a smaller C.",
                ConvergenceWarning,
                stacklevel=5 + CALLBACK_FRAMES,
            )

    def _store_uncertainty(self, final: FinalFit, found: LinearFit) -> None:
        """Store what the uncertainty of predictions is computed from."""

    def _store_importances(self, problem: Problem) -> None:
        if not self.kernel_.space.is_vector_space or len(problem.rows) < 2:
            return
        from notsorandom.estimators.explanation import compute_importances, sample_for_importances

        rows = sample_for_importances(problem.rows, len(self.coef_))
        found = compute_importances(self.kernel_, self.coef_, rows, [])
        self.feature_importances_ = np.nan_to_num(found.shares)

    @property
    def features_(self) -> FourierFeatures:
        """The learned features as a fitted transformer."""
        if not hasattr(self, "kernel_"):
            raise AttributeError(f"This {type(self).__name__} is not fitted: call fit first.")
        from notsorandom.estimators.features import FourierFeatures

        parameters = self.get_params(deep=False)
        del parameters["linear"]
        parameters.pop("calibration_size", None)
        quantile = parameters.pop("quantile", None)
        if self.loss == "quantile":
            parameters["loss"] = QuantileLoss(quantile=quantile)
        features = FourierFeatures(**parameters)
        features.__dict__ |= self._learned()
        for name in "noise_ posterior_ held_out_scores_ feature_importances_".split():
            features.__dict__.pop(name, None)  # of predictions
        return features

    def _scores(self, X: Any) -> Array:
        """Return the values of the linear models, of shape (n_samples, n_tasks)."""
        with self._rows(X) as rows:
            return self.kernel_.scores(rows, self.coef_, self.intercept_)

    @contextmanager
    def _rows(self, X: Any) -> Iterator[Rows]:
        """Validate samples, and yield them with threads that share them."""
        check_is_fitted(self)
        X = read_samples(self, X)
        with thread_pool(self.n_jobs, work=X.shape[0] * self.kernel_.frequencies.size) as pool:
            yield Rows(self.kernel_.space.prepare(X), pool=pool)

    def importances(self, X: Any) -> Importances:
        """Return how much the predictions change with each column, on the average over samples.

        For a pipeline, :func:`notsorandom.display.column_importances` gives the importances of the
        columns of its own `X`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples like the training samples, on R^d.

        Returns
        -------
        Importances
            With `shares`, which sum to one, and the matrix that they are computed from.

        Examples
        --------
        >>> import numpy as np
        >>> from notsorandom import FourierRegressor
        >>> X = np.random.default_rng(0).normal(size=(500, 3))
        >>> model = FourierRegressor(50, random_state=0).fit(X, np.sin(2 * X[:, 1]))
        >>> model.importances(X).shares.argmax()
        np.int64(1)
        """
        from notsorandom.estimators.explanation import compute_importances

        with self._rows(X) as rows:
            return compute_importances(self.kernel_, self.coef_, rows, self._column_names())

    def _column_names(self) -> list[str]:
        names = getattr(self, "feature_names_in_", None)
        return [f"x{k}" for k in range(self.n_features_in_)] if names is None else list(names)

    def contributions(self, X: Any) -> Array:
        """Return what each column adds to each decision value or prediction.

        They are integrated gradients along the straight path from the mean of the training samples
        to the sample. Their sum over the columns is the value at the sample, less the value at the
        mean. For a pipeline, :func:`notsorandom.display.column_contributions` gives the
        contributions of the columns of its own `X`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples on R^d.

        Returns
        -------
        ndarray of shape (n_samples, n_features) or (n_samples, n_tasks, n_features)
            The latter for more than two classes, or several outputs.
        """
        from notsorandom.estimators.explanation import compute_contributions

        with self._rows(X) as rows:
            values = compute_contributions(self.kernel_, self.coef_, rows)
        is_flat = getattr(self, "_flat", len(self.coef_) == 1)
        return values[:, 0] if is_flat else values
