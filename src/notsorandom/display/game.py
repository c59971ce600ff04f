"""A game on the plane, round by round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from notsorandom.data.rows import Array, Rows
from notsorandom.display.drawing import BLUE, RED, RESOLUTION, import_pyplot, mesh
from notsorandom.display.inspection import (
    Moment,
    moments,
    plane_of,
    potential_on_grid,
    require_classes,
)
from notsorandom.game.scoring import predicted_codes


class GameDisplay:
    """A game on the plane at a few moments: the data, the potential, the decision.

    Parameters
    ----------
    X : ndarray of shape (n_samples, 2)
    y : ndarray of shape (n_samples,)
        Of two values.
    moments : sequence of Moment
        See :func:`notsorandom.display.inspection.moments`.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes, of shape (3, n_moments)
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

    def __init__(self, X: Array, y: Array, moments: Sequence[Moment]) -> None:
        self.X = X
        self.y = y
        self.moments = moments

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, rounds: Sequence[int] | None = None, ax: Any = None
    ) -> GameDisplay:
        """Play a fitted estimator's game again, and draw it at some rounds.

        Parameters
        ----------
        estimator : FourierFeatures or FourierClassifier, fitted
        X, y : array-likes
            The training data: two features, two classes.
        rounds : sequence of int, optional
            Counted from one; by default the first, the last, and one in between.
        ax : array of matplotlib Axes of shape (3, n_rounds), optional
        """
        plane, player = plane_of(estimator, X, y)
        require_classes(estimator)
        if len(estimator.classes_) != 2:
            raise ValueError(
                f"The model has {len(estimator.classes_)} classes, but a game is drawn for two: "
                "use HistoryDisplay and SpectrumDisplay."
            )
        labels = estimator.classes_[predicted_codes(player.targets)]
        return cls(plane, labels, moments(estimator, X, y, rounds)).plot(ax)

    def plot(self, ax: Any = None) -> GameDisplay:
        """Draw a column for each moment on `ax`, or on a new figure."""
        n_moments = len(self.moments)
        if ax is None:
            size = (3.2 * n_moments, 9.6)
            _, ax = import_pyplot().subplots(
                3, n_moments, figsize=size, squeeze=False, layout="constrained"
            )
        self.axes_ = np.asarray(ax).reshape(3, n_moments)
        self.figure_ = self.axes_[0, 0].figure
        for column, moment in zip(self.axes_.T, self.moments, strict=True):
            n_frequencies = len(moment.kernel.frequencies)
            column[0].set_title(f"round {moment.round}: {n_frequencies} frequencies", fontsize=10)
            self._draw_data(column[0], moment)
            draw_potential(column[1], moment, reach_of(self.moments[-1]), Rows(self.X))
            self._draw_decision(column[2], moment)
        names = ("samples, by dual weight", "potential and frequencies", "decision function")
        for axis, name in zip(self.axes_[:, 0], names, strict=True):
            axis.set_ylabel(name)
        for axis in self.axes_.ravel():
            axis.set(xticks=[], yticks=[], aspect="equal")
        return self

    def _draw_data(self, axis: Any, moment: Moment) -> None:
        dual = np.abs(moment.measure[:, 0])
        share = dual / max(dual.max(), np.finfo(float).tiny)
        order = np.argsort(share)
        axis.scatter(
            *self.X[order].T,
            c=np.where(self.y == np.unique(self.y)[-1], RED, BLUE)[order],
            s=1 + 9 * share[order] ** 2,
            alpha=0.15 + 0.85 * share[order] ** 2,
            linewidths=0,
        )
        self._frame(axis)

    def _draw_decision(self, axis: Any, moment: Moment) -> None:
        grid, extent = mesh(self.X.min(axis=0), self.X.max(axis=0))
        values = moment.decision(grid).reshape(RESOLUTION, RESOLUTION)
        axis.imshow(
            values, extent=extent, origin="lower", cmap="RdBu_r", vmin=-2, vmax=2, alpha=0.9
        )
        axis.contour(values, levels=[-1, 0, 1], extent=extent, colors="k", linewidths=[0.4, 1, 0.4])
        self._frame(axis)

    def _frame(self, axis: Any) -> None:
        low, high = self.X.min(axis=0), self.X.max(axis=0)
        axis.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))


def reach_of(moment: Moment) -> float:
    """Half the side of a square that holds all frequencies found until then."""
    return 1.15 * float(np.abs(moment.kernel.frequencies).max())


def draw_potential(axis: Any, moment: Moment, reach: float, rows: Rows) -> None:
    """Draw the amplitude over the plane of frequencies, and those found, with their mirrors."""
    kernel = moment.kernel
    side, extent = np.linspace(-reach, reach, RESOLUTION), [-reach, reach, -reach, reach]
    values = np.sqrt(potential_on_grid(kernel, rows, moment.measure, side, side))
    axis.imshow(values, extent=extent, origin="lower", cmap="magma")
    both = np.concatenate([kernel.frequencies, -kernel.frequencies])
    axis.scatter(*both.T, s=7, c="#2ee6d6", linewidths=0)
    axis.set(xlim=extent[:2], ylim=extent[2:])
