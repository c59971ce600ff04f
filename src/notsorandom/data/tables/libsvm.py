"""Libsvm's text: on each line a label, and index:value for what is not zero."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_svmlight_file

from notsorandom.data.rows import Array
from notsorandom.data.tables.table import (
    BLOCK_BYTES,
    Block,
    Features,
    Table,
    TableError,
    check_rows_wanted,
    clipped,
    with_type,
)

WHOLE_NUMBER = re.compile(rb"[+-]?[0-9]+(\.0*)?")
# How the labels are called where a target must have a name.
LABEL = "label"
# More columns than this are a slip, and a model of them would not fit into memory.
MOST_COLUMNS = 2**24

# The number of a line, counted from 1, and what is on it.
Line = tuple[int, bytes]


@dataclass(frozen=True)
class Survey:
    """What only a whole file tells: its largest and smallest index, and what its labels are."""

    largest: int
    smallest: int
    has_whole_labels: bool


class LibsvmTable(Table):
    """A file in libsvm's format; its blocks are sparse.

    The columns that a file happens to use say neither how many there are nor, unless column 0 is
    among them, whether they are counted from 0. What isn't told is settled once, by a look at the
    whole file, and the same for all blocks.

    Parameters
    ----------
    path : Path
    zero_based : bool, optional
        Whether columns are counted from 0; by default if the file has a column 0.
    """

    own_target = LABEL

    def __init__(self, path: Path, zero_based: bool | None = None) -> None:
        self.path = path
        self.told_zero_based = zero_based
        first = next(self.lines(), None)
        if first is None:
            raise TableError(f"{path} has no rows: give a file with rows in it.")
        self.check_line(first, zero_based is not False, None)

    @cached_property
    def zero_based(self) -> bool:
        """Whether columns are counted from 0: to be told when the model predicts."""
        told = self.told_zero_based
        return self.survey.smallest == 0 if told is None else told

    @cached_property
    def survey(self) -> Survey:
        """A look at each line's label, first and last index, which are in order."""
        largest, smallest, whole = -1, 1, True
        for number, line in self.lines():
            label, *pairs = line.split(None, 2)
            whole = whole and WHOLE_NUMBER.fullmatch(label) is not None
            if pairs and pairs[0].startswith(b"qid:"):
                pairs = pairs[1].split(None, 1) if len(pairs) > 1 else []
            if not pairs:
                continue
            last = pairs[-1].rsplit(None, 1)[-1]
            try:
                smallest = min(smallest, int(pairs[0].partition(b":")[0]))
                largest = max(largest, int(last.partition(b":")[0]))
            except ValueError:
                self.check_line((number, line), True, None)
                raise
            if largest > MOST_COLUMNS:
                self.check_line((number, line), True, None)
        return Survey(largest, smallest, whole)

    def blocks(
        self,
        features: Features = None,
        target: str | None = None,
        keep: Sequence[str] = (),
        max_rows: int | None = None,
        target_type: np.dtype[Any] | None = None,
    ) -> Iterator[Block]:
        """See :meth:`Table.blocks`; columns that no row uses are there all the same."""
        if keep:
            raise TableError(f"{self.path} has no names of columns, so none to keep: leave it out.")
        if target not in (None, LABEL):
            raise TableError(
                f"{self.path} has no column {target!r}: in libsvm's format the target is the "
                "label at the start of each line; give none."
            )
        check_rows_wanted(max_rows, 1)
        if features is None:
            n_features = self.survey.largest + int(self.zero_based)
        else:
            n_features = features if isinstance(features, int) else len(features)
        if n_features < 1:
            raise TableError(f"{self.path} has labels but no features: give one to a row at least.")
        return self.read_blocks(n_features, target, max_rows, target_type)

    def read_blocks(
        self,
        n_features: int,
        target: str | None,
        max_rows: int | None,
        target_type: np.dtype[Any] | None,
    ) -> Iterator[Block]:
        """Blocks of so many columns."""
        done = 0
        for group in grouped(self.lines(), max_rows):
            X, labels = self.parse(group, n_features)
            y = None
            if target is not None:
                if target_type is None and self.survey.has_whole_labels:
                    target_type = np.dtype(np.int64)
                y = with_type(labels, target_type, f"{self.path}, label")
            yield Block(X, y, {}, done)
            done += len(group)

    def lines(self) -> Iterator[Line]:
        """Lines with a row on them, comments taken away."""
        with self.path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                row = line.partition(b"#")[0].strip()
                if row:
                    yield number, row

    def parse(self, group: list[Line], n_features: int) -> tuple[Any, Array]:
        """Samples and labels on some lines."""
        text = io.BytesIO(b"\n".join(line for _, line in group))
        try:
            X, labels = load_svmlight_file(text, n_features=n_features, zero_based=self.zero_based)
        except (ValueError, OverflowError) as error:
            for line in group:
                self.check_line(line, self.zero_based, n_features)
            raise TableError(f"{self.path} can't be read: {error}") from error
        if not (np.isfinite(X.data).all() and np.isfinite(labels).all()):
            for line in group:
                self.check_line(line, self.zero_based, n_features)
        return X, labels

    def check_line(self, line: Line, zero_based: bool, n_features: int | None) -> None:
        """Raise what is wrong with a line, if anything is."""
        number, row = line
        fault = line_fault(row.decode("utf-8", "replace").split(), zero_based, n_features)
        if fault is not None:
            raise TableError(f"{self.path}, line {number}: {fault}")


def grouped(lines: Iterator[Line], max_rows: int | None) -> Iterator[list[Line]]:
    """Lines in groups of so many, or of about `BLOCK_BYTES`."""
    group: list[Line] = []
    n_bytes = 0
    for number, line in lines:
        group.append((number, line))
        n_bytes += len(line)
        if len(group) == max_rows or n_bytes >= BLOCK_BYTES:
            yield group
            group, n_bytes = [], 0
    if group:
        yield group


def line_fault(words: list[str], zero_based: bool, n_features: int | None) -> str | None:
    """What is wrong with a line."""
    label, *pairs = words
    if not is_finite(label):
        if ":" in label:
            return f"it starts with {clipped(label)}, not a label: put one there, if only 0."
        return f"the label {clipped(label)} is not a finite number: give classes numbers."
    if pairs and pairs[0].startswith("qid:"):
        pairs = pairs[1:]
    least = previous = -1 if zero_based else 0
    for pair in pairs:
        index, _, value = pair.partition(":")
        if re.fullmatch(r"[0-9]+", index, re.ASCII) is None or not is_finite(value):
            return f"{clipped(pair)} is not a column and a finite number, such as 3:0.5."
        if len(index.lstrip("0")) > len(str(MOST_COLUMNS)) or int(index) > MOST_COLUMNS:
            return f"column {clipped(index)[1:-1]}, but {MOST_COLUMNS} are the most: correct it."
        if int(index) <= least:
            return "column 0, in a file whose columns are counted from 1: is it the right file?"
        if int(index) <= previous:
            return f"column {index} comes after column {previous}: sort the columns of each line."
        previous = int(index)
    if n_features is not None and previous - least > n_features:
        return f"column {previous}, but the model has {n_features} features: is it the right file?"
    return None


def is_finite(text: str) -> bool:
    """Whether a text is a finite number."""
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False
