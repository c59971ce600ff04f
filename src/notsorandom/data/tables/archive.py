"""Arrays in a ``.npz`` file, streamed out of it: none stored by rows is ever held whole."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

import numpy as np

from notsorandom.data.rows import Array
from notsorandom.data.tables.arrays import DAMAGE, NumberedTable, damage, read_header
from notsorandom.data.tables.table import TableError

# The array that is the target.
TARGET = "y"


class ArchiveTable(NumberedTable):
    """Arrays ``X`` and, if it is there, ``y`` in a ``.npz`` file.

    An array stored by columns, as a transposed one is, has parts of each row all over it: it is
    read whole, and held while its blocks are made.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with ExitStack() as stack:
            archive = self.opened(stack)
            there = [Path(name).stem for name in archive.namelist()]
            if "X" not in there:
                raise TableError(
                    f"{path} has no array X, but {', '.join(there) or 'none'}: write it with "
                    "np.savez(path, X=X, y=y)."
                )
            self.shape, self.dtype, _ = self.member(archive, "X", stack)
            self.check_samples(self.shape, self.dtype, ", array X")
            self.n_columns = self.shape[1]
            if TARGET in there:
                self.own_target = TARGET
                self.check_target(*self.member(archive, TARGET, stack)[:2])

    def check_target(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        """Raise unless there is a target for each sample."""
        if dtype.kind not in "biufU":
            raise TableError(
                f"{self.path}, array y is of type {dtype}: it must be of numbers, booleans or text."
            )
        if shape != self.shape[:1]:
            raise TableError(
                f"{self.path}, array y has shape {shape}, but X has {self.shape[0]} rows: it must "
                f"have shape ({self.shape[0]},)."
            )

    def choice(self) -> str:
        """Says what may be given for a target."""
        return super().choice() if self.own_target is None else "Give 'y', or a column's number."

    def opened(self, stack: ExitStack) -> zipfile.ZipFile:
        """The archive."""
        try:
            return stack.enter_context(zipfile.ZipFile(self.path))
        except DAMAGE as error:
            raise damage(str(self.path), error) from error

    def member(
        self, archive: zipfile.ZipFile, name: str, stack: ExitStack
    ) -> tuple[tuple[int, ...], np.dtype[Any], Callable[[int], Array]]:
        """Shape and type of an array, and a function that reads its next rows."""
        place = f"{self.path}, array {name}"
        try:
            file = stack.enter_context(archive.open(f"{name}.npy"))
        except DAMAGE as error:
            raise damage(place, error) from error
        shape, by_columns, dtype = read_header(file, place)
        order: Literal["F", "C"] = "F" if by_columns else "C"

        def next_rows(n_rows: int) -> Array:
            n_bytes = n_rows * dtype.itemsize * math.prod(shape[1:])
            try:
                data = file.read(n_bytes)
            except DAMAGE as error:
                raise damage(place, error) from error
            if len(data) < n_bytes:
                raise damage(place, EOFError("it ends too early"))
            return np.frombuffer(data, dtype=dtype).reshape(n_rows, *shape[1:], order=order)

        return shape, dtype, cut(next_rows, shape[0]) if by_columns and shape else next_rows

    def parts(self, n_rows: int, wants_target: bool) -> Iterator[tuple[Array, Array | None]]:
        """See :meth:`NumberedTable.parts`."""
        with ExitStack() as stack:
            archive = self.opened(stack)
            _, _, next_samples = self.member(archive, "X", stack)
            if wants_target:
                _, _, next_targets = self.member(archive, TARGET, stack)
            for start in range(0, self.shape[0], n_rows):
                size = min(n_rows, self.shape[0] - start)
                yield next_samples(size), next_targets(size) if wants_target else None


def cut(read: Callable[[int], Array], n_rows: int) -> Callable[[int], Array]:
    """A function that reads the next rows of an array that can only be read at once."""
    whole: list[Array] = []
    done = 0

    def next_rows(size: int) -> Array:
        nonlocal done
        if not whole:
            whole.append(read(n_rows))
        done += size
        return whole[0][done - size : done]

    return next_rows
