"""What the pictures have in common."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from notsorandom._utils.files import write_whole
from notsorandom.data.rows import Array

# Points along each side of the maps.
RESOLUTION = 160
# Dots an inch of pictures that are saved.
DOTS = 110
# Of the two classes, and of the two players.
RED, BLUE, GREY = "#c0392b", "#2c6fbb", "#7f8c8d"


def axis_of(ax: Any) -> Any:
    """The axes given, or new ones on a figure of their own."""
    return ax if ax is not None else import_pyplot().subplots(layout="constrained")[1]


def save_figure(figure: Any, path: Path) -> None:
    """Save a figure, in the kind that its name says, whole or not at all."""
    content = io.BytesIO()
    figure.savefig(content, format=path.suffix[1:], dpi=DOTS)
    write_whole(path, content.getvalue())


def mesh(low: Array, high: Array) -> tuple[Array, list[float]]:
    """Points of a square grid, row by row from the bottom, and the extent that imshow wants."""
    sides = [np.linspace(low[axis], high[axis], RESOLUTION) for axis in (0, 1)]
    horizontal, vertical = np.meshgrid(*sides)
    points = np.column_stack([horizontal.ravel(), vertical.ravel()])
    return points, [float(low[0]), float(high[0]), float(low[1]), float(high[1])]


def import_pyplot() -> Any:
    """Return pyplot, or say which extra brings it."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            "Pictures need matplotlib: install it with pip install 'notsorandom[plot]'."
        ) from error
    return pyplot
