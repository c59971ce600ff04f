"""Many linear models at once, against the same models one by one."""

from dataclasses import replace

import numpy as np
import pytest

from notsorandom.data.rows import Rows
from notsorandom.game import CLASSIFICATION_LOSSES, LOSSES, LogisticLoss, Problem
from notsorandom.game.problem import signs_from_codes
from notsorandom.linear.newton import solve_task
from notsorandom.linear.newton_step import find_roots
from notsorandom.linear.softmax import solve_features
from notsorandom.linear.softmax_pass import evaluate
from notsorandom.tuning import trial_models
from notsorandom.tuning.trial_models import Batch, solve_batch

N_GAMES, N_ROWS, N_FEATURES = 4, 160, 9
EVERY_LOSS = pytest.mark.parametrize("loss", LOSSES)


def make_games(rng, loss, n_tasks=3, noise=0.3):
    features = rng.standard_normal((N_GAMES, N_ROWS, N_FEATURES)) / np.sqrt(N_FEATURES)
    scores = features[0] @ rng.standard_normal((N_FEATURES, n_tasks))
    features += 0.2 * rng.standard_normal(features.shape)
    scores += noise * rng.standard_normal(scores.shape) + 0.2
    targets = np.where(scores > 0, 1.0, -1.0) if loss in CLASSIFICATION_LOSSES else scores
    if loss == "logistic" and n_tasks > 1:  # the tasks are the classes of one model
        targets = signs_from_codes(scores.argmax(axis=1), n_tasks, float)
    masks = rng.uniform(size=(N_GAMES, N_ROWS)) < 0.75
    return features.astype(np.float32), targets.astype(np.float32), masks


def excesses(features, targets, masks, loss, weights, coef, intercept):
    """Relative distances from the optima, by models that are solved one by one.

    One per game and task, or one per game if the tasks are the classes of one model.
    """
    result = []
    for game, mask in enumerate(masks):
        rows, labels = features[game][mask].astype(float), targets[mask].astype(float)
        columns = None if weights is None else weights[mask][:, None]
        problem = Problem.from_arrays(loss, labels, columns)
        if isinstance(loss, LogisticLoss) and targets.shape[1] > 1:
            problem = replace(problem, rows=Rows(rows, columns))
            solved = solve_features(rows, problem, 1e-6)
            best, model = (
                evaluate(problem, lambda X: X, N_FEATURES, float, np.column_stack(each))
                for each in (solved[:2], (coef[game], intercept[game]))
            )
            result.append(model.primal / (best.primal - best.absolute_gap) - 1)
            continue
        for task in range(targets.shape[1]):
            best = solve_task(rows, problem.task(task), 1e-6)
            scores = rows @ coef[game, task] + intercept[game, task]
            value = 0.5 * np.square(coef[game, task], dtype=float).sum()
            value += problem.task(task).total_loss(scores[:, None])
            result.append(value / best.dual_value - 1)
    return np.array(result)


def solve(features, targets, masks, loss, *args, **settings):
    """Solve with one multiple of the loss."""
    coef, intercept = solve_batch(features, targets, masks, loss, *args, **settings)
    assert coef.shape[1] == intercept.shape[1] == 1
    return coef[:, 0], intercept[:, 0]


@EVERY_LOSS
@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_models_agree_with_those_solved_alone(rng, loss, C, weighted):
    features, targets, masks = make_games(rng, loss)
    weights = rng.uniform(0.2, 3, size=N_ROWS) if weighted else None
    loss = LOSSES[loss].times(C)
    coef, intercept = solve(features, targets, masks, loss, weights)
    assert coef.shape == (N_GAMES, 3, N_FEATURES)
    assert intercept.shape == (N_GAMES, 3)
    distance = excesses(features, targets, masks, loss, weights, coef, intercept)
    assert -1e-4 < distance.min() <= distance.max() <= 0.01


@pytest.mark.parametrize("loss", CLASSIFICATION_LOSSES)
@pytest.mark.parametrize("n_positive", [1, 3])
def test_class_with_few_rows(rng, loss, n_positive):
    features, targets, masks = make_games(rng, loss)
    targets[:, 0] = -1
    targets[:n_positive, 0] = 1
    if loss == "logistic":
        codes = np.where(np.arange(N_ROWS) < n_positive, 0, 1 + (targets[:, 1] > 0))
        targets = signs_from_codes(codes, 3, np.float32)
    masks[:, :n_positive] = True
    features[:, :n_positive, 0] += 1
    loss = LOSSES[loss]
    coef, intercept = solve(features, targets, masks, loss)
    assert excesses(features, targets, masks, loss, None, coef, intercept).max() <= 0.01


@EVERY_LOSS
def test_smaller_tolerance_is_reached(rng, loss):
    features, targets, masks = make_games(rng, loss)
    loss = LOSSES[loss]
    coef, intercept = solve(features, targets, masks, loss, tol=1e-4)
    assert excesses(features, targets, masks, loss, None, coef, intercept).max() <= 2e-4


@EVERY_LOSS
def test_rows_held_out_have_no_influence(rng, loss):
    features, targets, masks = make_games(rng, loss)
    masks[:, -20:] = False
    changed, others = features.copy(), targets.copy()
    changed[~masks] += 5
    others[-20:] *= -3
    loss = LOSSES[loss]
    expected = solve_batch(features, targets, masks, loss)
    result = solve_batch(changed, others, masks, loss)
    for part, other in zip(result, expected, strict=True):
        np.testing.assert_array_equal(part, other)


@EVERY_LOSS
def test_weight_two_counts_as_two_rows(rng, loss):
    features, targets, masks = make_games(rng, loss)
    weights = rng.integers(1, 3, size=N_ROWS)
    twice = np.repeat(np.arange(N_ROWS), weights)
    loss = LOSSES[loss]
    coef, intercept = solve_batch(features, targets, masks, loss, weights.astype(float), tol=1e-5)
    repeated = solve_batch(features[:, twice], targets[twice], masks[:, twice], loss, tol=1e-5)
    np.testing.assert_allclose(coef, repeated[0], atol=0.02)
    np.testing.assert_allclose(intercept, repeated[1], atol=0.02)


@EVERY_LOSS
def test_scale_of_the_loss_multiplies_c(rng, loss):
    features, targets, masks = make_games(rng, loss)
    scales = np.geomspace(0.1, 10, 5)
    coef, intercept = solve_batch(features, targets, masks, LOSSES[loss], loss_scales=scales)
    assert coef.shape == (N_GAMES, 5, 3, N_FEATURES)
    for number, scale in enumerate(scales):
        model = coef[:, number], intercept[:, number]
        scaled = LOSSES[loss].times(scale)
        assert excesses(features, targets, masks, scaled, None, *model).max() <= 0.01


@pytest.mark.parametrize("n_tasks", [1, 3, 8])
@pytest.mark.parametrize("noise", [0.0, 0.3])
@pytest.mark.parametrize("tol", [0.1, 1e-3])
def test_logistic_models_of_very_different_scales(rng, n_tasks, noise, tol):
    """A grid of `C`, also where the classes are separable."""
    features, targets, masks = make_games(rng, "logistic", n_tasks=n_tasks, noise=noise)
    scales, loss = np.geomspace(1e-2, 1e4, 6), LOSSES["logistic"]
    coef, intercept = solve_batch(features, targets, masks, loss, loss_scales=scales, tol=tol)
    for number, scale in enumerate(scales):
        model = coef[:, number], intercept[:, number]
        scaled = LOSSES["logistic"].times(scale)
        assert excesses(features, targets, masks, scaled, None, *model).max() <= tol


def test_order_of_the_scales_does_not_matter(rng):
    """Each model of several classes starts from that of the next smaller scale."""
    features, targets, masks = make_games(rng, "logistic")
    scales, order, loss = np.array([0.3, 3.0, 30.0, 300.0]), [2, 0, 3, 1], LOSSES["logistic"]
    expected = solve_batch(features, targets, masks, loss, loss_scales=scales)
    result = solve_batch(features, targets, masks, loss, loss_scales=scales[order])
    for part, other in zip(result, expected, strict=True):
        np.testing.assert_array_equal(part, other[:, order])


def test_one_task_is_a_model_of_two_classes(rng):
    """The difference of their scores, with half the `C`: two penalties are half of one."""
    features, targets, masks = make_games(rng, "logistic", n_tasks=1)
    both, loss = np.concatenate([-targets, targets], axis=1), LOSSES["logistic"]
    coef, _ = solve(features, targets, masks, loss, tol=1e-6)
    two, _ = solve(features, both, masks, loss.times(0.5), tol=1e-6)
    np.testing.assert_allclose(two[:, 1] - two[:, 0], coef[:, 0], atol=0.01)


def test_gram_matrices_have_the_weights_of_the_active_rows(rng):
    features, targets, masks = make_games(rng, "hinge")
    roots = rng.uniform(0.5, 2, size=masks.shape) * masks
    batch = Batch(features, roots, targets.T, LOSSES["hinge"], np.ones((N_GAMES, 3)))
    active = rng.uniform(size=(N_GAMES, 3, N_ROWS)) < 0.5
    unsolved = np.arange(N_GAMES * 3).reshape(N_GAMES, 3) % 2 == 0
    grams = batch.active_grams(active, unsolved)
    expected = np.einsum(
        "gni,gnj,gn,gtn->gtij", features, features, np.square(roots), active.astype(float)
    )
    np.testing.assert_allclose(grams, expected[unsolved], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_chunks_do_not_change_the_models(rng, monkeypatch, loss):
    features, targets, masks = make_games(rng, loss, n_tasks=5)
    loss, settings = LOSSES[loss], {"loss_scales": [0.5, 2.0], "tol": 1e-4}
    coef, intercept = solve_batch(features, targets, masks, loss, **settings)
    monkeypatch.setattr(trial_models, "CHUNK_BYTES", 1)
    chunked = solve_batch(features, targets, masks, loss, **settings)
    np.testing.assert_allclose(chunked[0], coef, atol=0.03)
    np.testing.assert_allclose(chunked[1], intercept, atol=0.03)


def test_roots_of_increasing_functions():
    centers = np.array([1e-4, 0.03, 0.5, 0.99])

    def function(x):
        return np.cbrt(x - centers)

    roots = find_roots(function, function(np.zeros(4)), function(np.ones(4)), np.full(4, 0.2))
    assert np.abs(function(roots)).max() <= 0.2
