r"""Real spherical harmonics in any dimension.

A harmonic on :math:`S^{d-1}` has an index :math:`(l_1, \dots, l_{d-1})` with
:math:`|l_1| \le l_2 \le \dots \le l_{d-1}`; the last number is its degree. It is a product over
nested spheres (Appendix B of the paper, after Higuchi 1987): a wave on the circle of the first two
coordinates, times a polynomial for each further coordinate. The involution of the paper changes the
sign of :math:`l_1`. A positive :math:`l_1` is the real part and a negative one the imaginary part,
times :math:`\sqrt 2`.

Harmonics have mean square one over the sphere. The paper's harmonics are smaller by the square root
of the sphere's area, which underflows in high dimension.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import roots_gegenbauer

from notsorandom._utils.threads import cached_property
from notsorandom.data.rows import Array
from notsorandom.spaces.gegenbauer import (
    coordinate_factors,
    n_harmonics,
    norm_factors,
    polynomial_constants,
)

# Above this degree powers of small coordinates underflow in float32, though the harmonics don't.
SINGLE_DEGREE = 64


def count_harmonics(n_features: int, max_degree: int) -> int:
    """Return the number of harmonics of all degrees up to `max_degree`."""
    if max_degree < 1:
        return max_degree + 1
    total = n_features + max_degree
    return math.comb(total - 1, max_degree) + math.comb(total - 2, max_degree - 1)


@lru_cache(maxsize=8)
def harmonic_indices(n_features: int, max_degree: int) -> Array:
    """Return the indices of all harmonics up to a degree, of shape (n_harmonics, n_features - 1).

    They are in the order of the degree, then :math:`l_{d-2}`, then :math:`l_{d-3}` and so on.
    """
    degrees = range(max_degree + 1)
    by_degree = [np.array([[degree], [-degree]][: 1 + (degree > 0)]) for degree in degrees]
    for _ in range(3, n_features + 1):
        lower = by_degree
        by_degree = [
            np.pad(np.concatenate(lower[: degree + 1]), [(0, 0), (0, 1)], constant_values=degree)
            for degree in degrees
        ]
    indices = np.concatenate(by_degree)
    indices.flags.writeable = False
    return indices


def waves(X: Array, degree: int) -> tuple[Array, Array]:
    r"""Return the parts of :math:`\sqrt 2 (x_1 + i x_2)^l` for l = 0, ..., degree.

    The power 0 is 1, not :math:`\sqrt 2`, since it has no imaginary part. The real and the
    imaginary part have shape (degree + 1, n_rows).
    """
    point = X[:, 0] + 1j * X[:, 1]
    powers = np.empty((degree + 1, len(X)), dtype=point.dtype)
    powers[0] = 1
    powers[1:2] = point * X.dtype.type(2**0.5)
    known = 1  # the largest power known, doubled in each step
    power = point
    while known < degree:
        more = min(known, degree - known)
        np.multiply(powers[1 : more + 1], power, out=powers[known + 1 : known + more + 1])
        known, power = 2 * known, power * power
    return powers.real, powers.imag


def constants(indices: Array) -> Array:
    """Return the factor of each harmonic that makes its mean square one."""
    degrees = np.abs(indices)
    product = np.ones(len(indices))
    for level in range(2, indices.shape[1] + 1):
        product *= norm_factors(level, int(degrees.max()))[degrees[:, level - 2]]
    return product


def harmonics(X: Array, indices: Array) -> Array:
    """Return the values of harmonics at rows of norm one, of shape (n_rows, n_harmonics)."""
    degrees = np.abs(indices)  # (n_harmonics, n_features - 1)
    if X.dtype == np.float32 and degrees.max() > SINGLE_DEGREE:
        return harmonics(X.astype(np.float64), indices).astype(np.float32)
    real, imaginary = waves(X, int(degrees[:, 0].max()))
    values = real[degrees[:, 0]]  # (n_harmonics, n_rows)
    odd = indices[:, 0] < 0
    values[odd] = imaginary[degrees[odd, 0]]
    squared_radius = X[:, 0] ** 2 + X[:, 1] ** 2
    for level in range(2, X.shape[1]):
        squared_radius += X[:, level] ** 2
        lower, upper = degrees[:, level - 2], degrees[:, level - 1]
        orders = np.unique(lower[upper > lower])
        if len(orders) == 0:
            continue
        tables = coordinate_factors(X[:, level], squared_radius, level, orders, int(upper.max()))
        for j, table in enumerate(tables):
            if j:
                chosen = np.flatnonzero(upper - lower == j)
                values[chosen] *= table[np.searchsorted(orders, lower[chosen])]
    values *= constants(indices)[:, None].astype(X.dtype)
    return np.ascontiguousarray(values.T)


def harmonics_by_degree(X: Array, max_degree: int) -> list[Array]:
    """Return all harmonics up to a degree, in the order of :func:`harmonic_indices`.

    One array per degree, of shape (n_harmonics(n_features, degree), n_rows).
    """
    real, imaginary = waves(X, max_degree)
    circle = np.empty((2 * max_degree + 1, len(X)), dtype=X.dtype)
    circle[0], circle[1::2], circle[2::2] = 1, real[1:], imaginary[1:]
    values = [circle[max(0, 2 * j - 1) : 2 * j + 1] for j in range(max_degree + 1)]
    squared_radius = X[:, 0] ** 2 + X[:, 1] ** 2
    orders = np.arange(max_degree + 1)
    for level in range(2, X.shape[1]):
        squared_radius += X[:, level] ** 2
        factors = norm_factors(level, max_degree).astype(X.dtype)
        parts: list[list[Array]] = [[] for _ in orders]
        tables = coordinate_factors(X[:, level], squared_radius, level, orders, max_degree)
        for j, table in enumerate(tables):
            for m, row in enumerate(table):
                parts[m + j].append(row * factors[m] * values[m])
        values = [np.concatenate(part[::-1]) for part in parts]
    return values


@dataclass(frozen=True)
class HarmonicSums:
    r"""Sums over samples of all harmonics up to a degree, by matrix products.

    A harmonic is a function of the last coordinate times a harmonic of degree `m` on the sphere of
    the others. For even `m` this function is a polynomial, for odd `m` a polynomial times
    :math:`\sqrt{1 - t^2}`. So the two small orthonormal families of m = 0 and m = 1 span all
    functions. The samples are summed against these two (:meth:`moments`), and the sum of each
    harmonic follows by an orthogonal change of basis (:meth:`from_moments`), which is as stable at
    degree 500 as at 5.
    """

    n_features: int
    max_degree: int

    @cached_property
    def changes(self) -> list[Array]:
        """The changes of basis from m = 0 or 1 to each `m`, by an exact quadrature."""
        nodes, weights = roots_gegenbauer(self.max_degree + 2, self.n_features / 2 - 1)
        radius = np.sqrt(1 - nodes**2)
        families = [self._functions(nodes, radius, m) for m in range(self.max_degree + 1)]
        weights /= weights.sum()
        return [family * weights @ families[m % 2].T for m, family in enumerate(families)]

    def _functions(self, height: Array, radius: Array, m: int) -> Array:
        """Return the functions of the last coordinate for one `m`, of degrees m to max_degree."""
        level = self.n_features - 1
        scalar = height.dtype.type
        values = np.empty((self.max_degree + 1 - m, len(height)), dtype=height.dtype)
        drops, norms = polynomial_constants(m + (level - 1) / 2, len(values) - 1)
        values[:1] = radius**m * scalar(norm_factors(level, m)[m])
        twice = 2 * height
        for j, drop in enumerate(drops, start=1):
            np.multiply(values[j - 1], twice, out=values[j])
            if j > 1:
                values[j] -= values[j - 2] * scalar(drop)
        values *= norms[:, None].astype(height.dtype)
        return values

    def width(self, n_tasks: int) -> int:
        """Return how many numbers :meth:`moments` holds per row."""
        n_functions = 2 * self.max_degree + 1
        n_lower = count_harmonics(self.n_features - 1, self.max_degree)
        return (1 + n_tasks) * n_functions + 2 * n_lower

    def moments(self, X: Array, a: Array) -> tuple[Array, ...]:
        """Return the sums over the rows against the families of m = 0 and m = 1.

        Each is of shape (n_tasks * n_functions, n_lower). On the circle there is one array, the
        sums of the harmonics themselves.
        """
        if self.n_features == 2:
            return (a.T @ np.concatenate(harmonics_by_degree(X, self.max_degree)).T,)
        flat = X[:, :-1]
        radius = np.sqrt(np.einsum("ij,ij->i", flat, flat))
        # At the pole, where the radius is zero, only the lower harmonic of degree 0 counts.
        flat = flat / np.where(radius > 0, radius, 1)[:, None]
        lower = harmonics_by_degree(flat, self.max_degree)
        height = X[:, -1].copy()
        sums = []
        for parity in (0, 1):
            functions = self._functions(height, radius, parity)
            weighted = (a.T[:, None, :] * functions).reshape(-1, len(X))
            sums.append(weighted @ np.concatenate(lower[parity::2]).T)
        return tuple(sums)

    def from_moments(self, moments: tuple[Array, ...]) -> Array:
        """Return the sums in the order of :func:`harmonic_indices`: (n_tasks, n_harmonics)."""
        if self.n_features == 2:
            return moments[0]
        starts = np.array(
            [count_harmonics(self.n_features, before) for before in range(-1, self.max_degree + 1)]
        )
        n_tasks = len(moments[0]) // (self.max_degree + 1)
        sums = np.empty((n_tasks, starts[-1]), dtype=moments[0].dtype)
        taken = [0, 0]
        lower_start = 0
        for m, change in enumerate(self.changes):
            parity = m % 2
            n_lower = n_harmonics(self.n_features - 1, m)
            block = moments[parity][:, taken[parity] : taken[parity] + n_lower]
            block = block.reshape(n_tasks, change.shape[1], n_lower)
            places = starts[m:-1, None] + lower_start + np.arange(n_lower)
            sums[:, places] = change.astype(sums.dtype) @ block
            taken[parity] += n_lower
            lower_start += n_lower
        return sums
