"""Plots of fitted models, in the style of scikit-learn's displays."""

from notsorandom.display.calibration import CalibrationDisplay
from notsorandom.display.figures import import_pyplot
from notsorandom.display.game import GameDisplay
from notsorandom.display.globe import GlobeDisplay
from notsorandom.display.history import HistoryDisplay
from notsorandom.display.importances import (
    ImportancesDisplay,
    column_contributions,
    column_importances,
)
from notsorandom.display.score_curve import ScoreCurveDisplay
from notsorandom.display.spectrum import SpectrumDisplay
from notsorandom.display.tuning import TuningDisplay

__all__ = [
    "CalibrationDisplay",
    "GameDisplay",
    "GlobeDisplay",
    "HistoryDisplay",
    "ImportancesDisplay",
    "ScoreCurveDisplay",
    "SpectrumDisplay",
    "TuningDisplay",
    "column_contributions",
    "column_importances",
    "import_pyplot",
]
