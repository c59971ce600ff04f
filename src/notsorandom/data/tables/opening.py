"""Which reader a file needs, by the ending of its name."""

from __future__ import annotations

from pathlib import Path

from notsorandom.data.tables.table import Table, TableError

DELIMITERS = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}
LIBSVM = (".svm", ".libsvm", ".svmlight")
KNOWN = (*DELIMITERS, ".parquet", ".npy", ".npz", *LIBSVM)


def open_table(path: str | Path, zero_based: bool | None = None) -> Table:
    """A data file as a table; only its head is read.

    Parameters
    ----------
    path : str or Path
        Ends in ``.csv``, ``.tsv`` (both also with ``.gz``), ``.parquet``, ``.npy``, ``.npz``,
        ``.svm``, ``.libsvm`` or ``.svmlight``.
    zero_based : bool, optional
        In a libsvm file, whether columns are counted from 0 rather than 1. By default from 0 if
        there is a column 0; a file to predict must be told what the one fitted to was.

    Raises
    ------
    TableError
        If there is no such file, or it can't be read as its name says.
    ImportError
        If it takes pyarrow, which isn't installed.
    """
    path = Path(path)
    ending = known_ending(path)
    check_file(path)
    if ending in DELIMITERS:
        require_pyarrow("Reading CSV")
        from notsorandom.data.tables.delimited import DelimitedTable

        return DelimitedTable(path, DELIMITERS[ending])
    if ending == ".parquet":
        require_pyarrow("Reading Parquet")
        from notsorandom.data.tables.parquet import ParquetTable

        return ParquetTable(path)
    if ending in LIBSVM:
        from notsorandom.data.tables.libsvm import LibsvmTable

        return LibsvmTable(path, zero_based)
    if ending == ".npz":
        from notsorandom.data.tables.archive import ArchiveTable

        return ArchiveTable(path)
    from notsorandom.data.tables.arrays import ArrayTable

    return ArrayTable(path)


def known_ending(path: Path) -> str:
    """The ending of a file's name, of those that can be read."""
    name = path.name.lower()
    for ending in KNOWN:
        if name.endswith(ending):
            return ending
    raise TableError(f"{path}: can't tell what is in it. Files end in {', '.join(KNOWN)}.")


def check_file(path: Path) -> None:
    """Raise unless there is a file, with something in it."""
    if path.is_dir():
        raise TableError(f"{path} is a folder: give a file.")
    if not path.exists():
        raise TableError(f"{path}: there is no such file. Is the path right?")
    if not path.is_file():
        raise TableError(
            f"{path} is a pipe or a device, but must be an ordinary file, as it is read more than "
            "once: write what comes from it to one."
        )
    if path.stat().st_size == 0:
        raise TableError(f"{path} is empty: give a file with rows in it.")


def require_pyarrow(what: str) -> None:
    """Raise, saying how to install it, unless there is pyarrow."""
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"{what} needs pyarrow: install it with pip install 'notsorandom[files]'."
        ) from error
