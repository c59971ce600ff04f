"""A walk through one fit: the files of the package that it runs through, in order.

    python -m benchmarks.walk

Traces a fit with all defaults, and a fit with C, smoothing and spectrum given and without
probabilities, so that nothing is left to choose. Prints each file once, with its functions that
other files call, in the order of their first calls. The number of files and the number of calls
from one file to another measure how far a reader has to walk. `tests/benchmarks/test_walk.py`
compares the table in CONTRIBUTING.md with the first trace.
"""

from __future__ import annotations

import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from sklearn.datasets import make_classification

import notsorandom
from notsorandom import Ascent, FourierClassifier

PACKAGE = Path(notsorandom.__file__).parent


@dataclass(frozen=True)
class Call:
    """A call of a function of the package."""

    file: str  # relative to the package
    function: str  # its qualified name
    caller: str  # file of the nearest calling function of the package, empty if there is none

    @property
    def is_entry(self) -> bool:
        """Whether the function was called from another file."""
        return self.file != self.caller


def trace_fit(**parameters: Any) -> list[Call]:
    """Return all calls of functions of the package during one fit to a small dense array."""
    X, y = make_classification(500, random_state=0)
    model = FourierClassifier(random_state=0, **parameters)
    calls: list[Call] = []

    def record(frame: FrameType, event: str, argument: Any) -> None:
        file = package_file(frame)
        if event == "call" and file:
            caller = frame.f_back
            while caller is not None and not package_file(caller):
                caller = caller.f_back
            origin = package_file(caller) if caller is not None else ""
            calls.append(Call(file, frame.f_code.co_qualname, origin))

    previous = sys.getprofile()
    sys.setprofile(record)
    try:
        model.fit(X, y)
    finally:
        sys.setprofile(previous)
    return calls


def package_file(frame: FrameType) -> str:
    """Return the file of a frame, relative to the package; empty if it is not in the package."""
    path = Path(frame.f_code.co_filename)
    return path.relative_to(PACKAGE).as_posix() if path.is_relative_to(PACKAGE) else ""


def print_walk(title: str, calls: list[Call]) -> None:
    """Print files with the functions that other files call, and how many there are."""
    entries: dict[str, dict[str, None]] = {}  # ordered sets of functions
    for call in calls:
        functions = entries.setdefault(call.file, {})
        if call.is_entry and "<" not in call.function:  # neither lambdas nor inner functions
            functions[call.function] = None
    n_jumps = sum(call.is_entry for call in calls)
    print(f"{title}: {len(entries)} files, {n_jumps:,} calls from one file to another\n")
    for file, functions in entries.items():
        text = f"{file}: {', '.join(functions)}"
        print(textwrap.fill(text, 100, initial_indent="  ", subsequent_indent="      "))
    print(flush=True)


def main() -> None:
    """Run from the command line."""
    print_walk("All defaults", trace_fit())
    given = {"C": 1.0, "smoothing": 0.06, "search": Ascent(spectrum="gaussian")}
    print_walk("Settings given", trace_fit(n_components=100, loss="hinge", **given))


if __name__ == "__main__":
    main()
