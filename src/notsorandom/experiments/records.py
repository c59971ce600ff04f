"""Records of runs: one JSON object a line, so that whatever was finished stays finished."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy
import scipy
import sklearn

import notsorandom

Config = dict[str, Any]
Record = dict[str, Any]


class Records:
    """The records in a folder.

    A record says what was run (``config``), what came out (``outcome``), how long it took, when,
    and with which versions. Only whole lines count: one that a killed process left behind is taken
    away when the next is written.

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
        lines = self.path.read_bytes().split(b"\n")[:-1]  # after the last newline nothing is whole
        records = []
        for number, line in enumerate(lines, start=1):
            try:
                records.append(json.loads(line))
            except ValueError as error:
                raise ValueError(
                    f"{self.path}, line {number} is not a record: {error}. Delete the line; what "
                    "it recorded will be run again."
                ) from error
        return records

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
            file.truncate(self._whole())
            file.write(json.dumps(record).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        return record

    def _whole(self) -> int:
        """Bytes up to the end of the last whole line."""
        return self.path.read_bytes().rfind(b"\n") + 1

    def missing(self, configs: Sequence[Config]) -> list[Config]:
        """Those that there is no record of."""
        known = {key(record["config"]) for record in self.read()}
        return [config for config in configs if key(config) not in known]


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
