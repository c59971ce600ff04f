"""Functions drawn as images: the rounds of a game on the plane, and functions on the sphere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from notsorandom.data.rows import Array, Rows, dense
from notsorandom.display.figures import BLUE, RED, import_pyplot
from notsorandom.display.inspection import (
    GameSnapshot,
    planar_problem,
    potential_on_grid,
    take_snapshots,
)
from notsorandom.game.problem import codes_from_scores

# Points along each side of an image of a function.
RESOLUTION = 160
# Titles of the three panels of a round.
PANELS = ("samples by dual weight", "potential and frequencies", "decision function")
# Maximum number of samples drawn; more would overlap.
MAX_SAMPLES = 3000
# Side of the drawn square, relative to the samples' and the frequencies' extent.
SAMPLE_MARGIN, FREQUENCY_MARGIN = 1.04, 1.15
# Decision values beyond twice the margin have the same colour.
MAX_DECISION = 2.0


class GameDisplay:
    """Rounds of a game on the plane: samples, potential and decision function.

    Parameters
    ----------
    X : ndarray of shape (n_samples, 2)
        The samples.
    y : ndarray of shape (n_samples,)
        Class labels of two classes.
    snapshots : sequence of GameSnapshot
        As `notsorandom.display.inspection.take_snapshots` returns them.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes, of shape (3, n_snapshots)
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from notsorandom import FourierClassifier
    >>> from notsorandom.datasets import make_windmill
    >>> from notsorandom.display import GameDisplay
    >>> X, y = make_windmill(500, random_state=0)
    >>> model = FourierClassifier(40, random_state=0).fit(X, y)
    >>> display = GameDisplay.from_estimator(model, X, y, rounds=[1, 10])
    >>> display.axes_.shape
    (3, 2)
    """

    def __init__(self, X: Array, y: Array, snapshots: Sequence[GameSnapshot]) -> None:
        self.X = X
        self.y = y
        self.snapshots = snapshots

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, rounds: Sequence[int] | None = None, ax: Any = None
    ) -> GameDisplay:
        """Replay the game of a fitted estimator and draw some of its rounds.

        Parameters
        ----------
        estimator : FourierFeatures or FourierClassifier
            Fitted.
        X, y : array-likes
            The training data: two features, two classes.
        rounds : sequence of int, optional
            Numbers of rounds, from 1; by default the first, the last and one in between.
        ax : array of matplotlib Axes of shape (3, n_rounds), optional
            Where to draw; by default on a new figure.
        """
        problem = planar_problem(estimator, X, y)
        n_classes = len(getattr(estimator, "classes_", ()))
        if n_classes != 2:
            kind = f"{n_classes} classes" if n_classes else "real targets"
            raise ValueError(
                f"This {type(estimator).__name__} was fitted to {kind}, but GameDisplay draws "
                "games of two classes: use HistoryDisplay, SpectrumDisplay or ScoreCurveDisplay."
            )
        labels = estimator.classes_[codes_from_scores(problem.targets)]
        snapshots = take_snapshots(estimator, X, y, rounds)
        return cls(dense(problem.rows.array), labels, snapshots).plot(ax)

    def plot(self, ax: Any = None, *, resolution: int = RESOLUTION) -> GameDisplay:
        """Draw one column per snapshot.

        Parameters
        ----------
        ax : array of matplotlib Axes of shape (3, n_snapshots), optional
            Where to draw; by default on a new figure.
        resolution : int
            Points along each side of the images.

        Returns
        -------
        self
        """
        n_snapshots = len(self.snapshots)
        if ax is None:
            size = (3.2 * n_snapshots, 9.6)
            _, ax = import_pyplot().subplots(
                3, n_snapshots, figsize=size, squeeze=False, layout="constrained"
            )
        self.axes_ = np.asarray(ax).reshape(3, n_snapshots)
        self.figure_ = self.axes_[0, 0].figure
        limit = frequency_limit(self.snapshots[-1])
        for column, snapshot in zip(self.axes_.T, self.snapshots, strict=True):
            column[0].set_title(snapshot.title, fontsize=10)
            self._draw_samples(column[0], snapshot)
            draw_potential(column[1], snapshot, self.X, limit, resolution)
            self._draw_decision(column[2], snapshot, resolution)
        for axis, name in zip(self.axes_[:, 0], PANELS, strict=True):
            axis.set_ylabel(name)
        for axis in self.axes_.flat:
            axis.set(xticks=[], yticks=[], aspect="equal")
        return self

    def _draw_samples(self, axis: Any, snapshot: GameSnapshot) -> None:
        drawn = np.linspace(0, len(self.X) - 1, min(len(self.X), MAX_SAMPLES)).astype(int)
        dual = np.abs(snapshot.measure[:, 0])
        share = dual[drawn] / max(dual.max(), np.finfo(float).tiny)
        order = np.argsort(share)  # the heaviest are drawn last, on top
        drawn, share = drawn[order], share[order]
        axis.scatter(
            *self.X[drawn].T,
            c=class_colors(self.y)[drawn],
            s=1 + 9 * share**2,
            alpha=0.15 + 0.85 * share**2,
            linewidths=0,
        )
        left, right, bottom, top = self._extent()
        axis.set(xlim=(left, right), ylim=(bottom, top))

    def _draw_decision(self, axis: Any, snapshot: GameSnapshot, resolution: int) -> None:
        left, right, bottom, top = extent = self._extent()
        across, up = np.linspace(left, right, resolution), np.linspace(bottom, top, resolution)
        grid = np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2).astype(self.X.dtype)
        values = snapshot.decision_function(grid)[:, 0].reshape(resolution, resolution)
        draw_function(axis, values, extent, MAX_DECISION, [-1, 0, 1])

    def _extent(self) -> tuple[float, float, float, float]:
        """Left, right, bottom and top of a square around the samples."""
        low, high = self.X.min(axis=0), self.X.max(axis=0)
        half = SAMPLE_MARGIN * float((high - low).max()) / 2 or 1.0
        x, y = map(float, (low + high) / 2)
        return x - half, x + half, y - half, y + half


def frequency_limit(snapshot: GameSnapshot) -> float:
    """Return half the side of a square around all frequencies of a snapshot."""
    return FREQUENCY_MARGIN * float(np.abs(snapshot.kernel.frequencies).max()) or 1.0


def draw_potential(
    axis: Any, snapshot: GameSnapshot, X: Array, limit: float, resolution: int = RESOLUTION
) -> None:
    """Draw the root of the potential and the frequencies found, up to a limit in each direction."""
    kernel = snapshot.kernel
    side, extent = np.linspace(-limit, limit, resolution), [-limit, limit, -limit, limit]
    values = np.sqrt(potential_on_grid(Rows(X), snapshot.measure, side, side))
    axis.imshow(values, extent=extent, origin="lower", cmap="magma", interpolation="bilinear")
    # A frequency and its negative are the same wave.
    both = np.concatenate([kernel.frequencies, -kernel.frequencies])
    axis.scatter(*both.T, s=7, c="#2ee6d6", linewidths=0)
    axis.set(xlim=extent[:2], ylim=extent[2:])


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


def class_colors(y: Array) -> Array:
    """Return the colour of each sample of two classes."""
    return np.where(y == np.unique(y)[-1], RED, BLUE)


def draw_function(axis: Any, values: Array, extent: Any, limit: float, levels: Any) -> None:
    """Draw values on a grid: an image in red and blue up to a limit, and lines at some levels."""
    style = {"cmap": "RdBu_r", "interpolation": "bilinear", "origin": "lower"}
    axis.imshow(values, extent=extent, vmin=-limit, vmax=limit, **style)
    widths = [1 if level == 0 else 0.4 for level in levels]
    axis.contour(values, levels=levels, extent=extent, colors="k", linewidths=widths)
