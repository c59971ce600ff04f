"""Laws of the game loop, on the windmill and on data whose waves are known."""

import numpy as np
import pytest
import reference

from notsorandom import Ascent, Euclidean, FourierFeatures, GradientSolver, Sphere
from notsorandom.data.rows import Rows
from notsorandom.datasets import make_checkerboard, make_windmill
from notsorandom.game import LOSSES, GameLoop, Observer, Problem, play, replay


def windmill_problem(windmill, dtype=np.float64, factor=1.0, loss="hinge", C=1.0, n_samples=600):
    X, y = windmill[0][:n_samples], windmill[1][:n_samples]
    labels = np.where(y == 1, 1, -1)[:, None].astype(dtype)
    return Problem(LOSSES[loss].times(C), labels, Rows((factor * X).astype(dtype)))


def game_settings(**changes):
    settings = {
        "space": Euclidean(),
        "search": Ascent(),
        "n_frequencies": 12,
        "rng": np.random.default_rng(changes.pop("seed", 0)),
    }
    return settings | changes


class StopAfter(Observer):
    """Stops the game after a round, and notes when it is called."""

    def __init__(self, round_, notes):
        self.round, self.notes = round_, notes

    def after_round(self, game):
        self.notes.append((self.round, len(game.history), game.stopped))
        return len(game.history) == self.round


def test_equal_seed_gives_equal_result(windmill):
    problem = windmill_problem(windmill)
    one, other, third = (play(problem, **game_settings(seed=seed)) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one.frequencies, other.frequencies)
    np.testing.assert_array_equal(one.dual, other.dual)
    assert not np.array_equal(one.frequencies, third.frequencies)


@pytest.mark.parametrize("exponent", [-20, 20])
def test_frequencies_scale_inversely_with_the_samples(windmill, exponent):
    """For a power of two there is no rounding, so the games are equal."""
    factor = 2.0**exponent
    one = play(windmill_problem(windmill), **game_settings())
    other = play(windmill_problem(windmill, factor=factor), **game_settings())
    np.testing.assert_array_equal(one.frequencies, other.frequencies * factor)
    np.testing.assert_array_equal(one.phases, other.phases)


def test_a_longer_game_starts_with_the_shorter_one(windmill):
    problem = windmill_problem(windmill)
    short, long = (play(problem, **game_settings(n_frequencies=n)) for n in (7, 16))
    np.testing.assert_array_equal(short.frequencies, long.frequencies[:7])


def test_an_observer_stops_the_game(windmill):
    """All of them are called in their order, also in the round that the first one stops."""
    problem, notes = windmill_problem(windmill), []
    whole = play(problem, **game_settings())
    observers = [StopAfter(2, notes), StopAfter(3, notes)]
    result = play(problem, observers=observers, **game_settings())
    assert notes == [(2, 1, False), (3, 1, False), (2, 2, False), (3, 2, True)]
    assert (whole.status, result.status) == ("complete", "stopped")
    n_found = whole.history["n_frequencies"][1]
    assert result.history["n_frequencies"].tolist() == whole.history["n_frequencies"][:2].tolist()
    np.testing.assert_array_equal(result.frequencies, whole.frequencies[:n_found])


def test_potential_is_linear_in_the_kernel(windmill):
    """The measure's quadratic form with the Gram matrix is the weighted sum of the potentials."""
    problem = windmill_problem(windmill, n_samples=60)
    result = play(problem, **game_settings(phase="paired"))
    X, measure = windmill[0][:60], result.dual
    gram = reference.translation_invariant_gram(X, X, result.frequencies, result.weights)
    potentials = [reference.potential(X, measure, frequency) for frequency in result.frequencies]
    np.testing.assert_allclose(measure[:, 0] @ gram @ measure[:, 0], result.weights @ potentials)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize(
    ("rate", "projection"), [("auto", "exact"), ("theory", "alternating"), (0.5, "exact")]
)
def test_dual_stays_feasible(windmill, loss, rate, projection):
    problem = windmill_problem(windmill, loss=loss, C=2.0)
    result = play(problem, **game_settings(learning_rate=rate, projection=projection))
    low, high = problem.box
    assert np.isfinite(result.dual).all()
    assert (result.dual >= low).all()
    assert (result.dual <= high).all()
    assert abs(result.dual.sum()) < 1e-3 * np.abs(result.dual).sum()


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("phase", ["aligned", "paired"])
def test_each_round_is_the_reference_step_on_its_mean_kernel(windmill, loss, phase):
    """Against finite differences and a quadratic program, also for rounds of several peaks."""
    problem, rate = windmill_problem(windmill, loss=loss, n_samples=40), 0.3
    X, labels = windmill[0][:40], problem.targets[:, 0]
    upper, curvature = problem.loss.upper, problem.loss.curvature
    loop = GameLoop(
        problem,
        **game_settings(
            space=Euclidean().resolve(problem.rows, np.random.default_rng(0)),
            search=Ascent(n_peaks=4, similarity=0.95),
            phase=phase,
            learning_rate=rate,
            n_frequencies=14,
        ),
    )
    first, counts = 0, []
    for _ in range(4):
        record, alpha = loop.play_round(), labels * loop.previous_dual[:, 0]
        found, count = slice(first, record.n_frequencies), record.n_frequencies - first
        arrays, shares = loop.result(), np.full(count, 1 / count)
        if phase == "paired":
            gram = reference.translation_invariant_gram(X, X, arrays.frequencies[found], shares)
        else:
            parts = arrays.frequencies[found], arrays.phases[found]
            centred = X - loop.space.center  # phases are those of centred samples
            gram = reference.aligned_gram(centred, centred, *parts, shares)
        objective = reference.svm_dual_objective(gram, labels, alpha, curvature)
        np.testing.assert_allclose(record.objective, objective, rtol=1e-6)
        step = min(count * rate / 40, 1 / curvature if curvature else np.inf)
        expected = reference.svm_dual_step(gram, labels, alpha, step, upper, curvature)
        np.testing.assert_allclose(labels * loop.dual[:, 0], expected, atol=1e-5)
        counts.append(count)
        first = record.n_frequencies
    assert max(counts) > 1


def test_average_dual_is_the_mean_over_the_plays(windmill):
    seen = reference.Recorder()
    result = play(windmill_problem(windmill), observers=[seen], **game_settings())
    plays = [record["plays"] for record in seen.records]
    np.testing.assert_allclose(result.average_dual, np.average(seen.duals, axis=0, weights=plays))
    for name, column in result.history.items():
        np.testing.assert_array_equal(column, [record[name] for record in seen.records])


@pytest.mark.parametrize("C", [1e-5, 1e5])
def test_strongly_concave_dual_does_not_oscillate(windmill, C):
    problem = windmill_problem(windmill, loss="squared_hinge", C=C)
    result = play(problem, **game_settings(n_frequencies=30))
    assert result.history["share_at_zero"].max() < 1
    assert result.status == "complete"


def test_potentials_fall_as_the_waves_are_found(windmill):
    history = play(windmill_problem(windmill), **game_settings()).history
    assert ((history["potential"] > 0) & (history["potential"] <= 1)).all()
    assert history["potential"][-1] < history["potential"][0]


def test_theory_rate_weights_every_round_equally(windmill):
    problem = windmill_problem(windmill)
    result = play(problem, **game_settings(learning_rate="theory", n_frequencies=20))
    counts = np.diff([0, *result.history["n_frequencies"]])
    assert counts.max() > 1
    by_round = np.add.reduceat(result.weights, np.cumsum([0, *counts[:-1]]))
    np.testing.assert_allclose(by_round, 1 / len(counts))


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_callable_is_given_the_round_and_the_theory_rate(windmill, loss):
    """With curvature its values may be larger than numbers may be."""
    problem, given = windmill_problem(windmill, loss=loss, C=1e5), []

    def half(round_, theory):
        given.append(round_)
        return theory / 2

    theory = play(problem, **game_settings(learning_rate="theory", n_frequencies=20)).history
    halved = play(problem, **game_settings(learning_rate=half, n_frequencies=20)).history
    n_rounds = min(len(theory["step"]), len(halved["step"]))
    np.testing.assert_allclose(halved["step"][:n_rounds], theory["step"][:n_rounds] / 2)
    assert (theory["step"][0] * len(problem.targets) > 1e6) == (loss == "squared_hinge")
    assert given == list(range(1, len(halved["step"]) + 1))
    assert (halved["plays"] == 1).all()


@pytest.mark.parametrize(
    "rate", [lambda t: t**-0.5, lambda t, c=1.0: c / np.sqrt(t), lambda t, theory: 1 / t**0.5]
)
def test_a_callable_of_the_round_is_the_rate(windmill, rate):
    """With the theory's step or without; arguments with defaults keep them."""
    problem = windmill_problem(windmill)
    steps = play(problem, **game_settings(learning_rate=rate)).history["step"]
    wanted = 1 / np.sqrt(np.arange(1, len(steps) + 1)) / len(problem.targets)
    np.testing.assert_allclose(steps, wanted)


@pytest.mark.parametrize("value", [-1.0, 0.0, 1e7, np.nan, np.inf, "a", None, True])
def test_values_of_a_callable_are_in_the_range_of_numbers(windmill, value):
    settings = game_settings(learning_rate=lambda t: value if t == 3 else 1.0)
    message = rf"learning_rate\(round=3\)={value!r} is not allowed: .* number > 0 and <= 1e\+06\.$"
    with pytest.raises(ValueError, match=message):
        play(windmill_problem(windmill), **settings)


def test_a_callable_is_told_that_zonal_features_have_no_theory():
    X, y = make_checkerboard(60, random_state=0)
    problem = Problem(LOSSES["hinge"], np.where(y == 1, 1.0, -1.0)[:, None], Rows(X))
    settings = game_settings(space=Sphere("zonal"), n_frequencies=2)
    with pytest.raises(ValueError, match=r"round=1\)=nan .* theory's step is NaN, since zonal"):
        play(problem, **settings, learning_rate=lambda t, theory: theory)
    assert play(problem, **settings, learning_rate=lambda t: 1 / t).status == "complete"


def test_equal_samples_give_a_flat_game():
    labels = np.array([[1.0], [-1.0], [1.0], [-1.0]])
    problem = Problem(LOSSES["hinge"], labels, Rows(np.ones((4, 3))))
    result = play(problem, **game_settings(n_frequencies=3))
    assert result.status == "flat"
    assert np.isfinite(result.frequencies).all()


def test_tasks_share_their_frequencies(rng):
    """With three tasks that have different waves, each of the waves is found."""
    waves = np.array([[3.0, 0.0], [0.0, 3.0], [2.0, 2.0]])
    X = rng.standard_normal((2000, 2))
    labels = np.where(np.cos(X @ waves.T) > 0, 1.0, -1.0)
    result = play(Problem(LOSSES["hinge"], labels, Rows(X)), **game_settings())
    both = np.concatenate([result.frequencies, -result.frequencies])
    assert result.dual.shape == (2000, 3)
    for wave in waves:
        assert np.linalg.norm(both - wave, axis=1).min() < 0.4


@pytest.mark.parametrize("n_tasks", [1, 4])
@pytest.mark.parametrize("phase", ["aligned", "paired"])
def test_auto_rate_removes_part_of_the_correlation(rng, n_tasks, phase):
    """After a round of one peak, the measure correlates less with it, in the same direction."""
    X = rng.standard_normal((500, 2))
    labels = np.where(X @ rng.standard_normal((2, n_tasks)) > 0, 1.0, -1.0)
    problem = Problem(LOSSES["hinge"], labels, Rows(X))
    space = Euclidean().resolve(problem.rows, rng)
    loop = GameLoop(problem, **game_settings(space=space, search=Ascent(n_peaks=1), phase=phase))
    loop.play_round()
    frequency = loop.result().frequencies[:1]
    before, after = (
        space.amplitudes(problem.rows, dual, frequency) for dual in (loop.previous_dual, loop.dual)
    )
    assert 0.1 * (before**2).sum() < (before * after).sum() < 0.9 * (before**2).sum()


@pytest.mark.parametrize("phase", ["aligned", "paired"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("rate", ["auto", "theory", 0.3])
def test_replay_has_the_dual_variables_of_the_game(phase, loss, rate):
    X, y = make_windmill(300, random_state=0)
    X = X.astype(np.float32)
    solver = GradientSolver(rate)
    settings = {"phase": phase, "loss": loss, "C": 1.0, "smoothing": 0.05, "random_state": 0}
    model = FourierFeatures(40, solver=solver, **settings).fit(X, y)
    targets = np.where(y == 1, 1, -1).astype(np.float32)[:, None]
    problem = Problem(LOSSES[loss], targets, Rows(X))
    duals = list(replay(problem, model.kernel_, model.history_))
    assert len(duals) == len(model.history_["step"]) + 1
    np.testing.assert_allclose(duals[-1], model.dual_, atol=2e-3)
    zeros = [np.mean(dual == 0) for dual in duals[:-1]]
    np.testing.assert_allclose(zeros, model.history_["share_at_zero"], atol=0.01)
