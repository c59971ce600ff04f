"""Save and load fitted estimators."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

import notsorandom
from notsorandom._utils.files import FileFormatError, check_output_path
from notsorandom.data.rows import Array
from notsorandom.estimators.base import LEARNED
from notsorandom.estimators.classifier import FourierClassifier
from notsorandom.estimators.config import Checkpoint
from notsorandom.estimators.features import FourierFeatures
from notsorandom.estimators.regressor import FourierRegressor
from notsorandom.estimators.resume import WarmStart
from notsorandom.estimators.training import Preparation
from notsorandom.game.result import ActiveSet, GameState
from notsorandom.io.encoding import CLASSES, decode, encode
from notsorandom.io.tensors import CONTENT_ERRORS, format_error, read_tensors, write_tensors
from notsorandom.io.validate import validate_model
from notsorandom.kernel import LearnedKernel
from notsorandom.spaces.view import CastView, ProjectedView

# Version of the file format. Files of another one are rejected.
FORMAT = 3
METADATA_KEY = "notsorandom.model"
SUFFIX = ".safetensors"
ESTIMATORS: dict[str, Any] = {
    kind.__name__: kind for kind in (FourierFeatures, FourierClassifier, FourierRegressor)
}
# Types for ``skops.io.load(path, trusted=notsorandom.SKOPS_TYPES)``. All of them only hold data.
OTHER_TYPES = (
    Checkpoint,
    LearnedKernel,
    WarmStart,
    Preparation,
    ProjectedView,
    CastView,
    GameState,
    ActiveSet,
)
SKOPS_TYPES = [
    f"{kind.__module__}.{kind.__qualname__}"
    for kind in (*ESTIMATORS.values(), *CLASSES.values(), *OTHER_TYPES)
]
KERNEL_ARRAYS = ("frequencies", "phases", "scales", "weights")
# Attributes that have one value per training sample, or are stored as part of a kernel.
NOT_STORED = {"dual_", "average_dual_", "_weights", "frequencies_", "phases_"}
NOT_STORED |= {"kernel_", "average_kernel_"}
STORED = [name for name in LEARNED if name not in NOT_STORED]
STORED += ["coef_", "intercept_", "duality_gap_"]


def save(
    model: Any,
    path: Any,
    metrics: Mapping[str, float] | None = None,
    description: Mapping[str, Any] | None = None,
) -> Path:
    """Write a fitted estimator to a file that :func:`notsorandom.load` reads.

    The file is in the safetensors format, arrays with a header in JSON, which many programs and
    languages read. It is written as a whole: if that fails, an earlier file stays as it was.

    Parameters
    ----------
    model : FourierFeatures, FourierClassifier or FourierRegressor
        Fitted.
    path : str or Path
        Must end in ``.safetensors``.
    metrics : dict of str to number, optional
        Metrics of the model to keep in the file, such as its accuracy.
    description : dict, optional
        Further information to keep in the file; it must be possible to write it as JSON.

    Returns
    -------
    Path

    Notes
    -----
    Not kept are `dual_`, `average_dual_` and sample weights, which have one value per training
    sample; nor the state for ``warm_start``, `checkpoint`, or a `random_state` that is a generator.

    Examples
    --------
    >>> import notsorandom
    >>> from notsorandom.datasets import make_windmill
    >>> X, y = make_windmill(500, random_state=0)
    >>> model = notsorandom.FourierClassifier(20, smoothing=0.06).fit(X, y)
    >>> path = notsorandom.save(model, "windmill.safetensors", {"accuracy": model.score(X, y)})
    >>> notsorandom.load(path).predict(X).shape
    (500,)
    """
    check_is_fitted(model)
    path = check_output_path(path, SUFFIX)
    name = type(model).__name__
    if ESTIMATORS.get(name) is not type(model):
        raise TypeError(
            f"{type(model).__module__}.{name} can't be saved, only {', '.join(ESTIMATORS)}. Use "
            "model.to_local() of notsorandom.dask, else pickle or joblib."
        )
    parameters = model.get_params(deep=False) | {"checkpoint": None}
    if not isinstance(model.random_state, Integral):
        parameters["random_state"] = None
    check_loadable(model, parameters)
    kernel, average = model.kernel_, getattr(model, "average_kernel_", None)
    arrays: dict[str, Array] = {}
    learned = {key: getattr(model, key) for key in STORED if hasattr(model, key)}
    metadata = {
        "format": FORMAT,
        "library": notsorandom.__version__,
        "class": name,
        "metrics": check_metrics(metrics),
        "description": check_description(description),
        "parameters": {key: encode(value, key, arrays) for key, value in parameters.items()},
        "space": encode(kernel.space, "resolved_space", arrays),
        "phase": kernel.phase,
        "kernel": encode_kernel(kernel, "kernel", arrays),
        "average_kernel": encode_kernel(average, "average_kernel", arrays, base=kernel),
        "learned": {key: encode(value, key, arrays) for key, value in learned.items()},
    }
    write_tensors(path, arrays, {METADATA_KEY: json.dumps(metadata)})
    return path


def check_metrics(metrics: Any) -> dict[str, float]:
    """Return the metrics as floats; raise ValueError if they can't be."""
    metrics = {} if metrics is None else metrics
    if not isinstance(metrics, Mapping):
        raise ValueError(f"metrics={metrics!r} is not allowed: it must be a dict of str to number.")
    for key, value in metrics.items():
        if not isinstance(key, str) or not isinstance(value, Real) or not math.isfinite(value):
            raise ValueError(
                f"metrics has {key!r}: {value!r}, but its keys must be strings and its values "
                "finite numbers."
            )
    return {key: float(value) for key, value in metrics.items()}


def check_description(description: Any) -> dict[str, Any]:
    """Return the description as a dict; raise ValueError if it can't be written as JSON."""
    description = {} if description is None else description
    try:
        if isinstance(description, Mapping):
            json.dumps(dict(description))
            return dict(description)
    except (TypeError, ValueError):
        pass
    raise ValueError(
        f"description={description!r} is not allowed: it must be a dict of values that can be "
        "written as JSON."
    )


def check_loadable(model: Any, parameters: dict[str, Any]) -> None:
    """Raise ValueError if the saved model could not be loaded again."""
    try:
        validate_model(copy.copy(model).set_params(**parameters))
    except (AttributeError, ValueError) as error:
        raise ValueError(
            f"This {type(model).__name__} can't be saved: {error}. If parameters were changed "
            "since the fit, fit it again."
        ) from error


def encode_kernel(kernel: Any, name: str, arrays: dict[str, Array], base: Any = None) -> Any:
    """Encode the arrays of a kernel, except those that are equal in the kernel `base`."""
    return kernel and {
        part: encode(getattr(kernel, part), f"{name}.{part}", arrays)
        for part in KERNEL_ARRAYS
        if base is None or not np.array_equal(getattr(kernel, part), getattr(base, part))
    }


def load(path: Any) -> Any:
    """Read an estimator that was written by :func:`notsorandom.save`.

    Nothing in the file is executed.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    FourierFeatures, FourierClassifier or FourierRegressor
        Its predictions are equal to those of the saved estimator to the last bit. See
        :func:`notsorandom.save` for the attributes that it doesn't have.

    Raises
    ------
    FileFormatError
        If the file is damaged, is not a model file, or is of another version of the format.
    """
    file = read_model_file(path)
    try:
        with np.errstate(all="ignore"):  # invalid numbers raise an error instead
            return restore(file)
    except CONTENT_ERRORS as error:
        raise format_error(file.path, f"it doesn't contain a valid model ({error})") from error


def restore(file: ModelFile) -> Any:
    """Return the estimator in a file; raise an error if it is not valid."""
    metadata, arrays = file.metadata, file.arrays
    maker = ESTIMATORS[metadata["class"]]
    encoded = metadata["parameters"]
    if set(encoded) != set(maker().get_params(deep=False)):
        raise ValueError(f"its parameters are not those of {maker.__name__}")
    model = maker(**{key: decode(value, arrays) for key, value in encoded.items()})
    kernel = {part: decode(metadata["kernel"][part], arrays) for part in KERNEL_ARRAYS}
    space, phase = decode(metadata["space"], arrays), metadata["phase"]
    model.kernel_ = LearnedKernel(space, **kernel, phase=phase)
    model.frequencies_, model.phases_ = model.kernel_.frequencies, model.kernel_.phases
    if metadata["average_kernel"] is not None:
        average = {key: decode(item, arrays) for key, item in metadata["average_kernel"].items()}
        model.average_kernel_ = LearnedKernel(space, **kernel | average, phase=phase)
    for name in STORED:
        if name in metadata["learned"]:
            setattr(model, name, file.attribute(name))
    model._weights = None
    validate_model(model)
    return model


@dataclass(frozen=True)
class ModelFile:
    """The contents of a model file.

    Parameters
    ----------
    path : Path
    metadata : dict
        As JSON: ``class``, ``library``, ``parameters``, ``metrics``, ``description`` and so on.
    arrays : dict of str to ndarray
        As stored, read-only.
    """

    path: Path
    metadata: dict[str, Any]
    arrays: dict[str, Array]

    def attribute(self, name: str) -> Any:
        """Return an attribute of the fitted model, or None."""
        return decode(self.metadata["learned"].get(name), self.arrays)


def read_model_file(path: Any) -> ModelFile:
    """Read the contents of a model file without making the model.

    Raises FileFormatError as :func:`load` does.
    """
    path = Path(path)
    arrays, texts = read_tensors(path)
    try:
        metadata = json.loads(texts[METADATA_KEY])
        version = metadata["format"]
        parts = ("description", "metrics", "learned", "parameters")
        if not all(isinstance(metadata[part], dict) for part in parts):
            raise ValueError(f"{', '.join(parts)} must be objects")
    except CONTENT_ERRORS as error:
        raise format_error(path, f"its metadata are not those of a model ({error})") from error
    if version != FORMAT:
        raise FileFormatError(
            f"{path} is of format {version!r}, but notsorandom {notsorandom.__version__} reads "
            f"format {FORMAT}: use the version that wrote the file, or update the library."
        )
    return ModelFile(path, metadata, arrays)


def read_metadata(path: Any) -> dict[str, Any]:
    """Return the metadata of a model file; see :class:`ModelFile`."""
    return read_model_file(path).metadata
