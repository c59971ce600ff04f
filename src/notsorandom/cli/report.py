"""``notsorandom report``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import notsorandom
from notsorandom.cli.arguments import add_model_and_data, check_output
from notsorandom.cli.loading import ModelAndTable, open_model_and_table
from notsorandom.cli.scaling import fit_scaler, scale_model
from notsorandom.cli.training import TrainingTable, digest_table, split_rows
from notsorandom.data.tables import read_all

SUMMARY = "write a page about a model: one HTML file that opens in any browser"
EXAMPLES = """\
examples:
  notsorandom report model.safetensors train.csv -o report.html
  notsorandom report model.safetensors train.csv --test test.csv

Needs the data that the model was fitted to. Scores are those on the test file, or else on the rows
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
    opened = open_model_and_table(options.model, options.data)
    data = read_labelled(opened, options.target)
    model, record = opened.model, opened.record
    if record and record["digest"] != digest_table(data):
        raise ValueError(
            f"{options.data} is not the data that {options.model} was fitted to: give that file."
        )
    train, test = split_rows(data, record.get("holdout", 0.0), record.get("seed", 0))
    X, X_test, y_test = data.X[train], data.X[test], data.y[test]
    if options.test:
        other = read_labelled(open_model_and_table(options.model, options.test), options.target)
        X_test, y_test = other.X, other.y
    if record.get("scaled"):
        scaler = fit_scaler(X)
        model, X = scale_model(model, scaler), scaler.transform(X)
        X_test = scaler.transform(X_test) if len(y_test) else X_test
    test_data: dict[str, Any] = {"X_test": X_test, "y_test": y_test} if len(y_test) else {}
    title = options.model.stem
    page = notsorandom.report(model, X, data.y[train], options.output, title=title, **test_data)
    return {"page": str(page.resolve())}


def read_labelled(opened: ModelAndTable, target: str | None) -> TrainingTable:
    """Read all rows of a table with their target."""
    target = opened.resolve_target(target)
    X, y, names = read_all(opened.table, opened.features, target, opened.target_type)
    return TrainingTable(X, y, names, target, not opened.is_regression, "")
