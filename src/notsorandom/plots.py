"""Pictures of what was learned: drawing only, never fitting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from notsorandom.rows import Array

# Points along each side of the maps.
RESOLUTION = 160


@dataclass(frozen=True)
class Moment:
    """One moment of a game on the plane, ready to be drawn.

    Parameters
    ----------
    title : str
    dual : ndarray of shape (n_samples,)
        Weight of each sample at that moment.
    frequencies : ndarray of shape (n_frequencies, 2)
        Found until then.
    potential : callable
        Potential of an array of frequencies, at that moment.
    decision : callable
        Decision function of the model with the features found until then.
    """

    title: str
    dual: Array
    frequencies: Array
    potential: Callable[[Array], Array]
    decision: Callable[[Array], Array]


class GameDisplay:
    """A game on the plane at a few moments: the data, the potential, the decision.

    Parameters
    ----------
    X : ndarray of shape (n_samples, 2)
    y : ndarray of shape (n_samples,)
        Of two values.
    moments : sequence of Moment
    """

    def __init__(self, X: Array, y: Array, moments: Sequence[Moment]) -> None:
        self.X = X
        self.y = y
        self.moments = moments

    def plot(self) -> Any:
        """Draw a column for each moment; return the matplotlib figure."""
        pyplot = import_pyplot()
        figure, axes = pyplot.subplots(
            3,
            len(self.moments),
            figsize=(3.2 * len(self.moments), 9.6),
            squeeze=False,
            layout="constrained",
        )
        for column, moment in zip(axes.T, self.moments, strict=True):
            column[0].set_title(moment.title)
            self._draw_data(column[0], moment)
            self._draw_potential(column[1], moment)
            self._draw_decision(column[2], moment)
        names = ("samples, by dual weight", "potential and frequencies", "decision function")
        for axis, name in zip(axes[:, 0], names, strict=True):
            axis.set_ylabel(name)
        for axis in axes.ravel():
            axis.set(xticks=[], yticks=[], aspect="equal")
        return figure

    def _draw_data(self, axis: Any, moment: Moment) -> None:
        share = moment.dual / max(moment.dual.max(), np.finfo(float).tiny)
        order = np.argsort(share)
        axis.scatter(
            *self.X[order].T,
            c=np.where(self.y == self.y.max(), "#c0392b", "#2c6fbb")[order],
            s=1 + 9 * share[order] ** 2,
            alpha=0.15 + 0.85 * share[order] ** 2,
            linewidths=0,
        )
        self._frame(axis)

    def _draw_potential(self, axis: Any, moment: Moment) -> None:
        reach = 1.15 * np.abs(self.moments[-1].frequencies).max()
        grid, extent = mesh(np.array([-reach, -reach]), np.array([reach, reach]))
        values = np.sqrt(moment.potential(grid)).reshape(RESOLUTION, RESOLUTION)
        axis.imshow(values, extent=extent, origin="lower", cmap="magma")
        both = np.concatenate([moment.frequencies, -moment.frequencies])
        axis.scatter(*both.T, s=7, c="#2ee6d6", linewidths=0)
        axis.set(xlim=extent[:2], ylim=extent[2:])

    def _draw_decision(self, axis: Any, moment: Moment) -> None:
        low, high = self.X.min(axis=0), self.X.max(axis=0)
        grid, extent = mesh(low, high)
        values = moment.decision(grid).reshape(RESOLUTION, RESOLUTION)
        axis.imshow(
            values, extent=extent, origin="lower", cmap="RdBu_r", vmin=-2, vmax=2, alpha=0.9
        )
        axis.contour(values, levels=[-1, 0, 1], extent=extent, colors="k", linewidths=[0.4, 1, 0.4])
        self._frame(axis)

    def _frame(self, axis: Any) -> None:
        low, high = self.X.min(axis=0), self.X.max(axis=0)
        axis.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))


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
