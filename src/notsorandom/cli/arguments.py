"""Arguments that several commands share, and types of arguments."""

from __future__ import annotations

import argparse
import csv
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from notsorandom._utils.files import check_output_path
from notsorandom.data.files import MAX_BYTES


def add_model_and_data(command: argparse.ArgumentParser, data_help: str) -> None:
    """Add the arguments of commands that apply a model to data."""
    command.add_argument("model", type=Path, help="a model file (.skops)")
    command.add_argument("data", type=Path, help=data_help)
    add_limit(command)


def add_limit(command: argparse.ArgumentParser) -> None:
    """Add the limit of what is read into memory."""
    text = "most bytes of a file, uncompressed, to hold in memory (default: %(default)s)"
    command.add_argument("--max-bytes", type=int, default=MAX_BYTES, metavar="N", help=text)


def add_seed(command: argparse.ArgumentParser) -> None:
    """Add the seed, as scikit-learn takes it."""
    text = "random seed (default: %(default)s)"
    command.add_argument("--seed", type=in_range(int, 0, 2**31 - 1), default=0, help=text)


def in_range(kind: type, low: float, high: float) -> Callable[[str], float]:
    """Return a type of arguments: numbers from `low` to `high`."""

    def number(text: str) -> float:
        if not low <= kind(text) <= high:
            raise argparse.ArgumentTypeError(f"{text} is not allowed: give {low} to {high}")
        return kind(text)

    return number


def add_output(
    command: argparse.ArgumentParser, suffixes: Sequence[str], text: str, **settings: Any
) -> None:
    """Add the file to write, with one of these suffixes."""

    def file(path: str) -> Path:
        try:
            checked = check_output_path(path, *suffixes)
        except (OSError, ValueError) as error:
            raise argparse.ArgumentTypeError(str(error)) from error
        if not os.access(checked.resolve().parent, os.W_OK):
            raise argparse.ArgumentTypeError(f"the folder of {path} can't be written to")
        return checked

    command.add_argument("-o", "--output", type=file, help=text, **settings)


def names(text: str) -> list[str]:
    """Split a comma-separated list; a name with a comma is in double quotes."""
    return [name.strip() for line in csv.reader([text]) for name in line if name.strip()]
