"""Trial games played at once, against the same games played one by one."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from notsorandom import Ascent, Euclidean
from notsorandom.data.rows import Rows
from notsorandom.game import CLASSIFICATION_LOSSES, LOSSES, Problem
from notsorandom.spaces.landscape import Landscape
from notsorandom.tuning import trial_games, trial_landscape
from notsorandom.tuning.trial_games import DualPlayer, TrialGames
from notsorandom.tuning.trial_landscape import TrialLandscape, distinct, peaks_by_game

N_GAMES, N_ROWS, N_COLUMNS = 3, 60, 4
SPACE = Euclidean(scale=1.0, center=np.zeros(N_COLUMNS))
MASKS = np.arange(N_ROWS) % 4 != np.arange(N_GAMES)[:, None]
SPECTRUM = pytest.mark.parametrize("spectrum", ["gaussian", "cauchy"])


def make_problem(rng, loss="hinge", n_tasks=1, weighted=False, n_rows=N_ROWS):
    X = rng.standard_normal((n_rows, N_COLUMNS))
    targets = rng.standard_normal((n_rows, n_tasks))
    if loss in CLASSIFICATION_LOSSES:
        targets = np.sign(targets)
    weights = rng.integers(1, 4, size=(n_rows, 1)).astype(float) if weighted else None
    return Problem(LOSSES[loss], targets, Rows(X, weights))


def make_landscape(rng, n_tasks, noise="gaussian"):
    X = rng.standard_normal((N_ROWS, N_COLUMNS))
    measure = rng.standard_normal((N_GAMES, N_ROWS, n_tasks))
    smoothing = np.array([0.0, 0.1, 0.7])
    return TrialLandscape(X, measure, smoothing, noise, np.empty((3, N_GAMES, N_ROWS, 5)))


def landscapes_alone(batch):
    """Return the ordinary landscape of each game."""
    for measure, smoothing in zip(batch.measure, batch.smoothing, strict=True):
        space = SPACE.with_noise(batch.noise)
        yield Landscape(space, Rows(batch.X), measure, smoothing=float(smoothing))


@pytest.mark.parametrize("n_waves", [2**16, 400])  # at a time: of all games, or of one or two
@pytest.mark.parametrize("n_tasks", [1, 3])
@SPECTRUM
def test_points_are_those_of_each_games_landscape(rng, n_tasks, n_waves, spectrum, monkeypatch):
    monkeypatch.setattr(trial_landscape, "WAVES", n_waves)
    batch = make_landscape(rng, n_tasks, spectrum)
    frequencies = rng.standard_normal((N_GAMES * 5, N_COLUMNS))
    points = batch.evaluate(frequencies)
    draws = rng.standard_normal((20, N_COLUMNS))
    highest = batch.highest(draws, 5).reshape(N_GAMES, 5, N_COLUMNS)
    for game, one in enumerate(landscapes_alone(batch)):
        part = slice(5 * game, 5 * game + 5)
        expected = one.evaluate_with_slope(frequencies[part])
        for name in ("height", "slope"):
            found = getattr(points, name)[part]
            np.testing.assert_allclose(found, getattr(expected, name), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(points.amplitudes[..., part], expected.amplitudes, atol=1e-10)
        phases = peaks_by_game(points, N_GAMES)[1]
        np.testing.assert_allclose(phases[game], SPACE.phases(expected.amplitudes))
        order = np.argsort(-one.evaluate_with_slope(draws).height)
        np.testing.assert_array_equal(highest[game], draws[order[:5]])


def test_landscape_of_some_rows_is_that_of_a_measure_on_them(rng):
    batch, rows = make_landscape(rng, 2), rng.permutation(N_ROWS)[:20]
    measure = np.zeros_like(batch.measure)
    measure[:, rows] = batch.measure[:, rows]
    expected = replace(batch, measure=measure)
    frequencies = rng.standard_normal((N_GAMES * 5, N_COLUMNS))
    points = batch.take(rows).evaluate(frequencies)
    for name in ("height", "slope", "amplitudes"):
        found, value = (getattr(each, name) for each in (points, expected.evaluate(frequencies)))
        np.testing.assert_allclose(found, value, rtol=1e-9, atol=1e-9)


@SPECTRUM
def test_slope_is_the_gradient_of_the_height(rng, spectrum):
    batch = make_landscape(rng, 2, spectrum)
    frequencies = rng.standard_normal((N_GAMES * 5, N_COLUMNS))
    points = batch.evaluate(frequencies)
    for column in range(N_COLUMNS):
        shift = np.zeros_like(frequencies)
        shift[:, column] = 1e-6
        ends = [batch.move(points, sign * shift).height for sign in (1, -1)]
        np.testing.assert_allclose(points.slope[:, column], (ends[0] - ends[1]) / 2e-6, atol=1e-4)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_dual_steps_are_those_of_the_training_rows(rng, loss, weighted):
    problem = make_problem(rng, loss, n_tasks=2, weighted=weighted)
    player = DualPlayer(problem, MASKS)
    n_peaks = np.array([4, 1, 3])
    response = rng.standard_normal((N_GAMES, N_ROWS, 2))
    before = player.dual.copy()
    player.step(response, n_peaks)
    for game, mask in enumerate(MASKS):
        part = problem.take(np.flatnonzero(mask))
        # The scale of the targets is taken to be one.
        first = part.project(part.loss.start * part.targets)
        np.testing.assert_allclose(before[game][mask], first, atol=1e-12)
        size = n_peaks[game] * 0.25 * np.sqrt(2) / part.total_weight
        if part.loss.curvature:
            size = min(size, 1 / part.loss.curvature)
        expected = part.step(first, response[game][mask] / n_peaks[game], size)
        np.testing.assert_allclose(player.dual[game][mask], expected, atol=1e-12)
        assert not player.dual[game][~mask].any()
        if weighted:
            measure = player.measure[game][mask]
            np.testing.assert_allclose(measure, part.measure(expected), atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_distinct_points_are_those_of_each_games_landscape(rng, weighted):
    problem = make_problem(rng, weighted=weighted)
    measure = rng.standard_normal((N_GAMES, N_ROWS, 1))
    one = [Landscape(SPACE, problem.rows, each, smoothing=0.1) for each in measure]
    frequencies = 0.3 * rng.standard_normal((12, N_COLUMNS))
    points = [landscape.evaluate_with_slope(frequencies) for landscape in one]
    phases, X = [SPACE.phases(each.amplitudes) for each in points], problem.rows.array
    features = np.stack([SPACE.features(X, frequencies, each, "aligned") for each in phases])
    heights = np.stack([p.height for p in points])
    weights = np.tile(problem.counts, (N_GAMES, 1))
    chosen, valid = distinct(features, heights, weights, similarity=0.7, n_peaks=12)
    for game, landscape in enumerate(one):
        expected = landscape.distinct(points[game], 0.7, rng)
        assert 1 < len(expected) < 12  # some are similar
        assert chosen[game][valid[game]].tolist() == expected


def play(problem, masks, n_frequencies=10, spectrum="gaussian"):
    smoothing = np.array([0.05, 0.3, 0.05])[: len(masks)]
    games = TrialGames(problem, masks, smoothing, np.random.default_rng(3), spectrum)
    games.play(n_frequencies)
    return games.features


@SPECTRUM
def test_held_out_rows_have_no_influence(rng, spectrum):
    problem = make_problem(rng)
    expected = play(problem, MASKS, spectrum=spectrum)
    held_out = ~MASKS[1]
    X, targets = problem.rows.array.copy(), problem.targets.copy()
    X[held_out] += 3
    targets[held_out] *= -1
    found = play(Problem(problem.loss, targets, Rows(X)), MASKS, spectrum=spectrum)
    np.testing.assert_allclose(found[1][MASKS[1]], expected[1][MASKS[1]], atol=1e-8)
    assert not np.allclose(found[0][MASKS[0]], expected[0][MASKS[0]])


@SPECTRUM
def test_games_do_not_disturb_each_other(rng, spectrum):
    problem = make_problem(rng, n_tasks=3)
    together = play(problem, MASKS, spectrum=spectrum)
    alone = play(problem, MASKS[:1], spectrum=spectrum)
    np.testing.assert_allclose(together[0], alone[0], atol=1e-8)


@SPECTRUM
def test_a_dropped_game_does_not_change_the_others(rng, spectrum):
    """Games that are played on in two parts equal those played at once."""
    problem = make_problem(rng, loss="logistic", weighted=True)
    smoothing = np.array([0.05, 0.3, 0.1])
    n_peaks = Ascent(spectrum).resolved().n_peaks
    games, at_once = (
        TrialGames(problem, MASKS, smoothing, np.random.default_rng(3), spectrum) for _ in range(2)
    )
    at_once.play(3 * n_peaks)
    games.play(n_peaks)
    games.keep(np.array([0, 2]))
    games.play(2 * n_peaks)
    np.testing.assert_allclose(games.features, at_once.features[[0, 2]], atol=1e-8)


def test_a_row_of_weight_two_is_the_row_twice(rng):
    problem = make_problem(rng)
    X, targets = problem.rows.array, problem.targets
    weights = np.where(np.arange(N_ROWS) < 20, 2.0, 1.0)[:, None]
    weighted = Problem(problem.loss, targets, Rows(X, weights))
    twice = np.concatenate([np.arange(N_ROWS), np.arange(20)])
    copied = Problem(problem.loss, targets[twice], Rows(X[twice]))
    features = play(weighted, np.ones((1, N_ROWS), dtype=bool))
    copies = play(copied, np.ones((1, N_ROWS + 20), dtype=bool))
    np.testing.assert_allclose(copies[:, :N_ROWS], features, atol=1e-7)


@SPECTRUM
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
@pytest.mark.parametrize("n_climbed", [768, 150])  # rows: all, or half of those that are used
def test_features_learned_at_once_separate_the_classes(rng, loss, spectrum, n_climbed, monkeypatch):
    """A wave of the first column: games with little smoothing classify held-out samples."""
    monkeypatch.setattr(trial_games, "CLIMB_ROWS", n_climbed)
    X = rng.uniform(-2, 2, size=(600, N_COLUMNS))
    targets = np.sign(np.sin(3 * X[:, :1]))
    problem = Problem(LOSSES[loss], targets, Rows(X))
    masks = np.tile(np.arange(600) % 2 == 0, (2, 1))
    games = TrialGames(problem, masks, np.array([0.05, 3.0]), np.random.default_rng(0), spectrum)
    games.play(16)
    inside, outside = masks[0], ~masks[0]
    models = [LinearSVC().fit(part[inside], targets[inside, 0]) for part in games.features]
    scores = [
        model.score(part[outside], targets[outside, 0])
        for model, part in zip(models, games.features, strict=True)
    ]
    assert scores[0] > 0.85
    assert scores[1] < 0.7
