"""Views: the samples as the game uses them, in float32 and with few columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import linalg, sparse

from notsorandom.data.array_api import cast, cast_like, namespace, to_host
from notsorandom.data.rows import Array, Rows

if TYPE_CHECKING:
    from notsorandom.spaces.base import ResolvedSpace

# Largest number of columns of a view that is not projected, and usual number of directions of one
# that is. On held-out training images of 512 and 784 columns, 100 features found in 128 principal
# directions are in the mean as good as features found in more, though not for every pair of
# classes; in 64 they are worse (benchmarks/search.py).
MAX_DIRECTIONS = 128
# Directions that trials may use instead. Sentence embeddings of 384 columns need all of them,
# though 128 leave out less of their variance (0.08 to 0.24) than of the images' (0.4).
MORE_DIRECTIONS = 512
# Rows from which the directions are computed: 32 per direction; 16 lose 0.2 points of accuracy on
# held-out training images, and all rows gain nothing. On the same number of other rows, the
# directions must leave out less than this share of the variance that random directions leave out:
# it is 0.06 to 0.68 on images, and 1 if all columns are noise, which could hide the signal.
DIRECTION_ROWS, MAX_SHARE_LEFT_OUT = 4096, 0.8
# Up to this many columns the directions are exact: their covariance matrix is decomposed in less
# time than a randomised decomposition of the samples takes.
MAX_EXACT_COLUMNS = 1024
# Views of samples that are not in memory are held there up to this many bytes.
VIEW_BYTES = 2**28
# Numbers of the largest sparse sample that is centred, and so made dense, to compute directions.
DENSE_SIZE = 2**20
# Range of numbers that float32 holds with its full precision.
FLOAT32_RANGE = (1e-37, 1e37)
# Largest distance of a number from the mean of its column, in units of the scale: in float64, the
# rounding errors of larger ones are about as large as the distances between the samples.
MAX_OFFSET = 1e15
# Largest scale of the samples; its inverse is the smallest. Frequencies are then far from overflow.
MAX_SAMPLE_SCALE = {"float32": 1e28, "float64": 1e290}


@dataclass(frozen=True)
class View(ABC):
    """A view of the samples: a function of each row, and its inverse for the frequencies.

    Parameters
    ----------
    space : ResolvedSpace
        The space of the view's samples.
    dtype : {"float32", "float64"}
        Type of the view's samples.
    optional : ndarray of shape (n_columns,), optional
        Mask of the view's columns that trials may leave out.
    is_selection : bool, default=False
        Whether the view has some of the columns, and leaves out the others.
    given_space, given_dtype : ResolvedSpace, dtype
        Space and type of the samples as they were given.
    offset : ndarray of shape (n_tasks,), default=0
        The mean of real targets, which the game doesn't need; zero for classes.
    """

    space: ResolvedSpace
    dtype: str
    optional: Array | None = field(default=None, kw_only=True)
    is_selection: bool = field(default=False, kw_only=True)
    given_space: Any = field(default=None, kw_only=True)
    given_dtype: Any = field(default=None, kw_only=True)
    offset: Any = field(default=0.0, kw_only=True)

    @property
    def is_projected(self) -> bool:
        """Whether the view has other directions than the columns of the samples."""
        return False

    @property
    def unit(self) -> float:
        """The length of the samples that is one in the view."""
        return 1.0

    @property
    def linear_center(self) -> Array | None:
        """The sample that is zero in the view, of the columns of the samples; None for zero."""
        return None

    def unprojected(self, rows: Rows) -> View:
        """Return the view with all columns of the samples, in the same unit, for a linear part."""
        return self

    def lift(self, frequencies: Array) -> Array:
        """Return frequencies of the view as frequencies of the unprojected view."""
        return frequencies

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
    equals the wave of :math:`V \omega / s` at `x - c`.

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

    @property
    def is_projected(self) -> bool:
        """Whether the directions are not columns."""
        return self.basis is not None and not self.is_selection

    @property
    def unit(self) -> float:
        """The scale."""
        return float(self.scale)

    @property
    def linear_center(self) -> Array | None:
        """The centre."""
        return self.center

    def unprojected(self, rows: Rows) -> View:
        """Return the view without a projection; without a centre too, if many columns are sparse.

        The part of the columns that a selection leaves out is left out of the waves only.
        """
        space = self.space.with_parameters(  # type: ignore[attr-defined]
            center=np.zeros(rows.n_features, dtype=self.dtype)
        )
        if rows.is_sparse and rows.n_features > MAX_DIRECTIONS:
            center = (self.center / self.scale).astype(self.dtype)
            space = space.with_parameters(center=center)
            targets = {
                name: getattr(self, name) for name in ("given_space", "given_dtype", "offset")
            }
            return SparseView(space, self.dtype, float(self.scale), **targets)
        return replace(self, space=space, basis=None, is_selection=False, optional=None)

    def lift(self, frequencies: Array) -> Array:
        """Return the frequencies in all columns."""
        return frequencies if self.basis is None else frequencies @ self.basis.T.astype(self.dtype)

    @np.errstate(over="ignore")  # checked
    def transform(self, X: Any) -> Any:
        """Return the block centred, scaled and projected; dense."""
        if sparse.issparse(X) and self.basis is not None:
            check_distances(X, X.data - self.center[X.indices], self)
            basis = self.basis.astype(np.float64)
            return ((X @ basis - self.center @ basis) / self.scale).astype(self.dtype)
        X = X.toarray() if sparse.issparse(X) else X
        offsets = X - cast_like(self.center, X)
        check_distances(X, offsets, self)
        centred = cast(offsets / self.scale, np.dtype(self.dtype))
        return centred if self.basis is None else centred @ cast_like(self.basis, centred)

    def without_optional(self) -> ProjectedView:
        """Return the view without its optional columns."""
        if self.optional is None:
            return self
        basis = np.eye(len(self.optional), dtype=np.float32) if self.basis is None else self.basis
        basis = np.ascontiguousarray(basis[:, ~self.optional])
        center = np.zeros(basis.shape[1], dtype=self.dtype)
        space = self.space.with_parameters(center=center)  # type: ignore[attr-defined]
        is_selection = self.basis is None or self.is_selection
        return replace(self, space=space, basis=basis, is_selection=is_selection, optional=None)

    def restore(self, frequencies: Array) -> Array:
        """Return the frequencies in all columns, in float64."""
        frequencies = frequencies.astype(np.float64)
        if self.basis is not None:
            frequencies = frequencies @ self.basis.T
        return frequencies / self.scale


@dataclass(frozen=True)
class SparseView(View):
    """Sparse samples of R^d in units of their scale, and not centred, so that they stay sparse."""

    scale: float

    @property
    def unit(self) -> float:
        """The scale."""
        return self.scale

    def transform(self, X: Any) -> Any:
        """Return the block in units of the scale."""
        return cast(X * (1 / self.scale), np.dtype(self.dtype))

    def restore(self, frequencies: Array) -> Array:
        """Return the frequencies in the inverse unit of the samples, in float64."""
        return frequencies.astype(np.float64) / self.scale


def transform_rows(rows: Rows, transform: Callable[[Any], Any]) -> Any:
    """Return the samples transformed: in memory, on their device or cluster, or when read."""
    array = rows.array
    if not rows.is_local or (isinstance(array, np.ndarray) and not isinstance(array, np.memmap)):
        return rows.map(transform)
    if rows.on_device:
        return rows.map(transform, on_device=True)
    like = transform(array[:1])
    if sparse.issparse(like) or len(rows) * like.shape[1] * like.dtype.itemsize <= VIEW_BYTES:
        return rows.map(transform)
    from notsorandom.data.lazy import LazyArray

    return LazyArray(array, transform, like)


def principal_directions(
    rows: Rows, center: Array, rng: np.random.Generator
) -> tuple[Array | None, int]:
    """Return directions that hold what varies in the samples, and how many of them are usual.

    They are orthonormal columns in float32. The first `MAX_DIRECTIONS` are the usual ones; there
    are up to `MORE_DIRECTIONS` where they are exact. None stands for all columns: if there are at
    most `MAX_DIRECTIONS`, or if the variance of dense samples is spread evenly over more
    directions. If these samples are fewer than their columns, the directions that span the samples
    are returned instead, and are all usual.
    """
    if rows.n_features <= MAX_DIRECTIONS:
        return None, rows.n_features
    seed = int(rng.integers(2**31 - 1))
    indices = rng.permutation(rows.sample_indices(2 * DIRECTION_ROWS, rng))
    X = centred_sample(rows.take(indices), center)
    n_sampled, n_features = X.shape
    if n_sampled <= MAX_DIRECTIONS:
        return leading_directions(X, n_sampled, seed), n_sampled
    half, n_directions = n_sampled // 2, MAX_DIRECTIONS
    if not sparse.issparse(X) and n_features <= MAX_EXACT_COLUMNS:
        n_directions = min(MORE_DIRECTIONS, n_features, half)
    directions = leading_directions(X[:half], min(n_directions, half), seed)
    usual = directions[:, :MAX_DIRECTIONS]
    if sparse.issparse(X) or share_left_out(X[half:], usual) < MAX_SHARE_LEFT_OUT:
        if n_sampled == len(rows):
            directions = leading_directions(X, n_directions, seed)
        return directions, MAX_DIRECTIONS
    if n_sampled == len(rows) < n_features:
        return leading_directions(X, n_sampled, seed), n_sampled
    return None, n_features


def centred_sample(sample: Rows, center: Array) -> Any:
    """Return samples in float32 with their weights, centred unless they are sparse and large."""
    X = to_host(sample.array)
    if not sparse.issparse(X) or X.shape[0] * X.shape[1] <= DENSE_SIZE:
        # Half of the offsets never overflows.
        X = (X.toarray() if sparse.issparse(X) else X) / 2 - center / 2
    if sample.weights is not None:
        roots = np.sqrt(to_host(sample.weights).astype(np.float64))
        roots /= roots.max()
        X = X.multiply(roots).tocsr() if sparse.issparse(X) else X * roots
    return (X / max(float(abs(X).max()), np.finfo(X.dtype).tiny)).astype(np.float32)


def leading_directions(X: Any, n_directions: int, seed: int) -> Array:
    """Return the leading right singular vectors, of shape (n_features, n_directions)."""
    n_features = X.shape[1]
    if n_features <= MAX_EXACT_COLUMNS:
        squares = X.T @ X
        squares = squares.toarray() if sparse.issparse(squares) else squares
        # In float64, or columns of much smaller scale than others would be rounding errors.
        last = (n_features - n_directions, n_features - 1)
        basis = linalg.eigh(squares.astype(np.float64), subset_by_index=last)[1]
        return np.ascontiguousarray(basis[:, ::-1], dtype=np.float32)
    from sklearn.utils.extmath import randomized_svd

    # Without normalisation, columns of much larger scale than others leave only rounding errors.
    directions = randomized_svd(
        X, n_directions, n_iter=2, power_iteration_normalizer="QR", random_state=seed
    )[2]
    return np.ascontiguousarray(directions.T, dtype=np.float32)


def share_left_out(X: Array, directions: Array) -> float:
    """Return the variance outside of the directions, relative to random directions."""
    n_features, n_directions = directions.shape
    total = float(np.square(X, dtype=np.float64).sum())
    kept = float(np.square(X @ directions, dtype=np.float64).sum())
    return (1 - kept / max(total, np.finfo(float).tiny)) / (1 - n_directions / n_features)


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


# Limits of the samples.


@np.errstate(over="ignore")
def are_within(numbers: Any, limit: float) -> bool:
    """Whether all absolute values are at most `limit`; no number may be NaN."""
    if 0 in numbers.shape:
        return True
    if limit > 0 and isinstance(numbers, np.ndarray) and numbers.flags.c_contiguous:
        flat = numbers.reshape(-1)
        if float(flat @ flat) < limit * limit:  # one fast pass mostly suffices
            return True
    xp = namespace(numbers)
    largest, least = (float(to_host(extreme(numbers))) for extreme in (xp.max, xp.min))
    return max(largest, -least) <= limit


def far_rows(X: Any, center: Array, scale: float, used: Array) -> Any:
    """Return which rows of a block are too far from the centre, in the columns used; None if none.

    The limit is ten times the limit at fit, so that no training sample is refused for rounding.
    """
    limit = 10 * MAX_OFFSET * scale
    numbers = X.data if sparse.issparse(X) else X
    if are_within(numbers, limit - float(np.abs(center).max())):
        return None
    if not sparse.issparse(X):
        far = abs(X - cast_like(center, X)) * cast_like(used.astype(center.dtype), X) > limit
        return namespace(X).any(far, axis=1)
    far = np.zeros(X.shape[0], dtype=bool)
    indices = np.repeat(np.arange(len(far)), np.diff(X.indptr))
    far[indices[used[X.indices] & (np.abs(X.data - center[X.indices]) > limit)]] = True
    return far


def check_distances(X: Any, offsets: Any, view: ProjectedView) -> None:
    """Raise ValueError if a sample is too far from the centre; see :data:`MAX_OFFSET`.

    `offsets` are the numbers of `X` minus the centre: an array like `X`, or one number per entry.
    """
    if are_within(offsets, MAX_OFFSET * view.scale):
        return
    place = np.unravel_index(np.abs(to_host(offsets)).argmax(), offsets.shape)
    column = int(place[1] if offsets.ndim == 2 else X.indices[place])
    value = float((to_host(X) if offsets.ndim == 2 else X.data)[place])
    raise ValueError(
        f"X has {value:g} in column {column}, where the mean is {view.center[column]:g}: they "
        f"differ by more than {MAX_OFFSET:g} times the scale of the samples ({view.scale:.3g}, "
        "by default their median distance). Check the units, leave rows with huge numbers out, or "
        "scale the columns."
    )


def check_scale(scale: float, center: Array) -> None:
    """Raise ValueError if the samples are too large or too close to each other to compute with."""
    dtype = center.dtype.name
    limit = MAX_SAMPLE_SCALE[dtype]
    if 1 / limit <= scale <= limit and np.isfinite(center).all():
        return
    what = "numbers that are too large"
    if np.isfinite(center).all():
        what = f"distances of about {scale:.3g}"
    hint = "multiply X by a number" + (", or give it in float64" if dtype == "float32" else "")
    raise ValueError(
        f"X has {what}: in {dtype}, the samples must have distances between {1 / limit:g} and "
        f"{limit:g}, and a finite mean: {hint}."
    )
