"""Whether predicted probabilities agree with the frequencies of the classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import calibration
from sklearn.utils.validation import check_consistent_length, column_or_1d

from notsorandom.data.array_api import to_host
from notsorandom.data.rows import Array
from notsorandom.display.figures import BLUE, GREY, percent, two_axes

N_BINS = 10


class CalibrationDisplay:
    """Reliability diagram: frequency of an event by its predicted probability.

    For two classes, the event is ``classes_[1]``; for more, it is that the predicted class is
    right. Bins have equal numbers of samples, except where probabilities are equal.

    Parameters
    ----------
    truth : ndarray of shape (n_samples,)
        Whether the event happened, as bool.
    probability : ndarray of shape (n_samples,)
        Its predicted probability.
    name : str, default="predicted probability"
        What the probability is.
    n_bins : int, default=10
        Number of bins of the diagram.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes, of shape (2,)
        The diagram, and the histogram of the probabilities.
    ax_ : matplotlib Axes
        The diagram.
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from notsorandom import FourierClassifier
    >>> from notsorandom.datasets import make_windmill
    >>> from notsorandom.display import CalibrationDisplay
    >>> X, y = make_windmill(500, random_state=0)
    >>> model = FourierClassifier(20, loss="logistic", random_state=0).fit(X, y)
    >>> display = CalibrationDisplay.from_estimator(model, *make_windmill(500, random_state=1))
    >>> 0 <= display.expected_error <= 1
    True
    """

    def __init__(
        self,
        truth: Array,
        probability: Array,
        name: str = "predicted probability",
        n_bins: int = N_BINS,
    ) -> None:
        self.truth = truth
        self.probability = probability
        self.name = name
        self.n_bins = n_bins

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, n_bins: int = N_BINS, ax: Any = None
    ) -> CalibrationDisplay:
        """Draw the diagram of a fitted classifier with probabilities.

        Parameters
        ----------
        estimator : FourierClassifier
            Fitted with ``loss="logistic"``.
        X, y : array-likes
            Samples and their classes; not the training data, on which it is too confident.
        n_bins : int, default=10
            Number of bins of the diagram.
        ax : sequence of two matplotlib Axes, optional
            Where to draw; by default on a new figure.
        """
        logarithms = to_host(estimator.predict_log_proba(X))
        return cls.from_log_probabilities(logarithms, y, estimator.classes_, n_bins).plot(ax)

    @classmethod
    def from_log_probabilities(
        cls, logarithms: Array, y: Any, classes: Array, n_bins: int = N_BINS
    ) -> CalibrationDisplay:
        """Return the display of probabilities that are known, without drawing it.

        Parameters
        ----------
        logarithms : ndarray of shape (n_samples, n_classes)
            Logarithms of the probabilities.
        y : array-like of shape (n_samples,)
            True classes.
        classes : ndarray of shape (n_classes,)
            The classes in the order of the columns.
        n_bins : int, default=10
            Number of bins of the diagram.
        """
        y = column_or_1d(to_host(y))
        check_consistent_length(logarithms, y)
        if len(classes) == 2:
            name = f"predicted probability of {classes[1]}"
            return cls(y == classes[1], np.exp(logarithms[:, 1]), name, n_bins)
        hit = y == classes[logarithms.argmax(axis=1)]
        name = "probability of the predicted class"
        return cls(hit, np.exp(logarithms.max(axis=1)), name, n_bins)

    @property
    def expected_error(self) -> float:
        """The expected calibration error: mean distance of frequency and probability in a bin."""
        return calibration_error(self.truth, self.probability, self.n_bins)

    def plot(self, ax: Any = None) -> CalibrationDisplay:
        """Draw the diagram and the histogram.

        Parameters
        ----------
        ax : sequence of two matplotlib Axes, optional
            Where to draw; by default on a new figure.
        """
        self.axes_ = two_axes(ax, (12.8, 4.2), "for the diagram and for the histogram")
        self.ax_, histogram = self.axes_
        self.figure_ = self.ax_.figure
        calibration.CalibrationDisplay.from_predictions(
            self.truth,
            self.probability,
            n_bins=self.n_bins,
            strategy="quantile",
            name="model",
            color=BLUE,
            ax=self.ax_,
        )
        # Dollar signs are escaped: matplotlib would read them as mathematics.
        label = self.name.replace("$", r"\$")
        self.ax_.set(xlabel=label, ylabel="observed share")
        histogram.hist(self.probability, np.linspace(0, 1, 2 * self.n_bins + 1), color=GREY)
        histogram.set(xlabel=label, ylabel="rows", xlim=self.ax_.get_xlim())
        for side in (self.ax_.xaxis, self.ax_.yaxis, histogram.xaxis):
            side.set_major_formatter(percent)
        return self


def calibration_error(truth: Array, probability: Array, n_bins: int = N_BINS) -> float:
    """Return the expected calibration error, with bins of equal numbers of samples.

    Equal probabilities are in the same bin.
    """
    probability = np.asarray(probability, dtype=np.float64)
    edges = np.quantile(probability, np.linspace(0, 1, n_bins + 1)[1:-1])
    excess = np.bincount(np.searchsorted(edges, probability), truth - probability)
    return float(np.abs(excess).sum() / len(probability))


def log_loss(logarithms: Array, y: Any, classes: Array) -> float:
    """Return the mean log loss, from logarithms of probabilities, of shape (n_samples, n_classes).

    It is infinite for an unknown class. Unlike ``sklearn.metrics.log_loss``, it is exact for
    probabilities that are rounded to zero.
    """
    hits = column_or_1d(to_host(y))[:, None] == classes  # (n_samples, n_classes)
    known = hits.any(axis=1)
    return float(-logarithms[hits].sum(dtype=np.float64) / len(hits)) if known.all() else np.inf
