import numpy as np
import pytest
from sklearn.metrics import accuracy_score, r2_score

from notsorandom.game import LOSSES, Player
from notsorandom.game.scoring import loss, predicted_codes, score, signs, strata


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_of_classes(rng, n_classes, weighted):
    codes = rng.integers(n_classes, size=50)
    weights = rng.uniform(0.5, 2, size=50) if weighted else None
    column = None if weights is None else weights[:, None]
    player = Player(LOSSES["hinge"](1.0), signs(codes, n_classes, np.float64), column)
    np.testing.assert_array_equal(strata(player), codes)
    values = rng.standard_normal(player.targets.shape)
    expected = accuracy_score(codes, predicted_codes(values), sample_weight=weights)
    assert score(player, values) == pytest.approx(expected)
    assert score(player, player.targets) == 1
    assert loss(player, player.targets) == loss(player, 5 * player.targets) == 0
    assert loss(player, -9 * player.targets) == 1
    near = np.clip(values, -1, 1)
    expected = np.average(np.mean((near - player.targets) ** 2 / 4, axis=1), weights=weights)
    assert loss(player, values) == pytest.approx(expected)


@pytest.mark.parametrize("weighted", [False, True])
def test_scores_of_reals(rng, weighted):
    targets = rng.standard_normal((50, 2))
    weights = rng.uniform(0.5, 2, size=50) if weighted else None
    player = Player(LOSSES["squared"](1.0), targets, None if weights is None else weights[:, None])
    values = targets + rng.standard_normal((50, 2))
    expected = r2_score(targets, values, sample_weight=weights, multioutput="variance_weighted")
    assert score(player, values) == pytest.approx(expected)
    assert loss(player, values) == pytest.approx(1 - expected)
    flat = Player(LOSSES["squared"](1.0), np.ones((5, 1)))
    assert score(flat, np.ones((5, 1))) == 1
    assert score(flat, np.zeros((5, 1))) == 0
