"""Whether an estimator is one that a fit could have made."""

from __future__ import annotations

from typing import Any

import numpy as np

from notsorandom.estimators import FourierFeatures
from notsorandom.estimators.config import configured_game, loss_of
from notsorandom.kernel import LearnedKernel
from notsorandom.spaces import Euclidean, HarmonicSphere, ZonalSphere
from notsorandom.spaces.harmonics import count_harmonics
from notsorandom.spaces.zonal_sphere import MOST_DEGREE

# No data have shown more harmonics; and what they take to compute is bounded by it.
MOST_HARMONICS = 2**16
# Looked at together.
CHUNK = 2**14
# How far from one the weights of a kernel may be in all, for rounding.
SUM_TOLERANCE = 1e-3
STATUSES = ("complete", "stopped", "flat")


def check_model(estimator: Any) -> None:
    """Raise ValueError, or whatever comes of nonsense, unless all of it fits together."""
    require(estimator.checkpoint is None, "checkpoint")  # a path that a fit would write to
    require(estimator.random_state is None or is_count(estimator.random_state), "random_state")
    check_kernel(estimator.kernel_)
    if hasattr(estimator, "average_kernel_"):
        check_kernel(estimator.average_kernel_)
    kernel = estimator.kernel_
    n_features = estimator.n_features_in_
    require(is_count(n_features, 1), "the number of columns")
    require(n_features == kernel.space.n_features(kernel.frequencies), "the number of columns")
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None:
        require(names.dtype == object and names.shape == (n_features,), "the names of columns")
        require(len(set(names.tolist())) == n_features, "the names of columns")
    given = getattr(estimator.space, "center", None)  # which is copied next
    require(not isinstance(given, np.ndarray) or given.shape == (n_features,), "the centre")
    configured_game(estimator)
    n_samples, bits = estimator.n_samples_fit_, estimator._held_bits
    require(is_count(n_samples, 1), "the number of samples")
    if bits is not None:
        sound = bits.dtype == np.uint8 and bits.shape == ((n_samples + 7) // 8,)
        require(sound, "the samples held out")
    require(estimator.status_ in STATUSES, "the status")
    smoothing = estimator.smoothing_
    require(type(smoothing) is float and 0 <= smoothing < np.inf, "the smoothing")
    require(isinstance(estimator._weighted, bool), "whether samples had weights")
    require(
        set(map(type, [*estimator._fingerprint, *estimator._fingerprint.values()])) == {str},
        "the fingerprint",
    )
    check_records(estimator)
    check_machines(estimator, n_tasks(estimator))
    if loss_of(estimator).one_sided:  # now that there are no more than there are machines
        require((estimator.classes_[1:] > estimator.classes_[:-1]).all(), "the classes")


def check_kernel(kernel: LearnedKernel) -> None:
    """Raise ValueError unless a kernel has frequencies of its space, and weights."""
    frequencies, space = kernel.frequencies, kernel.space
    require(kernel.phase in ("aligned", "paired"), "the phase")
    space.n_columns(kernel.phase)  # not all spaces have all phases
    count = len(kernel.weights)
    require(count > 0 and frequencies.ndim == 2 and len(frequencies) == count, "the frequencies")
    require(frequencies.shape[1] > 0 and are_finite(frequencies), "the frequencies")
    for name in ("phases", "scales", "weights"):
        values = getattr(kernel, name)
        sound = values.dtype.kind == "f" and values.shape == (count,) and np.isfinite(values).all()
        require(sound, f"the {name}")
    require((kernel.weights >= 0).all(), "the weights")
    require(abs(kernel.weights.sum(dtype=np.float64) - 1) < SUM_TOLERANCE, "the weights")
    space.check()
    require(is_real(space.scale) and np.isfinite(space.scale), "the scale")
    SPACES[type(space)](space, frequencies)


def check_euclidean(space: Euclidean, frequencies: Any) -> None:
    """Raise ValueError unless the space is measured, and the frequencies are vectors."""
    require(frequencies.dtype.kind == "f", "the frequencies")
    center = space.center
    require(center.dtype.kind == "f" and center.shape == frequencies.shape[1:], "the centre")


def check_harmonics(space: HarmonicSphere, frequencies: Any) -> None:
    """Raise ValueError unless the frequencies are indices of harmonics."""
    require(frequencies.dtype == np.int64, "the frequencies")
    require(is_count(space.max_degree, 1), "the largest degree")
    require(is_count(space.max_harmonics) and space.max_harmonics <= MOST_HARMONICS, "harmonics")
    count = count_harmonics(frequencies.shape[1] + 1, space.max_degree)
    require(count <= space.max_harmonics, "the largest degree")
    # Only the first may be negative, and none is larger in size than the next, or the degree.
    require((frequencies[:, 0] >= -space.max_degree).all(), "the frequencies")
    require((frequencies[:, -1] <= space.max_degree).all(), "the frequencies")
    require((frequencies[:, 1:] >= frequencies[:, :-1]).all(), "the frequencies")
    require((frequencies[:, 1:2] >= -frequencies[:, :1]).all(), "the frequencies")


def check_zonal(space: ZonalSphere, frequencies: Any) -> None:
    """Raise ValueError unless the frequencies are poles times their degrees."""
    require(frequencies.dtype.kind == "f" and frequencies.shape[1] > 1, "the frequencies")
    require(is_count(space.max_degree, 1), "the largest degree")
    require(space.max_degree <= MOST_DEGREE[np.dtype(np.float64)], "the largest degree")
    lengths = np.sqrt(np.einsum("ij,ij->i", frequencies, frequencies, dtype=np.float64))
    near = np.abs(lengths - np.rint(lengths)) < SUM_TOLERANCE
    require((near & (lengths > 0.5) & (lengths < space.max_degree + 0.5)).all(), "the frequencies")


SPACES: dict[Any, Any] = {
    Euclidean: check_euclidean,
    HarmonicSphere: check_harmonics,
    ZonalSphere: check_zonal,
}


def n_tasks(estimator: Any) -> int:
    """Linear models that an estimator has; raise ValueError unless its targets make sense."""
    if loss_of(estimator).one_sided:
        classes = estimator.classes_
        require(classes.ndim == 1 and len(classes) > 1, "the classes")
        require(classes.dtype.kind != "f" or np.isfinite(classes).all(), "the classes")
        return 1 if len(classes) == 2 else len(classes)
    count, flat = estimator.n_outputs_, estimator._flat
    require(is_count(count, 1) and isinstance(flat, bool) and (count == 1 or not flat), "outputs")
    return int(count)


def check_records(estimator: Any) -> None:
    """Raise ValueError unless the game's records are columns of numbers."""
    history = estimator.history_
    require({"n_frequencies", "seconds", "lower"} <= set(history), "the history")
    lengths = {len(column) for column in history.values()}
    require(len(lengths) == 1 and 0 not in lengths, "the history")
    for name, column in history.items():
        require(isinstance(name, str) and column.ndim == 1 and column.dtype.kind in "if", "history")
    for name in ("validation_sizes_", "validation_losses_", "validation_scores_"):
        column = getattr(estimator, name, np.zeros(1))
        require(column.ndim == 1 and column.dtype.kind in "if", name)


def check_machines(estimator: Any, n_tasks: int) -> None:
    """Raise ValueError unless a predictor has the linear models that its targets ask for."""
    if isinstance(estimator, FourierFeatures):
        return
    coef, intercept = estimator.coef_, estimator.intercept_
    n_components = estimator.kernel_.n_components
    require(coef.dtype.kind == intercept.dtype.kind == "f", "the coefficients")
    require(coef.shape == (n_tasks, n_components), "the coefficients")
    require(intercept.shape == (n_tasks,), "the intercepts")
    require(are_finite(coef) and np.isfinite(intercept).all(), "the coefficients")
    require(is_real(estimator.duality_gap_), "the duality gap")


def require(holds: Any, what: str) -> None:
    """Raise ValueError unless something holds."""
    if not holds:
        raise ValueError(f"{what} can't be right")


def are_finite(values: Any) -> bool:
    """Whether all numbers of an array are finite, looking at few of them at a time."""
    step = max(1, CHUNK // max(1, values[:1].size))
    starts = range(0, len(values), step)
    return all(bool(np.isfinite(values[start : start + step]).all()) for start in starts)


def is_count(value: Any, least: int = 0) -> bool:
    """Whether a value is a whole number, and no less."""
    return type(value) is int and value >= least


def is_real(value: Any) -> bool:
    """Whether a value is a number."""
    return type(value) in (int, float)
