"""The command line."""

from __future__ import annotations

import argparse
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from notsorandom import __version__
from notsorandom.cli.convert import add_convert
from notsorandom.cli.demo import add_demo
from notsorandom.cli.evaluate import add_evaluate
from notsorandom.cli.fit import add_fit
from notsorandom.cli.inspect import add_inspect
from notsorandom.cli.predict import add_predict
from notsorandom.cli.report import add_report

EXAMPLES = """\
examples:
  notsorandom demo
  notsorandom fit train.csv --target label -o model.safetensors
  notsorandom predict model.safetensors new.csv -o predictions.csv
  notsorandom evaluate model.safetensors test.csv
  notsorandom COMMAND --help

exit codes: 0 success; 1 a file is missing or its content is wrong; 2 wrong arguments;
130 interrupted. Results go to standard output, error messages of one line to standard error."""
ADD_COMMANDS = (
    add_fit,
    add_predict,
    add_evaluate,
    add_inspect,
    add_convert,
    add_report,
    add_demo,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="notsorandom",
        description="Learn a kernel instead of guessing one.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"notsorandom {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command", required=True)
    for add in ADD_COMMANDS:
        add(commands)
    options = parser.parse_args(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Labels may have characters that the terminal's encoding doesn't have.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        with exit_on_sigterm():
            code = int(options.run(options, commands.choices[options.command]))
            sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of a pipe, such as head, has closed it
        discard_output()
        return 1
    except (OSError, ImportError, ValueError, OverflowError) as error:
        message = " ".join(str(error).split())
    except MemoryError:
        message = "not enough memory: use fewer rows, columns or features."
    print(f"notsorandom {options.command}: {message}", file=sys.stderr)
    discard_output()
    return 1


@contextmanager
def exit_on_sigterm() -> Iterator[None]:
    """Turn SIGTERM into SystemExit, so that partial files are removed."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread can set signal handlers
        return

    def handle(number: int, frame: Any) -> None:
        sys.exit(128 + number)

    previous = signal.signal(signal.SIGTERM, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def discard_output() -> None:
    """Discard buffered output that can't be written; else Python fails again when it exits."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
