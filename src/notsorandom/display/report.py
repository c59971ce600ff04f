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
from notsorandom.data.rows import Array, Rows
from notsorandom.display.calibration import CalibrationDisplay, log_loss
from notsorandom.display.figures import BLUE, GREY, new_axis
from notsorandom.display.importances import ImportancesDisplay
from notsorandom.display.inspection import (
    describe_spectrum,
    format_score,
    score_beside_guessing,
    score_name,
)
from notsorandom.display.page import SUFFIXES, facts_section, figures_section, fold, write_page
from notsorandom.display.research import research_sections
from notsorandom.display.score_curve import ScoreCurveDisplay
from notsorandom.estimators.base import FourierEstimator
from notsorandom.estimators.classifier import log_probabilities
from notsorandom.estimators.training import fit_linear_models
from notsorandom.estimators.validation import read_samples
from notsorandom.game.dual import codes_from_scores

# Larger confusion matrices can't be read.
MAX_CLASSES = 30
# Outputs of a regression that are drawn.
MAX_OUTPUTS = 4
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

    The page shows the accuracy or R^2 beside that of guessing, the columns that matter, the
    confusion matrix or predicted against actual values, a calibration curve if the model has
    probabilities, and the score by number of features. Behind a fold are the settings, the
    spectrum, the course of the game with bounds on its value, and what trials found when they chose
    parameters; for two features and two classes also a slider through the rounds of the game.

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
    check_same_samples(model, problem.rows)
    data_name = "training" if X_test is None else "test"
    X_scored, y_scored = (X, to_host(y)) if X_test is None else (X_test, to_host(y_test))
    scores = predict_scores(model, X, y, X_scored)
    sections = [result_section(model, data_name, scores, y_scored)]
    if hasattr(model, "coef_") and model.kernel_.space.is_vector_space:
        sections.append(importances_section(whole, X_given, image_shape))
    if not hasattr(model, "classes_"):
        sections.append(predictions_section(scores, y_scored, data_name))
    elif len(model.classes_) <= MAX_CLASSES:
        sections.append(confusion_section(model, scores, y_scored, data_name))
    if hasattr(model, "predict_proba"):
        sections.append(calibration_section(model, scores, y_scored, data_name))
    sections.append(kernel_section(model, X, y, X_scored, y_scored, data_name))
    research = research_sections(model, problem, X, y, image_shape)
    sections.append(fold("For researchers: the game, its bounds and its settings", research))
    subtitle = describe_data(model, y, data_name, len(scores))
    return write_page(path, title or "Learned model", subtitle, sections)


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


def predict_scores(model: Any, X: Any, y: Any, X_scored: Any) -> Array:
    """Return the scores of a predictor, or of a linear model on a transformer's features."""
    if hasattr(model, "coef_"):
        return model._scores(X_scored)
    coef, intercept, _ = fit_linear_models(model.kernel_, model._training_data(X, y).problem)
    rows = Rows(model.kernel_.space.prepare(read_samples(model, X_scored)))
    return model.kernel_.scores(rows, coef, intercept)


def describe_data(model: Any, y: Any, data_name: str, n_scored: int) -> str:
    """Return a sentence about the model and its data."""
    target = getattr(y, "name", None) or "the target"
    tested = f" and {n_scored:,} to test" if data_name == "test" else ""
    return (
        f"Predicts {target} from {model.n_features_in_:,} columns by "
        f"{model.kernel_.n_components:,} learned features; {model.n_samples_fit_:,} samples to "
        f"learn from{tested}."
    )


def result_section(model: Any, data_name: str, scores: Array, y: Any) -> str:
    """Return the section with the score, its standard error, and the score of guessing."""
    name = score_name(model)
    score, error, guess = score_beside_guessing(model, scores, y)
    guessed = "guessing the largest class" if name == "accuracy" else "guessing the mean"
    facts = [
        (f"{data_name} {name}", format_score(name, score)),
        ("standard error", format_score(name, error)),
        (guessed, format_score(name, guess)),
        ("features", f"{model.kernel_.n_components:,}"),
        ("training samples", f"{model.n_samples_fit_:,}"),
        ("input columns", f"{model.n_features_in_:,}"),
    ]
    if name == "accuracy":
        facts.append(("classes", f"{len(model.classes_):,}"))
    note = "Of the samples that it learned from: new ones are predicted less well."
    note = note if data_name == "training" else ""
    return facts_section("Result", facts, note)


def importances_section(model: Any, X: Any, image_shape: Sequence[int] | None) -> str:
    """Return the section about the columns that the model depends on."""
    axis, title = new_axis(), "Which columns matter"
    if image_shape is not None:
        ImportancesDisplay.from_estimator(model, X, image_shape=image_shape, ax=axis)
        return figures_section(title, [("Importance of each pixel.", axis.figure)])
    display = ImportancesDisplay.from_estimator(model, X, ax=axis)
    n_hidden = len(display.shares) - display.n_columns
    caption = f"The {n_hidden:,} other columns have less." if n_hidden > 0 else ""
    note = "Share of each column in how much the prediction changes from sample to sample."
    return figures_section(title, [(caption, axis.figure)], note)


def predictions_section(scores: Array, y: Any, data_name: str) -> str:
    """Return the section with predicted against actual values."""
    y = np.asarray(y, dtype=np.float64).reshape(len(scores), -1)
    figures = []
    for output in range(min(y.shape[1], MAX_OUTPUTS)):
        axis = new_axis(4.2)
        axis.plot(scores[:, output], y[:, output], "o", markersize=3, alpha=0.5, color=BLUE)
        ends = [min(y[:, output].min(), scores[:, output].min())]
        ends.append(max(y[:, output].max(), scores[:, output].max()))
        axis.plot(ends, ends, color=GREY, linewidth=1)
        axis.set(xlabel="predicted", ylabel="actual")
        figures.append(("" if y.shape[1] == 1 else f"Output {output}.", axis.figure))
    title = f"Predicted and actual values of the {data_name} samples"
    return figures_section(title, figures, "On the line, both are equal.")


def kernel_section(model: Any, X: Any, y: Any, X_scored: Any, y_scored: Any, data_name: str) -> str:
    """Return the section about the learned kernel in words, and the score by number of features."""
    axis = new_axis()
    ScoreCurveDisplay.from_estimator(model, X, y, X_scored, y_scored, ax=axis)
    axis.set_ylabel(axis.get_ylabel().replace("test", data_name))
    caption = "The same linear model on the first learned features and on random features."
    sentence = describe_spectrum(model.kernel_)
    return figures_section("Learned features", [(caption, axis.figure)], sentence)


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
