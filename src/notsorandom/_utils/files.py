"""Atomic file writes: a file is replaced as a whole or not at all."""

from __future__ import annotations

import glob
import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

# Age of a temporary file that nobody writes to any more: a day.
PART_SECONDS = 86_400


class FileFormatError(ValueError):
    """A file is damaged, or is not of the format that it should be."""


def check_output_path(path: Any, *suffixes: str) -> Path:
    """Return the path if a file with one of these suffixes can be written there."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path={path!r} is not allowed: it must be a str or a Path.")
    path = Path(path)
    if path.suffix.lower() not in suffixes or path.is_dir():
        raise ValueError(
            f"path={str(path)!r} is not allowed: give the name of a file that ends in "
            f"{' or '.join(suffixes)}."
        )
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        raise FileNotFoundError(f"The folder {folder} doesn't exist: create it first.")
    return path


@contextmanager
def open_atomic(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces `path` at the end, unless there was an exception."""
    path = Path(os.path.realpath(path))  # replaces the target of a link, not the link
    prefix = f".{path.name[:50]}."  # names have at most 255 bytes
    remove_old_parts(path.parent, prefix)
    temporary = path.with_name(f"{prefix}{secrets.token_hex(8)}.part")
    kept = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
    mode = 0o666 if kept is None else kept  # less the umask
    # "x" refuses a name that exists, also as a link.
    with open(temporary, "x+b", opener=lambda name, flags: os.open(name, flags, mode)) as file:
        try:
            if kept is not None:
                os.chmod(temporary, kept)
            yield file
            file.flush()
            os.fsync(file.fileno())
            file.close()
            temporary.replace(path)
        except BaseException:
            with suppress(OSError):  # the disk may be full
                file.close()  # Windows doesn't delete open files
            temporary.unlink(missing_ok=True)
            raise
    sync_folder(path.parent)


def write_atomic(path: Path, content: bytes) -> None:
    """Write a file as a whole."""
    with open_atomic(path) as file:
        file.write(content)


def sync_folder(folder: Path) -> None:
    """Flush a folder to disk, so that a new file name survives a power failure."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def remove_old_parts(folder: Path, prefix: str) -> None:
    """Remove temporary files of writers that were killed more than a day ago.

    Whether a writer still runs can't be known: it may be in another container or on another host.
    """
    with suppress(OSError):  # one was removed by another process, or belongs to another user
        for file in folder.glob(f"{glob.escape(prefix)}{'?' * 16}.part"):
            if time.time() - file.lstat().st_mtime > PART_SECONDS:
                file.unlink()
