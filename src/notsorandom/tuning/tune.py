"""The plan of the trials: choose C, smoothing and spectrum on a part of the training data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from notsorandom._utils.progress import progress_bar, show_line
from notsorandom.data.array_api import to_host
from notsorandom.data.rows import Array
from notsorandom.game.problem import Problem
from notsorandom.spaces.view import View
from notsorandom.tuning.choice import AUTO_C, Candidate, Choice, FitConfig
from notsorandom.tuning.held_out import (
    assign_folds,
    held_out_losses,
    mean_gain,
    row_counts,
    weight_unit,
)
from notsorandom.tuning.linear_trials import LinearTrial, try_linear
from notsorandom.tuning.trial_games import Contest, start_contest
from notsorandom.tuning.trial_models import solve_batch

# All trial games have the first number of frequencies, the best N_FINALISTS about the second. They
# don't depend on the number of features of the fit, so that the chosen spectrum and smoothing
# don't; C and temperature do, unless a fit can be continued.
FIRST_FREQUENCIES, ALL_FREQUENCIES, N_FINALISTS = 24, 100, 3
# Rounds on finite spaces, where all candidates play all rounds.
ROUNDS = 32
# Most rows of the trials: more make the comparison slower, but not much sharper.
MAX_TRIAL_ROWS = 4096
# Up to this many samples settings are compared by cross-validation with N_FOLDS folds. Above, one
# split is used.
CROSS_VALIDATED_ROWS, N_FOLDS = 1024, 4
# Relative precision of the linear models: their scores matter, not their objectives.
TRIAL_GAP = 0.1
# Smoothing and spectrum are compared at the better one of these values of C.
FIRST_C = (0.3, 30.0)
# Then N_C values between these limits are tried, and the loss is interpolated between them. With a
# `C` less than LEAST_TOTAL over the total weight, the game would find the same features again.
MIN_C, USUAL_MAX_C, N_C, LEAST_TOTAL = 0.03, 3000.0, 6, 100.0
# Real targets with little noise need more: while the largest value reduces the loss to this share
# of the loss before, N_MORE_C values are added, MAX_C_STEPS times.
MIN_C_GAIN, N_MORE_C, MAX_C_STEPS = 0.98, 2, 2
# The most for solvers whose time grows with `C`.
MAX_EQUILIBRIUM_C = 30.0
# Sum of squares of a direction of the features that is left out; a sample has about one.
LEAST_SQUARE = 1e-3
# Another candidate must beat the usual one by this many standard errors, with one split and with
# several folds. On validation rows of 46 tables (benchmarks/tables.py), 1 is as good as 0 and 2 in
# classification, and 0.3 points better than 0 in regression.
ERRORS_OF_SPLIT, ERRORS_OF_FOLDS = 2.0, 1.0
# More directions than usual must beat them by more, since they take several times as long. On
# training rows of images they are at most 2 standard errors better, on trec's embeddings 4 to 9.
ERRORS_OF_DIRECTIONS = 3.0
# Largest ratio of a C to the C of the games: float32 can compute with it.
MAX_C_RATIO = 1e9
# With fewer samples of the smallest class, the first candidates are taken.
MIN_CLASS_SAMPLES = 8
# Features with n_components="auto" where nothing can be compared.
USUAL_SIZE = 100


Evaluate = Callable[[tuple[float, ...]], "TrialLosses"]  # of values of `C`


@dataclass(frozen=True, eq=False)
class Trials:
    """The part of the training data that settings are compared on.

    Parameters
    ----------
    problem : Problem
        With dense samples in memory.
    C : float
        The value of the games.
    masks : ndarray of shape (n_splits, n_samples)
        Training rows; the others are held out. Every row is held out at most once.
    n_given : int
        Rows of the training data, of which these are a part.
    given : array-like or sparse array
        The samples as they were given.
    """

    problem: Problem
    C: float
    masks: Array
    n_given: int
    given: Any = None

    def min_errors(self, candidate: Candidate, view: View) -> float:
        """Return the standard errors by which a candidate must beat the usual one, the first.

        Many rows, in one split: small differences are less than the differences between random
        starts, and a fit to all rows needs less smoothing than a fit to a part of them. Few rows,
        in several folds, are often noisy and need another candidate.
        """
        if view.is_projected and view.optional is not None and candidate.uses_optional:
            return ERRORS_OF_DIRECTIONS
        return ERRORS_OF_SPLIT if len(self.masks) == 1 else ERRORS_OF_FOLDS

    def reduced(self, n_frequencies: int) -> int:
        """Return the number of features of games that stand for a fit with `n_frequencies`.

        They have fewer rows than the fit, and with as many features they would overfit more.
        """
        share = self.masks.sum(axis=1).mean() / self.n_given
        return max(FIRST_FREQUENCIES, round(n_frequencies * math.sqrt(share)))

    @cached_property
    def held_out(self) -> Problem:
        """The problem of the held-out rows, split after split."""
        return self.problem.take(np.concatenate([np.flatnonzero(~mask) for mask in self.masks]))

    def scores(self, features: Array, C: tuple[float, ...]) -> Iterator[Array]:
        """Fit models with each `C` to each candidate's features, and yield each split's scores.

        `features` has the shape (n_splits, n_candidates, n_samples, n_features), scores have the
        shape (n_candidates, n_C, n_samples, n_tasks).
        """
        problem = self.problem
        n_splits, n_candidates, n_samples, _ = features.shape
        features = compress(features, self.masks)
        coef, intercept = solve_batch(
            features.reshape(n_splits * n_candidates, n_samples, -1),
            problem.targets,
            np.repeat(self.masks, n_candidates, axis=0),
            problem.loss,
            None if problem.weights is None else problem.weights[:, 0],
            loss_scales=self.loss_scales(C),
            tol=TRIAL_GAP,
        )
        coef = coef.reshape(n_splits, n_candidates, -1, coef.shape[-1])
        intercept = intercept.reshape(n_splits, n_candidates, 1, -1)
        for split in range(n_splits):
            scores = features[split] @ np.swapaxes(coef[split], 1, 2) + intercept[split]
            yield np.moveaxis(scores.reshape(n_candidates, n_samples, len(C), -1), 2, 1)

    def loss_scales(self, C: tuple[float, ...]) -> Array:
        """Return multiples of the loss of the games, for models with other values of `C`."""
        return np.clip(np.array(C) / self.C, 1 / MAX_C_RATIO, MAX_C_RATIO)

    def losses(
        self, scores: Iterable[Array], C: tuple[float, ...], weight: float = 0.0
    ) -> TrialLosses:
        """Evaluate the scores of all splits on their held-out rows; see :meth:`scores`.

        `weight` is the weight of a linear part.
        """
        parts = [part[:, :, ~mask] for part, mask in zip(scores, self.masks, strict=True)]
        return TrialLosses.from_scores(
            np.concatenate(parts, axis=2), self.held_out, np.array(C), weight
        )

    def evaluate(self, features: Array, C: tuple[float, ...]) -> TrialLosses:
        """Return the losses of models with each `C` on each candidate's features."""
        return self.losses(self.scores(features, C), C)

    def search_C(self, evaluate: Evaluate, C: tuple[float, ...], extends: bool) -> TrialLosses:
        """Evaluate values of equal ratios; larger ones too, while the largest is the best."""
        return self.extend_C(evaluate, evaluate(C), extends)

    def extend_C(self, evaluate: Evaluate, losses: TrialLosses, extends: bool) -> TrialLosses:
        """Evaluate larger values too, if `extends` is true and while the largest is the best."""
        for _ in range(MAX_C_STEPS if extends else 0):
            *_, before, last = losses.means[0]
            if losses.means[0].argmin() < losses.C.shape[1] - 1 or last > MIN_C_GAIN * before:
                break
            before_last, largest = losses.C[0, -2:]
            more = largest * (largest / before_last) ** np.arange(1, N_MORE_C + 1)
            losses = losses.joined(evaluate(tuple(more.tolist())))
        return losses


def compress(features: Array, masks: Array) -> Array:
    """Centre features and rotate them onto their principal directions, without the last ones.

    Means and directions are computed from the training rows. Learned features are often similar.
    The models have intercepts, and a rotation changes no penalty, so they stay the same; directions
    of a total square below `LEAST_SQUARE` change no penalised model.
    """
    inside = [part[:, mask] for part, mask in zip(features, masks, strict=True)]
    grams = np.stack([np.swapaxes(part, 1, 2) @ part for part in inside]).astype(np.float64)
    sums = np.stack([part.sum(axis=1, keepdims=True) for part in inside]).astype(np.float64)
    means = sums / masks.sum(axis=1)[:, None, None, None]
    squares, directions = np.linalg.eigh(grams - np.swapaxes(sums, 2, 3) * means)
    n_kept = max(1, int((squares > LEAST_SQUARE).sum(axis=-1).max()))
    directions = directions[..., -n_kept:]
    rotated = features @ directions.astype(features.dtype)
    rotated -= (means @ directions).astype(features.dtype)
    return rotated


@dataclass(frozen=True, eq=False)
class TrialLosses:
    """Losses of the held-out rows for candidates and values of `C`, and temperatures."""

    C: Array  # (n_candidates, n_C)
    weights: Array  # of linear parts, (n_candidates, n_C)
    losses: Array  # (n_candidates, n_C, n_held_out)
    temperatures: Array  # (n_candidates, n_C); ones for regression
    scores: Array  # accuracy or R^2, (n_candidates, n_C)
    counts: Array  # weights of the rows

    @classmethod
    def from_scores(cls, scores: Array, problem: Problem, C: Array, weight: float) -> TrialLosses:
        """Evaluate scores of shape (n_candidates, n_C, n_held_out, n_tasks)."""
        quality = [[problem.score(each) for each in row] for row in scores]
        C, weights = (np.broadcast_to(part, scores.shape[:2]) for part in (C, weight))
        return cls(
            C, weights, *held_out_losses(problem, scores), np.array(quality), row_counts(problem)
        )

    @cached_property
    def means(self) -> Array:
        """Mean losses, of shape (n_candidates, n_C); infinite where something overflowed."""
        means = np.average(self.losses, axis=-1, weights=self.counts)
        return np.where(np.isfinite(means), means, np.inf)

    def best_candidates(self, n_candidates: int, min_errors: list[float]) -> Array:
        """Return the candidates with the least losses, each at its best `C`, in their own order.

        The first candidate is one of them. As the only one, it is replaced by the best one that
        beats it by its `min_errors`, a number of standard errors.
        """
        order = np.argsort(self.means.min(axis=1), kind="stable")
        if n_candidates > 1:
            return np.append(0, np.sort(order[order > 0][: n_candidates - 1]))
        first, *others = (self.losses[n, self.means[n].argmin()] for n in (0, *order))
        for number, other in zip(order, others, strict=True):
            gain, error = mean_gain(first, other, self.counts)
            if number == 0 or gain > min_errors[number] * error:
                break
        return np.array([number])

    @property
    def lowest(self) -> Array:
        """The losses of the rows at the best `C` of the only candidate."""
        lowest: Array = self.losses[0, self.means[0].argmin()]
        return lowest

    def beats(self, other: TrialLosses, min_errors: float) -> bool:
        """Whether the only candidate is better than another, by a number of standard errors."""
        gain, error = mean_gain(other.lowest, self.lowest, self.counts)
        return gain > min_errors * error

    def best_C(self, between: bool) -> tuple[float, float]:
        """Return the best `C` of the only candidate, and the temperature there.

        With `between`, it is the minimum of the parabola through the lowest points, on logarithmic
        scales, for values of equal ratios.
        """
        (losses,), (temperatures,) = self.means, self.temperatures
        number, shift = int(losses.argmin()), 0.0
        if between and 0 < number < len(losses) - 1:
            before, lowest, after = losses[number - 1 : number + 2]
            bend = before - 2 * lowest + after
            shift = 0.5 * (before - after) / bend if bend > 0 else 0.0  # within half a step
        C, temperature = (
            np.exp(np.interp(number + shift, np.arange(len(losses)), np.log(values)))
            for values in (self.C[0], temperatures)
        )
        return float(C) if shift else float(self.C[0, number]), float(temperature)

    def joined(self, other: TrialLosses) -> TrialLosses:
        """Return the losses of the values of `C` of both."""
        parts = {
            name: np.concatenate([getattr(self, name), getattr(other, name)], axis=1)
            for name in ("C", "weights", "losses", "temperatures", "scores")
        }
        return replace(self, **parts)

    def table(self, contest: Contest, n_components: int) -> dict[str, Array]:
        """Return one row per candidate and `C`."""
        candidates = contest.candidates
        squares = np.square(self.losses - self.means[..., None])
        variances = np.average(squares, axis=-1, weights=self.counts)
        n_C = self.C.shape[1]
        return {
            "spectrum": np.repeat([each.spectrum or "" for each in candidates], n_C),
            "smoothing": np.repeat([each.smoothing for each in candidates], n_C),
            "n_columns": np.repeat([contest.n_columns(each) for each in candidates], n_C),
            "linear": self.weights.ravel(),
            "C": self.C.ravel(),
            "n_components": np.full(self.means.size, n_components),
            "loss": self.means.ravel(),
            "standard_error": np.sqrt(variances / self.counts.sum()).ravel(),
            "temperature": self.temperatures.ravel(),
        }


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
    the log loss at the best temperature for classes, the squared error for real targets. The games
    have the default solver and search (with fewer steps and aligned phases if they are played at
    once), whatever the estimator's own: the choice depends on the data.
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
    if config.linear is not False and (winner.uses_optional or view.is_projected):
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
    weight = float(chosen.losses.weights[0, 0])
    return Choice(
        chosen.candidate, C, temperature, table, chosen.size, chosen.sizes, linear_c, weight
    )


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
        stages.insert(0, (FIRST_FREQUENCIES, N_FINALISTS))
    # A fit that can be continued makes the same choice for any number of features.
    if n_given > n_usual and config.size == "given" and not config.warm_start:
        # More features than rows change little.
        n_rows = int(trials.masks.sum(axis=1).min())
        stages.append((max(stages[-1][0], min(trials.reduced(n_given), n_rows)), 1))
    return stages


def start_trials(problem: Problem, view: View, C: float, rng: np.random.Generator) -> Trials | None:
    """Return rows to compare settings on, in a view, or None if a class has too few samples.

    `C` is the value of the games. Weights are multiplied by their unit, and `C` is divided by it.
    Real targets are divided by a power of two near their scale; see :meth:`Problem.rescaled`.
    """
    n_rows, unit = len(problem.rows), weight_unit(len(problem.rows), problem.total_weight)
    if n_rows <= MAX_TRIAL_ROWS:
        indices = rng.permutation(n_rows)
    else:
        indices = rng.choice(n_rows, size=MAX_TRIAL_ROWS, replace=False)
    scale = problem.power_of_scale()
    given = problem.with_C(C / unit).take(indices)
    subsample = given.viewed(view).rescaled(scale)
    rows = replace(subsample.rows, array=to_host(subsample.rows.array))
    if rows.weights is not None:
        rows = replace(rows, weights=rows.weights * rows.dtype.type(unit))
    subsample = replace(subsample, rows=rows)
    masks = split_for_trials(subsample, n_rows <= CROSS_VALIDATED_ROWS, rng)
    samples = to_host(given.rows.array)
    return Trials(subsample, C, masks, n_rows, samples) if len(masks) else None


def split_for_trials(problem: Problem, cross_validated: bool, rng: np.random.Generator) -> Array:
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
