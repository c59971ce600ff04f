"""Reliability diagrams, their error, and what trials found."""

import numpy as np
import pytest
from sklearn import metrics
from sklearn.calibration import calibration_curve

from notsorandom import FourierClassifier, FourierRegressor
from notsorandom.display import CalibrationDisplay, TuningDisplay, import_pyplot
from notsorandom.display.calibration import calibration_error, log_loss

SETTINGS = {"n_components": 10, "smoothing": 0.06, "random_state": 0}
TABLE = {
    "spectrum": np.array(["gaussian"] * 4 + ["cauchy"] * 4),
    "smoothing": np.tile([0.1, 0.1, 0.3, 0.3], 2),
    "C": np.tile([1.0, 10.0], 4),
    "loss": np.array([0.4, 0.3, 0.5, 0.6, 0.2, 0.7, 0.8, 0.1]),
    "standard_error": np.full(8, 0.05),
    "linear": np.zeros(8),
}


def sample_probabilities(rng, n_samples, n_classes):
    """Return probabilities and classes that are drawn from them."""
    odds = np.exp(2 * rng.standard_normal((n_samples, n_classes)))
    probabilities = odds / odds.sum(axis=1, keepdims=True)
    codes = (rng.uniform(size=(n_samples, 1)) > probabilities.cumsum(axis=1)).sum(axis=1)
    return probabilities, np.minimum(codes, n_classes - 1)


class TestCalibrationError:
    @pytest.mark.parametrize("n_bins", [1, 7, 10])
    def test_it_is_the_mean_distance_from_the_diagonal(self, rng, n_bins):
        probability, truth = rng.uniform(size=7 * 10 * 20), rng.uniform(size=7 * 10 * 20) < 0.3
        heights, places = calibration_curve(truth, probability, n_bins=n_bins, strategy="quantile")
        expected = np.abs(heights - places).mean()  # all bins have the same number of samples
        assert calibration_error(truth, probability, n_bins) == pytest.approx(expected)

    def test_calibrated_probabilities_have_a_small_error(self, rng):
        probabilities, codes = sample_probabilities(rng, 50_000, 2)
        assert calibration_error(codes == 1, probabilities[:, 1]) < 0.01
        too_sure = np.where(probabilities[:, 1] > 0.5, 0.99, 0.01)
        assert calibration_error(codes == 1, too_sure) > 0.1

    def test_equal_probabilities_are_in_one_bin(self):
        """Bins that divide them would count their noise."""
        truth = np.repeat([True, False], 500)
        assert calibration_error(truth, np.full(1000, 0.5)) == 0
        assert calibration_error(truth, np.full(1000, 0.75, dtype=np.float32)) == 0.25


@pytest.mark.parametrize("n_classes", [2, 4])
def test_log_loss_equals_the_one_of_sklearn(rng, n_classes):
    probabilities, codes = sample_probabilities(rng, 200, n_classes)
    classes = np.array(["a", "b", "c", "d"])[:n_classes]
    found = log_loss(np.log(probabilities), classes[codes].tolist(), classes)
    assert found == pytest.approx(metrics.log_loss(classes[codes], probabilities))
    # Tiny probabilities are exact, and an unknown class has an infinite loss.
    logarithms = np.array([[-2000.0, *np.zeros(n_classes - 1)]])
    assert log_loss(logarithms, ["a"], classes) == 2000
    assert log_loss(logarithms, ["z"], classes) == np.inf


class TestCalibrationDisplay:
    def test_two_classes(self, windmill):
        X, y, X_test, y_test = windmill
        names = np.array(["no", "yes $1"])
        model = FourierClassifier(loss="logistic", **SETTINGS).fit(X, names[y])
        display = CalibrationDisplay.from_estimator(model, X_test, names[y_test], n_bins=5)
        probability = model.predict_proba(X_test)[:, 1]
        heights, places = calibration_curve(y_test, probability, n_bins=5, strategy="quantile")
        line = next(each for each in display.ax_.lines if len(each.get_xdata()) == len(places) > 2)
        np.testing.assert_allclose(line.get_xdata(), places)
        np.testing.assert_allclose(line.get_ydata(), heights)
        counts = [bar.get_height() for bar in display.axes_[1].patches]
        assert sum(counts) == len(y_test)
        assert display.ax_.get_xlabel() == r"predicted probability of yes \$1"
        assert display.expected_error == calibration_error(y_test == 1, probability, 5)

    def test_more_classes_show_the_predicted_one(self, rng):
        probabilities, codes = sample_probabilities(rng, 5000, 3)
        display = CalibrationDisplay.from_log_probabilities(
            np.log(probabilities), codes, np.arange(3)
        )
        np.testing.assert_array_equal(display.truth, probabilities.argmax(axis=1) == codes)
        np.testing.assert_allclose(display.probability, probabilities.max(axis=1))
        assert display.expected_error < 0.03
        assert "predicted class" in display.plot().ax_.get_xlabel()

    def test_bad_input(self, windmill):
        X, y = windmill[:2]
        model = FourierClassifier(loss="logistic", **SETTINGS).fit(X, y)
        axis = import_pyplot().subplots()[1]
        with pytest.raises(ValueError, match="ax has 1 axes, but 2 are needed"):
            CalibrationDisplay.from_estimator(model, X, y, ax=axis)
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            CalibrationDisplay.from_estimator(model, X, y[:5])
        hinge = FourierClassifier(loss="hinge", **SETTINGS).fit(X, y)
        with pytest.raises(AttributeError, match="loss='logistic'"):
            CalibrationDisplay.from_estimator(hinge, X, y)


class TestTuningDisplay:
    def test_a_line_for_each_spectrum(self):
        """The lowest loss of each value."""
        display = TuningDisplay(TABLE).plot()
        assert display.parameters == ["C", "smoothing"]
        by_C, by_smoothing = (
            [line.get_ydata().tolist() for line in axis.lines] for axis in display.axes_
        )
        assert [0.4, 0.3] in by_C
        assert [0.2, 0.1] in by_C
        assert [0.1] in by_C  # the ring
        assert [0.3, 0.5] in by_smoothing
        legend = [text.get_text() for text in display.axes_[0].get_legend().get_texts()]
        assert sorted(legend) == ["cauchy spectrum", "gaussian spectrum", "lowest"]

    def test_lines_of_candidates_with_a_linear_part(self):
        table = TABLE | {"linear": np.where(TABLE["spectrum"] == "cauchy", 30.0, 0.0)}
        table = {name: np.append(column, column[-1:]) for name, column in table.items()}
        table["linear"][-1], table["loss"][-1] = 0.0, 0.05
        axis = TuningDisplay(table).plot().axes_[0]
        lines = {each.get_label(): each.lines[0] for each in axis.containers}
        assert list(lines) == [
            "cauchy spectrum",
            "cauchy spectrum, linear part",
            "gaussian spectrum",
        ]
        assert lines["cauchy spectrum"].get_ydata().tolist() == [0.05]
        assert lines["cauchy spectrum, linear part"].get_ydata().tolist() == [0.2, 0.1]
        styles = [line.get_linestyle() for line in lines.values()]
        assert styles == ["-", "--", "-"]

    def test_parameters_of_one_value_are_not_drawn(self):
        table = {name: column[:2] for name, column in TABLE.items()}
        assert TuningDisplay(table).parameters == ["C"]
        table = {name: column[:1] for name, column in TABLE.items()}
        assert TuningDisplay(table).parameters == ["smoothing"]
        assert len(TuningDisplay(table).plot().axes_) == 1

    def test_fitted_models(self, planar):
        model, X, _ = planar
        assert TuningDisplay.from_estimator(model).table is model.tuning_
        with pytest.raises(ValueError, match="ax has 1 axes, but 2 are needed"):
            TuningDisplay(TABLE).plot(import_pyplot().subplots()[1])
        regressor = FourierRegressor(8, C=1.0, smoothing=0.06, search="langevin", random_state=0)
        with pytest.raises(ValueError, match="fitted without trials"):
            TuningDisplay.from_estimator(regressor.fit(X, X[:, 0]))
