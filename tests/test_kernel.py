"""The learned kernel: Gram matrix, features and their laws."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest
import reference
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

from notsorandom import FourierClassifier, FourierFeatures

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
    """Also those of a model that was fitted to samples of the other type."""
    X, y = windmill[:2]
    for dtype, other in ((np.float32, np.float64), (np.float64, np.float32)):
        model = FourierFeatures(8, smoothing=0.06, random_state=0).fit(X.astype(dtype) + 3, y)
        features = model.transform(X.astype(other) + 3)
        assert features.dtype == other
        np.testing.assert_allclose(features, model.transform(X.astype(dtype) + 3), atol=1e-4)
