"""Files written whole or not at all."""

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


def checked_path(path: Any, *endings: str) -> Path:
    """The path, if a file whose name ends in one of these can be written there."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path={path!r} is not allowed: it must be a str or a Path.")
    path = Path(path)
    if path.suffix not in endings or path.is_dir():
        raise ValueError(
            f"path={str(path)!r} is not allowed: name a file that ends in {endings[0]}."
        )
    folder = path.resolve().parent
    if not folder.is_dir():
        raise FileNotFoundError(f"The folder {folder} doesn't exist: make it first.")
    return path


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file that is put in place by one step: until then the old one stays as it was."""
    path = path.resolve()  # a link stays a link to what is written
    writer = f"{os.getpid()}-{threading.get_ident()}"
    temporary = path.with_name(f".{path.name}.{writer}.part")
    remove_parts(path)
    try:
        with temporary.open("w+b") as file:
            if path.exists():  # who may read it stays the same
                os.chmod(temporary, stat.S_IMODE(path.stat().st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    settle_folder(path.parent)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file by one step."""
    with whole_file(path) as file:
        file.write(content)


def settle_folder(folder: Path) -> None:
    """Make sure that a file's new name survives a power cut, where folders can be told so."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def remove_parts(path: Path) -> None:
    """Remove what writers of a file left behind when they were killed."""
    path = path.resolve()
    name = re.compile(rf"\.{re.escape(path.name)}\.(\d+)-\d+\.part")
    for part in path.parent.iterdir() if path.parent.is_dir() else ():
        found = name.fullmatch(part.name)
        if found and not is_running(int(found[1])):
            part.unlink(missing_ok=True)


def is_running(process: int) -> bool:
    """Whether there is a process of that number."""
    if os.name != "posix":
        return True  # for all that can be told
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True
