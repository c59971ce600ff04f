"""Checks of targets and weights: class labels, real numbers, sample and class weights."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from numbers import Number
from typing import Any

import numpy as np
from scipy import sparse

from notsorandom.data.rows import Array, Rows

# Up to this many classes are usual, as for the command line. With more, numbers with fewer samples
# each than FEW_SAMPLES are probably no classes; nor are texts that mostly occur once.
MANY_CLASSES = 20
FEW_SAMPLES, FEW_SAMPLES_OF_TEXT = 5, 2
# Types of objects that stand for a missing value: None, and the types of pandas.
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


def warn_of_many_classes(name: str, classes: Array, n_samples: int) -> None:
    """Warn if class labels look like a target of regression."""
    n_classes, is_number = len(classes), classes.dtype.kind in "iuf"
    few = n_classes * (FEW_SAMPLES if is_number else FEW_SAMPLES_OF_TEXT) > n_samples
    # Codes of classes begin at 0 or 1, and numbers of a catalogue have gaps; ages and years don't.
    first, last = classes[[0, -1]].tolist() if is_number else (0, 0)
    is_range = is_number and first not in (0, 1) and last - first < 2 * n_classes
    if n_classes > MANY_CLASSES and (few or is_range):
        values = f"from {first} to {last} " if is_number else ""
        warnings.warn(
            f"y has {n_classes} different values {values}in {n_samples} samples, and {name} takes "
            "each for a class: to predict a number use FourierRegressor (or FourierFeatures with "
            "loss='squared'). If they are classes, y.astype(str) is not warned of.",
            UserWarning,
            stacklevel=2,
        )


# Weights.


def check_sample_weight(sample_weight: Any, n_samples: int, dtype: Any) -> Array | None:
    """Return the sample weights as an array, or None; raise ValueError if they are invalid."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight)
    if weights.dtype.kind == "O":
        weights = np.array(weights.tolist())
    if weights.dtype.kind not in "biuf":
        raise ValueError(
            f"sample_weight has values of type {weights.dtype}, such as "
            f"{weights.ravel()[:1].tolist()}: it must be numbers, one per sample."
        )
    weights = weights.astype(np.float64)
    if weights.ndim == 0:
        weights = np.full(n_samples, weights)
    if weights.shape != (n_samples,):
        raise ValueError(
            f"sample_weight has shape {weights.shape}, but X has {n_samples} samples: it must have "
            f"shape ({n_samples},), one weight per sample."
        )
    invalid = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(invalid):
        raise ValueError(
            f"sample_weight has {weights[invalid[0]]} at sample {invalid[0]}, but weights must be "
            "finite and non-negative: weight 2 counts the sample twice, weight 0 leaves it out."
        )
    if not weights.any():
        raise ValueError(
            "sample_weight is zero for all samples: at least one must have a positive weight."
        )
    with np.errstate(over="ignore", under="ignore"):
        rounded = weights.astype(dtype)
    if not np.isfinite(rounded).all() or ((weights > 0) & (rounded == 0)).any():
        raise ValueError(
            f"sample_weight ranges from {weights[weights > 0].min()} to {weights.max()}, which "
            f"{np.dtype(dtype)} can't hold: scale the weights, or give X in float64."
        )
    return rounded


def class_weights(class_weight: Any, classes: Array, rows: Rows, y: Any) -> Any:
    """Return the weights of the rows times the weights of their classes, as a column."""

    def totals(_: Any, y: Array, w: Array | None = None) -> tuple[Array]:
        codes = np.searchsorted(classes, y)
        return (np.bincount(codes, None if w is None else w[:, 0], len(classes)),)

    (sums,) = rows.columns_only.sum_blocks(totals, y, *rows.weight_columns, dtype=np.float64)
    factors = class_factors(class_weight, classes, sums, rows.dtype)

    def weigh(_: Any, y: Array, w: Any = 1) -> Array:
        with np.errstate(over="ignore"):  # see check_magnitudes
            return np.asarray(w * factors[np.searchsorted(classes, y)][:, None])

    return rows.columns_only.map(weigh, y, *rows.weight_columns)


@np.errstate(over="ignore", under="ignore")
def class_factors(class_weight: Any, classes: Array, totals: Array, dtype: Any) -> Array:
    """Return the factor of the weights of each class, given the total weight of each.

    `class_weight` is a dict of class to number, or ``"balanced"``, which gives all classes the same
    total weight.
    """
    if isinstance(class_weight, str) and class_weight == "balanced":
        return (totals.sum() / (len(classes) * totals)).astype(dtype)
    if not isinstance(class_weight, Mapping):
        raise ValueError(
            f"class_weight={class_weight!r} is not allowed: it must be None, 'balanced' or a dict "
            "of class to weight."
        )
    known = classes.tolist()
    for name, weight in class_weight.items():
        is_number = isinstance(weight, (int, float, np.number)) and not isinstance(weight, bool)
        if name not in known or not (is_number and 0 < np.dtype(dtype).type(weight) < np.inf):
            raise ValueError(
                f"class_weight has {name!r}: {weight!r}, but its keys must be classes of y, "
                f"{known[:10]!r}, and its values positive {np.dtype(dtype)}; others have weight 1."
            )
    return np.array([class_weight.get(name, 1.0) for name in known], dtype=dtype)
