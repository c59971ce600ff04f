"""Checks of what is to be learned."""

from __future__ import annotations

from typing import Any

import numpy as np

from notsorandom.rows import Array


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


def check_reals(y: Any, loss: str) -> None:
    """Raise ValueError if targets are words."""
    kind = np.asarray(y).dtype.kind
    first = np.asarray(y).ravel()[:1].tolist()
    if kind in "US" or (kind == "O" and first and isinstance(first[0], str)):
        raise ValueError(
            f"y has words, such as {first[0]!r}, but loss={loss!r} takes numbers: for classes use "
            "FourierClassifier, or a loss of the margin, 'hinge' or 'squared_hinge'."
        )


def check_outputs(n_outputs: int, known: int) -> None:
    """Raise ValueError unless there are as many outputs as at fit."""
    if n_outputs != known:
        raise ValueError(f"y has {n_outputs} columns, but it had {known} at fit: give as many.")
