"""The learned kernel: Gram matrix, features and their laws."""

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
import reference
from scipy import sparse
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, WhiteKernel
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

from notsorandom import FourierClassifier, FourierFeatures, GaussianProcessKernel, Sphere

pytestmark = pytest.mark.usefixtures("quick_trials")


@pytest.fixture(scope="module", params=["aligned", "paired"])
def features(request, windmill):
    return FourierFeatures(20, phase=request.param, smoothing=0.06, random_state=0).fit(
        *windmill[:2]
    )


def test_kernel_is_the_inner_product_of_the_features(features, windmill):
    X, Z = windmill[0][:40], windmill[2][:30]
    kernel = features.kernel_
    np.testing.assert_allclose(kernel(X, Z), kernel.features(X) @ kernel.features(Z).T)
    np.testing.assert_allclose(kernel(X), kernel(X, X))
    np.testing.assert_array_equal(kernel.features(X), features.transform(X))


def test_weights_are_a_measure(features):
    weights = features.kernel_.weights
    assert (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(), 1)
    assert len(weights) == len(features.frequencies_) == len(features.phases_)


def test_paired_kernel_is_translation_invariant(windmill):
    X = windmill[0][:25]
    model = FourierFeatures(8, phase="paired", smoothing=0.06, random_state=0)
    kernel = model.fit(*windmill[:2]).kernel_
    np.testing.assert_allclose(kernel(X), kernel(X + 5.0), atol=1e-9)
    expected = reference.translation_invariant_gram(X, X, kernel.frequencies, kernel.weights)
    np.testing.assert_allclose(kernel(X), expected, atol=1e-9)
    np.testing.assert_allclose(np.diag(kernel(X)), 1)


def test_mean_square_of_the_features_is_about_one(features, windmill):
    squares = (features.transform(windmill[0]) ** 2).sum(axis=1)
    assert 0.7 < squares.mean() < 1.3


def test_svc_takes_the_kernel(windmill):
    X, y, X_test, _ = windmill
    settings = {"loss": "hinge", "C": 1.0, "smoothing": 0.06, "random_state": 0}
    model = FourierClassifier(40, **settings).fit(X, y)
    svm = SVC(kernel=model.kernel_, C=1.0).fit(X, y)
    agreement = np.mean(svm.predict(X_test) == model.predict(X_test))
    assert agreement > 0.99  # the same SVM, solved in the dual
    assert cross_val_score(clone(svm), X, y, cv=3).mean() > 0.9


def test_kernel_is_frozen(features):
    with pytest.raises(ValueError, match="read-only"):
        features.frequencies_ *= 2
    with pytest.raises(FrozenInstanceError):
        features.kernel_.weights = None


def test_head_of_the_kernel(features, windmill):
    head = features.kernel_.head(6)
    assert head.n_components == 6
    np.testing.assert_allclose(head.weights.sum(), 1)
    allowed = {"aligned": "from 1 to 20", "paired": "from 2 to 20, in steps of 2"}[head.phase]
    for size in (0, -1, 22, 2.0, True, None, "3"):
        for part in (features, features.kernel_):
            with pytest.raises(ValueError, match=rf"head\({size!r}\) is .* an int {allowed}\."):
                part.head(size)
    assert features.head(np.int64(6)).kernel_.n_components == 6


def test_wrong_width(features):
    with pytest.raises(ValueError, match=r"\(5, 3\).*\(n_samples, 2\)"):
        features.kernel_(np.zeros((5, 3)))


def test_integers_and_no_rows(features):
    assert features.kernel_.features([[1, 2], [3, 4]]).shape == (2, 20)
    assert features.kernel_.features(np.empty((0, 2))).shape == (0, 20)


def test_features_have_the_type_of_the_samples(windmill):
    """Also if the model was fitted to samples of the other type."""
    X, y = windmill[:2]
    for dtype, other in ((np.float32, np.float64), (np.float64, np.float32)):
        model = FourierFeatures(8, smoothing=0.06, random_state=0).fit(X.astype(dtype) + 3, y)
        features = model.transform(X.astype(other) + 3)
        assert features.dtype == other
        np.testing.assert_allclose(features, model.transform(X.astype(dtype) + 3), atol=1e-4)


@pytest.fixture(scope="module")
def adapter(features):
    return GaussianProcessKernel(features.kernel_)


@pytest.fixture(scope="module")
def drawn(adapter, windmill):
    """Samples, targets drawn from the Gaussian process with noise, and more samples."""
    X, rng = windmill[0][:60], np.random.default_rng(0)
    weights = 2 * rng.standard_normal(adapter.kernel.n_components)
    y = adapter.kernel.features(X) @ weights + 0.1 * rng.standard_normal(len(X))
    return X, y, windmill[2][:25]


@pytest.fixture(scope="module", params=["aligned", "paired"])
def trend(request):
    """A model of a trend and a wave with a linear part, and its samples, far from zero."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4)) * [1, 2, 1, 0.5] + [0, 100, -3, 0]
    y = X[:, 1] + np.sin(3 * X[:, 0]) > 100
    settings = {"linear": True, "loss": "hinge", "C": 1.0, "smoothing": 0.06, "random_state": 0}
    return FourierClassifier(20, phase=request.param, **settings).fit(X, y), X, y


class TestLinearPart:
    def test_it_adds_the_inner_product_of_the_columns(self, trend):
        model, X, _ = trend
        kernel, Z = model.kernel_, X[:30] + 1
        waves = replace(kernel, linear_scale=0.0, linear_center=None)
        assert (kernel.n_waves, kernel.n_components, waves.n_components) == (20, 24, 20)
        columns = (X - kernel.linear_center) @ (Z - kernel.linear_center).T
        expected = waves(X, Z) + kernel.linear_scale**2 * columns
        np.testing.assert_allclose(kernel(X, Z), expected, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(kernel.diag(X), np.diag(kernel(X)))
        np.testing.assert_allclose(kernel.linear_center, X.mean(axis=0))
        features = kernel.features(X)
        np.testing.assert_array_equal(features[:, :20], waves.features(X))
        np.testing.assert_allclose(features @ model.coef_.T + model.intercept_, scores(model, X))

    def test_sparse_samples_without_a_centre(self, trend):
        model, X, _ = trend
        kernel = replace(model.kernel_, linear_center=None)
        dense, found = kernel.features(X), kernel.features(sparse.csr_array(X))
        assert sparse.issparse(found)
        np.testing.assert_allclose(found.toarray(), dense, atol=1e-9)
        np.testing.assert_allclose(kernel(sparse.csr_array(X), X), kernel(X), rtol=1e-9)
        np.testing.assert_allclose(kernel.diag(sparse.csr_array(X)), kernel.diag(X))

    def test_head_keeps_it(self, trend):
        model, X, _ = trend
        kernel = model.kernel_
        head = kernel.head(6)
        assert (head.n_waves, head.n_components) == (6, 10)
        np.testing.assert_array_equal(head.features(X)[:, 6:], kernel.features(X)[:, 20:])
        assert kernel.possible_sizes().max() == 20
        with pytest.raises(ValueError, match="to 20"):
            kernel.head(24)
        assert model.features_.head(6).transform(X).shape == (300, 10)
        assert len(model.features_.get_feature_names_out()) == 24

    def test_it_is_frozen_and_in_the_repr(self, trend):
        kernel = trend[0].kernel_
        with pytest.raises(ValueError, match="read-only"):
            kernel.linear_center[0] = 1
        assert repr(kernel).endswith("n_components=24, linear)")
        assert kernel.features(np.empty((0, 4))).shape == (0, 24)

    def test_svc_takes_the_kernel(self, trend):
        model, X, y = trend
        svm = SVC(kernel=model.kernel_, C=1.0).fit(X, y)
        assert np.mean(svm.predict(X) == model.predict(X)) > 0.99
        assert cross_val_score(clone(svm), X, y, cv=3).mean() > 0.9

    def test_gaussian_process(self, trend):
        """It is not stationary, and has the posterior of a linear model on all features."""
        model, X, _ = trend
        adapter, y = GaussianProcessKernel(model.kernel_), X[:, 1] - 100
        assert not adapter.is_stationary()
        assert not np.allclose(adapter(X), adapter(X + 1))
        process = GaussianProcessRegressor(adapter + WhiteKernel(0.1), optimizer=None, alpha=0.0)
        mean, std = process.fit(X, y).predict(X[:9] + 0.5, return_std=True)
        features, test = (model.kernel_.features(each) for each in (X, X[:9] + 0.5))
        covariance = np.linalg.inv(features.T @ features / 0.1 + np.eye(24))
        np.testing.assert_allclose(mean, test @ covariance @ features.T @ y / 0.1, rtol=1e-6)
        expected = np.einsum("ij,jk,ik->i", test, covariance, test) + 0.1
        np.testing.assert_allclose(std**2, expected, rtol=1e-6)

    @pytest.mark.parametrize("space", [Sphere(), Sphere("zonal"), Sphere("degree", max_degree=2)])
    def test_on_the_sphere(self, space, rng):
        X = reference.sphere_points(rng, 200, 3)
        y = X[:, 0] + np.sin(6 * X[:, 1]) > 0
        settings = {"space": space, "linear": True, "smoothing": 0.06, "random_state": 0}
        kernel = FourierClassifier(9, **settings).fit(X, y).kernel_
        waves = replace(kernel, linear_scale=0.0)
        expected = waves(X) + kernel.linear_scale**2 * X @ X.T
        np.testing.assert_allclose(kernel(X), expected, atol=1e-9)
        assert not kernel.is_stationary()


def scores(model, X):
    return model.decision_function(X)[:, None]


class TestGaussianProcess:
    def test_gram_matrix_equals_the_kernel(self, adapter, drawn):
        X, _, Z = drawn
        gram = adapter(X)
        np.testing.assert_array_equal(gram, adapter.kernel(X))
        np.testing.assert_array_equal(adapter(X, Z), adapter.kernel(X, Z))
        np.testing.assert_array_equal(gram, gram.T)
        assert np.linalg.eigvalsh(gram).min() > -1e-12
        np.testing.assert_allclose(adapter.diag(X), np.diag(gram))
        np.testing.assert_array_equal(adapter.kernel.diag(X), adapter.diag(X))

    def test_there_is_nothing_to_optimise(self, adapter, drawn):
        X, _, Z = drawn
        gram, gradient = adapter(X, eval_gradient=True)
        assert gradient.shape == (*gram.shape, 0)
        assert adapter.theta.shape == (0,)
        with pytest.raises(ValueError, match="only without Y"):
            adapter(X, Z, eval_gradient=True)
        scaled = ConstantKernel(2.0) * adapter
        np.testing.assert_allclose(scaled(X, eval_gradient=True)[1], 2 * gram[:, :, None])

    def test_only_paired_phases_are_stationary(self, adapter, drawn):
        X, _, Z = drawn
        assert adapter.is_stationary() == np.allclose(adapter(X, Z), adapter(X + 1, Z + 1))
        assert adapter.is_stationary() == (adapter.kernel.phase == "paired")

    def test_harmonics_are_not_stationary(self, windmill):
        model = FourierFeatures(6, space=Sphere(normalize=True), phase="paired", smoothing=0.06)
        assert not GaussianProcessKernel(model.fit(*windmill[:2]).kernel_).is_stationary()

    def test_posterior_is_bayesian_linear_regression(self, adapter, drawn):
        """Weights of variance `c` on the features, and noise of variance `s`."""
        X, y, Z = drawn
        c, s = 3.0, 0.1
        kernel = ConstantKernel(c) * adapter + WhiteKernel(s)
        process = GaussianProcessRegressor(kernel, optimizer=None, alpha=0.0).fit(X, y)
        mean, std = process.predict(Z, return_std=True)
        features, test = adapter.kernel.features(X), adapter.kernel.features(Z)
        covariance = np.linalg.inv(features.T @ features / s + np.eye(features.shape[1]) / c)
        np.testing.assert_allclose(mean, test @ covariance @ features.T @ y / s, rtol=1e-8)
        expected = np.einsum("ij,jk,ik->i", test, covariance, test) + s
        np.testing.assert_allclose(std**2, expected, rtol=1e-8)

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_variances_are_optimised(self, adapter, drawn, dtype):
        X, y, Z = drawn
        kernel = ConstantKernel(1.0) * adapter + WhiteKernel(1.0)
        model = GaussianProcessRegressor(kernel).fit(X.astype(dtype), y)
        amplitude, noise = np.exp(model.kernel_.theta)
        assert 1 < amplitude < 16
        assert 0.005 < noise < 0.02
        assert (model.predict(Z.astype(dtype), return_std=True)[1] ** 2 >= noise).all()

    def test_classifier(self, adapter, windmill):
        X, y = windmill[0][:150], windmill[1][:150]
        model = GaussianProcessClassifier(ConstantKernel(10.0) * adapter).fit(X, y)
        assert model.score(X, y) > 0.8

    def test_clone_shares_the_kernel(self, adapter):
        copied = clone(ConstantKernel(2.0) * adapter)
        assert copied == ConstantKernel(2.0) * adapter
        assert copied.k2 is not adapter
        assert copied.k2.kernel is adapter.kernel
        assert copied.get_params()["k2__kernel"] is adapter.kernel


def test_repr_is_one_line(features):
    kernel = features.kernel_
    assert repr(kernel) == (
        f"LearnedKernel(space=Euclidean, phase={kernel.phase!r}, n_features=2, n_components=20)"
    )
    assert repr(GaussianProcessKernel(kernel)) == f"GaussianProcessKernel({kernel!r})"
