import math
import warnings

import numpy as np
import pytest
import reference
from scipy import optimize

from experiments.excessive_gap import excessive_gap
from notsorandom import Euclidean, FourierClassifier, FourierFeatures, Sphere
from notsorandom.datasets import make_checkerboard, make_windmill
from notsorandom.game import (
    CLASSIFICATION_LOSSES,
    LOSSES,
    REGRESSION_LOSSES,
    Problem,
    find_equilibrium,
)
from notsorandom.game.equilibrium import FiniteGame, operator_norm, shrink
from notsorandom.linear.newton import solve_task

BOTH_LOSSES = pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
BASIS = pytest.mark.parametrize("basis", ["harmonic", "degree"])


def instance(seed, n_samples=16, degree=2, basis="harmonic"):
    """Features of kernels on the sphere: by kernel, as columns with their groups; and labels."""
    rng = np.random.default_rng(seed)
    X = reference.sphere_points(rng, n_samples, 3)
    labels = rng.permutation(np.arange(n_samples) % 2) * 2.0 - 1
    factors = reference.harmonic_factors(X, degree, basis)
    groups = np.repeat(np.arange(len(factors)), [factor.shape[1] for factor in factors])
    return factors, np.hstack(factors), groups, labels[:, None]


@BOTH_LOSSES
@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("seed", range(3))
def test_value_agrees_with_a_general_solver(loss, C, seed):
    for basis in ("harmonic", "degree"):
        factors, columns, groups, labels = instance(seed, basis=basis)
        problem = Problem.from_arrays(LOSSES[loss].times(C), labels)
        value, _ = reference.game_value(
            factors, labels[:, 0], problem.loss.upper, problem.loss.curvature
        )
        equilibrium = find_equilibrium(columns, groups, problem)
        assert equilibrium.relative_gap <= 1e-3
        np.testing.assert_allclose(equilibrium.upper, value, rtol=2e-3)
        assert equilibrium.lower <= value * (1 + 1e-5)
        assert equilibrium.upper >= value * (1 - 1e-5)


@pytest.mark.parametrize("loss", REGRESSION_LOSSES)
def test_the_unit_of_the_targets_does_not_matter(rng, loss):
    """Multiples by a power of two are exact, and take as many steps."""
    _, features, groups, _ = instance(0, n_samples=60, degree=5)
    targets = features[:, :2] + rng.standard_normal((60, 2))
    problem = Problem.from_arrays(LOSSES[loss], targets)
    one, other = (
        find_equilibrium(features, groups, problem.rescaled(scale)) for scale in (1, 1 / 1024)
    )
    assert other.n_steps == one.n_steps
    np.testing.assert_array_equal(other.weights, one.weights)
    np.testing.assert_array_equal(other.dual, 1024 * one.dual)


@BOTH_LOSSES
@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
@BASIS
def test_value_on_the_sphere_agrees_with_a_conic_solver(loss, C, basis):
    """To 1e-3, through the estimator: 150 samples of the checkerboard, 81 harmonics."""
    X, y = make_checkerboard(150, random_state=0)
    space, dual_loss = Sphere(basis, max_degree=8), LOSSES[loss].times(C)
    settings = {"space": space, "loss": loss, "C": C, "solver": "equilibrium", "smoothing": 0}
    certificate = FourierFeatures(81, **settings).fit(X, y).certificate(X, y)
    factors, labels = reference.harmonic_factors(X, 8, basis), np.where(y == 1, 1.0, -1.0)
    value = reference.conic_game_value(factors, labels, dual_loss.upper, dual_loss.curvature)
    np.testing.assert_allclose(certificate.upper, value, rtol=1e-3)
    np.testing.assert_allclose(certificate.lower, value, rtol=1e-3)
    assert certificate.lower <= value * (1 + 1e-7) + 1e-9
    assert certificate.upper >= value * (1 - 1e-7)


@pytest.mark.parametrize("loss", CLASSIFICATION_LOSSES)
@pytest.mark.parametrize("C", [0.1, 2.0])
def test_bounds_hold_for_the_found_and_for_other_kernels(loss, C):
    """The SVM on the weighted kernel attains the upper bound; no kernel is below the lower."""
    _, features, groups, labels = instance(0, n_samples=60, degree=5)
    problem = Problem.from_arrays(LOSSES[loss].times(C), labels)
    equilibrium = find_equilibrium(features, groups, problem)
    weighted = features * np.sqrt(equilibrium.weights)
    svm = solve_task(weighted, problem, 1e-6)
    assert equilibrium.relative_gap <= 1e-3
    assert svm.dual_value <= equilibrium.upper * (1 + 1e-9)
    np.testing.assert_allclose(svm.primal_value, equilibrium.upper, rtol=2e-3)
    dual = equilibrium.dual
    assert (dual * labels >= 0).all()
    assert (np.abs(dual) <= problem.loss.upper).all()
    assert abs(dual.sum()) < 1e-9
    random = np.random.default_rng(0)
    for _ in range(20):
        weights = random.dirichlet(np.full(len(groups), 0.1))
        other = solve_task(features * np.sqrt(weights), problem, 1e-6)
        assert other.primal_value >= equilibrium.lower


@pytest.mark.parametrize("loss", CLASSIFICATION_LOSSES)
@pytest.mark.parametrize("C", [1e-100, 1e30, 1e300])
def test_extreme_numbers_end_with_finite_weights(loss, C):
    _, features, groups, labels = instance(0, n_samples=20)
    problem = Problem.from_arrays(LOSSES[loss].times(C), labels)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        equilibrium = find_equilibrium(features, groups, problem, max_steps=200)
    np.testing.assert_allclose(equilibrium.weights.sum(), 1)
    assert 0 <= equilibrium.lower <= equilibrium.upper
    assert 0 <= equilibrium.relative_gap <= 1


def test_tasks_share_the_kernel():
    _, features, groups, labels = instance(0, n_samples=60, degree=3)
    labels = np.column_stack([labels[:, 0], np.roll(labels[:, 0], 7)])
    problem = Problem.from_arrays(LOSSES["hinge"], labels)
    equilibrium = find_equilibrium(features, groups, problem)
    assert equilibrium.relative_gap <= 1e-3
    weighted = features * np.sqrt(equilibrium.weights)
    total = sum(solve_task(weighted, problem.task(k), 1e-6).primal_value for k in range(2))
    np.testing.assert_allclose(total, equilibrium.upper, rtol=2e-3)


@pytest.mark.parametrize("amount", [0.01, 0.5, 10.0])
def test_shrink_minimises_the_proximal_objective(rng, amount):
    coef, groups = rng.standard_normal((7, 2)), np.array([0, 0, 1, 2, 2, 3, 3])

    def objective(flat):
        other = flat.reshape(7, 2)
        norms = [np.linalg.norm(other[groups == group]) for group in range(4)]
        return 0.5 * np.sum((other - coef) ** 2) + 0.5 * amount * sum(norms) ** 2

    problem = Problem.from_arrays(LOSSES["hinge"], np.empty((0, 2)))
    game = FiniteGame(np.empty((0, 7)), groups, problem)
    ours = shrink(game, coef, amount)
    best = optimize.minimize(objective, 0.5 * coef.ravel(), method="Powell", tol=1e-12)
    assert objective(ours.ravel()) <= best.fun + 1e-6
    np.testing.assert_array_equal(shrink(game, 0 * coef, amount), 0 * coef)


def test_operator_norm_is_the_largest_singular_value(rng):
    features = rng.standard_normal((60, 20)) + 0.3
    exact = np.linalg.norm(np.column_stack([features, np.ones(60)]), 2)
    assert 0.99 * exact <= operator_norm(features) <= exact * (1 + 1e-9)


def test_weights_equal_repeated_samples():
    _, features, groups, labels = instance(0, n_samples=20)
    counts = np.random.default_rng(0).integers(1, 4, size=20)
    problem = Problem.from_arrays(LOSSES["hinge"], labels, counts[:, None].astype(float))
    many = Problem.from_arrays(LOSSES["hinge"], np.repeat(labels, counts, axis=0))
    ours = find_equilibrium(features, groups, problem)
    theirs = find_equilibrium(np.repeat(features, counts, axis=0), groups, many)
    assert max(ours.relative_gap, theirs.relative_gap) <= 1e-3
    np.testing.assert_allclose(ours.upper, theirs.upper, rtol=2e-3)


@pytest.fixture(scope="module")
def checkerboard():
    return make_checkerboard(400, random_state=0)


class TestEstimators:
    def test_equilibrium_on_the_sphere_is_certified(self, checkerboard):
        X, y = checkerboard
        settings = {"space": "sphere", "C": 1.0, "smoothing": 0, "random_state": 0}
        model = FourierFeatures(1000, solver="equilibrium", **settings).fit(X, y)
        certificate = model.certificate(X, y)
        assert certificate.certified
        assert certificate.relative_gap <= 1.2e-3
        played = FourierFeatures(1000, **settings).fit(X, y)
        assert played.certificate(X, y).upper > certificate.upper
        assert (np.diff(model.kernel_.weights) <= 0).all()

    @pytest.mark.parametrize(("basis", "phase"), [("degree", "aligned"), ("harmonic", "paired")])
    def test_groups_stay_together(self, checkerboard, basis, phase):
        X, y = checkerboard
        space = Sphere(basis, max_degree=8)
        settings = {"space": space, "phase": phase, "solver": "equilibrium", "smoothing": 0}
        whole = FourierFeatures(1000, **settings).fit(X, y)
        assert whole.certificate(X, y).relative_gap <= 1.2e-3
        part = FourierFeatures(40, **settings).fit(X, y)
        assert 10 < part.kernel_.n_components <= 40
        for kernel in (whole.kernel_, part.kernel_):
            groups = kernel.space.groups(kernel.frequencies, phase)
            for group in np.unique(groups):
                weights = kernel.weights[groups == group]
                np.testing.assert_allclose(weights, weights[0])
                members = kernel.frequencies[groups == group]
                representative = kernel.space.representatives(members, phase)[0]
                assert len(weights) == len(kernel.space.members(representative, phase))
        if basis == "degree":
            with pytest.raises(ValueError, match="n_components=2 is too small"):
                FourierFeatures(2, **settings).fit(X, y)

    def test_smoothing_favours_low_degrees(self, checkerboard):
        settings = {"space": "sphere", "solver": "equilibrium"}
        rough, smooth = (
            FourierFeatures(1000, smoothing=smoothing, **settings).fit(*checkerboard).kernel_
            for smoothing in (0.0, 0.1)
        )
        mean = [kernel.weights @ kernel.frequencies[:, -1] for kernel in (rough, smooth)]
        assert mean[1] < mean[0]
        np.testing.assert_allclose(smooth.weights.sum(), 1)

    def test_equilibrium_classifies_the_checkerboard(self):
        settings = {"space": Sphere(max_degree=8), "solver": "equilibrium", "C": 10}
        model = FourierClassifier(50, smoothing=0.02, **settings)
        model.fit(*make_checkerboard(600, random_state=0))
        assert model.score(*make_checkerboard(5000, random_state=1)) > 0.95
        assert model.coef_.shape[1] <= 50

    @pytest.mark.parametrize("phase", ["aligned", "paired"])
    @pytest.mark.parametrize("space", ["euclidean", "sphere"])
    def test_reweighting_raises_the_margin_and_drops_features(self, space, phase):
        X, y = (make_windmill if space == "euclidean" else make_checkerboard)(300, random_state=0)
        settings = {"space": space, "phase": phase, "smoothing": 0.1, "C": 1.0, "random_state": 0}
        plain = FourierFeatures(60, **settings).fit(X, y)
        better = FourierFeatures(60, solver="reweight", **settings).fit(X, y)
        found = {tuple(frequency) for frequency in plain.frequencies_}
        assert all(tuple(frequency) in found for frequency in better.frequencies_)
        assert better.kernel_.n_components <= plain.kernel_.n_components
        bandwidth = plain.kernel_.space.bandwidth(plain.frequencies_)
        uppers = [
            model.certificate(X, y, bandwidth, max_evaluations=500).upper
            for model in (plain, better)
        ]
        assert uppers[1] < uppers[0]
        assert better.transform(X).shape == (300, better.kernel_.n_components)
        assert math.isclose(better.kernel_.weights.sum(), 1)


@pytest.mark.parametrize("n_features", [1, 2, 3])
@pytest.mark.parametrize("phase", ["aligned", "paired"])
@BOTH_LOSSES
def test_equilibrium_on_vectors(n_features, phase, loss):
    """Certified to the stated gap; kernels on a grid have a higher value, by a conic program."""
    rng = np.random.default_rng(n_features)
    X, y = rng.standard_normal((20, n_features)), rng.permutation(np.arange(20) % 2)
    settings = {"space": Euclidean(max_norm=1.5), "phase": phase, "loss": loss, "C": 1.0}
    model = FourierFeatures(200, smoothing=0, solver="equilibrium", random_state=0, **settings)
    certificate = model.fit(X, y).certificate(X, y)
    assert certificate.certified
    assert certificate.bandwidth == 1.5
    assert certificate.relative_gap <= (5e-2 if n_features == 3 else 1e-2)
    assert np.linalg.norm(model.frequencies_, axis=1).max() <= 1.5 * (1 + 1e-6)
    grid = reference.grid_in_ball(n_features, 1.5, [0, 41, 13, 7][n_features])
    angles, labels, parts = X @ grid.T, np.where(y == 1, 1.0, -1.0), LOSSES[loss]
    if phase == "paired":
        factors = [np.column_stack([np.cos(angle), np.sin(angle)]) for angle in angles.T]
    else:
        phases = np.linspace(0, np.pi, 8, endpoint=False)
        factors = [math.sqrt(2) * np.cos(angle - b)[:, None] for angle in angles.T for b in phases]
    value = reference.conic_game_value(factors, labels, parts.upper, parts.curvature)
    assert certificate.lower <= value * (1 + 1e-6)
    assert certificate.upper <= value * (1 + 1e-2)
    assert certificate.upper >= 0.8 * value  # otherwise the grid would be too coarse


@pytest.mark.parametrize("space", [Euclidean(max_norm=3.0), Sphere("zonal", max_degree=3)])
def test_estimated_equilibrium_in_high_dimension(space):
    rng = np.random.default_rng(0)
    X = reference.sphere_points(rng, 40, 5)
    y = X[:, 0] * X[:, 1] > 0
    settings = {"space": space, "loss": "hinge", "C": 1.0, "smoothing": 0, "random_state": 0}
    model = FourierFeatures(100, solver="equilibrium", **settings)
    certificate = model.fit(X, y).certificate(X, y)
    assert not certificate.certified
    assert certificate.relative_gap <= 2e-2
    played = FourierFeatures(100, **settings).fit(X, y)
    assert certificate.upper <= played.certificate(X, y).upper * 1.01


def test_equilibrium_without_a_limit_of_the_frequencies(rng):
    X, y = rng.standard_normal((20, 2)), np.arange(20) % 2
    model = FourierFeatures(10, C=1.0, smoothing=0, solver="equilibrium")
    with pytest.raises(ValueError, match="needs a limit of the frequencies"):
        model.fit(X, y)


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
@BASIS
def test_excessive_gap_technique(C, basis):
    """Its points enclose the value of a conic program, within the theorem's bound, O(1 / T)."""
    factors, columns, groups, labels = instance(0, n_samples=30, degree=4, basis=basis)
    problem = Problem.from_arrays(LOSSES["hinge"].times(C), labels)
    value = reference.conic_game_value(factors, labels[:, 0], C)
    records = list(excessive_gap(columns, groups, problem, {1, 10, 100, 1000}))
    assert [each.n_steps for each in records] == [1, 10, 100, 1000]
    for each in records:
        assert each.lower <= value * (1 + 1e-6)
        assert each.upper >= value * (1 - 1e-6)
        assert each.upper - each.lower <= each.theory
    theory = np.array([each.theory for each in records])
    ratios = theory[2:] / theory[1:-1]
    np.testing.assert_allclose(ratios, 0.1, rtol=0.2)


def test_excessive_gap_technique_refuses_other_problems():
    """It says what it got; the bounds of other losses and of several tasks would be wrong."""
    _, features, groups, labels = instance(0, n_samples=12, degree=1)
    hinge, weights = LOSSES["hinge"], np.full(12, 2.0)
    refused = [
        (Problem.from_arrays(LOSSES["epsilon_insensitive"], labels), "epsilon=0.1"),
        (Problem.from_arrays(LOSSES["squared_hinge"], labels), "curvature="),
        (Problem.from_arrays(LOSSES["logistic"], labels), "LogisticLoss"),
        (Problem.from_arrays(hinge, np.column_stack([labels, -labels])), "2 tasks"),
        (Problem.from_arrays(hinge, labels, weights), "with sample weights"),
    ]
    for problem, got in refused:
        with pytest.raises(ValueError, match=f"got .*{got}.* is for the hinge loss"):
            next(excessive_gap(features, groups, problem, [1]))
    with pytest.raises(ValueError, match="steps is empty: give at least one"):
        next(excessive_gap(features, groups, Problem.from_arrays(hinge, labels), []))
