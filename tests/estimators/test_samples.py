"""Warnings about data that can be fitted, but probably not as it was meant."""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from notsorandom import FourierClassifier, FourierFeatures, FourierRegressor, Sphere
from notsorandom.estimators import samples
from notsorandom.estimators.samples import column_scales

QUICK = {"smoothing": 0.1, "C": 1.0, "random_state": 0}


def warnings_of(estimator, X, y):
    samples._warned.clear()  # else only the first fit of a process warns
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator(2, **QUICK).fit(X, y)
    return [str(each.message) for each in caught]


def classes_and_rows(labels, n_samples):
    """Return samples, and the labels in turn."""
    X = np.random.default_rng(0).normal(size=(n_samples, 2))
    return X, np.resize(labels, n_samples)


NUMBERS = {
    "diabetes": load_diabetes(return_X_y=True),
    "as floats": classes_and_rows(np.arange(30.0), 100),
    "prices": classes_and_rows(np.arange(0, 10_000, 97), 300),
    "ages": classes_and_rows(np.arange(17, 91), 2000),
    "years": classes_and_rows(np.arange(1922, 2012, dtype=np.uint16), 2000),
    "temperatures": classes_and_rows(np.arange(-20, 35), 2000),
}


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("estimator", [FourierClassifier, FourierFeatures])
def test_numbers_given_to_a_classifier_are_warned_of(estimator, name):
    X, y = NUMBERS[name]
    (message,) = warnings_of(estimator, X, y)
    assert f"y has {len(set(y))} different values from {min(y)} to {max(y)} in {len(y)}" in message
    assert "use FourierRegressor" in message
    assert warnings_of(FourierRegressor, X, y) == []


CLASSES = {
    "digits": load_digits(return_X_y=True),
    "few classes, few samples": classes_and_rows(np.arange(20), 40),
    "forty faces": classes_and_rows(np.arange(40), 200),
    "a hundred classes": classes_and_rows(np.arange(100), 2000),
    "from one": classes_and_rows(np.arange(1, 27), 400),
    "numbers of a catalogue": classes_and_rows(np.arange(2400, 5400, 100), 300),
    "text": classes_and_rows(np.arange(60).astype(str), 180),
    "large integers": classes_and_rows([-(2**63), 2**63 - 1], 50),
}


@pytest.mark.parametrize("name", CLASSES)
def test_classes_are_not_warned_of(name):
    assert warnings_of(FourierClassifier, *CLASSES[name]) == []


def test_texts_that_mostly_occur_once_are_warned_of():
    (message,) = warnings_of(FourierClassifier, *classes_and_rows(np.arange(60).astype(str), 100))
    assert "y has 60 different values in 100 samples" in message


@pytest.mark.parametrize("estimator", [FourierClassifier, FourierRegressor])
def test_columns_of_different_scale_are_warned_of_once(rng, estimator):
    X = rng.normal(size=(100, 4)) * [1, 2000, 0.5, 30]
    y = np.arange(100) % 2
    (message,) = warnings_of(estimator, X, y)
    assert message.startswith("Column 2 of X varies by about 0.")
    assert "and column 1 by about " in message
    assert "StandardScaler" in message
    assert "notsorandom.tabular_pipeline" in message
    frame = pd.DataFrame(X.astype(np.float32), columns=["age", "pay", "rate", "days"])
    (message,) = warnings_of(estimator, frame, y)
    assert message.startswith("Column 'rate' of X")
    assert "column 'pay'" in message
    assert warnings_of(estimator, StandardScaler().fit_transform(X), y) == []
    assert warnings_of(estimator, X[:, [0, 3]], y) == []


def test_a_certificate_does_not_warn_again(rng):
    X, y = rng.normal(size=(50, 2)) * [1, 1e4], np.arange(50) % 2
    with pytest.warns(UserWarning, match="Column 0 of X"):
        model = FourierClassifier(2, **QUICK).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.certificate(X, y)


@pytest.mark.parametrize("load", [load_breast_cancer, load_wine])
def test_tables_without_scaling_are_warned_of(load):
    data = load(as_frame=True)
    (message,) = warnings_of(FourierClassifier, data.data, data.target)
    assert "Column '" in message


def test_pixels_and_rare_categories_are_not_warned_of(rng):
    pixels = rng.integers(0, 256, size=(500, 20)).astype(float)
    pixels[:, :5] = 0
    pixels[3, 0] = pixels[7, 1] = 1  # in one image only
    y = np.arange(500) % 2
    assert warnings_of(FourierClassifier, pixels, y) == []
    rare = rng.normal(size=(20_000, 2))
    rare[:, 1] = np.arange(20_000) == 0
    assert warnings_of(FourierClassifier, rare, np.arange(20_000) % 2) == []
    assert warnings_of(FourierClassifier, load_iris().data, load_iris().target) == []


def test_constant_columns_sparse_samples_and_the_sphere_are_not_warned_of(rng):
    X, y = rng.normal(size=(100, 3)), np.arange(100) % 2
    constant = np.column_stack([X, np.full(100, 7.0), 0.1 + 1e-16 * y])
    assert warnings_of(FourierClassifier, constant, y) == []
    assert warnings_of(FourierClassifier, 0 * X, y) == []
    scaled = X * [1, 1e4, 1]
    assert warnings_of(FourierClassifier, sparse.csr_array(scaled), y) == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        FourierClassifier(2, space=Sphere(normalize=True), **QUICK).fit(scaled, y)


def test_scales_are_the_distances_of_other_values_from_the_median(rng):
    X = rng.normal(size=(101, 3)) * [1, 1e-250, 1e250]
    X[:, 0] *= rng.uniform(size=101) < 0.3
    expected = []
    for column in X.T:
        distances = column[column != np.median(column)] - np.median(column)
        expected.append(np.linalg.norm(distances / abs(column).max()) * abs(column).max())
        expected[-1] /= np.sqrt(len(distances))
    np.testing.assert_allclose(column_scales(X), expected)


def test_scales_are_warned_of_once_at_the_line_of_the_caller(rng):
    X, y = rng.normal(size=(60, 2)) * [1, 1e5], np.arange(60) % 2
    model = make_pipeline(FunctionTransformer(), FourierClassifier(2, **QUICK))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cross_val_score(model, X, y, cv=3)
        model.fit(X, y)
    (warning,) = [each for each in caught if "varies by about" in str(each.message)]
    assert Path(warning.filename).name == "test_samples.py"


@pytest.mark.parametrize("estimator", [FourierClassifier(2, **QUICK), FourierRegressor(2, **QUICK)])
def test_gaps_and_text_are_for_tabular_pipeline(estimator, rng):
    X, y = rng.normal(size=(30, 2)), np.arange(30) % 2
    gap = np.where(np.eye(30, 2) > 0, np.nan, X)
    for wrong in (gap, pd.DataFrame(gap, columns=["a", "b"]), np.full((30, 2), "x")):
        for call in (lambda X: estimator.fit(X, y), clone(estimator).fit(X, y).predict):
            with pytest.raises(ValueError, match=r"NaN|convert string") as caught:
                call(wrong)
            assert "notsorandom.tabular_pipeline takes tables" in str(caught.value)
            assert "HistGradient" not in str(caught.value)
