"""Pictures of what was learned, in the style of scikit-learn's displays."""

from notsorandom.display.drawing import import_pyplot
from notsorandom.display.game import GameDisplay
from notsorandom.display.globe import GlobeDisplay
from notsorandom.display.history import HistoryDisplay
from notsorandom.display.path import PathDisplay
from notsorandom.display.spectrum import SpectrumDisplay

__all__ = [
    "GameDisplay",
    "GlobeDisplay",
    "HistoryDisplay",
    "PathDisplay",
    "SpectrumDisplay",
    "import_pyplot",
]
