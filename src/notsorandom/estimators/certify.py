"""Compute certificates: bounds on the value of the game from models, dual points and searches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from notsorandom._utils.parameters import check_number
from notsorandom.data.rows import Array, Rows
from notsorandom.estimators.config import configure
from notsorandom.game.certificate import Certificate, lower_bound, margin_bound, regret_bound
from notsorandom.game.problem import Problem
from notsorandom.kernel import LearnedKernel
from notsorandom.linear.newton import solve_task
from notsorandom.linear.newton_step import LinearModel
from notsorandom.search.thorough import AGREEING_ASCENTS, find_highest
from notsorandom.spaces import Euclidean
from notsorandom.spaces.base import ContinuousSpace, ResolvedSpace, Supremum
from notsorandom.spaces.landscape import Landscape, feature_potentials
from notsorandom.spaces.supremum import MAX_BOUNDED_FEATURES, MAX_RADIUS, MAX_SEARCHED
from notsorandom.spaces.view import CastView, ProjectedView
from notsorandom.spaces.zonal_sphere import MAX_ZONAL_DEGREE, highest_degree

# Relative precision of the bounds on peaks.
PEAK_PRECISION = 1e-3
# Relative duality gap of the SVMs: the certificate's gap should be the kernel's, not theirs.
SVM_GAP = 1e-4
FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)


def certify(
    estimator: Any, X: Any, y: Any, bandwidth: float | None, max_evaluations: int
) -> Certificate:
    """Compute the certificate of a fitted estimator, as its method `certificate` documents."""
    problem, kernel = estimator._training_problem(X, y), estimator.kernel_
    problem = estimator._played_part(problem)
    check_waves_alone(kernel)
    bandwidth = check_bandwidth(kernel, bandwidth)
    check_number("max_evaluations", max_evaluations, least=1, integer=True)
    peaks = PeakBounds(kernel, problem, bandwidth, max_evaluations)
    features = peaks.kernel.features_of(peaks.problem.rows)
    models = solve_svms(features, problem)
    duals = [("the model's dual", np.column_stack([model.dual for model in models]))]
    regret = allowed_regret = math.nan
    if hasattr(estimator, "dual_") and len(estimator.dual_) == problem.n_given:
        duals.append(("the last dual", problem.from_given(estimator.dual_)))
        duals.append(("the average dual", problem.from_given(estimator.average_dual_)))
        was_played = "plays" in estimator.history_
        if was_played and hasattr(estimator, "average_kernel_"):
            average = estimator.average_kernel_
            regret, allowed_regret = average_regret(average, estimator.history_, problem)
            if getattr(configure(estimator).solver, "projection", "exact") != "exact":
                allowed_regret = math.inf  # the theorem needs the nearest point
    lower, source, supremum = peaks.lower_bound(duals)
    # Theorems on new samples are for two classes drawn from one distribution, without weights.
    class_weight = getattr(estimator, "class_weight", None)
    is_plain = estimator._weights is None and class_weight is None
    generalization = sample_size = math.nan
    if is_plain and problem.loss.one_sided and problem.n_tasks == 1:
        generalization = generalization_bound(kernel, problem, features, models[0], bandwidth)
        sample_size = kernel.space.required_sample_size(problem.rows, bandwidth)
    return Certificate(
        upper=sum(model.primal_value for model in models),
        upper_dual=sum(model.dual_value for model in models),
        lower=lower,
        source=source,
        certified=supremum.certified,
        bandwidth=bandwidth,
        regret=regret,
        regret_bound=allowed_regret,
        generalization=generalization,
        sample_size=sample_size,
        is_svm=problem.loss.has_margin,
        precision=supremum.precision,
        n_ascents=peaks.n_ascents,
        n_agreeing=peaks.n_agreeing,
    )


def check_waves_alone(kernel: LearnedKernel) -> None:
    """Raise ValueError if a kernel has a linear part."""
    if kernel.linear_scale:
        raise ValueError(
            "This model has a linear part, but certificates and bounds are about kernels of waves "
            "alone: fit with linear=False for these."
        )


class PeakBounds:
    """Bounds on the highest peaks of dual points, over all frequencies within a bandwidth.

    Where peaks are only estimated, they are searched in nested balls: the ball of the kernel's own
    bandwidth, and doubled ones up to the first that contains the given bandwidth. A search depends
    on those in smaller balls alone, so a wider bandwidth never gives a higher lower bound.

    Attributes
    ----------
    kernel, problem : LearnedKernel, Problem
        With the samples of R^d in units of their scale, so that no square overflows.
    n_ascents, n_agreeing : int
        Those of the search with the least agreement; see :class:`HighestPeak`.
    """

    def __init__(
        self, kernel: LearnedKernel, problem: Problem, bandwidth: float, max_evaluations: int
    ) -> None:
        own = kernel.space.bandwidth(kernel.frequencies)
        self.kernel, rows, unit = in_units_of_scale(kernel, problem.rows)
        self.bandwidth = bandwidth * unit
        self.problem = replace(problem, rows=rows)
        self.max_evaluations = max_evaluations
        self._spaces = nested_spaces(self.kernel.space, own * unit, self.bandwidth, rows.n_features)
        self._rngs = [np.random.default_rng(number) for number in range(len(self._spaces))]
        # Peaks of one dual point are starts for the next point, in this ball and larger ones.
        self._found = [np.empty((0, rows.n_features), rows.dtype) for _ in self._spaces]
        # Searches are in float32, whose cosines take a fraction of the time; bounds are not.
        self._float32_rows = CastView(self.kernel.space, "float32").apply(rows)
        self.n_ascents = self.n_agreeing = 0

    def lower_bound(self, duals: Sequence[tuple[str, Array]]) -> tuple[float, str, Supremum]:
        """Return the best lower bound of named dual points, its name, and the highest peak."""
        candidates = []
        for name, given in duals:
            dual = self.problem.project(given.astype(np.float64))
            candidates.append((name, dual, self.supremum(dual)))
        return lower_bound(self.problem, candidates)

    def supremum(self, dual: Array) -> Supremum:
        """Return the largest potential of a dual point, bounded if possible."""
        rows, phase = self.problem.rows, self.kernel.phase
        measure = self.problem.measure(dual).astype(rows.dtype)
        reached = self._search(measure) if self._spaces else 0.0
        return self.kernel.space.supremum(
            rows, measure, phase, self.bandwidth, reached, PEAK_PRECISION, self.max_evaluations
        )

    def _search(self, measure: Array) -> float:
        """Return the highest potential that thorough searches find in one ball after another."""
        rows, phase, widest = self.problem.rows, self.kernel.phase, self._spaces[-1]
        known = self.kernel.frequencies.astype(rows.dtype)
        for number, (space, rng) in enumerate(zip(self._spaces, self._rngs, strict=True)):
            # Degrees up to 64 are precise in float32. High ones take long, however few agree.
            is_vector = isinstance(space, Euclidean)
            is_precise = is_vector or space.max_degree <= MAX_ZONAL_DEGREE[FLOAT32]
            searched = self._float32_rows if is_precise else rows
            landscape = Landscape(space, searched, measure.astype(searched.dtype), 0.0, phase)
            known = np.concatenate([known, self._found[number]])
            starts, least = known.astype(searched.dtype), AGREEING_ASCENTS if is_vector else 0
            found = find_highest(landscape, starts, rng, least)
            peaks = found.points.frequencies.astype(rows.dtype)
            self._found[number] = np.concatenate([self._found[number], peaks])
            known = np.concatenate([known, peaks])
        share = found.n_agreeing / found.n_ascents
        if not self.n_ascents or share < self.n_agreeing / self.n_ascents:
            self.n_ascents, self.n_agreeing = found.n_ascents, found.n_agreeing
        amplitudes = widest.amplitudes(rows, measure, known)
        scales = widest.scales(rows, known).astype(np.float64)
        return float((feature_potentials(widest, amplitudes, phase) * scales**2).max())


def nested_spaces(space: ResolvedSpace, own: float, bandwidth: float, n_features: int) -> list[Any]:
    """Return the balls to search, as spaces; none if there are bounds without a search."""
    if not isinstance(space, ContinuousSpace):
        return []
    is_euclidean = isinstance(space, Euclidean)
    if is_euclidean and n_features <= MAX_BOUNDED_FEATURES:
        return [space.within(min(bandwidth, MAX_RADIUS), n_features)]
    if bandwidth > (MAX_SEARCHED if is_euclidean else highest_degree(n_features, FLOAT64)):
        return []
    radii = [own]
    while 0 < radii[-1] < bandwidth:
        radii.append(2 * radii[-1])
    return [space.within(radius, n_features) for radius in radii]


def in_units_of_scale(kernel: LearnedKernel, rows: Rows) -> tuple[LearnedKernel, Rows, float]:
    """Return kernel and samples in units of the samples' scale, on R^d, and this unit."""
    space = kernel.space
    if not isinstance(space, Euclidean):
        return kernel, rows, 1.0
    scale, center = float(space.scale), np.asarray(space.center)
    if sparse.issparse(rows.array):  # not centred, which would make it dense
        rows = replace(rows, array=rows.map(lambda X: X / scale))
        space = space.with_parameters(scale=1.0, center=center / scale, max_norm=math.inf)
    else:
        space = space.with_parameters(scale=1.0, center=np.zeros_like(center), max_norm=math.inf)
        rows = ProjectedView(space, rows.dtype.name, center, scale, None).apply(rows)
    return replace(kernel, space=space, frequencies=kernel.frequencies * scale), rows, scale


def check_bandwidth(kernel: LearnedKernel, bandwidth: float | None) -> float:
    """Return the given bandwidth, or the kernel's own; raise ValueError if it is less than that."""
    own_bandwidth = kernel.space.bandwidth(kernel.frequencies)
    if bandwidth is None:
        return own_bandwidth
    check_number("bandwidth", bandwidth, above=0)
    if bandwidth < own_bandwidth:
        raise ValueError(
            f"bandwidth={bandwidth!r} is less than the learned kernel's, "
            f"{own_bandwidth:.6g}, which must be among the kernels it is compared with: give at "
            "least that."
        )
    return bandwidth


def average_regret(
    average: LearnedKernel, history: dict[str, Array], problem: Problem
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
    problem: Problem,
    features: Array,
    model: LinearModel,
    bandwidth: float,
) -> float:
    """Return the margin bound on the error of a model of two classes, or NaN."""
    complexity, share = kernel.space.rademacher_complexity(problem.rows, bandwidth, kernel.phase)
    norm = float(np.sqrt(model.coef @ model.coef))
    if math.isnan(complexity) or norm == 0:
        return math.nan
    scores = features @ model.coef + model.intercept
    margins = problem.targets[:, 0] * scores / norm
    kernel_bound = kernel.space.kernel_bound(problem.rows.n_features, kernel.phase)
    return margin_bound(margins, complexity, kernel_bound, share, counts=problem.counts)


def solve_svms(features: Array, problem: Problem) -> list[LinearModel]:
    """Solve one SVM per task on the features."""
    return [
        solve_task(features, problem.task(number), SVM_GAP) for number in range(problem.n_tasks)
    ]
