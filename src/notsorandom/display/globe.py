"""Functions on the sphere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from notsorandom.data.rows import Array
from notsorandom.display.figures import RESOLUTION, class_colors, draw_function, import_pyplot


class GlobeDisplay:
    """Functions on the sphere in three dimensions, each on a globe seen from outside.

    Parameters
    ----------
    panels : sequence of (str, callable)
        Title and function of each globe. The function maps points of shape (n_points, 3) to
        values of shape (n_points,).
    samples : tuple of ndarrays of shape (n_samples, 3) and (n_samples,), optional
        Samples and their labels, of two classes; they are drawn on the first globe.
    longitude, latitude : float, default=30
        The point in the middle of the view, in degrees.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes, of shape (n_globes,)
    figure_ : matplotlib Figure
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

    def plot(self) -> GlobeDisplay:
        """Draw the globes side by side on a new figure."""
        pyplot = import_pyplot()
        n_globes = len(self.panels) + (self.samples is not None)
        self.figure_, axes = pyplot.subplots(
            1, n_globes, figsize=(2.6 * n_globes, 2.9), squeeze=False, layout="constrained"
        )
        self.axes_ = axes[0]
        if self.samples is not None:
            self._draw_samples(self.axes_[0], *self.samples)
        panel_axes = self.axes_[n_globes - len(self.panels) :]
        for axis, (title, function) in zip(panel_axes, self.panels, strict=True):
            axis.set_title(title, fontsize=10)
            self._draw_function(axis, function)
        for axis in self.axes_:
            axis.add_patch(pyplot.Circle((0, 0), 1, fill=False, linewidth=0.8))
            axis.set(xlim=(-1.05, 1.05), ylim=(-1.05, 1.05), aspect="equal")
            axis.set_axis_off()
        return self

    def _draw_samples(self, axis: Any, X: Array, y: Array) -> None:
        right, up, towards = self._view() @ X.T
        visible = towards > 0
        axis.set_title("samples", fontsize=10)
        axis.scatter(right[visible], up[visible], c=class_colors(y)[visible], s=4, linewidths=0)

    def _draw_function(self, axis: Any, function: Callable[[Array], Array]) -> None:
        """Draw the values on the visible half of the sphere."""
        side = np.linspace(-1, 1, RESOLUTION)
        flat = np.stack(np.meshgrid(side, side), axis=-1)  # (n_up, n_right, 2)
        squares = np.square(flat).sum(axis=-1)
        inside = squares < 1
        towards = np.sqrt(1 - squares[inside])
        values = np.full(inside.shape, np.nan)
        values[inside] = function(np.column_stack([flat[inside], towards]) @ self._view())
        draw_function(axis, values, [-1, 1, -1, 1], np.nanmax(np.abs(values)), [0])

    def _view(self) -> Array:
        """Directions to the right, up, and towards the viewer, as rows."""
        turn, tilt = np.radians([self.longitude, self.latitude])
        right = [-np.sin(turn), np.cos(turn), 0]
        towards = [np.cos(tilt) * np.cos(turn), np.cos(tilt) * np.sin(turn), np.sin(tilt)]
        return np.array([right, np.cross(towards, right), towards])
