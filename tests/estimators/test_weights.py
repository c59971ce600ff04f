"""Weights of samples and classes: weight 2 is the sample twice, weight 0 leaves it out."""

import numpy as np
import pytest
from scipy import sparse

from notsorandom import FourierClassifier, FourierFeatures, FourierRegressor, Sphere
from notsorandom.data.lazy import LazyArray
from notsorandom.data.rows import Rows
from notsorandom.game import LOSSES, REGRESSION_LOSSES, Problem, play
from notsorandom.game.duplicates import merge_duplicates, sort_and_deduplicate
from notsorandom.linear.newton import solve_task
from notsorandom.search import Ascent, Enumerate
from notsorandom.spaces import Euclidean, Landscape, Points, ZonalSphere
from notsorandom.spaces.landscape import median_distance

QUICK = {"smoothing": 0.06, "random_state": 0}


def data(rng, n_samples, dtype=np.float64):
    X = rng.standard_normal((n_samples, 4)).astype(dtype)
    return X, np.sin(2 * X[:, 0]) + X[:, 1]


def outputs(model, X):
    if isinstance(model, FourierFeatures):
        return model.transform(X)
    return model.predict(X) if isinstance(model, FourierRegressor) else model.decision_function(X)


@pytest.mark.parametrize(
    ("estimator", "n_classes"),
    [(FourierFeatures, 3), *((FourierClassifier, n) for n in (2, 3)), (FourierRegressor, None)],
)
@pytest.mark.parametrize(
    "space", ["euclidean", Sphere(normalize=True), Sphere("zonal", normalize=True)]
)
def test_weights_equal_copies_exactly(rng, estimator, space, n_classes):
    X, y = data(rng, 60)
    if n_classes is not None:
        y = np.digitize(y, [0.0] if n_classes == 2 else [-0.7, 0.7])
    weights = rng.integers(0, 4, size=60)
    order = rng.permutation(weights.sum())
    X_copied, y_copied = (np.repeat(part, weights, axis=0)[order] for part in (X, y))
    model = estimator(12, space=space, smoothing="auto", random_state=0)
    weighted = outputs(model.fit(X, y, sample_weight=weights), X)
    np.testing.assert_array_equal(outputs(model.fit(X_copied, y_copied), X), weighted)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", *REGRESSION_LOSSES])
@pytest.mark.parametrize("space", ["euclidean", "harmonic", "zonal"])
def test_weights_equal_copies_in_the_game(rng, loss, space):
    """Without merging equal samples, the two games differ only by rounding."""
    X, y = data(rng, 90)
    targets = y[:, None]
    if loss not in REGRESSION_LOSSES:
        targets = np.where(np.digitize(y, [-0.7, 0.7])[:, None] == np.arange(3), 1.0, -1.0)
    if space != "euclidean":
        X /= np.linalg.norm(X, axis=1, keepdims=True)
    weights = rng.integers(1, 4, size=90)
    spaces = {
        "euclidean": Euclidean(scale=2.0),
        "harmonic": Sphere("harmonic", max_degree=3),
        "zonal": ZonalSphere(max_degree=3, scale=1.0),
    }
    weighted = Problem(LOSSES[loss], targets, Rows(X, weights[:, None].astype(float)))
    X, targets = (np.repeat(part, weights, axis=0) for part in (X, targets))
    copied = Problem(LOSSES[loss], targets, Rows(X))
    players = {"space": spaces[space], "search": Ascent()}
    if space == "harmonic":
        players["search"] = Enumerate()
    one, other = (
        play(problem, n_frequencies=4, smoothing=0.0, rng=np.random.default_rng(0), **players)
        for problem in (weighted, copied)
    )
    np.testing.assert_allclose(other.frequencies, one.frequencies, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(other.dual, np.repeat(one.dual, weights, axis=0), atol=1e-4)
    np.testing.assert_allclose(other.weights, one.weights, rtol=1e-6)


def test_final_model_uses_the_weights(rng):
    X, y = data(rng, 300)
    weights = rng.uniform(0, 5, size=300)
    for estimator, targets in (
        (FourierRegressor, y),
        (FourierClassifier, np.where(y > 0, 1.0, -1)),
    ):
        model = estimator(10, C=1.0, smoothing=0.1, random_state=0).fit(X, targets, weights)
        counts = np.round(100 * weights).astype(int)
        features = np.repeat(model.kernel_.features(X), counts, axis=0)
        loss = LOSSES[model.loss].times(0.01)  # as the counts are a hundred times the weights
        problem = Problem.from_arrays(loss, np.repeat(targets, counts)[:, None])
        copied = solve_task(features, problem, 1e-6)
        np.testing.assert_allclose(model.coef_[0], copied.coef, rtol=0.05, atol=0.02)


def test_similarity_of_peaks_is_weighted(rng):
    """Two waves that differ only on samples of little weight are the same peak."""
    X = np.concatenate([np.zeros((50, 1)), np.linspace(0, 6, 50)[:, None]])
    X = np.concatenate([np.linspace(0, 0.5, 50)[:, None], X])
    frequencies = np.array([[1.0], [3.0]])
    amplitudes = np.array([[[1.0, 1.0]], [[0.0, 0.0]]])
    points = Points(frequencies, np.array([2.0, 1.0]), np.zeros((2, 1)), amplitudes)
    space = Euclidean(scale=1.0, center=[0.0])
    light = np.where(X[:, 0] > 0.6, 1e-6, 1.0)[:, None]
    for weights, expected in ((None, [0, 1]), (light, [0])):
        landscape = Landscape(space, Rows(X, weights), np.ones((len(X), 1)), 0.0)
        assert landscape.distinct(points, 0.7, rng) == expected


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("as_sparse", [False, True])
def test_weight_zero_leaves_a_sample_out(rng, dtype, as_sparse):
    X, y = data(rng, 1500, dtype)
    weights = (rng.uniform(size=1500) < 0.8).astype(float)
    kept = weights > 0
    X_given = sparse.csr_matrix(X) if as_sparse else X
    model = FourierClassifier(8, **QUICK)
    some = model.fit(X_given[kept], y[kept] > 0).decision_function(X)
    weighted = model.fit(X_given, y > 0, sample_weight=weights)
    np.testing.assert_allclose(weighted.decision_function(X), some, rtol=1e-3, atol=1e-3)
    assert weighted.dual_.shape == (1500, 1)
    assert not weighted.dual_[~kept].any()


@pytest.mark.parametrize("loss", LOSSES)
def test_equal_weights_are_a_factor_of_c(rng, loss):
    X, y = data(rng, 300)
    y = y if loss in REGRESSION_LOSSES else y > 0
    settings = {"C": 1.0, "smoothing": 0.06, "search": Ascent(spectrum="gaussian")}
    model = FourierFeatures(12, loss=loss, random_state=0, **settings)
    weighted = model.fit(X, y, sample_weight=np.full(300, 4.0)).transform(X)
    stronger = model.set_params(C=4.0).fit(X, y).transform(X)
    np.testing.assert_allclose(weighted, stronger, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("estimator", [FourierClassifier, FourierRegressor])
def test_weights_equal_copies_in_larger_data(rng, estimator, as_sparse):
    """Copies in the order of the samples; in trials they would be on both sides of a split."""
    X, y = data(rng, 1200)
    X[rng.random(X.shape) < 0.1] = 0.0
    y = y if estimator is FourierRegressor else np.digitize(y, [-0.7, 0.7])
    weights = rng.integers(0, 3, size=1200)
    X_given, X_copied = X, np.repeat(X, weights, axis=0)
    X_copied[rng.random(X_copied.shape) < 0.5] += -0.0  # no other sample
    if as_sparse:
        X_given, X_copied = map(sparse.csr_array, (X_given, X_copied))
    model = estimator(12, random_state=0)
    weighted = outputs(model.fit(X_given, y, sample_weight=weights), X)
    copied = model.fit(X_copied, np.repeat(y, weights))
    np.testing.assert_array_equal(outputs(copied, X), weighted)
    assert copied.dual_.shape[0] == weights.sum()


def test_copies_of_few_samples_are_few_samples(rng):
    """Two copies of 600 samples are sorted, and cross-validated, like 600 samples of weight 2."""
    X, y = data(rng, 600)
    model = FourierRegressor(12, random_state=0)
    weighted = model.fit(X, y, sample_weight=np.full(600, 2)).predict(X)
    order = rng.permutation(1200)
    copied = model.fit(np.tile(X, (2, 1))[order], np.tile(y, 2)[order]).predict(X)
    np.testing.assert_array_equal(copied, weighted)


@pytest.mark.parametrize("read", ["memory", "slices"])
def test_copies_are_on_one_side_of_a_split(rng, monkeypatch, read):
    """Labels are noise, which only copies of a held-out sample could tell."""
    X = np.repeat(rng.standard_normal((110, 4)), 20, axis=0)
    y = np.repeat(rng.integers(0, 2, size=110), 20)
    samples = X if read == "memory" else LazyArray(X)
    table = FourierClassifier(50, random_state=0).fit(samples, y).tuning_
    assert table["loss"].min() > 0.95 * np.log(2)


def test_scale_and_centre_are_weighted(rng):
    X = rng.standard_normal((400, 3))
    X[:200] *= 10
    weights = np.where(np.arange(400) < 200, 1.0, 1e-6)[:, None]
    weighted, large = Rows(X, weights), Rows(X[:200])
    np.testing.assert_allclose(weighted.mean(), large.mean(), atol=1e-4)
    ratio = median_distance(weighted, rng) / median_distance(large, rng)
    assert 0.85 < ratio < 1.15


def test_zonal_features_are_scaled_by_the_weighted_deviation(rng):
    X = rng.standard_normal((200, 5))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    weights = rng.integers(1, 4, size=200)
    rows, copied = Rows(X, weights[:, None].astype(float)), Rows(np.repeat(X, weights, axis=0))
    space = ZonalSphere(max_degree=3).resolve(rows, rng)
    frequencies = space.draw(6, rows, rng)
    np.testing.assert_allclose(
        space.scales(rows, frequencies), space.scales(copied, frequencies), rtol=1e-10
    )
    column = rng.standard_normal((200, 2))
    measures = weights[:, None] * column, np.repeat(column, weights, axis=0)
    both = [
        space.log_potential(each, measure, frequencies, 0.1, "aligned", np.float64(1))
        for each, measure in zip((rows, copied), measures, strict=True)
    ]
    for one, other in zip(*both, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("estimator", [FourierFeatures, FourierClassifier])
def test_class_weights_are_sample_weights(rng, estimator):
    X, y = data(rng, 200)
    y = np.digitize(y, [-1.5, 0.5])
    sizes = np.bincount(y)
    balanced = 200 / (3 * sizes)
    by_sample = estimator(10, **QUICK).fit(X, y, sample_weight=balanced[y])
    for class_weight in ("balanced", dict(enumerate(balanced))):
        by_class = estimator(10, class_weight=class_weight, **QUICK).fit(X, y)
        np.testing.assert_array_equal(outputs(by_class, X), outputs(by_sample, X))
    weights = rng.uniform(0.1, 3, size=200)
    totals = np.bincount(y, weights=weights)
    by_hand = weights * (totals.sum() / (3 * totals))[y]
    both = estimator(10, class_weight="balanced", **QUICK).fit(X, y, weights)
    expected = outputs(estimator(10, **QUICK).fit(X, y, by_hand), X)
    np.testing.assert_allclose(outputs(both, X), expected, rtol=1e-6)


def test_certificate_of_a_weighted_fit_equals_that_of_copies(rng):
    X, y = data(rng, 80)
    weights = rng.integers(0, 3, size=80)
    model = FourierFeatures(8, **QUICK)
    weighted = model.fit(X, y > 0, sample_weight=weights).certificate(X, y > 0)
    X, y = (np.repeat(part, weights, axis=0) for part in (X, y))
    copied = model.fit(X, y > 0).certificate(X, y > 0)
    for name in ("upper", "lower", "regret", "regret_bound", "bandwidth"):
        assert getattr(copied, name) == getattr(weighted, name)
    assert 0 < weighted.lower <= weighted.upper


def test_generalization_bound_counts_samples_and_needs_no_weights(rng):
    X, y = data(rng, 50)
    model = FourierFeatures(8, **QUICK)
    alone = model.fit(X, y > 0).certificate(X, y > 0).generalization
    X, y = np.repeat(X, 40, axis=0)[:1000], np.repeat(y, 40)[:1000]
    copies = model.fit(X, y > 0).certificate(X, y > 0).generalization
    assert copies < 0.9 * alone  # that of few samples is limited by the largest complexity
    weighted = model.fit(X, y > 0, np.full(1000, 2.0)).certificate(X, y > 0)
    assert np.isnan(weighted.generalization)
    assert np.isnan(weighted.sample_size)


INVALID = {
    "shape": (np.ones(9), r"shape \(9,\), but X has 10 samples"),
    "two columns": (np.ones((10, 2)), "shape"),
    "negative": ([1.0] * 9 + [-1.0], "-1.0 at sample 9"),
    "nan": ([np.nan] + [1.0] * 9, "nan at sample 0"),
    "zero": (np.zeros(10), "zero for all samples"),
    "text": (["a"] * 10, "must be numbers"),
    "numbers as text": (["2"] * 10, "must be numbers"),
    "complex": ([1j] * 10, "must be numbers"),
}


@pytest.mark.parametrize("case", INVALID)
@pytest.mark.parametrize("estimator", [FourierFeatures, FourierClassifier, FourierRegressor])
def test_invalid_sample_weights(rng, estimator, case):
    weights, message = INVALID[case]
    X, y = data(rng, 10)
    y = y if estimator is FourierRegressor else np.arange(10) % 2
    with pytest.raises(ValueError, match=message):
        estimator().fit(X, y, sample_weight=weights)


def test_weights_that_float32_or_the_classes_do_not_allow(rng):
    X, y = data(rng, 10)
    for weight in (1e60, 1e-60):
        weights = [weight] + [1.0] * 9
        with pytest.raises(ValueError, match="float32 can't hold"):
            FourierRegressor(2).fit(X.astype(np.float32), y, sample_weight=weights)
    labels = np.arange(10) % 2
    with pytest.raises(ValueError, match="only one class"):
        FourierClassifier().fit(X, labels, sample_weight=labels)


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ("even", "must be None, 'balanced' or a dict"),
        ([1, 2], "must be None, 'balanced' or a dict"),
        ({7: 1.0}, "class_weight has 7: 1.0"),
        ({0: -1.0}, "class_weight has 0: -1.0"),
        ({0: "x"}, "class_weight has 0: 'x'"),
    ],
)
def test_invalid_class_weights(rng, class_weight, message):
    X, y = data(rng, 10)
    with pytest.raises(ValueError, match=message):
        FourierClassifier(class_weight=class_weight).fit(X, np.arange(10) % 2)
    with pytest.raises(ValueError, match="has no classes"):
        FourierFeatures(loss="squared", class_weight="balanced").fit(X, y)


@pytest.mark.parametrize("as_sparse", [False, True])
def test_merged_samples_are_the_distinct_ones(rng, as_sparse):
    """In the order of their first appearance; minus zero is zero."""
    X = rng.integers(-1, 2, size=(2000, 8)).astype(np.float32)
    X[rng.random(X.shape) < 0.5] *= -0.0
    targets, weights = rng.integers(0, 2, size=(2000, 1)) * 2.0 - 1, rng.uniform(1, 2, (2000, 1))
    rows = Rows(sparse.csr_array(X) if as_sparse else X, weights)
    merged = merge_duplicates(Problem(LOSSES["hinge"], targets, rows))
    both = np.column_stack([X, targets]) + 0.0
    expected: dict = {}
    for number, row in enumerate(map(bytes, both)):
        expected.setdefault(row, []).append(number)
    assert 1024 < len(expected) < 2000
    first = [numbers[0] for numbers in expected.values()]
    found = merged.rows.array.toarray() if as_sparse else merged.rows.array
    np.testing.assert_array_equal(np.column_stack([found, merged.targets]), both[first])
    totals = [weights[numbers].sum() for numbers in expected.values()]
    np.testing.assert_allclose(merged.weights[:, 0], totals, rtol=1e-6)
    np.testing.assert_array_equal(merged.to_given(merged.targets), targets)


@pytest.mark.parametrize("as_sparse", [False, True])
def test_deduplication_is_independent_of_the_order(rng, as_sparse):
    X = rng.integers(0, 3, size=(40, 2)).astype(float)
    targets = rng.integers(0, 2, size=(40, 1)) * 2.0 - 1
    first, which = sort_and_deduplicate(sparse.csr_array(X) if as_sparse else X, targets)
    together = np.column_stack([X, targets])
    assert len(first) == len(np.unique(together, axis=0))
    np.testing.assert_array_equal(together[first][which], together)
    order = rng.permutation(40)
    shuffled = X[order]
    shuffled = sparse.csr_array(shuffled) if as_sparse else shuffled
    again, _ = sort_and_deduplicate(shuffled, targets[order])
    np.testing.assert_array_equal(together[order][again], together[first])
