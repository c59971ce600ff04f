"""Slow and obvious versions of everything, to test the fast ones against."""

import itertools

import clarabel
import numpy as np
from scipy import linalg, optimize, sparse, special

from notsorandom.game import Observer
from notsorandom.spaces.harmonics import harmonic_indices, harmonics


def unit(X):
    """Rows of norm one."""
    return X / np.linalg.norm(X, axis=1, keepdims=True)


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
        for (i, x), (j, z) in itertools.product(enumerate(X), enumerate(Z)):
            gram[i, j] += weight * np.cos(frequency @ (x - z))
    return gram


def aligned_gram(X, Z, frequencies, phases, weights):
    """The kernel of one cosine per frequency, each at its own phase, entry by entry."""
    gram = np.zeros((len(X), len(Z)))
    for frequency, phase, weight in zip(frequencies, phases, weights, strict=True):
        for (i, x), (j, z) in itertools.product(enumerate(X), enumerate(Z)):
            waves = np.cos(frequency @ x - phase) * np.cos(frequency @ z - phase)
            gram[i, j] += 2 * weight * waves
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


def sphere_points(rng, n_points, n_features):
    """Uniform points on the unit sphere."""
    return unit(rng.standard_normal((n_points, n_features)))


def sphere_quadrature(n_features, degree):
    """Points and weights that integrate polynomials up to a degree exactly over the sphere."""
    n_angles = degree + 1
    angle = 2 * np.pi * np.arange(n_angles) / n_angles
    points = np.column_stack([np.cos(angle), np.sin(angle)])
    weights = np.full(n_angles, 1 / n_angles)
    for dimension in range(3, n_features + 1):
        nodes, node_weights = special.roots_gegenbauer(degree // 2 + 1, dimension / 2 - 1)
        rings = np.sqrt(1 - nodes**2)[:, None, None] * points
        heights = np.broadcast_to(nodes[:, None, None], (*rings.shape[:2], 1))
        points = np.concatenate([rings, heights], axis=2).reshape(-1, dimension)
        weights = np.outer(node_weights / node_weights.sum(), weights).ravel()
    return points, weights


def legendre(n_features, degree, cosine):
    """Schoenberg's polynomial: the Gegenbauer polynomial that is 1 at 1."""
    if n_features == 2:
        return np.cos(degree * np.arccos(np.clip(cosine, -1, 1)))
    order = n_features / 2 - 1
    return special.eval_gegenbauer(degree, order, cosine) / special.eval_gegenbauer(
        degree, order, 1.0
    )


def degree_gram(X, degree):
    """The rotation-invariant kernel of one degree."""
    if X.shape[1] == 2:  # arccos is not exact enough next to 1
        angle = np.arctan2(X[:, 1], X[:, 0])
        return np.cos(degree * (angle[:, None] - angle))
    return legendre(X.shape[1], degree, X @ X.T)


def n_harmonic_polynomials(n_variables, degree):
    """Dimension of the kernel of the Laplacian on homogeneous polynomials, by its rank."""

    def exponents(n, total):
        if n == 1:
            return [(total,)]
        return [(k, *rest) for k in range(total + 1) for rest in exponents(n - 1, total - k)]

    monomials = exponents(n_variables, degree)
    if degree < 2:
        return len(monomials)
    place = {powers: i for i, powers in enumerate(exponents(n_variables, degree - 2))}
    laplacian = np.zeros((len(place), len(monomials)))
    for column, powers in enumerate(monomials):
        for variable, power in enumerate(powers):
            if power >= 2:
                image = list(powers)
                image[variable] -= 2
                laplacian[place[tuple(image)], column] += power * (power - 1)
    return len(monomials) - np.linalg.matrix_rank(laplacian)


def grid_in_ball(n_features, radius, n_side):
    """The points of a regular grid that lie in a ball."""
    axes = np.meshgrid(*[np.linspace(-radius, radius, n_side)] * n_features)
    grid = np.stack([axis.ravel() for axis in axes], axis=1)
    return grid[np.linalg.norm(grid, axis=1) <= radius]


def harmonic_factors(X, degree, basis="harmonic"):
    """Features of each kernel of the sphere of R^3: one harmonic, or all of a degree."""
    indices = harmonic_indices(3, degree)
    values = harmonics(X, indices)
    groups = indices[:, -1] if basis == "degree" else np.arange(len(indices))
    return [
        values[:, groups == group] / np.sqrt((groups == group).sum()) for group in np.unique(groups)
    ]


def game_value(potential_factors, labels, upper, curvature=0.0):
    """Value of a game over few frequencies, and the dual point, by a second-order cone program.

    Maximise sum(a) - s^2 / 2 - curvature / 2 |a|^2 with s at least the root of every potential.
    `potential_factors` has a matrix of features (n_samples, n_columns) for each frequency.
    """
    n = len(labels)
    quadratic = sparse.diags(np.append(np.full(n, curvature), 1.0), format="csc")
    linear = np.append(-np.ones(n), 0.0)
    box = [-np.eye(n)] + ([np.eye(n)] if np.isfinite(upper) else [])
    rows = [np.append(labels, 0.0)[None]]
    rows += [np.column_stack([side, np.zeros(n)]) for side in box]
    right = [np.zeros(1), np.zeros(n)] + ([np.full(n, upper)] if len(box) == 2 else [])
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(n * len(box))]
    for factor in potential_factors:  # (s, factor' (labels a)) in the cone
        signed = labels[:, None] * factor
        rows.append(linalg.block_diag(-signed.T, -1.0)[[-1, *range(factor.shape[1])]])
        right.append(np.zeros(1 + factor.shape[1]))
        cones.append(clarabel.SecondOrderConeT(1 + factor.shape[1]))
    program = quadratic, linear, np.vstack(rows), np.concatenate(right), cones
    solution = solve_cone_program(*program, almost=True)
    return -solution.obj_val, np.array(solution.x[:-1])


def conic_game_value(*game):
    """Value of a game, without the dual point."""
    return game_value(*game)[0]


def solve_cone_program(quadratic, linear, matrix, right, cones, tol=1e-8, almost=False):
    """Minimise x' Q x / 2 + c' x with b - A x in the cones."""
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_rel = settings.tol_gap_abs = settings.tol_feas = tol
    matrix = sparse.csc_matrix(matrix)
    solution = clarabel.DefaultSolver(quadratic, linear, matrix, right, cones, settings).solve()
    assert str(solution.status) in ({"Solved", "AlmostSolved"} if almost else {"Solved"})
    return solution


def svm_dual_objective(gram, labels, alpha, curvature=0.0):
    """The SVM's dual objective at unsigned dual variables."""
    signed = labels * alpha
    return alpha.sum() - 0.5 * signed @ gram @ signed - 0.5 * curvature * alpha @ alpha


def svm_dual_step(gram, labels, alpha, size, upper, curvature=0.0):
    """One projected gradient step on the SVM's dual: finite differences and a quadratic program."""
    slope = gradient(lambda a: svm_dual_objective(gram, labels, a, curvature), alpha, step=1e-4)
    return project(alpha + size * slope, labels, upper)


class CountingArray:
    """An array that supports slices only, as h5py's do, and records them."""

    def __init__(self, values, chunks=None):
        self.values = values
        self.shape, self.dtype, self.chunks = values.shape, values.dtype, chunks
        self.reads = []

    def __getitem__(self, key):
        assert isinstance(key, slice), "only slices are supported"
        self.reads.append((key.start, key.stop))
        return self.values[key].copy()


def linear_model_value(features, targets, loss, C, weights=None, epsilon=0.1, quantile=0.5):
    """Optimal primal value of a linear model with an unpenalised intercept, by a general solver.

    Ridge regression has a closed form, and logistic regression is smooth. The other losses are
    quadratic programs in the coefficients, the intercept and one slack variable per sample.
    """
    features, targets = features.astype(np.float64), targets.astype(np.float64)
    n, m = features.shape
    weights = C * (np.ones(n) if weights is None else weights.astype(np.float64))
    design = np.column_stack([features, np.ones(n)])
    ridge = np.append(np.ones(m), 0.0)
    if loss == "squared":
        hessian = np.diag(ridge) + 2 * design.T @ (weights[:, None] * design)
        model = np.linalg.solve(hessian, 2 * design.T @ (weights * targets))
        return 0.5 * model[:-1] @ model[:-1] + weights @ (targets - design @ model) ** 2
    if loss == "logistic":
        return logistic_value(design, targets, weights, ridge)
    identity = sparse.identity(n, format="csc")
    if loss == "epsilon_insensitive":
        sides = [(-design, epsilon - targets), (design, epsilon + targets)]
    elif loss == "quantile":
        sides = [(-q * design, -q * targets) for q in (quantile, quantile - 1)]
    else:
        sides = [(-targets[:, None] * design, -np.ones(n))]
    rows = [sparse.hstack([side, -identity]) for side, _ in sides]
    rows.append(sparse.hstack([sparse.csc_matrix((n, m + 1)), -identity]))
    quadratic_slack = loss == "squared_hinge"
    return solve_cone_program(
        sparse.diags(np.append(ridge, 2 * weights * quadratic_slack), format="csc"),
        np.append(np.zeros(m + 1), weights * (not quadratic_slack)),
        sparse.vstack(rows),
        np.concatenate([right for _, right in sides] + [np.zeros(n)]),
        [clarabel.NonnegativeConeT(n * (len(sides) + 1))],
        tol=1e-10,
    ).obj_val


def logistic_value(design, labels, weights, ridge):
    """Optimal value of logistic regression with a ridge, by a trust region method."""

    def value(model):
        losses = np.logaddexp(0, -labels * (design @ model))
        return 0.5 * ridge @ model**2 + weights @ losses

    def slope(model):
        wrong = special.expit(-labels * (design @ model))
        return ridge * model - design.T @ (weights * labels * wrong)

    def hessian(model):
        wrong = special.expit(-labels * (design @ model))
        return np.diag(ridge) + design.T @ ((weights * wrong * (1 - wrong))[:, None] * design)

    start, options = np.zeros(design.shape[1]), {"gtol": 1e-9 * weights.sum(), "maxiter": 1000}
    return optimize.minimize(
        value, start, method="trust-exact", jac=slope, hess=hessian, options=options
    ).fun


class Recorder(Observer):
    """The records of a game's rounds, and the dual variables at the start of each."""

    def __init__(self):
        self.records, self.duals = [], []

    def after_round(self, game):
        self.records.append(game.history[-1])
        self.duals.append(game.previous_dual.copy())
        return False


def useless_numbers(name, values):
    """Why nothing can be learned from a column of numbers of which NaN are missing; or nothing."""
    known = values[~np.isnan(values)]
    n_rows, is_gapless = len(values), len(known) == len(values)
    if not len(known):
        return "empty"
    if is_gapless and len(set(known)) == 1:
        return "constant"
    if not is_gapless or any(value != round(value) for value in values):
        return ""
    least, most, is_unique = min(values), max(values), len(set(values)) == n_rows
    if n_rows < 20:
        is_row_number = n_rows > 2 and values.tolist() in (
            [*range(n_rows)],
            [*range(1, n_rows + 1)],
        )
    else:
        is_row_number = is_unique and 0 <= least <= 0.1 * most + 1 and most - least < 2 * n_rows
    if is_row_number:
        return "row numbers"
    is_named = name.lower() in ("id", "index") or name.endswith("_id")
    return "unique integers, named like an ID" if is_named and is_unique else ""
