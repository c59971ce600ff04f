from unittest.mock import Mock

import numpy as np
import pytest
import reference
from sklearn.base import clone
from sklearn.linear_model import QuantileRegressor
from sklearn.metrics import mean_pinball_loss

import notsorandom
from notsorandom import Checkpoint, FourierFeatures, FourierRegressor
from notsorandom.data.rows import Rows
from notsorandom.estimators.config import fitted_loss
from notsorandom.game import LOSSES, Problem, QuantileLoss
from notsorandom.linear.newton import solve_task
from notsorandom.linear.streaming import solve_streaming
from notsorandom.tuning.held_out import held_out_losses
from notsorandom.tuning.trial_models import solve_batch

QUANTILES = pytest.mark.parametrize("quantile", [0.02, 0.1, 0.5, 0.75, 0.95])
GIVEN = {"C": 1.0, "smoothing": 0.1, "random_state": 0}


def quantile_regressor(quantile, n_components=20, **changes):
    settings = {"loss": "quantile", "quantile": quantile, **GIVEN} | changes
    return FourierRegressor(n_components, **settings)


@pytest.fixture
def uneven(rng):
    """A wave whose noise is skewed, and grows with the second column."""
    X = rng.uniform(-1, 1, size=(600, 2))
    return X, np.sin(4 * X[:, 0]) + (1.2 + X[:, 1]) * rng.exponential(0.3, size=600)


def pinball(residuals, quantile):
    return np.where(residuals > 0, quantile, quantile - 1) * residuals


# The loss.


@QUANTILES
@pytest.mark.parametrize("C", [0.3, 20.0])
def test_loss_is_the_pinball_loss(rng, quantile, C):
    loss, residuals = QuantileLoss(quantile=quantile).times(C), rng.standard_normal((50, 1))
    low, high = loss.box(residuals)
    np.testing.assert_allclose(low, -(1 - quantile) * C)
    np.testing.assert_allclose(high, quantile * C)
    np.testing.assert_allclose(loss.values(residuals, low, high), C * pinball(residuals, quantile))
    # Its dual is linear, so the maximum over the box is at one of the ends.
    ends = np.maximum(low * residuals, high * residuals)
    np.testing.assert_allclose(loss.values(residuals, low, high), ends)


@QUANTILES
def test_largest_multiple_reaches_the_box_and_stays_in_it(rng, quantile):
    loss = QuantileLoss(quantile=quantile).times(3.0)
    problem = Problem.from_arrays(loss, rng.standard_normal((30, 2)))
    dual = 0.2 * problem.project(5 * rng.standard_normal((30, 2)))
    largest = problem.stats(dual).largest_multiple * dual
    low, high = problem.box
    assert ((largest >= low * (1 + 1e-9)) & (largest <= high * (1 + 1e-9))).all()
    assert np.isclose(largest, low).any() or np.isclose(largest, high).any()
    assert loss.largest_multiple(0.0, 0.0) == 0


@QUANTILES
def test_ball_and_diameter_hold_the_feasible_set(rng, quantile):
    problem = Problem.from_arrays(QuantileLoss(quantile=quantile), rng.standard_normal((40, 1)))
    points = [problem.project(9 * rng.standard_normal((40, 1))) for _ in range(20)]
    diameter, _ = problem.diameter_and_gradient(1.0)
    assert max(map(np.linalg.norm, points)) <= problem.radius
    assert max(np.linalg.norm(a - b) for a in points for b in points) <= diameter
    assert diameter == pytest.approx(np.sqrt(40))  # that of the box


@QUANTILES
def test_share_at_the_limits_of_the_box(rng, quantile):
    targets, weights = rng.standard_normal((60, 1)), rng.uniform(0.5, 2, size=(60, 1))
    problem = Problem.from_arrays(QuantileLoss(quantile=quantile), targets, weights)
    dual = problem.project(2 * rng.standard_normal((60, 1)))
    low, high = problem.box
    expected = np.average((dual == low) | (dual == high), weights=weights)
    assert 0 < expected == pytest.approx(problem.stats(dual).share_at_upper)


@QUANTILES
def test_game_starts_inside_the_box(rng, quantile):
    """A target at a standard deviation from the mean starts half way to the nearer limit."""
    targets = 7 * rng.standard_normal((60, 1))
    problem = Problem.from_arrays(QuantileLoss(quantile=quantile).times(3.0), targets)
    nearer = 3.0 * min(quantile, 1 - quantile)
    assert problem.start_factor * targets.std() == pytest.approx(nearer / 2)
    assert problem.stats(problem.first_dual()).share_at_upper < 0.1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"quantile": 0.0}, "quantile=0.0 is not allowed"),
        ({"quantile": 1}, "quantile=1 is not allowed"),
        ({"curvature": 1.0}, "no curvature"),
        ({"epsilon": 0.1}, "no epsilon"),
        ({"one_sided": True}, "one_sided is False"),
    ],
)
def test_bad_losses_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        QuantileLoss(**changes).check()


# The linear model.


@QUANTILES
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_linear_models_reach_the_optimum(rng, quantile, C, weighted):
    """In memory, in passes over blocks, and of trials, to the gap that each allows."""
    X = rng.standard_normal((400, 6))
    y = X @ rng.standard_normal(6) + rng.exponential(size=400) + 5
    weights = rng.uniform(0.2, 3, size=400) if weighted else None
    optimum = reference.linear_model_value(X, y, "quantile", C, weights, quantile=quantile)
    column = None if weights is None else weights[:, None]
    loss = QuantileLoss(quantile=quantile).times(C)

    def value(coef, intercept):
        losses = pinball(y - X @ coef - intercept, quantile)
        return 0.5 * coef @ coef + C * np.average(losses, weights=weights) * (
            400 if weights is None else weights.sum()
        )

    problem = Problem(loss, y[:, None], Rows(X, column, block_rows=50))
    model = solve_task(X, Problem.from_arrays(loss, y[:, None], column), 1e-6)
    assert model.gap <= 1e-6
    assert model.dual_value * (1 - 1e-7) <= optimum <= model.primal_value * (1 + 1e-7)
    assert model.primal_value == pytest.approx(value(model.coef, model.intercept))
    coef, intercept, gap = solve_streaming(problem, lambda _: lambda X: X, 6, 1e-3, sample_rows=100)
    assert gap <= 1e-3
    assert value(coef[0], intercept[0]) <= optimum * (1 + 1.1e-3)
    coef, intercept = solve_batch(X[None], y[:, None] - 5, np.ones((1, 400), bool), loss, weights)
    assert value(coef[0, 0, 0], intercept[0, 0, 0] + 5) <= optimum * (1 + 2e-2)


@QUANTILES
def test_large_c_is_the_regression_of_scikit_learn(rng, quantile):
    X = rng.standard_normal((200, 4))
    y = X @ rng.standard_normal(4) + rng.exponential(size=200)
    loss = QuantileLoss(quantile=quantile).times(1e6)
    model = solve_task(X, Problem.from_arrays(loss, y[:, None]), 1e-5)
    expected = QuantileRegressor(quantile=quantile, alpha=0).fit(X, y)
    ours, theirs = (
        mean_pinball_loss(y, predicted, alpha=quantile)
        for predicted in (X @ model.coef + model.intercept, expected.predict(X))
    )
    assert ours == pytest.approx(theirs, rel=1e-4)
    assert np.abs(model.coef - expected.coef_).max() < 0.02


# The estimator.


@QUANTILES
def test_share_of_targets_below_the_predictions(uneven, quantile):
    """The intercept is not penalised, so that the slopes of the losses add up to zero."""
    X, y = uneven
    model = quantile_regressor(quantile).fit(X, y)
    assert model.duality_gap_ <= 1e-3
    assert abs((y < model.predict(X)).mean() - quantile) < 0.02
    low, high = fitted_loss(model).box(y)
    assert ((model.dual_[:, 0] >= low * 1.0001) & (model.dual_[:, 0] <= high * 1.0001)).all()


def test_predictions_are_the_quantiles_of_the_noise(rng):
    """Of noise with known quantiles, by trials that choose everything."""
    X, X_new = rng.uniform(-1, 1, size=(3000, 1)), np.linspace(-0.9, 0.9, 50)[:, None]
    y = np.sin(4 * X[:, 0]) + rng.exponential(size=3000)
    for quantile in (0.1, 0.5, 0.9):
        model = FourierRegressor(40, loss="quantile", quantile=quantile, random_state=0).fit(X, y)
        expected = np.sin(4 * X_new[:, 0]) - np.log(1 - quantile)
        assert np.abs(model.predict(X_new) - expected).mean() < 0.12 / (1 - quantile) ** 0.5


def test_median_is_a_support_vector_regression_without_epsilon(uneven):
    X, y = uneven
    median = quantile_regressor(0.5, C=2.0).fit(X, y)
    other = FourierRegressor(20, loss="epsilon_insensitive", epsilon=0.0, **GIVEN).fit(X, y)
    np.testing.assert_allclose(median.dual_, other.dual_, atol=1e-6)
    np.testing.assert_allclose(median.predict(X), other.predict(X), atol=0.02)


def test_negated_targets_have_the_opposite_quantile(uneven):
    X, y = uneven
    low, high = quantile_regressor(0.2).fit(X, y), quantile_regressor(0.8).fit(X, -y)
    np.testing.assert_allclose(low.predict(X), -high.predict(X), atol=0.02)


@QUANTILES
def test_twice_the_targets_have_twice_the_predictions(uneven, quantile):
    X, y = uneven
    settings = {"smoothing": [0.1, 0.3], "random_state": 0}
    model = FourierRegressor(10, loss="quantile", quantile=quantile, **settings)
    one, two = clone(model).fit(X, y), clone(model).fit(X, 2 * y + 1)
    np.testing.assert_allclose(two.C_, 2 * one.C_, rtol=1e-3)
    np.testing.assert_allclose(two.predict(X), 2 * one.predict(X) + 1, atol=0.02)


def test_weights_are_counts(uneven, rng):
    X, y = uneven
    counts = rng.integers(0, 4, size=len(y))
    model = FourierRegressor(10, loss="quantile", quantile=0.8, smoothing=0.1, random_state=0)
    some = slice(0, 250)  # 4-fold cross-validation, whose splits don't depend on the copies
    weighted = clone(model).fit(X[some], y[some], sample_weight=counts[some])
    copies = np.repeat(np.arange(250), counts[some])
    copied = clone(model).fit(X[copies], y[copies])
    assert weighted.C_ == copied.C_
    np.testing.assert_array_equal(weighted.predict(X), copied.predict(X))


def test_several_outputs(uneven):
    X, y = uneven
    model = quantile_regressor(0.9).fit(X, np.column_stack([y, -y]))
    shares = (np.column_stack([y, -y]) < model.predict(X)).mean(axis=0)
    np.testing.assert_allclose(shares, 0.9, atol=0.03)


@QUANTILES
def test_trials_compare_by_the_pinball_loss(rng, quantile):
    targets, scores = rng.standard_normal((30, 2)), rng.standard_normal((3, 4, 30, 2))
    problem = Problem.from_arrays(QuantileLoss(quantile=quantile).times(7.0), targets)
    losses, temperatures = held_out_losses(problem, scores)
    for index in np.ndindex(3, 4):
        expected = sum(pinball(targets[:, k] - scores[index][:, k], quantile) for k in (0, 1))
        np.testing.assert_allclose(losses[index], expected)
    assert (temperatures == 1).all()
    for name in ("squared", "epsilon_insensitive"):  # as they always were
        losses, _ = held_out_losses(Problem.from_arrays(LOSSES[name], targets), scores)
        np.testing.assert_allclose(losses, np.square(targets - scores).sum(axis=-1))


@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("solver", ["gradient", "reweight"])
def test_certificates_bound_the_objective(rng, quantile, solver):
    X = rng.uniform(-1, 1, size=(60, 1))
    y = np.sin(4 * X[:, 0]) + 0.3 * rng.standard_normal(60)
    model = quantile_regressor(quantile, 8, solver=solver).fit(X, y)
    certificate = model.certificate(X, y)
    assert certificate.certified
    assert 0 < certificate.lower <= certificate.upper_dual * (1 + 1e-4)
    features = model.kernel_.features(X)
    optimum = reference.linear_model_value(features, y, "quantile", 1.0, quantile=quantile)
    assert certificate.upper_dual * (1 - 1e-6) <= optimum <= certificate.upper * (1 + 1e-6)
    if solver == "gradient":
        assert certificate.regret <= certificate.regret_bound


def test_equilibrium_of_a_quantile(rng):
    X = rng.uniform(-1, 1, size=(60, 1))
    y = np.sin(4 * X[:, 0]) + 0.3 * rng.standard_normal(60)
    model = quantile_regressor(0.8, 20, solver="equilibrium").fit(X, y)
    certificate = model.certificate(X, y)
    assert certificate.lower <= certificate.upper
    assert abs((y < model.predict(X)).mean() - 0.8) < 0.1


def test_features_have_the_loss_of_the_regressor(uneven):
    X, y = uneven
    model = quantile_regressor(0.8, 8).fit(X[:60], y[:60])
    features = model.features_
    assert features.loss == QuantileLoss(quantile=0.8)
    assert fitted_loss(features) == fitted_loss(model)
    alone = FourierFeatures(8, loss=QuantileLoss(quantile=0.8), **GIVEN).fit(X[:60], y[:60])
    np.testing.assert_array_equal(features.transform(X), alone.transform(X))
    assert "quantile" not in FourierFeatures().get_params()


def test_games_can_be_continued(uneven, tmp_path, monkeypatch):
    X, y = uneven
    whole = quantile_regressor(0.8, warm_start=True).fit(X, y)
    part = clone(whole).set_params(n_components=10).fit(X, y)
    with pytest.raises(ValueError, match=r"quantile was 0\.8 and is 0\.7"):
        part.set_params(n_components=20, quantile=0.7).fit(X, y)
    part.set_params(quantile=0.8).fit(X, y)
    np.testing.assert_array_equal(part.coef_, whole.coef_)
    path = tmp_path / "state.npz"

    stopped = quantile_regressor(0.8, checkpoint=Checkpoint(path, every=0))
    with monkeypatch.context() as patch:
        patch.setattr(FourierRegressor, "_fit_linear_models", Mock(side_effect=MemoryError))
        with pytest.raises(MemoryError):
            stopped.fit(X, y)
    assert path.exists()
    with pytest.raises(ValueError, match=r"quantile was 0\.8 and is 0\.7"):
        quantile_regressor(0.7, checkpoint=path).fit(X, y)
    resumed = quantile_regressor(0.8, checkpoint=path).fit(X, y)
    np.testing.assert_array_equal(resumed.coef_, whole.coef_)


def test_model_files_keep_the_quantile(uneven, tmp_path):
    X, y = uneven
    model = quantile_regressor(0.8, 8).fit(X, y)
    loaded = notsorandom.load(notsorandom.save(model, tmp_path / "model.skops"))
    assert loaded.quantile == 0.8
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert fitted_loss(loaded) == fitted_loss(model)
    features = notsorandom.load(notsorandom.save(model.features_, tmp_path / "features.skops"))
    assert features.loss == QuantileLoss(quantile=0.8)


@pytest.mark.parametrize("quantile", [0, 1, -0.1, 1.5, np.nan, "auto", None, True])
def test_bad_quantiles_are_refused_before_any_work(quantile):
    with pytest.raises(ValueError, match=r"quantile=.* is not allowed: .*> 0 and < 1"):
        FourierRegressor(quantile=quantile).fit(None, None)


def test_quantile_is_ignored_with_other_losses(uneven):
    X, y = uneven
    for loss in ("squared", "epsilon_insensitive", QuantileLoss(quantile=0.3)):
        one, other = (FourierRegressor(8, loss=loss, quantile=q, **GIVEN) for q in (0.5, 0.9))
        np.testing.assert_array_equal(one.fit(X, y).coef_, other.fit(X, y).coef_)


@pytest.mark.parametrize("quantile", [1e-6, 1 - 1e-6])
def test_extreme_quantiles_are_bounds_of_the_targets(uneven, quantile):
    X, y = uneven
    predicted = quantile_regressor(quantile, 8).fit(X, y).predict(X)
    assert np.isfinite(predicted).all()
    wrong = y < predicted if quantile < 0.5 else y > predicted
    assert wrong.mean() < 0.01
