"""Report of a fitted model: one HTML page."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from notsorandom._utils.files import check_output_path
from notsorandom.data.array_api import to_host
from notsorandom.data.coerce import take_rows
from notsorandom.data.rows import Rows
from notsorandom.display.calibration import N_BINS
from notsorandom.display.curves import ScoreCurveDisplay
from notsorandom.display.figures import new_axis
from notsorandom.display.inspection import (
    geometric_subset,
)
from notsorandom.display.page import (
    PAGE_SUFFIXES,
    facts_section,
    fold,
    write_page,
)
from notsorandom.display.regression import coverage_section, find_intervals, predictions_section
from notsorandom.display.results import (
    Predictions,
    name_target,
    predict_scores,
)
from notsorandom.display.sections import (
    ROWS_PER_BIN,
    calibration_section,
    game_sections,
    history_section,
    importances_section,
    kernel_section,
    left_out,
    linear_section,
    mistakes_section,
    ranking_section,
    settings_section,
    spectrum_section,
    tuning_section,
)
from notsorandom.estimators.base import FourierEstimator

# Most rows that are scored: an accuracy then has a standard error of at most 0.3 %.
MAX_SCORED = 2**15
# The score by number of features has at most this many training rows, features, scored rows and
# sizes, so that its linear models take seconds. Models with more coefficients have none: 77 classes
# of 584 columns took half a minute.
MAX_TRAINED, MAX_CURVE_SIZE, MAX_CURVE_SCORED, N_CURVE_SIZES = 2**11, 2**8, 2**13, 5
MAX_CURVE_COEFFICIENTS = 2**13
# Distance between the means of X and of the training samples, in units of the median distance
# between samples.
MAX_MEAN_DISTANCE = 0.1


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
    research: bool = False,
    verbose: int = 0,
) -> Path:
    """Write an HTML page about a fitted model, in one file that needs no network.

    The page shows the accuracy or R^2 and the score of guessing, the columns that matter, the
    confusion matrix or predicted against actual values, a calibration curve if the model has
    probabilities, intervals and their coverage if it has some, the score by number of features, and
    the largest coefficients of a linear part. Behind a fold are the settings, the spectrum, the
    course of the game, and what trials found when they chose parameters. Of many rows, some are
    drawn, so that the page takes seconds; it says how many.

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
    research : bool, default=False
        Show also the certificate and bounds on the value of the game by round, unless the model has
        a linear part. For two columns and two classes, show also a slider through the rounds. These
        use all training rows, and take minutes for ten thousand.
    verbose : int, default=0
        If positive, show a progress bar for `research`.

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
    steps, last = (model[:-1], model[-1]) if isinstance(model, Pipeline) else (None, model)
    if not isinstance(last, FourierEstimator):
        raise TypeError(
            f"model is a {type(last).__name__}, but it must be a fitted FourierFeatures, "
            "FourierClassifier or FourierRegressor, or a pipeline that ends in one."
        )

    def encode(samples: Any) -> Any:
        return samples if steps is None else steps.transform(samples)

    drawn, X_drawn, y_drawn = draw_training_rows(last, X, y)
    samples = encode(X_drawn)
    problem = drawn._training_problem(samples, y_drawn)
    check_same_samples(last, problem.rows)
    X_given, y_given = (X, y) if X_test is None else (X_test, y_test)
    check_consistent_length(X_given, y_given)
    X_scored, y_scored = draw_rows(X_given, y_given, MAX_SCORED)
    X_scored = encode(X_scored)
    predictions = Predictions(
        last,
        predict_scores(last, problem, X_scored),
        to_host(y_scored),
        "training" if X_test is None else "test",
        name_target(y),
        len(to_host(y_given)),
    )
    sections = [facts_section("Result", predictions.facts(), predictions.describe())]
    is_explained = hasattr(last, "coef_") and last.kernel_.space.is_vector_space
    if is_explained:
        sections.append(importances_section(model, X_drawn, image_shape))
    if hasattr(last, "classes_"):
        sections += [mistakes_section(predictions), ranking_section(predictions)]
    else:
        intervals = find_intervals(predictions, X_scored)
        sections.append(predictions_section(predictions, intervals))
        if intervals:
            sections.append(coverage_section(predictions, intervals))
    n_bins = min(N_BINS, len(predictions.scores) // ROWS_PER_BIN)
    if hasattr(last, "predict_proba") and n_bins > 1:
        sections.append(calibration_section(predictions, n_bins))
    curve = draw_score_curve(drawn, samples, y_drawn, X_scored, predictions)
    sections.append(kernel_section(last, problem.rows, curve))
    if last.uses_linear_part_ and is_explained and image_shape is None:
        sections.append(linear_section(model, X_drawn))
    details = [settings_section(last), spectrum_section(last, image_shape)]
    if research:
        details += game_sections(last, encode(X), y, verbose)
    else:
        details.append(history_section(last))
    if last.tuning_ is not None:
        details.append(tuning_section(last))
    sections.append(fold("For researchers: the game and its settings", details))
    return write_page(path, title or "Learned model", describe_data(model, predictions), sections)


def draw_training_rows(estimator: Any, X: Any, y: Any) -> tuple[Any, Any, Any]:
    """Return at most `MAX_TRAINED` rows that have a weight, and the estimator with their weights.

    Each class has a row. The data must have as many rows as at fit.
    """
    check_is_fitted(estimator)
    check_consistent_length(X, y)
    labels = to_host(y)
    estimator._check_n_samples(len(labels))
    if len(labels) <= MAX_TRAINED:
        return estimator, X, y
    weights = estimator._weights
    kept = np.arange(len(labels)) if weights is None else np.flatnonzero(weights)
    order = np.random.default_rng(0).permutation(kept)
    rows = np.sort(order[:MAX_TRAINED])
    if hasattr(estimator, "classes_"):
        first = np.unique(np.asarray(labels)[order], return_index=True)[1]
        rows = np.union1d(rows, order[first])
    drawn = copy.copy(estimator)
    drawn._weights = None if weights is None else weights[rows]
    return drawn, take_rows(X, rows), take_rows(y, rows)


def draw_rows(X: Any, y: Any, n_rows: int) -> tuple[Any, Any]:
    """Return all rows, or so many drawn at random if there are more."""
    n_given = len(to_host(y))
    if n_given <= n_rows:
        return X, y
    rows = np.sort(np.random.default_rng(0).choice(n_given, size=n_rows, replace=False))
    return take_rows(X, rows), take_rows(y, rows)


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


def describe_data(model: Any, predictions: Predictions) -> str:
    """Return a sentence about the target and the data."""
    last, n_left_out = predictions.model, len(left_out(model))
    predicts = "Predicts" if hasattr(last, "coef_") else "A linear model on the features predicts"
    classes = f" ({len(last.classes_):,} classes)" if hasattr(last, "classes_") else ""
    verb = "is" if n_left_out == 1 else "are"
    omitted = f", {n_left_out:,} of which {verb} left out" if n_left_out else ""
    tested = f", tested on {predictions.n_rows:,} others" * (predictions.part == "test")
    return (
        f"{predicts} {predictions.target}{classes} from {model.n_features_in_:,} columns{omitted}. "
        f"Learned from {last.n_samples_fit_:,} rows{tested}."
    )


def draw_score_curve(
    estimator: Any, X: Any, y: Any, X_scored: Any, predictions: Predictions
) -> Any:
    """Return a figure of the score by number of features; None if it would take long."""
    possible, n_columns = estimator.kernel_.possible_sizes(), estimator.kernel_.n_components
    possible = possible[possible <= max(MAX_CURVE_SIZE, possible[0])]
    n_columns += possible[-1] - estimator.kernel_.n_waves
    if n_columns * estimator._training_problem(X, y).n_tasks > MAX_CURVE_COEFFICIENTS:
        return None
    axis, sizes = new_axis(), geometric_subset(possible, N_CURVE_SIZES)
    scored = draw_rows(X_scored, predictions.y, MAX_CURVE_SCORED)
    ScoreCurveDisplay.from_estimator(estimator, X, y, *scored, sizes=sizes.tolist(), ax=axis)
    axis.set_ylabel(axis.get_ylabel().replace("test", predictions.part))
    return axis.figure
