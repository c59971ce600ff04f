"""The number of features, chosen by trials."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from notsorandom.data.rows import Array
from notsorandom.spaces.base import FiniteSpace
from notsorandom.tuning.choice import FitConfig
from notsorandom.tuning.held_out import mean_gain
from notsorandom.tuning.trial_games import Contest
from notsorandom.tuning.trials import TrialLosses, Trials
from notsorandom.tuning.tune import ALL_FREQUENCIES, first_features, usual_size

# For "auto": twice as many features must reduce the held-out loss by this many standard errors, and
# by this share of it. On held-out training rows of eight regressions, one standard error loses 1 %
# on three, and a quarter gains nothing (benchmarks/peers.py --validation).
GROWTH_ERRORS, GROWTH_SHARE = 0.5, 0.01
# Growth ends where this many doublings with the last gain would not reach a rival's loss.
MOST_DOUBLINGS = 3
# For "smallest": numbers of frequencies that are compared. The least is taken whose loss exceeds
# the smallest one by no more than a share of its standard error, or of itself.
TRIAL_SIZES, SIZE_TOLERANCE = (4, 8, 12, 16, 24, 32, 48, 64), (0.5, 0.005)

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
        With a `size` of "auto" or "smallest".
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
    if isinstance(config.space, FiniteSpace):
        chosen, reason = 0, "the usual number; sizes are not compared on finite spaces"
    elif config.size == "auto":
        chosen, reason = grow(curve, config, trials, contest, evaluate, rival)
    else:
        chosen, reason = shrink(curve, config, trials, contest.features, evaluate)
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
    """Double the number of features while that clearly reduces the loss.

    Returns the number of the best size in the curve, and the reason.
    """
    n_columns, n_rows = config.space.n_columns(config.phase), int(trials.masks.sum(axis=1).min())
    while True:
        size, losses = curve[-1]
        n_frequencies = trials.reduced(2 * size // n_columns)
        if 2 * size > config.n_components:
            return len(
                curve
            ) - 1, f"twice as many are more than max_components={config.n_components}"
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


def shrink(
    curve: Sizes,
    config: FitConfig,
    trials: Trials,
    features: Array,
    evaluate: Callable[[Array, tuple[float, ...]], TrialLosses],
) -> tuple[int, str]:
    """Compare smaller numbers of features; the least is taken that is about as good as the best.

    Returns its number in the curve, and the reason.
    """
    C = (float(curve[0][1].best_C(between=config.C is None)[0]),)
    n_columns = config.space.n_columns(config.phase)
    growth = ALL_FREQUENCIES / trials.reduced(ALL_FREQUENCIES)  # the fit has more rows
    curve.clear()
    for n_frequencies in (*TRIAL_SIZES, features.shape[-1]):
        if n_frequencies > features.shape[-1]:
            continue
        part = first_features(features, n_frequencies)
        n_found = np.any(part != 0, axis=2).sum(axis=-1).mean()  # some columns are zero
        size = n_columns * max(1, math.ceil(growth * float(n_found) / n_columns))
        curve.append((min(size, config.n_components), evaluate(part, C)))
        if size >= config.n_components:
            break
    best = min((losses for _, losses in curve), key=lambda each: each.means[0, 0])
    chosen = next(number for number, each in enumerate(curve) if is_close(each[1], best))
    return chosen, f"the least of {len(curve)} sizes whose held-out loss is about the lowest"


def is_close(losses: TrialLosses, best: TrialLosses) -> bool:
    """Whether the losses of a size are about the losses of the best one."""
    in_errors, in_losses = SIZE_TOLERANCE
    gain, error = mean_gain(losses.losses[0, 0], best.losses[0, 0], best.counts)
    return gain <= in_errors * error or bool(
        losses.means[0, 0] <= (1 + in_losses) * best.means[0, 0]
    )
