"""The sphere with zonal features: a frequency is a pole that can turn anywhere, and a degree."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from notsorandom.data.array_api import cast_like, namespace
from notsorandom.data.rows import Array, Rows
from notsorandom.spaces.base import ContinuousSpace
from notsorandom.spaces.gegenbauer import n_harmonics, zonal, zonal_slopes
from notsorandom.spaces.harmonic_sphere import largest_degree
from notsorandom.spaces.spherical import Spherical, directions
from notsorandom.spaces.supremum import Supremum

# Degrees offered however many harmonics they have.
LEAST_MAX_DEGREE = 3
# Beyond, rounding of a cosine shows in the feature, and no samples tell such degrees apart.
MOST_DEGREE = {np.dtype(np.float32): 64, np.dtype(np.float64): 1000}
# Differences of sums over n samples are rounded by this times the root of n, and less.
SUM_ROUNDINGS = 8


class ZonalSphere(Spherical, ContinuousSpace):
    r"""Zonal harmonics: polynomials in the cosine :math:`\langle x, \xi\rangle` to a pole.

    The zonal harmonics of a degree span all harmonics of that degree, so nothing is lost against
    the harmonics themselves; but a pole is a point that can be moved, so that there is a gradient
    where the paper finds none, and the number of harmonics no longer matters.

    A frequency is the vector :math:`l \xi`: its direction is the pole and its length the degree.
    Each feature is divided by its standard deviation over the samples, which in high dimension have
    little in common with the uniform distribution that harmonics are orthonormal under.

    Parameters
    ----------
    max_degree : int or "auto", default="auto"
        ``"auto"`` takes as many degrees as have at most `max_harmonics` harmonics together, but at
        least three.
    max_harmonics : int, default=1000
    normalize : bool, default=False
        Scale samples to norm one.
    scale : "median" or float, default="median"
        The length that smoothing is a fraction of.
    """

    is_vector_space = False

    def resolve(self, rows: Rows, rng: np.random.Generator) -> ZonalSphere:
        """Return the same space with its degree settled and its scale measured."""
        offered = highest_degree(rows.n_features, rows.dtype)
        if self.max_degree == "auto":
            fitting = largest_degree(rows.n_features, self.max_harmonics)
            max_degree = min(max(fitting, LEAST_MAX_DEGREE), offered)
        elif self.max_degree > offered:
            raise ValueError(
                f"max_degree={self.max_degree} is too high: the last degree offered for "
                f"{rows.n_features} columns of {rows.dtype} is {offered}, beyond which features "
                "are lost to overflow or rounding. Allow no more than that (float64 allows more "
                "than float32)."
            )
        else:
            max_degree = int(self.max_degree)
        scale = self.measured_scale(rows, rng)
        return ZonalSphere(max_degree, self.max_harmonics, self.normalize, scale)

    def draw(
        self,
        n_frequencies: int,
        n_features: int,
        dtype: Any,
        rng: np.random.Generator,
        variance: float = 1.0,
    ) -> Array:
        """Draw poles anywhere on the sphere, with the degrees in turn."""
        poles = directions(rng.standard_normal((n_frequencies, n_features)))
        turn = np.arange(n_frequencies) + rng.integers(self.max_degree)
        return (poles * (1 + turn % self.max_degree)[:, None]).astype(dtype)

    def move(self, frequencies: Array, shift: Array) -> Array:
        """Frequencies at a shift along the sphere: the degree stays, the pole turns."""
        poles, degrees = poles_and_degrees(frequencies)
        return directions(frequencies + tangent(shift, poles)) * degrees[:, None].astype(
            shift.dtype
        )

    def first_step(self) -> float:
        """Length of the first ascent step, per unit of gradient of the log potential."""
        return 1.0

    def penalty(self, rows: Rows, frequencies: Array, smoothing: float) -> tuple[Array, Array]:
        r"""Logarithm of the features' variance over the samples, and its gradient.

        Taken from the log potential it leaves that of the feature over its standard deviation.
        Smoothing by :math:`\sigma` adds :math:`\sigma^2 l (l + d - 2)`, what diffusion by
        :math:`\sigma` changes of a harmonic of that degree, so that the quotient is not large by
        chance where the samples have no extent.

        Returns
        -------
        penalty : ndarray of shape (n_frequencies,)
        gradient : ndarray of shape (n_frequencies, n_features)
        """
        poles, degrees = poles_and_degrees(frequencies)

        def moments(X: Array, weights: Any = None) -> tuple[Array, ...]:
            cosines = X @ cast_like(poles, X).T
            values = zonal(cosines, degrees, X.shape[1])
            slopes = zonal_slopes(cosines, degrees, X.shape[1])
            if weights is not None:
                slopes *= weights
            pull = slopes.T @ X
            slopes *= values
            return *weighted_moments(values, weights), pull, slopes.T @ X

        count = rows.total_weight
        total, squares, pull, half = rows.sum_blocks(moments, *rows.weight_columns, width=4 * len(frequencies))
        mean = total / rows.dtype.type(count)
        noise = (smoothing * self.scale) ** 2 * degrees * (degrees + rows.n_features - 2)
        variance = variance_of(total, squares, count) + noise.astype(rows.dtype)
        slope = tangent(half - mean[:, None] * pull, poles)
        slope *= (2 / (count * degrees) / variance).astype(rows.dtype)[:, None]
        return np.log(variance), slope

    def groups(self, frequencies: Array, phase: str) -> Array:
        """Labels of the frequencies that make up one kernel: here each is its own."""
        return np.arange(len(frequencies))

    def amplitudes(self, rows: Rows, measure: Array, frequencies: Array) -> Array:
        """Sums of the measure against zonal harmonics.

        Returns
        -------
        ndarray of shape (1, n_tasks, n_frequencies)
        """
        poles, degrees = poles_and_degrees(frequencies)

        def sums(X: Array, a: Array) -> tuple[Array, ...]:
            return (a.T @ zonal(X @ cast_like(poles, X).T, degrees, X.shape[1]),)

        return np.stack(rows.sum_blocks(sums, measure, width=4 * len(frequencies)))

    def amplitudes_and_gradient(
        self, rows: Rows, measure: Array, frequencies: Array
    ) -> tuple[Array, Array]:
        r"""Sums of the measure, and the gradient of the potential along the sphere.

        Returns
        -------
        amplitudes : ndarray of shape (1, n_tasks, n_frequencies)
        gradient : ndarray of shape (n_frequencies, n_features)
        """
        poles, degrees = poles_and_degrees(frequencies)

        def both_sums(X: Array, a: Array) -> tuple[Array, ...]:
            cosines = X @ cast_like(poles, X).T
            slopes = zonal_slopes(cosines, degrees, X.shape[1])
            slopes *= a
            return a.T @ zonal(cosines, degrees, X.shape[1]), slopes.T @ X

        def weighted_sums(X: Array, a: Array) -> tuple[Array, ...]:
            slopes = zonal_slopes(X @ cast_like(poles, X).T, degrees, X.shape[1])
            slopes *= a @ cast_like(sums, X)
            return (slopes.T @ X,)

        width = 4 * len(frequencies)
        if measure.shape[1] == 1:
            sums, moments = rows.sum_blocks(both_sums, measure, width=width)
            half = sums[0, :, None] * moments
        else:  # a second sweep carries the features of every sample once for all tasks
            (sums,) = self.amplitudes(rows, measure, frequencies)
            (half,) = rows.sum_blocks(weighted_sums, measure, width=width)
        slope = tangent(half, poles) * (2 / degrees).astype(half.dtype)[:, None]
        return sums[None], slope

    def scales(self, rows: Rows, frequencies: Array) -> Array:
        """Factors of the features: one over their standard deviation."""
        poles, degrees = poles_and_degrees(frequencies)

        def moments(X: Array, weights: Any = None) -> tuple[Array, ...]:
            return weighted_moments(zonal(X @ cast_like(poles, X).T, degrees, X.shape[1]), weights)

        total, squares = rows.sum_blocks(moments, *rows.weight_columns, width=3 * len(frequencies))
        return 1 / np.sqrt(variance_of(total, squares, rows.total_weight))

    def features(self, X: Array, frequencies: Array, phases: Array, phase: str) -> Array:
        """Values of the zonal harmonics, of mean square one over the sphere.

        Returns
        -------
        ndarray of shape (n_rows, n_frequencies)
        """
        poles, degrees = poles_and_degrees(frequencies)
        return zonal(X @ cast_like(poles, X).T, degrees, X.shape[1])

    def bandwidth(self, frequencies: Array) -> float:
        """The largest degree considered."""
        return float(self.max_degree)

    def norms(self, frequencies: Array) -> Array:
        """Degrees of the zonal harmonics."""
        return poles_and_degrees(frequencies)[1]

    def clip_to_bandwidth(self, frequencies: Array, bandwidth: float) -> Array:
        """The frequencies: no degree is beyond the largest considered."""
        return frequencies

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
        """The largest potential that was seen: there is no bound."""
        return Supremum(reached, math.inf)

    def rademacher_complexity(self, rows: Rows, bandwidth: float, phase: str) -> float:
        """Rademacher complexity: unknown, since features are scaled to the samples."""
        return math.nan

    def n_columns(self, phase: str) -> int:
        """Real features a frequency."""
        if phase == "paired":
            raise ValueError(
                "phase='paired' is not allowed with zonal features, which are real and have no "
                "phase: use 'aligned', or Sphere(basis='harmonic')."
            )
        return 1

    def n_features(self, frequencies: Array) -> int:
        """Number of columns of the samples that the frequencies are for."""
        return int(frequencies.shape[1])

    def kernel_bound(self, n_features: int, phase: str) -> float:
        """Largest value of the kernel of a single frequency: infinite, features are scaled."""
        return math.inf


def highest_degree(n_features: int, dtype: Any) -> int:
    """The highest degree whose features can be computed with.

    A zonal harmonic is largest at its pole, where its square is the number of harmonics of its
    degree; two thirds of the exponents are left to sums of squares over many weighted samples.
    """
    limit = float(np.finfo(dtype).max) ** (1 / 3)
    degree = 1
    while degree < MOST_DEGREE[dtype] and n_harmonics(n_features, degree + 1) < limit:
        degree += 1
    return degree


def weighted_moments(values: Array, weights: Any = None) -> tuple[Array, Array]:
    """Sums of the columns, and of their squares."""
    if namespace(values) is not np:
        weighted = values if weights is None else weights * values
        xp = namespace(values)
        return xp.sum(weighted, axis=0), xp.sum(weighted * values, axis=0)
    weight = np.ones(len(values), dtype=values.dtype) if weights is None else weights[:, 0]
    return weight @ values, np.einsum("i,ij,ij->j", weight, values, values)


def variance_of(total: Array, squares: Array, count: float) -> Array:
    """Variance from the sum and the sum of squares; the mean square where rounding is all of it."""
    scalar = total.dtype.type
    mean_square = squares / scalar(count)
    variance = mean_square - np.square(total / scalar(count))
    limits = np.finfo(total.dtype)
    none = variance <= SUM_ROUNDINGS * count**0.5 * limits.eps * mean_square
    return np.where(none, mean_square, variance) + limits.tiny


def poles_and_degrees(frequencies: Array) -> tuple[Array, Array]:
    """Directions and lengths of the frequencies, the lengths as integers."""
    norms = np.sqrt((frequencies * frequencies).sum(axis=1))
    return frequencies / norms[:, None], np.rint(norms).astype(int)


def tangent(vectors: Array, poles: Array) -> Array:
    """The vectors without their parts along the poles."""
    return vectors - (vectors * poles).sum(axis=1, keepdims=True) * poles
