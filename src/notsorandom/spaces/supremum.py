"""Bounds on the potential over all frequencies of R^d, for certificates."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np

from notsorandom.data.rows import Array, Rows, row_norms
from notsorandom.spaces.base import Supremum

# Numbers of the waves that are computed in one pass over the samples, and the least number of cells
# in a pass of many samples.
BATCH_NUMBERS, MIN_BATCH = 2**20, 64
# Waves, a sample's value at a frequency each, after which a bound is returned as it is: one thread
# takes 3 to 5 ns for each.
MAX_WAVES = 2e9
# In a cell, the waves of samples whose angles change by at most this are expanded to second order.
# For larger changes the remainder would be about as large as the wave itself.
NEAR = 1.0
# Samples farther from the median than this many times the median distance don't count for the shape
# of the cells.
FAR = 10
# Relative precisions of the bound that are reached in turn, within the evaluations allowed. Coarse
# precisions find a large value early, and a large value drops more cells.
PRECISIONS = (0.1, 0.03, 0.01, 0.003)
# Cosines and sines are of float32 angles, reduced to one turn in float64, and take a tenth of the
# time of float64 ones. This bounds their error: 1.2e-7 from the rounding of an angle, and at most
# 2.4e-7 from NumPy's functions (4 units in the last place), in each of two parts.
WAVE_ROUNDING = 6e-7
# Rounding errors of float64 angles and of their reduction, in units of epsilon and of the angle.
ANGLE_ROUNDINGS = 8
# Relative rounding error of a bound, a float64 sum over the samples.
BOUND_ROUNDING = 1e-12
# Highest dimension in which the ball is covered with cells. In a higher one it is searched up to
# the radius below, in units of the inverse scale: errors of float32 angles are then up to 0.01.
MAX_BOUNDED_FEATURES, MAX_SEARCHED = 3, 1e5
# Largest radius of a ball, in units of the inverse scale: beyond it float64 angles lose too many
# digits, and there are too many cells.
MAX_RADIUS = 1e9
# Bandwidths that the samples choose are rounded up to powers of this for the bound on the error.
BANDWIDTH_RATIO = 1.1


def largest_in_ball(
    rows: Rows,
    measure: Array,
    norm: Callable[[Array], Array],
    factor: float,
    radius: float,
    reached: float,
    tol: float,
    max_evaluations: int,
) -> Supremum:
    r"""Bound the potential over a ball by branch and bound of second order.

    The potential is the square of a norm of the transform :math:`f(\omega) = \sum_i a_i
    e^{i\langle\omega, x_i\rangle}`. The ball is cut into cells. In a cell around `c` with
    half-widths `h`, the angle of sample `i` changes by at most :math:`t_i = \langle h, |x_i|
    \rangle`, and for :math:`|\delta| \le h`

    .. math:: |f(c + \delta) - f(c) - \langle \nabla f(c), \delta\rangle|
       \le \tfrac12 \sum_i |a_i| \langle\delta, x_i\rangle^2.

    The norm of the linear part plus this remainder is convex in :math:`\delta`, so it is largest at
    a corner of the cell. Samples with :math:`t_i > 1` are left out of it and count with their mass.
    Bounds of first order, and the mass of all samples, are used where they are smaller. Cells that
    can't exceed the largest value seen are dropped. The others are halved along their widest sides,
    until none is left, or `max_evaluations` or `MAX_WAVES` are used up.

    Memory is some times that of the samples and of the measure in float64.

    Parameters
    ----------
    rows : Rows
        With dense samples in float64, in units of their scale. Their threads share the work.
    measure : ndarray of shape (n_samples, n_tasks)
        In float64.
    norm : callable
        From transforms of shape (2, n_tasks, n_points), real and imaginary parts, to their norms.
    factor : float
        Norms are at most this times the Euclidean norm.
    radius : float
    reached : float
        The largest potential known so far.
    tol : float
        Share by which the bound may exceed the largest potential.
    max_evaluations : int
    """
    X, masses = rows.array, np.abs(measure).sum(axis=1)  # (n_samples,)
    n_features, best = rows.n_features, math.sqrt(reached)
    cap = max(best, factor * float(np.linalg.norm(np.abs(measure).sum(axis=0))))
    if not radius <= MAX_RADIUS:
        return Supremum(reached, cap**2)
    # The potential depends neither on the origin nor on a rotation: angles change least around
    # the median, and along principal axes cells can be of different widths.
    X = X - weighted_median(X, masses)
    norms = row_norms(X)
    typical = X[norms <= FAR * np.median(norms)]
    axes = np.linalg.eigh(typical.T @ typical)[1][:, ::-1]
    spread = np.sqrt(np.square(typical @ axes).mean(axis=0)) + np.finfo(float).tiny
    rotated = rows.with_samples(X @ axes)
    errors = WAVE_ROUNDING + ANGLE_ROUNDINGS * np.finfo(float).eps * radius * norms
    rounding = factor * float(np.linalg.norm(np.minimum(errors, 2) @ np.abs(measure)))
    cells = Cells(rotated, measure, norm, factor, spread, float(radius), cap, rounding)
    bound, at = cap, np.zeros(n_features)
    n_left = max(1, min(max_evaluations, int(MAX_WAVES / len(rows))))
    # With the last precision from the start, too many cells would stay open.
    for precision in [*(step for step in PRECISIONS if step > tol), tol]:
        best, found, where, n_used = cells.bound(best, precision, n_left)
        at, bound, n_left = (at if where is None else where), min(bound, found), n_left - n_used
        if bound > cells.limit(best, precision) * (1 + BOUND_ROUNDING) or n_left <= 0:
            break
    bound = max(best, bound)
    return Supremum(best**2, bound**2, axes @ at if at.any() else None)


@dataclass(frozen=True)
class Cells:
    """The potential on a ball, for :func:`largest_in_ball`."""

    rows: Rows
    measure: Array
    norm: Callable[[Array], Array]
    factor: float
    spread: Array  # of the samples along each axis
    radius: float
    cap: float
    rounding: float  # of a norm

    def limit(self, best: float, tol: float) -> float:
        """Return the bound up to which a cell is dropped."""
        return best * math.sqrt(1 + tol) + 2 * self.rounding

    def bound(
        self, best: float, tol: float, max_evaluations: int
    ) -> tuple[float, float, Array | None, int]:
        """Return the largest value seen, a bound, where it was seen, and the evaluations used."""
        n_features, radius, at = self.rows.n_features, self.radius, None
        middles, half = np.zeros((1, n_features)), np.full(n_features, radius)
        middles[:, 0] = half[0] = radius / 2  # the potential is even: half of the ball is enough
        vertices = np.array(list(product((-1.0, 1.0), repeat=n_features)))
        dropped, n_evaluations = 0.0, 0
        while len(middles):
            values, bounds = self.values_and_bounds(middles, half, vertices * half)
            n_evaluations += len(middles)
            inside = np.flatnonzero(np.einsum("ij,ij->i", middles, middles) <= radius**2)
            if len(inside) and values[inside].max() - self.rounding > best:
                at = middles[inside[values[inside].argmax()]]
                best = float(values[inside].max()) - self.rounding
            open_cells = bounds > self.limit(best, tol)
            dropped = max(dropped, float(bounds[~open_cells].max(initial=0.0)))
            middles, bounds = middles[open_cells], bounds[open_cells]
            widths = half * self.spread
            split = widths > widths.max() / 2  # halve the widest sides
            corners = np.array(list(product(*[(-1.0, 1.0) if each else (0.0,) for each in split])))
            if n_evaluations + len(middles) * len(corners) > max_evaluations:
                dropped = max(dropped, float(bounds.max(initial=0.0)))
                break
            half = np.where(split, half / 2, half)
            middles = (middles[:, None, :] + corners * half).reshape(-1, n_features)
            nearest = np.maximum(np.abs(middles) - half, 0)
            middles = middles[np.einsum("ij,ij->i", nearest, nearest) <= radius**2]
        return best, max(best, dropped), at, n_evaluations

    def values_and_bounds(self, middles: Array, half: Array, shifts: Array) -> tuple[Array, Array]:
        """Return norms of the transform at the middles of cells, and bounds in the cells."""

        def remainders(X: Array, a: Array) -> tuple[Array, ...]:
            turns = np.abs(X) @ half  # (n_rows,)
            near = turns <= NEAR
            second = np.where(near[:, None], 0.5 * np.square(X @ shifts.T), 0.0)
            shares = np.column_stack([np.minimum(turns, 2), ~near, second])
            return (shares.T @ np.abs(a),)

        n_shifts = len(shifts)
        (sums,) = self.rows.sum_blocks(remainders, self.measure, width=2 * n_shifts)
        first, far, *second = self.factor * np.linalg.norm(sums, axis=1)
        size = max(MIN_BATCH, BATCH_NUMBERS // len(self.rows))
        parts = [
            self.values(middles[start : start + size], half, shifts)
            for start in range(0, len(middles), size)
        ]
        values = np.concatenate([each for each, _ in parts])
        linear = np.concatenate([each for _, each in parts], axis=1)  # (n_shifts, n_cells)
        by_slope = (linear + np.array(second)[:, None]).max(axis=0) + far
        bounds = np.minimum(values + first, by_slope) + self.rounding
        return values, np.minimum(bounds, self.cap)

    def values(self, middles: Array, half: Array, shifts: Array) -> tuple[Array, Array]:
        """Return norms of the transform at the middles, and of its linear part at the shifts.

        The linear part is the expansion to first order of the waves of the samples that are near.
        Its norms have shape (n_shifts, n_points).
        """
        n_points, n_tasks, n_features = len(middles), self.measure.shape[1], self.rows.n_features

        def sums(X: Array, a: Array) -> tuple[Array, ...]:
            angles = middles @ X.T  # (n_points, n_rows)
            turns = angles * (0.5 / np.pi)
            np.rint(turns, out=turns)
            turns *= 2 * np.pi
            angles -= turns
            reduced, waves = angles.astype(np.float32), np.empty((2, *angles.shape))
            np.cos(reduced, out=waves[0], dtype=np.float32)
            np.sin(reduced, out=waves[1], dtype=np.float32)
            near = np.where((np.abs(X) @ half <= NEAR)[:, None], a, 0.0)
            moments = X[:, :, None] * near[:, None, :]  # (n_rows, n_features, n_tasks)
            columns = np.hstack([a, near, moments.reshape(len(X), -1)])
            return (waves.reshape(2 * n_points, -1) @ columns,)

        (found,) = self.rows.sum_blocks(sums, self.measure, width=6 * n_points)
        found = found.reshape(2, n_points, 2 + n_features, n_tasks).transpose(2, 0, 3, 1)
        transform, value, *moments = found  # (2, n_tasks, n_points)
        # The derivative of cos + i sin is -sin + i cos.
        slopes = np.stack([np.stack([-sine, cosine]) for cosine, sine in moments])
        norms = [self.norm(value + np.tensordot(shift, slopes, 1)) for shift in shifts]
        return self.norm(transform), np.stack(norms)


def weighted_median(X: Array, weights: Array) -> Array:
    """Return the median of each column, of samples with weights."""

    def median(column: Array) -> float:
        order = np.argsort(column)
        sums = np.cumsum(weights[order])
        return float(column[order[np.searchsorted(sums, sums[-1] / 2)]])

    return np.array([median(column) for column in X.T])


def wave_complexity(
    bandwidth: float, reach: float, kernel_bound: float, n_samples: float
) -> tuple[float, float]:
    r"""Return :math:`(3 R_\omega R_x + 1) \sqrt{k / n}`, and a share of the failures.

    As in Appendix D of the paper, but the contraction lemma is applied to :math:`\cos - 1`, which
    is zero at zero, as it requires. The constant 1 adds :math:`1 / \sqrt n`. The bandwidth, chosen
    by the samples, is rounded up to :math:`1.1^j`, and the bound of bandwidth `j` may fail with a
    share of :math:`1 / (2 (|j| + 1) (|j| + 2))` of the probability. `reach` is
    :math:`R_\omega R_x`.
    """
    logarithm, step = math.log(bandwidth), math.log(BANDWIDTH_RATIO)
    exponent = math.ceil(logarithm / step)
    # The transform of n signs is at most n.
    factor = min(3 * reach * math.exp(exponent * step - logarithm) + 1, math.sqrt(n_samples))
    share = 1 / (2 * (abs(exponent) + 1) * (abs(exponent) + 2))
    return factor * math.sqrt(kernel_bound / n_samples), share


def concentration_sample_size(
    n_features: int, reach: float, epsilon: float = 0.1, delta: float = 0.05
) -> float:
    r"""Return the sample size at which the potential over n^2 is uniformly within `epsilon`.

    One sample changes :math:`v / n^2` by at most 4/n. By McDiarmid's inequality it is within
    :math:`\epsilon / 2` of its mean at each of :math:`(1 + 32 R_\omega R_x / \epsilon)^d` points of
    a net, with probability :math:`1 - \delta`. Between these points it changes by at most
    :math:`\epsilon / 4`, and its mean is within 1/n of its limit. `reach` is :math:`R_\omega R_x`.
    """
    net = n_features * math.log(1 + 32 * reach / epsilon)
    return max(32 / epsilon**2 * (net + math.log(2 / delta)), 4 / epsilon)
