"""Ordinary data frames: a pipeline of scikit-learn's own parts around an estimator.

A table is cleaned (:class:`TableCleaner`), its numbers are scaled (:class:`NumberEncoder`), its
categories are one-hot encoded, and the estimator gets the resulting columns, by name.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import ndtri
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.validation import check_is_fitted, validate_data

from notsorandom._utils.parameters import check_choice
from notsorandom.data.checks import format_names, import_pandas
from notsorandom.data.column_kinds import (
    DATE_PARTS,
    FREQUENT,
    convert,
    date_part,
    describe_mixture,
    infer_kind,
    is_ambiguous,
    parse_plain_numbers,
    why_useless,
)
from notsorandom.data.rows import Array
from notsorandom.estimators.classifier import FourierClassifier
from notsorandom.estimators.regressor import FourierRegressor
from notsorandom.spaces import Euclidean

ESTIMATORS: dict[str, Any] = {"classifier": FourierClassifier, "regressor": FourierRegressor}
# Most columns that are made of one column of categories.
MAX_CATEGORIES = 100
# Rows up to which numbers in text are read cell by cell. From 2000 on, pandas is faster.
SHORT = 1000
# Share of numbers or dates in a column of categories that is warned of.
MOSTLY = 0.8
OUTPUTS = ("raw", "scores", "both")
# Largest absolute value of a scaled number, in units of the interquartile range, and of a score.
LIMIT = 3.0
# Distinct values up to which a column has no scores: hardly more than codes, or answers on a scale.
FEW_VALUES = 10
# Most knots of a column's scores: 128 pairs, whose scores are 0.05 apart.
MAX_KNOTS = 256
# Smaller values are zero among the knots, whose slopes would overflow else.
TINY = 1e-290
# Names of columns of scores, as a regular expression.
SCORE_COLUMNS = r"(?s).* \(score\)\Z"
# Scaled numbers whose square doesn't overflow, and which are at the limit to the last digit.
HUGE = 1e100


def tabular_pipeline(
    estimator: Any = "classifier", *, numbers: str = "auto", **parameters: Any
) -> Pipeline:
    """Return a pipeline that fits an estimator to a data frame as people have them.

    - Numbers are scaled by their quartiles, with smooth limits for outliers. Their normal scores
      are additional columns (:class:`notsorandom.tabular.NumberEncoder`). Missing ones become the
      median, with an additional column that says where they were missing.
    - Categories (text) are one-hot encoded. Those of fewer than 5 rows share a column, which
      unknown ones get too at predict. Missing ones are a category of their own.
    - Booleans, also as text such as "yes" and "No", become 0 and 1.
    - Dates, also as text, become days since 1970, month, day, weekday and hour, if these vary.
    - Columns that say nothing are left out, with a warning: constant or empty ones, text that is
      nowhere repeated, and numbers of rows.

    Parameters
    ----------
    estimator : {"classifier", "regressor"} or estimator, default="classifier"
        The last step: :class:`FourierClassifier`, :class:`FourierRegressor`, or an estimator, which
        is cloned.
    numbers : {"auto", "raw", "scores", "both"}, default="auto"
        Whether the estimator gets numbers scaled, as normal scores, or both: the `output` of
        :class:`notsorandom.tabular.NumberEncoder`. With ``"auto"``, our classifier and regressor on
        R^d get both, and their trials choose whether to use the scores (`optional_columns`); other
        estimators get ``"raw"``.
    **parameters : dict
        Parameters of the estimator.

    Returns
    -------
    Pipeline
        With steps ``clean`` (:class:`notsorandom.tabular.TableCleaner`), ``encode``
        (``ColumnTransformer``) and ``model``. Needs pandas, which the extra ``tables`` installs.

    Examples
    --------
    >>> import pandas as pd
    >>> from notsorandom import tabular_pipeline
    >>> frame = pd.DataFrame({"age": [30, None, 52, 41] * 20, "city": ["Rome", "Oslo"] * 40})
    >>> model = tabular_pipeline("classifier", n_components=10, random_state=0)
    >>> model.fit(frame, ["a", "b"] * 40).predict(frame.head(2)).tolist()
    ['a', 'b']
    """
    check_choice("numbers", numbers, ["auto", *OUTPUTS])
    if isinstance(estimator, str):
        if estimator not in ESTIMATORS:
            raise ValueError(
                f"estimator={estimator!r} is not allowed: give 'classifier', 'regressor' or an "
                "estimator."
            )
        model = ESTIMATORS[estimator](**parameters)
    elif hasattr(estimator, "fit") and not isinstance(estimator, type):
        model = clone(estimator).set_params(**parameters)
    else:
        raise TypeError(
            f"estimator={estimator!r} is not allowed: give 'classifier', 'regressor' or an "
            "estimator, such as FourierClassifier()."
        )
    if numbers == "auto":
        is_euclidean = isinstance(model, FourierClassifier | FourierRegressor) and (
            model.space == "euclidean"
            or (isinstance(model.space, Euclidean) and model.space.has_batched_trials)
        )
        numbers = "both" if is_euclidean else "raw"
        # An estimator may have optional columns of its own.
        if is_euclidean and "optional_columns" not in parameters and not model.optional_columns:
            model.set_params(optional_columns=SCORE_COLUMNS)
    categories = OneHotEncoder(
        handle_unknown="infrequent_if_exist",
        min_frequency=FREQUENT,
        max_categories=MAX_CATEGORIES,
        sparse_output=False,
        feature_name_combiner=name_category,
    )
    encode = ColumnTransformer(
        [
            ("number", NumberEncoder(numbers), make_column_selector(dtype_include="number")),
            ("category", categories, make_column_selector(dtype_exclude="number")),
        ],
        # The steps give names that differ from the table's: the last step alone refuses the table.
        verbose_feature_names_out="{feature_name}",
    ).set_output(transform="pandas")
    for _, step, _ in encode.transformers:  # arrays, of which one frame is made: much faster
        step.set_output(transform="default")
    return Pipeline([("clean", TableCleaner()), ("encode", encode), ("model", model)])


class TableCleaner(TransformerMixin, BaseEstimator):
    """Turn an ordinary data frame into one of numbers and categories.

    See :func:`notsorandom.tabular_pipeline`. What a column is taken for is decided at `fit`; a
    value that is something else later, such as text in a column of numbers, is an error that says
    where it is.

    Attributes
    ----------
    kinds_ : dict of str to str
        What each column was taken for: ``"number"``, ``"boolean"``, ``"category"``, ``"date"``, or
        ``"left out"``.
    left_out_ : dict of str to str
        Columns that are left out, and why.
    formats_ : dict of str to str
        The format of dates, and of numbers that are text and have another than the usual one.
    date_parts_ : dict of str to list of str
        The parts of each date that vary.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
    n_features_in_ : int

    Examples
    --------
    >>> import pandas as pd
    >>> from notsorandom.tabular import TableCleaner
    >>> frame = pd.DataFrame({"paid": ["yes", "No", None], "when": ["1.2.2020", "3.2.2020", ""]})
    >>> TableCleaner().fit_transform(frame).columns.tolist()
    ['paid', 'when_days', 'when_day', 'when_weekday']
    """

    def fit(self, X: Any, y: Any = None) -> TableCleaner:
        """Decide what each column is.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_features)
            Of pandas, or of a library whose frames have the method ``to_pandas``. The columns of an
            array are called x0, x1, and so on.
        y : object, optional
            Ignored.

        Returns
        -------
        self
        """
        frame = as_frame(X)
        kinds: dict[str, str] = {}
        left_out: dict[str, str] = {}
        formats: dict[str, str] = {}
        parts: dict[str, list[str]] = {}
        for name, column in frame.items():
            kinds[name], text_format = infer_kind(column)
            values = convert(column, name, kinds[name], text_format)
            reason = why_useless(name, values)
            warn_of_doubts(name, column, values, kinds[name], text_format)
            if reason:
                kinds[name], left_out[name] = "left out", reason
                continue
            if text_format:
                formats[name] = text_format
            if kinds[name] == "date":
                parts[name] = [p for p in DATE_PARTS if date_part(values, p).nunique() > 1]
        reasons = ", ".join(f"{name!r} ({reason})" for name, reason in left_out.items())
        if len(left_out) == len(kinds):
            raise ValueError(f"All columns of {len(frame)} sample(s) were left out: {reasons}.")
        made = {f"{name}_{part}" for name in parts for part in parts[name]}
        if made & set(kinds):
            raise ValueError(
                f"Columns {format_names(sorted(made & set(kinds)))} would be made of "
                f"dates, but exist already: rename them."
            )
        if left_out:
            warnings.warn(f"Columns left out: {reasons}.", stacklevel=2)
        self.kinds_, self.left_out_, self.formats_, self.date_parts_ = (
            kinds,
            left_out,
            formats,
            parts,
        )
        self.feature_names_in_ = np.array(frame.columns, dtype=object)
        self.n_features_in_ = len(frame.columns)
        return self

    def transform(self, X: Any) -> Any:
        """Return a data frame of numbers (float64, NaN where missing) and categories (text).

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_features)
            With the same columns as at fit.
        """
        check_is_fitted(self)
        frame = as_frame(X, self.feature_names_in_)
        known = set(frame.columns) | set(self.left_out_)
        missing = [name for name in self.kinds_ if name not in known]
        if missing:
            raise ValueError(
                f"X lacks columns that it had at fit: {format_names(missing)}. X has "
                f"{frame.shape[1]} features, but TableCleaner is expecting "
                f"{self.n_features_in_} features as input."
            )
        # Numbers in one block: a column at a time would take longer than all that follows.
        kinds = {name: kind for name, kind in self.kinds_.items() if kind in ("number", "boolean")}
        types = dict(zip(frame.columns, frame.dtypes, strict=True))
        plain = [n for n in kinds if isinstance(types[n], np.dtype) and types[n].kind in "biuf"]
        numbers = frame[plain].to_numpy(np.float64, copy=True)
        finite = np.isfinite(numbers)
        if not finite.all():
            numbers[~finite] = np.nan
        pandas = import_pandas()
        names = self.get_feature_names_out()
        if len(plain) == len(names):
            return pandas.DataFrame(numbers, columns=plain, copy=False)
        columns: dict[str, Any] = dict(zip(plain, numbers.T, strict=True))
        texts = []
        if len(frame) <= SHORT:
            texts = [n for n in kinds if kinds[n] == "number" and types[n].kind == "O"]
            texts = [name for name in texts if name not in self.formats_]
        cells = frame[texts].to_numpy(object)
        for name, column in zip(texts, cells.T, strict=True):
            values = parse_plain_numbers(column)
            if values is not None:
                columns[name] = values
        for name, kind in self.kinds_.items():
            if kind == "left out" or name in columns:
                continue
            values = convert(frame[name], name, kind, self.formats_.get(name, ""))
            if kind == "date":
                for part in self.date_parts_[name]:
                    columns[f"{name}_{part}"] = date_part(values, part).to_numpy()
            else:
                columns[name] = values.to_numpy()
        return pandas.DataFrame({name: columns[name] for name in names})

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the columns of the clean frame.

        Parameters
        ----------
        input_features : object, optional
            Ignored.
        """
        check_is_fitted(self)
        names: list[str] = []
        for name, kind in self.kinds_.items():
            if kind == "date":
                names += [f"{name}_{part}" for part in self.date_parts_[name]]
            elif kind != "left out":
                names.append(name)
        return np.array(names, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = []
        return tags


class NumberEncoder(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    r"""Scale numbers by their quartiles, and add their normal scores and where they are missing.

    As a number, a column becomes :math:`z / \sqrt{1 + (z / 3)^2}`, where :math:`z` is its distance
    from the median in units of the interquartile range, or of half the range if that is zero.
    Values stay between -3 and 3, and the middle of a column changes little.

    As a score, it becomes the quantile of the normal distribution at the value's rank among the
    training values, between -3 and 3: linear between at most 256 of them, constant outside of their
    range. Equal values have their mean rank. Only columns of more than ten distinct values have
    scores.

    Missing values (NaN) become 0 in both, and a column of zeros and ones says where they are if any
    were missing at `fit`.

    Parameters
    ----------
    output : {"raw", "scores", "both"}, default="both"
        ``"raw"``: columns as numbers. ``"scores"``: as scores, and as numbers where there are none.
        ``"both"``: as numbers, and as scores where there are any.

    Attributes
    ----------
    center_, scale_ : ndarrays of shape (`n_features_in_`,)
        Medians, and units of the distances from them.
    number_columns_, score_columns_, missing_columns_ : ndarrays of int
        The columns of `X` that are given as numbers, as scores, and by where they are missing, in
        the order of the output.
    knots_ : list of ndarrays of shape (2, n_knots)
        Values, which increase, and their scores: for each of `score_columns_`.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)

    Examples
    --------
    >>> from notsorandom.tabular import NumberEncoder
    >>> encoder = NumberEncoder().fit([[k**3] for k in range(101)])
    >>> encoder.get_feature_names_out().tolist()
    ['x0 (number)', 'x0 (score)']
    >>> encoder.transform([[50**3], [float("nan")]]).tolist()
    [[0.0, 0.0], [0.0, 0.0]]
    """

    def __init__(self, output: str = "both") -> None:
        self.output = output

    def fit(self, X: Any, y: Any = None) -> NumberEncoder:
        """Compute median, scale and scores of each column.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Numbers; NaN where they are missing.
        y : object, optional
            Ignored.
        """
        check_choice("output", self.output, OUTPUTS)
        X = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # columns of NaN only
            least, lower, center, upper, most = np.nanquantile(X, [0, 0.25, 0.5, 0.75, 1], axis=0)
        scale = np.where(upper > lower, upper - lower, (most - least) / 2)
        self.center_ = np.where(np.isnan(center), 0.0, center)
        self.scale_ = np.where(scale > 0, scale, 1.0)
        self.missing_columns_ = np.flatnonzero(np.isnan(X).any(axis=0))
        knots = [np.empty((2, 0)) if self.output == "raw" else score_knots(x) for x in X.T]
        has_score = np.array([each.size > 0 for each in knots])
        self.score_columns_ = np.flatnonzero(has_score)
        self.knots_ = [knots[k] for k in self.score_columns_]
        self.number_columns_ = np.flatnonzero(~has_score | (self.output != "scores"))
        return self

    def transform(self, X: Any) -> Array:
        """Return the columns as numbers, as scores, and by where they are missing.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Numbers; NaN where they are missing.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False)
        encoded = np.empty((len(X), len(self.input_columns())), order="F")
        n_numbers = len(self.number_columns_)
        # In place: temporary arrays take most of the time.
        scaled = encoded[:, :n_numbers]
        given = X if n_numbers == X.shape[1] else X[:, self.number_columns_]
        with np.errstate(over="ignore"):  # of what is clipped
            np.subtract(given, self.center_[self.number_columns_], out=scaled)
            scaled /= self.scale_[self.number_columns_]
        np.clip(scaled, -HUGE, HUGE, out=scaled)
        divisor = scaled * scaled
        divisor /= LIMIT**2
        divisor += 1
        np.sqrt(divisor, out=divisor)
        scaled /= divisor
        for place, (column, knots) in enumerate(zip(self.score_columns_, self.knots_, strict=True)):
            encoded[:, n_numbers + place] = np.interp(X[:, column], *knots)
        n_known = n_numbers + len(self.knots_)
        encoded[:, n_known:] = np.isnan(X[:, self.missing_columns_])
        encoded[np.isnan(encoded)] = 0.0
        return encoded

    def input_columns(self) -> Array:
        """Return the number of the column of `X` that each column of the output is made of."""
        return np.concatenate([self.number_columns_, self.score_columns_, self.missing_columns_])

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return names such as "age (number)", "age (score)" and "age (missing)".

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the columns of `X`; by default those at fit.
        """
        names = super().get_feature_names_out(input_features)  # checked
        forms = ["number"] * len(self.number_columns_) + ["score"] * len(self.score_columns_)
        forms += ["missing"] * len(self.missing_columns_)
        pairs = zip(names[self.input_columns()], forms, strict=True)
        return np.array([f"{name} ({form})" for name, form in pairs], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def score_knots(values: Array) -> Array:
    """Return the knots of a column's scores, of shape (2, n_knots); none for few distinct values.

    Up to 256 distinct values are all knots. Of more, those are taken on both sides of 128 evenly
    spaced scores: other training values are then less than the spacing from their scores.
    """
    known = values[~np.isnan(values)]
    known[np.abs(known) < TINY] = 0.0
    known, counts = np.unique(known, return_counts=True)
    if len(known) <= FEW_VALUES:
        return np.empty((2, 0))
    shares = (np.cumsum(counts) - counts / 2) / counts.sum()  # mean ranks from 0 to 1
    scores = np.clip(ndtri(shares), -LIMIT, LIMIT)
    if len(known) > MAX_KNOTS:
        above = np.searchsorted(scores, np.linspace(-LIMIT, LIMIT, MAX_KNOTS // 2))
        chosen = np.unique(np.clip([above - 1, above], 0, len(known) - 1))
        known, scores = known[chosen], scores[chosen]
    return np.array([known, scores])


def name_category(column: str, category: Any) -> str:
    """Return the name of the column of a category."""
    return f"{column}_{category} (category)"


def warn_of_doubts(name: str, column: Any, values: Any, kind: str, text_format: str) -> None:
    """Warn of categories that are numbers or dates but for a few, and of dates of two readings."""
    mixture = describe_mixture(values, MOSTLY) if kind == "category" else ""
    if mixture:
        warnings.warn(
            f"Column {name!r} is taken for categories: {mixture}. Correct or empty such cells to "
            f"use it as {'dates' if 'are dates' in mixture else 'numbers'}.",
            stacklevel=3,
        )
    if kind == "date" and is_ambiguous(column, text_format):
        warnings.warn(
            f"Dates of column {name!r} are read as month/day/year, but may be day/month/year: "
            "convert them by pandas.to_datetime(..., dayfirst=True) if they are.",
            stacklevel=3,
        )


def as_frame(X: Any, names: Array | None = None) -> Any:
    """Return a table as a pandas frame; the columns of an array get the names, or x0, x1, ..."""
    pandas = import_pandas()
    if sparse.issparse(X):
        raise TypeError("X is sparse, but a table is needed: fit the estimator itself to sparse X.")
    if not isinstance(X, pandas.DataFrame):
        if hasattr(X, "to_pandas"):
            X = X.to_pandas()
        else:
            X = np.asarray(X)
            if X.dtype.kind == "c":
                raise ValueError("Complex data not supported: give real numbers.")
            if X.ndim != 2:
                raise ValueError(
                    f"Expected 2D array, got {X.ndim}D array instead: give a data frame. Reshape "
                    "your data either using array.reshape(-1, 1) if it has a single feature or "
                    "array.reshape(1, -1) if it contains a single sample."
                )
            if names is not None and len(names) == X.shape[1]:
                X = pandas.DataFrame(X, columns=names)
            else:
                X = pandas.DataFrame(X, columns=[f"x{k}" for k in range(X.shape[1])])
    is_named = X.columns.inferred_type == "string"
    columns = X.columns if is_named else X.columns.map(str)
    if not columns.is_unique:
        repeated = columns[columns.duplicated()].unique().tolist()
        raise ValueError(f"X has columns of the same name, {format_names(repeated)}: rename them.")
    if not len(X) or not len(columns):
        raise ValueError(
            f"Found array with {len(X)} sample(s) and {len(columns)} feature(s) "
            f"(shape={X.shape}) while a minimum of 1 is required."
        )
    return X if is_named else X.set_axis(columns, axis=1)
