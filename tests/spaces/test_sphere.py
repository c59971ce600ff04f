"""The sphere: harmonics, whole degrees and zonal features, in the space and in a fit."""

import numpy as np
import pytest
import reference
from scipy.stats import special_ortho_group
from sklearn.base import clone

from notsorandom import (
    Ascent,
    Enumerate,
    FourierClassifier,
    FourierFeatures,
    GradientSolver,
    Langevin,
    LearnedKernel,
    Sphere,
)
from notsorandom.data.rows import Rows
from notsorandom.datasets import make_checkerboard
from notsorandom.game import LOSSES, Problem, play
from notsorandom.spaces import HarmonicSphere, Landscape, ZonalSphere
from notsorandom.spaces.gegenbauer import n_harmonics
from notsorandom.spaces.harmonic_sphere import label_rows
from notsorandom.spaces.harmonics import harmonic_indices, harmonics
from notsorandom.spaces.landscape import potential_of
from notsorandom.spaces.zonal_sphere import highest_degree

pytestmark = pytest.mark.usefixtures("quick_trials")


def make_problem(rng, basis, n_tasks=1, n_features=4, n_samples=40, max_degree=3, dtype=np.float64):
    rows = Rows(reference.sphere_points(rng, n_samples, n_features).astype(dtype))
    measure = rng.standard_normal((n_samples, n_tasks)).astype(dtype)
    space = Sphere(basis=basis, max_degree=max_degree).resolve(rows, rng)
    return rows, measure, space.draw(7, rows, rng), space


@pytest.fixture
def checkerboard():
    return make_checkerboard(300, random_state=0)


def fit_features(X, y, n_components=5, space="sphere", **settings):
    settings = {"smoothing": 0.06, "random_state": 0} | settings
    return FourierFeatures(n_components, space=space, **settings).fit(X, y)


def features_of(space, rows, frequencies):
    return space.features(rows.array, frequencies, np.zeros(len(frequencies)), "aligned")


@pytest.mark.parametrize("n_tasks", [1, 3])
@pytest.mark.parametrize("basis", ["harmonic", "zonal"])
def test_potential_is_the_squared_sum_of_the_features(rng, basis, n_tasks):
    rows, measure, frequencies, space = make_problem(rng, basis, n_tasks)
    features = features_of(space, rows, frequencies)
    expected = [sum((feature @ task) ** 2 for task in measure.T) for feature in features.T]
    amplitudes = space.amplitudes(rows, measure, frequencies)
    np.testing.assert_allclose(potential_of(amplitudes), expected)
    alignment = space.alignment(amplitudes, space.phases(amplitudes), "aligned")
    np.testing.assert_allclose(alignment[:, 0], features.T @ measure, atol=1e-12)


@pytest.mark.parametrize("n_features", [2, 3, 4, 6])
def test_amplitudes_of_all_harmonics(rng, n_features):
    rows, measure, _, space = make_problem(rng, "harmonic", 2, n_features=n_features)
    indices = space.all_frequencies(n_features)
    np.testing.assert_allclose(
        space.all_amplitudes(rows, measure),
        space.amplitudes(rows, measure, indices),
        atol=1e-10,
    )


def test_zonal_features_span_the_harmonics(rng):
    rows, _, _, space = make_problem(rng, "zonal", n_samples=60)
    degree = 3
    poles = reference.sphere_points(rng, 2 * n_harmonics(4, degree), 4)
    indices = harmonic_indices(4, degree)
    whole = harmonics(rows.array, indices[indices[:, -1] == degree])
    zonal = features_of(space, rows, degree * poles)
    together = np.column_stack([whole, zonal])
    assert np.linalg.matrix_rank(zonal) == n_harmonics(4, degree)
    assert np.linalg.matrix_rank(together) == n_harmonics(4, degree)


@pytest.mark.parametrize("n_tasks", [1, 3])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_slope_of_the_zonal_landscape(rng, n_tasks, smoothing):
    """The slope is tangential to the sphere and agrees with finite differences."""
    rows, measure, frequencies, space = make_problem(rng, "zonal", n_tasks)
    landscape = Landscape(space, rows, measure, smoothing)
    points = landscape.evaluate_with_slope(frequencies)
    np.testing.assert_allclose((points.slope * frequencies).sum(axis=1), 0, atol=1e-9)
    direction = rng.standard_normal(frequencies.shape)
    step = 1e-6
    ahead, behind = (landscape.move(points, s * direction).height for s in (step, -step))
    np.testing.assert_allclose(
        (points.slope * direction).sum(axis=1), (ahead - behind) / (2 * step), rtol=1e-4, atol=1e-5
    )


def test_moving_keeps_the_degree(rng):
    _, _, frequencies, space = make_problem(rng, "zonal")
    moved = space.move(frequencies, 5 * rng.standard_normal(frequencies.shape))
    np.testing.assert_allclose(
        np.linalg.norm(moved, axis=1), np.linalg.norm(frequencies, axis=1), rtol=1e-12
    )
    np.testing.assert_allclose(space.move(frequencies, 0 * frequencies), frequencies)


def test_zonal_features_are_scaled_to_the_samples(rng):
    rows, _, frequencies, space = make_problem(rng, "zonal")
    features = features_of(space, rows, frequencies)
    scales = space.scales(rows, frequencies)
    np.testing.assert_allclose((features * scales).std(axis=0), 1)
    np.testing.assert_allclose(space.penalty(rows, frequencies, 0.0), -2 * np.log(scales))
    assert (space.penalty(rows, frequencies, 0.1) > -2 * np.log(scales)).all()


def test_smoothing_of_harmonics_is_diffusion_of_the_samples(rng):
    rows, _, _, _ = make_problem(rng, "harmonic", n_features=3, n_samples=1)
    space = HarmonicSphere(max_degree=3).resolve(rows, rng)
    indices = space.all_frequencies(3)
    smoothing, n_steps = 0.3, 100
    penalty = space.penalty(rows, indices, smoothing)
    X = np.repeat(rows.array, 100_000, axis=0)
    for _ in range(n_steps):
        step = smoothing * space.scale / n_steps**0.5 * rng.standard_normal(X.shape)
        X = reference.unit(X + step)
    blurred = harmonics(X, indices).mean(axis=0)
    expected = harmonics(rows.array, indices)[0] * np.exp(-penalty / 2)
    np.testing.assert_allclose(blurred, expected, atol=0.03)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_features", [2, 3, 20, 768])
def test_zonal_features_are_finite_at_every_degree(rng, dtype, n_features):
    largest = min(highest_degree(n_features, np.dtype(dtype)), 300)
    assert largest >= 3
    rows, measure, _, _ = make_problem(rng, "zonal", n_features=n_features, dtype=dtype)
    space = ZonalSphere(max_degree=largest).resolve(rows, rng)
    degrees = np.arange(1, largest + 1, max(1, largest // 40))
    poles = np.resize(rows.array[:3], (len(degrees), n_features))  # where values are largest
    random = reference.sphere_points(rng, len(degrees), n_features)
    for places in (poles, random):
        frequencies = (places * degrees[:, None]).astype(dtype)
        points = Landscape(space, rows, 100 * measure, 0.06).evaluate_with_slope(frequencies)
        scales = space.scales(rows, frequencies)
        for values in (points.height, points.slope, points.amplitudes, scales):
            assert np.isfinite(values).all()
        features = features_of(space, rows, frequencies) * scales
        np.testing.assert_allclose(features.astype(np.float64).std(axis=0), 1, rtol=1e-3)


def test_degree_that_would_overflow_is_rejected(rng):
    rows, _, _, _ = make_problem(rng, "zonal", n_features=768, dtype=np.float32)
    with pytest.raises(ValueError, match=r"max_degree=40 is too high.*float64"):
        Sphere(basis="zonal", max_degree=40).resolve(rows, rng)


def test_view_can_hold_every_degree(rng):
    rows, single = Rows(reference.sphere_points(rng, 9, 2)), np.dtype(np.float32)
    automatic = Sphere(basis="zonal").resolve(rows, rng)
    assert automatic.max_degree == highest_degree(2, single) == 64
    assert automatic.view(rows, "float32", rng).dtype == "float32"
    high = Sphere(basis="zonal", max_degree=65).resolve(rows, rng)
    view = high.view(rows, "float32", rng)
    assert view.dtype == "float64"
    assert high.resolve(view.apply(rows), rng).max_degree == 65


@pytest.mark.parametrize("max_degree", [1, 3, 30])
def test_low_zonal_degrees_are_drawn_most(rng, max_degree):
    # Degree l has the probability log(1 + 1 / l) / log(1 + max_degree).
    rows, _, _, space = make_problem(rng, "zonal", max_degree=max_degree)
    degrees = space.norms(np.concatenate([space.draw(16, rows, rng) for _ in range(1000)]))
    shares = np.bincount(degrees, minlength=max_degree + 1)[1:] / len(degrees)
    expected = np.diff(np.log(np.arange(1, max_degree + 2))) / np.log(max_degree + 1)
    np.testing.assert_allclose(shares, expected, atol=0.01)


@pytest.mark.parametrize("n_columns", [1, 2, 5])
def test_equal_rows_have_equal_labels(rng, n_columns):
    rows = rng.integers(-1, 2, size=(40, n_columns))
    labels = label_rows(rows)
    equal = (rows[:, None] == rows[None]).all(axis=2)
    np.testing.assert_array_equal(labels[:, None] == labels[None], equal)


@pytest.mark.parametrize(
    ("n_features", "kind", "degree"),
    [
        *[(2, "finite", 499), (3, "finite", 30), (4, "finite", 12)],
        *[(5, "continuous", 8), (8, "continuous", 4), (50, "continuous", 3)],
        (768, "continuous", 3),
    ],
)
def test_auto_is_harmonic_in_few_dimensions(rng, n_features, kind, degree):
    space = Sphere().resolve(Rows(reference.sphere_points(rng, 9, n_features)), rng)
    assert (space.kind, space.max_degree) == (kind, degree)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"basis": "zonall"}, r"basis='zonall' is not allowed.*'zonal'"),
        ({"max_degree": 0}, r"max_degree=0 is not allowed"),
        ({"max_harmonics": 0.5}, r"max_harmonics=0.5 is not allowed"),
        ({"max_harmonics": 3}, r"max_harmonics=3 is too few.*degrees 0 and 1 have 4"),
        ({"max_degree": 40}, r"max_degree=40 has more harmonics.*at most degree 30"),
        ({"max_degree": 10**6}, r"max_degree=1000000 has more harmonics"),
        ({"normalize": "no"}, r"normalize='no' is not allowed: it must be True or False"),
        ({"basis": "zonal"}, r"phase='paired' is not allowed with zonal"),
    ],
)
def test_bad_settings(checkerboard, settings, message):
    with pytest.raises(ValueError, match=message):
        fit_features(*checkerboard, 6, Sphere(**settings), phase="paired")


class TestUnitNorm:
    @pytest.mark.parametrize(
        ("factor", "normalize", "message"),
        [
            (1.5, False, r"Row 7 of X has norm 1.5.*within 0\.001 \(2 of 300.*normalize=True"),
            (1.0011, False, r"within 0\.001"),
            (0, False, r"Row 7 of X is zero \(2 of 300 rows are\)"),
            (0, True, r"Row 7 of X is zero \(2 of 300 rows are\)"),
        ],
    )
    def test_other_norms_are_rejected(self, checkerboard, factor, normalize, message):
        X, y = checkerboard
        model = fit_features(X, y, space=Sphere(normalize=normalize))
        X[[7, 20]] *= factor
        for method in (lambda X: clone(model).fit(X, y), model.transform, model.kernel_):
            with pytest.raises(ValueError, match=message):
                method(X)

    def test_one_column_is_rejected(self):
        with pytest.raises(ValueError, match=r"n_features = 1.*at least 2"):
            fit_features([[1.0], [-1.0]], [0, 1])

    def test_norms_within_the_tolerance_are_normalised(self, checkerboard):
        X, y = checkerboard
        near, exact = (fit_features(X * norm, y) for norm in (1.0009, 1))
        np.testing.assert_array_equal(near.frequencies_, exact.frequencies_)
        np.testing.assert_allclose(near.transform(X * 0.9991), exact.transform(X), atol=1e-12)

    def test_normalize_makes_norms_irrelevant(self, rng, checkerboard):
        X, y = checkerboard
        norms = rng.uniform(0.1, 10, size=(300, 1))
        space = Sphere(normalize=True)
        one, other = (fit_features(data, y, space=space) for data in (X, X * norms))
        np.testing.assert_array_equal(one.frequencies_, other.frequencies_)
        for size in (1e-200, 3, 1e200):
            np.testing.assert_allclose(other.transform(X * size), one.transform(X), atol=1e-6)


class TestInvariance:
    @pytest.mark.parametrize("n_features", [2, 3, 4, 6])
    def test_kernel_of_whole_degrees_depends_on_the_inner_product(self, rng, n_features):
        X = reference.sphere_points(rng, 300, n_features)
        y = X[:, 0] * X[:, 1] + 0.3 * X[:, 1] > 0
        space = Sphere(basis="degree", max_degree=4)
        kernel = fit_features(X, y, 100, space, smoothing=0).kernel_
        rotation = special_ortho_group.rvs(n_features, random_state=0)
        np.testing.assert_allclose(kernel(X @ rotation, X @ rotation), kernel(X), atol=1e-10)
        degrees = np.abs(kernel.frequencies[:, -1])
        expected = np.zeros((300, 300))
        for degree in np.unique(degrees):
            weights = kernel.weights[degrees == degree]
            assert len(weights) == n_harmonics(n_features, degree)
            np.testing.assert_allclose(weights, weights[0])
            expected += weights.sum() * reference.degree_gram(X, degree)
        np.testing.assert_allclose(kernel(X), expected, atol=1e-10)

    def test_pairs_are_invariant_to_rotations_of_the_first_two_coordinates(self, checkerboard):
        X, y = checkerboard
        kernel = fit_features(X, y ^ (X[:, 0] > 0.5), 20, phase="paired", smoothing=0).kernel_
        rotation = np.eye(3)
        rotation[:2, :2] = special_ortho_group.rvs(2, random_state=0)
        np.testing.assert_allclose(kernel(X @ rotation), kernel(X), atol=1e-10)
        assert (kernel.frequencies[:, 0] < 0).any()

    def test_degrees_are_not_split(self, checkerboard):
        space = Sphere(basis="degree", max_degree=8)
        features = fit_features(*checkerboard, 60, space)
        n_first = 2 * features.frequencies_[0, -1] + 1
        assert n_first <= features.history_["n_frequencies"][0]
        assert features.kernel_.n_components <= 60
        features.head(n_first)
        with pytest.raises(ValueError, match="form one kernel"):
            features.head(n_first - 1)
        with pytest.raises(ValueError, match="n_components=2 is too small"):
            fit_features(*checkerboard, 2, space)


@pytest.mark.parametrize("basis", ["harmonic", "zonal"])
def test_round_is_a_gradient_step_against_its_kernel(checkerboard, basis):
    """The features have the scales that they have in the kernel."""
    X, y = checkerboard
    labels = np.where(y == 1, 1.0, -1.0)[:, None]
    problem = Problem(LOSSES["hinge"], labels, Rows(X))
    seen, rate = reference.Recorder(), 0.1
    result = play(
        problem,
        space=Sphere(basis, max_degree=6),
        search=Enumerate() if basis == "harmonic" else Ascent(),
        n_frequencies=20,
        n_rounds=2,
        rng=np.random.default_rng(0),
        learning_rate=rate,
        observers=[seen],
    )
    duals = seen.duals
    count = int(result.history["n_frequencies"][0])
    weights = np.where(np.arange(len(result.weights)) < count, 1 / count, 0)
    kernel = LearnedKernel(
        result.space, result.frequencies, result.phases, result.scales, weights, "aligned"
    )
    slope = labels - kernel(X) @ duals[0]
    expected = problem.project(duals[0] + count * rate / len(X) * slope)
    np.testing.assert_allclose(duals[1], expected, atol=1e-10)


def test_theory_needs_a_bound_on_the_kernel(checkerboard):
    solver = GradientSolver("theory")
    fit_features(*checkerboard, 6, Sphere(basis="harmonic"), solver=solver)
    fit_features(*checkerboard, 60, Sphere(basis="degree"), solver=solver)
    with pytest.raises(ValueError, match=r"'theory' needs a bound.*zonal"):
        fit_features(*checkerboard, 6, Sphere(basis="zonal"), solver=solver)


@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("search", ["auto", Langevin(n_steps=20, n_particles=30, n_refine=20)])
def test_planted_pole_is_found(rng, degree, search):
    X = reference.sphere_points(rng, 6000, 20)
    pole = reference.sphere_points(rng, 1, 20)[0]
    y = reference.legendre(20, degree, X @ pole) > 0
    features = fit_features(X, y, search=search)
    degrees = np.rint(np.linalg.norm(features.frequencies_, axis=1))
    cosines = np.abs(features.frequencies_ @ pole) / degrees
    assert cosines[degrees == degree].max() > np.cos(np.radians(5))


@pytest.mark.parametrize("basis", ["harmonic", "zonal", "degree"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_many_classes(rng, basis, dtype):
    """The class is the nearest of four points."""
    corners = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]])
    X = reference.sphere_points(rng, 1200, 3).astype(dtype)
    y = np.array(["a", "b", "c", "d"])[(X @ corners.T).argmax(axis=1)]
    space = Sphere(basis, max_degree=7)
    model = FourierClassifier(80, space=space, C=10, smoothing=0.06, random_state=0)
    model.fit(X[:600], y[:600])
    assert model.score(X[600:], y[600:]) > 0.9
    assert model.decision_function(X[600:]).shape == (600, 4)
    assert model.decision_function(X).dtype == dtype
    assert model.status_ == "complete"
    again = clone(model).fit(X[:600], y[:600])
    np.testing.assert_array_equal(again.frequencies_, model.frequencies_)
    if basis != "degree":
        head = model.features_.head(7)
        np.testing.assert_array_equal(head.frequencies_, model.frequencies_[:7])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("basis", ["harmonic", "zonal"])
def test_equal_samples_give_a_flat_game(rng, basis, dtype):
    X = np.tile(reference.sphere_points(rng, 1, 3), (200, 1)).astype(dtype)
    model = FourierClassifier(5, space=Sphere(basis), smoothing=0.06, random_state=0)
    model.fit(X, np.arange(200) % 2)
    assert model.status_ == "flat"
    assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize("degree", [1, 2])
def test_samples_in_a_small_cap_are_separated(rng, degree):
    """Features are nearly constant on a small cap."""
    steps = rng.standard_normal((3000, 6))
    X = reference.unit(np.eye(6)[0] + 0.05 * steps)
    y = steps[:, 1] + steps[:, 2] > 0 if degree == 1 else steps[:, 1] * steps[:, 2] > 0
    model = FourierClassifier(100, space="sphere", smoothing=0.03, random_state=0)
    model.fit(X[:2000], y[:2000])
    assert model.score(X[2000:], y[2000:]) > 0.9


def test_harmonics_in_a_thousand_dimensions(rng):
    X = reference.sphere_points(rng, 40, 1001)
    features = fit_features(X, X[:, 0] > 0, space=Sphere("harmonic", max_harmonics=2000))
    assert features.transform(X).shape == (40, 5)


def test_checkerboard_is_learned():
    X, y = make_checkerboard(1000, random_state=0)
    X_test, y_test = make_checkerboard(5000, random_state=1)
    model = FourierClassifier(space="sphere", C=10, smoothing=0.07, random_state=0).fit(X, y)
    assert model.score(X_test, y_test) > 0.98
    assert model.coef_.shape[1] < 60
    # Its symmetries leave only multiples of sin(2 phi), the imaginary parts.
    heaviest = model.frequencies_[np.argsort(-model.kernel_.weights)[:3]]
    assert (heaviest[:, 0] % 4 == 2).all()
    assert (heaviest[:, 0] < 0).all()
