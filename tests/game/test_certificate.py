"""Certificates against independent references: conic programs, dense grids, many ascents."""

import math
from dataclasses import replace

import numpy as np
import pytest
import reference
import trials
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import StandardScaler

from notsorandom import FourierClassifier, FourierFeatures, GradientSolver, Sphere
from notsorandom.data.rows import Rows
from notsorandom.datasets import make_checkerboard, make_windmill
from notsorandom.display.inspection import bounds_by_round
from notsorandom.estimators.certify import PeakBounds
from notsorandom.game import LOSSES, Problem, find_equilibrium
from notsorandom.game.certificate import lower_bound, margin_bound
from notsorandom.spaces import Supremum

HINGE = {"loss": "hinge", "C": 1.0, "random_state": 0}
PHASE = pytest.mark.parametrize("phase", ["aligned", "paired"])
BASIS = pytest.mark.parametrize("basis", ["harmonic", "degree"])


@pytest.fixture
def planar():
    """A classifier of a few points on the plane, and its training data."""
    X, y = make_windmill(60, random_state=0)
    return FourierClassifier(20, smoothing=0.06, **HINGE).fit(X, y), X, y


def signs(y):
    return np.where(y == 1, 1.0, -1.0)


def value_by_cutting_planes(X, labels, loss, bandwidth, phase):
    """Value of the game over a fine grid, where one frequency after another is added."""
    grid = reference.grid_in_ball(X.shape[1], bandwidth, [0, 401, 41][X.shape[1]])
    angles = X @ grid.T  # (n_samples, n_frequencies)
    factors = [np.column_stack([np.cos(angles[:, 0]), np.sin(angles[:, 0])])]
    for _ in range(40):
        value, dual = reference.game_value(factors, labels, loss.upper, loss.curvature)
        transform = (dual * labels) @ np.exp(1j * angles)
        peak = np.argmax(np.abs(transform))
        if phase == "paired":
            factor = np.column_stack([np.cos(angles[:, peak]), np.sin(angles[:, peak])])
        else:
            factor = math.sqrt(2) * np.cos(angles[:, [peak]] - np.angle(transform[peak]))
        largest = max(np.sum((known.T @ (dual * labels)) ** 2) for known in factors)
        if np.sum((factor.T @ (dual * labels)) ** 2) < 1.001 * largest:
            break
        factors.append(factor)
    return value, dual


@pytest.mark.parametrize("is_transformer", [False, True])
def test_a_linear_part_has_none(is_transformer):
    X, y = make_windmill(60, random_state=0)
    model = FourierClassifier(8, linear=True, smoothing=0.06, C=1.0, random_state=0).fit(X, y)
    model = model.features_ if is_transformer else model
    for compute in (model.certificate, lambda X, y: bounds_by_round(model, X, y)):
        with pytest.raises(ValueError, match=r"kernels of waves alone: fit with linear=False"):
            compute(X, y)


def test_certified_bounds_are_preferred_to_estimates():
    problem = Problem.from_arrays(LOSSES["hinge"], np.ones((4, 1)))
    dual = np.full((4, 1), 0.5)
    known, guess = Supremum(8.0, 8.0), Supremum(1.0, math.inf)
    candidates = [("guess", dual, guess), ("known", dual, known)]
    value, *others = lower_bound(problem, candidates)
    assert others == ["known", known]
    assert value == problem.stats(dual).best_scaled_objective(8.0)
    assert lower_bound(problem, candidates[:1])[1:] == ("guess", guess)


@pytest.mark.parametrize("n_instances", [4, pytest.param(50, marks=pytest.mark.slow)])
@pytest.mark.parametrize("n_features", [1, 2])
@PHASE
def test_bounds_enclose_the_value(n_features, phase, n_instances):
    """Random instances, against the value on a fine grid of frequencies.

    A grid has fewer frequencies, so the value is larger. The dual point of that game, with the true
    supremum, gives a smaller one.
    """
    widths = []
    for seed in range(n_instances):
        rng = np.random.default_rng(seed)
        n_samples, C = int(rng.integers(5, 10)), float(10 ** rng.uniform(-1, 1))
        X = rng.standard_normal((n_samples, n_features))
        y = rng.permutation(np.arange(n_samples) % 2)
        name = ["hinge", "squared_hinge"][seed % 2]
        settings = {"phase": phase, "loss": name, "C": C, "smoothing": 0.1, "random_state": seed}
        solver = GradientSolver(weighting="uniform")
        model = FourierFeatures(8, solver=solver, **settings).fit(X, y)
        certificate = model.certificate(X, y)
        assert certificate.certified
        labels, loss = signs(y), LOSSES[name].times(C)
        value, dual = value_by_cutting_planes(X, labels, loss, certificate.bandwidth, phase)
        assert certificate.lower <= value * (1 + 1e-6) + 1e-9
        space, measure = model.kernel_.space, (dual * labels)[:, None]
        supremum = space.supremum(
            Rows(X), measure, phase, certificate.bandwidth, 0.0, 1e-3, 100_000
        )
        inside = (labels * np.clip(dual, 0, loss.upper))[:, None]
        problem = Problem.from_arrays(loss, labels[:, None])
        below = problem.stats(inside).best_scaled_objective(supremum.bound)
        assert below <= certificate.upper * (1 + 1e-6) + 1e-6
        assert certificate.lower <= certificate.upper * (1 + 1e-9)
        widths.append((value - below) / value)
    assert np.median(widths) < 0.1  # otherwise the reference would be too loose to test anything


@pytest.mark.parametrize("seed", range(4))
def test_bounds_enclose_the_value_of_the_logistic_game(seed):
    """No kernel has a lower value than the bound, not even the best one of many frequencies."""
    rng = np.random.default_rng(seed)
    X, C = rng.standard_normal((20, 2)), [0.3, 1.0, 5.0, 30.0][seed]
    y = rng.permutation(np.arange(20) % 2)
    settings = {"phase": "paired", "smoothing": 0.1, "random_state": seed}
    model = FourierFeatures(8, loss="logistic", C=C, **settings).fit(X, y)
    certificate = model.certificate(X, y)
    assert certificate.certified
    assert 0 < certificate.lower <= certificate.upper_dual <= certificate.upper
    assert certificate.sentence.startswith("The training objective is at most")
    grid = reference.grid_in_ball(2, certificate.bandwidth, 17)
    angles = X @ np.concatenate([grid, model.frequencies_]).T
    waves = np.stack([np.cos(angles), np.sin(angles)], axis=2)  # (n_samples, n_frequencies, 2)
    groups = np.repeat(np.arange(angles.shape[1]), 2)
    problem = Problem.from_arrays(LOSSES["logistic"].times(C), signs(y)[:, None])
    best = find_equilibrium(waves.reshape(20, -1), groups, problem)
    assert best.relative_gap <= 1e-3
    assert certificate.lower <= best.upper
    assert best.lower <= certificate.upper
    for _ in range(10):
        weights = rng.dirichlet(np.full(angles.shape[1], 0.02))
        features = (waves * np.sqrt(weights)[:, None]).reshape(20, -1)
        value = reference.linear_model_value(features, signs(y), "logistic", C)
        assert value >= max(certificate.lower, best.lower)


@pytest.mark.parametrize(
    "seed", [*[1, 11, 31, 46], *[pytest.param(n, marks=pytest.mark.slow) for n in range(50, 350)]]
)
def test_bounds_of_random_games_enclose_the_value(seed):
    """Of all losses, spaces with proven bounds, phases and solvers, of one and several tasks.

    The value is found by conic programs and column generation; its own bounds are 1e-3 apart.
    """
    certificate, least, most = trials.run_trial(seed)
    assert certificate.certified
    assert 0 <= certificate.lower <= most * (1 + 1e-5)
    assert certificate.upper >= least * (1 - 1e-5)
    assert most - least <= 2e-3 * most


def fit_on_sphere(seed, basis, n_samples, n_features=3):
    """A model of degrees up to 2, of random labels."""
    rng = np.random.default_rng(seed)
    X = reference.sphere_points(rng, n_samples, n_features)
    y = rng.permutation(np.arange(n_samples) % 2)
    model = FourierFeatures(9, space=Sphere(basis, max_degree=2), smoothing=0, **HINGE)
    return model.fit(X, y), X, y


@BASIS
@pytest.mark.parametrize("seed", range(4))
def test_bounds_enclose_the_value_on_the_sphere(basis, seed):
    model, X, y = fit_on_sphere(seed, basis, 14)
    certificate = model.certificate(X, y)
    assert certificate.certified
    value, _ = reference.game_value(reference.harmonic_factors(X, 2, basis), signs(y), 1.0)
    assert certificate.lower <= value * (1 + 1e-5)
    assert certificate.upper >= value * (1 - 1e-5)


@BASIS
@pytest.mark.parametrize("n_features", [3, 20])
def test_wider_bandwidths_on_the_sphere_prove_less(basis, n_features):
    """All degrees up to the bandwidth count, which can only lower the value."""
    model, X, y = fit_on_sphere(0, basis, 40, n_features)
    widths = (None, 4, 8, 30, 100, 1000, 1001, 1e6, 1e300)
    certificates = [model.certificate(X, y, bandwidth=width) for width in widths]
    lower = np.array([each.lower for each in certificates])
    assert all(each.certified for each in certificates)
    assert (np.diff(lower) <= 1e-12).all()
    assert (lower >= 0).all()
    if n_features == 3:
        factors = reference.harmonic_factors(X, 8, basis)
        value = reference.conic_game_value(factors, signs(y), 1.0)
        assert (lower[2:] <= value * (1 + 1e-6)).all()
        assert 0.1 * value < lower[2] < lower[0]
        rough = model.certificate(X, y, bandwidth=8, max_evaluations=30)  # fewer than harmonics
        assert rough.certified
        assert rough.lower <= value * (1 + 1e-6)


@pytest.mark.parametrize("space", ["euclidean", "zonal"])
def test_wider_bandwidths_never_raise_an_estimate(space):
    """A wider ball has all peaks of the narrower ones; beyond all searches the mass bounds."""
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((40, 4)), rng.permutation(np.arange(40) % 2)
    settings = {"phase": "paired"}
    if space == "zonal":
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        settings = {"space": Sphere("zonal", max_degree=2)}
    model = FourierFeatures(12, smoothing=0.06, **HINGE, **settings)
    own = model.fit(X, y).certificate(X, y)
    factors = (1.5, 3, 8) if space == "zonal" else (1.01, 3, 20)
    inside = [own] + [model.certificate(X, y, bandwidth=own.bandwidth * each) for each in factors]
    beyond = [model.certificate(X, y, bandwidth=each) for each in (1e6, 1e9, 1e300)]
    assert not any(each.certified for each in inside)
    assert all(each.certified for each in beyond)
    lower = np.array([each.lower for each in inside + beyond])
    # Angles of the learned frequencies are rounded in other ways in larger spaces.
    assert (lower[1:] <= np.minimum.accumulate(lower)[:-1] * (1 + 1e-6)).all()
    assert min(lower[1:4]) < lower[0]
    assert lower[-1] == (pytest.approx(0.5) if space == "euclidean" else 0)


@pytest.mark.parametrize("space", ["line", "sphere"])
def test_bounds_by_round_hold_under_smoothing(space):
    """No lower bound of any round is above the value of the game, by a conic program."""
    rng = np.random.default_rng(0)
    if space == "line":
        X = rng.standard_normal((60, 1))
        y = np.sin(4 * X[:, 0]) + 0.3 * rng.standard_normal(60) > 0
        settings = {"phase": "paired"}
    else:
        X = reference.sphere_points(rng, 150, 3)
        # Harmonics of high degree, which the smoothed search avoids.
        y = np.sin(4 * np.arctan2(X[:, 1], X[:, 0])) * np.sin(4 * np.arccos(X[:, 2])) > 0
        settings = {"space": Sphere("harmonic", max_degree=10)}
    model = FourierFeatures(12, smoothing=0.6, **HINGE, **settings)
    _, upper, lower, certified = bounds_by_round(model.fit(X, y), X, y)
    if space == "line":
        radius = model.kernel_.space.bandwidth(model.frequencies_)
        angles = X @ np.linspace(0, radius, 60)[None]
        factors = [np.column_stack([np.cos(a), np.sin(a)]) for a in angles.T]
    else:
        factors = reference.harmonic_factors(X, 10)
    value = reference.conic_game_value(factors, signs(y), 1.0)
    assert certified
    assert (lower <= value * (1 + 1e-6)).all()
    assert (lower <= upper).all()
    # Kernels on a grid are some of the kernels, so their value can only be higher.
    assert (upper >= value * 0.98).all()
    assert "lower" not in model.history_


def test_a_longer_game_tightens_the_bounds():
    X, y = make_checkerboard(300, random_state=0)
    gaps = []
    for n_rounds in (2, 20, 400):
        solver, space = GradientSolver(0.05, "uniform", n_rounds=n_rounds), Sphere(max_degree=6)
        model = FourierFeatures(49, space=space, solver=solver, smoothing=0, **HINGE).fit(X, y)
        gaps.append(model.certificate(X, y).relative_gap)
    assert gaps[0] > gaps[1] > gaps[2]


def climb_in_ball(X, measure, radius, start):
    """Projected gradient ascent with line search, of the log potential from one start."""

    def value_and_slope(w):
        angles = X @ w
        cosine, sine = np.cos(angles), np.sin(angles)
        total = measure @ cosine, measure @ sine
        value = total[0] ** 2 + total[1] ** 2
        slope = 2 * (total[1] * X.T @ (measure * cosine) - total[0] * X.T @ (measure * sine))
        return np.log(value + 1e-300), slope / (value + 1e-300)

    w, step = start, 1.0
    height, slope = value_and_slope(w)
    for _ in range(100):
        for _ in range(20):
            trial = w + step * slope
            trial *= min(1, radius / np.linalg.norm(trial))
            higher, new_slope = value_and_slope(trial)
            if higher > height:
                break
            step /= 3
        else:
            break
        gain, w, height, slope, step = higher - height, trial, higher, new_slope, 2 * step
        if gain < 1e-7:
            break
    return np.exp(height)


@pytest.mark.parametrize("data", ["cancer", "digits"])
def test_estimated_peaks_are_as_high_as_those_of_many_ascents(data):
    """310 independent ascents within the same ball don't find a peak that is 1 % higher."""
    if data == "cancer":
        X, y = load_breast_cancer(return_X_y=True)
        X, smoothing = StandardScaler().fit_transform(X), 0.07
    else:
        X, y = load_digits(return_X_y=True)
        kept = np.isin(y, (3, 8))
        X, y, smoothing = X[kept], y[kept], 0.6
    model = FourierClassifier(100, smoothing=smoothing, phase="paired", **HINGE).fit(X, y)
    kernel, problem = model.kernel_, model._training_problem(X, y)
    bandwidth = kernel.space.bandwidth(kernel.frequencies)
    peaks = PeakBounds(kernel, problem, bandwidth, 1)
    supremum = peaks.supremum(problem.from_given(model.dual_))
    assert not supremum.certified
    assert 0 <= peaks.n_agreeing <= peaks.n_ascents
    scale = kernel.space.scale
    centred, radius = (X - kernel.space.center) / scale, bandwidth * scale
    rng = np.random.default_rng(1)
    starts = rng.standard_normal((310, X.shape[1]))
    starts *= (radius * rng.random(310) / np.linalg.norm(starts, axis=1))[:, None]
    measure = model.dual_[:, 0].astype(float)
    highest = max(climb_in_ball(centred, measure, radius, start) for start in starts)
    assert supremum.reached >= 0.99 * highest
    certificate = model.certificate(X, y)
    ascents = f"{certificate.n_agreeing} of {certificate.n_ascents} independent ascents"
    assert ascents in repr(certificate)
    said = "(estimated" if certificate.n_agreeing else "none of"
    assert said in certificate.sentence


class TestEstimators:
    def test_parts_of_a_certificate_agree(self, planar):
        model, X, y = planar
        certificate = model.certificate(X, y)
        assert certificate.lower <= certificate.upper_dual <= certificate.upper
        assert certificate.gap == certificate.upper - certificate.lower
        assert certificate.excess == pytest.approx(certificate.upper / certificate.lower - 1)
        assert 0 < certificate.precision <= 1e-3
        assert "within 0.00" in repr(certificate)
        longest = np.linalg.norm(model.frequencies_, axis=1).max()
        assert certificate.bandwidth == pytest.approx(longest)
        assert "certified" in repr(certificate)
        assert "vacuous" in repr(certificate)
        wider = model.certificate(X, y, bandwidth=2 * certificate.bandwidth)
        assert wider.lower <= certificate.lower * (1 + 2e-3)
        with pytest.raises(ValueError, match=r"bandwidth=0\.1 is less than the learned kernel's"):
            model.certificate(X, y, bandwidth=0.1)
        with pytest.raises(ValueError, match="bandwidth=-1 is not allowed"):
            model.certificate(X, y, bandwidth=-1)

    @pytest.mark.parametrize("factor", [1e-160, 1e160])
    def test_the_unit_of_length_does_not_matter(self, planar, factor):
        model, X, y = planar
        scaled = FourierClassifier(20, smoothing=0.06, **HINGE).fit(X * factor, y)
        expected, found = model.certificate(X, y), scaled.certificate(X * factor, y)
        assert found.upper == pytest.approx(expected.upper, rel=1e-3)
        assert found.lower == pytest.approx(expected.lower, rel=2e-2)
        assert found.sample_size == pytest.approx(expected.sample_size, rel=1e-3)
        # The bandwidth is rounded to a power, and its share of the failures depends on the unit.
        assert found.generalization == pytest.approx(expected.generalization, rel=0.15)
        wide = scaled.certificate(X * factor, y, bandwidth=1e300)
        assert wide.certified
        assert 0 < wide.lower <= found.lower * (1 + 1e-9)

    def test_estimates_are_marked_as_such(self, rng):
        X = reference.sphere_points(rng, 100, 6)
        y = X[:, 0] > 0
        for space in ("euclidean", "sphere"):
            model = FourierFeatures(8, space=space, smoothing=0.06, random_state=0).fit(X, y)
            certificate = model.certificate(X, y)
            assert not certificate.certified
            assert "estimated" in repr(certificate)
            assert "certified" not in repr(certificate)
            assert 0 < certificate.lower < certificate.upper

    def test_other_samples_and_several_classes(self, rng):
        X = rng.standard_normal((90, 2))
        y = np.array(["a", "b", "c"])[np.arange(90) % 3]
        model = FourierFeatures(8, loss="hinge", smoothing=0.06, random_state=0).fit(X, y)
        whole, part = model.certificate(X, y), model.certificate(X[:40], y[:40])
        assert part.upper < whole.upper
        assert math.isnan(whole.generalization)
        assert math.isnan(whole.sample_size)
        assert "unknown" in repr(whole)
        for labels in (["d"] * 90, ["a"] * 90, ["a", "b"] * 45, ["a", "b", "c", "d", "c"] * 18):
            with pytest.raises(ValueError, match="was fitted with the classes 'a', 'b', 'c'"):
                model.certificate(X, labels)

    def test_sentences(self, planar):
        model, X, y = planar
        certificate = model.certificate(X, y)
        certificate = replace(certificate, lower=2.0, upper=2.34567)
        assert certificate.sentence == (
            "The SVM objective is at most 18 % above the least that any kernel of this kind can "
            "have; the bound on the error says nothing at this sample size."
        )
        assert repr(certificate).endswith(certificate.sentence)
        guess = replace(certificate, certified=False, n_ascents=200)
        few = "so it may be far from the truth); the bound"
        sentences = {n: replace(guess, n_agreeing=n) for n in (0, 1, 3, 4)}
        assert sentences[0].sentence == (
            "Nothing is known about how far the model is from the best kernel of this kind: none "
            "of 200 searches agree on the highest peak; the bound on the error says nothing at "
            "this sample size."
        )
        assert f"(estimated; only 1 of 200 searches agree, {few}" in sentences[1].sentence
        assert f"(estimated; only 3 of 200 searches agree, {few}" in sentences[3].sentence
        assert "(estimated, not proven)" in sentences[4].sentence
        assert "by 1 of 200 independent ascents, so there may be far higher" in repr(sentences[1])
        assert "by 4 of 200 independent ascents\n" in repr(sentences[4])
        assert "regret per play" in repr(replace(certificate, regret=0.5))
        assert "regret" not in repr(replace(certificate, regret=math.nan))
        logistic = FourierClassifier(20, C=1.0, smoothing=0.06, random_state=0).fit(X, y)
        certificate = replace(logistic.certificate(X, y), lower=6.0, upper=6.01)
        assert "training objective is at most 0.17 % above the least" in certificate.sentence
        far = replace(certificate, upper=60.2)
        assert "training objective is at most 10.1 times the least" in far.sentence
        none = replace(certificate, lower=0.0)
        assert none.sentence.startswith("Nothing is known about how far the model is")
        assert none.excess == math.inf


def test_margin_bound_is_the_minimum_over_thresholds(rng):
    margins, complexity = rng.uniform(-0.2, 1, size=400), 0.01
    with_intercept = complexity + (math.sqrt(2) + 1) / 20
    best = min(
        np.mean(margins < theta)
        + 4 * with_intercept / theta
        + math.sqrt(math.log(max(math.log2(2 / theta), 1)) / 400)
        for theta in np.linspace(1e-3, 1, 20_000)
    )
    tail = 3 * math.sqrt(math.log(4 / (0.1 * 0.05)) / 800)
    bound = margin_bound(margins, complexity, kernel_bound=2.0, share=0.1)
    np.testing.assert_allclose(bound, best + tail, rtol=1e-2)
    assert margin_bound(np.ones(10**6), 1e-4, 1.0) < 0.05
    assert margin_bound(-np.ones(10), 1e-3, 1.0) == math.inf
