"""The multinomial logistic model, against scikit-learn, duality and its own laws."""

import tracemalloc
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
import reference
from scipy.special import log_softmax, softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from notsorandom import FourierClassifier
from notsorandom._utils.threads import thread_pool
from notsorandom.data.rows import Rows
from notsorandom.game import LOSSES, Problem
from notsorandom.game.problem import signs_from_codes
from notsorandom.linear import softmax_rows
from notsorandom.linear.fit import fit_linear_models
from notsorandom.linear.softmax import solve_features, solve_softmax
from notsorandom.linear.softmax_pass import SoftmaxPass, evaluate
from notsorandom.linear.softmax_step import conjugate_gradients

N_FEATURES = 9


@dataclass(frozen=True)
class CountingRows(Rows):
    """Rows that count passes."""

    passes: list = field(default_factory=list)

    def sum_blocks(self, function, *columns, **settings):
        if isinstance(function, SoftmaxPass):
            self.passes.append(len(self))
        return super().sum_blocks(function, *columns, **settings)


def same_features(_):
    return lambda X: X


def make_problem(
    rng, n_classes=4, n_samples=300, C=1.0, noise=1.0, weighted=False, dtype=np.float64
):
    X = rng.standard_normal((n_samples, N_FEATURES)) / np.sqrt(N_FEATURES) + 0.3
    scores = 5 * X @ rng.standard_normal((N_FEATURES, n_classes)) + rng.normal(size=n_classes)
    codes = (scores + noise * rng.gumbel(size=scores.shape)).argmax(axis=1)
    codes[:n_classes] = np.arange(n_classes)
    weights = rng.uniform(0.2, 3, size=(n_samples, 1)).astype(dtype) if weighted else None
    rows = CountingRows(X.astype(dtype), weights, block_rows=50)
    return Problem(LOSSES["logistic"].times(C), signs_from_codes(codes, n_classes, dtype), rows)


def solve(problem, tol=1e-3, **settings):
    """Solve with the rows as features."""
    return solve_softmax(problem, same_features, problem.rows.n_features, tol, **settings)


def objective(problem, coef, intercept):
    """The primal objective, in float64."""
    scores = problem.rows.array.astype(np.float64) @ coef.T + intercept
    losses = -log_softmax(scores, axis=1)[problem.targets > 0]
    return 0.5 * np.square(coef).sum() + problem.loss.upper * problem.counts @ losses


def optimum(problem):
    """Optimal model and value, by scikit-learn."""
    C, codes = problem.loss.upper, problem.strata()
    theirs = LogisticRegression(C=C, tol=1e-10, max_iter=100_000).fit(
        problem.rows.array.astype(np.float64), codes, problem.counts
    )
    return theirs, objective(problem, theirs.coef_, theirs.intercept_)


def dual_value(problem, probabilities):
    """The dual objective, and how much the constraint of the intercepts is violated."""
    C, counts = problem.loss.upper, problem.counts
    measure = C * counts[:, None] * ((problem.targets > 0) - probabilities)
    entropies = -np.where(probabilities > 0, probabilities * np.log(probabilities), 0).sum(axis=1)
    square = np.square(measure.T @ problem.rows.array).sum()
    return C * counts @ entropies - 0.5 * square, np.abs(measure.sum(axis=0)).max()


@pytest.mark.parametrize("C", [0.03, 1.0, 30.0, 3000.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_agrees_with_scikit_learn(rng, C, weighted):
    problem = make_problem(rng, C=C, weighted=weighted)
    coef, intercept, gap = solve(problem, 1e-8)
    theirs, value = optimum(problem)
    assert gap <= 1e-8
    assert objective(problem, coef, intercept) == pytest.approx(value, rel=1e-7)
    np.testing.assert_allclose(coef, theirs.coef_, atol=2e-3 * np.abs(coef).max())
    centred = theirs.intercept_ - theirs.intercept_.mean()
    np.testing.assert_allclose(intercept, centred, atol=2e-3 * np.abs(coef).max())


@pytest.mark.parametrize("n_classes", [3, 40])
@pytest.mark.parametrize("noise", [0.0, 1.0])
@pytest.mark.parametrize("C", [0.03, 1.0, 3000.0])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_gap_bounds_the_distance_from_the_optimum(rng, n_classes, noise, C, dtype):
    """Also for separable classes."""
    problem = make_problem(rng, n_classes, 400, C, noise, weighted=True, dtype=dtype)
    coef, intercept, gap = solve(problem)
    _, value = optimum(problem)
    assert 0 < gap <= 1e-3
    assert (1 - 1e-6) * value <= objective(problem, coef, intercept) <= value / (1 - gap)
    np.testing.assert_allclose(coef.sum(axis=0), 0, atol=1e-9 * np.abs(coef).max())
    assert intercept.mean() == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("size", [1e-3, 1e-2, 0.1])
@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
def test_weak_duality_and_the_feasible_point(rng, size, C):
    """The corrected probabilities are feasible, and their dual value is at least the bound."""
    problem = make_problem(rng, C=C, weighted=True)
    coef, intercept, _ = solve(problem, 1e-8)
    _, value = optimum(problem)
    model = np.column_stack([coef, intercept])
    model += size * rng.standard_normal(model.shape)
    result = evaluate(problem, lambda X: X, N_FEATURES, np.float64, model)
    assert result.primal == pytest.approx(objective(problem, model[:, :-1], model[:, -1]))
    probabilities = softmax(problem.rows.array @ model[:, :-1].T + model[:, -1], axis=1)
    step = result.intercept_step
    changes = step - probabilities @ step[:, None]
    dual, violation = dual_value(problem, probabilities * (1 + changes))
    assert np.ptp(step) <= 1
    assert violation <= 1e-9 * C * problem.total_weight
    assert result.primal - result.absolute_gap <= dual + 1e-9 * value
    assert dual <= value * (1 + 1e-9)
    assert result.coef_gap <= result.absolute_gap


def test_no_bound_where_the_point_is_not_feasible(rng):
    problem = make_problem(rng)
    model = np.zeros((4, N_FEATURES + 1))
    model[0, -1] = 10.0
    assert evaluate(problem, lambda X: X, N_FEATURES, np.float64, model).gap == np.inf


def test_gradient(rng):
    problem = make_problem(rng, C=3.0, weighted=True)
    model = rng.standard_normal((4, N_FEATURES + 1))

    def value(flat):
        each = flat.reshape(model.shape)
        return objective(problem, each[:, :-1], each[:, -1])

    result = evaluate(problem, lambda X: X, N_FEATURES, np.float64, model)
    slopes = reference.gradient(value, model.ravel(), step=1e-5).reshape(model.shape)
    np.testing.assert_allclose(result.gradient, slopes, rtol=1e-5, atol=1e-4)


def test_weight_two_counts_as_two_rows(rng):
    problem = make_problem(rng, C=3.0)
    counts = rng.integers(1, 3, size=300)
    twice = problem.take(np.repeat(np.arange(300), counts))
    rows = replace(problem.rows, weights=counts[:, None].astype(float))
    weighted = solve(replace(problem, rows=rows), 1e-9)
    for one, other in zip(weighted[:2], solve(twice, 1e-9)[:2], strict=True):
        np.testing.assert_allclose(one, other, atol=1e-3)


def test_weights_of_large_ratios(rng):
    problem = make_problem(rng, C=3.0, dtype=np.float32)
    weights = (10.0 ** rng.uniform(-6, 3, size=(300, 1))).astype(np.float32)
    problem = replace(problem, rows=replace(problem.rows, weights=weights))
    coef, intercept, gap = solve(problem)
    _, value = optimum(problem)
    assert gap <= 1e-3
    assert objective(problem, coef, intercept) <= value / (1 - gap)


def test_sample_that_tells_little(rng):
    """A few rows have nearly all the weight, and a sample lacks them."""
    problem = make_problem(rng, n_samples=1000, C=10.0)
    weights = (10.0 ** rng.uniform(-4, 4, size=(1000, 1))).astype(np.float64)
    problem = replace(problem, rows=replace(problem.rows, weights=weights))
    coef, intercept, gap = solve(problem, sample_rows=60)
    _, value = optimum(problem)
    assert gap <= 1e-3
    assert objective(problem, coef, intercept) <= value / (1 - gap)


def test_sample_of_fewer_rows_than_features(rng):
    problem = make_problem(rng, n_classes=3, n_samples=200, C=10.0)
    X = np.concatenate([problem.rows.array, rng.standard_normal((200, 60))], axis=1)
    problem = replace(problem, rows=replace(problem.rows, array=X))
    coef, intercept, gap = solve(problem, sample_rows=40)
    _, value = optimum(problem)
    assert gap <= 1e-3
    assert objective(problem, coef, intercept) <= value / (1 - gap)


@pytest.mark.parametrize("sample_rows", [60, 600])
def test_passes_hold_no_samples(rng, sample_rows):
    """They may be sent to another process, also those of the Hessian of all rows."""
    cloudpickle = pytest.importorskip("cloudpickle", reason="needs cloudpickle: pip install dask")
    sizes = []

    class SentRows(Rows):
        def sum_blocks(self, function, *columns, **settings):
            sent = cloudpickle.dumps(function)
            sizes.append(len(sent))
            return super().sum_blocks(cloudpickle.loads(sent), *columns, **settings)

    problem = make_problem(rng, n_samples=5000, C=10.0)
    weights = 10.0 ** rng.uniform(-4, 4, size=(5000, 1))
    rows = SentRows(problem.rows.array, weights)
    assert solve(replace(problem, rows=rows), sample_rows=sample_rows)[2] <= 1e-3
    assert 0 < max(sizes) < 10_000


def test_order_of_the_classes_does_not_matter(rng):
    problem = make_problem(rng, n_classes=3, C=3.0)
    order = [2, 0, 1]
    coef, intercept, _ = solve(problem, 1e-9)
    permuted = solve(replace(problem, targets=problem.targets[:, order]), 1e-9)
    np.testing.assert_allclose(permuted[0], coef[order], atol=1e-4)
    np.testing.assert_allclose(permuted[1], intercept[order], atol=1e-4)


@pytest.mark.parametrize("C", [1.0, 300.0])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_passes_agree_with_memory(rng, C, dtype, noise):
    """The Hessian is that of a sample; the optimum is that of all rows."""
    problem = make_problem(rng, n_samples=2000, C=C, dtype=dtype, weighted=True, noise=noise)
    expected = solve_features(problem.rows.array, problem, 1e-6)
    problem.rows.passes.clear()
    coef, intercept, gap = solve(problem, 1e-6, sample_rows=300)
    assert gap <= 1e-6
    assert 2000 in problem.rows.passes
    np.testing.assert_allclose(coef, expected[0], atol=3e-3 * np.abs(coef).max())
    np.testing.assert_allclose(intercept, expected[1], atol=3e-3 * np.abs(coef).max())


def test_start_from_a_sample_saves_passes(rng):
    problem = make_problem(rng, n_samples=4000)
    solve(problem, sample_rows=1000)
    assert len([n for n in problem.rows.passes if n == 4000]) <= 10


def test_class_that_the_sample_lacks(rng):
    problem = make_problem(rng, n_samples=2000)
    codes = problem.strata().astype(int) % 3
    codes[:2] = 3
    problem = replace(problem, targets=signs_from_codes(codes, 4, np.float64))
    coef, intercept, gap = solve(problem, sample_rows=200)
    _, value = optimum(problem)
    assert gap <= 1e-3
    assert objective(problem, coef, intercept) <= value / (1 - gap)


def test_blocks_and_threads_do_not_change_the_solution(rng):
    problem = make_problem(rng, n_samples=2000, weighted=True)
    expected = solve(problem, sample_rows=300)
    rows = replace(problem.rows, block_rows=512)
    for one, other in zip(
        solve(replace(problem, rows=rows), sample_rows=300), expected, strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)
    with thread_pool(3) as pool:
        result = solve(replace(problem, rows=replace(problem.rows, pool=pool)), sample_rows=300)
    for one, other in zip(result, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("n_samples", [6, 30])
def test_fewer_rows_than_features(rng, n_samples):
    problem = make_problem(rng, n_classes=3, n_samples=n_samples, C=10.0, weighted=True)
    X = np.concatenate([problem.rows.array, rng.standard_normal((n_samples, 60))], axis=1)
    X[:, 3] = 1.0  # a constant feature
    problem = replace(problem, rows=replace(problem.rows, array=X))
    coef, intercept, gap = solve(problem)
    _, value = optimum(problem)
    assert gap <= 1e-3
    assert (1 - 1e-6) * value <= objective(problem, coef, intercept) <= value / (1 - gap)


def test_no_features_of_use(rng):
    """Constant features leave the classes' shares, by the intercepts."""
    problem = make_problem(rng)
    problem = replace(problem, rows=replace(problem.rows, array=np.ones((300, 2))))
    coef, intercept, gap = solve(problem)
    shares = np.bincount(problem.strata()) / 300
    assert gap <= 1e-3
    np.testing.assert_allclose(softmax(coef.sum(axis=1) + intercept), shares, rtol=1e-3)


@pytest.mark.parametrize("C", [1e12, 1e39])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_unreachable_tolerance_gives_a_finite_model(rng, C, dtype):
    problem = make_problem(rng, C=C, noise=0.0, dtype=dtype)
    coef, intercept, _ = solve(problem, 1e-15)
    assert np.isfinite(coef).all()
    assert np.isfinite(intercept).all()


def test_float64_is_used_where_float32_is_not_enough(rng):
    """The gap is quadratic in the error of the gradient, so float32 is enough for much."""
    problem = make_problem(rng, dtype=np.float32)
    dtypes = []

    def recording_map(dtype):
        dtypes.append(np.dtype(dtype))
        return lambda X: X

    coef, intercept, gap = solve_softmax(problem, recording_map, N_FEATURES, 1e-18)
    assert gap <= 1e-18
    assert dtypes == [np.float32, np.float64]
    assert objective(problem, coef, intercept) == pytest.approx(optimum(problem)[1], rel=1e-9)


@pytest.mark.parametrize("C", [1.0, 3000.0])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_heaviest", [3, 100])
def test_rows_of_the_preconditioner_do_not_change_the_optimum(
    rng, monkeypatch, C, dtype, n_heaviest
):
    monkeypatch.setattr(softmax_rows, "WIDE", 5)
    monkeypatch.setattr(softmax_rows, "N_HEAVIEST", n_heaviest)
    problem = make_problem(rng, 4, 400, C, weighted=True, dtype=dtype)
    coef, intercept, gap = solve(problem)
    _, value = optimum(problem)
    assert 0 < gap <= 1e-3
    assert (1 - 1e-6) * value <= objective(problem, coef, intercept) <= value / (1 - gap)


def test_rows_of_the_preconditioner_save_products(rng, monkeypatch):
    """Where rows of large curvature are few and in different directions in every class."""
    problem = make_problem(rng, 10, 1000, C=1000.0, dtype=np.float32)
    X = np.concatenate([problem.rows.array, rng.standard_normal((1000, 60)) / 8], axis=1)
    problem = replace(problem, rows=replace(problem.rows, array=X.astype(np.float32)))
    counts = []

    def counting(product, *arguments):
        def counted(step):
            counts[-1] += 1
            return product(step)

        return conjugate_gradients(counted, *arguments)

    monkeypatch.setattr(softmax_rows, "conjugate_gradients", counting)
    for wide in (1000, 10):
        monkeypatch.setattr(softmax_rows, "WIDE", wide)
        counts.append(0)
        assert solve(problem)[2] <= 1e-3
    assert counts[1] < 0.7 * counts[0]


@pytest.mark.usefixtures("quick_trials")
class TestEstimator:
    def fit(self, rng, **settings):
        problem = make_problem(rng, n_classes=3)
        X, y = problem.rows.array, problem.strata()
        model = FourierClassifier(12, random_state=0, **({"C": 3.0} | settings))
        return model.fit(X, y), X, y

    def test_final_model_is_that_of_scikit_learn(self, rng):
        model, X, y = self.fit(rng)
        theirs = LogisticRegression(C=3.0, tol=1e-8, max_iter=10_000)
        theirs.fit(model.features_.transform(X), y)
        expected = theirs.decision_function(model.features_.transform(X))
        scores = model.decision_function(X)
        scores -= scores.mean(axis=1, keepdims=True)
        np.testing.assert_allclose(scores, expected, atol=0.05 * np.abs(expected).max())
        assert model.coef_.shape == (3, 12)
        assert model.duality_gap_ <= 1e-3

    def test_features_need_not_be_held(self, rng):
        model, X, y = self.fit(rng)
        targets = signs_from_codes(y, 3, np.float64)
        problem = Problem(LOSSES["logistic"].times(3.0), targets, Rows(X))
        solved = []
        held, streamed = (
            fit_linear_models(model.kernel_, problem, 1e-8, solved.append, feature_bytes=n_bytes)
            for n_bytes in (2**28, 0)
        )
        np.testing.assert_allclose(held.coef, streamed.coef, atol=1e-3 * np.abs(held.coef).max())
        assert solved == [3, 3]

    def test_large_gap_warns(self, rng):
        with pytest.warns(ConvergenceWarning, match="try a smaller C"):
            self.fit(rng, C=1e25)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_samples(rng):
    peaks = []
    for n_samples in (20_000, 80_000):
        problem = make_problem(rng, n_samples=n_samples, weighted=True)
        problem = replace(problem, rows=replace(problem.rows, block_rows=1024))
        tracemalloc.start()
        solve(problem, sample_rows=1000)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # One more number per sample would be a difference of 480 kB.
    assert peaks[1] - peaks[0] < 200_000
