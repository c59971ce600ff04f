"""Random games, their values by conic programs and column generation, and a search of peaks.

Potentials, gradients, losses and programs are written out here: nothing is the library's own but
the harmonics, which `tests/spaces` compares with polynomials.
"""

from __future__ import annotations

from dataclasses import dataclass

import clarabel
import numpy as np
import reference
from scipy import sparse, special

from notsorandom import Euclidean, FourierFeatures, GradientSolver, Sphere
from notsorandom.game import QuantileLoss

LOSSES = ["hinge", "squared_hinge", "logistic", "squared", "epsilon_insensitive", "quantile"]
BASES = ["harmonic", "degree"]


def random_model(seed, space=None, n_samples=(8, 30)):
    """An unfitted model with random settings, samples, targets and weights."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(*n_samples))
    space = ["line", "plane", "space", "sphere"][seed % 4] if space is None else space
    loss = LOSSES[seed // 4 % 6]
    n_tasks = [1, 1, 3][seed // 24 % 3]
    if space == "sphere":
        X = reference.sphere_points(rng, n, 3)
        basis = BASES[seed // 72 % 2]
        settings = {"space": Sphere(basis, max_degree=3 - seed // 72 % 2)}
    else:
        n_features = {"line": 1, "plane": 2, "space": 3}.get(space, space)
        X = rng.standard_normal((n, n_features)) * rng.uniform(0.5, 1.5, n_features)
        radius = float(rng.uniform(1, [6, 4, 3][min(n_features, 3) - 1]))
        limited = seed // 72 % 2 or n_features > 3
        settings = {"space": Euclidean(max_norm=radius)} if limited else {}
    if loss in LOSSES[:3]:
        y = rng.permutation(np.arange(n) % (2 if n_tasks == 1 else n_tasks))
    else:
        y = rng.standard_normal((n, n_tasks)) * 10 ** rng.uniform(-1, 1)
        y = y[:, 0] if n_tasks == 1 else y
        loss = QuantileLoss(quantile=float(rng.uniform(0.1, 0.9))) if loss == "quantile" else loss
    solver = "equilibrium" if "space" in settings else "reweight"
    model = FourierFeatures(
        [6, 12][seed // 144 % 2],
        loss=loss,
        C=float(10 ** rng.uniform(-1, 1)),
        phase=["aligned", "paired"][seed // 3 % 2],
        smoothing=0 if "space" in settings else 0.1,
        solver=GradientSolver() if seed % 5 > 2 else solver,
        random_state=seed,
        **settings,
    )
    weights = rng.integers(1, 4, n).astype(float) if seed % 7 == 0 else None
    return model, X, y, weights


# The potential of measures of shape (n_samples, n_tasks), by single or paired waves.


def potentials(X, measure, frequencies, phase):
    """Potentials, and the phases at which a cosine has the largest one."""
    transform = measure.T @ np.exp(1j * (X @ frequencies.T))  # (n_tasks, n_frequencies)
    total = np.square(np.abs(transform)).sum(axis=0)
    # The sum of squares of C cos b + S sin b is half of total + Re(e^{-2ib} sum of (C + iS)^2).
    square = np.square(transform).sum(axis=0)
    if phase == "paired":
        return total, np.zeros(len(total))
    return total + np.abs(square), np.angle(square) / 2


def slopes(X, measure, frequencies, phase):
    """Gradients of the logarithms of the potentials."""
    waves = np.exp(1j * (X @ frequencies.T))
    transform = measure.T @ waves
    height, best = potentials(X, measure, frequencies, phase)
    factor = transform
    if phase == "aligned":  # the phase is the best one, so its own change doesn't matter
        turn = np.exp(1j * best)
        factor = 2 * np.real(transform * turn.conj()) * turn
    change = 2 * np.real(1j * waves * (measure @ factor.conj()))  # (n_samples, n_frequencies)
    return change.T @ X / np.maximum(height, 1e-300)[:, None]


def climb(X, measure, frequencies, phase, radius, n_steps):
    """Projected gradient ascent from many points at once, each with its own step size."""

    def height_of(points):
        return potentials(X, measure, points, phase)[0]

    height, size = height_of(frequencies), np.full(len(frequencies), 0.3)
    for _ in range(n_steps):
        slope = slopes(X, measure, frequencies, phase)
        slope /= np.maximum(np.linalg.norm(slope, axis=1, keepdims=True), 1e-12)
        trial = inside(frequencies + size[:, None] * slope, radius)
        higher = height_of(trial)
        rises = higher > height
        frequencies = np.where(rises[:, None], trial, frequencies)
        height, size = np.where(rises, higher, height), np.where(rises, 1.5 * size, size / 3)
    return frequencies, height


def inside(frequencies, radius):
    lengths = np.linalg.norm(frequencies, axis=1, keepdims=True)
    return frequencies * np.minimum(1, radius / np.maximum(lengths, 1e-300))


# Values of games.


@dataclass
class Reference:
    """A game whose value is found by conic programs, with all features or column by column."""

    X: np.ndarray
    problem: object  # its loss, targets and weights
    phase: str

    def __post_init__(self):
        self.targets = self.problem.targets.astype(float)
        self.weights = self.problem.counts[:, None].astype(float)

    def solve(self, factors):
        """Value and measure of the game over kernels with these features, as a conic program.

        Variables are the dual variables, or their positive and negative parts for an epsilon,
        entropies, and the root of the largest potential.
        """
        loss, (n, n_tasks) = self.problem.loss, self.targets.shape
        size, weights = n * n_tasks, np.repeat(self.weights, n_tasks, axis=1).ravel()
        target, is_entropic = self.targets.ravel(), "Logistic" in type(loss).__name__
        below, above = (np.full(size, side) for side in loss.sides)
        if loss.one_sided:
            below, above = np.where(target < 0, below, 0), np.where(target > 0, above, 0)
        low, high, dual = -below, above, sparse.identity(size)
        epsilon = getattr(loss, "epsilon", 0.0)
        if epsilon:
            low, high = np.zeros(2 * size), np.concatenate([above, below])
            dual = sparse.hstack([dual, -dual])
        n_duals, n_entropies = len(low), 2 * size * is_entropic
        n_variables = n_duals + n_entropies + 1
        curvature = 0 if is_entropic else loss.curvature
        squares = curvature * (dual.T @ sparse.diags(weights) @ dual)
        quadratic = sparse.block_diag([squares, sparse.csr_matrix((n_entropies,) * 2), 1.0])
        linear = np.zeros(n_variables)
        if is_entropic:
            linear[n_duals:-1] = -loss.upper * np.tile(weights, 2)
        else:
            linear[:n_duals] = epsilon * np.resize(weights, n_duals) - dual.T @ (weights * target)
        dual = sparse.hstack([dual, sparse.csr_matrix((size, n_entropies + 1))]).tocsr()
        tasks = sparse.kron(np.ones((1, n)), sparse.identity(n_tasks))
        identity = sparse.eye(n_duals, n_variables).tocsr()
        parts = np.isfinite(low), np.isfinite(high)
        rows = [tasks @ sparse.diags(weights) @ dual, -identity[parts[0]], identity[parts[1]]]
        right = [np.zeros(n_tasks), -low[parts[0]], high[parts[1]]]
        n_limits = int(np.sum(parts))
        cones = [clarabel.ZeroConeT(n_tasks), clarabel.NonnegativeConeT(n_limits)]
        if is_entropic:  # (u, p, 1) in the exponential cone: u <= -p log p, of p and of 1 - p
            share = (sparse.diags(target / loss.upper) @ dual).tocsr()
            entropies = sparse.eye(n_variables).tocsr()[n_duals:-1]
            for i in range(2 * size):
                sign, zero = (1, 0.0) if i < size else (-1, 1.0)
                rows += [-entropies[i], -sign * share[i % size], 0 * entropies[i]]
                right.append(np.array([0.0, zero, 1.0]))
                cones.append(clarabel.ExponentialConeT())
        for factor in factors:  # the norm over features and tasks is at most the root
            weighted = sparse.kron(factor.T * self.weights[:, 0], sparse.identity(n_tasks))
            root = sparse.csr_matrix(([-1.0], ([0], [n_variables - 1])), shape=(1, n_variables))
            rows += [root, -weighted @ dual]
            right.append(np.zeros(1 + weighted.shape[0]))
            cones.append(clarabel.SecondOrderConeT(1 + weighted.shape[0]))
        program = quadratic.tocsc(), linear, sparse.vstack(rows), np.concatenate(right), cones
        try:
            solution = reference.solve_cone_program(*program, almost=True)
        except AssertionError:  # too little progress
            solution = reference.solve_cone_program(*program, tol=1e-6, almost=True)
        return -solution.obj_val, (dual @ np.array(solution.x)).reshape(n, n_tasks)

    def linear_part(self, dual):
        """The dual objective without the potential."""
        loss, size = self.problem.loss, np.abs(dual)
        if "Logistic" in type(loss).__name__:
            share = np.clip(size / loss.upper, 0, 1)
            parts = loss.upper * (special.entr(share) + special.entr(1 - share))
        else:
            epsilon = getattr(loss, "epsilon", 0.0)
            parts = self.targets * dual - epsilon * size - 0.5 * loss.curvature * dual**2
        return float((self.weights * parts).sum())

    def waves(self, frequency, phase):
        angles = self.X @ frequency
        if self.phase == "paired":
            return np.column_stack([np.cos(angles), np.sin(angles)])
        return np.sqrt(2) * np.cos(angles - phase)[:, None]

    def bracket(self, radius, rng, tol=1e-3, max_sets=60, fineness=1):
        """Bounds on the value over a ball: of the frequencies found, and by the highest peak."""
        n_features = self.X.shape[1]
        n_side = fineness * {1: 1001, 2: 81, 3: 25}[n_features]
        grid = reference.grid_in_ball(n_features, radius, n_side)
        grid = np.concatenate([grid, inside(10 * rng.standard_normal((200, n_features)), radius)])
        factors = [self.waves(grid[i], p) for i in rng.integers(len(grid), size=4) for p in (0, 1)]
        best = -np.inf
        for _ in range(max_sets):
            value, dual = self.solve(factors)
            measure = self.weights * dual
            height = potentials(self.X, measure, grid, self.phase)[0]
            starts = grid[np.argsort(-height)[: 30 * fineness]]
            peaks, height = climb(self.X, measure, starts, self.phase, radius, 60 * fineness)
            best = max(best, self.linear_part(dual) - height.max() / 2)
            if value - best <= tol * value:
                break
            order, chosen = np.argsort(-height), []
            for i in order:
                if all(np.linalg.norm(peaks[i] - peaks[j]) > 0.1 for j in chosen):
                    chosen.append(i)
            phases = potentials(self.X, measure, peaks, self.phase)[1]
            factors += [self.waves(peaks[i], phases[i]) for i in chosen[:6]]
        return value, best


def sphere_factors(X, space, phase):
    """Features of each kernel of a sphere's space."""
    factors = reference.harmonic_factors(X, space.max_degree, space.basis)
    if phase == "aligned" or space.basis == "degree":
        return factors
    from notsorandom.spaces.harmonics import harmonic_indices

    indices = [tuple(np.abs(index)) for index in harmonic_indices(3, space.max_degree)]
    pairs = {index: [] for index in indices}
    for index, factor in zip(indices, factors, strict=True):
        pairs[index].append(factor)
    return [np.hstack(pair) / np.sqrt(len(pair)) for pair in pairs.values()]


def run_trial(seed):
    """The certificate of a random game, and bounds on its value by the reference."""
    model, X, y, weights = random_model(seed)
    certificate = model.fit(X, y, sample_weight=weights).certificate(X, y)
    problem = model._training_problem(X, y)
    rows = problem.rows.array.astype(float)
    game = Reference(rows, problem, model.phase)
    if isinstance(model.kernel_.space, Euclidean):
        radius, rng = certificate.bandwidth, np.random.default_rng(seed)
        upper, lower = game.bracket(radius, rng)
        if certificate.upper < lower:  # the reference may have missed a peak: look closer
            upper, lower = game.bracket(radius, rng, fineness=2)
    else:
        upper, _ = game.solve(sphere_factors(rows, model.space, model.phase))
        lower = upper
    return certificate, lower, upper
