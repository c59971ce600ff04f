import numpy as np
import pytest
import reference

from notsorandom.game import LOSSES, MarginLoss


@pytest.mark.parametrize(
    "loss",
    [LOSSES["hinge"](2.0), LOSSES["squared_hinge"](2.0), MarginLoss(2.0, 0.3, 1.0)],
    ids=["hinge", "squared_hinge", "rounded"],
)
class TestEveryLoss:
    def test_loss_is_the_maximum_over_the_dual(self, loss):
        candidates = np.linspace(0, min(loss.upper, 50.0), 20_001)
        for margin in (-2.0, 0.0, 0.5, 0.95, 1.0, 3.0):
            best = np.max(candidates * (1 - margin) - 0.5 * loss.curvature * candidates**2)
            np.testing.assert_allclose(loss.loss(np.array([margin])), best, atol=1e-4)

    def test_gradient_is_that_of_the_objective(self, loss, rng):
        features, labels = rng.standard_normal((6, 3)), np.array([1.0, 1, -1, 1, -1, -1])[:, None]
        gram = features @ features.T
        dual = rng.uniform(size=(6, 1))

        def objective(flat):
            measure = flat * labels[:, 0]
            return loss.objective(flat[:, None], measure @ gram @ measure)

        slope = loss.gradient(dual, labels, gram @ (dual * labels))
        np.testing.assert_allclose(
            slope[:, 0], reference.gradient(objective, dual[:, 0]), rtol=1e-6, atol=1e-6
        )


def test_the_names_mean_what_they_mean_in_scikit_learn():
    margins = np.array([-1.0, 0.5, 2.0])
    assert LOSSES["hinge"](3.0).loss(margins) == pytest.approx(3 * (2 + 0.5))
    assert LOSSES["squared_hinge"](3.0).loss(margins) == pytest.approx(3 * (4 + 0.25))


def test_dual_variables_are_slopes_of_the_loss():
    loss = MarginLoss(2.0, 0.3, 1.0)
    margins = np.array([-1.0, 0.2, 0.7, 0.99, 1.5])
    slopes = [reference.gradient(loss.loss, np.array([margin]))[0] for margin in margins]
    np.testing.assert_allclose(loss.dual_of(margins), -np.array(slopes), atol=1e-6)


def test_theory_steps():
    hinge, squared = LOSSES["hinge"](1.0), LOSSES["squared_hinge"](1.0)
    n = 10_000
    np.testing.assert_allclose(
        hinge.theory_rate(4, n, bound=1.0), n * (np.sqrt(n) / ((1 + n) * np.sqrt(n))) / 2
    )
    np.testing.assert_allclose(squared.theory_rate(4, n, bound=1.0), n / (0.5 * 4))
