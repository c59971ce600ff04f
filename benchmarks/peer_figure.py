"""The figure of `benchmarks.peers`: share of methods beaten against the seconds of the fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from benchmarks.peer_methods import METHODS
from notsorandom.display.figures import import_pyplot

# Seconds and share by method.
Points: TypeAlias = dict[str, tuple[float, float]]
COLORS = {
    "ours": "#c0392b",
    "linear": "#d68910",
    "kernel": "#2c6fbb",
    "random": "#7f8c8d",
    "trees": "#27813f",
    "network": "#8e44ad",
}
FAMILIES = {
    "ours": "ours",
    "linear": "linear model",
    "kernel": "kernel machines",
    "random": "random features",
    "trees": "trees",
    "network": "neural networks",
}


def draw(panels: dict[str, Points]) -> Any:
    """Return a figure with one panel above the other, each with points by method."""
    size = (7.0, 3.9 * len(panels))
    figure = import_pyplot().Figure(figsize=size, layout="constrained")
    axes = np.ravel(figure.subplots(len(panels), 1))
    for axis, (title, points) in zip(axes, panels.items(), strict=True):
        draw_points(axis, points)
        axis.set_title(title, loc="left", fontsize=10)
        axis.set_ylabel("% of the other methods beaten")
    axes[-1].set_xlabel(
        "CPU seconds to fit, one thread, geometric mean (with tuning; over the limit: the limit)"
    )
    present = {METHODS[method].family for points in panels.values() for method in points}
    families = [family for family in FAMILIES if family in present]
    figure.legend(
        [axes[0].scatter([], [], s=26, color=COLORS[family]) for family in families],
        [FAMILIES[family] for family in families],
        loc="outside upper center",
        ncols=3,
        frameon=False,
        fontsize=9,
    )
    return figure


def draw_points(axis: Any, points: Points) -> None:
    """Draw labelled points on a logarithmic axis of seconds."""
    axis.set_xscale("log")
    axis.grid(alpha=0.25)
    axis.spines[["top", "right"]].set_visible(False)
    for family, color in COLORS.items():
        members = [point for method, point in points.items() if METHODS[method].family == family]
        if members:
            axis.scatter(*zip(*members, strict=True), s=26, color=color)
    seconds = [point[0] for point in points.values()]
    axis.set_xlim(min(seconds) / 1.6, max(seconds) * 2.2)
    shares = [point[1] for point in points.values()]
    axis.set_ylim(min(shares) - 7, max(shares) + 7)
    place_labels(axis, points)


def place_labels(axis: Any, points: Points) -> None:
    """Write each label at the side of its point where it covers the least of the other marks."""
    axis.figure.draw_without_rendering()
    taken = [  # boxes as left, bottom, right, top, in pixels
        (x - 3, y - 3, x + 3, y + 3) for x, y in axis.transData.transform(list(points.values()))
    ]
    sides = [(6, -3), (-6, -3), (0, 6), (0, -12), (6, 5), (6, -11), (-6, 5), (-6, -11)]
    for method, point in points.items():
        best = None
        for dx, dy in sides:
            label = axis.annotate(
                METHODS[method].title,
                point,
                (dx, dy),
                textcoords="offset points",
                ha="center" if dx == 0 else "left" if dx > 0 else "right",
                fontsize=8,
                color=COLORS[METHODS[method].family],
                fontweight="bold" if METHODS[method].family == "ours" else "normal",
            )
            box = label.get_window_extent().extents
            inside = overlap(box, axis.bbox.extents) / overlap(box, box)
            covered = sum(overlap(box, other) for other in taken) + 1e6 * (1 - inside)
            if best is None or covered < best[0]:
                if best is not None:
                    best[1].remove()
                best = covered, label, box
            else:
                label.remove()
        if best is not None:
            taken.append(tuple(best[2]))


def overlap(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the area that two boxes share."""
    width = min(first[2], second[2]) - max(first[0], second[0])
    height = min(first[3], second[3]) - max(first[1], second[1])
    return max(width, 0.0) * max(height, 0.0)
