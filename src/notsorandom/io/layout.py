"""What a file of a model says, and where."""

from __future__ import annotations

from typing import Any

from notsorandom.estimators import FourierClassifier, FourierFeatures, FourierRegressor
from notsorandom.estimators.warm_start import Paused
from notsorandom.game import Checkpoint, Found
from notsorandom.io.packing import OBJECTS
from notsorandom.kernel import LearnedKernel

# Of the files. One of a later format is refused, with the advice to update.
FORMAT = 1
KIND = "notsorandom.model"
SUFFIX = ".safetensors"
ESTIMATORS: dict[str, Any] = {
    kind.__name__: kind for kind in (FourierFeatures, FourierClassifier, FourierRegressor)
}
# What skops is to trust: ``skops.io.load(path, trusted=notsorandom.SKOPS_TYPES)``. All of them are
# plain containers of numbers.
SKOPS_TYPES = [
    f"{kind.__module__}.{kind.__qualname__}"
    for kind in (*ESTIMATORS.values(), *OBJECTS.values(), LearnedKernel, Checkpoint, Found, Paused)
]
# Of each frequency of a kernel.
KERNEL = ("frequencies", "phases", "scales", "weights")
# Attributes that are kept as they are. The others follow from these and the kernels, or are as long
# as the training data.
KEPT = (
    "classes_",
    "n_outputs_",
    "history_",
    "status_",
    "smoothing_",
    "validation_sizes_",
    "validation_losses_",
    "validation_scores_",
    "n_samples_fit_",
    "n_features_in_",
    "feature_names_in_",
    "coef_",
    "intercept_",
    "duality_gap_",
    "_flat",
    "_weighted",
    "_fingerprint",
    "_held_bits",
)
