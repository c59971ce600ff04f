"""C, smoothing and spectrum, chosen by trials; and the stratified splits of trials."""

import math
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import balanced_accuracy_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from notsorandom import (
    Ascent,
    FourierClassifier,
    FourierFeatures,
    FourierRegressor,
    Langevin,
    Sphere,
)
from notsorandom.estimators.config import SMOOTHING
from notsorandom.game import CLASSIFICATION_LOSSES, REGRESSION_LOSSES
from notsorandom.tuning import trials as trial_rows
from notsorandom.tuning import tune as tuning
from notsorandom.tuning.held_out import assign_folds
from notsorandom.tuning.trials import TrialLosses, compress

ESTIMATORS = [FourierFeatures, FourierClassifier, FourierRegressor]
GAUSSIAN = Ascent(spectrum="gaussian")
CHOSEN = ("C_", "smoothing_", "spectrum_", "temperature_")
RECORDS = []


@pytest.mark.slow
@parametrize_with_checks([estimator() for estimator in ESTIMATORS])
def test_scikit_learn_contract_with_defaults(estimator, check):
    check(estimator)


def chosen(model):
    return {name: getattr(model, name, None) for name in CHOSEN}


class RecordingSearch(Ascent):
    """Records the smoothing of every search."""

    def find(self, landscape, n_peaks, rng):
        RECORDS.append(landscape.smoothing)
        return super().find(landscape, n_peaks, rng)


def clean_waves(rng, n_samples):
    """Short waves without noise."""
    X = rng.uniform(-1, 1, size=(n_samples, 2))
    return X, np.sin(8 * X[:, 0]) * np.sin(8 * X[:, 1]) > 0


def noisy_line(rng, n_samples):
    """A long wave in many columns, under much noise."""
    X = rng.standard_normal((n_samples, 20))
    return X, X[:, 0] + X[:, 1] + 2.0 * rng.standard_normal(n_samples) > 0


class TestWhatIsChosen:
    @pytest.mark.parametrize(
        ("make", "best"), [(clean_waves, 0.05), (noisy_line, 1.0)], ids=["clean", "noisy"]
    )
    def test_smoothing_is_better_than_the_others(self, rng, make, best):
        """Little smoothing suits the clean data, much suits the noisy; the choice finds out."""
        X, y = make(rng, 700)
        X_test, y_test = make(rng, 3000)
        settings = {"search": GAUSSIAN, "C": 1.0, "linear": False, "random_state": 0}
        candidates = (0.05, 1.0)
        scores = {
            each: FourierClassifier(30, smoothing=each, **settings).fit(X, y).score(X_test, y_test)
            for each in candidates
        }
        assert scores[best] == max(scores.values()) > min(scores.values()) + 0.03
        model = FourierClassifier(30, smoothing=candidates, **settings).fit(X, y)
        assert model.smoothing_ == best
        assert model.score(X_test, y_test) == scores[best]

    @pytest.mark.parametrize("loss", ["hinge", "logistic"])
    def test_c_is_large_for_clean_data_and_small_for_noisy(self, rng, windmill, loss):
        settings = {"loss": loss, "search": GAUSSIAN, "smoothing": 0.1, "random_state": 0}
        found = []
        for (X, y), test, other in (
            (windmill[:2], windmill[2:], 0.002),
            (noisy_line(rng, 500), noisy_line(rng, 3000), 1000.0),
        ):
            model = FourierClassifier(60, **settings).fit(X, y)
            found.append(model.C_)
            worse = FourierClassifier(60, C=other, **settings).fit(X, y)
            assert model.score(*test) > worse.score(*test) + 0.01
        assert found[0] > 30 * found[1]

    def test_c_of_a_regression(self, rng):
        settings = {"search": GAUSSIAN, "smoothing": 0.1, "random_state": 0}
        X = rng.uniform(-1, 1, size=(400, 3))
        wave, noise = np.sin(6 * X[:, 0]), rng.standard_normal(400)
        clean, noisy = (
            FourierRegressor(30, **settings).fit(X, wave + level * noise).C_ for level in (0.01, 3)
        )
        assert clean > 10 * noisy

    @pytest.mark.parametrize("task", ["classification", "regression"])
    def test_spectrum(self, rng, task):
        """Steps in two of many columns want Cauchy starts, smooth waves of all columns Gaussian."""
        X = rng.standard_normal((1000, 12))
        directions = rng.standard_normal((12, 2))
        directions /= np.linalg.norm(directions, axis=0)
        steps = np.sign(np.sin(4 * X[:, :2])).sum(axis=1)
        waves = np.sin(2 * X @ directions).sum(axis=1)
        for target, expected in ((steps, "cauchy"), (waves, "gaussian")):
            if task == "classification":
                model = FourierClassifier(4, random_state=0).fit(X, target > 0)
            else:
                model = FourierRegressor(4, random_state=0).fit(X, target)
            assert model.spectrum_ == expected

    def test_only_the_gaussian_where_columns_are_mixed(self, rng):
        """Samples on few of their many principal directions have no columns of their own."""
        X = rng.standard_normal((100, 5)) @ rng.standard_normal((5, 400))
        model = FourierFeatures(4, random_state=0).fit(X, X[:, 0] > 0)
        assert model.spectrum_ == "gaussian"
        assert set(model.tuning_["spectrum"]) == {"gaussian"}

    def test_searches_without_a_spectrum(self, windmill, quick_trials):
        X, y = windmill[0][:200], windmill[1][:200]
        sphere = FourierFeatures(4, space=Sphere(normalize=True), random_state=0)
        other = FourierFeatures(4, search=Langevin(n_steps=3), random_state=0)
        for model in (sphere, other):
            assert model.fit(X, y).spectrum_ is None
            assert set(model.tuning_["spectrum"]) == {""}
            assert model.C_ > 0

    def test_heavy_samples_decide(self, rng):
        """Three quarters of the samples have short waves; the others have more of the weight."""
        X = rng.uniform(-1, 1, size=(700, 2))
        short_waves = np.sin(12 * X[:, 0]) * np.sin(12 * X[:, 1]) > 0
        noisy = rng.uniform(size=700) < 0.2
        long_wave = np.where(rng.uniform(size=700) < 0.1, X[:, 0] < 0, X[:, 0] > 0)
        y = np.where(noisy, long_wave, short_waves)
        settings = {"search": GAUSSIAN, "C": 1.0, "random_state": 0}
        model = FourierFeatures(2, smoothing=(0.1, 1.0), **settings)
        assert model.fit(X, y).smoothing_ == 0.1
        assert model.fit(X, y, sample_weight=np.where(noisy, 8.0, 1.0)).smoothing_ == 1.0

    def test_balanced_weights_raise_the_balanced_accuracy(self, rng):
        def sample(n_samples):
            y = rng.uniform(size=n_samples) < 0.03
            return rng.standard_normal((n_samples, 2)) + 1.5 * y[:, None], y

        X, y = sample(1000)
        X_test, y_test = sample(5000)
        models = [
            FourierClassifier(30, class_weight=weight, random_state=0).fit(X, y)
            for weight in (None, "balanced")
        ]
        plain, balanced = (
            balanced_accuracy_score(y_test, model.predict(X_test)) for model in models
        )
        assert balanced > plain + 0.1
        assert balanced > 0.75


class TestWhatIsGiven:
    @pytest.mark.parametrize("estimator", ESTIMATORS)
    def test_numbers_are_used_as_they_are(self, windmill, estimator, quick_trials):
        RECORDS.clear()
        search = RecordingSearch(spectrum="cauchy")
        model = estimator(4, C=0.7, smoothing=0.1, search=search, random_state=0)
        model.fit(*windmill[:2])
        assert (model.C_, model.smoothing_, model.spectrum_) == (0.7, 0.1, "cauchy")
        assert set(RECORDS) == {0.1}
        assert model.get_params()["C"] == 0.7
        if estimator is FourierClassifier:  # trials find the temperature
            assert len(model.tuning_["loss"]) == 1
            assert model.tuning_["temperature"].tolist() == [model.temperature_]
        else:
            assert model.tuning_ is None

    @pytest.mark.parametrize("kind", [list, tuple, np.array])
    def test_one_of_the_candidates_is_taken(self, windmill, kind, quick_trials):
        values, smoothing = [0.5, 2.0, 7.0], [0.03, 0.3]
        model = FourierClassifier(4, C=kind(values), smoothing=kind(smoothing), random_state=0)
        model.fit(*windmill[:2])
        assert model.C_ in values
        assert model.smoothing_ in smoothing
        assert set(model.tuning_["C"]) == set(values)
        assert set(model.tuning_["smoothing"]) == set(smoothing)

    @pytest.mark.parametrize("loss", ["hinge", "logistic"])
    def test_a_choice_can_be_reused(self, windmill, loss):
        X, y = windmill[:2]
        model = FourierClassifier(12, loss=loss, random_state=0).fit(X, y)
        again = FourierClassifier(12, loss=loss, random_state=0).set_params(
            C=model.C_, smoothing=model.smoothing_, search=Ascent(spectrum=model.spectrum_)
        )
        again.fit(X, y)
        np.testing.assert_array_equal(again.frequencies_, model.frequencies_)
        np.testing.assert_array_equal(again.coef_, model.coef_)
        np.testing.assert_array_equal(again.kernel_.weights, model.kernel_.weights)

    def test_few_samples_of_a_class_get_the_usual_values(self, rng):
        X, y = rng.standard_normal((103, 2)), np.repeat([0, 1], [100, 3])
        model = FourierClassifier(2, C=[3.0, 4.0], smoothing=[0.3, 0.06], random_state=0)
        expected = {"C_": 3.0, "smoothing_": 0.3, "spectrum_": "cauchy", "temperature_": 1.0}
        assert chosen(model.fit(X, y)) == expected
        assert model.tuning_ is None
        model = FourierClassifier(2, random_state=0).fit(X, y)
        usual = {"smoothing_": 0.02, "spectrum_": "cauchy", "temperature_": 1.0}
        assert chosen(model) == {"C_": 1.0} | usual


class TestTable:
    @pytest.mark.parametrize("estimator", ESTIMATORS)
    def test_it_has_all_that_was_tried(self, windmill, estimator, quick_trials):
        model = estimator(4, random_state=0).fit(*windmill[:2])
        table = model.tuning_
        names = "spectrum smoothing n_columns linear C n_components loss standard_error"
        assert set(table) == {*names.split(), "temperature"}
        assert len({len(column) for column in table.values()}) == 1
        assert np.isfinite(table["loss"]).all()
        assert (table["standard_error"] > 0).all()
        assert (table["temperature"] > 0).all()
        first = table["n_components"] == table["n_components"].min()
        assert set(zip(table["spectrum"][first], table["smoothing"][first], strict=True)) == {
            (spectrum, value) for spectrum, values in SMOOTHING.items() for value in values
        }

    def test_the_choice_has_the_least_loss_of_the_last_games(self, windmill):
        model = FourierClassifier(4, C=[0.3, 3.0, 30.0], random_state=0).fit(*windmill[:2])
        table = model.tuning_
        last = table["n_components"] == table["n_components"].max()
        finalists = set(zip(table["spectrum"][last], table["smoothing"][last], strict=True))
        assert len(finalists) == tuning.N_FINALISTS
        chosen = last & (table["spectrum"] == model.spectrum_)
        chosen &= table["smoothing"] == model.smoothing_
        # The usual candidate needs not be the best one, if others are no better than by chance.
        usual = (model.spectrum_, model.smoothing_) == ("cauchy", 0.02)
        excess = table["loss"][chosen].min() - table["loss"][last].min()
        assert excess <= usual * table["standard_error"][chosen].max()
        # The values of C, at the number of features of the fit, are in the last rows.
        best = len(last) - 3 + table["loss"][-3:].argmin()
        assert table["C"][best] == model.C_
        assert model.temperature_ == table["temperature"][best]

    def test_c_between_the_values_tried_is_near_the_best_one(self, windmill):
        model = FourierClassifier(4, random_state=0).fit(*windmill[:2])
        table = model.tuning_
        tried, losses = table["C"][-tuning.N_C :], table["loss"][-tuning.N_C :]
        best = tried[losses.argmin()]
        step = np.sort(np.unique(tried))[1] / tried.min()
        assert best / math.sqrt(step) <= model.C_ <= best * math.sqrt(step)


def parabola(x, C):
    """Losses with their minimum at the logarithm `x`."""
    return np.square(np.log(C) - x)[None, :, None]


def test_interpolated_c_is_the_minimum_of_the_parabola():
    C = np.geomspace(0.03, 3000, 6)
    temperatures = np.sqrt(C)[None]
    for x in (-2.0, 0.5, 3.3):
        ones = np.ones((1, 6))
        evaluation = TrialLosses(C[None], ones, parabola(x, C), temperatures, ones, np.ones(1))
        found, temperature = evaluation.best_C(between=True)
        np.testing.assert_allclose(np.log(found), x)
        np.testing.assert_allclose(np.log(temperature), x / 2)
        nearest = C[np.abs(np.log(C) - x).argmin()]
        assert evaluation.best_C(between=False)[0] == nearest
    for x, end in ((-9.0, 0), (20.0, -1)):
        ones = np.ones((1, 6))
        evaluation = TrialLosses(C[None], ones, parabola(x, C), temperatures, ones, np.ones(1))
        assert evaluation.best_C(between=True)[0] == C[end]


def test_compressed_features_have_the_same_inner_products(rng):
    """Of fewer columns, up to the mean of the training rows."""
    features = rng.standard_normal((2, 3, 50, 4)) @ rng.standard_normal((4, 20)) + 2
    masks = np.arange(50) % 2 != np.arange(2)[:, None]
    small = compress(features, masks)
    assert small.shape == (2, 3, 50, 4)
    for split, mask in enumerate(masks):
        for found, given in zip(small[split], features[split], strict=True):
            centred = given - given[mask].mean(axis=0)
            np.testing.assert_allclose(found @ found.T, centred @ centred.T, atol=1e-9)


class TestIndependence:
    """What the choice does not depend on."""

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ({"n_components": 2}, {"n_components": 9}),
            ({"n_jobs": 1}, {"n_jobs": 3}),
            ({"C": [0.3, 30.0]}, {"C": [30.0, 0.3]}),
        ],
        ids=["components", "jobs", "order of C"],
    )
    def test_settings(self, windmill, one, other, quick_trials):
        models = [
            FourierClassifier(**({"n_components": 2, "random_state": 0} | settings))
            for settings in (one, other)
        ]
        assert chosen(models[0].fit(*windmill[:2])) == chosen(models[1].fit(*windmill[:2]))
        if "n_jobs" in one:
            np.testing.assert_equal(models[0].tuning_, models[1].tuning_)

    @pytest.mark.parametrize("estimator", ESTIMATORS)
    def test_order_and_unit_of_the_samples(self, windmill, rng, estimator, quick_trials):
        X, y = windmill[:2]
        order = rng.permutation(len(y))
        expected = chosen(estimator(2, random_state=0).fit(X, y))
        for samples, targets in ((X[order], y[order]), (2.0**-10 * X, y), (2.0**10 * X, y)):
            assert chosen(estimator(2, random_state=0).fit(samples, targets)) == expected

    def test_data_type(self, windmill, quick_trials):
        X, y = windmill[0].astype(np.float32), windmill[1]
        one, other = (
            FourierClassifier(2, smoothing=[0.02, 1.0], random_state=0).fit(each, y)
            for each in (X, X.astype(float))
        )
        assert one.smoothing_ == other.smoothing_
        np.testing.assert_allclose(one.C_, other.C_, rtol=0.05)

    def test_many_components_get_a_c_of_their_own(self, windmill):
        """Spectrum and smoothing are chosen with as many features as usual."""
        models = [
            FourierClassifier(size, smoothing=[0.07, 0.2], random_state=0).fit(*windmill[:2])
            for size in (4, 2 * tuning.ALL_FREQUENCIES)
        ]
        few, many = (model.tuning_ for model in models)
        assert models[0].smoothing_ == models[1].smoothing_
        assert models[0].spectrum_ == models[1].spectrum_
        assert few["n_components"].max() < many["n_components"].max()
        before = [
            {name: column[: -tuning.N_C] for name, column in table.items()} for table in (few, many)
        ]
        np.testing.assert_equal(*before)

    @pytest.mark.parametrize("loss", REGRESSION_LOSSES)
    @pytest.mark.parametrize(("factor", "shift"), [(2.0**10, 0.0), (2.0**-10, 0.0), (1.0, 64.0)])
    def test_scale_and_shift_of_real_targets(self, rng, loss, factor, shift):
        X = rng.standard_normal((300, 3))
        y = np.sin(3 * X[:, 0]) + 0.2 * rng.standard_normal(300)
        y = np.round(y * 2**20) / 2**20  # the shift is exact in floating point
        settings = {"loss": loss, "smoothing": [0.1, 0.3], "random_state": 0}
        one = FourierRegressor(4, **settings).fit(X, y)
        other = FourierRegressor(4, **settings).fit(X, factor * y + shift)
        unit = 1.0 if loss == "squared" else factor
        np.testing.assert_allclose(other.C_, unit * one.C_, rtol=1e-3)
        np.testing.assert_allclose(other.epsilon_, factor * one.epsilon_, rtol=1e-6)
        assert (other.smoothing_, other.spectrum_) == (one.smoothing_, one.spectrum_)
        error = other.predict(X) - factor * one.predict(X) - shift
        assert np.abs(error).max() < 0.02 * factor

    @pytest.mark.parametrize("estimator", ESTIMATORS)
    def test_weights_or_copies(self, windmill, rng, estimator, quick_trials):
        X, y = windmill[0][:250], windmill[1][:250]
        weights = rng.integers(0, 4, size=250)
        weighted = estimator(2, random_state=0).fit(X, y, sample_weight=weights)
        copied = estimator(2, random_state=0).fit(
            np.repeat(X, weights, axis=0), np.repeat(y, weights)
        )
        assert chosen(weighted) == chosen(copied)


@pytest.mark.parametrize(
    ("n_samples", "max_rows", "expected"),
    [
        (200, 2048, [150] * 4),  # 4-fold cross-validation
        (1500, 2048, [750]),  # one split into halves
        (1500, 100, [50]),  # halves of a subsample
    ],
)
def test_rows_of_the_trials(rng, monkeypatch, quick_trials, n_samples, max_rows, expected):
    found = []
    plain = tuning.start_contest

    def record(config, problem, masks, *arguments):
        found.append(masks.sum(axis=1))
        return plain(config, problem, masks, *arguments)

    monkeypatch.setattr(tuning, "start_contest", record)
    monkeypatch.setattr(trial_rows, "MAX_TRIAL_ROWS", max_rows)
    X, y = rng.standard_normal((n_samples, 2)), np.arange(n_samples) % 2
    FourierFeatures(1, random_state=0).fit(X, y)
    np.testing.assert_allclose(found, [expected], atol=2)


def test_folds_have_equal_weight_in_every_class(rng):
    codes, weights = np.repeat([0, 1], [1000, 400]), rng.uniform(0.1, 3, size=1400)
    parts = assign_folds(codes, weights, 4, rng)
    for code in (0, 1):
        shares = np.bincount(parts[codes == code], weights=weights[codes == code])
        np.testing.assert_allclose(shares / shares.sum(), 0.25, atol=0.01)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n_samples", [300, 1200])
def test_the_order_of_the_classes_changes_only_rounding(rng, n_samples, n_classes):
    X = rng.standard_normal((n_samples, 3))
    values = np.sin(2 * X[:, 0]) + X[:, 1] + 0.5 * rng.standard_normal(n_samples)
    y = np.digitize(values, [0.0] if n_classes == 2 else [-0.5, 0.5])
    model = FourierClassifier(30, random_state=0)
    one, other = (model.fit(X, labels).predict_proba(X) for labels in (y, n_classes - 1 - y))
    np.testing.assert_allclose(other[:, ::-1], one, atol=1e-3)


class TestOddInput:
    """Inputs for which a wrong choice, or none, could be made."""

    def test_given_settings_do_not_limit_the_size(self, rng):
        """With everything else given, sizes are still compared."""
        settings = {"C": 10.0, "smoothing": 0.02, "search": Ascent("gaussian"), "random_state": 0}
        X = rng.uniform(-1, 1, size=(1500, 3))
        y = np.sin(9 * X[:, 0]) * np.cos(7 * X[:, 1]) + np.sin(8 * X[:, 2])
        many = FourierRegressor("auto", **settings).fit(X, y)
        assert many.validation_sizes_.max() > tuning.USUAL_SIZE

    def test_scores_that_tell_nothing_have_a_finite_temperature(self, rng):
        X, y = rng.standard_normal((2000, 3)).astype(np.float32), rng.integers(0, 2, size=2000)
        model = FourierClassifier(30, random_state=0).fit(X, y)
        assert 0 < model.temperature_ < 1e5
        probabilities = model.predict_proba(X)
        np.testing.assert_array_equal(probabilities.argmax(axis=1), model.predict(X))

    @pytest.mark.parametrize("loss", CLASSIFICATION_LOSSES)
    def test_extreme_values_of_c_beside_a_usual_one(self, windmill, loss):
        X, y, X_test, y_test = windmill
        model = FourierClassifier(30, C=[1e-30, 1.0, 1e30], loss=loss, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, y)
        assert model.score(X_test, y_test) > 0.9
        assert np.isfinite(model.tuning_["temperature"][-3:]).any()

    def test_more_features_than_rows(self, rng):
        """The trials have no more features than rows."""
        X, y = clean_waves(rng, 60)
        table = FourierClassifier(2000, random_state=0).fit(X, y).tuning_
        assert table["n_components"].max() <= 100

    def test_small_weights(self, windmill):
        """Weights of a total of one choose as weights of one do."""
        X, y = windmill[:2]
        plain = FourierClassifier(30, random_state=0).fit(X, y)
        light = FourierClassifier(30, random_state=0)
        light.fit(X, y, sample_weight=np.full(len(y), 1 / len(y)))
        np.testing.assert_allclose(light.C_, plain.C_ * len(y), rtol=1e-3)
        np.testing.assert_allclose(light.temperature_, plain.temperature_, rtol=0.05)

    def test_noisy_regression_may_choose_a_small_c(self, rng):
        X = rng.standard_normal((150, 3))
        noise, X_test = rng.standard_normal(150), rng.standard_normal((2000, 3))
        model = FourierRegressor(random_state=0).fit(X, np.sin(2 * X[:, 0]) + noise)
        assert model.score(X_test, np.sin(2 * X_test[:, 0])) > 0.3

    @pytest.mark.parametrize("factor", [1e-20, 1e-8, 1e5, 1e20])
    def test_unit_of_the_targets_of_the_final_model(self, rng, factor):
        X = rng.uniform(-1, 1, size=(300, 1))
        y = factor * np.sin(5 * X[:, 0])
        model = FourierRegressor(20, loss="epsilon_insensitive", random_state=0).fit(X, y)
        assert model.duality_gap_ < 1e-3
        assert model.score(X, y) > 0.95
