"""Certificates against independent references: conic programs, dense grids and Monte Carlo."""

import math
from dataclasses import replace

import numpy as np
import pytest
import reference
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import StandardScaler

from notsorandom import Euclidean, FourierClassifier, FourierFeatures, Sphere
from notsorandom.data.rows import Rows
from notsorandom.datasets import make_windmill
from notsorandom.display.inspection import bounds_by_round
from notsorandom.estimators.certify import PeakBounds
from notsorandom.game import LOSSES
from notsorandom.spaces.harmonics import harmonic_indices, harmonics

pytestmark = pytest.mark.usefixtures("quick_trials")


def harmonic_factors(X, degree, basis="harmonic"):
    """Features of each kernel of the sphere of R^3."""
    indices = harmonic_indices(3, degree)
    values = harmonics(X, indices)
    groups = indices[:, -1] if basis == "degree" else np.arange(len(indices))
    return [
        values[:, groups == group] / np.sqrt((groups == group).sum()) for group in np.unique(groups)
    ]


@pytest.mark.parametrize("basis", ["harmonic", "degree"])
@pytest.mark.parametrize("max_evaluations", [200_000, 30])
def test_given_bandwidth_on_the_sphere(basis, max_evaluations):
    """All degrees up to the bandwidth count, not only those of the space."""
    rng = np.random.default_rng(0)
    X = reference.sphere_points(rng, 40, 3)
    y = rng.permutation(np.arange(40) % 2)
    space = Sphere(basis, max_degree=2)
    model = FourierFeatures(9, space=space, loss="hinge", C=1.0, smoothing=0, random_state=0)
    model.fit(X, y)
    certificate = model.certificate(X, y, bandwidth=8, max_evaluations=max_evaluations)
    labels = np.where(y == 1, 1.0, -1.0)
    value = reference.conic_game_value(harmonic_factors(X, 8, basis), labels, 1.0)
    assert certificate.certified
    assert certificate.lower <= value * (1 + 1e-6)
    if max_evaluations > 81:  # exact
        narrow = model.certificate(X, y)
        assert certificate.lower < narrow.lower
        assert certificate.lower > 0.1 * value


@pytest.mark.parametrize("basis", ["harmonic", "degree"])
@pytest.mark.parametrize("n_features", [3, 20])
def test_wider_bandwidths_on_the_sphere_prove_less(basis, n_features):
    """More degrees can only lower the value, however many there are."""
    rng = np.random.default_rng(3)
    X = reference.sphere_points(rng, 60, n_features)
    y = rng.integers(0, 2, size=60)
    space = Sphere(basis, max_degree=2)
    model = FourierFeatures(9, space=space, loss="hinge", C=1.0, smoothing=0, random_state=0)
    model.fit(X, y)
    widths = (None, 4, 8, 30, 100, 1000, 1001, 1e6, 1e300)
    certificates = [model.certificate(X, y, bandwidth=width) for width in widths]
    lower = np.array([each.lower for each in certificates])
    assert all(each.certified for each in certificates)
    assert (np.diff(lower) <= 1e-12).all()
    assert (lower >= 0).all()
    if n_features == 3:
        labels = np.where(y == 1, 1.0, -1.0)
        value = reference.conic_game_value(harmonic_factors(X, 8, basis), labels, 1.0)
        assert (lower[2:] <= value * (1 + 1e-6)).all()


def test_bandwidth_of_the_search_on_zonal_spheres(rng):
    X = reference.sphere_points(rng, 60, 5)
    y = np.sign(np.sin(9 * X[:, 0])) > 0
    model = FourierFeatures(
        8, space=Sphere("zonal", max_degree=2), loss="hinge", C=1.0, smoothing=0.06, random_state=0
    ).fit(X, y)
    narrow, wide = model.certificate(X, y), model.certificate(X, y, bandwidth=9)
    assert not wide.certified
    assert wide.lower < narrow.lower


@pytest.mark.parametrize("space", ["euclidean", "zonal"])
def test_wider_bandwidths_never_raise_an_estimate(space):
    """A wider ball has all peaks of the narrower ones; beyond all searches the mass bounds."""
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((40, 4)), rng.permutation(np.arange(40) % 2)
    settings = {"phase": "paired"}
    if space == "zonal":
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        settings = {"space": Sphere("zonal", max_degree=2)}
    model = FourierFeatures(12, loss="hinge", C=1.0, smoothing=0.06, random_state=0, **settings)
    own = model.fit(X, y).certificate(X, y)
    factors = (1.5, 3, 8) if space == "zonal" else (1.01, 3, 20)
    inside = [own] + [model.certificate(X, y, bandwidth=own.bandwidth * each) for each in factors]
    beyond = [model.certificate(X, y, bandwidth=each) for each in (1e6, 1e9, 1e300)]
    assert not any(each.certified for each in inside)
    assert all(each.certified for each in beyond)
    lower = np.array([each.lower for each in inside + beyond])
    # Angles of the learned frequencies are rounded in other ways in larger spaces.
    assert (lower[1:] <= np.minimum.accumulate(lower)[:-1] * (1 + 1e-6)).all()
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
    model = FourierFeatures(12, loss="hinge", C=1.0, smoothing=0.6, random_state=0, **settings)
    _, upper, lower, certified = bounds_by_round(model.fit(X, y), X, y)
    if space == "line":
        radius = model.kernel_.space.bandwidth(model.frequencies_)
        angles = X @ np.linspace(0, radius, 60)[None]
        factors = [np.column_stack([np.cos(a), np.sin(a)]) for a in angles.T]
    else:
        factors = harmonic_factors(X, 10)
    value = reference.conic_game_value(factors, np.where(y, 1.0, -1.0), 1.0)
    assert certified
    assert (lower <= value * (1 + 1e-6)).all()
    assert (lower <= upper).all()
    # Kernels on a grid are some of the kernels, so their value can only be higher.
    assert (upper >= value * 0.98).all()
    assert "lower" not in model.history_


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
    model = FourierClassifier(
        100, loss="hinge", C=1.0, smoothing=smoothing, phase="paired", random_state=0
    ).fit(X, y)
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
    assert f"{certificate.n_agreeing} of {certificate.n_ascents} independent ascents" in repr(
        certificate
    )
    assert "(estimated" in certificate.sentence


@pytest.mark.parametrize("phase", ["aligned", "paired"])
@pytest.mark.parametrize("bandwidth", [0.01, 0.5, 5.0])
def test_complexity_of_waves(rng, phase, bandwidth):
    """At least the Monte Carlo mean of the supremum over a fine grid, for small reach too."""
    n_samples = 200
    X = rng.uniform(-1, 1, size=(n_samples, 1))
    space = Euclidean(1.0, np.zeros(1))
    complexity, share = space.rademacher_complexity(Rows(X), bandwidth, phase)
    waves = np.exp(1j * X @ np.linspace(0, bandwidth, 200)[None])
    signs = rng.choice([-1.0, 1.0], size=(500, n_samples))
    factor = math.sqrt(space.kernel_bound(1, phase))
    drawn = factor * np.abs(signs @ waves).max(axis=1).mean() / n_samples
    assert drawn <= complexity
    assert 0 < share < 1


def test_shares_of_the_bandwidths_add_up():
    space, rows = Euclidean(1.0, np.zeros(1)), Rows(np.ones((10, 1)))
    shares = [
        space.rademacher_complexity(rows, 1.1 ** (j - 0.5), "paired")[1] for j in range(-300, 300)
    ]
    assert sum(shares) <= 1


@pytest.mark.parametrize("basis", ["harmonic", "degree"])
@pytest.mark.parametrize("degree", [1, 6])
def test_complexity_of_harmonics(rng, basis, degree):
    X = reference.sphere_points(rng, 100, 3)
    space = Sphere(basis, max_degree=degree).resolve(Rows(X), rng)
    complexity, share = space.rademacher_complexity(Rows(X), degree, "aligned")
    signs = rng.choice([-1.0, 1.0], size=(500, 100))
    norms = [
        np.linalg.norm(signs @ factor, axis=1) for factor in harmonic_factors(X, degree, basis)
    ]
    assert np.max(norms, axis=0).mean() / 100 <= complexity
    assert share == 1.0


@pytest.mark.parametrize("n_features", [1, 2, 3])
def test_supremum_with_an_outlier_is_capped(rng, n_features):
    """The potential is at most k times the square of the mass, whatever the samples."""
    X, measure = rng.standard_normal((40, n_features)), rng.standard_normal((40, 2))
    X[0] = 1e4
    space = Euclidean(1.0, np.zeros(n_features))
    for phase, bound in (("paired", 1.0), ("aligned", 2.0)):
        cap = bound * np.square(np.abs(measure).sum(axis=0)).sum()
        supremum = space.supremum(Rows(X), measure, phase, 3.0, 0.0, 1e-3, 2000)
        assert supremum.reached <= supremum.bound <= cap * (1 + 1e-12)
        far = space.supremum(Rows(X), measure, phase, 1e300, 0.0, 1e-3, 2000)
        np.testing.assert_allclose(far.bound, cap)


@pytest.mark.parametrize("n_features", [1, 2, 3])
@pytest.mark.parametrize("phase", ["aligned", "paired"])
def test_an_outlier_of_little_mass_hardly_loosens_the_bound(n_features, phase):
    """Its wave is bounded by its mass, and those of the other samples are expanded."""
    rng = np.random.default_rng(0)
    X, measure = rng.standard_normal((30, n_features)), rng.standard_normal((30, 1))
    X[0], measure[0] = 1e6, 1e-4
    space = Euclidean(1.0, np.zeros(n_features))
    supremum = space.supremum(Rows(X), measure, phase, 4.0, 0.0, 0.02, 200_000)
    assert supremum.bound <= 1.05 * supremum.reached


@pytest.mark.parametrize("factor", [1e-160, 1e-60, 1e60, 1e160])
def test_the_unit_of_length_does_not_matter(factor):
    X, y = make_windmill(60, random_state=0)
    settings = {"loss": "hinge", "C": 1.0, "smoothing": 0.06, "random_state": 0}
    model = FourierClassifier(20, **settings).fit(X, y)
    scaled = FourierClassifier(20, **settings).fit(X * factor, y)
    expected, found = model.certificate(X, y), scaled.certificate(X * factor, y)
    np.testing.assert_allclose(found.upper, expected.upper, rtol=1e-3)
    np.testing.assert_allclose(found.lower, expected.lower, rtol=2e-2)
    # The bandwidth is rounded to a power, and its share of the failures depends on the unit.
    np.testing.assert_allclose(found.generalization, expected.generalization, rtol=0.15)
    wide = scaled.certificate(X * factor, y, bandwidth=1e300)
    assert wide.certified
    assert 0 < wide.lower <= found.lower * (1 + 1e-9)


def test_sentences():
    X, y = make_windmill(60, random_state=0)
    model = FourierClassifier(20, loss="hinge", C=1.0, smoothing=0.06, random_state=0).fit(X, y)
    certificate = model.certificate(X, y)
    share = math.floor(100 * certificate.competitive_ratio)
    assert certificate.sentence == (
        f"The model has at least {share} % of the margin that any kernel of this kind can have; "
        "the bound on the error says nothing at this sample size."
    )
    assert repr(certificate).endswith(certificate.sentence)
    guess = replace(certificate, certified=False, n_ascents=200)
    few = "so it may be far from the truth); the bound"
    sentences = {n: replace(guess, n_agreeing=n) for n in (0, 1, 3, 4)}
    assert f"(estimated; none of 200 searches agree, {few}" in sentences[0].sentence
    assert f"(estimated; only 1 of 200 searches agree, {few}" in sentences[1].sentence
    assert f"(estimated; only 3 of 200 searches agree, {few}" in sentences[3].sentence
    assert "(estimated, not proven)" in sentences[4].sentence
    assert "by 1 of 200 independent ascents, so there may be far higher" in repr(sentences[1])
    assert "by 4 of 200 independent ascents\n" in repr(sentences[4])
    assert "regret per play" in repr(replace(certificate, regret=0.5))
    assert "regret" not in repr(replace(certificate, regret=math.nan))
    logistic = FourierClassifier(20, C=1.0, smoothing=0.06, random_state=0).fit(X, y)
    certificate = replace(logistic.certificate(X, y), lower=6.0, upper=10.0)
    assert "the training objective would be at most 40 % lower" in certificate.sentence
    assert LOSSES["hinge"].has_margin
