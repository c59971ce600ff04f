"""The learned kernel: frequencies and weights, as a Gram matrix or as features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from notsorandom._utils.parameters import check_number
from notsorandom.data import Lazy, read_lazily
from notsorandom.data.array_api import as_floats, is_device_array, like
from notsorandom.data.rows import Array, Rows
from notsorandom.game import GameResult
from notsorandom.linear.newton import decide


@dataclass(frozen=True, eq=False)
class LearnedKernel:
    r"""A kernel :math:`k(x, z) = \sum_t \lambda_t \phi_t(x) \phi_t(z)` with few known features.

    It keeps nothing of the training data but its frequencies, and can be handed to any kernel
    machine that takes a callable, such as ``SVC(kernel=model.kernel_)``.

    Parameters
    ----------
    space : a space, resolved
    frequencies : ndarray of shape (n_frequencies, n_features)
        On the sphere's harmonics, their indices.
    phases, scales : ndarrays of shape (n_frequencies,)
        Of the features.
    weights : ndarray of shape (n_frequencies,)
        Non-negative, of sum 1.
    phase : {"aligned", "paired"}
    """

    space: Any
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

    @classmethod
    def from_game(cls, result: GameResult, weights: Array, phase: str) -> LearnedKernel:
        """Return the kernel of the frequencies that a game found."""
        return cls(
            space=result.space,
            frequencies=result.frequencies,
            phases=result.phases,
            scales=result.scales,
            weights=weights,
            phase=phase,
        )

    @property
    def n_components(self) -> int:
        """Number of real features."""
        return len(self.weights) * int(self.space.n_columns(self.phase))

    def features(self, X: Any) -> Any:
        """Feature map: its inner products are the kernel.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Or an array by the array API standard, on any device, or one that is read by slices.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            float32 if `X` is, otherwise float64; of the kind of `X`, on its device.
        """
        X = read_lazily(X)
        if not is_device_array(X) and not isinstance(X, Lazy):
            X = sparse.csr_array(X) if sparse.issparse(X) else np.asarray(X)
        X = X if isinstance(X, Lazy) else as_floats(X)
        n_features = self.space.n_features(self.frequencies)
        if X.ndim != 2 or X.shape[1] != n_features:
            raise ValueError(
                f"X has shape {tuple(X.shape)}, but this kernel takes arrays of shape "
                f"(n_samples, {n_features}), as at fit."
            )
        if X.shape[0] == 0:
            nothing = np.empty((0, self.n_components), dtype=self.frequencies.dtype)
            return like(nothing, X) if is_device_array(X) else nothing.astype(X.dtype)
        rows = Rows(self.space.prepare(X))
        return rows.image(self.feature_map(rows.dtype), width=self.width)

    def features_of(self, rows: Rows) -> Array:
        """Features of rows that are known to fit, in host memory."""
        return rows.map(self.feature_map(rows.dtype), width=self.width)

    def scores(self, rows: Rows, coef: Array, intercept: Array) -> Array:
        """Values of linear models on the features, of shape (n_samples, n_tasks).

        The features of a block are gone before the next: memory isn't that of all of them.
        """
        features = self.feature_map(rows.dtype)
        return rows.map(lambda block: decide(features(block), coef, intercept), width=self.width)

    @property
    def width(self) -> int:
        """Numbers that are held for each row on the way to its features."""
        degree = 0 if self.space.is_flat else int(self.space.sizes(self.frequencies).max())
        return max(self.n_components, 4 * degree)

    def feature_map(self, dtype: Any) -> Callable[[Any], Any]:
        """The function that gives the features of a block of such rows."""
        columns = np.repeat(self.scales * np.sqrt(self.weights), self.space.n_columns(self.phase))
        frequencies, phases, factors = (
            part.astype(dtype, copy=False) for part in (self.frequencies, self.phases, columns)
        )

        def features(block: Any) -> Any:
            made = self.space.features(block, frequencies, phases, self.phase)
            if not is_device_array(made):
                return made * factors
            made *= like(factors, made)
            return made

        return features

    def __call__(self, X: Any, Z: Any = None) -> Any:
        """Gram matrix of shape (n_samples_X, n_samples_Z); `Z` is `X` if not given.

        Of two points, vectors of shape (n_features,), it is a number, which is what scikit-learn's
        ``pairwise_kernels`` asks for.
        """
        if np.ndim(X) == 1 and np.ndim(Z) == 1:
            X, Z = (one if is_device_array(one) else np.asarray(one) for one in (X, Z))
            return self(X[None, :], Z[None, :])[0, 0]
        left = self.features(X)
        right = left if Z is None else self.features(Z)
        return left @ right.T

    def head(self, n_components: int) -> LearnedKernel:
        """The kernel of the first `n_components` features."""
        check_number("n_components", n_components, above=0, integer=True)
        n_columns = self.space.n_columns(self.phase)
        if n_components > self.n_components or n_components % n_columns:
            raise ValueError(
                f"head({n_components!r}) is not possible: it takes 1 to {self.n_components} "
                f"features, in steps of {n_columns} with phase={self.phase!r}."
            )
        first = slice(n_components // n_columns)
        labels = self.space.groups(self.frequencies, self.phase)
        if set(labels[first]) & set(labels[first.stop :]):
            raise ValueError(
                f"head({n_components!r}) is not possible: it would part features that make up one "
                "kernel together, such as the harmonics of one degree."
            )
        return replace(
            self,
            frequencies=self.frequencies[first],
            phases=self.phases[first],
            scales=self.scales[first],
            weights=normalized(self.weights[first]),
        )

    def possible_sizes(self) -> Array:
        """Numbers of features that its head can have, without parting some that come together."""
        groups = self.space.groups(self.frequencies, self.phase)
        last = np.zeros(groups.max() + 1, dtype=int)
        last[groups] = np.arange(len(groups))  # later ones overwrite
        whole = np.maximum.accumulate(last[groups]) == np.arange(len(groups))
        return (np.flatnonzero(whole) + 1) * int(self.space.n_columns(self.phase))


def normalized(weights: Array) -> Array:
    """The weights over their sum; uniform if they are all zero."""
    total = weights.sum()
    return weights / total if total > 0 else np.full(len(weights), 1 / len(weights))
