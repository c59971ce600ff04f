"""A page about one fitted model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from notsorandom.game import LOSSES
from notsorandom.inspection import (
    accuracy_by_size,
    bounds_by_round,
    heaviest_as_images,
    moments,
    predict,
    spread_out,
)
from notsorandom.report.page import Section, write_page
from notsorandom.report.sections import (
    confusion_section,
    facts_section,
    game_section,
    history_section,
    images_section,
    path_section,
    spectrum_section,
)
from notsorandom.rows import Array, Rows

# Rounds of a game that its slider stops at.
N_FRAMES = 16
# Classes whose confusion still fits on a page.
MOST_CLASSES = 30
N_IMAGES = 24


def write_report(
    estimator: Any,
    path: str | Path,
    X: Any,
    y: Any,
    *,
    X_test: Any = None,
    y_test: Any = None,
    image_shape: Sequence[int] | None = None,
    title: str | None = None,
) -> Path:
    """Write a page about a fitted estimator; see :meth:`notsorandom.FourierFeatures.report`."""
    rows, labels = estimator._training_data(X, y)
    if (X_test is None) != (y_test is None):
        raise ValueError("Give both X_test and y_test, or neither.")
    X, y = rows.array, np.asarray(y)
    tested = X_test is not None
    where = "test" if tested else "training"
    X_seen, y_seen = (np.asarray(X_test, dtype=X.dtype), np.asarray(y_test)) if tested else (X, y)
    kernel, history = estimator.kernel_, estimator.history_
    loss = LOSSES[estimator.loss](float(estimator.C))
    seen = Rows(kernel.space.prepare(X_seen))
    predictions = estimator.classes_[predict(kernel, rows, labels, seen, loss)]
    sections: list[Section] = [
        facts_section(
            "The model",
            [
                (f"{where} accuracy", f"{np.mean(predictions == y_seen):.2%}"),
                ("features", f"{kernel.n_components:,}"),
                ("frequencies", f"{len(kernel.weights):,}"),
                ("training samples", f"{len(rows):,}"),
                ("input columns", f"{rows.n_features:,}"),
                ("classes", f"{len(estimator.classes_):,}"),
                ("space", type(kernel.space).__name__),
                ("loss, C", f"{estimator.loss}, {estimator.C:g}"),
                ("smoothing", f"{estimator.smoothing_:g}"),
                ("seconds of play", f"{history['seconds'][-1]:.2f}"),
            ],
        )
    ]
    if is_plane_game(estimator, X):
        rounds = spread_out(np.arange(1, len(history["plays"]) + 1), N_FRAMES).tolist()
        codes = np.searchsorted(estimator.classes_, y)
        sections.append(game_section(X, codes, moments(estimator, X, y, rounds)))
    sections.append(spectrum_section(kernel))
    if image_shape is not None:
        images = heaviest_as_images(kernel, image_shape, N_IMAGES)
        names = [f"{number}." for number in range(1, len(images) + 1)]
        note = "Red and blue pixels turn the wave opposite ways; each image has its own scale."
        sections.append(images_section("The heaviest frequencies, as images", images, names, note))
    bounds = bounds_by_round(estimator, X, y)
    sections.append(history_section(history, bounds))
    sizes, accuracies = accuracy_by_size(estimator, X, y, X_seen, y_seen)
    caption = f"{where} accuracy of the same SVM on the first features learned, and on random ones"
    sections.append(path_section(sizes, accuracies, caption))
    if len(estimator.classes_) <= MOST_CLASSES:
        name = f"Confusion on the {where} samples"
        sections.append(confusion_section(y_seen, predictions, estimator.classes_, name))
    subtitle = f"{type(estimator).__name__}, {kernel.n_components} features"
    return write_page(path, title or "What was learned", subtitle, sections)


def is_plane_game(estimator: Any, X: Array) -> bool:
    """Whether the game can be replayed, and drawn."""
    return bool(
        X.shape[1] == 2
        and len(estimator.classes_) == 2
        and estimator.kernel_.space.is_flat
        and "plays" in estimator.history_
    )
