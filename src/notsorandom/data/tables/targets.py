"""Targets in text: whether they are whole numbers, booleans, numbers or words.

Text says so only once all of it is read: a column of 0 and 1 may end in 0.5, or in "unknown".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.csv import ConvertOptions

from notsorandom.data.rows import Array

# What stands for an empty cell among numbers; among words each is a word like any other.
MISSING = frozenset(ConvertOptions().null_values)
WORDS = "U"


def whole_numbers(texts: Any) -> Any | None:
    """The texts as integers, if all of them are; 1.0 is one, as pandas writes it beside a gap."""
    texts = pc.utf8_trim_whitespace(texts)
    if not all_true(pc.match_substring_regex(texts, r"^[+-]?[0-9]+(\.0*)?$")):
        return None
    return cast(pc.replace_substring_regex(texts, r"^\+|\.0*$", ""), pa.int64())


def booleans(texts: Any) -> Any | None:
    """The texts as booleans, if all are true or false."""
    texts = pc.utf8_lower(pc.utf8_trim_whitespace(texts))
    if not all_true(pc.is_in(texts, pa.array(["true", "false"]))):
        return None
    return pc.equal(texts, "true")


def numbers(texts: Any) -> Any | None:
    """The texts as finite floats, if all of them are."""
    texts = pc.utf8_trim_whitespace(texts)
    floats = cast(pc.replace_substring_regex(texts, r"^\+", ""), pa.float64())
    return floats if floats is not None and all_true(pc.is_finite(floats)) else None


def words(texts: Any) -> Any | None:
    """The texts as they are, if none is empty."""
    return texts if all_true(pc.not_equal(pc.utf8_trim_whitespace(texts), "")) else None


# By kind of NumPy's type, the narrowest first: what it is called, and how texts are read as it.
KINDS: dict[str, tuple[str, Callable[[Any], Any | None]]] = {
    "i": ("a whole number", whole_numbers),
    "b": ("true or false", booleans),
    "f": ("a number", numbers),
    WORDS: ("a word", words),
}


def all_true(condition: Any) -> bool:
    """Whether a condition holds everywhere."""
    return bool(pc.all(condition, min_count=0).as_py())


def cast(texts: Any, arrow_type: Any) -> Any | None:
    """The texts as numbers, if they can be."""
    try:
        return texts.cast(arrow_type)
    except pa.ArrowInvalid:
        return None


def kind_of(target_type: np.dtype[Any]) -> str:
    """The kind of target that has a type of NumPy's."""
    return (
        target_type.kind if target_type.kind in "bif" else {"u": "i"}.get(target_type.kind, WORDS)
    )


def has_codes(texts: Any) -> bool:
    """Whether whole numbers are among the texts that would not come back from being numbers."""
    texts = pc.utf8_trim_whitespace(texts)
    whole = texts.filter(pc.match_substring_regex(texts, r"^[+-]?[0-9]+$"))
    padded = pc.match_substring_regex(whole, r"^[+-]?0[0-9]")
    return bool(pc.any(padded, min_count=0).as_py()) or whole_numbers(whole) is None


def has_points(texts: Any) -> bool:
    """Whether a text has a point in it."""
    return bool(pc.any(pc.match_substring(texts, "."), min_count=0).as_py())


def settled_kind(columns: Iterable[Any]) -> str:
    """The narrowest kind that all texts of a column are of, those missing left aside.

    Codes, such as 007, are words: as numbers they would be others.
    """
    possible = [kind for kind in KINDS if kind != WORDS]
    for texts in columns:
        is_missing = pc.is_in(pc.utf8_trim_whitespace(texts), pa.array(sorted(MISSING)))
        there = texts.filter(pc.invert(is_missing))
        if has_codes(there):
            return WORDS
        if has_points(there):
            possible = [kind for kind in possible if kind != "i"]
        possible = [kind for kind in possible if KINDS[kind][1](there) is not None]
        if not possible:
            break
    return possible[0] if possible else WORDS


def read_target(texts: Any, kind: str) -> Array | None:
    """Texts as a target of one kind, or None if one of them is not of that kind."""
    values = KINDS[kind][1](texts)
    if values is None:
        return None
    array: Array = values.to_numpy(zero_copy_only=False)
    return array.astype(str) if kind == WORDS else array


def target_fault(cell: str, kind: str, told: bool) -> str | None:
    """What is wrong with one cell of a target, whose kind was told or settled by the others."""
    name, read = KINDS[kind]
    if cell.strip() == "" or (kind != WORDS and cell.strip() in MISSING):
        return "the target is missing: fill it in, or leave the row out."
    if read(pa.array([cell])) is None:
        model = "the model's target is" if kind == "f" else "the model's classes are"
        like = model if told else "the target is elsewhere"
        return f"{cell[:40]!r} is not {name}, as {like}: correct it."
    return None
