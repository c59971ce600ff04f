"""Training data as the game takes them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_consistent_length, validate_data

from notsorandom._utils.threads import Workers
from notsorandom.data import Lazy, read_lazily, read_source
from notsorandom.data.array_api import in_host_memory, is_device_array, on_host
from notsorandom.data.rows import FLOATS, Array, Rows, dense
from notsorandom.estimators.config import loss_of
from notsorandom.estimators.samples import read_device_samples, read_lazy_samples
from notsorandom.estimators.targets import (
    check_classes,
    check_finite,
    check_labels,
    check_outputs,
    check_reals,
)
from notsorandom.estimators.weights import check_sample_weight, class_factors
from notsorandom.game import Player
from notsorandom.game.scoring import signs

# So few samples are put into an order of their own and copies merged: what is learned from them
# then depends on nothing but what they are, to the last digit.
FEW_ROWS = 1024
# They are compared by so many columns at a time.
COLUMNS = 64


@dataclass(frozen=True)
class Reading:
    """Samples and targets, and which of the rows that were given they are.

    Parameters
    ----------
    rows : Rows
    player : Player
    places : ndarray of shape (n_given,), optional
        Where each row that was given is among these; -1 if it is not. By default in its own place.
    """

    rows: Rows
    player: Player
    places: Array | None = None

    @property
    def pair(self) -> tuple[Rows, Player]:
        """Samples and dual player."""
        return self.rows, self.player

    @property
    def n_given(self) -> int:
        """How many rows were given."""
        return len(self.rows) if self.places is None else len(self.places)

    def _moved(self, places: Array) -> Array:
        """Where each row that was given is, once these samples are at new places."""
        return places if self.places is None else np.append(places, -1)[self.places]

    def take(self, kept: Array) -> Reading:
        """Only those where the mask is true."""
        moved = self._moved(np.where(kept, np.cumsum(kept) - 1, -1))
        chosen = np.flatnonzero(kept)
        return Reading(self.rows.only(chosen), self.player.take(chosen), moved)

    def spread(self, column: Any) -> Array:
        """Values of these samples for the rows that were given; zero for those left out."""
        values = self.rows.fetch(column)
        if self.places is None:
            return values
        return np.concatenate([values, np.zeros_like(values[:1])])[self.places]

    def gathered(self, values: Array) -> Array:
        """Values of the rows that were given for these samples."""
        if self.places is None:
            return values
        present = np.flatnonzero(self.places >= 0)
        result = np.empty((len(self.rows), *values.shape[1:]), dtype=values.dtype)
        result[self.places[present]] = values[present]
        return result

    def settled(self) -> Reading:
        """The same, if they are few, in an order of their own and with copies merged."""
        rows, player = self.pair
        if len(rows) > FEW_ROWS:
            return self
        first, which = distinct(rows.array, player.targets)
        counts = np.bincount(which, weights=player.multiplicities)[:, None].astype(rows.dtype)
        weights = None if (counts == 1).all() else counts
        return Reading(
            replace(rows.take(first), weights=weights),
            replace(player.take(first), weights=weights),
            self._moved(which),
        )


def read_data(
    estimator: Any,
    space: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    first: bool = True,
    workers: Workers | None = None,
) -> Reading:
    """Check samples and targets; the first time, the estimator learns what targets there are.

    It keeps the weights, for when the training data are given once more.
    """
    loss = loss_of(estimator)
    of_classes = loss.one_sided
    X, y, sample_weight, names = read_source(X, on_host(y), on_host(sample_weight))
    X = read_lazily(X)
    if not of_classes:
        check_reals(y, estimator.loss)
    target_checks = {"multi_output": not of_classes, "y_numeric": not of_classes}
    if is_device_array(X) or isinstance(X, Lazy):
        y = validate_data(estimator, y=y, reset=first, **target_checks)
        if isinstance(X, Lazy):
            X = read_lazy_samples(estimator, X, first, names)
        else:
            X = read_device_samples(estimator, X, reset=first)
            if in_host_memory(X):  # where NumPy reads it as it is, and finds what it always finds
                X = on_host(X)
        check_consistent_length(X, y)
    else:
        X, y = validate_data(
            estimator,
            X,
            y,
            accept_sparse="csr",
            dtype=FLOATS,
            ensure_min_samples=2 if first else 1,
            reset=first,
            **target_checks,
        )
    X = sparse.csr_array(X) if sparse.issparse(X) else X
    y = np.asarray(y)
    if of_classes:
        check_labels(y, type(estimator).__name__)
    if first:
        estimator.n_samples_fit_ = X.shape[0]
        estimator._weights = check_sample_weight(sample_weight, X.shape[0], Rows(X).dtype)
        estimator._weighted = sample_weight is not None
    weights = estimator._weights
    if weights is not None and len(weights) != X.shape[0]:
        weights = None  # other samples than at fit
    places = None
    if weights is not None and not (weights > 0).all():
        kept = np.flatnonzero(weights > 0)
        places = np.where(weights > 0, np.cumsum(weights > 0) - 1, -1)
        X, y, weights = Rows(X).only(kept).array, y[kept], weights[kept]
    rows = Rows(X, workers=workers)
    dtype = rows.dtype
    if of_classes:
        classes = np.unique(y)
        if first:
            estimator.classes_ = classes
        check_classes(type(estimator).__name__, classes, estimator.classes_)

        def labels(_: Any, part: Any) -> Array:
            return signs(np.searchsorted(classes, part), len(classes), dtype)

        targets = rows.bare.map(labels, y)
        if estimator.class_weight is not None:
            codes = np.searchsorted(classes, y)
            factors = class_factors(estimator.class_weight, classes, codes, weights, dtype)
            weights = factors if weights is None else weights * factors
    else:
        with np.errstate(over="ignore"):
            targets = y.astype(dtype).reshape(len(y), -1)
        check_finite(targets)
        if first:
            estimator.n_outputs_, estimator._flat = targets.shape[1], y.ndim == 1
        check_outputs(targets.shape[1], estimator.n_outputs_)
    column = None if weights is None or (weights == 1).all() else weights[:, None]
    rows = Rows(space.prepare(X), column, workers)
    return Reading(rows, Player(loss, targets, column, rows), places).settled()


def distinct(X: Any, targets: Array) -> tuple[Array, Array]:
    """Which samples stand for all, sorted by what they are, and which of those each one is.

    They are sorted by their first column, then by the second, and so on, whatever their scale and
    sparse or not; a few columns mostly settle it.
    """
    X = X if sparse.issparse(X) else dense(X)  # few
    if sparse.issparse(X):
        X = X.tocsc()[:, np.unique(X.indices)]  # the others have no entries
    which = np.zeros(X.shape[0], dtype=int)
    for start in range(0, X.shape[1], COLUMNS):
        columns = dense(X[:, start : start + COLUMNS])
        _, which = unique_rows(np.column_stack([which, columns]))
        if which.max() == len(which) - 1:
            break
    return unique_rows(np.column_stack([which, targets]))


def unique_rows(values: Array) -> tuple[Array, Array]:
    """Indices of the distinct rows, sorted, and which of those each row is."""
    _, first, which = np.unique(values, axis=0, return_index=True, return_inverse=True)
    return first, which.ravel()
