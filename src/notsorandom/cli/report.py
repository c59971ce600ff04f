"""Write a page about a model: one HTML file that opens in any browser.

For example: notsorandom report model.skops train.csv -o report.html

Needs the file that the model was fitted to. Scores are those on the rows that "notsorandom fit"
held out.
"""

from __future__ import annotations

import argparse
from typing import Any

from sklearn.base import is_classifier

import notsorandom
from notsorandom.cli.arguments import add_model_and_data, add_output
from notsorandom.cli.loading import LoadedModel, is_training_file
from notsorandom.cli.training import read_training_table, split_rows
from notsorandom.data.files import open_data_file


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_model_and_data(parser, "the data that the model was fitted to")
    parser.add_argument("--target", help="name of the target column")
    text = "file of the page (default: %(default)s)"
    add_output(parser, [".html", ".htm"], text, default="report.html")


def run(options: argparse.Namespace, parser: argparse.ArgumentParser) -> dict[str, Any]:
    """Write the page."""
    loaded = LoadedModel.open(options.model)
    file = open_data_file(options.data, max_bytes=options.max_bytes)
    record = {"holdout": 0.0, "seed": 0, "target": None, **loaded.record}
    if loaded.record and not is_training_file(options.data, record):
        raise ValueError(
            f"{options.data} is not the file that {options.model} was fitted to: give that one."
        )
    options.target = options.target or record["target"]
    options.task = "classification" if is_classifier(loaded.model) else "regression"
    options.columns, options.drop = loaded.names or [], []
    data = read_training_table(file, options)
    train, test = split_rows(data, record["holdout"], record["seed"])
    X_test, y_test = data.take(test) if len(test) else (None, None)
    X, y = data.take(train)
    settings: dict[str, Any] = {"X_test": X_test, "y_test": y_test, "title": options.model.stem}
    page = notsorandom.report(loaded.model, X, y, options.output, **settings)
    return {"page": str(page.resolve())}
