"""Choose the smoothing by trial games on a part of the training data."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np

from notsorandom.data.array_api import to_host
from notsorandom.data.rows import Array
from notsorandom.estimators.config import AutoSmoothing, FitConfig, GradientSolver
from notsorandom.estimators.training import learn_kernel, play_game, progress_bar
from notsorandom.estimators.trials import TrialGames
from notsorandom.game.dual import DualProblem
from notsorandom.linear.newton import solve_tasks
from notsorandom.spaces import Euclidean
from notsorandom.spaces.base import FiniteSpace

# Relative duality gap of the linear models of games that are played one by one.
ONE_BY_ONE_GAP = 1e-2
# Up to this many samples the smoothing is chosen by cross-validation with N_FOLDS folds, and the
# best candidate is taken as it is: small data are often noisy. Above, one split is used.
CROSS_VALIDATED_ROWS, N_FOLDS = 1024, 4
# Above that many samples, in classification, another candidate must beat the best so far by this
# many standard errors: smaller differences are less than those between random starts.
MIN_STANDARD_ERRORS = 2.0
# With fewer samples of the smallest class, the first candidate is taken.
MIN_CLASS_SAMPLES = 8
# Tolerance for rounding errors in cumulative shares.
ROUNDING = 1e-12


def choose_smoothing(
    config: FitConfig,
    settings: AutoSmoothing,
    problem: DualProblem,
    rng: np.random.Generator,
    verbose: int = 0,
) -> float:
    """Compare candidates of the smoothing by short games on a part of the training data.

    The games have the default solver and search (on R^d with fewer steps, and aligned phases),
    whatever the estimator's own: the smoothing depends on the data.
    """
    candidates = np.array([float(candidate) for candidate in settings.candidates])
    n_rows = len(problem.rows)
    if n_rows <= settings.max_rows:
        indices = rng.permutation(n_rows)
    else:
        indices = rng.choice(n_rows, size=settings.max_rows, replace=False)
    subsample = problem.take(indices)
    cross_validated = n_rows <= CROSS_VALIDATED_ROWS
    masks = split_for_trials(subsample, cross_validated, rng)
    if not len(masks) or len(candidates) == 1:
        return float(candidates[0])
    with progress_bar(1, "smoothing", verbose) as update:
        if isinstance(config.space, Euclidean):
            errors = play_at_once(settings.n_components, subsample, masks, candidates, rng)
        else:
            errors = play_one_by_one(
                config, settings.n_components, subsample, masks, candidates, rng
            )
        update(1)
    counts = np.concatenate([subsample.counts[~mask] for mask in masks]).astype(np.float64)
    has_threshold = problem.loss.one_sided and not cross_validated
    return select_candidate(candidates, errors, counts, MIN_STANDARD_ERRORS * has_threshold)


def play_at_once(
    n_frequencies: int,
    problem: DualProblem,
    masks: Array,
    candidates: Array,
    rng: np.random.Generator,
) -> Array:
    """Return the errors of held-out samples for each candidate, (n_candidates, n_held_out)."""
    rows = replace(problem.rows, array=to_host(problem.rows.array))
    games = TrialGames(
        replace(problem, rows=rows),
        masks=np.repeat(masks, len(candidates), axis=0),
        smoothing=np.tile(candidates, len(masks)),
        n_frequencies=n_frequencies,
    )
    errors = games.errors(rng).reshape(len(masks), len(candidates), -1)
    parts = [part[:, ~mask] for part, mask in zip(errors, masks, strict=True)]
    return np.concatenate(parts, axis=1).astype(np.float64)


def play_one_by_one(
    config: FitConfig,
    n_frequencies: int,
    problem: DualProblem,
    masks: Array,
    candidates: Array,
    rng: np.random.Generator,
) -> Array:
    """Return the same as :func:`play_at_once`, for spaces other than R^d."""
    solver = GradientSolver(n_rounds=n_frequencies)
    n_components = n_frequencies * config.space.n_columns(config.phase)
    if isinstance(config.space, FiniteSpace):
        n_components = sys.maxsize  # a frequency can be found again, so rounds are limited instead
    config = replace(config, solver=solver, search=None, n_components=n_components)
    seed = int(rng.integers(2**63))

    def trial_errors(mask: Array, smoothing: float) -> Array:
        part, held_out = problem.take(np.flatnonzero(mask)), problem.take(np.flatnonzero(~mask))
        # The same seed for all candidates: they differ only in the smoothing.
        result = play_game(config, part, smoothing, np.random.default_rng(seed))
        kernel = learn_kernel(config, part, result)
        coef, intercept, _ = solve_tasks(kernel.features_of(part.rows), part, ONE_BY_ONE_GAP)
        return held_out.errors(kernel.scores(held_out.rows, coef, intercept))

    return np.stack(
        [
            np.concatenate([trial_errors(mask, float(candidate)) for mask in masks])
            for candidate in candidates
        ]
    ).astype(np.float64)


def select_candidate(candidates: Array, errors: Array, counts: Array, threshold: float) -> float:
    """Return the best candidate; one that replaces another must win by some standard errors."""
    best = 0
    for number in range(1, len(candidates)):
        gains = errors[best] - errors[number]
        gain = np.average(gains, weights=counts)
        deviation = np.sqrt(np.average((gains - gain) ** 2, weights=counts))
        standard_error = deviation / np.sqrt(counts.sum())
        if gain > threshold * standard_error:
            best = number
        elif candidates[number] > candidates[best] and gain < -MIN_STANDARD_ERRORS * standard_error:
            break  # clearly worse, and more smoothing would be worse still
    return float(candidates[best])


def split_for_trials(
    problem: DualProblem, cross_validated: bool, rng: np.random.Generator
) -> Array:
    """Return masks of training rows; none if a class has too few samples."""
    codes, counts = problem.strata(), problem.counts
    if np.bincount(codes, minlength=problem.n_strata).min() < MIN_CLASS_SAMPLES:
        return np.empty((0, len(codes)), dtype=bool)
    folds = assign_folds(codes, counts, N_FOLDS if cross_validated else 2, rng)
    masks = np.stack([folds != fold for fold in np.unique(folds)])
    masks = masks if cross_validated else masks[:1]
    # A class may have nearly all its weight on one sample, and be missing from a training part.
    complete = all(len(np.unique(codes[mask])) == problem.n_strata for mask in masks)
    return masks if complete else masks[:0]


# Stratified splits.


def assign_folds(codes: Array, weights: Array, n_folds: int, rng: np.random.Generator) -> Array:
    """Return the fold of each sample, from 0; folds have about equal weight of every class."""
    return (n_folds * (cumulative_shares(codes, weights, rng) + ROUNDING)).astype(int)


def hold_out(codes: Array, weights: Array, share: float, rng: np.random.Generator) -> Array:
    """Return a mask of about `share` of the weight of every class; never all of a class."""
    shares = cumulative_shares(codes, weights, rng)
    return (shares > 0) & (shares > (1 - share) - ROUNDING)


def validation_mask(problem: DualProblem, share: float, rng: np.random.Generator) -> Array:
    """Return a mask of samples to validate on; raise ValueError if there are none."""
    mask = hold_out(problem.strata(), problem.counts, share, rng)
    if not mask.any():
        raise ValueError(
            f"validation_fraction={share} of {len(problem.rows)} different samples leaves none "
            "to validate on: give more samples, a larger fraction, or a number for n_components."
        )
    return mask


def cumulative_shares(codes: Array, weights: Array, rng: np.random.Generator) -> Array:
    """Shuffle each class, and return the share of its weight that precedes each sample."""
    result = np.empty(len(codes))
    for code in np.unique(codes):
        members = rng.permutation(np.flatnonzero(codes == code))
        weight = weights[members].astype(np.float64)
        result[members] = (np.cumsum(weight) - weight) / weight.sum()
    return result
