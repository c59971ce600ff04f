"""Compute certificates: bounds on the value of the game from models, dual points and searches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from notsorandom._utils.parameters import check_number
from notsorandom.data.rows import Array
from notsorandom.estimators.config import configure
from notsorandom.estimators.training import choose_search
from notsorandom.game.certificate import Certificate, lower_bound, margin_bound, regret_bound
from notsorandom.game.dual import DualProblem
from notsorandom.kernel import LearnedKernel
from notsorandom.linear.newton import LinearModel, solve_task
from notsorandom.search.base import Search
from notsorandom.spaces.base import ContinuousSpace
from notsorandom.spaces.landscape import Landscape, feature_potentials

# Independent searches for the highest peak of each dual point.
N_SEARCHES = 8
# Relative precision of the bounds on peaks.
PEAK_PRECISION = 1e-3
# Relative duality gap of the SVMs: the certificate's gap should be the kernel's, not theirs.
SVM_GAP = 1e-4
# Searches compute squares of distances between frequencies in the units of the samples.
MAX_SCALE = {"float32": 1e9, "float64": 1e70}


def certify(
    estimator: Any, X: Any, y: Any, bandwidth: float | None, max_evaluations: int
) -> Certificate:
    """Compute the certificate of a fitted estimator, as its method `certificate` documents."""
    data, kernel = estimator._training_data(X, y), estimator.kernel_
    problem, rows = data.problem, data.problem.rows
    limit, scale = MAX_SCALE[rows.dtype.name], float(kernel.space.scale)
    if not 1 / limit <= scale <= limit:
        raise ValueError(
            f"A certificate in {rows.dtype} needs distances of samples between {1 / limit:g} and "
            f"{limit:g}, but these are about {scale:.3g} apart: multiply X by a number before fit."
        )
    bandwidth = check_bandwidth(kernel, bandwidth)
    check_number("max_evaluations", max_evaluations, least=1, integer=True)
    search, rng = choose_search(configure(estimator), kernel.space), np.random.default_rng(0)
    features = kernel.features_of(rows)
    models = solve_svms(features, problem)
    duals = [("the model's dual", np.column_stack([model.dual for model in models]))]
    regret = allowed_regret = math.nan
    if hasattr(estimator, "dual_") and len(estimator.dual_) == data.n_given:
        duals.append(("the last dual", data.from_given(estimator.dual_)))
        duals.append(("the average dual", data.from_given(estimator.average_dual_)))
        was_played = "plays" in estimator.history_ and estimator._held_out_bits is None
        if was_played and hasattr(estimator, "average_kernel_"):
            average = estimator.average_kernel_
            regret, allowed_regret = average_regret(average, estimator.history_, problem)
    candidates = []
    for name, given in duals:
        dual = problem.project(given.astype(np.float64))
        measure = problem.measure(dual).astype(rows.dtype)
        reached = highest_potential(kernel, problem, measure, search, rng, bandwidth)
        supremum = kernel.space.supremum(
            rows, measure, kernel.phase, bandwidth, reached, PEAK_PRECISION, max_evaluations
        )
        candidates.append((name, dual, supremum))
    lower, source, certified = lower_bound(problem, candidates)
    # The bound on the error is for samples drawn from one distribution, without weights.
    class_weight = getattr(estimator, "class_weight", None)
    generalization = math.nan
    if estimator._weights is None and class_weight is None:
        generalization = generalization_bound(kernel, problem, features, models, bandwidth)
    return Certificate(
        upper=sum(model.primal_value for model in models),
        upper_dual=sum(model.dual_value for model in models),
        lower=lower,
        source=source,
        certified=certified,
        bandwidth=bandwidth,
        regret=regret,
        regret_bound=allowed_regret,
        generalization=generalization,
        sample_size=kernel.space.required_sample_size(rows, bandwidth),
        has_margin=problem.loss.has_margin,
    )


def check_bandwidth(kernel: LearnedKernel, bandwidth: float | None) -> float:
    """Return the given bandwidth, or the kernel's own; raise ValueError if it is less than that."""
    own_bandwidth = kernel.space.bandwidth(kernel.frequencies)
    if bandwidth is None:
        return own_bandwidth
    check_number("bandwidth", bandwidth, above=0)
    if bandwidth < own_bandwidth:
        raise ValueError(
            f"bandwidth={bandwidth!r} is less than that of the learned kernel, "
            f"{own_bandwidth:.6g}, which must be among the kernels it is compared with: give at "
            "least that."
        )
    return bandwidth


def highest_potential(
    kernel: LearnedKernel,
    problem: DualProblem,
    measure: Array,
    search: Search,
    rng: np.random.Generator,
    bandwidth: float,
) -> float:
    """Return the highest potential at the learned frequencies and at those that searches find."""
    space, phase, rows = kernel.space, kernel.phase, problem.rows
    if not isinstance(space, ContinuousSpace):
        return 0.0  # the supremum evaluates all frequencies
    landscape = Landscape(space, rows, measure, 0.0, phase)
    found = [kernel.frequencies.astype(rows.dtype)]
    for _ in range(N_SEARCHES):
        found.append(search.find(landscape, 1, rng).frequencies)
    frequencies = space.clip_to_bandwidth(np.concatenate(found), bandwidth)
    amplitudes = space.amplitudes(rows, measure, frequencies)
    scales = space.scales(rows, frequencies).astype(np.float64)
    return float((feature_potentials(space, amplitudes, phase) * scales**2).max())


def average_regret(
    average: LearnedKernel, history: dict[str, Array], problem: DualProblem
) -> tuple[float, float]:
    """Return the dual player's average regret and its theoretical bound.

    The regret is the SVM objective on the average kernel, minus what the player earned on average.
    """
    best = sum(
        model.primal_value for model in solve_svms(average.features_of(problem.rows), problem)
    )
    earned = float(np.average(history["objective"], weights=history["plays"]))
    kernel_bound = average.space.kernel_bound(problem.rows.n_features, average.phase)
    return best - earned, regret_bound(problem, kernel_bound, history["plays"], history["step"])


def generalization_bound(
    kernel: LearnedKernel,
    problem: DualProblem,
    features: Array,
    models: Sequence[LinearModel],
    bandwidth: float,
) -> float:
    """Return the margin bound on the error of a binary SVM; NaN where it doesn't apply."""
    complexity = kernel.space.rademacher_complexity(problem.rows, bandwidth, kernel.phase)
    norm = float(np.sqrt(models[0].coef @ models[0].coef))
    if len(models) > 1 or not problem.loss.one_sided or math.isnan(complexity) or norm == 0:
        return math.nan
    scores = features @ models[0].coef + models[0].intercept
    margins = problem.targets[:, 0] * scores / norm
    return margin_bound(margins, complexity, counts=problem.counts)


def solve_svms(features: Array, problem: DualProblem) -> list[LinearModel]:
    """Solve one SVM per task on the features."""
    return [
        solve_task(features, problem.task(number), SVM_GAP) for number in range(problem.n_tasks)
    ]
