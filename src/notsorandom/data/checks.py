"""Checks and conversions shared by all readers of samples."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import numpy as np

from notsorandom.data.rows import Array

# How Parquet is read: few bytes of a column at a time, however large its row groups are.
PARQUET_OPTIONS: dict[str, Any] = {"buffer_size": 2**16, "pre_buffer": False}
# Columns from which on frames are copied to one block of memory: one row takes a millisecond then.
WIDE_FRAME = 1000
# Columns in which pandas stores an index without a name.
PANDAS_INDEX = re.compile("__index_level_[0-9]+__")


class TableError(ValueError):
    """Data can't be read as a table; the message says where and what to do."""


def first_non_finite(rows: Array) -> tuple[int, ...] | None:
    """Return the index of the first NaN or infinite number, or None."""
    finite = np.isfinite(rows)
    if finite.all():
        return None
    return tuple(int(place) for place in np.unravel_index(finite.argmin(), finite.shape))


def check_finite(rows: Array, first_row: int) -> None:
    """Raise ValueError if samples have NaN or infinity; `first_row` is the index of their first."""
    place = first_non_finite(rows)
    if place is not None:
        row, column = place
        what = "NaN" if np.isnan(rows[place]) else "infinity"
        raise ValueError(
            f"Input X contains {what}, in row {first_row + row}, column {column}, both counted "
            "from 0: replace it, or remove the row."
        )


def float_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type that numbers of a type are computed in: float32 for itself, else float64."""
    return np.dtype(np.float32 if dtype.kind == "f" and dtype.itemsize == 4 else np.float64)


def to_native(array: Array) -> Array:
    """Return an array in native byte order, with floats of 32 or 64 bits."""
    dtype = array.dtype.newbyteorder("=") if array.dtype.kind != "f" else float_dtype(array.dtype)
    with np.errstate(over="ignore"):  # overflow gives infinity, which is reported later
        return array.astype(dtype, copy=False)


def shorten(value: object) -> str:
    """Return the representation of a value, cut to fit into a one-line message."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:36]}...{text[-1]}"


def format_names(names: Sequence[str], most: int = 8) -> str:
    """Return at most `most` of the names, and the number of the others."""
    shown = ", ".join(repr(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def import_pandas(package: str = "pandas") -> Any:
    """Return pandas, or another package for tables; raise an error that names the extra."""
    try:
        return import_module(package)
    except ImportError as error:
        raise ImportError(f"Tables need {package}: pip install 'notsorandom[tables]'.") from error


def in_few_blocks(frame: Any) -> Any:
    """Return a frame of many columns as a copy with one block of memory for each type.

    Files and dictionaries become frames whose columns have a block each. Selecting from them takes
    pandas tens of microseconds a column.
    """
    is_wide = frame.shape[1] > max(WIDE_FRAME, frame.shape[0])
    return frame.copy() if is_wide else frame


def check_columns(source: object, columns: Sequence[str], wanted: Sequence[str]) -> None:
    """Raise unless the columns of a source have unique names, and include the wanted ones."""
    if repeated := [name for name, count in Counter(columns).items() if count > 1]:
        raise TableError(f"{source} has more than one column {format_names(repeated)}: rename it.")
    present = set(columns)
    if missing := [name for name in dict.fromkeys(wanted) if name not in present]:
        close = "".join(f" Did you mean {n!r}?" for n in get_close_matches(missing[0], columns, 1))
        column = "column" if len(missing) == 1 else "columns"
        message = f"no {column} {format_names(missing)}.{close} It has {format_names(columns)}."
        raise TableError(f"{source} has {message}")


def check_size(path: object, n_bytes: int, max_bytes: float) -> None:
    """Raise if a file takes too much memory."""
    if n_bytes > max_bytes:
        raise TableError(f"{path} takes over {max_bytes:,} bytes in memory: set --max-bytes.")


@contextmanager
def read_errors(source: object) -> Iterator[None]:
    """Raise TableError for whatever a library raises on damaged data."""
    try:
        yield
    except (TableError, MemoryError):
        raise
    except Exception as error:  # depends on the library, its version and the damage
        reason = " ".join(str(error).split())
        message = f"{source} can't be read ({reason}): is it damaged, or of another format?"
        raise TableError(message) from error
