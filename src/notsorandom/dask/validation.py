"""Validation: from Dask collections to the training problem, block by block on the cluster."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
from dask.base import is_dask_collection
from scipy import sparse
from sklearn.utils.validation import validate_data

from notsorandom.dask.cluster import Cluster
from notsorandom.dask.rows import DaskColumn, DaskRows
from notsorandom.data.rows import Array
from notsorandom.estimators import targets as target_checks
from notsorandom.estimators import validation as local
from notsorandom.estimators.config import loss_of
from notsorandom.estimators.device_validation import check_finite
from notsorandom.game.dual import DualProblem, signs_from_codes
from notsorandom.spaces import Euclidean
from notsorandom.spaces.base import Space


class ClusterData(local.TrainingData):
    """Training data on a cluster."""

    def take(self, mask: Array) -> ClusterData:
        """Return the training data of the rows where the mask is true."""
        rows: Any = self.problem.rows
        rows, (targets,) = rows.select(mask, self.problem.targets)
        return ClusterData(replace(self.problem, targets=targets, rows=rows))

    def to_given(self, column: Any) -> Any:
        """Return the column as it is: rows without weight are not counted."""
        return column


def read_collections(
    estimator: Any, cluster: Cluster, space: Space, X: Any, y: Any, sample_weight: Any, pool: Any
) -> local.TrainingData:
    """Validate samples, targets and weights on the cluster, and return the training problem."""
    loss, name = loss_of(estimator), type(estimator).__name__
    dtype = check_samples(estimator, X, reset=True)
    check_collection("y", y)
    if y.ndim != 1 and (loss.one_sided or y.ndim != 2):
        shapes = "(n_samples,)" if loss.one_sided else "(n_samples,) or (n_samples, n_outputs)"
        raise ValueError(f"y has {y.ndim} dimensions, but it must have shape {shapes}.")
    with cluster.client.as_current():
        arrays = [float_array(known_array("X", X), dtype)]
        n_samples, sizes = arrays[0].shape[0], arrays[0].chunks[0]
        arrays.append(known_array("y", y, n_samples))
        if sample_weight is not None:
            arrays.append(known_array("sample_weight", sample_weight, n_samples))
        if n_samples <= local.DEDUPLICATED_ROWS:  # they are sorted and merged, in memory
            X_local, y_local, *w = cluster.gather(cluster.compute(arrays))
            weights = w[0] if w else None
            data = local.read_training_data(estimator, space, X_local, y_local, weights, pool=pool)
            check_samples(estimator, X, reset=True)  # stores the names of columns again
            return data
        arrays = [array.rechunk({0: sizes}) for array in arrays]
        futures = [cluster.compute(one.to_delayed().ravel()) for one in arrays]
    numbers = np.flatnonzero(sizes).tolist()
    sizes = [sizes[number] for number in numbers]
    samples, *columns = (
        DaskColumn(array.shape, array.dtype, [blocks[number] for number in numbers])
        for array, blocks in zip(arrays, futures, strict=True)
    )
    rows = DaskRows(samples, None, pool, block_rows=n_samples, cluster=cluster, sizes=sizes)
    check = partial(check_block, (name, estimator.loss, loss.one_sided, dtype, space))
    summaries = list(rows.map_blocks(check, *columns, given=numbers))
    for summary in summaries:
        if isinstance(summary, str):
            raise ValueError(summary)
    masks, weighted, n_stored, found, totals = zip(*summaries, strict=True)
    mask = np.concatenate([np.broadcast_to(*pair) for pair in zip(masks, sizes, strict=True)])
    if not mask.any():
        local.check_sample_weight(np.zeros(n_samples), n_samples, dtype)  # raises
    estimator.n_samples_fit_, estimator._weights = n_samples, None
    estimator._weighted = sample_weight is not None
    classes, factors = np.empty(0), None
    if loss.one_sided:
        classes, factors = merge_classes(estimator, list(found), list(totals))
    samples = replace(samples, n_stored=math.ceil(sum(n_stored) / n_samples))
    rows, (labels, *weights) = replace(rows, array=samples).select(mask, *columns)

    def targets_of(_: Any, y: Array) -> Array:
        if not loss.one_sided:
            return target_checks.real_targets(y, dtype)
        return signs_from_codes(np.searchsorted(classes, y), len(classes), dtype)

    def weights_of(_: Any, y: Array, w: Any = 1) -> Array:
        own = 1 if factors is None else factors.astype(dtype)[np.searchsorted(classes, y)]
        return (np.ones(len(y), dtype) * np.asarray(w, dtype) * own)[:, None]

    targets, column = rows.columns_only.map(targets_of, labels), None
    if factors is not None or any(weighted):
        column = rows.columns_only.map(weights_of, labels, *weights)
    if not loss.one_sided:
        estimator.n_outputs_, estimator._flat = targets.shape[1], y.ndim == 1
    if not isinstance(space, Euclidean):  # there, prepare changes nothing
        rows = replace(rows, array=rows.map(space.prepare))
    problem = DualProblem(loss, targets, replace(rows, weights=column, block_rows=None))
    local.check_magnitudes(problem)
    return ClusterData(problem)


def check_block(settings: tuple[Any, ...], X: Any, y: Any, *parts: Any) -> tuple[Any, ...] | str:
    """Validate a block, whose number comes last; return an error as text.

    Returns which samples have a positive weight (True if all have), whether a weight differs from
    1, how many numbers sparse samples have, the classes, and the weight of each.
    """
    name, loss, is_classification, dtype, space = settings
    try:
        target_checks.check_targets(y, name, loss, is_classification)
        check_finite(X, name)
        kept: Any = True
        weights, classes, totals = None, np.empty(0), np.empty(0)
        if len(parts) == 2:
            kept = np.asarray(parts[0] != 0)
            X, y, weights = X[kept], y[kept], parts[0][kept]
            weights = local.check_sample_weight(weights, len(y), dtype) if len(y) else weights
        if len(y):
            space.prepare(X)
        if is_classification:
            classes, codes = np.unique(y, return_inverse=True)
            totals = np.bincount(codes.ravel(), weights=weights).astype(np.float64)
        else:
            target_checks.real_targets(y, dtype)
        is_weighted = weights is not None and not np.all(weights == 1)
        return kept, is_weighted, X.nnz if sparse.issparse(X) else 0, classes, totals
    except (TypeError, ValueError) as error:
        return f"In block {parts[-1]} (blocks, and rows in them, count from 0): {error}"


def merge_classes(
    estimator: Any, found: list[Array], weights: list[Array]
) -> tuple[Array, Array | None]:
    """Store the classes of all blocks; return them, and the factor of each from `class_weight`."""
    classes = np.unique(np.concatenate([one for one in found if len(one)]))
    estimator.classes_ = classes
    target_checks.check_classes(type(estimator).__name__, classes, classes)
    if estimator.class_weight is None:
        return classes, None
    totals = np.zeros(len(classes))
    for one, weight in zip(found, weights, strict=True):
        totals[np.searchsorted(classes, one)] += weight
    codes = np.arange(len(classes))
    return classes, local.class_factors(estimator.class_weight, classes, codes, totals, np.float64)


def is_frame(X: Any) -> bool:
    """Whether a collection is a data frame or a series."""
    return hasattr(X, "to_dask_array")


def check_collection(name: str, value: Any) -> None:
    """Raise ValueError unless the value is a Dask array, data frame or series."""
    if not is_dask_collection(value) or not (isinstance(value, da.Array) or is_frame(value)):
        raise ValueError(
            f"{name} is of type {type(value).__name__}, but notsorandom.dask is fitted to Dask "
            "arrays and data frames: use dask.array.from_array, or for data in memory the "
            "estimator of notsorandom itself."
        )


def check_samples(estimator: Any, X: Any, reset: bool) -> np.dtype[Any]:
    """Check what is known of samples before any work; return the type to compute in."""
    check_collection("X", X)
    if X.ndim != 2 or X.shape[1] == 0:
        raise ValueError(
            f"X has shape {X.shape}, but it must have 2 dimensions, (n_samples, n_features), and "
            "at least one column: for one feature use X[:, None], or X[['name']] of a data frame."
        )
    dtypes = dict(X.dtypes.items()) if is_frame(X) else {"X": X.dtype}
    for name, dtype in dtypes.items():
        if getattr(dtype, "kind", "O") not in "biuf":
            raise ValueError(
                f"X must have numbers, but {name!r} is of type {dtype}: leave such columns out or "
                "encode them, categories for example by dask.dataframe.get_dummies("
                "X.categorize()). tabular_pipeline encodes data frames in memory."
            )
    if math.isnan(X.shape[1]):
        known_array("X", X)  # raises
    like = X._meta if is_frame(X) else np.empty((0, X.shape[1]))
    validate_data(estimator, like, reset=reset, skip_check_array=True)
    numpy_dtypes = {np.dtype(getattr(dtype, "numpy_dtype", dtype)) for dtype in dtypes.values()}
    return np.dtype(np.float32 if numpy_dtypes == {np.dtype(np.float32)} else np.float64)


def known_array(name: str, value: Any, n_samples: int | None = None) -> Any:
    """Return a collection or array as a Dask array of known length, which may be given."""
    if is_frame(value):
        value = value.to_dask_array(lengths=True)
    value = value if is_dask_collection(value) else da.asarray(np.asarray(value))
    if any(map(math.isnan, value.shape)):
        raise ValueError(
            f"{name} has chunks of unknown sizes, as arrays made from data frames have: call "
            f"{name}.compute_chunk_sizes() first."
        )
    if n_samples not in (None, value.shape[0]):
        raise ValueError(
            f"{name} has {value.shape[0]} rows, but X has {n_samples}: they must have the same "
            "rows, in the same order."
        )
    return value


def float_array(X: Any, dtype: Any) -> Any:
    """Return samples as an array of floats whose chunks hold whole rows; sparse ones stay so."""
    X = X.to_dask_array() if is_frame(X) else X
    X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
    return X.map_blocks(float_block, dtype, dtype=dtype, meta=np.empty((0, X.shape[1]), dtype))


def float_block(block: Any, dtype: Any) -> Any:
    """Return a block of samples as an array; sparse if it is."""
    if sparse.issparse(block):
        return sparse.csr_array(block, dtype=dtype)
    if block.dtype == object:  # of a data frame
        block = pd.DataFrame(block).to_numpy(dtype=dtype, na_value=np.nan)
    return np.ascontiguousarray(block, dtype=dtype)
