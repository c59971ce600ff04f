import numpy as np
import pytest
import reference

from notsorandom.game import project, project_alternating


def setting(rng, n_samples=12, n_tasks=3):
    labels = np.where(rng.uniform(size=(n_samples, n_tasks)) < 0.3, 1.0, -1.0)
    labels[0], labels[1] = 1.0, -1.0
    return 2 * rng.standard_normal((n_samples, n_tasks)), labels


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("upper", [0.7, 3.0, np.inf])
def test_projection_solves_the_quadratic_program(seed, upper):
    point, labels = setting(np.random.default_rng(seed))
    result = project(point, labels, upper)
    for task in range(point.shape[1]):
        expected = reference.project(point[:, task], labels[:, task], upper)
        np.testing.assert_allclose(result[:, task], expected, atol=1e-6)


@pytest.mark.parametrize("upper", [1.0, np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_projection_is_feasible_and_idempotent(rng, upper, dtype, scale):
    point, labels = setting(rng, n_samples=5000)
    point, labels, upper = (scale * point).astype(dtype), labels.astype(dtype), scale * upper
    result = project(point, labels, upper)
    assert result.dtype == dtype
    assert (result >= 0).all()
    assert (result <= upper).all()
    balance = (labels * result).sum(axis=0, dtype=np.float64)
    assert (np.abs(balance) <= 1e-6 * result.sum(axis=0)).all()
    np.testing.assert_allclose(project(result, labels, upper), result, atol=1e-5 * scale)


def test_projection_of_points_below_the_box(rng):
    labels = np.array([[1.0], [-1.0], [-1.0]])
    np.testing.assert_array_equal(project(np.full((3, 1), -2.0), labels, 1.0), 0)


@pytest.mark.parametrize("seed", range(5))
def test_alternating_projection_ends_in_the_box_and_near_the_hyperplane(seed):
    """Algorithm 3 as printed ends on the hyperplane, outside the box."""
    point, labels = setting(np.random.default_rng(seed), n_samples=400, n_tasks=2)
    result = project_alternating(point, labels, 1.0)
    assert (result >= 0).all()
    assert (result <= 1).all()
    assert (np.abs((labels * result).sum(axis=0)) < 1e-3 * result.sum(axis=0)).all()


def test_both_projections_agree_on_what_is_feasible(rng):
    point, labels = setting(rng, n_samples=50)
    feasible = project(point, labels, 1.0)
    np.testing.assert_allclose(project_alternating(feasible, labels, 1.0), feasible, atol=1e-12)
