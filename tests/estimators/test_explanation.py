"""Importances and contributions, against finite differences, quadrature and planted columns."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.feature_selection import RFE, SelectFromModel

from notsorandom import FourierClassifier, FourierRegressor, Sphere

QUICK = {"smoothing": 0.1, "C": 1.0, "random_state": 0}


def make_models(phase, linear=False):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 4)) * [1.0, 0.1, 3.0, 1.0] + [0, 5, -2, 0]
    z = np.sin(X[:, 0]) + 4 * (X[:, 1] - 5)
    settings = {"n_components": 12, "phase": phase, "linear": linear, **QUICK}
    return X, {
        "two classes": FourierClassifier(**settings).fit(X, z > 0),
        "three classes": FourierClassifier(**settings).fit(X, np.digitize(z, [-0.5, 0.5])),
        "one output": FourierRegressor(**settings).fit(X, z),
        "one column": FourierRegressor(**settings).fit(X, z[:, None]),
        "two outputs": FourierRegressor(**settings).fit(X, np.column_stack([z, X[:, 2]])),
    }


def values_of(model, X):
    values = model.decision_function(X) if hasattr(model, "classes_") else model.predict(X)
    return values.reshape(len(X), -1)  # (n_samples, n_tasks)


def gradients_of(model, X, step=1e-5):
    """Central differences, of shape (n_samples, n_tasks, n_features)."""
    shifts = step * np.eye(X.shape[1])
    parts = [values_of(model, X + shift) - values_of(model, X - shift) for shift in shifts]
    return np.stack(parts, axis=2) / (2 * step)


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("phase", ["aligned", "paired"])
def test_the_matrix_is_the_mean_outer_product_of_gradients(phase, linear):
    X, models = make_models(phase, linear)
    for model in models.values():
        gradients = gradients_of(model, X)
        expected = np.einsum("nki,nkj->ij", gradients, gradients) / len(X)
        found = model.importances(X)
        np.testing.assert_allclose(found.matrix, expected, rtol=1e-5, atol=1e-6 * expected.max())
        shares = np.diag(expected) * X.var(axis=0)
        np.testing.assert_allclose(found.shares, shares / shares.sum(), rtol=1e-5)
        np.testing.assert_allclose(model.feature_importances_, found.shares, rtol=1e-9)


def test_feature_importances_of_weighted_and_of_many_samples():
    """Weight 2 is a row twice, weight 0 none, in any unit. Of many rows a part is close to all."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9000, 4)) * [1, 1, 5, 1]
    y, weights = np.sin(2 * X[:, 1]) + 0.3 * X[:, 0], rng.integers(0, 3, size=300)
    repeated = np.repeat(np.arange(300), weights)
    weighted = FourierRegressor(10, **QUICK).fit(X[:300], y[:300], weights)
    copied = FourierRegressor(10, **QUICK).fit(X[repeated], y[repeated])
    np.testing.assert_allclose(
        weighted.feature_importances_, copied.feature_importances_, rtol=1e-6
    )
    far = FourierRegressor(10, **QUICK).fit(1e160 * X[:300], y[:300], weights)
    np.testing.assert_allclose(far.feature_importances_, weighted.feature_importances_, rtol=1e-3)
    model = FourierRegressor(20, **QUICK).fit(X, y)
    assert model.feature_importances_.argmax() == 1
    np.testing.assert_allclose(model.feature_importances_, model.importances(X).shares, atol=0.03)


def test_selection_of_columns_by_importances():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    y = X[:, 1] * X[:, 3] > 0
    model = FourierClassifier(20, **QUICK)
    for selector in (SelectFromModel, RFE):
        chosen = selector(model, importance_getter="feature_importances_").fit(X, y)
        assert set(np.flatnonzero(chosen.get_support())) == {1, 3}
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    assert not hasattr(FourierClassifier(10, space="sphere").fit(X, y), "feature_importances_")


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("phase", ["aligned", "paired"])
def test_contributions_are_integrals_along_the_path_from_the_mean(phase, linear):
    X, models = make_models(phase, linear)
    nodes, weights = np.polynomial.legendre.leggauss(60)
    for name, model in models.items():
        center = X.mean(axis=0)
        expected = (
            sum(
                weight / 2 * gradients_of(model, center + (node + 1) / 2 * (X - center))
                for node, weight in zip(nodes, weights, strict=True)
            )
            * (X - center)[:, None]
        )
        found = model.contributions(X)
        is_flat = name in ("two classes", "one output")
        assert found.shape == ((150, 4) if is_flat else expected.shape)
        np.testing.assert_allclose(found.reshape(expected.shape), expected, atol=1e-5)
        change = values_of(model, X) - values_of(model, center[None])
        np.testing.assert_allclose(found.reshape(expected.shape).sum(axis=2), change, atol=1e-8)


@pytest.mark.full_trials
def test_planted_columns_are_found_in_any_unit():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 10)) * 10.0 ** rng.integers(-1, 2, size=10)
    z = X / X.std(axis=0)
    frame = pd.DataFrame(X, columns=[f"column {k}" for k in range(10)])
    target = np.sin(2 * z[:, 3]) + z[:, 7] ** 2
    scaled = frame / frame.std()
    importances = FourierRegressor(random_state=0).fit(scaled, target).importances(scaled)
    first, second, third, *_ = importances.to_dict().items()
    assert {first[0], second[0]} == {"column 3", "column 7"}
    assert second[1] > 4 * third[1]
    assert importances.shares.sum() == pytest.approx(1)
    assert str(importances).splitlines()[0].endswith(first[0])
    model = FourierClassifier(**QUICK).fit(scaled, target > 1)
    assert set(list(model.importances(scaled).to_dict())[:2]) == {"column 3", "column 7"}


@pytest.mark.parametrize("linear", [False, True])
def test_kinds_of_samples(linear):
    X, models = make_models("aligned", linear)
    model = models["two classes"]
    expected = model.importances(X)
    for samples in (sparse.csr_array(X), X.tolist(), pd.DataFrame(X)):
        np.testing.assert_allclose(model.importances(samples).matrix, expected.matrix, rtol=1e-9)
        np.testing.assert_allclose(model.contributions(samples), model.contributions(X), atol=1e-9)
    assert expected.names == ["x0", "x1", "x2", "x3"]
    single = model.importances(X.astype(np.float32))
    np.testing.assert_allclose(single.shares, expected.shares, atol=1e-3)
    assert model.contributions(X[:1]).shape == (1, 4)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("linear", [False, True])
def test_more_columns_than_frequencies(linear, n_classes):
    """Then the matrix is computed from products of frequencies and slopes, and has their rank."""
    rng = np.random.default_rng(0)
    X = sparse.random_array((80, 300), density=0.1, random_state=rng, format="csr")
    y = np.argsort(np.argsort(X[:, :40].sum(axis=1))) * n_classes // 80
    model = FourierClassifier(6, linear=linear, **QUICK).fit(X, y)
    found = model.importances(X)
    gradients = gradients_of(model, X.toarray())
    expected = np.einsum("nki,nkj->ij", gradients, gradients) / 80
    n_slopes = linear * (1 if n_classes == 2 else 3)
    assert found.root.shape == (6 + n_slopes, 300)
    np.testing.assert_allclose(found.matrix, expected, atol=1e-5 * expected.max())
    shares = np.diag(expected) * X.toarray().var(axis=0)
    np.testing.assert_allclose(found.shares, shares / shares.sum(), atol=1e-6)
    center = X.toarray().mean(axis=0)[None]
    change = values_of(model, X.toarray()) - values_of(model, center)
    total = model.contributions(X).reshape(80, -1, 300).sum(axis=2)
    np.testing.assert_allclose(total, change, atol=1e-8)


def test_many_sparse_columns_take_little_memory():
    """No matrix of all pairs of columns: here it would take 3.2 GB."""
    rng, n_columns = np.random.default_rng(0), 20_000
    X = sparse.random_array((60, n_columns), density=0.005, random_state=rng, format="csr")
    y = X[:, :9000].sum(axis=1) > X[:, 9000:18_000].sum(axis=1)
    model = FourierClassifier(4, linear=True, **QUICK).fit(X, y)
    tracemalloc.start()
    try:
        found = model.importances(X)
        assert tracemalloc.get_traced_memory()[1] < 4e8
    finally:
        tracemalloc.stop()
    assert found.root.shape == (5, n_columns)
    slopes = found.shares.argsort()[-5:]
    assert (slopes < 18_000).all()


def test_the_sphere_has_none():
    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 2
    model = FourierClassifier(8, space=Sphere(normalize=True), **QUICK).fit(X, y)
    for method in (model.importances, model.contributions):
        with pytest.raises(ValueError, match="fit with space='euclidean'"):
            method(X)
