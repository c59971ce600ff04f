"""Samples outside of memory: their rows are read, and transformed, when they are used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_array

from notsorandom.data.checks import check_finite
from notsorandom.data.rows import FLOATS, Array

# Bytes checked at a time.
CHECKED_BYTES = 2**24


class LazyArray:
    """Rows of a memory map or sparse array, read and transformed by a function on demand.

    ``[slice]`` and ``[indices]`` return ndarrays, which must not be written to: they may be views
    of the memory map.

    Parameters
    ----------
    array : memory map, sparse array or LazyArray of shape (n_rows, n_columns)
        With numbers of any type. Without a function, float32 is kept and others become float64.
    function : callable, optional
        Returns a block of rows transformed, each for itself, such as rows scaled to norm one. It
        must not write to its argument.
    like : array, optional
        Has the columns and the type that the function returns, by default the array itself.
    indices : ndarray, optional
        The rows to use, by default all.
    """

    ndim = 2

    def __init__(
        self,
        array: Any,
        function: Callable[[Any], Any] = np.asarray,
        like: Any = None,
        indices: Array | None = None,
    ) -> None:
        self.array = array
        self.function = function
        self.indices = indices
        like = array if like is None else like
        n_rows = array.shape[0] if indices is None else len(indices)
        self.shape = (n_rows, like.shape[1])
        self.dtype = np.dtype(like.dtype if like.dtype in FLOATS else np.float64)

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, key: Any) -> Array:
        rows = self.array[key if self.indices is None else self.indices[key]]
        rows = self.function(rows if sparse.issparse(rows) else np.asarray(rows))
        with np.errstate(over="ignore"):  # overflow gives infinity, which is reported later
            return np.ascontiguousarray(rows, dtype=self.dtype)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        # An implicit conversion could fill the memory.
        raise TypeError(
            f"{type(self).__name__} of shape {self.shape} is not converted to an array "
            "implicitly: take slices of its rows."
        )

    def chosen(self, indices: Array) -> LazyArray:
        """Return the rows at `indices`."""
        known = indices if self.indices is None else self.indices[indices]
        return LazyArray(self.array, self.function, self, known)

    def prepared(self, function: Callable[[Array], Array]) -> LazyArray:
        """Return the rows transformed by a function that keeps columns and type."""
        return LazyArray(self, function)


def validate_blocks(X: LazyArray, min_samples: int = 1, estimator: Any = None) -> LazyArray:
    """Validate samples as scikit-learn does, but in blocks, and return them.

    Raises ValueError if there are too few samples or features, or a number is NaN or infinite.
    Errors name the estimator.
    """
    if X.shape[0] < min_samples or X.shape[1] < 1:
        check_array(X[:], ensure_min_samples=min_samples, estimator=estimator)  # raises
    step = max(1, CHECKED_BYTES // max(1, X.shape[1] * X.dtype.itemsize))
    for start in range(0, X.shape[0], step):
        check_finite(X[start : start + step], start)
    return X
