import numpy as np
import pytest


@pytest.fixture(autouse=True)
def _quick_trials(quick_trials):
    """Few tests of estimators depend on what is chosen; they are marked `full_trials`."""


@pytest.fixture(scope="session")
def assert_same_fit():
    """A function that compares all that two estimators have learned, except for times."""

    def compare(one, other):
        parts, others = learned(one), learned(other)
        assert set(parts) == set(others)
        for name in parts:
            np.testing.assert_array_equal(parts[name], others[name], err_msg=name)

    return compare


def learned(model):
    """Return the learned numbers and arrays by name."""
    kept = {name: value for name, value in vars(model).items() if name[-1] == "_"}
    kept |= {f"history {name}": column for name, column in kept.pop("history_").items()}
    kept |= {f"tuning {name}": column for name, column in (kept.pop("tuning_") or {}).items()}
    for owner in ("kernel_", "average_kernel_"):
        kernel = dict(vars(kept.pop(owner)))
        kernel |= {f"space {name}": part for name, part in vars(kernel["space"]).items()}
        kept |= {f"{owner} {name}": part for name, part in kernel.items() if name != "space"}
    for owner in ("held_out_scores_", "posterior_"):
        parts = vars(kept.pop(owner)) if kept.get(owner) is not None else {}
        kept |= {f"{owner} {name}": part for name, part in parts.items()}
    return {name: kept[name] for name in kept if name not in ("history seconds", "features_")}
