"""A page about one fitted model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import column_or_1d

from notsorandom._utils.files import checked_path
from notsorandom.data.array_api import on_host
from notsorandom.data.rows import Array, Rows, dense
from notsorandom.display.inspection import (
    accuracy_by_size,
    bounds_by_round,
    fit_machines,
    heaviest_as_images,
    learned_reals,
    moments,
    quality_of,
    spread_out,
)
from notsorandom.display.report.page import ENDINGS, Section, write_page
from notsorandom.display.report.sections import (
    confusion_section,
    facts_section,
    game_section,
    history_section,
    images_section,
    path_section,
    spectrum_section,
)
from notsorandom.game import Player
from notsorandom.game.scoring import predicted_codes
from notsorandom.linear.newton import decide

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
    path = checked_path(path, *ENDINGS)
    if title is not None and not isinstance(title, str):
        raise TypeError(f"title={title!r} is not allowed: it must be a str.")
    rows, player = estimator._played_data(X, y)
    kernel, history = estimator.kernel_, estimator.history_
    images = None
    if image_shape is not None:
        images = heaviest_as_images(kernel, image_shape, N_IMAGES)
    if (X_test is None) != (y_test is None):
        raise ValueError("Give both X_test and y_test, or neither.")
    where = "training" if X_test is None else "test"
    X_seen, y_seen = (X, on_host(y)) if X_test is None else (X_test, on_host(y_test))
    sizes, accuracies = accuracy_by_size(estimator, X, y, X_seen, y_seen)
    of_reals = learned_reals(estimator)
    quality = "R^2" if of_reals else "accuracy"
    training = estimator._training_data(X, y)
    scores = scores_of(estimator, training.rows, training.player, X_seen)
    reached = quality_of(
        estimator, scores, np.asarray(y_seen) if of_reals else column_or_1d(y_seen)
    )
    learned_from = (
        ("outputs", f"{estimator.n_outputs_:,}")
        if of_reals
        else ("classes", f"{len(estimator.classes_):,}")
    )
    sections: list[Section] = [
        facts_section(
            "The model",
            [
                (f"{where} {quality}", f"{reached:.2%}"),
                ("features", f"{kernel.n_components:,}"),
                ("frequencies", f"{len(kernel.weights):,}"),
                ("training samples", f"{estimator.n_samples_fit_:,}"),
                ("input columns", f"{rows.n_features:,}"),
                learned_from,
                ("space", type(kernel.space).__name__),
                ("loss, C", f"{estimator.loss}, {estimator.C:g}"),
                ("smoothing", f"{estimator.smoothing_:g}"),
                ("seconds of play", f"{history['seconds'][-1]:.2f}"),
            ],
        )
    ]
    if is_plane_game(estimator, rows):
        rounds = spread_out(np.arange(1, len(history["plays"]) + 1), N_FRAMES).tolist()
        codes = predicted_codes(player.targets)
        sections.append(game_section(dense(rows.array), codes, moments(estimator, X, y, rounds)))
    sections.append(spectrum_section(kernel))
    if images is not None:
        names = [f"{number}." for number in range(1, len(images) + 1)]
        note = "Red and blue pixels turn the wave opposite ways; each image has its own scale."
        sections.append(images_section("The heaviest frequencies, as images", images, names, note))
    sections.append(history_section(history, bounds_by_round(estimator, X, y)))
    caption = (
        f"{where} {quality} of one linear model on the first features learned, and on random ones"
    )
    sections.append(path_section(sizes, accuracies, caption, quality[0].upper() + quality[1:]))
    if not of_reals and len(estimator.classes_) <= MOST_CLASSES:
        predictions = estimator.classes_[predicted_codes(scores)]
        name = f"Confusion on the {where} samples"
        sections.append(
            confusion_section(column_or_1d(y_seen), predictions, estimator.classes_, name)
        )
    subtitle = f"{type(estimator).__name__}, {kernel.n_components} features"
    return write_page(path, title or "What was learned", subtitle, sections)


def scores_of(estimator: Any, rows: Rows, player: Player, X: Any) -> Array:
    """Scores of a predictor for samples, or of a linear model on a transformer's features."""
    if hasattr(estimator, "coef_"):
        return estimator._scores(X)
    coef, intercept = fit_machines(estimator.kernel_.features_of(rows), player)
    return on_host(decide(estimator.transform(X), coef, intercept))


def is_plane_game(estimator: Any, rows: Rows) -> bool:
    """Whether the game can be replayed, and drawn."""
    return bool(
        rows.n_features == 2
        and not learned_reals(estimator)
        and len(estimator.classes_) == 2
        and estimator.kernel_.space.is_flat
        and "plays" in estimator.history_
    )
