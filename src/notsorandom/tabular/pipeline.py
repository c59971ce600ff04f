"""A pipeline around an estimator, for data frames as people have them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.metaestimators import available_if

from notsorandom._utils.parameters import check_choice
from notsorandom.data.column_kinds import FREQUENT
from notsorandom.estimators.classifier import FourierClassifier
from notsorandom.estimators.regressor import FourierRegressor
from notsorandom.spaces import Euclidean
from notsorandom.tabular.cleaner import TableCleaner
from notsorandom.tabular.numbers import OUTPUTS, SCORE_COLUMNS, NumberEncoder

ESTIMATORS: dict[str, Any] = {"classifier": FourierClassifier, "regressor": FourierRegressor}
# Most columns that are made of one column of categories.
MAX_CATEGORIES = 100


def if_last_has(name: str) -> Callable[[Any], Any]:
    """Return a decorator of a method that a pipeline has only if its last step has it."""
    return available_if(lambda pipeline: getattr(pipeline[-1], name))  # its error says why not


class TabularPipeline(Pipeline):
    """A pipeline with intervals and sets of its last step: :func:`notsorandom.tabular_pipeline`.

    Parameters
    ----------
    steps : list of tuple
        Names and estimators, in order.
    transform_input, memory, verbose : optional
        As of scikit-learn's ``Pipeline``.
    """

    @if_last_has("predict_interval")
    def predict_interval(self, X: Any, coverage: Any = 0.9) -> Any:
        """Return intervals that cover the targets with a given probability.

        Parameters
        ----------
        X : data frame
            Samples, with the same columns as at fit.
        coverage : float or array-like of float, default=0.9
            See :meth:`notsorandom.FourierRegressor.predict_interval`.

        Returns
        -------
        ndarray of shape (n_samples, 2) or (n_samples, n_outputs, 2)
        """
        return self[-1].predict_interval(self[:-1].transform(X), coverage)

    @if_last_has("predict_set")
    def predict_set(self, X: Any, coverage: Any = 0.9) -> Any:
        """Return sets of classes that contain the true one with a given probability.

        Parameters
        ----------
        X : data frame
            Samples, with the same columns as at fit.
        coverage : float or array-like of float, default=0.9
            See :meth:`notsorandom.FourierClassifier.predict_set`.

        Returns
        -------
        boolean ndarray of shape (n_samples, n_classes)
        """
        return self[-1].predict_set(self[:-1].transform(X), coverage)

    @if_last_has("calibrate")
    def calibrate(self, X: Any, y: Any, sample_weight: Any = None) -> TabularPipeline:
        """Set what intervals and sets need from samples that the pipeline was not fitted to.

        Parameters
        ----------
        X : data frame
            Samples, with the same columns as at fit.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Their targets.
        sample_weight : array-like of shape (n_samples,), optional
            Weight 2 counts a sample twice, weight 0 leaves it out.

        Returns
        -------
        self
        """
        self[-1].calibrate(self[:-1].transform(X), y, sample_weight)
        return self


def tabular_pipeline(
    estimator: Any = "classifier", *, numbers: str = "auto", **parameters: Any
) -> TabularPipeline:
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
        R^d get both, and their trials choose whether to use the scores (`optional_columns`); of
        more than 10,000 columns, and fewer rows, they get ``"raw"``. Others get ``"raw"``.
    **parameters : dict
        Parameters of the estimator.

    Returns
    -------
    TabularPipeline
        A scikit-learn ``Pipeline`` that also has `predict_interval`, `predict_set` and `calibrate`
        if its last step has them. Its steps are ``clean``
        (:class:`notsorandom.tabular.TableCleaner`), ``encode`` (``ColumnTransformer``) and
        ``model``. Needs pandas, which the extra ``tables`` installs.

    Examples
    --------
    >>> import pandas as pd
    >>> from notsorandom import tabular_pipeline
    >>> frame = pd.DataFrame({"age": [30, None, 52, 41] * 20, "city": ["Rome", "Oslo"] * 40})
    >>> model = tabular_pipeline("classifier", n_components=10, random_state=0)
    >>> model.fit(frame, ["a", "b"] * 40).predict(frame.head(2)).tolist()
    ['a', 'b']
    """
    check_choice("numbers", numbers, OUTPUTS)
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
        numbers = "auto" if is_euclidean else "raw"
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
            ("number", NumberEncoder(numbers), find_numbers),
            ("category", categories, find_categories),
        ],
        # The steps give names that differ from the table's: the last step alone refuses the table.
        verbose_feature_names_out="{feature_name}",
    ).set_output(transform="pandas")
    for _, step, _ in encode.transformers:  # arrays, of which one frame is made: much faster
        step.set_output(transform="default")
    return TabularPipeline([("clean", TableCleaner()), ("encode", encode), ("model", model)])


# Positions instead of names: scikit-learn searches the place of each name in the list of all.
def find_numbers(frame: Any) -> list[int]:
    """Return the positions of the columns of numbers in a clean frame."""
    return np.flatnonzero(frame.dtypes == np.float64).tolist()


def find_categories(frame: Any) -> list[int]:
    """Return the positions of the other columns in a clean frame."""
    return np.flatnonzero(frame.dtypes != np.float64).tolist()


def name_category(column: str, category: Any) -> str:
    """Return the name of the column of a category."""
    return f"{column}_{category} (category)"
