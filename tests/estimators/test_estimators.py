import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from experiments.paper_setting import paper_setting
from notsorandom import (
    Ascent,
    Euclidean,
    FourierClassifier,
    FourierFeatures,
    FourierRegressor,
    GradientSolver,
    Langevin,
    Sphere,
)
from notsorandom.game import CLASSIFICATION_LOSSES
from notsorandom.search.base import Search

QUICK = {"smoothing": 0.06, "random_state": 0}
BOTH = pytest.mark.parametrize("estimator", [FourierFeatures, FourierClassifier])
ESTIMATORS = [FourierFeatures, FourierClassifier, FourierRegressor]


@parametrize_with_checks([estimator(10, smoothing=0.06) for estimator in ESTIMATORS])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        estimator(20, space=sphere, smoothing=0.06)
        for estimator in (FourierFeatures, FourierClassifier)
        for sphere in (Sphere(normalize=True), Sphere("harmonic", normalize=True))
    ]
)
def test_scikit_learn_contract_on_the_sphere(estimator, check):
    if check.func.__name__ == "check_estimators_dtypes":
        # Its random integers have a row of zeros, which has no direction. The next test covers the
        # data types.
        with pytest.raises(ValueError, match="Row 15 of X is zero"):
            check(estimator)
    else:
        check(estimator)


@BOTH
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
@pytest.mark.parametrize("basis", ["harmonic", "zonal"])
def test_all_data_types_on_the_sphere(rng, estimator, dtype, basis):
    X = (20 * rng.standard_normal((20, 5))).astype(dtype)
    assert X.any(axis=1).all()
    model = estimator(20, space=Sphere(basis, normalize=True), smoothing=0.06)
    model.fit(X, rng.permutation(20) % 2)
    output = model.transform(X) if estimator is FourierFeatures else model.decision_function(X)
    assert output.dtype == (np.float32 if dtype == np.float32 else np.float64)


@pytest.mark.parametrize("loss", CLASSIFICATION_LOSSES)
@pytest.mark.parametrize(
    ("phase", "dtype", "smoothing"), [("paired", np.float32, 0.06), ("aligned", np.float64, 0.1)]
)
def test_windmill_is_learned(windmill, loss, phase, dtype, smoothing):
    X, y, X_test, y_test = windmill
    settings = {"loss": loss, "C": 1.0, "phase": phase, "smoothing": smoothing}
    model = FourierClassifier(100, **settings, random_state=0).fit(X.astype(dtype), y)
    assert model.frequencies_.dtype == dtype
    assert model.decision_function(X_test.astype(dtype)).dtype == dtype
    assert model.score(X_test, y_test) > 0.955
    assert model.duality_gap_ <= 1e-3


def test_langevin_search_learns_the_windmill(windmill):
    X, y, X_test, y_test = windmill
    search = Langevin(n_steps=30, n_particles=30)
    model = FourierClassifier(40, search=search, phase="paired", smoothing=0, random_state=0)
    assert model.fit(X, y).score(X_test, y_test) > 0.93


def test_head_equals_the_smaller_fit(windmill):
    X, y = windmill[:2]
    large = FourierFeatures(40, **QUICK).fit(X, y)
    small = FourierFeatures(12, **QUICK).fit(X, y)
    head = large.head(12)
    np.testing.assert_allclose(head.transform(X), small.transform(X))
    assert head.get_params() == small.get_params()
    assert len(head.get_feature_names_out()) == 12
    assert len(large.frequencies_) == 40  # untouched
    sizes = head.history_["n_frequencies"]
    assert sizes[-1] >= 12 > sizes[-2]


class RandomSearch(Search):
    """A search of the user's own: returns random frequencies."""

    def check(self):
        pass

    def find(self, landscape, n_peaks, rng):
        return landscape.evaluate(landscape.draw(min(n_peaks, 4), rng))


def test_custom_search(windmill):
    model = FourierClassifier(20, search=RandomSearch(), **QUICK)
    model.fit(*windmill[:2])
    assert model.frequencies_.shape == (20, 2)


def test_paired_phase_has_two_columns_per_frequency(windmill):
    features = FourierFeatures(10, phase="paired", **QUICK)
    features.fit(*windmill[:2])
    assert features.frequencies_.shape == (5, 2)
    assert features.transform(windmill[2]).shape == (2000, 10)


def test_several_classes():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = FourierClassifier(30, **QUICK).fit(X, names)
    assert model.decision_function(X).shape == (150, 3)
    assert model.coef_.shape == (3, 30)
    assert model.score(X, names) > 0.95
    numbers = FourierClassifier(30, **QUICK).fit(X, y)
    np.testing.assert_array_equal(numbers.frequencies_, model.frequencies_)


@BOTH
def test_equal_seed_gives_equal_model(estimator, windmill):
    one, other = (estimator(10, random_state=7).fit(*windmill[:2]) for _ in range(2))
    np.testing.assert_array_equal(one.frequencies_, other.frequencies_)
    assert getattr(one, "temperature_", None) == getattr(other, "temperature_", None)
    np.testing.assert_equal(one.tuning_, other.tuning_)


@pytest.mark.parametrize(("factor", "shift"), [(1e-6, 0), (1e6, 0), (1, 50)])
def test_unit_and_origin_do_not_matter(windmill, factor, shift):
    """Up to rounding; test_extreme_numbers has factors without it."""
    X, y, X_test, _ = windmill
    expected = FourierClassifier(20, **QUICK).fit(X, y).predict(X_test)
    moved = FourierClassifier(20, **QUICK).fit(factor * X + shift, y)
    assert np.mean(moved.predict(factor * X_test + shift) == expected) > 0.97


def rare_class(rng):
    X, y = rng.standard_normal((2000, 2)), np.arange(2000) < 20
    X[y] = 0.3 * X[y] + 4
    return X, y


# Samples and labels, given the windmill's, and the least accuracy on them.
UNUSUAL = {
    "constant columns": (lambda X, y, _: (np.hstack([X, np.full((600, 3), 7.0)]), y), 0.9),
    "duplicate rows": (lambda X, y, _: (np.repeat(X[:50], 10, axis=0), np.repeat(y[:50], 10)), 0.9),
    "integers": (lambda X, y, _: ((100 * X).astype(int), y), 0.9),
    "fewer samples than columns": (lambda X, y, rng: (rng.normal(size=(12, 40)), y[:12]), 1.0),
    "all points equal": (lambda *_: (np.ones((6, 3)), [0, 1, 1, 0, 1, 1]), 4 / 6),
    "one positive in a hundred": (lambda X, y, rng: rare_class(rng), 0.999),
    "two samples": (lambda *_: ([[0.0], [1.0]], ["a", "b"]), 1.0),
}


@pytest.mark.parametrize("name", UNUSUAL)
def test_unusual_data(name, rng, windmill):
    make, least = UNUSUAL[name]
    X, y = make(*windmill[:2], rng)
    model = FourierClassifier(10, **QUICK).fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()
    assert model.score(X, y) >= least
    assert (model.status_ == "flat") == (name == "all points equal")


def test_containers_and_layouts(windmill):
    X, y = (array.copy() for array in windmill[:2])
    model = FourierClassifier(10, **QUICK).fit(X, y)
    model.predict(X)
    for before, after in zip(windmill, (X, y), strict=False):  # the input is not modified
        np.testing.assert_array_equal(before, after)
    frame = pd.DataFrame(X, columns=["a", "b"])
    for other in (np.asfortranarray(X), X.tolist(), frame, np.repeat(X, 2, axis=0)[::2]):
        again = FourierClassifier(10, **QUICK).fit(other, list(y))
        np.testing.assert_allclose(again.frequencies_, model.frequencies_, rtol=1e-6)


@BOTH
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 0}, "n_components=0 .*an int > 0"),
        ({"n_components": 2.5}, "n_components=2.5"),
        ({"n_components": 5, "phase": "paired"}, "multiple of 2"),
        ({"C": 0}, "C=0 .*>= "),
        ({"C": -1.0}, "C=-1.0"),
        ({"C": np.inf}, "C=inf"),
        ({"C": "large"}, "C='large' .*a list of such numbers to choose from, or 'auto'"),
        ({"C": [1.0, 0.0]}, "a candidate of C=0.0"),
        ({"C": []}, r"C=\[\] .*, or 'auto'"),
        ({"C": [[1.0]]}, r"C=\[\[1.0\]\] .*, or 'auto'"),
        ({"C": True}, "C=True"),
        ({"C": {1.0: 2.0}}, "C={1.0: 2.0}"),
        ({"smoothing": -0.1}, "smoothing=-0.1 .*>= 0.*, a list of such numbers .*or 'auto'"),
        ({"smoothing": (0.1, "auto")}, "a candidate of smoothing='auto'"),
        ({"smoothing": np.array([0.1, -1])}, "a candidate of smoothing=.*-1.0"),
        ({"smoothing": ()}, r"smoothing=\(\)"),
        ({"smoothing": 1e9}, "smoothing=1000000000.0 .*<= 1000"),
        ({"smoothing": "much"}, "smoothing='much'"),
        ({"solver": GradientSolver(0)}, "learning_rate=0 .*'auto' or 'theory' or"),
        ({"solver": GradientSolver("slow")}, "learning_rate='slow' .*callable of the round is"),
        (
            {"solver": GradientSolver(lambda: 1.0)},
            r"learning_rate=.* the round, .* signature is \(\)",
        ),
        ({"solver": GradientSolver(lambda t: -t)}, r"learning_rate\(round=1\)=-1 is not allowed"),
        ({"solver": GradientSolver(weighting="heavy")}, "weighting='heavy'"),
        ({"solver": GradientSolver(projection="none")}, "projection='none' .*'exact', 'alternat"),
        ({"solver": GradientSolver(n_rounds=0)}, "n_rounds=0"),
        ({"solver": GradientSolver(reweight=1)}, "reweight=1 is not allowed"),
        ({"solver": "simplex"}, "solver='simplex' .*'gradient', 'reweight', 'equilibrium'"),
        ({"n_jobs": 0}, "n_jobs=0 .*None, an int > 0, or -1"),
        ({"space": "torus"}, "space='torus' .*'euclidean'"),
        ({"search": "luck"}, "search='luck' .*'ascent', 'langevin'"),
        ({"search": 3}, "search=3 .*instance of Search"),
        ({"search": Ascent}, "search=.*Ascent"),
        ({"search": Ascent(n_particles=0)}, "n_particles=0"),
        ({"search": Ascent(spectrum="flat")}, "spectrum='flat' .*'gaussian', 'cauchy'"),
        ({"space": Euclidean(scale=-1)}, "scale=-1"),
        ({"phase": "random"}, "phase='random' .*'aligned', 'paired'"),
        ({"loss": "log"}, "loss='log' .*'hinge', 'squared_hinge', 'logistic'"),
        ({"verbose": -1}, "verbose=-1"),
    ],
)
def test_bad_parameters(estimator, parameters, message, windmill):
    model = estimator(**parameters)
    with pytest.raises(ValueError, match=message):
        model.fit(*windmill[:2])
    assert not [name for name in vars(model) if name.endswith("_")]


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (FourierRegressor(loss="hinge"), "loss='hinge' is not allowed"),
        (FourierClassifier(loss="squared"), "loss='squared' is not allowed"),
        (FourierRegressor(epsilon=-1), "epsilon=-1 is not allowed"),
    ],
)
def test_parameters_of_another_kind_of_target(model, message, windmill):
    with pytest.raises(ValueError, match=message):
        model.fit(*windmill[:2])


@BOTH
@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[1.0, np.nan], [2.0, 3.0]], [0, 1], "NaN"),
        ([[1.0, np.inf], [2.0, 3.0]], [0, 1], "infinity"),
        (np.array([[1.0 + 1j], [2.0]]), [0, 1], "[Cc]omplex"),
        (np.empty((0, 2)), [], "0 sample"),
        ([[1.0, 2.0]], [0], "minimum of 2"),
        ([[1.0], [2.0]], [3, 3], "only one class, .*3.*at least two"),
        ([[1.0], [2.0]], [0.5, 0.7], "Unknown label type"),
        ([[1.0], [2.0]], [0, 1, 1], "inconsistent"),
    ],
)
def test_bad_data(estimator, X, y, message):
    model = estimator(4)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert not [name for name in vars(model) if name.endswith("_")]


def test_wrong_use(windmill):
    X, y = windmill[:2]
    for call in (FourierClassifier().predict, FourierFeatures().transform, FourierFeatures().head):
        with pytest.raises(NotFittedError):
            call(X)
    model = FourierClassifier(4, **QUICK).fit(X, y)
    with pytest.raises(ValueError, match="3 features"):
        model.predict(np.zeros((2, 3)))


class InterruptedSearch(Ascent):
    """Raises KeyboardInterrupt in the second round."""

    def find(self, landscape, n_peaks, rng):
        if n_peaks < 10:
            raise KeyboardInterrupt
        return super().find(landscape, n_peaks, rng)


@BOTH
@pytest.mark.parametrize("already_fitted", [False, True])
def test_an_interrupted_fit_changes_nothing(estimator, already_fitted, windmill):
    model = estimator(10, **QUICK)
    if already_fitted:
        model.fit(*windmill[:2])
    model.set_params(search=InterruptedSearch())
    before = dict(vars(model))
    with pytest.raises(KeyboardInterrupt):
        model.fit(np.ones((600, 5)) + windmill[0][:, :1], windmill[1])
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is before[name] for name in before)


def test_pipelines_and_grids(windmill):
    X, y = windmill[:2]
    pipeline = make_pipeline(FourierFeatures(10, search=Ascent()), LogisticRegression())
    values = {"search__n_particles": [2, 4], "smoothing": [0.06]}
    values = {f"fourierfeatures__{name}": each for name, each in values.items()}
    assert GridSearchCV(pipeline, values, cv=2).fit(X, y).best_score_ > 0.8


def test_clones_and_pickles(windmill):
    X, y = windmill[:2]
    settings = {"search": Ascent(n_particles=4), "space": Euclidean(), **QUICK}
    model = FourierClassifier(10, **settings).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert clone(model).get_params()["search__n_particles"] == 4
    assert model.space.scale == "median"  # the fit resolves a copy


def test_data_frames_in_and_out(windmill):
    X, y = windmill[:2]
    frame = pd.DataFrame(X, columns=["east", "north"])
    features = FourierFeatures(4, **QUICK).set_output(transform="pandas")
    features.fit(frame, y)
    out = features.transform(frame)
    assert list(out.columns) == [f"fourierfeatures{k}" for k in range(4)]
    with pytest.raises(ValueError, match="feature names"):
        features.transform(frame[["north", "east"]])


def test_verbose_shows_progress_bars(windmill, capsys):
    FourierClassifier(10, verbose=1, random_state=0).fit(*windmill[:2])
    shown = capsys.readouterr()
    assert "10/10" in shown.err
    assert "potential" in shown.err
    assert shown.out == ""
    FourierClassifier(10, **QUICK).fit(*windmill[:2])
    assert capsys.readouterr().err == ""


def test_weighting(windmill):
    X, y = windmill[:2]
    uniform = FourierFeatures(10, solver=GradientSolver(weighting="uniform"), **QUICK).fit(X, y)
    np.testing.assert_allclose(uniform.kernel_.weights, 0.1)
    weighted = FourierFeatures(10, **QUICK).fit(X, y)
    assert weighted.kernel_.weights.argmax() == 0
    np.testing.assert_array_equal(weighted.frequencies_, uniform.frequencies_)


def test_paper_setting(windmill):
    """What the experiments run, with a small search."""
    X, y, X_test, y_test = windmill
    features = paper_setting(40, 0).set_params(search__n_steps=30, search__n_particles=30)
    settings = features.get_params(deep=False)
    del settings["epsilon"]  # a classifier has none
    model = FourierClassifier(**settings).fit(X, y)
    assert model.frequencies_.shape == (20, 2)
    # Rounds have equal weights, and so have the peaks of a round.
    rounds = np.split(model.kernel_.weights, model.history_["n_frequencies"][:-1])
    assert 1 < len(rounds) < len(model.frequencies_)
    np.testing.assert_allclose([weights.sum() for weights in rounds], 1 / len(rounds))
    assert all(np.ptp(weights) < 1e-12 for weights in rounds)
    gram = model.kernel_(X[:5] + 3.0, X[:5] + 3.0)  # translation-invariant
    np.testing.assert_allclose(gram, model.kernel_(X[:5]), atol=1e-9)
    assert model.score(X_test, y_test) > 0.8


def test_estimators_have_the_same_defaults():
    """Except for parameters that classification or regression has no use for."""
    features = FourierFeatures().get_params() | {"n_components": "auto", "linear": "auto"}
    regressor, classifier = FourierRegressor().get_params(), FourierClassifier().get_params()
    assert regressor.pop("quantile") == 0.5
    assert regressor.pop("calibration_size") == "auto"
    assert regressor | {"loss": "logistic", "class_weight": None} == features
    assert classifier | {"epsilon": "auto"} == features


def test_more_features_than_memory(rng):
    """The message has the bytes; nothing is computed before."""
    X = rng.normal(size=(60, 3))
    for n_components in (10**30, 10**13):
        with pytest.raises(
            ValueError, match=rf"take {12 * n_components:,} bytes.*Give at most \d+"
        ):
            FourierClassifier(n_components, smoothing=0.1).fit(X, X[:, 0] > 0)
