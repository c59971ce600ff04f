"""The scikit-learn estimators: validate, play, store."""

from notsorandom.estimators.classifier import FourierClassifier
from notsorandom.estimators.features import FourierFeatures
from notsorandom.estimators.regressor import FourierRegressor

__all__ = ["FourierClassifier", "FourierFeatures", "FourierRegressor"]
