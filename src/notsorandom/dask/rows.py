"""Rows on a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from notsorandom.dask.blocks import NO_FEATURES, sum_block, take_rows
from notsorandom.dask.cluster import Cluster
from notsorandom.data.rows import Array, Rows, RunningSum, stack_blocks


@dataclass(frozen=True)
class DaskRows(Rows):
    """Samples on a Dask cluster; see :class:`notsorandom.data.rows.Rows`.

    `array` and `weights` are columns of the cluster. The threads of `pool` share samples that are
    taken into memory.
    """

    cluster: Cluster = None  # type: ignore[assignment]
    is_local = False

    @cached_property
    def columns_only(self) -> Rows:
        """The same rows without their samples, for operations on columns."""
        return replace(self, array=self.cluster.part(NO_FEATURES, 0, self.dtype))

    def blocks(self, width: int = 0) -> Sequence[slice]:
        """Return slices that cut the rows as they are cut on the cluster."""
        ends = self.cluster.ends.tolist()
        return [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]

    def map_blocks(
        self,
        function: Callable[..., Any],
        *columns: Any,
        width: int = 0,
        given: Sequence[Any] | None = None,
    ) -> Iterator[Any]:
        """Yield ``function(block, *column_blocks)`` for each block, in order."""
        return iter(self.cluster.map_blocks(function, (self.array, *columns), given))

    def map(
        self, function: Callable[..., Any], *columns: Any, width: int = 0, on_device: bool = False
    ) -> Any:
        """Return the column with the blocks ``function(block, *column_blocks)``."""
        return self.cluster.map(function, (self.array, *columns), width)

    def sum_blocks(
        self,
        function: Callable[..., tuple[Any, ...]],
        *columns: Any,
        width: int = 0,
        dtype: Any = None,
    ) -> tuple[Array, ...]:
        """Sum ``function(block, *column_blocks)`` over the blocks."""
        total = RunningSum()
        for sums in self.map_blocks(partial(sum_block, function, width, len(self)), *columns):
            total.add(sums)
        return tuple(part.astype(self.dtype if dtype is None else dtype) for part in total.parts)

    def take(self, indices: Array) -> Rows:
        """Return the rows at `indices`, in memory."""
        return self.with_samples(*self._take(indices, self.array, *self.weight_columns))

    def with_samples(self, array: Any, weights: Array | None = None) -> Rows:
        """Return rows of some of the samples, in memory."""
        return Rows(array, weights, self.pool)

    def to_host(self, column: Any, indices: Array | None = None) -> Array:
        """Return a column, or its values at `indices`, as an array in memory."""
        if indices is None:
            blocks = list(self.columns_only.map_blocks(lambda _, values: values, column))
            return np.asarray(stack_blocks(blocks))
        return np.asarray(self._take(indices, column)[0])

    def _take(self, indices: Array, *columns: Any) -> list[Any]:
        """Return some rows of columns, in one pass."""
        indices = np.asarray(indices)
        chunks = np.searchsorted(self.cluster.ends, indices, side="right")
        order = np.argsort(chunks, kind="stable")
        places = np.split(
            order, np.searchsorted(chunks[order], np.arange(1, len(self.cluster.sizes)))
        )
        starts = self.cluster.ends - self.cluster.sizes
        given = [indices[place] - start for place, start in zip(places, starts, strict=True)]
        parts = self.cluster.map_blocks(take_rows, columns, given)
        back = np.argsort(order, kind="stable")
        return [stack_blocks(list(blocks))[back] for blocks in zip(*parts, strict=True)]

    def from_host(self, array: Array) -> Any:
        """Return an array with one value per sample as a column."""
        return self.cluster.send(array)
