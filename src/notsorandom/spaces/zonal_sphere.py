"""The sphere with zonal features: a frequency is a pole on the sphere and a degree."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from notsorandom.data.array_api import cast_like, namespace
from notsorandom.data.rows import Array, Column, Rows
from notsorandom.spaces.base import ContinuousSpace, Supremum
from notsorandom.spaces.gegenbauer import n_harmonics, zonal, zonal_slopes
from notsorandom.spaces.harmonic_sphere import largest_degree
from notsorandom.spaces.landscape import relative_potential, resolve_scale
from notsorandom.spaces.sphere import Spherical, directions
from notsorandom.spaces.view import CastView, View

# Smallest max_degree="auto", however many harmonics there are.
MIN_AUTO_DEGREE = 3
# Largest degree by floating point type: beyond it, the rounding error of a cosine, times the slope
# of the feature, is no longer small.
MAX_ZONAL_DEGREE = {np.dtype(np.float32): 64, np.dtype(np.float64): 1000}
# The rounding error of a variance over n samples, relative to their mean square, is at most this
# times the square root of n times the machine epsilon.
SUM_ROUNDINGS = 8


class ZonalSphere(Spherical, ContinuousSpace):
    r"""Zonal harmonics: polynomials in the cosine :math:`\langle x, \xi\rangle` to a pole.

    The zonal harmonics of a degree span all harmonics of that degree. A pole can be moved, so there
    is a gradient, and the number of harmonics doesn't matter.

    A frequency is the vector :math:`l \xi`: its direction is the pole and its length the degree.
    Each feature is divided by its standard deviation over the samples, which in high dimension are
    far from uniformly distributed.

    Parameters
    ----------
    max_degree : int or "auto", default="auto"
        ``"auto"`` is the largest for which `max_harmonics` suffices, but at least three, and at
        most 64, so that the search can be in float32.
    max_harmonics : int, default=1000
    normalize : bool, default=False
        Scale samples to norm one.
    scale : "median" or float, default="median"
        The unit of length of the smoothing, by default the median distance between samples.
    """

    def resolve(self, rows: Rows, rng: np.random.Generator) -> ZonalSphere:
        """Return the space with its largest degree and its scale."""
        largest = highest_degree(rows.n_features, rows.dtype)
        if self.max_degree == "auto":
            fitting = largest_degree(rows.n_features, self.max_harmonics)
            # On the circle there would be hundreds of degrees, too many for random starts.
            single = highest_degree(rows.n_features, np.dtype(np.float32))
            max_degree = min(max(fitting, MIN_AUTO_DEGREE), single)
        elif self.max_degree > largest:
            raise ValueError(
                f"max_degree={self.max_degree} is too high: with {rows.n_features} columns of "
                f"{rows.dtype}, features above degree {largest} are lost to overflow or rounding. "
                f"Use at most {largest} (float64 allows more than float32)."
            )
        else:
            max_degree = int(self.max_degree)
        scale = resolve_scale(self.scale, rows, rng)
        return ZonalSphere(max_degree, self.max_harmonics, self.normalize, scale)

    def view(self, rows: Rows, dtype: str, rng: np.random.Generator) -> View:
        """Return the samples in a type in which all degrees can be computed."""
        fits = self.max_degree <= highest_degree(rows.n_features, np.dtype(dtype))
        return CastView(self, dtype if fits else rows.dtype.name)

    def draw(
        self, n_frequencies: int, rows: Rows, rng: np.random.Generator, variance: float = 1.0
    ) -> Array:
        """Draw uniformly distributed poles, with degrees evenly spread over their logarithm.

        The ascent does not change a degree. If all were equally likely, the low degrees, which
        matter most, would rarely be tried.
        """
        poles = directions(rng.standard_normal((n_frequencies, rows.n_features)))
        levels = (np.arange(n_frequencies) + rng.random()) / n_frequencies
        degrees = np.floor((self.max_degree + 1) ** levels)
        return (poles * np.minimum(degrees, self.max_degree)[:, None]).astype(rows.dtype)

    def draw_cauchy(self, n_frequencies: int, rows: Rows, rng: np.random.Generator) -> Array:
        """Raise ValueError: poles are drawn uniformly."""
        raise ValueError(
            "spectrum='cauchy' is not possible on the sphere, where poles are uniformly "
            "distributed: use Ascent(spectrum='auto'), or space='euclidean'."
        )

    def move(self, frequencies: Array, shift: Array) -> Array:
        """Return the frequencies with moved poles and the same degrees."""
        poles, degrees = poles_and_degrees(frequencies)
        turned = directions(frequencies + tangent(shift, poles))
        return turned * degrees[:, None].astype(shift.dtype)

    def first_step(self) -> float:
        """Return 1."""
        return 1.0

    def penalty(self, rows: Rows, frequencies: Array, smoothing: float) -> Array:
        r"""Return the log variance of the features over the samples, smoothed.

        The log potential minus this is the log potential of the feature divided by its standard
        deviation. Smoothing by :math:`\sigma` adds :math:`\sigma^2 l (l + d - 2)` to the variance,
        the change of a harmonic of degree `l` by diffusion, so that the quotient stays small where
        the feature is nearly constant over the samples.
        """
        noise = self._noise(self.norms(frequencies), rows, smoothing)
        return np.log(self._variance(rows, frequencies) + noise)

    def _noise(self, degrees: Array, rows: Rows, smoothing: float) -> Array:
        """Return the variance that smoothing adds."""
        noise = (smoothing * self.scale) ** 2 * degrees * (degrees + rows.n_features - 2)
        return noise.astype(rows.dtype)

    def _variance(self, rows: Rows, frequencies: Array) -> Array:
        """Return the variances of the features over the samples."""

        def moments(X: Array, weights: Any = None) -> tuple[Array, ...]:
            return weighted_moments(zonal_features(X, frequencies), weights)

        total, squares = rows.sum_blocks(moments, *rows.weight_columns, width=3 * len(frequencies))
        return variance_of(total, squares, rows.total_weight)

    def groups(self, frequencies: Array, phase: str) -> Array:
        """Return a different label for each: every frequency has a kernel of its own."""
        return np.arange(len(frequencies))

    def amplitudes(self, rows: Rows, measure: Column, frequencies: Array) -> Array:
        """Return the sums of the measure times the zonal harmonics, of one part."""

        def sums(X: Array, a: Array) -> tuple[Array, ...]:
            return (a.T @ zonal_features(X, frequencies),)

        return np.stack(rows.sum_blocks(sums, measure, width=4 * len(frequencies)))

    def log_potential(
        self,
        rows: Rows,
        measure: Column,
        frequencies: Array,
        smoothing: float,
        phase: str,
        mass: Array,
    ) -> tuple[Array, Array, Array]:
        r"""Return the log potential minus the penalty, its slope along the sphere, and amplitudes.

        With :math:`A_k` the amplitudes of a frequency :math:`l \xi`, `v` the sum of their squares
        and :math:`\sigma^2` the smoothed variance of its feature `p`, the slope is the tangent part
        of one sum over the samples:

        .. math:: \frac 2 l \sum_i x_i \, p'(\langle x_i, \xi\rangle) \Bigl[ \frac 1 v \sum_k A_k
           a_{ik} - \frac{w_i}{\sigma^2 \sum_j w_j} (p_i - \bar p) \Bigr].
        """
        (poles, degrees), count = poles_and_degrees(frequencies), rows.total_weight

        def first_sums(X: Array, a: Array, weights: Any = None) -> tuple[Array, ...]:
            values = zonal_features(X, frequencies)
            return a.T @ values, *weighted_moments(values, weights)

        def slope_sums(X: Array, a: Array, weights: Any = None) -> tuple[Array, ...]:
            cosines = X @ cast_like(poles, X).T
            values = zonal(cosines, degrees, X.shape[1])
            values -= cast_like(mean, X)
            values *= cast_like(shares, X)
            if weights is not None:
                values *= weights
            slopes = zonal_slopes(cosines, degrees, X.shape[1])
            slopes *= a @ cast_like(pulls, X) - values
            return (slopes.T @ X,)

        columns, width = (measure, *rows.weight_columns), 5 * len(frequencies)
        sums, total, squares = rows.sum_blocks(first_sums, *columns, width=width)
        potential = relative_potential(sums[None], phase, mass)
        variance = variance_of(total, squares, count) + self._noise(degrees, rows, smoothing)
        mean, pulls = total / rows.dtype.type(count), sums / mass / mass / potential
        shares = 1 / (variance * rows.dtype.type(count))
        (half,) = rows.sum_blocks(slope_sums, *columns, width=width)
        slope = tangent(half, poles) * (2 / degrees).astype(half.dtype)[:, None]
        return np.log(potential) - np.log(variance), slope, sums[None]

    def scales(self, rows: Rows, frequencies: Array) -> Array:
        """Return the inverse standard deviations of the features."""
        return 1 / np.sqrt(self._variance(rows, frequencies))

    def features(self, X: Array, frequencies: Array, phases: Array, phase: str) -> Array:
        """Return the zonal harmonics, of mean square one over the sphere."""
        return zonal_features(X, frequencies)

    def norms(self, frequencies: Array) -> Array:
        """Return the degrees."""
        return poles_and_degrees(frequencies)[1]

    def within(self, bandwidth: float, n_features: int) -> ZonalSphere:
        """Return the space with another largest degree, as far as it can be computed."""
        highest = highest_degree(n_features, np.dtype(np.float64))
        return ZonalSphere(**(self.get_params() | {"max_degree": int(min(bandwidth, highest))}))

    def spread(self, n_frequencies: int, rows: Rows, rng: np.random.Generator) -> Array:
        """Draw frequencies as usual: poles are uniformly distributed."""
        return self.draw(n_frequencies, rows, rng)

    def supremum(
        self, rows: Rows, measure: Array, phase: str, bandwidth: float, reached: float, *_: Any
    ) -> Supremum:
        """Return the potential reached: there is no bound.

        It counts as infinite if the bandwidth has degrees that can't be computed, nor searched.
        """
        if bandwidth > highest_degree(rows.n_features, np.dtype(np.float64)):
            return Supremum(math.inf, math.inf)
        return Supremum(reached, math.inf)

    def rademacher_complexity(
        self, rows: Rows, bandwidth: float, phase: str
    ) -> tuple[float, float]:
        """Return NaN: features are scaled to the samples."""
        return math.nan, 1.0

    def n_columns(self, phase: str) -> int:
        """Return 1, or raise ValueError for the phase "paired"."""
        if phase == "paired":
            raise ValueError(
                "phase='paired' is not allowed with zonal features, which are real and have no "
                "phase: use 'aligned', or Sphere(basis='harmonic')."
            )
        return 1

    def kernel_bound(self, n_features: int, phase: str) -> float:
        """Return infinity: features are scaled to the samples."""
        return math.inf


def highest_degree(n_features: int, dtype: Any) -> int:
    """Return the highest degree whose features can be computed.

    A zonal harmonic is largest at its pole, where its square is the number of harmonics of its
    degree. Two thirds of the exponent range are left for sums of squares over weighted samples.
    """
    limit = float(np.finfo(dtype).max) ** (1 / 3)
    degree = 1
    while degree < MAX_ZONAL_DEGREE[dtype] and n_harmonics(n_features, degree + 1) < limit:
        degree += 1
    return degree


def zonal_features(X: Array, frequencies: Array) -> Array:
    """Return the zonal harmonics of a block of samples."""
    poles, degrees = poles_and_degrees(frequencies)
    return zonal(X @ cast_like(poles, X).T, degrees, X.shape[1])


def weighted_moments(values: Array, weights: Any = None) -> tuple[Array, Array]:
    """Return the weighted sums of the columns and of their squares."""
    xp = namespace(values)
    if xp is not np:
        weighted = values if weights is None else weights * values
        return xp.sum(weighted, axis=0), xp.sum(weighted * values, axis=0)
    weight = np.ones(len(values), dtype=values.dtype) if weights is None else weights[:, 0]
    return weight @ values, np.einsum("i,ij,ij->j", weight, values, values)


def variance_of(total: Array, squares: Array, count: Array | float) -> Array:
    """Return the variances; the mean square where the variance is only rounding error."""
    scalar = total.dtype.type
    mean_square = squares / scalar(count)
    variance = mean_square - np.square(total / scalar(count))
    limits = np.finfo(total.dtype)
    is_rounding = variance <= SUM_ROUNDINGS * count**0.5 * limits.eps * mean_square
    return np.where(is_rounding, mean_square, variance) + limits.tiny


def poles_and_degrees(frequencies: Array) -> tuple[Array, Array]:
    """Return the directions of the frequencies, and their lengths as integers."""
    norms = np.sqrt((frequencies * frequencies).sum(axis=1))
    return frequencies / norms[:, None], np.rint(norms).astype(int)


def tangent(vectors: Array, poles: Array) -> Array:
    """Return the components of the vectors that are orthogonal to the poles."""
    return vectors - (vectors * poles).sum(axis=1, keepdims=True) * poles
