"""Validation: from Dask collections to the training problem, block by block on the cluster."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
from dask.base import is_dask_collection
from scipy import sparse
from sklearn.utils.validation import validate_data

from notsorandom.dask.cluster import Cluster
from notsorandom.dask.rows import DaskColumn, DaskRows
from notsorandom.estimators import validation as local
from notsorandom.estimators.samples import check_finite
from notsorandom.estimators.targets import check_sample_weight, check_targets, real_targets
from notsorandom.game.duplicates import SORTED_ROWS
from notsorandom.game.problem import Problem
from notsorandom.tuning.choice import FitConfig


def read_collections(
    estimator: Any,
    cluster: Cluster,
    config: FitConfig,
    X: Any,
    y: Any,
    sample_weight: Any,
    pool: Any,
) -> tuple[Problem, dict[str, Any]]:
    """Validate samples, targets and weights on the cluster; see `local.read_training_data`."""
    loss, dtype = config.loss, check_samples(estimator, X, reset=True)
    check_collection("y", y)
    if y.ndim > (1 if loss.one_sided else 2):
        shapes = "(n_samples,)" if loss.one_sided else "(n_samples,) or (n_samples, n_outputs)"
        raise ValueError(f"y has {y.ndim} dimensions, but it must have shape {shapes}.")
    arrays = [known_array(cluster, "X", X.astype(dtype))]
    n_samples, chunks = arrays[0].shape[0], arrays[0].chunks[0]
    for name, value in (("y", y), ("sample_weight", sample_weight)):
        if value is not None:
            arrays.append(known_array(cluster, name, value, n_samples))
    if n_samples <= SORTED_ROWS:  # they are sorted and merged, in memory
        futures = map(cluster.client.compute, [X, y, *arrays[2:]])
        X, y, *given = cluster.gather(list(futures))
        return local.read_training_data(estimator, config, X, y, (*given, None)[0], pool=pool)
    settings = (type(estimator).__name__, estimator.loss, loss, config.space, dtype)
    numbers = np.flatnonzero(chunks).tolist()  # of the chunks that have rows
    columns = []
    for name, array in zip(("X", "y", "sample_weight"), arrays, strict=False):
        is_labels = name == "y" and loss.one_sided
        array = array[:, None] if array.ndim == 1 and not is_labels else array
        parts = array.rechunk((chunks, *array.shape[1:])).to_delayed().ravel()[numbers]
        blocks = cluster.client.compute(list(parts))
        futures = cluster.map("read", partial(read_block, settings, name), numbers, blocks)
        columns.append(DaskColumn(array.shape, array.dtype if is_labels else dtype, futures))
    samples, targets, *given = columns
    weights = given[0] if given else None
    sizes = [chunks[number] for number in numbers]
    rows = DaskRows(samples, weights, pool, None, n_samples, cluster, sizes)
    n_stored = sum(rows.map_blocks(lambda X: X.nnz if sparse.issparse(X) else 0))
    n_stored = max(min(n_stored, 1), n_stored // n_samples)
    rows = replace(rows, array=replace(samples, n_stored=n_stored))
    if weights is not None and not any(rows.columns_only.map_blocks(lambda _, w: w.any(), weights)):
        check_sample_weight(np.zeros(1), 1, dtype)  # raises
    rows, targets = rows.select(weights, targets)
    rows = replace(rows, block_rows=None)
    problem, found = local.make_problem(estimator, loss, rows, targets, None, y.ndim == 1)
    found |= {"n_samples_fit_": n_samples, "_weights": None}
    return problem, found | {"_weighted": sample_weight is not None}


def read_block(settings: tuple[Any, ...], what: str, number: int, block: Any) -> Any:
    """Validate a block of `X`, `y` or `sample_weight`, on a worker; errors name the block."""
    name, loss_name, loss, space, dtype = settings
    try:
        if what == "X":
            X = sparse.csr_array(block) if sparse.issparse(block) else np.ascontiguousarray(block)
            check_finite(X, name)
            return space.prepare(X)
        if what == "y":
            y = check_targets(block, name, loss_name, loss.one_sided)
            return y if loss.one_sided else real_targets(y, dtype)
        # One weight more: all weights of a block may be zero.
        weights = check_sample_weight(np.append(block, 1), len(block) + 1, dtype)
        return np.asarray(weights)[:-1, None]
    except (TypeError, ValueError) as error:
        message = f"In block {number} (blocks, and rows in them, count from 0): {error}"
        raise ValueError(message) from None


def is_frame(X: Any) -> bool:
    """Whether a collection is a data frame or a series."""
    return hasattr(type(X), "to_dask_array")


def check_collection(name: str, value: Any) -> None:
    """Raise ValueError unless the value is a Dask array, data frame or series."""
    if not isinstance(value, da.Array) and not is_frame(value):
        raise ValueError(
            f"{name} is of type {type(value).__name__}, but notsorandom.dask is fitted to Dask "
            "arrays and data frames: use dask.array.from_array, or for data in memory the "
            "estimator of notsorandom itself."
        )


def check_samples(estimator: Any, X: Any, reset: bool) -> np.dtype[Any]:
    """Check what is known of samples before any work; return the type to compute in."""
    check_collection("X", X)
    if X.ndim != 2 or not X.shape[1] >= 1:
        raise ValueError(
            f"X has shape {X.shape}, but it must have 2 dimensions, (n_samples, n_features), and a "
            "known number of columns: for one use X[:, None], or X[['name']] of a data frame."
        )
    dtypes = dict(X.dtypes.items()) if is_frame(X) else {"X": X.dtype}
    for name, dtype in dtypes.items():
        if getattr(dtype, "kind", "O") not in "biuf":
            raise ValueError(
                f"X must have numbers, but {name!r} is of type {dtype}: leave such columns out or "
                "encode them, categories for example by dask.dataframe.get_dummies("
                "X.categorize()). tabular_pipeline encodes data frames in memory."
            )
    like = X._meta if is_frame(X) else np.empty((0, X.shape[1]))
    validate_data(estimator, like, reset=reset, skip_check_array=True)
    numpy_dtypes = {np.dtype(getattr(dtype, "numpy_dtype", dtype)) for dtype in dtypes.values()}
    return np.dtype(np.float32 if numpy_dtypes == {np.dtype(np.float32)} else np.float64)


def known_array(cluster: Cluster, name: str, value: Any, n_samples: int | None = None) -> Any:
    """Return a collection or array as a Dask array of known length, which may be given."""
    if is_frame(value):
        (lengths,) = cluster.gather([cluster.client.compute(value.map_partitions(len))])
        value = value.to_dask_array(lengths=list(lengths))
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
