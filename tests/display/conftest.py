import numpy as np
import pytest

from notsorandom import FourierClassifier, FourierFeatures
from notsorandom.datasets import make_windmill
from notsorandom.display import import_pyplot


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    import_pyplot().close("all")


@pytest.fixture(scope="session")
def planar():
    """A classifier of points on the plane, and its training data."""
    X, y = make_windmill(200, random_state=0)
    return FourierClassifier(20, smoothing=0.06, random_state=0).fit(X, y), X, y


@pytest.fixture(scope="session")
def trend():
    """A classifier with a linear part, of points on the plane with a trend and a wave."""
    X = np.random.default_rng(0).normal(size=(300, 2))
    y = X[:, 0] + np.sin(3 * X[:, 1]) > 0
    settings = {"linear": True, "smoothing": 0.06, "random_state": 0}
    return FourierClassifier(20, **settings).fit(X, y), X, y


@pytest.fixture(scope="session")
def small():
    """Eight features of points on the plane, and their training data."""
    X, y = make_windmill(80, random_state=0)
    return FourierFeatures(8, C=1.0, smoothing=0.06, random_state=0).fit(X, y), X, y
