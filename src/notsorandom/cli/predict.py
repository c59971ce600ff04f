"""``notsorandom predict``."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from notsorandom._utils.progress import Progress
from notsorandom.cli.arguments import add_model_and_data, check_output, split_names
from notsorandom.cli.loading import LoadedModel, counted_from, encode, last_step
from notsorandom.data.files import open_data_file, open_writer
from notsorandom.data.rows import Array

SUMMARY = "predict for each row of a data file of any size"
EXAMPLES = """\
examples:
  notsorandom predict model.skops new.csv -o predictions.csv
  notsorandom predict model.skops new.parquet --keep id --proba -o predictions.parquet
  notsorandom predict model.skops new.csv --proba | head

Reads and writes in blocks of rows, so files can be larger than memory. Columns are found by name,
other columns are ignored. Files without column names (.npy, .npz, .libsvm) must have the number of
columns of the training data. The output file appears when it is complete."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_model_and_data(parser, "the rows to predict for")
    text = ".csv or .parquet file to write (default: standard output, as CSV)"
    parser.add_argument("-o", "--output", type=Path, help=text)
    parser.add_argument("--keep", default="", help="comma-separated columns to copy to the output")
    parser.add_argument("--scores", action="store_true", help="also write decision values")
    text = "also write the probability of each class"
    parser.add_argument("--proba", action="store_true", help=text)
    parser.add_argument("--quiet", action="store_true", help="show no progress")


def run(options: argparse.Namespace, parser: argparse.ArgumentParser) -> dict[str, Any] | None:
    """Check the arguments, then predict in one pass over the blocks of a file."""
    import pandas as pd

    if options.output is not None:
        check_output(parser, options.output, (".csv", ".parquet"), options.data, options.model)
    elif options.json:
        parser.error("--json replaces the predictions on standard output: give --output too")
    loaded = LoadedModel.open(options.model)
    kind = type(last_step(loaded.model)).__name__
    if options.scores and not hasattr(loaded.model, "decision_function"):
        parser.error(f"--scores: this {kind} has no decision values; leave it out")
    if options.proba and not hasattr(loaded.model, "predict_proba"):
        parser.error(
            f"--proba: this {kind} has no probabilities; leave it out, or fit a classifier with "
            "--loss logistic"
        )
    file = open_data_file(options.data, max_bytes=options.max_bytes)
    start, n_rows, keep = time.perf_counter(), 0, split_names(options.keep)
    if keep and not file.is_frame:
        parser.error(f"--keep: {options.data} has no column names; leave it out")
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
        names = list(loaded.model.get_feature_names_out())
        return to_columns(loaded.model.transform(X), names)
    name = loaded.record.get("target", "prediction")
    model, X = encode(loaded.model, X)
    if is_classifier(model) and model is not loaded.model and not options.scores + options.proba:
        X = X.astype(np.float32)  # many times faster; only classes of equal scores may differ
    values = model.predict(X)
    names = [name] if values.ndim == 1 else [f"{name}_{k}" for k in range(values.shape[1])]
    columns = to_columns(values, names)
    if options.scores:
        scores = model.decision_function(X)
        labels = model.classes_.tolist()[1 if scores.ndim == 1 else 0 :]  # of two, the second
        columns |= to_columns(scores, [f"score_{label}" for label in labels])
    if options.proba:
        labels = model.classes_.tolist()
        columns |= to_columns(model.predict_proba(X), [f"proba_{label}" for label in labels])
    return columns


def to_columns(values: Any, names: list[str]) -> dict[str, Array]:
    """Return the columns of an array by name."""
    values = getattr(values, "to_numpy", lambda: values)()
    return dict(zip(names, values.reshape(len(values), -1).T, strict=True))
