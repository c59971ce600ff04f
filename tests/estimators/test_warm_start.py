"""Warm starts: a second fit continues the game of the first."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from notsorandom import (
    FourierClassifier,
    FourierFeatures,
    FourierRegressor,
    GradientSolver,
    Langevin,
    Sphere,
)
from notsorandom.datasets import make_checkerboard
from notsorandom.estimators import resume
from notsorandom.spaces import Euclidean

QUICK = {"smoothing": 0.06, "random_state": 0}
ALL = pytest.mark.parametrize("estimator", [FourierFeatures, FourierClassifier, FourierRegressor])


VARIANTS = {
    "plain": {},
    "paired": {"phase": "paired"},
    "theory": {"solver": GradientSolver("theory")},
    "reweighted": {"solver": "reweight", "C": 1.0},
    "weighted": {"sample_weight": True},
    "balanced": {"class_weight": "balanced"},
    "harmonics": {"space": Sphere(normalize=True)},
    "zonal": {"space": Sphere("zonal", max_degree=4, normalize=True), "smoothing": 0.1},
    "equilibrium": {"space": Sphere(normalize=True), "solver": "equilibrium", "smoothing": 0.1},
    "langevin": {"search": Langevin(n_particles=20), "smoothing": 0.0},
}


@pytest.mark.parametrize("setting", VARIANTS)
def test_two_fits_equal_one_longer_fit(windmill, rng, setting, assert_same_fit):
    X, y = windmill[0][:200], windmill[1][:200]
    options = dict(VARIANTS[setting])
    weights = rng.integers(0, 3, size=200) if options.pop("sample_weight", False) else None
    at_once = FourierFeatures(30, random_state=0, **options).fit(X, y, weights)
    model = FourierFeatures(10, warm_start=True, random_state=0, **options).fit(X, y, weights)
    for size in (14, 30):  # most rounds have four peaks: these end in the middle of one
        model.set_params(n_components=size).fit(X, y, weights)
    assert_same_fit(model, at_once)


@ALL
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_estimator_continues(windmill, estimator, dtype, assert_same_fit):
    X, y = windmill[0].astype(dtype), windmill[1]
    at_once = estimator(100, **QUICK).fit(X, y)
    model = estimator(50, warm_start=True, **QUICK).fit(X, y)
    found = model.frequencies_.copy()
    seconds = model.history_["seconds"][-1]
    model = pickle.loads(pickle.dumps(model))
    model.set_params(n_components=100).fit(X, y)
    assert_same_fit(model, at_once)
    np.testing.assert_array_equal(model.frequencies_[:50], found)
    assert model.history_["seconds"][-1] > seconds


def test_a_truncated_round_is_played_again(rng, assert_same_fit):
    """With pairs of harmonics, the last round may have room for only some of its peaks."""
    X = rng.standard_normal((200, 3))
    y = X[:, 0] * X[:, 1] + 0.3 * X[:, 2] ** 3 > 0
    space = Sphere("harmonic", max_degree=5, normalize=True)
    settings = {"space": space, "phase": "paired", "smoothing": 0.06, "random_state": 0}
    at_once = FourierFeatures(30, **settings).fit(X, y)
    for first in (5, 7, 13):
        model = FourierFeatures(first, warm_start=True, **settings).fit(X, y)
        assert_same_fit(model.set_params(n_components=30).fit(X, y), at_once)


def test_features_dropped_by_reweighting_count(windmill):
    X, y = windmill[:2]
    model = FourierFeatures(30, solver="reweight", warm_start=True, **QUICK)
    with pytest.raises(ValueError, match="less than the 30 of the last fit"):
        model.fit(X, y).set_params(n_components=8).fit(X, y)


def test_warm_start_without_a_seed(windmill):
    X, y = windmill[:2]
    model = FourierFeatures(10, warm_start=True, smoothing=0.06).fit(X, y)
    found = model.frequencies_.copy()
    assert len(model.set_params(n_components=20).fit(X, y).frequencies_) == 20
    np.testing.assert_array_equal(model.frequencies_[:10], found)


@pytest.mark.parametrize("solver", [GradientSolver(n_rounds=7), "gradient"])
def test_more_rounds_continue(solver, assert_same_fit):
    X, y = make_checkerboard(300, random_state=0)
    settings = {"space": "sphere", "smoothing": 0.05, "random_state": 0}
    longer = GradientSolver(n_rounds=60)
    at_once = FourierFeatures(50, solver=longer, **settings).fit(X, y)
    model = FourierFeatures(50, solver=solver, warm_start=True, **settings).fit(X, y)
    assert_same_fit(model.set_params(solver=longer).fit(X, y), at_once)


def test_another_game_is_rejected(windmill):
    X, y = windmill[:2]
    model = FourierClassifier(10, warm_start=True, **QUICK).fit(X, y)
    before = model.decision_function(X)
    for change, data in [
        ({"C": 2.0}, (X, y)),
        ({}, (X[1:], y[1:])),
        ({}, (X + 1e-9, y)),
        ({}, (X, np.roll(y, 1))),
        ({}, (X, y, np.arange(len(y)))),
        ({"space": Euclidean(center=[0.0, 0.1])}, (X, y)),
        ({"n_components": 9}, (X, y)),
        ({"solver": GradientSolver(n_rounds=1)}, (X, y)),
    ]:
        parameters = model.get_params()
        with pytest.raises(ValueError, match=r"warm_start=True continues"):
            model.set_params(**change).fit(*data)
        model.set_params(**parameters)
        np.testing.assert_array_equal(model.decision_function(X), before)  # the model is unchanged
    model.set_params(n_components=12).fit(X, y)
    assert len(model.frequencies_) == 12
    anew = clone(model).fit(X[1:], y[1:])  # a clone has no state
    assert len(anew.frequencies_) == 12
    assert len(model.set_params(warm_start=False, C=2.0, n_components=5).fit(X, y).phases_) == 5


def test_state_is_kept_only_for_warm_starts(windmill):
    model = FourierFeatures(10, **QUICK).fit(*windmill[:2])
    assert not hasattr(model, "_warm_start")
    size = len(pickle.dumps(model))
    model.set_params(warm_start=True).fit(*windmill[:2])
    assert len(pickle.dumps(model)) > size


def test_data_are_hashed_only_where_a_later_fit_can_use_it(windmill, monkeypatch, tmp_path):
    def fail(problem):
        raise AssertionError("hashed")

    monkeypatch.setattr(resume, "fingerprint", fail)
    X, y = windmill[:2]
    FourierClassifier(4, smoothing=0.06).fit(X, y)
    for parameters in ({"warm_start": True}, {"checkpoint": tmp_path / "game"}):
        with pytest.raises(AssertionError, match="hashed"):
            FourierClassifier(4, smoothing=0.06, **parameters).fit(X, y)
