"""Linear models of trials: many small ones at once, approximately."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from notsorandom._utils.threads import cached_property
from notsorandom.data.rows import Array
from notsorandom.game import Loss
from notsorandom.game.losses import LogisticLoss
from notsorandom.linear.newton_step import MAX_SLOPE, dots, find_roots
from notsorandom.linear.softmax_step import TINY
from notsorandom.tuning.logistic_models import MAX_TRIAL_STEPS, LogisticBatch

# The hinge is first smoothed over a margin interval of this width, which contains every margin of
# the zero model.
FIRST_WIDTH = 2.0
# A width that changes no objective noticeably: in its place the loss itself is evaluated.
LAST_WIDTH = 1e-5
# Each reduction of the smoothing divides it by a number in this interval.
LEAST_REDUCTION, MOST_REDUCTION = 2.0, 4.0
# The unpenalised intercept has no curvature when no row is active. One ridge is a share of the
# weight of all rows; another bounds the step and vanishes with the gradient.
INTERCEPT_RIDGE = 1e-5
MAX_INTERCEPT_STEP = 4.0
# Bytes of the arrays that tasks solved together hold.
CHUNK_BYTES = 2**27
# Models that start from others are solved to this share of the tolerance: their first step gains
# little, but their held-out losses would be those of a smaller `C`. With 77 classes, the losses are
# then within 1 % of those at a hundredth of the tolerance, for a sixth more time.
START_GAP = 0.3
# Numbers held per row and model.
NUMBERS_PER_ROW = 12


# Some BLAS kernels for products of few rows read beyond them and set the invalid flag. Numbers that
# overflow end in coefficients that are not finite.
@np.errstate(invalid="ignore", over="ignore", divide="ignore")
def solve_batch(
    features: Array,
    targets: Array,
    masks: Array,
    loss: Loss,
    weights: Array | None = None,
    loss_scales: Sequence[float] | Array = (1.0,),
    tol: float = 1e-2,
) -> tuple[Array, Array]:
    r"""Fit linear models to the tasks of every game, with several multiples of the loss.

    Each minimises the objective of :func:`notsorandom.linear.newton.solve_task` on the training
    rows of its game, by Newton's method on a loss that, if it is not smooth, is smoothed less and
    less. With the logistic loss, several tasks are the classes of one model, as in
    :mod:`notsorandom.linear.softmax`. All models step together until each is solved; models of
    several classes one multiple of the loss after the other, each from the one before.

    Parameters
    ----------
    features : ndarray of shape (n_games, n_rows, n_features)
    targets : ndarray of shape (n_rows, n_tasks)
    masks : boolean ndarray of shape (n_games, n_rows)
        The training rows of each game. For a classification loss, they must have both labels.
    loss : Loss
    weights : ndarray of shape (n_rows,), optional
        Sample weights.
    loss_scales : sequence of float, default=(1.0,)
        Multiples of the loss, and so of its `C`.
    tol : float, default=1e-2
        Largest relative distance of the objective from the optimum. It is estimated, not certified.

    Returns
    -------
    coef : ndarray of shape (n_games, n_scales, n_tasks, n_features)
    intercept : ndarray of shape (n_games, n_scales, n_tasks)
    """
    (n_games, _, n_features), n_tasks, dtype = features.shape, targets.shape[1], features.dtype
    used = np.flatnonzero(masks.any(axis=0))
    design = np.ones((n_games, len(used), n_features + 1), dtype=dtype)
    design[:, :, :-1] = features if len(used) == features.shape[1] else features[:, used]
    mass = masks[:, used].astype(dtype)
    if weights is not None:
        mass *= weights[used].astype(dtype)
    labels = np.ascontiguousarray(targets[used].T, dtype=dtype)  # (n_tasks, n_used)
    scales = np.asarray(loss_scales, dtype=dtype)
    if type(loss) is LogisticLoss:  # a subclass may have another dual
        is_class, C = (labels > 0).astype(dtype), dtype.type(loss.upper) * scales
        row_bytes = NUMBERS_PER_ROW * n_tasks * len(used) * dtype.itemsize
        chunk = max(1, CHUNK_BYTES // (n_games * row_bytes))
        order, before = np.arange(len(C)), None
        if n_tasks > 1:  # products with many tasks are fast, so a start saves more than a batch
            order, chunk, tol = np.argsort(C, kind="stable"), 1, START_GAP * tol
        models = np.empty((n_games, len(C), n_tasks, n_features + 1), dtype=dtype)
        for some in np.split(order, range(chunk, len(order), chunk)):
            solved = LogisticBatch(design, mass, is_class, C[some]).solve(tol, before)
            models[:, some] = solved
            before = solved if n_tasks > 1 else None  # the model of the next smaller `C`
        return models[..., :-1], models[..., -1]
    roots, shape = np.sqrt(mass), (n_games, len(scales), n_tasks, n_features + 1)
    # One task for each value.
    labels = np.tile(labels, (len(scales), 1))
    scales = np.broadcast_to(np.repeat(scales, n_tasks), (n_games, len(labels)))
    model_bytes = 16 * (n_features + 1) ** 2 + NUMBERS_PER_ROW * len(used) * dtype.itemsize
    chunk = max(1, CHUNK_BYTES // (n_games * model_bytes))
    parts = []
    for start in range(0, len(labels), chunk):
        part = slice(start, start + chunk)
        parts.append(Batch(design, roots, labels[part], loss, scales[:, part]).solve(tol))
    models = np.concatenate(parts, axis=1).reshape(shape)
    return models[..., :-1], models[..., -1]


@dataclass(frozen=True, eq=False)
class Batch:
    """Linear models of several games and tasks, all on features with a last column of ones.

    Arrays of models have the shape (n_games, n_tasks, ...).
    """

    design: Array  # (n_games, n_rows, n_columns)
    roots: Array  # roots of the rows' weights, 0 for those held out: (n_games, n_rows)
    targets: Array  # (n_tasks, n_rows)
    loss: Loss
    scales: Array  # (n_games, n_tasks)

    @cached_property
    def mass(self) -> Array:
        """Weights of the rows, of shape (n_games, 1, n_rows)."""
        return np.square(self.roots)[:, None]

    @cached_property
    def weighted(self) -> Array:
        """The rows times the roots of their weights."""
        return self.design * self.roots[:, :, None]

    @cached_property
    def box(self) -> tuple[Array, Array]:
        """Limits of the dual variables, of shape (n_games, n_tasks, n_rows)."""
        shape = (*self.scales.shape, self.targets.shape[1])
        low, high = self.loss.box(self.targets)
        if np.any(self.scales != 1):
            low, high = low * self.scales[:, :, None], high * self.scales[:, :, None]
        return np.broadcast_to(low, shape), np.broadcast_to(high, shape)

    def curvatures(self, width: float) -> Array:
        """Return the curvature of each model's loss, smoothed over `width` if it has none."""
        return (self.loss.curvature or width / self.loss.upper) / self.scales

    def part(self, games: Array, tasks: Array) -> Batch:
        """Return the batch of some of the games and tasks."""
        return Batch(
            self.design[games],
            self.roots[games],
            self.targets[tasks],
            self.loss,
            self.scales[np.ix_(games, tasks)],
        )

    def solve(self, tol: float) -> Array:
        """Return the models, with the intercepts last."""
        models = np.zeros((*self.scales.shape, self.design.shape[2]), dtype=self.design.dtype)
        unsolved = np.ones(self.scales.shape, dtype=bool)
        return self.continue_from(models, self.curvatures(FIRST_WIDTH), unsolved, tol, 0)

    def continue_from(
        self, models: Array, curvature: Array, unsolved: Array, tol: float, n_steps: int
    ) -> Array:
        """Solve the unsolved ones of given models, after `n_steps` that led to them."""
        residuals = self.targets - models @ self.design.transpose(0, 2, 1)
        last = self.curvatures(LAST_WIDTH)
        for number in range(n_steps, MAX_TRIAL_STEPS):
            # Once, all rows count as active: then the tasks of a game share their Hessian.
            steps, gain, excess = self.newton_steps(
                models, residuals, curvature, unsolved, number == 0
            )
            changes = -(steps @ self.design.transpose(0, 2, 1))
            fractions = self.line_search(models, steps, residuals, changes, curvature, gain)
            models = models + fractions[..., None] * steps
            residuals = residuals + fractions[..., None] * changes
            primal, smoothing_error = self.primal_and_error(models, residuals, curvature, last)
            # What is left to gain by steps and by the equality constraint of the dual; unknown
            # after a step that was too long.
            gain = np.maximum(gain, np.abs(excess * models[..., -1]))
            allowed = tol * primal
            gain = np.where((fractions < 1) & (gain > 0.1 * allowed), np.inf, gain)
            unsolved &= (gain > 0.5 * allowed) | (smoothing_error > allowed)
            # More steps would be wasted while the smoothing costs more than they gain. Its error is
            # about quadratic in the curvature; to aim below what is allowed saves a reduction.
            ratio = 1.4 * np.sqrt(smoothing_error / np.maximum(allowed, TINY))
            reduced = curvature / np.clip(ratio, LEAST_REDUCTION, MOST_REDUCTION)
            # The first step is a least squares fit, which leaves little to gain.
            wasted = (gain <= smoothing_error) | (number == 0)
            curvature = np.where(wasted, np.maximum(reduced, last), curvature)
            games, tasks = (np.flatnonzero(unsolved.any(axis=axis)) for axis in (1, 0))
            if 2 * len(games) * len(tasks) <= unsolved.size:
                if len(games):
                    rest, part = np.ix_(games, tasks), self.part(games, tasks)
                    start = models[rest], curvature[rest], unsolved[rest]
                    models[rest] = part.continue_from(*start, tol, number + 1)
                break
        return models

    def newton_steps(
        self,
        models: Array,
        residuals: Array,
        curvature: Array,
        unsolved: Array,
        all_active: bool,
    ) -> tuple[Array, Array, Array]:
        """Return the steps, what their slopes promise to gain, and gradients of the intercepts.

        Steps of solved models are zero.
        """
        low, high = self.box
        dual = self.loss.best_dual(residuals, low, high, curvature[..., None])
        gradient = models - (dual * self.mass) @ self.design
        gradient[..., -1] -= models[..., -1]  # the intercept is not penalised
        if all_active:
            grams = self.weighted.transpose(0, 2, 1) @ self.weighted
            grams = np.broadcast_to(grams[:, None], (*unsolved.shape, *grams.shape[1:]))[unsolved]
        else:
            active = self.loss.hessian_weights(dual, low, high, curvature[..., None])
            grams = self.active_grams(active * (self.mass > 0), unsolved)
        steps = np.zeros_like(models)
        ridge = INTERCEPT_RIDGE * self.mass.sum(axis=-1) / curvature
        if math.isfinite(self.loss.upper):
            ridge = ridge + np.abs(gradient[..., -1]) / MAX_INTERCEPT_STEP
        parts = (part[unsolved] for part in (curvature, ridge, gradient))
        steps[unsolved] = -solve_hessians(grams, *parts)
        return steps, -dots(gradient, steps), gradient[..., -1]

    def active_grams(self, active: Array, unsolved: Array) -> Array:
        """Return the Gram matrices of the active rows of each unsolved model.

        `active` is boolean, or has weights in [0, 1] for a loss whose Hessian weights are such.
        """
        games, tasks = np.nonzero(unsolved)
        n_columns = self.design.shape[2]
        grams = np.empty((len(games), n_columns, n_columns), dtype=self.design.dtype)
        for gram, game, task in zip(grams, games, tasks, strict=True):
            rows, weights = self.weighted[game], active[game, task]
            rows = rows[weights] if weights.dtype == bool else rows * np.sqrt(weights)[:, None]
            np.matmul(rows.T, rows, out=gram)
        return grams

    def objectives(self, models: Array, residuals: Array, dual: Array, curvature: Array) -> Array:
        """Return the objectives with these dual variables in the definition of the loss."""
        losses = self.loss.concave_part(residuals, dual, *self.box)
        losses -= 0.5 * curvature[..., None] * np.square(dual)
        coef = models[..., :-1]
        return 0.5 * dots(coef, coef) + dots(self.mass, losses)

    def primal_and_error(
        self, models: Array, residuals: Array, curvature: Array, last: Array
    ) -> tuple[Array, Array]:
        """Return the primal values, and the duality gaps of minimisers of the smoothed loss."""

        def attained(curvature: Array) -> Array:
            dual = self.loss.best_dual(residuals, *self.box, curvature[..., None])
            return self.objectives(models, residuals, dual, last)

        best = attained(last)
        if np.array_equal(curvature, last):
            return best, np.zeros_like(best)
        return best, best - attained(curvature)

    def line_search(
        self,
        models: Array,
        steps: Array,
        residuals: Array,
        changes: Array,
        curvature: Array,
        gain: Array,
    ) -> Array:
        """Return the fraction of each step that nearly minimises the smoothed objective."""
        linear = dots(models[..., :-1], steps[..., :-1])
        square = dots(steps[..., :-1], steps[..., :-1])

        def slopes(fractions: Array, *parts: Array) -> Array:
            linear, square, residuals, changes, weighted, low, high, curvature = parts
            moved = residuals + fractions[..., None] * changes
            dual = self.loss.best_dual(moved, low, high, curvature[..., None])
            return linear + fractions * square + dots(dual, weighted)

        parts = (linear, square, residuals, changes, changes * self.mass, *self.box, curvature)
        fractions = np.ones_like(gain)
        last = slopes(fractions, *parts)
        # The slope increases from -gain. While it is small, the minimum is near.
        largest = MAX_SLOPE * gain
        long = last > largest
        if long.any():
            some = [part[long] for part in parts]
            ends = -gain[long], last[long]
            fractions[long] = find_roots(lambda each: slopes(each, *some), *ends, largest[long])
        return fractions


def solve_hessians(
    grams: Array, curvature: Array, intercept_ridge: Array, gradient: Array
) -> Array:
    """Solve with the Hessian of each model, for its gradient, in float64."""
    hessians = np.divide(grams, curvature[:, None, None], dtype=np.float64)
    diagonals = hessians.reshape(len(grams), -1)[:, :: grams.shape[-1] + 1]  # a view
    # Rounding of the Gram matrix may exceed the ridge of 1.
    diagonals += np.finfo(grams.dtype).eps * diagonals.sum(axis=-1, keepdims=True)
    diagonals[:, :-1] += 1
    diagonals[:, -1] += np.maximum(intercept_ridge, TINY)
    return np.linalg.solve(hessians, gradient[..., None].astype(np.float64))[..., 0]
