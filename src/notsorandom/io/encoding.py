"""Values as JSON and arrays, and back. Only listed classes can be decoded."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from notsorandom.data.rows import Array
from notsorandom.estimators.config import EquilibriumSolver, GradientSolver
from notsorandom.search import SEARCHES
from notsorandom.spaces import SPACES, HarmonicSphere, ZonalSphere

# Classes of objects that a file may contain.
LISTED: list[Any] = [*SPACES.values(), HarmonicSphere, ZonalSphere, *SEARCHES.values()]
LISTED += [GradientSolver, EquilibriumSolver]
CLASSES = {kind.__name__: kind for kind in LISTED}
# Dtypes that numbers of a kind are stored in: the first that holds all values.
STORED_AS = {"b": ["?"], "i": ["<i4", "<i8"], "u": ["u1", "<i4", "<i8"], "f": ["<f4", "<f8"]}


def encode(value: Any, name: str, arrays: dict[str, Array]) -> Any:
    """Return a value as JSON, and add the arrays in it to `arrays`.

    The value is a number, string, array, list, tuple or mapping, or an instance of one of
    `CLASSES`; anything else raises TypeError. The name is for `arrays` and for messages.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"number": str(value)}
    if isinstance(value, np.ndarray):
        return encode_array(value, name, arrays)
    if isinstance(value, (list, tuple)):
        items = [encode(item, f"{name}.{index}", arrays) for index, item in enumerate(value)]
        return items if isinstance(value, list) else {"tuple": items}
    if isinstance(value, Mapping):
        pairs = [
            [encode(key, name, arrays), encode(item, f"{name}.{key}", arrays)]
            for key, item in value.items()
        ]
        return {"pairs": pairs}
    kind = type(value).__name__
    if CLASSES.get(kind) is type(value):
        parameters = value.get_params(deep=False).items()
        encoded = {key: encode(item, f"{name}.{key}", arrays) for key, item in parameters}
        return {"object": kind, "parameters": encoded}
    raise TypeError(
        f"{name}={value!r} can't be saved: only numbers, strings, arrays and the library's own "
        f"{', '.join(CLASSES)} can. Use pickle or joblib instead."
    )


def encode_array(array: Array, name: str, arrays: dict[str, Array]) -> Any:
    """Add an array to `arrays`, in the narrowest dtype that holds its values."""
    dtype = array.dtype
    if dtype.kind in "OUT" and all(isinstance(item, str) for item in array.tolist()):
        arrays[name] = np.frombuffer(json.dumps(array.tolist()).encode(), np.uint8)
        return {"strings": name, "objects": dtype.kind == "O"}
    if dtype.kind not in STORED_AS or dtype.itemsize > 8:
        raise TypeError(
            f"{name} has values of type {dtype}, such as {array.ravel()[:1].tolist()}, which can't "
            "be saved: use numbers or strings, or pickle or joblib."
        )
    for candidate in STORED_AS[dtype.kind]:
        with np.errstate(over="ignore"):
            arrays[name] = array.astype(candidate)
        if np.array_equal(arrays[name], array, equal_nan=dtype.kind == "f"):
            break
    return {"array": name, "dtype": dtype.str[1:]}


def decode(value: Any, arrays: Mapping[str, Array]) -> Any:
    """Return the value that was encoded; raise an error if it can't be one."""
    if isinstance(value, list):
        return [decode(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    match value:
        case {"number": str(name)}:
            return float(name)
        case {"tuple": list(items)}:
            return tuple(decode(items, arrays))
        case {"pairs": list(pairs)}:
            return dict(decode(pairs, arrays))
        case {"array": str(name), "dtype": str(dtype)}:
            stored, kind = arrays[name], np.dtype(dtype).kind
            if kind not in STORED_AS or stored.dtype.kind not in ("iu" if kind in "iu" else kind):
                raise ValueError(f"an array of type {dtype} can't be stored as {stored.dtype}")
            return stored.astype(dtype)
        case {"strings": str(name), "objects": bool(objects)}:
            strings = json.loads(arrays[name].tobytes())
            if not all(isinstance(string, str) for string in strings):
                raise ValueError(f"{name!r} has values that are not strings")
            return np.array(strings, dtype=object if objects else str)
        case {"object": str(kind), "parameters": dict(parameters)} if kind in CLASSES:
            return CLASSES[kind](**{key: decode(item, arrays) for key, item in parameters.items()})
    raise ValueError(f"unknown value {str(value)[:40]!r}")
