"""Samples that are not in memory: looked at by slices of rows, or laid aside on disk."""

from notsorandom.data.coerce import from_arrow, read_lazily, read_source
from notsorandom.data.lazy import Chosen, Lazy, Prepared, Sliced, check_blocks
from notsorandom.data.spool import spooled

__all__ = [
    "Chosen",
    "Lazy",
    "Prepared",
    "Sliced",
    "check_blocks",
    "from_arrow",
    "read_lazily",
    "read_source",
    "spooled",
]
