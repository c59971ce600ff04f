"""Spaces of frequencies: the potential and its gradient, the features, starting points."""

from notsorandom.spaces.base import ContinuousSpace, FiniteSpace, ResolvedSpace, Space, Supremum
from notsorandom.spaces.euclidean import Euclidean
from notsorandom.spaces.harmonic_sphere import HarmonicSphere
from notsorandom.spaces.landscape import Landscape, Points
from notsorandom.spaces.sphere import Sphere
from notsorandom.spaces.zonal_sphere import ZonalSphere

# Spaces by the name that users give.
SPACES: dict[str, type[Space]] = {"euclidean": Euclidean, "sphere": Sphere}

__all__ = [
    "SPACES",
    "ContinuousSpace",
    "Euclidean",
    "FiniteSpace",
    "HarmonicSphere",
    "Landscape",
    "Points",
    "ResolvedSpace",
    "Space",
    "Sphere",
    "Supremum",
    "ZonalSphere",
]
