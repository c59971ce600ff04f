"""A regressor on learned features."""

from __future__ import annotations

from typing import Any

from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.metrics import r2_score

from notsorandom.data.array_api import beside, on_host
from notsorandom.estimators.predictor import FourierPredictor
from notsorandom.game import RESIDUAL_LOSSES


class FourierRegressor(MultiOutputMixin, RegressorMixin, FourierPredictor):
    """A linear regression on Fourier features learned from the same targets.

    Parameters
    ----------
    n_components, n_rounds, space, search, phase
        As in :class:`FourierFeatures`.
    loss : {"squared", "epsilon_insensitive"}, default="squared"
        ``C * residual ** 2``, as in kernel ridge regression, or
        ``C * max(0, abs(residual) - epsilon)``, as in support vector regression.
    C : float, default=1.0
        Inverse regularisation.
    epsilon : float, default=0.1
        Residuals below cost nothing, with the second loss, in the targets' unit.
    smoothing, weighting, learning_rate, dynamics, reweight, early_stopping, validation_fraction, \
    n_iter_no_change, tol, warm_start, checkpoint, checkpoint_every, n_jobs
        As in :class:`FourierFeatures`.
    random_state : int, RandomState instance or None, default=None
    verbose : int, default=0

    Attributes
    ----------
    features_ : FourierFeatures
        The fitted transformer.
    coef_ : ndarray of shape (n_outputs, n_components)
    intercept_ : ndarray of shape (n_outputs,)
    duality_gap_ : float
        As in :class:`FourierClassifier`.
    n_outputs_ : int
    frequencies_, phases_, kernel_, history_, status_, smoothing_, dual_, average_dual_, \
    average_kernel_, validation_sizes_, validation_losses_, validation_scores_, n_samples_fit_, \
    n_features_in_, feature_names_in_
        As in :class:`FourierFeatures`.

    Examples
    --------
    >>> import numpy as np
    >>> from notsorandom import FourierRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(500, 2))
    >>> y = np.sin(5 * X[:, 0] - 3 * X[:, 1])
    >>> FourierRegressor(20, random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """

    _losses = RESIDUAL_LOSSES

    def __init__(
        self,
        n_components: Any = 100,
        *,
        n_rounds: Any = "auto",
        space: Any = "euclidean",
        search: Any = "auto",
        phase: str = "aligned",
        loss: str = "squared",
        C: float = 1.0,
        epsilon: float = 0.1,
        smoothing: Any = "auto",
        weighting: str = "potential",
        learning_rate: Any = "auto",
        dynamics: str = "gradient",
        reweight: bool = False,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        tol: float = 1e-4,
        warm_start: bool = False,
        checkpoint: Any = None,
        checkpoint_every: float = 60.0,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            n_components,
            n_rounds=n_rounds,
            space=space,
            search=search,
            phase=phase,
            loss=loss,
            C=C,
            epsilon=epsilon,
            smoothing=smoothing,
            weighting=weighting,
            learning_rate=learning_rate,
            dynamics=dynamics,
            reweight=reweight,
            early_stopping=early_stopping,
            validation_fraction=validation_fraction,
            n_iter_no_change=n_iter_no_change,
            tol=tol,
            warm_start=warm_start,
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
        )

    def predict(self, X: Any) -> Any:
        """Predict the targets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Of the kind of `X`, and on its device, if `X` is an array by the array API standard.
        """
        scores = self._scores(X)
        return beside(scores[:, 0] if self._flat else scores, X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Coefficient of determination, averaged over the outputs.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        float
        """
        truth, answers, weights = map(on_host, (y, self.predict(X), sample_weight))
        return float(r2_score(truth, answers, sample_weight=weights))
