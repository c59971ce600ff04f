"""Where frequencies live: the potential, its gradient, the features, where to start looking."""

from notsorandom.spaces.euclidean import Euclidean
from notsorandom.spaces.landscape import Landscape, Points

__all__ = ["Euclidean", "Landscape", "Points"]
