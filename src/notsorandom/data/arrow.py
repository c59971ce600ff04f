"""What pyarrow holds or reads, as a table."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from notsorandom.data.tables.arrow import check_names, numbers
from notsorandom.data.tables.parquet import BATCH_BYTES, BUFFER_BYTES, ParquetTable, is_number
from notsorandom.data.tables.table import TableError
from notsorandom.data.tables.whole import feature_names

# Batches that a dataset has under way: its own numbers are for machines with much memory.
READAHEAD = 2


class ArrowTable(ParquetTable):
    """A dataset, table, scanner or reader of pyarrow's, or an iterable of its record batches.

    Parameters
    ----------
    data : pyarrow object, or iterable of record batches
        What is read but once can be gone through but once.
    """

    def __init__(self, data: Any) -> None:
        self.path = Path("X")  # as errors call it
        if isinstance(data, pa.RecordBatch):
            data = pa.Table.from_batches([data])
        elif hasattr(data, "to_reader") and not isinstance(data, pa.Table):
            data = data.to_reader()  # of a scanner, which projects and filters
        elif not hasattr(data, "schema"):
            data = Batches(data)
        self.data = data
        self.schema = data.schema
        self.columns = tuple(self.schema.names)
        check_names(self.path, self.columns)

    def damage(self, error: Exception) -> TableError:
        """See :meth:`ParquetTable.damage`."""
        says = " ".join(str(error).split())
        return TableError(f"{self.path} can't be read ({says}): mend it, or write it again.")

    def coming(self, names: list[str]) -> Generator[Any, None, None]:
        """See :meth:`ParquetTable.coming`; what is somebody's own stays in its thread."""
        return self.batches(names) if isinstance(self.data, Batches) else super().coming(names)

    def batches(self, names: list[str]) -> Generator[Any, None, None]:
        """See :meth:`ParquetTable.batches`."""
        n_rows = max(1, BATCH_BYTES // (8 * len(names)))
        try:
            for batch in self.all_batches(names, n_rows):
                # slices hold no copy, and what is made of them stays small
                for start in range(0, batch.num_rows, n_rows):
                    yield batch.slice(start, n_rows)
        except (pa.ArrowException, OSError) as error:
            raise self.damage(error) from error

    def all_batches(self, names: list[str], n_rows: int) -> Iterable[Any]:
        """Some columns at least, in batches of any size."""
        if isinstance(self.data, pa.Table):
            return self.data.select(names).to_batches(max_chunksize=n_rows)
        if hasattr(self.data, "to_batches"):
            return self.dataset_batches(names, n_rows)
        return iter(self.data)

    def dataset_batches(self, names: list[str], n_rows: int) -> Iterator[Any]:
        """Some columns of a dataset.

        A scan of it holds groups of rows whole, which may be a million of them. Parquet files that
        have all columns as they are in the dataset can be read in smaller pieces.
        """
        scan = {"batch_size": n_rows, "batch_readahead": READAHEAD, "fragment_readahead": 1}
        # of a dataset that is filtered, only a scan knows; None if others call it otherwise
        is_filtered = getattr(self.data, "_scan_options", None) != {}
        if is_filtered or not hasattr(self.data, "get_fragments"):
            yield from self.data.to_batches(columns=names, **scan)
            return
        wanted = [self.schema.field(name) for name in names]
        for fragment in self.data.get_fragments():
            if is_plain(fragment, wanted):
                with fragment.filesystem.open_input_file(fragment.path) as file:
                    parquet = pq.ParquetFile(file, buffer_size=BUFFER_BYTES, pre_buffer=False)
                    groups = [group.id for group in fragment.row_groups]
                    yield from parquet.iter_batches(n_rows, groups, names, use_threads=False)
            else:
                yield from fragment.to_batches(self.schema, columns=names, **scan)

    def names(self, target: str, weight: str | None = None) -> list[str]:
        """Columns of features."""
        self.check_columns([target] if weight is None else [target, weight])
        if weight == target:
            raise TableError(f"{self.path}: column {target!r} is both target and sample_weight.")
        return [name for name in feature_names(self, target) if name != weight]

    def weighted_blocks(self, target: str, weight: str | None = None) -> Iterator[tuple[Any, ...]]:
        """Samples, targets and, if there is a column of them, weights."""
        names = self.names(target, weight)
        if not names:
            raise TableError(f"{self.path} has no column but the target to learn from: add some.")
        if weight is not None and not is_number(self.schema.field(weight).type):
            raise TableError(
                f"{self.path}: column {weight!r} is of type {self.schema.field(weight).type}, but "
                "weights are numbers."
            )
        for block in self.blocks(names, target, [] if weight is None else [weight]):
            weights = () if weight is None else (numbers(block.kept[weight]),)
            yield block.X, block.y, *weights


def is_plain(fragment: Any, wanted: list[Any]) -> bool:
    """Whether a part of a dataset is a Parquet file that has the columns as they are wanted."""
    if not all(hasattr(fragment, name) for name in ("row_groups", "path", "filesystem")):
        return False
    there = fragment.physical_schema
    return bool(fragment.path) and all(
        there.get_field_index(field.name) >= 0 and there.field(field.name).type == field.type
        for field in wanted
    )


class Batches:
    """Record batches one after the other, and their schema.

    Parameters
    ----------
    batches : iterable of record batches
    """

    def __init__(self, batches: Iterable[Any]) -> None:
        coming = iter(batches)
        first = next(coming, None)
        if first is None:
            raise ValueError("There are no record batches: give some, with rows in them.")
        check_batch(first, 1)
        self.schema = first.schema
        self.coming = chain([first], coming)

    def __iter__(self) -> Iterator[Any]:
        for number, batch in enumerate(self.coming, start=1):
            check_batch(batch, number)
            if batch.schema != self.schema:
                raise ValueError(
                    f"Block {number}: its schema is {told(batch.schema)}, but that of the first "
                    f"is {told(self.schema)}: give all batches the same."
                )
            yield batch


def check_batch(batch: Any, number: int) -> None:
    """Raise unless it is a record batch."""
    if not isinstance(batch, pa.RecordBatch):
        raise ValueError(
            f"Block {number} is a {type(batch).__name__}, but as y is the name of a column, blocks "
            "must be pyarrow's record batches: give them, or leave y out."
        )


def told(schema: Any) -> str:
    """A schema in one line."""
    return ", ".join(f"{field.name}: {field.type}" for field in schema)
