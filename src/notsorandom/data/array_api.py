"""Arrays that are not NumPy's: asked for by the array API standard, wherever they are.

Samples may be arrays of any library that keeps to the standard, on any device. What touches them is
computed there, in their own kind of array, and sums come back as NumPy arrays, in host memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

Array = np.ndarray[Any, np.dtype[Any]]

# DLPack's number of the device that is the host.
HOST = 1


def is_device_array(X: Any) -> bool:
    """Whether it is an array by the standard, but not NumPy's."""
    if isinstance(X, (np.ndarray, np.generic)) or sparse.issparse(X):
        return False
    # Asked of the type: a data frame may have a column of that name.
    kind = type(X)
    like_an_array = hasattr(kind, "__array_namespace__") or (
        hasattr(kind, "device") and hasattr(kind, "shape") and hasattr(kind, "dtype")
    )
    return like_an_array and bool(standard(kind).is_array_api_obj(X))


def standard(kind: type) -> Any:
    """The package that makes arrays of that kind keep to the standard."""
    try:
        import array_api_compat
    except ImportError as error:
        name = f"{kind.__module__.split('.')[0]}.{kind.__qualname__}"
        raise ImportError(
            f"An array of the kind {name} was given, which needs the package array-api-compat: "
            "pip install 'notsorandom[array-api]', or give a NumPy array."
        ) from error
    return array_api_compat


def namespace(X: Any) -> Any:
    """The functions that such arrays are computed with: NumPy, for its own and sparse ones."""
    if isinstance(X, np.ndarray) or not is_device_array(X):
        return np
    return standard(type(X)).array_namespace(X)


def like(array: Any, X: Any) -> Any:
    """Numbers to compute with beside `X`: a NumPy array in its kind and type, on its device.

    Where `X` is NumPy's, whose types mix, the array itself.
    """
    if isinstance(X, np.ndarray) or not isinstance(array, np.ndarray) or not is_device_array(X):
        return array
    return placed(array, X, X.dtype)


def beside(array: Any, X: Any) -> Any:
    """A NumPy array in the kind of `X`, on its device, but in its own type: labels, or indices."""
    if isinstance(X, np.ndarray) or not isinstance(array, np.ndarray) or not is_device_array(X):
        return array
    return placed(array, X, None)


def placed(array: Array, X: Any, dtype: Any) -> Any:
    """A NumPy array on the device of `X`."""
    if not (array.flags.c_contiguous and array.flags.writeable):
        array = array.copy()  # a kind that shares the memory may know of no other
    package = standard(type(X))
    return package.array_namespace(X).asarray(array, dtype=dtype, device=package.device(X))


def in_host_memory(array: Any) -> bool:
    """Whether an array by the standard says that it is where NumPy's are."""
    return bool(array.__dlpack_device__()[0] == HOST)


def empty_like(array: Any, shape: tuple[int, ...]) -> Any:
    """Room for an array of the same kind and type, on the same device."""
    if in_host_memory(array):  # NumPy asks for large pages, which are there several times sooner
        return beside(np.empty(shape, dtype=numpy_dtype(array)), array)
    package = standard(type(array))
    xp = package.array_namespace(array)
    return xp.empty(shape, dtype=array.dtype, device=package.device(array))


def on_host(array: Any) -> Any:
    """An array of any kind as NumPy's, in host memory; whatever else it is, itself."""
    if isinstance(array, np.ndarray) or not is_device_array(array):
        return array
    if hasattr(array, "detach"):  # where gradients end
        array = array.detach()
    try:
        return np.asarray(array)
    except (TypeError, RuntimeError, ValueError):  # kinds that are never brought over unasked
        pass
    try:
        return np.asarray(standard(type(array)).to_device(array, "cpu"))
    except (TypeError, RuntimeError, ValueError):  # the host has another name there
        default = namespace(array).__array_namespace_info__().default_device()
        return np.asarray(standard(type(array)).to_device(array, default))


def numpy_dtype(X: Any) -> np.dtype[Any]:
    """NumPy's name of the floating point type."""
    if not is_device_array(X):
        dtype: np.dtype[Any] = X.dtype
        return dtype
    return np.dtype(np.float32 if X.dtype == namespace(X).float32 else np.float64)


def as_floats(X: Any) -> Any:
    """The array in float32 if it is, otherwise in float64."""
    xp = namespace(X)
    if xp is np:
        return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    return X if X.dtype in (xp.float32, xp.float64) else xp.astype(X, xp.float64)


def in_type(X: Any, dtype: np.dtype[Any]) -> Any:
    """The array, or sparse matrix, in a floating point type by NumPy's name."""
    if not is_device_array(X):
        return X.astype(dtype, copy=False)
    xp = namespace(X)
    return xp.astype(X, xp.float32 if dtype == np.float32 else xp.float64, copy=False)
