"""Threads that share the samples: the results are the same for any number of them."""

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from types import SimpleNamespace

import numpy as np
import pytest
from joblib import Parallel, cpu_count, delayed
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from threadpoolctl import threadpool_info, threadpool_limits

from notsorandom import FourierClassifier, FourierFeatures, FourierRegressor, Sphere
from notsorandom._utils import threads
from notsorandom._utils.threads import BLAS_LIMIT, BlasLimit, ThreadPool, n_threads, thread_pool
from notsorandom.data import rows
from notsorandom.data.rows import Rows
from notsorandom.kernel import LearnedKernel

pytestmark = pytest.mark.usefixtures("quick_trials")
N_FORKS = 300  # tried with 1000 too
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on Windows")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2500, 3))  # several blocks
    return X, np.where(np.cos(3 * X[:, 0] + X[:, 1]) > 0, "yes", "no")


@pytest.fixture
def shares_all(monkeypatch):
    """Threads share even the smallest work, so that small data test them."""
    monkeypatch.setattr(rows, "SHARED_WORK", 0)


@pytest.fixture
def two_blas_threads():
    with threadpool_limits(2, user_api="blas"):
        yield


def blas_threads():
    return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}


MODELS = {
    "classifier": FourierClassifier(20),
    "three classes": FourierClassifier(20),
    "chosen smoothing": FourierClassifier(8, smoothing="auto"),
    "stopping": FourierClassifier("auto", max_components=30),
    "reweighted": FourierClassifier(12, solver="reweight", C=1.0),
    "paired": FourierFeatures(20, phase="paired"),
    "regressor": FourierRegressor(20),
    "harmonic": FourierClassifier(12, space=Sphere(normalize=True)),
    "zonal": FourierFeatures(12, space=Sphere("zonal", normalize=True)),
    "sparse": FourierClassifier(12),
}


@pytest.mark.parametrize(
    ("name", "dtype"), [*((name, np.float64) for name in MODELS), ("classifier", np.float32)]
)
def test_number_of_jobs_does_not_change_the_model(name, dtype, data, shares_all, two_blas_threads):
    X, y = data[0].astype(dtype), data[1]
    if name == "three classes":
        y = np.arange(len(y)) % 3
    elif name == "regressor":
        y = X[:, 0]
    elif name == "sparse":
        X = sparse.csr_array(np.maximum(X, 0))
    smoothing = "auto" if name == "chosen smoothing" else 0.06
    models = [
        clone(MODELS[name]).set_params(n_jobs=n_jobs, random_state=0, smoothing=smoothing).fit(X, y)
        for n_jobs in (1, 3, *([None] if name == "classifier" else []))
    ]
    for part in ("frequencies_", "phases_", "dual_", "coef_", "intercept_"):
        first, *others = (getattr(model, part, None) for model in models)
        for other in others:
            np.testing.assert_array_equal(other, first, err_msg=part)


@pytest.fixture(scope="module")
def fitted(data):
    settings = {"smoothing": 0.06, "random_state": 0}
    X, y = data
    return {
        "transform": FourierFeatures(20, **settings).fit(X, y),
        "predict": FourierRegressor(20, **settings).fit(X, X[:, 0]),
        "decision_function": FourierClassifier(20, **settings).fit(X, y),
    }


@pytest.mark.parametrize("make", [np.asarray, np.float32, sparse.csr_array])
@pytest.mark.parametrize("method", ["transform", "predict", "decision_function"])
def test_number_of_jobs_does_not_change_predictions(method, make, fitted, data, shares_all):
    model, X = fitted[method], make(data[0])
    results = [getattr(model.set_params(n_jobs=n_jobs), method)(X) for n_jobs in (None, 1, 2)]
    np.testing.assert_array_equal(results[1], results[0])
    np.testing.assert_array_equal(results[2], results[0])


@pytest.mark.parametrize("method", ["transform", "predict", "decision_function"])
def test_predictions_use_the_threads(method, fitted, data, monkeypatch, shares_all):
    """Two of three blocks wait for each other, which works with two threads only."""
    both = threading.Barrier(2, timeout=60)
    met = threading.Event()
    plain = LearnedKernel.wave_map

    def wave_map(self, dtype):
        def meet(block):
            if not met.is_set():
                both.wait()
                met.set()
            return plain(self, dtype)(block)

        return meet

    monkeypatch.setattr(LearnedKernel, "wave_map", wave_map)
    getattr(fitted[method].set_params(n_jobs=2), method)(data[0])
    assert met.is_set()


def test_blocks_are_processed_at_the_same_time(shares_all):
    """Each of two blocks waits for the other, which works with two threads only."""
    both = threading.Barrier(2, timeout=60)

    def meet(X):
        both.wait()
        return (X.sum(axis=0),)

    with thread_pool(2) as pool:
        (total,) = Rows(np.ones((64, 2)), pool=pool, block_rows=32).sum_blocks(meet)
    np.testing.assert_array_equal(total, [64, 64])


def test_threads_use_the_error_settings_of_the_caller():
    settings = []
    with thread_pool(2) as pool, np.errstate(divide="raise", over="ignore"):
        pool.map_ordered(lambda _: np.geterr(), range(4), settings.append)
    assert len(settings) == 4
    assert all(one["divide"] == "raise" and one["over"] == "ignore" for one in settings)


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_results_are_in_order_and_errors_in_the_calling_thread(n_jobs):
    collected = []
    with thread_pool(n_jobs) as pool:
        pool.map_ordered(lambda number: number**2, range(100), collected.append)
    assert collected == [number**2 for number in range(100)]

    def fail(number):
        if number == 5:
            raise ValueError("the fifth")
        return number

    collected = []
    with thread_pool(n_jobs) as pool, pytest.raises(ValueError, match="the fifth"):
        pool.map_ordered(fail, range(100), collected.append)
    assert collected == list(range(len(collected)))  # in order, and none after the error
    assert len(collected) <= 5


def test_nested_sharing_ends():
    """Threads that all share work of their own don't wait for each other."""
    collected = []
    with thread_pool(3) as pool:

        def inner(number):
            found = []
            pool.map_ordered(lambda other: number * other, range(10), found.append)
            return sum(found)

        pool.map_ordered(inner, range(20), collected.append)
    assert collected == [45 * number for number in range(20)]


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_little_work_starts_no_threads(n_jobs, data, monkeypatch, two_blas_threads):
    monkeypatch.setattr(threads, "ThreadPoolExecutor", None)
    X, y = data[0][:1500], data[1][:1500]  # two blocks
    model = FourierClassifier(8, smoothing=0.06, random_state=0, n_jobs=n_jobs).fit(X, y)
    model.predict(X)
    with pytest.raises(TypeError):
        Rows(np.ones((40_000, 30)), pool=ThreadPool(2)).sum_blocks(lambda X: (X.sum(),))


def test_sharing_stops_while_it_is_slow(monkeypatch):
    clock, n_shared = [0.0], 0

    def slow_wait(futures):
        nonlocal n_shared
        n_shared += 1
        clock[0] += 100
        return wait(futures)

    def work(item):
        clock[0] += 1
        return item

    wait = threads.wait
    monkeypatch.setattr(threads, "wait", slow_wait)
    monkeypatch.setattr(threads, "perf_counter", lambda: clock[0])
    with thread_pool(2) as pool:
        for _ in range(320):
            collected = []
            pool.map_ordered(work, range(4), collected.append)
            assert collected == [0, 1, 2, 3]
    assert 20 <= n_shared <= 40  # at first, and then one in 16


# The number of threads of BLAS.


@pytest.mark.parametrize("n_jobs", [None, 1, 2])
def test_blas_uses_one_thread_in_a_pool(n_jobs, two_blas_threads):
    """It is restored after an error, too."""
    with suppress(RuntimeError), thread_pool(n_jobs):
        assert blas_threads() == {1}
        raise RuntimeError("inside")
    assert blas_threads() == {2}


def test_the_last_of_overlapping_users_restores_blas(two_blas_threads):
    entered, leave = threading.Event(), threading.Event()

    def use():
        with thread_pool(2):
            entered.set()
            leave.wait(10)

    other = threading.Thread(target=use)
    with thread_pool(2):
        with thread_pool(1):
            assert blas_threads() == {1}
        assert blas_threads() == {1}
        other.start()
        assert entered.wait(10)
    assert blas_threads() == {1}
    leave.set()
    other.join()
    assert blas_threads() == {2}


def test_blas_is_limited_in_a_thread_after_the_first(two_blas_threads):
    found = []

    def use():
        with thread_pool(1):
            found.append(blas_threads())

    use()  # threadpoolctl would let only this thread set the number from now on
    other = threading.Thread(target=use)
    other.start()
    other.join()
    assert found == [{1}, {1}]


def test_overlapping_fits_and_predictions_restore_blas(data, shares_all, two_blas_threads):
    X, y = data[0][:1500], data[1][:1500]
    model = FourierClassifier(8, smoothing=0.06, random_state=0, n_jobs=2).fit(X, y)
    expected = model.predict(X)
    at_once = threading.Barrier(4, timeout=60)

    def fit_and_predict(number):
        at_once.wait()
        other = clone(model).fit(X, y)
        if number == 3:
            other.fit(X, y[:10])
        return [model.predict(X) for _ in range(number + 1)] + [other.predict(X)]

    with ThreadPoolExecutor(4) as users:
        calls = [users.submit(fit_and_predict, number) for number in range(4)]
    assert blas_threads() == {2}
    with pytest.raises(ValueError, match="inconsistent"):
        calls[3].result()
    for call in calls[:3]:
        for predicted in call.result():
            np.testing.assert_array_equal(predicted, expected)


def fork(function):
    """Call a function in a forked process; return its result, a small number, or "hangs"."""
    process = os.fork()
    if not process:
        result = 255
        with suppress(BaseException):
            result = function()
        os._exit(result)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        done, status = os.waitpid(process, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.001)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return "hangs"


@needs_fork
def test_a_fork_waits_for_the_lock():
    """No thread of the child would release it."""
    has_lock, n_blas = threading.Event(), len(blas_threads())

    def work():
        with BLAS_LIMIT._lock:
            has_lock.set()
            time.sleep(0.3)

    def use():
        with BLAS_LIMIT.hold():
            return len(blas_threads())

    with ThreadPoolExecutor(1) as executor:
        executor.submit(work)
        assert has_lock.wait(10)
        assert fork(use) == n_blas
    assert fork(use) == n_blas


@needs_fork
def test_a_child_has_the_blas_threads_of_its_parent(two_blas_threads):
    """Also if other threads were limiting them, which the child doesn't have."""
    entered, leave = threading.Event(), threading.Event()

    def work():
        with BLAS_LIMIT.hold():
            entered.set()
            leave.wait(30)

    def use():
        before = blas_threads()
        with BLAS_LIMIT.hold():
            inside = blas_threads()
        return 10 * (before == blas_threads() == {2}) + (inside == {1})

    def largest():
        return max(blas_threads())

    with ThreadPoolExecutor(1) as executor:
        executor.submit(work)
        assert entered.wait(10)
        try:
            assert fork(use) == 11
            with BLAS_LIMIT.hold():  # in the thread that forks: the child is inside too
                assert fork(largest) == 1
        finally:
            leave.set()
    assert blas_threads() == {2}


@needs_fork
@pytest.mark.slow
def test_forks_beside_threads_that_predict(fitted, data, two_blas_threads):
    """Without a handler, 6 of 331 children hung, and those of a fit had one BLAS thread."""
    model, rows, stop = fitted["predict"], data[0], threading.Event()

    def work():
        while not stop.is_set():
            model.predict(rows)

    def use():
        n_threads = max(blas_threads())
        return n_threads * (len(model.predict(rows)) == len(rows) and max(blas_threads()) == 2)

    with ThreadPoolExecutor(3) as executor:
        for _ in range(3):
            executor.submit(work)
        try:
            assert [fork(use) for _ in range(N_FORKS)] == [2] * N_FORKS
        finally:
            stop.set()


class FakeBlas(SimpleNamespace):
    """A BLAS library with a setting of the process, or of each thread."""

    def __init__(self, filepath, internal_api="openblas"):
        super().__init__(filepath=filepath, internal_api=internal_api)
        per_thread = internal_api == "mkl"
        self.setting = threading.local() if per_thread else SimpleNamespace()

    def get_num_threads(self):
        return getattr(self.setting, "number", 4)

    def set_num_threads(self, number):
        self.setting.number = number


def make_limit(libraries, monkeypatch):
    limit = BlasLimit()
    monkeypatch.setattr(limit, "_loaded", lambda: libraries)
    return limit


def test_libraries_that_are_loaded_later_are_limited(monkeypatch):
    libraries = [FakeBlas("early")]
    limit = make_limit(libraries, monkeypatch)
    with limit.hold() as before:
        assert before == 4
        libraries.append(FakeBlas("late"))
        with limit.hold() as before:
            assert before == 4  # not the limit
            assert [library.get_num_threads() for library in libraries] == [1, 1]
        assert [library.get_num_threads() for library in libraries] == [1, 1]
    assert [library.get_num_threads() for library in libraries] == [4, 4]


def test_libraries_are_looked_for_after_imports(monkeypatch):
    limit = BlasLimit()
    found = [limit._loaded()]
    assert limit._loaded() is found[0]
    monkeypatch.setitem(threads.sys.modules, "module_of_a_test", None)
    assert limit._loaded() is not found[0]


def test_libraries_with_a_setting_per_thread(monkeypatch):
    """Every user limits its own thread and the threads that it starts."""
    library = FakeBlas("mkl", "mkl")
    limit = make_limit([library], monkeypatch)
    monkeypatch.setattr(threads, "BLAS_LIMIT", limit)

    def inside():
        numbers = []
        with thread_pool(2) as pool:
            both = threading.Barrier(2, timeout=60)
            pool.map_ordered(
                lambda _: (both.wait(), library.get_num_threads())[1], range(2), numbers.append
            )
        return [*numbers, library.get_num_threads()]

    with limit.hold(), ThreadPoolExecutor(1) as users:
        assert users.submit(inside).result() == [1, 1, 4]
        assert library.get_num_threads() == 1
    assert library.get_num_threads() == 4


def test_small_predictions_leave_blas_alone(fitted, data, monkeypatch):
    monkeypatch.setattr(BLAS_LIMIT, "hold", None)
    for method, model in fitted.items():
        getattr(model, method)(data[0][:1])
        with pytest.raises(TypeError):
            getattr(model, method)(data[0])


# The number of threads.


def test_default_is_as_many_threads_as_blas_would_use(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(threads, "effective_n_jobs", lambda n_jobs: 8 if n_jobs == -1 else n_jobs)
    for number in (1, 2):
        with threadpool_limits(number, user_api="blas"), thread_pool(None) as pool:
            assert pool.n_threads == number
            with thread_pool(None) as nested:
                assert nested.n_threads == number
    assert ThreadPool(None, 16).n_threads == 8
    monkeypatch.setenv("OMP_NUM_THREADS", "3,1")
    assert ThreadPool(None, 16).n_threads == 3
    assert ThreadPool(5, 16).n_threads == 5


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_nested_parallel_work_uses_no_more_cores(backend, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    inside = Parallel(n_jobs=2, backend=backend)(delayed(n_threads)(8) for _ in range(2))
    assert max(inside) <= max(1, cpu_count() // 2)
    assert n_threads(8) == 8


@pytest.mark.slow
@pytest.mark.full_trials  # workers have no others
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
