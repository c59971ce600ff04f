"""What trials found when they chose spectrum, smoothing and C."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from notsorandom.data.rows import Array
from notsorandom.display.figures import BLUE, RED, import_pyplot

COLORS = {"gaussian": BLUE, "cauchy": RED}


class TuningDisplay:
    """Held-out loss of the trials by `C` and by smoothing, for each spectrum.

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
        """Names of the parameters that are drawn: those of several values, at least one."""
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
        spectra = self.table["spectrum"]
        for spectrum in np.unique(spectra):
            rows = lowest_rows(values, losses, spectra == spectrum)
            axis.errorbar(
                values[rows],
                losses[rows],
                self.table["standard_error"][rows],
                color=COLORS.get(spectrum, BLUE),
                marker="o",
                markersize=4,
                capsize=3,
                label=f"{spectrum} spectrum" if spectrum else "trials",
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
