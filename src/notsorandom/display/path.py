"""Accuracy by number of features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from notsorandom.data.rows import Array
from notsorandom.display.drawing import axis_of
from notsorandom.display.inspection import accuracy_by_size, learned_reals, mean_and_spread

# Ours first; then baselines, in colours that differ in lightness too.
COLOURS = ("#2c6fbb", "#e0a030", "#c0392b", "#16a085", "#8e44ad")


class PathDisplay:
    """Accuracy by number of features, of several methods.

    Parameters
    ----------
    sizes : ndarray of shape (n_sizes,)
    accuracies : dict of str to ndarray of shape (n_sizes,) or (n_trials, n_sizes)
        Of each method, as shares. Standard deviations over trials are drawn as bars.
    quality : str, default="accuracy"
        What they are: ``"R^2"`` for real targets.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from notsorandom import FourierClassifier
    >>> from notsorandom.datasets import make_windmill
    >>> from notsorandom.display import PathDisplay
    >>> X, y = make_windmill(500, random_state=0)
    >>> X_test, y_test = make_windmill(500, random_state=1)
    >>> model = FourierClassifier(40, random_state=0).fit(X, y)
    >>> display = PathDisplay.from_estimator(model, X, y, X_test, y_test, sizes=[10, 40])
    >>> sorted(display.accuracies)
    ['learned', 'random (RBF)']
    """

    def __init__(
        self, sizes: Array, accuracies: Mapping[str, Array], quality: str = "accuracy"
    ) -> None:
        self.sizes = sizes
        self.accuracies = accuracies
        self.quality = quality

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
    ) -> PathDisplay:
        """Cut a fitted estimator to several sizes, and draw its accuracies beside baselines'.

        Parameters
        ----------
        estimator : FourierFeatures, FourierClassifier or FourierRegressor, fitted
        X, y, X_test, y_test : array-likes
            The training data, and those that the accuracy is measured on.
        sizes, baselines
            See :func:`notsorandom.display.inspection.accuracy_by_size`.
        ax : matplotlib Axes, optional
        """
        found = accuracy_by_size(estimator, X, y, X_test, y_test, sizes, baselines)
        return cls(*found, "R^2" if learned_reals(estimator) else "accuracy").plot(ax)

    def plot(self, ax: Any = None) -> PathDisplay:
        """Draw on `ax`, or on a new figure."""
        self.ax_ = axis = axis_of(ax)
        self.figure_ = axis.figure
        for number, (name, values) in enumerate(self.accuracies.items()):
            mean, spread = mean_and_spread(100 * np.atleast_2d(values))
            axis.errorbar(
                self.sizes,
                mean,
                spread if np.ndim(values) == 2 else None,
                color=COLOURS[number % len(COLOURS)],
                marker="o",
                markersize=4,
                capsize=3,
                label=name,
            )
        axis.set(xlabel="number of features", ylabel=f"test {self.quality} (%)", xscale="log")
        axis.set_xticks(self.sizes, [f"{size:,}" for size in self.sizes], rotation=45)
        axis.minorticks_off()
        axis.grid(alpha=0.25)
        axis.legend()
        return self
