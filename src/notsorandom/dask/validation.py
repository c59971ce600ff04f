"""Validation: from Dask collections to the training problem, block by block on the cluster."""

from __future__ import annotations

import math
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
from dask.base import is_dask_collection
from sklearn.utils.validation import validate_data

from notsorandom._utils.threads import ThreadPool
from notsorandom.dask.blocks import SAMPLES, TARGETS, WEIGHTS, Block, samples_array
from notsorandom.dask.cluster import POLL_SECONDS, Cluster, WorkerTimeout, find_client, gather
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
    TrainingData,
    check_magnitudes,
    check_sample_weight,
    class_factors,
)
from notsorandom.game.dual import DualProblem, signs_from_codes
from notsorandom.spaces.base import Space


class ClusterData(TrainingData):
    """Training data whose columns stay on the cluster."""

    def to_given(self, column: Any) -> Any:
        """Return None: a column is as long as the data."""


def read_collections(
    estimator: Any, space: Space, X: Any, y: Any, sample_weight: Any, pool: ThreadPool | None
) -> ClusterData:
    """Validate samples, targets and weights on the cluster, and return the training problem."""
    loss = loss_of(estimator)
    check_collection("X", X)
    dtype = check_samples(estimator, X, reset=True)
    check_collection("y", y)
    if sample_weight is not None:
        check_collection("sample_weight", sample_weight)
    client = find_client(estimator.client)
    if y.ndim != 1 and (loss.one_sided or y.ndim != 2):
        shapes = "(n_samples,)" if loss.one_sided else "(n_samples,) or (n_samples, n_outputs)"
        raise ValueError(f"y has {y.ndim} dimensions, but it must have shape {shapes}.")
    with client.as_current():
        samples, sizes = block_futures(client, "X", X)
        n_samples = int(sum(sizes))
        if n_samples < 2:
            raise ValueError(f"X has {n_samples} samples, but at least 2 are needed.")
        targets, _ = block_futures(client, "y", y, sizes)
        weights = [None] * len(sizes)
        if sample_weight is not None:
            weights, _ = block_futures(client, "sample_weight", sample_weight, sizes)
    numbers = [number for number, size in enumerate(sizes) if size]
    parts = [(number, samples[number], targets[number], weights[number]) for number in numbers]
    reader = BlockReader(type(estimator).__name__, estimator.loss, loss.one_sided, dtype, space)
    summaries = gather(
        client,
        client.map(
            reader.summarize, *zip(*parts, strict=True), pure=False, key="notsorandom-check"
        ),
    )
    for summary in summaries:
        if isinstance(summary, str):
            raise ValueError(summary)
    parts = [part for part, found in zip(parts, summaries, strict=True) if found is not None]
    summaries = [summary for summary in summaries if summary is not None]
    if not summaries:
        check_sample_weight(np.zeros(n_samples), n_samples, dtype)  # raises
    estimator.n_samples_fit_ = n_samples
    estimator._weights, estimator._weighted = None, sample_weight is not None
    is_weighted = any(summary.is_weighted for summary in summaries)
    n_tasks = summaries[0].n_outputs
    classes = factors = None
    if loss.one_sided:
        classes, factors = merge_classes(estimator, summaries)
        is_weighted = is_weighted or factors is not None
        n_tasks = 1 if len(classes) == 2 else len(classes)
    else:
        estimator.n_outputs_, estimator._flat = n_tasks, y.ndim == 1
    options = {"classes": classes, "factors": factors, "is_weighted": is_weighted, "pure": False}
    workers = assign_workers(client, [block for _, block, *_ in parts])
    blocks = [
        client.submit(reader.build, *part, workers=[worker], allow_other_workers=True, **options)
        for part, worker in zip(parts, workers, strict=True)
    ]
    cluster = Cluster(client, blocks, [summary.n_rows for summary in summaries])
    rows = DaskRows(
        cluster.part(SAMPLES, int(X.shape[1]), dtype),
        cluster.part(WEIGHTS, 1, dtype) if is_weighted else None,
        pool,
        cluster=cluster,
    )
    problem = DualProblem(loss, cluster.part(TARGETS, n_tasks, dtype), rows)
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
    if X.ndim != 2:
        raise ValueError(
            f"X has {X.ndim} dimensions, but it must have 2 dimensions, (n_samples, n_features): "
            "for a single feature use X[:, None] of an array, X[['name']] of a data frame."
        )
    if is_frame(X):
        dtypes, like = dict(X.dtypes.items()), X._meta
    else:
        if math.isnan(X.shape[1]):
            raise unknown_sizes("X")
        dtypes, like = {"X": X.dtype}, np.empty((0, X.shape[1]))
    invalid = [name for name, dtype in dtypes.items() if getattr(dtype, "kind", "O") not in "biuf"]
    if invalid:
        raise ValueError(
            f"X must have numbers, but {invalid[0]!r} is of type {dtypes[invalid[0]]}: convert, "
            "encode or leave out such columns."
        )
    if like.shape[1] == 0:
        raise ValueError("X has no columns (n_features = 0): at least one is needed.")
    validate_data(estimator, like, reset=reset, skip_check_array=True)
    numpy_dtypes = {np.dtype(getattr(dtype, "numpy_dtype", dtype)) for dtype in dtypes.values()}
    return np.dtype(np.float32 if numpy_dtypes == {np.dtype(np.float32)} else np.float64)


def unknown_sizes(name: str) -> ValueError:
    """Return the error for an array of unknown length."""
    return ValueError(
        f"{name} has chunks of unknown sizes, as arrays made from data frames have: call "
        f"{name}.compute_chunk_sizes() first."
    )


def unequal_lengths(name: str, length: Any, n_samples: int) -> ValueError:
    """Return the error for targets or weights of another length than the samples."""
    return ValueError(
        f"{name} has {length} rows, but X has {n_samples}: they must have the same rows, in the "
        "same order."
    )


def chunk_by_rows(X: Any) -> Any:
    """Return an array whose chunks hold whole rows."""
    return X.rechunk({1: -1}) if X.ndim == 2 and X.numblocks[1] > 1 else X


def block_futures(
    client: Any, name: str, value: Any, sizes: list[int] | None = None
) -> tuple[list[Any], list[int]]:
    """Return futures of a collection's blocks of rows, cut to given sizes, and their sizes."""
    if is_frame(value):
        futures: list[Any] = client.compute(list(value.to_delayed()))
        lengths = gather(client, client.map(len, futures, pure=False))
        if sizes is None or lengths == sizes:
            return futures, lengths
        value = value.to_dask_array(lengths=lengths)
    if math.isnan(value.shape[0]):
        raise unknown_sizes(name)
    if sizes is not None:
        if sum(sizes) != value.shape[0]:
            raise unequal_lengths(name, value.shape[0], sum(sizes))
        value = value.rechunk((tuple(sizes), *value.chunks[1:]))
    parts = chunk_by_rows(value).to_delayed().ravel()
    return list(client.compute(list(parts))), list(value.chunks[0])


def assign_workers(client: Any, futures: list[Any]) -> list[str]:
    """Return a worker for each block: one that holds it, unless that has more than its share.

    A pass ends with the last worker, so all should have work in proportion to their threads.
    """
    timeout = WorkerTimeout(client)
    while not (found := timeout.check(futures))[0]:
        time.sleep(POLL_SECONDS)
    threads, holders = found
    total = sum(threads.values())
    capacity = {one: math.ceil(len(futures) * count / total) for one, count in threads.items()}
    loads: Counter[str] = Counter()
    assigned: list[str] = []
    for future in futures:
        free = [one for one in holders.get(future.key, ()) if loads[one] < capacity.get(one, 0)]
        assigned.append(free[0] if free else "")
        loads.update(free[:1])
    for number in np.flatnonzero(np.array(assigned) == ""):
        worker = min(threads, key=lambda one: (loads[one] / max(1, threads[one]), one))
        assigned[number] = worker
        loads[worker] += 1
    return assigned


# Blocks.


@dataclass(frozen=True)
class BlockSummary:
    """What is known of a block after validation, without samples of weight zero."""

    n_rows: int
    n_outputs: int
    is_weighted: bool  # whether a weight differs from 1
    classes: Array = field(default_factory=lambda: np.empty(0))
    totals: Array = field(default_factory=lambda: np.empty(0))  # weight of each class


@dataclass(frozen=True)
class BlockReader:
    """Validation of single blocks, on a worker; `dtype` is the type to compute in."""

    name: str
    loss: str
    is_classification: bool
    dtype: np.dtype[Any]
    space: Space

    def summarize(self, number: int, X: Any, y: Any, w: Any) -> BlockSummary | str | None:
        """Validate a block; return an error as text, or None if all weights are zero."""
        try:
            return self._summarize(X, y, w)
        except (TypeError, ValueError) as error:  # a value: the error of the first block is raised
            return f"In block {number} (blocks, and rows in them, count from 0): {error}"

    def _summarize(self, X: Any, y: Any, w: Any) -> BlockSummary | None:
        X, y = samples_array(X, self.dtype), np.asarray(y)
        for name, values in (("y", y), ("sample_weight", w)):
            if values is not None and len(values) != len(X):
                raise unequal_lengths(name, len(values), len(X))
        missing = np.argwhere(pd.isna(y))
        if len(missing):
            raise ValueError(f"y has a missing value at row {missing[0][0]}: fill it in.")
        with np.errstate(over="ignore", invalid="ignore"):
            check_finite(X, self.name)
        if w is not None and (np.asarray(w) == 0).all():
            return None
        X, y, weights = self._present(X, y, w)
        self.space.prepare(X)
        is_weighted = weights is not None and not (weights == 1).all()
        if not self.is_classification:
            check_is_numeric(y, self.loss)
            return BlockSummary(len(y), real_targets(y, self.dtype).shape[1], is_weighted)
        check_labels(y, self.name)
        classes, codes = np.unique(y, return_inverse=True)
        totals = np.bincount(codes.ravel(), weights=weights).astype(np.float64)
        return BlockSummary(len(y), 1, is_weighted, classes, totals)

    def _present(self, X: Array, y: Array, w: Any) -> tuple[Array, Array, Array | None]:
        """Return the samples of positive weight."""
        weights = check_sample_weight(w, len(X), self.dtype)
        if weights is None or (weights > 0).all():
            return X, y, weights
        return X[weights > 0], y[weights > 0], weights[weights > 0]

    def build(
        self,
        number: int,
        X: Any,
        y: Any,
        w: Any,
        classes: Array | None,
        factors: Array | None,
        is_weighted: bool,
    ) -> Block:
        """Return the block that the game is played on."""
        X, y, weights = self._present(samples_array(X, self.dtype), np.asarray(y), w)
        if classes is None:
            targets = real_targets(y, self.dtype)
        else:
            codes = np.searchsorted(classes, y)
            targets = signs_from_codes(codes, len(classes), self.dtype)
            if factors is not None:
                own = factors.astype(self.dtype)[codes]
                weights = own if weights is None else weights * own
        column = None
        if is_weighted:
            column = np.ones((len(X), 1), self.dtype) if weights is None else weights[:, None]
        return Block(self.space.prepare(X), targets, column)


def merge_classes(estimator: Any, summaries: list[BlockSummary]) -> tuple[Array, Array | None]:
    """Store the classes of all blocks; return them, and the factor of each from `class_weight`."""
    classes = np.unique(np.concatenate([summary.classes for summary in summaries]))
    estimator.classes_ = classes
    check_classes(type(estimator).__name__, classes, classes)
    if estimator.class_weight is None:
        return classes, None
    totals = np.zeros(len(classes))
    for summary in summaries:
        totals[np.searchsorted(classes, summary.classes)] += summary.totals
    codes = np.arange(len(classes))
    return classes, class_factors(estimator.class_weight, classes, codes, totals, np.float64)
