"""Quantities computed from fitted models, for figures and reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_consistent_length, column_or_1d

from notsorandom.baselines import RandomFourierFeatures
from notsorandom.data.array_api import to_host
from notsorandom.data.rows import Array, Rows, dense
from notsorandom.estimators.certify import PeakBounds, check_waves_alone, solve_svms
from notsorandom.estimators.config import configure
from notsorandom.estimators.samples import read_samples
from notsorandom.estimators.targets import shortened
from notsorandom.game.loop import replay
from notsorandom.game.problem import Problem, codes_from_scores
from notsorandom.game.solvers import GradientSolver
from notsorandom.kernel import LearnedKernel, linear_scores
from notsorandom.linear.fit import fit_linear_models
from notsorandom.spaces import Euclidean

# Sizes or rounds that are evaluated by default.
N_POINTS = 8
# Rounds whose bounds are computed, and evaluations of the potential for each lower bound.
N_BOUNDS, BOUND_EVALUATIONS = 6, 4000


@dataclass(frozen=True)
class GameSnapshot:
    """The state of a game in one round."""

    round: int  # from 1
    measure: Array  # (n_samples, n_tasks); its potential is searched in this round
    kernel: LearnedKernel  # of the frequencies found so far, including this round
    coef: Array  # (n_tasks, n_components), of linear models on the kernel's features
    intercept: Array  # (n_tasks,)

    @property
    def title(self) -> str:
        """Number of the round and of the frequencies."""
        count = len(self.kernel.weights)
        return f"round {self.round}: {count} {'frequency' if count == 1 else 'frequencies'}"

    def decision_function(self, X: Array) -> Array:
        """Return decision values of shape (n_samples, n_tasks)."""
        return linear_scores(self.kernel.features(X), self.coef, self.intercept)


def take_snapshots(
    estimator: Any, X: Any, y: Any, rounds: Sequence[int] | None = None
) -> list[GameSnapshot]:
    """Replay the game of a fitted estimator on its training data; return its state in some rounds.

    By default the first round, the last and one in between. If the solver reweights, snapshots have
    all frequencies that were found, with the weights before the reweighting.
    """
    problem = estimator._game_problem(X, y)
    kernel, history = played_kernel(estimator), estimator.history_
    n_rounds = len(history["n_frequencies"])
    if not is_replayable(estimator):
        raise ValueError(
            "This game can't be replayed. It must be played on a continuous space, with "
            "solver='gradient' or 'reweight', exact projections and linear=False."
        )
    if rounds is None:
        rounds = geometric_subset(np.arange(1, n_rounds + 1), 3).tolist()
    if not len(rounds) or any(number not in range(1, n_rounds + 1) for number in rounds):
        raise ValueError(
            f"rounds={list(rounds)!r} is not allowed: give numbers from 1 to {n_rounds}, the "
            "number of rounds of this game."
        )
    n_columns = kernel.space.n_columns(kernel.phase)
    snapshots = []
    duals = replay(problem, kernel, history)
    for number, dual in zip(range(1, max(rounds) + 1), duals, strict=False):
        if number in rounds:
            part = kernel.head(int(history["n_frequencies"][number - 1]) * n_columns)
            found = fit_linear_models(part, problem)
            measure = problem.measure(dual)
            snapshots.append(GameSnapshot(number, measure, part, found.coef, found.intercept))
    return snapshots


def is_replayable(estimator: Any) -> bool:
    """Whether the history of a fitted estimator determines its dual variables in every round."""
    solver = configure(estimator).solver
    return (
        estimator.kernel_.space.kind == "continuous"
        and isinstance(solver, GradientSolver)
        and solver.projection == "exact"
        and not estimator.uses_linear_part_  # the game starts from a model that is not kept
    )


def played_kernel(estimator: Any) -> LearnedKernel:
    """Return the kernel of all frequencies that the game found, before any were dropped."""
    kernel: LearnedKernel = estimator.kernel_
    if not getattr(configure(estimator).solver, "reweight", False):
        return kernel
    if not hasattr(estimator, "average_kernel_"):
        raise ValueError(
            "The head of a reweighted model doesn't contain the frequencies that were dropped: "
            "use the whole model."
        )
    return estimator.average_kernel_


def planar_problem(estimator: Any, X: Any, y: Any) -> Problem:
    """Return the problem of a game on the Euclidean plane; raise ValueError for other games."""
    problem: Problem = estimator._game_problem(X, y)
    space = estimator.kernel_.space
    if problem.rows.n_features != 2 or not space.is_vector_space:
        raise ValueError(
            f"X has {problem.rows.n_features} columns and the space is {type(space).__name__}, but "
            "only games of two columns on the Euclidean plane can be drawn as images: leave out X "
            "and y, or use HistoryDisplay."
        )
    return problem


def bounds_by_round(
    estimator: Any, X: Any, y: Any, callback: Callable[[int], Any] | None = None
) -> tuple[Array, Array, Array, bool]:
    """Return numbers of rounds, and upper and lower bounds on the value of the game after them.

    The upper bound is the smallest objective so far of the linear models on the features found. The
    lower bound is the largest so far from the dual points of these models and, if the game can be
    replayed, from the average of the dual player's points. Both are about kernels up to the
    bandwidth of the whole kernel, as in the certificate. Returns also whether the lower bounds are
    certified. `callback` is called with the number of rounds done.
    """
    check_waves_alone(estimator.kernel_)
    problem = estimator._game_problem(X, y)
    kernel, history = played_kernel(estimator), estimator.history_
    sizes = history["n_frequencies"] * kernel.space.n_columns(kernel.phase)
    possible = np.flatnonzero(np.isin(sizes, kernel.possible_sizes()))
    rounds = geometric_subset(possible + 1, N_BOUNDS)
    averages: Mapping[int, Array] = {}
    if is_replayable(estimator):
        averages = replay_averages(problem, kernel, history, rounds)
    peaks = PeakBounds(
        kernel, problem, kernel.space.bandwidth(kernel.frequencies), BOUND_EVALUATIONS
    )
    upper, lower, certified = [], [], True
    for number in rounds.tolist():
        models = solve_svms(kernel.head(int(sizes[number - 1])).features_of(problem.rows), problem)
        duals = [("model", np.column_stack([model.dual for model in models]))]
        if number in averages:
            duals.append(("average", averages[number]))
        bound, _, supremum = peaks.lower_bound(duals)
        upper.append(sum(model.primal_value for model in models))
        lower.append(bound)
        certified = certified and supremum.certified
        if callback is not None:
            callback(len(lower))
    return rounds, np.minimum.accumulate(upper), np.maximum.accumulate(lower), certified


def replay_averages(
    problem: Problem, kernel: LearnedKernel, history: dict[str, Array], rounds: Array
) -> dict[int, Array]:
    """Return the average of the dual player's points up to each of some rounds."""
    averages, total, n_plays = {}, np.zeros(problem.targets.shape), 0
    duals = replay(problem, kernel, history)
    for number, (dual, plays) in enumerate(zip(duals, history["plays"], strict=False), start=1):
        total += plays * dual.astype(np.float64)
        n_plays += int(plays)
        if number in rounds:
            averages[number] = total / n_plays
    return averages


def scores_by_size(
    estimator: Any,
    X: Any,
    y: Any,
    X_test: Any,
    y_test: Any,
    sizes: Sequence[int] | None = None,
    baselines: Mapping[str, Any] | None = None,
) -> tuple[Array, dict[str, Array]]:
    """Return sizes, and test scores of a fitted estimator and of baselines, by name.

    All features get the same linear model, with the estimator's loss and `C`. Scores are
    accuracies, or R^2 for real targets; NaN where features can't have the size, such as learned
    ones above their number. The estimator's scores are named ``"learned"``. If it has a linear
    part, all features are beside it. For the parameters see
    :meth:`notsorandom.display.ScoreCurveDisplay.from_estimator`.
    """
    problem = estimator._training_problem(X, y)
    rows, kernel = problem.rows, estimator.kernel_
    possible = kernel.possible_sizes()
    if sizes is None:
        sizes = geometric_subset(possible, N_POINTS).tolist()
    up_to_all = {size for size in sizes if size <= possible[-1]}
    if not up_to_all or not up_to_all <= set(possible.tolist()):
        raise ValueError(
            f"sizes={list(sizes)!r} is not allowed: the possible sizes of this model are "
            f"{shortened(possible.tolist())}. Give one at least; larger ones are for baselines."
        )
    if baselines is None:
        baselines = {"random (RBF)": RandomFourierFeatures(random_state=0)}
    X_test, y_test = read_samples(estimator, X_test, dtype=rows.dtype), to_host(y_test)
    check_consistent_length(X_test, y_test)
    test_rows = Rows(kernel.space.prepare(X_test))
    targets = problem.strata() if problem.loss.one_sided else problem.targets
    kernels = {"learned": kernel}
    for name, baseline in baselines.items():
        transformer = clone(baseline).set_params(n_components=max(sizes))
        kernels[name] = replace(
            transformer.fit(to_host(rows.array), targets).kernel_,
            linear_scale=kernel.linear_scale,
            linear_center=kernel.linear_center,
        )

    def score(kernel: LearnedKernel, size: int) -> float:
        if size not in kernel.possible_sizes():
            return np.nan
        part = kernel.head(size)
        found = fit_linear_models(part, problem)
        scores = part.scores(test_rows, found.coef, found.intercept)
        return score_predictions(estimator, scores, y_test)

    return np.array(sizes), {
        name: np.array([score(each, size) for size in sizes]) for name, each in kernels.items()
    }


def score_predictions(estimator: Any, scores: Array, y: Any) -> float:
    """Return the accuracy of decision values, or the R^2 of all outputs together."""
    if hasattr(estimator, "classes_"):
        predicted = estimator.classes_[codes_from_scores(scores)]
        return float(np.mean(predicted == column_or_1d(y)))
    targets = np.asarray(y, dtype=np.float64).reshape(len(scores), -1)
    return float(r2_score(targets, scores, multioutput="variance_weighted"))


def score_name(estimator: Any) -> str:
    """Return the name of the score that suits the targets."""
    return "accuracy" if hasattr(estimator, "classes_") else "R^2"


def potential_on_grid(rows: Rows, measure: Array, across: Array, up: Array) -> Array:
    """Return the potential on a grid of frequencies of the plane, of shape (n_up, n_across).

    A wave on the plane is the product of one wave along each axis, so only ``n_up + n_across``
    waves are evaluated.
    """
    # The potential doesn't depend on the origin; near the samples, rounding errors are smallest.
    center = rows.mean().astype(rows.dtype)

    def transforms(X: Array, a: Array) -> tuple[Array, ...]:
        centered = X - center
        first, second = (
            np.exp(1j * centered[:, [axis]] * side) for axis, side in ((0, across), (1, up))
        )
        tasks = [second.T @ (a[:, [task]] * first) for task in range(a.shape[1])]
        return tuple(part for each in tasks for part in (each.real, each.imag))

    parts = rows.sum_blocks(transforms, measure, width=4 * (len(across) + len(up)))
    return np.square(parts, dtype=np.float64).sum(axis=0)


def describe_spectrum(kernel: LearnedKernel) -> str:
    """Return a sentence about the frequencies of a kernel.

    The effective number is the exponential of the entropy of the weights.
    """
    weights = kernel.weights[kernel.weights > 0]
    effective = np.exp(-(weights * np.log(weights)).sum())
    text = f"{len(kernel.weights):,} frequencies (effective number {effective:,.0f})."
    if kernel.space.is_vector_space:
        return text
    degrees, counts = np.unique(kernel.space.norms(kernel.frequencies), return_counts=True)
    parts = [f"{degree:g} ({count:,})" for degree, count in zip(degrees, counts, strict=True)]
    return f"{text} Degrees (number of frequencies): {', '.join(parts)}."


def describe_waves(kernel: LearnedKernel, rows: Rows) -> str:
    """Return a sentence about how often the features go up and down across the samples."""
    if not isinstance(kernel.space, Euclidean):
        degrees = kernel.space.norms(kernel.frequencies)
        return f"Each goes through {degrees.min():g} to {degrees.max():g} waves around the sphere."
    center = kernel.space.center

    def sums(X: Any) -> tuple[Array, ...]:
        angles = (dense(to_host(X)) - center) @ kernel.frequencies.T
        return angles.sum(axis=0), np.square(angles).sum(axis=0)

    total, squares = rows.sum_blocks(sums, width=2 * len(kernel.frequencies), dtype=np.float64)
    deviations = np.sqrt(np.maximum(squares / len(rows) - (total / len(rows)) ** 2, 0))
    # Across two standard deviations on both sides, for the middle 80 % of the features.
    ends = [f"{end:.1f}" for end in np.quantile(4 * deviations / (2 * np.pi), [0.1, 0.9])]
    return (
        f"Each is a wave: across the data, most go up and down {' to '.join(dict.fromkeys(ends))} "
        "times. Below half a time, a wave is nearly a straight line."
    )


def geometric_subset(numbers: Array, n_points: int) -> Array:
    """Return at most `n_points` of increasing numbers, evenly spaced by ratio, with both ends."""
    targets = np.geomspace(numbers[0], numbers[-1], n_points)
    indices = np.searchsorted(numbers, targets * (1 - 1e-9))
    return numbers[np.unique(np.minimum(indices, len(numbers) - 1))]
