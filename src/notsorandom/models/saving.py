"""A fitted estimator, written to a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

import notsorandom
from notsorandom.files import checked_path
from notsorandom.kernel import LearnedKernel
from notsorandom.models.layout import ESTIMATORS, FORMAT, KEPT, KERNEL, KIND, SUFFIX
from notsorandom.packing import Packer
from notsorandom.parameters import check_number
from notsorandom.tensors import write_tensors


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
    metrics = metrics or {}
    for key, value in metrics.items():
        check_number(f"metrics[{key!r}]", value, least=-np.inf)
    packer = Packer()
    parameters = estimator.get_params(deep=False) | {"checkpoint": None}  # a path of this machine
    if isinstance(estimator.random_state, np.random.RandomState):
        parameters["random_state"] = None
    kept = {key: getattr(estimator, key) for key in KEPT if hasattr(estimator, key)}
    held_out = estimator._held_out
    told = {
        "format": FORMAT,
        "library": notsorandom.__version__,
        "class": name,
        "metrics": {key: float(value) for key, value in metrics.items()},
        "about": dict(about or {}),
        "parameters": {key: packer.pack(value, key) for key, value in parameters.items()},
        "space": packer.pack(estimator.kernel_.space, "measured"),
        "kernel": packed_kernel(packer, estimator.kernel_, "kernel"),
        "average": packed_average(packer, estimator),
        "learned": {key: packer.pack(value, key) for key, value in kept.items()},
        "held_out": packer.pack(None if held_out is None else np.packbits(held_out), "held_out"),
    }
    write_tensors(path, packer.arrays, {KIND: json.dumps(told)})
    return path


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
