"""Threads that share the samples: what comes of it is the same, however many there are."""

import threading
import time

import numpy as np
import pytest
from joblib import Parallel, cpu_count, delayed
from scipy import sparse
from sklearn.model_selection import GridSearchCV
from threadpoolctl import threadpool_info

from notsorandom import FourierClassifier, FourierFeatures, FourierRegressor, Sphere
from notsorandom._utils.threads import number_of_workers, working
from notsorandom.data.rows import Rows


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks so small that a few hundred samples are many of them."""
    monkeypatch.setattr("notsorandom.data.rows.BLOCK_ROWS", (16, 32))


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 3))
    return X, np.where(np.cos(3 * X[:, 0] + X[:, 1]) > 0, "yes", "no")


MODELS = {
    "classifier": FourierClassifier(20),
    "three classes": FourierClassifier(20),
    "chosen smoothing": FourierClassifier(8, smoothing="auto"),
    "stopping": FourierClassifier(30, early_stopping=True),
    "reweighted": FourierClassifier(12, reweight=True),
    "paired": FourierFeatures(20, phase="paired"),
    "regressor": FourierRegressor(20),
    "harmonic": FourierClassifier(12, space=Sphere(normalize=True)),
    "zonal": FourierFeatures(12, space=Sphere("zonal", normalize=True)),
    "sparse": FourierClassifier(12),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", MODELS)
def test_any_number_of_jobs_gives_the_same_model(name, dtype, data, small_blocks, short_trials):
    X, y = data[0].astype(dtype), data[1]
    if name == "three classes":
        y = np.arange(len(y)) % 3
    elif name == "regressor":
        y = X[:, 0]
    elif name == "sparse":
        X = sparse.csr_array(np.maximum(X, 0))
    fitted = {}
    for n_jobs in (1, 2, 5):
        model = MODELS[name].set_params(n_jobs=n_jobs, random_state=0)
        if name != "chosen smoothing":
            model.set_params(smoothing=0.06)
        fitted[n_jobs] = dict(vars(model.fit(X, y)))
        ask = model.transform if hasattr(model, "transform") else model.predict
        fitted[n_jobs]["answers"] = ask(X)
    for n_jobs in (2, 5):
        for part in ("frequencies_", "phases_", "dual_", "coef_", "intercept_", "answers"):
            if part in fitted[1]:
                np.testing.assert_array_equal(fitted[n_jobs][part], fitted[1][part], err_msg=part)


def test_without_jobs_it_is_the_same_up_to_rounding(data):
    X, y = data
    plain = FourierClassifier(12, smoothing=0.06, random_state=0).fit(X, y)
    shared = FourierClassifier(12, smoothing=0.06, random_state=0, n_jobs=2).fit(X, y)
    np.testing.assert_allclose(plain.frequencies_, shared.frequencies_, rtol=1e-3, atol=1e-3)


def test_blocks_are_really_shared(small_blocks):
    """Two of them are under way at once."""
    both = threading.Barrier(2, timeout=10)
    rows = Rows(np.ones((64, 2)))

    def meet(X):
        both.wait()
        return (X.sum(axis=0),)

    with working(2) as workers:
        (total,) = Rows(rows.array, workers=workers).add(meet)
    np.testing.assert_array_equal(total, [64, 64])


def test_results_come_in_order_and_few_are_made_ahead():
    started = []

    def slow(number):
        started.append(number)
        time.sleep(0.001 * (number % 3))
        return number

    with working(3) as workers:
        for place, number in enumerate(workers.each(slow, range(100))):
            assert number == place
            assert len(started) <= place + 2 * 3 + 2


def test_threads_mind_what_errors_are_to_be_ignored():
    with working(2) as workers, np.errstate(divide="raise", over="ignore"):
        found = list(workers.each(lambda number: np.geterr(), range(4)))
    assert all(each["divide"] == "raise" and each["over"] == "ignore" for each in found)


def test_an_error_is_raised_where_it_happened():
    def fail(number):
        if number == 5:
            raise ValueError("the fifth")
        return number

    with working(2) as workers, pytest.raises(ValueError, match="the fifth"):
        list(workers.each(fail, range(100)))


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_together_in_order_and_little_ahead(n_jobs):
    taken, alive, most = [], set(), []

    def make(item):
        alive.add(item)
        most.append(len(alive))
        time.sleep(0.001)
        return item

    def take(item):
        alive.discard(item)
        taken.append(item)

    with working(n_jobs) as workers:
        workers.together(make, range(100), take)
    assert taken == list(range(100))
    assert max(most) <= 3 * n_jobs


def test_an_error_of_another_thread_ends_it_all():
    main, made = threading.get_ident(), []

    def fail(item):
        if threading.get_ident() != main:
            raise ValueError("elsewhere")
        made.append(item)
        time.sleep(0.005)

    with working(2) as workers, pytest.raises(ValueError, match="elsewhere"):
        workers.together(fail, range(200), lambda _: None)
    assert len(made) < 100


def test_matrix_products_have_one_thread_each():
    def threads():
        return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}

    before = threads()
    for n_jobs in (1, 2):
        with working(n_jobs):
            assert threads() == {1}
    with working(None) as workers:
        assert workers is None
        assert threads() == before
    assert threads() == before


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_parallel_work_inside_other_parallel_work_takes_no_more_cores(backend, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    inside = Parallel(n_jobs=2, backend=backend)(delayed(number_of_workers)(8) for _ in range(2))
    assert max(inside) <= max(1, cpu_count() // 2)
    assert number_of_workers(8) == 8


def test_inside_a_grid_search(data):
    X, y = data[0][:400], data[1][:400]
    model = FourierClassifier(8, smoothing=0.06, random_state=0, n_jobs=2)
    search = GridSearchCV(model, {"C": [0.1, 1.0]}, cv=2, n_jobs=2).fit(X, y)
    alone = GridSearchCV(model, {"C": [0.1, 1.0]}, cv=2).fit(X, y)
    np.testing.assert_array_equal(
        search.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"]
    )


@pytest.mark.parametrize("n_jobs", [0, 1.5, "all"])
def test_bad_numbers(n_jobs, data):
    with pytest.raises(ValueError, match="n_jobs"):
        FourierFeatures(4, n_jobs=n_jobs).fit(*data)
