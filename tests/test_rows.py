"""The seam between the game and its data: the same answers however the rows are cut."""

import cloudpickle
import numpy as np
import pytest
from scipy import sparse

from notsorandom._utils.threads import working
from notsorandom.data import rows as module
from notsorandom.data.rows import Rows
from notsorandom.game import LOSSES, Player, play
from notsorandom.game.projection import alternating, nearest
from notsorandom.search import Ascent
from notsorandom.spaces import Euclidean, Landscape


@pytest.fixture(params=[(8, 8), (256, 8192)], ids=["many blocks", "one block"])
def cut(request, monkeypatch):
    monkeypatch.setattr(module, "BLOCK_ROWS", request.param)
    monkeypatch.setattr(module, "BARE_ROWS", request.param[1])
    monkeypatch.setattr(module, "SHARED_ROWS", request.param[1])
    return request.param


@pytest.fixture(params=[False, True], ids=["alike", "weighted"])
def data(request, rng):
    X = rng.standard_normal((100, 3))
    return Rows(X, rng.uniform(0.5, 2, size=(100, 1)) if request.param else None)


class TestRows:
    def test_sums_are_those_of_the_whole(self, cut, data, rng):
        column = rng.standard_normal((100, 2))
        product, count = data.add(lambda X, a: (X.T @ a, len(a)), column)
        np.testing.assert_allclose(product, data.array.T @ column)
        assert count == 100

    def test_a_column_has_a_value_for_each(self, cut, data, rng):
        column = rng.standard_normal((100, 2))
        result = data.map(lambda X, a: X[:, :1] * a, column)
        np.testing.assert_array_equal(result, data.array[:, :1] * column)

    def test_each_is_given_its_own(self, cut, data):
        blocks = data.blocks()
        starts = [block.start for block in blocks]
        found = list(data.each(lambda X, start: (start, X[0, 0]), given=starts))
        assert found == [(start, data.array[start, 0]) for start in starts]

    def test_what_follows(self, cut, data, rng):
        weights = np.ones((100, 1)) if data.weights is None else data.weights
        measure = rng.standard_normal((100, 2))
        assert data.total_weight == pytest.approx(weights.sum())
        np.testing.assert_allclose(
            data.mean(), np.average(data.array, axis=0, weights=weights[:, 0])
        )
        assert data.square_of(measure) == pytest.approx((measure**2 / weights).sum())

    def test_draws_are_those_of_a_choice(self, cut, data):
        """So that neither blocks nor the place of the rows change what is drawn."""
        column = np.random.default_rng(1).exponential(size=(100, 2))
        share = column.sum(axis=1) / column.sum()
        masses = [part.sum() for part in data.each(lambda _, a: a, column)]
        marks = np.sort(np.random.default_rng(2).random(5000))
        drawn, values = data.picked(lambda a: a.sum(axis=1), column, masses, marks)
        expected = np.sort(np.random.default_rng(2).choice(100, size=5000, p=share))
        np.testing.assert_array_equal(drawn.array, data.array[expected])
        np.testing.assert_array_equal(values, column[expected])
        assert drawn.weights is None

    def test_what_has_no_mass_is_never_drawn(self, cut, data, rng):
        column = np.zeros((100, 1))
        column[[3, 40]] = 1.0
        masses = [part.sum() for part in data.each(lambda _, a: a, column)]
        marks = np.append(np.sort(rng.random(1000)), np.nextafter(1, 0))
        drawn, _ = data.picked(lambda a: a[:, 0], column, masses, marks)
        assert set(drawn.array[:, 0]) == set(data.array[[3, 40], 0])

    def test_draws_follow_the_weights(self, cut, data):
        drawn = data.drawn(100_000, np.random.default_rng(0))
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


def test_bare_rows_hold_nothing():
    data = Rows(np.ones((10**6, 50), dtype=np.float32))
    assert data.bare.array.nbytes == 0
    assert len(data.bare) == 10**6
    assert data.bare.dtype == np.float32


def test_sparse_columns_stay_sparse(cut, rng):
    X = sparse.csr_array(rng.binomial(1, 0.3, size=(100, 5)).astype(float))
    result = Rows(X).map(lambda block: block * 2)
    assert sparse.issparse(result)
    np.testing.assert_array_equal(result.toarray(), 2 * X.toarray())


@pytest.mark.parametrize("how", [nearest, alternating])
def test_projection_is_the_same_however_the_rows_are_cut(how, rng, monkeypatch):
    labels = np.where(rng.uniform(size=(100, 3)) < 0.3, 1.0, -1.0)
    point, weights = rng.standard_normal((100, 3)), rng.uniform(0.5, 2, size=(100, 1))
    player = Player(LOSSES["hinge"](1.0), labels, weights)
    whole = player.project(point, how)
    monkeypatch.setattr(module, "BLOCK_ROWS", (8, 8))
    monkeypatch.setattr(module, "BARE_ROWS", 8)
    np.testing.assert_allclose(player.project(point, how), whole, atol=1e-12)


class Counted(Rows):
    """Rows that know how much was sent to them."""

    longest = 0

    def each(self, function, *columns, width=0, given=None):
        self.note(function)
        return super().each(function, *columns, width=width, given=given)

    def map(self, function, *columns, width=0):
        self.note(function)
        return super().map(function, *columns, width=width)

    @staticmethod
    def note(function):
        Counted.longest = max(Counted.longest, len(cloudpickle.dumps(function)))


@pytest.mark.parametrize("loss", LOSSES)
def test_what_is_sent_to_the_rows_is_small(loss, rng):
    """No function holds a column, a block or the rows themselves: they may be far away."""
    X = rng.standard_normal((5000, 4))
    weights = rng.uniform(0.5, 2, size=(5000, 1))
    data = Counted(X, weights)
    targets = np.where(np.cos(X[:, [0]] * 2) > 0, 1.0, -1.0)
    player = Player(LOSSES[loss](1.0, 0.1), targets, weights, data)
    search = Ascent(n_steps=2, max_rows=1024)
    play(data, player, space=Euclidean(), search=search, n_frequencies=8, rng=rng)
    assert 0 < Counted.longest < 20_000 < targets.nbytes


def test_a_landscape_knows_its_mass(cut, data, rng):
    measure = rng.standard_normal((100, 2))
    space = Euclidean().resolve(data, rng)
    np.testing.assert_allclose(
        Landscape(space, data, measure, 0.1).mass, np.abs(measure).sum(axis=0)
    )


def test_workers_fill_columns_in_place(monkeypatch):
    monkeypatch.setattr(module, "BLOCK_ROWS", (8, 8))
    X = np.arange(2000.0).reshape(1000, 2)
    with working(2) as workers:
        np.testing.assert_array_equal(Rows(X, workers=workers).map(lambda block: 2 * block), 2 * X)


def test_what_is_not_finite_any_more_is_told(rng):
    data = Rows(rng.standard_normal((20, 2)))
    measure = np.full((20, 1), 1e308)
    space = Euclidean().resolve(data, rng)
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="too large for float64: scale"):
        _ = Landscape(space, data, measure, 0.1).mass


def test_means_of_large_numbers():
    X = np.full((100, 2), 3e36, dtype=np.float32)
    np.testing.assert_allclose(Rows(X).mean(), X[0])
