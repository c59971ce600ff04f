"""Spaces on the sphere: samples of norm one, and one real feature per frequency."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse

from notsorandom._utils.parameters import check_flag, check_number
from notsorandom.data.array_api import namespace
from notsorandom.data.rows import Array, Column, Rows, row_norms
from notsorandom.spaces.base import ResolvedSpace

# Largest deviation of a norm from 1. That of numbers stored in half precision is smaller.
NORM_TOLERANCE = 1e-3
# Samples whose norms deviate by fewer machine epsilons than this are not rescaled.
ROUNDINGS = 8


class Spherical(ResolvedSpace):
    """A space on the sphere with one real feature per frequency."""

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

    def prepare(self, X: Any) -> Any:
        """Return the samples, normalised or checked to have norm one."""
        return unit_rows(X, self.normalize)

    def phases(self, amplitudes: Array) -> Array:
        """Return zeros: real features have no phase."""
        return np.zeros(amplitudes.shape[-1], dtype=amplitudes.dtype)

    def alignment(self, amplitudes: Array, phases: Array, phase: str) -> Array:
        """Return the amplitudes: there is one part, the feature itself."""
        return amplitudes.transpose(2, 0, 1)

    def bandwidth(self, frequencies: Array) -> float:
        """Return the largest degree considered."""
        return float(self.max_degree)

    def required_sample_size(self, rows: Rows, bandwidth: float) -> float:
        """Return NaN: there is no theorem for the sphere."""
        return math.nan

    def max_potential(self, rows: Rows, measure: Column, mass: Array, phase: str) -> float:
        """Return the potential of a feature that is proportional to the measure."""
        return rows.total_weight * rows.squared_norm(measure)


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
    is_lazy = hasattr(X, "prepared")
    return X.prepared(directions) if is_lazy else rows.map(directions, on_device=True)


def directions(vectors: Any) -> Any:
    """Return the rows divided by their norms, without overflow of squares."""
    if sparse.issparse(vectors):
        scaled, counts = vectors.copy(), np.diff(vectors.indptr)
        scaled.data /= np.repeat(abs(vectors).max(axis=1).toarray().ravel(), counts)
        scaled.data /= np.repeat(row_norms(scaled), counts).astype(scaled.dtype)
        return scaled
    xp = namespace(vectors)
    scaled = vectors / xp.max(xp.abs(vectors), axis=1, keepdims=True)
    if xp is not np:
        return scaled / xp.sqrt(xp.sum(scaled * scaled, axis=1, keepdims=True))
    scaled /= np.sqrt(np.einsum("ij,ij->i", scaled, scaled))[:, None]
    return scaled
