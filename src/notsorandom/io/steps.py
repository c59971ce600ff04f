"""Checks of scikit-learn's transformers from a file: SciPy and NumPy trust some attributes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from numbers import Real
from string import Formatter
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    RobustScaler,
    StandardScaler,
)

from notsorandom.estimators.checkpoint import require
from notsorandom.tabular.pipeline import TabularPipeline, name_category

# Fewest bytes of a file for each column of the samples, but for some thousands: the two rows of a
# trial take twice as many.
BYTES_PER_COLUMN, FREE_COLUMNS = 8, 2**13
# Most that a scaler adds or multiplies by: what it makes of such a number is finite.
MOST = 1e150
# Attributes that also an estimator has that wasn't fitted.
UNFITTED = {"_sklearn_output_config", "_metadata_requests"}
FIELDS = (None, "feature_name", "transformer_name")


def check_step(step: Any, trusted: Collection[str]) -> None:
    """Raise an error unless the attributes of a step are in their ranges, and agree."""
    step._validate_params()
    if is_fitted(step) or isinstance(step, (Pipeline, FunctionTransformer)):
        CHECKS[type(step)](step, trusted)


def is_fitted(step: Any) -> bool:
    """Return whether an estimator has other attributes than its parameters."""
    return bool(vars(step).keys() - step.get_params(deep=False).keys() - UNFITTED)


def check_columns(step: Any, size: int) -> None:
    """Raise an error unless a fitted estimator has a number of columns that a file can have."""
    n_features = step.n_features_in_
    require(type(n_features) is int and n_features > 0, "n_features_in_")
    require(n_features <= max(size // BYTES_PER_COLUMN, FREE_COLUMNS), "n_features_in_")
    names = getattr(step, "feature_names_in_", None)
    if names is not None:
        require(is_array(names, (n_features,), "O"), "feature_names_in_")
        require(all(isinstance(name, str) for name in names), "feature_names_in_")


def is_array(values: Any, shape: tuple[int, ...], kinds: str = "iuf") -> bool:
    """Return whether a value is an array of a shape and of some kinds of types."""
    return isinstance(values, np.ndarray) and values.shape == shape and values.dtype.kind in kinds


def are_codes(values: Any, n_codes: int) -> bool:
    """Return whether an array has increasing integers from 0 to less than `n_codes`."""
    if not isinstance(values, np.ndarray) or values.ndim != 1 or values.dtype.kind not in "iu":
        return False
    inside = (values >= 0).all() and (values < n_codes).all()
    return bool(inside and (values[1:] > values[:-1]).all())


def check_pipeline(pipeline: Any, trusted: Collection[str]) -> None:
    """Raise an error unless a pipeline has steps, and no folder of pickles."""
    require(pipeline.memory is None and pipeline.transform_input is None, "memory")
    for name, step in pipeline.steps:
        is_step = isinstance(step, BaseEstimator) or step in (None, "passthrough")
        require(isinstance(name, str) and is_step, "steps")


def check_transformers(step: Any, trusted: Collection[str]) -> None:
    """Raise an error unless transformers have columns that exist, and simple names for them."""
    n_features, n_selected = step.n_features_in_, 0
    places = {name: k for k, name in enumerate(getattr(step, "feature_names_in_", ()))}
    for name, transformer, columns in step.transformers_:
        is_text = isinstance(transformer, str) and transformer in ("drop", "passthrough")
        is_step = is_text or isinstance(transformer, BaseEstimator)
        require(isinstance(name, str) and is_step, "transformers_")
        selected = select_columns(columns, n_features, places)
        require(step._transformer_to_input_indices[name] == selected, "transformers_")
        n_selected += len(selected)
    # Columns can be used more than once, but not so often that a small file takes much memory.
    require(n_selected <= max(2 * n_features, FREE_COLUMNS), "transformers_")
    require(type(step.sparse_output_) is bool, "sparse_output_")
    template = step.verbose_feature_names_out
    require(isinstance(template, (bool, str)), "verbose_feature_names_out")
    for _, field, width, conversion in Formatter().parse(template if template is not True else ""):
        require(field in FIELDS and not width and not conversion, "verbose_feature_names_out")


def select_columns(columns: Any, n_features: int, places: Mapping[str, int]) -> list[int]:
    """Return the numbers of columns that are given by names, numbers, a mask or a slice."""
    every = np.arange(n_features)
    if isinstance(columns, slice):
        start, stop = (places.get(end, end) for end in (columns.start, columns.stop))
        stop += isinstance(columns.stop, str)  # names include the last
        return every[start : stop : columns.step].tolist()
    keys = [places.get(column, column) for column in np.atleast_1d(columns).tolist()]
    return every[keys].tolist() if keys else []


def check_encoder(encoder: Any, trusted: Collection[str]) -> None:
    """Raise an error unless codes of categories are in range: SciPy writes where they point to."""
    n_features, categories = encoder.n_features_in_, encoder.categories_
    require(np.dtype(encoder.dtype).kind in "biuf", "dtype")
    require(encoder.feature_name_combiner in ("concat", name_category), "feature_name_combiner")
    require(isinstance(categories, list) and len(categories) == n_features, "categories_")
    # A small file could share a long array among many columns.
    require(len(set(map(id, categories))) == n_features, "categories_")
    drops = encoder._drop_idx_after_grouping
    require(drops is None or is_array(drops, (n_features,), "O"), "_drop_idx_after_grouping")
    n_outputs = []
    for k, values in enumerate(categories):
        check_categories(values)
        infrequent: Any = None
        mapping: Any = None
        if encoder._infrequent_enabled:
            infrequent = encoder._infrequent_indices[k]
            mapping = encoder._default_to_infrequent_mappings[k]
        require((infrequent is None) == (mapping is None), "mapping")
        n_codes = len(values)
        if mapping is not None:
            require(are_codes(infrequent, n_codes) and len(infrequent), "_infrequent_indices")
            expected = np.full(n_codes, n_codes - len(infrequent))
            others = np.delete(np.arange(n_codes), infrequent)
            expected[others] = np.arange(len(others))
            require(is_array(mapping, (n_codes,), "i"), "mapping")
            require((mapping == expected).all(), "mapping")
            n_codes = len(others) + 1
        if drops is not None and drops[k] is not None:
            require(int(drops[k]) == drops[k] and 0 <= drops[k] < n_codes, "_drop_idx_after_group")
            n_codes -= 1
        n_outputs.append(n_codes)
    require(encoder._n_features_outs == n_outputs, "_n_features_outs")
    require(all(type(size) is int for size in encoder._n_features_outs), "_n_features_outs")


def check_categories(values: Any) -> None:
    """Raise an error unless categories are distinct texts or numbers.

    Numbers are searched, also among objects, so they are sorted; missing ones come last.
    """
    is_array = isinstance(values, np.ndarray) and values.ndim == 1
    require(is_array and len(values) and values.dtype.kind in "biufOU", "categories_")
    known = [value for value in values.tolist() if value is not None and value == value]
    missing = [type(value) for value in values.tolist() if value is None or value != value]
    is_text = all(isinstance(value, str) for value in known)
    require(is_text or all(isinstance(value, Real | np.bool_) for value in known), "categories_")
    require(is_text or values.tolist()[: len(known)] == sorted(known), "categories_")
    require(len({*known, *missing}) == len(values), "categories_")  # one None, one NaN


def check_scaler(scaler: Any, trusted: Collection[str]) -> None:
    """Raise an error unless a scaler has numbers to compute with for all columns."""
    for name, flag in USED[type(scaler)].items():
        values = getattr(scaler, name)
        if values is not None or getattr(scaler, flag, True):
            require(is_array(values, (scaler.n_features_in_,)), name)
            require((np.abs(values) <= MOST).all(), name)
            require(name != "scale_" or (np.abs(values) >= 1 / MOST).all(), name)


def check_imputer(imputer: Any, trusted: Collection[str]) -> None:
    """Raise an error unless an imputer has a value for each column."""
    values = imputer.statistics_
    require(is_array(values, (imputer.n_features_in_,), "biufOU"), "statistics_")
    for value in values.tolist():  # NaN of a column without values
        is_text = value is None or isinstance(value, str)
        require(is_text or value != value or abs(value) <= MOST, "statistics_")
    require(not callable(imputer.strategy), "strategy")


def check_indicator(indicator: Any, trusted: Collection[str]) -> None:
    """Raise an error unless an indicator has columns that exist."""
    require(indicator._n_features == indicator.n_features_in_, "_n_features")
    require(are_codes(indicator.features_, indicator.n_features_in_), "features_")


def check_function(step: Any, trusted: Collection[str]) -> None:
    """Raise an error if a function would get more than the samples: `where` leaves gaps."""
    for name in ("kw_args", "inv_kw_args"):
        require(not getattr(step, name), name)
    for name in ("func", "inverse_func"):
        function = getattr(step, name)
        full_name = f"{getattr(function, '__module__', '')}.{getattr(function, '__name__', '')}"
        is_known = function is None or isinstance(function, np.ufunc) or full_name in trusted
        require(is_known, name)
    require(step.feature_names_out in (None, "one-to-one"), "feature_names_out")


CHECKS: dict[type, Callable[[Any, Collection[str]], None]] = {
    Pipeline: check_pipeline,
    TabularPipeline: check_pipeline,
    ColumnTransformer: check_transformers,
    OneHotEncoder: check_encoder,
    StandardScaler: check_scaler,
    MinMaxScaler: check_scaler,
    MaxAbsScaler: check_scaler,
    RobustScaler: check_scaler,
    SimpleImputer: check_imputer,
    MissingIndicator: check_indicator,
    FunctionTransformer: check_function,
}
# Attributes that a scaler computes with, and the parameters without which it doesn't.
USED = {
    StandardScaler: {"mean_": "with_mean", "scale_": "with_std"},
    MinMaxScaler: {"scale_": "", "min_": ""},
    MaxAbsScaler: {"scale_": ""},
    RobustScaler: {"center_": "with_centering", "scale_": "with_scaling"},
}
