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


class HistoryDisplay:
    """How a game went: the potential found and the dual variables at the ends of their box.

    Parameters
    ----------
    history : dict of str to ndarray
        As in ``model.history_``.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    """

    def __init__(self, history: dict[str, Array]) -> None:
        self.history = history

    @classmethod
    def from_estimator(cls, estimator: Any, ax: Any = None) -> HistoryDisplay:
        """Draw the history of a fitted estimator."""
        return cls(estimator.history_).plot(ax)

    def plot(self, ax: Any = None) -> HistoryDisplay:
        """Draw on `ax`, or on a new figure."""
        self.ax_ = axis = ax if ax is not None else import_pyplot().subplots()[1]
        self.figure_ = axis.figure
        rounds = np.arange(1, len(self.history["potential"]) + 1)
        axis.plot(rounds, self.history["potential"], color="#c0392b", label="potential")
        axis.set(xlabel="round", ylabel="highest potential, of the largest possible", yscale="log")
        shares = axis.twinx()
        shares.plot(rounds, self.history["share_at_zero"], color="#2c6fbb", label="dual at 0")
        shares.plot(
            rounds, self.history["share_at_upper"], color="#2c6fbb", ls="--", label="dual at C"
        )
        shares.set(ylabel="share of the dual variables", ylim=(0, 1))
        lines = [*axis.lines, *shares.lines]
        axis.legend(lines, [line.get_label() for line in lines], fontsize="small")
        return self


class SpectrumDisplay:
    """What a kernel is made of: the weight of each frequency, by its length or degree.

    Parameters
    ----------
    sizes : ndarray of shape (n_frequencies,)
    weights : ndarray of shape (n_frequencies,)

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    """

    def __init__(self, sizes: Array, weights: Array) -> None:
        self.sizes = sizes
        self.weights = weights

    @classmethod
    def from_estimator(cls, estimator: Any, ax: Any = None) -> SpectrumDisplay:
        """Draw the spectrum of a fitted estimator's kernel."""
        kernel = estimator.kernel_
        return cls(kernel.space.sizes(kernel.frequencies), kernel.weights).plot(ax)

    def plot(self, ax: Any = None) -> SpectrumDisplay:
        """Draw on `ax`, or on a new figure."""
        self.ax_ = axis = ax if ax is not None else import_pyplot().subplots()[1]
        self.figure_ = axis.figure
        axis.vlines(self.sizes, 0, self.weights, color="#2c6fbb", alpha=0.6)
        axis.plot(self.sizes, self.weights, "o", color="#2c6fbb", markersize=3)
        axis.set(xlabel="length or degree of the frequency", ylabel="weight", ylim=(0, None))
        return self


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

    def _axes(self) -> Array:
        """Directions to the right, up, and towards the eye, as rows."""
        turn, tilt = np.radians([self.longitude, self.latitude])
        right = [-np.sin(turn), np.cos(turn), 0]
        towards = [np.cos(tilt) * np.cos(turn), np.cos(tilt) * np.sin(turn), np.sin(tilt)]
        return np.array([right, np.cross(towards, right), towards])

    def _draw_samples(self, axis: Any, X: Array, y: Array) -> None:
        right, up, towards = self._axes() @ X.T
        front = towards > 0
        colors = np.where(y == y.max(), "#c0392b", "#2c6fbb")
        axis.set_title("samples", fontsize=10)
        axis.scatter(right[front], up[front], c=colors[front], s=4, linewidths=0)

    def _draw_function(self, axis: Any, function: Callable[[Array], Array]) -> None:
        flat, extent = mesh(np.array([-1.0, -1.0]), np.array([1.0, 1.0]))
        squared = (flat**2).sum(axis=1)
        front = squared < 1
        seen = np.column_stack([flat[front], np.sqrt(1 - squared[front])]) @ self._axes()
        values = np.full((RESOLUTION, RESOLUTION), np.nan)
        values.ravel()[front] = function(seen)
        limit = np.nanmax(np.abs(values))
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
