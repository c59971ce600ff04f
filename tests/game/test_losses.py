import math

import numpy as np
import pytest
import reference

from notsorandom.game import LOSSES, DualProblem, QuadraticLoss

ALL_LOSSES = {
    "hinge": LOSSES["hinge"](2.0),
    "squared_hinge": LOSSES["squared_hinge"](2.0),
    "smoothed hinge": QuadraticLoss(2.0, 0.3, 1.0),
    "squared": QuadraticLoss(math.inf, 0.25, 1.0, one_sided=False),
    "epsilon_insensitive": QuadraticLoss(2.0, 0.0, 1.0, epsilon=0.4, one_sided=False),
    "smoothed epsilon_insensitive": QuadraticLoss(2.0, 0.3, 1.0, epsilon=0.4, one_sided=False),
}


def random_targets(loss, rng, n_samples=6):
    if loss.one_sided:
        return np.where(np.arange(n_samples) % 2, 1.0, -1.0)[:, None]
    return rng.standard_normal((n_samples, 1)) * 2


@pytest.mark.parametrize("loss", ALL_LOSSES.values(), ids=ALL_LOSSES.keys())
class TestAllLosses:
    def test_loss_is_the_maximum_over_the_dual_variable(self, loss):
        for target in (1.0, -1.0):
            problem = DualProblem.from_arrays(loss, np.array([[target]]))
            low, high = (float(np.clip(side[0, 0], -50, 50)) for side in problem.box)
            candidates = np.linspace(low, high, 40_001)
            for score in (-3.0, -1.0, -0.5, 0.0, 0.05, 1.0, 2.0):
                gains = candidates * (target - score) - loss.epsilon * np.abs(candidates)
                best = np.max(gains - 0.5 * loss.curvature * candidates**2)
                value = problem.total_loss(np.array([[score]]))
                np.testing.assert_allclose(value, best, atol=1e-4)

    def test_slope_is_the_gradient_of_the_objective(self, loss, rng):
        features = rng.standard_normal((6, 3))
        gram = features @ features.T
        problem = DualProblem.from_arrays(loss, random_targets(loss, rng))
        dual = rng.uniform(0.1, 1, size=(6, 1)) * np.sign(problem.targets)

        def objective(flat):
            return problem.stats(flat[:, None]).objective(flat @ gram @ flat)

        slope = loss.slope(problem.targets, dual, gram @ dual)
        np.testing.assert_allclose(
            slope[:, 0], reference.gradient(objective, dual[:, 0]), rtol=1e-6, atol=1e-6
        )

    def test_weight_two_equals_the_sample_twice(self, loss, rng):
        targets, counts = random_targets(loss, rng), np.array([1, 2, 1, 3, 1, 2])
        weighted = DualProblem.from_arrays(loss, targets, counts[:, None].astype(float))
        repeated = DualProblem.from_arrays(loss, np.repeat(targets, counts, axis=0))
        features = rng.standard_normal((6, 3))
        twice = np.repeat(features, counts, axis=0)
        dual, many = weighted.first_dual(), repeated.first_dual()
        for step in (0.1, 0.3, 0.2):
            np.testing.assert_allclose(np.repeat(dual, counts, axis=0), many, atol=1e-12)
            measures = weighted.measure(dual), repeated.measure(many)
            potentials = [
                float(np.square(part.T @ measure).sum())
                for part, measure in zip((features, twice), measures, strict=True)
            ]
            np.testing.assert_allclose(*potentials)
            one, other = weighted.stats(dual), repeated.stats(many)
            np.testing.assert_allclose(one.objective(potentials[0]), other.objective(potentials[1]))
            np.testing.assert_allclose(
                one.best_scaled_objective(5.0), other.best_scaled_objective(5.0)
            )
            dual = weighted.step(dual, features @ (features.T @ measures[0]), step)
            many = repeated.step(many, twice @ (twice.T @ measures[1]), step)
        scores = rng.standard_normal((6, 1))
        np.testing.assert_allclose(
            weighted.total_loss(scores), repeated.total_loss(np.repeat(scores, counts, axis=0))
        )
        assert weighted.total_weight == repeated.total_weight == 10
        np.testing.assert_allclose(
            weighted.diameter_and_gradient(2.0), repeated.diameter_and_gradient(2.0)
        )


def test_names_and_c_mean_the_same_as_in_scikit_learn():
    scores = np.array([[-1.0], [0.5], [2.0]])
    for labels, signed in ((np.ones((3, 1)), scores), (-np.ones((3, 1)), -scores)):
        hinge, squared = (
            DualProblem.from_arrays(LOSSES[name](3.0), labels)
            for name in ("hinge", "squared_hinge")
        )
        assert hinge.total_loss(signed) == pytest.approx(3 * (2 + 0.5))
        assert squared.total_loss(signed) == pytest.approx(3 * (4 + 0.25))


@pytest.mark.parametrize(
    "name", ["smoothed hinge", "squared", "smoothed epsilon_insensitive", "squared_hinge"]
)
def test_best_dual_is_the_negative_slope_of_the_loss(name):
    loss = ALL_LOSSES[name]
    for target in (1.0, -1.0):
        problem = DualProblem.from_arrays(loss, np.array([[target]]))
        scores = target * np.array([-1.0, 0.2, 0.7, 0.99, 1.5])
        slopes = [
            reference.gradient(
                lambda score, one=problem: one.total_loss(score[:, None]), np.array([score])
            )
            for score in scores
        ]
        low, high = problem.box
        best = loss.best_dual(target - scores, low[0], high[0], loss.curvature)
        np.testing.assert_allclose(best, -np.array(slopes)[:, 0], atol=1e-5)
