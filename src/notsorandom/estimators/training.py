"""The steps of a fit after validation: view of the samples, game, kernel, linear models."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from notsorandom.data.rows import Array
from notsorandom.estimators.config import EquilibriumSolver, FitConfig
from notsorandom.estimators.validation import TrainingData
from notsorandom.game.dual import DualProblem
from notsorandom.game.loop import GameLoop
from notsorandom.game.result import GameResult, GameState
from notsorandom.kernel import LearnedKernel, normalized
from notsorandom.linear.newton import solve_tasks
from notsorandom.search import Ascent, Enumerate
from notsorandom.search.base import Search
from notsorandom.spaces.base import ResolvedSpace, Space
from notsorandom.spaces.view import View, round_to_float32

# Relative duality gap of the final linear models: far less than what changes their accuracy.
DUALITY_GAP = 1e-3
# Features of more bytes than this are computed again in every pass.
FEATURE_BYTES = 2**28
# Numbers and sums between the inverse of this and it are safe in float32, and so are squares.
FLOAT32_LIMIT = 1e15


@dataclass(frozen=True)
class Preparation:
    """The training problem as the game is played on it, and the way back to the samples.

    Parameters
    ----------
    space : ResolvedSpace
        The space of the samples as they were given.
    view : View
        The samples as the game uses them, mostly in float32.
    offset : ndarray of shape (n_tasks,)
        The mean of real targets, which the game doesn't need; zero for classes.
    """

    space: ResolvedSpace
    view: View
    offset: Array

    @classmethod
    def of(cls, space: Space, problem: DualProblem, rng: np.random.Generator) -> Preparation:
        """Return the preparation of a training problem."""
        resolved, offset = space.resolve(problem.rows, rng), problem.mean_target()
        fits = problem.fits_float32(FLOAT32_LIMIT, offset)
        dtype = "float32" if fits else "float64"
        return cls(resolved, resolved.view(problem.rows, dtype, rng), offset)

    def apply(self, problem: DualProblem) -> DualProblem:
        """Return the problem as the game is played on it."""
        dtype, offset = self.view.dtype, self.offset
        targets = problem.rows.columns_only.map(
            lambda _, t: (t - offset).astype(dtype), problem.targets
        )
        return DualProblem(problem.loss, targets, self.view.apply(problem.rows))

    def restore(self, kernel: LearnedKernel, dtype: Any) -> LearnedKernel:
        """Return a kernel of the view as a kernel of the samples, in their floating point type."""
        frequencies = self.view.restore(kernel.frequencies)
        if frequencies.dtype.kind == "f":
            frequencies = round_to_float32(frequencies).astype(dtype)
        parts = {name: getattr(kernel, name).astype(dtype) for name in ("phases", "scales")}
        return replace(
            kernel,
            space=self.space,
            frequencies=frequencies,
            weights=normalized(kernel.weights.astype(np.float64)).astype(dtype),
            **parts,
        )


@dataclass(frozen=True)
class FitData:
    """The data of a fit."""

    dtype: np.dtype[Any]  # of the samples as they were given
    preparation: Preparation
    data: TrainingData  # as the game uses it
    training: TrainingData  # the part of it that is not held out


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
        from notsorandom.search.thorough import find_highest

        with progress_bar(1, "equilibrium", verbose) as update:
            return solve_equilibrium(
                problem,
                space=space,
                n_frequencies=config.n_components // space.n_columns(config.phase),
                phase=config.phase,
                smoothing=smoothing,
                find_peaks=lambda *given: find_highest(*given).points,
                rng=rng,
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
    scale = problem.power_of_scale()
    problem = problem.rescaled(scale)
    if rows.is_local and len(rows) * n_features * rows.dtype.itemsize <= feature_bytes:
        coef, intercept, gap = solve_tasks(kernel.features_of(rows), problem, tol, callback)
    else:
        from notsorandom.linear.streaming import solve_streaming

        coef, intercept, gap = solve_streaming(
            problem, kernel.feature_map, n_features, tol, callback, kernel.width
        )
    return scale * coef, scale * intercept, gap
