"""What all spaces on the sphere have in common: samples of length one, and real features."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse

from notsorandom._utils.parameters import check_flag, check_number
from notsorandom.data.array_api import namespace
from notsorandom.data.rows import Array, Rows, row_norms
from notsorandom.spaces.base import ResolvedSpace
from notsorandom.spaces.euclidean import median_distance
from notsorandom.spaces.landscape import Landscape

# How far from 1 a norm may be. Numbers stored in half precision are off by less.
NORM_TOLERANCE = 1e-3
# Norms this many roundings from 1 are 1.
ROUNDINGS = 8


class Spherical(ResolvedSpace):
    """A space on the sphere with one real feature a frequency.

    Parameters
    ----------
    max_degree : int or "auto", default="auto"
    max_harmonics : int, default=1000
    normalize : bool, default=False
        Scale samples to norm one.
    scale : "median" or float, default="median"
        The length that smoothing is a fraction of.
    """

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
        check_flag("normalize", self.normalize)

    def prepare(self, X: Array) -> Array:
        """Return the samples, normalised or checked to be of norm one."""
        return unit_rows(X, self.normalize)

    def measured_scale(self, rows: Rows, rng: np.random.Generator) -> float:
        """Return the scale, measured on the data if it isn't given."""
        return median_distance(rows, rng) if isinstance(self.scale, str) else float(self.scale)

    def phases(self, amplitudes: Array) -> Array:
        """Phases of the features: there are none, features are real."""
        return np.zeros(amplitudes.shape[-1], dtype=amplitudes.dtype)

    def alignment(self, amplitudes: Array, phases: Array, phase: str) -> Array:
        """Inner product of each feature with the measure, read off the transform.

        Returns
        -------
        ndarray of shape (n_frequencies, 1, n_tasks)
        """
        return amplitudes.transpose(2, 0, 1)

    def required_sample_size(self, rows: Rows, bandwidth: float) -> float:
        """Samples that the concentration of the potential asks for: there is no theorem here."""
        return math.nan

    def max_potential(self, landscape: Landscape) -> float:
        """Potential of a feature of mean square one that is the measure itself, up to scale."""
        rows = landscape.rows
        return rows.total_weight * rows.squared_norm(landscape.measure)


def unit_rows(X: Any, normalize: bool) -> Any:
    """Return the rows scaled to norm one; they must have it already unless `normalize`."""
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
        if distance.max() <= ROUNDINGS * np.finfo(rows.dtype).eps:
            return X
    return X.prepared(directions) if hasattr(X, "prepared") else rows.map_in_place(directions)


def directions(vectors: Any) -> Any:
    """Rows over their norms, whose squares never overflow."""
    if sparse.issparse(vectors):
        scaled = vectors.copy()
        scaled.data /= np.repeat(row_norms(vectors), np.diff(vectors.indptr)).astype(scaled.dtype)
        return scaled
    xp = namespace(vectors)
    scaled = vectors / xp.max(xp.abs(vectors), axis=1, keepdims=True)
    if xp is not np:
        return scaled / xp.sqrt(xp.sum(scaled * scaled, axis=1, keepdims=True))
    scaled /= np.sqrt(np.einsum("ij,ij->i", scaled, scaled))[:, None]
    return scaled
