"""Targets: errors and warnings that say what was got, what is allowed and what to do."""

import numpy as np
import pandas as pd
import pytest

from notsorandom import FourierClassifier, FourierFeatures, FourierRegressor

N = 60
X = np.random.default_rng(0).normal(size=(N, 3))
LABELS = np.where(X[:, 0] > 0, "a", "b")
QUICK = {"smoothing": 0.1, "C": 1.0, "random_state": 0}


def with_value(values, value, position=7):
    values = np.array(values, dtype=object)
    values[position] = value
    return values


@pytest.mark.parametrize("y", [X[:, 0], np.arange(N) % 3 / 2, X[:, 0].astype(object)])
@pytest.mark.parametrize("estimator", [FourierClassifier, FourierFeatures])
def test_continuous_targets_of_a_classifier(estimator, y):
    message = rf"y has -?0\.\d+ at sample [01], but {estimator.__name__} needs .*"
    message += "to predict numbers use FourierRegressor"
    with pytest.raises(ValueError, match=message):
        estimator(5, **QUICK).fit(X, y)


@pytest.mark.parametrize(
    ("y", "got"),
    {
        "None among text": (with_value(LABELS, None), "None at sample 7"),
        "None among numbers": (with_value(np.arange(N) % 2, None), "None at sample 7"),
        "all None": ([None] * N, "None at sample 0 and 59 more"),
        "nan": (np.where(np.arange(N) == 4, np.nan, 1.0), "nan at sample 4"),
        "infinity": (np.where(np.arange(N) == 4, -np.inf, 1.0), "-inf at sample 4"),
        "nan among text": (with_value(LABELS, np.nan), "nan at sample 7"),
        "list with nan": ([*LABELS[:-1].tolist(), np.nan], "nan at sample 59"),
        "NA": (pd.Series(with_value(LABELS, pd.NA), dtype="string"), "<NA> at sample 7"),
        "category": (pd.Series(with_value(LABELS, None), dtype="category"), "nan at sample 7"),
        "date": (with_value(np.arange(N).astype("M8[D]"), None).astype("M8[D]"), "NaT at sample 7"),
    }.values(),
)
def test_missing_labels_are_named_with_their_position(y, got):
    with pytest.raises(ValueError, match=rf"y has {got}, but .* none may be missing: correct them"):
        FourierClassifier(5, **QUICK).fit(X, y)


@pytest.mark.parametrize("value", [None, np.nan, np.inf])
def test_missing_numbers_are_named_with_their_position(value):
    for y in (with_value(X[:, 0], value), np.array(with_value(X[:, 0], value), dtype=float)):
        with pytest.raises(ValueError, match=r"y has (None|nan|inf) at sample 7, but"):
            FourierRegressor(5, **QUICK).fit(X, y)
    y = np.stack([X[:, 0], with_value(X[:, 0], np.inf).astype(float)], axis=1)
    with pytest.raises(ValueError, match=r"y has inf at sample 7, but"):
        FourierRegressor(5, **QUICK).fit(X, y)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.eye(3)[np.arange(N) % 3], r"y has shape \(60, 3\), but .*y\.argmax\(axis=1\)"),
        ("label", r"y has shape \(\), but .* one class label per sample"),
        (with_value(LABELS, 3.5), r"mixes text, such as '[ab]' at sample 0, .* 3\.5 at sample 7"),
        ([*LABELS[:-1].tolist(), 1], r"mixes text, such as '[ab]' at sample 0, .* 1 at sample 59"),
        (with_value(np.arange(N) % 2, "x"), r"such as 'x' at sample 7, .* 0 at sample 0"),
        (LABELS.astype(bytes), r"of type bytes_, but FourierClassifier needs .*: convert them"),
        ([{"a": 1}] * N, r"y has \{'a': 1\}, of type dict, but"),
    ],
)
def test_other_targets_of_a_classifier(y, message):
    with pytest.raises(ValueError, match=message):
        FourierClassifier(5, **QUICK).fit(X, y)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (LABELS, r"y has text, such as '[ab]'.* use FourierClassifier"),
        (LABELS.astype(object), "y has text, such as .* use FourierClassifier"),
        (LABELS.tolist(), "y has text, such as .* use FourierClassifier"),
        (with_value(X[:, 0], "seven"), "text, such as 'seven'"),
        (np.arange(N).astype("datetime64[s]"), "dates"),
    ],
)
def test_other_targets_of_a_regressor(y, message):
    with pytest.raises(ValueError, match=message):
        FourierRegressor(5, **QUICK).fit(X, y)
    with pytest.raises(ValueError, match="inf at sample"):
        FourierRegressor(5, **QUICK).fit(X.astype(np.float32), 1e300 * X[:, 0])


def test_another_number_of_outputs():
    model = FourierRegressor(4, **QUICK).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="y has 2 columns, but had 1 at fit"):
        model.certificate(X, X[:, :2])


@pytest.mark.parametrize("dtype", [int, bool, float])
def test_numbers_as_objects_are_labels(dtype):
    y = (LABELS == "a").astype(dtype)
    model, same = (FourierClassifier(5, **QUICK).fit(X, part) for part in (y, y.astype(object)))
    assert same.classes_.dtype == model.classes_.dtype == dtype
    np.testing.assert_array_equal(same.predict(X), model.predict(X))


def test_a_list_of_text_gives_labels_of_the_type_of_an_array():
    assert FourierClassifier(5, **QUICK).fit(X, LABELS.tolist()).classes_.dtype == LABELS.dtype


def test_a_certificate_needs_samples_of_every_class():
    y = np.array(["low", "middle", "high"])[np.arange(N) % 3]
    model = FourierClassifier(5, **QUICK).fit(X, y)
    kept = y != "low"
    message = r"no samples of 'low', while .* 'high', 'low', 'middle': give the training data, or"
    for compute in (model.certificate, model._game_problem):
        with pytest.raises(ValueError, match=message):
            compute(X[kept], y[kept])
    with pytest.raises(ValueError, match="no samples of 'low' but samples of 'other', while"):
        model.certificate(X, np.where(kept, y, "other"))
    with pytest.raises(ValueError, match="y has samples of 'other', while"):
        model.certificate(np.vstack([X, X]), np.append(y, np.where(kept, y, "other")))
