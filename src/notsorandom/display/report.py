"""Report of a fitted model: one HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import column_or_1d

from notsorandom._utils.files import check_output_path
from notsorandom.data.array_api import to_host
from notsorandom.data.rows import Array, Rows, dense
from notsorandom.display.calibration import CalibrationDisplay, log_loss
from notsorandom.display.figures import import_pyplot
from notsorandom.display.history import HistoryDisplay
from notsorandom.display.inspection import (
    bounds_by_round,
    geometric_subset,
    is_replayable,
    score_name,
    score_predictions,
    spectrum_sentence,
    summarize_spectrum,
    take_snapshots,
)
from notsorandom.display.page import (
    SUFFIXES,
    facts_section,
    figures_section,
    game_section,
    write_page,
)
from notsorandom.display.score_curve import ScoreCurveDisplay
from notsorandom.display.spectrum import SpectrumDisplay
from notsorandom.display.tuning import TuningDisplay
from notsorandom.estimators.base import FourierEstimator
from notsorandom.estimators.classifier import log_probabilities
from notsorandom.estimators.training import fit_linear_models
from notsorandom.estimators.validation import read_samples
from notsorandom.game.dual import codes_from_scores

# Rounds of a game that its slider stops at.
N_FRAMES = 16
# Larger confusion matrices can't be read.
MAX_CLASSES = 30
N_IMAGES = 24
# Distance of the mean of X from that at fit, in units of the median distance between samples.
MAX_DISTANCE = 0.1


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

    The page shows the spectrum, the course of the game with bounds on its value, the accuracy or
    R^2 by number of features, what trials found when they chose parameters, the confusion matrix,
    and a calibration curve if the model has probabilities; for two features and two classes also a
    slider through the rounds of the game.

    Parameters
    ----------
    model : FourierFeatures, FourierClassifier, FourierRegressor, or a Pipeline that ends in one
        Fitted.
    X, y : array-likes
        The training data, as the pipeline got it.
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
    path = check_output_path(path, *SUFFIXES)
    if title is not None and not isinstance(title, str):
        raise TypeError(f"title={title!r} is not allowed: it must be a str.")
    if (X_test is None) != (y_test is None):
        raise ValueError("Only one of X_test and y_test was given: give both or neither.")
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
    check_same_samples(model, problem.rows)
    data_name = "training" if X_test is None else "test"
    X_scored, y_scored = (X, to_host(y)) if X_test is None else (X_test, to_host(y_test))
    scores = predict_scores(model, X, y, X_scored)
    name = f"{data_name} {score_name(model)}"
    sections = [model_section(model, name, score_predictions(model, scores, y_scored))]
    if is_planar_game(model):
        rounds = geometric_subset(np.arange(1, len(model.history_["plays"]) + 1), N_FRAMES)
        snapshots = take_snapshots(model, X, y, rounds.tolist())
        codes = codes_from_scores(problem.targets)
        sections.append(game_section(dense(problem.rows.array), codes, snapshots))
    sections.append(spectrum_section(model, problem.rows, image_shape))
    sections.append(history_section(model, X, y))
    if model.tuning_ is not None:
        sections.append(tuning_section(model))
    axis = new_axis()
    ScoreCurveDisplay.from_estimator(model, X, y, X_scored, y_scored, ax=axis)
    axis.set_ylabel(f"{name} (%)")
    caption = "The same linear model on the first learned features and on random features."
    heading = f"{score_name(model).capitalize()} by number of features"
    sections.append(figures_section(heading, [(caption, axis.figure)]))
    if hasattr(model, "classes_") and len(model.classes_) <= MAX_CLASSES:
        sections.append(confusion_section(model, scores, y_scored, data_name))
    if hasattr(model, "predict_proba"):
        sections.append(calibration_section(model, scores, y_scored, data_name))
    subtitle = f"{type(model).__name__} with {model.kernel_.n_components:,} features"
    return write_page(path, title or "Learned kernel", subtitle, sections)


def check_same_samples(model: Any, rows: Rows) -> None:
    """Raise ValueError if the samples are clearly not those of the fit."""
    space = model.kernel_.space
    if space.is_vector_space and len(model.kernel_.frequencies):
        distance = np.linalg.norm(rows.mean() - space.center) / float(space.scale)
        if distance > MAX_DISTANCE:
            raise ValueError(
                f"X is not what the model was fitted to: its mean is {distance:.2g} typical "
                "distances away. If the model is the last step of a pipeline, give the whole "
                "pipeline, report(pipeline, X, y, path), or transform X first."
            )


def is_planar_game(model: Any) -> bool:
    """Whether the game can be replayed and drawn as images."""
    return (
        model.n_features_in_ == 2
        and len(getattr(model, "classes_", ())) == 2
        and model.kernel_.space.is_vector_space
        and is_replayable(model)
    )


def predict_scores(model: Any, X: Any, y: Any, X_scored: Any) -> Array:
    """Return the scores of a predictor, or of a linear model on a transformer's features."""
    if hasattr(model, "coef_"):
        return model._scores(X_scored)
    coef, intercept, _ = fit_linear_models(model.kernel_, model._training_data(X, y).problem)
    rows = Rows(model.kernel_.space.prepare(read_samples(model, X_scored)))
    return model.kernel_.scores(rows, coef, intercept)


def model_section(model: Any, name: str, score: float) -> str:
    """Return the section with the score and the size of the model."""
    kernel = model.kernel_
    if hasattr(model, "classes_"):
        targets = ("classes", f"{len(model.classes_):,}")
    else:
        targets = ("outputs", f"{model.n_outputs_:,}")
    facts = [
        (name, f"{score:.2%}"),
        ("features", f"{kernel.n_components:,}"),
        ("frequencies", f"{len(kernel.weights):,}"),
        ("training samples", f"{model.n_samples_fit_:,}"),
        ("input columns", f"{model.n_features_in_:,}"),
        targets,
        ("space", type(kernel.space).__name__),
        ("loss, C", f"{model.loss}, {model.C_:.4g}"),
        ("smoothing", f"{model.smoothing_:g}"),
        ("seconds of learning", f"{model.history_['seconds'][-1]:.2f}"),
    ]
    if model.spectrum_ is not None:
        facts.insert(-1, ("spectrum of the starts", model.spectrum_))
    return facts_section("Model", facts)


def spectrum_section(model: Any, rows: Rows, image_shape: Sequence[int] | None) -> str:
    """Return the section about the frequencies and their weights."""
    names = getattr(model, "feature_names_in_", None)
    summary = summarize_spectrum(model.kernel_, None if names is None else column_std(rows), names)
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
    return figures_section("Spectrum of the kernel", figures, spectrum_sentence(summary))


def column_std(rows: Rows) -> Array:
    """Return the standard deviations of the columns."""
    mean = rows.mean()
    (squares,) = rows.sum_blocks(
        lambda X, w=1: ((w * np.square(dense(X) - mean)).sum(axis=0),),
        *rows.weight_columns,
        dtype=np.float64,
    )
    return np.sqrt(squares / rows.total_weight)


def history_section(model: Any, X: Any, y: Any) -> str:
    """Return the section about the course of the game."""
    axes = [new_axis(), new_axis()]
    bounds, certificate = bounds_by_round(model, X, y), model.certificate(X, y)
    HistoryDisplay(model.history_, bounds).plot(axes)
    captions = (
        "Highest potential, and the shares of the dual variables at 0 and at their bound.",
        f"Bounds on the value of the game. Relative gap of the certificate: "
        f"{certificate.relative_gap:.1%}.",
    )
    figures = [(caption, axis.figure) for caption, axis in zip(captions, axes, strict=True)]
    return figures_section("Course of the game", figures, certificate.sentence)


def tuning_section(model: Any) -> str:
    """Return the section about the trials that chose parameters."""
    display = TuningDisplay(model.tuning_)
    axes = [new_axis() for _ in display.parameters]
    display.plot(axes)
    captions = [f"Lowest held-out loss for each {name}." for name in display.parameters]
    figures = [(caption, axis.figure) for caption, axis in zip(captions, axes, strict=True)]
    note = (
        f"Short games on a part of the training samples, {len(model.tuning_['loss'])} settings "
        f"compared on the others. Chosen: C = {model.C_:.4g}, smoothing {model.smoothing_:.4g}"
    )
    note += "." if model.spectrum_ is None else f", {model.spectrum_} spectrum."
    return figures_section("Choice of the parameters", figures, note)


def calibration_section(model: Any, scores: Array, y: Any, data_name: str) -> str:
    """Return the section about the probabilities."""
    logarithms = log_probabilities(scores, model.temperature_)
    axes = [new_axis(4.2), new_axis()]
    display = CalibrationDisplay.from_log_probabilities(logarithms, y, model.classes_).plot(axes)
    captions = (
        "How often what is predicted with some probability comes true; on the diagonal if it is "
        "calibrated. Each point is a tenth of the samples.",
        "Histogram of the probabilities.",
    )
    note = (
        f"Log loss {log_loss(logarithms, y, model.classes_):.4g}, expected calibration error "
        f"{display.expected_error:.4g}, temperature {model.temperature_:.4g}."
    )
    figures = [(caption, axis.figure) for caption, axis in zip(captions, axes, strict=True)]
    return figures_section(f"Probabilities of the {data_name} samples", figures, note)


def confusion_section(model: Any, scores: Array, y: Any, data_name: str) -> str:
    """Return the section with the confusion matrix."""
    # Dollar signs are escaped: matplotlib would read them as mathematics.
    names = [str(name).replace("$", r"\$") for name in model.classes_.tolist()]
    axis = new_axis(max(4.0, 1.5 + 0.4 * len(names)))
    ConfusionMatrixDisplay.from_predictions(
        column_or_1d(y),
        model.classes_[codes_from_scores(scores)],
        labels=model.classes_,
        display_labels=names,
        xticks_rotation="vertical" if max(map(len, names)) > 3 else "horizontal",
        cmap="Blues",
        colorbar=False,
        ax=axis,
    )
    return figures_section(f"Confusion matrix of the {data_name} samples", [("", axis.figure)])


def new_axis(side: float | None = None) -> Any:
    """Return the axes of a new figure: a square with that side in inches, or a wide one."""
    size = (5.6, 3.7) if side is None else (side, side)
    return import_pyplot().Figure(figsize=size, layout="constrained").subplots()
