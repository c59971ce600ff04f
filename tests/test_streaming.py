"""The linear model solved in passes over the rows, against the one solved in memory."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from notsorandom import FourierClassifier, FourierRegressor, linear, streaming
from notsorandom._utils.threads import working
from notsorandom.data.rows import Rows
from notsorandom.game import LOSSES, MARGIN_LOSSES, Player
from notsorandom.linear.passes import N_NUMBERS, SHARES, Pass, Point, Stand
from notsorandom.linear.streaming import Bracket, solve_streaming

N_FEATURES = 12
MIXING = np.random.default_rng(5).standard_normal((3, N_FEATURES))


def maker(dtype):
    mixing = MIXING.astype(dtype)
    return lambda block: np.cos(block @ mixing)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """A few hundred samples are more than a sample, and many blocks."""
    monkeypatch.setattr("notsorandom.data.rows.BLOCK_ROWS", (7, 50))
    monkeypatch.setattr(streaming, "SAMPLE_ROWS", 100)


@pytest.fixture
def passes(monkeypatch):
    """How many tasks took part in each pass so far."""
    seen, add = [], Rows.add

    def counted(self, function, *columns, **settings):
        if isinstance(function, Pass):
            seen.append(len(function.points))
        return add(self, function, *columns, **settings)

    monkeypatch.setattr(Rows, "add", counted)
    return seen


def problem(rng, loss, n_samples=400, n_tasks=1, weighted=False, dtype=np.float64, C=1.0):
    X = rng.standard_normal((n_samples, 3))
    values = np.cos(X @ MIXING[:, :n_tasks]) + 0.3 * rng.standard_normal((n_samples, n_tasks))
    targets = np.where(values > 0, 1.0, -1.0) if loss in MARGIN_LOSSES else values
    weights = rng.uniform(0.2, 3, size=(n_samples, 1)).astype(dtype) if weighted else None
    player = Player(LOSSES[loss](C), targets.astype(dtype), weights)
    return X.astype(dtype), player


def objective(X, player, coef, intercept):
    """Of each task, by hand and in float64."""
    scores = maker(np.float64)(X.astype(np.float64)) @ coef.T + intercept
    targets = player.targets.astype(np.float64)
    losses = player.loss.values(targets - scores, *player.loss.box(targets))
    weights = 1 if player.weights is None else player.weights.astype(np.float64)
    return 0.5 * np.square(coef).sum(axis=1) + (weights * losses).sum(axis=0)


def optimum(X, player):
    """What the optimum of each task is at most, and at least."""
    exact = player.astype(np.float64)
    features = maker(np.float64)(X.astype(np.float64))
    machines = [
        linear.solve_machine(features, exact.task(task), 1e-9)
        for task in range(player.targets.shape[1])
    ]
    values = [(machine.primal_value, machine.dual_value) for machine in machines]
    return np.transpose(values)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_the_optimum_is_that_of_the_solver_in_memory(rng, loss, weighted, dtype, C):
    X, player = problem(rng, loss, n_tasks=2, weighted=weighted, dtype=dtype, C=C)
    coef, intercept, gap = solve_streaming(Rows(X), maker, N_FEATURES, player, 1e-3)
    assert coef.shape == (2, N_FEATURES)
    assert intercept.shape == (2,)
    assert gap <= 1e-3
    values, (most, least) = objective(X, player, coef, intercept), optimum(X, player)
    # The gap is no less than what is really missing.
    rounding = 1e-9 if dtype is np.float64 else 1e-5
    assert ((values - most) / values).max() <= gap + rounding
    assert (values >= least * (1 - rounding)).all()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("weighted", [False, True])
def test_any_pass_bounds_the_optimum_from_both_sides(rng, loss, weighted):
    """At any model whatever, near the optimum or not, with corners however round."""
    X, player = problem(rng, loss, weighted=weighted)
    ((best,), _) = optimum(X, player)
    columns = [player.targets] + ([player.weights] if weighted else [])
    for scale in (0.0, 0.1, 1.0, 30.0):
        for curvature in linear.corners(player.loss)[:6]:
            coef = scale * rng.standard_normal(N_FEATURES)
            point = Point(coef, float(scale * rng.standard_normal()), curvature)
            look = Pass(maker(np.float64), np.float64, player.loss, np.array([0]), (point,))
            numbers, vectors, gram = Rows(X).add(look, *columns)
            stand = Stand(point, numbers[0], vectors[0], gram[0])
            value = objective(X, player, coef[None], point.intercept)[0]
            np.testing.assert_allclose(stand.primal, value, rtol=1e-10)
            assert stand.dual(player.loss, player.loss.curvature) <= best * (1 + 1e-9)
            assert stand.dual(player.loss, curvature) <= stand.rounded_primal
            assert stand.rounded_primal <= value * (1 + 1e-12)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("weighted", [False, True])
def test_slopes_are_those_of_the_objective(rng, loss, weighted):
    X, player = problem(rng, loss, weighted=weighted)
    columns = [player.targets] + ([player.weights] if weighted else [])
    curvature = linear.corners(player.loss)[0]

    def stand_at(point):
        look = Pass(maker(np.float64), np.float64, player.loss, np.array([0]), (point,))
        numbers, vectors, gram = Rows(X).add(look, *columns)
        return Stand(point, numbers[0], vectors[0], gram[0])

    base = Point(rng.standard_normal(N_FEATURES), 0.3, curvature)
    step = rng.standard_normal(N_FEATURES + 1)
    asked = stand_at(base.moved(step, asking=True)).slopes()
    for share, slope in zip(SHARES, asked, strict=True):
        there = stand_at(base.moved(share * step))
        np.testing.assert_allclose(there.gradient @ step, slope, rtol=1e-9)
        before, after = (
            stand_at(base.moved((share + shift) * step)).rounded_primal for shift in (-1e-5, 1e-5)
        )
        np.testing.assert_allclose((after - before) / 2e-5, slope, rtol=1e-4, atol=1e-3)


def test_a_sample_to_start_with_saves_passes(rng, passes, monkeypatch):
    X, player = problem(rng, "hinge", n_samples=20_000)
    monkeypatch.setattr("notsorandom.data.rows.BLOCK_ROWS", (256, 8192))
    monkeypatch.setattr(streaming, "SAMPLE_ROWS", 4000)
    solve_streaming(Rows(X), maker, N_FEATURES, player, 1e-3)
    warm = len(passes)
    monkeypatch.setattr(streaming, "FEWEST", np.inf)
    solve_streaming(Rows(X), maker, N_FEATURES, player, 1e-3)
    cold = len(passes) - warm
    assert warm <= 10
    assert cold <= 30
    assert warm < cold


@pytest.mark.parametrize("loss", MARGIN_LOSSES)
@pytest.mark.parametrize("n_positive", [1, 5, 20])
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_a_class_that_the_sample_lacks(rng, loss, n_positive, C, passes):
    X, player = problem(rng, loss, n_samples=2000, C=C)
    targets = np.full((2000, 1), -1.0)
    targets[rng.choice(2000, size=n_positive, replace=False)] = 1
    player = Player(player.loss, targets)
    coef, intercept, gap = solve_streaming(Rows(X), maker, N_FEATURES, player, 1e-3)
    assert gap <= 1e-3
    values, (most, _) = objective(X, player, coef, intercept), optimum(X, player)
    assert (1 - 1e-3) * values[0] <= most[0]
    assert len(passes) <= 200


def test_a_sample_that_misleads(rng, passes, monkeypatch):
    """Its solution is no start at all, and corners as sharp as it ended at lead nowhere."""
    X, player = problem(rng, "hinge", n_samples=2000)
    sharpest = linear.corners(player.loss)[-6]
    far = Point(1e3 * rng.standard_normal(N_FEATURES), 1e3, sharpest)
    monkeypatch.setattr(streaming, "first_points", lambda *_: iter([far]))
    _, _, gap = solve_streaming(Rows(X), maker, N_FEATURES, player, 1e-3)
    assert gap <= 1e-3
    assert len(passes) <= 60


@pytest.mark.parametrize("loss", ["hinge", "squared"])
def test_blocks_of_any_size_solve_the_same(rng, loss, monkeypatch):
    X, player = problem(rng, loss, weighted=True)
    solutions = []
    for most in (13, 50, 8192):
        monkeypatch.setattr("notsorandom.data.rows.BLOCK_ROWS", (7, most))
        solutions.append(solve_streaming(Rows(X), maker, N_FEATURES, player, 1e-3))
    for coef, intercept, gap in solutions[1:]:
        np.testing.assert_allclose(coef, solutions[0][0], rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(intercept, solutions[0][1], rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(gap, solutions[0][2], rtol=1e-4)


@pytest.mark.parametrize("most_bytes", [2**28, 2 * 8 * N_FEATURES**2])
def test_tasks_together_are_tasks_one_by_one(rng, passes, most_bytes, monkeypatch):
    """In as many passes as the slowest takes alone, if all of them may take part."""
    X, player = problem(rng, "hinge", n_tasks=5, weighted=True)
    alone, lengths = [], []
    for task in range(5):
        passes.clear()
        alone.append(solve_streaming(Rows(X), maker, N_FEATURES, player.task(task), 1e-3))
        lengths.append(len(passes))
    passes.clear()
    monkeypatch.setattr(streaming, "MOST_GRAM_BYTES", most_bytes)
    told = []
    together = solve_streaming(Rows(X), maker, N_FEATURES, player, 1e-3, told.append)
    for task, (coef, intercept, _) in enumerate(alone):
        np.testing.assert_allclose(together[0][task], coef[0], rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(together[1][task], intercept[0], rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(together[2], max(gap for _, _, gap in alone), rtol=1e-6)
    assert told == sorted(told)
    assert told[-1] == 5
    assert sum(passes) == sum(lengths)
    if most_bytes == 2**28:
        assert len(passes) == max(lengths)
    else:
        assert max(passes) == 2


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_workers_solve_the_same(rng, n_jobs):
    X, player = problem(rng, "squared_hinge", n_tasks=2)
    coef, intercept, _ = solve_streaming(Rows(X), maker, N_FEATURES, player, 1e-3)
    with working(n_jobs) as workers:
        rows = Rows(X, workers=workers)
        shared = solve_streaming(rows, maker, N_FEATURES, player, 1e-3)
    np.testing.assert_array_equal(shared[0], coef)
    np.testing.assert_array_equal(shared[1], intercept)


def test_sparse_rows_solve_the_same(rng):
    X, player = problem(rng, "hinge")
    X[rng.uniform(size=X.shape) < 0.5] = 0
    dense, thin = (
        solve_streaming(Rows(array), maker, N_FEATURES, player, 1e-4)
        for array in (X, sparse.csr_array(X))
    )
    np.testing.assert_allclose(thin[0], dense[0], rtol=1e-6, atol=1e-8)


def test_few_rows_are_solved_in_memory(rng, passes):
    X, player = problem(rng, "hinge", n_samples=100, n_tasks=2)
    coef, intercept, gap = solve_streaming(Rows(X), maker, N_FEATURES, player, 1e-3)
    features = maker(np.float64)(X)
    expected = linear.solve_machines(features, player, 1e-3)
    np.testing.assert_allclose(coef, expected[0], rtol=1e-8)
    np.testing.assert_allclose(intercept, expected[1], rtol=1e-8)
    assert gap <= 1e-3
    assert not passes


def test_what_float32_cannot_is_done_in_float64(rng, monkeypatch):
    X, player = problem(rng, "squared_hinge", dtype=np.float32)
    kinds = []

    def telling(dtype):
        kinds.append(np.dtype(dtype))
        return maker(dtype)

    monkeypatch.setattr(streaming, "SAMPLE_ROWS", 200)
    coef, intercept, gap = solve_streaming(Rows(X), telling, N_FEATURES, player, 1e-11)
    assert gap <= 1e-11
    assert kinds[-1] == np.float64
    values, (most, _) = objective(X, player, coef, intercept), optimum(X, player)
    np.testing.assert_allclose(values, most, rtol=1e-8)


@pytest.mark.parametrize("C", [1e12, 1e39])
def test_beyond_any_precision_it_ends(rng, C, passes):
    X, player = problem(rng, "squared_hinge", C=C)
    player = Player(player.loss, np.where(X[:, :1] > 0, 1.0, -1.0))
    coef, intercept, _ = solve_streaming(Rows(X), maker, N_FEATURES, player, 1e-15)
    assert np.isfinite(coef).all()
    assert np.isfinite(intercept).all()
    assert len(passes) <= streaming.MAX_PASSES


def test_memory_does_not_grow_with_the_samples(rng, monkeypatch):
    monkeypatch.setattr("notsorandom.data.rows.BLOCK_ROWS", (256, 1024))
    monkeypatch.setattr(streaming, "SAMPLE_ROWS", 1000)
    peaks = []
    for n_samples in (20_000, 80_000):
        X, player = problem(rng, "hinge", n_samples=n_samples, weighted=True, n_tasks=2)
        rows = Rows(X)
        tracemalloc.start()
        solve_streaming(rows, maker, N_FEATURES, player, 1e-3)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # A vector of the samples more would be 480 kB of difference; the sample's draw is of either.
    assert peaks[1] - peaks[0] < 200_000


def test_what_is_sent_to_the_rows_is_small(rng, monkeypatch):
    cloudpickle = pytest.importorskip("cloudpickle")
    X, player = problem(rng, "hinge", n_samples=5000, n_tasks=2, weighted=True)
    sizes, add = [], Rows.add

    def spied(self, function, *columns, **settings):
        sent = cloudpickle.dumps(function)
        sizes.append(len(sent))
        return add(self, cloudpickle.loads(sent), *columns, **settings)

    monkeypatch.setattr(Rows, "add", spied)
    _, _, gap = solve_streaming(Rows(X), maker, N_FEATURES, player, 1e-3)
    assert gap <= 1e-3
    assert max(sizes) < 5000


def test_a_bracket_keeps_the_best_of_either_side():
    loss = LOSSES["squared"](1.0)
    bracket = Bracket(Point(np.zeros(1), 0.0, loss.curvature), loss, 1e-3)
    seen = []
    for coef, paid in ((1.0, 0.5), (0.0, 0.1), (2.0, 0.3)):
        numbers = np.zeros(N_NUMBERS + len(SHARES))
        # Balanced, and paid without a square: a dual value of nearly what it is paid.
        numbers[[1, 3, 4, 5, 7]] = 5.0, 1.0, -1.0, paid, paid
        point = Point(np.array([coef]), 0.0, loss.curvature)
        seen.append(Stand(point, numbers, np.zeros((3, 1)), np.zeros((1, 1))))
        bracket.see(seen[-1])
    assert bracket.best is seen[1].point
    assert bracket.primal == 5.0
    duals = [stand.dual(loss, loss.curvature) for stand in seen]
    assert bracket.dual == max(duals) == duals[0]
    assert bracket.gap == pytest.approx((5.0 - duals[0]) / 5.0)


@pytest.mark.parametrize("estimator", [FourierClassifier, FourierRegressor])
@pytest.mark.parametrize("settings", [{}, {"early_stopping": True}], ids=["plain", "stopping"])
def test_a_fit_needs_not_hold_its_features(estimator, settings, rng, monkeypatch):
    X = rng.standard_normal((500, 2))
    y = np.round(np.cos(2 * X[:, 0]), 1)
    y = y if estimator is FourierRegressor else y > 0
    weights = rng.uniform(0.5, 2, size=500)
    model = estimator(20, smoothing=0.06, random_state=0, **settings)
    held = clone(model).fit(X, y, sample_weight=weights)
    monkeypatch.setattr(streaming, "MOST_BYTES", 0)
    monkeypatch.setattr(streaming, "solve_machines", None)
    made = clone(model).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(made.frequencies_, held.frequencies_)
    np.testing.assert_allclose(made.coef_, held.coef_, atol=0.1)
    assert made.duality_gap_ <= 1e-3


def test_matrices_of_runs_are_not_held_together(rng, monkeypatch):
    """However many runs of blocks there are, few of their sums are waiting."""
    monkeypatch.setattr(streaming, "SAMPLE_ROWS", 100)
    monkeypatch.setattr("notsorandom.data.rows.BLOCK_ROWS", (64, 64))
    F = rng.standard_normal((2000, 300))
    targets = np.where(F[:, :1] > 0, 1.0, -1.0)
    peaks = []
    for n_jobs in (None, 2):
        with working(n_jobs) as workers:
            rows = Rows(F, workers=workers)
            player = Player(LOSSES["squared_hinge"](1.0), targets, None, rows)
            tracemalloc.start()
            solve_streaming(rows, lambda _: lambda block: block, 300, player, 1e-2)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert peaks[1] < peaks[0] + 6 * 8 * 300**2


def test_a_gap_that_is_no_number_is_told(rng):
    F = rng.standard_normal((50, 3))
    targets = np.column_stack([F[:, 0] + 0.1, F[:, 1] * 1e170])
    with np.errstate(all="ignore"):
        *_, gap = linear.solve_machines(F, Player(LOSSES["squared"](1.0), targets), 1e-3)
    assert np.isnan(gap)
