"""Views: the samples as the game uses them, in float32 and with few columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from notsorandom.data.array_api import cast, cast_like, to_host
from notsorandom.data.rows import Array, Rows

if TYPE_CHECKING:
    from notsorandom.spaces.base import ResolvedSpace

# Most columns of a view. On images of 512 and 784 columns, features found in 128 principal
# directions are as good as those found in all, or better; in 64 they are worse
# (benchmarks/directions.py).
MAX_DIRECTIONS = 128
# Rows from which the directions are computed: 16 per direction. They need not be exact.
DIRECTION_ROWS = 2048
# Views of samples that are not in memory are held there up to this many bytes.
VIEW_BYTES = 2**28
# Numbers of the largest sparse sample that is centred, and so made dense, to compute directions.
DENSE_SIZE = 2**20
# Range of numbers that float32 holds with its full precision.
FLOAT32_RANGE = (1e-37, 1e37)


@dataclass(frozen=True)
class View(ABC):
    """A view of the samples: a function of each row, and its inverse for the frequencies.

    Parameters
    ----------
    space : ResolvedSpace
        The space of the view's samples.
    dtype : {"float32", "float64"}
        Of the view's samples.
    """

    space: ResolvedSpace
    dtype: str

    @abstractmethod
    def transform(self, X: Any) -> Any:
        """Return a block of samples as the view has it."""

    @abstractmethod
    def restore(self, frequencies: Array) -> Array:
        """Return frequencies of the view as frequencies of the samples."""

    def apply(self, rows: Rows) -> Rows:
        """Return the view of all samples, where they are."""
        weights = rows.weights
        if weights is not None:
            weights = rows.columns_only.map(lambda _, w: w.astype(self.dtype), weights)
        return replace(rows, array=transform_rows(rows, self.transform), weights=weights)


@dataclass(frozen=True)
class CastView(View):
    """The samples in another floating point type, and dense if they have few columns."""

    def transform(self, X: Any) -> Any:
        """Return the block in the view's type."""
        if sparse.issparse(X) and X.shape[1] <= MAX_DIRECTIONS:
            X = X.toarray()
        return cast(X, np.dtype(self.dtype))

    def restore(self, frequencies: Array) -> Array:
        """Return the frequencies unchanged."""
        return frequencies


@dataclass(frozen=True)
class ProjectedView(View):
    r"""The samples of R^d centred, in units of their scale, and projected onto some directions.

    A sample `x` becomes :math:`z = V^T (x - c) / s`. The wave of a frequency :math:`\omega` at `z`
    is that of :math:`V \omega / s` at `x - c`.

    Parameters
    ----------
    center : ndarray of shape (n_features,)
    scale : float
    basis : ndarray of shape (n_features, n_directions), optional
        Orthonormal columns; None for all directions.
    """

    center: Array
    scale: float
    basis: Array | None

    def transform(self, X: Any) -> Any:
        """Return the block centred, scaled and projected; dense."""
        if sparse.issparse(X) and self.basis is not None:
            basis = self.basis.astype(np.float64)
            return ((X @ basis - self.center @ basis) / self.scale).astype(self.dtype)
        X = X.toarray() if sparse.issparse(X) else X
        centred = cast((X - cast_like(self.center, X)) / self.scale, np.dtype(self.dtype))
        return centred if self.basis is None else centred @ cast_like(self.basis, centred)

    def restore(self, frequencies: Array) -> Array:
        """Return the frequencies in all columns, in float64."""
        frequencies = frequencies.astype(np.float64)
        if self.basis is not None:
            frequencies = frequencies @ self.basis.T
        return frequencies / self.scale


def transform_rows(rows: Rows, transform: Callable[[Any], Any]) -> Any:
    """Return the samples transformed: in memory, on their device or cluster, or on demand."""
    array = rows.array
    if not rows.is_local or (isinstance(array, np.ndarray) and not isinstance(array, np.memmap)):
        return rows.map(transform)
    if rows.on_device:
        return rows.map(transform, on_device=True)
    like = transform(array[:1])
    if len(rows) * like.shape[1] * like.dtype.itemsize <= VIEW_BYTES:
        return rows.map(transform)
    from notsorandom.data.lazy import PreparedArray

    return PreparedArray(array, transform, like)


def principal_directions(rows: Rows, center: Array, rng: np.random.Generator) -> Array | None:
    """Return the leading principal directions of the samples, orthonormal columns in float32.

    None if the samples have at most `MAX_DIRECTIONS` columns. Fewer samples than that span fewer
    directions.
    """
    if rows.n_features <= MAX_DIRECTIONS:
        return None
    from sklearn.utils.extmath import randomized_svd

    seed = int(rng.integers(2**31 - 1))
    sample = rows.take(rows.sample_indices(DIRECTION_ROWS, rng))
    X = to_host(sample.array)
    if not sparse.issparse(X) or X.shape[0] * X.shape[1] <= DENSE_SIZE:
        X = X.toarray() if sparse.issparse(X) else X
        X = X - center
        X = (X / max(float(np.abs(X).max()), np.finfo(X.dtype).tiny)).astype(np.float32)
    if sample.weights is not None:
        roots = np.sqrt(to_host(sample.weights))
        X = X.multiply(roots).tocsr() if sparse.issparse(X) else X * roots.astype(X.dtype)
    n_directions = min(MAX_DIRECTIONS, X.shape[0])
    directions = randomized_svd(X, n_directions, n_iter=2, random_state=seed)[2]
    return np.ascontiguousarray(directions.T, dtype=np.float32)  # (n_features, n_directions)


def round_to_float32(frequencies: Array) -> Array:
    """Round frequencies to float32 precision, keeping their type.

    The features change by less than the noise of any data, and a model file takes half the space.
    Frequencies outside the range of float32 are returned unchanged.
    """
    if frequencies.dtype != np.float64:
        return frequencies
    sizes = np.abs(frequencies[frequencies != 0])
    if sizes.size and not (FLOAT32_RANGE[0] < sizes.min() and sizes.max() < FLOAT32_RANGE[1]):
        return frequencies
    return frequencies.astype(np.float32).astype(np.float64)
