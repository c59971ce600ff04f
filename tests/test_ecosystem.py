"""The estimators inside data frames, pipelines, grid search, calibration and meta-estimators."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import VotingClassifier
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from notsorandom import Ascent, FourierClassifier, FourierFeatures, FourierRegressor

pytestmark = pytest.mark.usefixtures("quick_trials")

SKLEARN = tuple(int(part) for part in sklearn.__version__.split(".")[:2])
KINDS = ["pandas", "polars"]


def frame_library(kind):
    if kind == "pandas":
        return pd
    return pytest.importorskip("polars", reason="needs polars: pip install 'notsorandom[all]'")


def frame(kind, X, names=("width", "height")):
    return frame_library(kind).DataFrame(dict(zip(names, X.T, strict=True)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("estimator", [FourierFeatures, FourierClassifier, FourierRegressor])
def test_data_frames_are_read_and_their_column_names_checked(windmill, kind, estimator):
    library = frame_library(kind)
    if SKLEARN < (1, 9) and not hasattr(library.DataFrame, "__dataframe__"):
        pytest.skip("this polars is too new for this scikit-learn to read its column names")
    X, y, X_test, _ = windmill
    model = estimator(8, smoothing=0.06, random_state=0)
    name = "transform" if estimator is FourierFeatures else "predict"
    expected = getattr(model.fit(X, y), name)(X_test)
    model.fit(frame(kind, X), library.Series(y))
    assert model.feature_names_in_.tolist() == ["width", "height"]
    np.testing.assert_array_equal(getattr(model, name)(frame(kind, X_test)), expected)
    with pytest.raises(ValueError, match="feature names should match"):
        getattr(model, name)(frame(kind, X_test, ("height", "width")))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        getattr(model, name)(X_test)


@pytest.mark.parametrize("kind", KINDS)
def test_features_are_returned_as_data_frames(windmill, kind):
    X, y = windmill[:2]
    features = FourierFeatures(5, smoothing=0.06, random_state=0).set_output(transform=kind)
    output = features.fit_transform(frame(kind, X), y)
    assert isinstance(output, frame_library(kind).DataFrame)
    assert list(output.columns) == [f"fourierfeatures{number}" for number in range(5)]
    np.testing.assert_array_equal(output.to_numpy(), features.kernel_.features(X))


def test_columns_of_a_data_frame_in_a_pipeline(windmill):
    X, y = windmill[:2]
    table = frame("pandas", X).assign(colour=np.where(y == 1, "red", "blue"))
    waves = FourierFeatures(20, smoothing=0.06)
    columns = ColumnTransformer(
        [
            ("waves", make_pipeline(StandardScaler(), waves), ["width", "height"]),
            ("colour", OneHotEncoder(drop="first"), ["colour"]),
        ]
    )
    model = make_pipeline(columns, LogisticRegression()).fit(table, y)
    assert model.score(table, y) > 0.9
    assert model[0].get_feature_names_out()[0] == "waves__fourierfeatures0"


@pytest.mark.slow
@pytest.mark.full_trials
def test_grid_search_in_two_processes(windmill):
    X, y = windmill[:2]
    model = Pipeline(
        [("features", FourierFeatures(10, search=Ascent(), random_state=0)), ("model", SVC())]
    )
    grid = GridSearchCV(
        model,
        {"features__smoothing": [0.06, 0.2], "features__search__n_particles": [4, 8]},
        cv=3,
        n_jobs=2,
    ).fit(X, y)
    alone = GridSearchCV(model, grid.param_grid, cv=3).fit(X, y)
    np.testing.assert_array_equal(
        grid.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"]
    )


def test_learned_kernel_in_other_models(windmill):
    X, y, X_test, y_test = windmill
    kernel = FourierFeatures(60, smoothing=0.06, random_state=0).fit(X, y).kernel_
    assert SVC(kernel=kernel).fit(X, y).score(X_test, y_test) > 0.95
    # KernelRidge calls the kernel for each pair of samples.
    ridge = KernelRidge(kernel=kernel, alpha=0.1).fit(X[:100], 2 * y[:100] - 1)
    assert ridge.score(X_test[:100], 2 * y_test[:100] - 1) > 0.5


def test_calibrated_probabilities(windmill):
    X, y, X_test, y_test = windmill
    weights = np.random.default_rng(0).uniform(0.5, 1.5, size=len(y))
    model = CalibratedClassifierCV(FourierClassifier(60, smoothing=0.06, random_state=0))
    probabilities = model.fit(X, y, sample_weight=weights).predict_proba(X_test)
    assert log_loss(y_test, probabilities) < 0.25
    confident = probabilities.max(axis=1) > 0.95
    assert np.mean(probabilities.argmax(axis=1)[confident] == y_test[confident]) > 0.95


def test_meta_estimators(windmill):
    X, y = windmill[:2]
    search = Ascent(spectrum="gaussian")
    small = FourierClassifier(10, C=1.0, smoothing=0.06, search=search, random_state=0)
    vote = VotingClassifier([("one", small), ("two", LogisticRegression())]).fit(X, y)
    assert vote.predict(X).shape == y.shape
    both = MultiOutputClassifier(small).fit(X, np.column_stack([y, 1 - y])).predict(X)
    np.testing.assert_array_equal(both[:, 0], 1 - both[:, 1])
    scaled = make_pipeline(FunctionTransformer(np.square), small)
    assert cross_val_score(scaled, X, y, cv=2).shape == (2,)
