"""Choose C, smoothing and spectrum by trial games on a part of the training data."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np

from notsorandom.data.array_api import to_host
from notsorandom.data.rows import Array
from notsorandom.estimators.calibration import held_out_losses, row_counts, up_to_one_per_row
from notsorandom.estimators.config import AUTO_C, Choice, FitConfig
from notsorandom.estimators.contest import Candidate, start_contest
from notsorandom.estimators.splits import assign_folds
from notsorandom.estimators.training import progress_bar
from notsorandom.game.dual import DualProblem
from notsorandom.linear.batched import solve_batch
from notsorandom.spaces import Euclidean

# Frequencies of all trial games, and then of the best ones. They don't depend on the number of the
# fit, so that spectrum and smoothing don't; C and temperature do, unless a fit can be continued.
FIRST_FREQUENCIES, ALL_FREQUENCIES, N_FINALISTS = 24, 100, 3
# Rounds on spaces other than R^d, where all candidates play all rounds.
ROUNDS = 32
# Most rows of the trials: more make the comparison slower, but not much sharper.
MAX_ROWS = 4096
# Up to this many samples settings are compared by cross-validation with N_FOLDS folds. Above, one
# split is used.
CROSS_VALIDATED_ROWS, N_FOLDS = 1024, 4
# Relative precision of the linear models: their scores matter, not their objectives.
TRIAL_GAP = 0.1
# Smoothing and spectrum are compared at the better one of these values of C.
FIRST_C = (0.3, 30.0)
# Then N_C values between these limits are tried, and the loss is interpolated between them. With a
# `C` less than LEAST_TOTAL over the total weight, the game would find the same features again.
MIN_C, MAX_C, N_C, LEAST_TOTAL = 0.03, 3000.0, 6, 100.0
# The most for solvers whose time grows with `C`.
MAX_EQUILIBRIUM_C = 30.0
# Sum of squares of a direction of the features that is left out; a sample has about one.
LEAST_SQUARE = 1e-3
# With one split, another candidate must beat the first by this many standard errors.
MIN_STANDARD_ERRORS = 2.0
# Largest ratio of a C to that of the games: float32 can compute with it.
MAX_SCALE = 1e9
# Avoids a division by zero.
TINY = 1e-300
# With fewer samples of the smallest class, the first candidates are taken.
MIN_CLASS_SAMPLES = 8
# Numbers of frequencies that are compared for n_components="auto". The least is taken whose loss
# exceeds the smallest one by no more than a share of its standard error, or of itself.
SIZES, SIZE_TOLERANCE = (4, 8, 12, 16, 24, 32, 48, 64), (0.5, 0.005)
# Features with n_components="auto" where nothing can be compared.
USUAL_SIZE = 100


@dataclass(frozen=True, eq=False)
class Trials:
    """The part of the training data that settings are compared on.

    Parameters
    ----------
    problem : DualProblem
        With dense samples in memory.
    C : float
        Of the problem's loss.
    masks : ndarray of shape (n_splits, n_samples)
        Training rows; the others are held out. Every row is held out at most once.
    n_given : int
        Rows of the training data, of which these are a part.
    """

    problem: DualProblem
    C: float
    masks: Array
    n_given: int

    @property
    def favours_first(self) -> bool:
        """Whether the first candidate, the usual one, must be beaten clearly.

        In many rows, small differences are less than those between random starts, and a fit to all
        rows needs less smoothing than one to some. Few rows are often noisy.
        """
        return len(self.masks) == 1

    def scaled(self, n_frequencies: int) -> int:
        """Return how many features games on these rows should have.

        With fewer rows than the fit has, as many features would overfit more.
        """
        share = self.masks.sum(axis=1).mean() / self.n_given
        return max(FIRST_FREQUENCIES, round(n_frequencies * math.sqrt(share)))

    @cached_property
    def held_out(self) -> DualProblem:
        """The problem of the held-out rows, split after split."""
        return self.problem.take(np.concatenate([np.flatnonzero(~mask) for mask in self.masks]))

    def evaluate(self, features: Array, C: tuple[float, ...]) -> Evaluation:
        """Fit models with each `C` to each candidate's features, and evaluate held-out rows.

        `features` has the shape (n_splits, n_candidates, n_samples, n_features).
        """
        problem, n_tasks = self.problem, self.problem.n_tasks
        n_splits, n_candidates, n_samples, _ = features.shape
        features = compress(features, self.masks)
        coef, intercept = solve_batch(
            features.reshape(n_splits * n_candidates, n_samples, -1),
            np.tile(problem.targets, (1, len(C))),
            np.repeat(self.masks, n_candidates, axis=0),
            problem.loss,
            None if problem.weights is None else problem.weights[:, 0],
            loss_scales=np.clip(np.repeat(C, n_tasks) / self.C, 1 / MAX_SCALE, MAX_SCALE),
            tol=TRIAL_GAP,
        )
        coef = coef.reshape(n_splits, n_candidates, len(C) * n_tasks, -1)
        intercept = intercept.reshape(n_splits, n_candidates, 1, -1)
        parts = [
            part[:, ~mask] @ np.swapaxes(w, 1, 2) + b
            for part, mask, w, b in zip(features, self.masks, coef, intercept, strict=True)
        ]
        scores = np.concatenate(parts, axis=1)  # (n_candidates, n_held_out, n_C * n_tasks)
        scores = np.moveaxis(scores.reshape(*scores.shape[:2], len(C), n_tasks), 2, 1)
        return Evaluation.of(scores, self.held_out, np.array(C))


def compress(features: Array, masks: Array) -> Array:
    """Centre features and rotate them onto their principal directions, without the last ones.

    Means and directions are those of the training rows. Learned features are often similar. The
    models have intercepts, and a rotation changes no penalty, so they stay the same; directions of
    a total square below `LEAST_SQUARE` change none that is penalised.
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
class Evaluation:
    """Losses of the held-out rows for candidates and values of `C`, and temperatures."""

    C: Array  # (n_C,)
    losses: Array  # (n_candidates, n_C, n_held_out)
    temperatures: Array  # (n_candidates, n_C); ones for regression
    scores: Array  # accuracy or R^2, (n_candidates, n_C)
    counts: Array  # weights of the rows

    @classmethod
    def of(cls, scores: Array, problem: DualProblem, C: Array) -> Evaluation:
        """Evaluate scores of shape (n_candidates, n_C, n_held_out, n_tasks)."""
        quality = [[problem.score(each) for each in row] for row in scores]
        return cls(C, *held_out_losses(problem, scores), np.array(quality), row_counts(problem))

    @cached_property
    def means(self) -> Array:
        """Mean losses, of shape (n_candidates, n_C); infinite where something overflowed."""
        means = np.average(self.losses, axis=-1, weights=self.counts)
        return np.where(np.isfinite(means), means, np.inf)

    def best_candidates(self, n_candidates: int, favours_first: bool) -> Array:
        """Return the candidates with the least losses, each at its best `C`, in their own order.

        If `favours_first`, the first one is among them, or, if it is one only, beaten clearly.
        """
        order = np.argsort(self.means.min(axis=1), kind="stable")
        if not favours_first:
            return np.sort(order[:n_candidates])
        if n_candidates > 1:
            return np.append(0, np.sort(order[order > 0][: n_candidates - 1]))
        first, best = (self.losses[n, self.means[n].argmin()] for n in (0, order[0]))
        return order[:1] if self.gain(first, best) > MIN_STANDARD_ERRORS else np.zeros(1, dtype=int)

    def gain(self, before: Array, after: Array) -> float:
        """Return how much losses of the rows have decreased, in standard errors."""
        gains = before - after
        mean = np.average(gains, weights=self.counts)
        variance = np.average(np.square(gains - mean), weights=self.counts)
        return float(mean / max(math.sqrt(variance / self.counts.sum()), TINY))

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
            for values in (self.C, temperatures)
        )
        return float(C) if shift else float(self.C[number]), float(temperature)

    def is_close_to(self, best: Evaluation) -> bool:
        """Whether the loss of the first setting is about that of the best one."""
        in_errors, in_losses = SIZE_TOLERANCE
        if self.gain(self.losses[0, 0], best.losses[0, 0]) <= in_errors:
            return True
        return bool(self.means[0, 0] <= (1 + in_losses) * best.means[0, 0])

    def table(self, candidates: list[Candidate], n_components: int) -> dict[str, Array]:
        """Return one row per candidate and `C`."""
        squares = np.square(self.losses - self.means[..., None])
        variances = np.average(squares, axis=-1, weights=self.counts)
        n_C = len(self.C)
        return {
            "spectrum": np.repeat([str(spectrum or "") for spectrum, _ in candidates], n_C),
            "smoothing": np.repeat([smoothing for _, smoothing in candidates], n_C),
            "C": np.tile(self.C, len(candidates)),
            "n_components": np.full(self.means.size, n_components),
            "loss": self.means.ravel(),
            "standard_error": np.sqrt(variances / self.counts.sum()).ravel(),
            "temperature": self.temperatures.ravel(),
        }


def tune(
    config: FitConfig,
    problem: DualProblem,
    rng: np.random.Generator,
    chooses_size: bool = False,
    verbose: int = 0,
) -> Choice:
    """Compare candidates of spectrum, smoothing and `C` by short games on a part of the data.

    Each game is followed by linear models with several values of `C`, whose held-out loss decides:
    the log loss at the best temperature for classes, the squared error for real targets. The games
    have the default solver and search (on R^d with fewer steps, and aligned phases), whatever the
    estimator's own: the choice depends on the data.
    """
    candidates = list(product(config.spectra, config.smoothing))
    weight_unit = up_to_one_per_row(len(problem.rows), problem.total_weight)
    unit = weight_unit * problem.loss.unit(problem.target_scale())
    lowest = MIN_C
    if problem.loss.one_sided:
        lowest = min(max(MIN_C, LEAST_TOTAL / (weight_unit * problem.total_weight)), 1.0)
    highest = MAX_EQUILIBRIUM_C if config.computes_equilibrium else MAX_C
    grids = FIRST_C, np.geomspace(lowest, highest, N_C)
    first_C, last_C = (config.C or tuple(C * unit for C in grid) for grid in grids)
    default = Choice(
        *candidates[0],
        C=config.C[0] if config.C else AUTO_C * unit,
        n_components=min(config.n_components, USUAL_SIZE) if chooses_size else None,
    )
    is_given = len(candidates) * len(last_C) == 1
    if is_given and not (config.calibrated or chooses_size):
        return default
    # The games depend little on `C`, and not on the order of the candidates.
    game_C = min(max(AUTO_C * unit, min(last_C)), max(last_C))
    trials = start_trials(config, problem, game_C, weight_unit, rng)
    if trials is None:
        return default
    is_euclidean = isinstance(config.space, Euclidean)
    stages = plan_stages(config, trials) if is_euclidean else [(ROUNDS, 1)]
    contest = start_contest(config, trials.problem, trials.masks, candidates, rng)
    tables = []
    with progress_bar(len(stages), "tuning", verbose) as update:
        for number, (n_frequencies, n_kept) in enumerate(stages):
            contest.play(n_frequencies)
            if len(contest.candidates) > n_kept:
                evaluation = trials.evaluate(contest.features, first_C)
                tables.append(evaluation.table(contest.candidates, n_frequencies))
                contest.keep(evaluation.best_candidates(n_kept, trials.favours_first))
            update(number + 1)
        features, ((spectrum, smoothing),) = contest.features, contest.candidates
        n_given = config.n_components // config.space.n_columns(config.phase)
        if is_euclidean and not (config.warm_start or config.stops_early):
            features = first_features(features, trials.scaled(n_given))
        evaluation = trials.evaluate(features, last_C)
    tables.append(evaluation.table(contest.candidates, features.shape[-1]))
    C, temperature = evaluation.best_C(between=config.C is None)
    table = {name: np.concatenate([each[name] for each in tables]) for name in tables[0]}
    choice = Choice(spectrum, smoothing, C, temperature, table)
    return choose_size(choice, trials, features, config) if chooses_size else choice


def plan_stages(config: FitConfig, trials: Trials) -> list[tuple[int, int]]:
    """Return, for each stage, the frequencies of each game at its end and the candidates kept.

    A few features tell which candidates are good. The best of them is found with about as many as
    usual. If the fit has more features, `C` must suit as many.
    """
    n_usual, n_given = ALL_FREQUENCIES, config.n_components // config.space.n_columns(config.phase)
    stages = [(trials.scaled(n_usual), 1)]
    if len(config.spectra) * len(config.smoothing) > N_FINALISTS:
        stages.insert(0, (FIRST_FREQUENCIES, N_FINALISTS))
    # A fit that can be continued makes the same choice for any number of features.
    if n_given > n_usual and not (config.stops_early or config.warm_start):
        # More features than rows change little.
        n_rows = int(trials.masks.sum(axis=1).min())
        stages.append((max(stages[-1][0], min(trials.scaled(n_given), n_rows)), 1))
    return stages


def can_choose_size(config: FitConfig, n_rows: int) -> bool:
    """Whether trials choose the number of features; otherwise validation samples do."""
    return isinstance(config.space, Euclidean) and n_rows <= CROSS_VALIDATED_ROWS


def first_features(features: Array, n_features: int) -> Array:
    """Return the first features, with weights of a total of one as those of a game have."""
    part = features[..., :n_features]
    if part.shape[-1] == features.shape[-1]:
        return features
    squares = np.square(part).sum(axis=-1).mean(axis=-1)[..., None, None]
    return part / np.sqrt(np.where(squares > 0, squares, 1))


def choose_size(choice: Choice, trials: Trials, features: Array, config: FitConfig) -> Choice:
    """Return a choice with the least number of features that is about as good as the best one."""
    curve: list[tuple[int, Evaluation]] = []
    n_columns = config.space.n_columns(config.phase)
    growth = ALL_FREQUENCIES / trials.scaled(
        ALL_FREQUENCIES
    )  # the fit has more rows than the trials
    for n_frequencies in (*SIZES, features.shape[-1]):
        if n_frequencies > features.shape[-1]:
            continue
        part = first_features(features, n_frequencies)
        n_found = np.any(part != 0, axis=2).sum(axis=-1).mean()  # some columns are zero
        size = n_columns * max(1, math.ceil(growth * float(n_found) / n_columns))
        evaluation = trials.evaluate(part, (choice.C,))
        curve.append((min(size, config.n_components), evaluation))
        if size >= config.n_components:
            break
    best = min((evaluation for _, evaluation in curve), key=lambda each: each.means[0, 0])
    size, chosen = next(each for each in curve if each[1].is_close_to(best))
    sizes = {
        "validation_sizes_": np.array([size for size, _ in curve]),
        "validation_losses_": np.array([evaluation.means[0, 0] for _, evaluation in curve]),
        "validation_scores_": np.array([evaluation.scores[0, 0] for _, evaluation in curve]),
    }
    temperature = float(chosen.temperatures[0, 0])
    return replace(choice, temperature=temperature, n_components=size, sizes=sizes)


def start_trials(
    config: FitConfig,
    problem: DualProblem,
    C: float,
    weight_unit: float,
    rng: np.random.Generator,
) -> Trials | None:
    """Return rows to compare settings on, or None if a class has too few samples.

    `C` is that of the games. Weights are multiplied by their unit, and `C` is divided by it. Real
    targets are divided by a power of two near their scale; see :meth:`DualProblem.rescaled`.
    """
    n_rows = len(problem.rows)
    if n_rows <= MAX_ROWS:
        indices = rng.permutation(n_rows)
    else:
        indices = rng.choice(n_rows, size=MAX_ROWS, replace=False)
    problem = replace(problem, loss=config.loss(C / weight_unit))
    subsample = problem.rescaled(problem.power_of_scale()).take(indices)
    rows = replace(subsample.rows, array=to_host(subsample.rows.array))
    if rows.weights is not None:
        rows = replace(rows, weights=rows.weights * rows.dtype.type(weight_unit))
    subsample = replace(subsample, rows=rows)
    masks = split_for_trials(subsample, n_rows <= CROSS_VALIDATED_ROWS, rng)
    return Trials(subsample, C, masks, n_rows) if len(masks) else None


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
