"""Where frequencies live: the potential, its gradient, the features, where to start looking."""

from typing import Any

from notsorandom.spaces.euclidean import Euclidean
from notsorandom.spaces.landscape import Landscape, Points

SPACES: dict[str, Any] = {"euclidean": Euclidean}

__all__ = ["SPACES", "Euclidean", "Landscape", "Points"]
