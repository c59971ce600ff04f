"""Records of runs: one JSON object a line, so that whatever was finished stays finished."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy
import scipy
import sklearn

import notsorandom

try:
    import fcntl
except ImportError:  # Windows: two runs in one folder aren't noticed
    fcntl = None  # type: ignore[assignment]

Config = dict[str, Any]
Record = dict[str, Any]

# What makes a record of a JSON object.
PARTS = {"config", "outcome", "seconds", "finished", "versions", "cores"}


class RecordError(ValueError):
    """A file of records that can't be read."""


class Records:
    """The records in a folder.

    A record says what was run (``config``), what came out (``outcome``), how long it took, when,
    and with which versions. Only whole records count: the beginning of one that a killed process
    left behind is taken away when the next is written.

    Parameters
    ----------
    folder : Path
        Made if it isn't there.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "records.jsonl"

    def read(self) -> list[Record]:
        """All records, in the order they were written."""
        if not self.path.exists():
            return []
        *lines, tail = self.path.read_bytes().split(b"\n")
        records = []
        for number, line in enumerate(lines, start=1):
            record = parsed(line)
            if record is not None:
                records.append(record)
            elif line.strip():
                raise RecordError(
                    f"{self.path}, line {number} is not a record: {line[:40]!r}... Delete the "
                    "line; what it recorded will be run again."
                )
        last = parsed(tail)
        return records if last is None else [*records, last]

    def append(self, config: Config, outcome: dict[str, Any], seconds: float) -> Record:
        """Write a record, so that it survives whatever happens next."""
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
            before = self.path.read_bytes()
            whole = before.rfind(b"\n") + 1
            if parsed(before[whole:]) is None:
                file.truncate(whole)
            else:
                file.write(b"\n")
            file.write(json.dumps(record).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        return record

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the file against other runs; raise OSError if one has it, or if it can't be made."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as file:
            if fcntl is not None:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError as error:
                    raise OSError(
                        f"{self.path.parent} is being written to by another run: wait for its "
                        "end, or give another folder."
                    ) from error
            yield

    def missing(self, configs: Sequence[Config]) -> list[Config]:
        """Those that there is no record of."""
        known = {key(record["config"]) for record in self.read()}
        return [config for config in configs if key(config) not in known]


def parsed(line: bytes) -> Record | None:
    """The record in a line, if it is a whole one."""
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) and set(record) >= PARTS else None


def key(config: Config) -> str:
    """The same for equal configurations, and for no others."""
    return json.dumps(config, sort_keys=True)


def latest(records: Sequence[Record]) -> list[Record]:
    """The records without those that were run again later."""
    return list({key(record["config"]): record for record in records}.values())


def matching(records: Sequence[Record], configs: Sequence[Config]) -> list[Record]:
    """The records of some configurations, in their order."""
    found = {key(record["config"]): record for record in records}
    return [found[key(config)] for config in configs if key(config) in found]


def versions() -> dict[str, str]:
    """Of everything that figures depend on."""
    return {
        "notsorandom": notsorandom.__version__,
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "python": platform.python_version(),
    }
