"""A model file and a data file, together."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import notsorandom
from notsorandom.models import describe
from notsorandom.tables import Table, open_table
from notsorandom.tables.table import Features


class Served(NamedTuple):
    """A model, and the table that it is asked about.

    Parameters
    ----------
    model : estimator
        Which needn't look at the names of columns: the table gives them in its order.
    about : dict
        What the command that fitted it wrote down.
    table : Table
    features : list of str or int
        The columns that the model wants.
    """

    model: Any
    about: dict[str, Any]
    table: Table
    features: Features


def open_both(model_path: Path, data_path: Path) -> Served:
    """Open a model and the data for it."""
    model = notsorandom.load(model_path)
    told = describe(model_path).get("about")
    about = told if isinstance(told, dict) else {}
    zero_based = about.get("zero_based")
    table = open_table(data_path, zero_based if isinstance(zero_based, bool) else None)
    names = model.__dict__.pop("feature_names_in_", None)
    return Served(model, about, table, model.n_features_in_ if names is None else names.tolist())


def target_of(served: Served, given: str | None) -> str:
    """The target's name: as given, as it was at fit, or the table's own."""
    told, columns = served.about.get("target"), served.table.columns
    if given is None and isinstance(told, str) and columns is not None and told in columns:
        given = told
    return served.table.chosen_target(given)


def target_type(model: Any) -> Any:
    """The type that targets have for a model."""
    classes = getattr(model, "classes_", None)
    return None if classes is None else classes.dtype
