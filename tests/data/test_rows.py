"""Blocks of rows: the same results however the rows are cut."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from notsorandom._utils.threads import thread_pool
from notsorandom.data import rows
from notsorandom.data.rows import Rows
from notsorandom.game import LOSSES, Problem, play
from notsorandom.game.projection import alternating, nearest
from notsorandom.search import Ascent
from notsorandom.spaces import Euclidean, Landscape
from notsorandom.spaces.landscape import draw_by_weight, pick_by_mass


@pytest.fixture(params=[8, None], ids=["many blocks", "one block"])
def block_rows(request):
    return request.param


@pytest.fixture(params=[False, True], ids=["unweighted", "weighted"])
def data(request, rng, block_rows):
    X = rng.standard_normal((100, 3))
    weights = rng.uniform(0.5, 2, size=(100, 1)) if request.param else None
    return Rows(X, weights, block_rows=block_rows)


class TestRows:
    def test_sums_are_those_of_all_rows(self, data, rng):
        column = rng.standard_normal((100, 2))
        product, count = data.sum_blocks(lambda X, a: (X.T @ a, len(a)), column)
        np.testing.assert_allclose(product, data.array.T @ column)
        assert count == 100

    def test_map_returns_one_value_per_row(self, data, rng):
        column = rng.standard_normal((100, 2))
        result = data.map(lambda X, a: X[:, :1] * a, column)
        np.testing.assert_array_equal(result, data.array[:, :1] * column)

    def test_blocks_get_their_own_argument(self, data):
        blocks = data.blocks()
        starts = [block.start for block in blocks]
        found = list(data.map_blocks(lambda X, start: (start, X[0, 0]), given=starts))
        assert found == [(start, data.array[start, 0]) for start in starts]

    def test_weighted_totals(self, data, rng):
        weights = np.ones((100, 1)) if data.weights is None else data.weights
        measure = rng.standard_normal((100, 2))
        assert data.total_weight == pytest.approx(weights.sum())
        np.testing.assert_allclose(
            data.mean(), np.average(data.array, axis=0, weights=weights[:, 0])
        )
        assert data.squared_norm(measure) == pytest.approx((measure**2 / weights).sum())

    def test_picks_are_those_of_a_weighted_choice(self, data):
        """Neither the blocks nor the place of the rows change what is drawn."""
        column = np.random.default_rng(1).exponential(size=(100, 2))
        share = column.sum(axis=1) / column.sum()
        masses = [part.sum() for part in data.map_blocks(lambda _, a: a, column)]
        marks = np.sort(np.random.default_rng(2).random(5000))
        drawn, values = pick_by_mass(data, lambda a: a.sum(axis=1), column, masses, marks)
        expected = np.sort(np.random.default_rng(2).choice(100, size=5000, p=share))
        np.testing.assert_array_equal(drawn.array, data.array[expected])
        np.testing.assert_array_equal(values, column[expected])
        assert drawn.weights is None

    def test_rows_without_mass_are_never_picked(self, data, rng):
        column = np.zeros((100, 1))
        column[[3, 40]] = 1.0
        masses = [part.sum() for part in data.map_blocks(lambda _, a: a, column)]
        marks = np.append(np.sort(rng.random(1000)), np.nextafter(1, 0))
        drawn, _ = pick_by_mass(data, lambda a: a[:, 0], column, masses, marks)
        assert set(drawn.array[:, 0]) == set(data.array[[3, 40], 0])

    def test_draws_follow_the_weights(self, data):
        drawn = draw_by_weight(data, 100_000, np.random.default_rng(0))
        order = np.argsort(data.array[:, 0])
        which = order[np.searchsorted(data.array[order, 0], drawn.array[:, 0])]
        share = np.full(100, 0.01) if data.weights is None else data.weights[:, 0]
        np.testing.assert_allclose(
            np.bincount(which, minlength=100) / 1e5, share / share.sum(), atol=2e-3
        )
        halves = np.bincount(which[:50_000], minlength=100) / 5e4
        np.testing.assert_allclose(halves, share / share.sum(), atol=4e-3)  # not sorted


def test_blocks_are_cut_at_powers_of_two():
    """Parts of the data that are multiples of the largest block have the blocks of the whole."""
    for n_features in (1, 3, 100, 700, 5000):
        data = Rows(np.empty((300_000, n_features), dtype=np.float32)[:100_000])
        size = data.blocks()[0].stop
        assert size & (size - 1) == 0
        starts = [block.start for block in data.blocks()]
        part = Rows(data.array[32768:])
        assert [block.start + 32768 for block in part.blocks()] == [
            start for start in starts if start >= 32768
        ]


def test_columns_only_holds_no_samples():
    data = Rows(np.ones((10**6, 50), dtype=np.float32))
    assert data.columns_only.array.nbytes == 0
    assert len(data.columns_only) == 10**6
    assert data.columns_only.dtype == np.float32


def test_sparse_columns_stay_sparse(block_rows, rng):
    X = sparse.csr_array(rng.binomial(1, 0.3, size=(100, 5)).astype(float))
    result = Rows(X, block_rows=block_rows).map(lambda block: block * 2)
    assert sparse.issparse(result)
    np.testing.assert_array_equal(result.toarray(), 2 * X.toarray())


@pytest.mark.parametrize("projection", [nearest, alternating])
def test_projection_does_not_depend_on_the_blocks(projection, rng):
    labels = np.where(rng.uniform(size=(100, 3)) < 0.3, 1.0, -1.0)
    point, weights = rng.standard_normal((100, 3)), rng.uniform(0.5, 2, size=(100, 1))
    results = [
        Problem(
            LOSSES["hinge"],
            labels,
            Rows(np.empty((100, 0)), weights, block_rows=block_rows),
        ).project(point, projection)
        for block_rows in (None, 8)
    ]
    np.testing.assert_allclose(results[1], results[0], atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_functions_of_blocks_hold_no_samples(loss, rng):
    """No function holds a column, a block or the rows: it may be sent to another process."""
    cloudpickle = pytest.importorskip("cloudpickle", reason="needs cloudpickle: pip install dask")
    sizes = []

    class SentRows(Rows):
        def map_blocks(self, function, *columns, **settings):
            sizes.append(len(cloudpickle.dumps(function)))
            return super().map_blocks(function, *columns, **settings)

        def sum_blocks(self, function, *columns, **settings):
            sizes.append(len(cloudpickle.dumps(function)))
            return super().sum_blocks(function, *columns, **settings)

        def map(self, function, *columns, **settings):
            sizes.append(len(cloudpickle.dumps(function)))
            return super().map(function, *columns, **settings)

    X = rng.standard_normal((5000, 4))
    targets = np.where(np.cos(X[:, [0]] * 2) > 0, 1.0, -1.0)
    sent = SentRows(X, rng.uniform(0.5, 2, size=(5000, 1)))
    problem = Problem(LOSSES[loss], targets, sent)
    search = Ascent(n_steps=2, max_rows=1024)
    play(problem, space=Euclidean(), search=search, n_frequencies=8, rng=rng)
    assert 0 < max(sizes) < 20_000 < targets.nbytes


def test_mass_of_a_landscape(data, rng):
    measure = rng.standard_normal((100, 2))
    space = Euclidean().resolve(data, rng)
    np.testing.assert_allclose(
        Landscape(space, data, measure, 0.1).mass, np.abs(measure).sum(axis=0)
    )


@pytest.fixture
def shares_all(monkeypatch):
    monkeypatch.setattr(rows, "SHARED_WORK", 0)


@pytest.mark.parametrize("block_rows", [8, 300, 1000])
def test_number_of_threads_does_not_change_results(block_rows, shares_all, rng):
    X = rng.standard_normal((1000, 3)).astype(np.float32)
    column = rng.standard_normal((1000, 2)).astype(np.float32)
    plain = Rows(X, block_rows=block_rows)

    def results(data):
        return [
            *data.sum_blocks(lambda X, a: (X.T @ a, a.sum()), column),
            data.map(lambda X, a: X[:, :1] * a, column),
            np.array(list(data.map_blocks(lambda X, a: float(X[0] @ X[0]) + a[0, 0], column))),
            data.map(lambda X: sparse.csr_array(X)).toarray(),
            data.take(np.arange(999, -1, -2)).array,
            data.take(X[:, 0] > 0).array,
        ]

    expected = results(plain)
    np.testing.assert_allclose(expected[0], X.T @ column, atol=1e-4)
    np.testing.assert_array_equal(expected[2], X[:, :1] * column)
    for n_jobs in (None, 1, 2, 3):
        with thread_pool(n_jobs) as pool:
            for found, one in zip(results(replace(plain, pool=pool)), expected, strict=True):
                np.testing.assert_array_equal(found, one)


def test_sums_of_one_block_are_copies():
    data = Rows(np.ones((5, 2)))
    (total,) = data.sum_blocks(lambda X: (X,))
    total += 1
    np.testing.assert_array_equal(data.array, np.ones((5, 2)))


def test_overflow_of_the_measure_is_an_error(rng):
    data = Rows(rng.standard_normal((20, 2)))
    measure = np.full((20, 1), 1e308)
    space = Euclidean().resolve(data, rng)
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="too large for float64: scale"):
        _ = Landscape(space, data, measure, 0.1).mass


def test_means_of_large_numbers():
    X = np.full((100, 2), 3e36, dtype=np.float32)
    np.testing.assert_allclose(Rows(X).mean(), X[0])
