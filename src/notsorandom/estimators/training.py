"""The steps of a fit after validation: smoothing, game, kernel, linear models."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from notsorandom.data.rows import Array, Rows
from notsorandom.estimators.config import AutoSmoothing, EquilibriumSolver, FitConfig
from notsorandom.game.dual import DualProblem
from notsorandom.game.loop import GameLoop
from notsorandom.game.result import GameResult, GameState
from notsorandom.kernel import LearnedKernel
from notsorandom.linear.newton import solve_tasks
from notsorandom.search import Ascent, Enumerate
from notsorandom.search.base import Search
from notsorandom.spaces.base import ResolvedSpace

# Relative duality gap of the final linear models: far less than what changes their accuracy.
DUALITY_GAP = 1e-3
# Relative duality gap of the linear models that are compared to choose the smoothing.
TRIAL_GAP = 1e-2
# Features of more bytes than this are computed again in every pass.
FEATURE_BYTES = 2**26
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


@contextmanager
def progress_bar(total: int, title: str, verbose: int) -> Iterator[Callable[..., None]]:
    """Yield the update function of a progress bar, which does nothing unless `verbose`."""
    if not verbose:
        yield lambda *args: None
        return
    from notsorandom._utils.progress import Progress

    with Progress(total, title) as bar:
        yield bar.update


def choose_search(config: FitConfig, space: ResolvedSpace) -> Search:
    """Return the configured search, or the one that suits the space."""
    if config.search is not None:
        return config.search
    return Ascent() if space.kind == "continuous" else Enumerate()


def play_game(
    config: FitConfig,
    problem: DualProblem,
    smoothing: float,
    rng: np.random.Generator,
    callback: Callable[[GameLoop], bool] | None = None,
    state: GameState | None = None,
    verbose: int = 0,
) -> GameResult:
    """Solve the game for `config.n_components` real features, or continue it from a state.

    `callback` is called after each round; the game ends if it returns True.
    """
    space = config.space.resolve(problem.rows, rng) if state is None else state.space
    if isinstance(config.solver, EquilibriumSolver):
        from notsorandom.game.reweighting import solve_equilibrium

        with progress_bar(1, "equilibrium", verbose) as update:
            return solve_equilibrium(
                problem,
                space=space,
                n_frequencies=config.n_components,
                phase=config.phase,
                smoothing=smoothing,
                callback=lambda gap: update(0, f"gap {gap:.1e}"),
            )
    solver, n_columns = config.solver, space.n_columns(config.phase)
    loop = GameLoop(
        problem,
        space=space,
        search=choose_search(config, space),
        n_frequencies=config.n_components // n_columns,
        n_rounds=None if solver.n_rounds == "auto" else int(solver.n_rounds),
        rng=rng,
        phase=config.phase,
        smoothing=smoothing,
        learning_rate=solver.learning_rate,
        projection=solver.projection,
        state=state,
    )
    stopped = False
    with progress_bar(config.n_components, "features", verbose) as update:
        while not stopped and (record := loop.play_round()) is not None:
            update(record.n_frequencies * n_columns, f"potential {record.potential:.2e}")
            stopped = callback is not None and callback(loop)
    result = loop.result()
    return replace(result, status="stopped") if stopped else result


def kernel_before_reweighting(config: FitConfig, result: GameResult) -> LearnedKernel:
    """Return the kernel of a game's result, before any reweighting."""
    if isinstance(config.solver, EquilibriumSolver):
        return result.kernel()
    return result.kernel(config.solver.weighting)


def learn_kernel(config: FitConfig, problem: DualProblem, result: GameResult) -> LearnedKernel:
    """Return the kernel of a game's result, reweighted if configured."""
    kernel = kernel_before_reweighting(config, result)
    if isinstance(config.solver, EquilibriumSolver) or not config.solver.reweight:
        return kernel
    from notsorandom.game.reweighting import reweight

    return reweight(kernel, problem)[0]


def fit_linear_models(
    kernel: LearnedKernel,
    problem: DualProblem,
    tol: float = DUALITY_GAP,
    callback: Callable[[int], Any] | None = None,
    feature_bytes: int = FEATURE_BYTES,
) -> tuple[Array, Array, float]:
    """Fit one linear model per task to a kernel's features, held in memory if they fit.

    Returns
    -------
    coef : ndarray of shape (n_tasks, n_features)
    intercept : ndarray of shape (n_tasks,)
    gap : float
        The largest of the relative duality gaps.
    """
    rows, n_features = problem.rows, kernel.n_components
    fits = len(rows) * n_features * rows.dtype.itemsize <= feature_bytes
    if rows.is_local and fits and rows.pool is None:
        return solve_tasks(kernel.features_of(rows), problem, tol, callback)
    from notsorandom.linear.streaming import sample_size, solve_streaming

    if not (rows.is_local and fits):
        return solve_streaming(problem, kernel.feature_map, n_features, tol, callback, kernel.width)
    features = kernel.features_of(rows)
    if len(rows) <= sample_size(n_features, rows.dtype):
        return solve_tasks(features, problem, tol, callback)
    # Features are computed once; products with them are shared among the threads.
    held = replace(problem, rows=Rows(features, problem.weights, rows.pool))
    return solve_streaming(held, lambda dtype: lambda block: block, n_features, tol, callback)


# Smoothing.


def choose_smoothing(
    config: FitConfig, problem: DualProblem, rng: np.random.Generator, verbose: int = 0
) -> float:
    """Compare candidates of the smoothing by short games on a part of the training data."""
    settings = config.smoothing
    if not isinstance(settings, AutoSmoothing):
        return settings
    seed = int(rng.integers(2**63))
    if len(problem.rows) <= settings.max_rows:
        indices = rng.permutation(len(problem.rows))
    else:
        indices = rng.choice(len(problem.rows), size=settings.max_rows, replace=False)
    subsample = problem.take(indices)
    config = configure_trial(config, settings, subsample, seed)
    splits = split_for_trials(problem, subsample, rng)
    candidates = [float(candidate) for candidate in settings.candidates]
    if not splits or len(candidates) == 1:
        return candidates[0]
    counts = np.concatenate([subsample.counts[test] for _, test in splits]).astype(np.float64)

    def trial_errors(train: Array, test: Array, smoothing: float) -> Array:
        part, held_out = subsample.take(train), subsample.take(test)
        # The same seed for all candidates: they differ only in the smoothing.
        result = play_game(config, part, smoothing, np.random.default_rng(seed))
        kernel = learn_kernel(config, part, result)
        coef, intercept, _ = solve_tasks(kernel.features_of(part.rows), part, TRIAL_GAP)
        return held_out.errors(kernel.scores(held_out.rows, coef, intercept))

    cross_validated = len(problem.rows) <= CROSS_VALIDATED_ROWS
    threshold = MIN_STANDARD_ERRORS if problem.loss.one_sided and not cross_validated else 0.0
    best, best_errors = candidates[0], np.empty(0)
    with progress_bar(len(candidates), "smoothing", verbose) as update:
        for number, candidate in enumerate(candidates):
            errors = np.concatenate(
                [trial_errors(train, test, candidate) for train, test in splits]
            ).astype(float)
            update(number + 1)
            if number == 0:
                best_errors = errors
                continue
            gain = np.average(best_errors - errors, weights=counts)
            deviation = np.sqrt(np.average((best_errors - errors - gain) ** 2, weights=counts))
            standard_error = deviation / np.sqrt(counts.sum())
            if gain > threshold * standard_error:
                best, best_errors = candidate, errors
            elif candidate > best and gain < -MIN_STANDARD_ERRORS * standard_error:
                break  # clearly worse, and more smoothing would be worse still
    return best


def configure_trial(
    config: FitConfig, settings: AutoSmoothing, problem: DualProblem, seed: int
) -> FitConfig:
    """Return the configuration of the short games that compare candidates."""
    solver = config.solver
    if isinstance(solver, EquilibriumSolver):
        return config
    n_components = settings.n_components * config.space.n_columns(config.phase)
    space = config.space.resolve(problem.rows, np.random.default_rng(seed))
    if space.kind == "finite":
        n_components = sys.maxsize  # a frequency can be found again, so rounds are limited instead
    parameters = solver.get_params() | {"n_rounds": settings.n_components}
    return replace(config, solver=type(solver)(**parameters), n_components=n_components)


def split_for_trials(
    problem: DualProblem, subsample: DualProblem, rng: np.random.Generator
) -> list[tuple[Array, Array]]:
    """Return pairs of training and test indices; none if a class has too few samples."""
    codes, counts = subsample.strata(), subsample.counts
    if np.bincount(codes, minlength=problem.n_strata).min() < MIN_CLASS_SAMPLES:
        return []
    cross_validated = len(problem.rows) <= CROSS_VALIDATED_ROWS
    parts = assign_folds(codes, counts, N_FOLDS if cross_validated else 2, rng)
    splits = [
        (np.flatnonzero(parts != part), np.flatnonzero(parts == part)) for part in np.unique(parts)
    ]
    if not cross_validated:
        del splits[1:]
    # A class may have nearly all its weight on one sample, and be missing from a training part.
    complete = all(len(np.unique(codes[train])) == problem.n_strata for train, _ in splits)
    return splits if complete else []


# Stratified splits.


def assign_folds(codes: Array, weights: Array, n_folds: int, rng: np.random.Generator) -> Array:
    """Return the fold of each sample, from 0; folds have about equal weight of every class."""
    return (n_folds * (cumulative_shares(codes, weights, rng) + ROUNDING)).astype(int)


def hold_out(codes: Array, weights: Array, share: float, rng: np.random.Generator) -> Array:
    """Return a mask of about `share` of the weight of every class; never all of a class."""
    shares = cumulative_shares(codes, weights, rng)
    return (shares > 0) & (shares > (1 - share) - ROUNDING)


def cumulative_shares(codes: Array, weights: Array, rng: np.random.Generator) -> Array:
    """Shuffle each class, and return the share of its weight that precedes each sample."""
    result = np.empty(len(codes))
    for code in np.unique(codes):
        members = rng.permutation(np.flatnonzero(codes == code))
        weight = weights[members].astype(np.float64)
        result[members] = (np.cumsum(weight) - weight) / weight.sum()
    return result
