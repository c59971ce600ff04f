"""What came of a command, for people or for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from notsorandom.cli.spectrum import spectrum_in_words


def tell(outcome: Mapping[str, Any], as_json: bool) -> None:
    """Print an outcome: a line for each part, or all of it in JSON."""
    if as_json:
        print(json.dumps(outcome))
        return
    width = max(map(len, outcome))
    for name, value in outcome.items():
        if value is not None:
            words = spectrum_in_words(value) if name == "spectrum" else in_words(name, value)
            print(f"{' '.join(name.split()).ljust(width)}  {words}")


def in_words(name: str, value: Any) -> str:
    """A value as a person reads it."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name == "bytes":
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.2%}" if name.endswith("accuracy") else f"{value:.4g}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {in_words(key, item)}" for key, item in value.items())
    if isinstance(value, list):
        shown = ", ".join(in_words(name, item) for item in value[:10])
        return shown + (f", ... ({len(value)} in all)" if len(value) > 10 else "")
    return str(value)
