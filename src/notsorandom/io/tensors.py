"""Files of named arrays in the safetensors format, with a digest.

The format is the length of the header, the header in JSON, and the bytes of the arrays. Nothing in
it can be executed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from notsorandom._utils.files import FileFormatError, write_atomic
from notsorandom.data.rows import Array

DTYPES = {
    "BOOL": np.dtype("?"),
    "U8": np.dtype("u1"),
    "I32": np.dtype("<i4"),
    "I64": np.dtype("<i8"),
    "F32": np.dtype("<f4"),
    "F64": np.dtype("<f8"),
}
# Keys of the header and of its metadata.
METADATA, DIGEST = "__metadata__", "digest"
# What damaged content raises when it is interpreted: something is missing, of the wrong type, out
# of its range or nested too deeply.
CONTENT_ERRORS: tuple[type[Exception], ...] = (LookupError, TypeError, AttributeError)
CONTENT_ERRORS += (ValueError, ArithmeticError, RecursionError)


def write_tensors(path: Path, arrays: Mapping[str, Array], metadata: Mapping[str, str]) -> None:
    """Write a file of arrays, with the dtypes of `DTYPES`, as a whole or not at all."""
    codes = {dtype: code for code, dtype in DTYPES.items()}
    entries: dict[str, Any] = {}
    parts: list[bytes] = []
    end = 0
    # By decreasing item size, so that every array is aligned.
    for name, array in sorted(arrays.items(), key=lambda pair: (-pair[1].itemsize, pair[0])):
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
        start, end = end, end + array.nbytes
        entries[name] = {
            "dtype": codes[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [start, end],
        }
        parts.append(array.tobytes())
    data = b"".join(parts)
    digest = compute_digest(entries, metadata, data)
    content = {METADATA: {**metadata, DIGEST: digest}, **entries}
    header = json.dumps(content, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    try:
        write_atomic(path, len(header).to_bytes(8, "little") + header + data)
    except OSError as error:
        raise OSError(
            error.errno,
            f"{error.strerror}: nothing was written, and an earlier file is unchanged. Free some "
            "space, or give another path",
            str(path),
        ) from error


def read_tensors(path: Path) -> tuple[dict[str, Array], dict[str, str]]:
    """Return the arrays of a file, read-only, and its metadata; raise FileFormatError if bad."""
    if path.exists() and not path.is_file():  # a pipe or a device might never end
        raise format_error(path, "it is not a regular file")
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    if len(content) < 8 or start > len(content):
        raise format_error(path, f"its header is longer than its {len(content):,} bytes")
    data = content[start:]
    try:
        header = json.loads(content[8:start])
        metadata = dict(header.pop(METADATA))
        digest = metadata.pop(DIGEST)
        if digest != compute_digest(header, metadata, data):
            raise ValueError("the digest is not that of the content")
        return {name: view_array(data, entry) for name, entry in header.items()}, metadata
    except CONTENT_ERRORS as error:
        raise format_error(path, f"its header or data is not valid ({error})") from error


def view_array(data: bytes, entry: dict[str, Any]) -> Array:
    """Return the array that an entry of the header describes; raise an error if it can't be."""
    first, last = entry["data_offsets"]
    array: Array = np.ndarray(entry["shape"], DTYPES[entry["dtype"]], data, first)
    if array.nbytes != last - first:
        raise ValueError(f"an array of {array.nbytes} bytes is stored in {last - first}")
    return array


def compute_digest(entries: Mapping[str, Any], metadata: Mapping[str, str], data: bytes) -> str:
    """Return a digest of everything in a file."""
    header = json.dumps([entries, metadata], sort_keys=True).encode()
    digest = hashlib.blake2b(header, digest_size=16)
    digest.update(data)
    return digest.hexdigest()


def format_error(path: Path, reason: str) -> FileFormatError:
    """Return the error for a file that can't be read."""
    return FileFormatError(
        f"{path} can't be read: {reason}. It is damaged, or not a model file: use another copy, or "
        "save the model again."
    )
