"""Print the result of a command as text or JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

MAX_ITEMS = 10


def print_result(result: Mapping[str, Any], as_json: bool) -> None:
    """Print a result: one line per item, or all of it as JSON."""
    if as_json:
        print(json.dumps(result))
        return
    width = max(len(printable(name)) for name in result)
    for name, value in result.items():
        if value is not None:
            print(f"{printable(name).ljust(width)}  {printable(format_value(name, value))}")


def printable(text: str) -> str:
    """Return text with escape sequences for characters that would control a terminal."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text
    )


def format_value(name: str, value: Any) -> str:
    """Return a value of a result as text."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        is_share = "accuracy" in name or name in ("recall", "precision", "importances")
        return f"{100 * value:.2f} %" if is_share else f"{value:.4g}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, Mapping):
        kind = name if name == "importances" else ""
        value = [f"{key} {format_value(kind or key, item)}" for key, item in value.items()]
    if isinstance(value, list):
        shown = ", ".join(format_value(name, item) for item in value[:MAX_ITEMS])
        return f"{shown}, ... ({len(value):,} in all)" if len(value) > MAX_ITEMS else shown
    return str(value)
