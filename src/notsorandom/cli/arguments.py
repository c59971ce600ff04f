"""Arguments that several commands share, and their checks."""

from __future__ import annotations

import argparse
import csv
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

# The object of argparse that commands are added to.
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def add_command(
    commands: Commands,
    name: str,
    run: Callable[[argparse.Namespace, argparse.ArgumentParser], int],
    summary: str,
    examples: str,
) -> argparse.ArgumentParser:
    """Add a command with the flag ``--json``; return its parser."""
    command = commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("--json", action="store_true", help="print the result as JSON")
    command.set_defaults(run=run)
    return command


def add_model_and_data(command: argparse.ArgumentParser, data_help: str) -> None:
    """Add the positional arguments of commands that apply a model to data."""
    command.add_argument("model", type=Path, help="a model file (.safetensors)")
    command.add_argument("data", type=Path, help=data_help)


def parse_number(text: str) -> int | float | str:
    """Return a number if the text is one, else the text, for the estimator's own checks."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def split_names(text: str) -> list[str]:
    """Split a comma-separated list; a name with a comma is in double quotes."""
    return [name.strip() for line in csv.reader([text]) for name in line if name.strip()]


def check_output(
    parser: argparse.ArgumentParser, path: Path, suffixes: Sequence[str], *inputs: Path
) -> None:
    """Exit with an error if the output can't be written, or is one of the inputs."""
    folder = path.resolve().parent
    if not folder.is_dir():
        parser.error(f"--output {path}: the folder {folder} doesn't exist; create it first")
    if path.suffix.lower() not in suffixes or path.is_dir():
        parser.error(f"--output {path}: give a file that ends in {', '.join(suffixes)}")
    if not os.access(folder, os.W_OK):
        parser.error(f"--output {path}: the folder {folder} can't be written to")
    if any(path.exists() and other.exists() and path.samefile(other) for other in inputs):
        parser.error(f"--output {path} is an input file: give another one")


def check_range(
    parser: argparse.ArgumentParser, flag: str, value: Any, low: float, high: float
) -> None:
    """Exit with an error unless ``low <= value <= high``."""
    if not low <= value <= high:
        parser.error(f"{flag} {value}: it must be from {low} to {high}")
