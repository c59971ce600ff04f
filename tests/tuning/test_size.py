"""The number of features, chosen by trials."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from notsorandom import Euclidean, FourierClassifier, FourierFeatures, FourierRegressor
from notsorandom.tuning import size as sizes
from notsorandom.tuning import tune as tuning
from notsorandom.tuning.choice import Candidate
from notsorandom.tuning.trials import TrialLosses

ALL = pytest.mark.parametrize("estimator", [FourierFeatures, FourierClassifier, FourierRegressor])
SETTINGS = {"smoothing": 0.06, "random_state": 0}
AUTO = {"n_components": "auto"}


def noisy_line(rng, n_samples):
    X = rng.standard_normal((n_samples, 2))
    return X, np.where(rng.uniform(size=n_samples) < 0.2, X[:, 0] < 0, X[:, 0] > 0)


class FakeTrials:
    """Held-out losses of given means and standard errors, by the number of frequencies."""

    masks = np.ones((1, 5000), dtype=bool)

    def __init__(self, means, deviation):
        self.means, self.noise = means, deviation * np.resize([1.0, -1.0], 100)

    def reduced(self, n_frequencies):
        return n_frequencies

    def losses(self, number):
        rows = self.means[number] + number % 2 * self.noise  # differences have this deviation
        ones = np.ones((1, 1))
        return TrialLosses(ones, 0 * ones, rows[None, None], ones, ones, np.ones(100))

    def search_C(self, evaluate, C, extends):
        return evaluate(C)

    def evaluate(self, features, C):
        return self.losses(features)


@pytest.mark.parametrize(
    ("means", "deviation", "expected"),
    [
        ([1.0, 0.5, 0.25, 0.2, 0.2], 0.0, 800),
        ([1.0, 0.5, 0.497, 0.2], 0.0, 200),  # less than a percent
        ([1.0, 0.5, 0.6, 0.2], 0.0, 200),
        ([1.0, 0.98, 0.9, 0.9], 0.2, 400),  # gains of a standard error, and more
        ([1.0, 0.98, 0.9], 0.5, 100),  # of less than half of one
        ([1.0, 0.9, 0.8, 0.7, 0.6, 0.5], 0.0, 1600),  # 3200 are too many
    ],
)
def test_the_number_is_doubled_while_the_loss_clearly_decreases(means, deviation, expected):
    trials = FakeTrials(means, deviation)
    contest = SimpleNamespace(features=0, candidates=[Candidate(None, 0.1)])
    contest.play = lambda n: setattr(contest, "features", int(np.log2(n / 100)))
    config = SimpleNamespace(
        n_components=2000, size="auto", space=Euclidean(), phase="aligned", extends_C=False
    )
    size, losses, curve, reason = sizes.choose_size(
        config, trials, contest, trials.losses(0), trials.evaluate
    )
    assert size == expected
    compared = curve["validation_sizes_"].tolist()
    assert compared == [100 * 2**k for k in range(len(compared))]
    np.testing.assert_allclose(curve["validation_losses_"], means[: len(compared)])
    np.testing.assert_allclose(losses.means[0, 0], means[compared.index(size)])
    assert reason.startswith("twice as many" if expected == 1600 else f"{2 * size} change")


@pytest.mark.parametrize(("rival", "expected"), [(0.3, 400), (0.6, 800), (0.0, 200)])
def test_growth_ends_where_a_rival_is_out_of_reach(rival, expected):
    """After gains of 0.2, 0.1 and 0.05: at most three more gains like the last must reach it."""
    trials = FakeTrials([1.0, 0.8, 0.7, 0.65, 0.65], 0.0)
    contest = SimpleNamespace(features=0, candidates=[Candidate(None, 0.1)])
    contest.play = lambda n: setattr(contest, "features", int(np.log2(n / 100)))
    config = SimpleNamespace(
        n_components=2000, size="auto", space=Euclidean(), phase="aligned", extends_C=False
    )
    rival = FakeTrials([rival], 0.0).losses(0)
    size, *_ = sizes.choose_size(config, trials, contest, trials.losses(0), trials.evaluate, rival)
    assert size == expected


def test_a_noisy_line_needs_no_more_than_the_usual_number(rng, capsys):
    model = FourierClassifier(verbose=1, random_state=0).fit(*noisy_line(rng, 600))
    assert model.kernel_.n_components == tuning.USUAL_SIZE
    assert "100 features: 200 change the held-out loss of" in capsys.readouterr().err
    given = FourierClassifier(tuning.USUAL_SIZE, random_state=0).fit(*noisy_line(rng, 600))
    assert not hasattr(given, "validation_sizes_")


def test_many_waves_need_many_features(rng):
    X = rng.uniform(-1, 1, size=(3000, 3))
    y = np.cos(X @ rng.normal(scale=6, size=(3, 60))) @ rng.normal(size=60)
    auto, usual = (FourierRegressor(n, random_state=0) for n in ("auto", 100))
    assert auto.fit(X[:2000], y[:2000]).kernel_.n_components >= 400
    usual.fit(X[:2000], y[:2000])
    errors = [1 - model.score(X[2000:], y[2000:]) for model in (auto, usual)]
    assert errors[0] < 0.5 * errors[1]
    assert auto.C_ > 100  # there is no noise


def test_many_poles_need_many_features(rng):
    X = rng.standard_normal((3000, 6))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    poles = rng.standard_normal((6, 60))
    y = np.cos(4 * X @ (poles / np.linalg.norm(poles, axis=0))) @ rng.normal(size=60)
    auto, usual = (FourierRegressor(n, space="sphere", random_state=0) for n in ("auto", 100))
    assert auto.fit(X[:2000], y[:2000]).kernel_.n_components >= 200
    usual.fit(X[:2000], y[:2000])
    errors = [1 - model.score(X[2000:], y[2000:]) for model in (auto, usual)]
    assert errors[0] < 0.5 * errors[1]


def test_first_features_have_the_weight_of_all(rng):
    """Weights of a total of one, whatever the mean square of features of weight one."""
    squares, weights = np.array([3.0]), rng.random(12)
    signs = rng.choice([-1.0, 1.0], size=(1, 1, 50, 12))  # of mean square one
    features = np.sqrt(squares * weights / weights.sum()) * signs
    first = tuning.first_features(features, 5)
    expected = np.sqrt(squares * weights[:5] / weights[:5].sum()) * signs[..., :5]
    np.testing.assert_allclose(first, expected)
    assert tuning.first_features(features, 12) is features


@pytest.mark.slow
def test_digits_need_no_number_of_components():
    X, y = load_digits(return_X_y=True)
    train, test = train_test_split(np.arange(len(y)), random_state=0, stratify=y)
    model = FourierClassifier(random_state=0).fit(X[train], y[train])
    assert model.score(X[test], y[test]) > 0.97


@pytest.mark.usefixtures("quick_trials")
class TestParameters:
    @ALL
    def test_attributes_of_an_earlier_fit_are_removed(self, windmill, estimator):
        X, y = windmill[:2]
        model = estimator("auto", max_components=12, **SETTINGS).fit(X, y)
        assert model.kernel_.n_components == 12
        assert model.validation_sizes_.tolist() == [12]
        model.set_params(n_components=12).fit(X, y)
        assert not hasattr(model, "validation_sizes_")
        if estimator is FourierFeatures:
            assert not hasattr(model.set_params(loss="squared").fit(X, y), "classes_")

    def test_other_parameters(self, windmill):
        """Continued, on the sphere, and with the equilibrium: the number is at most the usual."""
        X, y = windmill[:2]
        model = FourierClassifier(max_components=20, warm_start=True, **SETTINGS).fit(X, y)
        first = model.kernel_.n_components
        np.testing.assert_array_equal(model.fit(X, y).frequencies_[:first], model.frequencies_)
        sphere = X / np.linalg.norm(X, axis=1, keepdims=True)
        for solver in ("gradient", "equilibrium"):
            model = FourierClassifier(space="sphere", solver=solver, **SETTINGS)
            assert 0 < model.fit(sphere, y).kernel_.n_components <= tuning.USUAL_SIZE

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"max_components": 0}, "max_components=0 is not allowed"),
            (AUTO | {"max_components": 5, "phase": "paired"}, "max_components=5 .*of 2"),
            ({"n_components": "many"}, "must be 'auto' or an int > 0"),
        ],
    )
    @ALL
    def test_invalid_parameters(self, windmill, estimator, parameters, message):
        with pytest.raises(ValueError, match=message):
            estimator(**parameters).fit(*windmill[:2])

    def test_too_few_samples_for_trials_get_the_usual_number(self, rng):
        X, y = rng.standard_normal((8, 2)), np.arange(8) % 2
        for most, expected in ((10, 10), (2000, tuning.USUAL_SIZE)):
            model = FourierFeatures("auto", max_components=most).fit(X, y)
            assert model.kernel_.n_components == expected
