import numpy as np
import pytest

from notsorandom.data.splits import folds, held_out
from notsorandom.estimators import smoothing
from notsorandom.estimators.smoothing import CANDIDATES, choose_smoothing


def choose(rates, n_samples=2000, seed=0):
    """Choose among candidates whose models err at the given rates, independently."""
    rng = np.random.default_rng(seed)
    asked = []

    def errors(train, test, candidate):
        asked.append((train, test, candidate))
        assert not set(train) & set(test)
        return rng.uniform(size=len(test)) < rates[CANDIDATES.index(candidate)]

    codes = (np.arange(n_samples) % 2)[smoothing.asked(n_samples, rng)]
    chosen = choose_smoothing(codes, np.ones(len(codes)), errors, rng, n_samples=n_samples)
    return chosen, asked


@pytest.mark.parametrize("n_samples", [800, 2000])
@pytest.mark.parametrize("best", [0, 1, 2, 3, 4])
def test_a_clearly_better_candidate_is_taken(best, n_samples):
    rates = [0.3] * 5
    rates[best] = 0.1
    assert choose(rates, n_samples)[0] == CANDIDATES[best]


def test_noise_does_not_move_the_choice_of_many():
    taken = [choose([0.2] * 5, seed=seed)[0] for seed in range(60)]
    assert taken.count(CANDIDATES[0]) >= 50


def test_half_of_many_are_asked():
    _, asked = choose([0.2] * 5)
    assert [candidate for _, _, candidate in asked] == list(CANDIDATES)
    for train, test, _ in asked:
        assert sorted([*train, *test]) == list(range(2000))
        assert len(train) == len(test)


def test_all_of_few_are_asked():
    _, asked = choose([0.2] * 5, n_samples=200)
    assert len(asked) == 4 * len(CANDIDATES)
    for first in range(0, len(asked), 4):
        tests = [test for _, test, _ in asked[first : first + 4]]
        assert sorted(np.concatenate(tests)) == list(range(200))
        assert {len(test) for test in tests} == {50}


def test_of_too_many_some_are_asked(monkeypatch):
    monkeypatch.setattr(smoothing, "MAX_ROWS", 100)
    _, asked = choose([0.2] * 5, n_samples=5000)
    assert all(len(train) + len(test) == 100 for train, test, _ in asked)


@pytest.mark.parametrize("n_samples", [800, 2000])
def test_what_is_too_smooth_is_not_smoothed_more(n_samples):
    _, asked = choose([0.1, 0.1, 0.4, 0.4, 0.4], n_samples)
    assert {candidate for _, _, candidate in asked} == set(CANDIDATES[:3])


def test_small_classes_get_the_default(rng):
    codes = np.array([0] * 100 + [1] * 3)
    assert choose_smoothing(codes, np.ones(103), None, rng) == CANDIDATES[0]


@pytest.mark.parametrize("n_samples", [400, 2000])
def test_weights_count_as_copies(n_samples):
    """What errs on heavy samples alone is as bad as if there were many of them."""
    weights = np.where(np.arange(n_samples) % 4 < 2, 10.0, 1.0)  # of both classes

    def errors(train, test, candidate):
        return weights[test] > 1 if candidate == CANDIDATES[0] else weights[test] == 1

    codes, rng = np.arange(n_samples) % 2, np.random.default_rng(0)
    assert choose_smoothing(codes, weights, errors, rng) == CANDIDATES[1]
    assert choose_smoothing(codes, 1 / weights, errors, rng) == CANDIDATES[0]


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_every_class_is_cut_alike(rng, share):
    codes = np.repeat([0, 1, 2], [100, 30, 10])
    mask = held_out(codes, np.ones(140), share, rng)
    for code, size in enumerate((100, 30, 10)):
        assert mask[codes == code].sum() == round(share * size)


def test_a_share_of_the_weight_is_held_out(rng):
    weights = np.repeat([1.0, 100.0], [1900, 100])
    shares = [
        weights[held_out(np.zeros(2000, dtype=int), weights, 0.3, rng)].sum() / weights.sum()
        for _ in range(10)
    ]
    np.testing.assert_allclose(shares, 0.3, atol=0.01)


def test_the_only_sample_of_a_class_is_learned_from(rng):
    assert not held_out(np.zeros(1, dtype=int), np.ones(1), 0.9, rng).any()
    assert not held_out(np.zeros(5, dtype=int), np.ones(5), 1 - 1e-13, rng).all()


def test_folds_are_of_equal_weight_in_every_class(rng):
    codes, weights = np.repeat([0, 1], [1000, 400]), rng.uniform(0.1, 3, size=1400)
    parts = folds(codes, weights, 4, rng)
    for code in (0, 1):
        shares = np.bincount(parts[codes == code], weights=weights[codes == code])
        np.testing.assert_allclose(shares / shares.sum(), 0.25, atol=0.01)
