import math

import numpy as np
import pytest
import reference

from notsorandom.game import LOSSES, Loss, Player

EVERY = {
    "hinge": LOSSES["hinge"](2.0),
    "squared_hinge": LOSSES["squared_hinge"](2.0),
    "rounded": Loss(2.0, 0.3, 1.0),
    "residual": Loss(math.inf, 0.25, 1.0, one_sided=False),
    "insensitive": Loss(2.0, 0.0, 1.0, epsilon=0.4, one_sided=False),
    "rounded insensitive": Loss(2.0, 0.3, 1.0, epsilon=0.4, one_sided=False),
}


def targets_of(loss, rng, n_samples=6):
    if loss.one_sided:
        return np.where(np.arange(n_samples) % 2, 1.0, -1.0)[:, None]
    return rng.standard_normal((n_samples, 1)) * 2


@pytest.mark.parametrize("loss", EVERY.values(), ids=EVERY.keys())
class TestEveryLoss:
    def test_loss_is_the_maximum_over_the_dual(self, loss):
        for target in (1.0, -1.0):
            player = Player(loss, np.array([[target]]))
            low, high = (float(np.clip(side[0, 0], -50, 50)) for side in player.box)
            candidates = np.linspace(low, high, 40_001)
            for score in (-3.0, -1.0, -0.5, 0.0, 0.05, 1.0, 2.0):
                gains = candidates * (target - score) - loss.epsilon * np.abs(candidates)
                best = np.max(gains - 0.5 * loss.curvature * candidates**2)
                ours = player.loss_of(np.array([[score]]))
                np.testing.assert_allclose(ours, best, atol=1e-4)

    def test_gradient_is_that_of_the_objective(self, loss, rng):
        features = rng.standard_normal((6, 3))
        gram, player = features @ features.T, Player(loss, targets_of(loss, rng))
        dual = rng.uniform(0.1, 1, size=(6, 1)) * np.sign(player.targets)

        def objective(flat):
            return player.objective(flat[:, None], flat @ gram @ flat)

        slope = player.gradient(dual, gram @ dual)
        np.testing.assert_allclose(
            slope[:, 0], reference.gradient(objective, dual[:, 0]), rtol=1e-6, atol=1e-6
        )

    def test_a_weight_of_two_is_the_sample_twice(self, loss, rng):
        targets, counts = targets_of(loss, rng), np.array([1, 2, 1, 3, 1, 2])
        weighted = Player(loss, targets, counts[:, None].astype(float))
        repeated = Player(loss, np.repeat(targets, counts, axis=0))
        features = rng.standard_normal((6, 3))
        twice = np.repeat(features, counts, axis=0)
        dual, many = weighted.first(), repeated.first()
        for step in (0.1, 0.3, 0.2):
            np.testing.assert_allclose(np.repeat(dual, counts, axis=0), many, atol=1e-12)
            measures = weighted.measure(dual), repeated.measure(many)
            potentials = [
                float(np.square(part.T @ measure).sum())
                for part, measure in zip((features, twice), measures, strict=True)
            ]
            np.testing.assert_allclose(*potentials)
            np.testing.assert_allclose(
                weighted.objective(dual, potentials[0]), repeated.objective(many, potentials[1])
            )
            np.testing.assert_allclose(
                weighted.best_multiple(dual, 5.0), repeated.best_multiple(many, 5.0)
            )
            dual = weighted.following(dual, features @ (features.T @ measures[0]), step)
            many = repeated.following(many, twice @ (twice.T @ measures[1]), step)
        scores = rng.standard_normal((6, 1))
        np.testing.assert_allclose(
            weighted.loss_of(scores), repeated.loss_of(np.repeat(scores, counts, axis=0))
        )
        assert weighted.total_weight == repeated.total_weight == 10
        np.testing.assert_allclose(weighted.steepest(2.0), repeated.steepest(2.0))


def test_the_names_mean_what_they_mean_in_scikit_learn():
    scores = np.array([[-1.0], [0.5], [2.0]])
    for labels, signed in ((np.ones((3, 1)), scores), (-np.ones((3, 1)), -scores)):
        hinge, squared = (Player(LOSSES[name](3.0), labels) for name in ("hinge", "squared_hinge"))
        assert hinge.loss_of(signed) == pytest.approx(3 * (2 + 0.5))
        assert squared.loss_of(signed) == pytest.approx(3 * (4 + 0.25))


@pytest.mark.parametrize("name", ["rounded", "residual", "rounded insensitive", "squared_hinge"])
def test_dual_variables_are_slopes_of_the_loss(name):
    loss = EVERY[name]
    for target in (1.0, -1.0):
        player = Player(loss, np.array([[target]]))
        scores = target * np.array([-1.0, 0.2, 0.7, 0.99, 1.5])
        slopes = [
            reference.gradient(lambda score, one=player: one.loss_of(score[:, None]), np.array([s]))
            for s in scores
        ]
        low, high = player.box
        answers = loss.answer(target - scores, low[0], high[0], loss.curvature)
        np.testing.assert_allclose(answers, -np.array(slopes)[:, 0], atol=1e-5)


def test_theory_steps():
    n = 10_000
    labels = np.where(np.arange(n) % 2, 1.0, -1.0)[:, None]
    hinge, squared = (Player(LOSSES[name](1.0), labels) for name in ("hinge", "squared_hinge"))
    np.testing.assert_allclose(
        hinge.theory_rate(4, bound=1.0), n * (np.sqrt(n) / ((1 + n) * np.sqrt(n))) / 2
    )
    np.testing.assert_allclose(squared.theory_rate(4, bound=1.0), n / (0.5 * 4))
