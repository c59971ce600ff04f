"""A Dask cluster that holds blocks of samples: asked by the pass, and mended when workers die."""

from __future__ import annotations

import pickle
import time
import weakref
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cloudpickle
import dask
import distributed
import numpy as np
from distributed.comm.core import CommClosedError
from distributed.threadpoolexecutor import thread_state

from notsorandom.dask.blocks import (
    FIRST_NUMBER,
    Recipe,
    Step,
    Work,
    perform,
)
from notsorandom.data.rows import Array

# Seconds that a cluster may be without workers before a fit gives up, unless Dask's configuration
# has another number there.
PATIENCE = 30.0
SETTING = "notsorandom.no-workers-timeout"
# So many of the last sums are remembered.
MOST_KNOWN = 8
# Seconds between two looks at a cluster that is being waited for.
NAP = 0.1


class ClusterError(RuntimeError):
    """The cluster is gone, or has no workers any more."""


def find_client(client: Any) -> Any:
    """The client given, or else the current one; raise ValueError if there is none."""
    if client is None:
        try:
            client = distributed.get_client()
        except ValueError as error:
            raise ValueError(
                "There is no Dask client: make one first, as in client = distributed.Client(), or "
                "give it, as in FourierClassifier(client=client)."
            ) from error
    if not isinstance(client, distributed.Client):
        raise ValueError(
            f"client={client!r} is not allowed: it must be None or a distributed.Client."
        )
    if getattr(thread_state, "proceed", False):
        raise ValueError(
            "This is a task of the cluster itself, whose thread the fit would wait for: fit inside "
            "'with distributed.worker_client() as client:'."
        )
    if client.asynchronous:
        raise ValueError(
            "The Dask client is asynchronous, but a fit waits for its results: give one made "
            "without asynchronous=True."
        )
    return client


class Patience:
    """Waits for workers as long as Dask's configuration says, and then no longer.

    Parameters
    ----------
    client : distributed.Client
    hint : str
        Added to the message.
    """

    def __init__(self, client: Any, hint: str = "") -> None:
        self.client, self.hint = client, hint
        self.limit = float(dask.config.get(SETTING, PATIENCE))
        self.began = time.monotonic()

    def look(self) -> dict[str, int]:
        """The workers there are; raise ClusterError if there were none for too long."""
        check_open(self.client, self.hint)
        try:
            there: dict[str, int] = self.client.nthreads()
        except (OSError, RuntimeError, distributed.CancelledError) as error:
            check_open(self.client, self.hint, error)
            there = {}
        if there:
            self.began = time.monotonic()
        elif time.monotonic() - self.began > self.limit:
            raise ClusterError(
                f"The Dask cluster has had no workers for {self.limit:g} seconds: the fit can't go "
                f"on. Start workers and fit again. {self.hint}(Dask's configuration of "
                f"{SETTING!r} says how long to wait.)"
            )
        return there


def check_open(client: Any, hint: str = "", error: BaseException | None = None) -> None:
    """Raise ClusterError if there is no cluster to talk to any more."""
    if client.status != "running" or (isinstance(error, RuntimeError) and "closed" in str(error)):
        raise ClusterError(
            f"The connection to the Dask cluster is closed: the fit can't go on. {hint}"
        ) from error


def gathered(client: Any, futures: list[Any]) -> list[Any]:
    """Results of futures, waited for as long as there are workers."""
    patience = Patience(client)
    while True:
        try:
            distributed.wait(futures, timeout=1)
            results: list[Any] = client.gather(futures)
            return results
        except TimeoutError:
            patience.look()


@dataclass(frozen=True, eq=False)
class Column:
    """Values of the samples, on the cluster.

    Parameters
    ----------
    recipe : Recipe
        Whose number workers know it by.
    shape : tuple of int
    dtype : dtype
    """

    recipe: Recipe
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def __len__(self) -> int:
        return self.shape[0]


class Cluster:
    """Blocks of samples on a cluster, and who has them.

    A pass over the blocks is one message to the workers, which costs a few milliseconds however
    many blocks there are; a graph of tasks would cost ten times as much. Blocks themselves belong
    to Dask: where a worker dies, it makes them anew elsewhere, and their columns follow from the
    recipes.

    Parameters
    ----------
    client : distributed.Client
    blocks : list of futures of Block
    sizes : list of int
        Rows of each.
    """

    def __init__(self, client: Any, blocks: list[Any], sizes: Sequence[int]) -> None:
        self.client = client
        self.blocks = blocks
        self.sizes = list(sizes)
        self.ends = np.cumsum(self.sizes)
        self.hint = ""
        self._keys = [block.key for block in blocks]
        self._owners: dict[int, str] = {}
        self._numbers = FIRST_NUMBER
        self._live: weakref.WeakSet[Column] = weakref.WeakSet()
        self._pending: list[weakref.ref[Column]] = []
        self._known: dict[tuple[Any, ...], list[Any]] = {}

    # Columns.

    def root(self, number: int, width: int | None, dtype: Any) -> Column:
        """The column of a part of the blocks."""
        length = int(self.ends[-1])
        shape = (length,) if width is None else (length, width)
        return Column(Recipe(number), shape, np.dtype(dtype))

    def column(
        self,
        function: bytes,
        inputs: tuple[Column, ...],
        width: int,
        tail: tuple[int, ...],
        dtype: Any,
    ) -> Column:
        """A column to be made of others with the next pass."""
        recipe = Recipe(self._next(), function, tuple(one.recipe for one in inputs), width)
        column = Column(recipe, (int(self.ends[-1]), *tail), np.dtype(dtype))
        self._live.add(column)
        self._pending.append(weakref.ref(column))
        return column

    def placed(self, array: Array) -> Column:
        """An array as a column: the one way from here to the workers, a block at a time."""
        pieces = np.split(array, self.ends[:-1])
        column = Column(Recipe(self._next(), pieces=pieces), array.shape, array.dtype)
        self._live.add(column)
        for chunk in range(len(self.blocks)):
            self._ask([chunk], [column.recipe], [column.recipe.number], "none")
        return column

    def _next(self) -> int:
        self._numbers += 1
        return self._numbers

    # Passes.

    def results(
        self,
        how: str,
        function: bytes,
        inputs: tuple[Column, ...],
        width: int = 0,
        given: Sequence[Any] | None = None,
    ) -> list[Any]:
        """What a function makes of every block, in order."""
        question = (how, function, tuple(one.recipe.number for one in inputs), width)
        if how == "add" and question in self._known:  # columns never change
            return self._known[question]
        pending = [column for ref in self._pending if (column := ref()) is not None]
        self._pending = []
        recipes = [column.recipe for column in pending]
        wanted = [recipe.number for recipe in recipes]
        found = self._ask(
            list(range(len(self.blocks))),
            # Those that were let go before they were made may still be on the way to others.
            self._lineage([*recipes, *(one.recipe for one in inputs)], since=wanted),
            wanted,
            how,
            function,
            inputs,
            width,
            given,
        )
        if how == "add":
            self._known = {**dict(list(self._known.items())[1 - MOST_KNOWN :]), question: found}
        return found

    def _lineage(self, recipes: list[Recipe], since: list[int] | None = None) -> list[Recipe]:
        """The recipes and all that they follow from; only new ones if `since` tells which are."""
        found: dict[int, Recipe] = {}
        line = list(recipes)
        while line:
            recipe = line.pop()
            if recipe.number < FIRST_NUMBER or recipe.number in found:
                continue
            if since is not None and recipe.number <= self._made:
                continue
            found[recipe.number] = recipe
            line += recipe.inputs
        return [found[number] for number in sorted(found)]

    _made = 0  # columns up to this number were made at some time

    def _ask(
        self,
        chunks: list[int],
        recipes: list[Recipe],
        wanted: list[int],
        how: str,
        function: bytes = b"",
        inputs: tuple[Column, ...] = (),
        width: int = 0,
        given: Sequence[Any] | None = None,
    ) -> list[Any]:
        results: dict[int, Any] = {}
        left = set(chunks)
        while left:
            plan = self._plan(sorted(left))
            live = frozenset(column.recipe.number for column in self._live)
            steps = [
                Step(
                    one.number,
                    one.function,
                    tuple(source.number for source in one.inputs),
                    one.width,
                    {} if one.pieces is None else {chunk: one.pieces[chunk] for chunk in left},
                )
                for one in recipes
            ]
            work = Work(
                plan,
                int(self.ends[-1]),
                self._keys,
                steps,
                wanted,
                live,
                how,
                function,
                tuple(one.recipe.number for one in inputs),
                width,
                given,
            )
            for chunk, status, value in self._sent(work):
                if status == "error":
                    raise value
                if status == "done":
                    results[chunk] = value
                    left.discard(chunk)
            if left:
                # Somebody died, or what he had was moved: all is asked for from the beginning.
                for chunk in left:
                    self._owners.pop(chunk, None)
                recipes = self._lineage([*recipes, *(one.recipe for one in inputs)])
                time.sleep(NAP)
        self._made = max(self._made, self._numbers)
        return [results[chunk] for chunk in chunks]

    def _sent(self, work: Work) -> list[tuple[int, str, Any]]:
        """What workers answer; nothing from those that are gone."""
        try:
            # To all that there are: those that are not there any more would be waited for.
            answers = self.client.run(perform, pickle.dumps(work, protocol=5), on_error="return")
        except (OSError, distributed.CancelledError) as error:
            check_open(self.client, self.hint, error)
            return []
        except (RuntimeError, ValueError) as error:
            check_open(self.client, self.hint, error)
            raise
        told: list[tuple[int, str, Any]] = []
        for answer in answers.values():
            if isinstance(answer, CommClosedError):  # the worker is gone
                continue
            if isinstance(answer, BaseException):
                raise answer
            told += answer
        return told

    # Who has the blocks.

    def _plan(self, chunks: list[int]) -> dict[str, list[int]]:
        """Which worker is asked for which of the blocks, once all of them are there."""
        missing = [chunk for chunk in chunks if chunk not in self._owners]
        if missing:
            self._find(missing)
        plan: dict[str, list[int]] = {}
        for chunk in chunks:
            plan.setdefault(self._owners[chunk], []).append(chunk)
        return plan

    def _find(self, chunks: list[int]) -> None:
        loads = Counter(self._owners.values())
        patience = Patience(self.client, self.hint)
        while chunks:
            there = patience.look()
            try:
                holders = self.client.who_has([self.blocks[chunk] for chunk in chunks])
            except (OSError, RuntimeError, distributed.CancelledError) as error:
                check_open(self.client, self.hint, error)
                holders = {}
            for chunk in list(chunks):
                block = self.blocks[chunk]
                if block.status == "cancelled":
                    raise ClusterError(
                        "The Dask cluster was restarted, or its data were let go: the fit can't go "
                        f"on. {self.hint}"
                    )
                if block.status == "error":
                    block.result()  # which raises
                holding = [one for one in holders.get(self._keys[chunk], ()) if one in there]
                if holding:
                    self._owners[chunk] = min(holding, key=lambda one: (loads[one], one))
                    loads[self._owners[chunk]] += 1
                    chunks.remove(chunk)
            if chunks:
                time.sleep(NAP)


def pickled(function: Any) -> bytes:
    """A function, once for all blocks of a pass."""
    return cloudpickle.dumps(function, protocol=5)
