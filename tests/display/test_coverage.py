"""Coverage of intervals and sets: figures of what they contain."""

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from notsorandom import FourierClassifier, FourierRegressor
from notsorandom.display import CoverageDisplay, import_pyplot
from notsorandom.display.coverage import CURVE_COVERAGES

SETTINGS = {"n_components": 10, "smoothing": 0.06, "random_state": 0}


@pytest.fixture(scope="module")
def wave():
    """A regressor of a noisy wave with two outputs, and test rows."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(900, 2))
    y = np.column_stack([np.sin(4 * X[:, 0]), X[:, 1]]) + 0.3 * rng.standard_normal((900, 2))
    return FourierRegressor(C=1.0, **SETTINGS).fit(X[:300], y[:300]), X[300:], y[300:]


def test_shares_are_those_of_the_intervals(wave):
    model, X, y = wave
    display = CoverageDisplay.from_estimator(model, X, y, coverage=0.8, output=1)
    assert 0.8 in display.coverages
    assert max(display.coverages) < model.held_out_scores_.max_coverage
    for coverage, found, size in zip(display.coverages, display.found, display.sizes, strict=True):
        low, high = model.predict_interval(X, coverage)[:, 1].T
        assert found == np.mean((low <= y[:, 1]) & (y[:, 1] <= high))
        assert size == pytest.approx(np.mean(high - low))
    assert np.abs(display.found - display.coverages).max() < 0.1
    line = display.ax_.lines[1]
    np.testing.assert_array_equal(line.get_ydata(), display.found)
    points = {each.get_color(): each for each in display.axes_[0].lines[:2]}
    inside, outside = (len(each.get_xdata()) for each in points.values())
    share = display.found[display.coverages.index(0.8)]
    assert (inside, inside + outside) == (round(600 * share), 600)
    (lines,) = display.axes_[0].collections
    ends = np.array([segment[:, 1] for segment in lines.get_segments()])
    np.testing.assert_allclose(ends, model.predict_interval(X, 0.8)[:, 1], rtol=1e-6)
    texts = [each.get_text() for each in display.axes_[0].get_legend().get_texts()]
    assert texts[0] == f"within the 80 % interval: {100 * share:.1f} %"


def test_many_samples_are_an_image_with_some_intervals(rng):
    truth = rng.standard_normal(9000)
    limits = np.stack([np.full(9000, -1.0), np.full(9000, 1.0)], axis=1)[:, :, None]
    display = CoverageDisplay(truth, limits, [0.68]).plot()
    assert display.found[0] == pytest.approx(0.68, abs=0.02)
    (lines,) = display.axes_[0].collections
    assert len(lines.get_segments()) == 1800
    assert lines.get_rasterized()
    assert all(each.get_rasterized() for each in display.axes_[0].lines[:2])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_sets(rng, n_classes):
    X = rng.uniform(-1, 1, size=(800, 2))
    names = np.array(["c", "a", "b"])[:n_classes]
    y = names[np.digitize(X[:, 0] + 0.3 * rng.standard_normal(800), [0, 0.5][: n_classes - 1])]
    model = FourierClassifier(C=1.0, **SETTINGS).fit(X[:400], y[:400])
    display = CoverageDisplay.from_estimator(model, pd.DataFrame(X[400:]), pd.Series(y[400:]))
    for coverage, found, size in zip(display.coverages, display.found, display.sizes, strict=True):
        sets = model.predict_set(X[400:], coverage)
        assert found == np.mean(sets[np.arange(400), np.searchsorted(model.classes_, y[400:])])
        assert size == sets.sum(axis=1).mean()
    assert np.abs(display.found - display.coverages)[-7:].max() < 0.1  # from 80 %
    np.testing.assert_array_equal(display.axes_[0].lines[0].get_ydata(), display.sizes)
    # An unknown class is in no set.
    y[400:] = "new"
    assert not CoverageDisplay.from_estimator(model, X[400:], y[400:]).found.any()


def test_pipelines(wave):
    _, X, y = wave
    pipeline = make_pipeline(StandardScaler(), FourierRegressor(C=1.0, **SETTINGS))
    pipeline.fit(X[:300], y[:300, 0])
    display = CoverageDisplay.from_estimator(pipeline, X[300:], y[300:, 0])
    Z = pipeline[:-1].transform(X[300:])
    expected = pipeline[-1].predict_interval(Z, display.coverages)
    np.testing.assert_array_equal(display.regions, expected)


def test_few_held_out_rows_allow_few_coverages(rng):
    X = rng.standard_normal((40, 1))
    model = FourierRegressor(C=1.0, calibration_size=4, **SETTINGS).fit(X, X[:, 0])
    display = CoverageDisplay.from_estimator(model, X, X[:, 0], coverage=0.5)
    assert display.coverages == [each for each in CURVE_COVERAGES if each <= 0.8]
    with pytest.raises(ValueError, match=r"the largest possible one is 0\.8000"):
        CoverageDisplay.from_estimator(model, X, X[:, 0])


def test_bad_input(wave):
    model, X, y = wave
    for changes, error, message in (
        ({"coverage": 1.5}, ValueError, "coverage=1.5 is not allowed"),
        ({"output": 2}, ValueError, "output=2 is not allowed"),
        ({"ax": import_pyplot().subplots()[1]}, ValueError, "ax has 1 axes, but 2 are needed"),
        ({"y": y[:5]}, ValueError, "inconsistent numbers of samples"),
        ({"estimator": StandardScaler()}, TypeError, "The model is a StandardScaler: give a"),
    ):
        with pytest.raises(error, match=message):
            CoverageDisplay.from_estimator(**{"estimator": model, "X": X, "y": y} | changes)
    plain = FourierRegressor(C=1.0, calibration_size=0, **SETTINGS).fit(X, y)
    with pytest.raises(ValueError, match="no samples were held out"):
        CoverageDisplay.from_estimator(plain, X, y)
    hinge = FourierClassifier(loss="hinge", C=1.0, **SETTINGS).fit(X, y[:, 0] > 0)
    with pytest.raises(AttributeError, match="loss='logistic'"):
        CoverageDisplay.from_estimator(hinge, X, y[:, 0] > 0)
