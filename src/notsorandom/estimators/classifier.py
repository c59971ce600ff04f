"""A classifier on learned features."""

from __future__ import annotations

from typing import Any

from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score

from notsorandom.data.array_api import beside, on_host
from notsorandom.estimators.predictor import FourierPredictor
from notsorandom.game import MARGIN_LOSSES
from notsorandom.game.scoring import predicted_codes


class FourierClassifier(ClassifierMixin, FourierPredictor):
    """A linear SVM on Fourier features learned from the same labels.

    Parameters
    ----------
    n_components, n_rounds, space, search, phase, loss, C, smoothing, weighting, learning_rate, \
    dynamics, reweight, class_weight, early_stopping, validation_fraction, n_iter_no_change, tol, \
    warm_start, checkpoint, checkpoint_every, n_jobs
        As in :class:`FourierFeatures`. `loss` and `C` are those of the final SVM too.
    random_state : int, RandomState instance or None, default=None
    verbose : int, default=0

    Attributes
    ----------
    features_ : FourierFeatures
        The fitted transformer.
    coef_ : ndarray of shape (1, n_components) or (n_classes, n_components)
        Weights of the learned features.
    intercept_ : ndarray of shape (1,) or (n_classes,)
    duality_gap_ : float
        Largest duality gap of the final SVMs, relative to the objective. They are solved to 1e-3;
        where that can't be reached (at a huge `C`), a ``ConvergenceWarning`` says so.
    classes_, frequencies_, phases_, kernel_, history_, status_, smoothing_, dual_, average_dual_, \
    average_kernel_, validation_sizes_, validation_losses_, validation_scores_, n_samples_fit_, \
    n_features_in_, feature_names_in_
        As in :class:`FourierFeatures`.

    Examples
    --------
    >>> from notsorandom import FourierClassifier
    >>> from notsorandom.datasets import make_windmill
    >>> X, y = make_windmill(1000, random_state=0)
    >>> FourierClassifier(random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """

    _losses = MARGIN_LOSSES

    def __init__(
        self,
        n_components: Any = 100,
        *,
        n_rounds: Any = "auto",
        space: Any = "euclidean",
        search: Any = "auto",
        phase: str = "aligned",
        loss: str = "hinge",
        C: float = 1.0,
        smoothing: Any = "auto",
        weighting: str = "potential",
        learning_rate: Any = "auto",
        dynamics: str = "gradient",
        reweight: bool = False,
        class_weight: Any = None,
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
            smoothing=smoothing,
            weighting=weighting,
            learning_rate=learning_rate,
            dynamics=dynamics,
            reweight=reweight,
            class_weight=class_weight,
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

    def decision_function(self, X: Any) -> Any:
        """Signed distance to the border, up to scale.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Positive for ``classes_[1]`` of two classes; one column a class for more. Of the kind
            of `X`, and on its device, if `X` is an array by the array API standard.
        """
        scores = self._scores(X)
        return beside(scores[:, 0] if scores.shape[1] == 1 else scores, X)

    def predict(self, X: Any) -> Any:
        """Class of each sample.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
            Of the kind of `X`, and on its device, if `X` is an array by the array API standard and
            the classes are numbers.
        """
        codes = predicted_codes(self._scores(X))
        labels = self.classes_[codes]
        return beside(labels, X) if labels.dtype.kind in "biuf" else labels

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of the samples whose class is predicted rightly.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        float
        """
        truth, answers, weights = map(on_host, (y, self.predict(X), sample_weight))
        return float(accuracy_score(truth, answers, sample_weight=weights))
