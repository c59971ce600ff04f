"""Delimited text files: their dialect is found, and pyarrow reads them."""

from __future__ import annotations

import codecs
import csv
import io
import math
import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from notsorandom.data.checks import TableError, check_columns, check_size, format_names

# Text of cells without a value, in small letters, and as it may be written.
MISSING = ("", "na", "n/a", "#n/a", "nan", "null", "none", "?", "-", ".")
CASES = {case(text) for text in MISSING for case in (str.lower, str.upper, str.title)} | {"NaN"}
DELIMITERS = {",": "", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
# The dialect is found from so many bytes, more if these have no row below the header.
HEAD_BYTES, MAX_HEAD_BYTES = 2**18, 2**24
# Bytes parsed at a time: the numbers stay in cache until they are copied. A line must fit, and may
# be `LENGTH_FACTOR` times as long as the longest of the head.
PARSE_BYTES, LENGTH_FACTOR = 2**20, 16
# Bytes that are not valid UTF-8 are read as Windows-1252, which older programs write.
codecs.register_error(
    "windows-1252",
    lambda error: (error.object[error.start : error.end].decode("cp1252", "replace"), error.end),  # type: ignore[attr-defined]
)


@dataclass(frozen=True)
class TextFile:
    """A text file with a header, how it is written, and options of pyarrow's readers."""

    path: Path
    columns: list[str]
    dialect: str
    encoding: str
    options: dict[str, Any]
    convert: dict[str, Any]

    def read(self, names: list[str], max_bytes: float, texts: Collection[str] = ()) -> Any:
        """Return some columns as a pyarrow table, with types that fit all of their cells."""
        import pyarrow as pa
        from pyarrow.csv import ConvertOptions, read_csv

        file, types = self.decode(max_bytes, len(names)), dict.fromkeys(texts, pa.string())
        convert = ConvertOptions(include_columns=names, column_types=types, **self.convert)
        table = read_csv(file, convert_options=convert, **self.options)
        # Times of day are text, as they are when read in blocks.
        times = [field.name for field in table.schema if pa.types.is_time(field.type)]
        return self.read(names, max_bytes, times) if times else table

    def scan(self, names: list[str], numbers: Collection[str]) -> Iterator[Any]:
        """Iterate over some columns as record batches: `numbers` are floats, the others text."""
        import pyarrow as pa
        from pyarrow.csv import ConvertOptions, open_csv

        types = {name: pa.float64() if name in numbers else pa.string() for name in names}
        is_plain = self.encoding != "utf-16" and set(numbers).issuperset(names)
        file = open_bytes(self.path) if is_plain else self.decode()
        convert = ConvertOptions(include_columns=names, column_types=types, **self.convert)
        return open_csv(file, convert_options=convert, **self.options)

    def decode(self, max_bytes: float = math.inf, n_columns: int = 0) -> Any:
        """Open the text as UTF-8; raise if it, or cells of 8 bytes, take more than `max_bytes`."""
        import pyarrow as pa

        decoder = codecs.getincrementaldecoder(self.encoding)("windows-1252")
        n_bytes = n_lines = 0

        def decode(data: Any) -> bytes:
            nonlocal n_bytes, n_lines
            text = decoder.decode(data.to_pybytes(), final=not data.size).encode()
            n_bytes, n_lines = n_bytes + len(text), n_lines + text.count(b"\n")
            check_size(self.path, max(n_bytes, 8 * n_columns * n_lines), max_bytes)
            return text

        return pa.TransformInputStream(open_bytes(self.path), decode)


def open_bytes(path: Path) -> Any:
    """Open a file, decompressed if its name says so."""
    import pyarrow as pa

    return pa.input_stream(str(path), compression="gzip" if path.suffix.lower() == ".gz" else None)


def open_text(path: Path) -> TextFile:
    """Open a text file, with the dialect that fits its first rows best."""
    from pyarrow.csv import ParseOptions, ReadOptions

    with open_bytes(path) as file:
        head = more = file.read(HEAD_BYTES)
        while more and head.count(b"\n") < 3 and len(head) < MAX_HEAD_BYTES:
            head += (more := file.read(len(head)))
        is_whole = not file.read(1)
    is_utf16 = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    encoding = "utf-16" if is_utf16 else "utf-8-sig"
    text, valid = (
        codecs.getincrementaldecoder(encoding)(errors).decode(head, is_whole)
        for errors in ("windows-1252", "ignore")
    )
    if "\0" in text:
        raise TableError(f"{path} is not a text file: save it as text in UTF-8.")
    start = text.lstrip("\r\n")
    tables = {delimiter: parse_rows(start, delimiter, is_whole) for delimiter in DELIMITERS}
    delimiter = max(tables, key=lambda delimiter: rank_delimiter(delimiter, *tables[delimiter]))
    header, *rows = tables[delimiter]
    names = [name.strip() or f"Unnamed: {number}" for number, name in enumerate(header)]
    if not rows:
        raise TableError(
            f"{path} has no rows below the header, or one over {MAX_HEAD_BYTES:,} bytes: add rows."
        )
    if all(re.fullmatch(r"[+-]?[0-9.,]+([eE][+-]?[0-9]+)?", name) for name in names):
        raise TableError(
            f"{path}, line 1 has numbers, {format_names(names, most=3)}, but must have the names "
            "of the columns: add a header."
        )
    check_columns(path, names, ())
    decimal = find_decimal([cell.strip() for row in rows for cell in row], delimiter)
    nulls = [space + text for text in CASES for space in ("", " ")]
    convert = {"null_values": nulls, "strings_can_be_null": True, "decimal_point": decimal}
    notes = [DELIMITERS[delimiter], "decimal commas" if decimal == "," else ""]
    notes += ["UTF-16" if is_utf16 else "Windows-1252" if text != valid else ""]
    read_options = ReadOptions(
        use_threads=False,  # with threads, errors don't have lines
        block_size=max(PARSE_BYTES, LENGTH_FACTOR * max(map(len, start.splitlines()))),
        column_names=names,
        skip_rows=len(text[: -len(start)].splitlines()),
        skip_rows_after_names=1,
    )
    parse_options = ParseOptions(delimiter=delimiter, newlines_in_values=True)
    options = {"read_options": read_options, "parse_options": parse_options}
    dialect = ", ".join(filter(None, notes))
    return TextFile(path, names, dialect, encoding, options, convert)


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
    """Return the decimal mark that more cells have; those such as 1,234 may be thousands."""
    counts = {}
    for mark in ".,":
        unclear = rf"[+-]?[1-9][0-9]{{0,2}}[{mark}][0-9]{{3}}$"
        if mark + delimiter == ",;":  # programs write semicolons where decimal marks are commas
            unclear = "^$"
        number = re.compile(rf"(?!{unclear})[+-]?[0-9]*[{mark}][0-9]+([eE][+-]?[0-9]+)?")
        counts[mark] = sum(number.fullmatch(cell) is not None for cell in cells)
    return "," if delimiter != "," and counts[","] > counts["."] else "."
