"""The choice of the smoothing, and the stratified splits that it is made on."""

import numpy as np
import pytest

from notsorandom import Ascent, AutoSmoothing, FourierClassifier, FourierFeatures, FourierRegressor
from notsorandom.estimators.trials import TrialGames
from notsorandom.estimators.tuning import assign_folds, hold_out, select_candidate

RECORDS = []


class RecordingSearch(Ascent):
    """Records the number of rows and the smoothing of every search."""

    def find(self, landscape, n_peaks, rng):
        RECORDS.append((len(landscape.rows), landscape.smoothing))
        return super().find(landscape, n_peaks, rng)


@pytest.fixture
def records():
    RECORDS.clear()
    return RECORDS


def planted_data(rng, kind, n_samples):
    """Short waves without noise, or a long wave in many columns under much noise."""
    if kind == "clean":
        X = rng.uniform(-1, 1, size=(n_samples, 2))
        return X, np.sin(12 * X[:, 0]) * np.sin(12 * X[:, 1]) > 0
    X = rng.standard_normal((n_samples, 20))
    return X, X[:, 0] + X[:, 1] + 2.0 * rng.standard_normal(n_samples) > 0


@pytest.mark.parametrize("kind", ["clean", "noisy"])
def test_chosen_smoothing_is_better_than_the_others(rng, kind):
    """Little smoothing suits the clean data, much suits the noisy; the choice finds out which."""
    X, y = planted_data(rng, kind, 800)
    X_test, y_test = planted_data(rng, kind, 3000)
    candidates = (0.1, 1.0)
    smoothing = AutoSmoothing(candidates, n_components=24)
    scores = {
        candidate: FourierClassifier(30, smoothing=candidate, random_state=0)
        .fit(X, y)
        .score(X_test, y_test)
        for candidate in candidates
    }
    best, worst = (choose(scores, key=scores.get) for choose in (max, min))
    assert scores[best] > scores[worst] + 0.03  # the data tell them apart
    model = FourierClassifier(30, smoothing=smoothing, random_state=0).fit(X, y)
    assert model.smoothing_ == best
    assert model.score(X_test, y_test) == scores[best]


def test_best_candidates_of_the_two_kinds_of_data_differ(rng):
    chosen = [
        FourierFeatures(4, smoothing=AutoSmoothing((0.1, 1.0), n_components=24), random_state=0)
        .fit(*planted_data(rng, kind, 800))
        .smoothing_
        for kind in ("clean", "noisy")
    ]
    assert chosen == [0.1, 1.0]


def test_choice_for_regression(rng):
    X = rng.uniform(-1, 1, size=(400, 1))
    clean = FourierRegressor(8, smoothing=AutoSmoothing((1.0, 0.02), 8), random_state=0)
    assert clean.fit(X, np.sin(15 * X[:, 0])).smoothing_ == 0.02


def test_many_samples_keep_the_first_candidate_without_a_clear_difference(rng):
    """Candidates that differ by rounding only are no reason to leave the usual one."""
    X, y = planted_data(rng, "noisy", 1500)
    smoothing = AutoSmoothing((0.06, 0.0600001, 0.0599999), n_components=2)
    assert FourierFeatures(2, smoothing=smoothing, random_state=0).fit(X, y).smoothing_ == 0.06


def test_choice_does_not_depend_on_the_number_of_components(windmill, quick_smoothing):
    chosen = {
        FourierFeatures(size, smoothing=quick_smoothing, random_state=0)
        .fit(*windmill[:2])
        .smoothing_
        for size in (2, 8, 40)
    }
    assert len(chosen) == 1


def test_given_smoothing_is_used_as_it_is(windmill, records):
    model = FourierFeatures(4, smoothing=0.1, search=RecordingSearch(), random_state=0)
    assert model.fit(*windmill[:2]).smoothing_ == 0.1
    assert {smoothing for _, smoothing in records} == {0.1}


@pytest.mark.parametrize(
    ("n_samples", "max_rows", "expected"),
    [
        (200, 2048, [150] * 4),  # 4-fold cross-validation
        (1500, 2048, [750]),  # one split into halves
        (1500, 100, [50]),  # halves of a subsample
    ],
)
def test_rows_that_the_candidates_are_compared_on(rng, monkeypatch, n_samples, max_rows, expected):
    games = []
    plain = TrialGames.play

    def record(self, rng):
        games.append(self)
        return plain(self, rng)

    monkeypatch.setattr(TrialGames, "play", record)
    X = rng.standard_normal((n_samples, 2))
    y = np.arange(n_samples) % 2
    smoothing = AutoSmoothing((0.06, 0.2), n_components=1, max_rows=max_rows)
    FourierFeatures(1, smoothing=smoothing, random_state=0).fit(X, y)
    (played,) = games
    np.testing.assert_allclose(played.masks.sum(axis=1), np.repeat(expected, 2), atol=2)
    np.testing.assert_array_equal(played.smoothing, np.tile([0.06, 0.2], len(expected)))


def test_more_smoothing_is_not_chosen_after_a_clearly_worse_candidate():
    errors = np.array([[0.1] * 100, [0.9] * 100, [0.0] * 100])
    candidates, counts = np.array([0.06, 3.0, 6.0]), np.ones(100)
    assert select_candidate(candidates, errors, counts, 0.0) == 0.06
    assert select_candidate(candidates[[0, 2]], errors[[0, 2]], counts, 0.0) == 6.0


def test_a_candidate_must_win_by_the_threshold(rng):
    errors = rng.uniform(size=(2, 400))
    errors[1] = errors[0] + 0.01 * rng.standard_normal(400) - 0.0007  # 1.4 standard errors
    candidates, counts = np.array([0.06, 0.2]), np.ones(400)
    gain = (errors[0] - errors[1]).mean() / ((errors[0] - errors[1]).std() / 20)
    assert select_candidate(candidates, errors, counts, 0.9 * gain) == 0.2
    assert select_candidate(candidates, errors, counts, 1.1 * gain) == 0.06


def test_small_classes_get_the_first_candidate(rng, records):
    X = rng.standard_normal((103, 2))
    y = np.repeat([0, 1], [100, 3])
    smoothing = AutoSmoothing((0.3, 0.06))
    model = FourierFeatures(1, smoothing=smoothing, search=RecordingSearch(), random_state=0)
    assert model.fit(X, y).smoothing_ == 0.3
    assert {smoothing for _, smoothing in records} == {0.3}


def test_heavy_samples_decide_the_choice(rng):
    """Four fifths of the samples have short waves; the others, noisy, have more of the weight."""
    X = rng.uniform(-1, 1, size=(800, 2))
    short_waves = np.sin(12 * X[:, 0]) * np.sin(12 * X[:, 1]) > 0
    noisy = rng.uniform(size=800) < 0.2
    long_wave = np.where(rng.uniform(size=800) < 0.35, X[:, 0] < 0, X[:, 0] > 0)
    y = np.where(noisy, long_wave, short_waves)
    model = FourierFeatures(2, smoothing=AutoSmoothing((0.1, 1.0), 24), random_state=0)
    assert model.fit(X, y).smoothing_ == 0.1
    assert model.fit(X, y, sample_weight=np.where(noisy, 6.0, 1.0)).smoothing_ == 1.0


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_held_out_share_is_the_same_in_every_class(rng, share):
    codes = np.repeat([0, 1, 2], [100, 30, 10])
    mask = hold_out(codes, np.ones(140), share, rng)
    for code, size in enumerate((100, 30, 10)):
        assert mask[codes == code].sum() == round(share * size)


def test_held_out_share_is_of_the_weight(rng):
    weights = np.repeat([1.0, 100.0], [1900, 100])
    shares = [
        weights[hold_out(np.zeros(2000, dtype=int), weights, 0.3, rng)].sum() / weights.sum()
        for _ in range(10)
    ]
    np.testing.assert_allclose(shares, 0.3, atol=0.01)


def test_a_class_is_never_held_out_completely(rng):
    assert not hold_out(np.zeros(1, dtype=int), np.ones(1), 0.9, rng).any()
    assert not hold_out(np.zeros(5, dtype=int), np.ones(5), 1 - 1e-13, rng).all()


def test_folds_have_equal_weight_in_every_class(rng):
    codes, weights = np.repeat([0, 1], [1000, 400]), rng.uniform(0.1, 3, size=1400)
    parts = assign_folds(codes, weights, 4, rng)
    for code in (0, 1):
        shares = np.bincount(parts[codes == code], weights=weights[codes == code])
        np.testing.assert_allclose(shares / shares.sum(), 0.25, atol=0.01)
