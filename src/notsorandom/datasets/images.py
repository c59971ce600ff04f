"""MNIST, CIFAR-10 and HoG descriptors.

Images are read from their original files, which are verified by checksum.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import tarfile
import urllib.request
import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from http.client import HTTPException
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Memory

from notsorandom._utils.files import write_atomic
from notsorandom._utils.progress import Progress
from notsorandom.data.rows import Array

# Exceptions raised on reading a damaged file.
DAMAGE_ERRORS = (EOFError, zlib.error, gzip.BadGzipFile, ValueError)
# Seconds to wait for a server.
TIMEOUT = 30

# Bytes and SHA-256 of the uncompressed content of each file.
MNIST = {
    f"{name}-ubyte.gz": (n_bytes, sha256)
    for (name, sha256), n_bytes in zip(
        {
            "train-images-idx3": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
            "train-labels-idx1": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
            "t10k-images-idx3": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
            "t10k-labels-idx1": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        }.items(),
        (16 + 60_000 * 784, 8 + 60_000, 16 + 10_000 * 784, 8 + 10_000),
        strict=True,
    )
}
MNIST_URL = "https://storage.googleapis.com/cvdf-datasets/mnist/"
CIFAR10 = {
    name: (10_000 * 3073, sha256)
    for name, sha256 in {
        "data_batch_1.bin": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
        "data_batch_2.bin": "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
        "data_batch_3.bin": "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
        "data_batch_4.bin": "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
        "data_batch_5.bin": "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
        "test_batch.bin": "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
    }.items()
}
CIFAR10_URL = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
CIFAR10_BYTES = 2**28  # more than the archive has, unpacked
CIFAR10_CLASSES = (
    "airplane automobile bird cat deer dog frog horse ship truck".split()  # by label, 0 to 9
)


def data_folder(data_home: str | os.PathLike[str] | None = None) -> Path:
    """Return the data folder: `data_home`, else ``NOTSORANDOM_DATA``, else the user's cache."""
    if data_home is not None:
        return Path(data_home).expanduser()
    if os.environ.get("NOTSORANDOM_DATA"):
        return Path(os.environ["NOTSORANDOM_DATA"]).expanduser()
    cache = os.environ.get("LOCALAPPDATA") or os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "notsorandom"


def fetch_mnist(
    data_home: str | os.PathLike[str] | None = None,
) -> tuple[Array, Array, Array, Array]:
    """Load MNIST; download it if it is missing.

    Parameters
    ----------
    data_home : path, optional
        Folder with ``mnist/train-images-idx3-ubyte.gz`` and the other three files. By default the
        environment variable ``NOTSORANDOM_DATA``, else the user's cache folder.

    Returns
    -------
    X_train, y_train, X_test, y_test : ndarrays of uint8
        60,000 and 10,000 images of 784 pixels, and their digits.
    """

    def download(names: Sequence[str]) -> dict[str, bytes]:
        return {name: read_url(MNIST_URL + name, packed_limit(MNIST[name][0])) for name in names}

    raw = read_files(data_folder(data_home) / "mnist", MNIST, unpack, download)
    X_train, X_test = (
        np.frombuffer(images, dtype=np.uint8, offset=16).reshape(-1, 784) for images in raw[::2]
    )
    y_train, y_test = (np.frombuffer(labels, dtype=np.uint8, offset=8) for labels in raw[1::2])
    return X_train, y_train, X_test, y_test


def fetch_cifar10(
    data_home: str | os.PathLike[str] | None = None,
) -> tuple[Array, Array, Array, Array]:
    """Load CIFAR-10; download it if it is missing.

    Parameters
    ----------
    data_home : path, optional
        Folder with ``cifar-10-batches-bin/data_batch_1.bin`` and so on. By default the environment
        variable ``NOTSORANDOM_DATA``, else the user's cache folder.

    Returns
    -------
    X_train, y_train, X_test, y_test : ndarrays of uint8
        50,000 and 10,000 images of shape (32, 32, 3), and their labels from 0 to 9.
    """
    folder = data_folder(data_home) / "cifar-10-batches-bin"

    def download(names: Sequence[str]) -> dict[str, bytes]:
        content = unpack(read_url(CIFAR10_URL, CIFAR10_BYTES), CIFAR10_BYTES)
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as archive:
            files = {name: archive.extractfile(f"{folder.name}/{name}") for name in names}
            return {name: file.read() for name, file in files.items() if file is not None}

    raw = read_files(folder, CIFAR10, lambda content, _: content, download)
    records = [np.frombuffer(part, dtype=np.uint8).reshape(-1, 3073) for part in raw]
    train, test = np.concatenate(records[:-1]), records[-1]
    images = [part[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1) for part in (train, test)]
    return images[0], train[:, 0], images[1], test[:, 0]


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


def read_files(
    folder: Path,
    known: Mapping[str, tuple[int, str]],
    decode: Callable[[bytes, int], bytes],
    download: Callable[[Sequence[str]], Mapping[str, bytes]],
) -> list[bytes]:
    """Return the decoded and verified contents of files; missing files are downloaded first.

    Nothing is read or unpacked beyond the known size.
    """
    missing = [name for name in known if not (folder / name).exists()]
    try:
        for name, content in download(missing).items() if missing else ():
            n_bytes, sha256 = known[name]
            verify(decode(content, n_bytes), sha256)
            folder.mkdir(parents=True, exist_ok=True)
            write_atomic(folder / name, content)
    except (*DAMAGE_ERRORS, OSError, HTTPException, tarfile.TarError, KeyError) as error:
        raise FileNotFoundError(
            f"{', '.join(missing)} not found in {folder}, and the download failed ({error}). "
            "Put the files there, or set data_home or NOTSORANDOM_DATA to the parent folder."
        ) from error
    contents = []
    for name, (n_bytes, sha256) in known.items():
        try:
            with (folder / name).open("rb") as file:
                content = read_at_most(file, packed_limit(n_bytes))
            contents.append(verify(decode(content, n_bytes), sha256))
        except DAMAGE_ERRORS as error:
            raise ValueError(
                f"{folder / name} is not the original file ({error}). Delete it and try again."
            ) from error
    return contents


def verify(content: bytes, sha256: str) -> bytes:
    """Return the content; raise ValueError if its checksum is wrong."""
    if hashlib.sha256(content).hexdigest() != sha256:
        raise ValueError(f"the checksum of its {len(content)} bytes is wrong")
    return content


def packed_limit(n_bytes: int) -> int:
    """Return an upper bound on the size of a gzip file with `n_bytes` of content.

    Content that can't be compressed grows by less than 1 % and a header.
    """
    return n_bytes + n_bytes // 100 + 1000


def unpack(content: bytes, n_bytes: int) -> bytes:
    """Return the content of a gzip file; raise ValueError beyond `n_bytes`."""
    with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
        return read_at_most(file, n_bytes)


def read_at_most(file: Any, n_bytes: int) -> bytes:
    """Return the content of a file; raise ValueError if it has more bytes than allowed."""
    content = bytes(file.read(n_bytes + 1))
    if len(content) > n_bytes:
        raise ValueError(f"it has more than {n_bytes:,} bytes")
    return content


def read_url(url: str, n_bytes: int) -> bytes:
    """Return the content of a URL, which must not be redirected to an unencrypted one."""
    with urllib.request.urlopen(url, timeout=TIMEOUT) as response:
        if not response.url.startswith("https:"):
            raise ValueError(f"{url} leads to {response.url}, which is not https")
        return read_at_most(response, n_bytes)
