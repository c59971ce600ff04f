"""One pass over the samples for the linear model at the end: what is asked, and what it tells."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from notsorandom.data.array_api import cast, to_host
from notsorandom.data.rows import Array
from notsorandom.game import Loss
from notsorandom.linear.newton import corner_sums, solve_by_features

# How many numbers a pass sums up, beside those for the shares of a step.
N_NUMBERS = 9
# Slopes are known at these shares of a step.
SHARES = 0.5 ** np.arange(20, 0, -1)


@dataclass(frozen=True, eq=False)
class Point:
    """Where a task is: a linear model, and how round the corners of its loss are there.

    Parameters
    ----------
    coef : ndarray of shape (n_features,)
    intercept : float
    curvature : float
    step : ndarray of shape (n_features + 1,), optional
        That led here, and along which slopes are asked for; the intercept's part is the last.
    """

    coef: Array
    intercept: float
    curvature: float
    step: Array | None = None

    def moved(self, step: Array, asking: bool = False) -> Point:
        """The point so far away, which may ask for slopes on the way."""
        coef, intercept = self.coef + step[:-1], self.intercept + float(step[-1])
        return Point(coef, intercept, self.curvature, step if asking else None)

    @property
    def columns(self) -> Array:
        """Model and step, of shape (2, n_features + 1)."""
        model = np.append(self.coef, self.intercept)
        return np.stack([model, np.zeros_like(model) if self.step is None else self.step])


@dataclass(frozen=True, eq=False)
class Pass:
    """What is summed over the rows: called with a block of them, it returns the block's sums.

    It travels to whoever holds the block, so it holds nothing of the samples.

    Parameters
    ----------
    make : callable
        Makes the features of a block.
    dtype : dtype
        Of the features.
    loss : Loss
    tasks : ndarray of shape (n_points,)
        Columns of the targets.
    points : tuple of Point
        One for each of the tasks.
    """

    make: Callable[[Any], Array]
    dtype: Any
    loss: Loss
    tasks: Array
    points: tuple[Point, ...]

    @np.errstate(invalid="ignore")
    def __call__(self, X: Any, targets: Array, weights: Array | None = None) -> tuple[Array, ...]:
        """Sums for each point: numbers, vectors and a matrix, in the order of :class:`PassResult`."""
        features = to_host(self.make(cast(X, self.dtype)))
        targets = to_host(targets)[:, self.tasks].astype(np.float64)
        weights = to_host(weights)
        mass = np.ones((len(targets), 1)) if weights is None else weights.astype(np.float64)
        low, high = self.loss.box(targets)
        models = np.stack([point.columns for point in self.points], axis=1)
        curvatures = np.array([point.curvature for point in self.points])
        scores, changes = (
            (features @ model[:, :-1].T.astype(self.dtype)).astype(np.float64) + model[:, -1]
            for model in models
        )
        residuals = targets - scores
        dual = self.loss.best_dual(residuals, low, high, curvatures)
        positive, negative = np.maximum(dual, 0), np.minimum(dual, 0)
        thick = self.loss.epsilon * np.abs(dual)
        gains, squares = targets * dual - thick, np.square(dual)
        numbers = (
            self.loss.values(residuals, low, high),
            dual * residuals - thick - 0.5 * curvatures * squares,
            positive,
            negative,
            np.where(dual > 0, gains, 0),
            np.where(dual < 0, gains, 0),
            np.where(dual > 0, squares, 0),
            np.where(dual < 0, squares, 0),
        )
        signed = np.concatenate([mass * positive, mass * negative], axis=1).astype(self.dtype)
        aligned = (features.T @ signed).T.reshape(2, len(self.points), -1)
        inside = (dual != 0) & (dual > low) & (dual < high)
        grams, totals, masses = zip(
            *(corner_sums(*of_corner(features, which, weights, self.dtype)) for which in inside.T),
            strict=True,
        )
        sums = np.zeros((len(self.points), N_NUMBERS + len(SHARES)))
        sums[:, 0] = masses
        for column, number in enumerate(numbers, start=1):
            sums[:, column] = (mass * number).sum(axis=0)
        if changes.any():
            on_the_way = residuals + (1 - SHARES)[:, None, None] * changes  # (n_shares, n_rows, ..)
            answers = self.loss.best_dual(on_the_way, low, high, curvatures)
            sums[:, N_NUMBERS:] = (answers * (mass * changes)).sum(axis=1).T
        return (
            sums,
            np.stack([*aligned, totals], axis=1),
            np.stack(grams),
        )


def of_corner(
    features: Array, inside: Array, weights: Array | None, dtype: Any
) -> tuple[Array, Array | None]:
    """Features of the rows in a corner times the roots of their weights, and these."""
    if weights is None:
        return features[inside], None
    roots = np.sqrt(weights[inside, 0]).astype(dtype)
    return features[inside] * roots[:, None], roots


@dataclass(frozen=True, eq=False)
class PassResult:
    r"""What a pass tells of one point.

    The dual variables that answer the point's residuals may all be played but for their balance,
    :math:`\sum_i a_i = 0`, which is restored by scaling down the side that is too heavy: sums over
    either side are all that it takes to know what the feasible ones are paid.

    Parameters
    ----------
    point : Point
    numbers : ndarray of shape (9 + len(SHARES),)
        The rows in the corner, and sums over the samples: of the loss, the loss with rounded
        corners, the positive and the negative dual variables, what they are paid and their
        squares; of the dual variables at shares of the step, times how the score changes by it.
    vectors : ndarray of shape (3, n_features)
        Sums of features times positive and negative dual variables; of those in the corner.
    gram : ndarray of shape (n_features, n_features)
        Of those in the corner.
    """

    point: Point
    numbers: Array
    vectors: Array
    gram: Array

    @property
    def primal(self) -> float:
        """The objective."""
        return self._half_square + float(self.numbers[1])

    @property
    def rounded_primal(self) -> float:
        """The objective with rounded corners."""
        return self._half_square + float(self.numbers[2])

    @property
    def _half_square(self) -> float:
        return 0.5 * float(self.point.coef @ self.point.coef)

    @property
    def gradient(self) -> Array:
        """Of the objective with rounded corners; the intercept's is last."""
        sides = self.vectors[:2].sum(axis=0)
        return np.append(self.point.coef - sides, -self.numbers[3:5].sum())

    def dual(self, loss: Loss, curvature: float) -> float:
        """A lower bound on the optimum of the loss with corners of such a curvature."""
        above, below = float(self.numbers[3]), -float(self.numbers[4])
        heavy = max(above, below)
        scale = min(above, below) / heavy if heavy > 0 else 1.0
        shares = np.array([scale, 1.0] if above > below else [1.0, scale])
        gain = float(shares @ self.numbers[5:7])
        square = float(np.square(shares @ self.vectors[:2]).sum())
        square += curvature * float(np.square(shares) @ self.numbers[7:9])
        # The best multiple of it that surely stays in the box.
        most = 1.0 if math.isfinite(loss.upper) else math.inf
        multiple = min(max(gain, 0.0) / square, most) if square > 0 else 0.0
        return multiple * gain - 0.5 * multiple**2 * square

    def slopes(self) -> Array:
        """Slopes of the objective with rounded corners along the step, at the shares of it."""
        step = self.point.step
        assert step is not None
        linear, square = self.point.coef @ step[:-1], step[:-1] @ step[:-1]
        return linear + (SHARES - 1) * square - self.numbers[N_NUMBERS:]

    def newton(self, total_weight: float, precision: Any) -> Array:
        """Newton's step to the lowest point of the objective with rounded corners."""
        return -solve_by_features(
            self.gram,
            self.vectors[2],
            float(self.numbers[0]),
            self.point.curvature,
            total_weight,
            self.gradient,
            precision,
        )
