"""Values as JSON and arrays, and back: nothing is made that isn't on the list."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from notsorandom.data.rows import Array
from notsorandom.io.tensors import TensorFile, n_parts
from notsorandom.search import SEARCHES
from notsorandom.spaces import SPACES, HarmonicSphere, ZonalSphere

# Objects that may be in a file, by the name they have there.
OBJECTS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (*SPACES.values(), HarmonicSphere, ZonalSphere, *SEARCHES.values())
}
# What numbers of a kind are stored in, and what if that holds them too.
WIDE = {"b": np.bool_, "i": np.int64, "u": np.int64, "f": np.float64}
NARROW = {np.dtype(np.int64): np.int32, np.dtype(np.float64): np.float32}
# Room that an array of texts may take; beyond, they are objects.
MOST_TEXT_BYTES = 2**20
# So many texts are never too many.
FEW_TEXTS = 4096
NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


class Packer:
    """Takes values apart.

    Attributes
    ----------
    arrays : dict of str to ndarray
        Those met so far, in the narrowest type that holds their values.
    """

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}

    def pack(self, value: Any, name: str) -> Any:
        """The value in JSON, arrays by their names; raise TypeError if it can't be kept."""
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, (bool, int, str)):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"number": str(value)}
        if isinstance(value, np.ndarray):
            return self._array(value, name)
        if isinstance(value, (list, tuple)):
            return [self.pack(item, f"{name}.{place}") for place, item in enumerate(value)]
        if isinstance(value, Mapping):
            pairs = value.items()
            return {
                "pairs": [
                    [self.pack(key, name), self.pack(item, f"{name}.{key}")] for key, item in pairs
                ]
            }
        kind = type(value).__name__
        if OBJECTS.get(kind) is type(value):
            parameters = value.get_params(deep=False).items()
            packed = {key: self.pack(item, f"{name}.{key}") for key, item in parameters}
            return {"object": kind, "parameters": packed}
        raise TypeError(
            f"{name}={value!r} can't be kept in a file: only numbers, texts, arrays and the "
            f"library's own {', '.join(OBJECTS)} can. Use pickle or joblib instead."
        )

    def _array(self, array: Array, name: str) -> Any:
        kept = array.dtype
        if kept.kind in "OUT" and all(isinstance(item, str) for item in array.tolist()):
            text = json.dumps(array.tolist()).encode()
            self.arrays[name] = np.frombuffer(text, np.uint8)
            return {"texts": name, "objects": kept.kind == "O"}
        if kept.kind not in WIDE or kept.itemsize > 8:
            raise TypeError(
                f"{name} has values of type {kept}, such as {array.ravel()[:1].tolist()}, which "
                "can't be kept in a file: use numbers or texts, or pickle or joblib."
            )
        as_it_is = kept in (np.float32, np.uint8)
        stored = array if as_it_is else array.astype(WIDE[kept.kind])
        if stored.dtype in NARROW:
            with np.errstate(over="ignore"):
                narrowed = stored.astype(NARROW[stored.dtype])
            if np.array_equal(narrowed, stored, equal_nan=kept.kind == "f"):
                stored = narrowed
        self.arrays[name] = stored
        return {"array": name, "dtype": kept.str[1:]}


class Unpacker:
    """Puts values together again from what a file says, of which nothing is taken for granted.

    Parameters
    ----------
    file : TensorFile
    """

    def __init__(self, file: TensorFile) -> None:
        self.file = file
        self._left = set(file.entries)

    def unpack(self, value: Any) -> Any:
        """The value that was packed; raise FileFormatError if none could have been."""
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, list):
            return [self.unpack(item) for item in value]
        if isinstance(value, dict):
            match value:
                case {"number": str(name)} if name in NOT_FINITE:
                    return NOT_FINITE[name]
                case {"pairs": list(pairs)}:
                    return self._mapping(self.unpack(pairs))
                case {"array": str(name), "dtype": str(kept)}:
                    return self._array(name, kept)
                case {"texts": str(name), "objects": bool(objects)}:
                    return self._texts(name, objects)
                case {"object": str(kind), "parameters": dict(parameters)}:
                    return self._object(kind, parameters)
        raise self.file.refuse(f"{str(value)[:40]!r} stands for nothing")

    def _take(self, name: str) -> Any:
        """An array's entry, which may be asked for once: memory is the file's, not its header's."""
        if name not in self._left:
            raise self.file.refuse(f"there is no array {name!r} left in it")
        self._left.remove(name)
        return self.file.entries[name]

    def _array(self, name: str, kept: str) -> Array:
        stored = self._take(name).dtype
        if not re.fullmatch("b1|[iu][1248]|f[248]", kept):
            raise self.file.refuse(f"{name!r} would be of the type {kept!r}")
        dtype = np.dtype(kept)
        wide = np.dtype(WIDE[dtype.kind])
        if dtype != stored and (wide.kind != stored.kind or dtype.itemsize > 2 * stored.itemsize):
            raise self.file.refuse(f"{name!r} of type {stored} can't have been {dtype}")
        with np.errstate(over="ignore", invalid="ignore"):
            return self.file.read(name, dtype)

    def _texts(self, name: str, objects: bool) -> Array:
        entry = self._take(name)
        if entry.dtype != np.uint8 or len(entry.shape) != 1:
            raise self.file.refuse(f"{name!r} are not texts")
        content = self.file.read(name).tobytes()
        # A text in memory is many times itself: there are no more than other arrays are long.
        longest = max((max(other.shape, default=0) for other in self._numbers()), default=0)
        if n_parts(content) > 8 * max(longest, FEW_TEXTS):
            raise self.file.refuse(f"{name!r} are too many texts")
        try:
            texts = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise self.file.refuse(f"{name!r} are not in JSON") from error
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise self.file.refuse(f"{name!r} are not texts")
        # One that is very long would make an array with so much room for each.
        room = 4 * len(texts) * max(map(len, texts), default=0)
        return np.array(texts, dtype=object if objects or room > MOST_TEXT_BYTES else str)

    def _numbers(self) -> list[Any]:
        """Entries of the arrays that aren't texts."""
        return [entry for entry in self.file.entries.values() if entry.dtype != np.uint8]

    def _object(self, kind: str, parameters: dict[str, Any]) -> Any:
        maker = OBJECTS.get(kind)
        if maker is None or set(parameters) != set(maker().get_params(deep=False)):
            raise self.file.refuse(f"it has a {kind!r} that is unknown, or was another then")
        return maker(**{name: self.unpack(value) for name, value in parameters.items()})

    def _mapping(self, pairs: list[Any]) -> dict[Any, Any]:
        if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
            raise self.file.refuse("it has a mapping that is none")
        try:
            return {key: value for key, value in pairs}
        except TypeError as error:
            raise self.file.refuse("it has a mapping that is none") from error
