"""Equal samples of a problem, merged into one of their total weight."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from notsorandom.data.rows import Array, dense
from notsorandom.game.problem import Problem

# Up to this many samples are sorted too, so that the model depends on nothing but the samples and
# their weights, to the last digit.
SORTED_ROWS = 1024
# Columns compared at a time while sorting.
SORT_COLUMNS = 64
# Rows whose keys are computed at a time.
KEY_ROWS = 4096


def merge_duplicates(problem: Problem) -> Problem:
    """Merge equal samples of equal targets into weights, so that a copy is a weight of 2.

    In trials, copies would be on both sides of a split. Distinct samples stay in the order in which
    they first appear, and up to `SORTED_ROWS` are sorted. More than that must be in memory, as
    NumPy or sparse arrays; others are returned unchanged.
    """
    rows = problem.rows
    if len(rows) <= SORTED_ROWS:
        return taken_once(problem, *sort_and_deduplicate(rows.array, problem.targets))
    if type(rows.array) is not np.ndarray and not sparse.issparse(rows.array):
        return problem
    _, number, counts = np.unique(row_keys(rows.array), return_inverse=True, return_counts=True)
    repeated = np.flatnonzero(counts[number] > 1)
    same = np.arange(len(rows))  # the first sample that each one equals
    if len(repeated):
        first, which = sort_and_deduplicate(rows.array[repeated], problem.targets[repeated])
        same[repeated] = repeated[first][which]
    first, which = np.unique(same, return_inverse=True)
    if len(first) == len(rows):
        return problem
    merged = taken_once(problem, first, which)
    return merge_duplicates(merged) if len(first) <= SORTED_ROWS else merged


def taken_once(problem: Problem, first: Array, which: Array) -> Problem:
    """Return the problem of the samples `first`; `which` of them each sample is merged into."""
    counts = np.bincount(which, weights=problem.counts)[:, None].astype(problem.rows.dtype)
    taken = problem.take(first)
    merged = replace(taken.rows, weights=None if (counts == 1).all() else counts)
    return replace(taken, rows=merged, positions=problem.moved(which))


def row_keys(X: Any) -> Array:
    """Return an integer per row of floating point numbers, equal for equal rows."""
    unsigned = f"u{X.dtype.itemsize}"
    factors = np.random.default_rng(0).integers(2**64, size=X.shape[1], dtype=np.uint64)

    def bits(values: Array) -> Array:
        return (values + 0).view(unsigned).astype(np.uint64)  # minus zero becomes zero

    if sparse.issparse(X):
        keys: Array = sparse.csr_array((bits(X.data), X.indices, X.indptr), shape=X.shape) @ factors
        return keys
    starts = range(0, len(X), KEY_ROWS)
    return np.concatenate([bits(X[start : start + KEY_ROWS]) @ factors for start in starts])


def sort_and_deduplicate(X: Any, targets: Array) -> tuple[Array, Array]:
    """Sort distinct samples by their columns and targets; see :func:`unique_rows`."""
    # Columns of a sparse matrix without entries don't matter.
    X = X.tocsc()[:, np.unique(X.indices)] if sparse.issparse(X) else dense(X)
    which = np.zeros(X.shape[0], dtype=int)
    for start in range(0, X.shape[1], SORT_COLUMNS):  # a few columns mostly suffice
        columns = dense(X[:, start : start + SORT_COLUMNS])
        _, which = unique_rows(np.column_stack([which, columns]))
        if which.max() == len(which) - 1:
            break
    return unique_rows(np.column_stack([which, targets]))


def unique_rows(values: Array) -> tuple[Array, Array]:
    """Return the indices of the distinct rows, sorted, and the position of each row in them."""
    first, which = np.unique(values, axis=0, return_index=True, return_inverse=True)[1:]
    return first, which.ravel()
