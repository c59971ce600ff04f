"""The estimators on Dask collections."""

from __future__ import annotations

import copy
import inspect
import re
from typing import Any, ClassVar

import dask.array as da
import numpy as np
from dask.base import is_dask_collection
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

import notsorandom as local
from notsorandom._utils.threads import ThreadPool
from notsorandom.dask.blocks import samples_array
from notsorandom.dask.cluster import find_client, gather
from notsorandom.dask.validation import (
    check_samples,
    chunk_by_rows,
    is_frame,
    read_collections,
    unequal_lengths,
    unknown_sizes,
)
from notsorandom.estimators.base import FourierEstimator
from notsorandom.estimators.classifier import ProbabilityMethod
from notsorandom.estimators.config import FitConfig, GradientSolver
from notsorandom.estimators.predictor import FourierPredictor
from notsorandom.estimators.training import FitData
from notsorandom.estimators.validation import TrainingData
from notsorandom.game.dual import DualProblem
from notsorandom.game.result import GameResult
from notsorandom.spaces.base import Space

# Differences from the estimators in memory, and the parameter that they don't have.
DIFFERENCES = """\
It is fitted to Dask arrays or data frames, whose blocks stay on the cluster, and gives the model
of the same data in memory up to rounding. ``n_components="auto"``, ``warm_start=True`` and the
solvers ``"reweight"`` and ``"equilibrium"`` are not supported, so `max_components` and
`validation_fraction` have no effect. `n_jobs` is the number of threads of this process, not of the
workers. The attributes `dual_` and `average_dual_`, as long as the data, are not kept.
"""
CLIENT = """\
client : distributed.Client, optional
    Client of the cluster, by default the current one.
"""


def compose_docstring(summary: str, local_docstring: str) -> str:
    """Return the docstring of an estimator in memory with the differences on a cluster."""
    text = inspect.cleandoc(local_docstring) + "\n"
    _, parameters = text.split("Parameters\n-", 1)
    text = f"{summary}\n\n{DIFFERENCES}\nParameters\n-{parameters}"
    text = re.sub(r"(?m)^(?=n_jobs : )", CLIENT, text)
    for names in ("dual_, average_dual_", "validation_sizes_, validation_losses_.*"):
        text = re.sub(rf"(?m)^{names} : .*\n(?: .*\n)*", "", text)
    return re.sub(r"(?ms)^Examples\n-+\n.*", "", text).rstrip() + "\n"


class DaskEstimator(FourierEstimator):
    """What the estimators on a cluster add to those in memory."""

    _local: ClassVar[Any]
    client: Any

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "_local" in vars(cls) and cls.__doc__ is not None:  # None with python -OO
            cls.__doc__ = compose_docstring(cls.__doc__, cls._local.__doc__)
            signature = inspect.signature(cls._local)
            client = inspect.Parameter("client", inspect.Parameter.KEYWORD_ONLY, default=None)
            parameters = [*signature.parameters.values(), client]
            cls.__signature__ = signature.replace(parameters=parameters)

    def __init__(self, n_components: Any = 100, *, client: Any = None, **parameters: Any) -> None:
        super().__init__(n_components, **parameters)
        self.client = client

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted([*cls._local._get_param_names(), "client"])

    # A client can't be copied or pickled, so a clone shares it and a pickled estimator has none.

    def __sklearn_clone__(self) -> Any:
        without_client = copy.copy(self)
        without_client.client = None
        cloned = BaseEstimator.__sklearn_clone__(without_client)
        cloned.client = self.client
        return cloned

    def __copy__(self) -> Any:
        other = type(self).__new__(type(self))
        other.__dict__.update(vars(self))
        return other

    def __getstate__(self) -> Any:
        return super().__getstate__() | {"client": None}

    def to_local(self) -> Any:
        """Return the same fitted model as an estimator of notsorandom itself, without a cluster.

        Returns
        -------
        estimator
        """
        check_is_fitted(self)
        estimator = self._local.__new__(self._local)
        estimator.__dict__ |= vars(self)
        del estimator.client
        return estimator

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learn the features from samples and their targets.

        Parameters
        ----------
        X : Dask array or data frame of shape (n_samples, n_features)
            Sparse blocks are made dense.
        y : Dask array, series or data frame of shape (n_samples,) or (n_samples, n_outputs)
            Class labels of any type, of two classes or more, for classification losses. Real
            numbers, in one or several columns, for regression losses.
        sample_weight : Dask array or series of shape (n_samples,), optional
            Weight 2 counts a sample twice, weight 0 leaves it out.

        Returns
        -------
        self
        """
        return super().fit(X, y, sample_weight)

    # Steps of a fit that differ.

    def _fit(self, config: FitConfig, *args: Any) -> None:
        solver = config.solver
        unsupported = {
            "n_components='auto'": config.stops_early,
            "warm_start=True": self.warm_start,
            "solver='equilibrium'": not isinstance(solver, GradientSolver),
            "solver='reweight'": getattr(solver, "reweight", False),
        }
        for setting, is_set in unsupported.items():
            if is_set:
                raise ValueError(
                    f"{setting} is not supported by notsorandom.dask: leave it out, or fit the "
                    "estimator of notsorandom itself to a part of the data in memory."
                )
        super()._fit(config, *args)

    def _read(
        self, space: Space, X: Any, y: Any, sample_weight: Any, pool: ThreadPool | None
    ) -> TrainingData:
        return read_collections(self, space, X, y, sample_weight, pool)

    def _open_checkpoint(self, config: FitConfig, problem: DualProblem) -> Any:
        if config.checkpoint is not None:
            problem.rows.cluster.hint = (  # type: ignore[attr-defined]
                f"The last checkpoint is in {str(config.checkpoint.path)!r}: a fit with the same "
                "data and parameters continues from it. "
            )
        return super()._open_checkpoint(config, problem)

    def _store_duals(self, result: GameResult, fit: FitData) -> None:
        """Store nothing: the dual variables stay on the cluster."""

    # After a fit.

    def _apply(self, method: str, X: Any) -> Any:
        """Call a method of the estimator in memory, on each block of a Dask collection lazily."""
        if not is_dask_collection(X):
            return getattr(self._local, method)(self, X)
        model = self.to_local()
        dtype = check_samples(self, X, reset=False)
        model.__dict__.pop("feature_names_in_", None)  # blocks have no names
        model.n_jobs = 1  # Dask processes several blocks at a time
        call = getattr(model, method)
        # One arbitrary sample shows the shape and type of the results.
        like = call(np.ones((1, self.n_features_in_), dtype=dtype))[:0]
        X = chunk_by_rows(X.to_dask_array() if is_frame(X) else X)
        return X.map_blocks(
            lambda block: call(samples_array(block, dtype)) if len(block) else like,
            chunks=(X.chunks[0], *((size,) for size in like.shape[1:])),
            drop_axis=None if like.ndim == 2 else 1,
            meta=like,
        )


class DaskPredictor(DaskEstimator, FourierPredictor):
    """What classifier and regressor have in common."""

    @property
    def features_(self) -> Any:
        """The learned features as a fitted transformer for Dask collections."""
        features = FourierFeatures(client=self.client)
        features.__dict__ |= vars(self.to_local().features_)
        return features

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy or R^2, as the estimator in memory does.

        Parameters
        ----------
        X, y, sample_weight : Dask collections or array-likes

        Returns
        -------
        float
        """
        if not is_dask_collection(X):
            return float(super().score(X, y, sample_weight))
        with find_client(self.client).as_current():
            predicted = self.predict(X)
            # Dask doesn't know the lengths of a data frame's blocks.
            predicted._chunks = (with_known_sizes("X", X).chunks[0], *predicted.chunks[1:])
            truth, weights = match_shape("y", y, predicted.shape), None
            if sample_weight is not None:
                weights = match_shape("sample_weight", sample_weight, predicted.shape[:1])
                weights = weights.astype(np.float64)
            return self._score(truth, predicted, weights)

    def _score(self, truth: Any, predicted: Any, weights: Any) -> float:
        raise NotImplementedError

    def _compute(self, *values: Any) -> list[Any]:
        return gather(client := find_client(self.client), client.compute(list(values)))


def with_known_sizes(name: str, value: Any) -> Any:
    """Return a collection or array as a Dask array of known length."""
    if is_frame(value):
        value = value.to_dask_array(lengths=True)
    if not is_dask_collection(value):
        value = da.from_array(np.asarray(value))
    if np.isnan(value.shape[0]):
        raise unknown_sizes(name)
    return value


def match_shape(name: str, value: Any, shape: tuple[int, ...]) -> Any:
    """Return targets or weights as a Dask array of the shape of the predictions."""
    value = with_known_sizes(name, value)
    if value.shape[0] != shape[0]:
        raise unequal_lengths(name, value.shape[0], shape[0])
    if value.size != np.prod(shape):
        raise ValueError(f"{name} has shape {value.shape}, but it must have shape {shape}.")
    return value.reshape(shape)


# Without `set_output`: a data frame would be computed at once.
class FourierFeatures(DaskEstimator, local.FourierFeatures, auto_wrap_output_keys=None):
    """Fourier features learned from labels on a Dask cluster."""

    _local = local.FourierFeatures

    def transform(self, X: Any) -> Any:
        """Map samples to the features; return a lazy Dask array for a Dask collection."""
        return self._apply("transform", X)


class FourierClassifier(DaskPredictor, local.FourierClassifier):
    """A linear SVM on Fourier features learned from the same labels on a Dask cluster."""

    _local = local.FourierClassifier

    def decision_function(self, X: Any) -> Any:
        """Return the signed distance to the decision boundary, lazily for a Dask collection."""
        return self._apply("decision_function", X)

    def predict(self, X: Any) -> Any:
        """Return the class of each sample, lazily for a Dask collection."""
        return self._apply("predict", X)

    @ProbabilityMethod
    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the classes, lazily for a Dask collection."""
        return self._apply("predict_proba", X)

    @ProbabilityMethod
    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithms of the probabilities, lazily for a Dask collection."""
        return self._apply("predict_log_proba", X)

    def _score(self, truth: Any, predicted: Any, weights: Any) -> float:
        return float(*self._compute(da.average(predicted == truth, weights=weights)))


class FourierRegressor(DaskPredictor, local.FourierRegressor):
    """A linear regression on Fourier features learned from the same targets on a Dask cluster."""

    _local = local.FourierRegressor

    def predict(self, X: Any) -> Any:
        """Predict the targets, lazily for a Dask collection."""
        return self._apply("predict", X)

    def _score(self, truth: Any, predicted: Any, weights: Any) -> float:
        truth, predicted = truth.astype(np.float64), predicted.astype(np.float64)
        mean = da.average(truth, axis=0, weights=weights)
        residual, variation = self._compute(
            da.average((truth - predicted) ** 2, axis=0, weights=weights),
            da.average((truth - mean) ** 2, axis=0, weights=weights),
        )
        # As r2_score: a constant output scores 1 if it is predicted exactly, else 0.
        safe = np.where(variation > 0, variation, 1)
        return float(np.mean(1 - np.where(variation > 0, residual / safe, residual > 0)))
