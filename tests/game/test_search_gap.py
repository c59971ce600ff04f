"""How far the peaks of a game are below the highest known ones."""

import numpy as np
import pytest
import reference

from notsorandom import Ascent, Chain, Enumerate, Euclidean, Sphere, Thorough
from notsorandom.data.rows import Rows
from notsorandom.game import LOSSES, Problem, SearchGap, play
from notsorandom.spaces import Landscape

N_SAMPLES, SMOOTHING = 120, 0.07


def play_noise(search, gap, dimension=1, space=None, **settings):
    """Play on samples with random labels; return the problem, the result and each round's dual."""
    rng, seen = np.random.default_rng(0), reference.Recorder()
    X = reference.sphere_points(rng, N_SAMPLES, 3) if space else rng.standard_normal((N_SAMPLES, 1))
    problem = Problem(LOSSES["hinge"], rng.choice([-1.0, 1.0], size=(N_SAMPLES, 1)), Rows(X))
    settings = {"n_frequencies": 6, "smoothing": SMOOTHING, "search": search} | settings
    space = space or Euclidean()
    return problem, play(problem, space=space, rng=rng, observers=[gap, seen], **settings), seen


@pytest.mark.parametrize("search", [Ascent(n_peaks=1), Thorough(n_peaks=1)])
def test_gaps_are_to_the_highest_point_of_the_line(search):
    gap = SearchGap(Thorough())
    problem, result, seen = play_noise(search, gap)
    assert len(gap.epsilons) == len(result.history["potential"]) == 6
    for number, dual in enumerate(seen.duals):
        measure = problem.measure(dual)
        land = Landscape(result.space, problem.rows, measure, SMOOTHING)
        grid = np.linspace(0, result.space.within_reach(SMOOTHING, N_SAMPLES).max_norm, 20_000)[
            :, None
        ]
        highest = land.unit * np.exp(land.evaluate(grid).height.max())
        found = reference.potential(problem.rows.array, measure, result.frequencies[number])
        found *= np.exp(-land.space.penalty(None, result.frequencies[[number]], SMOOTHING)[0])
        np.testing.assert_allclose(gap.found[number], found, rtol=1e-6)
        np.testing.assert_allclose(gap.epsilons[number], max(highest - found, 0), atol=1e-3 * found)
    assert (gap.shares.max() > 0.1) == isinstance(search, Ascent)


def test_gaps_of_a_chain_are_exact_and_those_of_enumeration_are_zero():
    space = Sphere("harmonic", max_degree=8)
    enumerated, walked = SearchGap(Enumerate()), SearchGap(Enumerate())
    play_noise(Enumerate(n_peaks=1), enumerated, space=space)
    problem, result, seen = play_noise(Chain(n_steps=1, n_particles=2), walked, space=space)
    np.testing.assert_allclose(enumerated.shares, 0, atol=1e-12)
    assert walked.shares.max() > 0.1
    land = Landscape(result.space, problem.rows, problem.measure(seen.duals[0]), SMOOTHING)
    highest = land.unit * np.exp(land.evaluate_all().height.max())
    np.testing.assert_allclose(walked.highest[0], highest)


def test_the_game_is_the_same_with_and_without_and_goes_on():
    """The search of the observer has random numbers of its own, by the round."""
    gap, whole = SearchGap(Thorough(), random_state=1), SearchGap(Thorough(), random_state=1)
    _, watched, _ = play_noise(Ascent(), whole)
    _, result, _ = play_noise(Ascent(), gap, n_frequencies=4)
    np.testing.assert_array_equal(watched.frequencies[:4], result.frequencies)
    other = SearchGap(Thorough(), random_state=1)
    other.set_state(gap.get_state())
    np.testing.assert_array_equal(other.shares, whole.shares[: len(other.shares)])
