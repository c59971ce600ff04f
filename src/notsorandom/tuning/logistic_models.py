"""Logistic models of trials: many at once, approximately, by truncated Newton steps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from notsorandom.data.rows import Array
from notsorandom.linear.newton_step import MAX_SLOPE, dots, find_roots

# A model takes about five steps, one with a large `C` about ten.
MAX_TRIAL_STEPS = 40
# The linear system of a step is solved until its residual is this share of the first, or with this
# many products with the Hessian: an exact solution would hardly be closer to the optimum.
LEAST_RESIDUAL = 0.3
MAX_PRODUCTS = 10
# Added to the curvature of the unpenalised intercept, as a share of the loss's largest: it has
# nearly none where all rows are far on the right side.
LOGISTIC_INTERCEPT_RIDGE = 1e-6
# Avoids divisions by zero.
TINY = 1e-30


@dataclass(frozen=True, eq=False)
class LogisticBatch:
    r"""Logistic models of several games and tasks, on features with a last column of ones.

    Each minimises :math:`\tfrac12 |w|^2 + C \sum_i m_i \log(1 + e^{-y_i f_i})`. Newton's linear
    systems are solved by conjugate gradients. They need only products of all models of a game with
    its features, and few, if the Hessian is nearly diagonal, as with features rotated to their
    principal directions.

    Arrays of models have the shape (n_games, n_tasks, ...).
    """

    design: Array  # (n_games, n_rows, n_columns)
    mass: Array  # weights of the rows, 0 for those held out: (n_games, n_rows)
    labels: Array  # (n_tasks, n_rows)
    C: Array  # (n_games, n_tasks)

    @cached_property
    def weights(self) -> Array:
        """`C` times the weights of the rows, of shape (n_games, n_tasks, n_rows)."""
        return self.C[:, :, None] * self.mass[:, None, :]

    @cached_property
    def squares(self) -> Array:
        """The squares of the design."""
        return np.square(self.design)

    @cached_property
    def penalty(self) -> Array:
        """Curvature of the penalty: none for the intercept."""
        return np.append(np.ones(self.design.shape[2] - 1), 0).astype(self.design.dtype)

    @cached_property
    def ridge(self) -> Array:
        """Curvature that each model has at least, of shape (n_games, n_tasks, n_columns)."""
        ridge = np.ones((*self.C.shape, self.design.shape[2]), dtype=self.design.dtype)
        ridge[..., -1] = (
            LOGISTIC_INTERCEPT_RIDGE * self.C * self.mass.sum(axis=1, keepdims=True) + TINY
        )
        return ridge

    def solve(self, tol: float) -> Array:
        """Return the models, with the intercepts last."""
        shape = self.C.shape
        models = np.zeros((*shape, self.design.shape[2]), dtype=self.design.dtype)
        margins = np.zeros((*shape, self.design.shape[1]), dtype=self.design.dtype)
        return self.continue_from(models, margins, tol, 0)

    def continue_from(self, models: Array, margins: Array, tol: float, n_steps: int) -> Array:
        """Solve given models, after `n_steps` that led to them."""
        probabilities, gradient = self.evaluate(models, margins)
        for number in range(n_steps, MAX_TRIAL_STEPS):
            steps = self.newton_steps(gradient, probabilities)
            gain = -dots(gradient, steps)
            changes = self.labels * (steps @ self.design.transpose(0, 2, 1))
            before = models, margins
            models, margins = models + steps, margins + changes
            probabilities, gradient = self.evaluate(models, margins)
            # The slope along the step increases from -gain. While it is small, the minimum is near.
            slopes = dots(gradient, steps)
            long = slopes > MAX_SLOPE * gain
            if long.any():
                fractions = self.line_search(*before, steps, changes, gain, slopes, long)
                models[long] -= (1 - fractions)[:, None] * steps[long]
                margins[long] -= (1 - fractions)[:, None] * changes[long]
                probabilities, gradient = self.evaluate(models, margins)
            # Before a full step about half of `gain` was left to gain, and after it much less. But
            # with a large `C` scores converge later than the objective, and a step costs little.
            allowed = tol * self.objectives(models, probabilities)
            unsolved = gain > np.where(long, 0.1, 0.2) * allowed
            games, tasks = (np.flatnonzero(unsolved.any(axis=axis)) for axis in (1, 0))
            if 2 * len(games) * len(tasks) <= unsolved.size:
                if len(games):
                    rest, part = np.ix_(games, tasks), self.part(games, tasks)
                    models[rest] = part.continue_from(models[rest], margins[rest], tol, number + 1)
                break
        return models

    def part(self, games: Array, tasks: Array) -> LogisticBatch:
        """Return the batch of some of the games and tasks."""
        return LogisticBatch(
            self.design[games],
            self.mass[games],
            self.labels[tasks],
            self.C[np.ix_(games, tasks)],
        )

    def evaluate(self, models: Array, margins: Array) -> tuple[Array, Array]:
        """Return the probabilities of the other labels, and the gradients."""
        probabilities = np.exp(margins)
        probabilities += 1
        np.reciprocal(probabilities, out=probabilities)
        dual = self.weights * probabilities
        dual *= self.labels
        return probabilities, self.penalty * models - dual @ self.design

    def objectives(self, models: Array, probabilities: Array) -> Array:
        """Return the objectives."""
        coef = models[..., :-1]
        losses = np.log(np.maximum(1 - probabilities, TINY))
        return 0.5 * dots(coef, coef) - dots(self.weights, losses)

    def newton_steps(self, gradient: Array, probabilities: Array) -> Array:
        """Return steps that nearly solve Newton's equations, by conjugate gradients."""
        weights = self.weights * probabilities * (1 - probabilities)
        by_row, ridge = self.design.transpose(0, 2, 1), self.ridge
        diagonal = weights @ self.squares + ridge
        steps, residuals = np.zeros_like(gradient), -gradient
        directions = residuals / diagonal
        size = dots(residuals, directions)
        allowed = LEAST_RESIDUAL**2 * size
        for _ in range(MAX_PRODUCTS):
            products = directions @ by_row
            products *= weights
            curved = products @ self.design + ridge * directions
            lengths = (size / np.maximum(dots(directions, curved), TINY))[..., None]
            steps += lengths * directions
            residuals -= lengths * curved
            scaled = residuals / diagonal
            last, size = size, dots(residuals, scaled)
            if np.all(size <= allowed):
                break
            directions = scaled + (size / np.maximum(last, TINY))[..., None] * directions
        return steps

    def line_search(
        self,
        models: Array,
        margins: Array,
        steps: Array,
        changes: Array,
        gain: Array,
        slopes: Array,
        long: Array,
    ) -> Array:
        """Return the fractions of steps that are too long which nearly minimise the objective.

        `slopes` are the slopes after the full step.
        """
        some, margins, changes = steps[long], margins[long], changes[long]
        linear = dots(self.penalty * models[long], some)
        square = dots(self.penalty * some, some)
        weighted = changes * self.weights[long]

        def slopes_at(fractions: Array) -> Array:
            probabilities = 1 / (1 + np.exp(margins + fractions[:, None] * changes))
            return linear + fractions * square - dots(weighted, probabilities)

        return find_roots(slopes_at, -gain[long], slopes[long], MAX_SLOPE * gain[long])
