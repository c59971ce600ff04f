"""HoG descriptors (histograms of oriented gradients), with a cache."""

from __future__ import annotations

import os
import warnings

import numpy as np
from joblib import Memory

from notsorandom._utils.progress import Progress
from notsorandom.data.rows import Array
from notsorandom.datasets.images import data_folder


def hog(
    images: Array,
    data_home: str | os.PathLike[str] | None = None,
    verbose: int = 1,
) -> Array:
    """Return HoG descriptors of images, from the cache if they were computed before.

    Parameters
    ----------
    images : ndarray of shape (n_images, height, width) or (n_images, height, width, 3)
        Grey or in colour.
    data_home : path, optional
        Folder of the cache. By default the environment variable ``NOTSORANDOM_DATA``, else the
        user's cache folder.
    verbose : int, default=1
        If 0, show no progress bar.

    Returns
    -------
    ndarray of shape (n_images, n_cells * 8), float32
        512 columns for images of 32 x 32.
    """
    images = np.ascontiguousarray(images)
    if images.ndim not in (3, 4) or (images.ndim == 4 and images.shape[3] != 3) or not len(images):
        raise ValueError(
            f"images has shape {images.shape}, but it must be (n_images, height, width), or "
            "(n_images, height, width, 3) in colour, with at least one image."
        )
    folder = data_folder(data_home) / "hog"
    try:
        cached = Memory(folder, verbose=0).cache(compute_descriptors, ignore=["verbose"])
        descriptors: Array = cached(images, verbose)
    except OSError as error:  # the descriptors are valid without a cache
        warnings.warn(f"The descriptors were not cached in {folder}: {error}.", stacklevel=2)
        descriptors = compute_descriptors(images, verbose)
    return descriptors


def compute_descriptors(images: Array, verbose: int) -> Array:
    """Compute the descriptors with scikit-image."""
    try:
        from skimage.color import rgb2gray
        from skimage.feature import hog as descriptor
    except ImportError as error:
        raise ImportError(
            "hog needs scikit-image: install it with pip install 'notsorandom[images]'."
        ) from error
    rows = []
    with Progress(len(images), "HoG", shown=verbose > 0) as bar:
        for image in images:
            # As in the paper: eight orientations, cells of 4 x 4 pixels, each cell a block. The L1
            # norm was scikit-image's default when the paper was written.
            cells = descriptor(
                rgb2gray(image) if image.ndim == 3 else image,
                orientations=8,
                pixels_per_cell=(4, 4),
                cells_per_block=(1, 1),
                block_norm="L1",
            )
            rows.append(cells.astype(np.float32))
            bar.update(len(rows))
    return np.stack(rows)
