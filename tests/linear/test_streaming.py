"""The linear model solved in passes over the rows, against general solvers and its own laws."""

import tracemalloc
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
import reference
from scipy import sparse

from notsorandom import FourierFeatures
from notsorandom._utils.threads import thread_pool
from notsorandom.data.rows import Rows
from notsorandom.game import CLASSIFICATION_LOSSES, LOSSES, Problem
from notsorandom.linear.newton import solve_tasks
from notsorandom.linear.passes import STEP_FRACTIONS, BlockPass, Iterate, PassResult
from notsorandom.linear.streaming import DualityBracket, run_passes, solve_streaming

N_FEATURES = 12
MIXING = np.random.default_rng(5).standard_normal((3, N_FEATURES))


@dataclass(frozen=True)
class CountingRows(Rows):
    """Rows that record how many tasks took part in each pass."""

    passes: list = field(default_factory=list)

    def sum_blocks(self, function, *columns, **settings):
        if isinstance(function, BlockPass):
            self.passes.append(len(function.iterates))
        return super().sum_blocks(function, *columns, **settings)


def feature_map(dtype):
    mixing = MIXING.astype(dtype)
    return lambda block: np.cos(block @ mixing)


def make_problem(
    rng, loss, n_samples=400, n_tasks=1, weighted=False, dtype=np.float64, C=1.0, block_rows=50
):
    X = rng.standard_normal((n_samples, 3))
    values = np.cos(X @ MIXING[:, :n_tasks]) + 0.3 * rng.standard_normal((n_samples, n_tasks))
    targets = np.where(values > 0, 1.0, -1.0) if loss in CLASSIFICATION_LOSSES else values
    weights = rng.uniform(0.2, 3, size=(n_samples, 1)).astype(dtype) if weighted else None
    rows = CountingRows(X.astype(dtype), weights, block_rows=block_rows)
    return Problem(LOSSES[loss].times(C), targets.astype(dtype), rows)


def solve(problem, tol=1e-3, features=feature_map, n_features=N_FEATURES, **settings):
    """Solve with a sample that is smaller than the data, so that there are passes."""
    settings = {"sample_rows": 100} | settings
    return solve_streaming(problem, features, n_features, tol, **settings)


def objectives(problem, coef, intercept, features=feature_map):
    """Primal objective of each task in float64."""
    features = features(np.float64)(problem.rows.array.astype(np.float64))
    targets = problem.targets.astype(np.float64)
    residuals = targets - (features @ coef.T + intercept)
    losses = problem.loss.values(residuals, *problem.loss.box(targets))
    weights = 1 if problem.weights is None else problem.weights.astype(np.float64)
    return 0.5 * np.square(coef).sum(axis=1) + (weights * losses).sum(axis=0)


def optima(problem, loss, C=1.0, features=feature_map):
    """Optimal value of each task by a general solver."""
    features = features(np.float64)(problem.rows.array.astype(np.float64))
    weights = None if problem.weights is None else problem.weights[:, 0]
    values = [
        reference.linear_model_value(features, targets, loss, C, weights)
        for targets in problem.targets.T
    ]
    return np.array(values)


def assert_close(solution, expected, rtol=1e-8):
    """Compare coefficients and intercepts."""
    for part, expected_part in zip(solution[:2], expected[:2], strict=True):
        np.testing.assert_allclose(part, expected_part, rtol=rtol, atol=1e-8)


def run_pass(problem, iterate):
    block_pass = BlockPass(
        feature_map(np.float64), np.float64, problem.loss, np.array([0]), (iterate,)
    )
    sums = problem.rows.sum_blocks(block_pass, problem.targets, *problem.rows.weight_columns)
    return PassResult(iterate, *(part[0] for part in sums))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_gap_bounds_the_distance_to_the_optimum(rng, loss, weighted, dtype, C):
    problem = make_problem(rng, loss, n_tasks=2, weighted=weighted, dtype=dtype, C=C)
    coef, intercept, gap = solve(problem)
    assert coef.shape == (2, N_FEATURES)
    assert intercept.shape == (2,)
    assert gap <= 1e-3
    values, optimum = objectives(problem, coef, intercept), optima(problem, loss, C)
    rounding = 1e-7 if dtype is np.float64 else 1e-5
    assert ((values - optimum) / values).max() <= gap + rounding
    assert (values >= optimum * (1 - rounding)).all()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("weighted", [False, True])
def test_every_pass_bounds_the_optimum_from_both_sides(rng, loss, weighted):
    """At any model, near the optimum or not, for any smoothing."""
    problem = make_problem(rng, loss, weighted=weighted)
    (optimum,) = optima(problem, loss)
    for scale in (0.0, 0.1, 1.0, 30.0):
        for curvature in problem.loss.smoothing_schedule()[:6]:
            coef = scale * rng.standard_normal(N_FEATURES)
            iterate = Iterate(coef, float(scale * rng.standard_normal()), curvature)
            result = run_pass(problem, iterate)
            (value,) = objectives(problem, coef[None], iterate.intercept)
            np.testing.assert_allclose(result.primal, value, rtol=1e-10)
            bound = result.dual_bound(problem.loss, problem.loss.curvature)
            assert bound <= optimum * (1 + 1e-7) <= value * (1 + 2e-7)
            assert result.dual_bound(problem.loss, curvature) <= result.smoothed_primal
            assert result.smoothed_primal <= value * (1 + 1e-12)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("weighted", [False, True])
def test_gradient_and_slopes_of_the_objective(rng, loss, weighted):
    problem = make_problem(rng, loss, weighted=weighted)
    base = Iterate(rng.standard_normal(N_FEATURES), 0.3, problem.loss.smoothing_schedule()[0])
    step = rng.standard_normal(N_FEATURES + 1)
    slopes = run_pass(problem, base.advance(step, with_slopes=True)).step_slopes()
    for fraction, slope in zip(STEP_FRACTIONS, slopes, strict=True):
        there = run_pass(problem, base.advance(fraction * step))
        np.testing.assert_allclose(there.gradient @ step, slope, rtol=1e-9)
        before, after = (
            run_pass(problem, base.advance((fraction + shift) * step)).smoothed_primal
            for shift in (-1e-5, 1e-5)
        )
        np.testing.assert_allclose((after - before) / 2e-5, slope, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("weighted", [False, True])
def test_predicted_step_ends_at_the_minimum_if_the_same_rows_stay_active(rng, weighted):
    """With a squared loss, all rows are active."""
    problem = make_problem(rng, "squared", weighted=weighted)
    base = Iterate(rng.standard_normal(N_FEATURES), 0.3, 5.0)
    step = run_pass(problem, base).predict_step(1.5, 0.0, np.float64)
    there = run_pass(problem, replace(base.advance(step), curvature=1.5))
    np.testing.assert_allclose(there.gradient, 0, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e5])
@pytest.mark.parametrize("separable", [False, True])
def test_logistic_passes_reach_the_solution_in_memory(rng, dtype, C, separable):
    problem = make_problem(rng, "logistic", n_tasks=2, weighted=True, dtype=dtype, C=C)
    features = feature_map(dtype)(problem.rows.array)
    if separable:
        targets = np.where(features[:, :2] > 0.1, 1, -1).astype(dtype)
        problem = replace(problem, targets=targets)
    coef, intercept, gap = solve(problem, 1e-8)
    assert gap <= 1e-8
    assert problem.rows.passes
    expected = solve_tasks(features.astype(np.float64), problem, 1e-10)
    values = objectives(problem, coef, intercept)
    rounding = 1e-7 if dtype is np.float32 else 1e-8
    np.testing.assert_allclose(values, objectives(problem, *expected[:2]), rtol=rounding)


def test_solution_of_a_sample_saves_passes(rng):
    problem = make_problem(rng, "hinge", n_samples=20_000, block_rows=4096)
    counts = []
    for sample_rows in (4000, 1):  # one row has one class, so the passes start at zero
        problem.rows.passes.clear()
        solve(problem, sample_rows=sample_rows)
        counts.append(len(problem.rows.passes))
    assert 0 < counts[0] < counts[1]


@pytest.mark.parametrize("loss", CLASSIFICATION_LOSSES)
@pytest.mark.parametrize("n_positive", [1, 5, 20])
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_class_that_the_sample_lacks(rng, loss, n_positive, C):
    problem = make_problem(rng, loss, n_samples=2000, C=C)
    targets = np.full((2000, 1), -1.0)
    targets[rng.choice(2000, size=n_positive, replace=False)] = 1
    problem = replace(problem, targets=targets)
    coef, intercept, gap = solve(problem)
    assert gap <= 1e-3
    (value,), (optimum,) = objectives(problem, coef, intercept), optima(problem, loss, C)
    assert optimum * (1 - 1e-7) <= value <= optimum / (1 - 1e-3)


def test_bad_start_is_discarded(rng):
    """A start far from the optimum, with too little smoothing for Newton's method."""
    problem = make_problem(rng, "hinge", n_samples=2000)
    curvature = problem.loss.smoothing_schedule()[-6]
    far = Iterate(1e3 * rng.standard_normal(N_FEATURES), 1e3, curvature)
    bracket = DualityBracket(far, problem.loss, 1e-3)
    features = feature_map(np.float64)
    solved = list(run_passes({0: bracket}, problem, features, np.dtype(float), 1, N_FEATURES))
    assert solved == [0]
    assert bracket.gap <= 1e-3


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared"])
def test_blocks_and_threads_do_not_change_the_solution(rng, loss):
    problem = make_problem(rng, loss, weighted=True)
    expected = solve(problem)
    for block_rows in (13, 8192):
        result = solve(replace(problem, rows=replace(problem.rows, block_rows=block_rows)))
        assert_close(result, expected)
        np.testing.assert_allclose(result[2], expected[2], rtol=1e-4, atol=1e-12)
    with thread_pool(3) as pool:
        result = solve(replace(problem, rows=replace(problem.rows, pool=pool)))
    for part, expected_part in zip(result, expected, strict=True):
        np.testing.assert_array_equal(part, expected_part)


@pytest.mark.parametrize("n_shared", [2, 5])
def test_tasks_in_shared_passes_are_solved_as_alone(rng, n_shared):
    problem = make_problem(rng, "hinge", n_tasks=5, weighted=True)
    alone, counts = [], []
    for task in range(5):
        problem.rows.passes.clear()
        alone.append(solve(problem.task(task)))
        counts.append(len(problem.rows.passes))
    problem.rows.passes.clear()
    n_solved = []
    gram_bytes = n_shared * 8 * N_FEATURES**2
    shared = solve(problem, callback=n_solved.append, gram_bytes=gram_bytes)
    assert_close(shared, [np.concatenate(parts) for parts in list(zip(*alone, strict=True))[:2]])
    np.testing.assert_allclose(shared[2], max(gap for _, _, gap in alone), rtol=1e-6)
    assert n_solved == sorted(n_solved)
    assert n_solved[-1] == 5
    assert sum(problem.rows.passes) == sum(counts)
    assert max(problem.rows.passes) == n_shared
    if n_shared == 5:  # as many passes as the slowest task needs alone
        assert len(problem.rows.passes) == max(counts)


def test_sparse_rows_give_the_same_solution(rng):
    problem = make_problem(rng, "hinge")
    X = np.where(rng.uniform(size=problem.rows.array.shape) < 0.5, 0, problem.rows.array)
    dense, from_sparse = (
        solve(replace(problem, rows=replace(problem.rows, array=array)), 1e-4)
        for array in (X, sparse.csr_array(X))
    )
    assert_close(from_sparse, dense, rtol=1e-6)


def test_few_rows_are_solved_in_memory(rng):
    problem = make_problem(rng, "hinge", n_samples=100, n_tasks=2)
    expected = solve_tasks(feature_map(np.float64)(problem.rows.array), problem, 1e-3)
    assert_close(solve(problem), expected)
    assert not problem.rows.passes


def test_float64_is_used_where_float32_is_not_enough(rng):
    problem = make_problem(rng, "squared_hinge", dtype=np.float32)
    dtypes = []

    def recording_map(dtype):
        dtypes.append(np.dtype(dtype))
        return feature_map(dtype)

    coef, intercept, gap = solve(problem, 1e-11, recording_map, sample_rows=200)
    assert gap <= 1e-11
    assert dtypes[0] == np.float32
    assert dtypes[-1] == np.float64
    np.testing.assert_allclose(
        objectives(problem, coef, intercept), optima(problem, "squared_hinge"), rtol=1e-7
    )


@pytest.mark.parametrize("C", [1e12, 1e39])
def test_unreachable_tolerance_gives_a_finite_model(rng, C):
    problem = make_problem(rng, "squared_hinge", C=C)
    problem = replace(problem, targets=np.where(problem.rows.array[:, :1] > 0, 1.0, -1.0))
    coef, intercept, _ = solve(problem, 1e-15)
    assert np.isfinite(coef).all()
    assert np.isfinite(intercept).all()


@pytest.mark.slow
def test_memory_does_not_grow_with_the_samples(rng):
    peaks = []
    for n_samples in (20_000, 80_000):
        problem = make_problem(rng, "hinge", n_samples, n_tasks=2, weighted=True, block_rows=1024)
        tracemalloc.start()
        solve(problem, sample_rows=1000)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # One more number per sample would be a difference of 480 kB.
    assert peaks[1] - peaks[0] < 200_000


def test_passes_hold_no_samples(rng):
    """They may be sent to another process."""
    cloudpickle = pytest.importorskip("cloudpickle", reason="needs cloudpickle: pip install dask")
    sizes = []

    class SentRows(Rows):
        def sum_blocks(self, function, *columns, **settings):
            sent = cloudpickle.dumps(function)
            sizes.append(len(sent))
            return super().sum_blocks(cloudpickle.loads(sent), *columns, **settings)

    problem = make_problem(rng, "hinge", n_samples=5000, n_tasks=2, weighted=True)
    rows = SentRows(problem.rows.array, problem.weights)
    assert solve(replace(problem, rows=rows))[2] <= 1e-3
    assert 0 < max(sizes) < 5000


def test_bracket_keeps_the_best_of_both_bounds(rng):
    problem = make_problem(rng, "hinge")
    coef, (intercept,), _ = solve(problem)
    curvatures = problem.loss.smoothing_schedule()
    # The best model comes first, but with so much smoothing that its dual bound is poor.
    starts = [(1, curvatures[0]), (1.1, curvatures[6]), (0, curvatures[0])]
    iterates = [Iterate(factor * coef[0], intercept, curvature) for factor, curvature in starts]
    bracket = DualityBracket(iterates[2], problem.loss, 1e-3)
    results = [run_pass(problem, iterate) for iterate in iterates]
    for result in results:
        bracket.update(result)
    primals = [result.primal for result in results]
    duals = [result.dual_bound(problem.loss, problem.loss.curvature) for result in results]
    assert (np.argmin(primals), np.argmax(duals)) == (0, 1)
    assert bracket.best is iterates[0]
    assert (bracket.primal, bracket.dual) == (primals[0], duals[1])
    assert bracket.gap == pytest.approx((bracket.primal - bracket.dual) / bracket.primal)


@pytest.mark.parametrize("loss", ["hinge", "squared"])
def test_features_of_a_learned_kernel_need_not_be_held(rng, loss):
    problem = make_problem(rng, loss, weighted=True)
    model = FourierFeatures(20, loss=loss, smoothing=0.06, random_state=0)
    kernel = model.fit(problem.rows.array, problem.targets[:, 0]).kernel_
    coef, intercept, gap = solve(problem, 1e-3, kernel.feature_map, 20, width=kernel.width)
    (value,) = objectives(problem, coef, intercept, kernel.feature_map)
    (optimum,) = optima(problem, loss, features=kernel.feature_map)
    assert gap <= 1e-3
    assert optimum * (1 - 1e-7) <= value <= optimum / (1 - 1e-3)
