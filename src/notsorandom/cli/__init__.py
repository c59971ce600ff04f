"""The command line: runs a command, and prints its result or its error.

This module imports only the standard library, so that an interrupt is handled from the start.
"""

from __future__ import annotations

import io
import json
import os
import signal
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

# Most items of a list that are printed, and numbers that are printed in percent, beside accuracies.
MAX_ITEMS, SHARES = 10, ("recall", "precision", "coverage", "importances")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return the exit code."""
    # As an exception, SIGTERM too leaves no partial files.
    previous = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        return run_command(arguments)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    finally:
        signal.signal(signal.SIGTERM, previous)


def run_command(arguments: Sequence[str] | None) -> int:
    """Parse the arguments, run the command and print its result or its error."""
    from notsorandom.cli.arguments import make_parser

    options = make_parser().parse_args(arguments)

    def print_message(message: Any, *_: Any, **__: Any) -> None:
        """Print an error or a warning, which may have text of a file, as one line."""
        text = printable(" ".join(str(message).split()))
        print(f"notsorandom {options.command}: {text}", file=sys.stderr)

    if isinstance(sys.stdout, io.TextIOWrapper):
        # Labels may have characters that the terminal's encoding doesn't have.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        with warnings.catch_warnings():
            warnings.showwarning = print_message
            result = options.run(options)
        if result is not None:
            print(json.dumps(result) if options.json else format_result(result))
        sys.stdout.flush()
        return 0
    except BrokenPipeError:  # the reader of a pipe, such as head, has closed it
        pass
    except (OSError, ImportError, ValueError, TypeError, OverflowError) as error:
        print_message(error)
    except MemoryError:
        print_message("not enough memory: use fewer rows, columns or features.")
    try:
        sys.stdout.flush()
    except OSError:  # discard what can't be written; else Python fails again when it exits
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1


def format_result(result: Mapping[str, Any]) -> str:
    """Return a result as text, one line per item."""
    lines = {
        printable(name): printable(format_value(name, value))
        for name, value in result.items()
        if value is not None
    }
    width = max(map(len, lines))
    return "\n".join(f"{name.ljust(width)}  {text}" for name, text in lines.items())


def format_value(name: str, value: Any) -> str:
    """Return a value of a result as text."""
    from notsorandom.display.results import format_number, format_share

    if value is None:
        return "-"
    if isinstance(value, float):
        is_share = "accuracy" in name or name in SHARES
        return format_share(value) if is_share else format_number(value)
    if isinstance(value, Mapping):
        kind = name if name == "importances" else ""
        value = [f"{key} {format_value(kind or key, item)}" for key, item in value.items()]
    if isinstance(value, list):
        shown = ", ".join(format_value(name, item) for item in value[:MAX_ITEMS])
        return f"{shown}, ... ({len(value):,} in all)" if len(value) > MAX_ITEMS else shown
    return f"{value:,}" if type(value) is int else str(value)


def printable(text: str) -> str:
    """Return text with escape sequences for characters that would control a terminal."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text
    )
