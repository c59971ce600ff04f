"""The linear part of a kernel: columns beside the waves, chosen by trials, in every kind of fit."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler

from notsorandom import FourierClassifier, FourierRegressor
from notsorandom.data.rows import Rows
from notsorandom.game.losses import LOSSES, REGRESSION_LOSSES
from notsorandom.game.problem import Problem
from notsorandom.linear.sparse_columns import MixedFeatures, solve_sparse
from notsorandom.spaces import Euclidean
from notsorandom.spaces.view import MAX_DIRECTIONS
from notsorandom.tuning import linear_part, tune
from notsorandom.tuning.linear_part import LinearPart, to_game_scores, why_not_linear
from notsorandom.tuning.trials import compress


def make_embeddings(n=600, d=40, n_classes=4, noise=1.0, seed=0):
    """Classes around their own centres, in general position: a linear model is the best one."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    return rng.normal(size=(n_classes, d))[y] + noise * rng.normal(size=(n, d)), y


def make_linear(n=1200, d=60, n_classes=8, seed=0):
    """Classes of the largest of several linear functions."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (X @ rng.normal(size=(d, n_classes))).argmax(axis=1)


def make_trend(n=400, seed=0):
    """A steep linear trend, and a wave."""
    X = np.random.default_rng(seed).uniform(-2, 2, size=(n, 3))
    return X, 10 * X[:, 0] - 4 * X[:, 1] + np.sin(4 * X[:, 2])


def make_words(n=400, d=1000, n_classes=3, seed=0):
    """Sparse counts of words, each of which speaks for a class."""
    rng = np.random.default_rng(seed)
    X = sparse.random_array((n, d), density=0.02, random_state=rng, format="csr")
    return X, (X @ rng.normal(size=(d, n_classes))).argmax(axis=1)


# Choice.


def test_trials_choose_it_where_it_is_better():
    X, y = make_linear(2000)
    train, test = slice(1200), slice(1200, None)
    model = FourierClassifier(random_state=0).fit(X[train], y[train])
    without = FourierClassifier(linear=False, random_state=0).fit(X[train], y[train])
    assert model.uses_linear_part_
    assert not without.uses_linear_part_
    assert model.score(X[test], y[test]) > without.score(X[test], y[test]) + 0.01
    assert set(model.tuning_["linear"]) > {0.0}


def test_trials_leave_it_out_where_waves_are_better():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 3))
    model = FourierClassifier(random_state=0).fit(X, np.sin(3 * X[:, 0] + 2 * X[:, 1]) > 0)
    assert not model.uses_linear_part_
    assert set(model.tuning_["linear"]) == {0.0}  # they were not even played


def test_games_without_it_do_not_change():
    """Candidates with a linear part draw from a stream of their own."""
    X, y = make_linear()
    tables = [
        FourierClassifier(50, linear=linear, random_state=0).fit(X, y).tuning_
        for linear in ("auto", False)
    ]
    assert (tables[0]["linear"] > 0).any()
    rows = tables[0]["linear"] == 0
    shared = {name: column[rows] for name, column in tables[0].items()}
    n = min(rows.sum(), len(tables[1]["C"]))
    np.testing.assert_allclose(shared["loss"][:n], tables[1]["loss"][:n], rtol=1e-4)


@pytest.mark.parametrize("Model", [FourierClassifier, FourierRegressor])
@pytest.mark.parametrize("linear", ["yes", None, 1, 0.5])
def test_other_values_are_refused(Model, linear):
    X, y = make_embeddings(n=40, n_classes=2)
    with pytest.raises(ValueError, match="'auto', True, False"):
        Model(linear=linear).fit(X, y)


def test_reasons_against_it():
    dense, wide = (Rows(np.empty((2, d))) for d in (10, 5000))
    words = Rows(sparse.csr_array((2, 5000)))
    logistic, hinge, squared = (LOSSES[name] for name in ("logistic", "hinge", "squared"))
    assert not why_not_linear(dense, hinge)
    assert "dense samples" in why_not_linear(wide, logistic)
    assert not why_not_linear(words, logistic)
    assert not why_not_linear(words, squared)
    assert "sparse" in why_not_linear(words, hinge)


def test_it_is_refused_where_it_is_impossible():
    X, y = make_words(n=60)
    with pytest.raises(ValueError, match="linear=True is not allowed: sparse"):
        FourierClassifier(5, loss="hinge", linear=True).fit(X, y)
    X, y = make_embeddings(n=60, n_classes=2)
    with pytest.raises(ValueError, match="linear=True is not allowed: solver"):
        FourierClassifier(5, solver="reweight", linear=True).fit(X, y)
    model = FourierClassifier(5, solver="reweight", random_state=0).fit(X, y)
    assert not model.uses_linear_part_


def test_few_samples_have_no_trials():
    X, y = make_embeddings(n=12, d=3, n_classes=2)
    model = FourierClassifier(5, linear=True, random_state=0).fit(X, y)
    assert model.tuning_ is None
    assert model.coef_.shape == (1, 5 + 3)


def test_it_has_one_weight_for_any_units():
    """Columns and targets in other units give the same model."""
    X, y = make_trend()
    first, second = (
        FourierRegressor(20, linear=True, random_state=0).fit(a * X + 3, b * y)
        for a, b in ((1.0, 1.0), (64.0, 8.0))
    )
    np.testing.assert_allclose(
        8 * first.predict(X + 3), second.predict(64 * X + 3), atol=1e-2 * np.abs(y).max()
    )


# The model.


def test_the_final_model_has_one_penalty():
    """It is the ridge regression on waves and columns, at one `C`."""
    X, y = make_trend()
    model = FourierRegressor(15, linear=True, random_state=0).fit(X, y)
    features = model.features_.transform(X)
    assert features.shape == (len(X), 15 + 3)
    reference = Ridge(alpha=1 / (2 * model.C_), solver="cholesky").fit(features, y)
    expected = reference.predict(features)
    np.testing.assert_allclose(model.predict(X), expected, atol=0.02 * y.std())
    np.testing.assert_allclose(features @ model.coef_[0] + model.intercept_, model.predict(X))


def test_rows_far_away_have_the_linear_trend():
    X, y = make_trend()
    far = np.array([[20.0, 0, 0], [-20.0, 5, 0]])
    expected = 10 * far[:, 0] - 4 * far[:, 1]
    with_part, without = (
        FourierRegressor(linear=linear, random_state=0).fit(X, y).predict(far)
        for linear in (True, False)
    )
    assert np.abs(with_part - expected).max() < 25 < np.abs(without - expected).max()


def test_the_game_starts_from_the_linear_model():
    """Its first dual variables are those of the linear model, projected."""
    X, y = make_embeddings(n=200, d=5, n_classes=3)
    targets = np.where(y[:, None] == np.arange(3), 1.0, -1.0)
    problem = Problem(LOSSES["logistic"], targets, Rows(X))
    space = Euclidean().resolve(problem.rows, np.random.default_rng(0))
    view = space.view(problem.rows, "float64", np.random.default_rng(0))
    viewed = problem.viewed(view)
    part = LinearPart.of(problem, view, viewed)
    game = part.game_problem(viewed, 5.0)
    columns = (X - X.mean(axis=0)) / np.sqrt(np.square(X - X.mean(axis=0)).sum(axis=1).mean())
    reference = LogisticRegression(C=5.0, max_iter=1000, tol=1e-8).fit(columns, y)
    probabilities = reference.predict_proba(columns)
    np.testing.assert_allclose(game.first_dual(), (targets > 0) - probabilities, atol=0.03)


def test_game_scores_have_the_probabilities_of_softmax():
    scores = np.random.default_rng(0).normal(size=(50, 4))
    odds = to_game_scores(scores, LOSSES["logistic"])
    exponentials = np.exp(scores)
    probabilities = exponentials / exponentials.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(1 / (1 + np.exp(-odds)), probabilities)
    assert to_game_scores(scores, LOSSES["hinge"]) is scores  # one-versus-rest already


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_losses_of_classes(loss, n_classes):
    X, y = make_embeddings(d=10, n_classes=n_classes)
    model = FourierClassifier(20, loss=loss, linear=True, random_state=0).fit(X[:300], y[:300])
    assert model.coef_.shape[1] == 20 + 10
    assert model.duality_gap_ <= 1e-3
    assert model.score(X[300:], y[300:]) > 0.9


@pytest.mark.parametrize("loss", REGRESSION_LOSSES)
def test_losses_of_targets(loss):
    X, y = make_trend()
    both = np.column_stack([y, -2 * y])
    model = FourierRegressor(30, loss=loss, linear=True, random_state=0).fit(X[:300], both[:300])
    assert model.score(X[300:], both[300:]) > 0.99


@pytest.mark.parametrize("basis", ["zonal", "harmonic"])
def test_sphere(basis):
    from notsorandom import Sphere

    X, y = make_embeddings(d=5, n_classes=3, noise=0.7)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    model = FourierClassifier(20, space=Sphere(basis=basis), linear=True, random_state=0)
    model.fit(X[:400], y[:400])
    assert model.kernel_.linear_center is None
    assert model.score(X[400:], y[400:]) > 0.8


def test_projected_samples_keep_all_columns():
    """Waves live in the leading directions, the linear part in all columns."""
    X, y = make_embeddings(n=500, d=MAX_DIRECTIONS + 40, n_classes=3)
    model = FourierClassifier(10, linear=True, random_state=0).fit(X, y)
    assert model.coef_.shape == (3, 10 + X.shape[1])
    scores = model.kernel_.features(X) @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(scores, model.decision_function(X), atol=1e-5)


def test_weights_are_counts():
    X, y = make_trend(200)
    counts = np.random.default_rng(0).integers(1, 4, size=len(y))
    settings = {"C": 3.0, "smoothing": 0.05, "linear": True, "random_state": 0}
    one = FourierRegressor(10, **settings).fit(X, y, sample_weight=counts)
    other = FourierRegressor(10, **settings).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    assert np.corrcoef(one.predict(X), other.predict(X))[0, 1] > 0.999


# Sparse columns.


def test_sparse_columns_stay_sparse():
    X, y = make_words()
    model = FourierClassifier(20, random_state=0, linear=True).fit(X, y)
    features = model.kernel_.features(X)
    assert sparse.issparse(features)
    assert features.shape == (400, 20 + 1000)
    dense = model.kernel_.features(X.toarray())
    np.testing.assert_allclose(features.toarray(), dense, atol=1e-12)
    np.testing.assert_allclose(model.kernel_(X), dense @ dense.T, atol=1e-9)
    np.testing.assert_allclose(model.kernel_.diag(X), np.diag(dense @ dense.T))
    np.testing.assert_allclose(
        model.decision_function(X), model.decision_function(X.toarray()), atol=1e-9
    )


def test_words_are_as_good_as_logistic_regression():
    X, y = make_words(1500)
    model = FourierClassifier(random_state=0).fit(X[:1200], y[:1200])
    reference = LogisticRegression(C=10.0, max_iter=1000).fit(X[:1200], y[:1200])
    assert model.uses_linear_part_
    assert model.score(X[1200:], y[1200:]) >= reference.score(X[1200:], y[1200:]) - 0.01


def test_very_many_sparse_columns():
    """A matrix of the columns would have 80 gigabytes."""
    rng = np.random.default_rng(0)
    X = sparse.random_array((600, 100_000), density=1e-3, random_state=rng, format="csr")
    y = rng.integers(2, size=600)
    X = sparse.hstack([X, sparse.csr_array(3.0 * y[:, None])], format="csr")
    model = FourierClassifier(10, linear=True, random_state=0).fit(X[:400], y[:400])
    assert model.score(X[400:], y[400:]) == 1


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_sparse_logistic_models(n_classes, weighted):
    X, y = make_words(200, 300, n_classes)
    weights = np.random.default_rng(0).uniform(0.5, 2, size=(200, 1)) if weighted else None
    targets = np.where(y[:, None] == np.arange(n_classes), 1.0, -1.0)
    targets = targets[:, 1:] if n_classes == 2 else targets
    loss = LOSSES["logistic"].times(4.0)
    features = MixedFeatures(X[:, :5].toarray(), X[:, 5:])
    coef, intercept, gap = solve_sparse(features, Problem(loss, targets, Rows(X, weights)), 1e-7)
    reference = LogisticRegression(C=4.0, tol=1e-9, max_iter=10_000)
    reference.fit(X, y, sample_weight=None if weights is None else weights[:, 0])
    expected = reference.coef_ - (reference.coef_.mean(axis=0) if n_classes > 2 else 0)
    assert gap <= 1e-7
    np.testing.assert_allclose(coef, expected, atol=2e-3)
    shift = reference.intercept_ - intercept
    np.testing.assert_allclose(shift, shift.mean(), atol=2e-3)


def test_sparse_least_squares():
    X, _ = make_words(150, 300)
    rng = np.random.default_rng(0)
    targets, weights = rng.normal(size=(150, 2)), rng.uniform(0.5, 2, size=(150, 1))
    problem = Problem(LOSSES["squared"].times(4.0), targets, Rows(X, weights))
    coef, intercept, gap = solve_sparse(MixedFeatures(X[:, :5].toarray(), X[:, 5:]), problem, 1e-8)
    reference = Ridge(alpha=1 / 8, solver="cholesky").fit(X.toarray(), targets, weights[:, 0])
    assert gap <= 1e-8
    np.testing.assert_allclose(coef, reference.coef_, atol=1e-4)
    np.testing.assert_allclose(intercept, reference.intercept_, atol=1e-4)


@pytest.mark.parametrize("targets", ["classes", "numbers"])
def test_weights_of_very_different_sizes_on_sparse_columns(targets):
    X, y = make_words(300, 500)
    weights = np.where(np.arange(300) < 30, 1e4, 1.0)
    Model = FourierClassifier if targets == "classes" else FourierRegressor
    model = Model(10, linear=True, C=1.0, smoothing=0.2, random_state=0)
    model.fit(X, y, sample_weight=weights)
    assert model.duality_gap_ <= 1e-3


def test_sparse_least_squares_with_a_large_c():
    X, _ = make_words(150, 300)
    targets = np.random.default_rng(0).normal(size=(150, 1))
    problem = Problem(LOSSES["squared"].times(1e6), targets, Rows(X))
    assert solve_sparse(MixedFeatures(X[:, :5].toarray(), X[:, 5:]), problem, 1e-3)[2] <= 1e-3


def test_wide_features_are_compressed_to_the_training_rows():
    """Their inner products, less the mean of the training rows, stay the same."""
    rng = np.random.default_rng(0)
    features = rng.standard_normal((2, 3, 12, 40)) + 1.0
    masks = np.arange(12) % 3 != np.arange(2)[:, None]
    small = compress(features, masks)
    assert small.shape[-1] == 7  # of eight rows, less the mean
    for split, mask in enumerate(masks):
        for found, given in zip(small[split], features[split], strict=True):
            centred = given - given[mask].mean(axis=0)
            np.testing.assert_allclose(found @ found[mask].T, centred @ centred[mask].T, atol=1e-9)


# Fits that stop and go on.


def test_warm_start_continues_it():
    X, y = make_embeddings(n=300, d=8)
    settings = {"linear": True, "warm_start": True, "random_state": 0}
    short = FourierClassifier(20, **settings).fit(X, y)
    longer = short.set_params(n_components=40).fit(X, y)
    at_once = FourierClassifier(40, **settings).fit(X, y)
    np.testing.assert_array_equal(longer.frequencies_, at_once.frequencies_)
    np.testing.assert_array_equal(longer.coef_, at_once.coef_)


def test_checkpoints_continue_it(tmp_path, monkeypatch):
    from notsorandom import Checkpoint
    from notsorandom.estimators.resume import CheckpointFile

    X, y = make_embeddings(n=300, d=8)
    path = tmp_path / "fit.npz"
    model = FourierClassifier(40, linear=True, random_state=0, checkpoint=Checkpoint(path, every=0))
    write = CheckpointFile._write

    def write_and_die(self, game):
        write(self, game)
        if len(game.history) == 5:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(CheckpointFile, "_write", write_and_die)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
    assert path.exists()
    with monkeypatch.context() as patch:
        patch.setattr(tune, "tune", None)  # what trials chose is in the file
        model.fit(X, y)
    whole = FourierClassifier(40, linear=True, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.coef_, whole.coef_)


def test_features_in_passes(monkeypatch):
    """Features that don't fit in memory give the same model."""
    from functools import partial

    from notsorandom.linear import fit as final_models

    X, y = make_embeddings(n=400, d=8)
    models = []
    for n_bytes in (2**28, 0):
        solve = partial(final_models.fit_linear_models, feature_bytes=n_bytes)
        with monkeypatch.context() as patch:
            patch.setattr(final_models, "fit_linear_models", solve)
            models.append(FourierClassifier(20, linear=True, random_state=0).fit(X, y))
    first, second = (model.predict_proba(X) for model in models)
    np.testing.assert_allclose(first, second, atol=0.02)


def test_columns_of_very_different_scales():
    """Scaled columns, and a large offset in float32, don't change the predictions."""
    X, y = make_trend()
    Z = StandardScaler().fit_transform(X)
    shifted = (Z + 1e4).astype(np.float32)
    plain = FourierRegressor(20, linear=True, random_state=0).fit(shifted.astype(float) - 1e4, y)
    model = FourierRegressor(20, linear=True, random_state=0).fit(shifted, y)
    expected = plain.predict(shifted.astype(float) - 1e4)
    np.testing.assert_allclose(model.predict(shifted), expected, atol=0.05 * y.std())


def test_dense_columns_have_a_limit():
    assert linear_part.MAX_LINEAR_COLUMNS >= 3072  # embeddings of today
