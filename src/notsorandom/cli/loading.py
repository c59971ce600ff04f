"""Open a model file and a data file for it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import notsorandom
from notsorandom.data.tables import Features, Table, open_table
from notsorandom.io import read_metadata


class ModelAndTable(NamedTuple):
    """A model and a data file that it is applied to."""

    # Without `feature_names_in_`: the table returns columns in the right order.
    model: Any
    record: dict[str, Any]  # see `read_fit_record`
    table: Table
    features: Features  # names of the columns that the model needs, or their number

    def resolve_target(self, target: str | None) -> str:
        """Return the target: the given one, that of the fit, or the default of the file."""
        table, fitted = self.table, self.record.get("target")
        if target is None and fitted is not None and table.default_target is None:
            is_number = fitted.lstrip("-").isdecimal()
            if is_number if table.columns is None else fitted in table.columns:
                target = fitted
        return table.resolve_target(target)

    @property
    def target_type(self) -> np.dtype[Any]:
        """The type of the targets of the model."""
        return np.dtype(float) if self.is_regression else self.model.classes_.dtype

    @property
    def is_regression(self) -> bool:
        """Whether the model has no classes."""
        return not hasattr(self.model, "classes_")


def open_model_and_table(model_path: Path, data_path: Path) -> ModelAndTable:
    """Open a model file and a data file for it; predictions use all cores."""
    if model_path.suffix.lower() != ".safetensors":
        raise ValueError(
            f"{model_path} is not a model file: give a .safetensors file first, then the data."
        )
    model = notsorandom.load(model_path).set_params(n_jobs=-1)
    record = read_fit_record(read_metadata(model_path))
    table = open_table(data_path, record.get("zero_based"))
    names = model.__dict__.pop("feature_names_in_", None)
    features = model.n_features_in_ if names is None else names.tolist()
    return ModelAndTable(model, record, table, features)


def read_fit_record(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return what ``notsorandom fit`` stored; empty if the model is not from that command."""
    record = metadata["description"].get("fit")
    return record if isinstance(record, dict) and "digest" in record else {}
