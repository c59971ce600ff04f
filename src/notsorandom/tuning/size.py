"""The number of features, chosen by trials."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from notsorandom.data.rows import Array
from notsorandom.spaces.base import FiniteSpace
from notsorandom.tuning.choice import FitConfig
from notsorandom.tuning.held_out import mean_gain
from notsorandom.tuning.trial_games import Contest
from notsorandom.tuning.trials import TrialLosses, Trials
from notsorandom.tuning.tune import usual_size

# Twice as many features must reduce the held-out loss by this many standard errors, and
# by this share of it. On held-out training rows of eight regressions, one standard error loses 1 %
# on three, and a quarter gains nothing (benchmarks/peers.py --validation).
GROWTH_ERRORS, GROWTH_SHARE = 0.5, 0.01
# Growth ends where this many doublings with the last gain would not reach a rival's loss.
MOST_DOUBLINGS = 3

Sizes = list[tuple[int, TrialLosses]]  # numbers of features of a fit, with the losses of trials


def choose_size(
    config: FitConfig,
    trials: Trials,
    contest: Contest,
    losses: TrialLosses,
    evaluate: Callable[[Array, tuple[float, ...]], TrialLosses],
    rival: TrialLosses | None = None,
) -> tuple[int, TrialLosses, dict[str, Array], str]:
    """Choose the number of features of a fit.

    Parameters
    ----------
    config : FitConfig
    trials : Trials
    contest : Contest
        With one candidate, after its usual number of frequencies.
    losses : TrialLosses
        The losses of this candidate.
    evaluate : callable
        Evaluates models with several values of `C` on features.
    rival : TrialLosses, optional
        Losses that must be reached: growth ends where that is out of reach.

    Returns
    -------
    size : int
    losses : TrialLosses
        The losses of the trial with this size.
    curve : dict of str to ndarray
        Attributes of the estimator with all sizes that were compared.
    reason : str
        Why no other size was taken.
    """
    curve: Sizes = [(usual_size(config), losses)]
    chosen, reason = grow(curve, config, trials, contest, evaluate, rival)
    lowest = [(each, int(each.means[0].argmin())) for _, each in curve]
    attributes = {
        "validation_sizes_": np.array([size for size, _ in curve]),
        "validation_losses_": np.array([each.means[0, number] for each, number in lowest]),
        "validation_scores_": np.array([each.scores[0, number] for each, number in lowest]),
    }
    return *curve[chosen], attributes, reason


def grow(
    curve: Sizes,
    config: FitConfig,
    trials: Trials,
    contest: Contest,
    evaluate: Callable[[Array, tuple[float, ...]], TrialLosses],
    rival: TrialLosses | None,
) -> tuple[int, str]:
    """Double the number of features while it pays; return the best one's place, and a reason."""
    if isinstance(config.space, FiniteSpace):
        return 0, "the usual number; sizes are not compared on finite spaces"
    n_columns, n_rows = config.space.n_columns(config.phase), int(trials.masks.sum(axis=1).min())
    while True:
        size, losses = curve[-1]
        n_frequencies = trials.reduced(2 * size // n_columns)
        if 2 * size > config.n_components:
            reason = f"twice as many are more than max_components={config.n_components}"
            return len(curve) - 1, reason
        if n_frequencies > n_rows:
            return len(curve) - 1, "twice as many are more than the rows of the trials"
        contest.play(n_frequencies)
        number = int(losses.means[0].argmin())
        near = losses.C[0, max(number - 1, 0) : number + 2]
        if contest.candidates[0].linear:  # whose models take longer, and `C` differs less
            near = losses.C[0, [number]]
        at_C = partial(evaluate, contest.features)
        more = trials.search_C(at_C, tuple(near.tolist()), config.extends_C)
        curve.append((2 * size, more))
        gain, error = mean_gain(losses.lowest, more.lowest, losses.counts)
        loss = float(losses.means[0].min())
        if not gain > max(GROWTH_ERRORS * error, GROWTH_SHARE * loss):
            change = f"{-gain:+.2g}, standard error {error:.1g}"
            return len(curve) - 2, f"{2 * size} change the held-out loss of {loss:.3g} by {change}"
        if rival is not None and loss - gain - rival.means[0].min() > MOST_DOUBLINGS * gain:
            return len(curve) - 1, "more would not reach the loss with a linear part"
