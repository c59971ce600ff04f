"""The estimators on Dask collections."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np
from dask.base import compute, is_dask_collection
from sklearn.base import BaseEstimator, is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.validation import check_is_fitted

import notsorandom as local
from notsorandom.dask.cluster import Cluster
from notsorandom.dask.validation import check_samples, is_frame, read_collections
from notsorandom.estimators.base import FourierEstimator
from notsorandom.estimators.classifier import ProbabilityMethod
from notsorandom.estimators.predictor import FourierPredictor
from notsorandom.game.problem import Problem
from notsorandom.tuning.choice import FitConfig

DOCSTRING = """{summary}

It is fitted to Dask arrays or data frames, whose blocks stay on the cluster, and finds the same
frequencies as :class:`notsorandom.{name}`, which has the same parameters and attributes, but:
`client` is the distributed.Client of the cluster, by default the current one. `n_jobs` is the
number of threads of this process, not of the workers. The solvers "reweight" and "equilibrium" are
not supported. `dual_` and `average_dual_`, as long as the data, are not kept.
"""


class DaskEstimator(FourierEstimator):
    """What the estimators on a cluster add to those in memory."""

    _local: ClassVar[Any]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "_local" in vars(cls):
            cls.__doc__ = DOCSTRING.format(summary=cls.__doc__, name=cls.__name__)
            client = inspect.Parameter("client", inspect.Parameter.KEYWORD_ONLY, default=None)
            parameters = [*inspect.signature(cls._local).parameters.values(), client]
            cls.__signature__ = inspect.Signature(parameters)

    def __init__(self, *size: Any, client: Any = None, **parameters: Any) -> None:
        super().__init__(*size, **parameters)  # the number of features, if it is given
        self.client = client

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted([*cls._local._get_param_names(), "client"])

    # A client can't be copied or pickled, so a clone shares it and a pickled estimator has none.

    def __sklearn_clone__(self) -> Any:
        other = copy.copy(self).set_params(client=None)
        return BaseEstimator.__sklearn_clone__(other).set_params(client=self.client)

    def __copy__(self) -> Any:
        other = type(self).__new__(type(self))
        other.__dict__.update(vars(self))
        return other

    def __getstate__(self) -> Any:
        return super().__getstate__() | {"client": None}

    def to_local(self) -> Any:
        """Return the same fitted model as an estimator of notsorandom itself, without a cluster."""
        check_is_fitted(self)
        estimator = self._local.__new__(self._local)
        estimator.__dict__ |= vars(self)
        del estimator.client
        return estimator

    def _fit(self, config: FitConfig, *args: Any) -> None:
        if config.solver.computes_equilibrium:
            raise ValueError(
                f"solver={self.solver!r} is not supported by notsorandom.dask: use 'gradient', or "
                "fit the estimator of notsorandom itself to a part of the data in memory."
            )
        with Cluster.of(self.client) as self._cluster:
            super()._fit(config, *args)
        del self._cluster

    def _validate(self, *args: Any) -> tuple[Problem, dict[str, Any]]:
        return read_collections(self, self._cluster, *args)


def lazy(name: str) -> Callable[..., Any]:
    """Return a method that applies the method of the model in memory to each block, lazily."""

    def method(self: Any, X: Any, *args: Any, **options: Any) -> Any:
        if not is_dask_collection(X):
            return getattr(self._local, name)(self, X, *args, **options)
        model = self.to_local()
        dtype = check_samples(self, X, reset=False)
        model.__dict__.pop("feature_names_in_", None)  # blocks have no names
        model.n_jobs = 1  # Dask processes several blocks at a time
        call = getattr(model, name)
        # One arbitrary sample shows the shape and type of the results.
        one = call(np.ones((1, self.n_features_in_), dtype=dtype), *args, **options)
        is_pair = isinstance(one, tuple)  # of predictions and deviations, computed as one array
        if not is_pair and name != "predict_interval":
            model.__dict__.pop("posterior_", None)  # large, and sent with each task
        join = partial(np.stack, axis=-1) if is_pair else np.asarray
        like = join(one)[:0]
        X = X.astype(dtype)
        X = X.to_dask_array() if is_frame(X) else X.rechunk({1: -1})  # whole rows
        results = X.map_blocks(
            lambda block: join(call(block, *args, **options)) if block.shape[0] else like,
            chunks=(X.chunks[0], *((size,) for size in like.shape[1:])),
            drop_axis=None if like.ndim > 1 else 1,
            new_axis=list(range(2, like.ndim)),
            meta=like,
        )
        return (results[..., 0], results[..., 1]) if is_pair else results

    method.__name__ = name
    method.__doc__ = f"Apply `{name}` of the model in memory; lazily to a Dask collection."
    return method


def calibrate(self: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
    """Apply `calibrate` of the model in memory; Dask collections are gathered."""
    if any(map(is_dask_collection, (X, y, sample_weight))):
        with Cluster.of(self.client):
            X, y, sample_weight = compute(X, y, sample_weight)
    return self._local.calibrate(self, X, y, sample_weight)


class DaskPredictor(DaskEstimator, FourierPredictor):
    """What classifier and regressor have in common."""

    predict = lazy("predict")

    @property
    def features_(self) -> Any:
        """The learned features as a fitted transformer for Dask collections."""
        features = FourierFeatures(client=self.client)
        features.__dict__ |= vars(self.to_local().features_)
        return features

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy or R^2; of Dask collections, labels and predictions are gathered."""
        if not is_dask_collection(X):
            return float(super().score(X, y, sample_weight))
        metric = accuracy_score if is_classifier(self) else r2_score
        with Cluster.of(self.client):
            weights = None if sample_weight is None else np.asarray(sample_weight)
            return float(metric(np.asarray(y), np.asarray(self.predict(X)), sample_weight=weights))


# Without `set_output`: a data frame would be computed at once.
class FourierFeatures(DaskEstimator, local.FourierFeatures, auto_wrap_output_keys=None):
    """Fourier features learned from labels on a Dask cluster."""

    _local = local.FourierFeatures
    transform = lazy("transform")


class FourierClassifier(DaskPredictor, local.FourierClassifier):
    """A linear classifier on Fourier features learned from the same labels on a Dask cluster."""

    _local = local.FourierClassifier
    decision_function = lazy("decision_function")
    predict_proba = ProbabilityMethod(lazy("predict_proba"))
    predict_log_proba = ProbabilityMethod(lazy("predict_log_proba"))
    predict_set = ProbabilityMethod(lazy("predict_set"))
    calibrate = ProbabilityMethod(calibrate)


class FourierRegressor(DaskPredictor, local.FourierRegressor):
    """A linear regression on Fourier features learned from the same targets on a Dask cluster."""

    _local = local.FourierRegressor
    predict_interval = lazy("predict_interval")
    calibrate = calibrate
