"""MNIST and CIFAR-10, read from their canonical files and checked byte by byte."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import tarfile
import tempfile
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from notsorandom.rows import Array

# Seconds to wait for a server that doesn't answer.
TIMEOUT = 30

# SHA-256 of each file's content, uncompressed.
MNIST = {
    f"{name}-ubyte.gz": sha256
    for name, sha256 in {
        "train-images-idx3": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "train-labels-idx1": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "t10k-images-idx3": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "t10k-labels-idx1": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    }.items()
}
MNIST_HOMES = (
    "http://yann.lecun.com/exdb/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
CIFAR10 = {
    "data_batch_1.bin": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
    "data_batch_2.bin": "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
    "data_batch_3.bin": "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
    "data_batch_4.bin": "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
    "data_batch_5.bin": "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
    "test_batch.bin": "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
}
CIFAR10_HOME = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
CIFAR10_CLASSES = (
    "airplane automobile bird cat deer dog frog horse ship truck".split()  # in the order of labels
)


def data_folder(data_home: str | os.PathLike[str] | None = None) -> Path:
    """Folder of the data sets: the argument, else ``NOTSORANDOM_DATA``, else the user's cache."""
    if data_home is not None:
        return Path(data_home).expanduser()
    if os.environ.get("NOTSORANDOM_DATA"):
        return Path(os.environ["NOTSORANDOM_DATA"]).expanduser()
    cache = os.environ.get("LOCALAPPDATA") or os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "notsorandom"


def fetch_mnist(
    data_home: str | os.PathLike[str] | None = None,
) -> tuple[Array, Array, Array, Array]:
    """Load MNIST, downloading it first if it isn't there.

    Parameters
    ----------
    data_home : path, optional
        Folder with ``mnist/train-images-idx3-ubyte.gz`` and its three companions. By default the
        environment variable ``NOTSORANDOM_DATA``, else the user's cache folder.

    Returns
    -------
    X_train, y_train, X_test, y_test : ndarrays of uint8
        60,000 and 10,000 images of 784 pixels, and their digits.
    """
    folder = data_folder(data_home) / "mnist"

    def download() -> None:
        for name in MNIST:
            if not (folder / name).exists():
                save(folder / name, first_answer([home + name for home in MNIST_HOMES]))

    raw = read_all(folder, MNIST, download, gunzip)
    arrays = []
    for images, labels in (raw[:2], raw[2:]):
        arrays += [
            np.frombuffer(images, dtype=np.uint8, offset=16).reshape(-1, 784),
            np.frombuffer(labels, dtype=np.uint8, offset=8),
        ]
    return arrays[0], arrays[1], arrays[2], arrays[3]


def fetch_cifar10(
    data_home: str | os.PathLike[str] | None = None,
) -> tuple[Array, Array, Array, Array]:
    """Load CIFAR-10, downloading it first if it isn't there.

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

    def download() -> None:
        with tarfile.open(fileobj=io.BytesIO(first_answer([CIFAR10_HOME]))) as archive:
            for member in archive.getmembers():
                name = Path(member.name).name
                file = archive.extractfile(member)
                if name in CIFAR10 and file is not None:
                    save(folder / name, file.read())

    raw = read_all(folder, CIFAR10, download, bytes)
    records = [np.frombuffer(part, dtype=np.uint8).reshape(-1, 3073) for part in raw]
    train, test = np.concatenate(records[:-1]), records[-1]
    images = [part[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1) for part in (train, test)]
    return images[0], train[:, 0], images[1], test[:, 0]


def read_all(
    folder: Path,
    expected: dict[str, str],
    download: Callable[[], None],
    decode: Callable[[bytes], bytes],
) -> list[bytes]:
    """Contents of all files, downloaded if one is missing, each checked against its SHA-256."""
    missing = [name for name in expected if not (folder / name).exists()]
    if missing:
        try:
            download()
        except (OSError, tarfile.TarError) as error:
            raise FileNotFoundError(
                f"{', '.join(missing)} not found in {folder}, and the download failed ({error}). "
                f"Put the files there, or point data_home or NOTSORANDOM_DATA at the folder above."
            ) from error
    contents = []
    for name, sha256 in expected.items():
        path = folder / name
        try:
            content = decode(path.read_bytes())
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(f"{path} is damaged ({error}): delete it and load again.") from error
        if hashlib.sha256(content).hexdigest() != sha256:
            raise ValueError(
                f"{path} is not the original file: its {len(content)} bytes have another checksum. "
                "Delete it and load again."
            )
        contents.append(content)
    return contents


def gunzip(compressed: bytes) -> bytes:
    """Uncompress; raises if the stream is cut short or altered."""
    return gzip.decompress(compressed)


def first_answer(addresses: list[str]) -> bytes:
    """Content of the first address that answers."""
    errors: list[str] = []
    for address in addresses:
        try:
            with urllib.request.urlopen(address, timeout=TIMEOUT) as answer:
                content: bytes = answer.read()
                return content
        except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
            errors.append(f"{address}: {error}")
    raise OSError("; ".join(errors))


def save(path: Path, content: bytes | Callable[[Any], Any]) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        try:
            if callable(content):
                content(file)
            else:
                file.write(content)
            file.close()
            os.replace(file.name, path)
        except BaseException:
            file.close()
            os.unlink(file.name)
            raise
