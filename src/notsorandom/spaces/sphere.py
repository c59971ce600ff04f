"""Kernels on the unit sphere: the choice between harmonics, whole degrees and zonal features."""

from __future__ import annotations

from typing import Any

import numpy as np

from notsorandom._utils.parameters import check_choice, check_flag, check_number
from notsorandom.data.rows import Array, Rows
from notsorandom.spaces.base import ResolvedSpace, Space
from notsorandom.spaces.harmonic_sphere import HarmonicSphere
from notsorandom.spaces.spherical import unit_rows
from notsorandom.spaces.zonal_sphere import ZonalSphere

# Up to this many features, a few coordinate-bound harmonics say enough; beyond, a feature with a
# pole that can turn anywhere says more.
MOST_HARMONIC_FEATURES = 4


class Sphere(Space):
    r"""The unit sphere of R^d, for directions, embeddings and whatever else has length one.

    Parameters
    ----------
    basis : {"auto", "harmonic", "zonal", "degree"}, default="auto"
        ``"harmonic"``: a frequency is the index of a spherical harmonic, as in the paper, and the
        search goes through all of them. ``"zonal"``: a frequency is a pole and a degree, the
        feature a polynomial in the cosine to the pole, and the search climbs a gradient.
        ``"degree"``: a degree's harmonics all come together, so that the kernel is a function of
        :math:`\langle x, z\rangle` alone; they count as so many features, which is much in many
        dimensions. ``"auto"`` is harmonic up to four columns and zonal beyond.
    max_degree : int or "auto", default="auto"
        Degrees beyond are not considered. ``"auto"`` takes as many as `max_harmonics` allows, and
        in the zonal basis at least three.
    max_harmonics : int, default=1000
        At most this many harmonics are considered; in the zonal basis it settles ``"auto"``.
    normalize : bool, default=False
        Scale samples to norm one. Otherwise they must have it, to within 1e-3.
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
        check_number("max_degree", self.max_degree, least=1, integer=True, or_else=["auto"])
        check_number("max_harmonics", self.max_harmonics, least=1, integer=True)
        check_flag("normalize", self.normalize)

    def prepare(self, X: Array) -> Array:
        """Return the samples, normalised or checked to be of norm one."""
        return unit_rows(X, self.normalize)

    def resolve(self, rows: Rows, rng: np.random.Generator) -> ResolvedSpace:
        """Return the space of the basis chosen, measured on the data."""
        basis = self.basis
        if basis == "auto":
            basis = "harmonic" if rows.n_features <= MOST_HARMONIC_FEATURES else "zonal"
        settings = {
            "max_degree": self.max_degree,
            "max_harmonics": self.max_harmonics,
            "normalize": self.normalize,
        }
        if basis == "zonal":
            return ZonalSphere(**settings).resolve(rows, rng)
        return HarmonicSphere(**settings, whole_degrees=basis == "degree").resolve(rows, rng)

    def n_columns(self, phase: str) -> int:
        """Real features a frequency."""
        return 1
