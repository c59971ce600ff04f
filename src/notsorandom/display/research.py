"""Sections of a report for those who know the method: the game, its bounds and its settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from notsorandom.data.rows import dense
from notsorandom.display.figures import new_axis
from notsorandom.display.history import HistoryDisplay
from notsorandom.display.inspection import (
    bounds_by_round,
    describe_spectrum,
    geometric_subset,
    is_replayable,
    take_snapshots,
)
from notsorandom.display.page import facts_section, figures_section, game_section
from notsorandom.display.spectrum import SpectrumDisplay
from notsorandom.display.tuning import TuningDisplay
from notsorandom.game.certificate import Certificate
from notsorandom.game.problem import Problem, codes_from_scores

# Rounds of a game that its slider stops at.
N_FRAMES = 16
N_IMAGES = 24


def research_sections(
    model: Any,
    problem: Problem,
    X: Any,
    y: Any,
    image_shape: Sequence[int] | None,
    certificate: Certificate,
) -> list[str]:
    """Return the sections about the learned kernel, the game and the choice of the settings."""
    sections = [settings_section(model), spectrum_section(model, image_shape)]
    if is_planar_game(model):
        rounds = geometric_subset(np.arange(1, len(model.history_["plays"]) + 1), N_FRAMES)
        snapshots = take_snapshots(model, X, y, rounds.tolist())
        codes = codes_from_scores(problem.targets)
        sections.append(game_section(dense(problem.rows.array), codes, snapshots))
    sections.append(history_section(model, X, y, certificate))
    if model.tuning_ is not None:
        sections.append(tuning_section(model))
    return sections


def settings_section(model: Any) -> str:
    """Return the section with the settings that were given or chosen."""
    kernel = model.kernel_
    facts = [
        ("frequencies", f"{len(kernel.weights):,}"),
        ("space", type(kernel.space).__name__),
        ("loss", model.loss),
        ("C", f"{model.C_:.4g}"),
        ("smoothing", f"{model.smoothing_:g}"),
        ("seconds of learning", f"{model.history_['seconds'][-1]:.2f}"),
    ]
    if model.spectrum_ is not None:
        facts.insert(-1, ("search spectrum", model.spectrum_))
    if hasattr(model, "temperature_"):
        facts.insert(-1, ("temperature", f"{model.temperature_:.4g}"))
    return facts_section("Settings", facts)


def is_planar_game(model: Any) -> bool:
    """Whether the game can be replayed and drawn as images."""
    return (
        model.n_features_in_ == 2
        and len(getattr(model, "classes_", ())) == 2
        and model.kernel_.space.is_vector_space
        and is_replayable(model)
    )


def spectrum_section(model: Any, image_shape: Sequence[int] | None) -> str:
    """Return the section with the weights of the frequencies."""
    display = SpectrumDisplay.from_estimator(model, ax=new_axis())
    figures = [("Weight of each frequency.", display.figure_)]
    if image_shape is not None:
        display = SpectrumDisplay.from_estimator(
            model, image_shape=image_shape, n_images=N_IMAGES, ax=new_axis()
        )
        caption = (
            "The frequencies with the largest weights as images, each with its own scale. Red and "
            "blue pixels have opposite signs."
        )
        figures.append((caption, display.figure_))
    return figures_section("Spectrum of the kernel", figures, describe_spectrum(model.kernel_))


def history_section(model: Any, X: Any, y: Any, certificate: Certificate) -> str:
    """Return the section about the course of the game."""
    axes = [new_axis(), new_axis()]
    HistoryDisplay(model.history_, bounds_by_round(model, X, y)).plot(axes)
    captions = (
        "Highest potential, and shares of the dual variables at their bounds, if the loss has any.",
        f"Bounds on the value of the game. Relative gap of the certificate: "
        f"{100 * certificate.relative_gap:.1f} %.",
    )
    figures = [(caption, axis.figure) for caption, axis in zip(captions, axes, strict=True)]
    return figures_section("Course of the game", figures)


def tuning_section(model: Any) -> str:
    """Return the section about the trials that chose parameters."""
    display = TuningDisplay(model.tuning_)
    axes = [new_axis() for _ in display.parameters]
    display.plot(axes)
    captions = [f"Lowest held-out loss for each {name}." for name in display.parameters]
    figures = [(caption, axis.figure) for caption, axis in zip(captions, axes, strict=True)]
    note = (
        f"Short games on a part of the training rows, {len(model.tuning_['loss'])} settings "
        f"compared on the others. Chosen: C = {model.C_:.4g}, smoothing {model.smoothing_:.4g}"
    )
    note += "." if model.spectrum_ is None else f", {model.spectrum_} spectrum."
    return figures_section("Choice of the parameters", figures, note)
