"""Checks that a model from a file predicts. Attributes that only plots read are not checked."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import suppress
from string import Formatter
from typing import Any

import joblib
import numpy as np
from sklearn.base import BaseEstimator, is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

from notsorandom.data.rows import FLOATS
from notsorandom.estimators.base import FourierEstimator
from notsorandom.estimators.config import configure
from notsorandom.estimators.degrees import DegreeKernel
from notsorandom.kernel import LearnedKernel
from notsorandom.linear.ridge import RidgePosterior
from notsorandom.spaces import Euclidean
from notsorandom.tabular import NumberEncoder, TableCleaner
from notsorandom.tuning.conformal import HeldOutScores

KERNEL_ARRAYS = ("frequencies", "phases", "scales", "weights")
MAX_STORED_DEGREE = 10_000  # on the sphere; higher ones would take for ever
MAX_JOBS = 1024  # more threads or processes than a machine has cores
TRIALS = ("unit", "missing")  # rows to try: a vector of length one, or missing values
METHODS = ("transform", "predict", "decision_function", "predict_proba")


def walk(model: Any) -> Iterator[Any]:
    """Yield an object and all that it consists of, each once."""
    seen: set[int] = set()
    stack = [model]
    while stack:
        part = stack.pop()
        if id(part) in seen or isinstance(part, (str, type)):
            continue
        seen.add(id(part))
        yield part
        if isinstance(part, dict):
            stack += part.values()
        elif isinstance(part, (list, tuple, set)):
            stack += part
        elif isinstance(part, np.ndarray) and part.dtype == object:
            stack += part.ravel().tolist()
        stack += getattr(part, "__dict__", {}).values()


def validate(model: Any, trial: str | None, size: int) -> None:
    """Raise an error unless all parts of a model, and all together for a trial, compute a row."""
    require(any(hasattr(model, name) for name in METHODS), "predict")
    for part in walk(model):
        if isinstance(part, BaseEstimator):
            for name in ("checkpoint", "memory"):  # a fit would write there, or read pickles
                require(getattr(part, name, None) is None, name)
            require(0 < abs(getattr(part, "n_jobs", None) or 1) <= MAX_JOBS, "n_jobs")
        if isinstance(part, OneHotEncoder) and hasattr(part, "categories_"):
            check_codes(part)
        if isinstance(part, ColumnTransformer):
            check_template(part.verbose_feature_names_out)
        if isinstance(part, FunctionTransformer):  # an array would be combined with every row
            for arguments in (part.kw_args or {}, part.inv_kw_args or {}):
                require(all(map(np.isscalar, arguments.values())), "kw_args")
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
    with suppress(ImportError):  # without pandas there is no frame to predict for either
        for part in walk(model):  # estimators without a kernel are templates
            if isinstance(part, FourierEstimator) and (part is model or hasattr(part, "kernel_")):
                check_estimator(part)
                run_trial(part, "unit", size)
        if trial is not None:
            run_trial(model, trial, size)


def check_codes(encoder: Any) -> None:
    """Raise an error if codes are out of range: SciPy would write outside of its memory."""
    sizes, drops = encoder._n_features_outs, encoder._drop_idx_after_grouping
    for k, (size, categories) in enumerate(zip(sizes, encoder.categories_, strict=True)):
        codes, drop = np.arange(len(categories)), None if drops is None else drops[k]
        if encoder._infrequent_enabled:
            mapping = encoder._default_to_infrequent_mappings[k]
            require((encoder._infrequent_indices[k] is None) == (mapping is None), "mapping")
            codes = codes if mapping is None else mapping
            require(codes.shape == (len(categories),), "mapping")
        if drop is not None:
            codes = codes[codes != drop]
            codes = codes - (codes > drop)
        codes = np.unique(codes).tolist()
        require(codes == list(range(len(codes))) and len(codes) == size, "_n_features_outs")


def check_template(template: Any) -> None:
    """Raise an error if names of columns are made by more than inserting names."""
    if isinstance(template, str):
        for _, field, width, conversion in Formatter().parse(template):
            names = (None, "feature_name", "transformer_name")
            require(field in names and not width and not conversion, "verbose_feature_names_out")


def check_cleaner(cleaner: Any) -> None:
    """Raise an error unless what a cleaner found out about the columns is text."""
    for name in ("kinds_", "left_out_", "formats_"):
        values = getattr(cleaner, name, {})
        require(isinstance(values, dict), name)
        require(all(isinstance(text, str) for pair in values.items() for text in pair), name)


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
    require(len(encoder.knots_) == len(encoder.score_columns_), "knots_")
    for knots in encoder.knots_:
        require(knots.ndim == 2 and len(knots) == 2 and knots.size, "knots_")
        require(np.isfinite(knots).all() and (np.diff(knots[0]) > 0).all(), "knots_")


def check_kernel(kernel: Any) -> None:
    """Raise an error unless a kernel has finite numbers, and degrees that can be computed."""
    kernel.space.check()
    n_frequencies, _ = kernel.frequencies.shape
    for name in KERNEL_ARRAYS:
        array = getattr(kernel, name)
        is_shape = name == "frequencies" or array.shape == (n_frequencies,)
        require(is_shape and np.isfinite(array).all(), name)
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
    require(factor.shape == (n_features * (n_features + 1) // 2,), "factor")
    require(factor.dtype == np.float64 and np.isfinite(factor).all(), "factor")
    last = np.cumsum(np.arange(1, n_features + 1)) - 1  # of each row: the diagonal
    require((factor[last] > 0).all() and np.isfinite(mean).all(), "factor")
    require(type(posterior.total_weight) is float and posterior.total_weight > 0, "total_weight")


def check_scores(held_out: Any) -> None:
    """Raise an error unless scores of held-out rows are such."""
    scores, counts = held_out.scores, held_out.counts
    require(scores.ndim == 2 and counts.shape == scores.shape[:1] and counts.size > 0, "counts")
    for array in (scores, counts):
        require(array.dtype == np.float32 and (array >= 0).all(), "scores")
    require(np.isfinite(counts).all() and counts.sum() > 0, "counts")


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
        require(getattr(model, name, 1.0) > 0, name)
    for name, kinds in (("spectrum_", str), ("tuning_", dict), ("history_", dict)):
        require(isinstance(getattr(model, name, None), kinds | None), name)
    has_linear_part = bool(model.kernel_.linear_scale)
    require(model.uses_linear_part_ is has_linear_part, "uses_linear_part_")
    if hasattr(model, "coef_"):
        n_tasks = len(model.coef_)
        if is_classifier(model):
            n_tasks = len(model.classes_) - (len(model.classes_) <= 2)  # two classes have one task
        require(model.coef_.shape == (n_tasks, model.kernel_.n_components), "coef_")
        require(model.intercept_.shape == (n_tasks,), "intercept_")
        check_uncertainty(model)


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
        noise = model.noise_
        require(noise.shape == (n_tasks,) and noise.dtype == np.float64, "noise_")
        require((noise >= 0).all() and np.isfinite(noise).all(), "noise_")


@np.errstate(all="ignore")
def run_trial(model: Any, kind: str | None, size: int) -> None:
    """Raise an error unless a model computes two rows; they have at most `size` columns."""
    n_features = model.n_features_in_
    require(type(n_features) is int and 0 < n_features <= size, "n_features_in_")
    # Two, as a result of the wrong length would be right for one.
    rows: Any = np.full((2, n_features), n_features**-0.5 if kind == "unit" else None)
    if isinstance(model, FourierEstimator) and isinstance(model.kernel_.space, Euclidean):
        space = model.kernel_.space
        rows = space.center + space.scale * rows  # like the training samples
    if hasattr(model, "feature_names_in_"):
        import pandas

        rows = pandas.DataFrame(rows, columns=model.feature_names_in_)
    with warnings.catch_warnings(), joblib.parallel_config(backend="sequential"):
        warnings.simplefilter("ignore")
        for name in METHODS:
            if hasattr(model, name):
                require(getattr(model, name)(rows).shape[0] == 2, name)


def require(condition: Any, name: str) -> None:
    """Raise ValueError unless a condition holds."""
    if not condition:
        raise ValueError(f"{name} is not valid")
