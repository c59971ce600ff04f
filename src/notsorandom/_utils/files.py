"""Atomic file writes: a file is replaced as a whole or not at all."""

from __future__ import annotations

import os
import re
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO


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
    folder = path.resolve().parent
    if not folder.is_dir():
        raise FileNotFoundError(f"The folder {folder} doesn't exist: create it first.")
    return path


@contextmanager
def open_atomic(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces `path` at the end, unless there was an exception."""
    path = path.resolve()  # replaces the target of a link, not the link
    writer = f"{os.getpid()}-{threading.get_ident()}"
    temporary = path.with_name(f".{path.name}.{writer}.part")
    remove_partial_files(path)
    try:
        with temporary.open("w+b") as file:
            if path.exists():  # keep its permissions
                os.chmod(temporary, stat.S_IMODE(path.stat().st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
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


def remove_partial_files(path: Path) -> None:
    """Remove temporary files of `path` whose writers were killed."""
    path = path.resolve()
    pattern = re.compile(rf"\.{re.escape(path.name)}\.(\d+)-\d+\.part")
    for file in path.parent.iterdir() if path.parent.is_dir() else ():
        match = pattern.fullmatch(file.name)
        if match and not process_exists(int(match[1])):
            file.unlink(missing_ok=True)


def process_exists(process: int) -> bool:
    """Return whether a process with this number exists; True where that can't be known."""
    if os.name != "posix":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it belongs to another user
        pass
    return True
