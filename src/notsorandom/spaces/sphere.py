"""Kernels on the unit sphere, with harmonics, whole degrees or zonal features."""

from __future__ import annotations

from typing import Any

import numpy as np

from notsorandom._utils.parameters import check_choice
from notsorandom.data.rows import Rows
from notsorandom.spaces.base import ResolvedSpace, Space
from notsorandom.spaces.harmonic_sphere import HarmonicSphere
from notsorandom.spaces.spherical import unit_rows
from notsorandom.spaces.zonal_sphere import ZonalSphere

# Largest number of columns for which basis="auto" uses harmonics. In more dimensions there are too
# many of them, and a zonal feature, whose pole is optimised, is more accurate.
MAX_HARMONIC_FEATURES = 4


class Sphere(Space):
    r"""The unit sphere of R^d, for directions, embeddings and other data of norm one.

    Parameters
    ----------
    basis : {"auto", "harmonic", "zonal", "degree"}, default="auto"
        ``"harmonic"``: a frequency is the index of a spherical harmonic, as in the paper, and the
        search evaluates all of them. ``"zonal"``: a frequency is a pole and a degree, the feature
        is a polynomial in the cosine to the pole, and the search follows a gradient. ``"degree"``:
        all harmonics of a degree are used together, so that the kernel is a function of
        :math:`\langle x, z\rangle` alone. They count as that many features, which is a large number
        in high dimensions. ``"auto"`` is harmonic up to four columns and zonal beyond.
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
        ZonalSphere(self.max_degree, self.max_harmonics, self.normalize).check()

    def prepare(self, X: Any) -> Any:
        """Return the samples, normalised or checked to have norm one."""
        return unit_rows(X, self.normalize)

    def resolve(self, rows: Rows, rng: np.random.Generator) -> ResolvedSpace:
        """Return the space of the chosen basis."""
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
