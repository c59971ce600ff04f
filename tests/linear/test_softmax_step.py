"""Parts of Newton's method for softmax models, against dense linear algebra."""

import numpy as np

from notsorandom.linear.softmax_step import Preconditioner, conjugate_gradients


def test_conjugate_gradients_solve_each_system(rng):
    """With a preconditioner that is exact for one class, in one product."""
    rows, variances = rng.standard_normal((3, 50, 4)), rng.uniform(size=(3, 1, 50))
    gram = np.einsum("gki,gij->gkj", variances, np.square(rows))
    sums = np.concatenate([variances @ rows, variances.sum(axis=-1, keepdims=True)], axis=-1)
    squares = np.concatenate([gram, sums[..., -1:]], axis=-1)
    precondition = Preconditioner.from_sums(sums, squares, np.full((3, 1), 0.1))
    gradient = rng.standard_normal((3, 1, 5))

    def product(steps):
        coef, last = steps[..., :-1], steps[..., -1:]
        total, means = sums[..., -1:], precondition.means
        moved = last + (means * coef).sum(axis=-1, keepdims=True)
        diagonal = precondition.curvatures
        intercepts = (total + 0.1) * moved
        return np.concatenate([diagonal[..., :-1] * coef + means * intercepts, intercepts], axis=-1)

    steps = conjugate_gradients(product, precondition, gradient, 1)
    np.testing.assert_allclose(product(steps), -gradient, rtol=1e-9, atol=1e-9)


def test_preconditioner_is_exact_for_its_own_rows(rng):
    """For one class, where the other rows have a direction of their own."""
    rows, curvatures = np.zeros((20, 5)), rng.uniform(size=20)
    rows[:18, :4] = rng.standard_normal((18, 4))
    rows[:18] -= curvatures[:18] @ rows[:18] / curvatures[:18].sum()
    rows[18:, 4] = 1, -curvatures[18] / curvatures[19]
    rows += rng.standard_normal(5)  # the mean doesn't matter
    design = np.column_stack([rows, np.ones(20)])
    weighted = curvatures[:, None] * design
    hessian = design.T @ weighted + np.diag([1.0] * 5 + [0.0])
    sums, squares = weighted.sum(axis=0)[None], (design * weighted).sum(axis=0)[None]
    diagonal = Preconditioner.from_sums(sums, squares, 0.0)
    heaviest = diagonal.with_rows(rows[None, :18], curvatures[None, :18])
    gradient = rng.standard_normal((1, 6))
    assert np.abs(hessian @ diagonal(gradient)[0] - gradient[0]).max() > 0.1
    np.testing.assert_allclose(hessian @ heaviest(gradient)[0], gradient[0], atol=1e-9)
