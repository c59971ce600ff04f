"""Blocks that come but once, laid aside on disk to be passed over many times."""

from __future__ import annotations

import errno
import shutil
import tempfile
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from notsorandom.data.rows import Array
from notsorandom.data.tables.arrays import float_type, plain
from notsorandom.data.tables.table import Block, clipped, first_not_finite

# What a disk says that has no room left, or none for this user, or not for so large a file.
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
SHAPES = "(X, y) or (X, y, sample_weight)"


class Spooled(NamedTuple):
    """Samples laid aside, and what came with them."""

    X: np.memmap[Any, np.dtype[Any]]
    y: Array
    sample_weight: Array | None
    names: list[str] | None = None


def spooled(
    blocks: Iterable[Any],
    folder: str | Path | None = None,
    target: str | None = None,
    sample_weight: str | None = None,
) -> tuple[Any, Array, Array | None]:
    """Write blocks to temporary files, one at a time, and map these into memory.

    The files have no names, where the system allows that: they are gone with the last array that
    looks at them, or with the process, however it ends.

    Parameters
    ----------
    blocks : iterable
        Of ``(X, y)`` or ``(X, y, sample_weight)``, with `X` a 2-d array or a data frame of numbers;
        or of what the blocks of a table are; or of pyarrow's record batches, if there is a
        `target`. Those without rows are skipped.
    folder : str or Path, optional
        Where there is room for them; by default that of all temporary files, which the environment
        variable ``TMPDIR`` names.
    target : str, optional
        Name of the target's column in record batches; the others are features.
    sample_weight : str, optional
        Name of the column that has their weights.

    Returns
    -------
    X : memmap of shape (n_samples, n_features)
        Of float32 if the first block is, else of float64; read-only.
    y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        Numbers are mapped too; text and other objects are in memory.
    sample_weight : ndarray of shape (n_samples,) or None

    Raises
    ------
    ValueError
        If there are no rows, or a block is not like those before, or a number in it isn't finite:
        says which.
    OSError
        If there is no room.
    """
    if target is not None:
        from notsorandom.data.arrow import ArrowTable

        return laid_aside(ArrowTable(blocks).weighted_blocks(target, sample_weight), folder)[:3]
    return laid_aside(blocks, folder)[:3]


def laid_aside(blocks: Iterable[Any], folder: str | Path | None = None) -> Spooled:
    """See :func:`spooled`; the names are those of the columns, if blocks are data frames."""
    place = Path(tempfile.gettempdir() if folder is None else folder)
    if not place.is_dir():
        raise FileNotFoundError(f"folder={str(folder)!r} is not a folder: make it first.")
    check_blocks_wanted(blocks)
    with ExitStack() as stack:
        samples, targets, weights = (Pile(what, place, stack) for what in ("X", "y", "weights"))
        first: Part | None = None
        done = 0
        for number, block in enumerate(blocks, start=1):
            part = read_block(block, number)
            if part is None:
                continue
            part.check_finite(number, done)
            if first is None:
                first = part.emptied()
            part.check_like(first, number)
            samples.add(part.X, number)
            targets.add(part.y, number)
            if part.sample_weight is not None:
                weights.add(part.sample_weight, number)
            done += len(part.X)
        if first is None:
            raise ValueError(
                "There are no blocks with rows in them: give some, each of them "
                f"{SHAPES}. An iterator that was used up before has none left."
            )
        total = weights.taken() if first.sample_weight is not None else None
        return Spooled(samples.taken(), targets.taken(), total, first.names)


class Part(NamedTuple):
    """A block as arrays."""

    X: Array
    y: Array
    sample_weight: Array | None
    names: list[str] | None

    def emptied(self) -> Part:
        """What all blocks must be like, without the rows, which need not stay in memory."""
        weights = None if self.sample_weight is None else np.empty(0)
        return Part(np.empty_like(self.X[:0]), np.empty_like(self.y[:0]), weights, self.names)

    def check_finite(self, number: int, done: int) -> None:
        """Raise if a number is missing or infinite."""
        for what, array in (("X", self.X), ("y", self.y), ("sample_weight", self.sample_weight)):
            if array is None or array.dtype.kind != "f":
                continue
            place = first_not_finite(array)
            if place is None:
                continue
            row, *column = place
            within = f"row {row}, column {column[0]}" if column else f"row {row}"
            raise ValueError(
                f"Block {number}: {what} has {array[place]} in {within}, counted from 0 (row "
                f"{done + row} of all): fill in a finite number, or leave the row out."
            )

    def check_like(self, first: Part, number: int) -> None:
        """Raise unless this block can follow the first one."""
        if self.X.shape[1] != first.X.shape[1]:
            raise ValueError(
                f"Block {number}: X has {self.X.shape[1]} columns, but {first.X.shape[1]} in the "
                "first block: give all blocks the same."
            )
        if self.X.dtype != first.X.dtype:
            raise ValueError(
                f"Block {number}: X is of {self.X.dtype}, but of {first.X.dtype} in the first "
                "block: convert all blocks to one of them (integers count as float64)."
            )
        if self.names != first.names:
            raise ValueError(
                f"Block {number}: X has columns {clipped(self.names)}, but {clipped(first.names)} "
                "in the first block: give all blocks the same, in the same order."
            )
        if self.y.shape[1:] != first.y.shape[1:]:
            raise ValueError(
                f"Block {number}: y has shape {self.y.shape}, but the first block's says "
                f"{('n', *first.y.shape[1:])}: give all blocks as many targets."
            )
        if (self.sample_weight is None) != (first.sample_weight is None):
            here, there = ("no", "some") if self.sample_weight is None else ("some", "none")
            raise ValueError(
                f"Block {number} has {here} weights, but the first block has {there}: give them "
                "in all blocks or in none."
            )


class Pile:
    """Arrays of one type, one below the other, in a temporary file; those not of numbers aren't.

    Parameters
    ----------
    what : str
        Named in errors.
    folder : Path
    stack : ExitStack
        Closes the file, whatever happens: it is mapped then, or not wanted.
    """

    def __init__(self, what: str, folder: Path, stack: ExitStack) -> None:
        self.what = what
        self.folder = folder
        self.stack = stack
        self.file: Any = None
        self.dtype: np.dtype[Any] | None = None
        self.shape: tuple[int, ...] = ()
        self.objects: list[Array] = []

    def add(self, array: Array, number: int) -> None:
        """Lay the array of a block below the others."""
        if self.dtype is None:
            self.dtype, self.shape = array.dtype, (0, *array.shape[1:])
        is_number = array.dtype.kind in "biuf"
        if is_number != (self.dtype.kind in "biuf") or (
            is_number and not np.can_cast(array.dtype, self.dtype, "safe")
        ):
            raise ValueError(
                f"Block {number}: {self.what} is of {array.dtype}, but of {self.dtype} in the "
                "first block: convert it to the same type in all blocks."
            )
        self.shape = (self.shape[0] + len(array), *self.shape[1:])
        if not is_number:
            self.objects.append(array.copy())  # the block it may be a view of goes away
            return
        try:
            if self.file is None:
                # no buffer, that would be written once more when a full disk is given up
                self.file = self.stack.enter_context(
                    tempfile.TemporaryFile(buffering=0, prefix="notsorandom-", dir=self.folder)  # noqa: SIM115
                )
            left = np.ascontiguousarray(array, dtype=self.dtype).reshape(-1).data.cast("B")
            while left:  # systems take only so much at a time
                left = left[self.file.write(left) :]
        except OSError as error:
            raise self.no_room(error) if error.errno in NO_ROOM else error from error

    def no_room(self, error: OSError) -> OSError:
        """Says that a disk is full."""
        assert self.dtype is not None, "something was written"
        rows = f"{self.shape[0]:,} rows"
        free = shutil.disk_usage(self.folder).free
        return OSError(
            error.errno,
            f"{error.strerror}: the data are laid aside on disk, and {rows} of them don't fit "
            f"({free / 1e9:.3g} GB are free). Set the environment variable TMPDIR to a folder with "
            "more room, or make some",
            str(self.folder),
        )

    def taken(self) -> Any:
        """All of them, once."""
        if self.dtype is None or self.file is None:
            return np.concatenate(self.objects)
        return np.memmap(self.file, dtype=self.dtype, mode="r", shape=self.shape)


def read_block(block: Any, number: int) -> Part | None:
    """A block's arrays; None if it has no rows."""
    if isinstance(block, Block):
        items: Any = (block.X, block.y)
    elif isinstance(block, tuple | list) and len(block) in (2, 3):
        items = block
    else:
        what = f"of {len(block)}" if isinstance(block, tuple | list) else ""
        raise ValueError(
            f"Block {number} is a {type(block).__name__} {what}".rstrip() + f": it must be {SHAPES}"
            f"{arrow_hint(block)}."
        )
    X, names = read_samples(items[0], number)
    if items[1] is None:
        raise ValueError(f"Block {number} has no y: it must be {SHAPES}.")
    if not len(X):
        return None
    y = plain_targets(items[1])
    weights = items[2] if len(items) == 3 else None
    if weights is not None:
        weights = np.asarray(weights, dtype=np.float64)
    if X.ndim != 2 or y.ndim not in (1, 2) or (weights is not None and weights.ndim != 1):
        raise ValueError(
            f"Block {number}: X has {X.ndim} dimensions and y {y.ndim}"
            f"{'' if weights is None else f', and the weights {weights.ndim}'}, but X must have 2, "
            "y 1 or 2, and weights 1: reshape them."
        )
    for what, array in (("y", y), ("sample_weight", weights)):
        if array is not None and len(array) != len(X):
            raise ValueError(
                f"Block {number}: X has {len(X)} rows, but {what} has {len(array)}: give one for "
                "each row."
            )
    return Part(X, y, weights, names)


def read_samples(X: Any, number: int) -> tuple[Array, list[str] | None]:
    """Samples of a block as floats, and the names of their columns, if all are text."""
    if sparse.issparse(X):
        raise ValueError(
            f"Block {number}: X is sparse, but blocks are laid aside dense: give X.toarray(), or "
            "all samples at once as one sparse array."
        )
    columns = list(getattr(X, "columns", ()))
    names = columns if columns and all(isinstance(name, str) for name in columns) else None
    array = np.asarray(X)
    if array.dtype.kind not in "biufO" and array.size:
        raise ValueError(f"Block {number}: X is of type {array.dtype}: it must be of numbers.")
    try:
        array = array.astype(float_type(array.dtype)) if array.dtype.kind == "O" else plain(array)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"Block {number}: X has what isn't a number ({error}): turn it into one, or leave the "
            "column out."
        ) from error
    return array.astype(float_type(array.dtype), copy=False), names


def plain_targets(y: Any) -> Array:
    """Targets as NumPy has them: text as its own, floats of 32 or 64 bits."""
    y = np.asarray(y)
    if y.dtype.kind == "O" and all(isinstance(value, str) for value in y.flat):
        y = y.astype(str)
    return plain(y) if y.dtype.kind in "biuf" else y


def arrow_hint(block: Any) -> str:
    """What to do with record batches."""
    if not type(block).__module__.startswith("pyarrow"):
        return ""
    return ", or else the name of the target's column be given for y"


def check_blocks_wanted(blocks: Any) -> None:
    """Raise unless it is something to go through."""
    if not isinstance(blocks, Iterable):
        raise TypeError(
            f"{type(blocks).__name__} is not an iterable of blocks: give one, each block {SHAPES}."
        )
