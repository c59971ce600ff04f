"""Validation: from Dask collections to the training problem, block by block on the cluster."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
from dask.base import is_dask_collection
from scipy import sparse
from sklearn.utils.validation import validate_data

from notsorandom._utils.threads import ThreadPool
from notsorandom.dask.chunks import Chunks, DaskColumn
from notsorandom.dask.cluster import Cluster
from notsorandom.dask.rows import DaskRows
from notsorandom.data.rows import Array
from notsorandom.estimators.config import loss_of
from notsorandom.estimators.device_validation import check_finite
from notsorandom.estimators.targets import (
    check_classes,
    check_is_numeric,
    check_labels,
    real_targets,
)
from notsorandom.estimators.validation import (
    DEDUPLICATED_ROWS,
    TrainingData,
    check_magnitudes,
    check_sample_weight,
    class_factors,
    read_training_data,
)
from notsorandom.game.dual import DualProblem, signs_from_codes
from notsorandom.spaces.base import Space


class ClusterData(TrainingData):
    """Training data on a cluster."""

    def take(self, mask: Array) -> ClusterData:
        """Return the training data of the rows where the mask is true."""
        rows: Any = self.problem.rows
        columns = (rows.array, self.problem.targets, *rows.weight_columns)
        masks = np.split(mask, rows.chunks.starts[1:])
        chunks, (samples, targets, *weights) = rows.chunks.select(columns, masks, rows.row_bytes)
        rows = replace(rows, array=samples, weights=(*weights, None)[0], chunks=chunks)
        return ClusterData(replace(self.problem, targets=targets, rows=rows))

    def to_given(self, column: Any) -> Any:
        """Return the column as it is: rows without weight are not counted."""
        return column


def read_collections(
    estimator: Any, space: Space, X: Any, y: Any, sample_weight: Any, pool: ThreadPool | None
) -> TrainingData:
    """Validate samples, targets and weights on the cluster, and return the training problem."""
    loss, is_weighted = loss_of(estimator), sample_weight is not None
    dtype = check_samples(estimator, X, reset=True)
    check_collection("y", y)
    if y.ndim != 1 and (loss.one_sided or y.ndim != 2):
        shapes = "(n_samples,)" if loss.one_sided else "(n_samples,) or (n_samples, n_outputs)"
        raise ValueError(f"y has {y.ndim} dimensions, but it must have shape {shapes}.")
    cluster = Cluster.of(estimator.client)
    with cluster.client.as_current():
        arrays = [float_array(known_array("X", X), dtype)]
        n_samples, sizes = arrays[0].shape[0], arrays[0].chunks[0]
        arrays.append(known_array("y", y, n_samples))
        if is_weighted:
            arrays.append(known_array("sample_weight", sample_weight, n_samples))
        if n_samples <= DEDUPLICATED_ROWS:  # they are sorted and merged, in memory
            values = cluster.gather(cluster.client.compute(arrays))
            return read_training_data(estimator, space, *values, pool=pool)
        arrays = [array.rechunk({0: sizes}) for array in arrays]
        futures = [cluster.client.compute(list(one.to_delayed().ravel())) for one in arrays]
    numbers = np.flatnonzero(sizes).tolist()
    columns = [
        DaskColumn(array.shape, array.dtype, [blocks[number] for number in numbers])
        for array, blocks in zip(arrays, futures, strict=True)
    ]
    chunks = Chunks(cluster, [sizes[number] for number in numbers])
    rows = DaskRows(columns[0], None, pool, block_rows=n_samples, chunks=chunks)
    checker = BlockChecker(type(estimator).__name__, estimator.loss, loss.one_sided, dtype, space)
    summaries = list(rows.map_blocks(checker.check, *columns[1:], given=numbers))
    for summary in summaries:
        if isinstance(summary, str):
            raise ValueError(summary)
    if all(summary.kept is not None and not summary.kept.any() for summary in summaries):
        check_sample_weight(np.zeros(n_samples), n_samples, dtype)  # raises
    estimator.n_samples_fit_, estimator._weights = n_samples, None
    estimator._weighted = is_weighted
    classes, factors = np.empty(0), None
    if loss.one_sided:
        classes, factors = merge_classes(estimator, summaries)
    n_stored = sum(summary.n_stored for summary in summaries)
    columns[0].n_stored = math.ceil(n_stored / n_samples)
    masks = [summary.kept for summary in summaries]
    chunks, (samples, labels, *weights) = chunks.select(columns, masks, rows.row_bytes)

    def targets_of(_: Any, y: Array) -> Array:
        if not loss.one_sided:
            return real_targets(y, dtype)
        return signs_from_codes(np.searchsorted(classes, y), len(classes), dtype)

    def weights_of(_: Any, y: Array, w: Any = 1) -> Array:
        own = 1 if factors is None else factors.astype(dtype)[np.searchsorted(classes, y)]
        return (np.ones(len(y), dtype) * np.asarray(w, dtype) * own)[:, None]

    rows = replace(rows, array=samples, chunks=chunks)
    targets = rows.columns_only.map(targets_of, labels)
    column = None
    if factors is not None or any(summary.is_weighted for summary in summaries):
        column = rows.columns_only.map(weights_of, labels, *weights)
    if not loss.one_sided:
        estimator.n_outputs_, estimator._flat = targets.shape[1], y.ndim == 1
    rows = replace(rows, array=rows.map(space.prepare), weights=column, block_rows=None)
    for each in (rows.array, targets, *rows.weight_columns):
        chunks.store(each)
    problem = DualProblem(loss, targets, rows)
    check_magnitudes(problem)
    return ClusterData(problem)


# Collections.


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
    if X.ndim != 2:
        raise ValueError(
            f"X has {X.ndim} dimensions, but it must have 2 dimensions, (n_samples, n_features): "
            "for a single feature use X[:, None] of an array, X[['name']] of a data frame."
        )
    dtypes = dict(X.dtypes.items()) if is_frame(X) else {"X": X.dtype}
    invalid = [name for name, dtype in dtypes.items() if getattr(dtype, "kind", "O") not in "biuf"]
    if invalid:
        raise ValueError(
            f"X must have numbers, but {invalid[0]!r} is of type {dtypes[invalid[0]]}: leave such "
            "columns out or encode them, categories for example by dask.dataframe.get_dummies("
            "X.categorize()). tabular_pipeline encodes data frames in memory."
        )
    if math.isnan(X.shape[1]):
        raise unknown_sizes("X")
    if X.shape[1] == 0:
        raise ValueError("X has no columns (n_features = 0): at least one is needed.")
    like = X._meta if is_frame(X) else np.empty((0, X.shape[1]))
    validate_data(estimator, like, reset=reset, skip_check_array=True)
    numpy_dtypes = {np.dtype(getattr(dtype, "numpy_dtype", dtype)) for dtype in dtypes.values()}
    return np.dtype(np.float32 if numpy_dtypes == {np.dtype(np.float32)} else np.float64)


def unknown_sizes(name: str) -> ValueError:
    """Return the error for an array of unknown length."""
    return ValueError(
        f"{name} has chunks of unknown sizes, as arrays made from data frames have: call "
        f"{name}.compute_chunk_sizes() first."
    )


def known_array(name: str, value: Any, n_samples: int | None = None) -> Any:
    """Return a collection or array as a Dask array of known length, which may be given."""
    if is_frame(value):
        value = value.to_dask_array(lengths=True)
    value = value if is_dask_collection(value) else da.asarray(np.asarray(value))
    if math.isnan(value.shape[0]):
        raise unknown_sizes(name)
    if n_samples not in (None, value.shape[0]):
        raise ValueError(
            f"{name} has {value.shape[0]} rows, but X has {n_samples}: they must have the same "
            "rows, in the same order."
        )
    return value


def float_array(X: Any, dtype: Any) -> Any:
    """Return samples as an array of floats whose chunks hold whole rows; sparse ones stay so."""
    if is_frame(X):
        X = X.to_dask_array()
    X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
    return X.map_blocks(float_block, dtype, dtype=dtype, meta=np.empty((0, X.shape[1]), dtype))


def float_block(block: Any, dtype: Any) -> Any:
    """Return a block of samples as an array; sparse if it is."""
    if sparse.issparse(block):
        return sparse.csr_array(block, dtype=dtype)
    if block.dtype == object:  # of a data frame
        block = pd.DataFrame(block).to_numpy(dtype=dtype, na_value=np.nan)
    return np.ascontiguousarray(block, dtype=dtype)


# Blocks.


@dataclass(frozen=True)
class BlockSummary:
    """What is known of a block after validation, without samples of weight zero."""

    kept: Array | None  # which samples have a positive weight; None if all have
    is_weighted: bool  # whether a weight differs from 1
    n_stored: int  # numbers of sparse samples; 0 if they are dense
    classes: Array
    totals: Array  # weight of each class


@dataclass(frozen=True)
class BlockChecker:
    """Validation of single blocks, on a worker; `dtype` is the type to compute in."""

    name: str
    loss: str
    is_classification: bool
    dtype: np.dtype[Any]
    space: Space

    def check(self, X: Any, y: Any, *parts: Any) -> BlockSummary | str:
        """Return the summary of a block, whose number comes last; an error as text."""
        try:
            return self._check(X, y, *parts[:-1])
        except (TypeError, ValueError) as error:  # a value: the error of the first block is raised
            return f"In block {parts[-1]} (blocks, and rows in them, count from 0): {error}"

    def _check(self, X: Any, y: Any, w: Any = None) -> BlockSummary:
        missing = np.argwhere(pd.isna(y))
        if len(missing):
            raise ValueError(f"y has a missing value at row {missing[0][0]}: fill it in.")
        check_finite(X, self.name)
        kept = None
        if w is not None and np.any(w == 0):
            kept = np.asarray(w != 0)
            X, y, w = X[kept], y[kept], w[kept]
        classes, codes = np.empty(0), np.empty(0, dtype=int)
        weights = check_sample_weight(w, len(y), self.dtype) if len(y) else None
        if len(y):
            self.space.prepare(X)
        if self.is_classification:
            check_labels(y, self.name)
            classes, codes = np.unique(y, return_inverse=True)
        else:
            check_is_numeric(y, self.loss)
            real_targets(y, self.dtype)
        is_weighted = weights is not None and not np.all(weights == 1)
        totals = np.bincount(codes.ravel(), weights=weights).astype(np.float64)
        n_stored = X.nnz if sparse.issparse(X) else 0
        return BlockSummary(kept, is_weighted, n_stored, classes, totals)


def merge_classes(estimator: Any, summaries: list[BlockSummary]) -> tuple[Array, Array | None]:
    """Store the classes of all blocks; return them, and the factor of each from `class_weight`."""
    classes = np.unique(np.concatenate([one.classes for one in summaries if len(one.classes)]))
    estimator.classes_ = classes
    check_classes(type(estimator).__name__, classes, classes)
    if estimator.class_weight is None:
        return classes, None
    totals = np.zeros(len(classes))
    for summary in summaries:
        totals[np.searchsorted(classes, summary.classes)] += summary.totals
    codes = np.arange(len(classes))
    return classes, class_factors(estimator.class_weight, classes, codes, totals, np.float64)
