import pytest


@pytest.fixture(autouse=True)
def _quick_trials(quick_trials):
    """The laws of the game hold whatever the trials choose."""
