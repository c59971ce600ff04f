"""One self-contained page: sections of data, and the script inside the page that draws them."""

from __future__ import annotations

import base64
import html
import json
import string
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

import notsorandom
from notsorandom._utils.files import checked_path, write_whole
from notsorandom.data.rows import Array

Section = dict[str, Any]
# What the name of a page ends in.
ENDINGS = (".html", ".htm")


def write_page(path: str | Path, title: str, subtitle: str, sections: Sequence[Section]) -> Path:
    """Write the page, whole or not at all; return where it is."""
    path = checked_path(path, *ENDINGS)
    write_whole(path, page(title, subtitle, sections).encode())
    return path


def page(title: str, subtitle: str, sections: Sequence[Section]) -> str:
    """The page's text."""
    parts = {
        name: resources.files(__package__).joinpath(f"page.{name}").read_text(encoding="utf-8")
        for name in ("html", "css", "js")
    }
    # Inside a script element only "</" and "<!" could end or hide it.
    data = json.dumps(plain(list(sections)), allow_nan=False).replace("<", "\\u003c")
    return string.Template(parts["html"]).substitute(
        title=html.escape(title),
        subtitle=html.escape(subtitle),
        style=parts["css"],
        sections=data,
        script=parts["js"],
        footer=html.escape(f"Made by notsorandom {notsorandom.__version__}."),
    )


def plain(value: Any) -> Any:
    """The same of numbers, strings, lists and dicts alone; what isn't finite becomes null."""
    if isinstance(value, dict):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return float(f"{value:.6g}") if np.isfinite(value) else None
    return value


def shades(values: Array, low: float, high: float) -> str:
    """Numbers as bytes from 0 at `low` to 255 at `high`, in base64."""
    share = (np.asarray(values, dtype=float) - low) / max(high - low, np.finfo(float).tiny)
    levels = np.nan_to_num(255 * np.clip(share, 0, 1)).round().astype(np.uint8)
    return base64.b64encode(levels.tobytes()).decode()
