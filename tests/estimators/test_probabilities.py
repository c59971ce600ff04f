"""Probabilities of classes: laws, scikit-learn's tools, other kinds of arrays."""

import copy
import warnings
from decimal import Decimal, localcontext

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import VotingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_score

from notsorandom import FourierClassifier
from notsorandom.estimators.classifier import log_probabilities

SETTINGS = {"n_components": 20, "loss": "logistic", "C": 10.0}
SETTINGS |= {"smoothing": 0.06, "random_state": 0}
METHOD = pytest.mark.parametrize("method", ["predict_proba", "predict_log_proba"])


def labels_of(X, n_classes):
    """Return classes that are noisy, so that probabilities are not all near 0 and 1."""
    noise = np.random.default_rng(1).normal(size=len(X))
    waves = np.cos(2 * X[:, 0] + X[:, 1]) + 0.4 * noise
    return np.array(["a", "b", "c", "d"])[np.digitize(waves, [0.0, 0.5, 0.9][: n_classes - 1])]


@pytest.fixture(scope="module", params=[2, 3, 4])
def fitted(request):
    """A model of several classes with a temperature, and samples."""
    X = np.random.default_rng(0).normal(size=(300, 3))
    model = FourierClassifier(**SETTINGS).fit(X, labels_of(X, request.param))
    model.temperature_ = 1.5
    return model, X


class TestLaws:
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_rows_sum_to_one(self, fitted, dtype):
        X = fitted[1].astype(dtype)
        model = clone(fitted[0]).fit(X, fitted[0].predict(X))
        probabilities = model.predict_proba(X)
        assert probabilities.shape == (len(X), len(model.classes_))
        assert probabilities.dtype == dtype
        assert (probabilities > 0).all()
        eps = 4 * np.finfo(dtype).eps
        np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=0, atol=eps)

    def test_definition(self, fitted):
        model, X = fitted
        scores = model.decision_function(X)
        if scores.ndim == 1:
            scores = np.column_stack([np.zeros(len(X)), scores])
        odds = np.exp(scores / model.temperature_)
        expected = odds / odds.sum(axis=1, keepdims=True)
        probabilities = model.predict_proba(X)
        np.testing.assert_allclose(probabilities, expected, rtol=1e-12)
        np.testing.assert_array_equal(scores.argsort(axis=1), probabilities.argsort(axis=1))
        best = model.classes_[probabilities.argmax(axis=1)]
        np.testing.assert_array_equal(best, model.predict(X))
        logarithms = model.predict_log_proba(X)
        np.testing.assert_allclose(np.log(probabilities), logarithms, rtol=1e-12, atol=1e-15)

    def test_a_higher_temperature_is_less_confident(self, fitted):
        model, X = fitted
        confidences = []
        for temperature in (0.5, 1.0, 3.0, 1e6):
            other = copy.copy(model)
            other.temperature_ = temperature
            confidences.append(other.predict_proba(X).max(axis=1))
        assert (np.diff(confidences, axis=0) < 0).all()
        np.testing.assert_allclose(confidences[-1], 1 / len(model.classes_), rtol=1e-4)


class TestLogarithms:
    @pytest.mark.parametrize("score", [0.0, 1e-9, 0.3, 5.0, 40.0, 800.0, -3.0, -40.0, -800.0])
    def test_two_classes_against_long_arithmetic(self, score):
        with localcontext() as context:
            context.prec = 800
            odds = Decimal(score / 2.0).exp()
            expected = [float(-(1 + odds).ln()), float(-(1 + 1 / odds).ln())]
        found = log_probabilities(np.array([[score]]), 2.0)
        np.testing.assert_allclose(found, [expected], rtol=1e-13)

    @pytest.mark.parametrize("temperature", [1e-300, 1.0, 1e300])
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("n_tasks", [1, 3])
    def test_extreme_scores(self, n_tasks, dtype, temperature):
        """Probabilities are numbers, and no warning is issued."""
        largest = np.finfo(dtype).max
        values = np.array([-largest, -1e3, -1e-30, 0, 1e-30, 1e3, largest], dtype=dtype)
        scores = np.stack(np.meshgrid(*[values] * n_tasks), axis=-1).reshape(-1, n_tasks)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            logarithms = log_probabilities(scores, temperature)
        assert logarithms.dtype == dtype
        assert not np.isnan(logarithms).any()
        assert (logarithms <= 0).all()
        sums = np.exp(logarithms.astype(np.float64)).sum(axis=1)
        np.testing.assert_allclose(sums, 1, rtol=1e-6)

    def test_they_are_finite_where_the_probability_is_zero(self):
        for scores in ([[-2000.0]], [[0.0, 2000.0, 3.0]]):
            logarithms = log_probabilities(np.array(scores), 1.0)
            assert np.isfinite(logarithms).all()
            assert (np.exp(logarithms) == 0).any()


class TestAvailability:
    @METHOD
    @pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
    def test_losses_of_the_svm_have_no_probabilities(self, method, loss):
        model = FourierClassifier(loss=loss)
        assert not hasattr(model, method)
        parts = f"loss='{loss}'.*loss='logistic'.*CalibratedClassifierCV.*ensemble=False"
        with pytest.raises(AttributeError, match=parts):
            getattr(model, method)

    @METHOD
    def test_logistic_loss(self, method):
        with pytest.raises(NotFittedError):
            getattr(FourierClassifier(loss="logistic"), method)([[1.0]])
        assert "Returns\n" in getattr(FourierClassifier, method).__doc__


class TestEcosystem:
    def test_soft_voting(self, windmill):
        X, y, X_test, _ = windmill
        members = [("ours", FourierClassifier(**SETTINGS)), ("linear", LogisticRegression())]
        vote = VotingClassifier(members, voting="soft").fit(X, y)
        expected = np.mean([each.predict_proba(X_test) for each in vote.estimators_], axis=0)
        np.testing.assert_allclose(vote.predict_proba(X_test), expected)

    def test_log_loss_in_cross_validation(self, windmill):
        X, y = windmill[:2]
        model = FourierClassifier(**SETTINGS)
        scores = cross_val_score(model, X, y, scoring="neg_log_loss", cv=3)
        assert (-np.log(2) < scores).all()

    def test_hinge_models_can_be_calibrated(self, windmill):
        X, y, X_test, y_test = windmill
        model = FourierClassifier(**SETTINGS | {"loss": "hinge"})
        calibrated = CalibratedClassifierCV(model, ensemble=False).fit(X, y)
        assert log_loss(y_test, calibrated.predict_proba(X_test)) < 0.4

    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_torch_tensors_return_their_kind(self, n_classes):
        torch = pytest.importorskip("torch", reason="needs torch: pip install 'notsorandom[all]'")
        X = np.random.default_rng(0).normal(size=(300, 3))
        model = FourierClassifier(**SETTINGS).fit(X, labels_of(X, n_classes))
        for method in ("predict_proba", "predict_log_proba"):
            found = getattr(model, method)(torch.asarray(X.copy()))
            assert isinstance(found, torch.Tensor)
            np.testing.assert_allclose(found.numpy(), getattr(model, method)(X), rtol=1e-9)
