"""The plan of the trials: choose C, smoothing and spectrum on a part of the training data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from notsorandom._utils.progress import progress_bar, show_line
from notsorandom.data.rows import Array
from notsorandom.game.problem import Problem
from notsorandom.spaces.view import View
from notsorandom.tuning.choice import AUTO_C, Candidate, Choice, FitConfig
from notsorandom.tuning.held_out import weight_unit
from notsorandom.tuning.linear_trials import LinearTrial, try_linear
from notsorandom.tuning.trial_games import Contest, start_contest
from notsorandom.tuning.trials import LEAST_FREQUENCIES, TrialLosses, Trials, start_trials

# All trial games have LEAST_FREQUENCIES, the best N_FINALISTS about ALL_FREQUENCIES. They
# don't depend on the number of features of the fit, so that the chosen spectrum and smoothing
# don't; C and temperature do, unless a fit can be continued.
ALL_FREQUENCIES, N_FINALISTS = 100, 3
# Rounds on finite spaces, where all candidates play all rounds.
ROUNDS = 32
# Smoothing and spectrum are compared at the better one of these values of C.
FIRST_C = (0.3, 30.0)
# Then N_C values between these limits are tried, and the loss is interpolated between them. With a
# `C` less than LEAST_TOTAL over the total weight, the game would find the same features again.
MIN_C, USUAL_MAX_C, N_C, LEAST_TOTAL = 0.03, 3000.0, 6, 100.0
# The most for solvers whose time grows with `C`.
MAX_EQUILIBRIUM_C = 30.0
# Features with n_components="auto" where nothing can be compared.
USUAL_SIZE = 100


def tune(
    config: FitConfig,
    problem: Problem,
    view: View,
    rng: np.random.Generator,
    verbose: int = 0,
) -> Choice:
    """Compare candidates of spectrum, smoothing and `C` by short games on a part of the data.

    The configuration is in the coordinates of the view, the problem is as it was given.

    Each game is followed by linear models with several values of `C`, whose held-out loss decides:
    the log loss at the best temperature for classes, the squared error or pinball loss for real
    targets. The games have the default solver and search (with fewer steps and aligned phases if
    they are played at once), whatever the estimator's own: the choice depends on the data.
    """
    candidates, given_C = list(config.candidates), config.C or ()
    has_choice = len(candidates) > 1 or len(given_C) != 1 or config.linear
    if not (has_choice or config.calibrated or config.size != "given"):
        return Choice(candidates[0], given_C[0])
    first_C, last_C, usual_C = candidates_of_C(config, problem)
    default = Choice(
        candidates[0]._replace(linear=bool(config.linear)),
        C=given_C[0] if given_C else usual_C,
        n_components=None if config.size == "given" else usual_size(config),
        linear_c=usual_C if config.linear else None,
        linear_weight=1.0 if config.linear else 0.0,
    )
    # The games depend little on `C`, and not on the order of the candidates.
    game_C = min(max(usual_C, min(last_C)), max(last_C))
    trials = start_trials(problem, view, game_C, rng)
    if trials is None:
        return default
    is_finite = view.space.kind == "finite"
    stages = [(ROUNDS, 1)] if is_finite else plan_stages(config, trials)
    contest = start_contest(config, trials.problem, trials.masks, candidates, view.optional, rng)
    tables, reached = [], np.inf
    with progress_bar(len(stages), "tuning", verbose) as update:
        for number, (n_frequencies, n_kept) in enumerate(stages):
            contest.play(n_frequencies)
            if len(contest.candidates) > n_kept:
                losses = trials.evaluate(contest.features, first_C)
                reached = float(losses.means.min())
                tables.append(losses.table(contest, n_frequencies))
                min_errors = [trials.min_errors(each, view) for each in contest.candidates]
                contest.keep(losses.best_candidates(n_kept, min_errors))
            update(number + 1)
    winner, linear = contest.candidates[0], None
    has_columns = winner.uses_optional or view.is_projected  # all that a linear part has
    if config.linear or (config.linear is None and has_columns):
        linear = try_linear(trials, view, usual_C)
    plan = FinalPlan(config, trials, linear, last_C)
    finalists: list[Finalist] = []
    # With a linear part first: it shows what waves alone would have to reach.
    if linear and (config.linear or linear.loss <= reached):
        finalists.append(plan.finish(contest.with_linear_part(linear.game_scores), is_finite))
    if not (config.linear and finalists):
        rival = finalists[0].losses if finalists else None
        finalists.append(plan.finish(contest, is_finite, rival))
    chosen = finalists[-1]
    if len(finalists) > 1:
        least = trials.min_errors(chosen.candidate, view)
        if finalists[0].losses.beats(chosen.losses, least):
            chosen = finalists[0]
    if verbose and chosen.reason:
        show_line(f"{chosen.size} features: {chosen.reason}")
    tables += [each.table for each in finalists]
    C, temperature = chosen.losses.best_C(between=config.C is None)
    table = {name: np.concatenate([each[name] for each in tables]) for name in tables[0]}
    linear_c = linear.C if linear and chosen.candidate.linear else None
    choice = Choice(
        chosen.candidate,
        C,
        temperature,
        table,
        chosen.size,
        chosen.sizes,
        linear_c,
        linear_weight=float(chosen.losses.weights[0, 0]),
    )
    if not config.calibrated:
        return choice
    losses = chosen.losses
    return replace(choice, held_out_losses=losses.lowest, held_out_counts=losses.counts)


@dataclass(frozen=True)
class Finalist:
    """A candidate at the end of the trials.

    Parameters
    ----------
    candidate : Candidate
    losses : TrialLosses
        Of its values of `C`, with the chosen number of features.
    table : dict of str to ndarray
    size : int, optional
        The number of features, if it is chosen.
    sizes : dict of str to ndarray, optional
    reason : str
        Why no other size was taken.
    """

    candidate: Candidate
    losses: TrialLosses
    table: dict[str, Array]
    size: int | None = None
    sizes: dict[str, Array] | None = None
    reason: str = ""


@dataclass(frozen=True, eq=False)
class FinalPlan:
    """What is left to choose of a finalist: `C`, the weight of a linear part, and the size."""

    config: FitConfig
    trials: Trials
    linear: LinearTrial | None
    C: tuple[float, ...]  # of candidates without a linear part

    def finish(
        self, contest: Contest, is_finite: bool, rival: TrialLosses | None = None
    ) -> Finalist:
        """Choose what is left for the only candidate of a contest.

        Features are not added to it any more if that could not reach the losses of a rival.
        """
        config, (candidate,), features = self.config, contest.candidates, contest.features
        if not is_finite and config.size == "given" and not config.warm_start:
            features = first_features(features, self.trials.reduced(config.n_frequencies))
        evaluate = self.trials.evaluate
        if candidate.linear and self.linear is not None:
            losses = self.linear.choose_weight(features, config)
            evaluate = partial(self.linear.evaluate, weight=float(losses.weights[0, 0]))
        else:
            losses = self.trials.search_C(partial(evaluate, features), self.C, config.extends_C)
        table = losses.table(contest, features.shape[-1])
        if config.size == "given":
            return Finalist(candidate, losses, table)
        from notsorandom.tuning.size import choose_size

        size, losses, sizes, reason = choose_size(
            config, self.trials, contest, losses, evaluate, rival
        )
        return Finalist(candidate, losses, table, size, sizes, reason)


def usual_size(config: FitConfig) -> int:
    """Return the number of features where nothing can be compared."""
    return min(config.n_components, USUAL_SIZE)


def candidates_of_C(
    config: FitConfig, problem: Problem
) -> tuple[tuple[float, ...], tuple[float, ...], float]:
    """Return the values of `C` to compare candidates at, the values to choose from, and one."""
    unit = weight_unit(len(problem.rows), problem.total_weight)
    lowest = MIN_C
    if problem.loss.one_sided:
        lowest = min(max(MIN_C, LEAST_TOTAL / (unit * problem.total_weight)), 1.0)
    unit *= problem.loss.unit(problem.target_scale())
    highest = MAX_EQUILIBRIUM_C if config.solver.computes_equilibrium else USUAL_MAX_C
    grids = FIRST_C, np.geomspace(lowest, highest, N_C)
    first_C, last_C = (config.C or tuple(C * unit for C in grid) for grid in grids)
    return first_C, last_C, AUTO_C * unit


def first_features(features: Array, n_features: int) -> Array:
    """Return the first features, with weights of a total of one as in a game.

    Their weight in all features is about their share of the sum of squares.
    """
    if n_features >= features.shape[-1]:
        return features
    squares = np.square(features).sum(axis=-2)  # (..., n_features)
    part = squares[..., :n_features].sum(axis=-1)
    growth = np.sqrt(squares.sum(axis=-1) / np.where(part > 0, part, 1))
    return features[..., :n_features] * growth[..., None, None]


def plan_stages(config: FitConfig, trials: Trials) -> list[tuple[int, int]]:
    """Return, for each stage, the frequencies of each game at its end and the candidates kept.

    A few features tell which candidates are good. The best of them is found with about as many as
    usual. If the fit has more features, `C` must suit as many.
    """
    n_usual, n_given = ALL_FREQUENCIES, config.n_frequencies
    stages = [(trials.reduced(n_usual), 1)]
    if len(config.candidates) > N_FINALISTS:
        stages.insert(0, (LEAST_FREQUENCIES, N_FINALISTS))
    # A fit that can be continued makes the same choice for any number of features.
    if n_given > n_usual and config.size == "given" and not config.warm_start:
        # More features than rows change little.
        n_rows = int(trials.masks.sum(axis=1).min())
        stages.append((max(stages[-1][0], min(trials.reduced(n_given), n_rows)), 1))
    return stages
