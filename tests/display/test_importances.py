"""Importances of the columns of tables, and their picture."""

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from notsorandom import FourierClassifier, FourierRegressor, tabular_pipeline
from notsorandom.display import ImportancesDisplay, column_importances

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
    assert len(texts) == 6  # four, those that are rare, and missing ones
    assert shares["city"] == pytest.approx(sum(encoded[name] for name in texts))
    gaps = encoded["a (number)"] + encoded["missingindicator_a (number)"]
    assert shares["a"] == pytest.approx(gaps)


@pytest.mark.parametrize("columns", [["a", "missingindicator_b"], ["city", "city_b"]])
def test_tables_of_one_kind_of_columns(frame, columns):
    model = tabular_pipeline(FourierRegressor(8, **QUICK)).fit(frame[columns], np.arange(300.0))
    assert set(column_importances(model, frame)) == set(columns)


def test_other_pipelines_and_estimators(rng):
    X = rng.normal(size=(100, 3)) * [1, 10, 100]
    y = np.sin(X[:, 0]) > 0
    pipeline = make_pipeline(StandardScaler(), FourierClassifier(20, **QUICK)).fit(X, y)
    shares = column_importances(pipeline, X)
    assert next(iter(shares)) == "x0"
    model, scaled = pipeline[-1], pipeline[:-1].transform(X)
    assert column_importances(model, scaled) == model.importances(scaled).to_dict() == shares


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
    for wrong, says in (
        ({"image_shape": (3, 3)}, "12 as product"),
        ({"n_columns": 0}, "n_columns"),
    ):
        with pytest.raises(ValueError, match=says):
            ImportancesDisplay.from_estimator(model, X, **wrong)
    long = ImportancesDisplay({"$" + "x" * 50: 1.0}).plot()
    assert long.ax_.get_yticklabels()[0].get_text().startswith(r"\$xxx")
