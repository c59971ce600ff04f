"""Rows whose features give the Hessian of a softmax model, and so Newton's steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from notsorandom._utils.threads import cached_property
from notsorandom.data.array_api import to_host
from notsorandom.data.rows import Array, Rows
from notsorandom.game import Problem
from notsorandom.linear.newton_step import find_roots
from notsorandom.linear.softmax_pass import Evaluation, block_sums, row_mass
from notsorandom.linear.softmax_step import (
    LOGISTIC_INTERCEPT_RIDGE,
    Preconditioner,
    conjugate_gradients,
    curve,
    inner,
    to_probabilities,
)

# Products with the Hessian in a step. Five to twenty are usual, more only with a large `C`.
MAX_PRODUCTS = 50
# A line search ends where the slope is at most this share of the first, or after this many
# evaluations: the first step, from the zero model, is much too long. An evaluation needs no product
# with the features.
MAX_SCORE_SLOPE, MAX_SCORE_SLOPES = 0.02, 20
# Rows of each class that the preconditioner treats exactly, if there are at least as many columns
# as WIDE. With 10,003 rows, 77 classes and 484 columns they save a third of the products at C = 10
# and more than half at C = 300; with 100 columns they cost what they save.
N_HEAVIEST, WIDE = 48, 256


@dataclass(frozen=True, eq=False)
class Basis:
    """Principal directions of some features, of shape (n_features, n_directions), and the mean."""

    mean: Array
    directions: Array

    @classmethod
    def of(cls, rows: Rows, complete: bool) -> Basis:
        """Return the principal directions of features; if not `complete`, those in their span."""
        mean = rows.mean().astype(np.float64)
        if len(rows) < rows.n_features and not complete:
            roots = np.sqrt(rows.weights) if rows.weights is not None else 1.0
            # Models are in the span of the rows.
            return cls(mean, np.linalg.svd((rows.array - mean) * roots, full_matrices=False)[2].T)

        def sums(X: Array, weights: Any = None) -> tuple[Array]:
            return ((X if weights is None else weights * X).T @ X,)

        (gram,) = rows.sum_blocks(
            sums, *rows.weight_columns, width=rows.n_features, dtype=np.float64
        )
        gram -= rows.total_weight * np.outer(mean, mean)
        return cls(mean, np.linalg.eigh((gram + gram.T) / 2)[1])

    def rotated(self, X: Array) -> Array:
        """Return features in the basis."""
        return (X - self.mean.astype(X.dtype)) @ self.directions.astype(X.dtype)

    def to_features(self, model: Array) -> Array:
        """Return the model on the features, given the model in the basis."""
        coef = model[:, :-1] @ self.directions.T
        return np.column_stack([coef, model[:, -1] - coef @ self.mean])

    def gradient(self, gradient: Array) -> Array:
        """Return the gradient in the basis, given the gradient on the features.

        The penalty's part of it is that of a model in the basis, whose intercept has none.
        """
        last = gradient[:, -1:]
        return np.column_stack([(gradient[:, :-1] - last * self.mean) @ self.directions, last])


@dataclass(frozen=True, eq=False)
class CurvedRows:
    """Rows whose features give the Hessian at a model, best in the basis of their own directions.

    `features` computes the features of a block, in `dtype`; the rows may be anywhere. The scores
    are computed when they are needed, if they are not known.
    """

    problem: Problem
    model: Array
    features: Callable[[Any], Array]
    dtype: np.dtype[Any]
    known_scores: Any = None

    def moved(self, step: Array, fraction: float, changes: Any = None) -> CurvedRows:
        """Return the rows after a fraction of a step, given its changes of the scores if known."""
        scores = None
        if changes is not None:
            factor = self.dtype.type(fraction)
            scores = self.problem.rows.columns_only.map(
                lambda _, s, c: s + factor * c, self.scores, changes, width=len(step)
            )
        return replace(self, model=self.model + fraction * step, known_scores=scores)

    def scores_of(self, model: Array) -> Any:
        """Return the scores of a model, a column of shape (n_rows, n_classes)."""
        features, model = self.features, model.astype(self.dtype)
        return self.problem.rows.map(
            lambda X: features(X) @ model[:, :-1].T + model[:, -1], width=self.model.shape[1]
        )

    @cached_property
    def scores(self) -> Any:
        """The scores of the rows."""
        return self.scores_of(self.model) if self.known_scores is None else self.known_scores

    def evaluate(self) -> Evaluation:
        """Evaluate the model on these rows."""
        features, C = self.features, self.problem.loss.upper

        def compute(X: Any, scores: Any, targets: Any, weights: Any = None) -> tuple[Array, ...]:
            scores = to_host(scores).copy()
            mass = row_mass(weights, C, scores)
            return block_sums(features(X), scores, to_host(targets), mass)

        rows = self.problem.rows
        columns = self.scores, self.problem.targets, *rows.weight_columns
        width = self.model.shape[1]
        return Evaluation.from_sums(
            self.model, *rows.sum_blocks(compute, *columns, width=width, dtype=np.float64)
        )

    @cached_property
    def probabilities(self) -> Any:
        """The probabilities of the classes, a column of shape (n_rows, n_classes)."""

        def compute(_: Any, scores: Array) -> Array:
            result = scores.copy()
            to_probabilities(result.T)
            return result

        return self.problem.rows.columns_only.map(compute, self.scores, width=len(self.model))

    def sum(self, function: Callable[..., tuple[Array, ...]]) -> tuple[Array, ...]:
        """Sum a function of features, probabilities and masses over the rows.

        A row's mass is `C` times its weight.
        """
        features, C = self.features, self.problem.loss.upper

        def compute(X: Any, probabilities: Any, weights: Any = None) -> tuple[Array, ...]:
            probabilities = to_host(probabilities)
            mass = row_mass(weights, C, probabilities)
            return function(features(X), probabilities, mass[:, None])

        rows = self.problem.rows
        columns = self.probabilities, *rows.weight_columns
        return rows.sum_blocks(compute, *columns, width=self.model.shape[1], dtype=self.dtype)

    def newton_step(self, gradient: Array) -> Array:
        """Return a step that nearly solves Newton's equations."""
        dtype = self.dtype
        penalty = np.append(np.ones(self.model.shape[1] - 1), 0).astype(dtype)

        def product(step: Array) -> Array:
            def block_product(X: Array, probabilities: Array, mass: Array) -> tuple[Array]:
                changes = X @ step[:, :-1].T
                changes += step[:, -1]
                curve(changes.T, probabilities.T)
                changes *= mass
                return (np.column_stack([changes.T @ X, changes.sum(axis=0)]),)

            return self.sum(block_product)[0] + penalty * step

        def curvature_sums(X: Array, probabilities: Array, mass: Array) -> tuple[Array, Array]:
            variances = mass * probabilities * (1 - probabilities)
            total = variances.sum(axis=0)
            first, second = variances.T @ X, variances.T @ np.square(X)
            return np.column_stack([first, total]), np.column_stack([second, total])

        sums, squares = self.sum(curvature_sums)
        total = self.problem.loss.upper * self.problem.total_weight
        ridge = dtype.type(LOGISTIC_INTERCEPT_RIDGE * total)
        precondition = Preconditioner.from_sums(sums, squares, ridge)
        if self.has_heaviest:
            precondition = precondition.with_rows(*self.heaviest_rows())
        step = conjugate_gradients(product, precondition, gradient.astype(dtype), MAX_PRODUCTS)
        return step.astype(np.float64)

    @property
    def has_heaviest(self) -> bool:
        """Whether the preconditioner has rows of its own, which pays with many columns."""
        rows, (n_classes, n_numbers) = self.problem.rows, self.model.shape
        held = isinstance(rows.array, np.ndarray)
        return held and n_numbers > WIDE and len(rows) >= N_HEAVIEST * n_classes

    def heaviest_rows(self) -> tuple[Array, Array]:
        """Return the features of the rows of the largest curvatures for each class, and these.

        They have the shapes (n_classes, N_HEAVIEST, n_columns) and (n_classes, N_HEAVIEST).
        """
        rows, probabilities = self.problem.rows, self.probabilities
        mass = row_mass(rows.weights, self.problem.loss.upper, probabilities)
        curvatures = np.ascontiguousarray((mass[:, None] * probabilities * (1 - probabilities)).T)
        chosen = np.argpartition(curvatures, -N_HEAVIEST)[:, -N_HEAVIEST:]
        features = self.features(rows.array[chosen.ravel()]).reshape(*chosen.shape, -1)
        return features, np.take_along_axis(curvatures, chosen, axis=1)

    def first_step(self, gradient: Array) -> Array:
        """Return Newton's step from the zero model, as if all classes had equal weights.

        The Hessian is diagonal there. Where classes are of different weights, Newton's own step
        would be longest for the lightest one.
        """
        (squares,) = self.sum(lambda X, _, mass: (mass[:, 0] @ np.square(X),))
        step = np.zeros_like(gradient)
        step[:, :-1] = -gradient[:, :-1] / (1 + squares / len(gradient))
        return step

    def line_search(self, step: Array, changes: Any, gain: float) -> float:
        """Return the fraction of a step that nearly minimises the objective of these rows.

        `changes` are the step's changes of the scores.
        """
        coef, moves = self.model[:, :-1], step[:, :-1]
        linear, square = float(inner(coef, moves)), float(inner(moves, moves))
        C, rows = self.problem.loss.upper, self.problem.rows
        columns = self.scores, changes, self.problem.targets, *rows.weight_columns

        def slope(fraction: float) -> float:
            factor = self.dtype.type(fraction)

            def block_slope(_: Any, s: Array, c: Array, t: Array, w: Any = None) -> tuple[Any]:
                moved = s + factor * c
                to_probabilities(moved.T)
                moved -= t > 0
                by_row = np.einsum("ij,ij->i", moved, c).astype(np.float64)
                return (by_row @ row_mass(w, C, by_row),)

            (total,) = rows.columns_only.sum_blocks(
                block_slope, *columns, width=len(step), dtype=np.float64
            )
            return float(linear + fraction * square + total)

        last = slope(1.0)
        if not last > MAX_SCORE_SLOPE * gain > 0:
            return 1.0
        slopes = np.vectorize(slope, otypes=[np.float64])
        ends = np.array([-gain]), np.array([last])
        return float(
            find_roots(slopes, *ends, np.array([MAX_SCORE_SLOPE * gain]), MAX_SCORE_SLOPES)[0]
        )
