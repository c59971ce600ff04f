"""Steps of a fit that need no estimator: start and view of the samples."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from notsorandom.data.rows import Array
from notsorandom.game.losses import LOSSES
from notsorandom.game.problem import Problem
from notsorandom.game.state import GameState
from notsorandom.kernel import LearnedKernel
from notsorandom.spaces.view import MAX_DIRECTIONS, ProjectedView, View
from notsorandom.tuning.choice import Choice, FitConfig

if TYPE_CHECKING:
    from notsorandom.estimators.resume import CheckpointFile, WarmStart
    from notsorandom.tuning.linear_part import LinearPart

# Width of the insensitive zone, in units of the targets' scale.
DEFAULT_EPSILON = 0.1
# Numbers and sums up to this, and at least its inverse, have squares that float32 can hold.
FLOAT32_LIMIT = 1e15


@dataclass(frozen=True)
class Start:
    """Where a fit begins: anew, from a checkpoint, or from the game of the last fit.

    Parameters
    ----------
    seed : int
        Seed of the whole fit.
    file : CheckpointFile, optional
    warm_start : WarmStart, optional
    description : dict of str to str, optional
        Parameters and data, if a later fit may continue this one; see `resume.describe_fit`.
    """

    seed: int
    file: CheckpointFile | None = None
    warm_start: WarmStart | None = None
    description: dict[str, str] | None = None

    @property
    def view(self) -> View | None:
        """The view of the last fit, if its game is continued."""
        return None if self.warm_start is None else self.warm_start.view

    def choice(self) -> Choice | None:
        """Return what trials had chosen; None if they are still to choose."""
        if self.file is not None and self.file.saved is not None:
            return self.file.restore_choice()
        return None if self.warm_start is None else self.warm_start.choice

    def state(self, view: View) -> GameState | None:
        """Return the state of the game to continue from; None for a new game."""
        if self.file is not None and self.file.saved is not None:
            return self.file.restore(view.space)
        return None if self.warm_start is None else self.warm_start.state


@dataclass(frozen=True)
class FinalFit:
    """What the final models are fitted to: the kernel of a view of the samples, and the problem.

    `held_out` has the indices of the rows that the game was not played on.
    """

    kernel: LearnedKernel
    view: View
    problem: Problem
    held_out: Array

    @property
    def game_problem(self) -> Problem:
        """The problem, in which the rows that were held out of the game weigh nothing."""
        return without_weight(self.problem, self.held_out)


@dataclass(frozen=True)
class Fit:
    """What a game is played on: configuration, view of the samples, problem.

    Parameters
    ----------
    config : FitConfig
    view : View
    problem : Problem
        Of the game: the rows that were held out weigh nothing.
    choice : Choice
    final_problem : Problem
        Of the final models, in the same view.
    held_out : ndarray of int
    linear : LinearPart, optional
    """

    config: FitConfig
    view: View
    problem: Problem
    choice: Choice
    final_problem: Problem
    held_out: Array
    linear: LinearPart | None = None

    @classmethod
    def of(
        cls, config: FitConfig, problem: Problem, view: View, choice: Choice, held_out: Array
    ) -> Fit:
        """Return the fit with what was chosen; configuration and view are of all candidates."""
        view = choice.view(view)
        config, viewed = choice.apply(config, view), problem.viewed(view)
        final_problem, part = viewed.with_C(choice.C), None
        game_problem = without_weight(final_problem, held_out)
        if choice.linear_c is not None:
            from notsorandom.tuning.linear_part import LinearPart  # needed with one only

            part = LinearPart.of(problem, view, viewed)
            game_problem = part.game_problem(game_problem, choice.linear_c)
        return cls(config, view, game_problem, choice, final_problem, held_out, part)

    def final(self, kernel: LearnedKernel) -> FinalFit:
        """Return what the final models of the game's kernel are fitted to."""
        if self.linear is None:
            return FinalFit(kernel, self.view, self.final_problem, self.held_out)
        extended = self.linear.extended(kernel, self.view, self.choice.linear_weight)
        problem = self.linear.problem.with_C(self.choice.C)
        return FinalFit(extended, self.linear.view, problem, self.held_out)


def without_weight(problem: Problem, indices: Array) -> Problem:
    """Return the problem with all rows, of which those at `indices` weigh nothing."""
    if not len(indices):
        return problem
    return replace(problem, rows=problem.rows.without_weight(indices))


def hold_out(config: FitConfig, problem: Problem) -> Array:
    """Return the indices of the rows that the game is not played on."""
    n_rows, size = len(problem.rows), config.calibration_size
    if size is not None and size > n_rows // 2:
        raise ValueError(
            f"calibration_size={size} is not allowed with {n_rows} different samples: it must be "
            f"at most half of them, {n_rows // 2}, or 'auto'."
        )
    if size == 0:
        return np.empty(0, dtype=int)
    from notsorandom.tuning.conformal import choose_held_out  # needed by fits only

    return choose_held_out(n_rows, size)


def set_epsilon(config: FitConfig, problem: Problem) -> tuple[float, Problem]:
    """Return the width of the insensitive zone, and the problem with it."""
    if config.epsilon is not None:
        return config.epsilon, problem
    epsilon = DEFAULT_EPSILON * problem.target_scale()
    if config.loss is LOSSES["epsilon_insensitive"]:
        problem = replace(problem, loss=replace(config.loss, epsilon=epsilon))  # type: ignore[call-arg]
    return epsilon, problem


def make_view(config: FitConfig, problem: Problem, rng: np.random.Generator) -> View:
    """Return the view of the samples that the game is played on, mostly in float32."""
    if config.C is not None:  # it must be precise enough for each of them
        problem = problem.with_C(max(config.C))
    space, offset = config.space.resolve(problem.rows, rng), problem.mean_target()
    dtype = "float32" if problem.fits_float32(FLOAT32_LIMIT, offset) else "float64"
    view = space.view(problem.rows, dtype, rng)
    if config.optional is not None:
        assert isinstance(view, ProjectedView)
        if not view.is_projected:
            view = replace(view, optional=config.optional)
        elif np.sum(~config.optional) <= MAX_DIRECTIONS:  # the others need no projection
            view = replace(view, basis=None, optional=config.optional).without_optional()
    if isinstance(view, ProjectedView) and view.is_projected and not config.chooses_directions:
        view = view.without_optional()
    return replace(view, given_space=space, given_dtype=problem.dtype, offset=offset)
