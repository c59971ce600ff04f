"""Read a table into memory, as `fit` needs it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from notsorandom.data.rows import Array, stack_blocks
from notsorandom.data.tables.base import Features, Table, TableError

# Column names that pandas gives to an index without a name: none in CSV, its level in Parquet.
PANDAS_INDEX = re.compile(r"|__index_level_[0-9]+__")


def read_all(
    table: Table,
    features: Features = None,
    target: str | None = None,
    target_type: np.dtype[Any] | None = None,
) -> tuple[Any, Array, list[str] | None]:
    """Read samples, target, and the names of the features if the file has them.

    The parameters are those of :meth:`Table.blocks`; the default target is that of the file.
    """
    target = table.resolve_target(target)
    blocks = list(table.blocks(features, target, target_type=target_type))
    names = None
    if table.columns is not None:
        by_name = features is not None and not isinstance(features, int)
        names = list(features) if by_name else feature_names(table, target)  # type: ignore[arg-type]
    return stack_blocks([block.X for block in blocks]), stack_blocks([b.y for b in blocks]), names


def feature_names(table: Table, target: str) -> list[str]:
    """Return all columns but the target.

    Raises
    ------
    TableError
        If one is an index written by pandas: to learn from row numbers is likely a mistake.
    """
    columns = table.columns or ()
    for number, name in enumerate(columns, start=1):
        if name != target and PANDAS_INDEX.fullmatch(name):
            raise TableError(
                f"{table.path}: column {number} has the name {name!r}, so it looks like an index "
                "written by pandas. Write the file with index=False, rename the column, or say "
                "which columns to learn from."
            )
    return [name for name in columns if name != target]
