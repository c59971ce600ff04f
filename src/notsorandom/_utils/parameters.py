"""Checks of parameters. Errors say what was given and what is allowed."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import clone


def check_choice(name: str, value: Any, allowed: Collection[str]) -> None:
    """Raise ValueError unless the value is one of the allowed names."""
    if not isinstance(value, str) or value not in allowed:
        choices = ", ".join(repr(choice) for choice in allowed)
        raise ValueError(f"{name}={value!r} is not allowed: it must be one of {choices}.")


def check_number(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    least: float | None = None,
    most: float | None = None,
    below: float | None = None,
    integer: bool = False,
    or_else: Collection[str] = (),
) -> None:
    """Raise ValueError unless the value is a finite number in its range, or a word of `or_else`."""
    if isinstance(value, str) and value in or_else:
        return
    kind: Any = Integral if integer else Real
    if isinstance(value, kind) and not isinstance(value, bool):
        number = float(value)
        fits = (
            math.isfinite(number)
            and (above is None or number > above)
            and (least is None or number >= least)
            and (most is None or number <= most)
            and (below is None or number < below)
        )
        if fits:
            return
    limits = [
        f"{sign} {limit}"
        for sign, limit in ((">", above), (">=", least), ("<=", most), ("<", below))
        if limit is not None
    ]
    words = [repr(word) for word in or_else]
    words.append(f"{'an int' if integer else 'a finite number'} {' and '.join(limits)}")
    raise ValueError(f"{name}={value!r} is not allowed: it must be {' or '.join(words)}.")


def check_flag(name: str, value: Any) -> None:
    """Raise ValueError unless the value is true or false."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name}={value!r} is not allowed: it must be True or False.")


def resolve_named(
    name: str,
    value: Any,
    known: Mapping[str, Callable[[], Any]],
    kind: type | tuple[type, ...],
    extra: Collection[str] = (),
) -> Any:
    """Return the object that a name stands for, or a checked clone of the object given.

    Parameters
    ----------
    name : str
        Of the parameter.
    value : str or object
    known : dict of str to callable
        Makers of the objects, by name.
    kind : type or tuple of types
        Of which an object must be an instance.
    extra : collection of str
        Other names that are allowed, for the error message.
    """
    if isinstance(value, str):
        check_choice(name, value, [*extra, *known])
        return known[value]()
    if not isinstance(value, kind):
        choices = ", ".join(repr(choice) for choice in (*extra, *known))
        kinds = " or ".join(one.__name__ for one in (kind if isinstance(kind, tuple) else (kind,)))
        raise ValueError(
            f"{name}={value!r} is not allowed: it must be one of {choices}, or an instance of "
            f"{kinds}."
        )
    value.check()  # type: ignore[attr-defined]
    return clone(value)
