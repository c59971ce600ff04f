"""Checks of targets: class labels and real numbers."""

from __future__ import annotations

from numbers import Number
from typing import Any

import numpy as np
from scipy import sparse

from notsorandom.data.rows import Array

# Types of objects that stand for a missing value: None, and those of pandas.
MISSING_TYPES = ("NoneType", "NAType", "NaTType")


def check_targets(y: Any, name: str, loss: Any, is_classification: bool) -> Any:
    """Return targets as an array; raise ValueError if they don't suit the loss."""
    if y is None or sparse.issparse(y):
        return y  # refused by scikit-learn, as complex numbers are
    values = np.asarray(y)
    if values.dtype.kind == "c":
        return values
    if values.dtype.kind == "U" and isinstance(y, (list, tuple)):
        values = np.array(y, dtype=object)  # NumPy makes text of all, also of nan
    if not is_classification:
        check_is_numeric(values, loss)
    elif values.ndim == 0 or values.shape[1:] not in ((), (1,)):
        raise ValueError(
            f"y has shape {values.shape}, but {name} takes one class label per sample, of shape "
            "(n_samples,): for one-hot columns give y.argmax(axis=1), for several targets fit one "
            "model each, and for several columns of numbers use FourierRegressor."
        )
    missing = np.argwhere(is_missing(values))
    if len(missing):
        first = tuple(missing[0])
        others = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise ValueError(
            f"y has {values[first]} at sample {first[0]}{others}, but targets must be finite and "
            "none may be missing: correct them, or leave these samples out of X and y."
        )
    labels = check_labels(values, name) if is_classification else values
    return np.asarray(y) if labels is values else labels


def is_missing(values: Array) -> Array:
    """Return where targets are missing or not finite."""
    if values.dtype.kind == "f":
        return ~np.isfinite(values)
    if values.dtype.kind in "mM":
        return np.isnat(values)
    if values.dtype.kind != "O":
        return np.zeros(values.shape, dtype=bool)
    missing = [
        type(value).__name__ in MISSING_TYPES
        or (isinstance(value, (float, np.floating)) and not np.isfinite(value))
        for value in values.ravel().tolist()
    ]
    return np.array(missing).reshape(values.shape)


def check_labels(y: Array, name: str) -> Array:
    """Return class labels, objects that are numbers as such; raise ValueError if there are others.

    Labels are integers, booleans, text or dates.
    """
    needed = f"but {name} needs class labels, all integers, all booleans or all text"
    if y.dtype.kind == "O":
        values = y.ravel().tolist()
        texts = [isinstance(value, str) for value in values]
        if all(texts):
            return y
        if any(texts):
            first, other = texts.index(True), texts.index(False)
            raise ValueError(
                f"y mixes text, such as {values[first]!r} at sample {first}, and other values, "
                f"such as {values[other]!r} at sample {other}, {needed}: convert them all, such "
                "as by numpy.array(y).astype(str)."
            )
        if all(isinstance(value, (Number, np.bool_)) for value in values):
            y = np.array(values).reshape(y.shape)
    if y.dtype.kind not in "biufUTMm":
        raise ValueError(
            f"Unknown label type: y has {y.ravel()[0]!r}, of type {type(y.ravel()[0]).__name__}, "
            f"{needed}: convert them."
        )
    fractions = np.flatnonzero(y != np.round(y)) if y.dtype.kind == "f" else np.empty(0, int)
    if len(fractions):
        raise ValueError(
            f"Unknown label type: continuous. y has {y.ravel()[fractions[0]]} at sample "
            f"{fractions[0]}, {needed}: to predict numbers use FourierRegressor, or "
            "FourierFeatures with loss='squared'; if they are classes, give y.astype(str)."
        )
    return y


def check_is_numeric(y: Any, loss: Any) -> None:
    """Raise ValueError if targets are text or dates."""
    values = np.asarray(y)
    kind = values.dtype.kind
    texts = (
        [v for v in values.ravel().tolist() if isinstance(v, (str, bytes))] if kind in "OUS" else ()
    )
    if kind in "mM" or texts:
        what = f"text, such as {texts[0]!r}," if texts else "dates"
        raise ValueError(
            f"y has {what} but loss={loss!r} needs numbers: for classes use FourierClassifier, or "
            "FourierFeatures with loss='hinge' or 'squared_hinge'."
        )


def real_targets(y: Array, dtype: Any) -> Array:
    """Return targets in columns; raise ValueError if one is not finite in the type."""
    with np.errstate(over="ignore"):
        targets = y.astype(dtype).reshape(len(y), y.shape[1] if y.ndim == 2 else 1)
    invalid = np.argwhere(~np.isfinite(targets))
    if len(invalid):
        raise ValueError(
            f"y has {targets[tuple(invalid[0])]} at sample {invalid[0][0]}, as {targets.dtype}: "
            "give finite numbers, and X in float64 if they are very large."
        )
    return targets


def check_classes(name: str, classes: Array, known: Array) -> None:
    """Raise ValueError unless there are at least two classes, and exactly those known."""
    if len(known) < 2:
        raise ValueError(
            f"y has only one class, {known.tolist()[0]!r}, but {name} needs samples of at least "
            "two classes."
        )
    got, expected = set(classes.tolist()), set(known.tolist())
    missing = [label for label in known.tolist() if label not in got]
    unknown = [label for label in classes.tolist() if label not in expected]
    if missing or unknown:
        parts = [f"no samples of {shortened(missing)}"] if missing else []
        parts += [f"samples of {shortened(unknown)}"] if unknown else []
        raise ValueError(
            f"y has {' but '.join(parts)}, while this {name} was fitted with the classes "
            f"{shortened(known.tolist())}: give the training data, or other samples of all these "
            "classes and no others."
        )


def shortened(labels: list[Any]) -> str:
    """Return the first few labels as text."""
    names = [repr(label) for label in labels]
    return ", ".join(names[:10]) + (f", ... ({len(names)} in all)" if len(names) > 10 else "")
