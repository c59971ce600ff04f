"""Open a model file, and read data files for it in blocks of rows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline

import notsorandom
from notsorandom._utils.threads import prefetch
from notsorandom.data.checks import format_names
from notsorandom.data.columns import BOOLEANS, to_text
from notsorandom.data.files import DataFile
from notsorandom.data.rows import Array
from notsorandom.estimators.base import FourierEstimator
from notsorandom.io import read_metadata
from notsorandom.tabular import TableCleaner

# Bytes of the features of a block, and its fewest rows.
BLOCK_BYTES, MIN_ROWS = 2**25, 1024
# The target of files whose columns have no names.
UNNAMED_TARGET = "y"
SETTINGS = {"training samples": "n_samples_fit_", "loss": "loss", "C": "C_"}
SETTINGS |= {"smoothing": "smoothing_", "search spectrum": "spectrum_"}
SETTINGS |= {"temperature": "temperature_"}
PLURALS = {"number": "numbers", "category": "categories", "boolean": "booleans", "date": "dates"}


@dataclass(frozen=True)
class LoadedModel:
    """A model, and what ``notsorandom fit`` recorded about it."""

    model: Any
    metadata: Mapping[str, Any]
    record: Mapping[str, Any]

    @classmethod
    def open(cls, path: Path) -> LoadedModel:
        """Load a model file; predictions use all cores."""
        if path.suffix.lower() != ".skops":
            raise ValueError(
                f"{path} is not a model file: give a .skops file first, then the data."
            )
        model, metadata = notsorandom.load(path), read_metadata(path)
        if "n_jobs" in last_step(model).get_params(deep=False):
            last_step(model).set_params(n_jobs=-1)
        record = metadata["description"].get("fit")
        return cls(model, metadata, record if isinstance(record, dict) else {})

    @property
    def cleaner(self) -> TableCleaner | None:
        """The first step of a pipeline for tables."""
        first = self.model[0] if isinstance(self.model, Pipeline) else None
        return first if isinstance(first, TableCleaner) else None

    @property
    def names(self) -> list[str] | None:
        """Names of the columns that the model needs, or None if they have none."""
        if self.cleaner is not None:
            return [name for name, kind in self.cleaner.kinds_.items() if kind != "left out"]
        names = getattr(self.model, "feature_names_in_", None)
        return None if names is None else names.tolist()

    def describe(self) -> dict[str, Any]:
        """Return what is known about the model."""
        model, last = self.model, last_step(self.model)
        steps = model.named_steps.values() if isinstance(model, Pipeline) else [model]
        task = "classification" if is_classifier(model) else "regression"
        kinds = {} if self.cleaner is None else self.cleaner.kinds_
        left_out = {} if self.cleaner is None else self.cleaner.left_out_
        columns = {
            plural: [name for name, kind in kinds.items() if kind == single] or None
            for single, plural in PLURALS.items()
        }
        return {
            "task": task if hasattr(model, "predict") else "features",
            "target": self.record.get("target"),
            "classes": model.classes_.tolist() if is_classifier(model) else None,
            "columns": int(model.n_features_in_),
            **(columns if kinds else {"names": self.names}),
            "left out": [f"{name} ({reason})" for name, reason in left_out.items()] or None,
            "date parts": (self.cleaner.date_parts_ if self.cleaner else None) or None,
            "model": " -> ".join(type(step).__name__ for step in steps),
            "features": last.kernel_.n_components if hasattr(last, "kernel_") else None,
            **{name: getattr(last, attribute, None) for name, attribute in SETTINGS.items()},
        }

    def blocks(
        self, file: DataFile, others: Sequence[str] = (), are_numbers: bool = False
    ) -> Iterator[tuple[Any, Mapping[str, Any]]]:
        """Iterate over samples as the model takes them, with other columns by name."""
        names, n_features = self.names, self.model.n_features_in_
        width = n_features + getattr(last_step(self.model), "n_components", 0)
        max_rows = max(MIN_ROWS, BLOCK_BYTES // (8 * width))
        if not file.is_frame:
            if names is not None:
                raise ValueError(
                    f"{file.path} has no column names, but the model needs {format_names(names)}: "
                    "give a .csv or .parquet file."
                )
            zero_based = self.record.get("zero_based")
            X, y = file.read_matrix(n_features, "auto" if zero_based is None else zero_based)
            check_width(file, X.shape[1], n_features)
            for start in range(0, X.shape[0], max_rows):
                rows = slice(start, start + max_rows)
                yield X[rows], {} if y is None else {UNNAMED_TARGET: y[rows]}
            return
        if names is None:
            left_out = {*others, self.record.get("target")}
            names = [name for name in file.columns if name not in left_out]
            check_width(file, len(names), n_features)
        kinds = {} if self.cleaner is None else self.cleaner.kinds_
        texts = [name for name in names if kinds.get(name, "number") != "number"]
        texts += [] if are_numbers else [name for name in others if name not in names]
        wanted = list(dict.fromkeys([*names, *others]))
        for frame in prefetch(file.blocks(wanted, texts, max_rows)):
            samples = frame[names]
            yield samples.to_numpy() if self.names is None else samples, frame[list(others)]

    def labelled_blocks(self, file: DataFile, target: str | None) -> Iterator[tuple[Any, Any]]:
        """Iterate over samples and their targets, by default those with the name of the fit."""
        name = (target or self.record.get("target")) if file.is_frame else UNNAMED_TARGET
        if name is None:
            raise ValueError(f"Give --target, one of {format_names(file.columns)}.")
        classes = getattr(self.model, "classes_", np.zeros(0))
        for X, others in self.blocks(file, [name], are_numbers=classes.dtype.kind in "iuf"):
            if name not in others:
                raise ValueError(f"{file.path} has no target: give a file with one.")
            yield drop_unlabelled(X, others[name])


def drop_unlabelled(X: Any, target: Any) -> tuple[Any, Any]:
    """Return samples and targets without the rows that have no target."""
    import pandas as pd

    column = pd.Series(target)
    known = np.flatnonzero(column.notna())
    if len(known) == len(column):
        return X, column
    return X.iloc[known] if hasattr(X, "iloc") else X[known], column.iloc[known]


def check_width(file: DataFile, width: int, expected: int) -> None:
    """Raise ValueError unless a file has as many columns as a model without names needs."""
    if width != expected:
        raise ValueError(
            f"{file.path} has {width} columns, but the model was fitted to {expected} without "
            "names: give a file with as many."
        )


def last_step(model: Any) -> Any:
    """Return the last step of a pipeline, or the estimator itself."""
    return model[-1] if isinstance(model, Pipeline) else model


def encode(model: Any, X: Any) -> tuple[Any, Any]:
    """Return the last step of a pipeline, and samples as it gets them, to use them repeatedly."""
    last = last_step(model)
    if last is model or not isinstance(last, FourierEstimator):
        return model, X
    return last, model[:-1].transform(X)


@contextmanager
def counted_from(first_row: int) -> Iterator[None]:
    """Say in errors about a row of a block how many rows came before the block."""
    try:
        yield
    except ValueError as error:
        if not first_row:
            raise
        raise ValueError(f"Of the rows after the first {first_row}: {error}") from error


def to_labels(column: Any, classes: Array, first_row: int = 0) -> Array:
    """Return targets in the type of the classes; raise ValueError if one is not a class."""
    import pandas as pd

    column = pd.Series(column)
    if classes.dtype.kind in "iuf":
        values = pd.to_numeric(column, errors="coerce")
    else:
        values = to_text(column)
        values = values.str.lower().map(BOOLEANS) if classes.dtype.kind == "b" else values
    unknown = np.flatnonzero(~values.isin(classes.tolist()).to_numpy())
    if len(unknown):
        raise ValueError(
            f"the class in row {first_row + unknown[0] + 1} of the data is "
            f"{column.iloc[unknown[0]]!r}, but the classes of the model are "
            f"{format_names(classes.tolist())}."
        )
    return values.to_numpy().astype(classes.dtype)


def to_numbers(column: Any, first_row: int = 0) -> Array:
    """Return targets as numbers; raise ValueError if one is not finite."""
    import pandas as pd

    column = pd.Series(column)
    values = pd.to_numeric(column, errors="coerce").to_numpy(np.float64, na_value=np.nan)
    wrong = np.flatnonzero(~np.isfinite(values))
    if len(wrong):
        raise ValueError(
            f"the target in row {first_row + wrong[0] + 1} of the data is "
            f"{column.iloc[wrong[0]]!r}, not a number: correct it, leave the row out, or give "
            "--task classification to fit."
        )
    return values


def digest_file(path: Path) -> str:
    """Return a digest of the bytes of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def is_training_file(path: Path, record: Mapping[str, Any]) -> bool:
    """Return whether a file is the one that a model was fitted to."""
    return path.stat().st_size == record.get("bytes") and digest_file(path) == record.get("digest")
