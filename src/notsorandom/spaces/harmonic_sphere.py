"""The sphere with spherical harmonics: a frequency is an index, and there are finitely many."""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache, partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from notsorandom.parameters import check_number
from notsorandom.rows import Array, Rows
from notsorandom.spaces.euclidean import median_distance
from notsorandom.spaces.gegenbauer import n_harmonics
from notsorandom.spaces.harmonics import (
    HarmonicSums,
    count_harmonics,
    harmonic_indices,
    harmonics,
)
from notsorandom.spaces.landscape import potential_of
from notsorandom.spaces.unit_rows import unit_rows


class HarmonicSphere(BaseEstimator):
    r"""Spherical harmonics up to a degree, on the sphere of any dimension.

    A non-negative measure over the harmonics is a kernel; if it is the same on all harmonics of a
    degree, the kernel is rotation-invariant (Section 2.1 and Appendix B of the paper). With the
    phase ``"aligned"`` each real harmonic is a frequency by itself, with ``"paired"`` those of
    :math:`l_1` and :math:`-l_1` come together, which makes the kernel invariant to rotations of
    the first two coordinates.

    Parameters
    ----------
    max_degree : int or "auto", default="auto"
        ``"auto"`` takes as many whole degrees as fit into `max_harmonics`.
    max_harmonics : int, default=1000
    whole_degrees : bool, default=False
        Take all harmonics of a degree together, so that the kernel depends on
        :math:`\langle x, z\rangle` alone (Schoenberg).
    normalize : bool, default=False
        Scale samples to norm one.
    scale : "median" or float, default="median"
        The length that smoothing is a fraction of.
    """

    kind = "finite"

    def __init__(
        self,
        max_degree: Any = "auto",
        max_harmonics: int = 1000,
        whole_degrees: bool = False,
        normalize: bool = False,
        scale: Any = "median",
    ) -> None:
        self.max_degree = max_degree
        self.max_harmonics = max_harmonics
        self.whole_degrees = whole_degrees
        self.normalize = normalize
        self.scale = scale

    def check(self) -> None:
        """Raise ValueError if a parameter is out of its range."""
        check_number("max_degree", self.max_degree, least=1, integer=True, or_else=["auto"])
        check_number("max_harmonics", self.max_harmonics, least=1, integer=True)
        check_number("scale", self.scale, above=0, or_else=["median"])

    def prepare(self, X: Array) -> Array:
        """Return the samples, normalised or checked to be of norm one."""
        return unit_rows(X, self.normalize)

    def resolve(self, rows: Rows, rng: np.random.Generator) -> HarmonicSphere:
        """Return the same space with its degree settled and its scale measured."""
        max_degree = largest_degree(rows.n_features, self.max_harmonics)
        if max_degree < 1:
            raise ValueError(
                f"max_harmonics={self.max_harmonics} is too few: with {rows.n_features} columns, "
                f"degree 1 alone has {rows.n_features} harmonics. Allow more, or use "
                "Sphere(basis='zonal')."
            )
        if self.max_degree != "auto":
            if self.max_degree > max_degree:
                count = count_harmonics(rows.n_features, self.max_degree)
                raise ValueError(
                    f"max_degree={self.max_degree} has {count} harmonics with {rows.n_features} "
                    f"columns, but max_harmonics={self.max_harmonics}: allow more, or at most "
                    f"degree {max_degree}, or use Sphere(basis='zonal')."
                )
            max_degree = int(self.max_degree)
        scale = median_distance(rows, rng) if isinstance(self.scale, str) else float(self.scale)
        return HarmonicSphere(
            max_degree, self.max_harmonics, self.whole_degrees, self.normalize, scale
        )

    def everything(self, n_features: int) -> Array:
        """Indices of all harmonics considered."""
        return harmonic_indices(n_features, self.max_degree)

    def groups(self, frequencies: Array, phase: str) -> Array:
        """Labels of the harmonics that make up one kernel."""
        if self.whole_degrees:
            return np.abs(frequencies[:, -1])
        if phase == "aligned":
            return np.arange(len(frequencies))
        _, labels = np.unique(np.abs(frequencies), axis=0, return_inverse=True)
        return labels.ravel()

    def companions(self, frequency: Array, phase: str) -> Array:
        """All harmonics of the group that an index belongs to."""
        if self.whole_degrees:
            everything = self.everything(len(frequency) + 1)
            return everything[np.abs(everything[:, -1]) == abs(frequency[-1])]
        if phase == "aligned" or frequency[0] == 0:
            return frequency[None]
        mirror = np.ones_like(frequency)
        mirror[0] = -1
        return np.stack([frequency, frequency * mirror])

    def draw(
        self,
        n_frequencies: int,
        n_features: int,
        dtype: Any,
        rng: np.random.Generator,
        phase: str = "aligned",
        variance: float = 1.0,
    ) -> Array:
        """Draw indices, every degree as likely as any other."""
        degrees = rng.integers(1, self.max_degree, size=n_frequencies, endpoint=True)
        below = rng.integers(
            0, degrees[:, None], size=(n_frequencies, n_features - 2), endpoint=True
        )
        indices = np.column_stack([np.sort(below, axis=1), degrees])
        indices[:, 0] *= rng.choice([-1, 1], size=n_frequencies)
        return indices

    def propose(self, frequencies: Array, rng: np.random.Generator) -> Array:
        r"""Neighbours in the set of indices: one number of each, anywhere between its neighbours.

        The way back is as likely as the way there, and any index can be reached from any other.
        """
        n_points, n_numbers = frequencies.shape
        who, which = np.arange(n_points), rng.integers(n_numbers, size=n_points)
        degrees = np.abs(frequencies)
        below = np.column_stack([np.zeros(n_points, dtype=int), degrees[:, :-1]])[who, which]
        above = np.column_stack([degrees[:, 1:], np.full(n_points, self.max_degree)])[who, which]
        low = np.where(which == 0, -above, below)
        proposed = frequencies.copy()
        proposed[who, which] = rng.integers(low, above, endpoint=True)
        return proposed

    def penalty(self, rows: Rows, frequencies: Array, smoothing: float) -> tuple[Array, Array]:
        r"""Logarithm that smoothing takes from the potential; there is no gradient.

        Samples that diffuse on the sphere, by a standard deviation of :math:`\sigma` a direction,
        lose :math:`\sigma^2 l (l + d - 2)` of the log potential at degree `l`.

        Returns
        -------
        penalty : ndarray of shape (n_frequencies,)
        gradient : ndarray of shape (n_frequencies, 0)
        """
        degrees = np.abs(frequencies[:, -1])
        eigenvalues = degrees * (degrees + frequencies.shape[1] - 1)
        penalty = (smoothing * self.scale) ** 2 * eigenvalues
        return penalty.astype(rows.dtype), np.empty((len(frequencies), 0), dtype=rows.dtype)

    def amplitudes(self, rows: Rows, measure: Array, frequencies: Array) -> Array:
        """Sums of the measure against some harmonics.

        Returns
        -------
        ndarray of shape (1, n_tasks, n_frequencies)
        """
        (sums,) = rows.add(
            lambda X, a: (a.T @ harmonics(X, frequencies),), measure, width=3 * len(frequencies)
        )
        return sums[None]

    def amplitudes_of_everything(self, rows: Rows, measure: Array) -> Array:
        """Sums of the measure against all harmonics considered, at once."""
        sums = all_sums(rows.n_features, self.max_degree)
        return sums.arranged(rows.add(sums.moments, measure, width=sums.width))[None]

    def potential(self, rows: Rows, measure: Array, frequencies: Array) -> Array:
        r"""Fourier potential :math:`v(\omega) = \sum_k (\sum_i a_{ik} Y_\omega(x_i))^2`."""
        return potential_of(self.amplitudes(rows, measure, frequencies))

    def phases(self, amplitudes: Array) -> Array:
        """Phases of the features: none, real and imaginary part have indices of their own."""
        return np.zeros(amplitudes.shape[-1], dtype=amplitudes.dtype)

    def scales(self, rows: Rows, frequencies: Array, smoothing: float) -> Array:
        """Factors of the features: none, harmonics are of mean square one by themselves."""
        return np.ones(len(frequencies), dtype=rows.dtype)

    def features(self, X: Array, frequencies: Array, phases: Array, phase: str) -> Array:
        """Values of the harmonics: real features of mean square one over the sphere.

        Returns
        -------
        ndarray of shape (n_rows, n_frequencies)
        """
        return harmonics(X, frequencies.astype(int))

    def alignment(self, amplitudes: Array, phases: Array, phase: str) -> Array:
        """Inner product of each feature with the measure, read off the transform.

        Returns
        -------
        ndarray of shape (n_frequencies, 1, n_tasks)
        """
        return amplitudes.transpose(2, 0, 1)

    def n_columns(self, phase: str) -> int:
        """Real features a frequency."""
        return 1

    def n_features(self, frequencies: Array) -> int:
        """Number of columns of the samples that the frequencies are for."""
        return int(frequencies.shape[1]) + 1

    def bound(self, n_features: int, phase: str) -> float:
        """Largest value of the kernel of a single frequency, or of a whole degree."""
        return 1.0 if self.whole_degrees else float(n_harmonics(n_features, self.max_degree))

    def largest_potential(self, measure: Array, phase: str) -> float:
        """Potential of a feature of mean square one that is the measure itself, up to scale."""
        return len(measure) * float(np.square(measure, dtype=np.float64).sum())


@lru_cache(maxsize=4)
def all_sums(n_features: int, max_degree: int) -> HarmonicSums:
    """Return the way to all sums, whose changes of basis are worth keeping."""
    return HarmonicSums(n_features, max_degree)


def largest_degree(n_features: int, max_harmonics: int) -> int:
    """The largest degree up to which all harmonics together are at most so many."""
    beyond = 1
    while count_harmonics(n_features, beyond) <= max_harmonics:
        beyond *= 2
    counts = partial(count_harmonics, n_features)
    return bisect_right(range(beyond), max_harmonics, key=counts) - 1
