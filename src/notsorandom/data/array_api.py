"""Arrays of other libraries than NumPy, through the array API standard.

Samples may be arrays of any library that follows the standard, on any device. Work on the samples
is done on that device. Sums are returned as NumPy arrays in host memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

Array = np.ndarray[Any, np.dtype[Any]]

# DLPack's code of host memory.
DLPACK_CPU = 1


def is_device_array(X: Any) -> bool:
    """Whether `X` follows the array API standard and is not NumPy's."""
    if isinstance(X, (np.ndarray, np.generic)) or sparse.issparse(X):
        return False
    # Attributes of the type: a data frame may have a column of that name.
    kind = type(X)
    looks_like_array = hasattr(kind, "__array_namespace__") or (
        hasattr(kind, "device") and hasattr(kind, "shape") and hasattr(kind, "dtype")
    )
    return looks_like_array and bool(import_compat(kind).is_array_api_obj(X))


def import_compat(kind: type) -> Any:
    """Import array-api-compat, which wraps libraries that don't follow the standard fully."""
    try:
        import array_api_compat
    except ImportError as error:
        name = f"{kind.__module__.split('.')[0]}.{kind.__qualname__}"
        raise ImportError(
            f"X is a {name}, which needs the package array-api-compat: "
            "pip install 'notsorandom[array-api]', or give a NumPy array."
        ) from error
    return array_api_compat


def namespace(X: Any) -> Any:
    """Return the array API namespace of `X`; NumPy for NumPy and sparse arrays."""
    if isinstance(X, np.ndarray) or not is_device_array(X):
        return np
    return import_compat(type(X)).array_namespace(X)


def cast_like(array: Any, X: Any) -> Any:
    """Convert a NumPy array to the kind, dtype and device of `X`; unchanged if `X` is NumPy's."""
    return asarray_like(array, X, X.dtype)


def asarray_like(array: Any, X: Any, dtype: Any = None) -> Any:
    """Convert a NumPy array to the kind and device of `X`, by default keeping its own dtype."""
    if isinstance(X, np.ndarray) or not isinstance(array, np.ndarray) or not is_device_array(X):
        return array
    if not (array.flags.c_contiguous and array.flags.writeable):
        array = array.copy()  # some libraries share memory and support no other layout
    package = import_compat(type(X))
    return package.array_namespace(X).asarray(array, dtype=dtype, device=package.device(X))


def in_host_memory(array: Any) -> bool:
    """Whether an array API array is in host memory."""
    return bool(array.__dlpack_device__()[0] == DLPACK_CPU)


def empty_like(array: Any, shape: tuple[int, ...]) -> Any:
    """Allocate an array of the same kind, dtype and device."""
    if in_host_memory(array):  # NumPy allocates huge pages, which is several times faster
        return asarray_like(np.empty(shape, dtype=numpy_dtype(array)), array)
    package = import_compat(type(array))
    xp = package.array_namespace(array)
    return xp.empty(shape, dtype=array.dtype, device=package.device(array))


def to_host(array: Any) -> Any:
    """Convert an array API array to NumPy; return anything else unchanged."""
    if isinstance(array, np.ndarray) or not is_device_array(array):
        return array
    if hasattr(array, "detach"):  # a torch tensor that records gradients
        array = array.detach()
    try:
        return np.asarray(array)
    except (TypeError, RuntimeError, ValueError):  # no implicit transfer to the host
        pass
    try:
        return np.asarray(import_compat(type(array)).to_device(array, "cpu"))
    except (TypeError, RuntimeError, ValueError):  # the host device has another name
        default = namespace(array).__array_namespace_info__().default_device()
        return np.asarray(import_compat(type(array)).to_device(array, default))


def numpy_dtype(X: Any) -> np.dtype[Any]:
    """Return the floating point type as a NumPy dtype."""
    if not is_device_array(X):
        return X.dtype
    return np.dtype(np.float32 if X.dtype == namespace(X).float32 else np.float64)


def as_floats(X: Any) -> Any:
    """Return the array in float32 if it is, otherwise in float64."""
    xp = namespace(X)
    return X if X.dtype in (xp.float32, xp.float64) else cast(X, np.dtype(np.float64))


def cast(X: Any, dtype: np.dtype[Any]) -> Any:
    """Cast an array or sparse matrix to a floating point type given as a NumPy dtype."""
    if not is_device_array(X):
        return X.astype(dtype, copy=False)
    xp = namespace(X)
    return xp.astype(X, xp.float32 if dtype == np.float32 else xp.float64, copy=False)


@np.errstate(over="ignore")  # of norms beyond the largest number
def row_norms(vectors: Any) -> Array:
    """Return the Euclidean norms of the rows, without overflow for very large or small numbers."""
    if sparse.issparse(vectors):
        largest = abs(vectors).max(axis=1).toarray().ravel()
        scaled = vectors.copy()
        scaled.data /= np.repeat(np.where(largest > 0, largest, 1), np.diff(vectors.indptr))
        return largest * np.sqrt(np.ravel(scaled.multiply(scaled).sum(axis=1)))
    xp = namespace(vectors)
    largest = xp.max(xp.abs(vectors), axis=1, keepdims=True)
    scaled = vectors / xp.where(largest > 0, largest, xp.ones_like(largest))
    return largest[:, 0] * xp.sqrt(xp.sum(scaled * scaled, axis=1))
