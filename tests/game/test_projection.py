import numpy as np
import pytest
import reference

from notsorandom.game import QuadraticLoss, project
from notsorandom.game.projection import nearest_lines


def project_alternating(*arrays):
    return project(*arrays, projection="alternating")


def box(labels, upper):
    return QuadraticLoss(upper, 0.0, 0.5).box(labels)


def random_point(rng, n_samples=12, n_tasks=3):
    labels = np.where(rng.uniform(size=(n_samples, n_tasks)) < 0.3, 1.0, -1.0)
    labels[0], labels[1] = 1.0, -1.0
    return 2 * rng.standard_normal((n_samples, n_tasks)), labels


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("upper", [0.7, 3.0, np.inf])
def test_projection_solves_the_quadratic_program(seed, upper):
    point, labels = random_point(np.random.default_rng(seed))
    result = project(point * labels, *box(labels, upper)) * labels
    for task in range(point.shape[1]):
        expected = reference.project(point[:, task], labels[:, task], upper)
        np.testing.assert_allclose(result[:, task], expected, atol=1e-6)


@pytest.mark.parametrize("upper", [1.0, np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_projection_is_feasible_and_idempotent(rng, upper, dtype, scale):
    point, labels = random_point(rng, n_samples=5000)
    point, labels, upper = (scale * point).astype(dtype), labels.astype(dtype), scale * upper
    low, high = box(labels, upper)
    result = project(point, low, high)
    assert result.dtype == dtype
    assert (result >= low).all()
    assert (result <= high).all()
    balance = result.sum(axis=0, dtype=np.float64)
    assert (np.abs(balance) <= 1e-6 * np.abs(result).sum(axis=0)).all()
    np.testing.assert_allclose(project(result, low, high), result, atol=1e-5 * scale)


@pytest.mark.parametrize("upper", [0.7, 3.0, np.inf])
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("weighted", [False, True])
def test_lines_are_projected_as_tasks_are(upper, seed, weighted):
    """Also where some limits are zero on both sides: rows that are held out."""
    rng = np.random.default_rng(seed)
    point, labels = random_point(rng, n_samples=40, n_tasks=20)
    weights = rng.uniform(0.5, 3, size=40) if weighted else np.ones(40)
    kept = rng.uniform(size=point.shape) < 0.8
    kept[:2] = True  # of both classes
    low, high = (np.where(kept, side, 0.0) for side in box(labels, upper))
    expected = project(point, low, high, weights[:, None])
    result = nearest_lines(*(np.ascontiguousarray(part.T) for part in (point, low, high)), weights)
    np.testing.assert_allclose(result.T, expected, atol=1e-11)


@pytest.mark.parametrize("upper", [0.7, np.inf])
@pytest.mark.parametrize("seed", range(5))
def test_weights_equal_repeated_samples(upper, seed):
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 4, size=12)
    for one_sided in (True, False):
        point, labels = random_point(rng)
        low, high = QuadraticLoss(upper, 0.1, 0.5, one_sided=one_sided).box(labels)
        repeated = [np.repeat(part, counts, axis=0) for part in (point, low, high)]
        for method, tolerance in ((project, 1e-12), (project_alternating, 1e-9)):
            weighted = method(point, low, high, counts[:, None].astype(float))
            expected = np.repeat(weighted, counts, axis=0)
            np.testing.assert_allclose(method(*repeated), expected, atol=tolerance)


def test_projection_of_a_point_outside_the_box_in_every_sample(rng):
    labels = np.array([[1.0], [-1.0], [-1.0]])
    np.testing.assert_array_equal(project(-2.0 * labels, *box(labels, 1.0)), 0)


@pytest.mark.parametrize("seed", range(5))
def test_alternating_projection_ends_in_the_box_and_near_the_hyperplane(seed):
    """Algorithm 3 as printed ends on the hyperplane, outside the box."""
    point, labels = random_point(np.random.default_rng(seed), n_samples=400, n_tasks=2)
    low, high = box(labels, 1.0)
    result = project_alternating(point, low, high)
    assert (result >= low).all()
    assert (result <= high).all()
    assert (np.abs(result.sum(axis=0)) < 1e-3 * np.abs(result).sum(axis=0)).all()


def test_both_projections_keep_a_feasible_point(rng):
    point, labels = random_point(rng, n_samples=50)
    feasible = project(point, *box(labels, 1.0))
    again = project_alternating(feasible, *box(labels, 1.0))
    np.testing.assert_allclose(again, feasible, atol=1e-12)


def test_alternating_projection_is_not_the_projection():
    """Both end in the feasible set, but on random points not at the same point."""
    rng, farthest = np.random.default_rng(0), 0.0
    for _ in range(200):
        labels = np.where(rng.random((12, 1)) < 0.3, 1.0, -1.0)
        if abs(labels.sum()) < 12:
            point = labels * rng.normal(0.5, 1.5, size=(12, 1))
            exact = project(point, *box(labels, 1.0))
            rough = project_alternating(point, *box(labels, 1.0))
            assert abs(rough.sum()) < 0.1
            farthest = max(farthest, float(np.abs(exact - rough).max()))
    assert farthest > 0.41
