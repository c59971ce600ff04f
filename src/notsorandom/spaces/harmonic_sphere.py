"""The sphere with spherical harmonics: a frequency is an index, and there are finitely many."""

from __future__ import annotations

import math
from bisect import bisect_right
from functools import lru_cache, partial
from typing import Any

import numpy as np

from notsorandom._utils.parameters import check_flag
from notsorandom.data.array_api import cast_like
from notsorandom.data.rows import Array, Rows, dense
from notsorandom.spaces.base import FiniteSpace
from notsorandom.spaces.gegenbauer import n_harmonics
from notsorandom.spaces.harmonics import (
    HarmonicSums,
    count_harmonics,
    harmonic_indices,
    harmonics,
)
from notsorandom.spaces.landscape import average_groups, feature_potentials
from notsorandom.spaces.spherical import Spherical
from notsorandom.spaces.supremum import Supremum


class HarmonicSphere(Spherical, FiniteSpace):
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
    normalize : bool, default=False
        Scale samples to norm one.
    scale : "median" or float, default="median"
        The length that smoothing is a fraction of.
    whole_degrees : bool, default=False
        Take all harmonics of a degree together, so that the kernel depends on
        :math:`\langle x, z\rangle` alone (Schoenberg).
    """

    is_vector_space = False

    def __init__(
        self,
        max_degree: Any = "auto",
        max_harmonics: int = 1000,
        normalize: bool = False,
        scale: Any = "median",
        whole_degrees: bool = False,
    ) -> None:
        super().__init__(max_degree, max_harmonics, normalize, scale)
        self.whole_degrees = whole_degrees

    def check(self) -> None:
        """Raise ValueError if a parameter is out of its range."""
        super().check()
        check_flag("whole_degrees", self.whole_degrees)

    def resolve(self, rows: Rows, rng: np.random.Generator) -> HarmonicSphere:
        """Return the same space with its degree settled and its scale measured."""
        largest = largest_degree(rows.n_features, self.max_harmonics)
        if largest < 1:
            raise ValueError(
                f"max_harmonics={self.max_harmonics} is too few: with {rows.n_features} columns, "
                f"degrees 0 and 1 have {rows.n_features + 1}. Allow more, or use "
                "Sphere(basis='zonal')."
            )
        max_degree = largest if self.max_degree == "auto" else int(self.max_degree)
        if max_degree > largest:
            raise ValueError(
                f"max_degree={max_degree} has more harmonics with {rows.n_features} columns than "
                f"max_harmonics={self.max_harmonics}: allow more, or at most degree {largest}, or "
                "use Sphere(basis='zonal')."
            )
        return HarmonicSphere(
            max_degree,
            self.max_harmonics,
            self.normalize,
            self.measured_scale(rows, rng),
            self.whole_degrees,
        )

    def all_frequencies(self, n_features: int) -> Array:
        """Indices of all harmonics considered."""
        return harmonic_indices(n_features, self.max_degree)

    def representatives(self, frequencies: Array, phase: str) -> Array:
        """The index that stands for the kernel of each: equal for those that come together."""
        if self.whole_degrees:
            stats = np.zeros_like(frequencies)
            stats[:, -1] = np.abs(frequencies[:, -1])
            return stats
        return frequencies if phase == "aligned" else np.abs(frequencies)

    def groups(self, frequencies: Array, phase: str) -> Array:
        """Labels of the harmonics that make up one kernel."""
        stats = self.representatives(frequencies, phase)
        return np.unique(stats, axis=0, return_inverse=True)[1].ravel()

    def members(self, representative: Array, phase: str) -> Array:
        """All harmonics of a kernel."""
        if self.whole_degrees:
            all_frequencies = self.all_frequencies(len(representative) + 1)
            return all_frequencies[np.abs(all_frequencies[:, -1]) == representative[-1]]
        if phase == "aligned" or representative[0] == 0:
            return representative[None]
        mirror = np.ones_like(representative)
        mirror[0] = -1
        return np.stack([representative, representative * mirror])

    def draw(
        self,
        n_frequencies: int,
        n_features: int,
        dtype: Any,
        rng: np.random.Generator,
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
        (sums,) = rows.sum_blocks(
            lambda X, a: (dense(a).T @ harmonics(dense(X), frequencies),),
            measure,
            width=3 * len(frequencies),
        )
        return sums[None]

    def all_amplitudes(self, rows: Rows, measure: Array) -> Array:
        """Sums of the measure against all harmonics considered, at once."""
        sums = all_sums(rows.n_features, self.max_degree)
        width = sums.width(measure.shape[1])
        moments = rows.sum_blocks(lambda X, a: sums.moments(dense(X), dense(a)), measure, width=width)
        return sums.arranged(moments)[None]

    def scales(self, rows: Rows, frequencies: Array) -> Array:
        """Factors of the features: none, harmonics are of mean square one by themselves."""
        return np.ones(len(frequencies), dtype=rows.dtype)

    def features(self, X: Array, frequencies: Array, phases: Array, phase: str) -> Array:
        """Values of the harmonics: real features of mean square one over the sphere.

        Returns
        -------
        ndarray of shape (n_rows, n_frequencies)
        """
        return cast_like(harmonics(dense(X), frequencies.astype(int)), X)

    def bandwidth(self, frequencies: Array) -> float:
        """The largest degree considered."""
        return float(self.max_degree)

    def norms(self, frequencies: Array) -> Array:
        """Degrees of the harmonics."""
        return np.abs(frequencies[:, -1])

    def supremum(
        self,
        rows: Rows,
        measure: Array,
        phase: str,
        bandwidth: float,
        reached: float,
        tol: float,
        max_evaluations: int,
    ) -> Supremum:
        """The largest potential of any kernel of harmonics: exact, all are looked at."""
        amplitudes = self.all_amplitudes(rows, measure)
        groups = self.groups(self.all_frequencies(rows.n_features), phase)
        potentials = average_groups(feature_potentials(self, amplitudes, phase), groups)
        largest = float(potentials.max())
        return Supremum(largest, largest)

    def rademacher_complexity(self, rows: Rows, bandwidth: float, phase: str) -> float:
        r"""Rademacher complexity, by Massart's lemma for so many harmonics and their signs."""
        count = count_harmonics(rows.n_features, self.max_degree)
        bound = self.kernel_bound(rows.n_features, phase)
        return math.sqrt(2 * bound * math.log(2 * count) / rows.total_weight)

    def n_columns(self, phase: str) -> int:
        """Real features a frequency."""
        return 1

    def n_features(self, frequencies: Array) -> int:
        """Number of columns of the samples that the frequencies are for."""
        return int(frequencies.shape[1]) + 1

    def kernel_bound(self, n_features: int, phase: str) -> float:
        """Largest value of the kernel of a single frequency, or of a whole degree."""
        return 1.0 if self.whole_degrees else float(n_harmonics(n_features, self.max_degree))


@lru_cache(maxsize=1)
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
