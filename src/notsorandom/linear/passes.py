"""One pass over the samples: the sums that a Newton step and a duality gap need."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from notsorandom.data.array_api import cast, to_host
from notsorandom.data.rows import Array
from notsorandom.game import Loss
from notsorandom.linear.newton_step import active_rows, active_sums, solve_hessian_of_sums

# Fractions of a step at which a pass computes slopes, for the line search: down to a millionth.
STEP_FRACTIONS = 0.5 ** np.arange(20, 0, -1)


@dataclass(frozen=True, eq=False)
class Iterate:
    """A linear model of one task, and the curvature of the loss at which it is evaluated.

    `step` is the step that led to the iterate if slopes along it are needed, of shape
    (n_features + 1,): its last number is the step of the intercept.
    """

    coef: Array
    intercept: float
    curvature: float
    step: Array | None = None

    def advance(self, step: Array, with_slopes: bool = False) -> Iterate:
        """Return the iterate after a step; `with_slopes` requests the slopes along it."""
        coef, intercept = self.coef + step[:-1], self.intercept + float(step[-1])
        return Iterate(coef, intercept, self.curvature, step if with_slopes else None)

    @property
    def model_and_step(self) -> Array:
        """Coefficients with the intercept last, and the step, of shape (2, n_features + 1)."""
        model = np.append(self.coef, self.intercept)
        return np.stack([model, np.zeros_like(model) if self.step is None else self.step])


@dataclass(frozen=True, eq=False)
class BlockPass:
    """A function of one block of samples that returns its sums for each iterate.

    It may be sent to another process, so it holds none of the samples. `features` computes the
    features of a block, in `dtype`. `tasks` has the column of the targets of each iterate.
    """

    features: Callable[[Any], Array]
    dtype: Any
    loss: Loss
    tasks: Array
    iterates: tuple[Iterate, ...]

    @np.errstate(invalid="ignore", over="ignore", divide="ignore")
    def __call__(self, X: Any, targets: Array, weights: Array | None = None) -> tuple[Array, ...]:
        """Return the block's sums, with one entry per iterate, in the order of PassResult."""
        features = to_host(self.features(cast(X, self.dtype)))
        targets = to_host(targets)[:, self.tasks].astype(np.float64)
        weights = to_host(weights)
        mass = np.ones((len(targets), 1)) if weights is None else weights.astype(np.float64)
        low, high = self.loss.box(targets)
        models = np.stack([iterate.model_and_step for iterate in self.iterates], axis=1)
        curvatures = np.array([iterate.curvature for iterate in self.iterates])
        scores, changes = (
            (features @ model[:, :-1].T.astype(self.dtype)).astype(np.float64) + model[:, -1]
            for model in models
        )
        residuals = targets - scores  # (n_rows, n_iterates)
        dual = self.loss.best_dual(residuals, low, high, curvatures)
        positive, negative = np.maximum(dual, 0), np.minimum(dual, 0)
        linear, squares = self.loss.concave_part(targets, dual, low, high), np.square(dual)

        def total(values: Array) -> Array:
            return (mass * values).sum(axis=0)  # (n_iterates,)

        smoothed = self.loss.concave_part(residuals, dual, low, high) - 0.5 * curvatures * squares
        losses = np.stack([total(self.loss.values(residuals, low, high)), total(smoothed)], axis=1)
        signs = dual > 0, dual < 0
        by_sign = [[total(np.where(sign, part, 0)) for sign in signs] for part in (linear, squares)]
        sides = np.array([[total(positive), total(negative)], *by_sign])
        active = self.loss.hessian_weights(dual, low, high, curvatures)
        parts = [mass * part for part in (positive, negative, active * dual)]
        aligned = (features.T @ np.concatenate(parts, axis=1).astype(self.dtype)).T
        aligned = aligned.reshape(3, len(self.iterates), -1)  # (3, n_iterates, n_features)
        roots = None if weights is None else np.sqrt(weights[:, 0])
        hessians = [active_sums(*active_rows(features, part, roots)) for part in active.T]
        grams, totals, active_weights = zip(*hessians, strict=True)
        slopes = np.zeros((len(self.iterates), len(STEP_FRACTIONS)))
        if changes.any():
            weighted = mass * changes
            for number, fraction in enumerate(STEP_FRACTIONS):
                before = residuals + (1 - fraction) * changes
                duals = self.loss.best_dual(before, low, high, curvatures)
                slopes[:, number] = (duals * weighted).sum(axis=0)
        return (
            losses,
            np.moveaxis(sides, 2, 0),
            slopes,
            np.stack(aligned, axis=1),
            np.stack(grams),
            np.stack(totals),
            np.array(active_weights),
            parts[2].sum(axis=0),
        )


@dataclass(frozen=True, eq=False)
class PassResult:
    r"""Sums over all samples at one iterate: objective, gradient, Hessian and a dual bound.

    The dual variables of the iterate's residuals are feasible except for the equality constraint
    :math:`\sum_i a_i = 0`. Scaling down the dual variables of the heavier sign restores it, so sums
    by sign give the objective of a feasible point.

    `gram`, `totals` and `active_weight` are sums of
    :func:`notsorandom.linear.newton_step.active_sums`.
    """

    iterate: Iterate
    # Sums of the loss and of the smoothed loss, of shape (2,).
    losses: Array
    # Sums of the dual variables, of their linear part of the dual objective, and of their squares.
    # In the columns, over positive and over negative dual variables: shape (3, 2).
    sides: Array
    # Sums of the dual variables at STEP_FRACTIONS times the change of the scores.
    slopes: Array
    # Sums of the features times the positive, the negative, and the active dual variables, of shape
    # (3, n_features).
    alignment: Array
    gram: Array
    totals: Array
    active_weight: Array
    active_dual: Array  # sum of the active dual variables

    @property
    def primal(self) -> float:
        """The primal objective."""
        return self._regularizer + float(self.losses[0])

    @property
    def smoothed_primal(self) -> float:
        """The primal objective with the smoothed loss."""
        return self._regularizer + float(self.losses[1])

    @property
    def _regularizer(self) -> float:
        return 0.5 * float(self.iterate.coef @ self.iterate.coef)

    @property
    def gradient(self) -> Array:
        """Gradient of the smoothed objective, of shape (n_features + 1,), the intercept last."""
        return np.append(self.iterate.coef - self.alignment[:2].sum(axis=0), -self.sides[0].sum())

    def dual_bound(self, loss: Loss, curvature: float) -> float:
        """Return a lower bound on the optimum of the loss smoothed to the given curvature."""
        above, below = float(self.sides[0, 0]), -float(self.sides[0, 1])
        heavier = max(above, below)
        scale = min(above, below) / heavier if heavier > 0 else 1.0
        factors = np.array([scale, 1.0] if above > below else [1.0, scale])
        linear = float(factors @ self.sides[1])
        square = float(np.square(factors @ self.alignment[:2]).sum())
        square += curvature * float(np.square(factors) @ self.sides[2])
        # The best multiple of the dual variables that certainly stays in the box.
        largest = 1.0 if math.isfinite(loss.upper) else math.inf
        multiple = min(max(linear, 0.0) / square, largest) if square > 0 else 0.0
        return multiple * linear - 0.5 * multiple**2 * square

    def step_slopes(self) -> Array:
        """Return the slopes of the smoothed objective at STEP_FRACTIONS of the last step."""
        step = self.iterate.step
        assert step is not None
        linear, square = self.iterate.coef @ step[:-1], step[:-1] @ step[:-1]
        return linear + (STEP_FRACTIONS - 1) * square - self.slopes

    def newton_step(self, ridge: float, precision: Any) -> Array:
        """Return Newton's step to the minimum of the smoothed objective."""
        return self.predict_step(self.iterate.curvature, ridge, precision)

    def predict_step(self, curvature: float, ridge: float, precision: Any) -> Array:
        """Return the step to the minimum for another curvature, if the rows keep their weights."""
        sums = self.gram, self.totals, float(self.active_weight)
        growth = self.iterate.curvature / curvature - 1
        gradient = self.gradient - growth * np.append(self.alignment[2], self.active_dual)
        return -solve_hessian_of_sums(*sums, curvature, ridge, gradient, precision)
