import numpy as np
import pytest

from notsorandom.datasets import make_windmill
from notsorandom.estimators import certify
from notsorandom.estimators import training


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def windmill():
    """Training and test samples of the windmill, read-only, as scikit-learn hands data over."""
    arrays = (*make_windmill(600, random_state=0), *make_windmill(2000, random_state=1))
    for array in arrays:
        array.flags.writeable = False
    return arrays


@pytest.fixture
def short_trials(monkeypatch):
    """Games that choose the smoothing, of two rounds instead of thirty-two.

    For tests in which a smoothing must be chosen, but needn't be chosen well: a small fit at
    defaults spends nearly all its time on that.
    """
    monkeypatch.setattr(training, "TRIAL_SIZE", 2)


@pytest.fixture
def rough_suprema(monkeypatch):
    """Certificates that give up on their lower bound early, for tests of everything else in them.

    On the plane, with many samples, that bound is what takes long.
    """
    monkeypatch.setattr(certify, "MAX_EVALUATIONS", 1000)
