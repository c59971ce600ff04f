"""A model file and a data file, together."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import notsorandom
from notsorandom.data.tables import Table, open_table
from notsorandom.data.tables.table import Features
from notsorandom.io import describe

# What the command that fits writes down, and what it is.
FACTS: dict[str, Any] = {
    "target": str,
    "rows": int,
    "holdout": float,
    "seed": int,
    "scaled": bool,
    "zero_based": bool | None,
    "digest": str,
    "spectrum": dict,
}


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
    if model_path.suffix.lower() != ".safetensors":
        raise ValueError(
            f"{model_path} is not a model: give first a .safetensors file, then the data."
        )
    if not model_path.exists():
        raise ValueError(f"{model_path}: there is no such file. Is the path right?")
    model = notsorandom.load(model_path)
    about = facts_of(describe(model_path))
    table = open_table(data_path, about.get("zero_based"))
    names = model.__dict__.pop("feature_names_in_", None)
    return Served(model, about, table, model.n_features_in_ if names is None else names.tolist())


def facts_of(told: dict[str, Any]) -> dict[str, Any]:
    """What ``notsorandom fit`` wrote down, if it did, and if all of it is as it should be."""
    about = told.get("about")
    facts = about.get("fit") if isinstance(about, dict) else None
    if not isinstance(facts, dict) or set(facts) != set(FACTS):
        return {}
    return facts if all(isinstance(facts[name], FACTS[name]) for name in FACTS) else {}


def target_of(served: Served, given: str | None) -> str:
    """The target's name: as given, as it was at fit, or the table's own."""
    told, table = served.about.get("target"), served.table
    if given is None and told is not None and table.own_target is None:
        by_number = table.columns is None and served.about["target"].lstrip("-").isdecimal()
        if by_number or (table.columns is not None and told in table.columns):
            given = told
    return table.chosen_target(given)


def target_type(model: Any) -> Any:
    """The type that targets have for a model."""
    classes = getattr(model, "classes_", None)
    return None if classes is None else classes.dtype
