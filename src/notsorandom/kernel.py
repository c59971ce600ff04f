"""The learned kernel: frequencies and weights, as a Gram matrix or as features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from notsorandom.data.array_api import as_floats, cast_like, is_device_array, namespace, to_host
from notsorandom.data.rows import Array, Rows, dense
from notsorandom.spaces.base import ResolvedSpace


@dataclass(frozen=True, eq=False)
class LearnedKernel:
    r"""A kernel :math:`k(x, z) = \sum_t \lambda_t \phi_t(x) \phi_t(z)` of finitely many features.

    It holds none of the training data. It can be passed to any estimator that takes a kernel as a
    callable, such as ``SVC(kernel=model.kernel_)``.

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
    """

    space: ResolvedSpace
    frequencies: Array
    phases: Array
    scales: Array
    weights: Array
    phase: str

    def __post_init__(self) -> None:
        for name in ("frequencies", "phases", "scales", "weights"):
            array = np.asarray(getattr(self, name))
            if array.flags.writeable:
                array = array.copy()
                array.flags.writeable = False
            object.__setattr__(self, name, array)

    @property
    def n_components(self) -> int:
        """Number of real features."""
        return len(self.weights) * int(self.space.n_columns(self.phase))

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
        """
        X = as_samples(X)
        n_features = self.space.n_features(self.frequencies)
        if X.ndim != 2 or X.shape[1] != n_features:
            raise ValueError(
                f"X has shape {tuple(X.shape)}, but this kernel takes arrays of shape "
                f"(n_samples, {n_features}), as at fit."
            )
        if X.shape[0] == 0:
            empty = np.empty((0, self.n_components), dtype=self.frequencies.dtype)
            return cast_like(empty, X) if is_device_array(X) else empty.astype(X.dtype)
        return self.device_features(Rows(self.space.prepare(X)))

    def device_features(self, rows: Rows) -> Any:
        """Return the features of validated rows, on their device."""
        features = self._map(self.feature_map(rows.dtype), rows, on_device=True)
        self._check(rows, features[:, :1])  # a row without features has none at all
        return features

    def features_of(self, rows: Rows) -> Array:
        """Return the features of validated rows, in host memory."""
        return rows.map(self.feature_map(rows.dtype), width=self.width)

    def scores(self, rows: Rows, coef: Array, intercept: Array) -> Array:
        """Return the values of linear models on the features, of shape (n_samples, n_tasks).

        Only the features of one block at a time are in memory.
        """
        features = self.feature_map(rows.dtype)
        scores = self._map(lambda block: linear_scores(features(block), coef, intercept), rows)
        self._check(rows, scores)
        return scores

    def _map(self, function: Callable[[Any], Any], rows: Rows, on_device: bool = False) -> Any:
        """Map blocks of rows to values, which are NaN where a row is too far away."""

        @np.errstate(over="ignore", invalid="ignore")
        def compute(block: Any) -> Any:
            far, values = self.space.far_rows(block, self.frequencies), function(block)
            return values if far is None else namespace(values).where(far[:, None], np.nan, values)

        return rows.map(compute, width=self.width, on_device=on_device)

    def _check(self, rows: Rows, values: Any) -> None:
        """Raise ValueError at the first row whose values are not finite."""
        if bool(namespace(values).all(namespace(values).isfinite(values))):
            return
        row = int(np.flatnonzero(~np.isfinite(to_host(values)).all(axis=1))[0])
        numbers = dense(rows.take(np.array([row])).array)[0]
        column = self.space.farthest_column(numbers, self.frequencies)
        raise ValueError(
            f"Row {row} of X has {numbers[column]:g} in column {column}, but the samples at fit "
            f"had distances of about {float(self.space.scale):.3g}: it is too far from them to "
            f"compute with in {rows.dtype}. Check its units, or leave the row out."
        )

    @property
    def width(self) -> int:
        """Numbers held per row while its features are computed."""
        degree = 0 if self.space.is_vector_space else int(self.space.norms(self.frequencies).max())
        return max(self.n_components, 4 * degree)

    def feature_map(self, dtype: Any) -> Callable[[Any], Any]:
        """Return a function that computes the features of a block of rows of that type."""
        columns = np.repeat(self.scales * np.sqrt(self.weights), self.space.n_columns(self.phase))
        with np.errstate(over="ignore"):  # features that are not finite are refused
            frequencies, phases, factors = (
                part.astype(dtype, copy=False) for part in (self.frequencies, self.phases, columns)
            )

        def compute_features(block: Any) -> Any:
            features = self.space.features(block, frequencies, phases, self.phase)
            features *= cast_like(factors, features)
            return features

        return compute_features

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
        return left @ right.T

    def head(self, n_components: int) -> LearnedKernel:
        """Return the kernel of the first features.

        Parameters
        ----------
        n_components : int
            Number of features to keep, one of :meth:`possible_sizes`.
        """
        n_columns = self.space.n_columns(self.phase)
        possible = range(n_columns, self.n_components + 1, n_columns)
        is_int = isinstance(n_components, (int, np.integer)) and n_components is not True
        if not is_int or n_components not in possible:
            steps = f", in steps of {n_columns}" if n_columns > 1 else ""
            raise ValueError(
                f"head({n_components!r}) is not possible: give the number of features to keep, an "
                f"int from {n_columns} to {self.n_components}{steps}."
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


@np.errstate(invalid="ignore")
def linear_scores(features: Any, coef: Array, intercept: Array) -> Any:
    """Return the values of linear models, of shape (n_samples, n_tasks), like the features."""
    if is_device_array(features):
        return features @ cast_like(coef, features).T + cast_like(intercept, features)
    return features @ coef.T.astype(features.dtype) + intercept.astype(features.dtype)
