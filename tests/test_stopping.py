"""Fits that are gone on with, that stop by themselves, and that are watched."""

import pickle

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, train_test_split

from notsorandom import FourierClassifier, FourierFeatures, FourierRegressor, Langevin, Sphere
from notsorandom.datasets import make_checkerboard
from notsorandom.estimators import config as settings
from notsorandom.estimators.training import DUALITY_GAP
from notsorandom.game import LOSSES, Player
from notsorandom.linear.newton import decide, solve_machines
from notsorandom.spaces import Euclidean

ALL = pytest.mark.parametrize("estimator", [FourierFeatures, FourierClassifier, FourierRegressor])


def same(one, other):
    """Everything learned is the same, but for the clock."""
    names = {name for name in vars(one) if name.endswith("_")}
    assert names == {name for name in vars(other) if name.endswith("_")}
    for name in names - {"history_", "features_", "kernel_", "average_kernel_"}:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    for name in ("kernel_", "average_kernel_"):
        np.testing.assert_array_equal(getattr(one, name).weights, getattr(other, name).weights)
    for name in set(one.history_) - {"seconds"}:
        np.testing.assert_array_equal(one.history_[name], other.history_[name], err_msg=name)


SETTINGS = {
    "plain": {},
    "paired": {"phase": "paired"},
    "theory": {"learning_rate": "theory"},
    "reweighted": {"reweight": True},
    "weighted": {"sample_weight": True},
    "balanced": {"class_weight": "balanced"},
    "harmonics": {"space": Sphere(normalize=True)},
    "zonal": {"space": Sphere("zonal", max_degree=4, normalize=True), "smoothing": 0.1},
    "primal_dual": {"space": Sphere(normalize=True), "dynamics": "primal_dual", "smoothing": 0.1},
    "langevin": {"search": Langevin(n_particles=20), "smoothing": 0.0},
}


@pytest.mark.usefixtures("short_trials")
@pytest.mark.parametrize("setting", SETTINGS)
def test_some_and_then_more_are_as_many_at_once(windmill, rng, setting):
    X, y = windmill[0][:200], windmill[1][:200]
    options = dict(SETTINGS[setting])
    weights = rng.integers(0, 3, size=200) if options.pop("sample_weight", False) else None
    at_once = FourierFeatures(30, random_state=0, **options).fit(X, y, weights)
    model = FourierFeatures(10, warm_start=True, random_state=0, **options).fit(X, y, weights)
    for size in (14, 30):  # most rounds have four peaks: these end in the middle of one
        model.set_params(n_components=size).fit(X, y, weights)
    same(model, at_once)


@pytest.mark.usefixtures("short_trials")
@ALL
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_estimator_goes_on(windmill, estimator, dtype):
    X, y = windmill[0].astype(dtype), windmill[1]
    at_once = estimator(100, random_state=0).fit(X, y)
    model = estimator(50, warm_start=True, random_state=0).fit(X, y)
    found = model.frequencies_.copy()
    seconds = model.history_["seconds"][-1]
    model = pickle.loads(pickle.dumps(model))
    model.set_params(n_components=100).fit(X, y)
    same(model, at_once)
    np.testing.assert_array_equal(model.frequencies_[:50], found)
    assert model.history_["seconds"][-1] > seconds


def test_a_game_without_room_goes_on_from_before(rng):
    """Harmonics that come in pairs: a round may take some of its peaks and leave the others."""
    X = rng.standard_normal((200, 3))
    y = X[:, 0] * X[:, 1] + 0.3 * X[:, 2] ** 3 > 0
    space = Sphere("harmonic", max_degree=5, normalize=True)
    settings = {"space": space, "phase": "paired", "smoothing": 0.06, "random_state": 0}
    at_once = FourierFeatures(30, **settings).fit(X, y)
    for first in (5, 7, 13):
        model = FourierFeatures(first, warm_start=True, **settings).fit(X, y)
        same(model.set_params(n_components=30).fit(X, y), at_once)


def test_a_reweighted_game_is_as_long_as_its_play(windmill):
    X, y = windmill[:2]
    model = FourierFeatures(30, reweight=True, warm_start=True, smoothing=0.06, random_state=0)
    with pytest.raises(ValueError, match="less than the 30 of the last fit"):
        model.fit(X, y).set_params(n_components=8).fit(X, y)


@pytest.mark.usefixtures("short_trials")
def test_without_a_seed_too(windmill):
    X, y = windmill[:2]
    model = FourierFeatures(10, warm_start=True).fit(X, y)
    found = model.frequencies_.copy()
    assert len(model.set_params(n_components=20).fit(X, y).frequencies_) == 20
    np.testing.assert_array_equal(model.frequencies_[:10], found)


def test_more_rounds_go_on(rng):
    X, y = make_checkerboard(300, random_state=0)
    settings = {"space": "sphere", "smoothing": 0.05, "random_state": 0}
    at_once = FourierFeatures(50, n_rounds=40, **settings).fit(X, y)
    model = FourierFeatures(50, n_rounds=7, warm_start=True, **settings).fit(X, y)
    same(model.set_params(n_rounds=40).fit(X, y), at_once)


def test_going_on_needs_the_same_game(windmill):
    X, y = windmill[:2]
    model = FourierClassifier(10, warm_start=True, smoothing=0.06, random_state=0).fit(X, y)
    before = model.decision_function(X)
    for change, data in [
        ({"C": 2.0}, (X, y)),
        ({}, (X[1:], y[1:])),
        ({}, (X + 1e-9, y)),
        ({}, (X, np.roll(y, 1))),
        ({}, (X, y, np.arange(len(y)))),
        ({"space": Euclidean(center=[0.0, 0.1])}, (X, y)),
        ({"n_components": 9}, (X, y)),
        ({"n_rounds": 1}, (X, y)),
    ]:
        parameters = model.get_params()
        with pytest.raises(ValueError, match=r"warm_start=True go"):
            model.set_params(**change).fit(*data)
        model.set_params(**parameters)
        np.testing.assert_array_equal(model.decision_function(X), before)  # nothing is lost
    model.set_params(n_components=12).fit(X, y)
    assert len(model.frequencies_) == 12
    anew = clone(model).fit(X[1:], y[1:])  # a clone knows no game
    assert len(anew.frequencies_) == 12
    assert len(model.set_params(warm_start=False, C=2.0, n_components=5).fit(X, y).phases_) == 5


def test_a_plain_fit_keeps_no_game(windmill):
    model = FourierFeatures(10, smoothing=0.06, random_state=0).fit(*windmill[:2])
    assert not hasattr(model, "_paused")
    size = len(pickle.dumps(model))
    model.set_params(warm_start=True).fit(*windmill[:2])
    assert len(pickle.dumps(model)) > size


@pytest.mark.usefixtures("short_trials", "rough_suprema")
@ALL
def test_it_stops_by_itself(windmill, estimator, monkeypatch):
    X, y, X_test, y_test = windmill
    if estimator is FourierRegressor:  # there is no end to what waves can do for the windmill
        y = X[:, 0] + np.random.default_rng(0).standard_normal(len(y))
    monkeypatch.setattr(settings, "MOST_COMPONENTS", 600)
    model = estimator("auto", random_state=0).fit(X, y)
    size = model.kernel_.n_components
    assert model.status_ == "stopped"
    assert size < 600
    best, least = 0, np.inf
    for number, loss in enumerate(model.validation_losses_):
        if loss < least - 1e-4:
            best, least = number, loss
    assert (model.validation_scores_ <= 1).all()
    assert model.validation_sizes_[best] == size
    assert len(model.validation_sizes_) - 1 - best == 5
    assert (np.diff(model.validation_sizes_) >= 10).all()
    assert model.history_["n_frequencies"][-1] == size
    played = np.abs(model.dual_).sum(axis=1) > 0
    assert played.mean() < 0.95
    if estimator is FourierClassifier:
        assert model.score(X_test, y_test) > 0.94
        assert model.coef_.shape == (1, size)
    assert model.certificate(X, y).upper > 0


def test_early_stopping_keeps_within_its_number(windmill):
    X, y = windmill[:2]
    settings = {"smoothing": 0.06, "random_state": 0}
    model = FourierClassifier(30, early_stopping=True, **settings).fit(X, y)
    assert model.validation_sizes_[-1] <= 30
    assert model.kernel_.n_components <= 30
    patient = FourierClassifier("auto", n_iter_no_change=3, **settings).fit(X, y)
    more_patient = FourierClassifier("auto", n_iter_no_change=12, **settings).fit(X, y)
    assert len(patient.validation_sizes_) < len(more_patient.validation_sizes_)
    np.testing.assert_array_equal(
        patient.validation_scores_,
        more_patient.validation_scores_[: len(patient.validation_sizes_)],
    )
    eager = FourierClassifier("auto", tol=1.0, n_iter_no_change=2, **settings).fit(X, y)
    assert len(eager.validation_losses_) == 3  # nothing is better by that much
    assert eager.kernel_.n_components == eager.validation_sizes_[0]


def test_held_out_samples_teach_no_features(windmill):
    """They are those of a fit on the other samples alone, its smoothing too."""
    X, y = windmill[:2]
    model = FourierClassifier(20, early_stopping=True, random_state=0).fit(X, y)
    held, size = model._held_out, model.kernel_.n_components
    assert 0.08 < held.mean() < 0.12
    assert not model.dual_[held].any()
    others = FourierClassifier(size, random_state=0).fit(X[~held], y[~held])
    assert others.smoothing_ == model.smoothing_
    np.testing.assert_array_equal(others.frequencies_, model.frequencies_)
    np.testing.assert_array_equal(others.dual_, model.dual_[~held])
    # But the final model has seen all.
    player = Player(LOSSES["hinge"](1.0), np.where(y == 1, 1.0, -1.0)[:, None])
    features = model.kernel_.features(X)

    def objective(coef, intercept):
        losses = player.loss_of(decide(features, coef, intercept))
        return 0.5 * np.square(coef).sum() + losses

    best = objective(*solve_machines(features, player, 1e-6)[:2])
    assert objective(model.coef_, model.intercept_) <= best * (1 + DUALITY_GAP)
    assert objective(others.coef_, others.intercept_) > best * (1 + 2 * DUALITY_GAP)
    other_seed = FourierFeatures(20, early_stopping=True, random_state=1).fit(X, y)
    assert (other_seed._held_out != held).any()


def test_a_share_of_the_weight_is_held_out(windmill, rng):
    X, y = windmill[:2]
    weights = np.where(rng.uniform(size=len(y)) < 0.1, 30.0, 1.0)
    model = FourierFeatures(10, early_stopping=True, smoothing=0.06, random_state=0)
    held = model.fit(X, y, sample_weight=weights)._held_out
    assert 0.05 < weights[held].sum() / weights.sum() < 0.13


class StopsAtOnce:
    def setup(self, estimator, context): ...

    def on_fit_task_begin(self, estimator, context): ...

    def on_fit_task_end(self, estimator, context):
        return True

    def teardown(self, estimator, context): ...


@pytest.mark.parametrize("how", ["rounds", "auto", "few harmonics", "callback"])
def test_there_is_a_look_at_the_end_however_it_comes(windmill, how):
    X, y = windmill[:2]
    settings = {"smoothing": 0.06, "random_state": 0}
    if how == "rounds":
        model = FourierClassifier(100, early_stopping=True, n_rounds=4, **settings)
    elif how == "auto":
        model = FourierClassifier("auto", n_rounds=1, **settings)
    elif how == "few harmonics":
        model = FourierClassifier("auto", space=Sphere(max_degree=3, normalize=True), **settings)
    else:
        model = FourierClassifier(20, early_stopping=True, **settings)
        if not hasattr(model, "set_callbacks"):
            pytest.skip("callbacks came with scikit-learn 1.9")
        model.set_callbacks(StopsAtOnce())
    model.fit(X, y)
    assert len(model.validation_sizes_) >= 1
    assert model.kernel_.n_components in model.validation_sizes_
    if how == "rounds":
        assert len(model.history_["plays"]) <= 4
        assert model.validation_sizes_[-1] > 10
    if how == "few harmonics":  # patience runs out, though there is nothing new to find
        assert len(model.history_["plays"]) < 200


@ALL
def test_nothing_of_an_earlier_fit_remains(windmill, estimator):
    X, y = windmill[:2]
    model = estimator(12, early_stopping=True, smoothing=0.06, random_state=0).fit(X, y)
    assert hasattr(model, "validation_sizes_")
    model.set_params(early_stopping=False).fit(X, y)
    assert not hasattr(model, "validation_sizes_")
    if estimator is FourierFeatures:
        assert not hasattr(model.set_params(loss="squared").fit(X, y), "classes_")


def test_moments_of_a_fit_that_stopped_early(windmill):
    from notsorandom.display.inspection import moments

    X, y = windmill[:2]
    model = FourierClassifier(30, early_stopping=True, smoothing=0.06, random_state=0).fit(X, y)
    last = moments(model, X, y)[-1]
    assert len(last.measure) == (~model._held_out).sum()


def test_digits_need_no_number():
    X, y = load_digits(return_X_y=True)
    train, test = train_test_split(np.arange(len(y)), random_state=0, stratify=y)
    model = FourierClassifier("auto", smoothing=0.06, random_state=0).fit(X[train], y[train])
    assert model.score(X[test], y[test]) > 0.97
    assert 50 < model.kernel_.n_components < 1000


BAD = [
    ({"early_stopping": "yes"}, "early_stopping='yes' is not allowed: it must be True or False"),
    ({"validation_fraction": 0.0}, "validation_fraction=0.0 is not allowed"),
    ({"validation_fraction": 1.0}, "must be a finite number > 0 and < 1"),
    ({"n_iter_no_change": 0}, "n_iter_no_change=0 is not allowed"),
    ({"tol": -1}, "tol=-1 is not allowed"),
    ({"warm_start": 1}, "warm_start=1 is not allowed: it must be True or False"),
    ({"n_components": "many"}, "must be 'auto' or an int > 0"),
    ({"n_components": "auto", "warm_start": True}, "not allowed with warm_start=True"),
    (
        {"early_stopping": True, "space": "sphere", "dynamics": "primal_dual"},
        "not allowed with dynamics='primal_dual'",
    ),
]


@pytest.mark.parametrize(("parameters", "message"), BAD)
@ALL
def test_bad_parameters(windmill, estimator, parameters, message):
    with pytest.raises(ValueError, match=message):
        estimator(**parameters).fit(*windmill[:2])


def test_too_few_to_hold_out(rng):
    X, y = rng.standard_normal((8, 2)), np.arange(8) % 2
    with pytest.raises(ValueError, match="leaves none to validate on"):
        FourierClassifier("auto").fit(X, y)
    assert FourierClassifier("auto", validation_fraction=0.5).fit(X, y).validation_sizes_.size


class Watcher:
    """A callback that writes down what it is told, and stops where it is asked to."""

    def __init__(self, stop_at=None):
        self.stop_at = stop_at
        self.sizes = []
        self.told = []

    def setup(self, estimator, context):
        self.told.append("setup")

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context, *, X, y, metadata, fitted_estimator):
        if context.parent is None:
            self.told.append("end")
        else:
            self.sizes.append(fitted_estimator.kernel_.n_components)
        self.told.append(fitted_estimator)
        return self.stop_at is not None and context.task_id + 1 >= self.stop_at

    def teardown(self, estimator, context):
        self.told.append("teardown")


@pytest.mark.skipif(
    tuple(int(part) for part in sklearn.__version__.split(".")[:2]) < (1, 9),
    reason="callbacks came with scikit-learn 1.9",
)
class TestCallbacks:
    @ALL
    def test_are_told_of_every_feature(self, windmill, estimator):
        X, y, X_test, _ = windmill
        watcher = Watcher()
        model = estimator(10, smoothing=0.06, random_state=0).set_callbacks(watcher)
        model.fit(X, y)
        assert watcher.sizes == list(range(1, 11))
        assert watcher.told[0] == "setup"
        assert watcher.told[-1] == "teardown"
        # Each is the model had it ended there.
        seventh = watcher.told[7]
        expected = estimator(7, smoothing=0.06, random_state=0).fit(X, y)
        name = "transform" if estimator is FourierFeatures else "predict"
        np.testing.assert_allclose(
            getattr(seventh, name)(X_test), getattr(expected, name)(X_test), rtol=1e-6
        )
        assert not {name for name in vars(model) if "callback" in name} - {"_skl_callbacks"}

    def test_pairs_are_told_of_as_pairs(self, windmill):
        watcher = Watcher()
        model = FourierClassifier(12, phase="paired", smoothing=0.06, random_state=0)
        model.set_callbacks(watcher).fit(*windmill[:2])
        assert watcher.sizes == [2, 2, 4, 4, 6, 6, 8, 8, 10, 10, 12, 12]

    def test_can_stop_the_game(self, windmill):
        model = FourierClassifier(100, smoothing=0.06, random_state=0)
        model.set_callbacks(Watcher(stop_at=10)).fit(*windmill[:2])
        assert model.status_ == "stopped"
        assert 10 <= model.kernel_.n_components < 14

    def test_that_fail_leave_the_estimator_as_it_was(self, windmill):
        class Failing(Watcher):
            def on_fit_task_end(self, estimator, context):
                raise RuntimeError("enough")

        watcher = Failing()
        model = FourierClassifier(10, smoothing=0.06, random_state=0).set_callbacks(watcher)
        with pytest.raises(RuntimeError, match="enough"):
            model.fit(*windmill[:2])
        assert not hasattr(model, "kernel_")
        assert watcher.told == ["setup", "teardown"]
        assert set(vars(model)) - {"epsilon"} == set(model.get_params()) | {"_skl_callbacks"}

    def test_of_scikit_learn(self, windmill, capsys):
        pytest.importorskip("rich")
        from sklearn.callback import ProgressBar, ScoringMonitor

        X, y = windmill[:2]
        monitor = ScoringMonitor(scoring="accuracy")
        settings = {"smoothing": 0.06, "random_state": 0}
        model = FourierClassifier(12, **settings).set_callbacks(monitor, ProgressBar())
        model.fit(X, y)
        assert "FourierClassifier - fit" in capsys.readouterr().out
        grid = GridSearchCV(FourierClassifier(6, **settings), {"C": [1.0, 2.0]}, cv=2)
        grid.set_callbacks(ProgressBar()).fit(X, y)
        assert grid.best_score_ > 0.5
