"""Translation-invariant kernels on R^d: a frequency is a vector, its basis function a wave."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from notsorandom._utils.parameters import check_choice, check_number
from notsorandom._utils.threads import cached_property, scratch
from notsorandom.data.array_api import cast_like, namespace, to_host
from notsorandom.data.rows import Array, Column, Rows, dense, row_norms
from notsorandom.spaces.base import ContinuousSpace, Supremum
from notsorandom.spaces.landscape import (
    feature_potentials,
    relative_potential,
    resolve_scale,
    split_sums,
)
from notsorandom.spaces.view import (
    ProjectedView,
    View,
    check_scale,
    far_rows,
    principal_directions,
)

# Maximum number of bytes of the waves of all samples, which are kept between two sweeps.
WAVE_BYTES = 2**26
# A frequency whose length is at least 1 minus this times `max_norm` is on the surface of the ball.
# Rounding to float32 changes a length by less.
SURFACE = 1e-5
# Range of the scales of Cauchy draws. Their largest entry: with float32 samples, its angles have
# errors of up to 1e-4.
CAUCHY_SCALES, MAX_ENTRY = (0.1, 10.0), 1000.0


class Euclidean(ContinuousSpace):
    r"""Frequencies in R^d, with the waves :math:`e^{i \langle\omega, x\rangle}`.

    By Bochner's theorem every translation-invariant kernel is an average of products of these waves
    (Section 2.1 of the paper). Potential, gradient and kernel don't depend on the origin. The
    centre keeps the angles small: float32 samples are then used with all of their own digits.

    Parameters
    ----------
    scale : "median" or float, default="median"
        The unit of length of the samples. ``"median"`` takes the median distance between samples.
    center : "mean" or array-like of shape (n_features,), default="mean"
        The origin of the angles.
    max_norm : float, default=inf
        Length of the longest frequency, in the inverse unit of the samples. Searches stay in this
        ball: the bandwidth :math:`R_\omega` of the paper's bounds.
    noise : {"auto", "gaussian", "cauchy"}, default="auto"
        The noise by which `smoothing` blurs the samples. Gaussian noise penalises the square of a
        frequency's length. Cauchy noise, independent in each column, penalises the sum of its
        absolute entries, and so admits long frequencies of few columns. ``"auto"`` is the spectrum
        of the search, or Gaussian.
    """

    is_vector_space = True

    def __init__(
        self,
        scale: Any = "median",
        center: Any = "mean",
        max_norm: float = math.inf,
        noise: str = "auto",
    ) -> None:
        self.scale = scale
        self.center = center
        self.max_norm = max_norm
        self.noise = noise

    def check(self) -> None:
        """Raise ValueError if a parameter is out of its range."""
        check_number("scale", self.scale, above=0, or_else=["median"])
        check_choice("noise", self.noise, ["auto", "gaussian", "cauchy"])
        if self.max_norm != math.inf:
            check_number("max_norm", self.max_norm, above=0)
        if isinstance(self.center, str):
            check_choice("center", self.center, ["mean"])
        elif np.ndim(self.center) != 1 or not np.isfinite(self.center).all():
            raise ValueError(
                f"center={self.center!r} is not allowed: it must be 'mean' or a point, an array of "
                "shape (n_features,) with finite numbers."
            )

    def prepare(self, X: Any) -> Any:
        """Return the samples unchanged."""
        return X

    def resolve(self, rows: Rows, rng: np.random.Generator) -> Euclidean:
        """Return the space with scale and centre computed from the data."""
        if isinstance(self.center, str):
            center = rows.mean()
        else:
            center = np.asarray(self.center, dtype=rows.dtype)
            if len(center) != rows.n_features:
                raise ValueError(
                    f"center has {len(center)} coordinates, but X has {rows.n_features} columns: "
                    "give one coordinate per column, or 'mean'."
                )
        scale = resolve_scale(self.scale, rows, rng)
        check_scale(scale, center)
        return self.with_parameters(scale=scale, center=center)

    def with_parameters(self, **parameters: Any) -> Euclidean:
        """Return a space of the same class with other values of some parameters."""
        return type(self)(**(self.get_params(deep=False) | parameters))

    @property
    def has_batched_trials(self) -> bool:
        """Whether trial games can be played at once, and so compare columns too.

        They have no limit of the frequencies. A derived space may have other features.
        """
        return type(self) is Euclidean and math.isinf(self.max_norm)

    def with_noise(self, spectrum: str) -> Euclidean:
        """Return the space with the noise of a spectrum, unless it has one of its own."""
        return self.with_parameters(noise=spectrum) if self.noise == "auto" else self

    def far_rows(self, X: Any, frequencies: Array) -> Any:
        """Return which rows of a block are too far from the centre to compute with, or None."""
        used = np.asarray(frequencies.any(axis=0))
        return far_rows(X, np.asarray(self.center), float(self.scale), used)

    def farthest_column(self, row: Array, frequencies: Array) -> int:
        """Return the column in which a sample is farthest away, of the columns that are used."""
        return int((np.abs(row / 2 - self.center / 2) * frequencies.any(axis=0)).argmax())

    def view(self, rows: Rows, dtype: str, rng: np.random.Generator) -> View:
        """Return the samples centred, in units of the scale, in their principal directions."""
        basis, n_usual = principal_directions(rows, self.center, rng)
        n_columns = rows.n_features if basis is None else basis.shape[1]
        optional = np.arange(n_columns) >= n_usual if n_columns > n_usual else None
        space = self.with_parameters(
            scale=1.0,
            center=np.zeros(n_columns, dtype=dtype),
            max_norm=self.max_norm * self.scale,
        )
        return ProjectedView(space, dtype, self.center, self.scale, basis, optional=optional)

    def draw(
        self, n_frequencies: int, rows: Rows, rng: np.random.Generator, variance: float = 1.0
    ) -> Array:
        """Draw frequencies from the spectrum of the RBF kernel of bandwidth `scale`."""
        normal = rng.standard_normal((n_frequencies, rows.n_features))
        drawn = (normal / self.scale).astype(rows.dtype) * rows.dtype.type(variance**0.5)
        return self._shorten(drawn)

    def draw_cauchy(self, n_frequencies: int, rows: Rows, rng: np.random.Generator) -> Array:
        """Draw frequencies from spectra of Laplacian kernels; see `cauchy_frequencies`."""
        draws = cauchy_frequencies(n_frequencies, rows.n_features, rng)
        return self._shorten((draws / self.scale).astype(rows.dtype))

    def spread(self, n_frequencies: int, rows: Rows, rng: np.random.Generator) -> Array:
        """Draw all directions; up to a limit, lengths evenly spread over their logarithm."""
        if math.isinf(self.max_norm):
            return self.draw(n_frequencies, rows, rng)
        normal = rng.standard_normal((n_frequencies, rows.n_features))
        # Lengths go down to the inverse scale of the samples, at least to a tenth of the longest.
        ratio = max(self.max_norm * self.scale, 10)
        lengths = self.max_norm * ratio ** -rng.random(n_frequencies) / row_norms(normal)
        return (normal * lengths[:, None]).astype(rows.dtype)

    def within_reach(self, smoothing: float, n_samples: int) -> Euclidean:
        """Return the ball in which the penalty is at most the log of the number of samples.

        The potential is at most about this number times its mean over all frequencies.
        """
        excess, width = math.log(max(n_samples, 2)), smoothing * self.scale
        if width == 0:
            return self
        radius = (excess / 2 if self.noise == "cauchy" else excess**0.5) / width
        return self.with_parameters(max_norm=min(radius, self.max_norm))

    def move(self, frequencies: Array, shift: Array) -> Array:
        """Return the sum, shortened to the longest frequency."""
        return self._shorten(frequencies + shift)

    def _shorten(self, frequencies: Array) -> Array:
        """Return the frequencies, shortened to the limit where they are longer."""
        if math.isinf(self.max_norm):
            return frequencies
        excess = np.maximum(row_norms(frequencies) / self.max_norm, 1)[:, None]
        return frequencies / excess.astype(frequencies.dtype)

    def feasible_slope(self, frequencies: Array, slope: Array) -> Array:
        """Return the slopes, on the surface of the ball without their part that leads outwards."""
        if math.isinf(self.max_norm):
            return slope
        norms = row_norms(frequencies).astype(slope.dtype)
        outward = frequencies / np.maximum(norms, np.finfo(slope.dtype).tiny)[:, None]
        rise = np.maximum(np.einsum("ij,ij->i", outward, slope), 0)
        rise *= norms >= self.max_norm * (1 - SURFACE)
        return slope - rise[:, None] * outward

    def first_step(self) -> float:
        """Return the inverse square of the scale, the unit of the log potential's curvature."""
        return float(self.scale) ** -2

    def penalty(self, rows: Rows, frequencies: Array, smoothing: float) -> Array:
        r"""Return what the blur of the samples by noise subtracts from the log potential.

        With :math:`\sigma` the smoothing times the scale: :math:`\sigma^2 |\omega|^2` for Gaussian
        noise of standard deviation :math:`\sigma`, and :math:`2 \sigma |\omega|_1` for independent
        Cauchy noise of scale :math:`\sigma` in each column.
        """
        return self._penalty_and_slope(frequencies, smoothing)[0]

    def _penalty_and_slope(self, frequencies: Array, smoothing: float) -> tuple[Array, Array]:
        """Return the penalty and its gradient."""
        scalar = frequencies.dtype.type
        if self.noise == "cauchy":
            weight = scalar(2 * smoothing * self.scale)
            return weight * np.abs(frequencies).sum(axis=1), weight * np.sign(frequencies)
        scaled, weight = frequencies, scalar(smoothing**2)
        if self.scale != 1:
            scaled = frequencies * scalar(self.scale)
        squares = np.einsum("ij,ij->i", scaled, scaled)
        return weight * squares, scaled * (weight * scalar(2 * self.scale))

    @cached_property
    def _is_shifted(self) -> bool:
        """Whether the centre is not the origin."""
        return bool(np.any(self.center))

    def _angles(self, X: Array, frequencies: Array) -> Array:
        """Return the angles of a block, of shape (n_rows, n_frequencies)."""
        if self._is_shifted and sparse.issparse(X):  # subtract large angles, so in float64
            frequencies = frequencies.astype(np.float64)
            angles: Array = X @ frequencies.T
            angles -= frequencies @ self.center
            return angles.astype(X.dtype, copy=False)
        if self._is_shifted:  # float32 samples keep their digits; the centre can be float64
            is_numpy = isinstance(X, np.ndarray)
            centred = X - cast_like(self.center, X)
            X = centred.astype(X.dtype, copy=False) if is_numpy else centred
        angles = X @ cast_like(frequencies, X).T
        return angles

    def _waves(self, X: Any, frequencies: Array) -> Array:
        """Return cosines and then sines of the angles, of shape (2 * n_frequencies, n_rows).

        A NumPy array is overwritten by the next call in the same thread, so a function that is
        given to `Rows.map` must not return it.
        """
        if not isinstance(X, np.ndarray):
            angles, xp = self._angles(X, frequencies).T, namespace(X)
            return xp.concat([xp.cos(angles), xp.sin(angles)], axis=0)
        if self._is_shifted:  # before the product: subtracting large angles would lose digits
            X = (X - self.center).astype(X.dtype, copy=False)
        n_rows, n_frequencies = len(X), len(frequencies)
        waves = scratch((2 * n_frequencies, n_rows), X.dtype)
        cosine, sine = waves[:n_frequencies], waves[n_frequencies:]
        # BLAS is faster with contiguous rows of angles, everything else with contiguous waves.
        sine[:] = np.matmul(X, frequencies.T, out=cosine.reshape(n_rows, n_frequencies)).T
        np.cos(sine, out=cosine)
        np.sin(sine, out=sine)
        return waves

    def groups(self, frequencies: Array, phase: str) -> Array:
        """Return a different label for each: every frequency has a kernel of its own."""
        return np.arange(len(frequencies))

    def amplitudes(self, rows: Rows, measure: Column, frequencies: Array) -> Array:
        """Return the Fourier transform of the measure: its sums of cosines and of sines."""
        width = 2 * len(frequencies)
        sums_of = partial(self.wave_sums, frequencies)
        (sums,) = rows.sum_blocks(sums_of, measure, width=width)
        return split_sums(sums)

    def wave_sums(self, frequencies: Array, X: Any, a: Any) -> tuple[Any]:
        """Return the sums of cosines, then of sines, of a block of samples and measure."""
        return (self._waves(X, frequencies) @ a,)

    def log_potential(
        self,
        rows: Rows,
        measure: Column,
        frequencies: Array,
        smoothing: float,
        phase: str,
        mass: Array,
    ) -> tuple[Array, Array, Array]:
        """Return the log potential minus the penalty, its feasible slope, and the amplitudes."""
        amplitudes, gradient = self.amplitudes_and_gradient(rows, measure, frequencies, phase)
        potential = relative_potential(amplitudes, phase, mass)
        penalty, penalty_slope = self._penalty_and_slope(frequencies, smoothing)
        slope = gradient / mass / mass / potential[:, None] - penalty_slope
        return np.log(potential) - penalty, self.feasible_slope(frequencies, slope), amplitudes

    def amplitudes_and_gradient(
        self,
        rows: Rows,
        measure: Column,
        frequencies: Array,
        phase: str = "paired",
        wave_bytes: int = WAVE_BYTES,
    ) -> tuple[Array, Array]:
        r"""Return the Fourier transform of the measure, and the gradient of the potential.

        With :math:`C_k + i S_k` the transform of task `k`, the gradient of the potential of a pair
        of features is :math:`2 \sum_i x_i \sum_k a_{ik} (S_k \cos_i - C_k \sin_i)`. For an aligned
        feature, :math:`S_k` and :math:`C_k` are replaced by :math:`p_k \sin b` and
        :math:`p_k \cos b`, with :math:`p_k = C_k \cos b + S_k \sin b`: the phase `b` is the best
        one, so that its own change doesn't matter. The factors of the `x_i` add up to zero, so the
        centre of the samples doesn't matter.

        One task needs four sums over the samples, in one sweep. With more tasks one sweep would
        multiply the columns of each sample once per task. A second sweep, when the transform is
        known, multiplies them once. The waves are kept in between, for at most `wave_bytes` at a
        time: more frequencies are halved.
        """
        n_frequencies, n_tasks = len(frequencies), measure.shape[1]
        width, is_local = 2 * n_frequencies, rows.is_local

        def four_sums(X: Array, a: Array) -> tuple[Array, ...]:
            waves = self._waves(X, frequencies)
            sums = waves @ a  # (2 * n_frequencies, 1)
            waves *= a[:, 0]
            return sums, waves @ X  # (2 * n_frequencies, n_features)

        def factors_of(amplitudes: Array) -> Callable[[Any, Any], Any]:
            """Return a function of waves and measure of a block: the factors of its samples."""
            if phase == "paired":
                both = amplitudes.transpose(0, 2, 1)  # (2, n_frequencies, n_tasks)

                def paired(waves: Any, a: Any) -> Any:
                    by_cosine, by_sine = (a @ cast_like(part, waves).T for part in both)
                    return waves[:, :n_frequencies] * by_sine - waves[:, n_frequencies:] * by_cosine

                return paired
            phases = self.phases(amplitudes)
            turns = np.stack([np.cos(phases), np.sin(phases)])  # (2, n_frequencies)
            parts = np.einsum("ckf,cf->kf", amplitudes, turns)
            # The product with waves of a row subtracts sine times cosine from cosine times sine.
            turn = np.concatenate([np.diag(turns[1]), -np.diag(turns[0])])

            def aligned(waves: Any, a: Any) -> Any:
                return (waves @ cast_like(turn, waves)) * (a @ cast_like(parts, waves))

            return aligned

        def both_sweeps(X: Array, a: Array) -> tuple[Array, ...]:
            waves = self._waves(X, frequencies)
            sums = waves @ a  # (2 * n_frequencies, n_tasks)
            return sums, factors_of(split_sums(to_host(sums)))(waves.T, a).T @ X

        def first_sweep(X: Array) -> Array:
            waves = self._waves(X, frequencies).T
            # Local rows copy it into their column at once.
            return waves if is_local or not isinstance(waves, np.ndarray) else waves.copy()

        if n_tasks == 1:
            sums, moments = rows.sum_blocks(four_sums, measure, width=width)
            by_cosine, by_sine = moments[:n_frequencies], moments[n_frequencies:]
            half = sums[n_frequencies:] * by_cosine - sums[:n_frequencies] * by_sine
            return split_sums(sums), 2 * half
        if rows.is_local and len(rows.blocks(width)) == 1:
            sums, half = rows.sum_blocks(both_sweeps, measure, width=width)
            return split_sums(sums), 2 * half
        if n_frequencies > 1 and width * len(rows) * rows.dtype.itemsize > wave_bytes:
            parts = [
                self.amplitudes_and_gradient(rows, measure, part, phase, wave_bytes)
                for part in np.array_split(frequencies, 2)
            ]
            amplitudes = np.concatenate([part[0] for part in parts], axis=2)
            return amplitudes, np.concatenate([part[1] for part in parts])
        waves = rows.map(first_sweep, width=width, on_device=True)
        (sums,) = rows.sum_blocks(lambda X, a, w: (w.T @ a,), measure, waves, width=width)
        amplitudes = split_sums(sums)
        factors = factors_of(amplitudes)
        (half,) = rows.sum_blocks(
            lambda X, a, w: (factors(w, a).T @ X,), measure, waves, width=width
        )
        return amplitudes, 2 * half

    def phases(self, amplitudes: Array) -> Array:
        r"""Return the `b` that maximises :math:`\sum_k (C_k \cos b + S_k \sin b)^2`.

        It is the direction of the leading eigenvector of a two by two matrix.
        """
        cosine, sine = amplitudes.astype(np.float64)  # (n_tasks, n_frequencies)
        twice = np.arctan2(2 * (cosine * sine).sum(axis=0), (cosine**2 - sine**2).sum(axis=0))
        return (twice / 2).astype(amplitudes.dtype)

    def features(self, X: Array, frequencies: Array, phases: Array, phase: str) -> Array:
        r"""Return waves of mean square one over all angles.

        ``"aligned"`` gives :math:`\sqrt 2 \cos(\langle\omega, x\rangle - b)`, ``"paired"`` the two
        columns :math:`\cos\langle\omega, x\rangle, \sin\langle\omega, x\rangle`.
        """
        xp = namespace(X)
        angles: Any = self._angles(X, frequencies)
        if phase == "aligned":
            angles -= cast_like(phases, X)
            # In place: allocating an array can take longer than the cosine.
            waves = np.cos(angles, out=angles) if isinstance(angles, np.ndarray) else xp.cos(angles)
            waves *= math.sqrt(2)
            return waves
        pairs = xp.stack([xp.cos(angles), xp.sin(angles)], axis=2)  # (n_rows, n_frequencies, 2)
        return xp.reshape(pairs, (angles.shape[0], -1))

    def scales(self, rows: Rows, frequencies: Array) -> Array:
        """Return ones: waves have mean square one."""
        return np.ones(len(frequencies), dtype=frequencies.dtype)

    def n_columns(self, phase: str) -> int:
        """Return 1 if aligned, 2 if paired."""
        return 1 if phase == "aligned" else 2

    def bandwidth(self, frequencies: Array) -> float:
        """Return the largest length allowed or, without a limit, the largest of the lengths."""
        is_limited = math.isfinite(self.max_norm)
        return float(self.max_norm if is_limited else self.norms(frequencies).max())

    def within(self, bandwidth: float, n_features: int) -> Euclidean:
        """Return the space with another largest length."""
        return self.with_parameters(max_norm=bandwidth)

    def norms(self, frequencies: Array) -> Array:
        """Return the lengths of the frequencies."""
        return row_norms(frequencies)

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
        """Return the largest potential within the bandwidth, bounded in up to three dimensions."""
        from notsorandom.spaces.supremum import MAX_BOUNDED_FEATURES, MAX_SEARCHED, largest_in_ball

        if rows.n_features > MAX_BOUNDED_FEATURES:
            mass = np.abs(measure).sum(axis=0, dtype=np.float64)
            is_searched = bandwidth * self.scale <= MAX_SEARCHED
            largest = math.inf if is_searched else self.max_potential(rows, measure, mass, phase)
            return Supremum(reached, largest)
        supremum = largest_in_ball(
            rows.with_samples(self._centred(dense(rows.array)) / self.scale),
            measure.astype(np.float64),
            lambda transform: np.sqrt(feature_potentials(self, transform, phase)),
            math.sqrt(self.kernel_bound(rows.n_features, phase)),
            bandwidth * self.scale,
            reached,
            tol,
            max_evaluations,
        )
        at = supremum.frequency
        return supremum if at is None else replace(supremum, frequency=at / self.scale)

    def _centred(self, X: Array) -> Array:
        """Return dense samples minus the centre, in float64."""
        return X.astype(np.float64) - np.asarray(self.center, dtype=np.float64)

    def rademacher_complexity(
        self, rows: Rows, bandwidth: float, phase: str
    ) -> tuple[float, float]:
        """Return the complexity of all kernels within the bandwidth, rounded up."""
        from notsorandom.spaces.supremum import wave_complexity

        reach = bandwidth * self.scale * self.radius(rows)
        bound = self.kernel_bound(rows.n_features, phase)
        return wave_complexity(bandwidth, reach, bound, rows.total_weight)

    def required_sample_size(self, rows: Rows, bandwidth: float) -> float:
        """Return the sample size at which the potential concentrates."""
        from notsorandom.spaces.supremum import concentration_sample_size

        reach = bandwidth * self.scale * self.radius(rows)
        return concentration_sample_size(rows.n_features, reach)

    def radius(self, rows: Rows) -> float:
        """Return the largest distance of a sample from the centre, in units of the scale."""
        center = np.asarray(self.center, dtype=np.float64) / self.scale

        def farthest(X: Any) -> float:
            X = to_host(X)
            if not sparse.issparse(X):
                return float(row_norms(self._centred(X) / self.scale).max())
            X = X.astype(np.float64) / self.scale
            squares = np.square(row_norms(X)) - 2 * (X @ center)
            return math.sqrt(max(0.0, float((squares + center @ center).max())))

        return max(rows.map_blocks(farthest))

    def kernel_bound(self, n_features: int, phase: str) -> float:
        """Return 2 if aligned, 1 if paired."""
        return 2.0 / self.n_columns(phase)

    def max_potential(self, rows: Rows, measure: Column, mass: Array, phase: str) -> float:
        """Return the potential if all samples were at crests and troughs of one wave."""
        return self.kernel_bound(rows.n_features, phase) * float(mass @ mass)

    def alignment(self, amplitudes: Array, phases: Array, phase: str) -> Array:
        """Return the rotation of cosine and sine by the phase, or both of them."""
        cosine, sine = amplitudes  # (n_tasks, n_frequencies)
        if phase == "aligned":
            aligned = cosine * np.cos(phases) + sine * np.sin(phases)
            return aligned.T[:, None, :] * aligned.dtype.type(math.sqrt(2))
        return np.stack([cosine.T, sine.T], axis=1)


def cauchy_frequencies(n_frequencies: int, n_features: int, rng: np.random.Generator) -> Array:
    r"""Draw vectors with independent Cauchy entries, times one random scale per vector.

    They are for samples at distance one. With scale :math:`\gamma` they have the spectrum of
    :math:`e^{-\gamma |x - z|_1}`. The scale is log-uniform in `CAUCHY_SCALES`, divided by the root
    of the number of columns, which is about the ratio of :math:`|x - z|_1` to the distance.
    """
    low, high = np.log(CAUCHY_SCALES)
    scales = np.exp(rng.uniform(low, high, size=(n_frequencies, 1))) / math.sqrt(n_features)
    draws = scales * rng.standard_cauchy((n_frequencies, n_features))
    return np.clip(draws, -MAX_ENTRY, MAX_ENTRY)
