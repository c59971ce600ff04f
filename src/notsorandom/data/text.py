"""Delimited text files: their dialect is found, and pandas reads them."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from notsorandom.data.checks import (
    WIDE_FRAME,
    TableError,
    check_columns,
    check_size,
    format_names,
    in_few_blocks,
)

# Text of cells without a value, in small letters, and as it may be written.
MISSING = ("", "na", "n/a", "#n/a", "nan", "null", "none", "?", "-", ".")
CASES = {case(text) for text in MISSING for case in (str.lower, str.upper, str.title)} | {"NaN"}
DELIMITERS = {",": "", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
# Bytes that the dialect is found from; more if they have no row below the header.
HEAD_BYTES = 2**18
MAX_LINE_BYTES = 2**24
# Most bytes of a block of rows. The number of its rows follows from the block before it.
MAX_BLOCK_BYTES = 2**28
ALL_ROWS = 2**62
# A cell that is a number with a decimal comma, or with points between thousands, in a column whose
# other cells are not all numbers.
DECIMAL_COMMA_CELL = re.compile(
    r"\s*[+-]?(?:\d{1,3}(?:\.\d{3}){1,2}|\d*(?=,))(?:,\d+)?(?:[eE][+-]?\d+)?\s*"
)
# Bytes that are not valid UTF-8 are read as Windows-1252, which older programs write.
codecs.register_error(
    "windows-1252",
    lambda error: (error.object[error.start : error.end].decode("cp1252", "replace"), error.end),  # type: ignore[attr-defined]
)


@dataclass(frozen=True)
class TextFile:
    """A text file with a header, and how it is written."""

    path: Path
    columns: list[str]
    dialect: str  # in words
    encoding: str
    options: dict[str, Any]  # of pandas
    row_bytes: int  # of a typical row

    def blocks(
        self, texts: Collection[str] = (), n_rows: int = ALL_ROWS, max_bytes: float = 2**62
    ) -> Iterator[Any]:
        """Iterate over data frames of `n_rows` rows, by default all rows in one.

        Columns in `texts` are text. The others are what all of their cells in a block fit: numbers,
        booleans or text.
        """
        import pandas as pd

        most = float("inf") if n_rows == ALL_ROWS else MAX_BLOCK_BYTES
        file = LimitedFile(self.path, max_bytes, 8 * len(self.columns), most)
        with io.TextIOWrapper(file, self.encoding, "windows-1252", newline="") as text:
            reader = pd.read_csv(
                text,
                header=0,
                names=self.columns,
                index_col=False,
                dtype=dict.fromkeys(texts, str) or None,  # {} takes twice as long if wide
                na_values=list(CASES),
                keep_default_na=False,
                skipinitialspace=True,
                # A third faster, if types may vary within a block; twice as slow if it is wide.
                low_memory=n_rows != ALL_ROWS and len(self.columns) <= WIDE_FRAME,
                iterator=True,
                **self.options,
            )
            size = n_rows
            while len(frame := next_rows(reader, size)):
                # Rows may be longer than the first ones; up to HEAD_BYTES are read ahead.
                row_bytes = (file.block_bytes - HEAD_BYTES) / len(frame)
                size = max(1, int(n_rows * self.row_bytes / max(row_bytes, self.row_bytes)))
                file.block_bytes = 0
                if self.options["decimal"] == ",":
                    for name in frame.select_dtypes(exclude=["number", "bool"]):
                        frame[name] = frame[name].map(plain_number)
                yield in_few_blocks(frame)


def plain_number(cell: Any) -> Any:
    """Return a cell without the decimal comma and the marks of thousands, if it has them."""
    if isinstance(cell, str) and DECIMAL_COMMA_CELL.fullmatch(cell):
        return cell.replace(".", "").replace(",", ".").strip()
    return cell


def next_rows(reader: Any, n_rows: int) -> Any:
    """Return the next rows of a reader of pandas; none at its end."""
    try:
        return reader.get_chunk(n_rows)
    except StopIteration:
        return ()


class LimitedFile(io.BufferedReader):
    """The bytes of a file, decompressed if its name says so, with limits of its size.

    Raises TableError if a line is longer than `MAX_LINE_BYTES`, if the file has more bytes than
    `max_bytes`, also counted as `row_size` for each line, or if more than `max_block` bytes were
    read since `block_bytes` was set to zero.
    """

    def __init__(
        self, path: Path, max_bytes: float, row_size: int, max_block: float = float("inf")
    ) -> None:
        raw: Any = gzip.GzipFile(path) if path.suffix.lower() == ".gz" else io.FileIO(path)
        super().__init__(raw)
        self.path, self.max_bytes, self.row_size = path, max_bytes, row_size
        self.max_block = max_block
        self.n_bytes = self.n_lines = self.line_bytes = self.block_bytes = 0

    def read1(self, size: int = -1) -> bytes:
        """Return the next bytes, for :class:`io.TextIOWrapper`."""
        data = self.read(HEAD_BYTES)
        self.n_bytes += len(data)
        self.block_bytes += len(data)
        self.n_lines += data.count(b"\n")
        last = data.rfind(b"\n")
        self.line_bytes = self.line_bytes + len(data) if last < 0 else len(data) - last
        if self.line_bytes > MAX_LINE_BYTES:
            raise TableError(
                f"{self.path} has a line of more than {MAX_LINE_BYTES:,} bytes, after line "
                f"{self.n_lines:,}: is a quotation mark missing there?"
            )
        if self.block_bytes > self.max_block:
            raise TableError(
                f"{self.path} has rows before line {self.n_lines + 2:,} that are many times longer "
                "than the first rows: is a quotation mark missing there? Else put them first."
            )
        check_size(self.path, max(self.n_bytes, self.row_size * self.n_lines), self.max_bytes)
        return data


def open_text(path: Path) -> TextFile:
    """Open a text file, with the dialect that fits its first rows best."""
    with LimitedFile(path, 2**62, 0) as file:
        head = more = file.read1()
        while more and head.count(b"\n") < 3:
            head += (more := file.read1())
        is_whole = not file.read1()
    is_utf16 = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    has_mark = head.startswith(codecs.BOM_UTF8)  # else, the decoder without it is faster
    encoding = "utf-16" if is_utf16 else "utf-8-sig" if has_mark else "utf-8"
    text, valid = (
        codecs.getincrementaldecoder(encoding)(errors).decode(head, is_whole)
        for errors in ("windows-1252", "ignore")
    )
    is_windows = text != valid
    if "\0" in text:
        raise TableError(f"{path} is not a text file: save it as text in UTF-8.")
    hint = re.match(r"sep=([,;\t|])\r?\n", text)  # for Excel
    text = text[hint.end() :] if hint else text
    delimiters = [hint[1]] if hint else DELIMITERS
    tables = {delimiter: parse_rows(text, delimiter, is_whole) for delimiter in delimiters}
    delimiter = max(tables, key=lambda delimiter: rank_delimiter(delimiter, *tables[delimiter]))
    header, *rows = tables[delimiter]
    if not rows:
        raise TableError(f"{path} has no rows below the header: add rows.")
    layout = ""
    if all(len(row) == len(header) + 1 for row in rows):
        if all(not row[-1].strip() for row in rows):
            header, layout = [*header, ""], "delimiters at the ends of rows"
        else:  # as R writes them
            header, layout = ["", *header], "row names in the first column"
    names = [name.strip() or f"Unnamed: {number}" for number, name in enumerate(header)]
    if all(re.fullmatch(r"[+-]?[0-9.,]+([eE][+-]?[0-9]+)?", name) for name in names):
        raise TableError(
            f"{path}, line 1 has numbers, {format_names(names, most=3)}, but must have the names "
            "of the columns: add a header."
        )
    check_columns(path, names, ())
    for number, row in enumerate(rows, start=1):  # pandas finds them in later rows only
        if len(row) > len(names):
            raise TableError(
                f"{path}, row {number} below the header has {len(row)} cells, but the header has "
                f"{len(names)}: put cells that have a delimiter in quotation marks."
            )
    decimal = find_decimal([cell.strip() for row in rows for cell in row], delimiter)
    notes = [DELIMITERS[delimiter], "decimal commas" if decimal == "," else "", layout]
    notes += ["UTF-16" if is_utf16 else "Windows-1252" if is_windows else ""]
    options = {"sep": delimiter, "decimal": decimal, "skiprows": 1 if hint else 0}
    dialect = ", ".join(filter(None, notes))
    return TextFile(path, names, dialect, encoding, options, len(head) // len(rows))


def parse_rows(text: str, delimiter: str, is_whole: bool) -> list[list[str]]:
    """Return the header and the rows of the start of a text, without the last if it is cut."""
    rows: list[list[str]] = []
    with suppress(csv.Error):  # a cell is too long
        rows.extend(filter(None, csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)))
    return (rows if is_whole else rows[:-1]) or [[]]


def rank_delimiter(delimiter: str, header: list[str], *rows: list[str]) -> tuple[float, ...]:
    """Return how well a delimiter divides rows into columns; larger is better."""
    n_rows = max(1, len(rows))
    splits = len(header) > 1 and sum(len(row) > 1 for row in rows) > n_rows / 2
    equal = round(sum(len(row) == len(header) for row in rows) / n_rows, 1)
    # If still in doubt, the rarest in text; for one column, a comma.
    return splits, equal, len(header), (1 if splits else -1) * list(DELIMITERS).index(delimiter)


def find_decimal(cells: list[str], delimiter: str) -> str:
    """Return the decimal mark of most cells; in 1,234 the mark may separate thousands instead."""
    counts = {}
    for mark in ".,":
        unclear = rf"[+-]?[1-9][0-9]{{0,2}}[{mark}][0-9]{{3}}$"
        if mark + delimiter == ",;":  # programs write semicolons where decimal marks are commas
            unclear = "^$"
        number = re.compile(rf"(?!{unclear})[+-]?[0-9]*[{mark}][0-9]+([eE][+-]?[0-9]+)?")
        counts[mark] = sum(number.fullmatch(cell) is not None for cell in cells)
    return "," if delimiter != "," and counts[","] > counts["."] else "."
