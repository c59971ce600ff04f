"""Objects of a researcher's own: the examples of CONTRIBUTING, and losses given as objects."""

import re
import sys
import types
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import notsorandom
from notsorandom import (
    Ascent,
    Checkpoint,
    Euclidean,
    FourierClassifier,
    FourierFeatures,
    FourierRegressor,
)
from notsorandom.data.rows import Rows
from notsorandom.game import (
    LOSSES,
    GameLoop,
    LogisticLoss,
    Loss,
    Problem,
    QuadraticLoss,
    QuantileLoss,
)
from notsorandom.game.solvers import Solver
from notsorandom.tuning.trial_models import solve_batch

CONTRIBUTING = Path(__file__).parent.parent / "CONTRIBUTING.md"
HUBER = QuadraticLoss(upper=1.0, curvature=1.0, start=0.5, one_sided=False)
GIVEN = {"C": 1.0, "smoothing": 0.1, "random_state": 0}


def example(title):
    """Run the example in a section of CONTRIBUTING and return its names."""
    sections = CONTRIBUTING.read_text(encoding="utf-8").split("\n### ")
    (section,) = (section for section in sections if section.startswith(f"{title}\n"))
    (code,) = re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL)
    assert len(code.splitlines()) <= 30
    namespace = {"__name__": "example"}
    exec(compile(code, f"CONTRIBUTING.md: {title}", "exec"), namespace)
    return namespace


@pytest.fixture
def regression(rng):
    """Samples and targets with a few outliers."""
    X = rng.normal(size=(200, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1]
    y[::20] += 10
    return X, y


# The examples of CONTRIBUTING.


def test_loss_example():
    names = example("A loss")
    X, y, model = names["X"], names["y"], names["model"]
    residuals = y - model.predict(X)
    # The intercept is not penalised: at the optimum the slopes of the losses add up to zero.
    assert abs(np.clip(residuals, -0.1, 1.0).mean()) < 1e-2
    equal = clone(model).set_params(loss=names["UnequalHuberLoss"](ratio=1.0)).fit(X, y)
    assert (equal.predict(X) < model.predict(X)).mean() > 0.99
    # Trials compare by the method of the loss.
    chosen = clone(model).set_params(smoothing=[0.02, 0.2]).fit(X, y)
    assert 0 < chosen.tuning_["loss"].min() < 0.5 * np.square(residuals).mean()
    certificate = model.certificate(X, y, max_evaluations=1000)
    assert 0 < certificate.lower <= certificate.upper


def test_loss_example_minimises_its_objective(rng):
    names = example("A loss")
    kernel, X, y = names["model"].kernel_, names["X"], names["y"]
    features, model = kernel.features(X), names["model"]

    def objective(parameters):
        residuals = y - features @ parameters[:-1] - parameters[-1]
        clipped = np.clip(residuals, -0.1, 1.0)
        losses = clipped * residuals - 0.5 * clipped**2
        return 0.5 * parameters[:-1] @ parameters[:-1] + losses.sum()

    solution = np.append(model.coef_, model.intercept_)
    least = objective(solution)
    assert least * (1 - 2 * model.duality_gap_) - 1e-6 <= min(
        objective(solution + scale * rng.standard_normal(len(solution)))
        for scale in np.geomspace(1e-4, 1, 50)
    )


def test_space_example():
    names = example("A space")
    X, y, model = names["X"], names["y"], names["model"]
    assert type(model.kernel_.space) is names["FewColumns"]
    used = model.frequencies_ != 0
    assert (used.sum(axis=1) == 1).all()
    # Most of the weight is on the two columns that matter.
    assert model.kernel_.weights[used[:, :2].any(axis=1)].sum() > 0.7
    assert model.score(X, y) > 0.9
    pairs = FourierRegressor(20, space=names["FewColumns"](order=2), search="langevin", **GIVEN)
    assert ((pairs.fit(X, y).frequencies_ != 0).sum(axis=1) == 2).all()


def test_search_example():
    names = example("A search")
    X, y, model = names["X"], names["y"], names["model"]
    assert model.kernel_.n_components == 50
    assert model.score(X, y) > 0.9
    few = clone(model).set_params(search__n_draws=4).fit(X, y)
    assert model.history_["potential"][0] > few.history_["potential"][0]
    with pytest.raises(ValueError, match="n_draws=0 is not allowed"):
        FourierClassifier(50, search=names["RandomSearch"](n_draws=0)).fit(X, y)


def test_observer_example():
    names = example("An observer")
    model = names["model"]
    assert model.status_ == "stopped"
    assert model.kernel_.n_components < 500
    potentials = model.history_["potential"]
    low = potentials < 0.1 * potentials[0]
    assert low[-3:].all()
    assert not any(low[n : n + 3].all() for n in range(len(low) - 3))


def test_observer_example_continues_from_its_state():
    names = example("An observer")
    X, labels = names["X"], np.where(names["y"] > 0, 1.0, -1.0)[:, None]
    problem = Problem(LOSSES["hinge"], labels, Rows(X))
    space = Euclidean().resolve(problem.rows, np.random.default_rng(0))

    def start(state=None):
        return GameLoop(
            problem,
            space=space,
            search=Ascent(),
            n_frequencies=500,
            rng=np.random.default_rng(1),
            state=state,
        )

    whole = start().play([names["StopWhenLow"](0.3)])
    game, observer = start(), names["StopWhenLow"](0.3)
    while not observer.n_low:
        game.play_round()
        observer.after_round(game)
    other = names["StopWhenLow"](0.3)
    other.set_state(observer.get_state())
    continued = start(game.current_state()).play([other])
    assert continued.status == "stopped"
    np.testing.assert_array_equal(continued.frequencies, whole.frequencies)


# Losses as objects.


@pytest.mark.parametrize("threshold", [0.5, 1.0, 3.0])
def test_huber_loss_minimises_its_objective(regression, threshold):
    X, y = regression
    # C times half the squared residual up to the threshold, then linear.
    loss = QuadraticLoss(upper=threshold, curvature=1.0, start=0.5, one_sided=False)
    model = FourierRegressor(20, loss=loss, **(GIVEN | {"C": 10.0})).fit(X, y)
    features = model.kernel_.features(X)

    def objective(parameters):
        coef, intercept = parameters[:-1], parameters[-1]
        residuals = y - features @ coef - intercept
        clipped = np.clip(residuals, -threshold, threshold)
        losses = clipped * residuals - 0.5 * clipped**2
        slopes = np.append(coef - 10 * clipped @ features, -10 * clipped.sum())
        return 0.5 * coef @ coef + 10 * losses.sum(), slopes

    solution = minimize(objective, np.zeros(21), jac=True, method="BFGS", options={"gtol": 1e-8})
    reached, _ = objective(np.append(model.coef_, model.intercept_))
    assert solution.fun <= reached <= (1 + 1e-3) * solution.fun


def test_huber_loss_resists_outliers(regression):
    X, y = regression
    clean = np.sin(2 * X[:, 0]) + X[:, 1]
    errors = [
        np.abs(FourierRegressor(50, loss=loss, **GIVEN).fit(X, y).predict(X) - clean).mean()
        for loss in (replace(HUBER, upper=0.3, curvature=1.0), "squared")
    ]
    assert errors[0] < 0.5 * errors[1]


@pytest.mark.parametrize("name", LOSSES)
def test_named_loss_as_object_gives_the_same_model(regression, name):
    X, y = regression
    loss = LOSSES[name]
    settings = {"n_components": 10, "random_state": 0}
    if loss.one_sided:
        estimator, y = FourierClassifier(**settings), np.where(y > 0, "a", "b")
    else:
        estimator = FourierRegressor(**settings, epsilon=0.1)  # of an object: its own
    named = clone(estimator).set_params(loss=name).fit(X, y)
    given = clone(estimator).set_params(loss=loss).fit(X, y)
    np.testing.assert_array_equal(named.coef_, given.coef_)
    np.testing.assert_array_equal(named.dual_, given.dual_)
    assert (named.C_, named.smoothing_) == (given.C_, given.smoothing_)
    assert hasattr(given, "predict_proba") == loss.gives_probabilities
    if loss.gives_probabilities:
        np.testing.assert_array_equal(named.predict_proba(X), given.predict_proba(X))


def test_epsilon_of_an_object_is_its_own(regression):
    X, y = regression
    loss = replace(LOSSES["epsilon_insensitive"], epsilon=0.25)
    models = [
        FourierRegressor(10, loss=loss, epsilon=epsilon, **GIVEN).fit(X, 100 * y)
        for epsilon in ("auto", 7.0)
    ]
    named = FourierRegressor(10, loss="epsilon_insensitive", epsilon=0.25, **GIVEN).fit(X, 100 * y)
    for model in models:
        assert model.epsilon_ == 0.25
        np.testing.assert_array_equal(model.coef_, named.coef_)
    # The object itself, too: its epsilon is not scaled with the targets.
    model = FourierRegressor(10, loss=LOSSES["epsilon_insensitive"], **GIVEN).fit(X, 100 * y)
    assert model.epsilon_ == LOSSES["epsilon_insensitive"].epsilon


@pytest.mark.usefixtures("quick_trials")
def test_loss_object_in_all_of_scikit_learn(regression, tmp_path):
    X, y = regression
    X = X[:, :1]  # the report bounds the potential, which takes long in more dimensions
    model = FourierRegressor(10, loss=HUBER, random_state=0).fit(X, y)
    assert clone(model).loss == HUBER == model.get_params()["loss"]
    assert "loss=QuadraticLoss(upper=1.0" in " ".join(repr(model).split())
    search = GridSearchCV(FourierRegressor(5, **GIVEN), {"loss": [HUBER, "squared"]}, cv=2)
    assert search.fit(X, y).best_params_["loss"] in (HUBER, "squared")
    certificate = model.certificate(X, y, max_evaluations=1000)
    assert 0 < certificate.lower <= certificate.upper
    page = notsorandom.report(model, X, y, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "QuadraticLoss(upper=1.0" in page
    assert FourierFeatures(10, loss=HUBER, **GIVEN).fit_transform(X, y).shape == (200, 10)


@pytest.mark.usefixtures("quick_trials")
def test_loss_object_in_games_that_are_continued(regression, tmp_path):
    X, y = regression
    whole = FourierRegressor(20, loss=HUBER, warm_start=True, random_state=0).fit(X, y)
    other = clone(whole).set_params(n_components=10).fit(X, y)
    other.set_params(loss=replace(HUBER, upper=2.0), n_components=20)
    with pytest.raises(ValueError, match=r"loss was QuadraticLoss\(upper=1.0.*upper=2.0"):
        other.fit(X, y)
    other.set_params(loss=replace(HUBER)).fit(X, y)
    np.testing.assert_array_equal(other.coef_, whole.coef_)
    checkpoint = Checkpoint(tmp_path / "state.npz", every=0)
    other = clone(whole).set_params(checkpoint=checkpoint).fit(X, y)
    np.testing.assert_array_equal(other.coef_, whole.coef_)


@pytest.mark.parametrize(
    "loss", [HUBER, replace(HUBER, upper=np.inf), LogisticLoss(), QuantileLoss(quantile=0.9)]
)
def test_model_files_keep_losses(regression, tmp_path, loss):
    X, y = regression
    if loss.one_sided:
        model = FourierClassifier(10, loss=loss, **GIVEN).fit(X, y > 0)
    else:
        model = FourierRegressor(10, loss=loss, **GIVEN).fit(X, y)
    loaded = notsorandom.load(notsorandom.save(model, tmp_path / "model.skops"))
    assert loaded.loss == loss
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


@pytest.mark.parametrize(("title", "parameter"), [("A loss", "loss"), ("A space", "space")])
def test_model_files_name_classes_that_load_must_trust(tmp_path, title, parameter, monkeypatch):
    model = example(title)["model"]
    name = type(getattr(model, parameter)).__name__
    with pytest.raises(ValueError, match="can't be saved: No module named 'example'"):
        notsorandom.save(model, tmp_path / "model.skops")
    assert not list(tmp_path.iterdir())
    module = types.ModuleType("example")
    setattr(module, name, type(getattr(model, parameter)))
    monkeypatch.setitem(sys.modules, "example", module)
    with pytest.warns(UserWarning, match=rf"trusted=\['example\.{name}'\]"):
        notsorandom.save(model, tmp_path / "model.skops")
    loaded = notsorandom.load(tmp_path / "model.skops", trusted=[f"example.{name}"])
    assert type(getattr(loaded, parameter)).__name__ == name


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"upper": 0.0}, "upper=0.0 is not allowed"),
        ({"upper": "1"}, "upper='1' is not allowed"),
        ({"curvature": -1.0}, "curvature=-1.0 is not allowed"),
        ({"curvature": np.nan}, "curvature=nan is not allowed"),
        ({"upper": np.inf, "curvature": 0.0}, "with upper=inf.*positive curvature"),
        ({"start": 0.0}, "start=0.0 is not allowed"),
        ({"epsilon": -0.1}, "epsilon=-0.1 is not allowed"),
        ({"one_sided": None}, "one_sided=None is not allowed"),
        ({"one_sided": True}, "loss of class labels.*one_sided=False"),
    ],
)
def test_bad_losses_are_refused_before_any_work(changes, message):
    with pytest.raises(ValueError, match=message):
        FourierRegressor(loss=replace(HUBER, **changes)).fit(None, None)


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (LogisticLoss(curvature=1.0), "4 / upper"),
        (LogisticLoss(one_sided=False), "one_sided is True"),
        (HUBER, "loss of real targets.*one_sided=True"),
        (LogisticLoss, "'hinge', 'squared_hinge', 'logistic', or an instance of Loss"),
    ],
)
def test_bad_losses_of_labels_are_refused_before_any_work(loss, message):
    with pytest.raises(ValueError, match=message):
        FourierClassifier(loss=loss).fit(None, None)


@dataclass(frozen=True)
class OwnLoss(LogisticLoss):
    """A loss that the package doesn't know, with real numbers as weights of the Hessian."""


def test_trials_solve_models_of_any_loss(rng):
    """The models of trials are the same, whether or not there is code for one loss alone."""
    features = rng.normal(size=(2, 60, 4))
    targets = np.where(features[0, :, :1] + rng.normal(size=(60, 1)) > 0, 1.0, -1.0)
    masks = rng.random((2, 60)) < 0.8
    weights, scales = rng.uniform(0.5, 2, size=60), np.array([0.3, 30.0])
    own, known = (
        solve_batch(features, targets, masks, loss, weights, scales, tol=1e-10)
        for loss in (OwnLoss(), LogisticLoss())
    )
    for one, other in zip(own, known, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)


@pytest.mark.usefixtures("quick_trials")
def test_subclass_of_a_loss_gives_nearly_the_same_model(regression):
    X, y = regression
    own, known = (
        FourierClassifier(10, loss=loss, random_state=1).fit(X, y > 0)
        for loss in (OwnLoss(), "logistic")
    )
    assert isinstance(own.loss, Loss)
    np.testing.assert_allclose(own.C_, known.C_, rtol=0.2)
    np.testing.assert_allclose(own.predict_proba(X), known.predict_proba(X), atol=0.05)


class PlainSolver(Solver):
    """A solver that derives from the contract, with a parameter of a name that others have."""

    computes_equilibrium = False

    def __init__(self, n_rounds=None):
        self.n_rounds = n_rounds

    def check(self):
        pass

    def solve(self, problem, *, observers=(), verbose=0, **settings):
        return GameLoop(problem, n_rounds=self.n_rounds, **settings).play(observers)

    def kernel(self, result):
        return result.kernel()


@pytest.mark.usefixtures("quick_trials")
def test_own_solver_can_be_continued(regression, tmp_path):
    X, y = regression
    whole = FourierRegressor(20, solver=PlainSolver(), warm_start=True, random_state=0).fit(X, y)
    other = clone(whole).set_params(n_components=10).fit(X, y).set_params(n_components=20).fit(X, y)
    np.testing.assert_array_equal(other.coef_, whole.coef_)
    checkpoint = Checkpoint(tmp_path / "state.npz", every=0)
    other = clone(whole).set_params(checkpoint=checkpoint).fit(X, y)
    np.testing.assert_array_equal(other.coef_, whole.coef_)
    assert clone(whole).set_params(solver__n_rounds=3).fit(X, y).history_["plays"].size == 3
