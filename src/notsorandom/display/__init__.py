"""Plots of fitted models, in the style of scikit-learn's displays."""

from notsorandom.display.calibration import CalibrationDisplay
from notsorandom.display.coverage import CoverageDisplay
from notsorandom.display.curves import HistoryDisplay, ScoreCurveDisplay, TuningDisplay
from notsorandom.display.figures import import_pyplot
from notsorandom.display.images import GameDisplay, GlobeDisplay
from notsorandom.display.importances import (
    ImportancesDisplay,
    column_contributions,
    column_importances,
)
from notsorandom.display.spectrum import SpectrumDisplay

__all__ = [
    "CalibrationDisplay",
    "CoverageDisplay",
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
