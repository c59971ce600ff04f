import math
from dataclasses import replace

import numpy as np
import pytest
import reference
from sklearn.datasets import load_diabetes
from sklearn.exceptions import NotFittedError
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

import notsorandom
from notsorandom import FourierFeatures, FourierRegressor, Sphere
from notsorandom.display import HistoryDisplay, ScoreCurveDisplay, SpectrumDisplay
from notsorandom.estimators import steps
from notsorandom.game import LOSSES, REGRESSION_LOSSES, Problem
from notsorandom.linear.newton import solve_task
from notsorandom.search import Ascent, Langevin

QUICK = {"smoothing": 0.06, "random_state": 0}
ALL_LOSSES = pytest.mark.parametrize("loss", REGRESSION_LOSSES)


@pytest.fixture
def wave(rng):
    X = rng.uniform(-1, 1, size=(400, 3))
    return X, np.sin(6 * X[:, 0] - 3 * X[:, 1]) + 0.05 * rng.standard_normal(400)


@pytest.mark.parametrize(
    ("n_rows", "settings"),
    [
        (1500, {}),
        (600, {"loss": "epsilon_insensitive"}),
        (600, {"loss": "quantile"}),
        (300, {"space": Sphere("zonal", normalize=True)}),
        (300, {"search": Langevin(n_steps=20, n_particles=20)}),
    ],
    ids=["squared", "epsilon_insensitive", "quantile", "zonal", "langevin"],
)
def test_the_unit_of_the_targets_does_not_matter(n_rows, settings):
    """A game of hundreds of steps in float32 takes another course at the first other rounding."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, 4))
    y = np.sin(2 * X @ rng.standard_normal(4)) + 0.3 * rng.standard_normal(n_rows)
    model = FourierRegressor(**{"n_components": 50, "random_state": 0, **settings})
    expected = model.fit(X, y).predict(X)
    for scale in (2, 1024, 1 / 8):
        found = model.fit(X, scale * y).predict(X) / scale
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_the_unit_of_the_weights_does_not_matter_at_a_given_c_times_it(rng):
    X, weights = rng.standard_normal((300, 4)), rng.uniform(0.2, 3, size=300)
    y = np.sin(2 * X @ rng.standard_normal(4)) + 0.3 * rng.standard_normal(300)
    one, other = (
        FourierRegressor(50, C=1 / unit, smoothing=0.06, search=Ascent("gaussian"), random_state=0)
        .fit(X, y, sample_weight=unit * weights)
        .predict(X)
        for unit in (1, 1024)
    )
    np.testing.assert_allclose(other, one, rtol=1e-12, atol=1e-12)


class TestLinearModels:
    @pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
    @pytest.mark.parametrize("shape", [(80, 10), (20, 50)])
    def test_squared_is_ridge_regression(self, rng, C, shape):
        X, y = rng.standard_normal(shape), 3 + rng.standard_normal(shape[0])
        model = solve_task(X, Problem.from_arrays(LOSSES["squared"].times(C), y[:, None]), 1e-8)
        ridge = Ridge(alpha=1 / (2 * C)).fit(X, y)
        np.testing.assert_allclose(model.coef, ridge.coef_, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(model.intercept, ridge.intercept_, rtol=1e-4)

    @pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
    @pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0])
    def test_epsilon_insensitive_is_support_vector_regression(self, rng, C, epsilon):
        X = rng.standard_normal((80, 5))
        y = X @ rng.standard_normal(5) + 0.3 * rng.standard_normal(80) + 2
        loss = replace(LOSSES["epsilon_insensitive"], epsilon=epsilon).times(C)
        model = solve_task(X, Problem.from_arrays(loss, y[:, None]), 1e-6)
        svr = SVR(kernel="linear", C=C, epsilon=epsilon, tol=1e-8).fit(X, y)
        np.testing.assert_allclose(model.coef, svr.coef_[0], rtol=1e-2, atol=2e-3)
        assert model.gap <= 1e-5
        residuals = y - X @ model.coef - model.intercept
        own = 0.5 * model.coef @ model.coef
        own += C * np.maximum(np.abs(residuals) - epsilon, 0).sum()
        np.testing.assert_allclose(model.primal_value, own, rtol=1e-6)

    def test_weights_equal_repeated_samples(self, rng):
        X, y, counts = rng.standard_normal((40, 5)), rng.standard_normal(40), rng.integers(1, 4, 40)
        for name in REGRESSION_LOSSES:
            loss = LOSSES[name]
            weighted = Problem.from_arrays(loss, y[:, None], counts[:, None] * 1.0)
            weighted = solve_task(X, weighted, 1e-8)
            many = Problem.from_arrays(loss, np.repeat(y, counts)[:, None])
            repeated = solve_task(np.repeat(X, counts, axis=0), many, 1e-8)
            np.testing.assert_allclose(weighted.coef, repeated.coef, atol=1e-4)


@ALL_LOSSES
def test_wave_is_found(wave, loss):
    X, y = wave
    model = FourierRegressor(20, loss=loss, **QUICK).fit(X[:300], y[:300])
    assert model.score(X[300:], y[300:]) > 0.95
    found = model.frequencies_[0] * np.sign(model.frequencies_[0, 0])
    np.testing.assert_allclose(found, [6, -3, 0], atol=1)
    # Better than a kernel with default parameters.
    default = KernelRidge(kernel="rbf").fit(X[:300], y[:300]).score(X[300:], y[300:])
    assert model.score(X[300:], y[300:]) > default


@ALL_LOSSES
def test_units_do_not_matter(wave, loss, monkeypatch):
    """Those of the samples never; those of the targets if C and epsilon are in the same unit."""
    monkeypatch.setattr(steps, "FLOAT32_LIMIT", 1.0)  # float32 would amplify rounding errors
    X, y = wave
    settings = {"smoothing": 0.05, "random_state": 0}
    model = FourierRegressor(10, loss=loss, epsilon=0.1, C=1.0, **settings).fit(X, y)
    scale = {"epsilon": 100.0, "C": 1.0 if loss == "squared" else 1000.0}
    other = FourierRegressor(10, loss=loss, **settings, **scale).fit(8 * X + 1, 1000 * y + 5000)
    np.testing.assert_allclose(
        other.predict(8 * X + 1), 1000 * model.predict(X) + 5000, rtol=1e-3, atol=5
    )


@ALL_LOSSES
def test_outputs_share_their_frequencies(wave, loss):
    X, y = wave
    both = np.column_stack([y, np.cos(4 * X[:, 2])])
    model = FourierRegressor(30, loss=loss, **QUICK).fit(X, both)
    assert model.predict(X).shape == (400, 2)
    assert model.coef_.shape == (2, 30)
    assert model.n_outputs_ == 2
    assert model.score(X, both) > 0.9
    column = FourierRegressor(8, loss=loss, **QUICK).fit(X, y[:, None])
    flat = FourierRegressor(8, loss=loss, **QUICK).fit(X, y)
    assert column.predict(X).shape == (400, 1)
    np.testing.assert_array_equal(column.predict(X)[:, 0], flat.predict(X))


@ALL_LOSSES
def test_as_a_transformer(wave, loss):
    X, y = wave
    settings = {"n_components": 12, "loss": loss, "epsilon": 0.2, **QUICK}
    features = FourierFeatures(**settings).fit(X, y)
    assert features.transform(X).shape == (400, 12)
    assert not hasattr(features, "classes_")
    assert features.head(4).transform(X).shape == (400, 4)
    regressor = FourierRegressor(calibration_size=0, **settings).fit(X, y)
    np.testing.assert_array_equal(regressor.features_.transform(X), features.transform(X))


@ALL_LOSSES
@pytest.mark.parametrize(("dtype", "phase"), [(np.float32, "aligned"), (np.float64, "paired")])
def test_certificates_bound_the_objective(rng, loss, dtype, phase):
    X = rng.uniform(-1, 1, size=(60, 1)).astype(dtype)
    y = np.sin(4 * X[:, 0]).astype(dtype)
    model = FourierRegressor(8, loss=loss, phase=phase, smoothing=0.1, random_state=0).fit(X, y)
    assert model.predict(X).dtype == dtype
    certificate = model.certificate(X, y)
    assert certificate.certified
    assert 0 < certificate.lower <= certificate.upper_dual * (1 + 1e-4)
    assert certificate.upper_dual <= certificate.upper * (1 + 1e-6)
    assert certificate.regret <= certificate.regret_bound
    assert certificate.sentence.startswith("The training objective is at most")
    assert math.isnan(certificate.sample_size)


def test_on_the_sphere(rng):
    X = reference.sphere_points(rng, 300, 3)
    y = X[:, 0] * X[:, 1] + 0.5 * X[:, 2]
    for solver in ("gradient", "equilibrium", "reweight"):
        settings = {"space": "sphere", "C": 100, "solver": solver, "smoothing": 0.02}
        assert FourierRegressor(20, **settings, random_state=0).fit(X, y).score(X, y) > 0.95
    zonal = FourierRegressor(20, space=Sphere("zonal"), C=100, **QUICK).fit(X, y)
    assert zonal.score(X, y) > 0.9


def test_displays_and_report_of_two_outputs(wave, tmp_path):
    X, y = wave[0][:, :2], np.column_stack([wave[1], wave[1] ** 2])
    model = FourierFeatures(8, loss="squared", **QUICK).fit(X, y)
    HistoryDisplay.from_estimator(model, X, y)
    SpectrumDisplay.from_estimator(model, X, y)
    display = ScoreCurveDisplay.from_estimator(model, X, y, X, y)
    assert display.ax_.get_ylabel() == "test R^2"
    text = notsorandom.report(model, X, y, tmp_path / "page.html", X_test=X, y_test=y).read_text()
    assert "test R^2" in text
    assert "Learned features" in text
    assert "Confusion matrix" not in text


@pytest.mark.parametrize("value", [0.0, 7.0])
@pytest.mark.parametrize("n_components", [4, pytest.param("auto", marks=pytest.mark.full_trials)])
def test_constant_targets_are_predicted(rng, value, n_components):
    X = rng.standard_normal((100, 2))
    model = FourierRegressor(n_components, random_state=0).fit(X, np.full(100, value))
    np.testing.assert_allclose(model.predict(X), value, rtol=1e-6)
    assert model.status_ == "flat"


@pytest.mark.slow
@pytest.mark.full_trials
def test_default_smoothing_is_as_good_as_tuned_kernel_ridge_on_noisy_targets():
    """The candidates were chosen on this data, so this guards against regressions only."""
    X, y = load_diabetes(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    grid = {"alpha": [0.01, 0.1, 1, 10], "gamma": [1e-4, 1e-3, 1e-2, 1e-1]}
    scores = []
    for train, test in KFold(5, shuffle=True, random_state=0).split(X):
        mean = y[train].mean()
        tuned = GridSearchCV(KernelRidge(kernel="rbf"), grid).fit(X[train], y[train] - mean)
        model = FourierRegressor(random_state=0).fit(X[train], y[train])
        ours, theirs = model.score(X[test], y[test]), tuned.score(X[test], y[test] - mean)
        scores.append((ours, theirs))
    ours, theirs = np.transpose(scores)
    assert ours.mean() > theirs.mean() - theirs.std() / np.sqrt(5)


def test_calibrate_after_a_fit_without_held_out_samples(wave):
    X, y = wave
    model = FourierRegressor(12, calibration_size=0, smoothing=0.06, random_state=0)
    model.fit(X[:200], y[:200])
    for call in (model.predict_interval, lambda X: model.predict(X, return_std=True)):
        with pytest.raises(ValueError, match="call calibrate with other samples"):
            call(X)
    deviations = model.calibrate(X[200:], y[200:]).predict(X, return_std=True)[1]
    assert np.ptp(deviations) > 0
    assert model.predict_interval(X).shape == (len(X), 2)
    del model.posterior_  # as in a file of an older version
    widths = np.diff(model.calibrate(X[200:], y[200:]).predict_interval(X))
    np.testing.assert_allclose(widths, np.full((400, 1), widths[0, 0]))


def test_certificates_are_of_the_rows_that_the_game_was_played_on(wave, tmp_path):
    """Also of the features alone, and whatever the parameters are after the fit."""
    X, y = wave
    model = FourierRegressor(12, C=1.0, linear=False, **QUICK).fit(X, y)
    features = model.features_
    assert not {"posterior_", "noise_", "held_out_scores_"} & set(vars(features))
    expected = model.certificate(X, y, max_evaluations=300)
    loaded = notsorandom.load(notsorandom.save(model, tmp_path / "model.skops"))
    assert loaded.certificate(X, y, max_evaluations=300).upper == expected.upper
    assert features.certificate(X, y, max_evaluations=300) == expected
    model.set_params(calibration_size=0)
    assert model.certificate(X, y, max_evaluations=300) == expected
    assert model.fit(X, y).certificate(X, y, max_evaluations=300) != expected


def test_calibrate_needs_a_fitted_model(wave):
    with pytest.raises(NotFittedError):
        FourierRegressor().calibrate(*wave)
