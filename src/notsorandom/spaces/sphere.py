"""The unit sphere: samples of norm one, with harmonics, whole degrees or zonal features."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse

from notsorandom._utils.parameters import check_choice, check_flag, check_number
from notsorandom.data.array_api import namespace
from notsorandom.data.rows import Array, Column, Rows, row_norms
from notsorandom.spaces.base import ResolvedSpace, Space

# Largest number of columns for which basis="auto" uses harmonics. In more dimensions there are too
# many of them, and a zonal feature, whose pole is optimised, is more accurate.
MAX_HARMONIC_FEATURES = 4
# Largest deviation of a norm from 1. Rounding to half precision changes a norm by less.
NORM_TOLERANCE = 1e-3
# Norms that deviate from 1 by at most this many machine epsilons are 1 up to rounding: the samples
# are not rescaled.
NORM_ROUNDINGS = 8


class Sphere(Space):
    r"""The unit sphere of R^d, for directions, embeddings and other data of norm one.

    Parameters
    ----------
    basis : {"auto", "harmonic", "zonal", "degree"}, default="auto"
        ``"harmonic"``: a frequency is the index of a spherical harmonic, as in the paper, and the
        search evaluates all of them. ``"zonal"``: a frequency is a pole and a degree, the feature
        is a polynomial in the cosine to the pole, and the search follows a gradient. ``"degree"``:
        all harmonics of a degree are used together, so that the kernel is a function of
        :math:`\langle x, z\rangle` alone. Each harmonic of the degree is one of the
        `n_components` features; in high dimensions a degree has too many, and
        :class:`notsorandom.SphereKernel` learns the same kernel without features. ``"auto"`` is
        harmonic up to four columns and zonal beyond.
    max_degree : int or "auto", default="auto"
        The largest degree. ``"auto"`` is the largest that `max_harmonics` allows; in the zonal
        basis at least three and at most 64.
    max_harmonics : int, default=1000
        Maximum number of harmonics. In the zonal basis it only determines ``"auto"``.
    normalize : bool, default=False
        Scale samples to norm one. Otherwise they must have norm one, to within 1e-3.
    """

    def __init__(
        self,
        basis: str = "auto",
        max_degree: Any = "auto",
        max_harmonics: int = 1000,
        normalize: bool = False,
    ) -> None:
        self.basis = basis
        self.max_degree = max_degree
        self.max_harmonics = max_harmonics
        self.normalize = normalize

    def check(self) -> None:
        """Raise ValueError if a parameter is out of its range."""
        check_choice("basis", self.basis, ["auto", "harmonic", "zonal", "degree"])
        check_settings(self)

    def prepare(self, X: Any) -> Any:
        """Return the samples, normalised or checked to have norm one."""
        return unit_rows(X, self.normalize)

    def resolve(self, rows: Rows, rng: np.random.Generator) -> ResolvedSpace:
        """Return the space of the chosen basis."""
        # Both classes derive from Spherical, below.
        from notsorandom.spaces.harmonic_sphere import HarmonicSphere
        from notsorandom.spaces.zonal_sphere import ZonalSphere

        basis = self.basis
        if basis == "auto":
            basis = "harmonic" if rows.n_features <= MAX_HARMONIC_FEATURES else "zonal"
        settings = (self.max_degree, self.max_harmonics, self.normalize)
        if basis == "zonal":
            return ZonalSphere(*settings).resolve(rows, rng)
        return HarmonicSphere(*settings, whole_degrees=basis == "degree").resolve(rows, rng)

    def n_columns(self, phase: str) -> int:
        """Return 1: features are real."""
        return 1


class Spherical(ResolvedSpace):
    """Base class of the spaces on the sphere, which have one real feature per frequency."""

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
        check_settings(self)
        check_number("scale", self.scale, above=0, or_else=["median"])

    def prepare(self, X: Any) -> Any:
        """Return the samples, normalised or checked to have norm one."""
        return unit_rows(X, self.normalize)

    def phases(self, amplitudes: Array) -> Array:
        """Return zeros: real features have no phase."""
        return np.zeros(amplitudes.shape[-1], dtype=amplitudes.dtype)

    def alignment(self, amplitudes: Array, phases: Array, phase: str) -> Array:
        """Return the amplitudes: there is one part, the feature itself."""
        return amplitudes.transpose(2, 0, 1)  # (n_frequencies, 1, n_tasks)

    def bandwidth(self, frequencies: Array) -> float:
        """Return the largest degree considered."""
        return float(self.max_degree)

    def required_sample_size(self, rows: Rows, bandwidth: float) -> float:
        """Return NaN: there is no theorem for the sphere."""
        return math.nan

    def max_potential(self, rows: Rows, measure: Column, mass: Array, phase: str) -> float:
        """Return the potential of a feature that is proportional to the measure.

        By the inequality of Cauchy and Schwarz, no feature of mean square one has a larger one.
        """
        return rows.total_weight * rows.squared_norm(measure)


def check_settings(space: Any) -> None:
    """Raise ValueError if a parameter that all spaces on the sphere have is out of its range."""
    check_number("max_degree", space.max_degree, least=1, integer=True, or_else=["auto"])
    check_number("max_harmonics", space.max_harmonics, least=1, integer=True)
    check_flag("normalize", space.normalize)


def unit_rows(X: Any, normalize: bool) -> Any:
    """Return the rows scaled to norm one.

    Unless `normalize`, raise ValueError if a norm differs from 1 by more than NORM_TOLERANCE.
    """
    if X.shape[1] < 2:
        raise ValueError(
            f"X has n_features = {X.shape[1]}, but a sphere needs at least 2 columns: use "
            "space='euclidean'."
        )
    rows = Rows(X)
    if len(rows) == 0:
        return X
    norms = rows.map(row_norms)
    zero = np.flatnonzero(~(norms > 0))
    if len(zero):
        what = "of sparse X has no entries" if sparse.issparse(X) else "of X is zero"
        raise ValueError(
            f"Row {zero[0]} {what} ({len(zero)} of {len(rows)} rows are), and zero has no "
            "direction: leave such rows out."
        )
    if not normalize:
        distance = np.abs(norms - 1)
        off = np.flatnonzero(~(distance <= NORM_TOLERANCE))
        if len(off):
            raise ValueError(
                f"Row {off[0]} of X has norm {norms[off[0]]:.6g}, but samples on the sphere have "
                f"norm 1, to within {NORM_TOLERANCE:g} ({len(off)} of {len(rows)} rows don't): "
                "scale them, or use Sphere(normalize=True)."
            )
        if distance.max() <= NORM_ROUNDINGS * np.finfo(rows.dtype).eps:
            return X
    is_lazy = hasattr(X, "prepared")
    return X.prepared(directions) if is_lazy else rows.map(directions, on_device=True)


def directions(vectors: Any) -> Any:
    """Return the rows divided by their norms, without overflow of squares; zero stays zero."""
    if sparse.issparse(vectors):
        scaled, counts = vectors.copy(), np.diff(vectors.indptr)
        scaled.data /= np.repeat(one_for_zero(abs(vectors).max(axis=1).toarray().ravel()), counts)
        scaled.data /= np.repeat(one_for_zero(row_norms(scaled)), counts).astype(scaled.dtype)
        return scaled
    xp = namespace(vectors)
    scaled = vectors / one_for_zero(xp.max(xp.abs(vectors), axis=1, keepdims=True))
    if xp is not np:
        return scaled / one_for_zero(xp.sqrt(xp.sum(scaled * scaled, axis=1, keepdims=True)))
    scaled /= one_for_zero(np.sqrt(np.einsum("ij,ij->i", scaled, scaled)))[:, None]
    return scaled


def one_for_zero(norms: Any) -> Any:
    """Return the norms with 1 in the place of 0, to divide by."""
    xp = namespace(norms)
    return xp.where(norms == 0, xp.ones_like(norms), norms)
