"""Logistic models of trials: many at once, approximately, by truncated Newton steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from notsorandom._utils.threads import cached_property
from notsorandom.data.rows import Array
from notsorandom.linear.newton_step import find_roots
from notsorandom.linear.softmax_step import (
    LOGISTIC_INTERCEPT_RIDGE,
    TINY,
    Preconditioner,
    conjugate_gradients,
    curve,
    inner,
    to_probabilities,
)

# A model takes about five steps, one with a large `C` about ten.
MAX_TRIAL_STEPS = 40
# Products with the Hessian in a step.
MAX_TRIAL_PRODUCTS = 10
# A line search ends where the slope is at most this share of the first, or after this many
# evaluations. The first step of several classes is much too long.
MAX_TRIAL_SLOPE, MAX_EVALUATIONS = 0.1, 12


@dataclass(frozen=True, eq=False)
class LogisticBatch:
    r"""Logistic models of several games and values of `C`, on features with a last column of ones.

    Each minimises :math:`\tfrac12 |W|^2 + C \sum_i m_i [\log \sum_k e^{f_{ik}} - f_{i y_i}]`. With
    one task, there is a second class whose scores are zero. Newton's linear systems are solved by
    conjugate gradients. They need only products of all models of a game with its features, and
    few, if the Hessian is nearly diagonal, as with features rotated to their principal directions.

    Arrays of models have the shape (n_games, n_C, n_tasks, ...).
    """

    design: Array  # (n_games, n_rows, n_columns)
    mass: Array  # weights of the rows, 0 for those held out: (n_games, n_rows)
    is_class: Array  # 1 or 0, of the type of the design: (n_tasks, n_rows)
    C: Array  # (n_C,)

    @cached_property
    def weights(self) -> Array:
        """`C` times the weights of the rows, of shape (n_games, n_C, n_rows)."""
        return self.C[:, None] * self.mass[:, None]

    @cached_property
    def squares(self) -> Array:
        """The squares of the design."""
        return np.square(self.design)

    @cached_property
    def penalty(self) -> Array:
        """Curvature of the penalty: none for the intercept."""
        return np.append(np.ones(self.design.shape[2] - 1), 0).astype(self.design.dtype)

    def times_design(self, values: Array, design: Array) -> Array:
        """Return products of values of all models with the design of their games."""
        n_games, n_C, n_tasks, n_rows = values.shape
        products = values.reshape(n_games, n_C * n_tasks, n_rows) @ design
        return products.reshape(n_games, n_C, n_tasks, -1)

    def scores_of(self, models: Array) -> Array:
        """Return the scores of models, or the changes of the scores by steps."""
        return self.times_design(models, self.design.transpose(0, 2, 1))

    def solve(self, tol: float, start: Array | None = None) -> Array:
        """Return the models, with the intercepts last, from models to start from if given."""
        if start is not None:
            return self.continue_from(start, self.scores_of(start), tol, 1)
        shape = len(self.design), len(self.C), *self.is_class.shape
        models = np.zeros((*shape[:3], self.design.shape[2]), dtype=self.design.dtype)
        scores = np.zeros(shape, dtype=self.design.dtype)
        if shape[2] > 1:
            # Intercepts alone would have the logarithms of the classes' weights.
            counts = np.maximum(self.mass @ self.is_class.T, TINY)  # (n_games, n_tasks)
            models[..., -1] = np.log(counts)[:, None]
            scores += models[..., -1:]
        return self.continue_from(models, scores, tol, 0)

    def continue_from(self, models: Array, scores: Array, tol: float, n_steps: int) -> Array:
        """Solve given models, after `n_steps` that led to them."""
        probabilities = self.probabilities(scores)
        for number in range(n_steps, MAX_TRIAL_STEPS):
            gradient = self.gradients(models, probabilities)
            is_first = number == 0 and models.shape[2] > 1
            steps = (
                self.first_steps(gradient)
                if is_first
                else self.newton_steps(gradient, probabilities)
            )
            gain = -inner(gradient, steps)
            changes = self.scores_of(steps)
            fractions = self.line_search(models, scores, steps, changes, gain)
            models = models + fractions[..., None, None] * steps
            changes *= fractions[..., None, None]
            scores = scores + changes
            probabilities = self.probabilities(scores)
            # Before a full step about half of `gain` was left to gain, and after it much less. But
            # with a large `C` scores converge later than the objective, and a step costs little.
            allowed = tol * self.objectives(models, probabilities)
            unsolved = gain > np.where(fractions < 1, 0.1, 0.2) * allowed
            games, values = (np.flatnonzero(unsolved.any(axis=axis)) for axis in (1, 0))
            if 2 * len(games) * len(values) <= unsolved.size:
                if len(games):
                    rest, part = np.ix_(games, values), self.part(games, values)
                    models[rest] = part.continue_from(models[rest], scores[rest], tol, number + 1)
                break
        return models

    def part(self, games: Array, values: Array) -> LogisticBatch:
        """Return the batch of some of the games and values of `C`."""
        return LogisticBatch(self.design[games], self.mass[games], self.is_class, self.C[values])

    def probabilities(self, scores: Array) -> Array:
        """Return the probabilities of the classes."""
        result = scores.copy()
        to_probabilities(result)
        return result

    def gradients(self, models: Array, probabilities: Array) -> Array:
        """Return the gradients of the objectives."""
        measure = self.is_class - probabilities
        measure *= self.weights[:, :, None]
        return self.penalty * models - self.times_design(measure, self.design)

    def objectives(self, models: Array, probabilities: Array) -> Array:
        """Return the objectives, of shape (n_games, n_C)."""
        likelihoods = (probabilities * self.is_class).sum(axis=2)
        if len(self.is_class) == 1:
            likelihoods += ((1 - probabilities) * (1 - self.is_class)).sum(axis=2)
        losses = -np.log(np.maximum(likelihoods, TINY))
        coef = models[..., :-1]
        return 0.5 * inner(coef, coef) + np.einsum("...i,...i->...", self.weights, losses)

    def first_steps(self, gradient: Array) -> Array:
        """Return steps as in :meth:`notsorandom.linear.softmax.CurvedRows.first_step`."""
        squares = (self.mass[:, None] @ self.squares)[:, :, None]  # (n_games, 1, 1, n_columns)
        steps = -gradient / (1 + self.C[:, None, None] * squares / gradient.shape[2])
        steps[..., -1] = 0
        return steps

    def newton_steps(self, gradient: Array, probabilities: Array) -> Array:
        """Return steps that nearly solve Newton's equations, by conjugate gradients."""
        weights = self.weights[:, :, None]
        variances = weights * probabilities * (1 - probabilities)
        sums, squares = (self.times_design(variances, part) for part in (self.design, self.squares))
        ridge = gradient.dtype.type(LOGISTIC_INTERCEPT_RIDGE) * weights.sum(axis=-1) + TINY

        def product(steps: Array) -> Array:
            changes = curve(self.scores_of(steps), probabilities)
            changes *= weights
            return self.times_design(changes, self.design) + self.penalty * steps

        precondition = Preconditioner.from_sums(sums, squares, ridge)
        return conjugate_gradients(product, precondition, gradient, MAX_TRIAL_PRODUCTS)

    def line_search(
        self, models: Array, scores: Array, steps: Array, changes: Array, gain: Array
    ) -> Array:
        """Return the fractions of the steps, up to 1, that nearly minimise the objectives."""
        coef, moves = models[..., :-1], steps[..., :-1]
        parts = inner(coef, moves), inner(moves, moves), scores, changes, self.weights

        def slopes(fractions: Array, *parts: Array) -> Array:
            linear, square, scores, changes, weights = parts
            measure = self.probabilities(scores + fractions[..., None, None] * changes)
            measure -= self.is_class
            by_row = np.einsum("...ki,...ki->...i", measure, changes)
            return linear + fractions * square + np.einsum("...i,...i->...", by_row, weights)

        fractions = np.ones_like(gain)
        last = slopes(fractions, *parts)
        # The slope increases from -gain. While it is small, the minimum is near.
        largest = gain.dtype.type(MAX_TRIAL_SLOPE) * gain
        long = (last > largest) & (gain > 0)  # which rounding may make negative at the optimum
        if long.any():
            some = [part[long] for part in parts]
            fractions[long] = find_roots(
                lambda each: slopes(each, *some),
                -gain[long],
                last[long],
                largest[long],
                MAX_EVALUATIONS,
            )
        return fractions
