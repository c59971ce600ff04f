"""Work done ahead: the next batches are parsed while a model is busy with those before."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")

# Batches held at most: about what a block is made of.
AHEAD = 16


def ahead(items: Generator[Item, None, None]) -> Generator[Item, None, None]:
    """The same items, made by a thread of their own, an error in its place among them."""
    end = object()
    waits = left = False

    def following() -> Item | object:
        if left:
            items.close()
            return end
        return next(items, end)

    pool = ThreadPoolExecutor(max_workers=1)
    try:
        coming = deque(pool.submit(following) for _ in range(AHEAD))
        while (item := coming.popleft().result()) is not end:
            coming.append(pool.submit(following))
            yield item  # type: ignore[misc]
        waits = True
    except Exception:
        waits = True
        raise
    finally:
        # Who leaves in the middle may be the garbage collector, in a thread that holds a lock which
        # the other needs to end: it mustn't wait.
        left = True
        pool.shutdown(wait=waits)
