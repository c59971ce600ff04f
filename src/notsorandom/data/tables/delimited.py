"""Text with a separator between cells, CSV above all, read through pyarrow."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
from pyarrow import csv

from notsorandom.data.tables.ahead import ahead
from notsorandom.data.tables.arrow import NamedTable, check_names, regrouped
from notsorandom.data.tables.faults import (
    Check,
    Records,
    damage_told,
    first_fault,
    is_not_utf8,
    number_fault,
    opened,
)
from notsorandom.data.tables.table import (
    NUMBER,
    Block,
    TableError,
    clipped,
    first_not_finite,
    listed,
)
from notsorandom.data.tables.targets import WORDS, kind_of, read_target, settled_kind, target_fault

# Text parsed at a time: its numbers stay in cache until they are copied.
TEXT_BYTES = 2**20
# A record must fit into the text parsed at a time; others may be longer than the first two.
SAFETY = 16


class DelimitedTable(NamedTable):
    """A text file with a header, and a row on each line.

    Parameters
    ----------
    path : Path
    delimiter : str
        What is between cells.
    """

    def __init__(self, path: Path, delimiter: str) -> None:
        self.path = path
        self.delimiter = delimiter
        self.columns, longest = self.read_head()
        self.text_bytes = max(TEXT_BYTES, SAFETY * longest)

    def read_head(self) -> tuple[tuple[str, ...], int]:
        """Names of the columns, and the length of the longest of the first lines."""
        with damage_told(self.path), opened(self.path) as file:
            records = Records(file, self.delimiter)
            rows = iter(records)
            try:
                _, names = next(rows, (1, []))
                data = next(rows, None)
            except TableError as error:
                raise TableError(f"{self.path}, {error}") from error
        self.check_header(names)
        if data is None:
            raise TableError(f"{self.path} has a header but no rows: give a file with rows in it.")
        return tuple(names), records.longest

    def check_header(self, names: list[str]) -> None:
        """Raise unless the first line has the names of columns."""
        if is_not_utf8("".join(names)):
            raise TableError(f"{self.path}, line 1 is not UTF-8 text: save the file as UTF-8.")
        if not names:
            raise TableError(f"{self.path} is empty: give a file with rows in it.")
        if all(NUMBER.fullmatch(name) for name in names):
            raise TableError(
                f"{self.path}, line 1 has numbers, {listed(names, most=3)}, where the names of the "
                "columns belong: put a header above it."
            )
        if len(names) == 1 and any(other in names[0] for other in ",;\t"):
            raise TableError(
                f"{self.path}, line 1 has but one column, {clipped(names[0])}: a .csv file has "
                "commas between its cells, a .tsv file tabs; save it so."
            )
        check_names(self.path, names)

    def read_blocks(
        self,
        names: Sequence[str],
        target: str | None,
        keep: Sequence[str],
        n_rows: int,
        target_type: np.dtype[Any] | None,
    ) -> Iterator[Block]:
        """See :meth:`NamedTable.read_blocks`."""
        checks: dict[str, Check] = dict.fromkeys(names, number_fault)
        kind = WORDS
        if target is not None:
            kind = self.target_kind(target) if target_type is None else kind_of(target_type)
            checks[target] = partial(target_fault, kind=kind, told=target_type is not None)
        others = list(dict.fromkeys(keep if target is None else [target, *keep]))
        done = 0
        with closing(ahead(self.batches(names, others, checks))) as batches:
            for X, columns in regrouped(batches, names, others, n_rows):
                y = None if target is None else read_target(columns[target], kind)
                if first_not_finite(X) is not None or (y is None and target is not None):
                    self.complain(checks, n_good=done)
                yield Block(X, y, {name: columns[name] for name in keep}, done)
                done += len(X)

    def target_kind(self, target: str) -> str:
        """What kind of target a column is, which takes a reading of it all."""
        batches = self.batches([], [target], {target: lambda _: None})
        return settled_kind(batch.column(target) for batch in batches)

    def batches(
        self, numeric: Sequence[str], texts: Sequence[str], checks: dict[str, Check]
    ) -> Generator[Any, None, None]:
        """Some columns, as numbers and as texts, in small batches."""
        types = dict.fromkeys(texts, pa.string()) | dict.fromkeys(numeric, pa.float64())
        done = 0
        with damage_told(self.path), opened(self.path) as file:
            source = QuoteCounter(file)
            try:
                for batch in csv.open_csv(source, **self.options(types)):
                    yield batch
                    done += batch.num_rows
            except pa.ArrowInvalid as error:
                self.complain(checks, done, otherwise=self.reason(error))
        if source.quotes % 2 == 1:  # one never closed takes in all rows after it
            self.complain(checks, done)

    def options(self, types: dict[str, Any]) -> dict[str, Any]:
        """How pyarrow is to read columns of some types."""
        return {
            "read_options": csv.ReadOptions(block_size=self.text_bytes),
            "parse_options": csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            # nothing stands for a missing number: it is an error like text, and quicker so
            "convert_options": csv.ConvertOptions(
                column_types=types, include_columns=list(types), null_values=[]
            ),
        }

    def reason(self, error: Exception) -> str:
        """What pyarrow doesn't take, though nothing is wrong with it."""
        if "straddling" in str(error):
            return f"a row has more than {self.text_bytes} bytes: shorten its cells."
        return f"pyarrow can't read it: {error}"

    def complain(self, checks: dict[str, Check], n_good: int, otherwise: str = "") -> None:
        """Raise what is wrong with the file, found by a second look, if anything is."""
        fault = first_fault(self.path, self.delimiter, self.columns, checks, n_good) or otherwise
        if fault:
            raise TableError(f"{self.path}, {' '.join(fault.split())}")


class QuoteCounter:
    """A file that counts the quotes read from it."""

    closed = False

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.quotes = 0

    def read(self, size: int = -1) -> bytes:
        """Some bytes of the file."""
        data = self.file.read(size)
        self.quotes += data.count(b'"')
        return data

    def close(self) -> None:
        """Leave it to who opened the file."""
