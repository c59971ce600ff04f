"""Print the result of a command as text or JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from notsorandom.display.inspection import spectrum_sentence

MAX_ITEMS = 10


def print_result(result: Mapping[str, Any], as_json: bool) -> None:
    """Print a result: one line per item, or all of it as JSON."""
    if as_json:
        print(json.dumps(result))
        return
    width = max(map(len, result))
    for name, value in result.items():
        if value is not None:
            print(f"{name.ljust(width)}  {format_value(name, value)}")


def format_value(name: str, value: Any) -> str:
    """Return a value of a result as text."""
    if name == "spectrum":
        return spectrum_sentence(value)
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.2%}" if name.endswith("accuracy") else f"{value:.4g}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {format_value(key, item)}" for key, item in value.items())
    if isinstance(value, list):
        shown = ", ".join(format_value(name, item) for item in value[:MAX_ITEMS])
        return shown + (f", ... ({len(value)} in total)" if len(value) > MAX_ITEMS else "")
    return str(value)
