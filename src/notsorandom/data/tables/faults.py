"""Where a text file is wrong: a slow second look, which counts lines as a person does."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from notsorandom.data.tables.table import NUMBER, TableError, clipped, listed
from notsorandom.data.tables.targets import MISSING

INFINITE = ("inf", "infinity")
LEAVE_OUT = "turn it into one, or leave the column out"

# What is wrong with a cell, if anything.
Check = Callable[[str], str | None]


def opened(path: Path) -> BinaryIO:
    """A file's bytes, unpacked if its name says so."""
    if path.suffix.lower() == ".gz":
        return cast(BinaryIO, gzip.open(path, "rb"))
    return path.open("rb")


@contextmanager
def damage_told(path: Path) -> Iterator[None]:
    """Turn what unpacking says of a damaged file into an error for a person."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise TableError(f"{path} is damaged or cut short ({error}): copy it again.") from error


class Records:
    """Records of a text file, with the line each starts at.

    Parameters
    ----------
    file : file of bytes
        Text in UTF-8; what isn't is kept as surrogates, to be found where it is.
    delimiter : str
    """

    def __init__(self, file: BinaryIO, delimiter: str) -> None:
        self.text = io.TextIOWrapper(file, "utf-8-sig", errors="surrogateescape", newline="")
        self.delimiter = delimiter
        self.lines = 0
        self.quotes = 0
        self.longest = 0

    def watched_lines(self) -> Iterator[str]:
        """Lines, counted, and their quotes with them."""
        for line in self.text:
            self.lines += 1
            self.quotes += line.count('"')
            self.longest = max(self.longest, len(line))
            yield line

    def __iter__(self) -> Iterator[tuple[int, list[str]]]:
        reader = csv.reader(self.watched_lines(), delimiter=self.delimiter)
        while True:
            start, self.quotes = self.lines + 1, 0
            try:
                cells = next(reader, None)
            except csv.Error as error:
                raise TableError(
                    f"line {start}: a cell has more than {csv.field_size_limit()} characters: "
                    "shorten it, or close the quote that it starts with."
                ) from error
            if self.is_open(start):
                raise TableError(f"line {start}: a quote is opened and never closed: close it.")
            if cells is None:
                return
            if cells:
                yield start, cells

    def is_open(self, start: int) -> bool:
        """Whether the last record was ended by nothing but the end of the file.

        A quote within a cell is a character like others, but not if it takes in further lines.
        """
        return self.quotes % 2 == 1 and self.lines > start


def is_not_utf8(text: str) -> bool:
    """Whether bytes were met that are no text."""
    return any("\ud800" <= character <= "\udfff" for character in text)


def number_fault(cell: str) -> str | None:
    """What is wrong with a cell that should be a finite number."""
    if NUMBER.fullmatch(cell):
        if abs(float(cell)) == float("inf"):
            return f"{clipped(cell)} is too large: scale the column down."
        return None
    if not cell.strip():
        return "the cell is empty: fill it in, or leave the row out."
    if cell.strip() in MISSING:
        return f"{clipped(cell)} stands for nothing: fill it in, or leave the row out."
    if cell.strip().lstrip("+-").lower() in INFINITE:
        return f"{clipped(cell)} is not finite: fill in a number, or leave the row out."
    return f"{clipped(cell)} is not a number: {LEAVE_OUT}."


def is_words(cell: str) -> bool:
    """Whether a cell is text that no number was meant by."""
    return (number_fault(cell) or "").endswith(f"{LEAVE_OUT}.")


def first_fault(
    path: Path, delimiter: str, columns: tuple[str, ...], checks: Mapping[str, Check], n_good: int
) -> str | None:
    """What is wrong with a file, and at which line; None if nothing is.

    Parameters
    ----------
    columns : tuple of str
        Names in the header.
    checks : mapping from names of columns
        What is asked of their cells.
    n_good : int
        Rows known to be right.
    """
    positions = [(columns.index(name), name, check) for name, check in checks.items()]
    with damage_told(path), opened(path) as file:
        records = iter(Records(file, delimiter))
        try:
            next(records)
            for row, (line, cells) in enumerate(records):
                if len(cells) != len(columns):
                    return wrong_length(line, len(cells), len(columns))
                for position, name, check in positions if row >= n_good else ():
                    fault = cell_fault(cells[position], check)
                    if fault is not None:
                        numeric = {each: cells[at] for at, each, of in positions if of is check}
                        return f"column {name!r}, line {line}: {fault}{also(name, numeric)}"
        except TableError as error:
            return str(error)
    return None


def also(name: str, cells: Mapping[str, str]) -> str:
    """If a cell is text, names other columns where that line has text, to be mended at once."""
    texts = [each for each, cell in cells.items() if is_words(cell)]
    others = [each for each in texts if each != name]
    return f" So it is with {listed(others, most=5)}." if name in texts and others else ""


def cell_fault(cell: str, check: Check) -> str | None:
    """What is wrong with a cell, its bytes first."""
    if is_not_utf8(cell):
        return f"{clipped(cell)} is not UTF-8 text: save the file as UTF-8."
    return check(cell)


def wrong_length(line: int, got: int, wanted: int) -> str:
    """Says that a row has too few or too many cells."""
    much = "few" if got < wanted else "many"
    return (
        f"line {line}: too {much} cells, {got} where the header has {wanted}: add or remove some, "
        "or quote a cell that has the separator in it."
    )
