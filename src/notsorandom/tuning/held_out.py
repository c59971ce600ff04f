"""Held-out samples: random splits, losses, and temperatures that calibrate scores of classes."""

from __future__ import annotations

import numpy as np
from scipy.special import log_softmax

from notsorandom.data.rows import Array
from notsorandom.game.problem import Problem

# With fewer samples of the smallest class, there are no trials.
MIN_CLASS_SAMPLES = 8
# Tolerance for rounding errors in cumulative shares.
SHARE_ROUNDING = 1e-12
# Newton's method for a temperature: it converges in about six steps.
TEMPERATURE_STEPS = 30
# Largest temperature, in units of the scores' standard deviation.
MAX_TEMPERATURE = 1e3
# Standard errors are at least this, so that equal losses are no gain.
LEAST_ERROR = 1e-300
# Largest change of the logarithm of a temperature in a step.
MAX_CHANGE = 2.0


# Splits have the same share of every class in all parts.


def assign_folds(codes: Array, weights: Array, n_folds: int, rng: np.random.Generator) -> Array:
    """Return the fold of each sample, from 0; folds have about equal weight of every class."""
    return (n_folds * (cumulative_shares(codes, weights, rng) + SHARE_ROUNDING)).astype(int)


def cumulative_shares(codes: Array, weights: Array, rng: np.random.Generator) -> Array:
    """Shuffle each class, and return the share of its weight that precedes each sample.

    Classes take their turn as they first appear, so that their names don't matter.
    """
    result = np.empty(len(codes))
    classes, first = np.unique(codes, return_index=True)
    for code in classes[np.argsort(first)]:
        members = rng.permutation(np.flatnonzero(codes == code))
        weight = weights[members].astype(np.float64)
        result[members] = (np.cumsum(weight) - weight) / weight.sum()
    return result


# Losses and temperatures.


def two_sided(scores: Array) -> Array:
    """Return one column per class: of two classes, the scores have only one."""
    return scores if scores.shape[-1] > 1 else scores * np.array([-0.5, 0.5])


def log_losses(scores: Array, codes: Array) -> Array:
    """Return the log loss of each sample, for scores of shape (..., n_samples, n_tasks)."""
    logarithms = log_softmax(two_sided(scores), axis=-1)
    return -np.take_along_axis(logarithms, codes_like(scores, codes), -1)[..., 0]


def codes_like(scores: Array, codes: Array) -> Array:
    """Return class codes with the leading axes of some scores, and a last axis of one."""
    return np.broadcast_to(codes[:, None], (*scores.shape[:-1], 1))


def weight_unit(n_rows: int, total_weight: float) -> float:
    """Return the factor that brings small weights to a mean of one per row; 1 for others."""
    return max(1.0, n_rows / total_weight)


def row_counts(problem: Problem) -> Array:
    """Return sample weights as numbers of samples, at least about one per row."""
    counts = problem.counts.astype(np.float64)
    return counts * weight_unit(len(counts), float(counts.sum()))


def held_out_losses(problem: Problem, scores: Array) -> tuple[Array, Array]:
    """Return the losses of samples that were held out, and the temperatures of the scores.

    For classes: the log loss at the best temperature. For real targets: the errors that the loss
    says, summed over the outputs, and a temperature of 1. Scores have the shape (..., n_samples,
    n_tasks), losses (..., n_samples), and temperatures (...).
    """
    if not problem.loss.one_sided:
        losses = problem.loss.held_out_errors(problem.targets - scores).sum(axis=-1)
        return losses, np.ones(scores.shape[:-2])
    codes = problem.strata()
    temperatures = fit_temperatures(scores, codes, row_counts(problem))
    return log_losses(scores / temperatures[..., None, None], codes), temperatures


def mean_gain(before: Array, after: Array, counts: Array) -> tuple[float, float]:
    """Return how much losses of rows have decreased in the mean, and its standard error."""
    gains = before - after
    mean = np.average(gains, weights=counts)
    variance = np.average(np.square(gains - mean), weights=counts)
    return float(mean), max(float(np.sqrt(variance / counts.sum())), LEAST_ERROR)


def fit_temperatures(scores: Array, codes: Array, counts: Array) -> Array:
    r"""Return the temperatures `T` at which the scores over `T` have the least log loss.

    The log loss is convex in :math:`1 / T`, and Newton's method minimises it. As in Platt's
    method, a sample more of every class keeps the temperature positive when all samples are
    classified correctly.

    Parameters
    ----------
    scores : ndarray of shape (..., n_samples, n_tasks)
    codes : ndarray of shape (n_samples,)
        Class codes.
    counts : ndarray of shape (n_samples,)
        Sample weights.

    Returns
    -------
    ndarray of shape (...,)
    """
    dtype = scores.dtype
    scores = two_sided(scores).astype(dtype)
    # Classes first: sums over them are then sums of whole arrays.
    by_class = np.ascontiguousarray(np.moveaxis(scores, -1, 0))
    # Differences from the largest score, so that no exponential overflows.
    by_class -= by_class.max(axis=0)
    scale = -by_class.min(axis=(0, -1))
    scale = np.where(scale > 0, scale, 1)
    by_class /= scale[..., None]  # so that no square overflows
    n_classes, squares, totals = len(by_class), np.square(by_class), by_class.sum(axis=0)
    truth = np.take_along_axis(by_class, np.moveaxis(codes_like(scores, codes), -1, 0), 0)[0]
    share = 1 / (counts.sum() + n_classes)  # the weight of the added samples
    weights = (counts / counts.sum()).astype(dtype)
    target = ((1 - share) * truth + (share / n_classes) * totals) @ weights
    # In units in which the scores have a standard deviation of one.
    unit = np.sqrt((squares.mean(axis=0) - np.square(totals / n_classes)) @ weights)
    unit = np.where(unit > 0, unit, 1.0)
    temperatures: Array = unit
    for _ in range(TEMPERATURE_STEPS):
        likelihoods = by_class * (1 / temperatures)[..., None].astype(dtype)
        np.exp(likelihoods, out=likelihoods)
        norms = likelihoods.sum(axis=0)
        means = np.einsum("k...,k...->...", likelihoods, by_class) / norms
        variances = np.einsum("k...,k...->...", likelihoods, squares) / norms - np.square(means)
        slope = (means @ weights - target) / unit
        bend = variances @ weights / np.square(unit)
        # Newton's step for the logarithm of the inverse temperature, safe where it is not convex.
        bound = (unit / temperatures) * bend + np.maximum(slope, 0)
        step = np.clip(-slope / np.maximum(bound, 1e-12), -MAX_CHANGE, MAX_CHANGE)
        before = temperatures
        # Scores that tell nothing would have an infinite temperature.
        temperatures = np.minimum(temperatures * np.exp(-step), MAX_TEMPERATURE * unit)
        if np.all(np.abs(temperatures - before) < 1e-3 * before):
            break
    return temperatures * scale
