import warnings

import numpy as np
import pandas as pd
import pytest
import reference
from sklearn.exceptions import NotFittedError

from notsorandom import FourierClassifier, Sphere
from notsorandom.datasets import make_checkerboard, make_windmill
from notsorandom.display import (
    GameDisplay,
    GlobeDisplay,
    HistoryDisplay,
    PathDisplay,
    SpectrumDisplay,
    import_pyplot,
)
from notsorandom.display.inspection import bounds_by_round


@pytest.fixture(autouse=True)
def _close():
    yield
    import_pyplot().close("all")


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


@pytest.fixture(scope="module", params=["euclidean", "sphere", Sphere("zonal")])
def model(request):
    X, y = make_checkerboard(100, random_state=0)
    return FourierClassifier(8, space=request.param, smoothing=0.1, random_state=0).fit(X, y)


def test_history_display(model):
    axis = import_pyplot().subplots()[1]
    display = HistoryDisplay.from_estimator(model, ax=axis)
    assert display.ax_ is axis
    assert display.figure_ is axis.figure
    np.testing.assert_array_equal(axis.lines[0].get_ydata(), model.history_["potential"])
    twin = [other for other in axis.figure.axes if other is not axis]
    assert len(twin[0].get_legend().get_texts()) == 3
    assert HistoryDisplay(model.history_).plot().ax_ is not axis


def test_history_display_with_bounds(model):
    X, y = make_checkerboard(100, random_state=0)
    display = HistoryDisplay.from_estimator(model, X, y)
    rounds, upper, lower = bounds_by_round(model, X, y)
    np.testing.assert_array_equal(display.axes_[1].lines[0].get_data(), (rounds, upper))
    np.testing.assert_array_equal(display.axes_[1].lines[1].get_data(), (rounds, lower))
    with pytest.raises(ValueError, match="ax has 1 axes, but this history takes 2"):
        HistoryDisplay.from_estimator(model, X, y, ax=import_pyplot().subplots()[1])


def test_spectrum_display(model):
    display = SpectrumDisplay.from_estimator(model)
    sizes, weights = display.ax_.lines[0].get_data()
    np.testing.assert_array_equal(weights, model.kernel_.weights)
    frequencies = model.frequencies_
    if frequencies.shape[1] == 3:
        np.testing.assert_allclose(sizes, np.linalg.norm(frequencies, axis=1), rtol=1e-6)
    else:
        np.testing.assert_array_equal(sizes, frequencies[:, -1])


@pytest.fixture(scope="module")
def windmill():
    X, y = make_windmill(200, random_state=0)
    return FourierClassifier(20, smoothing=0.06, random_state=0).fit(X, y), X, y


class TestOnThePlane:
    def test_spectrum_over_the_potential(self, windmill):
        model, X, y = windmill
        axis = SpectrumDisplay.from_estimator(model, X, y).ax_
        shown = axis.collections[0].get_offsets()
        np.testing.assert_allclose(shown[:20], model.frequencies_)
        np.testing.assert_allclose(shown[20:], -model.frequencies_)
        image = axis.images[0].get_array()
        np.testing.assert_allclose(image, image[::-1, ::-1], rtol=1e-6)  # a potential is even

    def test_game_display(self, windmill):
        model, X, y = windmill
        display = GameDisplay.from_estimator(model, X, y, rounds=[1, 3])
        assert display.axes_.shape == (3, 2)
        assert display.axes_[0, 1].get_title() == (
            f"round 3: {model.history_['n_frequencies'][2]} frequencies"
        )
        samples = display.axes_[0, 0].collections[0].get_offsets()
        assert sorted(map(tuple, samples)) == sorted(map(tuple, X))
        # The highest point of the potential is where a frequency was found.
        potential = display.axes_[1, 0].images[0]
        row, column = np.unravel_index(potential.get_array().argmax(), potential.get_array().shape)
        left, right, bottom, top = potential.get_extent()
        side = potential.get_array().shape[0] - 1
        peak = np.array(
            [left + (right - left) * column / side, bottom + (top - bottom) * row / side]
        )
        first = model.frequencies_[: model.history_["n_frequencies"][0]]
        distance = np.linalg.norm(np.concatenate([first, -first]) - peak, axis=1).min()
        assert distance < 3 * (right - left) / side
        # Where the decision is positive, so is the model's.
        decision = display.axes_[2, 1].images[0].get_array()
        assert set(np.unique(np.sign(decision))) == {-1, 1}
        again = GameDisplay(X, y, display.moments).plot(display.axes_)
        assert again.figure_ is display.figure_

    def test_path_display(self, windmill):
        model, X, y = windmill
        axis = import_pyplot().subplots()[1]
        display = PathDisplay.from_estimator(model, X, y, X, y, sizes=[5, 20], ax=axis)
        assert display.ax_ is axis
        shown = axis.containers[0].lines[0].get_data()
        np.testing.assert_allclose(shown[1], 100 * display.accuracies["learned"])
        trials = PathDisplay(np.array([5, 20]), {"ours": np.array([[0.9, 1.0], [0.8, 1.0]])})
        bars = trials.plot().ax_.containers[0]
        np.testing.assert_allclose(bars.lines[0].get_ydata(), [85, 100])
        assert bars.has_yerr

    def test_more_than_two_dimensions_are_refused(self, model):
        X, y = make_checkerboard(100, random_state=0)
        for display in (GameDisplay, SpectrumDisplay):
            with pytest.raises(ValueError, match=r"X has 3 columns, on .* but only games of two"):
                display.from_estimator(model, X, y)

    @pytest.mark.parametrize("normalize", [False, True])
    def test_a_circle_is_not_a_plane(self, normalize, rng):
        X = reference.sphere_points(rng, 80, 2)
        y = X[:, 0] > 0
        space = Sphere("zonal", normalize=normalize)
        model = FourierClassifier(6, space=space, smoothing=0.06).fit(X, y)
        for display in (GameDisplay, SpectrumDisplay):
            with pytest.raises(ValueError, match="X has 2 columns, on ZonalSphere, but only"):
                display.from_estimator(model, X, y)

    def test_three_classes_have_no_border_to_draw(self, rng):
        X, y = rng.standard_normal((60, 2)), np.arange(60) % 3
        model = FourierClassifier(6, smoothing=0.06, random_state=0).fit(X, y)
        with pytest.raises(ValueError, match="The model has 3 classes, but a game is drawn for"):
            GameDisplay.from_estimator(model, X, y)

    def test_integers_names_and_words(self, rng):
        """Columns with names, of integers, and classes that are words."""
        X = pd.DataFrame(rng.integers(0, 9, size=(60, 2)), columns=["a", "b"])
        y = np.array(["no", "yes"])[(X["a"] > X["b"]).to_numpy().astype(int)]
        model = FourierClassifier(6, smoothing=0.06, random_state=0).fit(X, y)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            GameDisplay.from_estimator(model, X, y)
            SpectrumDisplay.from_estimator(model, X, y)
            HistoryDisplay.from_estimator(model, X, y)
            PathDisplay.from_estimator(model, X, y, X, y)

    def test_heads_are_models_too(self, windmill):
        model, X, y = windmill
        for size in (1, 6, 20):
            head = model.features_.head(size)
            display = GameDisplay.from_estimator(head, X, y)
            assert len(display.moments[-1].kernel.weights) == size
            HistoryDisplay.from_estimator(head, X, y)

    def test_unfitted_models_are_refused(self):
        for display in (HistoryDisplay, SpectrumDisplay):
            with pytest.raises(NotFittedError):
                display.from_estimator(FourierClassifier())


def test_spectrum_as_images(rng):
    X, y = rng.standard_normal((60, 12)), np.arange(60) % 2
    model = FourierClassifier(9, smoothing=0.06, random_state=0).fit(X, y)
    canvas = SpectrumDisplay.from_estimator(model, image_shape=(4, 3), n_images=3).ax_.images[0]
    shown = np.ma.getdata(canvas.get_array())
    heaviest = model.frequencies_[np.argmax(model.kernel_.weights)].reshape(4, 3)
    np.testing.assert_allclose(shown[:4, :3], heaviest / np.abs(heaviest).max())
    assert shown.shape == (4, 3 * 3 + 2)
    coloured = SpectrumDisplay.from_estimator(model, image_shape=(2, 2, 3), n_images=1).ax_
    mean = model.frequencies_[np.argmax(model.kernel_.weights)].reshape(2, 2, 3).mean(axis=-1)
    np.testing.assert_allclose(
        np.ma.getdata(coloured.images[0].get_array())[:2, :2], mean / np.abs(mean).max()
    )
    with pytest.raises(ValueError, match=r"image_shape=\(5, 5\) is not allowed"):
        SpectrumDisplay.from_estimator(model, image_shape=(5, 5))
    with pytest.raises(ValueError, match="n_images=0 is not allowed"):
        SpectrumDisplay.from_estimator(model, image_shape=(4, 3), n_images=0)


@pytest.mark.parametrize("n_samples", [300, 1500])
def test_samples_have_the_colour_of_their_class(n_samples):
    """Whatever order the game has them in, and whichever of them it was played on."""
    X, y = make_windmill(n_samples, random_state=0)
    classes = {tuple(point): label for point, label in zip(X, y, strict=True)}
    for options in ({}, {"early_stopping": True}):
        model = FourierClassifier(6, smoothing=0.06, random_state=0, **options).fit(X, y)
        display = GameDisplay.from_estimator(model, X, y, rounds=[1])
        assert len(display.X) == len(display.y)
        for point, label in zip(display.X, display.y, strict=True):
            assert classes[tuple(point)] == label
