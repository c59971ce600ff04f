"""Copy samples to temporary files: iterators of blocks, and arrays such as zarr's and h5py's."""

from __future__ import annotations

import errno
import shutil
import tempfile
from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from notsorandom._utils.progress import Progress
from notsorandom.data.checks import (
    check_finite,
    first_non_finite,
    float_dtype,
    shorten,
    to_native,
)
from notsorandom.data.rows import FLOATS, Array

# Error codes of a full disk, an exceeded quota and a file that is too large.
DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# What a block can be, for errors.
BLOCK_FORMS = "(X, y) or (X, y, sample_weight)"
# Title of the progress bar.
TITLE = "copied"
# Bytes that are copied at a time, and most bytes of a chunk, which is copied as a whole so that it
# is decompressed only once.
COPIED_BYTES, MAX_CHUNK_BYTES = 2**24, 2**28


class Samples(NamedTuple):
    """Samples, targets, weights if there are any, and the column names of data frames."""

    X: Any
    y: Array
    sample_weight: Array | None
    names: list[str] | None

    @property
    def layout(self) -> dict[str, Any]:
        """What must be the same in all blocks."""
        return {
            "the number of columns of X": self.X.shape[1],
            "the type of X": str(self.X.dtype),
            "the list of column names": self.names,
            "the number of targets": self.y.shape[1:],
            "the presence of sample_weight": self.sample_weight is not None,
        }


def spool_array(array: Any, verbose: int = 0) -> Array:
    """Copy an array with `shape`, `dtype` and slices of rows to a temporary file, in blocks.

    Returns a read-only memory map of the file, float32 if the array is, else float64. Raises
    ValueError if the array isn't a matrix of finite numbers.
    """
    shape, stored = tuple(map(int, array.shape)), np.dtype(array.dtype)
    if len(shape) != 2:
        raise ValueError(
            f"Expected 2D array, got {len(shape)}D array instead: X has shape {shape}, but must "
            "have one row per sample; reshape it."
        )
    if stored.kind not in "biuf":
        raise ValueError(f"X has type {stored}: it must have numbers; convert it.")
    dtype = stored if stored in FLOATS else np.dtype(np.float64)  # as scikit-learn does
    if 0 in shape:
        return np.empty(shape, dtype=dtype)
    step = rows_per_copy(array, shape[1] * dtype.itemsize)
    with ExitStack() as stack:
        buffer = RowBuffer("X", stack)
        bar = stack.enter_context(Progress(shape[0], TITLE, shown=verbose > 0))
        for start in range(0, shape[0], step):
            stop = min(shape[0], start + step)
            rows = np.asarray(array[start:stop])
            if rows.shape != (stop - start, shape[1]):
                raise ValueError(
                    f"Rows {start} to {stop} of X have shape {rows.shape}, but the shape of X is "
                    f"{shape}: make sure that X doesn't change while it is read."
                )
            with np.errstate(over="ignore"):  # overflow gives infinity
                rows = rows.astype(dtype, copy=False)
            check_finite(rows, start)
            buffer.append(rows)
            bar.update(stop, f"{buffer.n_bytes:,} bytes")
        return buffer.to_array()


def rows_per_copy(array: Any, row_bytes: int) -> int:
    """Return how many rows are copied at a time: a multiple of the chunks of zarr and h5py."""
    chunks = getattr(array, "chunks", None)  # None in h5py if there are none
    chunk = chunks[0] if isinstance(chunks, tuple) and isinstance(chunks[0], int) else 1
    chunk = chunk if chunk * row_bytes <= MAX_CHUNK_BYTES else 1
    return max(1, COPIED_BYTES // row_bytes // chunk) * chunk


def spool_blocks(blocks: Iterable[Any], verbose: int = 0) -> Samples:
    """Write blocks to temporary files, one at a time, and return memory maps of the files.

    The files have no names, where the system supports that: they vanish with the last array that
    uses them, or with the process. The environment variable ``TMPDIR`` sets their folder.

    Blocks are ``(X, y)`` or ``(X, y, sample_weight)``, with `X` a 2D array or a data frame of
    numbers. Those without rows are skipped. ValueErrors have the number of the block. The returned
    `X` is a read-only memmap, float32 if the first block is, else float64. Numeric targets are a
    memmap too; text and other objects are in memory.
    """
    with ExitStack() as stack:
        buffers = [RowBuffer(what, stack) for what in ("X", "y", "sample_weight")]
        layout: dict[str, Any] = {}
        names = None
        bar = stack.enter_context(Progress(0, TITLE, shown=verbose > 0))
        for number, block in enumerate(blocks, start=1):
            part = read_block(block, number)
            if not len(part.X):
                continue
            layout = layout or part.layout
            for what, value in part.layout.items():
                if value != layout[what]:
                    raise ValueError(
                        f"Block {number}: {what} is {shorten(value)}, but {shorten(layout[what])} "
                        "in the first block: give all blocks the same."
                    )
            names = part.names
            for buffer, array in zip(buffers, part, strict=False):
                if array is not None:
                    buffer.add(array, number)
            bar.update(buffers[0].n_rows, f"{sum(each.n_bytes for each in buffers):,} bytes")
        if not layout:
            raise ValueError(
                f"There are no blocks with rows: give blocks {BLOCK_FORMS}. An iterator that was "
                "used before has none left."
            )
        X, y, weights = (buffer.to_array() for buffer in buffers)
        return Samples(X, y, weights, names)


class RowBuffer:
    """Rows of one type: numbers in a temporary file, other objects in memory.

    Errors start with the name `what`. The stack closes the file; a memory map of it stays valid.
    """

    def __init__(self, what: str, stack: ExitStack) -> None:
        self.what = what
        self.stack = stack
        self.file: Any = None
        self.dtype: Any = None
        self.row_shape: tuple[int, ...] = ()
        self.n_rows = self.n_bytes = 0
        self.objects: list[Array] = []

    def add(self, array: Array, number: int) -> None:
        """Append the rows of block `number`; raise if they don't fit, or aren't finite."""
        place = first_non_finite(array) if array.dtype.kind == "f" else None
        if place is not None:
            row, *column = place
            within = f"row {row}, column {column[0]}" if column else f"row {row}"
            raise ValueError(
                f"Block {number}: {self.what} has {array[place]} in {within}, counted from 0 (row "
                f"{self.n_rows + row} of all blocks): replace it, or remove the row."
            )
        dtype = array.dtype if self.dtype is None else self.dtype
        is_numeric = array.dtype.kind in "biuf"
        if is_numeric != (dtype.kind in "biuf") or (
            is_numeric and not np.can_cast(array.dtype, dtype, "safe")
        ):
            raise ValueError(
                f"Block {number}: {self.what} has type {array.dtype}, but {dtype} in the first "
                "block: convert it to the same type in all blocks."
            )
        self.append(array)

    def append(self, array: Array) -> None:
        """Append rows, converted to the type of the first rows."""
        if self.dtype is None:
            self.dtype, self.row_shape = array.dtype, array.shape[1:]
        self.n_rows += len(array)
        if self.dtype.kind not in "biuf":
            self.objects.append(array.copy())  # not a view, which would keep the block in memory
            return
        try:
            self.write(np.ascontiguousarray(array, dtype=self.dtype))
        except OSError as error:
            if error.errno not in DISK_FULL:
                raise
            folder = tempfile.gettempdir()
            free = shutil.disk_usage(folder).free
            raise OSError(
                error.errno,
                f"{error.strerror}: {self.n_rows:,} rows of {self.what} don't fit on the disk "
                f"({free / 1e9:.3g} GB are free). Set the environment variable TMPDIR to a folder "
                "with more space",
                folder,
            ) from error

    def write(self, array: Array) -> None:
        """Append an array to the file."""
        if self.file is None:
            # Unbuffered: a buffer would be written again when the file of a full disk is closed.
            self.file = self.stack.enter_context(
                tempfile.TemporaryFile(buffering=0, prefix="notsorandom-")  # noqa: SIM115
            )
        self.n_bytes += array.nbytes
        left = array.reshape(-1).data.cast("B")
        while left:  # a system call may write only a part
            left = left[self.file.write(left) :]

    def to_array(self) -> Any:
        """Return all rows; None if there are none."""
        if self.file is not None:
            shape = (self.n_rows, *self.row_shape)
            return np.memmap(self.file, dtype=self.dtype, mode="r", shape=shape)
        return np.concatenate(self.objects) if self.objects else None


def read_block(block: Any, number: int) -> Samples:
    """Convert a block to arrays."""
    if not isinstance(block, tuple | list) or len(block) not in (2, 3) or block[1] is None:
        what = f" of {len(block)}" if isinstance(block, tuple | list) else ""
        is_arrow = type(block).__module__.startswith("pyarrow")
        hint = ", or give the name of the target column as y" if is_arrow else ""
        raise ValueError(
            f"Block {number} is a {type(block).__name__}{what}: make it {BLOCK_FORMS}, with "
            f"targets{hint}."
        )
    X, names = read_samples(block[0], number)
    y = np.asarray(block[1])
    if y.dtype.kind == "O" and all(isinstance(value, str) for value in y.flat):
        y = y.astype(str)
    y = to_native(y) if y.dtype.kind in "biuf" else y
    weights = block[2] if len(block) == 3 else None
    weights = None if weights is None else np.asarray(weights, dtype=np.float64)
    if not len(X):
        return Samples(X, y, weights, names)
    checks = (("X", X, (2,)), ("y", y, (1, 2)), ("sample_weight", weights, (1,)))
    for what, array, allowed in checks:
        if array is None:
            continue
        if array.ndim not in allowed:
            raise ValueError(
                f"Block {number}: {what} has {array.ndim} dimensions, but must have "
                f"{' or '.join(map(str, allowed))}: reshape it."
            )
        if len(array) != len(X):
            raise ValueError(
                f"Block {number}: X has {len(X)} rows, but {what} has {len(array)}: give one value "
                "per row."
            )
    return Samples(X, y, weights, names)


def read_samples(X: Any, number: int) -> tuple[Array, list[str] | None]:
    """Return the samples of a block as floats, and their column names if all are text."""
    if sparse.issparse(X):
        raise ValueError(
            f"Block {number}: X is sparse, but blocks are stored dense: give X.toarray(), or all "
            "samples as one sparse array."
        )
    columns = list(getattr(X, "columns", ()))
    names = columns if columns and all(isinstance(name, str) for name in columns) else None
    array = np.asarray(X)
    try:
        if array.dtype.kind not in "biufO" and array.size:
            raise ValueError(f"its type is {array.dtype}")
        with np.errstate(over="ignore"):  # overflow gives infinity, which is reported later
            return array.astype(float_dtype(array.dtype), copy=False), names
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"Block {number}: X has values that are not numbers ({error}): convert them, or leave "
            "the column out."
        ) from error
