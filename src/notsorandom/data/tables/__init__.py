"""Data files as tables: rows are read and written in blocks."""

from notsorandom.data.checks import format_names
from notsorandom.data.tables.base import Block, Features, Table, TableError, feature_names, read_all
from notsorandom.data.tables.open import open_table
from notsorandom.data.tables.writer import open_writer

__all__ = ["Block", "Features", "Table", "TableError", "feature_names", "format_names"]
__all__ += ["open_table", "open_writer", "read_all"]
