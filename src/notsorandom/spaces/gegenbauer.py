r"""Gegenbauer polynomials: the functions of one coordinate that harmonics are made of.

Everything here is orthonormal, which is what keeps it finite: the classical polynomials over- or
underflow as soon as degree or dimension is large, these are of size one where the samples are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from notsorandom.rows import Array


def recurrence(degree: int, order: Array | float) -> Array:
    r"""Coefficient `b` in :math:`t \, p_{j-1} = b_j \, p_j + b_{j-1} \, p_{j-2}` at `j = degree`.

    The polynomials `p` are orthonormal under the probability density on [-1, 1] proportional to
    :math:`(1 - t^2)^{\lambda - 1/2}`, with :math:`\lambda` the `order`. At the order 0, which is
    the circle's, the first coefficient is the limit, :math:`1/\sqrt 2`.
    """
    order = np.asarray(order, dtype=np.float64)
    if degree == 1:
        return np.sqrt(0.5 / (1 + order))
    numerator = degree * (degree + 2 * order - 1)
    return 0.5 * np.sqrt(numerator / ((degree + order) * (degree + order - 1)))


def n_harmonics(n_features: int, degree: int) -> int:
    r"""Dimension of the harmonics of one degree on :math:`S^{d-1}`, `d` the number of features.

    All homogeneous polynomials of that degree, less those with a factor :math:`|x|^2`.
    """
    if degree < 2:
        return n_features if degree else 1
    everything = math.comb(n_features + degree - 1, degree)
    return everything - math.comb(n_features + degree - 3, degree - 2)


def zonal(cosines: Array, degree: int, n_features: int) -> tuple[Array, Array]:
    r"""Zonal harmonic of mean square one as a function of the cosine to its pole, and its slope.

    This is :math:`\sqrt{N(d, l)} \, P_l(t)` with the Gegenbauer polynomial :math:`P_l(1) = 1` of
    Schoenberg's theorem.

    Returns
    -------
    values, slopes : ndarrays of the shape and type of `cosines`
    """
    values, slopes = np.ones_like(cosines), np.zeros_like(cosines)
    before = slopes_before = np.zeros_like(cosines)
    last = cosines.dtype.type(0)
    for j in range(1, degree + 1):
        b = cosines.dtype.type(recurrence(j, n_features / 2 - 1))
        values, before, slopes, slopes_before = (
            (cosines * values - last * before) / b,
            values,
            (values + cosines * slopes - last * slopes_before) / b,
            slopes,
        )
        last = b
    return values, slopes


def climb_degrees(
    height: Array, squared_radius: Array, level: int, orders: Array, max_degree: int
) -> Iterator[Array]:
    r"""Factors of the harmonics that depend on one more coordinate, by growing degree.

    On :math:`S^k`, with `k` the `level`, a harmonic of degree `l` is one on :math:`S^{k-1}` of
    degree `m` times a polynomial in the new coordinate `x`, homogeneous in `(x, r)`: up to a
    constant, :math:`r^j p_j(x / r)` with :math:`j = l - m` and :math:`p_j` of order
    :math:`m + (k - 1)/2`. Nothing is ever divided by `r`, so poles are points like all others.

    Parameters
    ----------
    height, squared_radius : ndarrays of shape (n_rows,)
        The new coordinate, and the sum of squares of it and all before.
    level : int
    orders : ndarray of int
        The values of `m`, ascending.
    max_degree : int
        The largest `l`.

    Yields
    ------
    ndarray of shape (n_orders, n_rows), for j = 0, 1, ...
        One row for each `m` with ``m + j <= max_degree``: those left, from the first.
    """
    dtype = height.dtype
    values = np.ones((len(orders), len(height)), dtype=dtype)
    before, last = values, np.zeros(len(orders))
    for j in range(max_degree - int(orders[0]) + 1):
        if j:
            left = int(np.searchsorted(orders, max_degree - j, side="right"))
            b = recurrence(j, orders[:left] + (level - 1) / 2)
            following = values[:left] * (1 / b)[:, None].astype(dtype)
            following *= height
            if j > 1:
                drop = before[:left] * (last[:left] / b)[:, None].astype(dtype)
                drop *= squared_radius
                following -= drop
            before, values, last = values, following, b
        yield values


def lift(level: int, max_degree: int) -> Array:
    r"""Constants that keep the norm of a harmonic of degree m = 0, 1, ... as it gains a coordinate.

    The mean square over :math:`S^k` of a homogeneous function of degree `m` is smaller than over
    :math:`S^{k-1}`, with `k` the `level`, by the mean of :math:`\sin^{2m}`; this makes up for it.
    """
    m = np.arange(max_degree)
    factors = (m + (level + 1) / 2) / (m + level / 2)
    return np.sqrt(np.concatenate([[1.0], np.cumprod(factors)]))
