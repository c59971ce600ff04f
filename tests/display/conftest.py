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
def small():
    """Eight features of points on the plane, and their training data."""
    X, y = make_windmill(80, random_state=0)
    return FourierFeatures(8, C=1.0, smoothing=0.06, random_state=0).fit(X, y), X, y
