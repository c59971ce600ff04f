"""Importances of the columns of tables, and their picture."""

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from notsorandom import FourierClassifier, FourierFeatures, FourierRegressor, tabular_pipeline
from notsorandom.display import ImportancesDisplay, column_contributions, column_importances
from notsorandom.display.importances import linear_coefficients

QUICK = {"smoothing": 0.1, "C": 1.0, "random_state": 0}


@pytest.fixture
def frame(rng):
    n_rows = 300
    numbers = np.where(rng.random(n_rows) < 0.1, np.nan, rng.normal(size=n_rows))
    cities = [*"abcd", *(f"rare {k}" for k in range(8)), None]
    weights = np.array([8] * 4 + [0.2] * 8 + [3])
    return pd.DataFrame(
        {
            "a": numbers,
            "missingindicator_b": rng.normal(size=n_rows),
            "city": rng.choice(cities, n_rows, p=weights / weights.sum()),
            "city_b": rng.choice(["x", "y"], n_rows),
            "when": pd.date_range("2020-01-01", periods=n_rows, freq="37h"),
            "paid": rng.choice(["yes", "No"], n_rows),
            "id": [f"u{k}" for k in range(n_rows)],
        }
    )


@pytest.mark.filterwarnings("ignore:Columns left out")
def test_every_column_of_a_table_has_its_share(frame):
    target = np.where(frame["city"].isin(["a", "b"]), 2.0, 0.0) + frame["a"].fillna(0) ** 2
    model = tabular_pipeline(FourierRegressor(60, **QUICK)).fit(frame, target)
    shares = column_importances(model, frame)
    assert set(shares) == set(frame.columns) - {"id"}
    assert sum(shares.values()) == pytest.approx(1)
    assert {*list(shares)[:2]} == {"a", "city"}
    # By hand: every encoded column belongs to the column whose name it begins with.
    encoded = model[-1].importances(model[:-1].transform(frame)).to_dict()
    dates = sum(share for name, share in encoded.items() if name.startswith("when_"))
    assert shares["when"] == pytest.approx(dates)
    texts = [name for name in encoded if name.startswith("city_") and "city_b_" not in name]
    assert len(texts) == 6  # four, one for all rare ones, and one for missing ones
    assert shares["city"] == pytest.approx(sum(encoded[name] for name in texts))
    forms = [encoded[f"a ({form})"] for form in ("number", "score", "missing")]
    assert shares["a"] == pytest.approx(sum(forms))


@pytest.mark.parametrize("columns", [["a", "missingindicator_b"], ["city", "city_b"]])
def test_tables_of_one_kind_of_columns(frame, columns):
    model = tabular_pipeline(FourierRegressor(8, **QUICK)).fit(frame[columns], np.arange(300.0))
    assert set(column_importances(model, frame)) == set(columns) == set(column_importances(model))


def test_pipelines_have_the_names_of_their_steps(rng):
    frame = pd.DataFrame(rng.normal(size=(100, 3)) * [1, 10, 100], columns=["a", "b", "c"])
    y = np.sin(frame["a"]) > 0
    for steps, names in (
        ([StandardScaler()], {"a", "b", "c"}),  # though it returns an array
        ([PCA(2)], {"pca0", "pca1"}),
        ([FunctionTransformer(np.asarray)], {"x0", "x1", "x2"}),  # it can't tell
        ([], {"a", "b", "c"}),
    ):
        model = make_pipeline(*steps, FourierClassifier(20, **QUICK)).fit(frame, y)
        shares = column_importances(model, frame)
        assert set(shares) == names == set(column_contributions(model, frame))
        last, given = model[-1], model[:-1].transform(frame) if steps else frame
        values = sorted(last.importances(given).shares)
        assert sorted(shares.values()) == values == sorted(column_importances(last, given).values())
        assert next(iter(shares)) == "a" or not isinstance(model[0], StandardScaler)


@pytest.mark.filterwarnings("ignore:Columns left out")
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_contributions_of_the_columns_of_a_table_add_up(frame, n_outputs):
    target = np.column_stack([frame["a"].fillna(0) ** 2, frame["city"] == "a"])[:, :n_outputs]
    target = target.astype(float).squeeze()
    model = tabular_pipeline(FourierRegressor(20, **QUICK)).fit(frame, target)
    found = column_contributions(model, frame)
    assert set(found) == set(frame.columns) - {"id"}
    encoded = model[:-1].transform(frame)
    at_mean = model[-1].predict(encoded.mean().to_frame().T)
    total = sum(found.values())
    assert total.shape == target.shape
    np.testing.assert_allclose(total, model.predict(frame) - at_mean, atol=1e-8)


@pytest.mark.filterwarnings("ignore:Columns left out")
def test_linear_part_of_a_table(frame):
    target = 3 * frame["missingindicator_b"] + np.where(frame["city"] == "a", 2.0, 0.0)
    settings = {"linear": True, **QUICK}
    model = tabular_pipeline(FourierRegressor(20, **settings)).fit(frame, target)
    shares, found = column_importances(model, frame), column_contributions(model, frame)
    assert {*list(shares)[:2]} == {"missingindicator_b", "city"}
    assert set(shares) == set(found) == set(frame.columns) - {"id"}
    encoded = model[:-1].transform(frame)
    at_mean = model[-1].predict(encoded.mean().to_frame().T)
    np.testing.assert_allclose(sum(found.values()), model.predict(frame) - at_mean, atol=1e-8)
    coefficients, last = linear_coefficients(model, frame), model[-1]
    slopes = last.kernel_.linear_scale * last.coef_[0, 20:] * encoded.std(ddof=0)
    assert set(coefficients) == set(last.feature_names_in_)
    assert np.abs(list(coefficients.values())).argmax() == 0
    for name, slope in slopes.items():
        assert coefficients[name] == pytest.approx(slope, rel=1e-6, abs=1e-9)


def test_names_of_coefficients(rng):
    frame = pd.DataFrame(rng.normal(size=(100, 2)), columns=["a", "b"])
    classes = np.array(["x", "y", "z"])[np.digitize(frame["a"], [-0.5, 0.5])]
    model = FourierClassifier(8, linear=True, **QUICK)
    scaled = make_pipeline(StandardScaler(), model).fit(frame, classes)
    names = {f"{column} ({label})" for column in "ab" for label in "xyz"}
    assert set(linear_coefficients(scaled, frame)) == names
    outputs = FourierRegressor(8, linear=True, **QUICK).fit(frame.to_numpy(), frame.to_numpy())
    assert set(linear_coefficients(outputs, frame.to_numpy())) == {
        "x0 (0)",
        "x0 (1)",
        "x1 (0)",
        "x1 (1)",
    }


def test_models_without_importances(rng):
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 2
    features = FourierFeatures(8, **QUICK).fit(X, y)
    for function in (column_importances, column_contributions):
        for model in (features, make_pipeline(PCA(2), StandardScaler()).fit(X)):
            with pytest.raises(TypeError, match="give a fitted FourierClassifier or"):
                function(model, X)
    with pytest.raises(ValueError, match="X has 1 sample, but importances"):
        column_importances(FourierClassifier(8, **QUICK).fit(X, y), X[:1])
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    with pytest.raises(ValueError, match="has no feature_importances_, as on the sphere"):
        column_importances(FourierClassifier(8, space="sphere", **QUICK).fit(X, y))


def test_bars_and_images(rng):
    X = rng.normal(size=(200, 12))
    model = FourierClassifier(20, **QUICK).fit(X, X[:, 5] > 0)
    display = ImportancesDisplay.from_estimator(model, X, n_columns=4)
    bars = display.ax_.containers[0]
    assert len(bars) == 4
    labels = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert labels[-1] == "x5"  # on top
    np.testing.assert_allclose(bars[-1].get_width(), 100 * display.shares["x5"])
    image = ImportancesDisplay.from_estimator(model, X, image_shape=(2, 3, 2)).ax_.images[0]
    pixels = model.importances(X).shares.reshape(2, 3, 2).sum(axis=2)
    np.testing.assert_allclose(image.get_array(), pixels)
    scaled = make_pipeline(StandardScaler(), FourierClassifier(20, **QUICK)).fit(X, X[:, 5] > 0)
    image = ImportancesDisplay.from_estimator(scaled, X, image_shape=(3, 4)).ax_.images[0]
    pixels = scaled[-1].importances(scaled[:-1].transform(X)).shares.reshape(3, 4)
    np.testing.assert_allclose(image.get_array(), pixels)
    for wrong, says in (
        ({"image_shape": (3, 3)}, "12 as product"),
        ({"n_columns": 0}, "n_columns"),
    ):
        with pytest.raises(ValueError, match=says):
            ImportancesDisplay.from_estimator(model, X, **wrong)
    names = [f"${'x' * 50}{end}" for end in "ab"]
    long = ImportancesDisplay(dict.fromkeys(names, 0.5)).plot()
    first, second = (label.get_text() for label in long.ax_.get_yticklabels())
    assert first.startswith(r"\$xxx")
    assert first != second
    # A bar for each, also if labels are equal.
    assert len(ImportancesDisplay({"a" * 50: 0.5, "a" * 51: 0.5}).plot().ax_.patches) == 2
