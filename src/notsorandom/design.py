"""The features of all samples as a matrix to multiply with: held, or made anew by the block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from notsorandom.rows import Array, Rows

# Features of more bytes than this are made anew whenever they are needed.
MOST_BYTES = 2**29


@dataclass(frozen=True)
class Held:
    """Features in memory.

    Parameters
    ----------
    array : ndarray of shape (n_samples, n_features)
    """

    array: Array

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.array.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the numbers."""
        dtype: np.dtype[Any] = self.array.dtype
        return dtype

    def times(self, vector: Array) -> Array:
        """A value for each sample."""
        return self.array @ vector.astype(self.dtype)

    def transposed_times(self, measure: Array) -> Array:
        """A value for each feature."""
        return self.array.T @ measure.astype(self.dtype)

    def take(self, which: Array) -> Array:
        """Features of the samples where the mask is true."""
        return self.array[which]

    def gram(self, which: Array, roots: Array | None) -> tuple[Array, Array]:
        """Sums over some samples of products of features, and of features, by their weights."""
        return products(self.array[which], None if roots is None else roots[which])

    def astype(self, dtype: Any) -> Held:
        """The same in another type."""
        return Held(self.array.astype(dtype))


@dataclass(frozen=True)
class Made:
    """Features that are too many to hold.

    Parameters
    ----------
    rows : Rows
        The samples.
    maker : callable
        Gives, for a type, the function that makes features of a block.
    n_features : int
    dtype : dtype
    """

    rows: Rows
    maker: Callable[[Any], Callable[[Any], Array]]
    n_features: int
    dtype: np.dtype[Any]

    def _make(self) -> Callable[[Any], Array]:
        make = self.maker(self.dtype)
        return lambda X: make(X.astype(self.dtype, copy=False))

    def times(self, vector: Array) -> Array:
        """A value for each sample."""
        make, vector = self._make(), vector.astype(self.dtype)
        values: Array = self.rows.map(lambda X: make(X) @ vector, width=self.n_features)
        return values

    def transposed_times(self, measure: Array) -> Array:
        """A value for each feature."""
        make = self._make()
        (sums,) = self.rows.add(
            lambda X, a: (make(X).T @ a,), measure.astype(self.dtype), width=self.n_features
        )
        return sums

    def take(self, which: Array) -> Array:
        """Features of the samples where the mask is true."""
        if not which.any():
            return np.empty((0, self.n_features), dtype=self.dtype)
        features: Array = self.rows.take(np.flatnonzero(which)).map(self._make())
        return features

    def gram(self, which: Array, roots: Array | None) -> tuple[Array, Array]:
        """Sums over some samples of products of features, and of features, by their weights."""
        make = self._make()
        shares = which.astype(self.dtype) if roots is None else (which * roots).astype(self.dtype)

        def sums(X: Any, share: Array) -> tuple[Array, Array]:
            inside = share > 0
            if not inside.any():
                return np.zeros((self.n_features,) * 2), np.zeros(self.n_features)
            return products(make(X[inside]), share[inside])

        gram, totals = self.rows.add(sums, shares, width=2 * self.n_features)
        return gram, totals

    def astype(self, dtype: Any) -> Made:
        """The same in another type."""
        return replace(self, dtype=np.dtype(dtype))


Design = Held | Made


def products(features: Array, roots: Array | None) -> tuple[Array, Array]:
    """Sums of products of features, and of features, by the squares of the roots."""
    if roots is None:
        return features.T @ features, features.sum(axis=0, dtype=np.float64)
    roots = roots.astype(features.dtype)
    scaled = features * roots[:, None]
    return scaled.T @ scaled, (roots[:, None] * scaled).sum(axis=0, dtype=np.float64)
