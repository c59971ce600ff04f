r"""Gegenbauer polynomials: the factors of spherical harmonics that depend on one coordinate.

All polynomials are orthonormal, so they are of size one where the samples are. The classical ones
over- or underflow as soon as the degree or the dimension is large.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from notsorandom.data.array_api import asarray_like, cast_like, namespace, numpy_dtype
from notsorandom.data.rows import Array

# Above this degree, cosines and sines take less time than the recurrence.
WAVE_DEGREE = 16


def recurrence(degree: int, order: Array | float) -> Array:
    r"""Return `b` of :math:`t \, p_{j-1} = b_j \, p_j + b_{j-1} \, p_{j-2}` for `j` the `degree`.

    The polynomials `p` are orthonormal under the probability density on [-1, 1] proportional to
    :math:`(1 - t^2)^{\lambda - 1/2}`, with :math:`\lambda` the `order`. The circle has order 0,
    where the first coefficient is the limit :math:`1/\sqrt 2`.
    """
    order = np.asarray(order, dtype=np.float64)
    if degree == 1:
        return np.sqrt(0.5 / (1 + order))
    numerator = degree * (degree + 2 * order - 1)
    return 0.5 * np.sqrt(numerator / ((degree + order) * (degree + order - 1)))


@lru_cache(maxsize=2048)
def polynomial_constants(order: float, max_degree: int) -> tuple[list[float], Array]:
    r"""Return the factors of a recurrence with fewer operations, and its norming factors.

    With :math:`p_j = q_j / \prod_{i \le j} 2 b_i` and `b` the coefficients of :func:`recurrence`,
    :math:`q_j = 2 t \, q_{j-1} - (2 b_{j-1})^2 q_{j-2}`. Returned are the squares
    :math:`(2 b_{j-1})^2` for j = 1, ..., `max_degree`, and the quotients :math:`p_j / q_j` for
    j = 0, ..., `max_degree`.
    """
    twice = [2 * float(recurrence(j, order)) for j in range(1, max_degree + 1)]
    drops = [0.0, *np.square(twice[:-1]).tolist()] if twice else []
    return drops, 1 / np.cumprod([1.0, *twice])


def n_harmonics(n_features: int, degree: int) -> int:
    r"""Return the dimension of the harmonics of one degree on :math:`S^{d-1}`.

    With `d` the number of features: the homogeneous polynomials without a factor :math:`|x|^2`.
    """
    if degree < 2:
        return n_features if degree else 1
    n_polynomials = math.comb(n_features + degree - 1, degree)
    return n_polynomials - math.comb(n_features + degree - 3, degree - 2)


def legendre(cosines: Array, n_features: int, max_degree: int) -> Iterator[Array]:
    r"""Yield :math:`P_l(t)` for l = 1, ..., `max_degree`, the kernels of whole degrees.

    They are the Gegenbauer polynomials of Schoenberg's theorem with :math:`P_l(1) = 1`, bounded by
    1 on [-1, 1] in any dimension (Appendix B of the paper). With `d` the number of features,

    .. math:: (l + d - 2) P_{l+1}(t) = (2 l + d - 2) \, t P_l(t) - l P_{l-1}(t).

    An array that was yielded is overwritten two degrees later.
    """
    xp = namespace(cosines)
    # Rounding can lead out of [-1, 1], where polynomials of high degree grow fast.
    cosines = xp.clip(cosines, -1, 1)
    before, values = xp.ones_like(cosines), xp.asarray(cosines, copy=True)
    for degree in range(1, max_degree + 1):
        yield values
        total = degree + n_features - 2
        before *= -degree / total
        before += values * cosines * ((degree + total) / total)
        before, values = values, before


def zonal(cosines: Array, degrees: Array, n_features: int) -> Array:
    r"""Return the zonal harmonics of mean square one from the cosines to their poles.

    These are :math:`\sqrt{N(d, l)} \, P_l(t)`, with the Gegenbauer polynomials :math:`P_l(1) = 1`
    of Schoenberg's theorem. `cosines` has shape (n_rows, n_poles).
    """
    xp = namespace(cosines)
    max_degree = int(degrees.max(initial=0))
    if n_features in (2, 4) and max_degree > WAVE_DEGREE:
        return zonal_waves(cosines, degrees, n_features)
    drops, norms = polynomial_constants(n_features / 2 - 1, max_degree)
    # In the order of the degree, the poles whose degree is not yet reached are a slice.
    order = np.argsort(degrees, kind="stable")
    ranked = degrees[order]
    starts = np.searchsorted(ranked, np.arange(1, max_degree + 1)).tolist()
    twice = xp.take(cosines.T, asarray_like(order, cosines), axis=0)  # (n_poles, n_rows)
    twice += twice
    values, before = xp.ones_like(twice), xp.zeros_like(twice)
    for start, drop in zip(starts, drops, strict=True):
        before[start:, ...] *= -drop
        before[start:, ...] += twice[start:, ...] * values[start:, ...]
        values, before = before, values
    # The two arrays are swapped in every step: a pole's value is in the one written to last.
    is_last = asarray_like((max_degree - ranked) % 2 == 0, cosines)
    values = xp.where(is_last[:, None], values, before)
    values *= cast_like(norms[ranked].astype(numpy_dtype(cosines)), cosines)[:, None]
    values = xp.take(values, asarray_like(np.argsort(order), cosines), axis=0)
    return values.T


def zonal_waves(cosines: Array, degrees: Array, n_features: int) -> Array:
    r"""Return the zonal harmonics in 2 or 4 dimensions, in the same time for any degree.

    They are the Chebyshev polynomials :math:`\sqrt 2 \cos l \theta` and
    :math:`\sin((l + 1) \theta) / \sin \theta`, with :math:`t = \cos \theta`.
    """
    xp = namespace(cosines)
    dtype, ones = numpy_dtype(cosines), xp.ones_like(cosines)
    flips = cast_like((1 - 2 * (degrees % 2)).astype(dtype), cosines)
    signs = xp.where(cosines < 0, flips, ones)
    # The arc cosine is precise for small angles; larger ones than pi / 2 are found by symmetry.
    sizes = xp.abs(cosines)
    sizes = xp.where(sizes > 1, ones, sizes)
    angles = np.arccos(sizes) if xp is np else xp.acos(sizes)  # np.acos is new in NumPy 2
    if n_features == 2:
        constants = cast_like(np.where(degrees > 0, 2**0.5, 1).astype(dtype), cosines)
        return xp.cos(angles * cast_like(degrees.astype(dtype), cosines)) * (signs * constants)
    # At the pole the quotient has a limit; at an angle of one machine epsilon it is reached.
    angles = xp.where(angles > 0, angles, ones * float(np.finfo(dtype).eps))
    sines = xp.sin(angles * cast_like((degrees + 1).astype(dtype), cosines))
    return sines / xp.sin(angles) * signs


def zonal_slopes(cosines: Array, degrees: Array, n_features: int) -> Array:
    r"""Return the derivatives of the zonal harmonics in the cosine, for degrees of at least 1.

    They are zonal harmonics of one degree less in two dimensions more:
    :math:`p_l' = \sqrt{l (l + d - 2) \, d / (d - 1)} \; p_{l-1}`.
    """
    eigenvalues = degrees * (degrees + n_features - 2.0)
    factors = np.sqrt(eigenvalues * n_features / (n_features - 1))
    factors = cast_like(factors.astype(numpy_dtype(cosines)), cosines)
    return zonal(cosines, degrees - 1, n_features + 2) * factors


def coordinate_factors(
    height: Array, squared_radius: Array, level: int, orders: Array, max_degree: int
) -> Iterator[Array]:
    r"""Yield the factors of the harmonics that depend on one more coordinate, by degree.

    On :math:`S^k`, with `k` the `level`, a harmonic of degree `l` is one on :math:`S^{k-1}` of
    degree `m` times a polynomial in the new coordinate `x`, homogeneous in `(x, r)`: up to a
    constant, :math:`r^j p_j(x / r)` with :math:`j = l - m` and :math:`p_j` of order
    :math:`m + (k - 1)/2`. There is no division by `r`, so poles are not singular.

    `height` is the new coordinate, `squared_radius` the sum of squares of it and all before, and
    `orders` the ascending values of `m`. For j = 0, 1, ... an array of shape (n_orders, n_rows) is
    yielded, with one row for each `m` with ``m + j <= max_degree``.
    """
    dtype = height.dtype
    values = np.ones((len(orders), len(height)), dtype=dtype)
    before, last = values, np.zeros(len(orders))
    for j in range(max_degree - int(orders[0]) + 1):
        if j:
            n_orders = int(np.searchsorted(orders, max_degree - j, side="right"))
            b = recurrence(j, orders[:n_orders] + (level - 1) / 2)
            step = values[:n_orders] * (1 / b)[:, None].astype(dtype)
            step *= height
            if j > 1:
                drop = before[:n_orders] * (last[:n_orders] / b)[:, None].astype(dtype)
                drop *= squared_radius
                step -= drop
            before, values, last = values, step, b
        yield values


def norm_factors(level: int, max_degree: int) -> Array:
    r"""Return the factors that keep mean square one when a coordinate is added, by degree m.

    The mean square over :math:`S^k` of a homogeneous function of degree `m` is smaller than over
    :math:`S^{k-1}`, with `k` the `level`, by the mean of :math:`\sin^{2m}`.
    """
    m = np.arange(max_degree)
    factors = (m + (level + 1) / 2) / (m + level / 2)
    return np.sqrt(np.concatenate([[1.0], np.cumprod(factors)]))
