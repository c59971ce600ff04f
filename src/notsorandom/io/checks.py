"""Checks that a model from a file predicts. Attributes that only plots read are not checked."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from contextlib import ExitStack, suppress
from typing import Any

import joblib
import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, is_classifier
from sklearn.pipeline import Pipeline

from notsorandom._utils.parameters import MAX_NUMBER
from notsorandom.data.column_kinds import DATE_FORMATS, DATE_PARTS, NUMBER_FORMATS
from notsorandom.data.rows import FLOATS, dense
from notsorandom.estimators.base import FourierEstimator
from notsorandom.estimators.checkpoint import require
from notsorandom.estimators.config import configure
from notsorandom.estimators.degrees import DegreeKernel
from notsorandom.io.archive import walk
from notsorandom.io.steps import CHECKS, check_columns, check_step, is_array, is_fitted
from notsorandom.kernel import LearnedKernel
from notsorandom.linear.ridge import RidgePosterior
from notsorandom.spaces import Euclidean
from notsorandom.spaces.base import Space
from notsorandom.tabular import NumberEncoder, TableCleaner
from notsorandom.tuning.conformal import HeldOutScores

KERNEL_ARRAYS = ("frequencies", "phases", "scales", "weights")
MAX_STORED_DEGREE = 10_000  # on the sphere; higher ones would take for ever
# What a column of a table can be, and the formats of its text.
FORMATS: dict[str, Collection[str]] = dict.fromkeys(("boolean", "category", "left out"), ("",))
FORMATS |= {"number": ["", *NUMBER_FORMATS], "date": ["", *DATE_FORMATS]}
# Rows to try: missing numbers, missing objects, or a vector of length one.
TRIALS = ("missing", "empty", "unit")
METHODS = ("transform", "predict", "decision_function", "predict_proba")


def validate(model: Any, trial: str | None, size: int, trusted: Collection[str] = ()) -> None:
    """Raise an error unless all parts of a model, and all together for a trial, compute a row.

    Parts of trusted classes are not checked.
    """
    require(any(hasattr(model, name) for name in METHODS), "predict")
    for part in walk(model):
        if f"{type(part).__module__}.{type(part).__qualname__}" not in trusted:
            check_part(part, size, trusted)
    with suppress(ImportError):  # without pandas there is no frame to predict for either
        for part in walk(model):  # estimators without a kernel are templates
            if isinstance(part, FourierEstimator) and (part is model or hasattr(part, "kernel_")):
                check_estimator(part)
                run_trial(part, "unit")
        if trial in TRIALS:
            run_trial(model, trial)
        elif not trusted:
            raise ValueError("its steps compute neither a row of missing values nor one of numbers")


def check_part(part: Any, size: int, trusted: Collection[str]) -> None:
    """Raise an error unless a part of a model has attributes that it can compute with."""
    for name in getattr(part, "__dict__", ()):  # none takes the place of a method
        require(not hasattr(getattr(type(part), name, None), "__get__"), name)
    if isinstance(part, BaseEstimator):
        require(getattr(part, "checkpoint", None) is None, "checkpoint")  # a fit would write there
        if "n_jobs" in vars(part):
            part.n_jobs = None  # the machine that loads a model decides
        if is_fitted(part) and not isinstance(part, Pipeline):
            check_columns(part, size)
    if type(part) in CHECKS:
        check_step(part, trusted)
    if isinstance(part, TableCleaner):
        check_cleaner(part)
    if isinstance(part, NumberEncoder) and hasattr(part, "center_"):
        check_numbers(part)
    if isinstance(part, LearnedKernel):
        check_kernel(part)
    if isinstance(part, DegreeKernel):
        check_degrees(part)
    if isinstance(part, RidgePosterior):
        check_posterior(part)
    if isinstance(part, HeldOutScores):
        check_scores(part)


def check_cleaner(cleaner: Any) -> None:
    """Raise an error unless what a cleaner found out about the columns is known."""
    for name, allowed in (("kinds_", FORMATS), ("left_out_", None), ("formats_", None)):
        values = getattr(cleaner, name, {})
        require(isinstance(values, dict), name)
        require(all(isinstance(text, str) for pair in values.items() for text in pair), name)
        require(allowed is None or allowed.keys() >= {*values.values()}, name)
    for name, kind in getattr(cleaner, "kinds_", {}).items():
        require(cleaner.formats_.get(name, "") in FORMATS[kind], "formats_")
        parts = cleaner.date_parts_[name] if kind == "date" else []
        require(parts == [part for part in DATE_PARTS if part in parts], "date_parts_")


def check_numbers(encoder: Any) -> None:
    """Raise an error unless an encoder has a finite scale for each column, and increasing knots."""
    shape = (encoder.n_features_in_,)
    for name in ("center_", "scale_"):
        values = getattr(encoder, name)
        require(values.shape == shape and np.isfinite(values).all(), name)
    require((encoder.scale_ > 0).all(), "scale_")
    for name in ("number_columns_", "score_columns_", "missing_columns_"):
        columns = getattr(encoder, name)
        require(columns.ndim == 1 and np.isin(columns, np.arange(*shape)).all(), name)
        require(len(set(columns.tolist())) == len(columns), name)  # no more than once
    knots, sizes = encoder.knots_, encoder.n_knots_
    require(is_array(sizes, encoder.score_columns_.shape, "i") and (sizes > 0).all(), "n_knots_")
    require(is_array(knots, (2, sum(sizes.tolist())), "f"), "knots_")
    within = np.delete(np.diff(knots[0]), sizes.cumsum()[:-1] - 1)  # steps inside of a column
    require(np.isfinite(knots).all() and (within > 0).all(), "knots_")


def check_kernel(kernel: Any) -> None:
    """Raise an error unless a kernel has finite numbers, and degrees that can be computed."""
    require(isinstance(kernel.space, Space), "space")
    kernel.space.check()
    n_frequencies, _ = kernel.frequencies.shape
    for name in KERNEL_ARRAYS:
        array = getattr(kernel, name)
        is_shape = name == "frequencies" or array.shape == (n_frequencies,)
        require(is_shape and np.isfinite(array).all(), name)
        require(name != "weights" or (array >= 0).all(), name)
        array.flags.writeable = False
    scale, center = kernel.linear_scale, kernel.linear_center
    require(isinstance(scale, float) and 0 <= scale < np.inf, "linear_scale")
    if center is not None:
        is_array = isinstance(center, np.ndarray) and center.dtype in FLOATS
        require(is_array and center.shape == (kernel.n_features,), "linear_center")
        require(np.isfinite(center).all(), "linear_center")
        center.flags.writeable = False
    if not isinstance(kernel.space, Euclidean):
        degrees = kernel.space.norms(kernel.frequencies)
        largest = max(np.abs(kernel.frequencies).max(), degrees.max(), kernel.space.max_degree)
        require(largest <= MAX_STORED_DEGREE, "max_degree")


def check_posterior(posterior: Any) -> None:
    """Raise an error unless a posterior has a factor of the right size, and finite numbers."""
    mean, factor = posterior.mean, posterior.factor
    n_features = len(mean)
    require(mean.shape == (n_features,) and mean.dtype == np.float64, "mean")
    require((np.abs(mean) <= MAX_NUMBER).all(), "mean")
    require(factor.shape == (n_features * (n_features + 1) // 2,), "factor")
    require(factor.dtype == np.float64 and (np.abs(factor) <= MAX_NUMBER).all(), "factor")
    last = np.cumsum(np.arange(1, n_features + 1)) - 1  # of each row: the diagonal
    require((factor[last] >= 1 / MAX_NUMBER).all(), "factor")
    total = posterior.total_weight
    require(type(total) is float and 1 / MAX_NUMBER <= total <= MAX_NUMBER, "total_weight")


def check_scores(held_out: Any) -> None:
    """Raise an error unless scores of held-out rows are such."""
    scores, counts = held_out.scores, held_out.counts
    require(scores.ndim == 2 and counts.shape == scores.shape[:1] and counts.size > 0, "counts")
    for array in (scores, counts):
        require(array.dtype == np.float32 and np.isfinite(array).all(), "scores")
        require((array >= 0).all(), "scores")
    require(counts.sum() > 0, "counts")


def check_degrees(kernel: Any) -> None:
    """Raise an error unless a kernel has weights of degrees that can be computed."""
    weights = kernel.weights
    require(weights.ndim == 1 and 0 < len(weights) <= MAX_STORED_DEGREE, "weights")
    require(np.isfinite(weights).all() and (weights >= 0).all(), "weights")
    require(type(kernel.n_features) is int and kernel.n_features > 1, "n_features")
    weights.flags.writeable = False


def check_estimator(model: Any) -> None:
    """Raise an error if an estimator has wrong parameters, or may predict unknown classes."""
    configure(model)
    for name in ("C_", "temperature_"):
        require(1 / MAX_NUMBER <= getattr(model, name, 1.0) <= MAX_NUMBER, name)
    require(isinstance(getattr(model, "spectrum_", None), str | None), "spectrum_")
    for name in ("tuning_", "history_"):  # tables, of which plots are drawn
        columns = list((getattr(model, name, None) or {"": np.zeros(1)}).values())
        require(columns[0].ndim == 1 and columns[0].size, name)
        require(all(column.shape == columns[0].shape for column in columns), name)
    has_linear_part = bool(model.kernel_.linear_scale)
    require(model.uses_linear_part_ is has_linear_part, "uses_linear_part_")
    if hasattr(model, "coef_"):
        n_tasks = len(model.coef_)
        if is_classifier(model):
            n_tasks = len(model.classes_) - (len(model.classes_) <= 2)  # two classes have one task
        require(model.coef_.shape == (n_tasks, model.kernel_.n_components), "coef_")
        require(model.intercept_.shape == (n_tasks,), "intercept_")
        for name in ("coef_", "intercept_"):
            require(np.isfinite(getattr(model, name)).all(), name)
        shares = getattr(model, "feature_importances_", np.zeros(model.n_features_in_))
        require(is_array(shares, (model.n_features_in_,), "f"), "feature_importances_")
        require(bool(np.all((shares >= 0) & (shares <= 1 + 1e-6))), "feature_importances_")
        check_uncertainty(model)
    if hasattr(model, "classes_"):
        classes = model.classes_
        require(is_array(classes, (len(classes),), "biufOUS"), "classes_")
        require(np.array_equal(np.unique(classes), classes), "classes_")  # nor NaN


def check_uncertainty(model: Any) -> None:
    """Raise an error unless what intervals and sets are computed from suits the linear models."""
    n_tasks, n_features = model.coef_.shape
    posterior, held_out = getattr(model, "posterior_", None), getattr(model, "held_out_scores_", 0)
    if posterior is not None:
        is_right = isinstance(posterior, RidgePosterior) and len(posterior.mean) == n_features
        require(is_right, "posterior_")
    if held_out == 0:
        return
    n_outputs = 1 if is_classifier(model) else n_tasks
    is_right = isinstance(held_out, HeldOutScores) and held_out.scores.shape[1] == n_outputs
    require(is_right, "held_out_scores_")
    if not is_classifier(model):
        noise: Any = getattr(model, "noise_", None)
        require(is_array(noise, (n_tasks,), "f"), "noise_")
        require((noise >= 0).all() and np.isfinite(noise).all(), "noise_")


@np.errstate(all="ignore")
def run_trial(model: Any, kind: str | None) -> None:
    """Raise an error unless a model computes finite numbers for two rows."""
    n_features = model.n_features_in_
    value = {"missing": np.nan, "empty": None}.get(str(kind), n_features**-0.5)
    # Two, as a result of the wrong length would be right for one.
    rows: Any = np.full((2, n_features), value)
    if isinstance(model, FourierEstimator) and isinstance(model.kernel_.space, Euclidean):
        space = model.kernel_.space
        rows = space.center + space.scale * rows  # like the training samples
    if hasattr(model, "feature_names_in_"):
        import pandas

        rows = pandas.DataFrame(rows, columns=model.feature_names_in_)
    with ExitStack() as stack:
        stack.enter_context(joblib.parallel_config(backend="sequential"))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        for part in walk(model):
            if getattr(part, "handle_unknown", "") == "error":  # these rows have no known category
                stack.callback(setattr, part, "handle_unknown", "error")
                part.handle_unknown = "ignore"
        names = [name for name in METHODS if hasattr(model, name)]
        for name in names if isinstance(model, FourierEstimator) else names[:1]:
            result = getattr(model, name)(rows)
            require(result.shape[0] == 2, name)
            values = result.data if sparse.issparse(result) else np.asarray(result)
            require(values.dtype.kind not in "fc" or np.isfinite(values).all(), name)
        if getattr(model, "posterior_", None) is not None:
            variances = model.posterior_.variances(dense(model.kernel_.features(rows)))
            require(np.isfinite(variances).all(), "variances")
