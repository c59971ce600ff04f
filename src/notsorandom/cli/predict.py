"""Predict for each row of a data file of any size.

For example:
  notsorandom predict model.skops new.csv -o predictions.csv
  notsorandom predict model.skops new.parquet --keep id --proba -o predictions.parquet
  notsorandom predict model.skops new.csv --proba | head

Reads and writes in blocks of rows, so files can be larger than memory. Columns are found by name,
other columns are ignored. Files without column names (.npy, .npz, .libsvm) must have the number of
columns of the training data. The output file appears when it is complete.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from notsorandom._utils.progress import Progress
from notsorandom.cli.arguments import add_model_and_data, add_output, names
from notsorandom.cli.loading import LoadedModel, counted_from, encode, steps_of
from notsorandom.data.files import open_data_file, open_writer
from notsorandom.data.rows import Array

# What else can be written: the flag, the beginning of the columns' names, the method, and words.
EXTRAS = [
    ("scores", "score", "decision_function", "decision values"),
    ("proba", "proba", "predict_proba", "probabilities"),
]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_model_and_data(parser, "the rows to predict for")
    text = ".csv or .parquet file to write (default: standard output, as CSV)"
    add_output(parser, [".csv", ".parquet"], text)
    text = "comma-separated columns to copy to the output"
    parser.add_argument("--keep", type=names, default=[], metavar="NAMES", help=text)
    for flag, _, _, words in EXTRAS:
        parser.add_argument(f"--{flag}", action="store_true", help=f"also write {words}")
    parser.add_argument("--quiet", action="store_true", help="show no progress")


def run(options: argparse.Namespace, parser: argparse.ArgumentParser) -> dict[str, Any] | None:
    """Check the arguments, then predict in one pass over the blocks of a file."""
    import pandas as pd

    if options.json and options.output is None:
        parser.error("--json replaces the predictions on standard output: give --output too")
    loaded = LoadedModel.open(options.model)
    for flag, _, method, words in EXTRAS:
        if getattr(options, flag) and not hasattr(loaded.model, method):
            parser.error(
                f"--{flag}: this {type(steps_of(loaded.model)[-1]).__name__} has no {words}; leave "
                "it out, or fit a classifier with --loss logistic"
            )
    file = open_data_file(options.data, max_bytes=options.max_bytes)
    start, n_rows, keep = time.perf_counter(), 0, options.keep
    if keep and not file.is_frame:
        parser.error(f"--keep: {options.data} has no column names; leave it out")
    if options.output and options.output.exists() and options.output.samefile(options.data):
        parser.error(f"--output {options.output} is an input file: give another one")
    shown = not options.quiet and options.output is not None and sys.stderr.isatty()
    with open_writer(options.output) as write, Progress(0, "rows", shown) as bar:
        for X, kept in loaded.blocks(file, keep):
            columns = {name: kept[name].to_numpy() for name in keep}
            with counted_from(n_rows):
                predicted = predict_columns(loaded, X, options)
            for name, column in predicted.items():
                columns[f"{name}_predicted" if name in columns else name] = column
            write(pd.DataFrame(columns))
            n_rows += X.shape[0]
            bar.update(n_rows)
    if options.output is None:
        return None
    return {
        "output": str(options.output),
        "rows": n_rows,
        "file read as": file.dialect or None,
        "seconds": round(time.perf_counter() - start, 3),
    }


def predict_columns(loaded: LoadedModel, X: Any, options: argparse.Namespace) -> dict[str, Array]:
    """Return predictions, with what else is wanted, or features, as columns by name."""
    if not hasattr(loaded.model, "predict"):
        return to_columns(loaded.model.transform(X), loaded.model.get_feature_names_out())
    name = loaded.record.get("target", "prediction")
    model, X = encode(loaded.model, X)
    if is_classifier(model) and model is not loaded.model and not options.scores + options.proba:
        X = X.astype(np.float32)  # many times faster; only classes of equal scores may differ
    values = model.predict(X)
    columns = to_columns(
        values, [name] if values.ndim == 1 else [f"{name}_{k}" for k in range(values.shape[1])]
    )
    for flag, prefix, method, _ in EXTRAS:
        if getattr(options, flag):
            values, labels = getattr(model, method)(X), model.classes_.tolist()
            labels = labels[1:] if values.ndim == 1 else labels  # of two classes, the second
            columns |= to_columns(values, [f"{prefix}_{label}" for label in labels])
    return columns


def to_columns(values: Any, names: Any) -> dict[str, Array]:
    """Return the columns of an array or data frame by name."""
    values = np.asarray(values)
    return dict(zip(names, values.reshape(len(values), -1).T, strict=True))
