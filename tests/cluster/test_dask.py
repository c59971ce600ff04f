"""Fits on a local cluster of separate processes.

The folder is not named `dask`: if the package is not installed, ``import dask`` would find it.
"""

import gc
import os
import pickle
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone

import notsorandom

pytest.importorskip("distributed", reason="needs dask: pip install 'notsorandom[all]'")

import cloudpickle
import dask
import dask.array as da
import dask.dataframe as dd
import distributed
import pandas as pd
from distributed import Client, LocalCluster
from scipy import sparse
from threadpoolctl import threadpool_info, threadpool_limits

import notsorandom.dask
from notsorandom.dask import ClusterError
from notsorandom.dask.cluster import Cluster
from notsorandom.dask.rows import DaskColumn, DaskRows
from notsorandom.data.chunks import run_task
from notsorandom.data.rows import Rows
from notsorandom.game import GameLoop
from notsorandom.linear import fit as final_models
from notsorandom.linear import streaming

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_trials")]

N, CHUNK = 20_000, 8192
QUICK = {"smoothing": 0.06, "random_state": 0}


def local_cluster(n_workers=2):
    return LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        processes=True,
        dashboard_address=":0",
        memory_limit=None,
    )


@pytest.fixture(scope="module")
def client():
    with local_cluster() as cluster, Client(cluster) as client:
        yield client


@pytest.fixture(autouse=True)
def fail_on_scatter(monkeypatch):
    def fail(*_, **__):
        raise AssertionError("data were scattered")

    monkeypatch.setattr(Client, "scatter", fail)


@pytest.fixture(autouse=True)
def solve_in_passes(monkeypatch):
    """In memory, too, the final model is solved in passes, so that the digits can be compared."""
    solve = partial(final_models.fit_linear_models, feature_bytes=0)
    monkeypatch.setattr(final_models, "fit_linear_models", solve)


def make_waves(n=N, n_columns=4, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, n_columns)).astype(dtype)
    return X, X @ np.array([2.0, -1.0, *[0.0] * (n_columns - 2)])


def to_dask(X, chunks=CHUNK):
    return da.from_array(X, chunks=(chunks, *X.shape[1:]))


def two_classes(n=N):
    X, angle = make_waves(n)
    return X, np.cos(angle) > 0


def two_classes_in_chunks(n=N, chunk=CHUNK):
    return [to_dask(part, chunk) for part in two_classes(n)]


def assert_same_model(one, other, tolerance=0):
    np.testing.assert_allclose(one.frequencies_, other.frequencies_, atol=tolerance)
    np.testing.assert_allclose(one.phases_, other.phases_, atol=tolerance)
    assert one.smoothing_ == other.smoothing_
    if hasattr(one, "coef_"):
        largest = np.abs(one.coef_).max()
        np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-6 * largest)
        np.testing.assert_allclose(one.intercept_, other.intercept_, atol=1e-6 * largest)
    if hasattr(one, "held_out_scores_"):
        ours, theirs = one.held_out_scores_, other.held_out_scores_
        np.testing.assert_allclose(ours.scores, theirs.scores, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(ours.counts, theirs.counts)
    if hasattr(one, "noise_"):
        np.testing.assert_allclose(one.noise_, other.noise_, rtol=1e-5)


def fit_both(name, X, y, weights=None, **settings):
    settings = {"n_components": 12, "random_state": 0, "n_jobs": 1} | settings
    local = getattr(notsorandom, name)(**settings).fit(X, y, weights)
    given = None if weights is None else to_dask(weights, 5000)
    model = getattr(notsorandom.dask, name)(**settings).fit(to_dask(X), to_dask(y), given)
    return local, model


def test_no_client_is_an_error():  # first in the file: no client exists yet
    with pytest.raises(ValueError, match=r"there is no Dask client.*distributed.Client\(\)"):
        fit_features(da.ones((9, 2)), da.ones(9))
    with pytest.raises(ValueError, match="client='here' is not allowed"):
        fit_features(da.ones((9, 2)), da.ones(9), client="here")


SPHERE = {"space": notsorandom.Sphere(normalize=True)}
AUTO = {"n_components": "auto", "max_components": 60}


# Settings beside the quick ones, for each kind of targets.
@pytest.mark.parametrize(
    ("targets", "settings"),
    [
        ("two", {}),
        ("two in float32", {"smoothing": "auto"}),
        ("two weighted", {"class_weight": {False: 2.0}}),
        ("two", AUTO),
        ("three", {"class_weight": "balanced"}),
        ("two", SPHERE),
        ("two of six columns", SPHERE),
        ("numbers", AUTO),
        ("outputs", {}),
        ("outputs", {"loss": "quantile", "quantile": 0.8}),
        ("two", {"linear": True}),
        ("three", {"linear": True}),
        ("numbers", {"linear": True}),
    ],
    ids=str,
)
def test_model_equals_the_one_in_memory(client, targets, settings):
    kind, *other = targets.split()
    X, angle = make_waves(
        n_columns=6 if "six" in other else 3 if settings is SPHERE else 4,
        dtype=np.float32 if "float32" in other else np.float64,
    )
    wave, weights = np.cos(angle), None
    y = {
        "two": wave > 0,
        "three": np.array(["a", "b", "c"])[np.digitize(wave, [-0.5, 0.5])],
        "numbers": wave,
        # With noise, so that the fit is never exact.
        "outputs": np.stack([wave, X[:, 2]], axis=1) + np.random.default_rng(1).normal(size=(N, 2)),
    }[kind]
    if "weighted" in other:
        weights = np.random.default_rng(1).integers(0, 3, size=N).astype(float)
        weights[CHUNK : 2 * CHUNK] = 0  # a whole block
    estimator = "FourierClassifier" if kind in ("two", "three") else "FourierRegressor"
    local, model = fit_both(estimator, X, y, weights, **({"smoothing": 0.06} | settings))
    assert_same_model(local, model)
    assert model.n_samples_fit_ == N
    assert not hasattr(model, "dual_")
    if estimator == "FourierClassifier":
        assert model.classes_.tolist() == local.classes_.tolist()
    if settings is AUTO:
        np.testing.assert_array_equal(model.validation_sizes_, local.validation_sizes_)
    if kind == "outputs":
        assert model.predict(to_dask(X)).chunks == ((CHUNK, CHUNK, N - 2 * CHUNK), (2,))
        assert model.score(to_dask(X), to_dask(y, 7000)) == pytest.approx(local.score(X, y))


def test_small_chunks_of_several_classes_equal_data_in_memory(client):
    """A worker thread processes many of them, one after the other."""
    X, angle = make_waves(3000)
    labels = np.digitize(np.cos(angle), [-0.5, 0.5])
    settings = {"n_components": 6, **QUICK}
    local = notsorandom.FourierFeatures(**settings).fit(X, labels)
    model = notsorandom.dask.FourierFeatures(**settings)
    assert_same_model(local, model.fit(to_dask(X, 100), to_dask(labels, 100)))


def test_predictions_are_lazy_and_equal_those_in_memory(client):
    X, angle = make_waves()
    y = np.where(np.cos(angle) > 0, "no", "yes")
    local, model = fit_both("FourierClassifier", X, y, smoothing=0.06)

    def fail(block):
        raise AssertionError("computed")

    lazy = to_dask(X).map_blocks(fail, dtype=X.dtype, meta=np.empty((0, 0)))
    for method in ("predict", "decision_function", "predict_proba", "predict_log_proba"):
        answer = getattr(model, method)(lazy)
        assert isinstance(answer, da.Array)
        assert answer.chunks[0] == (CHUNK, CHUNK, N - 2 * CHUNK)
        expected = getattr(model.to_local(), method)(X)
        found = getattr(model, method)(to_dask(X))
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        some, found = getattr(model, method)(X[:9]), found.compute()
        assert found.dtype == expected.dtype
        if method == "predict":
            np.testing.assert_array_equal(found, expected)
            np.testing.assert_array_equal(some, found[:9])
        else:
            np.testing.assert_allclose(found, expected, atol=1e-6)
            np.testing.assert_allclose(some, found[:9])
    assert not hasattr(notsorandom.dask.FourierClassifier(loss="hinge"), "predict_proba")
    np.testing.assert_allclose(model.to_local().predict_proba(X), local.predict_proba(X), atol=0.02)
    features = model.features_.transform(to_dask(X, 5000))
    assert features.chunks == ((5000,) * 4, (12,))
    np.testing.assert_allclose(features.compute(), local.features_.transform(X), atol=1e-8)
    assert model.score(to_dask(X), to_dask(y)) == model.to_local().score(X, y)


def outputs_of_waves(n=N):
    X, angle = make_waves(n)
    wave = np.stack([np.cos(angle), X[:, 2]], axis=1)
    return X, wave + np.random.default_rng(1).normal(size=wave.shape)


@pytest.mark.parametrize("coverage", [0.9, [0.5, 0.8, 0.95]])
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_intervals_are_lazy_and_equal_those_in_memory(client, n_outputs, coverage):
    X, y = outputs_of_waves(3000)
    y = y[:, 0] if n_outputs == 1 else y
    model = notsorandom.dask.FourierRegressor(8, **QUICK).fit(to_dask(X, 1000), to_dask(y, 700))
    in_memory = model.to_local()
    results = [
        (model.predict_interval(Z, coverage=coverage), *model.predict(Z, return_std=True))
        for Z in (X, to_dask(X, 700), dd.from_pandas(pd.DataFrame(X), npartitions=2))
    ]
    expected = (in_memory.predict_interval(X, coverage), *in_memory.predict(X, return_std=True))
    for interval, mean, std in results[1:]:
        assert isinstance(std, da.Array)
        assert interval.chunks[0] == mean.chunks[0] == std.chunks[0]
        assert len(std.chunks[0]) > 1
        assert [part.chunks[1:] for part in (interval, mean)] == [
            tuple((size,) for size in part.shape[1:]) for part in (expected[0], expected[1])
        ]
    for found in results:
        for part, whole in zip(found, expected, strict=True):
            values = np.asarray(part)
            assert (values.shape, part.dtype) == (whole.shape, whole.dtype)
            np.testing.assert_allclose(values, whole, atol=1e-8)
    np.testing.assert_array_equal(model.predict(to_dask(X), False), in_memory.predict(X))


def test_calibration_with_collections_equals_that_in_memory(client):
    X, y = outputs_of_waves(3000)
    labels = np.array(["a", "b", "c"])[np.digitize(y[:, 0], [-0.5, 0.5])]
    weights = np.random.default_rng(2).integers(0, 3, size=1000).astype(float)
    for name, target in (("FourierRegressor", y), ("FourierClassifier", labels)):
        model = getattr(notsorandom.dask, name)(8, **QUICK)
        model.fit(to_dask(X[1000:], 500), to_dask(target[1000:], 500))
        in_memory = model.to_local().calibrate(X[:1000], target[:1000], weights)
        before = model.held_out_scores_
        given = [to_dask(part[:1000], 300) for part in (X, target, weights)]
        assert model.calibrate(*given) is model
        assert model.held_out_scores_ is not before
        assert_same_model(in_memory, model)
        model.held_out_scores_ = before
        assert_same_model(in_memory, model.calibrate(X[:1000], target[:1000], weights))
    for coverage in (0.9, [0.5, 0.95]):
        sets = model.predict_set(to_dask(X, 700), coverage)
        assert sets.chunks[0] == (700, 700, 700, 700, 200)
        expected = in_memory.predict_set(X, coverage)
        assert (sets.shape, sets.dtype) == (expected.shape, bool)
        np.testing.assert_array_equal(sets.compute(), expected)
        np.testing.assert_array_equal(model.predict_set(X, coverage), expected)
    hinge = notsorandom.dask.FourierClassifier(loss="hinge")
    assert not hasattr(hinge, "predict_set")
    assert not hasattr(hinge, "calibrate")


def test_what_intervals_need_is_said_before_any_work(client):
    X, y = (to_dask(part, 1000) for part in outputs_of_waves(3000))
    model = notsorandom.dask.FourierRegressor(8, **QUICK, calibration_size=0).fit(X, y)
    for call in (model.predict_interval, partial(model.predict, return_std=True)):
        with pytest.raises(ValueError, match="call calibrate with other samples"):
            call(X)
    with pytest.raises(ValueError, match=r"coverage=1\.5 is not allowed"):
        model.calibrate(X, y).predict_interval(X, 1.5)


def test_data_frames(client):
    X, y = two_classes()
    frame, y = pd.DataFrame(X, columns=list("abcd")), pd.Series(y)
    local = notsorandom.FourierClassifier(12, **QUICK, n_jobs=1).fit(frame, y)
    on_cluster = dd.from_pandas(frame, npartitions=3)
    model = notsorandom.dask.FourierClassifier(12, **QUICK, n_jobs=1)
    model.fit(on_cluster, dd.from_pandas(y, npartitions=3))
    assert_same_model(local, model)
    assert model.feature_names_in_.tolist() == list("abcd")
    copy = model.to_local()
    assert (model.predict(on_cluster).compute() == copy.predict(frame)).all()
    assert model.score(on_cluster, dd.from_pandas(y, npartitions=3)) == copy.score(frame, y)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(on_cluster[list("abdc")])
    on_cluster["e"] = "word"
    with pytest.raises(ValueError, match="'e' is of type"):
        clone(model).fit(on_cluster, y)  # X is checked before y


def test_local_copy_needs_no_cluster(client):
    X, y = two_classes()
    model = notsorandom.dask.FourierClassifier(12, **QUICK).fit(*two_classes_in_chunks())
    model.client = client
    local = pickle.loads(pickle.dumps(model.to_local()))
    assert type(local) is notsorandom.FourierClassifier
    assert type(local.features_) is notsorandom.FourierFeatures
    assert "client" not in vars(local)
    assert "client" not in vars(local.features_)
    np.testing.assert_array_equal(local.predict(X), model.predict(to_dask(X)).compute())
    assert clone(model).client is client
    assert pickle.loads(pickle.dumps(model)).client is None
    certificate = model.certificate(X[:500], y[:500], max_evaluations=1000)
    assert certificate.lower <= certificate.upper


def fit_features(X, y, weights=None, **settings):
    settings = {"n_components": 4, **QUICK} | settings
    return notsorandom.dask.FourierFeatures(**settings).fit(X, y, weights)


def with_far_row(X):
    X = X.copy()
    X[2017, 2] = 1e300
    return X


def invalid_cases():
    X, angle = make_waves(3000)
    y = np.cos(angle) > 0
    with_nan = X.copy()
    with_nan[2017, 2] = np.nan
    on_cluster, labels = to_dask(X, 1000), to_dask(y, 1000)
    yield "block 2 .*row 17, column 2", to_dask(with_nan, 1000), labels
    yield r"column 2, where the mean is 3\.3.*e\+296", to_dask(with_far_row(X), 1000), labels
    yield r"numbers up to .*e-300", on_cluster, 1e-300 * to_dask(angle, 1000), {"loss": "squared"}
    yield "X is of type ndarray", X, labels
    yield "y is of type ndarray", on_cluster, y
    yield "y has 2999 rows, but X has 3000", on_cluster, labels[:-1]
    yield "only one class", on_cluster, da.ones(3000, chunks=1000)
    yield r"compute_chunk_sizes\(\)", on_cluster[on_cluster[:, 0] > 0], labels
    yield "must have numbers", on_cluster.astype(str), labels
    yield "2 dimensions", on_cluster[:, 0], labels
    yield "block 1 .*Row 0 of X has norm", on_cluster, labels, {"space": "sphere"}
    for value in ("reweight", "equilibrium"):
        yield f"solver='{value}' is not supported", on_cluster, labels, {"solver": value}


@pytest.mark.parametrize("method", ["predict", "decision_function"])
def test_far_rows_are_refused_at_predict(client, method):
    model = notsorandom.dask.FourierClassifier(4, **QUICK)
    model.fit(*two_classes_in_chunks(3000, 1000))
    answers = getattr(model, method)(to_dask(with_far_row(two_classes(3000)[0]), 1000))
    with pytest.raises(ValueError, match=r"Row 17 of X has 1e\+300 in column 2"):
        answers.compute()


@pytest.mark.parametrize("case", list(invalid_cases()), ids=lambda case: case[0])
def test_invalid_data_and_parameters_are_refused(client, case):
    message, X, y, *settings = case
    model = notsorandom.dask.FourierFeatures(4, smoothing=0.06)
    if "sphere" in str(settings):  # the first block is on it
        X = da.concatenate([X[:1000] / da.linalg.norm(X[:1000], axis=1)[:, None], X[1000:]])
    with pytest.raises(ValueError, match=message):
        model.set_params(**(settings[0] if settings else {})).fit(X, y)
    assert not hasattr(model, "kernel_")


def test_score_accepts_any_chunks_and_kind_of_collection(client):
    X, angle = make_waves(3000)
    for name, y in (("FourierClassifier", np.cos(angle) > 0), ("FourierRegressor", np.cos(angle))):
        settings = {"n_components": 8, **QUICK}
        model = getattr(notsorandom.dask, name)(**settings)
        model.fit(to_dask(X, 1000), to_dask(y, 1000))
        frame = dd.from_pandas(pd.DataFrame(X), npartitions=3)
        expected = pytest.approx(model.to_local().score(X, y))
        assert model.score(to_dask(X, 700), to_dask(y, 900)) == expected
        assert model.score(to_dask(X, 700), to_dask(y[:, None], 900)) == expected
        assert model.score(frame, to_dask(y, 900)) == expected
        assert model.score(frame, y) == expected
        with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[2999, 3000\]"):
            model.score(to_dask(X, 700), y[1:])


def test_targets_may_have_other_chunks_than_samples(client):
    X, angle = make_waves(3000)
    labels = pd.Series(np.where(np.cos(angle) > 0, "yes", "no"))
    series = dd.from_pandas(labels, npartitions=4)
    array = da.from_array(X, chunks=((700, 800, 800, 700), X.shape[1]))
    expected = fit_features(array, da.from_array(labels.to_numpy(dtype="U3"), chunks=1000))
    assert_same_model(fit_features(array, series), expected)


def test_missing_rows_and_labels_are_refused(client):
    X, angle = make_waves(3000)
    y = to_dask(np.cos(angle) > 0, 750)
    parts = [pd.Series(np.ones(size)) for size in (0, 750, 750, 750)]
    weights = dd.from_delayed([dask.delayed(part) for part in parts], meta=parts[1])
    with pytest.raises(ValueError, match="sample_weight has 2250 rows, but X has 3000"):
        fit_features(to_dask(X, 750), y, weights)
    labels = pd.Series(np.where(np.cos(angle) > 0, "yes", "no"), dtype="string")
    labels[2000] = pd.NA
    with pytest.raises(ValueError, match=r"In block 2 .*: y has <NA> at sample 500"):
        fit_features(to_dask(X, 750), dd.from_pandas(labels, npartitions=4))


def test_fit_inside_a_task(client):
    """Its thread is given back, so one worker with one thread suffices."""
    X = to_dask(make_waves(3000)[0], 1000)  # workers can't import this module

    def task():
        return notsorandom.dask.FourierFeatures(4, **QUICK).fit(X, X[:, 0] > 0)

    def with_client():
        with distributed.worker_client():
            return task()

    one, other = client.gather([client.submit(task), client.submit(with_client)])
    assert_same_model(one, other)


def test_no_workers_is_an_error():
    with (
        dask.config.set({"notsorandom.no-workers-timeout": 1.0}),
        local_cluster(0) as cluster,
        Client(cluster) as client,
        pytest.raises(notsorandom.dask.ClusterError, match="no workers for 1 seconds"),
    ):
        fit_features(da.ones((9, 2)), da.ones(9), client=client)


def test_columns_stay_on_the_cluster(client, monkeypatch):
    fetched, to_host = [], DaskRows.to_host

    def recording(self, column, indices=None):
        fetched.append(column.shape[0] if indices is None else len(indices))
        return to_host(self, column, indices)

    monkeypatch.setattr(DaskRows, "to_host", recording)
    fit_features(*two_classes_in_chunks(70_000, 16384))
    assert max(fetched, default=0) <= 16384


def before_round(monkeypatch, round_, action):
    """Call a function at the start of a round."""
    play_round = GameLoop.play_round

    def act_and_play(self):
        if len(self.history) == round_ and isinstance(self.problem.rows, DaskRows):
            action()
        return play_round(self)

    monkeypatch.setattr(GameLoop, "play_round", act_and_play)


@pytest.mark.parametrize(("chunk", "n_jobs"), [(1000, 1), (7777, 2), (16_384, None), (N, 1)])
def test_frequencies_depend_neither_on_chunks_nor_on_threads(client, chunk, n_jobs):
    X, angle = make_waves(dtype=np.float32)
    y, settings = np.cos(angle) > 0, {**QUICK, "n_jobs": n_jobs}
    local = notsorandom.FourierFeatures(8, **settings).fit(X, y)
    model = notsorandom.dask.FourierFeatures(8, **settings).fit(to_dask(X, chunk), to_dask(y))
    np.testing.assert_array_equal(model.frequencies_, local.frequencies_)


def test_few_rows_equal_those_in_memory(client):
    X, y = two_classes(600)
    local = notsorandom.FourierClassifier("auto", random_state=0).fit(X, y)
    model = notsorandom.dask.FourierClassifier("auto", random_state=0)
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("abcd")), npartitions=3)
    assert_same_model(local, model.fit(frame, to_dask(y, 100)))
    assert model.feature_names_in_.tolist() == list("abcd")
    assert model.score(frame, y) == local.score(X, y)


def test_warm_start_continues_and_holds_no_columns(client):
    arrays, settings = two_classes_in_chunks(), {**QUICK, "C": 1.0}
    model = notsorandom.dask.FourierClassifier(8, warm_start=True, **settings).fit(*arrays)
    model = pickle.loads(pickle.dumps(model)).set_params(n_components=16)
    wait_until(lambda: not stored_columns(client))
    expected = notsorandom.dask.FourierClassifier(16, **settings).fit(*arrays)
    assert_same_model(model.fit(*arrays), expected)
    with pytest.raises(ValueError, match="X has changed"):
        model.set_params(n_components=20).fit(arrays[0] + 1, arrays[1])


def test_sparse_blocks_stay_sparse(client, monkeypatch):
    rng = np.random.default_rng(0)
    # No two rows are equal: in memory such rows are merged.
    X = sparse.random_array((N, 300), density=0.06, random_state=rng, format="csr")
    y = np.asarray(X[:, :9].sum(axis=1)) > 0.05
    local = notsorandom.FourierClassifier(8, **QUICK).fit(X, y)
    blocks = [da.from_delayed(dask.delayed(X[i : i + 4000]), (4000, 300), X.dtype, meta=X[:0])
              for i in range(0, N, 4000)]  # fmt: skip
    model = notsorandom.dask.FourierClassifier(8, **QUICK)
    model.fit(on_cluster := da.concatenate(blocks), to_dask(y))
    assert_same_model(local, model)
    assert (model.predict(on_cluster).compute() == model.to_local().predict(X)).all()
    kinds = set()
    monkeypatch.setattr(DaskRows, "mean", lambda rows: kinds.update(
        rows.map_blocks(lambda X: type(X).__name__)) or X.mean(axis=0))  # fmt: skip
    clone(model).fit(on_cluster, to_dask(y))
    assert kinds == {"csr_array"}


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_round_waits_twice_for_a_few_tasks(client, monkeypatch, n_classes):
    """Of samples in two chunks: each worker has one thread, and small parts are joined."""
    sets, waits, submit, gather = [], [], Cluster.map, Cluster.gather

    def count_tasks(self, *args):
        futures = submit(self, *args)
        sets.append(len(futures))
        return futures

    def count_waits(self, *args):
        waits.append(0)
        return gather(self, *args)

    monkeypatch.setattr(Cluster, "map", count_tasks)
    monkeypatch.setattr(Cluster, "gather", count_waits)
    counts, play_round = [], GameLoop.play_round

    def count(self):
        counts.append((len(sets), len(waits)))
        return play_round(self)

    monkeypatch.setattr(GameLoop, "play_round", count)
    X, angle = make_waves(70_000, dtype=np.float32)
    labels = np.digitize(np.cos(angle), np.linspace(-1, 1, n_classes + 1)[1:-1])
    fit_features(to_dask(X), to_dask(labels), n_components=40)
    rounds = np.diff(counts[1:-1], axis=0)
    assert len(rounds) > 4
    n_sets, n_waits = np.median(rounds, axis=0)
    assert n_waits == 2
    assert 5 <= n_sets <= 8  # three, and one for each of Newton's steps
    assert set(sets[-10:]) == {2}


def stored_columns(client, given=()):
    """Return the keys of what workers hold, except for the given persisted collections."""
    own = {str(future.key) for future in distributed.futures_of(given)}
    return {key for key, workers in client.who_has().items() if workers and str(key) not in own}


def wait_until(condition):
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_columns_are_released(client):
    given = client.persist(two_classes_in_chunks())
    sizes, play_round = [], GameLoop.play_round

    def count(self):
        sizes.append(len(stored_columns(client, given)))
        return play_round(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GameLoop, "play_round", count)
        fit_features(*given, n_components=40)
    # Of each of three chunks: samples, targets and their view, at most three points, and a result.
    assert len(sizes) > 10
    assert max(sizes) <= 24, sizes
    wait_until(lambda: not stored_columns(client, given))


def test_waiting_long_keeps_no_columns(client, monkeypatch):
    """Without the help of Python's garbage collector, which may run much later."""
    monkeypatch.setattr("notsorandom.dask.cluster.POLL_SECONDS", 0.001)
    gc.disable()
    try:
        fit_features(*two_classes_in_chunks())
        wait_until(lambda: not stored_columns(client))
    finally:
        gc.enable()


def test_errors_of_tasks_are_raised_as_they_are(client):
    def fail(block):
        raise error

    X, labels = two_classes_in_chunks(3000, 1000)
    for error in (FileNotFoundError("part.7.parquet"), TimeoutError("the store is slow")):
        with pytest.raises(type(error), match=str(error)):
            fit_features(X.map_blocks(fail, meta=np.empty((0, 4))), labels)


@pytest.mark.parametrize("where", ["task", "driver"])
def test_columns_of_a_failed_fit_are_released(client, monkeypatch, where):
    """Even while its exception is kept: the client keeps those of tasks, and IPython the last."""
    X, y = two_classes()
    if where == "driver":
        before_round(monkeypatch, 1, lambda: 1 / 0)
    else:
        X = with_far_row(X)
    with pytest.raises((ValueError, ZeroDivisionError)) as kept:
        fit_features(to_dask(X), to_dask(y), n_components=20)
    wait_until(lambda: not stored_columns(client))
    assert kept.tb is not None


def test_two_fits_from_two_threads(client):
    X, angle = make_waves()
    waves = [np.cos(angle) > 0, np.sin(angle) > 0.2]
    alone = [fit_features(to_dask(X), to_dask(y), client=client) for y in waves]
    with ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(fit_features, to_dask(X), to_dask(y), client=client) for y in waves]
        for call, expected in zip(calls, alone, strict=True):
            assert_same_model(call.result(), expected)


def test_adaptive_cluster(monkeypatch):
    X, y = two_classes(40_000)
    expected = notsorandom.FourierFeatures(20, **QUICK).fit(X, y)
    with local_cluster(1) as cluster, Client(cluster, set_as_default=False) as client:
        numbers = []

        def grow():
            numbers.append(len(client.nthreads()))
            cluster.adapt(
                minimum=1, maximum=2, interval="200ms", wait_count=1, target_duration="100ms"
            )
            sleeps = client.map(time.sleep, [0.5] * 40, pure=False)  # work for two
            client.wait_for_workers(2, timeout=60)
            client.cancel(sleeps)
            numbers.append(len(client.nthreads()))

        before_round(monkeypatch, 2, grow)
        model = notsorandom.dask.FourierFeatures(20, **QUICK, client=client)
        assert_same_model(expected, model.fit(to_dask(X), to_dask(y)))
        assert numbers == [1, 2]  # the second worker joined during the game


def test_closed_scheduler_is_an_error_within_seconds(monkeypatch):
    cluster = local_cluster()
    with Client(cluster, set_as_default=False) as client:
        model = notsorandom.dask.FourierFeatures(20, smoothing=0.06, client=client)
        closed = []

        def close():
            threading.Thread(target=cluster.close).start()
            closed.append(time.monotonic())

        before_round(monkeypatch, 2, close)
        with pytest.raises(ClusterError, match="connection to the Dask cluster is closed"):
            model.fit(*two_classes_in_chunks())
        assert time.monotonic() - closed[0] < 10
    assert not hasattr(model, "kernel_")


def test_tasks_use_one_blas_thread():
    def threads(X):
        return max(one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas")

    step = cloudpickle.dumps((threads, None, [0], 4, 9, np.dtype(float), np.geterr()))
    with threadpool_limits(2, user_api="blas"):
        assert threads(None) == 2
        result = run_task("map_blocks", step, 4, 0, None, None, np.ones((4, 2)))
        assert pickle.loads(result) == [1]


def test_large_sums_are_added_by_a_tree(client, monkeypatch):
    X = np.random.default_rng(0).standard_normal((40_000, 4))
    parts = np.split(X, range(8192, 40_000, 8192))
    column = DaskColumn(X.shape, X.dtype, client.map(np.asarray, parts, pure=False))
    (expected,) = Rows(X).sum_blocks(lambda X: (X.T @ X,))
    rows = DaskRows(column, cluster=Cluster(client), sizes=[len(part) for part in parts])
    np.testing.assert_allclose(rows.sum_blocks(lambda X: (X.T @ X,))[0], expected, rtol=1e-12)
    monkeypatch.setattr("notsorandom.dask.rows.DIRECT_BYTES", 0)
    monkeypatch.setattr("notsorandom.dask.rows.TREE_WIDTH", 2)
    (total,) = rows.sum_blocks(lambda X: (X.T @ X,), width=4)
    np.testing.assert_allclose(total, expected, rtol=1e-12)


def test_model_is_the_same_if_a_worker_is_killed(client, monkeypatch):
    on_cluster, labels = two_classes_in_chunks(30_000)
    settings = {"n_components": 20, **QUICK, "n_jobs": 1}
    expected = notsorandom.dask.FourierClassifier(**settings).fit(on_cluster, labels)
    killed = []

    def kill(delay):
        worker = next(iter(client.run(os.getpid).values()))
        killed.append(worker)

        def kill_later():
            time.sleep(delay)
            os.kill(worker, signal.SIGKILL)

        threading.Thread(target=kill_later).start()

    for delay in (0.0, 0.05):
        with monkeypatch.context() as patch:
            before_round(patch, 3, lambda delay=delay: kill(delay))
            model = notsorandom.dask.FourierClassifier(**settings).fit(on_cluster, labels)
        assert_same_model(expected, model, 1e-12)
        client.wait_for_workers(2)  # the nanny restarts it
    run_passes = streaming.run_passes  # of the final model

    def kill_and_run(*args):
        kill(0.1)
        yield from run_passes(*args)

    monkeypatch.setattr(streaming, "run_passes", kill_and_run)
    model = notsorandom.dask.FourierClassifier(**settings).fit(on_cluster, labels)
    assert_same_model(expected, model)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-9, atol=1e-12)
    assert len(killed) >= 3  # once for each precision
    client.wait_for_workers(2)


def test_fit_continues_from_a_checkpoint_after_all_workers_are_lost(tmp_path, monkeypatch):
    X, y = two_classes()
    settings = {"n_components": 30, **QUICK, "n_jobs": 1}
    settings |= {"checkpoint": notsorandom.Checkpoint(tmp_path / "game", every=0)}
    rounds = []
    with local_cluster() as cluster, Client(cluster, set_as_default=False) as client:
        model = notsorandom.dask.FourierFeatures(**settings, client=client)
        with monkeypatch.context() as patch, dask.config.set({"notsorandom.no-workers-timeout": 1}):
            before_round(patch, 4, lambda: cluster.scale(0))
            with pytest.raises(ClusterError, match=r"no workers for 1 seconds.*checkpoint"):
                model.fit(to_dask(X), to_dask(y))
        assert not hasattr(model, "kernel_")
        (file,) = tmp_path.iterdir()
        assert file.stat().st_size < 4 * len(X)  # no columns, not even in single precision
    before_round(monkeypatch, 4, lambda: rounds.append(4))
    before_round(monkeypatch, 0, lambda: rounds.append(0))
    with local_cluster(1) as cluster, Client(cluster, set_as_default=False) as client:
        model = notsorandom.dask.FourierFeatures(**settings, client=client)
        model.fit(to_dask(X), to_dask(y))
    assert rounds == [4]  # it continued, and didn't start again
    settings["checkpoint"] = None
    assert_same_model(notsorandom.FourierFeatures(**settings).fit(X, y), model)


def interrupt(model, arrays, round_):
    """Fit until a round begins, and fail there."""
    with pytest.MonkeyPatch.context() as patch:
        before_round(patch, round_, lambda: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            model.fit(*arrays)


def test_early_stopping_continues_from_a_checkpoint(client, tmp_path, monkeypatch):
    arrays = two_classes_in_chunks()
    settings = {"smoothing": 0.06, "C": 1.0, "random_state": 0, "n_jobs": 1, "max_components": 60}
    local = notsorandom.FourierClassifier("auto", **settings).fit(*two_classes())
    settings["checkpoint"] = notsorandom.Checkpoint(tmp_path / "game", every=0)
    model = notsorandom.dask.FourierClassifier("auto", **settings)
    interrupt(model, arrays, 3)
    rounds = []
    for number in (0, 3):
        before_round(monkeypatch, number, lambda number=number: rounds.append(number))
    assert_same_model(local, model.fit(*arrays))
    assert rounds == [3]
    np.testing.assert_array_equal(model.validation_sizes_, local.validation_sizes_)
    np.testing.assert_allclose(model.validation_losses_, local.validation_losses_, rtol=1e-6)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["sizes", "steps", "frequencies", "phases", "coefficients"])
def test_damaged_moves_of_a_checkpoint_are_refused(client, tmp_path, name):
    arrays, path = two_classes_in_chunks(3000, 1000), tmp_path / "game"
    settings = {**QUICK, "n_jobs": 1}
    settings["checkpoint"] = notsorandom.Checkpoint(path, every=0)
    model = notsorandom.dask.FourierFeatures(20, **settings)
    interrupt(model, arrays, 3)
    with np.load(path) as archive:
        contents = dict(archive)
    key = f"fit.state.moves.{name}"
    for damaged in (contents[key][1:], contents[key].astype(complex), contents[key] * np.nan):
        with path.open("wb") as file:
            np.savez(file, **(contents | {key: damaged}))
        with pytest.raises(notsorandom.FileFormatError, match="is not a checkpoint: delete it"):
            model.fit(*arrays)
