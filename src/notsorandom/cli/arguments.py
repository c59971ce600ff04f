"""Arguments of commands: what is checked before any work."""

from __future__ import annotations

import argparse
import csv
import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, TypeAlias

# Where commands are added to.
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def names(
    parser: argparse.ArgumentParser, flag: str, text: str | None, known: Collection[str]
) -> tuple[str, ...] | None:
    """The names of a comma-separated list, each of which must be known."""
    if text is None:
        return None
    found = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    unknown = [name for name in found if name not in known]
    if unknown:
        parser.error(
            f"{flag}: unknown {', '.join(map(repr, unknown))}; choose from {', '.join(known)}"
        )
    return found


def numbers(parser: argparse.ArgumentParser, flag: str, text: str | None) -> tuple[int, ...] | None:
    """The even positive numbers of a comma-separated list."""
    if text is None:
        return None
    found = tuple(text.split(","))
    if not all(
        number.strip().isdecimal() and int(number) % 2 == 0 < int(number) for number in found
    ):
        parser.error(f"{flag} {text}: give even numbers of features above 0, such as 100,500")
    return tuple(dict.fromkeys(int(number) for number in found))


def check_file(parser: argparse.ArgumentParser, path: Path, endings: Sequence[str]) -> None:
    """Refuse a file that can't be written, before any work is done for it."""
    folder = path.resolve().parent
    if not folder.is_dir():
        parser.error(f"--output {path}: the folder {folder} doesn't exist; make it first")
    if path.suffix.lower() not in endings or path.is_dir():
        parser.error(f"--output {path}: name a file that ends in {', '.join(endings)}")
    if not os.access(folder, os.W_OK):
        parser.error(f"--output {path}: the folder {folder} can't be written to")


def check_range(
    parser: argparse.ArgumentParser, flag: str, value: float, least: float, most: float
) -> None:
    """Refuse a number out of its range."""
    if not least <= value <= most:
        parser.error(f"{flag} {value}: it must be from {least} to {most}")


def listed_words(text: str) -> list[str]:
    """The words of a comma-separated list; one that has commas itself is in quotes."""
    return [word.strip() for words in csv.reader([text]) for word in words if word.strip()]


def number_or_auto(parser: argparse.ArgumentParser, flag: str, text: str, kind: Any) -> Any:
    """A number that isn't negative, or the word auto."""
    if text == "auto":
        return text
    try:
        number = kind(text)
    except ValueError:
        number = -1
    if not 0 <= number < float("inf"):
        parser.error(
            f"{flag} {text}: give {'a whole number' if kind is int else 'a number'}, or auto"
        )
    return number


def check_not_same(parser: argparse.ArgumentParser, output: Path, *inputs: Path) -> None:
    """Refuse to write over what is read."""
    for path in inputs:
        if output.exists() and path.exists() and output.samefile(path):
            parser.error(f"--output {output} is the file to read: give another")
