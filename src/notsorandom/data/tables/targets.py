"""Targets given as text, and conversion of targets to the type that a model has."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from notsorandom.data.checks import shorten
from notsorandom.data.rows import Array
from notsorandom.data.tables.base import TableError

# Decimal numbers. Python's float() also accepts others, such as 1_000.
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
# At most 19 digits: int64 has no more.
INTEGER = re.compile(r"([+-]?[0-9]{1,19})(\.0*)?")
DIGITS = re.compile(r"[+-]?[0-9]+")
ZERO_PADDED = re.compile(r"[+-]?0[0-9]+")
BOOLEANS = {"true": True, "false": False}
# What pandas and pyarrow read as a missing number. In a text target they are ordinary strings.
MISSING = {"", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null"}
TEXT = "U"
# By NumPy's kind of type, the narrowest first.
KINDS = {"i": "an integer", "b": "true or false", "f": "a number", TEXT: "text"}
DTYPES = {"i": "int64", "b": "bool", "f": "float64"}


def kind_of(dtype: np.dtype[Any]) -> str:
    """Return which of `KINDS` a type is of."""
    kind = "i" if dtype.kind == "u" else dtype.kind
    return kind if kind in DTYPES else TEXT


def parse_text(text: str, kind: str) -> bool | int | float | str | None:
    """Return the value of a text as one of `KINDS`; None if it is not of that kind."""
    stripped = text.strip()
    if kind == TEXT:
        return text if stripped else None
    if kind == "b":
        return BOOLEANS.get(stripped.lower())
    if kind == "f":
        number = float(stripped) if NUMBER.fullmatch(stripped) else np.inf
        return number if np.isfinite(number) else None
    match = INTEGER.fullmatch(stripped)
    integer = 2**63 if match is None else int(match[1])
    return integer if -(2**63) <= integer < 2**63 else None


def parse_texts(texts: Array, kind: str) -> tuple[Array, Array]:
    """Return the values of the texts, and a mask that is False where a text is not of the kind."""
    distinct, positions = np.unique(texts, return_inverse=True)
    parsed = [parse_text(text, kind) for text in distinct.tolist()]
    valid = np.array([value is not None for value in parsed], dtype=bool)[positions]
    if kind == TEXT:
        return texts, valid
    return np.array([value or 0 for value in parsed], dtype=DTYPES[kind])[positions], valid


def infer_kind(columns: Iterable[Array]) -> str:
    """Return the narrowest of `KINDS` that holds for all texts but the missing ones.

    Codes are text: digits such as 007, which are not restored from the number that they read as.
    """
    possible = list(DTYPES)
    for texts in columns:
        present = {text.strip() for text in np.unique(texts).tolist()} - MISSING
        digits = {text for text in present if DIGITS.fullmatch(text)}
        if any(ZERO_PADDED.fullmatch(text) or parse_text(text, "i") is None for text in digits):
            return TEXT
        if any("." in text for text in present):  # such as 1.0: a measured value, not a class
            possible = [kind for kind in possible if kind != "i"]
        possible = [
            kind for kind in possible if all(parse_text(text, kind) is not None for text in present)
        ]
    return possible[0] if possible else TEXT


def cast_target(y: Array, target_type: np.dtype[Any] | None, place: str) -> Array:
    """Convert a target to the type of a model; raise if a value would change."""
    if target_type is None or target_type.kind == y.dtype.kind:
        return y
    kind = kind_of(target_type)
    if kind == TEXT:
        return y.astype(str)
    if y.dtype.kind in "UOT":
        converted, valid = parse_texts(y.astype(str), kind)
    else:
        with np.errstate(invalid="ignore"):  # values out of range differ and are reported
            converted = y.astype(DTYPES[kind])
        valid = converted == y
    if not valid.all():
        raise TableError(
            f"{place} has type {y.dtype}, with values such as {shorten(y[valid.argmin()].item())}, "
            f"but the model's target has type {target_type}: give the target that the model was "
            "fitted to."
        )
    return converted
