"""The estimators of notsorandom, on Dask collections."""

from __future__ import annotations

import copy
from typing import Any

import dask.array as da
import numpy as np
from dask.base import is_dask_collection
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from notsorandom import estimators as plain
from notsorandom.dask.blocks import as_samples
from notsorandom.dask.cluster import find_client, gathered
from notsorandom.dask.reading import (
    check_samples,
    is_frame,
    read_collections,
    row_chunks,
    unequal,
    unknown_sizes,
)
from notsorandom.estimators.config import stops_early
from notsorandom.estimators.validation import Reading


class DaskEstimator:
    """What the estimators add to those for data in memory."""

    _plain: Any
    client: Any
    dual_: Any
    average_dual_: Any

    def __init__(self, n_components: Any = 100, *, client: Any = None, **parameters: Any) -> None:
        super().__init__(n_components, **parameters)  # type: ignore[call-arg]
        self.client = client

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted([*cls._plain._get_param_names(), "client"])

    # A client can't be copied, and is of no use in another process.

    def __sklearn_clone__(self) -> Any:
        without = copy.copy(self)
        without.client = None
        cloned = BaseEstimator.__sklearn_clone__(without)
        cloned.client = self.client
        return cloned

    def __copy__(self) -> Any:
        other = type(self).__new__(type(self))
        other.__dict__.update(vars(self))
        return other

    def __getstate__(self) -> Any:
        return super().__getstate__() | {"client": None}  # type: ignore[operator]

    def to_local(self) -> Any:
        """Return the fitted estimator of notsorandom itself: the same model, without a cluster.

        Returns
        -------
        estimator
        """
        check_is_fitted(self)
        local = self._plain.__new__(self._plain)
        local.__dict__ |= {name: value for name, value in vars(self).items() if name != "client"}
        local._complete()
        return local

    def save(self, path: Any, metrics: Any = None) -> Any:
        """Write the model to a file, as the estimator for data in memory; see :meth:`to_local`."""
        return self.to_local().save(path, metrics)

    def to_onnx(self, path: Any) -> Any:
        """Write the model as an ONNX file; see :meth:`to_local`."""
        return self.to_local().to_onnx(path)

    def certificate(self, X: Any, y: Any, bandwidth: float | None = None) -> Any:
        """Bound how far the kernel is from the best one for data in memory; see `to_local`."""
        return self.to_local().certificate(X, y, bandwidth)

    def report(self, path: Any, X: Any, y: Any, **options: Any) -> Any:
        """Write a page about the model, with data in memory; see :meth:`to_local`."""
        return self.to_local().report(path, X, y, **options)

    # Of a fit.

    def _read(self, space: Any, X: Any, y: Any, sample_weight: Any, workers: Any) -> Reading:
        refused = {
            "early_stopping=True": self.early_stopping,  # type: ignore[attr-defined]
            "n_components='auto'": stops_early(self),
            "warm_start=True": self.warm_start,  # type: ignore[attr-defined]
            "reweight=True": self.reweight,  # type: ignore[attr-defined]
            "dynamics='primal_dual'": self.dynamics != "gradient",  # type: ignore[attr-defined]
        }
        for name, asked in refused.items():
            if asked:
                raise ValueError(
                    f"{name} is not offered by notsorandom.dask: leave it out, or fit the "
                    "estimator of notsorandom itself to a part of the data in memory."
                )
        reading = read_collections(self, space, X, y, sample_weight, workers)
        path = self.checkpoint  # type: ignore[attr-defined]
        if path is not None:
            reading.rows.cluster.hint = (  # type: ignore[attr-defined]
                f"What was learned until the last checkpoint is in {str(path)!r}, and the next fit "
                "with the same data and parameters goes on from there. "
            )
        return reading

    def _take(self, result: Any, kernel: Any, played: Reading) -> None:
        super()._take(result, kernel, Unspread(*played.pair))  # type: ignore[misc]
        del self.dual_, self.average_dual_  # as long as the data

    # Of a model.

    def _lazily(self, method: str, X: Any, tail: tuple[int, ...], dtype: Any) -> Any:
        """A method of the model on every block, when it is computed."""
        check_is_fitted(self)
        kind = check_samples(self, X, first=False)
        dtype = kind if dtype is None else dtype
        local = self.to_local()
        local.__dict__.pop("feature_names_in_", None)  # blocks have no names
        X = row_chunks(X.to_dask_array() if is_frame(X) else X)
        return X.map_blocks(
            answers,
            local,
            method,
            tail,
            np.dtype(dtype),
            kind,
            dtype=dtype,
            chunks=(X.chunks[0], *((size,) for size in tail)),
            drop_axis=None if tail else 1,
            meta=np.empty((0,) * (1 + len(tail)), dtype=dtype),
        )


class Unspread(Reading):
    """A reading whose columns stay on the cluster."""

    def spread(self, column: Any) -> Any:
        """Nothing: it would be as long as the data."""


def answers(
    X: Any, model: Any, method: str, tail: tuple[int, ...], dtype: np.dtype[Any], kind: Any
) -> Any:
    """A model's answers to a block."""
    if len(X) == 0:
        return np.empty((0, *tail), dtype=dtype)
    return getattr(model, method)(as_samples(X, kind)).astype(dtype, copy=False)


def measured(name: str, value: Any) -> Any:
    """A collection, or an array, as a Dask array that knows how long it is."""
    if is_frame(value):
        value = value.to_dask_array(lengths=True)
    if not is_dask_collection(value):
        value = da.from_array(np.asarray(value))
    if np.isnan(value.shape[0]):
        raise unknown_sizes(name)
    return value


def matched(name: str, value: Any, found: Any) -> Any:
    """Targets or weights of the same samples as some predictions, cut alike."""
    value = measured(name, value)
    if value.shape[0] != found.shape[0]:
        raise unequal(name, value.shape[0], found.shape[0])
    if value.ndim == 2 and value.shape[1] == 1 and found.ndim == 1:
        value = value[:, 0]
    if name == "y" and value.shape != found.shape:
        raise ValueError(
            f"y has shape {value.shape}, but predictions have {found.shape}: give as many columns."
        )
    return value.rechunk((found.chunks[0], *value.chunks[1:]))


class DaskPredictor(DaskEstimator):
    """What classifier and regressor add."""

    def _complete(self) -> None:
        self.features_ = FourierFeatures(**self.get_params(deep=False))  # type: ignore[attr-defined]
        self.features_.__dict__ |= self._learned()  # type: ignore[attr-defined]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy, or R^2, as of the estimator for data in memory; Dask collections stay there.

        Parameters
        ----------
        X, y, sample_weight : Dask collections or array-likes

        Returns
        -------
        float
        """
        if not is_dask_collection(X):
            return float(super().score(X, y, sample_weight))  # type: ignore[misc]
        client = find_client(self.client)
        with client.as_current():
            found = self.predict(X)  # type: ignore[attr-defined]
            found._chunks = (measured("X", X).chunks[0], *found.chunks[1:])  # known from now on
            known, weights = (
                None if value is None else matched(name, value, found)
                for name, value in (("y", y), ("sample_weight", sample_weight))
            )
            return self._graded(known, found, weights)

    def _graded(self, known: Any, found: Any, weights: Any) -> float:
        raise NotImplementedError

    def _computed(self, *values: Any) -> Any:
        client = find_client(self.client)
        return gathered(client, client.compute(list(values)))


# Output as a data frame, if that were set, would be computed at once.
class FourierFeatures(  # type: ignore[call-arg]
    DaskEstimator, plain.FourierFeatures, auto_wrap_output_keys=None
):
    """:class:`notsorandom.FourierFeatures`, fitted to Dask collections.

    Parameters
    ----------
    client : distributed.Client, optional
        By default the current one.
    n_components, ...
        As of :class:`notsorandom.FourierFeatures`. `n_jobs` are threads of this process, for what
        it does itself; `early_stopping`, `warm_start`, `reweight` and ``dynamics="primal_dual"``
        are not offered.

    Notes
    -----
    `dual_` and `average_dual_`, as long as the data, are not kept. All else is as for data in
    memory, and so is the model, to rounding.
    """

    _plain = plain.FourierFeatures

    def transform(self, X: Any) -> Any:
        """Map samples to the features: lazily, if they are a Dask collection."""
        if not is_dask_collection(X):
            return super().transform(X)
        check_is_fitted(self)
        return self._lazily("transform", X, (self.kernel_.n_components,), None)


class FourierClassifier(DaskPredictor, plain.FourierClassifier):
    """:class:`notsorandom.FourierClassifier`, fitted to Dask collections.

    Parameters
    ----------
    client : distributed.Client, optional
        By default the current one.
    n_components, ...
        As of :class:`notsorandom.FourierClassifier`; see :class:`notsorandom.dask.FourierFeatures`.
    """

    _plain = plain.FourierClassifier

    def decision_function(self, X: Any) -> Any:
        """Signed distance to the border, up to scale: lazily, of a Dask collection."""
        if not is_dask_collection(X):
            return super().decision_function(X)
        check_is_fitted(self)
        tail = () if len(self.classes_) == 2 else (len(self.classes_),)
        return self._lazily("decision_function", X, tail, None)

    def predict(self, X: Any) -> Any:
        """Class of each sample: lazily, of a Dask collection."""
        if not is_dask_collection(X):
            return super().predict(X)
        check_is_fitted(self)
        return self._lazily("predict", X, (), self.classes_.dtype)

    def _graded(self, known: Any, found: Any, weights: Any) -> float:
        right = (found == known).astype(np.float64)
        if weights is None:
            weights = da.ones_like(right)
        total, counted = self._computed((weights * right).sum(), weights.sum())
        return float(total / counted)


class FourierRegressor(DaskPredictor, plain.FourierRegressor):
    """:class:`notsorandom.FourierRegressor`, fitted to Dask collections.

    Parameters
    ----------
    client : distributed.Client, optional
        By default the current one.
    n_components, ...
        As of :class:`notsorandom.FourierRegressor`; see :class:`notsorandom.dask.FourierFeatures`.
    """

    _plain = plain.FourierRegressor

    def predict(self, X: Any) -> Any:
        """Predict the targets: lazily, of a Dask collection."""
        if not is_dask_collection(X):
            return super().predict(X)
        check_is_fitted(self)
        return self._lazily("predict", X, () if self._flat else (self.n_outputs_,), None)

    def _graded(self, known: Any, found: Any, weights: Any) -> float:
        known, found = known.astype(np.float64), found.astype(np.float64)
        if known.ndim == 1:
            known, found = known[:, None], found[:, None]
        weights = da.ones_like(known[:, 0]) if weights is None else weights.astype(np.float64)
        weights = weights[:, None]
        total, count, wrong = self._computed(
            (weights * known).sum(axis=0),
            weights.sum(),
            (weights * (known - found) ** 2).sum(axis=0),
        )
        (spread,) = self._computed((weights * (known - total / count) ** 2).sum(axis=0))
        shares = np.where(spread > 0, wrong / np.where(spread > 0, spread, 1), wrong > 0)
        return float(np.mean(1 - shares))
