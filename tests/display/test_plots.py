import warnings

import numpy as np
import pandas as pd
import pytest
import reference
from sklearn.exceptions import NotFittedError

from notsorandom import FourierClassifier, FourierRegressor, Sphere
from notsorandom.datasets import make_checkerboard, make_windmill
from notsorandom.display import (
    GameDisplay,
    GlobeDisplay,
    HistoryDisplay,
    ScoreCurveDisplay,
    SpectrumDisplay,
    import_pyplot,
)
from notsorandom.display.inspection import bounds_by_round

pytestmark = pytest.mark.usefixtures("quick_trials")


@pytest.mark.parametrize(("longitude", "latitude"), [(0, 0), (30, 30), (-100, 80)])
def test_globe_shows_the_visible_half(rng, longitude, latitude):
    turn, tilt = np.radians([longitude, latitude])
    ring = np.cos(tilt)
    middle = np.array([ring * np.cos(turn), ring * np.sin(turn), np.sin(tilt)])
    north = np.array([0.0, 0.0, 1.0])
    X = reference.unit(np.concatenate([[middle, -middle], rng.standard_normal((50, 3))]))
    display = GlobeDisplay(
        [("distance", lambda points: points @ middle), ("north", lambda points: points @ north)],
        samples=(X, np.arange(52) % 2),
        longitude=longitude,
        latitude=latitude,
    ).plot()
    samples, distance, height = display.axes_
    drawn = samples.collections[0].get_offsets()
    assert len(drawn) == (X @ middle > 0).sum()
    np.testing.assert_allclose(drawn[0], 0, atol=1e-12)
    image = distance.images[0].get_array()
    half = image.shape[0] // 2
    assert image[half, half] > 0.999
    assert np.ma.getmaskarray(image)[0, 0] or np.isnan(image[0, 0])  # outside of the globe
    rising = height.images[0].get_array()[10:-10, half]
    if latitude < 45:
        assert (np.diff(rising[half - 30 : half + 10]) > 0).all()  # north is up


@pytest.fixture(scope="module", params=["euclidean", "sphere", Sphere("zonal")])
def model(request):
    X, y = make_checkerboard(100, random_state=0)
    return FourierClassifier(8, space=request.param, smoothing=0.1, random_state=0).fit(X, y)


def test_history_display(model):
    for display in (HistoryDisplay, SpectrumDisplay):
        with pytest.raises(NotFittedError):
            display.from_estimator(FourierClassifier())
    axis = import_pyplot().subplots()[1]
    display = HistoryDisplay.from_estimator(model, ax=axis)
    assert display.ax_ is axis
    assert display.figure_ is axis.figure
    np.testing.assert_array_equal(axis.lines[0].get_ydata(), model.history_["potential"])
    n_lines = sum(model.history_[f"share_at_{bound}"].any() for bound in ("zero", "upper"))
    assert len(axis.figure.axes) == 1 + (n_lines > 0)  # no second axis without lines
    assert len(axis.figure.axes[-1].get_legend().get_texts()) == 1 + n_lines
    assert HistoryDisplay(model.history_).plot().ax_ is not axis


def test_history_display_with_bounds(model):
    X, y = make_checkerboard(100, random_state=0)
    display = HistoryDisplay.from_estimator(model, X, y)
    rounds, upper, lower, _ = bounds_by_round(model, X, y)
    np.testing.assert_array_equal(display.axes_[1].lines[0].get_data(), (rounds, upper))
    np.testing.assert_array_equal(display.axes_[1].lines[1].get_data(), (rounds, lower))
    with pytest.raises(ValueError, match="ax has 1 axes, but 2 are needed"):
        HistoryDisplay.from_estimator(model, X, y, ax=import_pyplot().subplots()[1])


def test_spectrum_display(model):
    display = SpectrumDisplay.from_estimator(model)
    norms, weights = display.ax_.lines[0].get_data()
    np.testing.assert_array_equal(weights, model.kernel_.weights)
    frequencies = model.frequencies_
    if frequencies.shape[1] == 3:
        np.testing.assert_allclose(norms, np.linalg.norm(frequencies, axis=1), rtol=1e-6)
    else:
        np.testing.assert_array_equal(norms, frequencies[:, -1])
    name = "norm" if model.kernel_.space.is_vector_space else "degree"
    assert display.ax_.get_xlabel() == f"{name} of the frequency"


class TestPlanarGames:
    def test_spectrum_over_the_potential(self, planar):
        model, X, y = planar
        axis = SpectrumDisplay.from_estimator(model, X, y).ax_
        drawn = axis.collections[0].get_offsets()
        np.testing.assert_allclose(drawn[:20], model.frequencies_)
        np.testing.assert_allclose(drawn[20:], -model.frequencies_)
        image = axis.images[0].get_array()
        np.testing.assert_allclose(image, image[::-1, ::-1], rtol=1e-6)  # the potential is even

    def test_game_display(self, planar):
        model, X, y = planar
        display = GameDisplay.from_estimator(model, X, y, rounds=[1, 3])
        assert display.axes_.shape == (3, 2)
        n_frequencies = model.history_["n_frequencies"]
        assert display.axes_[0, 1].get_title() == f"round 3: {n_frequencies[2]} frequencies"
        drawn = display.axes_[0, 0].collections[0].get_offsets()
        assert sorted(map(tuple, drawn)) == sorted(map(tuple, X))
        # The potential is highest near a frequency that was found.
        potential = display.axes_[1, 0].images[0]
        values = potential.get_array()
        row, column = np.unravel_index(values.argmax(), values.shape)
        left, right, bottom, top = potential.get_extent()
        side = values.shape[0] - 1
        peak = [left + (right - left) * column / side, bottom + (top - bottom) * row / side]
        first = model.frequencies_[: n_frequencies[0]]
        distances = np.linalg.norm(np.concatenate([first, -first]) - peak, axis=1)
        assert distances.min() < 3 * (right - left) / side
        decision = display.axes_[2, 1].images[0].get_array()
        assert set(np.unique(np.sign(decision))) == {-1, 1}
        again = GameDisplay(X, y, display.snapshots).plot(display.axes_, resolution=20)
        assert again.figure_ is display.figure_
        assert display.axes_[2, 1].images[-1].get_array().shape == (20, 20)

    def test_other_spaces_and_targets_are_refused(self, rng, model):
        X, y = make_checkerboard(100, random_state=0)
        circle = reference.sphere_points(rng, 80, 2)
        side = circle[:, 0] > 0
        space = Sphere("zonal", normalize=True)
        on_circle = FourierClassifier(6, space=space, smoothing=0.06).fit(circle, side)
        for display in (GameDisplay, SpectrumDisplay):
            with pytest.raises(ValueError, match=r"X has 3 columns and the space is .*, but only"):
                display.from_estimator(model, X, y)
            with pytest.raises(ValueError, match="X has 2 columns and the space is ZonalSphere"):
                display.from_estimator(on_circle, circle, side)
        targets = np.arange(80) % 3
        for estimator, kind in (
            (FourierClassifier, "3 classes"),
            (FourierRegressor, "real targets"),
        ):
            other = estimator(6, smoothing=0.06, random_state=0).fit(circle, targets)
            with pytest.raises(ValueError, match=f"fitted to {kind}, but GameDisplay draws"):
                GameDisplay.from_estimator(other, circle, targets)

    def test_named_integer_columns_and_text_labels(self, rng):
        X = pd.DataFrame(rng.integers(0, 9, size=(60, 2)), columns=["a", "b"])
        y = np.array(["no", "yes"])[(X["a"] > X["b"]).to_numpy().astype(int)]
        model = FourierClassifier(6, smoothing=0.06, random_state=0).fit(X, y)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            GameDisplay.from_estimator(model, X, y)
            SpectrumDisplay.from_estimator(model, X, y)
            HistoryDisplay.from_estimator(model, X, y)
            ScoreCurveDisplay.from_estimator(model, X, y, X, y)

    def test_heads_can_be_drawn(self, planar):
        model, X, y = planar
        for size in (1, 6, 20):
            head = model.features_.head(size)
            display = GameDisplay.from_estimator(head, X, y)
            assert len(display.snapshots[-1].kernel.weights) == size
            HistoryDisplay.from_estimator(head, X, y)

    @pytest.mark.parametrize("n_components", [6, "auto"])
    @pytest.mark.parametrize("n_samples", [300, 1500])
    def test_samples_have_the_color_of_their_class(self, n_samples, n_components):
        """In any order of the samples, and with samples held out."""
        X, y = make_windmill(n_samples, random_state=0)
        classes = {tuple(point): label for point, label in zip(X, y, strict=True)}
        model = FourierClassifier(n_components, max_components=20, smoothing=0.06, random_state=0)
        display = GameDisplay.from_estimator(model.fit(X, y), X, y, rounds=[1])
        for point, label in zip(display.X, display.y, strict=True):
            assert classes[tuple(point)] == label


def test_score_curve_display(planar):
    model, X, y = planar
    axis = import_pyplot().subplots()[1]
    display = ScoreCurveDisplay.from_estimator(model, X, y, X, y, sizes=[5, 20], ax=axis)
    assert display.ax_ is axis
    drawn = axis.containers[0].lines[0].get_data()
    np.testing.assert_allclose(drawn[1], 100 * display.scores["learned"])


def test_score_curve_of_trials_with_missing_values():
    trials = np.array([[0.9, 1.0, np.nan, np.nan], [0.8, 1.0, 0.7, np.nan]])
    display = ScoreCurveDisplay(np.array([5, 10, 20, 40]), {"ours": trials}).plot()
    bars = display.ax_.containers[0]
    np.testing.assert_allclose(bars.lines[0].get_ydata(), [85, 100, 70, np.nan])
    (segments,) = bars.lines[2]
    spread = 100 * np.std([0.8, 0.9], ddof=1)
    np.testing.assert_allclose(segments.get_segments()[0][:, 1], [85 - spread, 85 + spread])


def test_spectrum_as_images(rng):
    X, y = rng.standard_normal((60, 12)), np.arange(60) % 2
    model = FourierClassifier(9, smoothing=0.06, random_state=0).fit(X, y)
    heaviest = model.frequencies_[np.argmax(model.kernel_.weights)]
    images = SpectrumDisplay.from_estimator(model, image_shape=(4, 3), n_images=3).ax_.images[0]
    drawn = np.ma.getdata(images.get_array())
    grey = heaviest.reshape(4, 3)
    np.testing.assert_allclose(drawn[:4, :3], grey / np.abs(grey).max())
    assert drawn.shape == (4, 3 * 3 + 2)
    axis = SpectrumDisplay.from_estimator(model, image_shape=(2, 2, 3), n_images=1).ax_
    mean = heaviest.reshape(2, 2, 3).mean(axis=-1)
    np.testing.assert_allclose(
        np.ma.getdata(axis.images[0].get_array())[:2, :2], mean / np.abs(mean).max()
    )
    with pytest.raises(ValueError, match=r"image_shape=\(5, 5\) is not allowed"):
        SpectrumDisplay.from_estimator(model, image_shape=(5, 5))
    with pytest.raises(ValueError, match="n_images=0 is not allowed"):
        SpectrumDisplay.from_estimator(model, image_shape=(4, 3), n_images=0)
