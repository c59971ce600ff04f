"""What our models chose by trials: spectrum, smoothing and C."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def chosen_settings(model: Any) -> dict[str, Any]:
    """Return the settings that our fitted model chose or was given."""
    return {
        "spectrum": model.spectrum_,
        "smoothing": float(model.smoothing_),
        "C": float(model.C_),
    }


def describe_choices(outcomes: Sequence[dict[str, Any]]) -> str:
    """Describe the settings of several runs; empty if none of them is a run of our models."""
    settings = [outcome["chosen"] for outcome in outcomes if "chosen" in outcome]
    if not settings:
        return ""
    spectra = sorted({each["spectrum"] for each in settings if each["spectrum"]})
    smoothing = sorted({each["smoothing"] for each in settings})
    least, largest = (f"{f(each['C'] for each in settings):.2g}" for f in (min, max))
    parts = [
        " or ".join(spectra),
        f"smoothing {' or '.join(f'{value:g}' for value in smoothing)}",
        f"C = {least}" if least == largest else f"C = {least} to {largest}",
    ]
    return ", ".join(part for part in parts if part)
