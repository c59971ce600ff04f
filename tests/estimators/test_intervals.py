import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import notsorandom
from notsorandom import Ascent, FourierClassifier, FourierFeatures, FourierRegressor
from notsorandom.data.rows import Rows
from notsorandom.game import LOSSES, Problem
from notsorandom.linear.newton import solve_task
from notsorandom.linear.ridge import solve_ridge

GIVEN = {"C": 3.0, "smoothing": 0.1, "search": Ascent(spectrum="gaussian"), "random_state": 0}
COVERAGES = [0.5, 0.8, 0.9]


def sample(rng, n=1500, n_outputs=None):
    X = rng.uniform(-2, 2, size=(n, 2))
    signal = np.sin(3 * X[:, 0]) + X[:, 1]
    if n_outputs is None:
        return X, signal + 0.3 * rng.normal(size=n)
    return X, np.outer(signal, np.arange(1, n_outputs + 1)) + 0.3 * rng.normal(size=(n, n_outputs))


@pytest.fixture(scope="module")
def fitted():
    X, y = sample(np.random.default_rng(0))
    return FourierRegressor(40, **GIVEN).fit(X, y), X, y


def covered(y, intervals):
    return np.mean((y >= intervals[:, 0]) & (y <= intervals[:, 1]), axis=0)


def test_coverage_of_new_samples(fitted, rng):
    model, _, _ = fitted
    X, y = sample(rng, 20_000)
    found = covered(y[:, None], model.predict_interval(X, COVERAGES))
    np.testing.assert_allclose(found, COVERAGES, atol=0.06)  # 300 held-out rows: 2 to 3 points
    np.testing.assert_allclose(model.noise_, 0.3, rtol=0.1)


def test_interval_is_symmetric_and_follows_the_deviation(fitted, rng):
    model, _, _ = fitted
    X = np.vstack([sample(rng, 50)[0], [[30.0, -20.0]]])
    mean, deviation = model.predict(X, return_std=True)
    low, high = model.predict_interval(X, 0.8).T
    np.testing.assert_allclose((low + high) / 2, mean)
    ratios = (high - low) / deviation
    np.testing.assert_allclose(ratios, ratios[0])
    assert deviation[-1] > 1.5 * deviation[:-1].max()  # far from all samples
    np.testing.assert_array_equal(model.predict(X), mean)


def test_deviation_is_that_of_a_gaussian_process_on_the_features(fitted, rng):
    model, X, _ = fitted
    X_new = sample(rng, 20)[0]
    features, new = model.kernel_.features(X), model.kernel_.features(X_new)
    prior = 2 * model.C_ * model.noise_[0] ** 2  # variance of the coefficients

    def gram(X, Z=None):
        return prior * (X @ (X if Z is None else Z).T) + 1e6  # a flat prior of the intercept

    covariance = gram(features) + model.noise_[0] ** 2 * np.eye(len(X))
    cross = gram(new, features)
    variance = np.diag(gram(new)) - np.einsum(
        "ij,ij->i", cross, np.linalg.solve(covariance, cross.T).T
    )
    _, deviation = model.predict(X_new, return_std=True)
    np.testing.assert_allclose(deviation, np.sqrt(variance + model.noise_[0] ** 2), rtol=1e-3)


def test_held_out_rows_play_no_part_in_the_game():
    """Their targets can be anything; the final model has them."""
    X, y = sample(np.random.default_rng(0))
    model = FourierRegressor(10, calibration_size=200, **GIVEN).fit(X, y)
    assert len(model.held_out_scores_.scores) == 200
    out = np.flatnonzero(model.dual_[:, 0] == 0)
    assert len(out) == 200
    changed = y.copy()
    changed[out] += np.random.default_rng(1).normal(size=200)
    # The mean of the targets is subtracted before the game.
    changed[out] -= (changed[out] - y[out]).mean()
    other = FourierRegressor(10, calibration_size=200, **GIVEN).fit(X, changed)
    np.testing.assert_allclose(other.frequencies_, model.frequencies_, rtol=1e-3)
    assert not np.allclose(other.coef_, model.coef_, rtol=1e-3)


def test_scores_are_those_of_models_without_the_row():
    X, y = sample(np.random.default_rng(0))
    model = FourierRegressor(10, **GIVEN).fit(X, y)
    out = np.flatnonzero(model.dual_[:, 0] == 0)
    features, loss = model.kernel_.features(X), LOSSES["squared"].times(model.C_)
    for number in (0, 100, 299):
        kept = np.delete(np.arange(len(X)), out[number])
        problem = Problem(loss, y[kept, None], Rows(features[kept]))
        coef, intercept, _, posterior = solve_ridge(problem, lambda _: lambda X: X, 10, 1e-9)
        row = features[[out[number]]]
        residual = y[out[number]] - (row @ coef.T + intercept)[0, 0]
        expected = abs(residual) / np.sqrt(1 + posterior.variances(row)[0])
        np.testing.assert_allclose(model.held_out_scores_.scores[number], expected, rtol=1e-4)


def test_without_held_out_rows_the_features_are_those_of_the_transformer(rng):
    X, y = sample(rng)
    model = FourierRegressor(10, calibration_size=0, **GIVEN).fit(X, y)
    features = FourierFeatures(10, loss="squared", **GIVEN).fit(X, y)
    np.testing.assert_array_equal(model.frequencies_, features.frequencies_)
    with pytest.raises(ValueError, match=r"return_std=True .* calibration_size is 0"):
        model.predict(X, return_std=True)
    with pytest.raises(ValueError, match="predict_interval is not possible"):
        model.predict_interval(X)


@pytest.mark.parametrize("n", [60, 1500])
def test_weight_two_is_a_row_twice(rng, n):
    X, y = sample(rng, n)
    weights = rng.integers(1, 3, size=n)
    model = FourierRegressor(10, **GIVEN).fit(X, y, sample_weight=weights)
    counts = weights[model.dual_[:, 0] == 0]
    np.testing.assert_array_equal(np.sort(model.held_out_scores_.counts), np.sort(counts))
    if n == 60:  # duplicates are merged, so the fits are the same
        copied = FourierRegressor(10, **GIVEN).fit(np.repeat(X, weights, axis=0), y.repeat(weights))
        np.testing.assert_allclose(
            copied.predict_interval(X, 0.8), model.predict_interval(X, 0.8), rtol=1e-6
        )


def test_several_outputs(rng):
    X, y = sample(rng, n_outputs=3)
    model = FourierRegressor(20, **GIVEN).fit(X, y)
    mean, deviation = model.predict(X[:7], return_std=True)
    assert mean.shape == deviation.shape == (7, 3)
    assert model.predict_interval(X[:7]).shape == (7, 3, 2)
    several = model.predict_interval(X[:7], COVERAGES)
    assert several.shape == (7, 3, 2, 3)
    np.testing.assert_array_equal(several[..., 2], model.predict_interval(X[:7], 0.9))
    for k in range(3):
        np.testing.assert_allclose(covered(y[:, k], model.predict_interval(X)[:, k]), 0.9, atol=0.1)


@pytest.mark.parametrize("scale", [1e-12, 1e10])
def test_unit_of_the_targets(rng, scale):
    X, y = sample(rng)
    model = FourierRegressor(10, **GIVEN).fit(X, y)
    other = FourierRegressor(10, **GIVEN).fit(X, scale * y)
    np.testing.assert_allclose(other.noise_, scale * model.noise_, rtol=0.05)


def test_float32_samples_have_float32_intervals(fitted):
    model, X, _ = fitted
    single = X[:9].astype(np.float32)
    assert model.predict_interval(single).dtype == np.float32
    assert {part.dtype for part in model.predict(single, return_std=True)} == {np.dtype("f4")}
    np.testing.assert_allclose(
        model.predict_interval(single), model.predict_interval(X[:9]), atol=1e-3
    )


def test_features_in_passes_have_the_same_posterior(fitted, monkeypatch):
    model, X, y = fitted
    monkeypatch.setattr("notsorandom.linear.fit.fit_linear_models.__defaults__", (1e-3, None, 0))
    other = clone(model).fit(X, y)
    np.testing.assert_allclose(
        other.posterior_.factor, model.posterior_.factor, rtol=1e-3, atol=1e-3
    )
    np.testing.assert_allclose(other.predict_interval(X), model.predict_interval(X), atol=1e-3)


def test_too_many_features_for_a_posterior(fitted, monkeypatch):
    """Then intervals have the same width everywhere; scores are of a model without the rows."""
    model, X, y = fitted
    monkeypatch.setattr("notsorandom.linear.ridge.MAX_FEATURES", 10)
    other = clone(model).fit(X, y)
    assert other.posterior_ is None
    np.testing.assert_allclose(np.ptp(np.diff(other.predict_interval(X), axis=1)), 0, atol=1e-12)
    np.testing.assert_allclose(other.noise_, model.noise_, rtol=0.1)


def test_calibrate_takes_other_samples(fitted, rng):
    model, _, _ = fitted
    model = pickle.loads(pickle.dumps(model))
    X, y = sample(rng, 4000)
    before = model.predict(X)
    y = before + 3 * (y - before)  # noise has become three times as large
    assert covered(y, model.predict_interval(X)) < 0.6
    assert model.calibrate(X[:2000], y[:2000]) is model
    np.testing.assert_array_equal(model.predict(X), before)
    np.testing.assert_allclose(covered(y[2000:], model.predict_interval(X[2000:])), 0.9, atol=0.03)
    np.testing.assert_allclose(model.noise_, 0.9, rtol=0.1)
    twice = pickle.loads(pickle.dumps(model)).calibrate(X[:500], y[:500], np.full(500, 2))
    copied = model.calibrate(np.repeat(X[:500], 2, axis=0), y[:500].repeat(2))
    np.testing.assert_array_equal(twice.predict_interval(X), copied.predict_interval(X))


def test_few_held_out_rows_name_the_largest_coverage(rng):
    X, y = sample(rng, 40)
    model = FourierRegressor(4, **GIVEN).fit(X, y)
    assert model.predict_interval(X, 0.8).shape == (40, 2)
    with pytest.raises(ValueError, match=r"8 held-out samples.*0\.8888"):
        model.predict_interval(X, 0.9)


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "quantile"])
def test_other_losses_have_no_intervals(rng, loss):
    X, y = sample(rng, 100)
    model = FourierRegressor(4, loss=loss, **GIVEN).fit(X, y)
    assert np.all(model.dual_ != 0) or loss == "epsilon_insensitive"
    for call in (
        lambda: model.predict(X, return_std=True),
        lambda: model.predict_interval(X),
        lambda: model.calibrate(X, y),
    ):
        with pytest.raises(ValueError, match=f"not possible with loss='{loss}'.*loss='squared'"):
            call()
    with pytest.raises(ValueError, match=r"calibration_size=9 .* intervals are for loss='squared'"):
        FourierRegressor(4, loss=loss, calibration_size=9).fit(X, y)


@pytest.mark.parametrize("size", [-1, 0.5, "a fifth", None, True])
def test_wrong_calibration_size(rng, size):
    with pytest.raises(ValueError, match="calibration_size="):
        FourierRegressor(4, calibration_size=size).fit(*sample(rng, 50))


def test_calibration_size_is_at_most_half(rng):
    X, y = sample(rng, 50)
    assert len(FourierRegressor(4, calibration_size=25, **GIVEN).fit(X, y).noise_) == 1
    with pytest.raises(ValueError, match=r"calibration_size=26 .* 50 .* at most half of them, 25"):
        FourierRegressor(4, calibration_size=26, **GIVEN).fit(X, y)


def test_solvers_of_an_equilibrium_have_all_rows(rng):
    X, y = sample(rng, 60)
    model = FourierRegressor(8, solver="reweight", **GIVEN).fit(X, y)
    assert np.count_nonzero(model.dual_) == 60
    with pytest.raises(ValueError, match="the solver computes an equilibrium"):
        model.predict_interval(X)


def test_unfitted():
    for call in (FourierRegressor().predict_interval, FourierClassifier().predict_set):
        with pytest.raises(NotFittedError):
            call([[1.0]])


def test_a_failed_refit_leaves_the_intervals(fitted):
    model, X, _ = fitted
    before = model.predict_interval(X)
    with pytest.raises(ValueError, match="y has nan"):
        model.fit(X, np.full(len(X), np.nan))
    np.testing.assert_array_equal(model.predict_interval(X), before)


def test_certificate_is_of_the_rows_of_the_game(rng):
    X, y = sample(rng, 60)
    model = FourierRegressor(8, linear=False, **GIVEN).fit(X, y)
    inside = model.dual_[:, 0] != 0
    problem = Problem(LOSSES["squared"].times(3.0), y[inside, None], Rows(X[inside]))
    best = solve_task(model.kernel_.features(X[inside]), problem, 1e-8).primal_value
    np.testing.assert_allclose(model.certificate(X, y).upper, best, rtol=1e-3)
    assert inside.sum() == 48


# Classes.


def classes(rng, n=1600, n_classes=3):
    X = rng.normal(size=(n, 2))
    scores = 2 * X @ rng.normal(size=(2, n_classes)) + rng.gumbel(size=(n, n_classes))
    return X, scores.argmax(axis=1)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_sets_cover_new_samples(n_classes):
    X, y = classes(np.random.default_rng(0), 6000, n_classes)
    model = FourierClassifier(20, random_state=0).fit(X[:2000], y[:2000])
    sets = model.predict_set(X[2000:], COVERAGES)
    assert sets.shape == (4000, n_classes, 3)
    assert sets.dtype == bool
    own = np.take_along_axis(sets, y[2000:, None, None], axis=1)[:, 0]
    np.testing.assert_allclose(own.mean(axis=0), COVERAGES, atol=0.05)
    np.testing.assert_array_equal(sets[..., 2], model.predict_set(X[2000:]))
    sizes = sets.sum(axis=1)
    assert (np.diff(sizes, axis=1) >= 0).all()  # a larger coverage adds classes


def test_sets_are_the_likely_classes():
    X, y = classes(np.random.default_rng(1))
    model = FourierClassifier(20, random_state=0).fit(X, y)
    probabilities, sets = model.predict_proba(X), model.predict_set(X, 0.95)
    assert probabilities[sets].min() > probabilities[~sets].max()


def test_sets_after_calibration(rng):
    X, y = classes(rng, 3000)
    model = FourierClassifier(20, random_state=0).fit(X[:1000], y[:1000])
    probabilities = model.predict_proba(X)
    others = rng.integers(3, size=3000)  # labels that the model knows nothing of
    model.calibrate(X[1000:2000], others[1000:2000])
    np.testing.assert_array_equal(model.predict_proba(X), probabilities)
    own = np.take_along_axis(model.predict_set(X[2000:]), others[2000:, None], axis=1)
    np.testing.assert_allclose(own.mean(), 0.9, atol=0.04)


def test_calibrated_sets_cover_samples_as_they_come(rng):
    """Class weights are weights of the loss, not numbers of samples."""
    X, y = classes(rng, 3000, 2)
    y = y & (rng.random(3000) < 0.1)
    model = FourierClassifier(10, class_weight="balanced", random_state=0).fit(X[:1000], y[:1000])
    model.calibrate(X[1000:2000], y[1000:2000])
    np.testing.assert_array_equal(model.held_out_scores_.counts, 1)
    own = np.take_along_axis(model.predict_set(X[2000:]), y[2000:, None], axis=1)
    np.testing.assert_allclose(own.mean(), 0.9, atol=0.03)


def test_sets_need_trials_and_probabilities(rng):
    X, y = classes(rng, 60)
    y[:4], y[4:] = 2, y[4:] % 2
    model = FourierClassifier(4, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=r"predict_set is not possible.* needs 8 of each"):
        model.predict_set(X)
    assert model.calibrate(X, y).predict_set(X).shape == (60, 3)
    with pytest.raises(AttributeError, match="so there is no predict_set"):
        FourierClassifier(4, loss="hinge", random_state=0).fit(X, y).predict_set(X)
    with pytest.raises(ValueError, match=r"coverage=2 is not allowed"):
        model.predict_set(X, 2)


@pytest.mark.parametrize("kind", [FourierRegressor, FourierClassifier])
def test_model_files(kind, tmp_path):
    X, y = classes(np.random.default_rng(0), 300)
    model = kind(6, **GIVEN).fit(X, y)
    loaded = notsorandom.load(notsorandom.save(model, tmp_path / "model.skops"))
    name = "predict_interval" if kind is FourierRegressor else "predict_set"
    np.testing.assert_array_equal(getattr(loaded, name)(X), getattr(model, name)(X))
