"""``notsorandom report``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from sklearn.base import is_classifier

import notsorandom
from notsorandom.cli.arguments import add_model_and_data, check_output
from notsorandom.cli.loading import LoadedModel, is_training_file
from notsorandom.cli.training import read_test_table, read_training_table, split_rows
from notsorandom.data.files import open_data_file

SUMMARY = "write a page about a model: one HTML file that opens in any browser"
EXAMPLES = """\
examples:
  notsorandom report model.skops train.csv -o report.html
  notsorandom report model.skops train.csv --test test.csv

Needs the file that the model was fitted to. Scores are those on the test file, or else on the rows
that "notsorandom fit" held out."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_model_and_data(parser, "the data that the model was fitted to")
    parser.add_argument("--target", help="name of the target column")
    parser.add_argument("--test", type=Path, help="data file to evaluate the model on")
    text = "file of the page (default: report.html)"
    parser.add_argument("-o", "--output", type=Path, default=Path("report.html"), help=text)


def run(options: argparse.Namespace, parser: argparse.ArgumentParser) -> dict[str, Any]:
    """Check the arguments, then write the page."""
    check_output(parser, options.output, (".html", ".htm"), options.data)
    loaded = LoadedModel.open(options.model)
    record = {"holdout": 0.0, "seed": 0, "drop": "", "columns": "", **loaded.record}
    if loaded.record and not is_training_file(options.data, record):
        raise ValueError(
            f"{options.data} is not the file that {options.model} was fitted to: give that one."
        )
    options.target = options.target or record.get("target")
    options.task = "classification" if is_classifier(loaded.model) else "regression"
    options.drop, options.columns = record["drop"], record["columns"]
    data = read_training_table(open_data_file(options.data, max_bytes=options.max_bytes), options)
    train, test = split_rows(data, record["holdout"], record["seed"])
    X_test, y_test = data.take(test)
    if options.test:
        X_test, y_test = read_test_table(data, options.test, options.max_bytes)
    test_data: dict[str, Any] = {"X_test": X_test, "y_test": y_test} if len(y_test) else {}
    X, y = data.take(train)
    title = options.model.stem
    page = notsorandom.report(loaded.model, X, y, options.output, title=title, **test_data)
    return {"page": str(page.resolve())}
