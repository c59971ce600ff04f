import numpy as np
import pytest
import reference

from notsorandom import FourierClassifier, FourierFeatures, Sphere
from notsorandom.baselines import LKRF, RandomFourierFeatures
from notsorandom.data.rows import Rows
from notsorandom.datasets import make_checkerboard, make_windmill
from notsorandom.display.inspection import (
    accuracy_by_size,
    bounds_by_round,
    mean_and_spread,
    moments,
    potential_on_grid,
    spread_out,
)
from notsorandom.game import LOSSES, Player, replay
from notsorandom.linear.newton import solve_machine


@pytest.mark.parametrize("phase", ["aligned", "paired"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("rate", ["auto", "theory", 0.3])
def test_a_replay_ends_where_the_game_ended(phase, loss, rate):
    X, y = make_windmill(300, random_state=0)
    X = X.astype(np.float32)
    model = FourierFeatures(
        40, phase=phase, loss=loss, learning_rate=rate, smoothing=0.05, random_state=0
    ).fit(X, y)
    kernel = model.kernel_
    labels = np.where(y == 1, 1, -1).astype(np.float32)[:, None]
    duals = list(
        replay(
            Rows(X),
            Player(LOSSES[loss](1.0), labels),
            space=kernel.space,
            frequencies=kernel.frequencies,
            phases=kernel.phases,
            scales=kernel.scales.astype(np.float32),
            phase=phase,
            history=model.history_,
        )
    )
    assert len(duals) == len(model.history_["step"]) + 1
    np.testing.assert_allclose(duals[-1], model.dual_, atol=2e-3)
    zeros = [np.mean(dual == 0) for dual in duals[:-1]]
    np.testing.assert_allclose(zeros, model.history_["share_at_zero"], atol=0.01)


class TestMoments:
    def test_they_are_those_of_shorter_fits(self):
        X, y = make_windmill(300, random_state=0)
        model = FourierClassifier(40, smoothing=0.05, random_state=0).fit(X, y)
        n_rounds = len(model.history_["step"])
        first, middle, last = moments(model, X, y, [1, 4, n_rounds])
        assert [moment.round for moment in (first, middle, last)] == [1, 4, n_rounds]
        np.testing.assert_allclose(np.abs(first.measure), 0.5, atol=1e-6)  # where the dual starts
        np.testing.assert_allclose(last.decision(X)[:, 0], model.decision_function(X), atol=1e-6)
        size = int(model.history_["n_frequencies"][3])
        shorter = FourierClassifier(size, smoothing=0.05, random_state=0).fit(X, y)
        np.testing.assert_allclose(middle.kernel.frequencies, shorter.frequencies_)
        np.testing.assert_allclose(
            middle.decision(X)[:, 0], shorter.decision_function(X), atol=1e-6
        )

    def test_what_was_dropped_was_still_played(self):
        X, y = make_windmill(100, random_state=0)
        model = FourierFeatures(30, smoothing=0.05, reweight=True, random_state=0).fit(X, y)
        last = moments(model, X, y)[-1]
        assert len(last.kernel.frequencies) == 30 > len(model.frequencies_)

    def test_many_classes(self, rng):
        X, y = rng.standard_normal((90, 3)), np.array(list("abc"))[np.arange(90) % 3]
        model = FourierFeatures(8, smoothing=0.06, random_state=0).fit(X, y)
        assert moments(model, X, y)[-1].decision(X).shape == (90, 3)

    def test_what_cannot_be_replayed_is_refused(self):
        X, y = make_checkerboard(80, random_state=0)
        for dynamics in ("gradient", "primal_dual"):
            model = FourierFeatures(10, space="sphere", dynamics=dynamics, smoothing=0).fit(X, y)
            with pytest.raises(ValueError, match="can't be played again"):
                moments(model, X, y)
        X, y = make_windmill(80, random_state=0)
        model = FourierFeatures(8, smoothing=0.06, random_state=0).fit(X, y)
        for rounds in ([0], [1, 99], []):
            with pytest.raises(ValueError, match=r"rounds=\[.*\] is not allowed: give some from 1"):
                moments(model, X, y, rounds)
        with pytest.raises(ValueError, match="X has 40 samples, but the game was played on 80"):
            moments(model, X[:40], y[:40])
        reweighted = FourierFeatures(30, smoothing=0.05, reweight=True, random_state=0).fit(X, y)
        with pytest.raises(ValueError, match="look at the whole model"):
            moments(reweighted.head(2), X, y)


@pytest.mark.parametrize("space", ["euclidean", "sphere", Sphere("degree", max_degree=6)])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_bounds_by_round(space, loss):
    X, y = make_checkerboard(150, random_state=0)
    model = FourierFeatures(60, space=space, loss=loss, smoothing=0, random_state=0).fit(X, y)
    rounds, upper, lower = bounds_by_round(model, X, y)
    n_rounds = len(model.history_["lower"])
    assert rounds[0] >= 1
    assert (np.diff(rounds) > 0).all()
    assert rounds[-1] == n_rounds
    assert (np.diff(upper) <= 0).all()
    assert (np.diff(lower) >= 0).all()
    assert (lower <= upper).all()
    certificate = model.certificate(X, y)
    assert upper[-1] <= certificate.upper * (1 + 2e-3)
    if model.kernel_.space.kind == "finite":  # the peaks found are the highest
        player = Player(LOSSES[loss](1.0), np.where(y == 1, 1.0, -1.0)[:, None])
        best = solve_machine(model.transform(X), player, 1e-6).primal_value
        assert lower[-1] <= best


class TestAccuracyBySize:
    def test_it_is_that_of_shorter_fits(self):
        X, y = make_windmill(300, random_state=0)
        X_test, y_test = make_windmill(1000, random_state=1)
        model = FourierClassifier(40, smoothing=0.05, random_state=0).fit(X, y)
        sizes, found = accuracy_by_size(model, X, y, X_test, y_test, [10, 40])
        assert sizes.tolist() == [10, 40]
        assert list(found) == ["learned", "random (RBF)"]
        for size, accuracy in zip(sizes, found["learned"], strict=True):
            shorter = FourierClassifier(int(size), smoothing=0.05, random_state=0).fit(X, y)
            assert abs(accuracy - shorter.score(X_test, y_test)) < 2e-3
        assert (found["learned"] > found["random (RBF)"]).all()

    def test_classes_of_any_name_and_baselines_of_any_kind(self, rng):
        X, y = rng.standard_normal((90, 3)), np.array(list("abc"))[np.arange(90) % 3]
        X[:, 0] += 3 * (y == "b")
        model = FourierFeatures(8, smoothing=0.06, random_state=0).fit(X, y)
        baselines = {"pool": LKRF(n_pool=50, rho=10.0, random_state=0)}
        sizes, found = accuracy_by_size(model, X, y, X, y, baselines=baselines)
        assert sizes[-1] == 8
        assert list(found) == ["learned", "pool"]
        assert found["learned"][-1] > 0.5
        assert accuracy_by_size(model, X, y, X, ["z"] * 90, [8], {})[1]["learned"] == 0

    def test_sizes_that_do_not_exist_are_refused(self):
        X, y = make_windmill(80, random_state=0)
        model = FourierFeatures(8, phase="paired", smoothing=0.06, random_state=0).fit(X, y)
        with pytest.raises(ValueError, match=r"sizes=\[3\] is not allowed: this model has 8"):
            accuracy_by_size(model, X, y, X, y, [3])

    def test_bad_test_data_are_refused(self):
        X, y = make_windmill(80, random_state=0)
        model = FourierFeatures(8, smoothing=0.06, random_state=0).fit(X, y)
        for X_test, y_test in (
            (X[:, :1], y),
            (X * np.nan, y),
            (X, y[:1]),
            (X, y[:, None] + [0, 1]),
        ):
            with pytest.raises(ValueError, match=r".+"):
                accuracy_by_size(model, X, y, X_test, y_test)
        with pytest.raises(ValueError, match=r"sizes=\[\] is not allowed"):
            accuracy_by_size(model, X, y, X, y, [])

    def test_baselines_see_the_same_samples(self, rng):
        """Samples of any length, where the space takes their directions."""
        Z = rng.standard_normal((200, 5))
        y = Z[:, 0] * Z[:, 1] > 0
        space = Sphere("zonal", normalize=True)
        accuracies = []
        for X in (reference.unit(Z), 1000 * reference.unit(Z)):
            model = FourierFeatures(30, space=space, smoothing=0.05, random_state=0).fit(X, y)
            accuracies.append(accuracy_by_size(model, X, y, X, y, [30])[1]["random (RBF)"])
        np.testing.assert_allclose(*accuracies, atol=0.03)

    def test_baselines_of_pairs_have_even_sizes(self):
        X, y = make_windmill(80, random_state=0)
        model = FourierFeatures(8, smoothing=0.06, random_state=0).fit(X, y)
        pairs = {"pairs": RandomFourierFeatures(phase="paired", random_state=0)}
        _, found = accuracy_by_size(model, X, y, X, y, [3, 8], pairs)
        assert np.isnan(found["pairs"]).tolist() == [True, False]


@pytest.mark.parametrize("n_components", [24, 30, 60])
def test_the_lower_bound_by_round_is_one(n_components):
    """Whether or not there was room for the highest peaks."""
    X, y = make_checkerboard(100, random_state=0)
    space = Sphere("degree", max_degree=6)
    best = FourierFeatures(49, space=space, smoothing=0, dynamics="primal_dual").fit(X, y)
    value = best.certificate(X, y).upper
    model = FourierFeatures(n_components, space=space, smoothing=0, n_rounds=60, random_state=0)
    assert model.fit(X, y).history_["lower"].max() <= value


@pytest.mark.parametrize(
    "settings", [{"smoothing": 0.06}, {"smoothing": 0.3}, {"smoothing": 0, "n_components": 10}]
)
def test_the_lower_bound_at_the_equilibrium_is_one(settings):
    X, y = make_checkerboard(80, random_state=0)
    space = Sphere("harmonic", max_degree=6)
    whole = FourierFeatures(60, space=space, dynamics="primal_dual", smoothing=0).fit(X, y)
    settings = {"n_components": 40, **settings}
    model = FourierFeatures(space=space, dynamics="primal_dual", **settings).fit(X, y)
    _, upper, lower = bounds_by_round(model, X, y)
    assert lower[-1] <= min(upper[-1], whole.certificate(X, y).upper)


def test_whole_degrees_are_not_parted():
    X, y = make_checkerboard(100, random_state=0)
    space = Sphere("degree", max_degree=6)
    model = FourierFeatures(60, space=space, smoothing=0.06, random_state=0).fit(X, y)
    sizes = model.kernel_.possible_sizes()
    for size in range(1, model.kernel_.n_components + 1):
        if size in sizes:
            model.head(size)
        else:
            with pytest.raises(ValueError, match="would part features"):
                model.head(size)


@pytest.mark.parametrize("n_tasks", [1, 3])
def test_the_potential_on_a_grid_is_the_potential(rng, n_tasks):
    X, measure = rng.standard_normal((50, 2)) + 4, rng.standard_normal((50, n_tasks))
    kernel = RandomFourierFeatures(4, random_state=0).fit(X).kernel_
    across, up = np.linspace(-3, 3, 5), np.linspace(-2, 1, 4)
    grid = potential_on_grid(kernel, Rows(X), measure, across, up)
    for i, v in enumerate(up):
        for j, u in enumerate(across):
            expected = reference.potential(X, measure, np.array([u, v]))
            np.testing.assert_allclose(grid[i, j], expected)


def test_means_of_what_is_known():
    trials = np.array([[1.0, np.nan, np.nan], [3.0, 5.0, np.nan]])
    mean, spread = mean_and_spread(trials)
    np.testing.assert_array_equal(mean, [2, 5, np.nan])
    np.testing.assert_allclose(spread[:2], [np.std([1, 3], ddof=1), 0])


def test_numbers_are_spread_out_by_ratio():
    assert spread_out(np.arange(1, 101), 3).tolist() == [1, 10, 100]
    assert spread_out(np.array([4]), 8).tolist() == [4]
    assert spread_out(np.arange(1, 4), 8).tolist() == [1, 2, 3]
