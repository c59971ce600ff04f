"""Curves of fitted models: the course of the game, the losses of trials, the score by size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from notsorandom.data.rows import Array
from notsorandom.display.figures import BLUE, GREY, RED, axes_or_new, import_pyplot, percent
from notsorandom.display.inspection import bounds_by_round, score_name, scores_by_size

SPECTRUM_COLORS = {"gaussian": BLUE, "cauchy": RED}
# The learned features first, then baselines; the colours differ in lightness too.
METHOD_COLORS = (BLUE, "#e0a030", RED, "#16a085", "#8e44ad")


class HistoryDisplay:
    """The course of a game: potential, dual variables at their bounds, bounds on the value.

    Parameters
    ----------
    history : dict of str to ndarray
        As in ``model.history_``.
    bounds : (rounds, upper, lower, certified), optional
        As `notsorandom.display.inspection.bounds_by_round` returns them.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes, of shape (1,) or (2,)
        The potential and, if there are bounds, the bounds.
    ax_ : matplotlib Axes
        The potential.
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


class TuningDisplay:
    """Held-out loss of the trials by `C` and by smoothing, for each spectrum and linear part.

    For every value, the lowest loss over the other parameters is drawn, with its standard error. A
    ring marks the lowest of all.

    Parameters
    ----------
    table : dict of str to ndarray
        As in ``model.tuning_``: one row per trial.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        One for each parameter of several values, or one in all.
    figure_ : matplotlib Figure
    """

    def __init__(self, table: dict[str, Array]) -> None:
        self.table = table

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> TuningDisplay:
        """Draw the trials of a fitted estimator.

        Parameters
        ----------
        estimator : FourierFeatures, FourierClassifier or FourierRegressor, fitted
            With ``"auto"`` for one of its parameters.
        ax : sequence of matplotlib Axes, optional
            One for each of `parameters`.
        """
        check_is_fitted(estimator)
        if estimator.tuning_ is None:
            raise ValueError(
                "This model was fitted without trials: fit with C='auto' or smoothing='auto'."
            )
        return cls(estimator.tuning_).plot(ax)

    @property
    def parameters(self) -> list[str]:
        """Names of the parameters that are drawn: all with several values, at least one."""
        names = [name for name in ("C", "smoothing") if len(np.unique(self.table[name])) > 1]
        return names or ["smoothing"]

    def plot(self, ax: Any = None) -> TuningDisplay:
        """Draw the losses of the trials by parameter.

        Parameters
        ----------
        ax : sequence of matplotlib Axes, optional
            One for each of `parameters`; by default on a new figure.
        """
        names = self.parameters
        if ax is None:
            size = (6.4 * len(names), 4.2)
            _, ax = import_pyplot().subplots(1, len(names), figsize=size, layout="constrained")
        self.axes_ = np.asarray(ax, dtype=object).reshape(-1)
        if len(self.axes_) != len(names):
            raise ValueError(
                f"ax has {len(self.axes_)} axes, but {len(names)} are needed: one for each of "
                f"{', '.join(names)}."
            )
        self.figure_ = self.axes_[0].figure
        for axis, name in zip(self.axes_, names, strict=True):
            self._draw(axis, name)
        return self

    def _draw(self, axis: Any, name: str) -> None:
        values, losses = self.table[name], self.table["loss"]
        spectra, is_linear = self.table["spectrum"], self.table["linear"] > 0
        for spectrum, linear in sorted(set(zip(spectra.tolist(), is_linear.tolist(), strict=True))):
            rows = lowest_rows(values, losses, (spectra == spectrum) & (is_linear == linear))
            label = f"{spectrum} spectrum" if spectrum else "trials"
            axis.errorbar(
                values[rows],
                losses[rows],
                self.table["standard_error"][rows],
                color=SPECTRUM_COLORS.get(spectrum, BLUE),
                marker="o",
                markersize=4,
                capsize=3,
                linestyle="--" if linear else "-",
                label=f"{label}, linear part" if linear else label,
            )
        best = losses.argmin()
        ring = {"markersize": 11, "fillstyle": "none", "color": "k", "label": "lowest"}
        axis.plot(values[best], losses[best], "o", **ring)
        axis.set(xlabel=name, ylabel="held-out loss")
        if (values > 0).all():
            axis.set_xscale("log")
        axis.grid(alpha=0.25)
        axis.legend()


def lowest_rows(values: Array, losses: Array, mask: Array) -> Array:
    """Return the row of lowest loss for each value, of the rows in a mask, in order of value."""
    rows = np.flatnonzero(mask)
    ordered = rows[np.lexsort([losses[rows], values[rows]])]
    is_first = np.diff(values[ordered], prepend=np.nan) != 0
    return ordered[is_first]


class ScoreCurveDisplay:
    """Test score of several methods by number of features.

    Parameters
    ----------
    sizes : ndarray of shape (n_sizes,)
        Numbers of features.
    scores : dict of str to ndarray of shape (n_sizes,) or (n_trials, n_sizes)
        Scores of each method, NaN where missing. Bars show standard deviations over trials.
    score_name : str, default="accuracy"
        What the scores are; accuracies are drawn as percentages.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from notsorandom import FourierClassifier
    >>> from notsorandom.datasets import make_windmill
    >>> from notsorandom.display import ScoreCurveDisplay
    >>> X, y = make_windmill(500, random_state=0)
    >>> X_test, y_test = make_windmill(500, random_state=1)
    >>> model = FourierClassifier(40, random_state=0).fit(X, y)
    >>> display = ScoreCurveDisplay.from_estimator(model, X, y, X_test, y_test, sizes=[10, 40])
    >>> sorted(display.scores)
    ['learned', 'random (RBF)']
    """

    def __init__(
        self, sizes: Array, scores: Mapping[str, Array], score_name: str = "accuracy"
    ) -> None:
        self.sizes = sizes
        self.scores = scores
        self.score_name = score_name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        X_test: Any,
        y_test: Any,
        *,
        sizes: Sequence[int] | None = None,
        baselines: Mapping[str, Any] | None = None,
        ax: Any = None,
    ) -> ScoreCurveDisplay:
        """Draw the scores of a fitted estimator, cut to several sizes, and of baselines.

        Parameters
        ----------
        estimator : FourierFeatures, FourierClassifier or FourierRegressor
            Fitted.
        X, y, X_test, y_test : array-likes
            The training data, and the data to score on.
        sizes : sequence of int, optional
            Numbers of features, beside a linear part; by default a few, up to all.
        baselines : dict of str to transformer, optional
            Transformers of `notsorandom.baselines`, which are fitted at the largest size; by
            default random features of the RBF kernel. All features get the same linear model.
        ax : matplotlib Axes, optional
            Where to draw; by default on a new figure.
        """
        found = scores_by_size(estimator, X, y, X_test, y_test, sizes, baselines)
        return cls(*found, score_name(estimator)).plot(ax)

    def plot(self, ax: Any = None) -> ScoreCurveDisplay:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default on a new figure.
        """
        self.ax_ = axis = axes_or_new(ax)
        self.figure_ = axis.figure
        factor, unit = (100, " (%)") if self.score_name == "accuracy" else (1, "")
        for number, (name, values) in enumerate(self.scores.items()):
            trials = np.ma.masked_invalid(factor * np.atleast_2d(values))
            axis.errorbar(
                self.sizes,
                trials.mean(axis=0).filled(np.nan),
                trials.std(axis=0, ddof=1).filled(np.nan) if len(trials) > 1 else None,
                color=METHOD_COLORS[number % len(METHOD_COLORS)],
                marker="o",
                markersize=4,
                capsize=3,
                label=name,
            )
        label = f"test {self.score_name}{unit}"
        axis.set(xlabel="number of features", ylabel=label, xscale="log")
        axis.set_xticks(self.sizes, [f"{size:,}" for size in self.sizes], rotation=45)
        axis.minorticks_off()
        axis.grid(alpha=0.25)
        axis.legend()
        return self
