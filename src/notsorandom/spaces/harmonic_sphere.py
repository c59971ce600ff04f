"""The sphere with spherical harmonics: a frequency is the index of a harmonic."""

from __future__ import annotations

import math
from bisect import bisect_right
from functools import lru_cache, partial
from typing import Any

import numpy as np

from notsorandom._utils.parameters import MAX_NUMBER, check_flag
from notsorandom.data.array_api import cast_like
from notsorandom.data.rows import Array, Column, Rows, dense
from notsorandom.spaces.base import FiniteSpace, Supremum
from notsorandom.spaces.gegenbauer import n_harmonics
from notsorandom.spaces.harmonics import HarmonicSums, count_harmonics, harmonic_indices, harmonics
from notsorandom.spaces.landscape import average_groups, feature_potentials, resolve_scale
from notsorandom.spaces.sphere import Spherical

# Largest degree that bounds are computed for. Bounds of higher degrees are too large to be of use,
# and the number of their harmonics overflows.
MAX_BOUNDED_DEGREE = 1000


class HarmonicSphere(Spherical, FiniteSpace):
    r"""Spherical harmonics up to a degree, on the sphere of any dimension.

    A non-negative measure over the harmonics is a kernel. If it is constant on the harmonics of
    each degree, the kernel is rotation-invariant (Section 2.1 and Appendix B of the paper). With
    the phase ``"aligned"`` each real harmonic is a frequency of its own. With ``"paired"`` the
    harmonics of :math:`l_1` and :math:`-l_1` form one kernel, which is invariant to rotations of
    the first two coordinates.

    Parameters
    ----------
    max_degree : int or "auto", default="auto"
        ``"auto"`` is the largest for which `max_harmonics` suffices.
    max_harmonics : int, default=1000
    normalize : bool, default=False
        Scale samples to norm one.
    scale : "median" or float, default="median"
        The unit of length of the smoothing, by default the median distance between samples.
    whole_degrees : bool, default=False
        Use all harmonics of a degree together, so that the kernel depends on
        :math:`\langle x, z\rangle` alone (Schoenberg).
    """

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
        """Return the space with its largest degree and its scale."""
        largest = largest_degree(rows.n_features, self.max_harmonics)
        other = "SphereKernel, which has no features" if self.whole_degrees else "basis='zonal'"
        if largest < 1:
            raise ValueError(
                f"max_harmonics={self.max_harmonics} is too few: with {rows.n_features} columns, "
                f"degrees 0 and 1 have {rows.n_features + 1}. Allow more, or use {other}."
            )
        max_degree = largest if self.max_degree == "auto" else int(self.max_degree)
        if max_degree > largest:
            raise ValueError(
                f"max_degree={max_degree} has more harmonics with {rows.n_features} columns than "
                f"max_harmonics={self.max_harmonics}: allow more, or at most degree {largest}, or "
                f"use {other}."
            )
        resolved = {"max_degree": max_degree, "scale": resolve_scale(self.scale, rows, rng)}
        return HarmonicSphere(**(self.get_params() | resolved))

    def all_frequencies(self, n_features: int) -> Array:
        """Return the indices of all harmonics up to the largest degree."""
        return harmonic_indices(n_features, self.max_degree)

    def representatives(self, frequencies: Array, phase: str) -> Array:
        """Return the index with the degree and zeros (whole degrees), or without its sign."""
        if self.whole_degrees:
            representatives = np.zeros_like(frequencies)
            representatives[:, -1] = np.abs(frequencies[:, -1])
            return representatives
        return frequencies if phase == "aligned" else np.abs(frequencies)

    def groups(self, frequencies: Array, phase: str) -> Array:
        """Return the labels of the representatives."""
        return label_rows(self.representatives(frequencies, phase))

    def members(self, representative: Array, phase: str) -> Array:
        """Return the harmonic itself, the pair, or all harmonics of the degree."""
        if self.whole_degrees:
            all_frequencies = self.all_frequencies(len(representative) + 1)
            return all_frequencies[np.abs(all_frequencies[:, -1]) == representative[-1]]
        if phase == "aligned" or representative[0] == 0:
            return representative[None]
        mirror = np.ones_like(representative)
        mirror[0] = -1
        return np.stack([representative, representative * mirror])

    def draw(
        self, n_frequencies: int, rows: Rows, rng: np.random.Generator, variance: float = 1.0
    ) -> Array:
        """Draw indices, with degrees that are uniformly distributed."""
        degrees = rng.integers(1, self.max_degree, size=n_frequencies, endpoint=True)
        shape = n_frequencies, rows.n_features - 2
        below = rng.integers(0, degrees[:, None], size=shape, endpoint=True)
        indices = np.column_stack([np.sort(below, axis=1), degrees])
        indices[:, 0] *= rng.choice([-1, 1], size=n_frequencies)
        return indices

    def propose(self, frequencies: Array, rng: np.random.Generator) -> Array:
        """Return indices with one number redrawn uniformly between its neighbours."""
        n_points, n_numbers = frequencies.shape
        points, which = np.arange(n_points), rng.integers(n_numbers, size=n_points)
        degrees = np.abs(frequencies)
        below = np.column_stack([np.zeros(n_points, dtype=int), degrees[:, :-1]])[points, which]
        above = np.column_stack([degrees[:, 1:], np.full(n_points, self.max_degree)])[points, which]
        low = np.where(which == 0, -above, below)
        proposed = frequencies.copy()
        proposed[points, which] = rng.integers(low, above, endpoint=True)
        return proposed

    def penalty(self, rows: Rows, frequencies: Array, smoothing: float) -> Array:
        r"""Return :math:`\sigma^2 l (l + d - 2)` at degree `l`.

        It is what the log potential loses when the samples diffuse on the sphere, with standard
        deviation :math:`\sigma` per direction: the smoothing times the scale.
        """
        degrees = np.abs(frequencies[:, -1])
        eigenvalues = degrees * (degrees + frequencies.shape[1] - 1)
        penalty = (smoothing * self.scale) ** 2 * eigenvalues
        return penalty.astype(rows.dtype)

    def amplitudes(self, rows: Rows, measure: Column, frequencies: Array) -> Array:
        """Return the sums of the measure times the harmonics, of one part."""
        (sums,) = rows.sum_blocks(
            lambda X, a: (dense(a).T @ harmonics(dense(X), frequencies),),
            measure,
            width=3 * len(frequencies),
        )
        return sums[None]

    def all_amplitudes(self, rows: Rows, measure: Column) -> Array:
        """Return the amplitudes of all harmonics, by the faster method of HarmonicSums."""
        sums = all_sums(rows.n_features, self.max_degree)

        def moments(X: Any, a: Any) -> tuple[Array, ...]:
            return sums.moments(dense(X), dense(a))

        width = sums.width(measure.shape[1])
        return sums.from_moments(rows.sum_blocks(moments, measure, width=width))[None]

    def scales(self, rows: Rows, frequencies: Array) -> Array:
        """Return ones: harmonics have mean square one over the sphere."""
        return np.ones(len(frequencies), dtype=rows.dtype)

    def features(self, X: Array, frequencies: Array, phases: Array, phase: str) -> Array:
        """Return the harmonics, of mean square one over the sphere."""
        return cast_like(harmonics(dense(X), frequencies.astype(int)), X)

    def norms(self, frequencies: Array) -> Array:
        """Return the degrees."""
        return np.abs(frequencies[:, -1])

    def within(self, bandwidth: float, n_features: int) -> HarmonicSphere:
        """Return the space with another largest degree."""
        return HarmonicSphere(**(self.get_params() | {"max_degree": int(bandwidth)}))

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
        """Return the exact maximum over all harmonics up to the bandwidth.

        If there are more than `max_evaluations`, only the harmonics of the space are evaluated. The
        bound is then the potential if all samples were where a harmonic is largest. If this is too
        large to compute, the supremum counts as infinite.
        """
        widest = self.within(min(bandwidth, MAX_BOUNDED_DEGREE + 1), rows.n_features)
        is_exact = count_harmonics(rows.n_features, widest.max_degree) <= max_evaluations
        space = widest if is_exact else self
        amplitudes = space.all_amplitudes(rows, measure)
        groups = space.groups(space.all_frequencies(rows.n_features), phase)
        potentials = average_groups(feature_potentials(space, amplitudes, phase), groups)
        largest = max(reached, float(potentials.max()))
        if is_exact and widest.max_degree <= MAX_BOUNDED_DEGREE:
            return Supremum(largest, largest)
        mass = np.abs(measure).sum(axis=0, dtype=np.float64)
        bound = widest.kernel_bound(rows.n_features, phase)
        if math.isinf(bound):  # the space's own degrees say nothing about higher ones
            return Supremum(bound, bound)
        return Supremum(largest, max(largest, bound * float(mass @ mass)))

    def rademacher_complexity(
        self, rows: Rows, bandwidth: float, phase: str
    ) -> tuple[float, float]:
        r"""Return a bound for convex combinations of finitely many kernels.

        For single harmonics it is Massart's lemma, :math:`\sqrt{2 k \log(2 N) / n}` for `N`
        harmonics of squares at most `k`. For whole degrees it is the bound of Cortes, Mohri and
        Rostamizadeh (2010, Theorem 2) for `N` kernels, :math:`\sqrt{\tfrac{23}{22} e \lceil \log
        N\rceil / n}`. The harmonics don't depend on the samples: no probability is reserved.
        """
        widest = self.within(min(bandwidth, MAX_BOUNDED_DEGREE + 1), rows.n_features)
        if self.whole_degrees:
            rounded = max(1, math.ceil(math.log(widest.max_degree + 1)))
            return math.sqrt(23 / 22 * math.e * rounded / rows.total_weight), 1.0
        logarithm = math.log(2 * count_harmonics(rows.n_features, widest.max_degree))
        bound = widest.kernel_bound(rows.n_features, phase)
        return math.sqrt(2 * bound * logarithm / rows.total_weight), 1.0

    def n_columns(self, phase: str) -> int:
        """Return 1: features are real."""
        return 1

    def n_features(self, frequencies: Array) -> int:
        """Return one more than the numbers of an index."""
        return int(frequencies.shape[1]) + 1

    def kernel_bound(self, n_features: int, phase: str) -> float:
        """Return the largest square of a harmonic, or 1 for whole degrees."""
        if self.whole_degrees:
            return 1.0
        count = n_harmonics(n_features, self.max_degree)
        is_bounded = self.max_degree <= MAX_BOUNDED_DEGREE and count < MAX_NUMBER
        return float(count) if is_bounded else math.inf


def label_rows(rows: Array) -> Array:
    """Return a label per row, equal for equal rows; np.unique takes ten times as long."""
    order = np.lexsort(rows.T)
    ranked = rows[order]
    labels = np.zeros(len(rows), dtype=np.intp)
    labels[order[1:]] = (ranked[1:] != ranked[:-1]).any(axis=1).cumsum()
    return labels


@lru_cache(maxsize=1)
def all_sums(n_features: int, max_degree: int) -> HarmonicSums:
    """Return a cached HarmonicSums: its changes of basis take time to compute."""
    return HarmonicSums(n_features, max_degree)


def largest_degree(n_features: int, max_harmonics: int) -> int:
    """Return the largest degree up to which there are at most `max_harmonics` harmonics."""
    limit = 1
    while count_harmonics(n_features, limit) <= max_harmonics:
        limit *= 2
    counts = partial(count_harmonics, n_features)
    return bisect_right(range(limit), max_harmonics, key=counts) - 1
