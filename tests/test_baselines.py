import numpy as np
import pytest
import reference
from sklearn.svm import SVC

from notsorandom.baselines import arc_cosine_kernel


@pytest.mark.parametrize("degree", [0, 1])
def test_the_arc_cosine_kernel_is_a_wide_random_layer(rng, degree):
    X, Z = rng.standard_normal((6, 3)), rng.standard_normal((5, 3))
    weights = rng.standard_normal((3, 2_000_000))
    layers = [np.maximum(A @ weights, 0) ** degree * (A @ weights > 0) for A in (X, Z)]
    expected = 2 * layers[0] @ layers[1].T / weights.shape[1]
    np.testing.assert_allclose(arc_cosine_kernel(X, Z, degree), expected, atol=0.02)


@pytest.mark.parametrize("degree", [0, 1])
def test_the_arc_cosine_kernel_is_a_kernel(rng, degree):
    X = reference.sphere_points(rng, 50, 4)
    gram = arc_cosine_kernel(X, degree=degree)
    np.testing.assert_allclose(np.diag(gram), 1, atol=1e-6)
    np.testing.assert_allclose(gram, gram.T)
    assert np.linalg.eigvalsh(gram).min() > -1e-7
    SVC(kernel=arc_cosine_kernel).fit(X, np.arange(50) % 2)


def test_the_arc_cosine_kernel_of_zero_is_finite():
    assert np.isfinite(arc_cosine_kernel(np.zeros((2, 3)))).all()
    for size in (1e-200, 1e200):
        np.testing.assert_allclose(
            arc_cosine_kernel(size * np.eye(2), degree=0), [[1, 0.5], [0.5, 1]]
        )


def test_other_degrees_are_refused():
    with pytest.raises(ValueError, match="degree=2 is not allowed"):
        arc_cosine_kernel(np.eye(2), degree=2)
