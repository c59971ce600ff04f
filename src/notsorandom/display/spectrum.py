"""The spectrum of a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from notsorandom._utils.parameters import check_number
from notsorandom.data.rows import Array, dense
from notsorandom.display.figures import BLUE, axes_or_new, check_image_shape
from notsorandom.display.images import draw_potential, frequency_limit
from notsorandom.display.inspection import GameSnapshot, planar_problem, take_snapshots
from notsorandom.kernel import LearnedKernel

# Gap between images, relative to their width.
IMAGE_GAP = 0.08


class SpectrumDisplay:
    """The spectrum of a kernel.

    Draws one of three: the weight of each frequency by its norm or degree; the frequencies on the
    plane, over the potential of the last round; or frequencies of images, as images.

    Parameters
    ----------
    kernel : LearnedKernel
        The kernel of a fitted estimator.
    planar_game : (ndarray of shape (n_samples, 2), GameSnapshot), optional
        Samples and a snapshot of their game, to draw the potential.
    image_shape : (height, width) or (height, width, n_channels), optional
        To draw frequencies as images.
    n_images : int, default=12
        Most images; the frequencies with the largest weights are drawn.

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
    >>> by_norm = SpectrumDisplay.from_estimator(model)
    >>> over_potential = SpectrumDisplay.from_estimator(model, X, y)
    """

    def __init__(
        self,
        kernel: LearnedKernel,
        planar_game: tuple[Array, GameSnapshot] | None = None,
        image_shape: Sequence[int] | None = None,
        n_images: int = 12,
    ) -> None:
        self.kernel = kernel
        self.planar_game = planar_game
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
        estimator : FourierFeatures, FourierClassifier, FourierRegressor or a baseline
            Fitted.
        X, y : array-likes, optional
            The training data, of two features, to draw the potential of the last round.
        image_shape : (height, width) or (height, width, n_channels), optional
            Shape of the images whose pixels are the columns of `X`, to draw the frequencies as
            images; channels are averaged.
        n_images : int, default=12
            Most images.
        ax : matplotlib Axes, optional
            Where to draw; by default on a new figure.
        """
        check_is_fitted(estimator)
        kernel: LearnedKernel = estimator.kernel_
        if X is None or image_shape is not None:
            return cls(kernel, None, image_shape, n_images).plot(ax)
        samples = dense(planar_problem(estimator, X, y).rows.array)
        (last,) = take_snapshots(estimator, X, y, [len(estimator.history_["potential"])])
        return cls(kernel, (samples, last)).plot(ax)

    def plot(self, ax: Any = None) -> SpectrumDisplay:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default on a new figure.
        """
        self.ax_ = axis = axes_or_new(ax)
        self.figure_ = axis.figure
        if self.image_shape is not None:
            canvas = mosaic(self.kernel, self.image_shape, self.n_images)
            axis.imshow(canvas, cmap="RdBu_r", vmin=-1, vmax=1, interpolation="nearest")
            axis.set_axis_off()
        elif self.planar_game is not None:
            X, snapshot = self.planar_game
            draw_potential(axis, snapshot, X, frequency_limit(snapshot))
            axis.set(xlabel="frequency along x", ylabel="frequency along y", aspect="equal")
        else:
            space, weights = self.kernel.space, self.kernel.weights
            norms = space.norms(self.kernel.frequencies)
            axis.vlines(norms, 0, weights, color=BLUE, alpha=0.6)
            axis.plot(norms, weights, "o", color=BLUE, markersize=3)
            name = "norm of the frequency" if space.is_vector_space else "degree of the frequency"
            axis.set(xlabel=name, ylabel="weight", ylim=(0, None))
        return self


def mosaic(kernel: LearnedKernel, image_shape: Sequence[int], n_images: int) -> Array:
    """Return the frequencies with the largest weights as images, side by side with NaN between.

    Channels are averaged, and each image is divided by its largest magnitude.
    """
    check_number("n_images", n_images, above=0, integer=True)
    if kernel.space.kind == "finite":
        raise ValueError(
            f"image_shape={image_shape!r} is not allowed on the sphere's harmonics: their "
            "frequencies are indices, not images. Leave it out."
        )
    check_image_shape(image_shape, kernel.frequencies.shape[1])
    order = np.argsort(-kernel.weights, kind="stable")[:n_images]
    height, width = image_shape[:2]
    images = kernel.frequencies[order].reshape(len(order), height, width, -1).mean(axis=-1)
    n_columns = int(np.ceil(np.sqrt(2 * len(images))))
    n_rows = -(-len(images) // n_columns)
    gap = max(1, round(IMAGE_GAP * width))
    canvas = np.full((n_rows * (height + gap) - gap, n_columns * (width + gap) - gap), np.nan)
    for number, image in enumerate(images):
        top, left = np.array(divmod(number, n_columns)) * (height + gap, width + gap)
        largest = max(float(np.abs(image).max()), np.finfo(float).tiny)
        canvas[top : top + height, left : left + width] = image / largest
    return canvas
