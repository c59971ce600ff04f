"""Callbacks of scikit-learn 1.9 and later: one task per feature learned."""

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

from notsorandom import FourierClassifier, FourierFeatures, FourierRegressor

pytest.importorskip(
    "sklearn.callback", reason="needs scikit-learn 1.9: pip install -U scikit-learn"
)

QUICK = {"smoothing": 0.06, "random_state": 0}
ALL = pytest.mark.parametrize("estimator", [FourierFeatures, FourierClassifier, FourierRegressor])


class Recorder:
    """A callback that records its calls, and stops the fit at a given number of features."""

    def __init__(self, stop_at=None):
        self.stop_at = stop_at
        self.sizes = []
        self.calls = []

    def setup(self, estimator, context):
        self.calls.append("setup")

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context, *, X, y, metadata, fitted_estimator):
        if context.parent is None:
            self.calls.append("end")
        else:
            self.sizes.append(fitted_estimator.kernel_.n_components)
        self.calls.append(fitted_estimator)
        return self.stop_at is not None and context.task_id + 1 >= self.stop_at

    def teardown(self, estimator, context):
        self.calls.append("teardown")


@ALL
def test_every_feature_is_reported(windmill, estimator):
    X, y, X_test, _ = windmill
    recorder = Recorder()
    model = estimator(10, **QUICK).set_callbacks(recorder)
    model.fit(X, y)
    assert recorder.sizes == list(range(1, 11))
    assert recorder.calls[0] == "setup"
    assert recorder.calls[-1] == "teardown"
    # Each reported model is the one of a fit with that many features.
    seventh = recorder.calls[7]
    expected = estimator(7, **QUICK).fit(X, y)
    name = "transform" if estimator is FourierFeatures else "predict"
    np.testing.assert_allclose(
        getattr(seventh, name)(X_test), getattr(expected, name)(X_test), rtol=1e-6
    )
    assert not {name for name in vars(model) if "callback" in name} - {"_skl_callbacks"}


def test_paired_features_are_reported_in_pairs(windmill):
    recorder = Recorder()
    model = FourierClassifier(12, phase="paired", **QUICK)
    model.set_callbacks(recorder).fit(*windmill[:2])
    assert recorder.sizes == [2, 2, 4, 4, 6, 6, 8, 8, 10, 10, 12, 12]


def test_callbacks_can_stop_the_game(windmill):
    model = FourierClassifier(100, **QUICK)
    model.set_callbacks(Recorder(stop_at=10)).fit(*windmill[:2])
    assert model.status_ == "stopped"
    assert 10 <= model.kernel_.n_components < 14


def test_failing_callbacks_leave_the_estimator_unchanged(windmill):
    class Failing(Recorder):
        def on_fit_task_end(self, estimator, context):
            raise RuntimeError("stop")

    recorder = Failing()
    model = FourierClassifier(10, **QUICK).set_callbacks(recorder)
    with pytest.raises(RuntimeError, match="stop"):
        model.fit(*windmill[:2])
    assert not hasattr(model, "kernel_")
    assert recorder.calls == ["setup", "teardown"]
    assert set(vars(model)) - {"epsilon"} == set(model.get_params()) | {"_skl_callbacks"}


def test_callbacks_of_scikit_learn(windmill, capsys):
    pytest.importorskip("rich", reason="needs rich: pip install 'notsorandom[all]'")
    from sklearn.callback import ProgressBar, ScoringMonitor

    X, y = windmill[:2]
    monitor = ScoringMonitor(scoring="accuracy")
    model = FourierClassifier(12, **QUICK).set_callbacks(monitor, ProgressBar())
    model.fit(X, y)
    assert "FourierClassifier - fit" in capsys.readouterr().out
    grid = GridSearchCV(FourierClassifier(6, **QUICK), {"C": [1.0, 2.0]}, cv=2)
    grid.set_callbacks(ProgressBar()).fit(X, y)
    assert grid.best_score_ > 0.5
