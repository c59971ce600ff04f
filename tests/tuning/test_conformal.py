import numpy as np
import pytest

from notsorandom.tuning.conformal import HeldOutScores, choose_held_out


def made(scores, counts=None):
    scores = np.asarray(scores, dtype=float)
    scores = scores if scores.ndim == 2 else scores[:, None]
    return HeldOutScores.of(scores, np.ones(len(scores)) if counts is None else np.array(counts))


@pytest.mark.parametrize("n", [9, 19, 100])
def test_quantile_has_the_rank_of_the_theorem(rng, n):
    scores = rng.permutation(n) + 1.0
    for coverage in (0.1, 0.5, 0.8, 0.9):
        rank = np.ceil(coverage * (n + 1) - 1e-9)
        assert made(scores).quantiles(coverage) == [rank]


def test_new_scores_are_covered(rng):
    """The mean over many calibrations is between the coverage and one rank more."""
    n, coverage = 30, 0.8
    covered = [
        rng.exponential() <= made(rng.exponential(size=n)).quantiles(coverage)[0]
        for _ in range(20_000)
    ]
    assert coverage - 0.01 < np.mean(covered) < coverage + 1 / (n + 1) + 0.01


def test_a_weight_is_a_number_of_rows(rng):
    scores, counts = rng.exponential(size=(40, 2)), rng.integers(0, 4, size=40)
    coverages = [0.3, 0.5, 0.9]
    copied = made(np.repeat(scores, counts, axis=0)).quantiles(coverages)
    np.testing.assert_array_equal(made(scores, counts).quantiles(coverages), copied)


def test_outputs_and_coverages(rng):
    scores = made(rng.exponential(size=(50, 3)))
    several = scores.quantiles([0.5, 0.9])
    assert several.shape == (3, 2)
    np.testing.assert_array_equal(several[:, 1], scores.quantiles(0.9))
    for k in range(3):
        np.testing.assert_array_equal(
            several[k], made(scores.scores[:, k]).quantiles([0.5, 0.9])[0]
        )


def test_largest_coverage():
    scores = made(np.arange(9.0))
    assert scores.quantiles(0.9) == [8]
    with pytest.raises(ValueError, match=r"coverage=0\.95 .* 9 held-out .* one is 0\.9000"):
        scores.quantiles([0.5, 0.95])


@pytest.mark.parametrize("coverage", [0, 1, 1.5, -0.1, np.nan, "0.9", None, True, [], [[0.5]]])
def test_wrong_coverage(coverage):
    with pytest.raises(ValueError, match="coverage="):
        made(np.arange(9.0)).quantiles(coverage)


def test_held_out_rows_are_a_fifth_up_to_a_limit():
    assert [len(choose_held_out(n, None)) for n in (4, 10, 1000, 50_000)] == [0, 2, 200, 2000]
    chosen = choose_held_out(100, 30)
    assert len(set(chosen)) == 30
    assert (np.diff(chosen) > 0).all()
    assert 20 < np.mean(chosen) < 80
