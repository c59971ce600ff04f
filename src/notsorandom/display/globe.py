"""Functions on the sphere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from notsorandom.data.rows import Array
from notsorandom.display.drawing import BLUE, RED, RESOLUTION, import_pyplot


class GlobeDisplay:
    """Functions on the sphere in three dimensions, each on a globe seen from outside.

    Parameters
    ----------
    panels : sequence of (str, callable)
        Title and function of each globe; the function takes points of shape (n_points, 3) and
        returns a number for each.
    samples : tuple of ndarrays of shape (n_samples, 3) and (n_samples,), optional
        Samples and their classes, of two values, for a globe of their own.
    longitude, latitude : float, default=30
        Of the point in the middle, in degrees.
    """

    def __init__(
        self,
        panels: Sequence[tuple[str, Callable[[Array], Array]]],
        samples: tuple[Array, Array] | None = None,
        longitude: float = 30,
        latitude: float = 30,
    ) -> None:
        self.panels = panels
        self.samples = samples
        self.longitude = longitude
        self.latitude = latitude

    def plot(self) -> Any:
        """Draw the globes side by side; return the matplotlib figure."""
        pyplot = import_pyplot()
        n_globes = len(self.panels) + (self.samples is not None)
        figure, axes = pyplot.subplots(
            1, n_globes, figsize=(2.6 * n_globes, 2.9), squeeze=False, layout="constrained"
        )
        globes = list(axes[0])
        if self.samples is not None:
            self._draw_samples(globes.pop(0), *self.samples)
        for axis, (title, function) in zip(globes, self.panels, strict=True):
            axis.set_title(title, fontsize=10)
            self._draw_function(axis, function)
        for axis in axes[0]:
            axis.add_patch(pyplot.Circle((0, 0), 1, fill=False, linewidth=0.8))
            axis.set(xlim=(-1.05, 1.05), ylim=(-1.05, 1.05), aspect="equal")
            axis.set_axis_off()
        return figure

    def _draw_samples(self, axis: Any, X: Array, y: Array) -> None:
        right, up, towards = view(self.longitude, self.latitude) @ X.T
        front = towards > 0
        colors = np.where(y == np.unique(y)[-1], RED, BLUE)
        axis.set_title("samples", fontsize=10)
        axis.scatter(right[front], up[front], c=colors[front], s=4, linewidths=0)

    def _draw_function(self, axis: Any, function: Callable[[Array], Array]) -> None:
        values = front_of_globe(function, RESOLUTION, self.longitude, self.latitude)
        limit, extent = np.nanmax(np.abs(values)), [-1, 1, -1, 1]
        axis.imshow(
            values,
            extent=extent,
            origin="lower",
            cmap="RdBu_r",
            vmin=-limit,
            vmax=limit,
            interpolation="bilinear",
        )
        axis.contour(values, levels=[0], extent=extent, colors="k", linewidths=0.6)


def view(longitude: float, latitude: float) -> Array:
    """Directions to the right, up, and towards the eye, as rows."""
    turn, tilt = np.radians([longitude, latitude])
    right = [-np.sin(turn), np.cos(turn), 0]
    towards = [np.cos(tilt) * np.cos(turn), np.cos(tilt) * np.sin(turn), np.sin(tilt)]
    return np.array([right, np.cross(towards, right), towards])


def front_of_globe(
    function: Callable[[Array], Array], side: int, longitude: float = 30, latitude: float = 30
) -> Array:
    """Values over the half of the sphere that is seen, on a grid from the bottom; NaN around it."""
    steps = np.linspace(-1, 1, side)
    flat = np.stack(np.meshgrid(steps, steps), axis=-1).reshape(-1, 2)
    squared = (flat**2).sum(axis=1)
    front = squared < 1
    seen = np.column_stack([flat[front], np.sqrt(1 - squared[front])]) @ view(longitude, latitude)
    values = np.full(side**2, np.nan)
    values[front] = function(seen)
    return values.reshape(side, side)
