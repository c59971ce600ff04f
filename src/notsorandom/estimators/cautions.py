"""Warnings about training data that can be fitted, but probably not as it was meant."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from notsorandom.data.rows import Array

# Up to this many classes are usual, as for the command line. With more, numbers with fewer samples
# each than FEW_SAMPLES are probably no classes; nor are texts that mostly occur once.
MANY_CLASSES = 20
FEW_SAMPLES, FEW_SAMPLES_OF_TEXT = 5, 2
# Columns of a smaller scale hardly change a distance that is as long as the largest column's.
MAX_SCALE_RATIO = 1000
# Numbers that the scales are computed from: the median takes about 20 ms.
SCALE_NUMBERS = 2**20


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


def warn_of_scales(X: Any, names: Array | None) -> None:
    """Warn if the columns of dense samples differ in scale by more than `MAX_SCALE_RATIO`.

    Sparse samples are mostly words or categories, whose scales differ by nature. Samples on a
    device or on disk would have to be read for it.
    """
    if type(X) is not np.ndarray:
        return
    scales = column_scales(X[:: X.size // SCALE_NUMBERS + 1])
    varying = np.flatnonzero(scales)
    if not len(varying):
        return
    small, large = varying[np.argsort(scales[varying])[[0, -1]]].tolist()
    if scales[large] > MAX_SCALE_RATIO * scales[small]:
        labels = [repr(str(names[i])) if names is not None else i for i in (small, large)]
        warnings.warn(
            f"Column {labels[0]} of X varies by about {scales[small]:.2g}, and column {labels[1]} "
            f"by about {scales[large]:.2g}: next to it, the first has hardly any influence. Bring "
            "the columns to one scale, by a pipeline with scikit-learn's StandardScaler or by "
            "notsorandom.tabular_pipeline.",
            UserWarning,
            stacklevel=2,
        )


@np.errstate(over="ignore")
def column_scales(X: Array) -> Array:
    """Return the root mean square distance of each column's values from their median.

    Values equal to the median don't count: a category or a pixel that is nearly always zero has
    the scale of its other values. The scale of a constant column is zero, also if
    it is constant only up to rounding errors.
    """
    units = np.abs(X).max(axis=0).astype(np.float64)
    units[units == 0] = 1
    values = X / units  # so that no square overflows
    values -= np.median(values, axis=0)
    n_other = np.maximum(np.count_nonzero(values, axis=0), 1)
    scales = np.sqrt(np.square(values).sum(axis=0) / n_other)
    return units * np.where(scales > 10 * np.finfo(X.dtype).eps, scales, 0)
