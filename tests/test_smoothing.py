import numpy as np
import pytest

from notsorandom import smoothing
from notsorandom.smoothing import CANDIDATES, choose_smoothing, stratified_halves


def choose(rates, n_samples=2000, seed=0):
    """Choose among candidates whose models err at the given rates, independently."""
    rng = np.random.default_rng(seed)
    asked = []

    def errors(train, test, candidate):
        asked.append((train, test, candidate))
        assert not set(train) & set(test)
        return rng.uniform(size=len(test)) < rates[CANDIDATES.index(candidate)]

    codes = np.arange(n_samples) % 2
    return choose_smoothing(codes, errors, rng), asked


@pytest.mark.parametrize("best", [1, 2])
def test_a_clearly_better_candidate_is_taken(best):
    rates = [0.3, 0.3, 0.3]
    rates[best] = 0.1
    assert choose(rates)[0] == CANDIDATES[best]


def test_noise_does_not_move_the_choice():
    taken = [choose([0.2, 0.2, 0.2], seed=seed)[0] for seed in range(60)]
    assert taken.count(CANDIDATES[0]) >= 57


def test_half_is_learned_from_and_half_is_asked():
    _, asked = choose([0.2, 0.2, 0.2], n_samples=500)
    assert [candidate for _, _, candidate in asked] == list(CANDIDATES)
    for train, test, _ in asked:
        assert sorted([*train, *test]) == list(range(500))
        assert len(train) == len(test)


def test_many_samples_are_not_all_asked(monkeypatch):
    monkeypatch.setattr(smoothing, "MAX_ROWS", 100)
    _, asked = choose([0.2, 0.2, 0.2], n_samples=5000)
    assert len(asked) == len(CANDIDATES)
    assert all(len(train) + len(test) == 100 for train, test, _ in asked)


def test_small_classes_get_the_default(rng):
    codes = np.array([0] * 100 + [1] * 3)
    assert choose_smoothing(codes, None, rng) == CANDIDATES[0]


def test_halves_are_stratified(rng):
    codes = np.repeat([0, 1, 2], [100, 30, 9])
    fold = stratified_halves(codes, rng)
    for code in (0, 1, 2):
        assert abs(np.mean(fold[codes == code]) - 0.5) < 0.06
