r"""Gegenbauer polynomials: the factors of spherical harmonics that depend on one coordinate.

All polynomials are orthonormal, so they are of size one where the samples are. The classical ones
over- or underflow as soon as the degree or the dimension is large.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from notsorandom.data.array_api import asarray_like, cast_like, namespace, numpy_dtype
from notsorandom.data.rows import Array


def recurrence(degree: int, order: Array | float) -> Array:
    r"""Return `b` of :math:`t \, p_{j-1} = b_j \, p_j + b_{j-1} \, p_{j-2}` for `j` the `degree`.

    The polynomials `p` are orthonormal under the probability density on [-1, 1] proportional to
    :math:`(1 - t^2)^{\lambda - 1/2}`, with :math:`\lambda` the `order`. The order 0 is that of the
    circle, where the first coefficient is the limit :math:`1/\sqrt 2`.
    """
    order = np.asarray(order, dtype=np.float64)
    if degree == 1:
        return np.sqrt(0.5 / (1 + order))
    numerator = degree * (degree + 2 * order - 1)
    return 0.5 * np.sqrt(numerator / ((degree + order) * (degree + order - 1)))


def n_harmonics(n_features: int, degree: int) -> int:
    r"""Return the dimension of the harmonics of one degree on :math:`S^{d-1}`.

    With `d` the number of features: the homogeneous polynomials without a factor :math:`|x|^2`.
    """
    if degree < 2:
        return n_features if degree else 1
    n_polynomials = math.comb(n_features + degree - 1, degree)
    return n_polynomials - math.comb(n_features + degree - 3, degree - 2)


def zonal(cosines: Array, degrees: Array, n_features: int) -> Array:
    r"""Return the zonal harmonics of mean square one from the cosines to their poles.

    These are :math:`\sqrt{N(d, l)} \, P_l(t)`, with the Gegenbauer polynomials :math:`P_l(1) = 1`
    of Schoenberg's theorem. `cosines` has shape (n_rows, n_poles).
    """
    xp = namespace(cosines)
    values, current, before = xp.ones_like(cosines), xp.ones_like(cosines), xp.zeros_like(cosines)
    last = 0.0
    for j in range(1, int(degrees.max(initial=0)) + 1):
        b = float(recurrence(j, n_features / 2 - 1))
        before *= -last / b
        before += current * cosines * (1 / b)
        current, before, last = before, current, b
        at_degree = degrees == j
        if xp is np:
            values[:, at_degree] = current[:, at_degree]
        else:
            values = xp.where(asarray_like(at_degree, cosines), current, values)
    return values


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
