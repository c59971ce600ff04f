"""Data files, read and written a block of rows at a time."""

from notsorandom.data.tables.opening import open_table
from notsorandom.data.tables.table import Block, Table, TableError
from notsorandom.data.tables.whole import read_whole
from notsorandom.data.tables.writer import open_writer

__all__ = ["Block", "Table", "TableError", "open_table", "open_writer", "read_whole"]
