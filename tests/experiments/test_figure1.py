import json

import numpy as np

from experiments import figure1, synthetic
from notsorandom.datasets import make_checkerboard, make_windmill


def test_a_recorded_game_has_the_decisions_of_the_model():
    config, _ = figure1.figure1_configs(n_train=150, n_test=300, n_rounds=12)
    outcome = json.loads(json.dumps(figure1.run_evolution(config, 0.06)))
    X, y, game = figure1.recorded_game({"config": config, "outcome": outcome})
    np.testing.assert_array_equal(X, make_windmill(150, random_state=0)[0])
    assert game[-1].round == 12 == len(game[-1].kernel.weights)
    predictions = game[-1].decision_function(X)[:, 0] > 0
    assert np.mean(predictions == y) > 0.85
    X_test, y_test = make_windmill(300, random_state=1000)
    accuracy = np.mean((game[-1].decision_function(X_test)[:, 0] > 0) == y_test)
    # Recorded numbers are rounded, which may change the decision on one sample.
    assert abs(accuracy - outcome["test_accuracy"]) <= 1 / 300


def test_recorded_harmonics_sum_to_the_decision_function():
    X, y = make_checkerboard(150, random_state=0)
    model = synthetic.single_harmonics(0).set_params(C=figure1.SPHERE_C, smoothing=0.06).fit(X, y)
    values = figure1.sum_harmonics(
        X,
        model.kernel_.frequencies,
        figure1.harmonic_coefficients(model),
        model.intercept_[0],
    )
    np.testing.assert_allclose(values, model.decision_function(X), atol=1e-8)
