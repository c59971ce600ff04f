"""Pictures of what was learned, in the style of scikit-learn's displays."""

from notsorandom.plots.drawing import import_pyplot
from notsorandom.plots.game import GameDisplay
from notsorandom.plots.globe import GlobeDisplay
from notsorandom.plots.history import HistoryDisplay
from notsorandom.plots.path import PathDisplay
from notsorandom.plots.spectrum import SpectrumDisplay

__all__ = [
    "GameDisplay",
    "GlobeDisplay",
    "HistoryDisplay",
    "PathDisplay",
    "SpectrumDisplay",
    "import_pyplot",
]
