"""The course of a game."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from notsorandom.data.rows import Array
from notsorandom.display.figures import BLUE, GREY, RED, import_pyplot, percent
from notsorandom.display.inspection import bounds_by_round


class HistoryDisplay:
    """The course of a game: potential, dual variables at their bounds, bounds on the value.

    Parameters
    ----------
    history : dict of str to ndarray
        As in ``model.history_``.
    bounds : (rounds, upper, lower, certified), optional
        As of `notsorandom.display.inspection.bounds_by_round`.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes, of shape (1,) or (2,)
        Those of the potential and, if there are bounds, of the bounds.
    ax_ : matplotlib Axes
        The first of them.
    figure_ : matplotlib Figure
    """

    def __init__(
        self, history: dict[str, Array], bounds: tuple[Array, Array, Array, bool] | None = None
    ) -> None:
        self.history = history
        self.bounds = bounds

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, y: Any = None, *, ax: Any = None
    ) -> HistoryDisplay:
        """Draw the history of a fitted estimator.

        Parameters
        ----------
        estimator : FourierFeatures, FourierClassifier or FourierRegressor
            Fitted.
        X, y : array-likes, optional
            The training data. With them, bounds on the value of the game are drawn too.
        ax : matplotlib Axes, or sequence of two with the bounds, optional
            Where to draw; by default on a new figure.
        """
        check_is_fitted(estimator)
        bounds = None if X is None else bounds_by_round(estimator, X, y)
        return cls(estimator.history_, bounds).plot(ax)

    def plot(self, ax: Any = None) -> HistoryDisplay:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, or sequence of two with the bounds, optional
            Where to draw; by default on a new figure.
        """
        n_panels = 1 if self.bounds is None else 2
        if ax is None:
            size = (6.4 * n_panels, 4.2)
            _, ax = import_pyplot().subplots(1, n_panels, figsize=size, layout="constrained")
        self.axes_ = np.asarray(ax, dtype=object).reshape(-1)
        if len(self.axes_) != n_panels:
            raise ValueError(
                f"ax has {len(self.axes_)} axes, but {n_panels} are needed: one for the history, "
                "and one more if X and y are given."
            )
        self.ax_ = self.axes_[0]
        self.figure_ = self.ax_.figure
        self._draw_rounds(self.ax_)
        if self.bounds is not None:
            draw_bounds(self.axes_[1], *self.bounds)
        return self

    def _draw_rounds(self, axis: Any) -> None:
        potential = self.history["potential"]
        rounds = np.arange(1, len(potential) + 1)
        axis.plot(rounds, potential, ".-", color=RED, label="potential")
        axis.set(xlabel="round", ylabel="highest potential / its maximum")
        if np.any(potential > 0):
            axis.set_yscale("log")
        axes = [axis]
        for name, style, label in (("zero", "-", "dual at 0"), ("upper", "--", "dual at C")):
            values = self.history[f"share_at_{name}"]
            if values.any():  # losses of real targets have no such bounds
                axes = axes if len(axes) > 1 else [axis, axis.twinx()]
                axes[1].plot(rounds, values, color=BLUE, ls=style, label=label)
                axes[1].set(ylabel="share of the dual variables", ylim=(0, 1.02))
                axes[1].yaxis.set_major_formatter(percent)
        add_legend(*axes)


def draw_bounds(
    axis: Any, rounds: Array, upper: Array, lower: Array, certified: bool = False
) -> None:
    """Draw both bounds on the value of the game, and the relative gap between them."""
    kind = "certified" if certified else "estimated"
    axis.plot(rounds, upper, "o-", color=RED, markersize=3, label="upper bound")
    axis.plot(rounds, lower, "o-", color=BLUE, markersize=3, label=f"lower bound ({kind})")
    axis.fill_between(rounds, lower, upper, color=GREY, alpha=0.15, linewidth=0)
    axis.set(xlabel="round", ylabel="value of the game", xscale="log", ylim=(0, None))
    gaps = axis.twinx()
    gaps.plot(rounds, 1 - lower / upper, color=GREY, ls=":", label="relative gap")
    gaps.set(ylabel="relative gap", ylim=(0, 1.02))
    gaps.yaxis.set_major_formatter(percent)
    axis.yaxis.set_major_formatter("{x:.3g}")
    add_legend(axis, gaps)


def add_legend(*axes: Any) -> None:
    """Add one legend for the lines of axes that share a panel, above it."""
    lines = [line for axis in axes for line in axis.lines]
    names = [line.get_label() for line in lines]
    above = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": len(lines)}
    axes[-1].legend(lines, names, fontsize="small", frameon=False, **above)
