"""Arguments that several commands share, and their checks."""

from __future__ import annotations

import argparse
import csv
import os
from collections.abc import Sequence
from pathlib import Path

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


def check_seed(parser: argparse.ArgumentParser, seed: int) -> None:
    """Exit with an error if scikit-learn doesn't take the seed."""
    if not 0 <= seed < 2**31:
        parser.error(f"--seed {seed}: it must be from 0 to {2**31 - 1}")
