"""Extreme numbers: finite answers or a clear error, never NaN or a warning of NumPy."""

import re
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from notsorandom import (
    FourierClassifier,
    FourierFeatures,
    FourierRegressor,
    GradientSolver,
    Sphere,
)
from notsorandom.game.losses import CLASSIFICATION_LOSSES, LOSSES, REGRESSION_LOSSES

N = 80
# Exact factors, so that rounding errors are the same: 2.8e-160 and 3.5e159; 9e-25 and 1e24.
FACTORS = {"float64": [2.0**-530, 2.0**530], "float32": [2.0**-80, 2.0**80]}


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "Column .* of X varies by", UserWarning)
        yield


def make_data(loss, dtype="float64"):
    X = np.random.default_rng(0).normal(size=(N, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1]
    return X.astype(dtype), (y > 0).astype(int) if loss in CLASSIFICATION_LOSSES else y


def make_estimator(loss, **settings):
    kind = FourierClassifier if loss in CLASSIFICATION_LOSSES else FourierRegressor
    return kind(6, **({"loss": loss, "smoothing": 0.1, "C": 1.0, "random_state": 0} | settings))


def assert_finite(estimator, X):
    outputs = [estimator.predict(X), estimator.kernel_(X[:5]), estimator.features_.transform(X)]
    outputs += [estimator.dual_, estimator.coef_, estimator.intercept_, estimator.frequencies_]
    outputs += [column for name, column in estimator.history_.items() if name != "potential"]
    for output in outputs:
        assert np.isfinite(output).all()


def assert_finite_or_refused(estimator, X, y, weights=None):
    """Fit, and check that the model is finite, or that an error says what was got and allowed."""
    message = None
    try:
        estimator.fit(X, y, sample_weight=weights)
    except ValueError as error:
        message = str(error)
    if message is None:
        assert_finite(estimator, X)
        return
    assert re.search(r"must be|X has|X in float64|class_weight has", message), message
    assert not hasattr(estimator, "kernel_")


# Samples.


def one_row(X, value):
    X = X.copy()
    X[5, 1] = value
    return X


def make_samples(X):
    """Return samples by name."""
    largest = float(np.finfo(X.dtype).max)
    huge = X.dtype.type(largest / 1e3)
    return {
        "tiny": X / huge,
        "subnormal": X * np.finfo(X.dtype).smallest_subnormal * 100,
        "large": X / np.abs(X).max() * huge,
        "largest": np.sign(X) * X.dtype.type(largest),
        "one row": one_row(X, huge),
        "one row of the largest": one_row(X, largest),
        "one row, in range": one_row(X, 1e12),
        "one row at the limit": one_row(X, 1.5e15),
        "one row of 1e20": one_row(X, 1e20),
        "mixed columns": X * np.array([1 / huge, 1, huge / 100], dtype=X.dtype),
        "mixed rows": X * np.logspace(-30, 30, N).astype(X.dtype)[:, None],
        "constant column": np.column_stack([X, np.full(N, 7, X.dtype)]),
        "huge constant column": np.column_stack([X, np.full(N, huge)]),
        "all constant": np.full_like(X, huge),
        "zero": np.zeros_like(X),
    }


def slow(value):
    """Return a value, or values, of parameters that only the slow tests have."""
    values = value if isinstance(value, tuple) else (value,)
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.mark.parametrize("name", make_samples(make_data("squared")[0]))
@pytest.mark.parametrize("dtype", ["float64", slow("float32")])
@pytest.mark.parametrize("loss", LOSSES)
def test_samples(loss, dtype, name):
    X, y = make_data(loss, dtype)
    X = make_samples(X)[name]
    assert_finite_or_refused(make_estimator(loss), X, y)
    assert_finite_or_refused(make_estimator(loss), sparse.csr_array(X), y)


@pytest.mark.slow
@pytest.mark.full_trials
@pytest.mark.parametrize("name", make_samples(make_data("squared")[0]))
@pytest.mark.parametrize("loss", LOSSES)
def test_samples_with_everything_chosen(loss, name):
    X, y = make_data(loss)
    X = make_samples(X)[name]
    assert_finite_or_refused(make_estimator(loss, C="auto", smoothing="auto"), X, y)


@pytest.mark.parametrize("name", ["tiny", "large", "largest", "one row", "mixed rows"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_only_directions_matter_on_the_sphere(convert, dtype, name):
    X, y = make_data("hinge", dtype)
    made = make_samples(X)[name]
    directions = made / np.abs(made).max(axis=1, keepdims=True)
    space = Sphere(basis="zonal", normalize=True)
    first, second = (
        make_estimator("hinge", space=space).fit(convert(each), y) for each in (directions, made)
    )
    expected = first.decision_function(convert(directions))
    np.testing.assert_allclose(second.decision_function(convert(made)), expected, atol=1e-3)


@pytest.mark.parametrize("automatic", [False, True])
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("dtype", ["float64", slow("float32")])
@pytest.mark.parametrize("loss", LOSSES)
def test_units_of_the_samples_do_not_matter(loss, dtype, convert, automatic):
    X, y = make_data(loss, dtype)
    settings = {"smoothing": "auto", "C": "auto"} if automatic else {}
    expected = make_estimator(loss, **settings).fit(convert(X), y).predict(convert(X))
    for factor in FACTORS[dtype]:
        scaled = convert(X * X.dtype.type(factor))
        model = make_estimator(loss, **settings).fit(scaled, y)
        np.testing.assert_allclose(model.predict(scaled), expected, atol=1e-4)
        assert_finite(model, scaled)


def test_units_do_not_matter_to_wide_samples():
    X = np.random.default_rng(0).normal(size=(N, 200))
    y = X[:, 0] > 0
    expected = make_estimator("hinge").fit(X, y).decision_function(X)
    for factor in FACTORS["float64"]:
        scores = make_estimator("hinge").fit(factor * X, y).decision_function(factor * X)
        np.testing.assert_allclose(scores, expected, atol=1e-4)
    with pytest.raises(ValueError, match=r"X has 1\.7e\+308 in column 1, where the mean is"):
        make_estimator("hinge").fit(one_row(X, 1.7e308), y)


# Parameters, targets and weights.

EXTREMES = [1e300, 1e-300, 1e100, 1e-100, 1e29, 1e-29, 1e15]
SMOOTHING = [{"smoothing": value} for value in (1e300, 1e154, 1e30, 1e3, 1e-300)]
SLOW_SETTINGS = [*SMOOTHING, *({"space": Sphere(normalize=True), **each} for each in SMOOTHING)]
SLOW_SETTINGS += [{"solver": GradientSolver(value)} for value in (1e300, 1e30, 1e6, 1e-300)]
SETTINGS = [{"C": value} for value in EXTREMES]
SETTINGS += [{"epsilon": value} for value in (1e300, 1e30, 1e-300)]


@pytest.mark.parametrize("settings", [*SETTINGS, *map(slow, SLOW_SETTINGS)], ids=str)
@pytest.mark.parametrize("dtype", ["float64", slow("float32")])
def test_settings(dtype, settings):
    for loss in REGRESSION_LOSSES if "epsilon" in settings else LOSSES:
        X, y = make_data(loss, dtype)
        assert_finite_or_refused(make_estimator(loss, **settings), X, y)


@pytest.mark.slow
@pytest.mark.parametrize("value", [1e300, 1e-300, 1e29, 1e-29])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", ["reweight", "equilibrium"])
def test_regularisation_of_other_solvers(solver, loss, value):
    X, y = make_data(loss)
    X, y = X[:30], y[:30]
    space = Sphere(normalize=True, max_degree=2) if solver == "equilibrium" else "euclidean"
    assert_finite_or_refused(make_estimator(loss, C=value, solver=solver, space=space), X, y)


@pytest.mark.parametrize("value", EXTREMES)
@pytest.mark.parametrize("dtype", ["float64", slow("float32")])
@pytest.mark.parametrize("loss", LOSSES)
def test_weights(loss, dtype, value):
    X, y = make_data(loss, dtype)
    one = np.where(np.arange(N) == 3, value, 1.0)
    for weights in (np.full(N, value), one):
        assert_finite_or_refused(make_estimator(loss), X, y, weights)
    if loss in CLASSIFICATION_LOSSES:
        assert_finite_or_refused(make_estimator(loss, class_weight={1: value}), X, y)


def test_tiny_weights_beside_usual_ones_are_allowed():
    X, y = make_data("hinge")
    weights = np.where(np.arange(N) % 2, 1.0, 1e-300)
    model = make_estimator("hinge").fit(X, y, weights)
    assert model.score(X, y, weights) > 0.9
    assert_finite(model, X)


@pytest.mark.parametrize("value", [*EXTREMES, 1.7e308, 0.0])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("loss", REGRESSION_LOSSES)
def test_targets(loss, dtype, value):
    X, y = make_data(loss, dtype)
    assert_finite_or_refused(make_estimator(loss), X, y / np.abs(y).max() * value)
    assert_finite_or_refused(make_estimator(loss, smoothing="auto"), X, np.full(N, value))


@pytest.mark.parametrize("factor", [2.0**-90, 2.0**90])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_units_of_the_targets_do_not_matter_to_the_squared_loss(dtype, factor):
    X, y = make_data("squared", dtype)
    expected = make_estimator("squared").fit(X, y).predict(X)
    predicted = make_estimator("squared").fit(X, factor * y).predict(X)
    np.testing.assert_allclose(predicted / factor, expected, atol=0.05)


# Predictions for samples that are far from those at fit.

CALLS = {
    "predict": (FourierClassifier, "predict"),
    "decision_function": (FourierClassifier, "decision_function"),
    "regression": (FourierRegressor, "predict"),
    "transform": (FourierFeatures, "transform"),
    "kernel": (FourierFeatures, "kernel_"),
}


@pytest.fixture(scope="module")
def labels():
    return np.digitize(make_data("squared")[0][:, 0], [-0.5, 0.5])


@pytest.mark.parametrize(
    ("n_classes", "phase"), [(2, "aligned"), (3, "paired"), slow((3, "aligned"))]
)
@pytest.mark.parametrize("dtype", ["float64", slow("float32")])
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array, "memmap"])
@pytest.mark.parametrize("call", CALLS)
def test_far_rows_are_refused(labels, call, convert, dtype, n_classes, phase, tmp_path):
    X, labels = make_data("squared", dtype)[0], np.minimum(labels, n_classes - 1)
    kind, method = CALLS[call]
    model = kind(6, smoothing=0.1, phase=phase, random_state=0).fit(X, labels)
    for value in (1e20, float(np.finfo(dtype).max), -float(np.finfo(dtype).max)):
        far = np.concatenate([X] * 40)
        far[3001, 1] = value
        if convert == "memmap":
            path = tmp_path / "far.npy"
            np.save(path, far)
            far = np.load(path, mmap_mode="r")
        else:
            far = convert(far)
        with pytest.raises(ValueError, match=r"Row 3001 of X has .* in column 1, but .* too far"):
            getattr(model, method)(far)
    answers = np.asarray(getattr(model, method)(one_row(X, 1e12)))
    assert np.isfinite(answers).all()


def test_samples_at_the_limit_of_a_fit_can_be_predicted(labels):
    X = one_row(make_data("squared")[0], 5e14)
    model = FourierClassifier(6, smoothing=0.1, random_state=0).fit(X, labels)
    assert np.isfinite(model.decision_function(X)).all()


def test_float32_samples_of_a_model_beyond_float32():
    X, y = make_data("hinge")
    model = make_estimator("hinge").fit(X * 2.0**-530, y)
    with pytest.raises(ValueError, match="in float32"):
        model.predict(np.zeros((2, 3), dtype=np.float32))


@pytest.mark.parametrize("flags", [[], ["--scores"]])
def test_far_rows_are_refused_by_the_command_line(flags, labels, tmp_path, capsys, monkeypatch):
    import notsorandom.cli.loading
    from notsorandom.cli import main

    X = make_data("squared")[0]
    model = FourierClassifier(6, smoothing=0.1, random_state=0).fit(X, labels)
    path = notsorandom.save(model, tmp_path / "model.skops")
    monkeypatch.setattr(notsorandom.cli.loading, "PREDICTED_BYTES", 1)  # several blocks
    far = np.concatenate([X] * 40)
    far[3001, 2] = 1e300
    np.save(tmp_path / "far.npy", far)
    output = tmp_path / "predictions.csv"
    arguments = ["predict", str(path), str(tmp_path / "far.npy"), "-o", str(output), *flags]
    assert main(arguments) == 1
    assert re.search(
        r"Of the rows after the first \d+: Row \d+ of X has 1e\+300 in column 2",
        capsys.readouterr().err,
    )
    assert not output.exists()
