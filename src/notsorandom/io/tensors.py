"""Files of named arrays, in the safetensors format, written whole and read with suspicion.

The format is a length, a header in JSON, and the arrays' bytes one after the other. There is
nothing in it to execute. What a file says is believed only once it has been checked: lengths
against the file's own, and everything together against a digest.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from notsorandom._utils.files import whole_file
from notsorandom.data.rows import Array

TYPES = {
    "BOOL": np.dtype("?"),
    "U8": np.dtype("u1"),
    "I32": np.dtype("<i4"),
    "I64": np.dtype("<i8"),
    "F32": np.dtype("<f4"),
    "F64": np.dtype("<f8"),
}
# Headers hold a few names and numbers; what is long is kept in arrays. A parsed header is many
# times its text, so neither its text nor its parts may be many.
MOST_HEADER_BYTES = 2**20
MOST_HEADER_PARTS = 2**15
MOST_DIMENSIONS = 4
# Read, converted and digested at a time.
CHUNK_BYTES = 2**14
METADATA, DIGEST = "__metadata__", "digest"


class FileFormatError(ValueError):
    """A file that is not what it should be."""


class Entry(NamedTuple):
    """Where an array is in a file, and what it is."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int


def write_tensors(path: Path, arrays: Mapping[str, Array], metadata: Mapping[str, str]) -> None:
    """Write a file of arrays by one step.

    Parameters
    ----------
    path : Path
    arrays : dict of str to ndarray
        Of the types above.
    metadata : dict of str to str

    Raises
    ------
    OSError
        If it can't be written, for want of room perhaps.
    """
    entries: dict[str, Any] = {}
    stored, end = [], 0
    codes = {dtype: code for code, dtype in TYPES.items()}
    # The widest first, so that every array starts at a multiple of its item's size.
    for name, array in sorted(arrays.items(), key=lambda pair: (-pair[1].itemsize, pair[0])):
        content = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        start, end = end, end + content.nbytes
        entries[name] = {
            "dtype": codes[content.dtype],
            "shape": list(array.shape),  # which ascontiguousarray changes for a single number
            "data_offsets": [start, end],
        }
        stored.append(content)
    digest = new_digest(entries, metadata)
    for content in stored:
        digest.update(content.reshape(-1).view(np.uint8).data)
    header = {METADATA: {**metadata, DIGEST: digest.hexdigest()}, **entries}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > MOST_HEADER_BYTES or n_parts(text) > MOST_HEADER_PARTS:
        raise ValueError(
            f"There is too much to say about these arrays: a header of {len(text):,} bytes, where "
            f"{MOST_HEADER_BYTES:,} bytes of at most {MOST_HEADER_PARTS:,} parts are allowed. "
            "Save with fewer metrics, or shorter parameters."
        )
    try:
        with whole_file(path) as file:
            file.write(len(text).to_bytes(8, "little") + text)
            for content in stored:
                file.write(content.reshape(-1).view(np.uint8).data)
    except OSError as error:
        raise OSError(
            error.errno,
            f"{error.strerror}: it was not written, and what was there before is as it was. Make "
            "room, or give another path",
            str(path),
        ) from error


class TensorFile:
    """A file of arrays, open for reading: its header has been checked, and its digest.

    Parameters
    ----------
    path : Path

    Attributes
    ----------
    metadata : dict of str to str
    entries : dict of str to Entry
    size : int
        Of the file, in bytes.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe would be waited for
            raise self.refuse("it is not an ordinary file")
        self._file: BinaryIO = path.open("rb")
        try:
            self._read_header()
            self._check_digest()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> TensorFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def refuse(self, why: str) -> FileFormatError:
        """The error that says what is wrong with the file."""
        return FileFormatError(
            f"{self.path} can't be read: {why}. It is damaged, or not a file of this library: "
            "take another copy, or make it again."
        )

    def told(self, key: str) -> Any:
        """What the metadata say under a key, in JSON."""
        return self._parsed(self.metadata[key].encode("utf-8", "surrogatepass"))

    def read(self, name: str, dtype: np.dtype[Any] | None = None) -> Array:
        """One of the arrays, in its own type or in another that holds it."""
        entry = self.entries[name]
        array = np.empty(entry.shape, dtype or entry.dtype)
        flat = array.reshape(-1)
        self._file.seek(self._data + entry.start)
        step = CHUNK_BYTES // entry.dtype.itemsize
        for start in range(0, flat.size, step):
            wanted = min(step, flat.size - start) * entry.dtype.itemsize
            flat[start : start + step] = np.frombuffer(self._bytes(wanted), entry.dtype)
        return array

    def _bytes(self, count: int) -> bytes:
        content = self._file.read(count)
        if len(content) != count:
            raise self.refuse("it ends too soon")
        return content

    def _read_header(self) -> None:
        self.size = os.fstat(self._file.fileno()).st_size
        length = int.from_bytes(self._bytes(8), "little")
        if length > min(MOST_HEADER_BYTES, self.size - 8):
            raise self.refuse(f"its header would be {length:,} bytes long")
        header = self._parsed(self._bytes(length))
        if not isinstance(header, dict):
            raise self.refuse("its header is not a table of arrays")
        metadata = header.pop(METADATA, {})
        if not isinstance(metadata, dict) or not all(
            isinstance(value, str) for value in metadata.values()
        ):
            raise self.refuse("its metadata are not texts")
        self._data = 8 + length
        self._digest = metadata.pop(DIGEST, "")
        self._described = header
        self.metadata: dict[str, str] = metadata
        self.entries: dict[str, Entry] = {}
        end = 0
        for name, described in sorted(header.items(), key=lambda pair: offset_of(pair[1])):
            self.entries[name], end = self._entry(name, described, end)
        if self._data + end != self.size:
            raise self.refuse(
                f"it is {self.size:,} bytes long, but {self._data + end:,} by its header"
            )

    def _parsed(self, text: bytes) -> Any:
        if n_parts(text) > MOST_HEADER_PARTS:
            raise self.refuse("its header has too many parts")
        try:
            return json.loads(text, object_pairs_hook=without_doubles)
        except (ValueError, RecursionError) as error:
            raise self.refuse("its header is not in JSON") from error

    def _entry(self, name: str, described: Any, start: int) -> tuple[Entry, int]:
        """An array's entry, which must begin where the one before ends; and where it ends."""
        if not isinstance(described, dict) or set(described) != {"dtype", "shape", "data_offsets"}:
            raise self.refuse(f"its entry for {name!r} is not one of an array")
        code, shape, offsets = (described[key] for key in ("dtype", "shape", "data_offsets"))
        if not isinstance(code, str) or code not in TYPES:
            raise self.refuse(f"{name!r} is of the unknown type {code!r}")
        if not are_counts(shape) or len(shape) > MOST_DIMENSIONS:
            raise self.refuse(f"{name!r} has the shape {shape!r}")
        dtype = TYPES[code]
        end = start + math.prod(shape) * dtype.itemsize
        if not are_counts(offsets) or offsets != [start, end]:
            raise self.refuse(f"{name!r} is at {offsets!r}, where {[start, end]} are its bytes")
        if self._data + end > self.size:  # before anything is made of that size
            raise self.refuse(f"it is too short for {name!r}")
        return Entry(dtype, tuple(shape), start), end

    def _check_digest(self) -> None:
        digest = new_digest(self._described, self.metadata)
        left = self.size - self._data
        while left:
            content = self._bytes(min(left, CHUNK_BYTES))
            digest.update(content)
            left -= len(content)
        if digest.hexdigest() != self._digest:
            raise self.refuse("its digest is not that of its content")


def new_digest(entries: Mapping[str, Any], metadata: Mapping[str, str]) -> Any:
    """The beginning of a file's digest, which its arrays' bytes follow."""
    described = json.dumps([entries, metadata], sort_keys=True).encode()
    return hashlib.blake2b(described, digest_size=16)


def n_parts(text: bytes) -> int:
    """No fewer than the values in a text in JSON."""
    return sum(text.count(mark) for mark in (b",", b"[", b"{", b":"))


def without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object in JSON, which must not say anything twice."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name is given twice")
    return found


def are_counts(values: Any) -> bool:
    """Whether something is a list of whole numbers, none negative."""
    return isinstance(values, list) and all(type(value) is int and value >= 0 for value in values)


def offset_of(described: Any) -> list[int]:
    """What sorts entries by where their arrays are; those that say nothing come first."""
    offsets: Any = described.get("data_offsets") if isinstance(described, dict) else None
    return offsets if are_counts(offsets) else []
