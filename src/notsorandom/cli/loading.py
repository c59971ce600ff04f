"""A model file with what ``notsorandom fit`` recorded, data in blocks for it, and its scores."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import confusion_matrix
from sklearn.pipeline import Pipeline

import notsorandom
from notsorandom._utils.threads import prefetch
from notsorandom.data.checks import format_names
from notsorandom.data.coerce import take_rows
from notsorandom.data.column_kinds import BOOLEANS, to_text
from notsorandom.data.files import DataFile
from notsorandom.data.rows import Array
from notsorandom.display.calibration import log_loss
from notsorandom.display.results import accuracy_error, class_entropy, rank_scores
from notsorandom.estimators.base import FourierEstimator
from notsorandom.io import read_metadata

# Bytes of the features that are computed at a time, and fewest rows.
PREDICTED_BYTES, PREDICTED_ROWS = 2**25, 1024
# Most decision values that are kept for the ROC AUC, which needs all of them (2 GB). There is none
# with more.
MAX_RANKED = 2**29
# Coverages of the intervals that are evaluated, as far as the held-out rows allow them.
COVERAGES = (0.5, 0.8, 0.9, 0.95)
# The target of files whose columns have no names.
UNNAMED_TARGET = "y"
SETTINGS = {"training rows": "n_samples_fit_", "loss": "loss", "C": "C_"}
SETTINGS |= {"smoothing": "smoothing_", "search spectrum": "spectrum_"}
SETTINGS |= {"linear part": "uses_linear_part_", "temperature": "temperature_"}
PLURALS = {"number": "numbers", "category": "categories", "boolean": "booleans", "date": "dates"}


@dataclass(frozen=True)
class LoadedModel:
    """A model, and what ``notsorandom fit`` recorded about it."""

    model: Any
    record: Mapping[str, Any]

    @classmethod
    def open(cls, path: Path, trusted: Sequence[str] = ()) -> LoadedModel:
        """Load a model file; predictions use all cores."""
        if path.suffix.lower() != ".skops":
            raise ValueError(
                f"{path} is not a model file: give a .skops file first, then the data."
            )
        model = notsorandom.load(path, trusted=trusted)
        record = read_metadata(path)["description"].get("fit")
        last = steps_of(model)[-1]
        if "n_jobs" in last.get_params(deep=False):
            last.set_params(n_jobs=-1)
        return cls(model, record if isinstance(record, dict) else {})

    @property
    def kinds(self) -> dict[str, str]:
        """What a pipeline for tables took each column for; empty for other models."""
        return getattr(steps_of(self.model)[0], "kinds_", {})

    @property
    def names(self) -> list[str]:
        """Names of the columns that the model needs, if they have names."""
        if self.kinds:
            return [name for name, kind in self.kinds.items() if kind != "left out"]
        return list(getattr(self.model, "feature_names_in_", []))

    @property
    def n_components(self) -> int:
        """Number of features that the last step of the model computes, if it is ours."""
        last = steps_of(self.model)[-1]
        return last.kernel_.n_components if hasattr(last, "kernel_") else 0

    def describe(self) -> dict[str, Any]:
        """Return what is known about the model."""
        model, steps = self.model, steps_of(self.model)
        task = "classification" if is_classifier(model) else "regression"
        columns: dict[str, Any] = {"names": self.names or None}
        if self.kinds:
            columns = {
                plural: [name for name, kind in self.kinds.items() if kind == single] or None
                for single, plural in PLURALS.items()
            }
            reasons = [f"{name} ({reason})" for name, reason in steps[0].left_out_.items()]
            columns |= {"left out": reasons or None, "date parts": steps[0].date_parts_ or None}
        return {
            "task": task if hasattr(model, "predict") else "features",
            "target": self.record.get("target"),
            "classes": model.classes_.tolist() if is_classifier(model) else None,
            "columns": int(model.n_features_in_),
            **columns,
            "model": " -> ".join(type(step).__name__ for step in steps),
            "features": steps[-1].kernel_.n_waves if self.n_components else None,
            **{name: getattr(steps[-1], attribute, None) for name, attribute in SETTINGS.items()},
            "importances": self.record.get("importances"),
        }

    def blocks(
        self, file: DataFile, others: Sequence[str] = ()
    ) -> Iterator[tuple[Any, Mapping[str, Any]]]:
        """Iterate over samples as the model takes them, with other columns by name, as text."""
        import pandas as pd

        n_features = self.model.n_features_in_
        max_rows = max(PREDICTED_ROWS, PREDICTED_BYTES // (8 * (n_features + self.n_components)))
        if not file.is_frame:
            if needed := [name for name in (*self.names, *others) if name != UNNAMED_TARGET]:
                raise ValueError(
                    f"{file.path} has no column names, but needs {format_names(needed)}: give a "
                    ".csv or .parquet file."
                )
            X, y = file.read_matrix(n_features, self.record.get("zero_based", "auto"))
            if others and y is None:
                raise ValueError(f"{file.path} has no target: give a file with one.")
            for start in range(0, X.shape[0], max_rows):
                rows = slice(start, start + max_rows)
                yield X[rows], dict.fromkeys(others, y if y is None else y[rows])
            return
        names = self.names
        if not names:
            left_out = {*others, self.record.get("target")}
            names = [name for name in file.columns if name not in left_out]
            if len(names) != n_features:
                raise ValueError(
                    f"{file.path} has {len(names)} columns, but the model was fitted to "
                    f"{n_features} without names: give a file with {n_features} columns."
                )
        wanted = dict.fromkeys([*names, *others])
        kinds = dict.fromkeys(names, "number") | self.kinds
        texts = [name for name in wanted if name in others or kinds[name] != "number"]
        for frame in prefetch(file.blocks(list(wanted), texts, max_rows)):
            samples = frame[names]
            for name in set() if self.kinds else set(names).intersection(others):
                samples = samples.assign(**{name: pd.to_numeric(samples[name])})  # is text too
            yield samples if self.names else samples.to_numpy(), frame[list(others)]

    def labelled_blocks(self, file: DataFile, target: str | None) -> Iterator[tuple[Any, Array]]:
        """Iterate over samples and their targets, by default the column of the fit's target."""
        name = (target or self.record.get("target")) if file.is_frame else UNNAMED_TARGET
        if name is None:
            raise ValueError(f"Give --target, one of {format_names(file.columns)}.")
        classes, first_row, is_empty = getattr(self.model, "classes_", None), 0, True
        for X, others in self.blocks(file, [name]):
            labelled, column = drop_unlabelled(X, others[name])
            if len(column):
                is_empty = False
                yield labelled, to_targets(column, classes, first_row)
            first_row += X.shape[0]
        if is_empty:
            raise ValueError(f"{file.path}: the target {name!r} is empty: give another --target.")


def steps_of(model: Any) -> list[Any]:
    """Return the steps of a pipeline, or the estimator itself."""
    return [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]


def drop_unlabelled(X: Any, target: Any) -> tuple[Any, Any]:
    """Return samples and targets without the rows that have no target, numbered as before."""
    import pandas as pd

    column = pd.Series(target).reset_index(drop=True)
    is_text = column.dtype.kind not in "biufM"
    known = np.flatnonzero((to_text(column) if is_text else column).notna())
    return (X, column) if len(known) == len(column) else (take_rows(X, known), column.iloc[known])


def encode(model: Any, X: Any) -> tuple[Any, Any]:
    """Return the last step of a pipeline, and samples as it gets them, to use them repeatedly."""
    last = steps_of(model)[-1]
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


def to_targets(column: Any, classes: Array | None, first_row: int = 0) -> Array:
    """Return a column in the type of the classes, or as numbers if there are none.

    Raises ValueError if a target is not a class, or not a finite number.
    """
    import pandas as pd

    if classes is None:
        values = pd.to_numeric(column, errors="coerce").astype(np.float64)
        is_right, expected = np.isfinite(values), "a number: correct it, leave the row out, or "
        expected += "give --task classification to fit"
    else:
        is_number = classes.dtype.kind in "iuf"
        values = pd.to_numeric(column, errors="coerce") if is_number else to_text(column)
        values = values.str.lower().map(BOOLEANS) if classes.dtype.kind == "b" else values
        if set(classes) <= {"True", "False"}:  # pandas reads such text as booleans at fit
            values = values.str.title()
        is_right = values.isin(classes.tolist())
        expected = f"one of the model's classes, {format_names(classes.tolist())}"
    if not is_right.all():
        row = column.index[np.argmin(is_right)]
        raise ValueError(
            f"the target in row {first_row + row + 1} of the data is {column[row]!r}, not "
            f"{expected}."
        )
    return values.to_numpy(np.float64 if classes is None else classes.dtype)


def compute_scores(model: Any, blocks: Iterable[tuple[Any, Array]]) -> dict[str, Any]:
    """Return the scores of a model on blocks of samples and targets; guessing is third."""
    return (score_classifier if is_classifier(model) else score_regressor)(model, blocks)


def score_classifier(model: Any, blocks: Iterable[tuple[Any, Array]]) -> dict[str, Any]:
    """Return accuracy, log loss, ROC AUC, and recall and precision per class."""
    classes, total_loss = model.classes_, 0.0
    hits, values, n_columns = [], [], len(classes) if len(classes) > 2 else 1
    has_probabilities = hasattr(model, "predict_proba")
    counts = np.zeros((len(classes), len(classes)), dtype=int)  # (true, predicted)
    for X, y in blocks:
        with counted_from(counts.sum()):
            last, encoded = encode(model, X)
            counts += confusion_matrix(y, last.predict(encoded), labels=classes)
        if has_probabilities:
            logarithms = last.predict_log_proba(encoded)
            total_loss += len(y) * log_loss(logarithms, y, classes)
            scores = logarithms if n_columns > 1 else logarithms[:, 1] - logarithms[:, 0]
        else:
            scores = last.decision_function(encoded)
        if counts.sum() * n_columns <= MAX_RANKED:
            hits.append(np.asarray(y)[:, None] == classes[-n_columns:])
            finite = np.nan_to_num(scores.astype(np.float32))  # of probabilities of 0
            values.append(finite.reshape(-1, n_columns))
    n_rows = int(counts.sum())
    accuracy = float(counts.trace() / n_rows)
    result: dict[str, Any] = {
        "rows": n_rows,
        "accuracy": accuracy,
        "standard error of accuracy": accuracy_error(accuracy, n_rows),
        "accuracy of guessing the largest class": float(counts.sum(axis=1).max() / n_rows),
    }
    if has_probabilities:
        result["log loss"] = float(total_loss / n_rows)
        result["log loss of guessing the shares"] = class_entropy(counts.sum(axis=1))
    if n_rows * n_columns <= MAX_RANKED:
        result |= rank_scores(np.concatenate(hits), np.concatenate(values))
    for k, label in enumerate(classes.tolist()):
        n_true, n_predicted = int(counts[k].sum()), int(counts[:, k].sum())
        result[f"class {label}"] = {
            "rows": n_true,
            "recall": float(counts[k, k] / n_true) if n_true else None,
            "precision": float(counts[k, k] / n_predicted) if n_predicted else None,
        }
    return result


def score_regressor(model: Any, blocks: Iterable[tuple[Any, Array]]) -> dict[str, Any]:
    """Return R^2 with its standard error, mean errors, and coverage and width of intervals."""
    n_rows, absolute_errors, origin, unit = 0, 0.0, None, 1.0
    held_out = getattr(steps_of(model)[-1], "held_out_scores_", None)
    coverages = [each for each in COVERAGES if held_out and each <= held_out.max_coverage]
    intervals = np.zeros((len(coverages), 2))  # rows within, and sums of widths
    moments = np.zeros((4, 4))  # sums of products of 1, y, y^2 and the squared error
    for X, y in blocks:
        with counted_from(n_rows):
            last, encoded = encode(model, X)
            predictions = last.predict(encoded)
        if predictions.ndim != 1:
            raise ValueError("The model has several targets: evaluate it by its method score.")
        if coverages:
            low, high = np.moveaxis(last.predict_interval(encoded, coverages), 1, 0)
            is_covered = (low <= y[:, None]) & (y[:, None] <= high)
            intervals += np.stack([is_covered.sum(axis=0), (high - low).sum(axis=0)], axis=1)
        if origin is None:  # sums of powers of large numbers would lose precision
            origin, unit = y[0], np.abs(y - y[0]).max() or 1.0
        errors, shifted = (predictions - y) / unit, (y - origin) / unit
        terms = np.stack([np.ones(len(y)), shifted, shifted**2, errors**2])
        moments += terms @ terms.T
        absolute_errors += unit * np.abs(errors).sum()
        n_rows += len(y)
    moments /= n_rows
    _, mean, _, squared_error = moments[0]
    spread = np.array([mean**2, -2 * mean, 1, 0])  # (y - mean)^2, of these terms
    variance = moments[0] @ spread
    score = 1 - squared_error / variance if variance > 0 else 0.0
    # By the delta method, as the error of a ratio of means.
    difference = np.array([0, 0, 0, 1]) - (1 - score) * spread
    deviation = np.sqrt(max(difference @ moments @ difference, 0.0)) / (variance or 1.0)
    return {
        "rows": n_rows,
        "R^2": float(score),
        "standard error of R^2": float(deviation / np.sqrt(n_rows)),
        "R^2 of guessing the mean": 0.0,
        "root mean squared error": float(unit * np.sqrt(squared_error)),
        "mean absolute error": float(absolute_errors / n_rows),
        **{
            f"{100 * each:g} % intervals": {"coverage": covered, "mean width": width}
            for each, (covered, width) in zip(coverages, (intervals / n_rows).tolist(), strict=True)
        },
    }


def digest_file(path: Path) -> str:
    """Return a digest of the bytes of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def is_training_file(path: Path, record: Mapping[str, Any]) -> bool:
    """Return whether a file is the one that a model was fitted to."""
    return path.stat().st_size == record.get("bytes") and digest_file(path) == record.get("digest")
