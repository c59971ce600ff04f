"""Slow and obvious versions of everything, to test the fast ones against."""

import numpy as np
from scipy import optimize


def potential(X, measure, frequency):
    """Sum over the tasks of the squared magnitude of the measure's Fourier transform."""
    total = 0.0
    for task in range(measure.shape[1]):
        transform = 0j
        for x, a in zip(X, measure[:, task], strict=True):
            transform += a * np.exp(1j * (frequency @ x))
        total += abs(transform) ** 2
    return total


def gradient(function, point, step=1e-6):
    """Central finite differences."""
    slopes = np.empty_like(point)
    for i in range(len(point)):
        shift = np.zeros_like(point)
        shift[i] = step
        slopes[i] = (function(point + shift) - function(point - shift)) / (2 * step)
    return slopes


def translation_invariant_gram(X, Z, frequencies, weights):
    """The kernel that the weights' measure is the Fourier transform of."""
    gram = np.zeros((len(X), len(Z)))
    for frequency, weight in zip(frequencies, weights, strict=True):
        for i, x in enumerate(X):
            for j, z in enumerate(Z):
                gram[i, j] += weight * np.cos(frequency @ (x - z))
    return gram


def project(point, labels, upper):
    """The dual's feasible set by a general-purpose quadratic program."""
    solution = optimize.minimize(
        lambda a: 0.5 * np.sum((a - point) ** 2),
        np.full(len(point), min(upper, 1.0) / 2),
        jac=lambda a: a - point,
        bounds=[(0, upper if np.isfinite(upper) else None)] * len(point),
        constraints={"type": "eq", "fun": lambda a: labels @ a, "jac": lambda a: labels},
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 1000},
    )
    assert solution.success, solution.message
    return solution.x
