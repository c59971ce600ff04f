"""Whether an estimator is one that a fit could have produced."""

from __future__ import annotations

from typing import Any

import numpy as np

from notsorandom.data.rows import Array, row_norms
from notsorandom.estimators.config import SPECTRA, configure, loss_of
from notsorandom.estimators.features import FourierFeatures
from notsorandom.kernel import LearnedKernel
from notsorandom.spaces import Euclidean, HarmonicSphere, ZonalSphere
from notsorandom.spaces.zonal_sphere import MAX_DEGREE

# Tolerance for rounding, of the sum of the weights and of the length of zonal frequencies.
TOLERANCE = 1e-3
STATUSES = ("complete", "stopped", "flat")


def validate_model(model: Any) -> None:
    """Raise ValueError, TypeError or AttributeError unless all attributes are consistent."""
    require(model.checkpoint is None, "checkpoint")  # loading must not choose a file to write to
    require(model.random_state is None or is_integer(model.random_state), "random_state")
    configure(model)
    kernel, n_features, n_samples = model.kernel_, model.n_features_in_, model.n_samples_fit_
    for each in (kernel, getattr(model, "average_kernel_", kernel)):
        validate_kernel(each)
    require(is_integer(n_features), "n_features_in_")
    require(n_features == kernel.space.n_features(kernel.frequencies), "n_features_in_")
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        require(is_array(names, "O", (n_features,)), "feature_names_in_")
        require(len(set(names.tolist())) == n_features, "feature_names_in_")
    require(is_integer(n_samples, 1), "n_samples_fit_")
    bits = model._held_out_bits
    require(bits is None or is_array(bits, "u", ((n_samples + 7) // 8,)), "_held_out_bits")
    require(model.status_ in STATUSES, "status_")
    require(isinstance(model._weighted, bool), "_weighted")
    validate_choices(model)
    validate_records(model)
    n_tasks = validate_targets(model)
    if not isinstance(model, FourierFeatures):
        require(is_array(model.coef_, "f", (n_tasks, kernel.n_components)), "coef_")
        require(is_array(model.intercept_, "f", (n_tasks,)), "intercept_")
        require(type(model.duality_gap_) in (int, float), "duality_gap_")


def validate_kernel(kernel: LearnedKernel) -> None:
    """Raise an error unless a kernel has frequencies of its space, and weights."""
    frequencies, n_frequencies = kernel.frequencies, len(kernel.weights)
    space = kernel.space
    require(kernel.phase in ("aligned", "paired"), "phase")
    space.n_columns(kernel.phase)  # not all spaces have all phases
    space.check()
    require(not isinstance(space.scale, str), "scale")
    require(frequencies.ndim == 2 and frequencies.shape[1] > 0, "frequencies")
    require(len(frequencies) == n_frequencies > 0, "frequencies")
    for name in ("phases", "scales", "weights"):
        require(is_array(getattr(kernel, name), "f", (n_frequencies,)), name)
    require((kernel.weights >= 0).all() and abs(kernel.weights.sum() - 1) < TOLERANCE, "weights")
    if type(space) is Euclidean:
        require(is_array(frequencies, "f"), "frequencies")
        require(is_array(space.center, "f", frequencies.shape[1:]), "center")
        return
    if not isinstance(space, (HarmonicSphere, ZonalSphere)):
        raise ValueError("space is not valid")
    require(is_integer(space.max_degree, 1), "max_degree")
    if type(space) is HarmonicSphere:
        # Indices don't decrease along a row, except that the first may be negative.
        require(frequencies.dtype == np.int64, "frequencies")
        degrees = np.column_stack([np.abs(frequencies[:, 0]), frequencies[:, 1:]])
        require((np.diff(degrees, axis=1) >= 0).all() and (degrees >= 0).all(), "frequencies")
    else:  # poles times degrees
        require(is_array(frequencies, "f"), "frequencies")
        norms = row_norms(frequencies.astype(np.float64))
        degrees = np.rint(norms)
        require((degrees >= 1).all() and (abs(norms - degrees) < TOLERANCE).all(), "frequencies")
        require(frequencies.shape[1] > 1, "frequencies")
        # A higher degree would take for ever; no fit allows it.
        require(space.max_degree <= MAX_DEGREE[np.dtype(np.float64)], "max_degree")
    require((degrees <= space.max_degree).all(), "frequencies")


def validate_targets(model: Any) -> int:
    """Return the number of linear models; raise an error unless the targets make sense."""
    if loss_of(model).one_sided:
        classes = model.classes_
        require(classes.ndim == 1 and len(classes) > 1, "classes_")
        require((classes[1:] > classes[:-1]).all(), "classes_")
        return 1 if len(classes) == 2 else len(classes)
    n_outputs, is_flat = model.n_outputs_, model._flat
    require(is_integer(n_outputs, 1), "n_outputs_")
    require(isinstance(is_flat, bool) and (n_outputs == 1 or not is_flat), "_flat")
    return int(n_outputs)


def validate_choices(model: Any) -> None:
    """Raise an error unless what was chosen by trials, and their results, make sense."""
    for name in ("C_", "temperature_") if hasattr(model, "predict_proba") else ("C_",):
        value = getattr(model, name)
        require(type(value) is float and 0 < value < np.inf, name)
    for name in ("smoothing_", "epsilon_"):
        value = getattr(model, name)
        require(type(value) is float and 0 <= value < np.inf, name)
    require(model.spectrum_ in (None, *SPECTRA), "spectrum_")
    tuning = model.tuning_
    if tuning is None:
        return
    require(isinstance(tuning, dict) and "loss" in tuning, "tuning_")
    require(all(isinstance(name, str) for name in tuning), "tuning_")
    require(all(isinstance(column, np.ndarray) for column in tuning.values()), "tuning_")
    require(is_array(tuning["loss"], "f"), "tuning_")
    require(len({len(column) for column in tuning.values()}) == 1, "tuning_")
    for column in tuning.values():
        require(column.ndim == 1 and len(column) > 0 and column.dtype.kind in "ifU", "tuning_")


def validate_records(model: Any) -> None:
    """Raise an error unless the records of the game are columns of numbers."""
    history = model.history_
    require({"n_frequencies", "seconds", "lower"} <= set(history), "history_")
    require(len({len(column) for column in history.values()}) == 1, "history_")
    names = ("validation_sizes_", "validation_losses_", "validation_scores_")
    for column in (*history.values(), *(getattr(model, name, np.zeros(1)) for name in names)):
        require(column.ndim == 1 and len(column) > 0 and column.dtype.kind in "if", "history_")


def require(condition: Any, name: str) -> None:
    """Raise ValueError unless a condition holds."""
    if not condition:
        raise ValueError(f"{name} is not valid")


def is_array(values: Array, kind: str, shape: tuple[int, ...] | None = None) -> bool:
    """Return whether an array has this kind of type, this shape, and no NaN or infinity."""
    if values.dtype.kind != kind or (shape is not None and values.shape != shape):
        return False
    return kind != "f" or bool(np.isfinite(values).all())


def is_integer(value: Any, least: int = 0) -> bool:
    """Return whether a value is an int of at least this."""
    return type(value) is int and value >= least
