"""Random features, LKRF and the arc-cosine kernel, against their definitions."""

import numpy as np
import pytest
import reference
from scipy import optimize, sparse
from scipy.spatial.distance import pdist
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from notsorandom.baselines import LKRF, RandomFourierFeatures, arc_cosine_kernel, median_gamma
from notsorandom.baselines.lkrf import aligned_probabilities
from notsorandom.datasets import make_windmill


@pytest.mark.parametrize("degree", [0, 1])
def test_arc_cosine_kernel_is_limit_of_wide_random_layer(rng, degree):
    X, Z = rng.standard_normal((6, 3)), rng.standard_normal((5, 3))
    weights = rng.standard_normal((3, 500_000))
    layers = [np.maximum(A @ weights, 0) ** degree * (A @ weights > 0) for A in (X, Z)]
    expected = 2 * layers[0] @ layers[1].T / weights.shape[1]
    np.testing.assert_allclose(arc_cosine_kernel(X, Z, degree), expected, atol=0.03)


@pytest.mark.parametrize("degree", [0, 1])
def test_arc_cosine_kernel_is_symmetric_and_positive_semidefinite(rng, degree):
    X = reference.sphere_points(rng, 50, 4)
    gram = arc_cosine_kernel(X, degree=degree)
    np.testing.assert_allclose(np.diag(gram), 1, atol=1e-6)
    np.testing.assert_allclose(gram, gram.T)
    assert np.linalg.eigvalsh(gram).min() > -1e-7
    SVC(kernel=arc_cosine_kernel).fit(X, np.arange(50) % 2)


def test_arc_cosine_kernel_at_extremes():
    assert np.isfinite(arc_cosine_kernel(np.zeros((2, 3)))).all()
    for size in (1e-200, 1e200):
        gram = arc_cosine_kernel(size * np.eye(2), degree=0)
        np.testing.assert_allclose(gram, [[1, 0.5], [0.5, 1]])
    with pytest.raises(ValueError, match="degree=2 is not allowed"):
        arc_cosine_kernel(np.eye(2), degree=2)


@parametrize_with_checks(
    [
        RandomFourierFeatures(20),
        RandomFourierFeatures(20, draw="orthogonal"),
        RandomFourierFeatures(20, draw="quasi"),
        RandomFourierFeatures(20, kernel="laplacian"),
        LKRF(20, n_pool=100, rho=2.0),
        LKRF("all", n_pool=50, weighting="sqrt_q"),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def random_features(X, n_components, **settings):
    return RandomFourierFeatures(n_components, **({"random_state": 0} | settings)).fit(X)


class TestRandomFourierFeatures:
    @pytest.mark.parametrize(
        ("kernel", "draw"),
        [
            *[("gaussian", draw) for draw in ("plain", "orthogonal", "quasi")],
            *[("laplacian", draw) for draw in ("plain", "quasi")],
        ],
    )
    @pytest.mark.parametrize("phase", ["random", "paired"])
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_inner_products_approximate_the_kernel(self, rng, kernel, draw, phase, dtype):
        X, Z = (rng.standard_normal((n, 3)).astype(dtype) + 7 for n in (8, 5))
        settings = {"kernel": kernel, "bandwidth": 3.0, "phase": phase, "draw": draw}
        features = random_features(X, 20_000, **settings)
        assert features.transform(X).dtype == dtype
        gram = features.transform(X) @ features.transform(Z).T
        exact = {"gaussian": rbf_kernel(X, Z, 0.5 / 9), "laplacian": laplacian_kernel(X, Z, 1 / 3)}
        np.testing.assert_allclose(gram, exact[kernel], atol=0.03)
        np.testing.assert_allclose(gram, features.kernel_(X, Z), rtol=1e-3)

    @pytest.mark.parametrize(
        ("kernel", "norm"), [("gaussian", "euclidean"), ("laplacian", "cityblock")]
    )
    def test_default_bandwidth_is_the_median_distance_in_its_norm(self, rng, kernel, norm):
        X = 5 * rng.standard_normal((300, 4)) * (rng.random((300, 4)) < 0.6)
        dense, from_sparse = (
            random_features(samples, 10, kernel=kernel) for samples in (X, sparse.csr_array(X))
        )
        np.testing.assert_allclose(dense.bandwidth_, np.median(pdist(X, norm)), rtol=0.1)
        np.testing.assert_allclose(from_sparse.bandwidth_, dense.bandwidth_)
        np.testing.assert_allclose(from_sparse.transform(sparse.csr_array(X)), dense.transform(X))

    def test_median_gamma(self, rng):
        X = rng.standard_normal((300, 4))
        np.testing.assert_allclose(median_gamma(X), 0.5 / np.median(pdist(X)) ** 2, rtol=0.2)
        assert median_gamma([[0, 0], [3, 4]]) == 0.5 / 25

    def test_orthogonal_and_quasi_draws_have_smaller_error(self, rng):
        X = rng.standard_normal((40, 5))
        exact = rbf_kernel(X, gamma=0.5 / 9)
        settings = {"bandwidth": 3.0, "phase": "paired"}
        errors = {}
        for draw in ("plain", "orthogonal", "quasi"):
            grams = [
                random_features(X, 40, draw=draw, random_state=seed, **settings).kernel_(X)
                for seed in range(100)
            ]
            errors[draw] = np.mean([np.square(gram - exact).mean() for gram in grams])
        assert errors["orthogonal"] < 0.8 * errors["plain"]
        assert errors["quasi"] < 0.8 * errors["plain"]

    def test_orthogonal_draws_are_orthogonal_with_gaussian_norms(self, rng):
        X = rng.standard_normal((20, 6))
        settings = {"bandwidth": 1.0, "draw": "orthogonal"}
        frequencies = random_features(X, 15, **settings).frequencies_
        assert frequencies.shape == (15, 6)
        for block in np.split(frequencies, [6, 12]):
            gram = block @ block.T
            np.testing.assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-12)
        many = [
            random_features(X, 6, random_state=seed, **settings).frequencies_ for seed in range(500)
        ]
        squares = np.square(many).sum(axis=-1)  # chi-square with 6 degrees of freedom
        np.testing.assert_allclose([squares.mean(), squares.var()], [6, 12], rtol=0.1)
        np.testing.assert_allclose(np.mean(many, axis=(0, 1)), 0, atol=0.1)

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"n_components": 0}, "n_components=0 is not allowed"),
            ({"n_components": 5, "phase": "paired"}, "must be even"),
            ({"bandwidth": "mean"}, "bandwidth='mean' is not allowed"),
            ({"draw": "sobol"}, "draw='sobol' is not allowed"),
            ({"phase": "aligned"}, "phase='aligned' is not allowed"),
            ({"kernel": "cauchy"}, "kernel='cauchy' is not allowed"),
            ({"kernel": "laplacian", "draw": "orthogonal"}, "not possible with kernel='laplacian'"),
        ],
    )
    def test_invalid_parameters(self, settings, message):
        with pytest.raises(ValueError, match=message):
            RandomFourierFeatures(**settings).fit(np.eye(3))

    def test_quasi_draw_rejects_too_many_columns(self):
        with pytest.raises(ValueError, match="draw='quasi' is not possible with 21202 columns"):
            random_features(np.eye(2, 21202), 2, bandwidth=1.0, draw="quasi")


class TestLKRF:
    @pytest.mark.parametrize("rho", [0.1, 1.0, 5.0, 1000.0])
    def test_probabilities_solve_the_constrained_problem(self, rng, rho):
        scores = rng.exponential(size=8)
        ours = aligned_probabilities(scores, rho)
        solution = optimize.minimize(
            lambda q: -q @ scores,
            np.full(8, 1 / 8),
            bounds=[(0, 1)] * 8,
            constraints=[
                {"type": "eq", "fun": lambda q: q.sum() - 1},
                {"type": "ineq", "fun": lambda q: rho - 8 * np.sum((q - 1 / 8) ** 2)},
            ],
            method="SLSQP",
            options={"ftol": 1e-12, "maxiter": 500},
        )
        assert (ours >= 0).all()
        np.testing.assert_allclose(ours.sum(), 1)
        assert 8 * np.sum((ours - 1 / 8) ** 2) <= rho * (1 + 1e-9)
        np.testing.assert_allclose(ours, solution.x, atol=1e-4)

    def test_probabilities_are_uniform_if_rho_is_zero_or_scores_are_equal(self, rng):
        np.testing.assert_array_equal(aligned_probabilities(rng.exponential(size=5), 0.0), 0.2)
        np.testing.assert_array_equal(aligned_probabilities(np.full(5, 3.0), 2.0), 0.2)

    def test_probabilities_increase_with_the_squared_correlation(self, rng):
        X, y = rng.standard_normal((30, 3)), np.arange(30) % 2
        model = LKRF("all", n_pool=40, rho=0.01, weighting="sqrt_q", random_state=0).fit(X, y)
        centred, signed = X - X.mean(axis=0), np.where(y == 1, 1, -1)
        waves = np.cos(centred @ model.frequencies_.T - model.phases_)
        scores = np.square(signed @ waves)
        order = np.argsort(scores)
        assert (np.diff(model.probabilities_[order]) >= 0).all()
        np.testing.assert_allclose(model.kernel_.weights, model.probabilities_)
        np.testing.assert_allclose(model.transform(X), waves * np.sqrt(2 * model.probabilities_))

    def test_example_of_the_authors(self):
        """Points inside and outside a sphere; test errors 0.355 (plain) and 0.143 (learned)."""
        rng = np.random.default_rng(0)
        X, X_test = rng.standard_normal((2, 10_000, 10))
        y, y_test = (np.linalg.norm(part, axis=1) > np.sqrt(10) for part in (X, X_test))
        X, X_test = X.astype(np.float32), X_test.astype(np.float32)
        learned = LKRF("all", bandwidth=1.0, random_state=0).fit(X, y)
        plain = random_features(X, learned.kernel_.n_components, bandwidth=1.0)
        errors = []
        for model in (plain, learned):
            mean = np.where(y, 1, -1).mean()  # the only intercept of the authors' model
            ridge = Ridge(alpha=0.05, fit_intercept=False)
            ridge.fit(model.transform(X), np.where(y, 1, -1) - mean)
            errors.append(np.mean((ridge.predict(model.transform(X_test)) + mean > 0) != y_test))
        np.testing.assert_allclose(errors, [0.355, 0.143], atol=0.015)

    def test_draws_from_or_keeps_the_features_with_positive_probability(self):
        X, y = make_windmill(200, random_state=0)
        kept, more, fewer = (
            LKRF(size, n_pool=100, rho=20.0, random_state=0).fit(X, y) for size in ("all", 90, 3)
        )
        n_kept = (kept.probabilities_ > 1e-15).sum()
        assert 1 < n_kept < 90
        assert kept.transform(X).shape == (200, n_kept)
        np.testing.assert_array_equal(more.frequencies_, kept.frequencies_)
        assert fewer.transform(X).shape == (200, 3)
        known = {tuple(frequency) for frequency in kept.frequencies_}
        assert {tuple(frequency) for frequency in fewer.frequencies_} <= known

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"n_components": "some"}, "n_components='some' is not allowed"),
            ({"n_pool": 0}, "n_pool=0 is not allowed"),
            ({"rho": -1.0}, r"rho=-1\.0 is not allowed"),
            ({"weighting": "q"}, "weighting='q' is not allowed"),
        ],
    )
    def test_invalid_parameters(self, settings, message):
        with pytest.raises(ValueError, match=message):
            LKRF(**settings).fit(np.eye(4), [0, 1, 0, 1])


def test_failed_fit_leaves_the_estimator_unchanged(rng):
    X, y = rng.standard_normal((30, 3)), np.arange(30) % 2
    fresh = LKRF(5, n_pool=20)
    fitted = LKRF(5, n_pool=20, random_state=0).fit(X, y)
    before = fitted.transform(X)
    for model in (fresh, fitted):
        with pytest.raises(ValueError, match="y has only one class, 0, "):
            model.fit(X[:, :2], 0 * y)
    with pytest.raises(NotFittedError):
        fresh.transform(X)
    np.testing.assert_array_equal(fitted.transform(X), before)
