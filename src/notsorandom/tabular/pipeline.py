"""A pipeline around an estimator, for data frames as people have them."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder

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


def name_category(column: str, category: Any) -> str:
    """Return the name of the column of a category."""
    return f"{column}_{category} (category)"
