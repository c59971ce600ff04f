"""A table held in memory at once, as a fit needs it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from scipy import sparse

from notsorandom.data.rows import Array, stacked
from notsorandom.data.tables.table import Features, Table, TableError

# Room made when it runs out, relative to what is there: more is wasted, less is copied.
GROWTH = 1.125
# How pandas calls an index without a name: in CSV nothing at all, in Parquet by its level.
PANDAS_INDEX = re.compile(r"|__index_level_[0-9]+__")


def read_whole(
    table: Table,
    features: Features = None,
    target: str | None = None,
    target_type: np.dtype[Any] | None = None,
) -> tuple[Any, Array, list[str] | None]:
    """Samples, target, and the names of the features if the file has any.

    Memory is that of the samples and an eighth of it. The parameters are those of
    :meth:`Table.blocks`; without a `target` it is the file's own.
    """
    target = table.chosen_target(target)
    blocks = table.blocks(features, target, target_type=target_type)
    names = None
    if table.columns is not None:
        if features is None or isinstance(features, int):
            names = feature_names(table, target)
        else:
            names = list(features)
    pile = Pile()
    targets: list[Array] = []
    for block in blocks:
        pile.add(block.X)
        assert block.y is not None, "a target was asked for"
        targets.append(block.y)
    return pile.taken(), np.concatenate(targets), names


def feature_names(table: Table, target: str) -> list[str]:
    """All columns but the target; an index of pandas' is too likely a mistake to learn from."""
    names = [name for name in table.columns or () if name != target]
    for name in filter(PANDAS_INDEX.fullmatch, names):
        number = (table.columns or ()).index(name) + 1
        what = f"is called {name!r}" if name else "has no name"
        like = "is" if name else "has none"
        raise TableError(
            f"{table.path}: column {number} {what}, as an index written by pandas {like}: name it, "
            f"take it out ({'to_parquet' if name else 'to_csv'}(index=False)), or say which "
            "columns to learn from."
        )
    return names


class Pile:
    """Blocks laid one below the other, without ever holding them all twice."""

    def __init__(self) -> None:
        self.rows = 0
        self.dense: Array | None = None
        self.sparse: list[Any] = []

    def add(self, block: Any) -> None:
        """Lay a block below the others."""
        if sparse.issparse(block):
            self.sparse.append(block)
            return
        if self.dense is None:
            self.dense = block.copy()
        elif self.rows + len(block) > len(self.dense):
            self.resize(int(GROWTH * (self.rows + len(block))))
        self.dense[self.rows : self.rows + len(block)] = block
        self.rows += len(block)

    def resize(self, n_rows: int) -> None:
        """Change the room there is; nobody else has seen the array."""
        assert self.dense is not None, "only what is there grows"
        self.dense.resize((n_rows, self.dense.shape[1]), refcheck=False)

    def taken(self) -> Any:
        """All rows."""
        if self.sparse:
            return stacked(self.sparse)
        self.resize(self.rows)
        return self.dense
