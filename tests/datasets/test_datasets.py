import gzip
import hashlib
import io
import sys
import tarfile
import tracemalloc
import urllib.error

import numpy as np
import pytest
from sklearn.svm import SVC

from notsorandom.baselines import median_gamma
from notsorandom.datasets import (
    fetch_cifar10,
    fetch_mnist,
    hog,
    images,
    make_checkerboard,
    make_windmill,
)
from notsorandom.datasets.synthetic import TWIST

NEEDS_SKIMAGE = "needs scikit-image: pip install 'notsorandom[all]'"


def test_windmill_is_symmetric():
    X, y = make_windmill(500, random_state=0)
    assert X.shape == (500, 2)
    assert np.linalg.norm(X, axis=1).max() <= 1
    assert 0.4 < y.mean() < 0.6
    np.testing.assert_array_equal(X, make_windmill(500, random_state=0)[0])
    # A rotation by 90 degrees swaps the classes.
    turned = np.column_stack([-X[:, 1], X[:, 0]])
    angle = np.arctan2(turned[:, 1], turned[:, 0])
    again = np.sin(2 * angle + TWIST * np.linalg.norm(X, axis=1)) > 0
    np.testing.assert_array_equal(again, y == 0)
    with pytest.raises(ValueError, match="n_samples=0"):
        make_windmill(0)


def test_checkerboard_is_uniform_on_the_sphere():
    X, y = make_checkerboard(5000, random_state=0)
    assert X.shape == (5000, 3)
    assert set(y) == {0, 1}
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1)
    np.testing.assert_array_equal(X, make_checkerboard(5000, random_state=0)[0])
    assert np.abs(X.mean(axis=0)).max() < 0.03
    np.testing.assert_allclose(X.T @ X / 5000, np.eye(3) / 3, atol=0.02)  # uniform
    x, y_, z = X.T
    wave = 8 * x * y_ * z * (2 * z**2 - 1)  # sin(2 phi) sin(4 theta), up to a positive factor
    np.testing.assert_array_equal(y, wave > 0)
    with pytest.raises(ValueError, match="n_samples=0 is not allowed"):
        make_checkerboard(0)


def test_rbf_svm_on_the_windmill_has_the_accuracy_of_the_paper():
    X, y = make_windmill(2000, random_state=0)
    svm = SVC(gamma=median_gamma(X), C=1.0).fit(X, y)
    assert abs(svm.score(*make_windmill(10_000, random_state=1)) - 0.921) < 0.01


@pytest.fixture
def mnist_files(tmp_path, monkeypatch):
    """A small MNIST in the original format, with matching checksums."""
    rng, contents = np.random.default_rng(0), {}
    for name, count in zip(images.MNIST, (6, 6, 4, 4), strict=True):
        header = bytes(16 if "images" in name else 8)
        size = 784 * count if "images" in name else count
        contents[name] = header + rng.integers(0, 10, size, dtype=np.uint8).tobytes()
    known = {name: (len(raw), hashlib.sha256(raw).hexdigest()) for name, raw in contents.items()}
    monkeypatch.setattr(images, "MNIST", known)
    (tmp_path / "mnist").mkdir()
    for name, raw in contents.items():
        (tmp_path / "mnist" / name).write_bytes(gzip.compress(raw))
    return tmp_path


@pytest.fixture
def cifar_files(tmp_path, monkeypatch):
    rng, folder = np.random.default_rng(0), tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    known = {}
    for name in images.CIFAR10:
        raw = rng.integers(0, 10, (3, 3073), dtype=np.uint8).tobytes()
        (folder / name).write_bytes(raw)
        known[name] = (len(raw), hashlib.sha256(raw).hexdigest())
    monkeypatch.setattr(images, "CIFAR10", known)
    return tmp_path


@pytest.fixture
def no_network(monkeypatch):
    def refuse(url, timeout):
        raise urllib.error.URLError("no network")

    monkeypatch.setattr(images.urllib.request, "urlopen", refuse)


def test_fetch_mnist_reads_files(mnist_files, monkeypatch):
    X, y, X_test, y_test = fetch_mnist(mnist_files)
    assert (X.shape, y.shape, X_test.shape, y_test.shape) == ((6, 784), (6,), (4, 784), (4,))
    assert X.dtype == np.uint8
    monkeypatch.setenv("NOTSORANDOM_DATA", str(mnist_files))
    np.testing.assert_array_equal(fetch_mnist()[0], X)


def test_fetch_cifar10_reads_files(cifar_files):
    X, y, X_test, y_test = fetch_cifar10(cifar_files)
    assert (X.shape, y.shape) == ((15, 32, 32, 3), (15,))
    assert (X_test.shape, y_test.shape) == ((3, 32, 32, 3), (3,))
    record = (cifar_files / "cifar-10-batches-bin" / "data_batch_1.bin").read_bytes()
    assert y[0] == record[0]
    np.testing.assert_array_equal(X[0, 0, :, 0], list(record[1:33]))  # first row of red
    np.testing.assert_array_equal(X[0, 0, :, 2], list(record[2049:2081]))  # first row of blue


@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: raw[: len(raw) // 2],
        lambda raw: gzip.compress(gzip.decompress(raw)[:-1] + b"x"),
        lambda raw: b"<html>not found</html>",
    ],
    ids=["truncated", "altered", "not gzip"],
)
def test_damaged_files_raise(mnist_files, cifar_files, damage):
    path = mnist_files / "mnist" / "train-images-idx3-ubyte.gz"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match=r"train-images.*not the original.*Delete it"):
        fetch_mnist(mnist_files)
    path = cifar_files / "cifar-10-batches-bin" / "test_batch.bin"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"test_batch.bin is not the original"):
        fetch_cifar10(cifar_files)


def test_error_names_missing_files_and_their_folder(mnist_files, tmp_path, no_network):
    (mnist_files / "mnist" / "t10k-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(FileNotFoundError, match=r"t10k-labels-idx1-ubyte.gz not found in .*mnist"):
        fetch_mnist(mnist_files)
    with pytest.raises(FileNotFoundError, match=r"data_batch_1.bin.*cifar-10-batches-bin"):
        fetch_cifar10(tmp_path)


class Response(io.BytesIO):
    """What a server answers."""

    def __init__(self, content, url):
        super().__init__(content)
        self.url = url


def test_missing_files_are_downloaded(mnist_files, cifar_files, monkeypatch, tmp_path_factory):
    """From simulated servers, into a folder that doesn't exist yet."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        tar.add(cifar_files / "cifar-10-batches-bin", "cifar-10-batches-bin")

    def serve(url, timeout):
        if url.endswith(".tar.gz"):
            return Response(archive.getvalue(), url)
        return Response((mnist_files / "mnist" / url.rsplit("/")[-1]).read_bytes(), url)

    monkeypatch.setattr(images.urllib.request, "urlopen", serve)
    home = tmp_path_factory.mktemp("home") / "new"
    for fetch, there in ((fetch_mnist, mnist_files), (fetch_cifar10, cifar_files)):
        for new, old in zip(fetch(home), fetch(there), strict=True):
            np.testing.assert_array_equal(new, old)


def peak_bytes(function, *arguments):
    """Return the most memory that a call allocates; it must raise an error."""
    tracemalloc.start()
    try:
        with pytest.raises((ValueError, FileNotFoundError), match="more than"):
            function(*arguments)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_nothing_is_read_or_unpacked_beyond_the_known_size(
    mnist_files, cifar_files, tmp_path, monkeypatch
):
    path = mnist_files / "mnist" / "train-images-idx3-ubyte.gz"
    bomb = gzip.compress(bytes(10**8))
    assert len(bomb) < 10**6
    zeros = {"packed": bomb, "plain": bytes(10**8)}
    for kind, limit in (("packed", 2 * 10**6), ("plain", 10**6)):
        path.write_bytes(zeros[kind])
        assert peak_bytes(fetch_mnist, mnist_files) < limit
        monkeypatch.setattr(images, "CIFAR10_BYTES", 10**6)
        respond = lambda url, timeout, kind=kind: Response(zeros[kind], url)  # noqa: E731
        monkeypatch.setattr(images.urllib.request, "urlopen", respond)
        for number, fetch in enumerate((fetch_mnist, fetch_cifar10)):
            assert peak_bytes(fetch, tmp_path / f"{kind} {number}") < limit + 2 * 10**6


def test_a_redirection_must_be_encrypted(tmp_path, monkeypatch):
    respond = lambda url, timeout: Response(b"", url.replace("https", "http"))  # noqa: E731
    monkeypatch.setattr(images.urllib.request, "urlopen", respond)
    with pytest.raises(FileNotFoundError, match=r"leads to http://.*, which is not https"):
        fetch_mnist(tmp_path)
    addresses = (images.MNIST_URL, images.CIFAR10_URL)
    assert all(address.startswith("https:") for address in addresses)


def test_default_folder_is_in_the_cache(monkeypatch, tmp_path):
    monkeypatch.delenv("NOTSORANDOM_DATA", raising=False)
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert images.data_folder() == tmp_path / "notsorandom"


def test_hog_is_normalised_per_cell_and_cached(rng, tmp_path, capsys):
    pytest.importorskip("skimage", reason=NEEDS_SKIMAGE)
    colour = rng.integers(0, 256, (5, 32, 32, 3), dtype=np.uint8)
    first = hog(colour, tmp_path)
    assert first.shape == (5, 512)
    assert first.dtype == np.float32
    assert "5/5" in capsys.readouterr().err
    cells = first.reshape(5, -1, 8).sum(axis=2)  # each cell has L1 norm one
    np.testing.assert_allclose(cells, 1, atol=1e-3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "skimage.feature", None)
        np.testing.assert_array_equal(hog(colour, tmp_path), first)  # not computed again
    (cache,) = (tmp_path / "hog").rglob("output.pkl")
    cache.write_bytes(cache.read_bytes()[:-100])
    np.testing.assert_array_equal(hog(colour, tmp_path, verbose=0), first)  # computed again
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "hog").write_text("a file where the folder should be")
    with pytest.warns(UserWarning, match="were not cached"):
        assert hog(colour[..., 0], tmp_path / "other", verbose=0).shape == (5, 512)


def test_hog_rejects_other_shapes(tmp_path):
    with pytest.raises(ValueError, match="at least one image"):
        hog(np.zeros((0, 8, 8)), tmp_path)
    with pytest.raises(ValueError, match=r"\(4, 784\)"):
        hog(np.zeros((4, 784)), tmp_path)


def test_hog_without_scikit_image_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "skimage.feature", None)
    with pytest.raises(ImportError, match=r"notsorandom\[images\]"):
        hog(np.zeros((1, 8, 8)), tmp_path)
