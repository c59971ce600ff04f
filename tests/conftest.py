import signal

import numpy as np
import pytest

from notsorandom.datasets import make_windmill
from notsorandom.estimators import samples
from notsorandom.tuning import tune as tuning

# A shell starts background commands with interrupts ignored, and so would be the commands that
# tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser):
    parser.addoption(
        "--fail-on-skip", action="store_true", help="fail if a test was skipped, as CI does"
    )


def pytest_sessionfinish(session, exitstatus):
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter is not None and reporter.stats.get("skipped")
    if session.config.getoption("--fail-on-skip") and skipped:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(autouse=True)
def warn_again():
    """Of scales of columns, a process warns once."""
    samples._warned.clear()


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
def quick_trials(request):
    """Trials of a few frequencies, where a choice must be made but not well.

    Not for tests that are marked `full_trials`, such as those that fit in another process too.
    """
    if request.node.get_closest_marker("full_trials"):
        yield
        return
    with pytest.MonkeyPatch.context() as patch:  # tests may undo what they patch themselves
        patch.setattr(tuning, "plan_stages", plan_quick_stages)
        patch.setattr(tuning, "ROUNDS", 2)
        patch.setattr(tuning.Trials, "reduced", lambda trials, n: max(4, n // 25))
        yield


def plan_quick_stages(config, trials):
    n_candidates = len(config.candidates)
    return [(2, tuning.N_FINALISTS), (4, 1)] if n_candidates > tuning.N_FINALISTS else [(4, 1)]
