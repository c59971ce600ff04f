"""The sections of a report about a fitted model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import confusion_matrix, precision_recall_curve, roc_curve
from sklearn.pipeline import Pipeline

from notsorandom._utils.progress import progress_bar
from notsorandom.data.rows import Rows, dense
from notsorandom.display.calibration import CalibrationDisplay, log_loss
from notsorandom.display.curves import HistoryDisplay, TuningDisplay
from notsorandom.display.figures import GREY, new_axis
from notsorandom.display.importances import (
    N_COLUMNS,
    ImportancesDisplay,
    column_importances,
    linear_coefficients,
)
from notsorandom.display.inspection import (
    N_BOUNDS,
    bounds_by_round,
    describe_spectrum,
    describe_waves,
    geometric_subset,
    is_replayable,
    take_snapshots,
)
from notsorandom.display.page import (
    bars_section,
    facts_section,
    figures_section,
    game_section,
    matrix_section,
)
from notsorandom.display.results import (
    Predictions,
    format_number,
    format_share,
    rank_scores,
)
from notsorandom.display.spectrum import SpectrumDisplay
from notsorandom.estimators.classifier import log_probabilities
from notsorandom.game.problem import codes_from_scores

# Larger confusion matrices can't be read: the most frequent mistakes are listed instead.
MAX_MATRIX_CLASSES, N_MISTAKES = 20, 12
# Fewest rows for each point of a calibration curve.
ROWS_PER_BIN = 10
# Rounds of a game that its slider stops at, and frequencies that are drawn as images.
N_FRAMES, N_IMAGES = 16, 24


def left_out(model: Any) -> dict[str, str]:
    """Return the columns that a pipeline for tables leaves out, and why."""
    return getattr(model[0], "left_out_", {}) if isinstance(model, Pipeline) else {}


def importances_section(model: Any, X: Any, image_shape: Sequence[int] | None) -> str:
    """Return the section about the columns that the model depends on."""
    title = "Which columns matter"
    note = "Importance: how strongly the prediction reacts to a small change in a {}, as a share."
    if image_shape is not None:
        axis = new_axis(3.4)
        ImportancesDisplay.from_estimator(model, X, image_shape=image_shape, ax=axis)
        figures = [("Darker pixels matter more.", axis.figure)]
        return figures_section(title.replace("columns", "pixels"), figures, note.format("pixel"))
    shares = list(column_importances(model, X).items())
    n_hidden, reasons = len(shares) - N_COLUMNS, left_out(model)
    caption = f"The {n_hidden:,} other columns have less. " if n_hidden > 0 else ""
    if reasons:
        omitted = ", ".join(f"{name} ({reason})" for name, reason in reasons.items())
        caption += f"Left out: {omitted}."
    return bars_section(title, shares[:N_COLUMNS], note.format("column"), caption)


def mistakes_section(predictions: Predictions) -> str:
    """Return the section with the confusion matrix, or with the most frequent mistakes."""
    classes = predictions.model.classes_
    names = [str(name) for name in classes.tolist()]
    counts = confusion_matrix(predictions.targets, predictions.predicted, labels=classes)
    if len(classes) <= MAX_MATRIX_CLASSES:
        title = f"Confusion matrix of the {predictions.part} rows"
        note = "Numbers of rows. Recall: share of a class that is found. Precision: share of the "
        note += "predictions of a class that are right."
        return matrix_section(title, names, counts, note)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    np.fill_diagonal(shares, 0)
    order = np.argsort(-shares, axis=None, kind="stable")[:N_MISTAKES]
    pairs = zip(*np.unravel_index(order, shares.shape), strict=True)
    title = f"Most frequent mistakes in the {predictions.part} rows"
    bars = [(f"{names[k]} taken for {names[j]}", shares[k, j]) for k, j in pairs if shares[k, j]]
    note = "As shares of the rows of the actual class." if bars else "There are none."
    return bars_section(title, bars, note)


def ranking_section(predictions: Predictions) -> str:
    """Return the section with ROC and precision-recall curves; empty if there is one class."""
    model, scores = predictions.model, predictions.scores
    classes = model.classes_[-scores.shape[1] :]  # of two, the second
    if len(classes) > 1 and hasattr(model, "temperature_"):
        scores = log_probabilities(scores, model.temperature_)
    hits = predictions.targets[:, None] == classes  # (n_rows, n_columns)
    values = {name: value for name, value in rank_scores(hits, scores).items() if value is not None}
    if not values:
        return ""
    axes, figures = (new_axis(3.4), new_axis(3.4)), []
    if len(classes) <= MAX_MATRIX_CLASSES:
        for k, label in enumerate(classes.tolist()):
            if hits[:, k].any() and not hits[:, k].all():
                false, true, _ = roc_curve(hits[:, k], scores[:, k])
                precision, recall, _ = precision_recall_curve(hits[:, k], scores[:, k])
                axes[0].plot(false, true, color=f"C{k}", label=str(label))
                axes[1].plot(recall, precision, color=f"C{k}", drawstyle="steps-post")
        axes[0].plot([0, 1], [0, 1], color=GREY, linewidth=0.8)
        axes[0].set(xlabel="false positive rate", ylabel="true positive rate")
        axes[1].set(xlabel="recall", ylabel="precision", ylim=(0, 1.02))
        if len(classes) > 1:
            axes[0].legend(fontsize="small")
        figures = [("ROC curve.", axes[0].figure), ("Precision-recall curve.", axes[1].figure)]
    which = f'"{classes[0]}"' if len(classes) == 1 else "each class against the others"
    shown = ", ".join(f"{name} {format_number(value)}" for name, value in values.items())
    note = f"Rows by their score of {which}, whatever the threshold: {shown}."
    return figures_section(f"Ranking of the {predictions.part} rows", figures, note)


def calibration_section(predictions: Predictions, n_bins: int) -> str:
    """Return the section about the probabilities."""
    classes, y = predictions.model.classes_, predictions.targets
    logarithms = log_probabilities(predictions.scores, predictions.model.temperature_)
    axes = [new_axis(3.4), new_axis()]
    display = CalibrationDisplay.from_log_probabilities(logarithms, y, classes, n_bins).plot(axes)
    captions = (
        "Observed share by predicted probability. On the diagonal, both are equal.",
        "Number of rows by probability.",
    )
    note = (
        f"Probabilities differ from the observed shares by {format_share(display.expected_error)} "
        f"on the average (expected calibration error). Log loss: "
        f"{format_number(log_loss(logarithms, y, classes))}."
    )
    figures = [(caption, axis.figure) for caption, axis in zip(captions, axes, strict=True)]
    return figures_section(f"Probabilities of the {predictions.part} rows", figures, note)


def kernel_section(model: Any, rows: Rows, curve: Any) -> str:
    """Return the section about the learned kernel in words, and the score by number of features."""
    n_waves, waves = model.kernel_.n_waves, describe_waves(model.kernel_, rows)
    text = f"The model adds up {n_waves:,} learned features. {waves}"
    caption = "The same linear model on the first learned features, and on random features"
    if model.uses_linear_part_:
        text = f"The model is a linear model of the columns plus {n_waves:,} learned features. "
        text += waves
        caption += ", all beside the linear part"
    if len(rows) < model.n_samples_fit_:
        caption += f", fitted to {len(rows):,} rows"
    figures = [] if curve is None else [(f"{caption}.", curve)]
    return figures_section("Learned features", figures, text)


def linear_section(model: Any, X: Any) -> str:
    """Return the section with the largest coefficients of the linear part."""
    found = linear_coefficients(model, X)
    facts = [(name, f"{value:+.4g}") for name, value in list(found.items())[:N_COLUMNS]]
    value = "decision value" if is_classifier(model) else "prediction"
    note = f"Largest coefficients: change of the {value} per standard deviation of a column."
    return facts_section("Linear part", facts, note)


def game_sections(model: Any, X: Any, y: Any, verbose: int) -> list[str]:
    """Return the sections about the game that need the training data, and take long."""
    sections = []
    if is_planar_game(model):
        problem = model._game_problem(X, y)
        rounds = geometric_subset(np.arange(1, len(model.history_["plays"]) + 1), N_FRAMES)
        snapshots = take_snapshots(model, X, y, rounds.tolist())
        codes = codes_from_scores(problem.targets)
        sections.append(game_section(dense(problem.rows.array), codes, snapshots))
    if model.uses_linear_part_:
        note = "Certificates and bounds are for models without a linear part only."
        return [*sections, history_section(model, note)]
    with progress_bar(N_BOUNDS + 1, "bounds", verbose) as update:
        certificate = model.certificate(X, y)
        update(1)
        bounds = bounds_by_round(model, X, y, lambda n_done: update(n_done + 1))
    return [*sections, history_section(model, certificate.sentence, bounds)]


def settings_section(model: Any) -> str:
    """Return the section with the settings that were given or chosen."""
    kernel = model.kernel_
    facts = [
        ("frequencies", f"{len(kernel.weights):,}"),
        ("space", type(kernel.space).__name__),
        ("loss", f"quantile {model.quantile:g}" if model.loss == "quantile" else str(model.loss)),
        ("C", f"{model.C_:.4g}"),
        ("smoothing", f"{model.smoothing_:g}"),
        ("linear part", "yes" if model.uses_linear_part_ else "no"),
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


def history_section(model: Any, note: str = "", bounds: Any = None) -> str:
    """Return the section about the course of the game."""
    captions = [
        "Highest potential, and shares of the dual variables at their bounds, if the loss has any."
    ]
    if bounds is not None:
        captions.append("Bounds on the value of the game.")
    axes = [new_axis() for _ in captions]
    HistoryDisplay(model.history_, bounds).plot(axes)
    figures = [(caption, axis.figure) for caption, axis in zip(captions, axes, strict=True)]
    return figures_section("Course of the game", figures, note)


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
    note += "" if model.spectrum_ is None else f", {model.spectrum_} spectrum"
    note += ", with a linear part." if model.uses_linear_part_ else "."
    return figures_section("Choice of the parameters", figures, note)
