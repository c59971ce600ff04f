import numpy as np
import pytest

from notsorandom.datasets import make_windmill


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
