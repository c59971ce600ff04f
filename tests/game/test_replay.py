import numpy as np
import pytest

from notsorandom import FourierFeatures, GradientSolver
from notsorandom.data.rows import Rows
from notsorandom.datasets import make_windmill
from notsorandom.game import LOSSES, DualProblem
from notsorandom.game.replay import replay


@pytest.mark.parametrize("phase", ["aligned", "paired"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("rate", ["auto", "theory", 0.3])
def test_replay_has_the_dual_variables_of_the_game(phase, loss, rate):
    X, y = make_windmill(300, random_state=0)
    X = X.astype(np.float32)
    solver = GradientSolver(rate)
    model = FourierFeatures(
        40, phase=phase, loss=loss, solver=solver, C=1.0, smoothing=0.05, random_state=0
    ).fit(X, y)
    targets = np.where(y == 1, 1, -1).astype(np.float32)[:, None]
    problem = DualProblem(LOSSES[loss](1.0), targets, Rows(X))
    duals = list(replay(problem, model.kernel_, model.history_))
    assert len(duals) == len(model.history_["step"]) + 1
    np.testing.assert_allclose(duals[-1], model.dual_, atol=2e-3)
    zeros = [np.mean(dual == 0) for dual in duals[:-1]]
    np.testing.assert_allclose(zeros, model.history_["share_at_zero"], atol=0.01)
