"""Optional columns: trials decide whether the features depend on them."""

import numpy as np
import pytest
from scipy import sparse

from notsorandom import (
    Euclidean,
    FourierClassifier,
    FourierFeatures,
    FourierRegressor,
)

NOISE = list(range(2, 22))  # numbers of the columns of noise


@pytest.fixture
def table(rng):
    """Two columns that tell the target, and twenty of noise."""
    X = rng.standard_normal((400, 22))
    return X, np.sin(3 * X[:, 0]) + np.cos(2 * X[:, 1])


def fit(table, **parameters):
    return FourierRegressor(40, random_state=0, **parameters).fit(*table)


def test_noise_is_left_out(table, rng):
    X, _ = table
    model = fit(table, optional_columns=NOISE)
    assert not model.uses_optional_columns_
    assert not model.frequencies_[:, NOISE].any()
    changed = X.copy()
    changed[:, NOISE] = rng.standard_normal((len(X), len(NOISE)))
    np.testing.assert_array_equal(model.predict(changed), model.predict(X))
    assert set(model.tuning_["n_columns"].tolist()) == {22, 2}


def test_what_tells_the_target_is_kept(table):
    model = fit(table, optional_columns=[0, 1])
    assert model.uses_optional_columns_
    assert model.frequencies_[:, :2].any()


@pytest.mark.parametrize("estimator", [FourierClassifier, FourierFeatures])
def test_classes(table, estimator):
    X, y = table
    model = estimator(40, random_state=0, optional_columns=NOISE).fit(X, y > 0)
    assert not model.frequencies_[:, NOISE].any()


def test_without_them_the_scale_of_the_features_is_that_of_the_samples(table):
    X, y = table
    alone = fit((X[:, :2], y))
    among = fit(table, optional_columns=NOISE)
    np.testing.assert_allclose(
        np.square(among.features_.transform(X)).sum(axis=1).mean(),
        np.square(alone.features_.transform(X[:, :2])).sum(axis=1).mean(),
        rtol=0.2,
    )
    assert among.score(X, y) > alone.score(X[:, :2], y) - 0.02


def test_names_patterns_and_numbers_are_the_same(table):
    pandas = pytest.importorskip("pandas")
    X, y = table
    names = ["a", "b", *(f"noise {k} (score)" for k in NOISE)]
    frame = pandas.DataFrame(X, columns=names)
    by_number = fit(table, optional_columns=np.array(NOISE))
    for columns in (names[2:], r" \(score\)$", np.array(names[2:], dtype=object)):
        model = fit((frame, y), optional_columns=columns)
        np.testing.assert_array_equal(model.frequencies_, by_number.frequencies_)


def test_none_matches(table):
    pandas = pytest.importorskip("pandas")
    X, y = table
    frame = pandas.DataFrame(X, columns=[f"x{k}" for k in range(22)])
    model, plain = fit((frame, y), optional_columns="score"), fit(table)
    np.testing.assert_array_equal(model.frequencies_, plain.frequencies_)
    assert model.uses_optional_columns_


def test_sparse_samples(table):
    X, y = table
    dense = fit(table, optional_columns=NOISE)
    model = fit((sparse.csr_array(X), y), optional_columns=NOISE)
    np.testing.assert_allclose(model.predict(X), dense.predict(X), atol=1e-3)


@pytest.mark.parametrize("columns", [NOISE, [0, 1]], ids=["left out", "kept"])
def test_a_continued_game_is_the_same(table, columns):
    model = FourierRegressor(16, warm_start=True, optional_columns=columns, random_state=0)
    model.fit(*table).set_params(n_components=40).fit(*table)
    at_once = fit(table, warm_start=True, optional_columns=columns)
    np.testing.assert_array_equal(model.frequencies_, at_once.frequencies_)


def test_projected_columns_are_all_used(rng):
    X = rng.standard_normal((300, 3)) @ rng.standard_normal((3, 200))
    model = FourierRegressor(20, random_state=0, optional_columns=[5]).fit(X, X[:, 0])
    assert model.uses_optional_columns_


def test_columns_that_would_make_a_projection_necessary_are_left_out(rng):
    X = rng.standard_normal((300, 3)) @ rng.standard_normal((3, 200))
    columns = range(60, 200)
    model = FourierRegressor(20, random_state=0, optional_columns=columns).fit(X, X[:, 0])
    assert not model.uses_optional_columns_
    assert not model.frequencies_[:, columns].any()
    assert set(model.tuning_["spectrum"].tolist()) == {"cauchy", "gaussian"}


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"optional_columns": "(a"}, "no regular expression"),
        ({"optional_columns": "a"}, "columns without names"),
        ({"optional_columns": ["a"]}, "columns without names"),
        ({"optional_columns": [0, 22]}, "has 22, which is no column of X: it has 22 columns"),
        ({"optional_columns": range(22)}, "all 22 columns"),
        ({"optional_columns": 3}, "must be a list of column numbers or names"),
        ({"optional_columns": np.arange(22) > 1}, "must be a list of column numbers or names"),
        ({"optional_columns": [0.5]}, "must be a list of column numbers or names"),
        ({"optional_columns": [0], "space": "sphere"}, "not allowed with space='sphere'"),
        ({"optional_columns": [0], "space": Euclidean(max_norm=3.0)}, "without a limit"),
    ],
)
def test_errors(table, parameters, message):
    with pytest.raises(ValueError, match=message):
        fit(table, **parameters)


def test_an_empty_list_is_none(table):
    model, plain = fit(table, optional_columns=[]), fit(table)
    np.testing.assert_array_equal(model.frequencies_, plain.frequencies_)


def test_unknown_name(table):
    pandas = pytest.importorskip("pandas")
    X, y = table
    frame = pandas.DataFrame(X, columns=[f"x{k}" for k in range(22)])
    with pytest.raises(ValueError, match="has 'z', which is no column of X"):
        fit((frame, y), optional_columns=["x1", "z"])
