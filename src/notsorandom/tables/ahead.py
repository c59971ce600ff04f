"""Work done ahead: the next batches are parsed while a model is busy with those before."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TypeVar

Item = TypeVar("Item")

# Batches held at most: about what a block is made of.
AHEAD = 16


def ahead(items: Generator[Item, None, None]) -> Iterator[Item]:
    """The same items, made by a thread of their own, an error in its place among them."""
    end = object()
    with closing(items), ThreadPoolExecutor(max_workers=1) as pool:
        coming = deque(pool.submit(next, items, end) for _ in range(AHEAD))
        while (item := coming.popleft().result()) is not end:
            coming.append(pool.submit(next, items, end))
            yield item  # type: ignore[misc]
