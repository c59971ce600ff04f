import numpy as np
import pytest
import reference

from notsorandom import Ascent, Euclidean, Langevin, LearnedKernel
from notsorandom.data.rows import Rows
from notsorandom.game import LOSSES, Player, play
from notsorandom.game.loop import shrinkage
from notsorandom.linear.newton import solve_machine


def game(windmill, dtype=np.float64, factor=1.0, seed=0, loss="hinge", C=1.0, **options):
    X, y = windmill[:2]
    player = Player(LOSSES[loss](C), np.where(y == 1, 1, -1)[:, None].astype(dtype))
    settings = {
        "space": Euclidean(),
        "search": Ascent(),
        "n_frequencies": 12,
        "rng": np.random.default_rng(seed),
    }
    return play(Rows((factor * X).astype(dtype)), player, **(settings | options)), player


def test_equal_seed_equal_result(windmill):
    (one, _), (other, _), (third, _) = (game(windmill, seed=s) for s in (3, 3, 4))
    np.testing.assert_array_equal(one.frequencies, other.frequencies)
    np.testing.assert_array_equal(one.dual, other.dual)
    assert not np.array_equal(one.frequencies, third.frequencies)


@pytest.mark.parametrize("exponent", [-20, 20])
def test_scale_is_all_that_changes(windmill, exponent):
    """By a power of two, not even rounding differs."""
    factor = 2.0**exponent
    (one, _), (other, _) = game(windmill), game(windmill, factor=factor)
    np.testing.assert_array_equal(one.frequencies, other.frequencies * factor)
    np.testing.assert_array_equal(one.phases, other.phases)


def test_a_longer_game_begins_like_a_shorter_one(windmill):
    (short, _), (long, _) = game(windmill, n_frequencies=7), game(windmill, n_frequencies=16)
    np.testing.assert_array_equal(short.frequencies, long.frequencies[:7])


def test_alignment_is_linear_in_the_kernel(windmill):
    """y'Gy is the weighted sum of potentials, for the measure of the game's own dual."""
    result, _ = game(windmill, phase="paired")
    X = windmill[0][:60]
    measure = result.dual[:60]
    gram = reference.translation_invariant_gram(X, X, result.frequencies, result.weights)
    potentials = result.space.potential(Rows(X), measure, result.frequencies)
    np.testing.assert_allclose(
        measure[:, 0] @ gram @ measure[:, 0], result.weights @ potentials, rtol=1e-9
    )


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("rate", ["auto", "theory", 0.5])
@pytest.mark.parametrize("projection", ["exact", "alternating"])
def test_the_dual_stays_feasible(windmill, loss, rate, projection):
    result, player = game(windmill, loss=loss, C=2.0, learning_rate=rate, projection=projection)
    low, high = player.box
    assert np.isfinite(result.dual).all()
    assert (result.dual >= low).all()
    assert (result.dual <= high).all()
    assert abs(result.dual.sum()) < 1e-3 * np.abs(result.dual).sum()


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("phase", ["aligned", "paired"])
def test_a_round_steps_along_the_gradient_of_its_objective(windmill, loss, phase):
    """Also with several peaks, whose mean kernel the round is played on."""
    rate, duals, records = 0.1, [], []
    result, player = game(
        windmill,
        loss=loss,
        phase=phase,
        search=Ascent(n_peaks=4, similarity=0.95),
        learning_rate=rate,
        n_frequencies=30,
        watch=lambda record, dual: (duals.append(dual.copy()), records.append(record)),
    )
    counts = np.diff([0, *result.history["n_frequencies"]])
    chosen = int(np.argmax(counts[:-1]))
    assert counts[chosen] > 1
    last = records[chosen].n_frequencies
    frequencies = slice(last - counts[chosen], last)
    kernel = LearnedKernel(
        result.space,
        result.frequencies[frequencies],
        result.phases[frequencies],
        result.scales[frequencies],
        np.full(counts[chosen], 1 / counts[chosen]),
        phase,
    )
    gram = kernel(windmill[0])

    def objective(dual):
        return player.objective(dual[:, None], dual @ gram @ dual)

    dual = duals[chosen][:, 0]
    np.testing.assert_allclose(records[chosen].objective, objective(dual))
    slope = player.gradient(dual[:, None], gram @ dual[:, None])
    step = counts[chosen] * rate / len(dual)
    np.testing.assert_allclose(
        duals[chosen + 1], player.project(duals[chosen] + step * slope), atol=1e-12
    )
    some = np.array([3, 50, 400])
    expected = [
        (objective(dual + 1e-4 * np.eye(len(dual))[i]) - objective(dual)) / 1e-4 for i in some
    ]
    np.testing.assert_allclose(slope[some, 0], expected, rtol=1e-2)


@pytest.mark.parametrize("C", [1e-5, 1e5])
def test_the_strongly_concave_dual_never_oscillates(windmill, C):
    result, _ = game(windmill, loss="squared_hinge", C=C, n_frequencies=30)
    assert result.history["share_at_zero"].max() < 1
    assert result.status == "complete"


def regret_of(windmill, steps, rate):
    """Average regret of the dual player, and the theorem's bound on it, for a recorded game."""
    duals = []
    result, player = game(
        windmill,
        phase="paired",
        search=Ascent(n_peaks=1, n_steps=4),
        n_frequencies=steps,
        learning_rate=rate,
        watch=lambda record, dual: duals.append(dual.copy()),
    )
    rows, n = Rows(windmill[0]), len(windmill[0])
    earned = []
    for dual, frequency in zip(duals, result.frequencies, strict=True):
        potential = result.space.potential(rows, dual, frequency[None])[0]
        earned.append(player.objective(dual, potential))
    kernel = LearnedKernel.from_game(result, result.weights, "paired")
    hindsight = solve_machine(kernel.features(windmill[0]), player, tol=1e-6)
    bound = 1.5 * np.sqrt(n) * (1 + n) * np.sqrt(n) / np.sqrt(steps)
    return hindsight.primal_value - np.mean(earned), bound


@pytest.mark.parametrize("steps", [5, 40])
def test_regret_is_within_the_theorem(windmill, steps):
    regret, bound = regret_of(windmill, steps, "theory")
    assert regret <= bound


def test_regret_falls_with_the_rounds_and_not_with_a_wrong_step(windmill):
    (few, _), (many, _) = regret_of(windmill, 5, "theory"), regret_of(windmill, 60, "theory")
    stuck, _ = regret_of(windmill, 60, 1e-4)
    assert many < 0.6 * few
    assert stuck > 2 * many


def test_history(windmill):
    records = []
    result, _ = game(windmill, watch=lambda record, dual: records.append(record))
    history = result.history
    assert set(history) == {
        "n_frequencies",
        "potential",
        "objective",
        "lower",
        "share_at_zero",
        "share_at_upper",
        "plays",
        "step",
        "seconds",
    }
    assert len(records) == len(history["potential"])
    assert history["n_frequencies"][-1] == 12 == len(result.frequencies) == len(result.strengths)
    assert (np.diff(history["seconds"]) > 0).all()
    assert ((history["potential"] > 0) & (history["potential"] <= 1)).all()
    assert history["potential"][-1] < history["potential"][0]
    assert (history["lower"] >= history["objective"] - 1e-9).all()  # at its best multiple
    np.testing.assert_allclose(result.weights.sum(), 1)
    assert result.status == "complete"


def test_with_the_theorys_steps_every_round_weighs_the_same(windmill):
    result, _ = game(windmill, learning_rate="theory", n_frequencies=20)
    counts = np.diff([0, *result.history["n_frequencies"]])
    assert counts.max() > 1
    by_round = np.add.reduceat(result.weights, np.cumsum([0, *counts[:-1]]))
    np.testing.assert_allclose(by_round, 1 / len(counts))


def test_langevin_plays_too(windmill):
    result, _ = game(windmill, search=Langevin(20, 50), smoothing=0.0, phase="paired")
    assert len(result.frequencies) == 12


def test_equal_points_are_a_flat_game():
    labels = np.array([[1.0], [-1.0], [1.0], [-1.0]])
    result = play(
        Rows(np.ones((4, 3))),
        Player(LOSSES["hinge"](1.0), labels),
        space=Euclidean(),
        search=Ascent(),
        n_frequencies=3,
        rng=np.random.default_rng(0),
    )
    assert result.status == "flat"
    assert np.isfinite(result.frequencies).all()


def test_tasks_share_their_frequencies(rng):
    """With three tasks whose waves differ, every one of the waves is found."""
    waves = np.array([[3.0, 0.0], [0.0, 3.0], [2.0, 2.0]])
    X = rng.standard_normal((2000, 2))
    labels = np.where(np.cos(X @ waves.T) > 0, 1.0, -1.0)
    result = play(
        Rows(X),
        Player(LOSSES["hinge"](1.0), labels),
        space=Euclidean(),
        search=Ascent(),
        n_frequencies=12,
        rng=rng,
    )
    both = np.concatenate([result.frequencies, -result.frequencies])
    assert result.dual.shape == (2000, 3)
    for wave in waves:
        assert np.linalg.norm(both - wave, axis=1).min() < 0.4


def test_more_tasks_take_larger_steps():
    assert shrinkage(1) == 0.25
    assert shrinkage(4) == 0.5
    assert shrinkage(100) == 1.0
