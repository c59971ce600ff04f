import re

import numpy as np
import pytest
import reference
from scipy import sparse

from notsorandom import (
    EquilibriumSolver,
    FourierClassifier,
    FourierFeatures,
    FourierRegressor,
    GradientSolver,
    Sphere,
)
from notsorandom.baselines import LKRF, RandomFourierFeatures
from notsorandom.data.rows import Rows
from notsorandom.datasets import make_checkerboard, make_windmill
from notsorandom.display.inspection import (
    bounds_by_round,
    describe_spectrum,
    geometric_subset,
    potential_on_grid,
    score_predictions,
    scores_by_size,
    take_snapshots,
)
from notsorandom.estimators import steps
from notsorandom.game import LOSSES, Problem
from notsorandom.linear.newton import solve_task, solve_tasks

pytestmark = pytest.mark.usefixtures("quick_trials")


class TestSnapshots:
    def test_they_equal_shorter_fits(self, monkeypatch):
        # Snapshots are replayed in the precision of the samples.
        monkeypatch.setattr(steps, "FLOAT32_LIMIT", 1.0)
        X, y = make_windmill(300, random_state=0)
        settings = {"loss": "hinge", "C": 1.0, "smoothing": 0.05, "random_state": 0}
        model = FourierClassifier(40, **settings).fit(X, y)
        n_rounds = len(model.history_["step"])
        first, middle, last = take_snapshots(model, X, y, [1, 4, n_rounds])
        assert [snapshot.round for snapshot in (first, middle, last)] == [1, 4, n_rounds]
        np.testing.assert_allclose(np.abs(first.measure), 0.5, atol=1e-6)  # the initial dual
        np.testing.assert_allclose(
            last.decision_function(X)[:, 0], model.decision_function(X), atol=1e-6
        )
        size = int(model.history_["n_frequencies"][3])
        shorter = FourierClassifier(size, **settings).fit(X, y)
        np.testing.assert_allclose(middle.kernel.frequencies, shorter.frequencies_)
        np.testing.assert_allclose(
            middle.decision_function(X)[:, 0], shorter.decision_function(X), atol=1e-6
        )

    def test_they_contain_the_frequencies_that_reweighting_dropped(self):
        X, y = make_windmill(100, random_state=0)
        model = FourierFeatures(30, smoothing=0.05, solver="reweight", random_state=0).fit(X, y)
        last = take_snapshots(model, X, y)[-1]
        assert len(last.kernel.frequencies) == 30 > len(model.frequencies_)

    @pytest.mark.parametrize(
        "settings",
        [
            {"space": "sphere"},
            {"space": "sphere", "solver": EquilibriumSolver()},
            {"solver": GradientSolver(projection="alternating")},
        ],
    )
    def test_games_that_cannot_be_replayed_are_refused(self, settings):
        X, y = make_checkerboard(80, random_state=0)
        model = FourierFeatures(10, smoothing=0, **settings).fit(X, y)
        with pytest.raises(ValueError, match="can't be replayed"):
            take_snapshots(model, X, y)

    def test_games_beside_a_linear_part_are_refused(self, trend):
        """They start from a linear model that is not kept."""
        model, X, y = trend
        with pytest.raises(ValueError, match=r"can't be replayed.*linear=False"):
            take_snapshots(model, X, y)

    def test_bad_arguments_are_refused(self, small):
        model, X, y = small
        for rounds in ([0], [1, 99], []):
            with pytest.raises(ValueError, match=r"rounds=\[.*\] is not allowed: give numbers"):
                take_snapshots(model, X, y, rounds)
        with pytest.raises(ValueError, match="X has 40 samples, but the game was played on 80"):
            take_snapshots(model, X[:40], y[:40])
        model = FourierFeatures(30, smoothing=0.05, solver="reweight", random_state=0).fit(X, y)
        with pytest.raises(ValueError, match="use the whole model"):
            take_snapshots(model.head(2), X, y)


class TestBoundsByRound:
    @pytest.mark.parametrize("space", ["euclidean", "sphere", Sphere("degree", max_degree=6)])
    @pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
    def test_they_are_ordered_and_monotone(self, space, loss):
        X, y = make_checkerboard(150, random_state=0)
        settings = {"loss": loss, "C": 1.0, "smoothing": 0, "random_state": 0}
        model = FourierFeatures(60, space=space, **settings).fit(X, y)
        rounds, upper, lower, _ = bounds_by_round(model, X, y)
        assert rounds[0] >= 1
        assert (np.diff(rounds) > 0).all()
        assert rounds[-1] == len(model.history_["plays"])
        assert (np.diff(upper) <= 0).all()
        assert (np.diff(lower) >= 0).all()
        assert (lower <= upper).all()
        certificate = model.certificate(X, y, max_evaluations=1000)
        assert upper[-1] <= certificate.upper * (1 + 2e-3)
        if model.kernel_.space.kind == "finite":  # all frequencies are evaluated
            targets = np.where(y == 1, 1.0, -1.0)[:, None]
            problem = Problem.from_arrays(LOSSES[loss], targets)
            assert lower[-1] <= solve_task(model.transform(X), problem, 1e-6).primal_value

    @pytest.mark.parametrize("n_components", [24, 30, 60])
    def test_lower_bound_is_below_the_value_of_the_game(self, n_components):
        """Also if there was no room for the highest peaks."""
        X, y = make_checkerboard(100, random_state=0)
        space = Sphere("degree", max_degree=6)
        settings = {"space": space, "C": 1.0, "smoothing": 0}
        best = FourierFeatures(49, solver="equilibrium", **settings).fit(X, y)
        value = best.certificate(X, y).upper
        solver = GradientSolver(n_rounds=60)
        model = FourierFeatures(n_components, solver=solver, random_state=0, **settings)
        _, _, lower, certified = bounds_by_round(model.fit(X, y), X, y)
        assert certified
        assert lower.max() <= value

    @pytest.mark.parametrize(
        "settings", [{"smoothing": 0.06}, {"smoothing": 0.3}, {"smoothing": 0, "n_components": 10}]
    )
    def test_equilibrium(self, settings):
        X, y = make_checkerboard(80, random_state=0)
        same = {"space": Sphere("harmonic", max_degree=6), "C": 1.0, "solver": "equilibrium"}
        best = FourierFeatures(60, smoothing=0, **same).fit(X, y)
        model = FourierFeatures(**{"n_components": 40} | same | settings).fit(X, y)
        _, upper, lower, _ = bounds_by_round(model, X, y)
        assert lower[-1] <= min(upper[-1], best.certificate(X, y).upper)


class TestScoresBySize:
    def test_they_equal_the_scores_of_shorter_fits(self):
        X, y = make_windmill(300, random_state=0)
        X_test, y_test = make_windmill(1000, random_state=1)
        model = FourierClassifier(40, smoothing=0.05, random_state=0).fit(X, y)
        sizes, scores = scores_by_size(model, X, y, X_test, y_test, [10, 40])
        assert sizes.tolist() == [10, 40]
        assert list(scores) == ["learned", "random (RBF)"]
        for size, score in zip(sizes, scores["learned"], strict=True):
            shorter = FourierClassifier(int(size), smoothing=0.05, random_state=0).fit(X, y)
            assert abs(score - shorter.score(X_test, y_test)) < 2e-3
        assert (scores["learned"] > scores["random (RBF)"]).all()

    @pytest.mark.parametrize("as_samples", [np.asarray, sparse.csr_array])
    @pytest.mark.parametrize("loss", ["logistic", "hinge"])
    def test_all_features_are_beside_the_linear_part(self, trend, loss, as_samples):
        _, X, y = trend
        model = FourierClassifier(20, linear=True, loss=loss, smoothing=0.05, random_state=0)
        model.fit(as_samples(X), y)
        data = as_samples(X), y
        sizes, scores = scores_by_size(model, *data, *data, [1, 20])
        assert sizes.tolist() == [1, 20]
        np.testing.assert_allclose(scores["learned"][1], model.score(*data), atol=0.01)
        for size, score in zip(sizes, scores["learned"], strict=True):
            problem, head = model._training_problem(X, y), model.features_.head(int(size))
            features = head.transform(problem.rows.array)
            assert features.shape == (300, size + 2)
            coef, intercept, _ = solve_tasks(features, problem, 1e-4)
            hits = (head.transform(X) @ coef.T + intercept > 0)[:, 0] == y
            np.testing.assert_allclose(score, hits.mean(), atol=0.01)
        assert scores["random (RBF)"][0] > 0.74  # 0.71 and 0.73 without the trend
        assert scores["learned"][1] > 0.95

    def test_text_labels_and_other_baselines(self, rng):
        X, y = rng.standard_normal((90, 3)), np.array(list("abc"))[np.arange(90) % 3]
        X[:, 0] += 3 * (y == "b")
        model = FourierFeatures(8, smoothing=0.06, random_state=0).fit(X, y)
        baselines = {"pool": LKRF(n_pool=50, rho=10.0, random_state=0)}
        sizes, scores = scores_by_size(model, X, y, X, y, baselines=baselines)
        assert sizes[-1] == 8
        assert list(scores) == ["learned", "pool"]
        assert scores["learned"][-1] > 0.5
        assert take_snapshots(model, X, y)[-1].decision_function(X).shape == (90, 3)
        assert scores_by_size(model, X, y, X, ["z"] * 90, [8], {})[1]["learned"] == 0

    def test_regression(self, rng):
        X = rng.standard_normal((80, 2))
        y = np.column_stack([np.sin(X[:, 0]), 5 * X[:, 1]])
        model = FourierRegressor(10, smoothing=0.06, random_state=0).fit(X, y)
        _, scores = scores_by_size(model, X, y, X, y, [10])
        errors = np.square(model.predict(X) - y).sum()
        expected = 1 - errors / np.square(y - y.mean(axis=0)).sum()
        np.testing.assert_allclose(scores["learned"], expected)
        np.testing.assert_allclose(score_predictions(model, model.predict(X), y), expected)

    def test_bad_arguments_are_refused(self, small):
        model, X, y = small
        columns = y[:, None] + [0, 1]
        for data in ((X[:, :1], y), (X * np.nan, y), (X, y[:1]), (X, columns)):
            with pytest.raises(ValueError, match=r".+"):
                scores_by_size(model, X, y, *data)
        model = FourierFeatures(8, phase="paired", smoothing=0.06, random_state=0).fit(X, y)
        _, scores = scores_by_size(model, X, y, X, y, [8, 12])
        assert np.isnan(scores["learned"][1])  # above their number: of the baseline alone
        assert scores["random (RBF)"][1] > 0.5
        for sizes in ([3], [], [10]):
            with pytest.raises(ValueError, match=r"sizes=\[\d*\] is not allowed: .* 2, 4, 6, 8"):
                scores_by_size(model, X, y, X, y, sizes)

    def test_baselines_get_normalized_samples(self, rng):
        Z = rng.standard_normal((200, 5))
        y = Z[:, 0] * Z[:, 1] > 0
        space = Sphere("zonal", normalize=True)
        scores = []
        for X in (reference.unit(Z), 1000 * reference.unit(Z)):
            model = FourierFeatures(30, space=space, smoothing=0.05, random_state=0).fit(X, y)
            scores.append(scores_by_size(model, X, y, X, y, [30])[1]["random (RBF)"])
        np.testing.assert_allclose(*scores, atol=0.03)

    def test_paired_baselines_have_even_sizes(self, small):
        model, X, y = small
        pairs = {"pairs": RandomFourierFeatures(phase="paired", random_state=0)}
        _, scores = scores_by_size(model, X, y, X, y, [3, 8], pairs)
        assert np.isnan(scores["pairs"]).tolist() == [True, False]


@pytest.mark.parametrize("n_tasks", [1, 3])
def test_potential_on_a_grid(rng, n_tasks):
    X, measure = rng.standard_normal((50, 2)) + 4, rng.standard_normal((50, n_tasks))
    across, up = np.linspace(-3, 3, 5), np.linspace(-2, 1, 4)
    grid = potential_on_grid(Rows(X), measure, across, up)
    for i, v in enumerate(up):
        for j, u in enumerate(across):
            expected = reference.potential(X, measure, np.array([u, v]))
            np.testing.assert_allclose(grid[i, j], expected)


def test_description_of_a_spectrum(small):
    _, X, y = small
    solver = GradientSolver(weighting="uniform")
    model = FourierFeatures(7, smoothing=0.06, solver=solver, random_state=0).fit(X, y)
    assert describe_spectrum(model.kernel_) == "7 frequencies (effective number 7)."
    X, y = make_checkerboard(100, random_state=0)
    model = FourierFeatures(12, space="sphere", smoothing=0.06, random_state=0).fit(X, y)
    text = describe_spectrum(model.kernel_)
    counts = re.findall(r"\((\d+)\)", text[text.index("Degrees (number of frequencies): ") :])
    assert sum(map(int, counts)) == len(model.frequencies_)


def test_geometric_subset():
    assert geometric_subset(np.arange(1, 101), 3).tolist() == [1, 10, 100]
    assert geometric_subset(np.array([4]), 8).tolist() == [4]
    assert geometric_subset(np.arange(1, 4), 8).tolist() == [1, 2, 3]


def test_array_api_input_gives_the_same_values():
    xp = pytest.importorskip(
        "array_api_strict", reason="needs array-api-strict: pip install 'notsorandom[all]'"
    )
    X, y = make_windmill(100, random_state=0)
    device = xp.asarray(X), xp.asarray(y)
    model = FourierClassifier(6, smoothing=0.06, random_state=0).fit(X, y)
    same = FourierClassifier(6, smoothing=0.06, random_state=0).fit(*device)
    expected, scores = (
        scores_by_size(each, *data, *data)[1]["learned"]
        for each, data in ((model, (X, y)), (same, device))
    )
    np.testing.assert_allclose(scores, expected)
    last, same_last = take_snapshots(model, X, y)[-1], take_snapshots(same, *device)[-1]
    np.testing.assert_allclose(same_last.measure, last.measure, atol=1e-4)
