"""Line searches of many models at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from notsorandom.data.rows import Array

# Evaluations of a line search after the full step, and the slope at which it ends, as a share of
# the first slope.
LINE_SEARCH_STEPS = 8
MAX_SLOPE = 0.5


def dots(left: Array, right: Array) -> Array:
    """Return inner products along the last axis."""
    return np.einsum("...i,...i->...", left, right)


def find_roots(function: Callable[[Array], Array], first: Array, last: Array, tol: Array) -> Array:
    """Return where increasing functions on [0, 1] have values of about zero.

    `first` and `last` are their values at 0 and 1. The false position method, where an end that
    stays twice counts half.
    """
    left, right = np.zeros_like(first), np.ones_like(first)
    moved_right = np.zeros(len(first), dtype=int)
    roots = right
    for _ in range(LINE_SEARCH_STEPS):
        roots = left - first * (right - left) / (last - first)
        values = function(roots)
        if np.all(np.abs(values) <= tol):
            break
        above = values > 0
        first = np.where(above, np.where(moved_right == 1, first / 2, first), values)
        last = np.where(above, values, np.where(moved_right == -1, last / 2, last))
        left, right = np.where(above, left, roots), np.where(above, roots, right)
        moved_right = np.where(above, 1, -1)
    return roots
