"""The view that a fit computes on, and the way back: precision, units, many columns."""

import numpy as np
import pytest

from notsorandom import FourierClassifier, FourierFeatures, FourierRegressor, Sphere
from notsorandom.data.rows import Rows
from notsorandom.estimators.config import configure
from notsorandom.estimators.steps import make_view
from notsorandom.game import CLASSIFICATION_LOSSES, LOSSES, REGRESSION_LOSSES, Problem
from notsorandom.linear.newton import solve_task


def waves(rng, n_samples=400, n_features=3):
    X = rng.standard_normal((n_samples, n_features))
    return X, np.cos(2 * X[:, 0] - X[:, 1]) > 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("space", ["euclidean", Sphere("zonal", normalize=True)])
def test_results_have_the_precision_of_the_samples(rng, dtype, space):
    X, y = waves(rng)
    model = FourierClassifier(8, space=space, smoothing=0.1, random_state=0).fit(X.astype(dtype), y)
    for name in ("frequencies_", "phases_", "dual_", "average_dual_"):
        assert getattr(model, name).dtype == dtype, name
    assert model.kernel_.weights.dtype == dtype
    assert model.features_.transform(X.astype(dtype)).dtype == dtype


def test_both_precisions_find_the_same_features(rng):
    X, y = waves(rng)
    X = X.astype(np.float32)
    models = [
        FourierClassifier(4, smoothing=0.1, random_state=0).fit(X.astype(dtype), y)
        for dtype in (np.float32, np.float64)
    ]
    np.testing.assert_allclose(models[0].frequencies_, models[1].frequencies_, atol=1e-2)
    assert models[0].score(X, y) == pytest.approx(models[1].score(X, y), abs=0.01)


@pytest.mark.parametrize("loss", CLASSIFICATION_LOSSES)
def test_features_are_those_that_the_linear_model_was_fitted_to(rng, loss):
    """It is solved in the view, but predicts from the samples."""
    X, y = waves(rng, n_features=200)
    model = FourierClassifier(20, loss=loss, smoothing=0.1, C=10.0, random_state=0).fit(X + 7, y)
    features = model.features_.transform(X + 7)
    scores = features @ model.coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(X + 7), scores, atol=1e-9)
    np.testing.assert_array_equal(model.predict(X + 7), scores > 0)
    signs = np.where(y, 1.0, -1.0)
    problem = Problem.from_arrays(LOSSES[loss].times(10.0), signs[:, None])
    primal = 0.5 * model.coef_[0] @ model.coef_[0] + problem.total_loss(scores[:, None])
    best = solve_task(features, problem, 1e-5).primal_value
    assert primal <= best * (1 + 2e-3)  # the stated gap is 1e-3


@pytest.mark.parametrize("loss", REGRESSION_LOSSES)
def test_an_offset_of_the_targets_only_shifts_the_predictions(rng, loss):
    X = rng.standard_normal((300, 2))
    y = np.sin(3 * X[:, 0])
    model = FourierRegressor(12, loss=loss, smoothing=0.1, random_state=0)
    near, far = (model.fit(X, y + offset).predict(X) - offset for offset in (0.0, 1e9))
    # The sums of y and 1e9 are rounded to 1e-7, which later rounds amplify.
    np.testing.assert_allclose(near, far, atol=0.2)
    assert min(np.corrcoef(each, y)[0, 1] for each in (near, far)) > 0.95


def dtype_of_view(X, y, C=1.0, weights=None, loss="hinge"):
    problem = Problem(LOSSES[loss], y[:, None], Rows(X, weights))
    config = configure(FourierFeatures(loss=loss, C=C))
    return make_view(config, problem, np.random.default_rng(0)).dtype


def test_numbers_that_float32_cannot_hold_are_computed_in_float64(rng):
    X, y = waves(rng)
    y = np.where(y, 1.0, -1.0)
    assert dtype_of_view(X, y) == "float32"
    assert dtype_of_view(X, y, C=1e20) == "float64"
    assert dtype_of_view(X, y, weights=np.full((400, 1), 1e-20)) == "float64"
    large = np.full((400, 1), 1e10)
    assert dtype_of_view(X, y, weights=large) == "float32"
    assert dtype_of_view(X, y, C=1e10, weights=large) == "float64"  # by its sums
    assert dtype_of_view(X, 1e20 * y, loss="squared") == "float64"
    assert dtype_of_view(X, 1e20 + y, loss="squared") == "float32"  # only their mean is large


def test_frequencies_of_many_columns_lie_in_the_span_of_few_samples(rng):
    X = rng.standard_normal((60, 1000))
    y = X[:, 0] > 0
    model = FourierFeatures(6, smoothing=0.3, random_state=0).fit(X, y)
    assert model.frequencies_.shape == (6, 1000)
    centred = X - X.mean(axis=0)
    inside = np.linalg.lstsq(centred.T, model.frequencies_.T, rcond=None)[0]
    np.testing.assert_allclose(centred.T @ inside, model.frequencies_.T, atol=1e-4)


def test_a_signal_in_few_of_many_equal_columns_is_found(rng):
    """Principal directions would leave out most of it."""
    X = rng.standard_normal((3000, 300))
    y = X[:, 0] + X[:, 1] > 0
    model = FourierClassifier(50, smoothing=0.3, random_state=0).fit(X[:2000], y[:2000])
    assert model.score(X[2000:], y[2000:]) > 0.85
