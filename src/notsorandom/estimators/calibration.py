"""Probabilities of classes from decision values, and their temperature."""

from __future__ import annotations

import numpy as np
from scipy.special import log_softmax

from notsorandom.data.rows import Array
from notsorandom.game.dual import DualProblem

# Newton's method for a temperature: it converges in about six steps.
MAX_STEPS = 30
# Largest change of the logarithm of a temperature in a step.
MAX_CHANGE = 2.0


def two_sided(scores: Array) -> Array:
    """Return one column per class: of two classes, the scores have only one."""
    return scores if scores.shape[-1] > 1 else scores * np.array([-0.5, 0.5])


def log_probabilities(scores: Array) -> Array:
    """Return the logarithms of the classes' probabilities, along the last axis."""
    result: Array = log_softmax(two_sided(scores), axis=-1)
    return result


def log_losses(scores: Array, codes: Array) -> Array:
    """Return the log loss of each sample, for scores of shape (..., n_samples, n_tasks)."""
    return -np.take_along_axis(log_probabilities(scores), codes_like(scores, codes), -1)[..., 0]


def codes_like(scores: Array, codes: Array) -> Array:
    """Return class codes with the leading axes of some scores, and a last axis of one."""
    return np.broadcast_to(codes[:, None], (*scores.shape[:-1], 1))


def held_out_losses(problem: DualProblem, scores: Array) -> tuple[Array, Array]:
    """Return the losses of samples that were held out, and the temperatures of the scores.

    For classes that is the log loss at the best temperature, for real targets the squared error,
    and a temperature of 1. Scores have the shape (..., n_samples, n_tasks), losses that without
    the last axis, and temperatures without the last two.
    """
    if not problem.loss.one_sided:
        losses = np.square(scores - problem.targets, dtype=np.float64).sum(axis=-1)
        return losses, np.ones(scores.shape[:-2])
    codes = problem.strata()
    temperatures = fit_temperatures(scores, codes, problem.counts.astype(np.float64))
    return log_losses(scores / temperatures[..., None, None], codes), temperatures


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
    scores = two_sided(scores).astype(np.float64)
    share = 1 / (counts.sum() + scores.shape[-1])  # of the added samples
    weights = counts / counts.sum()
    truth = np.take_along_axis(scores, codes_like(scores, codes), -1)[..., 0]
    target = (1 - share) * truth + share * scores.mean(axis=-1)
    # In units in which the scores have a standard deviation of one.
    unit = np.sqrt((scores.var(axis=-1) * weights).sum(axis=-1))
    unit = np.where(unit > 0, unit, 1.0)
    scores, target = scores / unit[..., None, None], target / unit[..., None]
    inverse = np.ones_like(unit)
    for _ in range(MAX_STEPS):
        probabilities = np.exp(log_softmax(inverse[..., None, None] * scores, axis=-1))
        means = (probabilities * scores).sum(axis=-1)
        variances = (probabilities * np.square(scores)).sum(axis=-1) - np.square(means)
        slope = ((means - target) * weights).sum(axis=-1)
        bend = (variances * weights).sum(axis=-1)
        # Newton's step for the logarithm of the inverse temperature, safe where it is not convex.
        step = -slope / np.maximum(inverse * bend + np.maximum(slope, 0), 1e-12)
        step = np.clip(step, -MAX_CHANGE, MAX_CHANGE)
        inverse = inverse * np.exp(step)
        if np.all(np.abs(step) < 1e-3):
            break
    temperatures: Array = unit / inverse
    return temperatures
