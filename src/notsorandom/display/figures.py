"""Colours, axes and files of all figures."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from notsorandom._utils.files import write_atomic

DPI = 110
# RED and BLUE are also the colours of the two classes.
RED, BLUE, GREY = "#c0392b", "#2c6fbb", "#7f8c8d"


def percent(value: float, position: int | None = None) -> str:
    """Return the label of a share on an axis."""
    return f"{100 * value:.0f} %"


def import_pyplot() -> Any:
    """Return ``matplotlib.pyplot``; raise ImportError with the extra to install without it."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            "Figures need matplotlib: install it with pip install 'notsorandom[plot]'."
        ) from error
    return pyplot


def axes_or_new(ax: Any) -> Any:
    """Return the given axes, or the axes of a new figure."""
    return ax if ax is not None else import_pyplot().subplots(layout="constrained")[1]


def two_axes(ax: Any, size: tuple[float, float], purpose: str) -> Any:
    """Return the two given axes, or those of a new figure, side by side."""
    if ax is None:
        _, ax = import_pyplot().subplots(1, 2, figsize=size, layout="constrained")
    axes = np.asarray(ax, dtype=object).reshape(-1)
    if len(axes) != 2:
        raise ValueError(f"ax has {len(axes)} axes, but 2 are needed: {purpose}.")
    return axes


def new_axis(side: float | None = None) -> Any:
    """Return the axes of a new figure: a square with that side in inches, or a wide one."""
    size = (4.8, 3.2) if side is None else (side, side)
    return import_pyplot().Figure(figsize=size, layout="constrained").subplots()


def check_image_shape(image_shape: Any, n_pixels: int) -> None:
    """Raise ValueError unless images of that shape have as many pixels as there are columns."""
    shape = np.asarray(image_shape)
    is_shape = shape.dtype.kind in "iu" and shape.shape in ((2,), (3,)) and (shape > 0).all()
    if not is_shape or shape.prod() != n_pixels:
        raise ValueError(
            f"image_shape={image_shape!r} is not allowed: it must be (height, width) or "
            f"(height, width, n_channels) with {n_pixels} as product, the number of columns."
        )


def save_figure(figure: Any, path: Path) -> None:
    """Save a figure in the format of the path's suffix; a failure leaves an old file unchanged."""
    content = io.BytesIO()
    figure.savefig(content, format=path.suffix[1:], dpi=DPI)
    write_atomic(path, content.getvalue())
