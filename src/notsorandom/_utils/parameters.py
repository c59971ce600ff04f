"""Checks of parameters: what was got, what is allowed."""

from __future__ import annotations

import math
from collections.abc import Collection
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


def named_object(name: str, value: Any, known: dict[str, Any], needs: Collection[str]) -> Any:
    """Make the object that a name stands for, or check the object given and copy it.

    Parameters
    ----------
    name : str
    value : str or object
    known : dict of str to class
    needs : collection of str
        Methods that an object must have, whatever its class.
    """
    if isinstance(value, str):
        check_choice(name, value, known)
        return known[value]()
    missing = [method for method in needs if not callable(getattr(value, method, None))]
    if missing or isinstance(value, type):
        choices = ", ".join(repr(choice) for choice in known)
        makers = ", ".join(f"{kind.__name__}()" for kind in known.values())
        raise ValueError(
            f"{name}={value!r} is not allowed: it must be one of {choices}, or an object such as "
            f"{makers}, with the methods {', '.join(needs)}."
        )
    value.check()
    return clone(value)
