"""Checks of what is to be learned."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from notsorandom.data.rows import Array


def check_classes(name: str, classes: Array, known: Array) -> None:
    """Raise ValueError unless there are two classes or more, and just those known."""
    if len(known) < 2:
        raise ValueError(
            f"y has only one class, {known.tolist()[0]!r}, but {name} learns to tell classes "
            "apart: give it samples of at least two."
        )
    if not np.array_equal(classes, known):
        raise ValueError(
            f"y has {shortened(classes)}, but this {name} takes samples of just the classes seen "
            f"at fit, {shortened(known)}."
        )


def shortened(classes: Array) -> str:
    """The first few of some classes, for a message."""
    names = [repr(name) for name in classes.tolist()]
    return ", ".join(names[:10]) + (f", ... ({len(names)} in all)" if len(names) > 10 else "")


def check_labels(y: Array, name: str) -> None:
    """Raise ValueError if targets can't be classes."""
    try:
        check_classification_targets(y)
    except ValueError as error:
        raise ValueError(
            f"y is not labels of classes, which {name} learns from here ({error}): for numbers use "
            "FourierRegressor, or a loss of the residual, 'squared' or 'epsilon_insensitive'."
        ) from error


def check_reals(y: Any, loss: str) -> None:
    """Raise ValueError if targets are words or dates."""
    values = np.asarray(y)
    words = [value for value in values.ravel().tolist() if isinstance(value, str)]
    if values.dtype.kind in "mM" or (values.dtype.kind in "OUS" and words):
        found = f"words, such as {words[0]!r}," if words else "dates"
        raise ValueError(
            f"y has {found} but loss={loss!r} takes numbers: for classes use FourierClassifier, or "
            "a loss of the margin, 'hinge' or 'squared_hinge'."
        )


def check_finite(targets: Array) -> None:
    """Raise ValueError if a target is not a number, or too large for its type."""
    bad = np.argwhere(~np.isfinite(targets))
    if len(bad):
        raise ValueError(
            f"y has {targets[tuple(bad[0])]} at sample {bad[0][0]}, as {targets.dtype}: give "
            "finite numbers, and X in float64 if they are very large."
        )


def check_outputs(n_outputs: int, known: int) -> None:
    """Raise ValueError unless there are as many outputs as at fit."""
    if n_outputs != known:
        raise ValueError(f"y has {n_outputs} columns, but it had {known} at fit: give as many.")
