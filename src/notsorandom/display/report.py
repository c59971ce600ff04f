"""Report of a fitted model: one HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import confusion_matrix
from sklearn.pipeline import Pipeline

from notsorandom._utils.files import check_output_path
from notsorandom.data.array_api import to_host
from notsorandom.data.rows import Rows, dense
from notsorandom.display.calibration import N_BINS, CalibrationDisplay, log_loss
from notsorandom.display.curves import HistoryDisplay, ScoreCurveDisplay, TuningDisplay
from notsorandom.display.figures import new_axis
from notsorandom.display.importances import (
    N_COLUMNS,
    ImportancesDisplay,
    column_importances,
    linear_coefficients,
)
from notsorandom.display.inspection import (
    bounds_by_round,
    describe_spectrum,
    describe_waves,
    geometric_subset,
    is_replayable,
    take_snapshots,
)
from notsorandom.display.page import (
    PAGE_SUFFIXES,
    bars_section,
    facts_section,
    figures_section,
    fold,
    game_section,
    matrix_section,
    write_page,
)
from notsorandom.display.regression import coverage_section, find_intervals, predictions_section
from notsorandom.display.results import (
    Predictions,
    format_number,
    format_share,
    name_target,
    predict_scores,
)
from notsorandom.display.spectrum import SpectrumDisplay
from notsorandom.estimators.base import FourierEstimator
from notsorandom.estimators.classifier import log_probabilities
from notsorandom.game.certificate import Certificate
from notsorandom.game.problem import Problem, codes_from_scores

# Larger confusion matrices can't be read: the most frequent mistakes are listed instead.
MAX_MATRIX_CLASSES, N_MISTAKES = 20, 12
# Fewest rows for each point of a calibration curve.
ROWS_PER_BIN = 10
# Distance between the means of X and of the training samples, in units of the median distance
# between samples.
MAX_MEAN_DISTANCE = 0.1
# Rounds of a game that its slider stops at, and frequencies that are drawn as images.
N_FRAMES, N_IMAGES = 16, 24


def report(
    model: Any,
    X: Any,
    y: Any,
    path: str | Path,
    *,
    X_test: Any = None,
    y_test: Any = None,
    image_shape: Sequence[int] | None = None,
    title: str | None = None,
) -> Path:
    """Write an HTML page about a fitted model, in one file that needs no network.

    The page shows the accuracy or R^2 and the score of guessing, the columns that matter, the
    confusion matrix or predicted against actual values, a calibration curve if the model has
    probabilities, intervals and their coverage if it has some, the score by number of features, and
    the certificate in one sentence, or the largest coefficients of a linear part, which no
    certificate is about. Behind a fold are the settings, the spectrum, the course of the game with
    bounds on its value, and what trials found when they chose parameters; for two columns and two
    classes also a slider through the rounds of the game.

    Parameters
    ----------
    model : FourierFeatures, FourierClassifier, FourierRegressor, or a Pipeline that ends in one
        Fitted.
    X, y : array-likes
        The training data, as the pipeline got it. The target is called by the name of a pandas `y`.
    path : str or Path
        The file to write; its name must end in ``.html``.
    X_test, y_test : array-likes, optional
        Data to score on; by default the training data.
    image_shape : (height, width) or (height, width, n_channels), optional
        If the columns of `X` are pixels: shape of the images. Frequencies are shown as images.
    title : str, optional
        Title of the page.

    Returns
    -------
    Path
        The path of the page.
    """
    path = check_output_path(path, *PAGE_SUFFIXES)
    if title is not None and not isinstance(title, str):
        raise TypeError(f"title={title!r} is not allowed: it must be a str.")
    if (X_test is None) != (y_test is None):
        raise ValueError("Only one of X_test and y_test was given: give both or neither.")
    whole, X_given = model, X
    if isinstance(model, Pipeline):
        steps, model = model[:-1], model[-1]
        X = steps.transform(X)
        X_test = X_test if X_test is None else steps.transform(X_test)
    if not isinstance(model, FourierEstimator):
        raise TypeError(
            f"model is a {type(model).__name__}, but it must be a fitted FourierFeatures, "
            "FourierClassifier or FourierRegressor, or a pipeline that ends in one."
        )
    problem = model._game_problem(X, y)
    check_same_samples(model, model._training_problem(X, y).rows)  # with those held out
    X_scored, y_scored = (X, y) if X_test is None else (X_test, y_test)
    predictions = Predictions(
        model,
        predict_scores(model, X, y, X_scored),
        to_host(y_scored),
        "training" if X_test is None else "test",
        name_target(y),
    )
    sections = [facts_section("Result", predictions.facts(), predictions.describe())]
    is_explained = hasattr(model, "coef_") and model.kernel_.space.is_vector_space
    if is_explained:
        sections.append(importances_section(whole, X_given, image_shape))
    if hasattr(model, "classes_"):
        sections.append(mistakes_section(predictions))
    else:
        intervals = find_intervals(predictions, X_scored)
        sections.append(predictions_section(predictions, intervals))
        if intervals:
            sections.append(coverage_section(predictions, intervals))
    n_bins = min(N_BINS, len(predictions.scores) // ROWS_PER_BIN)
    if hasattr(model, "predict_proba") and n_bins > 1:
        sections.append(calibration_section(predictions, n_bins))
    curve = draw_score_curve(predictions, X, y, X_scored)
    certificate = None if model.uses_linear_part_ else model.certificate(X, y)
    sections.append(kernel_section(model, problem.rows, curve, certificate))
    if model.uses_linear_part_ and is_explained and image_shape is None:
        sections.append(linear_section(whole, X_given))
    research = research_sections(model, problem, X, y, image_shape, certificate)
    sections.append(fold("For researchers: the game, its bounds and its settings", research))
    return write_page(path, title or "Learned model", describe_data(whole, predictions), sections)


def check_same_samples(model: Any, rows: Rows) -> None:
    """Raise ValueError if the samples are clearly not the training samples."""
    space = model.kernel_.space
    if space.is_vector_space and len(model.kernel_.frequencies):
        distance = np.linalg.norm(rows.mean() - space.center) / float(space.scale)
        if distance > MAX_MEAN_DISTANCE:
            raise ValueError(
                f"X is not what the model was fitted to: its mean is {distance:.2g} typical "
                "distances away. If the model is the last step of a pipeline, give the whole "
                "pipeline, report(pipeline, X, y, path), or transform X first."
            )


def left_out(model: Any) -> dict[str, str]:
    """Return the columns that a pipeline for tables leaves out, and why."""
    return getattr(model[0], "left_out_", {}) if isinstance(model, Pipeline) else {}


def describe_data(model: Any, predictions: Predictions) -> str:
    """Return a sentence about the target and the data."""
    last, n_left_out = predictions.model, len(left_out(model))
    predicts = "Predicts" if hasattr(last, "coef_") else "A linear model on the features predicts"
    classes = f" ({len(last.classes_):,} classes)" if hasattr(last, "classes_") else ""
    verb = "is" if n_left_out == 1 else "are"
    omitted = f", {n_left_out:,} of which {verb} left out" if n_left_out else ""
    tested = f", tested on {len(predictions.scores):,} others" * (predictions.part == "test")
    return (
        f"{predicts} {predictions.target}{classes} from {model.n_features_in_:,} columns{omitted}. "
        f"Learned from {last.n_samples_fit_:,} rows{tested}."
    )


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
        title, note = (
            f"Confusion matrix of the {predictions.part} rows",
            (
                "Numbers of rows. Recall: share of a class that is found. Precision: share of the "
                "predictions of a class that are right."
            ),
        )
        return matrix_section(title, names, counts, note)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    np.fill_diagonal(shares, 0)
    order = np.argsort(-shares, axis=None, kind="stable")[:N_MISTAKES]
    pairs = zip(*np.unravel_index(order, shares.shape), strict=True)
    title = f"Most frequent mistakes in the {predictions.part} rows"
    bars = [(f"{names[k]} taken for {names[j]}", shares[k, j]) for k, j in pairs if shares[k, j]]
    note = "As shares of the rows of the actual class." if bars else "There are none."
    return bars_section(title, bars, note)


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


def draw_score_curve(predictions: Predictions, X: Any, y: Any, X_scored: Any) -> Any:
    """Return a figure of the score by number of features."""
    axis = new_axis()
    ScoreCurveDisplay.from_estimator(predictions.model, X, y, X_scored, predictions.y, ax=axis)
    axis.set_ylabel(axis.get_ylabel().replace("test", predictions.part))
    return axis.figure


def kernel_section(model: Any, rows: Rows, curve: Any, certificate: Certificate | None) -> str:
    """Return the section about the learned kernel in words, and the score by number of features."""
    n_waves, waves = model.kernel_.n_waves, describe_waves(model.kernel_, rows)
    text = f"The model adds up {n_waves:,} learned features. {waves}"
    caption = "The same linear model on the first learned features, and on random features"
    if certificate is None:
        text = f"The model is a linear model of the columns plus {n_waves:,} learned features. "
        text += f"{waves} Certificates are for models without a linear part only."
        caption += ", all beside the linear part"
    else:
        text += f" {certificate.sentence}"
    caption += "."
    return figures_section("Learned features", [(caption, curve)], text)


def linear_section(model: Any, X: Any) -> str:
    """Return the section with the largest coefficients of the linear part."""
    found = linear_coefficients(model, X)
    facts = [(name, f"{value:+.4g}") for name, value in list(found.items())[:N_COLUMNS]]
    value = "decision value" if is_classifier(model) else "prediction"
    note = f"Largest coefficients: change of the {value} per standard deviation of a column."
    return facts_section("Linear part", facts, note)


def research_sections(
    model: Any,
    problem: Problem,
    X: Any,
    y: Any,
    image_shape: Sequence[int] | None,
    certificate: Certificate | None,
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


def history_section(model: Any, X: Any, y: Any, certificate: Certificate | None) -> str:
    """Return the section about the course of the game."""
    captions = [
        "Highest potential, and shares of the dual variables at their bounds, if the loss has any."
    ]
    bounds = None
    if certificate is not None:
        bounds = bounds_by_round(model, X, y)
        captions.append(
            "Bounds on the value of the game. Relative gap of the certificate: "
            f"{100 * certificate.relative_gap:.1f} %."
        )
    axes = [new_axis() for _ in captions]
    HistoryDisplay(model.history_, bounds).plot(axes)
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
    note += "" if model.spectrum_ is None else f", {model.spectrum_} spectrum"
    note += ", with a linear part." if model.uses_linear_part_ else "."
    return figures_section("Choice of the parameters", figures, note)
