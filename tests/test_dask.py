"""Fits on a real cluster of separate processes, small, but with all that can happen there."""

import os
import pickle
import signal
import threading
import time

import numpy as np
import pytest
from sklearn.base import clone

import notsorandom

pytest.importorskip("distributed")

import dask
import dask.array as da
import dask.dataframe as dd
import pandas as pd
from distributed import Client, LocalCluster

import notsorandom.dask
from notsorandom.dask import ClusterError
from notsorandom.dask.blocks import Block
from notsorandom.dask.rows import DaskRows
from notsorandom.game import Match

N, CHUNK = 20_000, 8192


def local_cluster(n_workers=2):
    return LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        memory_limit=None,
    )


@pytest.fixture(scope="module")
def client():
    with local_cluster() as cluster, Client(cluster) as client:
        yield client


@pytest.fixture(autouse=True)
def nothing_scattered(monkeypatch):
    def refused(*_, **__):
        raise AssertionError("data were scattered")

    monkeypatch.setattr(Client, "scatter", refused)


def waves(n=N, n_columns=4, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, n_columns)).astype(dtype)
    return X, X @ np.array([2.0, -1.0, *[0.0] * (n_columns - 2)])


def on_cluster(X, chunks=CHUNK):
    return da.from_array(X, chunks=(chunks, *X.shape[1:]))


def same(one, other, tolerance=1e-6):
    np.testing.assert_allclose(one.frequencies_, other.frequencies_, atol=tolerance)
    np.testing.assert_allclose(one.phases_, other.phases_, atol=tolerance)
    assert one.smoothing_ == other.smoothing_
    if hasattr(one, "coef_"):
        np.testing.assert_allclose(one.coef_, other.coef_, atol=1e2 * tolerance)
        np.testing.assert_allclose(one.intercept_, other.intercept_, atol=1e2 * tolerance)


def both(name, X, y, weights=None, **settings):
    settings = {"n_components": 12, "random_state": 0, "n_jobs": 1} | settings
    local = getattr(notsorandom, name)(**settings).fit(X, y, weights)
    given = None if weights is None else on_cluster(weights, 5000)
    model = getattr(notsorandom.dask, name)(**settings).fit(on_cluster(X), on_cluster(y), given)
    return local, model


def sphere(X):
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def test_without_a_client():  # the first of all: there is none yet
    with pytest.raises(ValueError, match=r"distributed.Client\(\)"):
        fitted(da.ones((9, 2)), da.ones(9))
    with pytest.raises(ValueError, match="client='here' is not allowed"):
        fitted(da.ones((9, 2)), da.ones(9), client="here")


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_classifier_is_the_one_of_memory(client, dtype):
    X, angle = waves(dtype=dtype)
    smoothing = 0.06 if dtype == np.float64 else "auto"
    local, model = both("FourierClassifier", X, np.cos(angle) > 0, smoothing=smoothing)
    same(local, model, 1e-7 if dtype == np.float64 else 1e-5)
    assert model.classes_.tolist() == [False, True]
    assert model.n_samples_fit_ == N
    assert not hasattr(model, "dual_")


def test_features_of_several_classes(client):
    X, angle = waves()
    labels = np.array(["a", "b", "c"])[np.digitize(np.cos(angle), [-0.5, 0.5])]
    local, model = both("FourierFeatures", X, labels, class_weight="balanced", smoothing=0.06)
    same(local, model)
    assert model.classes_.tolist() == ["a", "b", "c"]


def test_regressor_of_several_outputs(client):
    X, angle = waves()
    y = np.stack([np.cos(angle), X[:, 3]], axis=1)
    y += np.random.default_rng(1).standard_normal(y.shape)  # never all is found
    local, model = both("FourierRegressor", X, y, smoothing=0.06)
    same(local, model)
    assert model.predict(on_cluster(X)).chunks == ((CHUNK, CHUNK, N - 2 * CHUNK), (2,))
    assert model.score(on_cluster(X), on_cluster(y, 7000)) == pytest.approx(local.score(X, y))


@pytest.mark.parametrize("n_columns", [3, 6])
def test_on_the_sphere(client, n_columns):
    X, angle = waves(n_columns=n_columns)
    y = np.cos(angle) > 0
    space = notsorandom.Sphere(normalize=True)
    same(*both("FourierFeatures", X, y, space=space, smoothing=0.06))


def test_weights(client):
    X, angle = waves()
    weights = np.random.default_rng(1).integers(0, 3, size=N).astype(float)
    weights[CHUNK : 2 * CHUNK] = 0  # a whole block
    y = np.where(np.cos(angle) > 0, 3, 7)
    same(*both("FourierClassifier", X, y, weights, class_weight={3: 2.0}, smoothing=0.06))


def test_answers_are_lazy(client):
    X, angle = waves()
    y = np.where(np.cos(angle) > 0, "no", "yes")
    local, model = both("FourierClassifier", X, y, smoothing=0.06)

    def seen(block):
        raise AssertionError("computed")

    lazy = on_cluster(X).map_blocks(seen, dtype=X.dtype, meta=np.empty((0, 0)))
    for method in ("predict", "decision_function"):
        answer = getattr(model, method)(lazy)
        assert isinstance(answer, da.Array)
        assert answer.chunks == ((CHUNK, CHUNK, N - 2 * CHUNK),)
        expected = getattr(local, method)(X)
        found = getattr(model, method)(on_cluster(X))
        assert found.dtype == expected.dtype
        got = found.compute()
        assert got.dtype == expected.dtype
        if method == "predict":
            assert (got == expected).all()
        else:
            np.testing.assert_allclose(got, expected, atol=1e-6)
        np.testing.assert_array_equal(getattr(model, method)(X[:9]), got[:9])
    features = model.features_.transform(on_cluster(X, 5000))
    assert features.chunks == ((5000,) * 4, (12,))
    np.testing.assert_allclose(features.compute(), local.features_.transform(X), atol=1e-8)
    assert model.score(on_cluster(X), on_cluster(y)) == pytest.approx(local.score(X, y))


def test_data_frames(client):
    X, angle = waves()
    frame = pd.DataFrame(X, columns=list("abcd"))
    y = pd.Series(np.cos(angle) > 0)
    local = notsorandom.FourierClassifier(12, random_state=0, smoothing=0.06, n_jobs=1)
    local.fit(frame, y)
    there = dd.from_pandas(frame, npartitions=3)
    model = notsorandom.dask.FourierClassifier(12, random_state=0, smoothing=0.06, n_jobs=1)
    model.fit(there, dd.from_pandas(y, npartitions=3))
    same(local, model)
    assert model.feature_names_in_.tolist() == list("abcd")
    assert (model.predict(there).compute() == local.predict(frame)).all()
    assert model.score(there, dd.from_pandas(y, npartitions=3)) == local.score(frame, y)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(there[list("abdc")])
    there["e"] = "word"
    with pytest.raises(ValueError, match="'e' is of type"):
        clone(model).fit(there, y)  # before it asks about y


def test_a_local_copy_needs_no_cluster(client):
    X, angle = waves()
    _, model = both("FourierClassifier", X, np.cos(angle) > 0, smoothing=0.06)
    model.client = client
    local = pickle.loads(pickle.dumps(model.to_local()))
    assert type(local) is notsorandom.FourierClassifier
    assert type(local.features_) is notsorandom.FourierFeatures
    assert "client" not in vars(local)
    assert "client" not in vars(local.features_)
    np.testing.assert_array_equal(local.predict(X), model.predict(on_cluster(X)).compute())
    assert clone(model).client is client
    assert pickle.loads(pickle.dumps(model)).client is None
    certificate = model.certificate(X[:2000], np.cos(angle[:2000]) > 0)
    assert certificate.lower <= certificate.upper


def fitted(X, y, weights=None, **settings):
    settings = {"smoothing": 0.06, "random_state": 0} | settings
    return notsorandom.dask.FourierFeatures(4, **settings).fit(X, y, weights)


def bad_data():
    X, angle = waves(3000)
    y = np.cos(angle) > 0
    holed = X.copy()
    holed[2017, 2] = np.nan
    there, labels = on_cluster(X, 1000), on_cluster(y, 1000)
    yield "block 2 .*row 17, column 2", on_cluster(holed, 1000), labels
    yield "X is of type ndarray", X, labels
    yield "y is of type ndarray", there, y
    yield "y has 2999 rows, but X has 3000", there, labels[:-1]
    yield "only one class", there, da.ones(3000, chunks=1000)
    yield r"compute_chunk_sizes\(\)", there[there[:, 0] > 0], labels
    yield "must be of numbers", there.astype(str), labels
    yield "2 dimensions", there[:, 0], labels
    yield "block 1 .*Row 0 of X has norm", there, labels, {"space": "sphere"}
    for name, value in {"early_stopping": True, "n_components": "auto", "warm_start": True}.items():
        yield f"{name}=.* not offered", there, labels, {name: value}


@pytest.mark.parametrize("case", list(bad_data()), ids=lambda case: case[0])
def test_bad_data_are_refused(client, case):
    message, X, y, *settings = case
    model = notsorandom.dask.FourierFeatures(4, smoothing=0.06)
    if "sphere" in str(settings):  # the first block is on it
        X = da.concatenate([X[:1000] / da.linalg.norm(X[:1000], axis=1)[:, None], X[1000:]])
    with pytest.raises(ValueError, match=message):
        model.set_params(**(settings[0] if settings else {})).fit(X, y)
    assert not hasattr(model, "kernel_")


def test_scores_of_any_shape_and_kind(client):
    X, angle = waves(3000)
    for name, y in (("FourierClassifier", np.cos(angle) > 0), ("FourierRegressor", np.cos(angle))):
        settings = {"n_components": 8, "random_state": 0, "smoothing": 0.06}
        model = getattr(notsorandom.dask, name)(**settings)
        model.fit(on_cluster(X, 1000), on_cluster(y, 1000))
        frame = dd.from_pandas(pd.DataFrame(X), npartitions=3)
        expected = pytest.approx(model.to_local().score(X, y))
        assert model.score(on_cluster(X, 700), on_cluster(y, 900)) == expected
        assert model.score(on_cluster(X, 700), on_cluster(y[:, None], 900)) == expected
        assert model.score(frame, on_cluster(y, 900)) == expected
        assert model.score(frame, y) == expected
        with pytest.raises(ValueError, match="y has 2999 rows, but X has 3000"):
            model.score(on_cluster(X, 700), y[1:])


def test_frames_that_are_cut_differently(client):
    X, angle = waves(3000)
    labels = pd.Series(np.where(np.cos(angle) > 0, "yes", "no"))
    series = dd.from_pandas(labels, npartitions=4)
    array = da.from_array(X, chunks=((700, 800, 800, 700), X.shape[1]))
    expected = fitted(array, da.from_array(labels.to_numpy(dtype="U3"), chunks=1000))
    same(fitted(array, series), expected)


def test_nothing_is_left_out_unasked(client):
    X, angle = waves(3000)
    y = on_cluster(np.cos(angle) > 0, 750)
    parts = [pd.Series(np.ones(size)) for size in (0, 750, 750, 750)]
    weights = dd.from_delayed([dask.delayed(part) for part in parts], meta=parts[1])
    with pytest.raises(ValueError, match="sample_weight has 2250 rows, but X has 3000"):
        fitted(on_cluster(X, 750), y, weights)
    labels = pd.Series(np.where(np.cos(angle) > 0, "yes", "no"), dtype="string")
    labels[2000] = pd.NA
    with pytest.raises(ValueError, match=r"In block 2 .*: y has nothing at row 500"):
        fitted(on_cluster(X, 750), dd.from_pandas(labels, npartitions=4))


def test_a_task_does_not_wait_for_itself(client):
    def task():
        X = da.ones((9, 2), chunks=(3, 2))
        return notsorandom.dask.FourierFeatures(4).fit(X, X[:, 0])

    with pytest.raises(ValueError, match=r"with distributed.worker_client\(\)"):
        client.submit(task).result(timeout=60)


def test_without_workers_from_the_start():
    with (
        dask.config.set({"notsorandom.no-workers-timeout": 1.0}),
        local_cluster(0) as cluster,
        Client(cluster) as nobody,
        pytest.raises(notsorandom.dask.ClusterError, match="no workers for 1 seconds"),
    ):
        fitted(da.ones((9, 2)), da.ones(9), client=nobody)


def test_blocks_know_how_large_they_are():
    block = Block(np.zeros((1000, 10)), np.zeros((1000, 1)), None)
    block.columns[9] = np.zeros((1000, 100))
    assert block.__sizeof__() >= 8 * 1000 * 111


def test_columns_stay_on_the_cluster(client, monkeypatch):
    fetched, kept = [], DaskRows.fetch

    def fetch(self, column, indices=None):
        fetched.append(len(column) if indices is None else len(indices))
        return kept(self, column, indices)

    monkeypatch.setattr(DaskRows, "fetch", fetch)
    X, angle = waves(70_000)
    y = np.cos(angle) > 0
    fitted(on_cluster(X, 16384), on_cluster(y, 16384))
    assert max(fetched, default=0) <= 16384


def during(monkeypatch, round_, deed):
    """Do something in the middle of the game, at the start of a round."""
    kept = Match.play_round

    def play_round(self):
        if len(self.history) == round_ and isinstance(self.rows, DaskRows):
            deed()
        return kept(self)

    monkeypatch.setattr(Match, "play_round", play_round)


def test_a_worker_killed(client, monkeypatch):
    X, angle = waves(30_000)
    there, labels = on_cluster(X), on_cluster(np.cos(angle) > 0)
    settings = {"n_components": 20, "smoothing": 0.06, "random_state": 0, "n_jobs": 1}
    expected = notsorandom.dask.FourierClassifier(**settings).fit(there, labels)
    killed = []

    def kill(delay):
        worker = next(iter(client.run(os.getpid).values()))
        killed.append(worker)

        def strike():
            time.sleep(delay)
            os.kill(worker, signal.SIGKILL)

        threading.Thread(target=strike).start()

    for delay in (0.0, 0.05):
        with monkeypatch.context() as patch:
            during(patch, 3, lambda delay=delay: kill(delay))
            model = notsorandom.dask.FourierClassifier(**settings).fit(there, labels)
        same(expected, model, 1e-12)
        client.wait_for_workers(2)  # the nanny's
    assert len(killed) == 2


def test_all_workers_gone(tmp_path, monkeypatch):
    X, angle = waves(20_000)
    y = np.cos(angle) > 0
    settings = {"n_components": 30, "smoothing": 0.06, "random_state": 0, "n_jobs": 1}
    settings |= {"checkpoint": tmp_path / "game", "checkpoint_every": 0}
    rounds = []
    with local_cluster() as cluster, Client(cluster, set_as_default=False) as client:
        model = notsorandom.dask.FourierFeatures(**settings, client=client)
        with monkeypatch.context() as patch, dask.config.set({"notsorandom.no-workers-timeout": 1}):
            during(patch, 4, lambda: cluster.scale(0))
            with pytest.raises(ClusterError, match=r"no workers for 1 seconds.*checkpoint"):
                model.fit(on_cluster(X), on_cluster(y))
        assert not hasattr(model, "kernel_")
    during(monkeypatch, 4, lambda: rounds.append(4))
    during(monkeypatch, 0, lambda: rounds.append(0))
    with local_cluster(1) as cluster, Client(cluster, set_as_default=False) as client:
        model = notsorandom.dask.FourierFeatures(**settings, client=client)
        model.fit(on_cluster(X), on_cluster(y))
    assert rounds == [4]  # it went on, and didn't begin anew
    settings["checkpoint"] = None
    same(notsorandom.FourierFeatures(**settings).fit(X, y), model)
