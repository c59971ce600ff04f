"""The number of features, chosen on validation samples or by trials."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from notsorandom import (
    Ascent,
    Euclidean,
    FourierClassifier,
    FourierFeatures,
    FourierRegressor,
    GradientSolver,
    Sphere,
)
from notsorandom.data.rows import Rows
from notsorandom.estimators.steps import DUALITY_GAP
from notsorandom.game import LOSSES, GameLoop, Problem
from notsorandom.kernel import linear_scores
from notsorandom.linear.newton import solve_tasks
from notsorandom.tuning import size as sizes
from notsorandom.tuning import tune as tuning
from notsorandom.tuning.size import EarlyStopping

pytestmark = pytest.mark.usefixtures("quick_trials")


@pytest.fixture
def held_out(monkeypatch):
    """Hold out validation samples, as for many samples."""
    monkeypatch.setattr(tuning, "CROSS_VALIDATED_ROWS", 0)


HELD_OUT = pytest.mark.usefixtures("held_out")
ALL = pytest.mark.parametrize("estimator", [FourierFeatures, FourierClassifier, FourierRegressor])
SETTINGS = {"smoothing": 0.06, "random_state": 0}
AUTO = {"n_components": "auto"}


@ALL
@HELD_OUT
def test_features_of_the_last_improvement_are_kept(windmill, estimator):
    X, y, X_test, y_test = windmill
    if estimator is FourierRegressor:  # a linear target with noise needs few features
        y = X[:, 0] + np.random.default_rng(0).standard_normal(len(y))
    model = estimator("auto", max_components=600, **SETTINGS).fit(X, y)
    size = model.kernel_.n_components
    assert model.status_ == "stopped"
    assert size < 600
    kept = model.validation_sizes_.tolist().index(size)
    assert (model.validation_scores_ <= 1).all()
    assert kept <= model.validation_losses_.argmin()  # more are not kept for a small gain
    assert size < model.validation_sizes_[-1]
    assert (np.diff(model.validation_sizes_) > 0).all()
    assert model.history_["n_frequencies"][-1] == size
    if estimator is FourierClassifier:
        assert model.score(X_test, y_test) > 0.94
        assert model.coef_.shape == (1, size)
    assert model.certificate(X, y, max_evaluations=500).upper > 0


def evaluations(windmill, **options):
    """Play a game with early stopping, and return its evaluations and the best size."""
    X, y = windmill[:2]
    labels = np.where(y == 1, 1.0, -1.0)[:, None]
    training, validation = (
        Problem(LOSSES["hinge"], labels[part], Rows(X[part]))
        for part in (slice(100, None), slice(100))
    )
    space = Euclidean().resolve(training.rows, np.random.default_rng(0))
    parts, rngs = (space, training, validation), [np.random.default_rng(0) for _ in range(2)]
    stopping = EarlyStopping(lambda result: result.kernel("potential"), *parts, rngs[0], **options)
    players = {"space": space, "search": Ascent(), "rng": rngs[1]}
    result = GameLoop(training, n_frequencies=400, smoothing=0.06, **players).play([stopping])
    return stopping, len(stopping.best_result(result).frequencies)


def test_more_patience_continues_the_same_game(windmill):
    short, _ = evaluations(windmill, patience=1)
    long, _ = evaluations(windmill, patience=6)
    assert len(short.sizes) < len(long.sizes)
    assert short.losses == long.losses[: len(short.losses)]


def test_small_decreases_are_no_improvement(windmill, monkeypatch):
    monkeypatch.setattr(sizes, "MIN_SHARE_GAINED", 1.0)
    stopping, size = evaluations(windmill, patience=2)
    assert len(stopping.losses) == 3
    assert size == stopping.sizes[0]


@HELD_OUT
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_features_are_learned_without_the_held_out_samples(windmill, loss):
    """They equal those of a fit on the other samples alone, and so does the trials' choice."""
    X, y = windmill[:2]
    settings = {"loss": loss, "random_state": 0}
    model = FourierClassifier("auto", max_components=20, **settings).fit(X, y)
    held_out, size = model._held_out, model.kernel_.n_components
    assert size <= model.validation_sizes_[-1] <= 20
    assert 0.23 < held_out.mean() <= 0.25
    assert not model.dual_[held_out].any()
    others = FourierClassifier(size, **settings).fit(X[~held_out], y[~held_out])
    for name in ("C_", "smoothing_", "spectrum_", "tuning_"):
        np.testing.assert_equal(getattr(others, name), getattr(model, name))
    np.testing.assert_array_equal(others.frequencies_, model.frequencies_)
    np.testing.assert_array_equal(others.dual_, model.dual_[~held_out])
    # The final model is fitted to all samples.
    targets = np.where(y == 1, 1.0, -1.0)[:, None]
    problem = Problem.from_arrays(LOSSES[loss].times(model.C_), targets)
    features = model.kernel_.features(X)

    def objective(coef, intercept):
        losses = problem.total_loss(linear_scores(features, coef, intercept))
        return 0.5 * np.square(coef).sum() + losses

    best = objective(*solve_tasks(features, problem, 1e-6)[:2])
    assert objective(model.coef_, model.intercept_) <= best * (1 + DUALITY_GAP)
    assert objective(others.coef_, others.intercept_) > best * (1 + 2 * DUALITY_GAP)
    other_seed = FourierFeatures("auto", max_components=10, smoothing=0.06, random_state=1)
    assert (other_seed.fit(X, y)._held_out != held_out).any()


@HELD_OUT
def test_held_out_share_is_of_the_weight(windmill, rng):
    X, y = windmill[:2]
    weights = np.where(rng.uniform(size=len(y)) < 0.1, 30.0, 1.0)
    model = FourierFeatures("auto", max_components=10, validation_fraction=0.1, **SETTINGS)
    held_out = model.fit(X, y, sample_weight=weights)._held_out
    assert 0.05 < weights[held_out].sum() / weights.sum() < 0.13


@HELD_OUT
@pytest.mark.parametrize("end", ["rounds", "one round", "few harmonics"])
def test_last_features_are_evaluated(windmill, end):
    X, y = windmill[:2]
    parameters = {
        "rounds": {"max_components": 100, "solver": GradientSolver(n_rounds=4)},
        "one round": {"solver": GradientSolver(n_rounds=1)},
        "few harmonics": {"space": Sphere(max_degree=3, normalize=True)},
    }
    model = FourierClassifier("auto", **parameters[end], **SETTINGS).fit(X, y)
    assert len(model.validation_sizes_) >= 1
    assert model.kernel_.n_components in model.validation_sizes_
    if end == "rounds":
        assert len(model.history_["plays"]) <= 4
        assert model.validation_sizes_[-1] > 10
    if end == "few harmonics":  # rounds without new harmonics count as evaluations too
        assert len(model.history_["plays"]) < 200


@ALL
def test_attributes_of_an_earlier_fit_are_removed(windmill, estimator):
    X, y = windmill[:2]
    model = estimator("auto", max_components=12, **SETTINGS).fit(X, y)
    assert hasattr(model, "validation_sizes_")
    model.set_params(n_components=12).fit(X, y)
    assert not hasattr(model, "validation_sizes_")
    if estimator is FourierFeatures:
        assert not hasattr(model.set_params(loss="squared").fit(X, y), "classes_")


@pytest.mark.slow
@pytest.mark.full_trials
def test_digits_need_no_number_of_components():
    X, y = load_digits(return_X_y=True)
    train, test = train_test_split(np.arange(len(y)), random_state=0, stratify=y)
    model = FourierClassifier("auto", random_state=0).fit(X[train], y[train])
    assert model.score(X[test], y[test]) > 0.97
    assert 50 < model.kernel_.n_components < 1000


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"validation_fraction": 0.0}, "validation_fraction=0.0 is not allowed"),
        ({"validation_fraction": 1.0}, "must be 'auto' or a finite number > 0 and < 1"),
        ({"max_components": 0}, "max_components=0 is not allowed"),
        (AUTO | {"max_components": 5, "phase": "paired"}, "max_components=5 .*of 2"),
        ({"n_components": "many"}, "must be 'auto' or an int > 0"),
        (AUTO | {"warm_start": True}, "not allowed with warm_start=True"),
        (AUTO | {"space": "sphere", "solver": "equilibrium"}, "with solver='equilibrium'"),
    ],
)
@ALL
def test_invalid_parameters(windmill, estimator, parameters, message):
    with pytest.raises(ValueError, match=message):
        estimator(**parameters).fit(*windmill[:2])


def test_too_few_samples(rng, monkeypatch):
    """For trials: they get the usual size. To hold some out: that is an error."""
    X, y = rng.standard_normal((8, 2)), np.arange(8) % 2
    for most, expected in ((10, 10), (2000, tuning.USUAL_SIZE)):
        model = FourierFeatures("auto", max_components=most).fit(X, y)
        assert model.kernel_.n_components == expected
    monkeypatch.setattr(tuning, "CROSS_VALIDATED_ROWS", 0)
    with pytest.raises(ValueError, match="leaves none to validate on"):
        FourierClassifier("auto", validation_fraction=0.1).fit(X, y)
    model = FourierClassifier("auto", max_components=10, validation_fraction=0.5, smoothing=0.06)
    assert len(model.fit(X, y).validation_sizes_)


def noisy_line(rng, n_samples):
    X = rng.standard_normal((n_samples, 2))
    return X, np.where(rng.uniform(size=n_samples) < 0.2, X[:, 0] < 0, X[:, 0] > 0)


@pytest.mark.parametrize("phase", ["aligned", "paired"])
def test_trials_choose_the_size_of_few_samples(rng, windmill, phase, monkeypatch):
    """No sample is held out of the final fit, and the size suits the data."""
    monkeypatch.setattr(tuning, "plan_stages", lambda config, trials: [(64, 1)])
    model = FourierClassifier("auto", phase=phase, **SETTINGS)
    many = model.fit(*windmill[:2]).kernel_.n_components
    assert model._held_out is None
    assert model.status_ == "complete"
    assert model.dual_.any(axis=1).mean() > 0.5
    assert len(model.validation_sizes_) == len(model.validation_losses_) > 2
    assert (np.diff(model.validation_sizes_) >= 0).all()
    assert many in model.validation_sizes_
    assert model.score(*windmill[2:]) > 0.93
    few = model.fit(*noisy_line(rng, 600)).kernel_.n_components
    assert few < many
    limited = model.set_params(max_components=4).fit(*windmill[:2])
    assert limited.kernel_.n_components == 4


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_chosen_size_gives_the_model_of_that_size(windmill, loss):
    X, y = windmill[:2]
    model = FourierClassifier("auto", loss=loss, random_state=0).fit(X, y)
    given = FourierClassifier(model.kernel_.n_components, loss=loss, random_state=0).fit(X, y)
    np.testing.assert_array_equal(given.coef_, model.coef_)
    np.testing.assert_array_equal(given.frequencies_, model.frequencies_)
