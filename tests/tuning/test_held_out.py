"""Temperatures and probabilities."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from sklearn.metrics import log_loss

from notsorandom import FourierClassifier
from notsorandom.estimators.classifier import log_probabilities
from notsorandom.tuning.held_out import fit_temperatures, log_losses


def make_scores(rng, n_tasks, n_samples=200, temperature=3.0):
    """Scores that are too large by a factor, with classes drawn from their probabilities."""
    n_classes = max(n_tasks, 2)
    scores = rng.standard_normal((n_samples, n_tasks))
    probabilities = np.exp(log_probabilities(scores, 1.0))
    codes = np.array([rng.choice(n_classes, p=each) for each in probabilities])
    return temperature * scores, codes


def smoothed_log_loss(scores, codes, counts, temperature):
    """The objective, written out: the samples, and one more of every class, spread over them."""
    n_classes = max(scores.shape[1], 2)
    columns = scores if scores.shape[1] > 1 else np.hstack([-scores / 2, scores / 2])
    losses = -log_softmax(columns / temperature, axis=1)
    share = 1 / (counts.sum() + n_classes)
    targets = (1 - share) * np.eye(n_classes)[codes] + share / n_classes
    return np.average((targets * losses).sum(axis=1), weights=counts)


@pytest.mark.parametrize("n_tasks", [1, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_temperature_minimises_the_log_loss(rng, n_tasks, weighted):
    scores, codes = make_scores(rng, n_tasks)
    counts = rng.uniform(0.1, 4, size=len(codes)) if weighted else np.ones(len(codes))
    found = float(fit_temperatures(scores, codes, counts))
    best = minimize_scalar(
        lambda log: smoothed_log_loss(scores, codes, counts, np.exp(log)),
        bounds=(-5, 5),
        method="bounded",
        options={"xatol": 1e-8},
    )
    np.testing.assert_allclose(np.log(found), best.x, atol=1e-3)
    assert 1.5 < found < 6  # the scores were multiplied by 3


def test_leading_axes_are_problems_of_their_own(rng):
    scores, codes = make_scores(rng, 3)
    counts = np.ones(len(codes))
    many = np.stack([scores, 10 * scores, scores[::-1]]).reshape(3, 1, *scores.shape)
    alone = [[float(fit_temperatures(each[0], codes, counts))] for each in many]
    np.testing.assert_allclose(fit_temperatures(many, codes, counts), alone, rtol=2e-3)


@pytest.mark.parametrize("factor", [1e-8, 1e-3, 1e5, 1e12])
@pytest.mark.parametrize("n_tasks", [1, 4])
def test_temperatures_scale_with_the_scores(rng, factor, n_tasks):
    scores, codes = make_scores(rng, n_tasks)
    one, other = (
        float(fit_temperatures(each, codes, np.ones(len(codes))))
        for each in (scores, factor * scores)
    )
    np.testing.assert_allclose(other, factor * one, rtol=1e-9)


def test_weight_two_is_a_sample_twice(rng):
    scores, codes = make_scores(rng, 3)
    counts = rng.integers(1, 4, size=len(codes))
    weighted = fit_temperatures(scores, codes, counts.astype(float))
    copied = fit_temperatures(
        np.repeat(scores, counts, axis=0), np.repeat(codes, counts), np.ones(counts.sum())
    )
    np.testing.assert_allclose(weighted, copied, rtol=1e-9)


# Of separable scores, half of a sample more counts as wrong.
@pytest.mark.parametrize(
    ("factor", "lowest"),
    [
        (1, pytest.approx(0.5 / 102, rel=1e-3)),
        (-1, pytest.approx(0.475, abs=0.025)),
        (0, pytest.approx(0.5)),
    ],
)
def test_extreme_scores_have_finite_temperatures(factor, lowest):
    codes = np.arange(100) % 2
    scores = factor * (2.0 * codes - 1)[:, None]
    temperature = float(fit_temperatures(scores, codes, np.ones(100)))
    assert np.isfinite(temperature)
    assert temperature > 0
    assert np.isfinite(log_losses(scores / temperature, codes)).all()
    assert np.exp(log_probabilities(scores, temperature)).min() == lowest


def test_log_loss_is_that_of_scikit_learn(rng):
    for n_tasks in (1, 3):
        scores, codes = make_scores(rng, n_tasks)
        probabilities = np.exp(log_probabilities(scores, 1.0))
        np.testing.assert_allclose(probabilities.sum(axis=1), 1)
        np.testing.assert_allclose(log_losses(scores, codes).mean(), log_loss(codes, probabilities))


def noisy_classes(rng, n_samples, n_classes):
    X = rng.standard_normal((n_samples, 5))
    scores = np.column_stack([np.zeros(n_samples), 1.5 * X[:, : n_classes - 1]])
    return X, (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_are_calibrated(rng, n_classes):
    """Features fitted to the same noisy rows are over-confident; the temperature corrects that."""
    X, y = noisy_classes(rng, 400, n_classes)
    X_test, y_test = noisy_classes(rng, 4000, n_classes)
    search = {"C": 10.0, "smoothing": 0.1, "random_state": 0}
    model = FourierClassifier(60, **search).fit(X, y)
    assert model.temperature_ > 1
    scores = model.decision_function(X_test).reshape(len(X_test), -1)
    plain = log_losses(scores, y_test).mean()
    calibrated = log_loss(y_test, model.predict_proba(X_test))
    assert calibrated < plain - 0.05
    np.testing.assert_array_equal(model.predict_proba(X_test).argmax(axis=1), model.predict(X_test))
    # Nearly as good as the best temperature for the test samples.
    best = fit_temperatures(scores, y_test, np.ones(len(y_test)))
    assert calibrated < log_losses(scores / best, y_test).mean() + 0.05


def test_confidence_is_the_accuracy_on_noisy_data(rng):
    X, y = noisy_classes(rng, 600, 2)
    X_test, y_test = noisy_classes(rng, 4000, 2)
    model = FourierClassifier(40, random_state=0).fit(X, y)
    confidence = model.predict_proba(X_test).max(axis=1)
    assert abs(confidence.mean() - model.score(X_test, y_test)) < 0.05
