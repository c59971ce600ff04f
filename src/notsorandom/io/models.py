"""A fitted estimator, written to a file."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Mapping
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

import notsorandom
from notsorandom._utils.files import checked_path
from notsorandom.io.layout import ESTIMATORS, FORMAT, KEPT, KERNEL, KIND, SUFFIX
from notsorandom.io.packing import Packer
from notsorandom.io.soundness import check_model
from notsorandom.io.tensors import write_tensors
from notsorandom.kernel import LearnedKernel


def save(
    estimator: Any,
    path: Any,
    metrics: Mapping[str, float] | None = None,
    about: Mapping[str, Any] | None = None,
) -> Path:
    """Write a fitted estimator to a file; see :meth:`notsorandom.FourierFeatures.save`.

    `about` is whatever else is to be known of it, in JSON.
    """
    check_is_fitted(estimator)
    path = checked_path(path, SUFFIX)
    name = type(estimator).__name__
    if ESTIMATORS.get(name) is not type(estimator):
        raise TypeError(
            f"{name} can't be saved: {', '.join(ESTIMATORS)} can. Use pickle or joblib instead."
        )
    metrics = checked_metrics(metrics)
    parameters = estimator.get_params(deep=False)
    parameters["checkpoint"] = None  # a path of this machine
    if not isinstance(estimator.random_state, Integral):
        parameters["random_state"] = None
    check_readable(estimator, parameters)
    packer = Packer()
    kept = {key: getattr(estimator, key) for key in KEPT if hasattr(estimator, key)}
    told = {
        "format": FORMAT,
        "library": notsorandom.__version__,
        "class": name,
        "metrics": metrics,
        "about": dict(about or {}),
        "parameters": {key: packer.pack(value, key) for key, value in parameters.items()},
        "space": packer.pack(estimator.kernel_.space, "measured"),
        "phase": estimator.kernel_.phase,
        "kernel": packed_kernel(packer, estimator.kernel_, "kernel"),
        "average": packed_average(packer, estimator),
        "learned": {key: packer.pack(value, key) for key, value in kept.items()},
    }
    write_tensors(path, packer.arrays, {KIND: json.dumps(told)})
    return path


def checked_metrics(metrics: Any) -> dict[str, float]:
    """The metrics as numbers; raise ValueError if they aren't."""
    metrics = {} if metrics is None else metrics
    if not isinstance(metrics, Mapping):
        raise ValueError(f"metrics={metrics!r} is not allowed: it must be a dict of str to number.")
    for key, value in metrics.items():
        if not isinstance(key, str) or not isinstance(value, Real) or not math.isfinite(value):
            raise ValueError(
                f"metrics has {key!r}: {value!r}, but it must have names, with finite numbers."
            )
    return {key: float(value) for key, value in metrics.items()}


def check_readable(estimator: Any, parameters: dict[str, Any]) -> None:
    """Raise ValueError if what would be saved could not be loaded again."""
    copied = copy.copy(estimator).set_params(**parameters)
    try:
        check_model(copied)
    except (AttributeError, ValueError) as error:
        raise ValueError(
            f"This {type(estimator).__name__} can't be saved: {error}. Its parameters were changed "
            "since it was fitted, perhaps: fit it again."
        ) from error


def packed_kernel(packer: Packer, kernel: LearnedKernel, name: str) -> dict[str, Any]:
    """What makes up a kernel, but for the space."""
    return {part: packer.pack(getattr(kernel, part), f"{name}.{part}") for part in KERNEL}


def packed_average(packer: Packer, estimator: Any) -> Any:
    """The average play; if its frequencies are the kernel's, its weights alone."""
    average, kernel = getattr(estimator, "average_kernel_", None), estimator.kernel_
    if average is None:
        return None
    if all(np.array_equal(getattr(average, part), getattr(kernel, part)) for part in KERNEL[:-1]):
        return {"weights": packer.pack(average.weights, "average.weights")}
    return packed_kernel(packer, average, "average")
