"""Data frames turned into numbers and categories, without columns that say nothing."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from notsorandom.data.checks import format_names, import_pandas, in_few_blocks
from notsorandom.data.column_kinds import (
    DATE_PARTS,
    convert,
    date_part,
    describe_mixture,
    infer_kind,
    is_ambiguous,
    parse_plain_numbers,
    useless_numbers,
    why_useless,
)
from notsorandom.data.rows import Array

# Numbers that are judged at a time: some megabytes.
BLOCK_SIZE = 2**20
# Rows up to which numbers in text are read cell by cell. From 2000 on, pandas is faster.
SHORT = 1000
# Share of numbers or dates in a column of categories that is warned of.
MOSTLY = 0.8


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
        left_out: dict[str, str] = {}
        formats: dict[str, str] = {}
        parts: dict[str, list[str]] = {}
        types = frame.dtypes.tolist()
        plain = np.flatnonzero([is_plain(dtype) for dtype in types])
        kinds = {
            name: "boolean" if dtype.kind == "b" else "number"
            for name, dtype in zip(frame.columns, types, strict=True)
        }
        for start in range(0, len(plain), step := BLOCK_SIZE // len(frame) + 1):
            block = frame.iloc[:, plain[start : start + step]]
            left_out |= useless_numbers(block.columns, to_numbers(block))
        for number in np.setdiff1d(np.arange(len(kinds)), plain):
            name, column = frame.columns[number], frame.iloc[:, number]
            kinds[name], text_format = infer_kind(column)
            values = convert(column, name, kinds[name], text_format)
            reason = why_useless(values)
            if values.dtype.kind == "f":
                reason = useless_numbers([name], values.to_numpy()[:, None]).get(name, "")
            warn_of_doubts(name, column, values, kinds[name], text_format)
            if reason:
                left_out[name] = reason
                continue
            if text_format:
                formats[name] = text_format
            if kinds[name] == "date":
                parts[name] = [p for p in DATE_PARTS if date_part(values, p).nunique() > 1]
        left_out = {name: left_out[name] for name in kinds if name in left_out}
        kinds |= dict.fromkeys(left_out, "left out")
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
        plain = [name for name in kinds if is_plain(types[name])]
        numbers = to_numbers(frame[plain])
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


def is_plain(dtype: Any) -> bool:
    """Return whether a column's type is one of NumPy's for numbers or booleans."""
    return isinstance(dtype, np.dtype) and dtype.kind in "biuf"


def to_numbers(frame: Any) -> Array:
    """Return columns of numbers as one array of float64, in which infinite ones are missing."""
    numbers: Array = frame.to_numpy(np.float64, copy=True)
    finite = np.isfinite(numbers)
    if not finite.all():
        numbers[~finite] = np.nan
    return numbers


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
    return in_few_blocks(X if is_named else X.set_axis(columns, axis=1))
