"""The content of checkpoint files: arrays, and a digest that tells damage."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from notsorandom._utils.files import open_atomic
from notsorandom.data.rows import Array
from notsorandom.game.state import ActiveSet, GameState, Move
from notsorandom.spaces.base import ResolvedSpace

# Most bytes of the header, which has parameters and a few numbers.
MAX_HEADER_BYTES = 2**22
# Arrays of the moves, in the order of Move.
MOVE_ARRAYS = ("frequencies", "phases", "coefficients")


# The file: a NumPy archive, not compressed. Its array "header" is JSON, in which {"array": name}
# stands for another array. Its array "digest" is of all others.


def write_archive(path: Path, contents: dict[str, Any]) -> None:
    """Write nested dicts of plain values and arrays."""
    arrays: dict[str, Array] = {}
    header = extract_arrays(contents, "fit", arrays)
    text = json.dumps(header, default=lambda number: number.item()).encode()
    if len(text) > MAX_HEADER_BYTES:
        raise ValueError(f"the parameters take more than {MAX_HEADER_BYTES:,} bytes")
    arrays["header"] = np.frombuffer(text, dtype=np.uint8)
    with open_atomic(path) as file:
        np.savez(file, **arrays, digest=np.array(digest_all(arrays)))  # type: ignore[arg-type]


def digest(*arrays: Any) -> str:
    """Return a cryptographic digest of some arrays, their types and shapes."""
    content = hashlib.blake2b(digest_size=16)
    for array in arrays:
        content.update(f"{array.dtype.str}{array.shape}".encode())
        for start in range(0, len(array), 4096):  # copies only a few rows at a time
            content.update(np.ascontiguousarray(array[start : start + 4096]).data)
    return content.hexdigest()


def digest_all(arrays: dict[str, Array]) -> str:
    """Return a digest of arrays and their names."""
    return digest(np.array(sorted(arrays)), *(arrays[name] for name in sorted(arrays)))


def extract_arrays(value: Any, name: str, arrays: dict[str, Array]) -> Any:
    """Move the arrays of nested dicts to `arrays`; dicts with their names take their places."""
    if isinstance(value, dict):
        return {key: extract_arrays(part, f"{name}.{key}", arrays) for key, part in value.items()}
    if isinstance(value, np.ndarray):
        arrays[name] = value
        return {"array": name}
    return value


@contextmanager
def open_archive(path: Path) -> Iterator[tuple[zipfile.ZipFile, str]]:
    """Return an archive and its header; raise an error if it holds more bytes than the file."""
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        is_stored = all(member.compress_type == zipfile.ZIP_STORED for member in members)
        total = sum(member.file_size for member in members)
        require(is_stored and total <= path.stat().st_size, "size of the arrays")
        header_size = archive.getinfo("header.npy").file_size
        require(header_size <= 2 * MAX_HEADER_BYTES, "size of the header")
        yield archive, read_array(archive, "header").tobytes().decode()


def read_fit(header: str) -> dict[str, str]:
    """Return the parameters and data digests in a header."""
    fit = json.loads(header)["fit"]
    require(all(type(text) is str for text in (*fit.keys(), *fit.values())), "fit")
    return dict(fit)


def read_contents(archive: zipfile.ZipFile, header: str) -> dict[str, Any]:
    """Return the header with its arrays; raise an error if they aren't as they were written."""
    arrays = {name[:-4]: read_array(archive, name[:-4]) for name in archive.namelist()}
    require(str(arrays.pop("digest")) == digest_all(arrays), "digest")
    contents: dict[str, Any] = json.loads(
        header, object_hook=lambda part: arrays[part["array"]] if "array" in part else part
    )
    return contents


def read_array(archive: zipfile.ZipFile, name: str) -> Array:
    """Return an array; its shape must match the bytes that there are."""
    content = archive.read(f"{name}.npy")
    file = io.BytesIO(content)
    require(np.lib.format.read_magic(file) == (1, 0), "format of an array")
    shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(file)
    values = np.frombuffer(content, dtype, offset=file.tell())
    return values.reshape(shape, order="F" if is_fortran else "C").copy()


def require(condition: Any, name: str) -> None:
    """Raise ValueError unless a condition holds."""
    if not condition:
        raise ValueError(f"{name} is not valid")


# The contents.


def restore_state(parts: Any, space: ResolvedSpace) -> GameState:
    """Return the state of a game that isn't over."""
    history, moves = parts["history"], parts["moves"]
    rounds = zip(*(column.tolist() for column in history.values()), strict=True)
    restored = {
        "space": space,
        "active_set": ActiveSet.from_arrays(space.kind == "finite", parts["active_set"]),
        "history": [dict(zip(history, values, strict=True)) for values in rounds],
        "moves": () if moves is None else restore_moves(moves),
    }
    return GameState(**(parts | restored))


def moves_to_arrays(moves: tuple[Move, ...]) -> dict[str, Array]:
    """Return the moves of all rounds as arrays, by name."""
    return {
        "sizes": np.array([len(move.phases) for move in moves]),
        "steps": np.array([move.step for move in moves], dtype=np.float64),
    } | {name: np.concatenate([getattr(move, name) for move in moves]) for name in MOVE_ARRAYS}


def restore_moves(parts: Any) -> tuple[Move, ...]:
    """Return the moves that :func:`moves_to_arrays` gave."""
    ends = np.cumsum(parts["sizes"])[:-1]
    cut = (np.split(parts[name], ends) for name in MOVE_ARRAYS)
    return tuple(Move(*each) for each in zip(*cut, parts["steps"].tolist(), strict=True))
