"""Parameter checks whose errors say what was given and what is allowed."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Collection, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import clone

# Limit of parameters, targets and weights, and of their inverses: products of them are finite, and
# so are the squares of products. Beyond it, double precision has no correct digit of a model.
MAX_NUMBER = 1e30


def check_choice(name: str, value: Any, allowed: Collection[str], other: str = "") -> None:
    """Raise ValueError unless the value is one of the allowed strings.

    `other` is what else is allowed, for the message.
    """
    if not isinstance(value, str) or value not in allowed:
        choices = ", ".join([repr(choice) for choice in allowed] + [other] * bool(other))
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
    hint: str = "",
) -> None:
    """Raise ValueError unless the value is a finite number in its range or one of `or_else`.

    `hint` is a sentence that ends the error message.
    """
    if isinstance(value, str) and value in or_else:
        return
    limits = [
        (sign, compare, limit)
        for sign, compare, limit in (
            (">", operator.gt, above),
            (">=", operator.ge, least),
            ("<=", operator.le, most),
            ("<", operator.lt, below),
        )
        if limit is not None
    ]
    kind: Any = Integral if integer else Real
    is_number = isinstance(value, kind) and not isinstance(value, bool) and math.isfinite(value)
    if is_number and all(compare(float(value), limit) for _, compare, limit in limits):
        return
    ranges = " and ".join(f"{sign} {limit:g}" for sign, _, limit in limits)
    allowed = [repr(string) for string in or_else]
    allowed.append(f"{'an int' if integer else 'a finite number'} {ranges}".strip())
    text = f"{name}={value!r} is not allowed: it must be {' or '.join(allowed)}."
    raise ValueError(f"{text} {hint}".strip())


def check_magnitude(name: str, largest: float) -> None:
    """Raise ValueError unless the largest of some numbers is zero, or of a size to compute with."""
    if largest and not 1 / MAX_NUMBER <= largest <= MAX_NUMBER:
        raise ValueError(
            f"{name} has numbers up to {largest:g}, but the largest must be between "
            f"{1 / MAX_NUMBER:g} and {MAX_NUMBER:g}: scale them."
        )


def check_flag(name: str, value: Any) -> None:
    """Raise ValueError unless the value is a bool."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name}={value!r} is not allowed: it must be True or False.")


def resolve_named(
    name: str,
    value: Any,
    factories: Mapping[str, Callable[[], Any]],
    types: type | tuple[type, ...],
    extra: Collection[str] = (),
) -> Any:
    """Return the object with a name, or a checked clone of the given object of one of the types.

    `extra` are other allowed strings, for the error message.
    """
    if isinstance(value, str):
        check_choice(name, value, [*extra, *factories])
        return factories[value]()
    if not isinstance(value, types):
        choices = ", ".join(repr(choice) for choice in (*extra, *factories))
        names = [each.__name__ for each in (types if isinstance(types, tuple) else (types,))]
        raise ValueError(
            f"{name}={value!r} is not allowed: it must be one of {choices}, or an instance of "
            f"{' or '.join(names)}."
        )
    value.check()  # type: ignore[attr-defined]
    return clone(value)
