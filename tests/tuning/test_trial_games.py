"""Trial games played at once, against the same games played one by one."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import LinearSVC

from notsorandom import Ascent, Euclidean
from notsorandom.data.rows import Rows
from notsorandom.game import CLASSIFICATION_LOSSES, LOSSES, Problem
from notsorandom.game.loop import GameLoop
from notsorandom.spaces import ZonalSphere
from notsorandom.spaces.landscape import Landscape
from notsorandom.tuning import trial_games, trial_landscape
from notsorandom.tuning.trial_games import DualPlayer, TrialGames, landscape_of
from notsorandom.tuning.trial_landscape import distinct

N_GAMES, N_ROWS, N_COLUMNS = 3, 60, 4
SPACE = Euclidean(scale=1.0, center=np.zeros(N_COLUMNS), noise="gaussian")
SPACES = {
    "gaussian": SPACE,
    "cauchy": SPACE.with_parameters(noise="cauchy"),
    "zonal": ZonalSphere(max_degree=4, scale=1.3),
}
MASKS = np.arange(N_ROWS) % 4 != np.arange(N_GAMES)[:, None]
SPACE_NAMES = pytest.mark.parametrize("name", SPACES)


def draw_samples(rng, n_rows, name):
    X = rng.standard_normal((n_rows, N_COLUMNS)) + 0.3
    return X / np.linalg.norm(X, axis=1, keepdims=True) if name == "zonal" else X


def make_problem(rng, loss="hinge", n_tasks=1, weighted=False, n_rows=N_ROWS, name="gaussian"):
    X = draw_samples(rng, n_rows, name)
    targets = rng.standard_normal((n_rows, n_tasks))
    if loss in CLASSIFICATION_LOSSES:
        targets = np.sign(targets)
    weights = rng.integers(1, 4, size=(n_rows, 1)).astype(float) if weighted else None
    return Problem(LOSSES[loss], targets, Rows(X, weights))


def make_landscape(rng, n_tasks, name="gaussian"):
    X = draw_samples(rng, N_ROWS, name)
    weights = MASKS * rng.integers(1, 4, size=(N_GAMES, N_ROWS)).astype(float)
    measure = weights[:, :, None] * rng.standard_normal((N_GAMES, N_ROWS, n_tasks))
    smoothing = np.array([0.0, 0.1, 0.7])
    return landscape_of(SPACES[name])(SPACES[name], X, measure, weights, smoothing)


def draw_frequencies(rng, n_frequencies, batch):
    return batch.space.draw(n_frequencies, Rows(batch.X), rng)


def landscapes_alone(batch):
    """Return the ordinary landscape of each game: of its own samples, and with weights."""
    for measure, weights, smoothing in zip(
        batch.measure, batch.weights, batch.smoothing, strict=True
    ):
        used = weights > 0
        rows = Rows(batch.X[used], weights[used, None])
        yield Landscape(batch.space, rows, measure[used], smoothing=float(smoothing))


@pytest.mark.parametrize("n_features", [2**16, 400])  # at a time: of all games, or of one or two
@pytest.mark.parametrize("n_tasks", [1, 3])
@SPACE_NAMES
def test_points_are_those_of_each_games_landscape(rng, n_tasks, n_features, name, monkeypatch):
    monkeypatch.setattr(trial_landscape, "CACHED_FEATURES", n_features)
    batch = make_landscape(rng, n_tasks, name)
    frequencies = draw_frequencies(rng, N_GAMES * 5, batch)
    points = batch.evaluate(frequencies)
    by_game, phases, alignment = batch.peaks(points)
    features = batch.features(batch.X, by_game, phases)
    scales = batch.scales(features)
    for game, one in enumerate(landscapes_alone(batch)):
        part, space = slice(5 * game, 5 * game + 5), batch.space
        expected = one.evaluate_with_slope(frequencies[part])
        for key in ("height", "slope"):
            found = getattr(points, key)[part]
            np.testing.assert_allclose(found, getattr(expected, key), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(points.amplitudes[..., part], expected.amplitudes, atol=1e-10)
        best = space.phases(expected.amplitudes)
        np.testing.assert_allclose(phases[game], best)
        aligned = space.alignment(expected.amplitudes, best, "aligned")[:, 0]
        np.testing.assert_allclose(alignment[game], aligned, atol=1e-9)
        np.testing.assert_array_equal(by_game[game], frequencies[part])
        given = space.features(batch.X, by_game[game], best, "aligned")
        np.testing.assert_allclose(features[game], given, atol=1e-10)
        np.testing.assert_allclose(scales[game], space.scales(one.rows, by_game[game]))


@pytest.mark.parametrize("name", ["gaussian", "cauchy"])
def test_highest_draws_are_those_of_each_games_landscape(rng, name):
    batch, draws = make_landscape(rng, 2, name), rng.standard_normal((20, N_COLUMNS))
    highest = batch.highest(draws, 5).reshape(N_GAMES, 5, N_COLUMNS)
    for game, one in enumerate(landscapes_alone(batch)):
        order = np.argsort(-one.evaluate(draws).height)
        np.testing.assert_array_equal(highest[game], draws[order[:5]])


@SPACE_NAMES
def test_landscape_of_some_rows_is_that_of_a_measure_on_them(rng, name):
    batch, rows = make_landscape(rng, 2, name), rng.permutation(N_ROWS)[:20]
    inside = np.isin(np.arange(N_ROWS), rows)
    weights, measure = batch.weights * inside, batch.measure * inside[:, None]
    expected = replace(batch, measure=measure, weights=weights)
    frequencies = draw_frequencies(rng, N_GAMES * 5, batch)
    points = batch.take(rows).evaluate(frequencies)
    for key in ("height", "slope", "amplitudes"):
        found, value = (getattr(each, key) for each in (points, expected.evaluate(frequencies)))
        np.testing.assert_allclose(found, value, rtol=1e-9, atol=1e-9)


@SPACE_NAMES
def test_slope_is_the_gradient_of_the_height(rng, name):
    batch = make_landscape(rng, 2, name)
    points = batch.evaluate(draw_frequencies(rng, N_GAMES * 5, batch))
    for column in range(N_COLUMNS):
        shift = np.zeros_like(points.frequencies)
        shift[:, column] = 1e-6
        ends = [batch.move(points, sign * shift).height for sign in (1, -1)]
        np.testing.assert_allclose(points.slope[:, column], (ends[0] - ends[1]) / 2e-6, atol=1e-4)


def test_zonal_points_of_sparse_samples_are_those_of_dense_ones(rng):
    batch = make_landscape(rng, 2, "zonal")
    X = batch.X * (rng.random(batch.X.shape) < 0.7)
    frequencies = draw_frequencies(rng, N_GAMES * 5, batch)
    dense, thin = (replace(batch, X=each) for each in (X, sparse.csr_array(X)))
    for key in ("height", "slope"):
        expected, found = (getattr(each.evaluate(frequencies), key) for each in (dense, thin))
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


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
        first = part.project(part.loss.start_multiple * part.targets)
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


def start_games(problem, masks, smoothing, name):
    spectrum = "cauchy" if name == "cauchy" else "gaussian"
    rng = np.random.default_rng(3)
    return TrialGames(problem, SPACES[name], masks, np.array(smoothing), rng, spectrum)


def play(problem, masks, n_frequencies=10, name="gaussian"):
    games = start_games(problem, masks, [0.05, 0.3, 0.05][: len(masks)], name)
    games.play(n_frequencies)
    return games.features


@SPACE_NAMES
def test_held_out_rows_have_no_influence(rng, name):
    problem = make_problem(rng, name=name)
    expected = play(problem, MASKS, name=name)
    held_out = ~MASKS[1]
    X, targets = problem.rows.array.copy(), problem.targets.copy()
    X[held_out] = draw_samples(rng, held_out.sum(), name) * (1 if name == "zonal" else 3)
    targets[held_out] *= -1
    found = play(Problem(problem.loss, targets, Rows(X)), MASKS, name=name)
    np.testing.assert_allclose(found[1][MASKS[1]], expected[1][MASKS[1]], atol=1e-8)
    assert not np.allclose(found[0][MASKS[0]], expected[0][MASKS[0]])


@SPACE_NAMES
def test_games_do_not_disturb_each_other(rng, name):
    problem = make_problem(rng, n_tasks=3, name=name)
    together = play(problem, MASKS, name=name)
    alone = play(problem, MASKS[:1], name=name)
    np.testing.assert_allclose(together[0], alone[0], atol=1e-8)


@SPACE_NAMES
def test_a_dropped_game_does_not_change_the_others(rng, name):
    """Games that are played on in two parts equal those played at once."""
    problem = make_problem(rng, loss="logistic", weighted=True, name=name)
    games, at_once = (start_games(problem, MASKS, [0.05, 0.3, 0.1], name) for _ in range(2))
    n_peaks = games.search.n_peaks
    at_once.play(3 * n_peaks)
    games.play(n_peaks)
    games.keep(np.array([0, 2]))
    games.play(2 * n_peaks)
    np.testing.assert_allclose(games.features, at_once.features[[0, 2]], atol=1e-8)


@SPACE_NAMES
def test_a_row_of_weight_two_is_the_row_twice(rng, name):
    problem = make_problem(rng, name=name)
    X, targets = problem.rows.array, problem.targets
    weights = np.where(np.arange(N_ROWS) < 20, 2.0, 1.0)[:, None]
    weighted = Problem(problem.loss, targets, Rows(X, weights))
    twice = np.concatenate([np.arange(N_ROWS), np.arange(20)])
    copied = Problem(problem.loss, targets[twice], Rows(X[twice]))
    features = play(weighted, np.ones((1, N_ROWS), dtype=bool), name=name)
    copies = play(copied, np.ones((1, N_ROWS + 20), dtype=bool), name=name)
    np.testing.assert_allclose(copies[:, :N_ROWS], features, atol=1e-7)


@SPACE_NAMES
@pytest.mark.parametrize("weighted", [False, True])
def test_a_game_is_that_of_the_ordinary_loop(rng, name, weighted, monkeypatch):
    """The same starts and steps on few rows, for samples whose targets have the scale one."""
    monkeypatch.setattr(trial_games, "TRIAL_STEPS", 100)
    problem = make_problem(rng, "logistic", 2, weighted, name=name)
    mask, (games, loop) = MASKS[0], (np.random.default_rng(5) for _ in range(2))
    spectrum = "cauchy" if name == "cauchy" else "gaussian"
    # With as many draws as particles, the loop's choice among draws is the same.
    search = Ascent(spectrum, n_particles=256 if name == "cauchy" else 16)
    trial = TrialGames(problem, SPACES[name], mask[None], np.array([0.1]), games, spectrum)
    trial.search = search.resolved()
    trial.play(12)
    result = GameLoop(
        problem.take(np.flatnonzero(mask)),
        space=SPACES[name],
        search=search,
        n_frequencies=12,
        smoothing=0.1,
        rng=loop,
    ).play()
    expected = result.kernel("potential").features_of(problem.rows)
    np.testing.assert_allclose(trial.features[0], expected, atol=1e-6)


@SPACE_NAMES
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
@pytest.mark.parametrize("n_climbed", [768, 150])  # rows: all, or half of those that are used
def test_features_learned_at_once_separate_the_classes(rng, loss, name, n_climbed, monkeypatch):
    """A wave of the first column: games with little smoothing classify held-out samples."""
    monkeypatch.setattr(trial_games, "CLIMB_ROWS", n_climbed)
    X = rng.uniform(-2, 2, size=(600, N_COLUMNS))
    if name == "zonal":
        X = draw_samples(rng, 600, name)
    targets = np.sign(np.sin(3 * X[:, :1]) if name != "zonal" else X[:, :1] ** 2 - 0.25)
    problem = Problem(LOSSES[loss], targets, Rows(X))
    masks = np.tile(np.arange(600) % 2 == 0, (2, 1))
    games = start_games(problem, masks, [0.05, 3.0], name)
    games.play(16)
    inside, outside = masks[0], ~masks[0]
    models = [LinearSVC().fit(part[inside], targets[inside, 0]) for part in games.features]
    scores = [
        model.score(part[outside], targets[outside, 0])
        for model, part in zip(models, games.features, strict=True)
    ]
    assert scores[0] > 0.85
    if name != "zonal":  # there, smoothing only lowers the degrees
        assert scores[1] < 0.7
