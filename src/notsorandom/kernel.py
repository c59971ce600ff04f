"""The learned kernel: a Gram matrix, or features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from notsorandom.data.array_api import as_floats, cast_like, is_device_array, namespace, to_host
from notsorandom.data.rows import Array, Rows, dense
from notsorandom.spaces import Euclidean
from notsorandom.spaces.base import ResolvedSpace
from notsorandom.spaces.view import View, round_to_float32


@dataclass(frozen=True, eq=False, repr=False)
class LearnedKernel:
    r"""A kernel of finitely many features, and perhaps the columns of the samples.

    .. math:: k(x, z) = \sum_t \lambda_t \phi_t(x) \phi_t(z) + s^2 \langle x - c, z - c \rangle.

    It holds none of the training data. It can be passed to any estimator that takes a kernel as a
    callable, such as ``SVC(kernel=model.kernel_)``; for Gaussian processes, see
    :class:`GaussianProcessKernel`.

    Parameters
    ----------
    space : ResolvedSpace
        Where the frequencies live.
    frequencies : ndarray of shape (n_frequencies, n_features)
        On the sphere's harmonics, their indices.
    phases, scales : ndarrays of shape (n_frequencies,)
        Phase and factor of each frequency's features.
    weights : ndarray of shape (n_frequencies,)
        Non-negative, with sum 1.
    phase : {"aligned", "paired"}
        Whether a frequency has one feature, at its phase, or a cosine and a sine.
    linear_scale : float, default=0.0
        `s`, the factor of the columns in the linear part; 0 for none.
    linear_center : ndarray of shape (n_features,), optional
        `c`, by default zero, so that sparse samples stay sparse.
    """

    space: ResolvedSpace
    frequencies: Array
    phases: Array
    scales: Array
    weights: Array
    phase: str
    linear_scale: float = 0.0
    linear_center: Array | None = None

    def __post_init__(self) -> None:
        names = ["frequencies", "phases", "scales", "weights"]
        for name in names if self.linear_center is None else [*names, "linear_center"]:
            array = np.asarray(getattr(self, name))
            if array.flags.writeable:
                array = array.copy()
                array.flags.writeable = False
            object.__setattr__(self, name, array)

    def __repr__(self) -> str:
        return (
            f"LearnedKernel(space={type(self.space).__name__}, phase={self.phase!r}, "
            f"n_features={self.n_features}, n_components={self.n_components}"
            f"{', linear' if self.linear_scale else ''})"
        )

    def __sklearn_clone__(self) -> LearnedKernel:
        return self  # frozen: estimators that hold it can share it

    @property
    def n_features(self) -> int:
        """Number of columns of the samples."""
        return self.space.n_features(self.frequencies)

    @property
    def n_waves(self) -> int:
        """Number of real features of the frequencies."""
        return len(self.weights) * int(self.space.n_columns(self.phase))

    @property
    def n_components(self) -> int:
        """Number of real features: those of the frequencies, then the columns of a linear part."""
        return self.n_waves + (self.n_features if self.linear_scale else 0)

    def features(self, X: Any) -> Any:
        """Map samples to features whose inner products are the kernel.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Also an array API array on any device, a memory map, or any array read by slices.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            An array of the library and on the device of `X`; float32 if `X` is, otherwise float64.
            A sparse array if `X` is one and the kernel has a linear part without a centre.
        """
        X = as_samples(X)
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise ValueError(
                f"X has shape {tuple(X.shape)}, but this kernel takes arrays of shape "
                f"(n_samples, {self.n_features}), as at fit."
            )
        if X.shape[0] == 0:
            empty = np.empty((0, self.n_components), dtype=self.frequencies.dtype)
            return cast_like(empty, X) if is_device_array(X) else empty.astype(X.dtype)
        return self.device_features(Rows(self.space.prepare(X)))

    def device_features(self, rows: Rows) -> Any:
        """Return the features of validated rows, on their device."""
        features = self._map(self.feature_map(rows.dtype), rows, on_device=True)
        self._check(rows, dense_if_sparse(features[:, :1]))  # without one, a row has none at all
        return features

    def features_of(self, rows: Rows) -> Array:
        """Return the features of validated rows, in host memory."""
        return rows.map(self.feature_map(rows.dtype), width=self.width)

    def scores(self, rows: Rows, coef: Array, intercept: Array) -> Array:
        """Return the values of linear models on the features, of shape (n_samples, n_tasks).

        Only the features of one block at a time are in memory.
        """
        scores = self._map(self.score_map(rows.dtype, coef, intercept), rows)
        self._check(rows, scores)
        return scores

    def score_map(self, dtype: Any, coef: Array, intercept: Array) -> Callable[[Any], Any]:
        """Return a function that computes the scores of a block of rows of that type."""
        n_waves, waves, columns = self.n_waves, self.wave_map(dtype), self.column_map(dtype)
        if columns is None:
            return lambda block: linear_scores(waves(block), coef, intercept)
        slopes, nothing = coef[:, n_waves:], np.zeros_like(intercept)

        def compute_scores(block: Any) -> Any:
            scores = linear_scores(waves(block), coef[:, :n_waves], intercept)
            return scores + linear_scores(columns(block), slopes, nothing)

        return compute_scores

    def _map(self, function: Callable[[Any], Any], rows: Rows, on_device: bool = False) -> Any:
        """Map blocks of rows to values, which are NaN where a row is too far away."""

        @np.errstate(over="ignore", invalid="ignore")
        def compute(block: Any) -> Any:
            far, values = self.space.far_rows(block, self._used), function(block)
            if far is None:
                return values
            values = dense_if_sparse(values)
            return namespace(values).where(far[:, None], np.nan, values)

        return rows.map(compute, width=self.width, on_device=on_device)

    def _check(self, rows: Rows, values: Any) -> None:
        """Raise ValueError at the first row whose values are not finite."""
        if bool(namespace(values).all(namespace(values).isfinite(values))):
            return
        row = int(np.flatnonzero(~np.isfinite(to_host(values)).all(axis=1))[0])
        numbers = dense(rows.take(np.array([row])).array)[0]
        column = self.space.farthest_column(numbers, self._used)
        raise ValueError(
            f"Row {row} of X has {numbers[column]:g} in column {column}, but the samples at fit "
            f"had distances of about {float(self.space.scale):.3g}: it is too far from them to "
            f"compute with in {rows.dtype}. Check its units, or leave the row out."
        )

    @property
    def _used(self) -> Array:
        """Vectors that are not zero in the columns that the features depend on."""
        return np.ones((1, self.n_features)) if self.linear_scale else self.frequencies

    @property
    def width(self) -> int:
        """Numbers held per row while its features are computed."""
        degree = 0
        if not self.space.is_vector_space:
            degree = int(self.space.norms(self.frequencies).max(initial=0))
        # Recurrences of harmonics hold up to about four numbers per degree.
        return max(self.n_components, 4 * degree)

    def feature_map(self, dtype: Any) -> Callable[[Any], Any]:
        """Return a function that computes the features of a block of rows of that type."""
        waves, columns = self.wave_map(dtype), self.column_map(dtype)
        if columns is None:
            return waves
        return lambda block: stack_features(waves(block), columns(block))

    def column_map(self, dtype: Any) -> Callable[[Any], Any] | None:
        """Return a function that computes the features of the linear part; None without one."""
        if not self.linear_scale:
            return None
        center, scale = self.linear_center, float(self.linear_scale)

        def compute_columns(block: Any) -> Any:
            if center is None:
                return block * scale
            block = dense_if_sparse(block)
            centred = block - cast_like(center, block)  # float32 samples keep their digits
            if isinstance(centred, np.ndarray):
                centred = centred.astype(dtype, copy=False)
            return centred * scale

        return compute_columns

    def wave_map(self, dtype: Any) -> Callable[[Any], Any]:
        """Return a function that computes the features of the frequencies."""
        columns = np.repeat(self.scales * np.sqrt(self.weights), self.space.n_columns(self.phase))
        with np.errstate(over="ignore"):  # features that are not finite are refused
            frequencies, phases, factors = (
                part.astype(dtype, copy=False) for part in (self.frequencies, self.phases, columns)
            )

        def compute_waves(block: Any) -> Any:
            if not len(frequencies):
                return dense_if_sparse(block[:, :0])
            features = self.space.features(block, frequencies, phases, self.phase)
            features *= cast_like(factors, features)
            return features

        return compute_waves

    def __call__(self, X: Any, Z: Any = None) -> Any:
        """Return the Gram matrix of shape (n_samples_X, n_samples_Z); `Z` defaults to `X`.

        For two vectors of shape (n_features,) it returns a number, as scikit-learn's
        ``pairwise_kernels`` needs.
        """
        if np.ndim(X) == 1 and np.ndim(Z) == 1:
            X, Z = (one if is_device_array(one) else np.asarray(one) for one in (X, Z))
            return self(X[None, :], Z[None, :])[0, 0]
        left = self.features(X)
        right = left if Z is None else self.features(Z)
        return dense_if_sparse(left @ right.T)

    def diag(self, X: Any) -> Any:
        """Return the diagonal of the Gram matrix of `X`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The samples.
        """
        squares = self.features(X) ** 2
        return (
            squares.sum(axis=1)
            if sparse.issparse(squares)
            else namespace(squares).sum(squares, axis=1)
        )

    def is_stationary(self) -> bool:
        """Return whether the kernel depends on differences of samples only, with paired phases."""
        is_paired = self.phase == "paired" and not self.linear_scale
        return is_paired and self.space.is_vector_space

    def restored(self, view: View) -> LearnedKernel:
        """Return the kernel of a view's samples as a kernel of the samples that were given."""
        dtype, frequencies = view.given_dtype, view.restore(self.frequencies)
        if frequencies.dtype.kind == "f":
            frequencies = round_to_float32(frequencies).astype(dtype)
        return LearnedKernel(
            view.given_space,
            frequencies,
            phases=self.phases.astype(dtype),
            scales=self.scales.astype(dtype),
            weights=normalized(self.weights.astype(np.float64)).astype(dtype),
            phase=self.phase,
            linear_scale=self.linear_scale / view.unit,
            linear_center=view.linear_center if self.linear_scale else None,
        )

    def head(self, n_components: int) -> LearnedKernel:
        """Return the kernel of the first features.

        Parameters
        ----------
        n_components : int
            Number of features of frequencies to keep, one of :meth:`possible_sizes`. A linear part
            stays.
        """
        n_columns = self.space.n_columns(self.phase)
        possible = range(n_columns, self.n_waves + 1, n_columns)
        is_int = hasattr(n_components, "__index__") and n_components is not True
        if not is_int or n_components not in possible:
            steps = f", in steps of {n_columns}" if n_columns > 1 else ""
            raise ValueError(
                f"head({n_components!r}) is not possible: give the number of features to keep, an "
                f"int from {n_columns} to {self.n_waves}{steps}."
            )
        first = slice(n_components // n_columns)
        labels = self.space.groups(self.frequencies, self.phase)
        if set(labels[first]) & set(labels[first.stop :]):
            raise ValueError(
                f"head({n_components!r}) is not possible: it would separate features that form one "
                "kernel, such as the harmonics of one degree. Allowed sizes: possible_sizes()."
            )
        return replace(
            self,
            frequencies=self.frequencies[first],
            phases=self.phases[first],
            scales=self.scales[first],
            weights=normalized(self.weights[first]),
        )

    def possible_sizes(self) -> Array:
        """Return the sizes that :meth:`head` accepts: they separate no group of features."""
        groups = self.space.groups(self.frequencies, self.phase)
        last = np.zeros(groups.max() + 1, dtype=int)
        last[groups] = np.arange(len(groups))  # later ones overwrite
        is_end = np.maximum.accumulate(last[groups]) == np.arange(len(groups))
        return (np.flatnonzero(is_end) + 1) * int(self.space.n_columns(self.phase))


def linear_kernel(rows: Rows, scale: float) -> LearnedKernel:
    """Return the kernel of the columns of some rows, without frequencies."""
    space = Euclidean(scale=1.0, center=np.zeros(rows.n_features, dtype=rows.dtype))
    none: Array = np.empty(0, dtype=rows.dtype)
    frequencies = np.empty((0, rows.n_features), dtype=rows.dtype)
    return LearnedKernel(space, frequencies, none, none, none, "aligned", scale)


def normalized(weights: Array) -> Array:
    """Divide the weights by their sum; uniform weights if all are zero."""
    total = weights.sum()
    return weights / total if total > 0 else np.full(len(weights), 1 / len(weights))


def as_samples(X: Any) -> Any:
    """Return samples as an array in float32 or float64, sparse CSR, or readable by slices."""
    if type(X) is not np.ndarray and not sparse.issparse(X):
        from notsorandom.data.coerce import read_lazily
        from notsorandom.data.lazy import LazyArray

        X = read_lazily(X)
        if isinstance(X, LazyArray):
            return X
    if not is_device_array(X):
        X = sparse.csr_array(X) if sparse.issparse(X) else np.asarray(X)
    return as_floats(X)


def dense_if_sparse(values: Any) -> Any:
    """Return values as a dense array, where they are."""
    return values.toarray() if sparse.issparse(values) else values


def stack_features(waves: Any, columns: Any) -> Any:
    """Return the features of frequencies and the columns of a linear part, sparse if these are."""
    if sparse.issparse(columns):
        return sparse.hstack([sparse.csr_array(waves), columns], format="csr")
    return namespace(waves).concat([waves, columns], axis=1)


@np.errstate(invalid="ignore")
def linear_scores(features: Any, coef: Array, intercept: Array) -> Any:
    """Return the values of linear models, of shape (n_samples, n_tasks), like the features."""
    if is_device_array(features):
        return features @ cast_like(coef, features).T + cast_like(intercept, features)
    return features @ coef.T.astype(features.dtype) + intercept.astype(features.dtype)
