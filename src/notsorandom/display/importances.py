"""Which columns a model depends on, and what they add to single predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.validation import check_is_fitted

from notsorandom._utils.parameters import check_number
from notsorandom.data.rows import Array
from notsorandom.display.figures import BLUE, axes_or_new, check_image_shape
from notsorandom.estimators.explanation import linear_slopes
from notsorandom.estimators.predictor import FourierPredictor
from notsorandom.tabular import NumberEncoder, TableCleaner

N_COLUMNS = 15
# Letters of a label, at its beginning and at its end.
LABEL_HEAD, LABEL_TAIL = 17, 10


def column_importances(model: Any, X: Any = None) -> dict[str, float]:
    """Return the share of each column of `X` in how a model's predictions change.

    Parameters
    ----------
    model : FourierClassifier, FourierRegressor, or a Pipeline that ends in one
        Fitted. The columns that :func:`notsorandom.tabular_pipeline` makes of one column, such as
        the categories of a text, count as one. The columns of other pipelines are counted one by
        one, under the names that the steps give them.
    X : array-like or data frame, optional
        Samples like the training samples. By default the shares are those of
        ``feature_importances_``, of some of the training samples.

    Returns
    -------
    dict of str to float
        The largest share first. They sum to one.

    Examples
    --------
    >>> import pandas as pd
    >>> from notsorandom import tabular_pipeline
    >>> from notsorandom.display import column_importances
    >>> frame = pd.DataFrame({"age": [30, 41, 52, 60] * 20, "city": ["Rome", "Oslo"] * 40})
    >>> model = tabular_pipeline(n_components=10, random_state=0).fit(frame, ["a", "b"] * 40)
    >>> list(column_importances(model))
    ['city', 'age']
    """
    shares = shares_in_order(model, X)
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def shares_in_order(model: Any, X: Any) -> dict[str, float]:
    """Return the share of each column, in the order of the columns."""
    last, given = last_step_and_samples(model, X)
    check_is_fitted(last)
    if X is not None:
        shares = last.importances(given).shares
    elif hasattr(last, "feature_importances_"):
        shares = last.feature_importances_
    else:
        raise ValueError(
            "The model has no feature_importances_, as on the sphere: fit with space='euclidean'."
        )
    return sum_by_name(source_columns(model, last._column_names()), shares.tolist())


def column_contributions(model: Any, X: Any) -> dict[str, Array]:
    """Return what each column of `X` adds to each decision value or prediction.

    See :meth:`notsorandom.FourierClassifier.contributions`: over the columns they add up to the
    value at the sample, less the value at the mean of the training samples.

    Parameters
    ----------
    model : FourierClassifier, FourierRegressor, or a Pipeline that ends in one
        Fitted; see :func:`column_importances`.
    X : array-like or data frame
        Samples.

    Returns
    -------
    dict of str to ndarray of shape (n_samples,) or (n_samples, n_tasks)
        By column. The latter for more than two classes, or several outputs.

    Examples
    --------
    >>> import pandas as pd
    >>> from notsorandom import tabular_pipeline
    >>> from notsorandom.display import column_contributions
    >>> frame = pd.DataFrame({"age": [30, 41, 52, 60] * 20, "city": ["Rome", "Oslo"] * 40})
    >>> model = tabular_pipeline(n_components=10, random_state=0).fit(frame, ["a", "b"] * 40)
    >>> pd.DataFrame(column_contributions(model, frame)).shape
    (80, 2)
    """
    last, X = last_step_and_samples(model, X)
    values = np.moveaxis(last.contributions(X), -1, 0)  # (n_columns, n_samples, ...)
    return sum_by_name(source_columns(model, last._column_names()), values)


def linear_coefficients(model: Any, X: Any) -> dict[str, float]:
    """Return the coefficients of a linear part per standard deviation of the column.

    They are by the name of the column that the last step of a pipeline gets, with the class or the
    output if there are several; the largest magnitude first.
    """
    last, given = last_step_and_samples(model, X)
    slopes = linear_slopes(last.kernel_, last.coef_) * last.importances(given).scales
    names, tasks = last._column_names(), [""]
    if not hasattr(last, "feature_names_in_"):  # arrays between the steps have no names
        names = source_columns(model, names)
    if len(slopes) > 1:
        labels = last.classes_.tolist() if hasattr(last, "classes_") else range(len(slopes))
        tasks = [f" ({label})" for label in labels]
    order = np.argsort(-np.abs(slopes), axis=None, kind="stable")
    pairs = zip(*np.unravel_index(order, slopes.shape), strict=True)
    return {f"{names[j]}{tasks[k]}": float(slopes[k, j]) for k, j in pairs}


def last_step_and_samples(model: Any, X: Any) -> tuple[FourierPredictor, Any]:
    """Return the last step of a pipeline, or the estimator, and the samples as it gets them."""
    last = model
    if isinstance(model, Pipeline):
        last = model[-1]
        X = model[:-1].transform(X) if len(model) > 1 and X is not None else X
    if not isinstance(last, FourierPredictor):
        raise TypeError(
            f"The model is a {type(last).__name__}: give a fitted FourierClassifier or "
            "FourierRegressor, or a pipeline that ends in one."
        )
    return last, X


def sum_by_name(names: list[str], values: Any) -> dict[str, Any]:
    """Return the sum of the values of each name, in the order of the names."""
    sums = dict.fromkeys(names, 0.0)
    for name, value in zip(names, values, strict=True):
        sums[name] = sums[name] + value
    return sums


def source_columns(model: Any, names: list[str]) -> list[str]:
    """Return the names of the columns that the last step gets.

    For a `tabular_pipeline`, each is replaced by the name of the table's column it is made of.
    """
    if not isinstance(model, Pipeline) or len(model) == 1:
        return names
    cleaner, encoder = model[0], model[1]
    if not isinstance(cleaner, TableCleaner) or not isinstance(encoder, ColumnTransformer):
        try:  # arrays between the steps have no names
            return model[:-1].get_feature_names_out().tolist()
        except AttributeError:  # a step without names
            return names
    dates = {
        f"{name}_{part}": name for name, parts in cleaner.date_parts_.items() for part in parts
    }
    sources: list[str] = []
    for part, step, _ in encoder.transformers_:
        columns = encoder.feature_names_in_[encoder._transformer_to_input_indices[part]].tolist()
        if not columns:  # a step without columns is not fitted
            continue
        if isinstance(step, OneHotEncoder):
            rare = getattr(step, "infrequent_categories_", [None] * len(columns))
            for column, categories, others in zip(columns, step.categories_, rare, strict=True):
                n_merged = 0 if others is None else len(others) - 1  # they share a column
                sources += [column] * (len(categories) - n_merged)
        elif isinstance(step, NumberEncoder):
            sources += [columns[k] for k in step.input_columns()]
        else:  # another step that users gave
            known = set(columns)
            for name in step.get_feature_names_out(columns):
                sources.append(name if name in known else name.removeprefix("missingindicator_"))
    return [dates.get(name, name) for name in sources]


class ImportancesDisplay:
    """Which columns a model depends on: a bar for each share, or an image of them.

    Parameters
    ----------
    shares : dict of str to float
        By column, as :func:`column_importances` returns them; for an image, in the order of its
        pixels.
    n_columns : int, default=15
        Most bars; the largest are drawn.
    image_shape : (height, width) or (height, width, n_channels), optional
        If the columns are pixels, in this order: shape of the images. Channels are added up.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from notsorandom import FourierClassifier
    >>> from notsorandom.datasets import make_windmill
    >>> from notsorandom.display import ImportancesDisplay
    >>> X, y = make_windmill(500, random_state=0)
    >>> model = FourierClassifier(20, random_state=0).fit(X, y)
    >>> display = ImportancesDisplay.from_estimator(model, X)
    """

    def __init__(
        self,
        shares: Mapping[str, float],
        n_columns: int = N_COLUMNS,
        image_shape: Sequence[int] | None = None,
    ) -> None:
        self.shares = shares
        self.n_columns = n_columns
        self.image_shape = image_shape

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        n_columns: int = N_COLUMNS,
        image_shape: Sequence[int] | None = None,
        ax: Any = None,
    ) -> ImportancesDisplay:
        """Draw the importances of the columns of `X`.

        Parameters
        ----------
        estimator : FourierClassifier, FourierRegressor, or a Pipeline that ends in one
            Fitted.
        X : array-like or data frame
            Samples like the training samples.
        n_columns : int, default=15
            Most bars; the largest are drawn.
        image_shape : tuple of int, optional
            If the columns are pixels: shape of the images.
        ax : matplotlib Axes, optional
            Where to draw; by default on a new figure.
        """
        return cls(shares_in_order(estimator, X), n_columns, image_shape).plot(ax)

    def plot(self, ax: Any = None) -> ImportancesDisplay:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default on a new figure.
        """
        values = np.array(list(self.shares.values()))
        if self.image_shape is not None:
            check_image_shape(self.image_shape, len(values))
        check_number("n_columns", self.n_columns, above=0, integer=True)
        self.ax_ = axis = axes_or_new(ax)
        self.figure_ = axis.figure
        if self.image_shape is not None:
            image = values.reshape(*self.image_shape[:2], -1).sum(axis=2)
            axis.imshow(image, cmap="Blues", vmin=0, interpolation="nearest")
            axis.set_axis_off()
            return self
        order = np.argsort(-values, kind="stable")[: self.n_columns][::-1]
        names = list(self.shares)
        axis.barh(range(len(order)), 100 * values[order], color=BLUE)
        axis.set_yticks(range(len(order)), [shorten_label(names[k]) for k in order])
        axis.set(xlabel="importance (%)")
        return self


def shorten_label(name: str) -> str:
    """Return a name that fits beside a bar, without marks that matplotlib reads as mathematics."""
    if len(name) > LABEL_HEAD + LABEL_TAIL + 3:
        name = f"{name[:LABEL_HEAD]}...{name[-LABEL_TAIL:]}"
    return name.replace("$", r"\$")
