"""HoG descriptors (histograms of oriented gradients), with a cache."""

from __future__ import annotations

import hashlib
import io
import os
import warnings
import zipfile
from pathlib import Path

import numpy as np

from notsorandom._utils.progress import Progress
from notsorandom.data.rows import Array
from notsorandom.datasets.images import data_folder, write

# As in the paper: eight orientations, cells of 4 x 4 pixels, each cell a block of its own. The L1
# norm was scikit-image's default when the paper was written. 512 numbers per image of 32 x 32.
ORIENTATIONS = 8
CELL = (4, 4)
BLOCK_NORM = "L1"
# Images between two updates of the progress bar.
CHUNK = 500


def hog(
    images: Array,
    data_home: str | os.PathLike[str] | None = None,
    verbose: int = 1,
) -> Array:
    """Return HoG descriptors of images, from the cache if they were computed before.

    Parameters
    ----------
    images : ndarray of shape (n_images, height, width) or (n_images, height, width, 3)
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
    settings = f"{images.shape} {images.dtype} {ORIENTATIONS} {CELL} {BLOCK_NORM}"
    key = hashlib.sha256(settings.encode() + images.tobytes()).hexdigest()[:32]
    path = data_folder(data_home) / "hog" / f"{key}.npz"
    cached = read_cache(path, len(images))
    if cached is not None:
        return cached
    descriptors = compute_descriptors(images, verbose)
    content = io.BytesIO()
    np.savez(content, descriptors=descriptors)
    try:
        write(path, content.getvalue())
    except OSError as error:  # the descriptors are valid without a cache
        warnings.warn(f"The descriptors were not cached in {path}: {error}.", stacklevel=2)
    return descriptors


def read_cache(path: Path, n_images: int) -> Array | None:
    """Return cached descriptors, or None if there are none or they are damaged."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            descriptors: Array = archive["descriptors"]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
    return descriptors if len(descriptors) == n_images else None


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
        for start in range(0, len(images), CHUNK):
            chunk = images[start : start + CHUNK]
            grey = rgb2gray(chunk) if chunk.ndim == 4 else chunk
            for image in grey:
                cells = descriptor(
                    image,
                    orientations=ORIENTATIONS,
                    pixels_per_cell=CELL,
                    cells_per_block=(1, 1),
                    block_norm=BLOCK_NORM,
                )
                rows.append(cells.astype(np.float32))
            bar.update(len(rows))
    return np.stack(rows)
