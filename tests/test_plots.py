import numpy as np
import pytest

from notsorandom import FourierClassifier, Sphere
from notsorandom.datasets import make_checkerboard
from notsorandom.plots import GlobeDisplay, HistoryDisplay, SpectrumDisplay, import_pyplot


@pytest.mark.parametrize(("longitude", "latitude"), [(0, 0), (30, 30), (-100, 80)])
def test_a_globe_shows_what_is_in_front(rng, longitude, latitude):
    angles = np.radians([longitude, latitude])
    middle = np.array(
        [
            np.cos(angles[1]) * np.cos(angles[0]),
            np.cos(angles[1]) * np.sin(angles[0]),
            np.sin(angles[1]),
        ]
    )
    north = np.array([0.0, 0.0, 1.0])
    X = np.concatenate([[middle, -middle], rng.standard_normal((50, 3))])
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    display = GlobeDisplay(
        [("distance", lambda points: points @ middle), ("north", lambda points: points @ north)],
        samples=(X, np.arange(52) % 2),
        longitude=longitude,
        latitude=latitude,
    )
    figure = display.plot()
    samples, distance, height = figure.axes
    shown = samples.collections[0].get_offsets()
    assert len(shown) == (X @ middle > 0).sum()
    np.testing.assert_allclose(shown[0], 0, atol=1e-12)
    image = distance.images[0].get_array()
    half = image.shape[0] // 2
    assert image[half, half] > 0.999  # the middle is nearest
    assert np.ma.getmaskarray(image)[0, 0] or np.isnan(image[0, 0])  # the corners are empty
    rising = height.images[0].get_array()[10:-10, half]
    if latitude < 45:
        assert (np.diff(rising[half - 30 : half + 10]) > 0).all()  # north is up


@pytest.fixture(params=["euclidean", "sphere", Sphere("zonal")])
def model(request):
    X, y = make_checkerboard(100, random_state=0)
    return FourierClassifier(8, space=request.param, smoothing=0.1, random_state=0).fit(X, y)


def test_history_display(model):
    axis = import_pyplot().subplots()[1]
    display = HistoryDisplay.from_estimator(model, ax=axis)
    assert display.ax_ is axis
    assert display.figure_ is axis.figure
    np.testing.assert_array_equal(axis.lines[0].get_ydata(), model.history_["potential"])
    assert len(axis.get_legend().get_texts()) == 3
    assert HistoryDisplay(model.history_).plot().ax_ is not axis


def test_spectrum_display(model):
    display = SpectrumDisplay.from_estimator(model)
    sizes, weights = display.ax_.lines[0].get_data()
    np.testing.assert_array_equal(weights, model.kernel_.weights)
    frequencies = model.frequencies_
    if frequencies.shape[1] == 3:
        np.testing.assert_allclose(sizes, np.linalg.norm(frequencies, axis=1), rtol=1e-6)
    else:
        np.testing.assert_array_equal(sizes, frequencies[:, -1])
