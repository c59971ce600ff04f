"""Open a data file with the reader for its format."""

from __future__ import annotations

from pathlib import Path

from notsorandom.data.tables.base import Table, TableError

DELIMITERS = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}
LIBSVM = (".svm", ".libsvm", ".svmlight")
# Formats by pyarrow's names.
ARROW = {".parquet": "parquet", ".feather": "feather", ".arrow": "ipc"}
ENDINGS = (*DELIMITERS, *ARROW, ".npy", ".npz", *LIBSVM)


def open_table(path: str | Path, zero_based: bool | None = None) -> Table:
    """Open a data file as a table.

    Parameters
    ----------
    path : str or Path
        Ends in ``.csv``, ``.tsv`` (both also with ``.gz``), ``.parquet``, ``.feather``, ``.arrow``,
        ``.npy``, ``.npz``, ``.svm``, ``.libsvm`` or ``.svmlight``.
    zero_based : bool, optional
        In a LIBSVM file, whether column numbers start from 0 rather than 1. By default they do if
        there is a column 0. Give the value of the training file when a model predicts.
    """
    path = Path(path)
    ending = next((ending for ending in ENDINGS if path.name.lower().endswith(ending)), None)
    if ending is None:
        raise TableError(
            f"{path} is of an unknown format: give a file that ends in {', '.join(ENDINGS)}."
        )
    if not path.exists():
        raise TableError(f"{path} doesn't exist: give the path of a file.")
    if not path.is_file():
        raise TableError(
            f"{path} is a folder, a pipe or a device: give an ordinary file, as it may be read "
            "more than once."
        )
    if path.stat().st_size == 0:
        raise TableError(f"{path} is empty: give a file with rows.")
    if ending in DELIMITERS:
        require_pyarrow("Reading CSV")
        from notsorandom.data.tables.delimited import DelimitedTable

        return DelimitedTable(path, DELIMITERS[ending])
    if ending in ARROW:
        require_pyarrow(f"Reading {ending}")
        from notsorandom.data.tables.arrow import ArrowTable

        return ArrowTable.open(path, ARROW[ending])
    from notsorandom.data.tables.unnamed import ArrayTable, LibsvmTable

    return LibsvmTable(path, zero_based) if ending in LIBSVM else ArrayTable(path)


def require_pyarrow(what: str) -> None:
    """Raise, with the command that installs it, if pyarrow is missing."""
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"{what} needs pyarrow: install it with pip install 'notsorandom[files]'."
        ) from error
