"""Data files, read and written a block of rows at a time."""

from notsorandom.tables.opening import open_table
from notsorandom.tables.table import Block, Table, TableError
from notsorandom.tables.whole import read_whole
from notsorandom.tables.writer import open_writer

__all__ = ["Block", "Table", "TableError", "open_table", "open_writer", "read_whole"]
