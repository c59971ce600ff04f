"""Whether intervals and sets contain the truth as often as they should."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_consistent_length

from notsorandom._utils.parameters import check_number
from notsorandom.data.array_api import to_host
from notsorandom.data.rows import Array
from notsorandom.display.curves import METHOD_COLORS
from notsorandom.display.figures import BLUE, GREY, RED, percent, two_axes
from notsorandom.display.importances import last_step_and_samples, shorten_label
from notsorandom.estimators.predictor import FourierPredictor
from notsorandom.tuning.conformal import check_coverage

# The coverages that are compared, as far as the held-out rows allow them.
CURVE_COVERAGES = (*np.arange(1, 19) / 20, 0.925, 0.95, 0.975, 0.99)
# More points are drawn as an image, and of more intervals as many are drawn.
MAX_POINTS = 2000
# Place of a legend.
ABOVE = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "handletextpad": 0.2}


class CoverageDisplay:
    """Share of samples whose interval or set contains the truth, by the share asked for.

    Beside it for real targets: predicted and actual values with intervals. For classes: the mean
    size of the sets.

    Parameters
    ----------
    truth : ndarray of shape (n_samples,)
        True targets, or numbers of the true classes.
    regions : ndarray of shape (n_samples, 2 or n_classes, n_coverages)
        Lower and upper limits of intervals; or of type bool, whether a class is in the set.
    coverages : sequence of float
        The shares asked for.
    coverage : float, default=0.9
        Which of the intervals are drawn: those of the nearest of `coverages`.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes, of shape (2,)
        Intervals or sizes of sets, and the coverage.
    ax_ : matplotlib Axes
        The coverage.
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import numpy as np
    >>> from notsorandom import FourierRegressor
    >>> from notsorandom.display import CoverageDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(1000, 1))
    >>> y = np.sin(5 * X[:, 0]) + 0.3 * rng.normal(size=1000)
    >>> model = FourierRegressor(20, random_state=0).fit(X[:500], y[:500])
    >>> display = CoverageDisplay.from_estimator(model, X[500:], y[500:])
    >>> bool(np.abs(display.found - display.coverages).max() < 0.15)
    True
    """

    def __init__(
        self, truth: Array, regions: Array, coverages: Sequence[float], coverage: float = 0.9
    ) -> None:
        self.truth = truth
        self.regions = regions
        self.coverages = coverages
        self.coverage = coverage

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        coverage: float = 0.9,
        output: int = 0,
        ax: Any = None,
    ) -> CoverageDisplay:
        """Draw the intervals or sets of a fitted model, and how often they are right.

        Parameters
        ----------
        estimator : FourierRegressor, FourierClassifier, or a Pipeline that ends in one
            Fitted, with held-out samples.
        X, y : array-likes
            Samples and their targets or classes; not the training data, on which it is too
            confident.
        coverage : float, default=0.9
            Coverage of the intervals that are drawn, between 0 and 1.
        output : int, default=0
            Which output is drawn, for regressions with several.
        ax : sequence of two matplotlib Axes, optional
            Where to draw; by default on a new figure.
        """
        check_coverage(coverage)
        last, samples = last_step_and_samples(estimator, X)
        check_number("output", output, least=0, most=getattr(last, "n_outputs_", 1) - 1)
        return cls.of_outputs(last, samples, y, coverage)[output].plot(ax)

    @classmethod
    def of_outputs(
        cls, model: FourierPredictor, X: Any, y: Any, coverage: float = 0.9
    ) -> list[CoverageDisplay]:
        """Return a display for each output of a fitted model, without drawing it.

        Parameters
        ----------
        model : FourierRegressor or FourierClassifier
            Fitted, with held-out samples.
        X, y : array-likes
            Samples and their targets or classes.
        coverage : float, default=0.9
            Coverage of the intervals that are drawn.
        """
        y = np.asarray(to_host(y))
        known: Any = getattr(model, "held_out_scores_", None)
        levels = sorted({*CURVE_COVERAGES, coverage})
        if known is not None:  # else the next error says what to do
            levels = [each for each in levels if each <= known.max_coverage or each == coverage]
        if is_classifier(model):
            regions = to_host(model.predict_set(X, levels))[:, None]
            y = np.where(y.reshape(len(y), 1, -1) == model.classes_, 1, 0)
            truth = np.where(y.any(axis=2), y.argmax(axis=2), -1)  # new classes are in no set
        else:
            regions = to_host(model.predict_interval(X, levels))
            regions = regions.reshape(len(regions), -1, *regions.shape[-2:])
            truth = y.reshape(len(y), -1)
        check_consistent_length(regions, truth)
        outputs = range(regions.shape[1])
        return [cls(truth[:, k], regions[:, k], levels, coverage) for k in outputs]

    @property
    def has_sets(self) -> bool:
        """Whether the regions are sets of classes."""
        return self.regions.dtype.kind == "b"

    @property
    def covered(self) -> Array:
        """Whether the regions contain the truth, of shape (n_samples, n_coverages)."""
        if self.has_sets:
            hits = self.truth[:, None] == np.arange(self.regions.shape[1])
            return (self.regions & hits[:, :, None]).any(axis=1)
        low, high = np.moveaxis(self.regions, 1, 0)
        return (low <= self.truth[:, None]) & (self.truth[:, None] <= high)

    @property
    def found(self) -> Array:
        """Shares of samples whose region contains the truth, of shape (n_coverages,)."""
        shares: Array = self.covered.mean(axis=0)
        return shares

    @property
    def sizes(self) -> Array:
        """Mean widths of the intervals, or mean sizes of the sets, of shape (n_coverages,)."""
        regions = self.regions
        sizes = regions.sum(axis=1) if self.has_sets else regions[:, 1] - regions[:, 0]
        means: Array = sizes.mean(axis=0)
        return means

    def plot(self, ax: Any = None) -> CoverageDisplay:
        """Draw both panels.

        Parameters
        ----------
        ax : sequence of two matplotlib Axes, optional
            Where to draw; by default on a new figure.
        """
        purpose = "for the intervals or sizes, and for the coverage"
        self.axes_ = two_axes(ax, (10.5, 4.8), purpose)
        first, self.ax_ = self.axes_
        self.figure_ = self.ax_.figure
        if self.has_sets:
            first.plot(self.coverages, self.sizes, "o-", color=BLUE, markersize=4)
            first.set(xlabel="coverage asked for", ylabel="mean number of classes in a set")
            first.xaxis.set_major_formatter(percent)
        else:
            self.plot_intervals(first)
        draw_coverages(self.ax_, [self])
        return self

    def plot_intervals(self, axis: Any) -> None:
        """Draw predicted and actual values, with an interval for each prediction.

        Parameters
        ----------
        axis : matplotlib Axes
            Where to draw.
        """
        number = int(np.abs(np.asarray(self.coverages) - self.coverage).argmin())
        limits, is_covered = self.regions[:, :, number], self.covered[:, number]
        draw_predictions(axis, limits.mean(axis=1), self.truth, limits, is_covered)
        share = 100 * is_covered.mean()
        names = [f"within the {100 * self.coverages[number]:g} % interval: {share:.1f} %"]
        names.append(f"outside: {100 - share:.1f} %")
        points = [line for line in axis.lines if line.get_marker() == "o"]
        legend = axis.legend(points, names, fontsize="small", frameon=False, **ABOVE)
        for handle in legend.legend_handles:
            handle.set(alpha=1, rasterized=False)


def draw_predictions(
    axis: Any,
    predicted: Array,
    actual: Array,
    limits: Array | None = None,
    is_covered: Array | None = None,
) -> None:
    """Draw actual by predicted values; with intervals, those outside of theirs are red.

    `limits` has the shape (n_samples, 2).
    """
    is_many = len(actual) > MAX_POINTS
    alpha, size = (0.25, 2) if is_many else (0.5, 3)
    if limits is not None:
        some = slice(None, None, -(-len(actual) // MAX_POINTS))
        thin = {"alpha": alpha**1.5, "linewidth": 1, "rasterized": is_many}
        axis.vlines(predicted[some], *limits[some].T, GREY, **thin)
    inside = np.ones(len(actual), dtype=bool) if is_covered is None else is_covered
    for part, color in ((inside, BLUE), (~inside, RED))[: 1 if limits is None else 2]:
        style = {"color": color, "alpha": alpha, "markersize": size, "rasterized": is_many}
        axis.plot(predicted[part], actual[part], "o", **style)
    ends = [min(predicted.min(), actual.min()), max(predicted.max(), actual.max())]
    axis.plot(ends, ends, color=GREY, linewidth=1)
    axis.set(xlabel="predicted", ylabel="actual")
    axis.locator_params("x", nbins=3)  # long numbers would overlap
    for side in (axis.xaxis, axis.yaxis):
        side.set_major_formatter(lambda value, _: f"{value:,.10g}")


def draw_coverages(
    axis: Any, displays: Sequence[CoverageDisplay], names: Sequence[str] = ("",)
) -> None:
    """Draw the coverages that were found by those that were asked for, a line for each display."""
    axis.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle=":")
    for each, name, color in zip(displays, names, METHOD_COLORS, strict=False):
        style = {"color": color, "markersize": 4, "label": shorten_label(name)}
        axis.plot(each.coverages, each.found, "o-", **style)
    axis.set(xlabel="coverage asked for", ylabel="coverage found")
    for side in (axis.xaxis, axis.yaxis):
        side.set_major_formatter(percent)
    if len(displays) > 1:
        axis.legend(fontsize="small", frameon=False)
