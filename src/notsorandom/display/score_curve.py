"""Score by number of features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from notsorandom.data.rows import Array
from notsorandom.display.figures import BLUE, RED, axes_or_new
from notsorandom.display.inspection import score_name, scores_by_size

# The learned features first, then baselines; the colours differ in lightness too.
COLORS = (BLUE, "#e0a030", RED, "#16a085", "#8e44ad")


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
            Numbers of features; by default a few, up to all.
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
                color=COLORS[number % len(COLORS)],
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
