"""Rows on a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from notsorandom.dask.blocks import NOTHING, rows_at
from notsorandom.dask.cluster import Cluster, pickled
from notsorandom.data.rows import Array, Rows, Sum, stacked


@dataclass(frozen=True)
class DaskRows(Rows):
    """Samples on a Dask cluster; see :class:`notsorandom.data.rows.Rows`.

    Parameters
    ----------
    array : Column
    weights : Column, optional
    workers : Workers, optional
        Threads that share what is taken into memory.
    cluster : Cluster
    """

    cluster: Cluster = None  # type: ignore[assignment]
    is_near = False

    @cached_property
    def bare(self) -> Rows:
        """The same without the samples, for what asks for their columns alone."""
        return replace(self, array=self.cluster.root(NOTHING, 0, self.dtype))

    def blocks(self, width: int = 0) -> Sequence[slice]:
        """Slices that cut the rows as they are cut on the cluster."""
        ends = self.cluster.ends.tolist()
        return [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]

    def each(
        self,
        function: Callable[..., Any],
        *columns: Any,
        width: int = 0,
        given: Sequence[Any] | None = None,
    ) -> Iterator[Any]:
        """``function(block, *column_blocks)`` of one block after the other."""
        inputs = (self.array, *columns)
        return iter(self.cluster.results("each", pickled(function), inputs, width, given))

    def add(
        self,
        function: Callable[..., tuple[Any, ...]],
        *columns: Any,
        width: int = 0,
        dtype: Any = None,
    ) -> tuple[Array, ...]:
        """Sum of ``function(block, *column_blocks)`` over the blocks."""
        # Blocks are cut into smaller ones where they are.
        sums = self.cluster.results("add", pickled(function), (self.array, *columns), width)
        total = Sum()
        for parts in sums:
            total.add(parts)
        return tuple(part.astype(self.dtype if dtype is None else dtype) for part in total.parts)

    def map(self, function: Callable[..., Any], *columns: Any, width: int = 0) -> Any:
        """The column of which ``function(block, *column_blocks)`` is a block, made when needed."""
        inputs = (self.array, *columns)
        with np.errstate(all="ignore"):  # any numbers will do to see what comes of them
            like = function(*(np.ones((1, *one.shape[1:]), dtype=one.dtype) for one in inputs))
        return self.cluster.column(pickled(function), inputs, width, like.shape[1:], like.dtype)

    def take(self, indices: Array) -> Rows:
        """The rows at `indices`, in memory."""
        array, *weights = self._picked(indices, self.array, *self.weighing)
        return self.near(array, weights[0] if weights else None)

    def near(self, array: Any, weights: Array | None = None) -> Rows:
        """Some of the samples, in memory."""
        return Rows(array, weights, self.workers)

    def fetch(self, column: Any, indices: Array | None = None) -> Array:
        """A column, or its values at some rows, as an array in memory."""
        if indices is None:
            whole: Array = stacked(list(self.bare.each(lambda _, values: values, column)))
            return whole
        values: Array = self._picked(indices, column)[0]
        return values

    def _picked(self, indices: Array, *columns: Any) -> list[Any]:
        indices = np.asarray(indices)
        chunks = np.searchsorted(self.cluster.ends, indices, side="right")
        order = np.argsort(chunks, kind="stable")
        n_blocks = len(self.cluster.sizes)
        places = np.split(order, np.searchsorted(chunks[order], np.arange(1, n_blocks)))
        starts = self.cluster.ends - self.cluster.sizes
        given = [indices[where] - start for where, start in zip(places, starts, strict=True)]
        found = self.cluster.results("each", pickled(rows_at), columns, given=given)
        whole = [stacked(list(parts)) for parts in zip(*found, strict=True)]
        if (order[1:] > order[:-1]).all():  # in the order of the blocks already
            return whole
        back = np.argsort(order, kind="stable")
        return [part[back] for part in whole]

    def place(self, array: Array) -> Any:
        """Values of the samples as a column."""
        return self.cluster.placed(array)
