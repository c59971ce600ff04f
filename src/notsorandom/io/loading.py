"""A fitted estimator, read from a file that nobody vouches for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import notsorandom
from notsorandom.io.layout import ESTIMATORS, FORMAT, KEPT, KERNEL, KIND
from notsorandom.io.packing import Unpacker
from notsorandom.io.soundness import check_model
from notsorandom.io.tensors import FileFormatError, TensorFile
from notsorandom.kernel import LearnedKernel


def load(path: Any) -> Any:
    """Read an estimator that was written by its method ``save``.

    Nothing in the file is ever executed. A file that is damaged, or was tampered with, raises
    :class:`notsorandom.FileFormatError`.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    FourierFeatures, FourierClassifier or FourierRegressor
        It predicts bit for bit what the estimator did that was saved. It has no `dual_` and
        `average_dual_`, which are as long as the training data, nor the weights of samples, nor
        a game that ``warm_start`` could go on with.

    Examples
    --------
    >>> import notsorandom
    >>> from notsorandom.datasets import make_windmill
    >>> X, y = make_windmill(500, random_state=0)
    >>> path = notsorandom.FourierClassifier(20).fit(X, y).save("windmill.safetensors")
    >>> notsorandom.load(path).predict(X).shape
    (500,)
    """
    with TensorFile(Path(path)) as file:
        try:
            return restored(file, described(file))
        except FileFormatError:
            raise
        # Whatever is missing, of the wrong kind or out of its range.
        except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
            raise file.refuse(f"it is no sound model ({error})") from error
        except RecursionError as error:
            raise file.refuse("it is nested too deeply") from error


def describe(path: Any) -> dict[str, Any]:
    """What a file of a model says of itself, without making the model.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    dict
        In plain values: ``class``, ``library``, ``parameters``, ``metrics``, ``about``, and so on.
    """
    with TensorFile(Path(path)) as file:
        return described(file)


def described(file: TensorFile) -> dict[str, Any]:
    """What a file says of its model."""
    if KIND not in file.metadata:
        raise file.refuse("there is no model in it")
    told = file.told(KIND)
    if not isinstance(told, dict) or type(told.get("format")) is not int:
        raise file.refuse("what it says of its model can't be understood")
    if told["format"] != FORMAT:
        raise file.refuse(
            f"it is of format {told['format']}, and version {notsorandom.__version__} of the "
            f"library reads format {FORMAT}: update the library"
        )
    return told


def restored(file: TensorFile, told: dict[str, Any]) -> Any:
    """The estimator that a file tells of, checked."""
    unpack = Unpacker(file).unpack
    maker = ESTIMATORS[told["class"]]
    if set(told["parameters"]) != set(maker().get_params(deep=False)):
        raise file.refuse("its parameters are others than those of its class")
    estimator = maker(**{key: unpack(value) for key, value in told["parameters"].items()})
    parts = {part: frozen(unpack(told["kernel"][part])) for part in KERNEL}
    kernel = LearnedKernel(unpack(told["space"]), **parts, phase=told["phase"])
    estimator.kernel_ = kernel
    estimator.frequencies_, estimator.phases_ = kernel.frequencies, kernel.phases
    if told["average"] is not None:
        own = {part: frozen(unpack(value)) for part, value in told["average"].items()}
        estimator.average_kernel_ = LearnedKernel(kernel.space, **parts | own, phase=kernel.phase)
    for key in KEPT:
        if key in told["learned"]:
            setattr(estimator, key, unpack(told["learned"][key]))
    estimator._weights = None
    check_model(estimator)
    estimator._complete()
    return estimator


def frozen(array: Any) -> Any:
    """The array, not to be written to: it needn't be copied then."""
    array.flags.writeable = False
    return array
