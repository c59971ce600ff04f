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
from notsorandom.cli.evaluate import add_evaluate
from notsorandom.cli.experiments import add_demo, add_reproduce
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

exit codes: 0 done; 1 a file, or what is in it, is not as it should be; 2 wrong arguments;
130 interrupted. Errors are one line on standard error; what was asked for is on standard output."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="notsorandom",
        description="Learn a kernel instead of guessing one.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"notsorandom {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command", required=True)
    for add in (
        add_fit,
        add_predict,
        add_evaluate,
        add_inspect,
        add_convert,
        add_report,
        add_demo,
        add_reproduce,
    ):
        add(commands)
    options = parser.parse_args(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # whatever letters a terminal has
    try:
        with terminated_cleanly():
            code = int(options.run(options, commands.choices[options.command]))
            sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # whoever reads the output has had enough
        forget_output()
        return 1
    except (OSError, ImportError, ValueError, OverflowError) as error:  # the message says it all
        message = " ".join(str(error).split())
    except MemoryError:
        message = "there is not enough memory: give fewer rows, columns or features."
    print(f"notsorandom {options.command}: {message}", file=sys.stderr)
    forget_output()
    return 1


@contextmanager
def terminated_cleanly() -> Iterator[None]:
    """Let a request to end clean up, as an interruption does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: Any) -> None:
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def forget_output() -> None:
    """Drop what couldn't be written, or Python would try again at its end, and complain."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
