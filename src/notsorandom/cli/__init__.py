"""The command line. Each command is a module with its arguments and `run`; its docstring is help.

This module imports only the standard library, so that an interrupt is handled from the start.
"""

from __future__ import annotations

import argparse
import io
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

DETAILS = """\
For examples: notsorandom COMMAND --help

Results go to standard output, error messages of one line to standard error. Exit codes: 0 success;
1 a file is missing or its content is wrong; 2 wrong arguments; 130 interrupted."""
COMMANDS = ("fit", "predict", "evaluate", "inspect", "convert", "report", "demo")


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
    from notsorandom import __version__
    from notsorandom.cli.output import print_result, printable

    modules: dict[str, Any] = {name: import_module(f"notsorandom.cli.{name}") for name in COMMANDS}
    layout: Any = {"formatter_class": argparse.RawDescriptionHelpFormatter}
    summary = "Learn a kernel instead of guessing one."
    parser = argparse.ArgumentParser("notsorandom", None, summary, DETAILS, **layout)
    parser.add_argument("--version", action="version", version=f"notsorandom {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command", required=True)
    for name, module in modules.items():
        summary, _, details = module.__doc__.partition("\n\n")
        command = commands.add_parser(
            name, help=summary, description=summary, epilog=details, **layout
        )
        command.add_argument("--json", action="store_true", help="print the result as JSON")
        module.add_arguments(command)
    options = parser.parse_args(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Labels may have characters that the terminal's encoding doesn't have.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        result = modules[options.command].run(options, commands.choices[options.command])
        if result is not None:
            print_result(result, options.json)
        sys.stdout.flush()
        return 0
    except BrokenPipeError:  # the reader of a pipe, such as head, has closed it
        discard_output()
        return 1
    except (OSError, ImportError, ValueError, TypeError, OverflowError) as error:
        message = " ".join(str(error).split())
    except MemoryError:
        message = "not enough memory: use fewer rows, columns or features."
    print(f"notsorandom {options.command}: {printable(message)}", file=sys.stderr)
    discard_output()
    return 1


def discard_output() -> None:
    """Discard buffered output that can't be written; else Python fails again when it exits."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
