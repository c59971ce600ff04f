import math
import warnings

import numpy as np
import pytest
import reference
from sklearn.metrics import log_loss

from notsorandom.game import LOSSES, Problem, QuadraticLoss, QuantileLoss

ALL_LOSSES = {
    "hinge": LOSSES["hinge"].times(2.0),
    "squared_hinge": LOSSES["squared_hinge"].times(2.0),
    "logistic": LOSSES["logistic"].times(2.0),
    "smoothed hinge": QuadraticLoss(2.0, 0.3, 1.0),
    "squared": QuadraticLoss(math.inf, 0.25, 1.0, one_sided=False),
    "epsilon_insensitive": QuadraticLoss(2.0, 0.0, 1.0, epsilon=0.4, one_sided=False),
    "quantile": QuantileLoss(2.0, quantile=0.9),
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
            problem = Problem.from_arrays(loss, np.array([[target]]))
            low, high = (float(np.clip(side[0, 0], -50, 50)) for side in problem.box)
            candidates = np.linspace(low, high, 40_001)
            for score in (-3.0, -1.0, -0.5, 0.0, 0.05, 1.0, 2.0):
                gains = loss.concave_part(target - score, candidates, *problem.box)
                best = np.max(gains - 0.5 * loss.curvature * candidates**2)
                value = problem.total_loss(np.array([[score]]))
                np.testing.assert_allclose(value, best, atol=1e-4)

    def test_slope_is_the_gradient_of_the_objective(self, loss, rng):
        features = rng.standard_normal((6, 3))
        gram = features @ features.T
        problem = Problem.from_arrays(loss, random_targets(loss, rng))
        dual = rng.uniform(0.1, 1, size=(6, 1)) * np.sign(problem.targets)

        def objective(flat):
            return problem.stats(flat[:, None]).objective(flat @ gram @ flat)

        slope = loss.slope(problem.targets, dual, gram @ dual)
        np.testing.assert_allclose(
            slope[:, 0], reference.gradient(objective, dual[:, 0]), rtol=1e-6, atol=1e-6
        )

    def test_concave_part_is_concave_and_zero_at_zero(self, loss, rng):
        targets = random_targets(loss, rng)
        box = loss.box(targets)
        first, second = (
            rng.uniform(0, min(loss.upper, 5.0), size=(6, 1)) * np.sign(targets) for _ in range(2)
        )
        ends = [loss.concave_part(targets, dual, *box) for dual in (first, second)]
        for share in (0.0, 0.1, 0.5, 0.9):
            between = loss.concave_part(targets, share * first + (1 - share) * second, *box)
            assert (between >= share * ends[0] + (1 - share) * ends[1] - 1e-12).all()
        assert (loss.concave_part(targets, 0 * first, *box) == 0).all()

    @pytest.mark.parametrize("factor", [1.0, 1.3, 20.0, 1e6])
    def test_best_dual_is_the_maximum_for_a_larger_curvature(self, loss, factor):
        curvature = factor * (loss.curvature or 0.01)
        for target in (1.0, -1.0):
            low, high = loss.box(np.array([target]))
            residuals = np.array([-30.0, -2.0, -0.1, 0.0, 0.3, 1.0, 1.2, 5.0, 1e3])
            best = loss.best_dual(residuals, low, high, curvature)
            limits = max(float(low[0]), -2e3), min(float(high[0]), 2e3)
            around = np.concatenate([np.linspace(0, 1, 2001), np.geomspace(1e-12, 1e-3, 500)])
            for residual, dual in zip(residuals, best, strict=True):
                candidates = limits[0] + (limits[1] - limits[0]) * np.append(around, 1 - around)

                def value(a, residual=residual, low=low, high=high):
                    return loss.concave_part(residual, a, low, high) - 0.5 * curvature * a**2

                assert limits[0] <= dual <= limits[1] or loss.upper == math.inf
                others = value(candidates)
                assert value(np.array([dual]))[0] >= others.max() - 1e-12 * (1 + abs(residual))

    @pytest.mark.parametrize("factor", [1.0, 1.3, 20.0])
    def test_hessian_weights_are_derivatives_of_the_best_dual(self, loss, factor):
        curvature = factor * (loss.curvature or 0.1)
        residuals, width = np.array([-3.1, -0.7, 0.21, 0.53, 1.02, 1.4, 6.1]), 1e-5
        for target in (1.0, -1.0):
            low, high = loss.box(np.array([target]))
            before, here, after = (
                loss.best_dual(residuals + shift, low, high, curvature)
                for shift in (-width, 0, width)
            )
            weights = loss.hessian_weights(here, low, high, curvature)
            derivatives = curvature * (after - before) / (2 * width)
            np.testing.assert_allclose(weights.astype(float), derivatives, atol=1e-7)

    @pytest.mark.parametrize("factor", [1.0, 3.0])
    def test_scaled_box_and_curvature_are_those_of_the_scaled_loss(self, loss, factor):
        """The best dual variable of `s` times a loss is `s` times that of the loss."""
        curvature = factor * (loss.curvature or 0.1)
        residuals, scales = np.array([-3.1, -0.2, 0.3, 1.2, 7.0]), np.array([[0.01], [1.0], [30.0]])
        for target in (1.0, -1.0):
            low, high = loss.box(np.array([target]))
            one = loss.best_dual(residuals, low, high, curvature)
            box = scales * low, scales * high
            many = loss.best_dual(residuals, *box, curvature / scales)
            np.testing.assert_allclose(many, scales * one, rtol=1e-9)
            np.testing.assert_allclose(
                loss.concave_part(residuals, many, *box),
                scales * loss.concave_part(residuals, one, low, high),
                rtol=1e-9,
                atol=1e-12,
            )
            np.testing.assert_allclose(
                loss.hessian_weights(many, *box, curvature / scales),
                np.tile(loss.hessian_weights(one, low, high, curvature), (3, 1)),
                rtol=1e-9,
            )

    def test_float32_stays_float32_without_warnings(self, loss):
        residuals = np.array([-1e30, -1e4, -200, -90, 0, 1, 90, 200, 1e4, 1e30], dtype=np.float32)
        targets = np.resize(np.float32([1, -1]), 10)
        curvature = loss.curvature or 0.01
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            low, high = loss.box(targets)
            dual = loss.best_dual(residuals, low, high, curvature)
            results = [dual, loss.hessian_weights(dual, low, high, curvature)]
            inside = np.clip(dual, -2, 2)
            results += [loss.concave_part(targets, inside, low, high)]
            results += [loss.slope(targets, inside, np.zeros_like(dual))]
            results += [loss.values(np.clip(residuals, -1e15, 1e15), low, high)]
        for result in results:
            assert np.isfinite(result).all()
            assert result.dtype in (np.float32, bool)

    def test_weight_two_equals_the_sample_twice(self, loss, rng):
        targets, counts = random_targets(loss, rng), np.array([1, 2, 1, 3, 1, 2])
        weighted = Problem.from_arrays(loss, targets, counts[:, None].astype(float))
        repeated = Problem.from_arrays(loss, np.repeat(targets, counts, axis=0))
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


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("C", [0.25, 3.0])
def test_a_multiple_of_a_loss(name, C):
    """`C` times the values: the box is `C` times as large, the curvature `1 / C`."""
    loss, many = LOSSES[name], LOSSES[name].times(C)
    targets, residuals = np.resize([1.0, -1.0], 6), np.array([2.0, -2.0, 0.5, 0.5, 0.0, 0.05])
    box, larger = loss.box(targets), many.box(targets)
    np.testing.assert_allclose(larger, C * np.array(box))
    values = loss.values(residuals, *box)
    assert values.any()
    np.testing.assert_allclose(many.values(residuals, *larger), C * values)
    assert (many.upper, many.curvature) == (C * loss.upper, loss.curvature / C)
    assert many.start == C * loss.start
    assert many.times(1 / C) == loss


def test_names_and_c_mean_the_same_as_in_scikit_learn():
    scores = np.array([[-1.0], [0.5], [2.0]])
    for labels, signed in ((np.ones((3, 1)), scores), (-np.ones((3, 1)), -scores)):
        hinge, squared = (
            Problem.from_arrays(LOSSES[name].times(3.0), labels)
            for name in ("hinge", "squared_hinge")
        )
        assert hinge.total_loss(signed) == pytest.approx(3 * (2 + 0.5))
        assert squared.total_loss(signed) == pytest.approx(3 * (4 + 0.25))
        logistic = Problem.from_arrays(LOSSES["logistic"].times(3.0), labels)
        probabilities = 1 / (1 + np.exp(-signed[:, 0]))
        expected = log_loss(labels[:, 0] > 0, probabilities, labels=[False, True], normalize=False)
        assert logistic.total_loss(signed) == pytest.approx(3 * expected)


@pytest.mark.parametrize(
    "name",
    ["smoothed hinge", "squared", "smoothed epsilon_insensitive", "squared_hinge", "logistic"],
)
def test_best_dual_is_the_negative_slope_of_the_loss(name):
    loss = ALL_LOSSES[name]
    for target in (1.0, -1.0):
        problem = Problem.from_arrays(loss, np.array([[target]]))
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


@pytest.mark.parametrize("C", [0.01, 2.0, 1e4])
def test_slope_of_the_entropy_is_that_of_a_strongly_concave_function_nearby(C):
    loss, one = LOSSES["logistic"].times(C), np.ones(1)
    ends = np.geomspace(1e-10, 0.01, 20_000)
    shares = np.concatenate([[0], ends, np.linspace(0.01, 0.99, 20_000)[1:-1], 1 - ends[::-1], [1]])
    dual = C * shares
    slopes = loss.slope(one, dual, 0 * one)
    assert np.abs(slopes).max() <= loss.slope_norm(1.0, C, 1.0)
    steps = np.diff(dual)
    assert (np.diff(slopes) <= -loss.curvature * steps * (1 - 1e-6) + 1e-9).all()
    middle = slopes[:-1] + slopes[1:]
    nearby = np.append(0, np.cumsum(0.5 * middle * steps))
    true = loss.concave_part(one, dual, 0 * one, C * one) - 0.5 * loss.curvature * dual**2
    distance = true - nearby
    assert distance.min() >= -1e-8 * C
    assert 0.5 * loss.slope_error <= distance.max() <= loss.slope_error * 1.02


def test_multiples_of_a_dual_point_are_bounded_from_below(rng):
    """The bound is that of a linear function, below the concave one along the ray."""
    labels = np.where(rng.uniform(size=(9, 2)) < 0.5, 1.0, -1.0)
    problem = Problem.from_arrays(LOSSES["logistic"].times(2.0), labels)
    for potential in (0.1, 5.0, 200.0):
        dual = rng.uniform(0, 2, size=(9, 2)) * labels
        best = max(
            problem.stats(s * dual).objective(s**2 * potential) for s in np.linspace(0, 1, 1001)
        )
        bound = problem.stats(dual).best_scaled_objective(potential)
        assert 0 <= bound <= best
        assert bound >= problem.stats(dual).objective(potential)
