"""Samples that are not in memory: the same model, and memory for a block alone."""

import itertools
import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest
import zarr
from sklearn.base import clone

from notsorandom import FourierClassifier, FourierFeatures, FourierRegressor, Sphere
from notsorandom.data.rows import Rows

N_ROWS = 3000


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N_ROWS, 4)).astype(np.float32)
    return X, np.where(np.cos(2 * X[:, 0] + X[:, 1]) > 0, "yes", "no")


def as_memmap(X, y, folder):
    mapped = np.memmap(folder / "X", dtype=X.dtype, mode="w+", shape=X.shape)
    mapped[:] = X
    return np.memmap(folder / "X", dtype=X.dtype, mode="r", shape=X.shape), y


def as_zarr(X, y, folder):
    stored = zarr.create_array(
        store=str(folder / "X.zarr"), shape=X.shape, chunks=(700, 4), dtype=X.dtype
    )
    stored[:] = X
    return stored, y


def as_blocks(X, y, folder):
    cuts = [0, 5, 1000, 1001, 2999, N_ROWS]
    return ((X[a:b], y[a:b]) for a, b in itertools.pairwise(cuts)), None


def as_dataset(X, y, folder):
    table = pa.table({name: X[:, place] for place, name in enumerate("abcd")} | {"label": y})
    for number, start in enumerate(range(0, N_ROWS, 1100)):
        pa.parquet.write_table(table.slice(start, 1100), folder / f"{number}.parquet")
    return pa.dataset.dataset(folder, format="parquet"), "label"


KEPT = [as_memmap, as_zarr, as_blocks, as_dataset]


@pytest.mark.parametrize("kept", KEPT)
@pytest.mark.parametrize(
    "model",
    [
        FourierClassifier(12, random_state=0, smoothing=0.06),
        FourierFeatures(12, random_state=0, early_stopping=True, n_jobs=2),
        FourierFeatures(12, random_state=0, space=Sphere(normalize=True), smoothing=0.06),
        FourierFeatures(12, random_state=0, space=Sphere("harmonic", normalize=True), n_jobs=1),
    ],
    ids=["plane", "stopping", "zonal", "harmonic"],
)
def test_it_is_the_model_of_the_samples_in_memory(model, kept, data, tmp_path, short_trials):
    expected = clone(model).fit(*data)
    found = clone(model).fit(*kept(*data, tmp_path))
    np.testing.assert_array_equal(found.frequencies_, expected.frequencies_)
    np.testing.assert_array_equal(found.dual_, expected.dual_)
    assert found.n_features_in_ == 4
    assert list(found.classes_) == ["no", "yes"]
    if kept is as_dataset:
        assert list(found.feature_names_in_) == list("abcd")


@pytest.mark.parametrize("kept", [as_memmap, as_zarr])
def test_predictions_are_those_of_the_samples_in_memory(kept, data, tmp_path):
    model = FourierClassifier(12, random_state=0, smoothing=0.06).fit(*data)
    X, _ = kept(*data, tmp_path)
    np.testing.assert_array_equal(model.predict(X), model.predict(data[0]))
    np.testing.assert_array_equal(model.features_.transform(X), model.features_.transform(data[0]))


@pytest.mark.parametrize("kept", [as_memmap, as_zarr])
def test_weights_of_zero_leave_rows_out(kept, data, tmp_path):
    X, y = data
    weights = np.arange(N_ROWS) % 3
    model = FourierClassifier(12, random_state=0, smoothing=0.06)
    expected = clone(model).fit(X[weights > 0], y[weights > 0], weights[weights > 0])
    found = clone(model).fit(*kept(X, y, tmp_path), weights)
    np.testing.assert_array_equal(found.coef_, expected.coef_)


def test_regression_with_weights_in_blocks(data):
    X, _ = data
    y, weights = np.sin(X[:, :2]), 1 + np.arange(N_ROWS) % 2
    model = FourierRegressor(12, random_state=0, smoothing=0.06)
    expected = clone(model).fit(X, y, weights)
    blocks = ((X[a : a + 700], y[a : a + 700], weights[a : a + 700]) for a in range(0, N_ROWS, 700))
    np.testing.assert_array_equal(clone(model).fit(blocks).coef_, expected.coef_)


def test_few_rows_are_put_in_order_all_the_same(data, tmp_path):
    X, y = data[0][:200], data[1][:200]
    model = FourierFeatures(4, random_state=0, smoothing=0.06)
    found = clone(model).fit(*as_memmap(X, y, tmp_path))
    np.testing.assert_array_equal(found.dual_, clone(model).fit(X, y).dual_)


def test_a_certificate_of_samples_on_disk(data, tmp_path):
    X, y = data[0][:1500], data[1][:1500]
    model = FourierClassifier(8, random_state=0, smoothing=0.06).fit(X, y)
    assert model.certificate(*as_memmap(X, y, tmp_path)) == model.certificate(X, y)


def test_nothing_as_large_as_the_samples_is_made(tmp_path):
    n_rows, n_columns = 60_000, 40
    rng = np.random.default_rng(0)
    X = np.memmap(tmp_path / "X", dtype=np.float32, mode="w+", shape=(n_rows, n_columns))
    for start in range(0, n_rows, 10_000):
        X[start : start + 10_000] = rng.standard_normal((10_000, n_columns))
    y = np.cos(2 * X[:, 0]) > 0
    model = FourierFeatures(16, random_state=0, smoothing=0.06)
    tracemalloc.start()
    model.fit(X, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # The sample that is climbed on takes as much again for its waves; the rest is for columns.
    assert peak < X.nbytes
    assert Rows(X).n_features == n_columns


@pytest.mark.parametrize("kept", [as_memmap, as_zarr, as_blocks])
def test_what_is_not_finite_is_found(kept, data, tmp_path):
    X, y = data[0].copy(), data[1]
    X[1234, 2] = np.nan
    model = FourierClassifier(4)
    with pytest.raises(ValueError, match="1234"):
        model.fit(*kept(X, y, tmp_path))
    assert not hasattr(model, "classes_")


def test_wrong_widths(data, tmp_path):
    model = FourierClassifier(4, random_state=0, smoothing=0.06).fit(*data)
    wide = np.memmap(tmp_path / "wide", dtype=np.float32, mode="w+", shape=(10, 5))
    with pytest.raises(ValueError, match="X has 5 features, but FourierClassifier is expecting 4"):
        model.predict(wide)


def test_targets_are_needed(data, tmp_path):
    X, y = as_memmap(*data, tmp_path)
    with pytest.raises(ValueError, match="requires y to be passed"):
        FourierClassifier(4).fit(X, None)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        FourierClassifier(4).fit(X, y[:-1])
    (tmp_path / "files").mkdir()
    dataset, _ = as_dataset(*data, tmp_path / "files")
    with pytest.raises(ValueError, match="give the name of the target column"):
        FourierClassifier(4).fit(dataset, None)


@pytest.mark.parametrize("dtype", [">f4", "f2", "i2", ">f8"])
def test_types_become_what_they_become_in_memory(dtype, data, tmp_path):
    X, y = (10 * data[0]).astype(dtype), data[1]
    model = FourierFeatures(4, random_state=0, smoothing=0.06)
    found, expected = clone(model).fit(*as_memmap(X, y, tmp_path)), clone(model).fit(X, y)
    np.testing.assert_array_equal(found.frequencies_, expected.frequencies_)
    assert found.dual_.dtype == expected.dual_.dtype


@pytest.mark.parametrize("kept", [as_blocks, as_dataset])
def test_what_is_for_fits_alone(kept, data, tmp_path):
    model = FourierClassifier(4, random_state=0, smoothing=0.06).fit(*data)
    X, _ = kept(*data, tmp_path)
    with pytest.raises(TypeError, match="one block of it after the other"):
        model.predict(X)
