"""Dask collections as the game takes them: checked where they are, block by block."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import dask.array as da
import numpy as np
from dask.base import is_dask_collection
from sklearn.utils.validation import validate_data

from notsorandom.dask.blocks import SAMPLES, TARGETS, WEIGHTS, Block, as_samples
from notsorandom.dask.cluster import Cluster, find_client, gathered
from notsorandom.dask.rows import DaskRows
from notsorandom.data.rows import Array
from notsorandom.estimators.config import loss_of
from notsorandom.estimators.targets import check_classes, check_finite, check_labels, check_reals
from notsorandom.estimators.validation import Reading
from notsorandom.estimators.weights import check_sample_weight, class_factors
from notsorandom.game import Player
from notsorandom.game.scoring import signs


def is_frame(X: Any) -> bool:
    """Whether a collection is a data frame, or a column of one."""
    return hasattr(X, "to_dask_array")


def check_collection(name: str, value: Any) -> None:
    """Raise ValueError unless the value is a Dask array or data frame."""
    if not is_dask_collection(value) or not (isinstance(value, da.Array) or is_frame(value)):
        raise ValueError(
            f"{name} is of type {type(value).__name__}, but notsorandom.dask is fitted to Dask "
            "arrays and data frames: give dask.array.from_array(...), or use the estimator of "
            "notsorandom itself for data in memory."
        )


def check_samples(estimator: Any, X: Any, first: bool) -> np.dtype[Any]:
    """Check what is known of samples before any work; return the type to compute in."""
    if is_frame(X):
        if X.ndim != 2:
            raise ValueError("X is one column of a data frame: give a data frame, as X[['a']].")
        bad = [name for name, kind in X.dtypes.items() if not is_numeric(kind)]
        if bad:
            raise ValueError(
                f"X has columns that are not numbers: {bad[0]!r} is of type {X.dtypes[bad[0]]} "
                f"({len(bad)} of {len(X.columns)} columns are not). Leave them out or encode them."
            )
        kinds = {np.dtype(getattr(kind, "numpy_dtype", kind)) for kind in X.dtypes}
        shape: Any = X._meta
    else:
        if X.ndim != 2:
            raise ValueError(
                f"X has shape {X.shape}, but it must have 2 dimensions, (n_samples, n_features): "
                "reshape it, as X[:, None] for a single feature."
            )
        if not is_numeric(X.dtype):
            raise ValueError(f"X is of type {X.dtype}, but it must be of numbers: convert it.")
        if math.isnan(X.shape[1]):
            raise unknown_sizes("X")
        kinds, shape = {X.dtype}, np.empty((0, X.shape[1]))
    if shape.shape[1] == 0:
        raise ValueError("X has no columns (n_features = 0): give at least one.")
    validate_data(estimator, shape, reset=first, skip_check_array=True)
    return np.dtype(np.float32 if kinds == {np.dtype(np.float32)} else np.float64)


def is_missing(value: Any) -> bool:
    """Whether it is none, not a number, or pandas' own word for that."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def is_numeric(kind: Any) -> bool:
    """Whether numbers are of this type."""
    return getattr(kind, "kind", "O") in "biuf"


def unknown_sizes(name: str) -> ValueError:
    """What to say of an array that doesn't know how long it is."""
    return ValueError(
        f"{name} has chunks of unknown sizes, as arrays made of data frames have: call "
        f"{name}.compute_chunk_sizes() first."
    )


def row_chunks(X: Any) -> Any:
    """An array cut by rows alone."""
    return X.rechunk({1: -1}) if X.ndim == 2 and X.numblocks[1] > 1 else X


def blocks_of(client: Any, name: str, value: Any, sizes: list[int] | None = None) -> list[Any]:
    """Futures of a collection's blocks of rows, cut as the sizes say."""
    if is_frame(value):
        futures: list[Any] = client.compute(list(value.to_delayed()))
        if sizes is None:
            return futures
        lengths = gathered(client, client.map(len, futures, pure=False))
        if lengths == sizes:
            return futures
        value = value.to_dask_array(lengths=lengths)
    if not is_frame(value):
        if any(math.isnan(size) for size in value.chunks[0]):
            raise unknown_sizes(name)
        if sizes is not None:
            if sum(sizes) != value.shape[0]:
                raise unequal(name, value.shape[0], sum(sizes))
            value = value.rechunk((tuple(sizes), *value.chunks[1:]))
        parts = row_chunks(value).to_delayed().ravel()
    return list(client.compute(list(parts)))


def unequal(name: str, length: Any, n_samples: int) -> ValueError:
    """What to say of targets or weights for other samples."""
    return ValueError(
        f"{name} has {length} rows, but X has {n_samples}: there must be as many, in the same "
        "order."
    )


def read_collections(
    estimator: Any, space: Any, X: Any, y: Any, sample_weight: Any, workers: Any
) -> Reading:
    """Check samples and targets on the cluster, and make of them what the game is played on."""
    loss = loss_of(estimator)
    of_classes = loss.one_sided
    check_collection("X", X)
    dtype = check_samples(estimator, X, first=True)
    check_collection("y", y)
    if sample_weight is not None:
        check_collection("sample_weight", sample_weight)
    client = find_client(estimator.client)
    if y.ndim != 1 and (of_classes or y.ndim != 2):
        raise ValueError(
            f"y has {y.ndim} dimensions, but it must be (n_samples,)"
            + (": one label a sample." if of_classes else " or (n_samples, n_outputs).")
        )
    with client.as_current():
        samples = blocks_of(client, "X", X)
        if is_frame(X):
            sizes = gathered(client, client.map(len, samples, pure=False))
        else:
            sizes = list(X.chunks[0])
        if sum(sizes) < 2:
            raise ValueError(
                f"X has {sum(sizes)} samples, but at least 2 are needed to tell them apart."
            )
        targets = blocks_of(client, "y", y, sizes)
        given = [None] * len(sizes)
        if sample_weight is not None:
            given = blocks_of(client, "sample_weight", sample_weight, sizes)
    # Blocks without rows have nothing to say.
    kept = [number for number, size in enumerate(sizes) if size]
    samples, targets, given = (
        [some[number] for number in kept] for some in (samples, targets, given)
    )
    name, loss_name = type(estimator).__name__, estimator.loss

    def checked(number: int, X: Any, y: Any, w: Any) -> Any:
        try:
            return look(X, y, w)
        except (TypeError, ValueError) as error:  # a value: of all blocks, the first is named
            return f"In block {number} (counted from 0, as the rows in it): {error}"

    def look(X: Any, y: Any, w: Any) -> Any:
        X, y = as_samples(X, dtype), np.asarray(y)
        if len(y) != len(X):
            raise unequal("y", len(y), len(X))
        if y.dtype == object:
            missing = [row for row, value in enumerate(y.ravel()) if is_missing(value)]
            if missing:
                raise ValueError(f"y has nothing at row {missing[0]}: give a target.")
        with np.errstate(over="ignore", invalid="ignore"):
            suspicious = not np.isfinite(X.sum(dtype=np.float64))  # without a copy
        bad = np.argwhere(~np.isfinite(X)) if suspicious else np.empty((0, 2), dtype=int)
        if len(bad):
            row, column = bad[0]
            raise ValueError(
                f"X has {X[row, column]} at row {row}, column {column}, as {X.dtype} "
                f"({len({*bad[:, 0].tolist()})} of {len(X)} rows are not finite): leave such rows "
                "out or fill them in."
            )
        weights: Array | None = None
        totals: Array | None = None
        if w is not None:
            w = np.asarray(w)
            if len(w) != len(X):
                raise unequal("sample_weight", len(w), len(X))
            if (w == 0).all():
                return None
            weights = np.asarray(check_sample_weight(w, len(X), dtype))
            y = y[weights > 0]
        if of_classes:
            if y.dtype.kind == "f" and not np.isfinite(y).all():
                row = int(np.flatnonzero(~np.isfinite(y))[0])
                raise ValueError(f"y has {y[row]} at row {row}: give a label.")
            check_labels(y, name)
            found, codes = np.unique(y, return_inverse=True)
            some = None if weights is None else weights[weights > 0]
            totals = np.bincount(codes.ravel(), weights=some).astype(np.float64)
        else:
            check_reals(y, loss_name)
            with np.errstate(over="ignore"):
                reals = y.astype(dtype).reshape(len(y), -1)
            check_finite(reals)
            found = reals.shape[1:]
        space.prepare(X)
        return found, totals, len(y), weights is None or bool((weights[weights > 0] == 1).all())

    looks = gathered(
        client,
        client.map(checked, kept, samples, targets, given, pure=False, key="notsorandom-check"),
    )
    for seen in looks:
        if isinstance(seen, str):
            raise ValueError(seen)
    present = [number for number, seen in enumerate(looks) if seen is not None]
    if not present:
        raise ValueError(
            "sample_weight is zero for all samples, which leaves none to learn from: give some of "
            "them weight."
        )
    looks = [looks[number] for number in present]
    estimator.n_samples_fit_ = int(sum(sizes))
    estimator._weights, estimator._weighted = None, sample_weight is not None
    weighted = not all(seen[3] for seen in looks)
    factors: Array | None = None
    classes: Array | None = None
    if of_classes:
        classes = np.unique(np.concatenate([seen[0] for seen in looks]))
        estimator.classes_ = classes
        check_classes(name, classes, classes)
        totals = np.zeros(len(classes))
        for found, some, *_ in looks:
            totals[np.searchsorted(classes, found)] += some
        if estimator.class_weight is not None:
            codes = np.arange(len(classes))
            factors = class_factors(estimator.class_weight, classes, codes, totals, np.float64)
            weighted = True
        n_tasks = 1 if len(classes) == 2 else len(classes)
    else:
        (n_tasks,) = looks[0][0]
        estimator.n_outputs_, estimator._flat = int(n_tasks), y.ndim == 1

    def made(number: int, X: Any, y: Any, w: Any) -> Block:
        X, y = as_samples(X, dtype), np.asarray(y)
        weights = None if w is None else check_sample_weight(np.asarray(w), len(X), dtype)
        if weights is not None and not (weights > 0).all():
            X, y, weights = X[weights > 0], y[weights > 0], weights[weights > 0]
        if classes is None:
            targets = y.astype(dtype).reshape(len(y), -1)
        else:
            codes = np.searchsorted(classes, y)
            targets = signs(codes, len(classes), dtype)
            if factors is not None:
                own = factors.astype(dtype)[codes]
                weights = own if weights is None else weights * own
        column = None
        if weighted:
            column = np.ones((len(X), 1), dtype) if weights is None else weights[:, None]
        return Block(space.prepare(X), targets, column)

    places = balanced(client, [samples[number] for number in present])
    blocks = [
        client.submit(
            made,
            kept[number],
            samples[number],
            targets[number],
            given[number],
            pure=False,
            workers=[place],
            allow_other_workers=True,
        )
        for number, place in zip(present, places, strict=True)
    ]
    cluster = Cluster(client, blocks, [seen[2] for seen in looks])
    weights = cluster.root(WEIGHTS, 1, dtype) if weighted else None
    width = int(X.shape[1])
    rows = DaskRows(cluster.root(SAMPLES, width, dtype), weights, workers, cluster=cluster)
    player = Player(loss, cluster.root(TARGETS, n_tasks, dtype), weights, rows)
    return Reading(rows, player)


def balanced(client: Any, futures: list[Any]) -> list[str]:
    """A worker for each block: the one that has it, unless that has more than its share.

    A pass ends when the last worker is done with its blocks.
    """
    threads = client.nthreads()
    holders = client.who_has(futures)
    total = sum(threads.values()) or 1
    room = {one: math.ceil(len(futures) * count / total) for one, count in threads.items()}
    loads: Counter[str] = Counter()
    places: list[str] = []
    homeless: list[int] = []
    for number, future in enumerate(futures):
        holding = [one for one in holders.get(future.key, ()) if one in room]
        free = [one for one in holding if loads[one] < room[one]]
        places.append(free[0] if free else "")
        if free:
            loads[free[0]] += 1
        else:
            homeless.append(number)
    for number in homeless:
        if not room:
            break
        place = min(room, key=lambda one: (loads[one] / max(1, threads[one]), one))
        places[number] = place
        loads[place] += 1
    return places
