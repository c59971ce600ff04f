"""Records of runs: one JSON object per line, appended as each run ends."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy
import scipy
import sklearn

import notsorandom

try:
    import fcntl
except ImportError:  # Windows: concurrent runs in one folder are not detected
    fcntl = None  # type: ignore[assignment]

Config = dict[str, Any]
Record = dict[str, Any]

# Keys of every record.
KEYS = {"config", "outcome", "seconds", "finished", "versions", "cores"}


class RecordError(ValueError):
    """A file of records can't be read."""


class Records:
    """The records in a folder.

    A record has the configuration of a run (``config``), its result (``outcome``), how long it
    took, when it ended, and the versions of the libraries. Only complete lines count: the
    incomplete line of a process that was killed is removed when the next record is written.

    Parameters
    ----------
    folder : Path
        Created with the first record.
    name : str, default="records.jsonl"
        Name of the file in the folder.
    source : str, optional
        Runs with another source of the package count as missing. By default none does.
    """

    def __init__(
        self, folder: Path, name: str = "records.jsonl", source: str | None = None
    ) -> None:
        self.path, self.source = folder / name, source

    def read(self) -> list[Record]:
        """Return all records, in the order they were written."""
        if not self.path.exists():
            return []
        *lines, tail = self.path.read_bytes().split(b"\n")
        records = []
        for number, line in enumerate(lines, start=1):
            record = parse(line)
            if record is not None:
                records.append(record)
            elif line.strip():
                raise RecordError(
                    f"{self.path}, line {number} is not a record: {line[:40]!r}... Delete the "
                    "line; its run will be repeated."
                )
        last = parse(tail)
        return records if last is None else [*records, last]

    def append(self, config: Config, outcome: dict[str, Any], seconds: float) -> Record:
        """Write a record to disk and return it."""
        record = {
            "config": config,
            "outcome": outcome,
            "seconds": round(seconds, 3),
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            "versions": versions(),
            "cores": os.cpu_count(),
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as file:
            content = self.path.read_bytes()
            last_line = content.rfind(b"\n") + 1
            if parse(content[last_line:]) is None:
                file.truncate(last_line)
            else:  # complete, but an editor removed the newline
                file.write(b"\n")
            file.write(json.dumps(record).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        return record

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the file; raise OSError if another run has locked it, or if it can't be made."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as file:
            if fcntl is not None:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError as error:
                    raise OSError(
                        f"{self.path.parent} is in use by another run: wait until it ends, or give "
                        "another folder."
                    ) from error
            yield

    def missing(self, configs: Sequence[Config]) -> list[Config]:
        """Return the configurations without a record."""
        known = {
            key(record["config"])
            for record in self.read()
            if self.source in (None, record["versions"].get("source"))
        }
        return [config for config in configs if key(config) not in known]


def parse(line: bytes) -> Record | None:
    """Return the record in a line, or None if it is not a complete record."""
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) and set(record) >= KEYS else None


def key(config: Config) -> str:
    """Return a string that identifies a configuration."""
    return json.dumps(config, sort_keys=True)


def latest(records: Sequence[Record]) -> list[Record]:
    """Return one record per configuration, the last one."""
    return list({key(record["config"]): record for record in records}.values())


def matching(records: Sequence[Record], configs: Sequence[Config]) -> list[Record]:
    """Return the last record of each configuration, in the order of the configurations."""
    by_key = {key(record["config"]): record for record in records}
    return [by_key[key(config)] for config in configs if key(config) in by_key]


def versions() -> dict[str, str]:
    """Return the versions of Python and of the code that results depend on."""
    return {
        "notsorandom": notsorandom.__version__,
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "python": platform.python_version(),
        "commit": git_commit(),
        "source": git_source(),
    }


@cache  # of the code that is running, whatever is checked out later
def git_commit() -> str:
    """Return the commit of this folder, with "+" if files differ from it, or "unknown"."""
    here = Path(__file__).parent
    return ask_git(here, "describe", "--always", "--exclude=*", "--dirty=+") or "unknown"


@cache
def git_source() -> str:
    """Return git's hash of the package's folder, with "+" if files differ from it, or "unknown".

    Unlike the commit, it stays the same while only documentation, tests and benchmarks change.
    """
    package = Path(notsorandom.__file__).parent
    source = ask_git(package, "rev-parse", "--short", "HEAD:./")
    differs = ask_git(package, "status", "--porcelain", "--", ".")
    return f"{source}{'+' if differs else ''}" if source else "unknown"


def ask_git(folder: Path, *arguments: str) -> str:
    """Return what git prints in a folder; nothing if it fails or is not installed."""
    try:
        run = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True)
    except OSError:
        return ""
    return run.stdout.strip() if run.returncode == 0 else ""
