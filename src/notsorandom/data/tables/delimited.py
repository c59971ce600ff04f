"""CSV and other delimited text, read through pyarrow."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, cast

import numpy as np
import pyarrow as pa
import pyarrow.csv

from notsorandom.data.checks import format_names, shorten
from notsorandom.data.rows import Array
from notsorandom.data.tables.base import TableError
from notsorandom.data.tables.named import NamedTable
from notsorandom.data.tables.targets import KINDS, infer_kind, kind_of, parse_text, parse_texts

# Bytes of text parsed at a time: the numbers stay in cache until they are copied.
TEXT_BYTES = 2**20
# A record must fit into the text parsed at a time. Records may be this much longer than the first.
LENGTH_FACTOR = 16


class DelimitedTable(NamedTable):
    """A text file with a header, and one row per line.

    `text_bytes` are parsed at a time, more if the first records are long.
    """

    def __init__(self, path: Path, delimiter: str, text_bytes: int = TEXT_BYTES) -> None:
        self.path = path
        self.delimiter = delimiter
        self.kinds: dict[str, str] = {}  # of targets, inferred by a pass over the file
        head = list(islice(self.records(), 2))
        self.columns = tuple(head[0]) if head else ()
        self.check_header()
        if len(head) < 2:
            raise TableError(f"{path} has a header but no rows: give a file with rows.")
        longest = max(sum(len(cell) + 3 for cell in cells) for cells in head)
        self.text_bytes = max(text_bytes, LENGTH_FACTOR * longest)

    def check_header(self) -> None:
        """Raise unless the first record has column names."""
        names = self.columns
        if not names:
            raise TableError(f"{self.path} is empty: give a file with rows.")
        if any("\ufffd" in name for name in names):  # as invalid bytes are decoded
            raise TableError(f"{self.path}, line 1 is not UTF-8 text: save the file as UTF-8.")
        if all(parse_text(name, "f") is not None for name in names):
            raise TableError(
                f"{self.path}, line 1 has numbers, {format_names(names, most=3)}, but must have "
                "the names of the columns: add a header."
            )
        if len(names) == 1 and any(delimiter in names[0] for delimiter in ",;\t"):
            raise TableError(
                f"{self.path}, line 1 has only one column, {shorten(names[0])}: a .csv file needs "
                "commas between cells, a .tsv file tabs."
            )
        self.check_unique_names()

    def records(self) -> Iterator[list[str]]:
        """Iterate over the records that are not empty, by a slow but strict parser."""
        with self.open_bytes() as file:
            text = io.TextIOWrapper(file, "utf-8-sig", errors="replace", newline="")
            reader = csv.reader(text, delimiter=self.delimiter, strict=True)
            try:
                yield from filter(None, reader)
            except csv.Error as error:
                raise TableError(
                    f"{self.path}, up to line {reader.line_num}: a quoted cell is not closed, or "
                    f'too long ({error}): close the quote, and write a quote in a cell as "".'
                ) from error

    @contextmanager
    def open_bytes(self) -> Iterator[BinaryIO]:
        """Open the file, decompressed if its name ends in ``.gz``."""
        is_compressed = self.path.suffix.lower() == ".gz"
        try:
            with gzip.open(self.path) if is_compressed else self.path.open("rb") as file:
                yield cast(BinaryIO, file)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise TableError(f"{self.path} is damaged ({error}): copy it again.") from error

    def read_target(
        self, name: str, target_type: np.dtype[Any] | None, column: Any, first_row: int
    ) -> Array:
        """See :meth:`NamedTable.read_target`."""
        if target_type is None and name not in self.kinds:
            batches = self.batches([], [name])
            self.kinds[name] = infer_kind(to_texts(batch.column(name)) for batch in batches)
        kind = self.kinds[name] if target_type is None else kind_of(target_type)
        texts = to_texts(column)
        y, valid = parse_texts(texts, kind)
        if not valid.all():
            bad = int(valid.argmin())
            self.cell_error(name, first_row + bad, str(texts[bad]), KINDS[kind])
        return y

    def cell_error(
        self, name: str, row: int, value: Any, allowed: str = "a finite number"
    ) -> NoReturn:
        """See :meth:`NamedTable.cell_error`; rows are counted as pyarrow does."""
        raise TableError(
            f"{self.path}: In column {name!r}: Row #{row + 2}: {shorten(value)} is not {allowed}. "
            "Correct it, or remove the row. (Row #1 is the header; empty lines don't count.)"
        )

    def batches(self, names: Sequence[str], others: Sequence[str]) -> Iterator[Any]:
        """See :meth:`NamedTable.batches`; other columns than features are texts."""
        types = dict.fromkeys(others, pa.string()) | dict.fromkeys(names, pa.float64())
        options = {
            # Only without threads do errors have row numbers.
            "read_options": pa.csv.ReadOptions(block_size=self.text_bytes, use_threads=False),
            "parse_options": pa.csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            # Missing values are errors, like text.
            "convert_options": pa.csv.ConvertOptions(
                column_types=types, include_columns=list(types), null_values=[]
            ),
        }
        n_quotes = 0

        def count_quotes(data: Any) -> Any:
            nonlocal n_quotes
            n_quotes += data.to_pybytes().count(b'"')
            return data

        with self.open_bytes() as file:
            source = pa.TransformInputStream(pa.PythonFile(file, "r"), count_quotes)
            try:
                yield from pa.csv.open_csv(source, **options)
            except pa.ArrowInvalid as error:
                raise self.parse_error(error) from error
        if n_quotes % 2 == 1:  # pyarrow may have read the rest of the file as one cell
            for _ in self.records():
                pass

    def parse_error(self, error: Exception) -> TableError:
        """Return pyarrow's error with the name of the column."""
        reason = re.sub(
            r"CSV column #([0-9]+)",
            lambda match: f"column {self.columns[int(match[1])]!r}",
            " ".join(str(error).split()),
        )
        return TableError(
            f"{self.path}: {reason}. Correct it, or leave the column or the row out. (Row #1 is "
            "the header; empty lines don't count.)"
        )


def to_texts(column: Any) -> Array:
    """Return a column of strings as a NumPy array."""
    texts: Array = column.to_numpy(zero_copy_only=False).astype(str)
    return texts
