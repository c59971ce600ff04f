"""The sections of a report about a regression: predictions, intervals and their coverage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.metrics import r2_score

from notsorandom.display.coverage import CoverageDisplay, draw_coverages, draw_predictions
from notsorandom.display.figures import new_axis
from notsorandom.display.page import figures_section
from notsorandom.display.results import Predictions, format_number

# Outputs that are drawn, and coverages of which the first that the held-out rows allow is drawn.
MAX_OUTPUTS, INTERVALS = 4, (0.9, 0.8, 0.5)


def find_intervals(predictions: Predictions, X: Any) -> list[CoverageDisplay]:
    """Return the intervals of each output; an empty list if the model has none."""
    scores: Any = getattr(predictions.model, "held_out_scores_", None)
    possible = [each for each in INTERVALS if scores and each <= scores.max_coverage]
    if not possible:
        return []
    found = CoverageDisplay.of_outputs(predictions.model, X, predictions.targets, possible[0])
    return found[:MAX_OUTPUTS]


def name_outputs(predictions: Predictions) -> list[str]:
    """Return the names of the outputs of a regression."""
    names, n_outputs = predictions.target.split(", "), predictions.targets.shape[1]
    return names if len(names) == n_outputs else [f"output {k}" for k in range(n_outputs)]


def predictions_section(predictions: Predictions, intervals: Sequence[CoverageDisplay]) -> str:
    """Return the section with predicted against actual values, and their intervals."""
    predicted, actual = predictions.scores, predictions.targets
    figures = []
    for output, name in enumerate(name_outputs(predictions)[:MAX_OUTPUTS]):
        x, y = predicted[:, output], actual[:, output]
        axis = new_axis(3.4)
        if intervals:
            intervals[output].plot_intervals(axis)
        else:
            draw_predictions(axis, x, y)
        error, score = format_number(np.abs(x - y).mean()), format_number(r2_score(y, x))
        caption = f"{name}: R^2 {score}, mean absolute error {error}."
        figures.append((caption if actual.shape[1] > 1 else "", axis.figure))
    title = f"Predicted and actual values of the {predictions.part} rows"
    note = "On the line, both are equal."
    if intervals:
        note += f" Grey: intervals for {100 * intervals[0].coverage:g} % of new rows."
    return figures_section(title, figures, note)


def coverage_section(predictions: Predictions, intervals: Sequence[CoverageDisplay]) -> str:
    """Return the section about the shares of rows within their intervals."""
    axis = new_axis(3.4)
    draw_coverages(axis, intervals, name_outputs(predictions))
    display = intervals[0]
    number = list(display.coverages).index(display.coverage)
    widths = ", ".join(format_number(each.sizes[number]) for each in intervals)
    note = (
        f"Share of rows within their intervals by the share asked for: on the dotted line, both "
        f"are equal. Mean width of {100 * display.coverage:g} % intervals: {widths}."
    )
    if predictions.part == "training":
        note += " The model learned from these rows: of new ones, fewer are within."
    return figures_section(f"Coverage of the {predictions.part} rows", [("", axis.figure)], note)
