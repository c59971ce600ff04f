"""The end of a round and the start of the next one, in one submission."""

import copy
import math

import numpy as np
import pytest

from notsorandom.data.rows import Rows
from notsorandom.game import LOSSES, Problem
from notsorandom.game.ahead import project_ahead
from notsorandom.spaces.landscape import draw_marks, pick_by_mass, sample_masses


def make_problem(rng, loss, n_tasks, weighted, with_scores):
    X = rng.standard_normal((3000, 2)).astype(np.float32)
    targets = rng.standard_normal((3000, n_tasks)).astype(np.float32)
    if LOSSES[loss].one_sided:
        targets = np.sign(targets)
    weights = rng.integers(0, 3, size=(3000, 1)).astype(np.float32) if weighted else None
    scores = rng.standard_normal(targets.shape).astype(np.float32) if with_scores else None
    rows = Rows(X, weights, block_rows=256)
    return Problem(LOSSES[loss], targets, rows, linear_scores=scores)


@pytest.mark.parametrize("n_tasks", [1, 7])
@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared_hinge", "squared"])
@pytest.mark.parametrize(("weighted", "with_scores"), [(False, False), (True, True)])
def test_it_finds_what_separate_passes_find(rng, loss, n_tasks, weighted, with_scores):
    problem = make_problem(rng, loss, n_tasks, weighted, with_scores)
    shift = rng.normal(size=n_tasks).astype(np.float32) / 4
    point = problem.first_dual() + shift
    expected = problem.into_ball(problem.project(point))
    taken, known = (2,), []
    for _ in range(3):  # with the number of passes that the projection before took
        dual, ahead = project_ahead(problem, point, taken, 500, rng)
        np.testing.assert_array_equal(dual, expected)
        taken = ahead.taken
        known.append(ahead.stats is not None)
        if ahead.stats is None:
            continue
        stats = problem.stats(dual)
        assert vars(ahead.stats).keys() == vars(stats).keys()
        assert ahead.stats.linear == pytest.approx(stats.linear, rel=1e-6)
        assert ahead.stats.share_at_zero == pytest.approx(stats.share_at_zero)
        marks = draw_marks(500, copy.deepcopy(rng))
        measure = problem.measure(dual)
        masses = [mass for mass, *_ in stats.block_stats]
        rows, values = pick_by_mass(problem.rows, sample_masses, measure, masses, marks)
        np.testing.assert_array_equal(ahead.sample.marks, marks)
        np.testing.assert_array_equal(ahead.sample.values, values)
        np.testing.assert_array_equal(ahead.sample.rows.array, rows.array)
    assert known[-1] or not math.isfinite(problem.loss.upper)


def test_without_a_sample_there_are_only_sums(rng):
    problem = make_problem(rng, "hinge", 1, False, False)
    point, state = problem.first_dual(), copy.deepcopy(rng.bit_generator.state)
    dual, ahead = project_ahead(problem, point + np.float32(0.1), (2,), 0, rng)
    assert ahead.sample is None
    np.testing.assert_array_equal(dual, problem.project(point + np.float32(0.1)))
    assert rng.bit_generator.state == state
