"""SphereKernel: learning, Gram matrices, use in scikit-learn, errors."""

import pickle

import numpy as np
import pytest
import reference
from scipy import sparse
from scipy.stats import special_ortho_group
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, WhiteKernel
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from notsorandom import (
    DegreeKernel,
    FourierFeatures,
    GaussianProcessKernel,
    Sphere,
    SphereKernel,
)
from notsorandom.estimators import degrees


@parametrize_with_checks([SphereKernel(max_degree=3)])
def test_scikit_learn_estimator(estimator, check):
    check(estimator)


@pytest.fixture
def embeddings(rng):
    """Four classes on the sphere of R^30, which a linear kernel can't separate."""
    X = reference.sphere_points(rng, 300, 30)
    X[:, :2] *= 5  # so that the two columns that matter are large
    return reference.unit(X), 2 * (X[:, 0] * X[:, 1] > 0) + (X[:, 0] > 0)


def test_learned_kernel_in_an_svm(embeddings):
    X, y = embeddings
    model = SphereKernel(random_state=0).fit(X, y)
    pipeline = make_pipeline(SphereKernel(random_state=0), SVC(kernel="precomputed")).fit(X, y)
    svm = SVC(kernel=model.kernel_).fit(X, y)
    np.testing.assert_allclose(svm.decision_function(X), pipeline.decision_function(X), atol=1e-10)
    np.testing.assert_array_equal(clone(svm).fit(X, y).predict(X), svm.predict(X))
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.8
    assert model.transform(X[:7]).shape == (7, 300)
    assert len(model.get_feature_names_out()) == 300


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_features", [2, 3, 20, 384])
def test_kernel_is_the_weighted_sum_of_the_degrees(rng, n_features, dtype):
    X, Z = (reference.sphere_points(rng, n, n_features).astype(dtype) for n in (400, 90))
    weights = rng.dirichlet(np.ones(6)) * np.array([1, 0, 1, 1, 1, 0])
    weights /= weights.sum()
    kernel = DegreeKernel(weights, n_features)
    gram = kernel(X, Z)
    assert gram.dtype == dtype
    cosines = (X @ Z.T).astype(float)
    expected = sum(
        w * reference.legendre(n_features, k + 1, cosines) for k, w in enumerate(weights)
    )
    np.testing.assert_allclose(gram, expected, atol=1e-5 if dtype == np.float32 else 1e-12)
    square = kernel(X)
    np.testing.assert_allclose(np.diag(square), 1, rtol=1e-5)
    assert np.linalg.eigvalsh(square.astype(float)).min() > -1e-4
    np.testing.assert_allclose(kernel(3 * X, Z / 7), gram, atol=1e-5)
    np.testing.assert_allclose(kernel(sparse.csr_array(X), sparse.csr_array(Z)), gram, atol=1e-5)
    assert kernel(X[0], Z[0]) == pytest.approx(gram[0, 0], rel=1e-4)
    np.testing.assert_allclose(pairwise_kernels(X[:5], Z[:5], metric=kernel), gram[:5, :5], 1e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
def test_all_data_types(rng, dtype):
    X = (20 * rng.standard_normal((20, 5))).astype(dtype)
    model = SphereKernel(3).fit(X, rng.permutation(20) % 2)
    assert model.transform(X).dtype == (np.float32 if dtype == np.float32 else np.float64)


def test_fit_is_invariant_to_rotations_and_norms(rng, embeddings):
    X, y = embeddings
    rotated = X @ special_ortho_group.rvs(30, random_state=0) * rng.uniform(1, 9, size=(300, 1))
    one, other = (SphereKernel(random_state=0).fit(data, y).kernel_ for data in (X, rotated))
    np.testing.assert_allclose(one.weights, other.weights, atol=0.02)  # of one or two plays
    np.testing.assert_allclose(one(X), one(rotated), atol=1e-10)


def test_equal_seeds_give_equal_kernels(embeddings, monkeypatch):
    monkeypatch.setattr(degrees, "MAX_PLAYED_ROWS", 100)
    X, y = embeddings
    one, other, third = (SphereKernel(random_state=s).fit(X, y).kernel_.weights for s in (0, 0, 1))
    np.testing.assert_array_equal(one, other)
    assert not np.array_equal(one, third)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, sparse.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_of_zeros(embeddings, make, dtype):
    """They are left out of the game, and their kernel is 0."""
    X, y = embeddings
    kept = np.arange(300) % 3 > 0
    zeroed = make((X * kept[:, None]).astype(dtype))
    model = SphereKernel(random_state=0).fit(zeroed, y)
    expected = SphereKernel(random_state=0).fit(make(X[kept].astype(dtype)), y[kept])
    np.testing.assert_array_equal(model.kernel_.weights, expected.kernel_.weights)
    gram = model.transform(zeroed)
    assert gram.dtype == dtype
    reference_gram = np.outer(kept, kept) * sum(
        weight * reference.degree_gram(X, degree)
        for degree, weight in enumerate(model.kernel_.weights, 1)
    )
    atol = 1e-5 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(gram, reference_gram, atol=atol)
    assert (gram[~kept] == 0).all()
    assert (gram[:, ~kept] == 0).all()
    assert np.linalg.eigvalsh(gram.astype(float)).min() > -100 * atol
    np.testing.assert_allclose(model.kernel_.diag(zeroed), np.diag(gram), atol=atol)
    svm = SVC(kernel="precomputed").fit(gram, y)
    assert svm.score(gram[kept], y[kept]) > 0.9
    by_callable = SVC(kernel=model.kernel_).fit(X * kept[:, None], y)
    np.testing.assert_allclose(
        by_callable.decision_function(X * kept[:, None]), svm.decision_function(gram), atol=0.01
    )
    assert model.kernel_(np.zeros(30), X[0]) == 0


def test_explicit_zeros_of_sparse_rows(embeddings):
    X, y = embeddings
    stored = sparse.csr_array(X)
    stored.data[:30] = 0
    assert stored.nnz == X.size
    gram = SphereKernel(2).fit(stored, y).transform(stored)
    np.testing.assert_array_equal(gram[0], 0)
    np.testing.assert_allclose(np.diag(gram)[1:], 1)


@pytest.mark.parametrize("settings", [{"C": 1e6}, {"C": 1e-9}, {"smoothing": 1e3}])
def test_extreme_settings(embeddings, settings):
    weights = SphereKernel(**settings).fit(*embeddings).kernel_.weights
    assert weights.sum() == pytest.approx(1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gaussian_process(embeddings, dtype):
    X, y = embeddings[0].astype(dtype), embeddings[1]
    X[0] = 0
    learned = SphereKernel(random_state=0).fit(X, y).kernel_
    kernel = GaussianProcessKernel(learned)
    assert repr(kernel) == f"GaussianProcessKernel({learned!r})"
    assert not kernel.is_stationary()
    gram, gradient = kernel(X, eval_gradient=True)
    np.testing.assert_array_equal(gram, learned(X.astype(float)))
    assert gradient.shape == (300, 300, 0)
    np.testing.assert_allclose(kernel.diag(X), np.diag(gram))
    prior = ConstantKernel(3.0) * kernel + WhiteKernel(0.1)
    process = GaussianProcessRegressor(prior, optimizer=None, alpha=0.0).fit(X[::2], y[::2])
    mean, deviation = process.predict(X[1::2], return_std=True)
    across = 3 * gram[1::2, ::2]
    solved = np.linalg.solve(3 * gram[::2, ::2] + 0.1 * np.eye(150), across.T)
    np.testing.assert_allclose(mean, y[::2] @ solved, atol=1e-6)
    np.testing.assert_allclose(deviation**2, 3.1 - np.sum(across * solved.T, axis=1), atol=1e-6)
    assert len(GaussianProcessRegressor(prior).fit(X[::2], y[::2]).kernel_.theta) == 2


def test_kernel_can_be_pickled_and_is_frozen():
    kernel = DegreeKernel(np.array([0.25, 0.0, 0.75]), 30)
    assert repr(kernel) == "DegreeKernel(0.25 P_1 + 0.75 P_3, n_features=30)"
    again = pickle.loads(pickle.dumps(kernel))
    np.testing.assert_array_equal(again.weights, kernel.weights)
    with pytest.raises(ValueError, match="read-only"):
        kernel.weights[0] = 1


def test_sparse_samples(embeddings):
    X, y = embeddings
    thin = np.where(np.abs(X) > 0.1, X, 0)
    one, other = (
        SphereKernel(random_state=0).fit(data, y) for data in (thin, sparse.csr_array(thin))
    )
    np.testing.assert_allclose(one.kernel_.weights, other.kernel_.weights, atol=0.02)
    np.testing.assert_allclose(
        other.transform(sparse.csr_array(thin)), one.kernel_(thin), atol=0.05
    )


def test_progress_is_shown(embeddings, capsys):
    SphereKernel(verbose=1).fit(*embeddings)
    assert "rounds" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_degree": 0}, r"max_degree=0 is not allowed"),
        ({"C": 0.0}, r"C=0.0 is not allowed"),
        ({"C": 1e7}, r"C=10000000.0 is not allowed"),
        ({"smoothing": -1}, r"smoothing=-1 is not allowed"),
    ],
)
def test_bad_settings(embeddings, settings, message):
    with pytest.raises(ValueError, match=message):
        SphereKernel(**settings).fit(*embeddings)


def test_errors_say_what_to_do(embeddings):
    X, y = embeddings
    kernel = SphereKernel().fit(X, y).kernel_
    with pytest.raises(ValueError, match=r"shape \(300, 29\).*\(n_samples, 30\)"):
        kernel(X[:, 1:])
    with pytest.raises(ValueError, match=r"degree 2 alone has 464 with 30.*SVC\(kernel=kernel\)"):
        kernel.features(X)
    with pytest.raises(ValueError, match=r"fewer than two classes, \[0.0\].*at least two classes"):
        SphereKernel().fit(X, np.zeros(300))
    with pytest.raises(ValueError, match=r"fewer than two classes, \[1\], among rows.*not zero"):
        SphereKernel().fit(X * (y == 1)[:, None], y)
    with pytest.raises(ValueError, match=r"fewer than two classes, \[\]"):
        SphereKernel().fit(0 * X, y)
    with pytest.raises(ValueError, match=r"n_features = 1.*at least 2 columns"):
        SphereKernel().fit(X[:, :1], y)
    with pytest.raises(ValueError, match="n_features=1 is not allowed"):
        DegreeKernel(np.ones(1), 1)
    with pytest.raises(ValueError, match="NaN"):
        kernel(np.full((2, 30), np.nan))
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        kernel(X[:0])
    space = Sphere(basis="degree", max_degree=4)
    with pytest.raises(ValueError, match=r"more harmonics with 30 columns.*SphereKernel"):
        FourierFeatures(100, space=space).fit(X, y)
