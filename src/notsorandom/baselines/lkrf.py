"""LKRF: random features selected by their alignment with the labels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from notsorandom._utils.parameters import check_choice, check_number
from notsorandom.baselines.random_fourier import RandomFeatures
from notsorandom.data.rows import FLOATS, Array, Rows
from notsorandom.game.problem import signs_from_codes
from notsorandom.kernel import normalized
from notsorandom.spaces import Euclidean

# Probabilities up to this are rounding errors of zero.
EPSILON = float(np.finfo(np.float64).eps)
# Largest number of bisection steps; double precision needs fewer.
MAX_BISECTIONS = 200
# Frequencies per pass over the samples.
CHUNK = 1024


class LKRF(RandomFeatures):
    r"""Random features drawn with probabilities that follow their alignment with the labels.

    A pool of `N` random features of the RBF kernel is scored by
    :math:`s_j = (\sum_i y_i \cos(\langle\omega_j, x_i\rangle - b_j))^2`. The probabilities
    :math:`q` solve

    .. math:: \max_q \; q^T s \quad \text{s.t.} \quad q \ge 0, \; \mathbf 1^T q = 1, \;
       \sum_j N (q_j - 1/N)^2 \le \rho.

    Parameters
    ----------
    n_components : int or "all", default=100
        Number of features drawn from `q`, with replacement. If at most `n_components` features have
        a positive probability, each of them is taken once. ``"all"`` always takes each feature of
        positive probability once.
    n_pool : int, default=20000
        `N` above.
    rho : float, default=100.0
        Largest chi-square divergence of `q` from uniform. About ``n_pool / (1 + rho)`` features
        get a positive probability.
    bandwidth : "median" or float, default="median"
        Bandwidth of the RBF kernel that the pool is drawn from.
    weighting : {"none", "sqrt_q"}, default="none"
        Scale of the features: equal, or proportional to the square root of their probabilities.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws.

    Attributes
    ----------
    frequencies_ : ndarray of shape (n_components, `n_features_in_`)
    phases_ : ndarray of shape (n_components,)
    kernel_ : LearnedKernel
    probabilities_ : ndarray of shape (n_pool,)
        `q` above.
    classes_ : ndarray of shape (n_classes,)
        With more than two, the scores are summed over the one-versus-rest labels.
    bandwidth_ : float
    n_features_in_ : int

    References
    ----------
    A. Sinha, J. Duchi, "Learning kernels with random features", NIPS 2016.

    Examples
    --------
    >>> from notsorandom.baselines import LKRF
    >>> from notsorandom.datasets import make_windmill
    >>> X, y = make_windmill(500, random_state=0)
    >>> LKRF(20, n_pool=500, rho=2.0, random_state=0).fit_transform(X, y).shape
    (500, 20)
    """

    def __init__(
        self,
        n_components: Any = 100,
        *,
        n_pool: int = 20_000,
        rho: float = 100.0,
        bandwidth: Any = "median",
        weighting: str = "none",
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.n_pool = n_pool
        self.rho = rho
        self.bandwidth = bandwidth
        self.weighting = weighting
        self.random_state = random_state

    def _fit(self, X: Any, y: Any) -> None:
        check_number("n_components", self.n_components, above=0, integer=True, or_else=["all"])
        check_number("n_pool", self.n_pool, above=0, integer=True)
        check_number("rho", self.rho, least=0)
        check_choice("weighting", self.weighting, ["none", "sqrt_q"])
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=FLOATS, ensure_min_samples=2)
        check_classification_targets(y)
        classes, codes = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"y has only one class, {classes.tolist()[0]!r}, but LKRF scores features by their "
                "correlation with the classes: give samples of at least two classes."
            )
        rows = Rows(X)
        space, rng = self._resolve_space(rows)
        pool = space.draw(self.n_pool, rows, rng)
        phases = rng.uniform(0, 2 * math.pi, size=self.n_pool).astype(rows.dtype)
        labels = signs_from_codes(codes, len(classes), rows.dtype)
        scores = alignment_scores(space, rows, labels, pool, phases)
        probabilities = aligned_probabilities(scores, self.rho)
        kept = np.flatnonzero(probabilities > EPSILON)
        if self.n_components != "all" and self.n_components < len(kept):
            kept = rng.choice(kept, size=self.n_components, p=normalized(probabilities[kept]))
        weights = probabilities[kept] if self.weighting == "sqrt_q" else np.ones(len(kept))
        self.classes_, self.probabilities_ = classes, probabilities
        self._set_kernel(space, pool[kept], phases[kept], weights, "aligned")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def alignment_scores(
    space: Euclidean, rows: Rows, labels: Array, frequencies: Array, phases: Array
) -> Array:
    """Return squared correlations of features and labels, summed over the tasks, in float64."""
    scores = []
    for first in range(0, len(frequencies), CHUNK):
        chunk = slice(first, first + CHUNK)
        amplitudes = space.amplitudes(rows, labels, frequencies[chunk])
        alignment = space.alignment(amplitudes, phases[chunk], "aligned")
        scores.append(np.square(alignment, dtype=np.float64).sum(axis=(1, 2)))
    return np.concatenate(scores)


def aligned_probabilities(scores: Array, rho: float) -> Array:
    """Return the probabilities with the largest mean score within a divergence `rho` of uniform.

    For a given multiplier of the constraint, the solution is the projection of ``1/N + scores /
    multiplier`` onto the simplex. Its divergence increases with ``step = 1 / multiplier``, which
    is found by bisection.
    """
    n_scores = len(scores)
    uniform = np.full(n_scores, 1 / n_scores)
    spread = float(scores.max() - scores.min())
    if spread == 0 or rho == 0:
        return uniform

    def solution(step: float) -> Array:
        return project_to_simplex(uniform + step * (scores - scores.max()) / spread)

    def divergence(step: float) -> float:
        return n_scores * float(np.square(solution(step) - uniform).sum())

    low, high = 0.0, 1.0
    while divergence(high) < rho and high < 2.0**MAX_BISECTIONS:
        high *= 2  # up to a limit: even the best features alone may be within the divergence
    for _ in range(MAX_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if divergence(middle) <= rho else (low, middle)
        if high - low <= EPSILON * high:
            break
    return solution(low)


def project_to_simplex(point: Array) -> Array:
    """Return the nearest non-negative vector with sum 1."""
    descending = np.sort(point)[::-1]
    excess = (np.cumsum(descending) - 1) / np.arange(1, len(point) + 1)
    last = np.flatnonzero(descending > excess)[-1]
    return np.maximum(point - excess[last], 0)
