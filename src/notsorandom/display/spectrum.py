"""What a kernel is made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from notsorandom.data.rows import Array, Rows
from notsorandom.display.drawing import BLUE, axis_of
from notsorandom.display.game import draw_potential, reach_of
from notsorandom.display.inspection import Moment, heaviest_as_images, moments, plane_of
from notsorandom.kernel import LearnedKernel

# Space between images, of their width.
FRAME = 0.08


class SpectrumDisplay:
    """What a kernel is made of.

    It shows the weight of each frequency by its length or degree; or frequencies on the plane, over
    the potential that the last of them were found in; or frequencies of images, as images.

    Parameters
    ----------
    kernel : LearnedKernel
    landscape : (ndarray of shape (n_samples, 2), Moment), optional
        Samples and a moment of their game, for the potential.
    image_shape : sequence of int, optional
        For images.
    n_images : int, default=12
        At most, the heaviest.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from notsorandom import FourierClassifier
    >>> from notsorandom.datasets import make_windmill
    >>> from notsorandom.display import SpectrumDisplay
    >>> X, y = make_windmill(500, random_state=0)
    >>> model = FourierClassifier(40, random_state=0).fit(X, y)
    >>> by_length = SpectrumDisplay.from_estimator(model)
    >>> over_the_potential = SpectrumDisplay.from_estimator(model, X, y)
    """

    def __init__(
        self,
        kernel: LearnedKernel,
        landscape: tuple[Array, Moment] | None = None,
        image_shape: Sequence[int] | None = None,
        n_images: int = 12,
    ) -> None:
        self.kernel = kernel
        self.landscape = landscape
        self.image_shape = image_shape
        self.n_images = n_images

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        image_shape: Sequence[int] | None = None,
        n_images: int = 12,
        ax: Any = None,
    ) -> SpectrumDisplay:
        """Draw the spectrum of a fitted estimator's kernel.

        Parameters
        ----------
        estimator : a fitted estimator with a kernel_
        X, y : array-likes, optional
            The training data, of two features: the potential at the last round is drawn.
        image_shape : (height, width) or (height, width, n_channels), optional
            Of the images whose pixels are the columns of `X`: the frequencies are drawn as such,
            channels averaged.
        n_images : int, default=12
        ax : matplotlib Axes, optional
        """
        check_is_fitted(estimator)
        kernel: LearnedKernel = estimator.kernel_
        if image_shape is not None:
            return cls(kernel, image_shape=image_shape, n_images=n_images).plot(ax)
        if X is None:
            return cls(kernel).plot(ax)
        plane, _ = plane_of(estimator, X, y)
        last = len(estimator.history_["potential"])
        return cls(kernel, (plane, moments(estimator, X, y, [last])[0])).plot(ax)

    def plot(self, ax: Any = None) -> SpectrumDisplay:
        """Draw on `ax`, or on a new figure."""
        self.ax_ = axis = axis_of(ax)
        self.figure_ = axis.figure
        if self.image_shape is not None:
            images = heaviest_as_images(self.kernel, self.image_shape, self.n_images)
            axis.imshow(mosaic(images), cmap="RdBu_r", vmin=-1, vmax=1, interpolation="nearest")
            axis.set_axis_off()
        elif self.landscape is not None:
            X, moment = self.landscape
            draw_potential(axis, moment, reach_of(moment), Rows(X))
            axis.set(xlabel="frequency along x", ylabel="frequency along y", aspect="equal")
        else:
            sizes = self.kernel.space.sizes(self.kernel.frequencies)
            axis.vlines(sizes, 0, self.kernel.weights, color=BLUE, alpha=0.6)
            axis.plot(sizes, self.kernel.weights, "o", color=BLUE, markersize=3)
            axis.set(xlabel="length or degree of the frequency", ylabel="weight", ylim=(0, None))
        return self


def mosaic(images: Array) -> Array:
    """Images side by side in a few rows, each over its largest magnitude, NaN between them."""
    n_images, height, width = images.shape
    n_columns = int(np.ceil(np.sqrt(2 * n_images)))
    n_rows = -(-n_images // n_columns)
    gap = max(1, round(FRAME * width))
    canvas = np.full((n_rows * (height + gap) - gap, n_columns * (width + gap) - gap), np.nan)
    for number, image in enumerate(images):
        top, left = np.array(divmod(number, n_columns)) * (height + gap, width + gap)
        largest = max(float(np.abs(image).max()), np.finfo(float).tiny)
        canvas[top : top + height, left : left + width] = image / largest
    return canvas
