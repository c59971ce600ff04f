"""Rows that settings are compared on, and the losses of models on those held out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from notsorandom._utils.threads import cached_property
from notsorandom.data.array_api import to_host
from notsorandom.data.rows import Array
from notsorandom.game.duplicates import merge_duplicates
from notsorandom.game.problem import Problem
from notsorandom.spaces.view import View
from notsorandom.tuning.choice import Candidate
from notsorandom.tuning.held_out import (
    MIN_CLASS_SAMPLES,
    assign_folds,
    held_out_losses,
    mean_gain,
    row_counts,
    weight_unit,
)
from notsorandom.tuning.trial_games import Contest
from notsorandom.tuning.trial_models import solve_batch

# Least number of frequencies of a game that stands for a fit.
LEAST_FREQUENCIES = 24
# Most rows of the trials: more make the comparison slower, but not much sharper.
MAX_TRIAL_ROWS = 4096
# Up to this many samples settings are compared by cross-validation with N_FOLDS folds. Above, one
# split is used.
CROSS_VALIDATED_ROWS, N_FOLDS = 1024, 4
# Relative precision of the linear models: their scores matter, not their objectives.
TRIAL_GAP = 0.1
# Real targets with little noise need more: while the largest value reduces the loss to this share
# of the loss before, N_MORE_C values are added, MAX_C_STEPS times.
MIN_C_GAIN, N_MORE_C, MAX_C_STEPS = 0.98, 2, 2
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

Evaluate = Callable[[tuple[float, ...]], "TrialLosses"]  # of values of `C`


@dataclass(frozen=True, eq=False)
class Trials:
    """The part of the training data that settings are compared on.

    Parameters
    ----------
    problem : Problem
        With samples in memory.
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
    given: Any

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
        return max(LEAST_FREQUENCIES, round(n_frequencies * math.sqrt(share)))

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
        for _ in range(MAX_C_STEPS if extends and losses.C.shape[1] > 1 else 0):
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
    if features.shape[-1] > masks.sum(axis=1).max():
        return compress_wide(features, inside)
    grams = np.stack([np.swapaxes(part, 1, 2) @ part for part in inside]).astype(np.float64)
    sums = np.stack([part.sum(axis=1, keepdims=True) for part in inside]).astype(np.float64)
    means = sums / masks.sum(axis=1)[:, None, None, None]
    squares, directions = np.linalg.eigh(grams - np.swapaxes(sums, 2, 3) * means)
    n_kept = max(1, int((squares > LEAST_SQUARE).sum(axis=-1).max()))
    directions = directions[..., -n_kept:]
    rotated = features @ directions.astype(features.dtype)
    rotated -= (means @ directions).astype(features.dtype)
    return rotated


def compress_wide(features: Array, inside: list[Array]) -> Array:
    """Compress features that are more than the training rows: these span all directions.

    `inside` has the features of each split's training rows, (n_candidates, n_rows, n_features).
    """
    parts = []
    for split, candidates in zip(features, inside, strict=True):
        for each, rows in zip(split, candidates, strict=True):
            mean = rows.mean(axis=0)
            centred = (rows - mean).astype(np.float64)
            squares, vectors = np.linalg.eigh(centred @ centred.T)
            kept = squares > LEAST_SQUARE
            directions = centred.T @ (vectors[:, kept] / np.sqrt(squares[kept]))
            parts.append((each - mean) @ directions.astype(each.dtype))
    widest = max(1, *(part.shape[1] for part in parts))
    # Columns of zeros change no model.
    padded = [np.pad(part, ((0, 0), (0, widest - part.shape[1]))) for part in parts]
    return np.stack(padded).reshape(*features.shape[:3], widest)


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
        next_C = self.C[0, number + int(np.sign(shift))]
        # By a ratio, not by logarithms: a power of two in `C` stays exact.
        C = self.C[0, number] * (next_C / self.C[0, number]) ** abs(shift)
        logs = np.log(temperatures)
        temperature = np.exp(np.interp(number + shift, np.arange(len(logs)), logs))
        return float(C), float(temperature)

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


def start_trials(problem: Problem, view: View, C: float, rng: np.random.Generator) -> Trials | None:
    """Return rows to compare settings on, in a view, or None if a class has too few samples.

    `C` is the value of the games. Weights are multiplied by their unit, and `C` is divided by it.
    Real targets are divided by a power of two near their scale; see :meth:`Problem.rescaled`.
    """
    n_rows, unit = len(problem.rows), weight_unit(len(problem.rows), problem.total_weight)
    given, indices = problem.with_C(C / unit), np.arange(n_rows)
    if n_rows > MAX_TRIAL_ROWS:
        indices = rng.choice(n_rows, size=MAX_TRIAL_ROWS, replace=False)
    given = merge_duplicates(given.take(indices))  # of samples that were not in memory
    given = given.take(rng.permutation(len(given.rows)))
    scale = problem.power_of_scale()
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
