"""Save and load fitted models, alone or in pipelines."""

from __future__ import annotations

import copy
import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from notsorandom import __version__
from notsorandom._utils.files import FileFormatError, check_output_path, write_atomic
from notsorandom.estimators.base import FourierEstimator
from notsorandom.io.archive import (
    METADATA,
    MIN_LENGTH,
    SCHEMA,
    UntrustedError,
    check_schema,
    decode,
    encode,
    pack,
    unpack,
    walk,
)
from notsorandom.io.checks import TRIALS, run_trial, validate
from notsorandom.spaces.base import Space

Record = Mapping[str, Any] | None
FORMAT = 6  # files of another one are refused
VERSIONS = {"library": __version__, "scikit-learn": sklearn.__version__}
MAX_METADATA = 2**20  # bytes, which are parsed before anything is known about them
# Attributes that are not stored: one value per training sample, or only for the next fit.
NOT_STORED = {"dual_", "average_dual_", "_warm_start", "_skl_callbacks"}
NOT_KEPT = {"_weights", "checkpoint", "memory", "n_jobs"}  # None; so is a generator


def save(model: Any, path: Any, metrics: Record = None, description: Record = None) -> Path:
    """Write a fitted model or pipeline to a file that :func:`notsorandom.load` reads.

    It is written as a whole: if that fails, an earlier file stays as it was. Not kept are `dual_`,
    `average_dual_`, sample weights, the state for ``warm_start``, `checkpoint`, `n_jobs`, `memory`
    of pipelines, and a `random_state` that is a generator.

    Parameters
    ----------
    model : estimator
        Fitted: an estimator of this library, or a pipeline with one. Save the whole pipeline, so
        that a loaded model takes the same `X`. A warning names the classes that
        :func:`notsorandom.load` has to be told to trust: all but ours, and the scalers, imputers
        and encoder that most pipelines have.
    path : str or Path
        Must end in ``.skops``.
    metrics, description : dict, optional
        Numbers by name, such as the accuracy, and what JSON can write, to keep in the file.

    Returns
    -------
    Path

    Examples
    --------
    >>> import notsorandom
    >>> from notsorandom.datasets import make_windmill
    >>> X, y = make_windmill(500, random_state=0)
    >>> model = notsorandom.FourierClassifier(20, smoothing=0.06).fit(X, y)
    >>> path = notsorandom.save(model, "windmill.skops", {"accuracy": model.score(X, y)})
    >>> notsorandom.load(path).predict(X).shape
    (500,)
    """
    check_is_fitted(model)
    path = check_output_path(path, ".skops")
    given = check_given(metrics, description)
    try:
        content, untrusted = build(model, given)
    except Exception as error:
        raise ValueError(
            f"This {type(model).__name__} can't be saved: {str(error).rstrip('.')}. With other "
            "parameters, fit it again; save best_estimator_ of a search, to_local() of a Dask "
            "model, and others by pickle or joblib."
        ) from error
    try:
        write_atomic(path, content)
    except OSError as error:
        hint = "nothing was written, an earlier file is unchanged; give another path"
        raise OSError(error.errno, f"{error.strerror}: {hint}", str(path)) from error
    if untrusted:
        warnings.warn(
            f"{path} has parts that load refuses by default: load it by load(path, "
            f"trusted={untrusted}).",
            stacklevel=2,
        )
    return path


def build(model: Any, given: dict[str, Any]) -> tuple[bytes, list[str]]:
    """Return the content of a file, and the names that `load` needs to trust.

    Raise an error if it could not be loaded again as it is.
    """
    stored = without_training_state(model)
    files = encode(stored)
    untrusted = check_schema(files[SCHEMA])
    trial = None
    for kind in TRIALS:
        with suppress(Exception):  # its steps may not allow such a row
            run_trial(stored, kind)
            trial = kind
            break
    metadata = {"format": FORMAT, **VERSIONS, "class": type(model).__name__, **given}
    text = json.dumps(metadata | {"trial": trial}).ljust(MIN_LENGTH)
    content = pack({METADATA: text.encode(), **files})
    loaded = decode(content, untrusted)
    if encode(loaded) != files:
        raise ValueError("skops would change a part of it, such as a dict whose keys are booleans")
    validate(loaded, trial, len(content), untrusted)
    return content, sorted(untrusted)


def without_training_state(model: Any) -> Any:
    """Return a copy of a model without training state; it shares the arrays."""
    memo: dict[int, Any] = {}
    read_only: dict[Any, Any] = {}  # arrays of a kernel and of the average kernel may be equal
    for part in walk(model):
        if isinstance(part, FourierEstimator):
            memo |= {id(getattr(part, name, None)): None for name in NOT_STORED}
        elif isinstance(part, np.ndarray):
            key = id(part) if part.flags.writeable else (part.dtype, part.shape, part.tobytes())
            memo[id(part)] = read_only.setdefault(key, part)
    copied = copy.deepcopy(model, memo)
    for part in walk(copied):
        is_ours = type(part).__module__.startswith("notsorandom.")
        if isinstance(part, Space) and is_ours:  # parameters, without values computed from them
            part.__dict__ = part.get_params(deep=False)
        elif isinstance(part, BaseEstimator):
            for name in NOT_STORED & vars(part).keys():
                delattr(part, name)
            for name in NOT_KEPT & vars(part).keys():
                setattr(part, name, None)
            if not isinstance(getattr(part, "random_state", 0), Integral):
                part.random_state = None
    return copied


def check_given(metrics: Any, description: Any) -> dict[str, Any]:
    """Return metrics and description as they are stored; raise ValueError if they can't be."""
    try:
        metrics = {str(name): float(value) for name, value in dict(metrics or {}).items()}
        given = {"metrics": metrics, "description": dict(description or {})}
        if len(json.dumps(given, allow_nan=False)) > MAX_METADATA:
            raise ValueError("they have more than a megabyte")
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ValueError(
            f"metrics must be a dict of numbers, and description one for JSON: {error}."
        ) from error
    return given


def load(path: Any, *, trusted: Sequence[str] = ()) -> Any:
    """Read a model or pipeline that was written by :func:`notsorandom.save`.

    By default nothing in the file is executed, and its numbers are checked: it can be opened
    whoever wrote it. Raises FileFormatError if it is damaged, is not a model file, is of another
    version of the format, or has classes or functions that are not trusted.

    Parameters
    ----------
    path : str or Path
        A model file.
    trusted : sequence of str, default=()
        Full names of other classes and functions that the file may have, such as
        ``"sklearn.multiclass.OneVsRestClassifier"``. They are imported, and what the file says of
        them is not checked: give them only for files of people you trust.

    Returns
    -------
    estimator
        Predicts the same as the saved one, to the last bit. Its `n_jobs` is None.
    """
    if isinstance(trusted, str) or not all(isinstance(name, str) for name in trusted):
        raise TypeError(
            f"trusted={trusted!r} is not allowed: give a list of full names of classes."
        )
    with open_file(path) as (data, metadata):
        model = decode(data, trusted)
        validate(model, metadata["trial"], len(data), trusted)
        return model


def read_metadata(path: Any) -> dict[str, Any]:
    """Return the metadata of a model file, without making the model.

    Parameters
    ----------
    path : str or Path
        A model file.

    Returns
    -------
    dict
        Keys: format, library, scikit-learn, class, metrics, description, trial (a row to try it
        with).
    """
    with open_file(path) as (_, metadata):
        return metadata


@contextmanager
def open_file(path: Any) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """Yield the content of a model file and its metadata; raise all errors as FileFormatError."""
    if Path(path).exists() and not Path(path).is_file():  # a pipe or a device might never end
        raise FileFormatError(f"{path} is not a regular file: give the path of a model file.")
    data, written = Path(path).read_bytes(), ""
    try:
        text = bytes(unpack(data)[METADATA])
        if len(text) > 2 * MAX_METADATA:
            raise ValueError("its metadata are too long")
        metadata = json.loads(text)
        metadata |= {name: str(metadata[name]) for name in (*VERSIONS, "class")}
        written = f" (notsorandom {metadata['library']}, scikit-learn {metadata['scikit-learn']})"
        if metadata["format"] != FORMAT:
            raise FileFormatError(
                f"{path} has format {metadata['format']!r}{written}, and notsorandom {__version__} "
                f"reads format {FORMAT}: fit the model again and save it, or load the file with "
                "the version that wrote it."
            )
        metadata |= check_given(metadata["metrics"], metadata["description"])
        yield data, metadata
    except FileFormatError:
        raise
    except UntrustedError as error:
        raise FileFormatError(
            f"{path} has parts that are not loaded by default: {error}. If you trust who wrote it, "
            f"load it by notsorandom.load(path, trusted={error.names})."
        ) from error
    except Exception as error:
        reason = (str(error) or type(error).__name__).rstrip(".")
        raise FileFormatError(
            f"{path} can't be read: {reason}. It is damaged, not a model file, or of another "
            f"version: use another copy, the version that wrote it{written}, or save it again."
        ) from error
