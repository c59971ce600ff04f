"""The sphere with zonal features: a frequency is a pole that can turn anywhere, and a degree."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from notsorandom.parameters import check_number
from notsorandom.rows import Array, Rows
from notsorandom.spaces.euclidean import median_distance
from notsorandom.spaces.gegenbauer import n_harmonics, zonal
from notsorandom.spaces.harmonic_sphere import largest_degree
from notsorandom.spaces.landscape import potential_of
from notsorandom.spaces.unit_rows import unit_rows

# Degrees offered however many harmonics they have.
LEAST_MAX_DEGREE = 3
# Where nothing overflows (on the circle and S^2), degrees beyond this are no help to anybody.
MOST_DEGREE = 10_000


class ZonalSphere(BaseEstimator):
    r"""Zonal harmonics: polynomials in the cosine :math:`\langle x, \xi\rangle` to a pole.

    The zonal harmonics of a degree span all harmonics of that degree, so nothing is lost against
    the harmonics themselves; but a pole is a point that can be moved, so that there is a gradient
    where the paper finds none, and the number of harmonics no longer matters.

    A frequency is the vector :math:`l \xi`: its direction is the pole and its length the degree.
    Each feature is divided by its root mean square over the samples, which in high dimension have
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

    kind = "continuous"

    def __init__(
        self,
        max_degree: Any = "auto",
        max_harmonics: int = 1000,
        normalize: bool = False,
        scale: Any = "median",
    ) -> None:
        self.max_degree = max_degree
        self.max_harmonics = max_harmonics
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

    def resolve(self, rows: Rows, rng: np.random.Generator) -> ZonalSphere:
        """Return the same space with its degree settled and its scale measured."""
        offered = highest_finite_degree(rows.n_features, rows.dtype)
        if self.max_degree == "auto":
            fitting = largest_degree(rows.n_features, self.max_harmonics)
            max_degree = min(max(fitting, LEAST_MAX_DEGREE), offered)
        elif self.max_degree > offered:
            raise ValueError(
                f"max_degree={self.max_degree} is too high for {rows.n_features} columns of "
                f"{rows.dtype}, where degree {offered} is the last whose features stay finite: "
                "allow no more than that, or use float64."
            )
        else:
            max_degree = int(self.max_degree)
        scale = median_distance(rows, rng) if isinstance(self.scale, str) else float(self.scale)
        return ZonalSphere(max_degree, self.max_harmonics, self.normalize, scale)

    def draw(
        self,
        n_frequencies: int,
        n_features: int,
        dtype: Any,
        rng: np.random.Generator,
        phase: str = "aligned",
        variance: float = 1.0,
    ) -> Array:
        """Draw poles anywhere on the sphere, with the degrees in turn."""
        poles = unit(rng.standard_normal((n_frequencies, n_features)))
        turn = np.arange(n_frequencies) + rng.integers(self.max_degree)
        return (poles * (1 + turn % self.max_degree)[:, None]).astype(dtype)

    def move(self, frequencies: Array, shift: Array) -> Array:
        """Frequencies at a shift along the sphere: the degree stays, the pole turns."""
        poles, degrees = poles_and_degrees(frequencies)
        return unit(frequencies + tangent(shift, poles)) * degrees[:, None].astype(shift.dtype)

    def first_step(self) -> float:
        """Length of the first ascent step, per unit of gradient of the log potential."""
        return float(self.scale) ** -2

    def penalty(self, rows: Rows, frequencies: Array, smoothing: float) -> tuple[Array, Array]:
        r"""Logarithm of the features' mean square over the samples, and its gradient.

        Taken from the log potential it leaves that of the feature divided by its root mean square.
        Smoothing by :math:`\sigma` adds :math:`\sigma^2 l (l + d - 2)`, what diffusion by
        :math:`\sigma` changes of a harmonic of that degree, so that the quotient is not large by
        chance where the samples have no extent.

        Returns
        -------
        penalty : ndarray of shape (n_frequencies,)
        gradient : ndarray of shape (n_frequencies, n_features)
        """
        poles, degrees = poles_and_degrees(frequencies)

        def squares(X: Array) -> tuple[Array, ...]:
            values, slopes = self._zonal(X, poles, degrees)
            slopes *= values
            return np.einsum("ij,ij->j", values, values), slopes.T @ X

        square, half = rows.add(squares, width=4 * len(frequencies))
        scalar = rows.dtype.type
        noise = (smoothing * self.scale) ** 2 * degrees * (degrees + rows.n_features - 2)
        total = square / scalar(len(rows)) + noise.astype(rows.dtype) + np.finfo(rows.dtype).tiny
        slope = tangent(half, poles) * (scalar(2 / len(rows)) / (total * degrees))[:, None]
        return np.log(total), slope.astype(rows.dtype)

    def groups(self, frequencies: Array, phase: str) -> Array:
        """Labels of the frequencies that make up one kernel: here each is its own."""
        return np.arange(len(frequencies))

    def _zonal(self, X: Array, poles: Array, degrees: Array) -> tuple[Array, Array]:
        """Zonal harmonics and their slopes in the cosine, (n_rows, n_frequencies) each."""
        cosines = X @ poles.T
        values, slopes = np.empty_like(cosines), np.empty_like(cosines)
        for degree in np.unique(degrees):
            chosen = degrees == degree
            values[:, chosen], slopes[:, chosen] = zonal(
                cosines[:, chosen], int(degree), X.shape[1]
            )
        return values, slopes

    def amplitudes(self, rows: Rows, measure: Array, frequencies: Array) -> Array:
        """Sums of the measure against zonal harmonics.

        Returns
        -------
        ndarray of shape (1, n_tasks, n_frequencies)
        """
        poles, degrees = poles_and_degrees(frequencies)

        def sums(X: Array, a: Array) -> tuple[Array, ...]:
            return (a.T @ self._zonal(X, poles, degrees)[0],)

        return np.stack(rows.add(sums, measure, width=4 * len(frequencies)))

    def potential(self, rows: Rows, measure: Array, frequencies: Array) -> Array:
        r"""Fourier potential :math:`v(l \xi) = \sum_k (\sum_i a_{ik} p_l(\xi \cdot x_i))^2`."""
        return potential_of(self.amplitudes(rows, measure, frequencies))

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
            values, slopes = self._zonal(X, poles, degrees)
            slopes *= a
            return a.T @ values, slopes.T @ X

        def weighted_sums(X: Array, a: Array) -> tuple[Array, ...]:
            _, slopes = self._zonal(X, poles, degrees)
            slopes *= a @ sums
            return (slopes.T @ X,)

        width = 4 * len(frequencies)
        if measure.shape[1] == 1:
            sums, moments = rows.add(both_sums, measure, width=width)
            half = sums[0, :, None] * moments
        else:  # a second sweep carries the features of every sample once for all tasks
            (sums,) = self.amplitudes(rows, measure, frequencies)
            (half,) = rows.add(weighted_sums, measure, width=width)
        slope = tangent(half, poles) * (2 / degrees).astype(half.dtype)[:, None]
        return sums[None], slope

    def phases(self, amplitudes: Array) -> Array:
        """Phases of the features: there are none."""
        return np.zeros(amplitudes.shape[-1], dtype=amplitudes.dtype)

    def scales(self, rows: Rows, frequencies: Array, smoothing: float) -> Array:
        """Factors of the features: one over their root mean square, as the search saw it."""
        penalty, _ = self.penalty(rows, frequencies, smoothing)
        return np.exp(-penalty / 2)

    def features(self, X: Array, frequencies: Array, phases: Array, phase: str) -> Array:
        """Values of the zonal harmonics, of mean square one over the sphere.

        Returns
        -------
        ndarray of shape (n_rows, n_frequencies)
        """
        return self._zonal(X, *poles_and_degrees(frequencies))[0]

    def alignment(self, amplitudes: Array, phases: Array, phase: str) -> Array:
        """Inner product of each feature with the measure, read off the transform.

        Returns
        -------
        ndarray of shape (n_frequencies, 1, n_tasks)
        """
        return amplitudes.transpose(2, 0, 1)

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

    def bound(self, n_features: int, phase: str) -> float:
        """Raise ValueError: features scaled to the samples have no bound known in advance."""
        raise ValueError(
            "learning_rate='theory' needs a bound on the kernel, but zonal features, which are "
            "scaled to the samples, have none: use 'auto', or Sphere(basis='harmonic')."
        )

    def largest_potential(self, measure: Array, phase: str) -> float:
        """Potential of a feature of mean square one that is the measure itself, up to scale."""
        return len(measure) * float(np.square(measure, dtype=np.float64).sum())


def highest_finite_degree(n_features: int, dtype: Any) -> int:
    """The highest degree at which squares of features can be added up without overflow.

    A zonal harmonic is largest at its pole, where its square is the number of harmonics of its
    degree; a third of the exponents is left to the sums over samples.
    """
    limit = float(np.finfo(dtype).max) ** (2 / 3)
    degree = 1
    while degree < MOST_DEGREE and n_harmonics(n_features, degree + 1) < limit:
        degree += 1
    return degree


def poles_and_degrees(frequencies: Array) -> tuple[Array, Array]:
    """Directions and lengths of the frequencies, the lengths as integers."""
    norms = np.sqrt((frequencies * frequencies).sum(axis=1))
    return frequencies / norms[:, None], np.rint(norms).astype(int)


def tangent(vectors: Array, poles: Array) -> Array:
    """The vectors without their parts along the poles."""
    return vectors - (vectors * poles).sum(axis=1, keepdims=True) * poles


def unit(vectors: Array) -> Array:
    """The vectors scaled to length one."""
    return vectors / np.sqrt((vectors * vectors).sum(axis=1, keepdims=True))
