"""Samples outside of memory give the same model as in memory, in bounded memory."""

import itertools
import tracemalloc
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone

from notsorandom import FourierClassifier, FourierFeatures, FourierRegressor, Sphere
from notsorandom.data.rows import Rows
from notsorandom.linear import fit as final_models
from notsorandom.spaces import view

pytestmark = pytest.mark.usefixtures("quick_trials")

N_ROWS = 3000
HINT = "needs pyarrow and zarr: pip install 'notsorandom[all]'"


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
    zarr = pytest.importorskip("zarr", reason=HINT)
    stored = zarr.create_array(
        store=str(folder / "X.zarr"), shape=X.shape, chunks=(700, 4), dtype=X.dtype
    )
    stored[:] = X
    return stored, y


def as_blocks(X, y, folder):
    cuts = [0, 5, 1000, 1001, 2999, N_ROWS]
    return ((X[a:b], y[a:b]) for a, b in itertools.pairwise(cuts)), None


def as_dataset(X, y, folder):
    pa = pytest.importorskip("pyarrow", reason=HINT)
    ds = pytest.importorskip("pyarrow.dataset", reason=HINT)
    pq = pytest.importorskip("pyarrow.parquet", reason=HINT)
    table = pa.table({name: X[:, place] for place, name in enumerate("abcd")} | {"label": y})
    for number, start in enumerate(range(0, N_ROWS, 1100)):
        pq.write_table(table.slice(start, 1100), folder / f"{number}.parquet")
    return ds.dataset(folder, format="parquet"), "label"


STORAGES = [as_memmap, as_zarr, as_blocks, as_dataset]


@pytest.mark.parametrize("store", STORAGES)
@pytest.mark.parametrize(
    "model",
    [
        FourierClassifier(12, random_state=0, smoothing=0.06),
        FourierClassifier(12, random_state=0, smoothing=0.06, linear=True),
        FourierFeatures("auto", max_components=12, random_state=0, smoothing=0.06, n_jobs=2),
        FourierFeatures(12, random_state=0, space=Sphere(normalize=True), smoothing=0.06),
        FourierFeatures(
            12, random_state=0, space=Sphere("harmonic", normalize=True), smoothing=0.06
        ),
    ],
    ids=["plane", "linear part", "size chosen", "zonal", "harmonic"],
)
def test_the_model_equals_that_of_samples_in_memory(model, store, data, tmp_path):
    expected = clone(model).fit(*data)
    found = clone(model).fit(*store(*data, tmp_path))
    np.testing.assert_array_equal(found.frequencies_, expected.frequencies_)
    np.testing.assert_array_equal(found.dual_, expected.dual_)
    assert found.kernel_.linear_scale == expected.kernel_.linear_scale
    np.testing.assert_array_equal(getattr(found, "coef_", None), getattr(expected, "coef_", None))
    assert found.n_features_in_ == 4
    assert list(found.classes_) == ["no", "yes"]
    if store is as_dataset:
        assert list(found.feature_names_in_) == list("abcd")


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("store", [as_memmap, as_zarr])
def test_predictions_equal_those_of_samples_in_memory(store, linear, data, tmp_path):
    model = FourierClassifier(12, linear=linear, random_state=0, smoothing=0.06).fit(*data)
    X, _ = store(*data, tmp_path)
    np.testing.assert_array_equal(model.predict(X), model.predict(data[0]))
    np.testing.assert_array_equal(model.features_.transform(X), model.features_.transform(data[0]))


@pytest.mark.parametrize("store", [as_memmap, as_zarr])
def test_rows_of_weight_zero_are_left_out(store, data, tmp_path):
    X, y = data
    weights = np.arange(N_ROWS) % 3
    model = FourierClassifier(12, random_state=0, smoothing=0.06)
    expected = clone(model).fit(X[weights > 0], y[weights > 0], weights[weights > 0])
    found = clone(model).fit(*store(X, y, tmp_path), weights)
    np.testing.assert_array_equal(found.coef_, expected.coef_)


def test_regression_with_weights_in_blocks(data):
    X, _ = data
    y, weights = np.sin(X[:, :2]), 1 + np.arange(N_ROWS) % 2
    model = FourierRegressor(12, random_state=0, smoothing=0.06)
    expected = clone(model).fit(X, y, weights)
    blocks = ((X[a : a + 700], y[a : a + 700], weights[a : a + 700]) for a in range(0, N_ROWS, 700))
    np.testing.assert_array_equal(clone(model).fit(blocks).coef_, expected.coef_)


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("store", STORAGES)
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_uncertainty_equals_that_of_samples_in_memory(store, linear, data, tmp_path):
    """Noise, intervals, and the sets of classes."""
    X, labels = data
    y = np.cos(2 * X[:, 0] + X[:, 1]) + np.random.default_rng(1).normal(size=N_ROWS)
    settings = {"linear": linear, "random_state": 0, "smoothing": 0.06}
    regressor, classifier = FourierRegressor(12, **settings), FourierClassifier(12, **settings)
    for number, (model, target) in enumerate(((regressor, y), (classifier, labels))):
        expected = clone(model).fit(X, target)
        (tmp_path / str(number)).mkdir()
        stored = store(X, target, tmp_path / str(number))
        found = clone(model).fit(*stored)
        for name in ("scores", "counts"):
            np.testing.assert_array_equal(
                getattr(found.held_out_scores_, name), getattr(expected.held_out_scores_, name)
            )
        there = stored[0] if store in (as_memmap, as_zarr) else X
        if model is classifier:
            sets = expected.predict_set(X, [0.5, 0.9])
            np.testing.assert_array_equal(found.predict_set(there, [0.5, 0.9]), sets)
            continue
        np.testing.assert_array_equal(found.noise_, expected.noise_)
        intervals = expected.predict_interval(X, [0.5, 0.9])
        np.testing.assert_array_equal(found.predict_interval(there, [0.5, 0.9]), intervals)
        deviations = expected.predict(X, return_std=True)[1]
        np.testing.assert_array_equal(found.predict(there, return_std=True)[1], deviations)
        assert np.ptp(deviations) > 0


def test_few_rows_are_sorted_as_in_memory(data, tmp_path):
    X, y = data[0][:200], data[1][:200]
    model = FourierFeatures(4, random_state=0, smoothing=0.06)
    found = clone(model).fit(*as_memmap(X, y, tmp_path))
    np.testing.assert_array_equal(found.dual_, clone(model).fit(X, y).dual_)


def test_certificate_of_samples_on_disk(data, tmp_path):
    X, y = data[0][:1500], data[1][:1500]
    model = FourierClassifier(8, random_state=0, smoothing=0.06).fit(X, y)
    assert model.certificate(*as_memmap(X, y, tmp_path), max_evaluations=200) == model.certificate(
        X, y, max_evaluations=200
    )


@pytest.mark.parametrize("linear", [False, True])
def test_memory_of_a_fit_is_less_than_the_samples(linear, tmp_path, monkeypatch):
    monkeypatch.setattr(view, "VIEW_BYTES", 2**20)  # so that this view is too large
    in_passes = partial(final_models.fit_linear_models, feature_bytes=2**20)
    monkeypatch.setattr(final_models, "fit_linear_models", in_passes)  # and its features
    n_rows, n_columns = 150_000, 40
    rng = np.random.default_rng(0)
    X = np.memmap(tmp_path / "X", dtype=np.float32, mode="w+", shape=(n_rows, n_columns))
    for start in range(0, n_rows, 10_000):
        X[start : start + 10_000] = rng.standard_normal((10_000, n_columns))
    y = np.cos(2 * X[:, 0]) > 0
    model = FourierClassifier(16, random_state=0, smoothing=0.06, linear=linear)
    tracemalloc.start()
    model.fit(X, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < X.nbytes
    assert Rows(X).n_features == n_columns


def test_linear_part_of_a_view_that_is_read_in_blocks(data, tmp_path, monkeypatch):
    model = FourierClassifier(12, random_state=0, smoothing=0.06, linear=True)
    expected = clone(model).fit(*data)
    monkeypatch.setattr(view, "VIEW_BYTES", 0)
    found = clone(model).fit(*as_memmap(*data, tmp_path))
    np.testing.assert_array_equal(found.frequencies_, expected.frequencies_)
    np.testing.assert_array_equal(found.coef_, expected.coef_)


@pytest.mark.parametrize("store", [as_memmap, as_zarr, as_blocks])
def test_a_number_that_is_not_finite_is_an_error(store, data, tmp_path):
    X, y = data[0].copy(), data[1]
    X[1234, 2] = np.nan
    model = FourierClassifier(4)
    with pytest.raises(ValueError, match="1234"):
        model.fit(*store(X, y, tmp_path))
    assert not hasattr(model, "classes_")


def test_wrong_number_of_columns(data, tmp_path):
    model = FourierClassifier(4, random_state=0, smoothing=0.06).fit(*data)
    wide = np.memmap(tmp_path / "wide", dtype=np.float32, mode="w+", shape=(10, 5))
    with pytest.raises(ValueError, match="X has 5 features, but FourierClassifier is expecting 4"):
        model.predict(wide)


def test_targets_are_required(data, tmp_path):
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
def test_types_are_converted_as_in_memory(dtype, data, tmp_path):
    X, y = (10 * data[0]).astype(dtype), data[1]
    model = FourierFeatures(4, random_state=0, smoothing=0.06)
    found, expected = clone(model).fit(*as_memmap(X, y, tmp_path)), clone(model).fit(X, y)
    np.testing.assert_array_equal(found.frequencies_, expected.frequencies_)
    assert found.dual_.dtype == expected.dual_.dtype


@pytest.mark.parametrize("store", [as_blocks, as_dataset])
def test_only_fit_supports_samples_that_are_read_once(store, data, tmp_path):
    model = FourierClassifier(4, random_state=0, smoothing=0.06).fit(*data)
    X, _ = store(*data, tmp_path)
    with pytest.raises(TypeError, match="one block after the other"):
        model.predict(X)
