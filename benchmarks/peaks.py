"""Random games in high dimensions, and a search of their highest peaks that is not the library's.

The potential, its gradient and the ascents are written out here.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import minimize

from notsorandom import Euclidean, FourierFeatures
from notsorandom.data.rows import Array
from notsorandom.estimators.certify import solve_svms
from notsorandom.game.certificate import Certificate, lower_bound
from notsorandom.search.thorough import DRAWS_PER_START, THOROUGH_STEPS
from notsorandom.spaces import Supremum

# Evaluations of this search, as a multiple of the certificate's.
MORE = 20
# Ascents at a time, their steps, and how many of the highest peaks new starts are near to.
BATCH, STEPS, N_NEAR = 1024, 30, 64
LOSSES = ["hinge", "squared_hinge", "logistic", "squared", "epsilon_insensitive"]


def random_game(seed: int) -> tuple[FourierFeatures, Array, Array]:
    """Return an unfitted model, samples and targets: random ones, or of products of columns."""
    rng = np.random.default_rng(seed)
    n_features, n_samples = int(rng.integers(4, 31)), int(20 * 20 ** rng.random())
    n_tasks, in_ball, loss = [1, 1, 3][seed // 2 % 3], seed % 2 == 0, LOSSES[seed % 5]
    X = rng.standard_normal((n_samples, n_features)) * rng.uniform(0.5, 1.5, n_features)
    scores = rng.standard_normal((n_samples, n_tasks))
    scores += [0, 3][seed // 6 % 2] * X[:, :n_tasks] * X[:, 1 : n_tasks + 1]
    y: Array = scores.squeeze()
    if loss in LOSSES[:3]:
        y = scores.argmax(axis=1) if n_tasks > 1 else y > 0
    model = FourierFeatures(
        2 * int(rng.integers(2, 50)),
        loss=loss,
        C=float(10 ** rng.uniform(-1, 1)),
        phase=["aligned", "paired"][int(rng.integers(2))],
        space=Euclidean(max_norm=float(rng.uniform(0.5, 4))) if in_ball else "euclidean",
        smoothing=0 if in_ball else float(10 ** rng.uniform(-1.2, -0.2)),
        random_state=seed,
    )
    ball = model.space  # the equilibria of more samples or larger balls take minutes
    if isinstance(ball, Euclidean) and n_samples < 40 and ball.max_norm < 2:
        model.set_params(solver="equilibrium")
    return model, X, y


def bound_by_other_search(
    model: FourierFeatures, X: Array, y: Array, certificate: Certificate
) -> float:
    """Return the lower bound of the certificate's dual point, by the highest peak found here."""
    problem = model._training_problem(X, y)
    if certificate.source == "the model's dual":
        models = solve_svms(model.kernel_.features_of(problem.rows), problem)
        dual = np.column_stack([each.dual for each in models])
    else:
        named = {"the last dual": model.dual_, "the average dual": model.average_dual_}
        dual = problem.from_given(named[certificate.source]).astype(float)
    dual = problem.project(dual)
    X, measure = problem.rows.array.astype(float), problem.measure(dual)
    evaluations_per_ascent = DRAWS_PER_START + 2 * (THOROUGH_STEPS + 1)
    n_evaluations = MORE * certificate.n_ascents * evaluations_per_ascent
    highest = highest_potential(X, measure, model.phase, certificate.bandwidth, n_evaluations)
    return lower_bound(problem, [("", dual, Supremum(highest, math.inf))])[0]


def log_potential(X: Array, measure: Array, points: Array, phase: str) -> tuple[Array, Array]:
    """Return the log potential at some frequencies, and its gradients."""
    angles = points @ X.T
    waves = np.cos(angles) + 1j * np.sin(angles)
    transform = waves @ measure  # (n_points, n_tasks)
    potential, factor = np.square(np.abs(transform)).sum(axis=1), transform.conj()
    if phase == "aligned":
        square = np.square(transform).sum(axis=1)
        potential += np.abs(square)
        factor += np.exp(-1j * np.angle(square))[:, None] * transform
    potential = np.maximum(potential, 1e-30)
    slope = -2 * (waves * (factor @ measure.T)).imag @ X
    return np.log(potential), slope / potential[:, None]


def shorten(points: Array, radius: float | np.float32) -> Array:
    """Return the frequencies, those outside of the ball moved to its surface."""
    return points / np.maximum(np.linalg.norm(points, axis=1, keepdims=True) / radius, 1)


def climb(X: Array, measure: Array, points: Array, phase: str, radius: np.float32) -> Array:
    """Return frequencies after gradient ascent with a step size for each, highest first."""
    height, slope = log_potential(X, measure, points, phase)
    size = np.full(len(points), radius / 10)
    for _ in range(STEPS):
        shift = slope * (size / np.maximum(np.linalg.norm(slope, axis=1), 1e-12))[:, None]
        trial = shorten(points + shift, radius)
        higher, new_slope = log_potential(X, measure, trial, phase)
        rises = higher > height
        points = np.where(rises[:, None], trial, points)
        slope = np.where(rises[:, None], new_slope, slope)
        height = np.where(rises, higher, height)
        size *= np.where(rises, np.float32(1.5), np.float32(0.3))
    return points[np.argsort(-height)]


def highest_potential(
    X: Array, measure: Array, phase: str, radius: float, n_evaluations: float
) -> float:
    """Return the highest potential in a ball that many ascents find.

    A third of the starts is spread evenly over the ball, a third is of any order of length, and
    a third is near the highest peaks found. In the end these are climbed by L-BFGS.
    """
    rng, mass = np.random.default_rng(0), float(np.abs(measure).sum())
    single, measure = X.astype(np.float32), measure / mass
    landscape = single, measure.astype(np.float32)
    peaks = np.zeros((1, X.shape[1]), np.float32)
    for _ in range(math.ceil(n_evaluations / (BATCH * (STEPS + 1)))):
        starts, u = rng.standard_normal((BATCH, X.shape[1])), rng.random(BATCH)
        lengths = np.choose(np.arange(BATCH) % 3, [u ** (1 / X.shape[1]), 0.01**u, 0.5 * 0.01**u])
        starts *= (radius * lengths / np.linalg.norm(starts, axis=1))[:, None]
        starts[2::3] += peaks[rng.integers(len(peaks), size=len(starts[2::3]))]
        starts = shorten(starts, radius).astype(np.float32)
        found = climb(*landscape, starts, phase, np.float32(radius))[:N_NEAR]
        peaks = np.concatenate([peaks, found])
        peaks = peaks[np.argsort(-log_potential(*landscape, peaks, phase)[0])[:N_NEAR]]

    def depth(point: Array) -> tuple[float, Array]:
        excess = max(
            float(np.linalg.norm(point)) / radius, 1.0
        )  # a point outside stands for its nearest
        (height,), (slope,) = log_potential(X, measure, point[None] / excess, phase)
        if excess > 1:
            slope = (slope - point * (slope @ point) / (point @ point)) / excess
        return -height, -slope

    ends = [minimize(depth, peak.astype(float), jac=True, method="L-BFGS-B") for peak in peaks]
    return mass**2 * math.exp(-min(end.fun for end in ends))
