"""Threads that share the samples: the results are the same for any number of them."""

import threading

import numpy as np
import pytest
from joblib import Parallel, cpu_count, delayed
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from threadpoolctl import threadpool_info

from notsorandom import FourierClassifier, FourierFeatures, FourierRegressor, Sphere
from notsorandom._utils.threads import n_threads, thread_pool
from notsorandom.data.rows import Rows


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2500, 3))  # several blocks
    return X, np.where(np.cos(3 * X[:, 0] + X[:, 1]) > 0, "yes", "no")


MODELS = {
    "classifier": FourierClassifier(20),
    "three classes": FourierClassifier(20),
    "chosen smoothing": FourierClassifier(8, smoothing="auto"),
    "stopping": FourierClassifier("auto", max_components=30),
    "reweighted": FourierClassifier(12, solver="reweight"),
    "paired": FourierFeatures(20, phase="paired"),
    "regressor": FourierRegressor(20),
    "harmonic": FourierClassifier(12, space=Sphere(normalize=True)),
    "zonal": FourierFeatures(12, space=Sphere("zonal", normalize=True)),
    "sparse": FourierClassifier(12),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", MODELS)
def test_number_of_jobs_does_not_change_the_model(name, dtype, data, quick_smoothing):
    X, y = data[0].astype(dtype), data[1]
    if name == "three classes":
        y = np.arange(len(y)) % 3
    elif name == "regressor":
        y = X[:, 0]
    elif name == "sparse":
        X = sparse.csr_array(np.maximum(X, 0))
    fitted = {}
    for n_jobs in (1, 3):
        smoothing = quick_smoothing if name == "chosen smoothing" else 0.06
        model = clone(MODELS[name]).set_params(n_jobs=n_jobs, random_state=0, smoothing=smoothing)
        fitted[n_jobs] = dict(vars(model.fit(X, y)))
        predict = model.transform if hasattr(model, "transform") else model.predict
        fitted[n_jobs]["predictions"] = predict(X)
    for n_jobs in (3,):
        for part in ("frequencies_", "phases_", "dual_", "coef_", "intercept_", "predictions"):
            if part in fitted[1]:
                np.testing.assert_array_equal(fitted[n_jobs][part], fitted[1][part], err_msg=part)


def test_n_jobs_none_gives_the_same_up_to_rounding(data):
    X, y = data
    plain = FourierClassifier(12, smoothing=0.06, random_state=0).fit(X, y)
    shared = FourierClassifier(12, smoothing=0.06, random_state=0, n_jobs=2).fit(X, y)
    np.testing.assert_allclose(plain.frequencies_, shared.frequencies_, rtol=1e-3, atol=1e-3)


def test_blocks_are_processed_at_the_same_time():
    """Each of two blocks waits for the other, which works with two threads only."""
    both = threading.Barrier(2, timeout=60)

    def meet(X):
        both.wait()
        return (X.sum(axis=0),)

    with thread_pool(2) as pool:
        (total,) = Rows(np.ones((64, 2)), pool=pool, block_rows=32).sum_blocks(meet)
    np.testing.assert_array_equal(total, [64, 64])


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_results_are_collected_in_order(n_jobs):
    collected = []
    with thread_pool(n_jobs) as pool:
        pool.map_ordered(lambda number: number**2, range(100), collected.append)
    assert collected == [number**2 for number in range(100)]


def test_threads_use_the_error_settings_of_the_caller():
    settings = []
    with thread_pool(2) as pool, np.errstate(divide="raise", over="ignore"):
        pool.map_ordered(lambda _: np.geterr(), range(4), settings.append)
    assert len(settings) == 4
    assert all(one["divide"] == "raise" and one["over"] == "ignore" for one in settings)


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_errors_are_raised_in_the_calling_thread(n_jobs):
    def fail(number):
        if number == 5:
            raise ValueError("the fifth")
        return number

    collected = []
    with thread_pool(n_jobs) as pool, pytest.raises(ValueError, match="the fifth"):
        pool.map_ordered(fail, range(100), collected.append)
    assert collected == list(range(len(collected)))  # in order, and none after the error
    assert len(collected) <= 5


def test_blas_uses_one_thread_in_a_pool():
    def threads():
        return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}

    before = threads()
    for n_jobs in (1, 2):
        with thread_pool(n_jobs):
            assert threads() == {1}
    with thread_pool(None) as pool:
        assert pool is None
        assert threads() == before
    assert threads() == before


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_nested_parallel_work_uses_no_more_cores(backend, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    inside = Parallel(n_jobs=2, backend=backend)(delayed(n_threads)(8) for _ in range(2))
    assert max(inside) <= max(1, cpu_count() // 2)
    assert n_threads(8) == 8


@pytest.mark.slow
def test_n_jobs_inside_a_grid_search(data):
    X, y = data[0][:400], data[1][:400]
    model = FourierClassifier(8, smoothing=0.06, random_state=0, n_jobs=2)
    search = GridSearchCV(model, {"C": [0.1, 1.0]}, cv=2, n_jobs=2).fit(X, y)
    alone = GridSearchCV(model, {"C": [0.1, 1.0]}, cv=2).fit(X, y)
    np.testing.assert_array_equal(
        search.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"]
    )


@pytest.mark.parametrize("n_jobs", [0, 1.5, "all"])
def test_bad_n_jobs(n_jobs, data):
    with pytest.raises(ValueError, match="n_jobs"):
        FourierFeatures(4, n_jobs=n_jobs).fit(*data)
