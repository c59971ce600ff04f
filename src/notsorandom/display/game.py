"""A game on the plane, round by round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from notsorandom.data.rows import Array, Rows, dense
from notsorandom.display.figures import RESOLUTION, class_colors, draw_function, import_pyplot
from notsorandom.display.inspection import (
    GameSnapshot,
    planar_problem,
    potential_on_grid,
    take_snapshots,
)
from notsorandom.game.problem import codes_from_scores

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
        As of `notsorandom.display.inspection.take_snapshots`.

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
            By default those of a new figure.
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
    """Return half the side of a square around all frequencies found by then."""
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
