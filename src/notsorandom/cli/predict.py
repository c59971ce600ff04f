"""``notsorandom predict``."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from notsorandom._utils.progress import Progress
from notsorandom.cli.arguments import add_model_and_data, check_output, split_names
from notsorandom.cli.loading import open_model_and_table
from notsorandom.data.rows import Array
from notsorandom.data.tables import open_writer
from notsorandom.estimators.classifier import log_probabilities
from notsorandom.game.dual import codes_from_scores

# Bytes of the features of a block, and its fewest rows.
BLOCK_BYTES, MIN_ROWS = 2**25, 1024

SUMMARY = "predict for each row of a data file of any size"
EXAMPLES = """\
examples:
  notsorandom predict model.safetensors new.csv -o predictions.csv
  notsorandom predict model.safetensors new.parquet --keep id --scores -o predictions.parquet
  notsorandom predict model.safetensors new.csv --proba | head

Reads and writes in blocks of rows, so files can be larger than memory. Columns are found by name,
other columns are ignored. Files without column names (.npy, .npz, .libsvm) must have the number of
columns of the training data. The output file appears when it is complete."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_model_and_data(parser, "the rows to predict for")
    text = ".csv, .parquet or .npy file to write (default: standard output, as CSV)"
    parser.add_argument("-o", "--output", type=Path, help=text)
    parser.add_argument("--keep", default="", help="comma-separated columns to copy to the output")
    parser.add_argument("--scores", action="store_true", help="also write decision values")
    text = "also write the probability of each class"
    parser.add_argument("--proba", action="store_true", help=text)
    parser.add_argument("--quiet", action="store_true", help="show no progress")


def run(options: argparse.Namespace, parser: argparse.ArgumentParser) -> dict[str, Any] | None:
    """Check the arguments, then predict in one pass over the blocks of a table."""
    if options.output is not None:
        suffixes = (".csv", ".parquet", ".npy")
        check_output(parser, options.output, suffixes, options.data, options.model)
    elif options.json:
        parser.error("--json replaces the predictions on standard output: give --output too")
    model, record, table, features = open_model_and_table(options.model, options.data)
    if options.scores and not hasattr(model, "decision_function"):
        parser.error(f"--scores: a {type(model).__name__} has no decision values; leave it out")
    if options.proba and not hasattr(model, "predict_proba"):
        parser.error(
            f"--proba: a {type(model).__name__} with loss {model.loss!r} has no probabilities; "
            "leave it out, or fit a classifier with --loss logistic"
        )
    name = record.get("target", "prediction")
    if name.lstrip("-").isdecimal():  # the number of a column
        name = "prediction"
    max_rows = max(MIN_ROWS, BLOCK_BYTES // (8 * model.kernel_.n_components))
    blocks = table.blocks(features, keep=split_names(options.keep), max_rows=max_rows)
    start, n_rows = time.perf_counter(), 0
    shown = not options.quiet and options.output is not None and sys.stderr.isatty()
    with open_writer(options.output) as write, Progress(0, "rows", shown) as bar:
        for block in blocks:
            columns = block.kept.copy()
            try:
                found = predict_columns(model, block.X, name, options.scores, options.proba)
            except ValueError as error:
                if not n_rows:
                    raise
                raise ValueError(f"Of the rows after the first {n_rows}: {error}") from error
            for key, column in found.items():
                columns[f"{key}_predicted" if key in block.kept else key] = column
            write(columns)
            n_rows += len(block)
            bar.update(n_rows)
    if options.output is None:
        return None
    seconds = round(time.perf_counter() - start, 3)
    return {"output": str(options.output), "rows": n_rows, "seconds": seconds}


def predict_columns(
    model: Any, X: Any, name: str, with_scores: bool, with_probabilities: bool
) -> dict[str, Array]:
    """Return predictions, with what else is wanted, or features, as columns by name."""
    if hasattr(model, "transform"):
        return to_columns(model.transform(X), model.get_feature_names_out().tolist())
    if not with_scores and not with_probabilities:
        values = model.predict(X)
        names = [name] if values.ndim == 1 else [f"{name}_{k}" for k in range(values.shape[1])]
        return to_columns(values, names)
    labels = model.classes_.tolist()
    scores = model.decision_function(X).reshape(X.shape[0], -1)  # (n_rows, n_tasks)
    columns = {name: model.classes_[codes_from_scores(scores)]}
    if with_scores:
        scored = labels[-scores.shape[1] :]  # of two classes, the second
        columns |= to_columns(scores, [f"score_{label}" for label in scored])
    if with_probabilities:
        probabilities = np.exp(log_probabilities(scores, model.temperature_))
        columns |= to_columns(probabilities, [f"proba_{label}" for label in labels])
    return columns


def to_columns(values: Array, names: list[str]) -> dict[str, Array]:
    """Return the columns of an array by name."""
    return dict(zip(names, values.reshape(len(values), -1).T, strict=True))
