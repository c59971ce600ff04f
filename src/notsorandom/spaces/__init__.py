"""Where frequencies live: the potential, its gradient, the features, where to start looking."""

from typing import Any

from notsorandom.spaces.euclidean import Euclidean
from notsorandom.spaces.harmonic_sphere import HarmonicSphere
from notsorandom.spaces.landscape import Landscape, Points, mean_in_groups
from notsorandom.spaces.sphere import Sphere
from notsorandom.spaces.supremum import Supremum
from notsorandom.spaces.zonal_sphere import ZonalSphere

SPACES: dict[str, Any] = {"euclidean": Euclidean, "sphere": Sphere}

__all__ = [
    "SPACES",
    "Euclidean",
    "HarmonicSphere",
    "Landscape",
    "Points",
    "Sphere",
    "Supremum",
    "ZonalSphere",
    "mean_in_groups",
]
